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
pub(super) struct Readiness(Mutex<Reading>);

#[derive(Debug, PartialEq, Eq)]
enum Reading {
    Begun,
    Failed(String),
    Done,
}

impl Readiness {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Reading::Begun))
    }

    /// Why the daemon is not ready: the error of the latest read. `None` if it is ready.
    pub(super) fn missing(&self) -> Option<String> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Reading::Begun => Some("the first reading has not ended".to_owned()),
            Reading::Failed(error) => Some(error.clone()),
            Reading::Done => None,
        }
    }

    /// Reads the chain, unless a previous read succeeded.
    pub(super) async fn read(&self, resolver: &Resolver) {
        if self.missing().is_none() {
            return;
        }
        let (resolver, probe) = (resolver.clone(), EnsName::parse(PROBE).expect("the probe is a name"));
        // In its own task, because a panic in the reader must not end the daemon.
        self.note(match tokio::spawn(async move { resolver.records(&probe).await }).await {
            // A resolver or gateway fails only after the chain was read.
            Ok(Ok(_) | Err(ChainError::Resolver(_) | ChainError::Ccip(_))) => Reading::Done,
            Ok(Err(error)) => Reading::Failed(error.to_string()),
            Err(_panicked) => Reading::Failed("the reading ended unexpectedly; see the log".to_owned()),
        });
    }

    /// Records a result, and logs it if it is new.
    fn note(&self, reading: Reading) {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *latest == reading {
            return;
        }
        match &reading {
            Reading::Failed(error) => tracing::warn!(error, "not ready: no block of the chain could be read"),
            Reading::Begun | Reading::Done => tracing::info!("ready: a block of the chain was read"),
        }
        *latest = reading;
    }
}
