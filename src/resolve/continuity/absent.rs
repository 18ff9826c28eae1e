//! The memory of a build without one. A configuration that names a memory is refused at the start.

use std::path::Path;

#[cfg(feature = "receipts")]
use clresolve_receipt::replay::{Mark, Seen};

use crate::config::Config;
use crate::evidence::Evidence;
use crate::evidence::continuity::Continuity;
use crate::verdict::Verdict;

/// No memory.
#[derive(Clone)]
pub(super) enum History {}

/// Why it cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this build has no memory; build it with the feature `memory`")]
pub(super) struct MemoryError;

impl History {
    pub(super) const fn open(_path: &Path, _config: &Config) -> Result<Self, MemoryError> {
        Err(MemoryError)
    }

    pub(super) async fn recall(&self, _evidence: &Evidence) -> Continuity {
        match *self {}
    }

    pub(super) async fn remember(&self, _evidence: &Evidence, _verdict: &Verdict) -> Result<(), MemoryError> {
        match *self {}
    }

    #[cfg(feature = "receipts")]
    pub(super) async fn mark(&self, _mark: Mark) -> Result<Seen, MemoryError> {
        match *self {}
    }
}
