//! Permits for querying content: when many names are resolved at once, few of them query hosts and gateways
//! concurrently.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// The permits shared by all names.
#[derive(Clone, Default)]
pub(super) struct ConcurrentNameLimit(Option<Arc<Semaphore>>);

/// The permit of a name. Dropping it releases the permit.
pub(super) struct ConcurrentNamePermit {
    _permit: Option<OwnedSemaphorePermit>,
    /// How long the name waited for the permit, which is not the fault of its sources.
    pub(super) waited: Duration,
}

impl ConcurrentNameLimit {
    pub(super) fn with_limit(at_once: u8) -> Self {
        Self(Some(Arc::new(Semaphore::new(usize::from(at_once)))))
    }

    pub(super) async fn acquire_permit(&self) -> ConcurrentNamePermit {
        let began = Instant::now();
        let permit = match &self.0 {
            Some(turns) => Arc::clone(turns).acquire_owned().await.ok(),
            None => None,
        };
        ConcurrentNamePermit { _permit: permit, waited: began.elapsed() }
    }
}
