//! The in-flight readings of names at heads. All callers that wait for one share it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use alloy_primitives::B256;
use clresolve_chain::{AtHead, ChainHead};
use clresolve_core::name::EnsName;
use futures_util::future::{BoxFuture, Shared};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::cache::HeadId;

/// Maximum number of concurrent resolutions of names that have changed: far fewer than clients may cause, so that these
/// come first.
const MAX_REPLACEMENTS: usize = 4;

/// The state of a name at a head; `None` if too few endpoints agreed in time.
pub(super) type Reading = Shared<BoxFuture<'static, Option<Arc<AtHead>>>>;

/// The head that endpoints report; `None` if too few do.
pub(super) type HeadAnswer = Shared<BoxFuture<'static, Option<ChainHead>>>;

/// How the newest head compares with a result.
pub(super) enum Compared {
    /// It is not later, or could not be read.
    Not,
    Confirmed(HeadId),
    Changed,
}

pub(super) struct Readings {
    /// In-flight readings by name and block. Each head has at most one for each name that is cached or being resolved.
    under_way: Mutex<HashMap<(EnsName, B256), Reading>>,
    head: Mutex<Option<LastAsked>>,
    /// Permits for the resolutions of names that have changed.
    replacements: Semaphore,
}

pub(super) struct LastAsked {
    pub(super) at: Instant,
    pub(super) task: AbortHandle,
    pub(super) answer: HeadAnswer,
}

impl Default for Readings {
    fn default() -> Self {
        Self { under_way: Mutex::default(), head: Mutex::default(), replacements: Semaphore::new(MAX_REPLACEMENTS) }
    }
}

impl Readings {
    /// Waits for a permit to resolve a name that has changed.
    pub(super) async fn replacement(&self) -> Option<SemaphorePermit<'_>> {
        self.replacements.acquire().await.ok()
    }

    pub(super) fn head(&self) -> MutexGuard<'_, Option<LastAsked>> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<(EnsName, B256), Reading>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the reading when its task ends, even by a panic.
pub(super) struct UnderWay {
    pub(super) readings: Arc<Readings>,
    pub(super) place: (EnsName, B256),
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.readings.lock().remove(&self.place);
    }
}
