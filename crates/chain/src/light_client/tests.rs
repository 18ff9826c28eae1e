//! A light client against beacon endpoints on loopback, over a beacon chain whose keys are known.

mod beacon_chain;
mod client;
mod file;
mod liars;
mod server;
mod sync;

pub(crate) use self::beacon_chain::BeaconChain;
pub(crate) use self::client::{LoopbackGet, TestClock, config as client_config};
pub(crate) use self::server::{BeaconServer, Lie};
