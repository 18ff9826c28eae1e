//! The sandbox: a chain with a beacon chain, web hosts and IPFS gateways in this process, for a first try and for
//! tests.
//!
//! [`RunningSandbox`] runs it. [`agents`] defines the names that the program shows. All servers listen on 127.0.0.1
//! only. Each start creates a new certificate authority, and the chain has its own ID. A verdict of the sandbox
//! therefore cannot be mistaken for a real one.

pub mod agents;
pub mod beacon;
mod ca;
mod ccip;
pub mod chain;
pub mod demo;
mod discovery;
mod gateway;
pub mod keys;
mod planned;
mod published;
pub mod purchase;
pub mod receipts;
mod registrations;
mod schemas;
pub mod seller;
pub mod sellers;
pub mod spec;
mod web;
pub mod world;

#[cfg(test)]
mod tests;

pub use self::chain::{CHAIN_ID, UNIVERSAL_RESOLVER};
pub use self::gateway::IpfsGatewayBehaviour;
pub use self::web::WebServerBehaviour;
pub use self::world::{
    MAX_HEAD_AGE, RunningSandbox, SEAL_EVERY, SandboxRequestCounts, SandboxSchemaManifest, SandboxStartError,
    SandboxUpstreamUrl, ServedChainState,
};
