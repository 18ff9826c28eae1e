//! Limits concurrent CPU-bound jobs (EVM runs, processing of receipts), so that processors remain available for
//! connections.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinError;

/// Issues permits to run, in order of request.
pub(crate) struct BlockingJobLimiter {
    permits: Arc<Semaphore>,
}

/// A permit for one run, released when the run ends, even if the caller was cancelled.
pub(crate) struct BlockingJobPermit(OwnedSemaphorePermit);

impl BlockingJobLimiter {
    /// Allows half as many runs as there are processors, and at least one.
    pub(crate) fn for_half_of_processors() -> Self {
        Self::with_permits(half_of_processors(thread::available_parallelism().map_or(1, NonZeroUsize::get)))
    }

    pub(crate) fn with_permits(at_once: usize) -> Self {
        let at_once = if clresolve_core::mutant!("endless-runs") { Semaphore::MAX_PERMITS } else { at_once };
        Self { permits: Arc::new(Semaphore::new(at_once)) }
    }

    pub(crate) async fn acquire_permit(&self) -> BlockingJobPermit {
        BlockingJobPermit(Arc::clone(&self.permits).acquire_owned().await.expect("it is never closed"))
    }
}

fn half_of_processors(processors: usize) -> usize {
    (processors / 2).max(1)
}

impl BlockingJobPermit {
    pub(crate) async fn run_job<T: Send + 'static>(
        self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let running = tokio::task::spawn_blocking(move || {
            let _permit = self.0;
            job()
        });
        running.await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};

    use futures_util::future::join_all;
    use futures_util::poll;

    use super::*;

    #[tokio::test]
    async fn runs_beyond_the_limit_wait_even_for_those_whose_callers_gave_up() {
        let limit = BlockingJobLimiter::with_permits(2);
        let (started, starts) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let released = Arc::new(Mutex::new(released));
        let eight = || {
            let runs = (0..8).map(async |_| {
                let (started, released) = (started.clone(), Arc::clone(&released));
                let permit = limit.acquire_permit().await;
                permit.run_job(move || (started.send(()), released.lock().unwrap().recv())).await
            });
            Box::pin(join_all(runs))
        };
        let mut first = eight();
        assert!(poll!(&mut first).is_pending());
        assert_eq!(starts.iter().take(2).count(), 2);
        assert!(poll!(&mut first).is_pending());
        // The callers are cancelled, but their runs continue until they are released.
        drop(first);
        assert!(poll!(eight()).is_pending());
        drop((started, release));
        assert_eq!(starts.iter().count(), 0, "more than two runs were under way");
    }

    #[test]
    fn half_of_the_processors_run_and_one_at_least() {
        assert_eq!([1, 2, 3, 8].map(half_of_processors), [1, 1, 1, 4]);
    }

    #[tokio::test]
    async fn a_run_that_ends_makes_room_even_where_it_panics() {
        let limit = BlockingJobLimiter::with_permits(1);
        assert!(limit.acquire_permit().await.run_job(|| panic!("a bug")).await.is_err());
        assert_eq!(limit.acquire_permit().await.run_job(|| 7).await.unwrap(), 7);
        assert_eq!(limit.permits.available_permits(), 1);
    }
}
