//! The library: scenarios as data through library, program and daemon, conclusions, changed evidence, and the parts
//! below the resolver against scripted servers.

#[path = "scenarios/chain.rs"]
mod chain;
#[path = "scenarios/conclusions.rs"]
mod conclusions;
#[path = "scenarios/conformance.rs"]
mod conformance;
#[path = "scenarios/consensus.rs"]
mod consensus;
#[path = "scenarios/contracts.rs"]
mod contracts;
#[path = "scenarios/fetch.rs"]
mod fetch;
#[path = "scenarios/fuzz.rs"]
mod fuzz;
#[path = "scenarios/ipfs.rs"]
mod ipfs;
#[path = "scenarios/memory.rs"]
mod memory;
#[path = "scenarios/mutation.rs"]
mod mutation;
#[path = "scenarios/proof.rs"]
mod proof;
#[path = "scenarios/verdicts.rs"]
mod verdicts;

#[allow(dead_code, reason = "each program uses a part of the helpers")]
#[path = "support"]
mod support {
    pub(crate) mod corpus;
    pub(crate) mod disguise;
    pub(crate) mod faults;
    pub(crate) mod judge;
    pub(crate) mod proxy;
    pub(crate) mod scenario;
    pub(crate) mod server;
    pub(crate) mod stage;
}
