//! ENS read through RPC endpoints: everything about a name that one pinned block states.
//!
//! [`Chain`] is what the resolver uses. [`RpcChain`] reads what endpoints state, [`ProvenChain`] computes over proven
//! state. Absence proven at the block ([`Answer::Unregistered`](clresolve_core::reading::Answer::Unregistered),
//! [`Record::Absent`]) and "could not ask" ([`ChainError`]) are different types.

mod agent_registry;
mod answers;
mod batch;
pub mod ccip;
mod endpoint;
mod exchange;
mod failure;
mod fan_out;
mod follow;
pub mod gateway;
mod head_age;
mod header;
mod header_only;
#[cfg(feature = "state-proof")]
mod header_source;
mod name_finder;
mod new_heads;
mod poll;
mod pool;
#[cfg(feature = "state-proof")]
mod proof_source;
#[cfg(feature = "state-proof")]
mod proven_chain;
#[cfg(feature = "state-proof")]
mod proven_transport;
#[cfg(feature = "state-proof")]
mod prover;
mod query;
mod quorum;
#[cfg(feature = "state-proof")]
mod quorum_headers;
mod quorum_transport;
#[cfg(feature = "state-proof")]
mod receipt_proofs;
mod request;
mod rpc_chain;
#[cfg(feature = "state-proof")]
mod run_limit;
#[cfg(test)]
mod testing;
mod transactions;
pub mod transport;
#[cfg(feature = "state-proof")]
mod unproven_hints;

use std::sync::Arc;

use alloy_primitives::Bytes;
use async_trait::async_trait;
use clresolve_core::cause::LocalLimit;
use clresolve_core::name::EnsName;
use clresolve_core::reading::{Block, BlockSelector, ChainError, Holding, Proof, Reading};
use clresolve_core::records::{Key, Record};
use clresolve_state::Recording;
use metrics::counter;

pub use self::agent_registry::{AgentError, AgentReading, AgentRegistry};
pub use self::endpoint::Endpoint;
pub use self::follow::{Change, FollowError, Follower, Follows, News, OVERLAP, Source};
pub use self::head_age::{HEADS_REFUSED, MAX_AHEAD};
#[cfg(feature = "state-proof")]
pub use self::header_source::{Head, HeaderSource};
pub use self::name_finder::{FoundNames, NameFinder, Spellings, WantedNames};
pub use self::new_heads::{MessageStream, NewHeads, Notice, SILENCE, StreamEnd};
pub use self::pool::{ChainConfig, Clock};
#[cfg(feature = "state-proof")]
pub use self::proven_chain::ProvenChain;
#[cfg(feature = "state-proof")]
pub use self::quorum_headers::QuorumHeaders;
pub use self::rpc_chain::RpcChain;
pub use self::transactions::{SeenTransaction, TransactionReader};

/// Name of the counter of answers that a proof or the other endpoints contradict, by endpoint.
pub const RPC_LIES: &str = "clresolve_rpc_lies_total";

/// A source of readings.
#[async_trait]
pub trait Chain: Send + Sync {
    /// Everything about `name` at the block that `block` selects, with the records of the walk and, where this chain reads
    /// that, with what the name says about payments.
    async fn read(&self, name: &EnsName, block: BlockSelector) -> Result<Reading, ChainError> {
        self.read_keys(name, block, &Key::ALL).await
    }

    /// The same with the records of these keys.
    async fn read_keys(
        &self,
        name: &EnsName,
        block: BlockSelector,
        keys: &'static [Key],
    ) -> Result<Reading, ChainError>;

    /// Address and holder of `owner` (the name in `cl.owner`) at the block of an earlier reading, from the `endpoints`
    /// (labels) that gave it. Other endpoints have not been vouched for.
    async fn holding(&self, owner: &EnsName, block: &Block, endpoints: &[String]) -> Result<Holding, ChainError>;

    /// Further text records of `name` at the block of an earlier reading, as the `endpoints` (labels) that gave it state
    /// them. They are not proven, even where readings are computed. One record for each of `keys`.
    async fn texts(
        &self,
        _name: &EnsName,
        _block: &Block,
        _endpoints: &[String],
        _keys: &[String],
    ) -> Result<Vec<Record>, ChainError> {
        Err(ChainError::LocalLimit(LocalLimit::FurtherRecords))
    }

    /// Text records of `name` under any keys at the block that `block` selects, and at the newest one, as vouched for as a
    /// reading is. One record for each of `keys`. A chain that computes its readings has none.
    async fn read_texts(
        &self,
        _name: &EnsName,
        _block: BlockSelector,
        _keys: &[String],
    ) -> Result<TextReading, ChainError> {
        Err(ChainError::LocalLimit(LocalLimit::FurtherRecords))
    }

    /// The RLP of the header whose hash `block` has, from any of these `endpoints` (labels). `None` where none of them
    /// gives bytes that have this hash.
    async fn header(&self, _block: &Block, _endpoints: &[String]) -> Option<Bytes> {
        None
    }

    /// The same chain, with a recording of the proofs of its readings. `None` where it proves none.
    fn recording(&self) -> Option<(Arc<dyn Chain>, Arc<Recording>)> {
        None
    }
}

/// Text records under keys that are not those of the walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextReading {
    /// The block.
    pub block: Block,
    /// The records there.
    pub records: Vec<Record>,
    /// The records at the newest block. `None` where the block was chosen by number or is itself the newest.
    pub latest: Option<Result<Vec<Record>, ChainError>>,
    /// The proof of the records.
    pub proof: Proof,
}

/// Counts an answer that a proof or the other endpoints contradict.
fn rpc_lied(label: &str) {
    counter!(RPC_LIES, "endpoint" => label.to_owned()).increment(1);
}
