//! Replaces the fleet in a build that shares nothing. A configuration with a server is rejected at startup.

use std::convert::Infallible;
use std::sync::Arc;

use super::walk::{ResolutionRequest, UncachedResolver};
use crate::cache::{FinishedResolution, VerdictCache};
use crate::clock::Clock;
use crate::config::Config;
use crate::fetch::Egress;

/// Cannot be constructed.
#[derive(Clone)]
pub(super) enum ReplicaFleet {}

impl ReplicaFleet {
    pub(super) async fn join(
        _config: &Config,
        _egress: &Egress,
        _clock: &Arc<dyn Clock>,
        _cache: &Arc<VerdictCache>,
    ) -> Result<Option<Self>, Infallible> {
        Ok(None)
    }

    pub(super) async fn resolve_with_shared_evidence(
        &self,
        _: &Arc<UncachedResolver>,
        _: ResolutionRequest,
    ) -> FinishedResolution {
        match *self {}
    }

    pub(super) async fn resolve_anew(&self, _: &Arc<UncachedResolver>, _: ResolutionRequest) -> FinishedResolution {
        match *self {}
    }

    #[cfg(feature = "unstable")]
    pub(super) async fn wait_for_shared_writes(&self) {
        match *self {}
    }
}
