//! Readiness: a daemon is ready once it has read one block of its chain under the proof that its configuration demands,
//! so that a wrong configuration never replaces one that works. A later outage does not end it.

use std::sync::{Mutex, PoisonError};

use clresolve_core::name::EnsName;
use clresolve_core::reading::ChainError;
use clresolve_resolver::resolve::Resolver;

/// The name in the first read. Any name will do.
const PROBE: &str = "ens.eth";

/// Whether a block was read, and if not, why.
#[derive(Debug)]
pub(super) struct Readiness(Mutex<ReadinessState>);

#[derive(Debug, PartialEq, Eq)]
enum ReadinessState {
    Begun,
    Failed(String),
    Done,
}

impl Readiness {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(ReadinessState::Begun))
    }

    /// Why the daemon is not ready: the error of the latest read. `None` if it is ready.
    pub(super) fn unready_reason(&self) -> Option<String> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            ReadinessState::Begun => Some("the first reading has not ended".to_owned()),
            ReadinessState::Failed(error) => Some(error.clone()),
            ReadinessState::Done => None,
        }
    }

    /// Reads the chain, unless a previous read succeeded.
    pub(super) async fn read_chain(&self, resolver: &Resolver) {
        if self.unready_reason().is_none() {
            return;
        }
        let (resolver, probe) = (resolver.clone(), EnsName::parse(PROBE).expect("the probe is a name"));
        // In its own task, because a panic in the reader must not end the daemon.
        self.record_result(match tokio::spawn(async move { resolver.read_records(&probe).await }).await {
            // A resolver or gateway fails only after the chain was read.
            Ok(Ok(_) | Err(ChainError::Resolver(_) | ChainError::Ccip(_))) => ReadinessState::Done,
            Ok(Err(error)) => ReadinessState::Failed(error.to_string()),
            Err(_panicked) => ReadinessState::Failed("the reading ended unexpectedly; see the log".to_owned()),
        });
    }

    /// Records a result, and logs it if it is new.
    fn record_result(&self, reading: ReadinessState) {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *latest == reading {
            return;
        }
        match &reading {
            ReadinessState::Failed(error) => tracing::warn!(error, "not ready: no block of the chain could be read"),
            ReadinessState::Begun | ReadinessState::Done => tracing::info!("ready: a block of the chain was read"),
        }
        *latest = reading;
    }
}
