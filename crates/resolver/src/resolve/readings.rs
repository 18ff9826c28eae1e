//! The in-flight readings of names at heads. All callers that wait for one share it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use alloy_primitives::B256;
use clresolve_chain::{ChainHead, NameStateAtHead};
use clresolve_core::name::EnsName;
use futures_util::future::{BoxFuture, Shared};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::cache::HeadSequenceNumber;

/// Maximum number of concurrent resolutions of names that have changed: far fewer than clients may cause, so that these
/// come first.
const MAX_REPLACEMENTS: usize = 4;

/// The state of a name at a head; `None` if too few endpoints agreed in time.
pub(super) type NameReadingFuture = Shared<BoxFuture<'static, Option<Arc<NameStateAtHead>>>>;

/// The head that endpoints report; `None` if too few do.
pub(super) type ChainHeadFuture = Shared<BoxFuture<'static, Option<ChainHead>>>;

/// How the newest head compares with a result.
pub(super) enum HeadConfirmationOutcome {
    /// It is not later, or could not be read.
    Not,
    Confirmed(HeadSequenceNumber),
    Changed,
}

pub(super) struct InFlightReadings {
    /// In-flight readings by name and block. Each head has at most one for each name that is cached or being resolved.
    under_way: Mutex<HashMap<(EnsName, B256), NameReadingFuture>>,
    head: Mutex<Option<LastHeadRequest>>,
    /// Permits for the resolutions of names that have changed.
    replacements: Semaphore,
}

pub(super) struct LastHeadRequest {
    pub(super) at: Instant,
    pub(super) task: AbortHandle,
    pub(super) answer: ChainHeadFuture,
}

impl Default for InFlightReadings {
    fn default() -> Self {
        Self { under_way: Mutex::default(), head: Mutex::default(), replacements: Semaphore::new(MAX_REPLACEMENTS) }
    }
}

impl InFlightReadings {
    /// Waits for a permit to resolve a name that has changed.
    pub(super) async fn acquire_replacement_permit(&self) -> Option<SemaphorePermit<'_>> {
        self.replacements.acquire().await.ok()
    }

    pub(super) fn lock_last_head_request(&self) -> MutexGuard<'_, Option<LastHeadRequest>> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lock_readings(&self) -> MutexGuard<'_, HashMap<(EnsName, B256), NameReadingFuture>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the reading when its task ends, even by a panic.
pub(super) struct InFlightReadingGuard {
    pub(super) readings: Arc<InFlightReadings>,
    pub(super) place: (EnsName, B256),
}

impl Drop for InFlightReadingGuard {
    fn drop(&mut self) {
        self.readings.lock_readings().remove(&self.place);
    }
}
