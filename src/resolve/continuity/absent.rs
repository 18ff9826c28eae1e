//! Replaces the memory in a build without it. A configuration with a memory is rejected at startup.

use std::path::Path;

#[cfg(feature = "receipts")]
use clresolve_messages::receipt::replay::{Mark, Seen};
use clresolve_verdict::evidence::Evidence;
use clresolve_verdict::evidence::continuity::Continuity;
use clresolve_verdict::verdict::Verdict;

use crate::config::Config;

/// Cannot be constructed.
#[derive(Clone)]
pub(super) enum History {}

/// The error of opening a memory in this build.
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
