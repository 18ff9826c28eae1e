//! A small pool of threads for work that takes the processor: judging evidence and cards.
//!
//! The worst card takes some milliseconds. On a worker of the asynchronous runtime that time would be taken from every
//! connection, the gate's included; here it is taken from other judgements alone. Half of the processors, or a
//! few, are enough, because a run waits for the network most of its time.

use std::any::Any;
#[cfg(feature = "mcp")]
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
#[cfg(test)]
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
#[cfg(feature = "mcp")]
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

#[cfg(feature = "mcp")]
use tokio::runtime::Handle;
#[cfg(feature = "mcp")]
use tokio::sync::Notify;
use tokio::sync::{Semaphore, oneshot};

use crate::cpu_share;

/// Most threads, however many processors there are: thousands of judgements a second, and together 64 MiB where each of
/// them judges the worst document.
pub(crate) const MAX_THREADS: usize = 4;

/// Most jobs of one pool that are running or waiting to. At 20 ms each, the last of them begins after some seconds on one
/// thread; each holds at most a few documents of 256 KiB.
const MAX_JOBS: usize = 64;

/// Places of one client, for each thread: one job that runs, and the next. Others wait as long as these take.
#[cfg(feature = "daemon")]
const PLACES_OF_CLIENT: usize = 2;

/// One job, ready to run.
type Job = Box<dyn FnOnce() + Send>;

/// The threads, and the way to them. They end after the pool is dropped and the last job is done.
pub(crate) struct CpuPool {
    jobs: Sender<Job>,
    /// One permit for each job. It bounds the queue, which has no bound of its own.
    places: Arc<Semaphore>,
    #[cfg(feature = "daemon")]
    threads: usize,
    /// Jobs that were begun.
    #[cfg(test)]
    begun: Arc<AtomicUsize>,
}

/// There are too many jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolFull;

impl CpuPool {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(crate) fn start() -> io::Result<Self> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self::of((processors / 2).clamp(1, MAX_THREADS), MAX_JOBS)
    }

    fn of(threads: usize, places: usize) -> io::Result<Self> {
        let (jobs, waiting) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..threads {
            let waiting = Arc::clone(&waiting);
            thread::Builder::new().name("judge".to_owned()).spawn(move || work(&waiting))?;
        }
        let places = if clresolve_core::mutant!("endless-jobs") { Semaphore::MAX_PERMITS } else { places };
        Ok(Self {
            jobs,
            places: Arc::new(Semaphore::new(places)),
            #[cfg(feature = "daemon")]
            threads,
            #[cfg(test)]
            begun: Arc::default(),
        })
    }

    /// How many places a client has.
    #[cfg(feature = "daemon")]
    pub(crate) const fn share(&self) -> usize {
        self.threads * PLACES_OF_CLIENT
    }

    /// The result of `job`, once there is a place for it. For callers whose number is bounded. A caller that gives up does
    /// not end a job that it has handed over.
    pub(crate) async fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let share = cpu_share::place().await;
        let place = Arc::clone(&self.places).acquire_owned().await.expect("the semaphore is never closed");
        if clresolve_core::mutant!("jobs-on-workers") {
            return job();
        }
        self.run_at((share, place), job).await
    }

    /// As [`CpuPool::run`], but refused where there is no place once there is one in the client's share.
    ///
    /// # Errors
    /// [`PoolFull`].
    #[cfg(feature = "cards")]
    pub(crate) async fn try_run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PoolFull> {
        let share = cpu_share::place().await;
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| PoolFull)?;
        if clresolve_core::mutant!("jobs-on-workers") {
            return Ok(job());
        }
        Ok(self.run_at((share, place), job).await)
    }

    /// The result of `work` whose own steps take the processor: each of them is a job, and what it waits for takes no thread.
    #[cfg(feature = "mcp")]
    pub(crate) async fn drive<F: Future<Output: Send> + Send + 'static>(&self, work: F) -> F::Output {
        let (mut work, woken, runtime) = (Box::pin(work), Arc::new(Woken::default()), Handle::current());
        loop {
            let (waker, runtime) = (Waker::from(Arc::clone(&woken)), runtime.clone());
            let step = move || {
                let _within = runtime.enter();
                let polled = work.as_mut().poll(&mut Context::from_waker(&waker));
                (work, polled)
            };
            match self.run(step).await {
                (_, Poll::Ready(output)) => return output,
                (rest, Poll::Pending) => work = rest,
            }
            woken.0.notified().await;
        }
    }

    /// How many jobs are running or waiting to.
    #[cfg(test)]
    pub(crate) fn jobs(&self) -> usize {
        MAX_JOBS - self.places.available_permits()
    }

    /// How many jobs were ever begun.
    #[cfg(test)]
    pub(crate) fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    async fn run_at<T: Send + 'static>(
        &self,
        places: impl Send + 'static,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let mut places = Some(places);
        if clresolve_core::mutant!("places-freed-early") {
            places = None;
        }
        let (done, result) = oneshot::channel::<Result<T, Box<dyn Any + Send>>>();
        #[cfg(test)]
        let begun = Arc::clone(&self.begun);
        let job = move || {
            #[cfg(test)]
            begun.fetch_add(1, Ordering::Relaxed);
            let result = catch_unwind(AssertUnwindSafe(job));
            drop(places);
            // A caller that gave up takes no result.
            let _ = done.send(result);
        };
        self.jobs.send(Box::new(job)).expect("the threads outlive the pool");
        let result = result.await.expect("a job that panics gives its panic");
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

/// Wakes who waits for the next step.
#[cfg(feature = "mcp")]
#[derive(Default)]
struct Woken(Notify);

#[cfg(feature = "mcp")]
impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

/// One thread: job after job, until the pool is dropped.
fn work(waiting: &Mutex<Receiver<Job>>) {
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = next else { return };
        job();
    }
}

/// A pool all of whose threads have a job that goes on.
#[cfg(test)]
pub(crate) struct Occupied {
    jobs: Vec<tokio::task::JoinHandle<bool>>,
    release: Vec<Sender<()>>,
}

#[cfg(test)]
impl Occupied {
    /// Gives every thread such a job.
    pub(crate) fn whole(pool: &Arc<CpuPool>) -> Self {
        let (release, waiting): (Vec<_>, Vec<_>) = (0..MAX_THREADS).map(|_| channel::<()>()).unzip();
        let job = |wait: Receiver<()>| {
            let pool = Arc::clone(pool);
            tokio::spawn(async move {
                let place = Arc::clone(&pool.places).acquire_owned().await.expect("the semaphore is never closed");
                pool.run_at(place, move || wait.recv().is_ok()).await
            })
        };
        Self { jobs: waiting.into_iter().map(job).collect(), release }
    }

    /// Whether other jobs wait for these.
    pub(crate) fn is_waited_for(pool: &CpuPool) -> bool {
        pool.jobs() > MAX_THREADS
    }

    /// Until a pool has so many jobs.
    pub(crate) async fn wait_for_jobs(pool: &CpuPool, count: usize) {
        while pool.jobs() != count {
            tokio::task::yield_now().await;
        }
    }

    /// Ends the jobs.
    pub(crate) async fn release(self) {
        drop(self.release);
        for job in self.jobs {
            assert!(!job.await.expect("it ends"), "its channel was closed");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures_util::{FutureExt as _, poll};

    use super::*;

    #[tokio::test]
    async fn a_full_pool_refuses_and_makes_patient_callers_wait() {
        let pool = CpuPool::of(1, 1).expect("a thread");
        let (go, wait) = mpsc::channel::<()>();
        let mut first = Box::pin(pool.run(move || wait.recv().is_ok()));
        assert!(poll!(&mut first).is_pending());
        assert_eq!(pool.try_run(|| ()).now_or_never(), Some(Err(PoolFull)));
        let mut second = Box::pin(pool.run(|| 2));
        assert!(poll!(&mut second).is_pending());
        go.send(()).expect("the job waits");
        assert!(first.await);
        assert_eq!(second.await, 2);
        assert_eq!(pool.try_run(|| 3).await, Ok(3));
    }

    #[tokio::test]
    async fn a_caller_that_gives_up_frees_no_place_before_the_job_ends() {
        let pool = CpuPool::of(1, 1).expect("a thread");
        let (go, wait) = mpsc::channel::<()>();
        let mut given_up = Box::pin(pool.run(move || wait.recv().is_ok()));
        assert!(poll!(&mut given_up).is_pending());
        drop(given_up);
        assert_eq!(pool.try_run(|| ()).now_or_never(), Some(Err(PoolFull)));
        go.send(()).expect("the job waits");
        assert_eq!(pool.run(|| 1).await, 1);
    }

    /// So many places.
    #[cfg(feature = "daemon")]
    struct Share(Arc<Semaphore>);

    #[cfg(feature = "daemon")]
    #[async_trait::async_trait]
    impl cpu_share::CpuShare for Share {
        async fn place(&self) -> Box<dyn Send> {
            Box::new(Arc::clone(&self.0).acquire_owned().await.expect("it is never closed"))
        }
    }

    #[cfg(feature = "daemon")]
    #[tokio::test]
    async fn a_client_takes_its_share_of_the_places_and_no_more() {
        let pool = Arc::new(CpuPool::of(1, 4).expect("a thread"));
        let share: Arc<dyn cpu_share::CpuShare> = Arc::new(Share(Arc::new(Semaphore::new(2))));
        let (go, wait) = mpsc::channel::<()>();
        let of_client = |pool: &Arc<CpuPool>, job: Box<dyn FnOnce() + Send>| {
            let pool = Arc::clone(pool);
            Box::pin(cpu_share::within(Arc::clone(&share), async move {
                // What a client has spawned is its own.
                cpu_share::spawn(async move { pool.run(job).await }).await.expect("it ends");
            }))
        };
        let mut first = of_client(&pool, Box::new(move || _ = wait.recv()));
        let mut others: Vec<_> = (0..6).map(|_| of_client(&pool, Box::new(|| ()))).collect();
        assert!(poll!(&mut first).is_pending());
        for other in &mut others {
            assert!(poll!(other).is_pending());
        }
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(pool.places.available_permits(), 2, "its share is two places");
        drop(others);
        let mut of_another = Box::pin(pool.try_run(|| 3));
        assert!(poll!(&mut of_another).is_pending(), "another has a place");
        go.send(()).expect("the job waits");
        first.await;
        assert_eq!(of_another.await, Ok(3));
    }

    #[cfg(feature = "mcp")]
    #[tokio::test]
    async fn the_steps_of_a_future_are_jobs_and_what_it_waits_for_takes_no_place() {
        let pool = CpuPool::of(1, 1).expect("a thread");
        let name = || thread::current().name().map(str::to_owned);
        let (go, wait) = oneshot::channel::<()>();
        let mut driven = Box::pin(pool.drive(async move {
            let first = name();
            wait.await.expect("it is told");
            (first, name())
        }));
        while pool.begun() == 0 || pool.places.available_permits() == 0 {
            assert!(poll!(&mut driven).is_pending());
            tokio::task::yield_now().await;
        }
        assert_eq!(pool.try_run(|| 1).await, Ok(1), "it waits without a place");
        go.send(()).expect("it goes on");
        assert_eq!(driven.await, (Some("judge".to_owned()), Some("judge".to_owned())));
    }

    #[tokio::test]
    async fn a_panic_reaches_the_caller_and_leaves_the_thread() {
        let pool = Arc::new(CpuPool::of(1, 4).expect("a thread"));
        let calling = Arc::clone(&pool);
        let panicking = tokio::spawn(async move { calling.run(|| panic!("a bug")).await });
        assert!(panicking.await.expect_err("it panics").is_panic());
        assert_eq!(pool.run(|| 1).await, 1);
    }
}
