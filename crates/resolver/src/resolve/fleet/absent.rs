//! Replaces the fleet in a build that shares nothing. A configuration with a server is rejected at startup.

use std::convert::Infallible;
use std::sync::Arc;

use super::walk::{RunRequest, Walker};
use crate::cache::{Finished, VerdictCache};
use crate::clock::Clock;
use crate::config::Config;
use crate::fetch::Egress;

/// Cannot be constructed.
#[derive(Clone)]
pub(super) enum Fleet {}

impl Fleet {
    pub(super) async fn join(
        _config: &Config,
        _egress: &Egress,
        _clock: &Arc<dyn Clock>,
        _cache: &Arc<VerdictCache>,
    ) -> Result<Option<Self>, Infallible> {
        Ok(None)
    }

    pub(super) async fn run(&self, _: &Arc<Walker>, _: RunRequest) -> Finished {
        match *self {}
    }

    pub(super) async fn run_anew(&self, _: &Arc<Walker>, _: RunRequest) -> Finished {
        match *self {}
    }

    #[cfg(feature = "unstable")]
    pub(super) async fn settled(&self) {
        match *self {}
    }
}
