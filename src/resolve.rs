//! The one walk: name, records, card, proof, verdict.

use std::sync::Arc;

use bytes::Bytes;

pub use crate::chain::{Answer, ChainError, Reading};
use crate::config::Config;
use crate::name::EnsName;
use crate::verdict::Verdict;

/// Answers questions about names. Cheap to clone; one per process.
#[derive(Clone)]
pub struct Resolver {}

/// A verdict, and the card when it was proven.
#[derive(Clone, Debug)]
pub struct Resolution {
    /// The verdict.
    pub verdict: Arc<Verdict>,
    /// The exact bytes of the card; only of a trusted verdict.
    pub card: Option<Bytes>,
}

impl Resolver {
    /// Builds the doors, the chain reader, the rules and the caches.
    ///
    /// # Errors
    /// When a file of the configuration cannot be read or does not hold what it should.
    pub async fn new(_config: &Config) -> Result<Self, SetupError> {
        Ok(Self {})
    }

    /// The verdict on `input`, from the cache or from a run. Never fails: what went wrong is in the verdict.
    pub async fn resolve(&self, _input: &str) -> Resolution {
        unimplemented!()
    }

    /// The records of a name, judged by nothing.
    ///
    /// # Errors
    /// When the chain could not be asked.
    pub async fn records(&self, _name: &EnsName) -> Result<Reading, ChainError> {
        unimplemented!()
    }
}

/// Why a [`Resolver`] cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// A file cannot be read or does not hold what it should.
    #[error("{what}: {detail}")]
    Invalid {
        /// Which key of the configuration.
        what: String,
        /// What is wrong with it.
        detail: String,
    },
}
