//! Memory for the long bodies of one server.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use clresolve_core::fetch::{Cause, FetchError};

/// Bytes of one body that need no reservation. Most cards, directories and replies of endpoints are shorter, and the HTTP
/// client, which reads twice as much at a time after each full read, has not come to long reads then.
pub const SHORT_BODY: usize = 16 << 10;

/// Bytes that one server's bodies beyond [`SHORT_BODY`] may have in memory together.
///
/// A server that floods many requests at once then costs this many bytes, and keeps only its own other answers waiting.
/// A body reserves all that it may need at once, so that no two of them wait for each other.
#[derive(Clone, Debug)]
pub struct BodyBudget {
    free: Arc<Semaphore>,
    bytes: u32,
}

/// A part of a [`BodyBudget`], given back when it is dropped.
#[derive(Debug)]
pub struct BodyReservation {
    _permit: OwnedSemaphorePermit,
}

impl BodyBudget {
    /// A budget of `bytes`, all free.
    pub fn new(bytes: u32) -> Self {
        Self { free: Arc::new(Semaphore::new(bytes as usize)), bytes }
    }

    /// Waits until `bytes` are free. A body that is longer than the whole budget gets all of it.
    ///
    /// # Errors
    /// [`Cause::Timeout`] when they are not free by `deadline`.
    pub async fn reserve(&self, bytes: usize, deadline: Instant) -> Result<BodyReservation, FetchError> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(self.bytes);
        let permit = timeout_at(deadline, Arc::clone(&self.free).acquire_many_owned(bytes)).await;
        let permit = permit.map_err(|_| Cause::Timeout)?.expect("the semaphore is never closed");
        Ok(BodyReservation { _permit: permit })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn bodies_of_a_server_share_one_budget() {
        let budget = BodyBudget::new(100);
        let deadline = Instant::now() + Duration::from_secs(1);
        let first = budget.reserve(60, deadline).await.unwrap();
        let timeout = FetchError::from(Cause::Timeout);
        assert_eq!(budget.reserve(41, deadline).await.unwrap_err(), timeout);
        drop(first);
        let all = budget.reserve(usize::MAX, deadline).await.unwrap();
        assert_eq!(budget.reserve(1, deadline).await.unwrap_err(), timeout);
        drop(all);
        budget.reserve(100, deadline).await.unwrap();
    }
}
