//! The embedded world: a chain, a web and an IPFS gateway in this process, for a first try and for tests.
//!
//! [`Sandbox`] is that world with the agents of `sandbox/agents.toml`. Everything in it listens on 127.0.0.1 only, its
//! certificate authority is made anew at every start, and its chain is none that exists: a verdict of the sandbox
//! cannot pass for a real one.

mod agents;
mod ca;
pub mod chain;
mod discovery;
mod gateway;
mod schemas;
pub mod spec;
mod web;
pub mod world;

#[cfg(test)]
mod tests;

use serde::Serialize;

pub use self::gateway::GatewayManners;
use self::schemas::Schemas;
pub use self::web::Manners;
use self::world::{World, WorldError};
use crate::config::Config;
use crate::profile::Profiles;
use crate::reason::Code;
use crate::verdict::State;

/// `anchor.world` of the sandbox's verdicts.
pub const WORLD: &str = "sandbox";

/// The sandbox, running. It stops when this is dropped.
pub struct Sandbox {
    world: World,
}

/// A name of the sandbox and the verdict that it should get when it is asked for with the defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Expected {
    /// The name.
    pub name: String,
    /// The state.
    pub state: State,
    /// Every reason's code, in alphabetical order.
    pub codes: Vec<Code>,
    /// What is special about the name, in one sentence.
    #[serde(skip)]
    pub about: String,
}

/// Why the sandbox cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The world does not start.
    #[error(transparent)]
    World(#[from] WorldError),
}

impl Sandbox {
    /// Starts the sandbox on free ports of 127.0.0.1.
    ///
    /// # Errors
    /// When a port cannot be had.
    pub async fn start() -> Result<Self, SandboxError> {
        Ok(Self { world: World::start(&agents::spec()).await? })
    }

    /// A configuration that reads this world and nothing else.
    pub fn config(&self) -> Config {
        self.world.config()
    }

    /// What listens where: label and URL or address.
    pub fn endpoints(&self) -> Vec<(String, String)> {
        self.world.endpoints()
    }

    /// Every name of the sandbox with the verdict that it should get, good agents first, then by name.
    pub fn expected() -> Vec<Expected> {
        agents::expected()
    }

    /// The rules by which its names are judged: the built-in profiles with the manifests of its own schemas. Nothing is
    /// started.
    pub fn profiles() -> Profiles {
        let mut profiles = Profiles::builtin();
        for manifest in Schemas::publish(&agents::spec().schemas).manifests() {
            profiles.replace_manifest(&manifest.bytes).expect("its manifests have the ids of the built-in ones");
        }
        profiles
    }

    /// Keeps the sandbox running, and its chain growing, for as long as this is awaited.
    pub async fn stopped(self) {
        self.world.run().await;
    }
}
