//! Readiness: a daemon is ready once it has read one block of its chain under the proof that its configuration demands,
//! so that a wrong configuration never replaces one that works. A later outage does not end it.

use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clresolve_core::name::EnsName;
use tokio::time::sleep;

use super::in_force::InForce;

/// A name for the first reading. Any name will do.
const PROBE: &str = "ens.eth";

/// Time between two readings that failed, and between two looks at the configuration in force.
const PAUSE: Duration = Duration::from_secs(1);

/// Whether a block was read, and if not, why.
#[derive(Debug)]
pub(super) struct Readiness(Mutex<Reading>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Reading {
    Begun,
    Failed(String),
    Done,
}

impl Readiness {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Reading::Begun))
    }

    /// Why the daemon is not ready, in an error of the latest reading, or `None` if it is ready.
    pub(super) fn missing(&self) -> Option<String> {
        match self.reading() {
            Reading::Begun => Some("the first reading has not ended".to_owned()),
            Reading::Failed(error) => Some(error),
            Reading::Done => None,
        }
    }

    fn reading(&self) -> Reading {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes a reading, and logs what is new.
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

/// Reads until the configuration in force has read a block, and begins again after a reload. Runs until the future is
/// dropped.
pub(super) async fn run(in_force: &InForce) -> Infallible {
    let probe = EnsName::parse(PROBE).expect("the probe is a name");
    loop {
        let state = in_force.state();
        if state.readiness.missing().is_some() {
            let (resolver, probe) = (state.resolver.clone(), probe.clone());
            // A task of its own: a reader that panics must not end the daemon.
            state.readiness.note(match tokio::spawn(async move { resolver.records(&probe).await }).await {
                Ok(Ok(_)) => Reading::Done,
                Ok(Err(error)) => Reading::Failed(error.to_string()),
                Err(_panicked) => Reading::Failed("the reading was broken off".to_owned()),
            });
        }
        sleep(PAUSE).await;
    }
}
