//! A memory budget for the long bodies of one server.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use clresolve_core::fetch::{FetchError, SourceUnavailableError};

/// Bytes of one body that need no reservation. Most cards, directories and endpoint replies are shorter. The HTTP
/// client doubles its read size after each full read, and at this length its reads are still short.
pub const SHORT_BODY: usize = 16 << 10;

/// Bytes in memory that bodies of one server longer than [`SHORT_BODY`] may use together.
///
/// A server that sends many long bodies at once therefore costs at most this many bytes, and delays only its own other
/// responses. A body reserves its maximum in one step, so two bodies cannot deadlock.
#[derive(Clone, Debug)]
pub struct BodyBudget {
    free: Arc<Semaphore>,
    bytes: u32,
}

/// A share of a [`BodyBudget`], returned on drop.
#[derive(Debug)]
pub struct BodyReservation {
    _permit: OwnedSemaphorePermit,
}

impl BodyBudget {
    /// A budget of `bytes`, all of them free.
    pub fn new(bytes: u32) -> Self {
        Self { free: Arc::new(Semaphore::new(bytes as usize)), bytes }
    }

    /// Waits until `bytes` are free. A body longer than the whole budget reserves all of it.
    ///
    /// # Errors
    /// [`SourceUnavailableError::Timeout`] if they are not free by `deadline`.
    pub async fn reserve(&self, bytes: usize, deadline: Instant) -> Result<BodyReservation, FetchError> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(self.bytes);
        let permit = timeout_at(deadline, Arc::clone(&self.free).acquire_many_owned(bytes)).await;
        let permit = permit.map_err(|_| SourceUnavailableError::Timeout)?.expect("the semaphore is never closed");
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
        let timeout = FetchError::from(SourceUnavailableError::Timeout);
        assert_eq!(budget.reserve(41, deadline).await.unwrap_err(), timeout);
        drop(first);
        let all = budget.reserve(usize::MAX, deadline).await.unwrap();
        assert_eq!(budget.reserve(1, deadline).await.unwrap_err(), timeout);
        drop(all);
        budget.reserve(100, deadline).await.unwrap();
    }
}
