//! Turns at the content: where many names are read at once, few of them ask hosts and gateways at the same time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// The turns of all names.
#[derive(Clone, Default)]
pub(super) struct Turns(Option<Arc<Semaphore>>);

/// The turn of a name. It ends when this is dropped.
pub(super) struct Turn {
    _permit: Option<OwnedSemaphorePermit>,
    /// How long the name waited for it, which is no fault of its sources.
    pub(super) waited: Duration,
}

impl Turns {
    /// So many at the same time.
    #[cfg(feature = "cli")]
    pub(super) fn of(at_once: u8) -> Self {
        Self(Some(Arc::new(Semaphore::new(usize::from(at_once)))))
    }

    pub(super) async fn next(&self) -> Turn {
        let began = Instant::now();
        let permit = match &self.0 {
            Some(turns) => Arc::clone(turns).acquire_owned().await.ok(),
            None => None,
        };
        Turn { _permit: permit, waited: began.elapsed() }
    }
}
