//! The embedded world: a chain, a web and an IPFS gateway in this process, for a first try and for tests.

pub mod chain;
pub mod unixfs;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::config::Config;
use crate::reason::Code;
use crate::verdict::State;

/// A running world.
pub struct Sandbox;

/// A name of the world and the verdict that it should get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Expected {
    /// The name.
    pub name: String,
    /// The state.
    pub state: State,
    /// Every reason's code.
    pub codes: Vec<Code>,
}

/// Why the world cannot start or be described.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SandboxError(pub String);

impl Sandbox {
    /// Starts the world on free loopback ports.
    ///
    /// # Errors
    /// When a port cannot be bound.
    pub async fn start() -> Result<Self, SandboxError> {
        unimplemented!()
    }

    /// A configuration that points at the world.
    pub fn config(&self) -> Config {
        unimplemented!()
    }

    /// Writes the trust root and a configuration file into `dir`; gives the path of the latter.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn file(&self, _dir: &Path) -> Result<PathBuf, SandboxError> {
        unimplemented!()
    }

    /// What listens where: label and URL.
    pub fn endpoints(&self) -> Vec<(String, String)> {
        unimplemented!()
    }

    /// Every name of the world with its verdict.
    pub fn expected() -> Vec<Expected> {
        unimplemented!()
    }

    /// Ends when the world has.
    pub async fn stopped(self) {
        unimplemented!()
    }
}
