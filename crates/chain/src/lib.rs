//! Reading the chain: everything about a name that one pinned block says.
//!
//! [`Chain`] is the face that the walk knows. Absence proven at the block ([`Answer::Unregistered`](clresolve_core::reading::Answer::Unregistered),
//! [`Record::Absent`]) and "could not ask" ([`ChainError`]) are different types.

pub mod ccip;
mod chorus;
mod endpoint;
pub mod gateway;
mod hedge;
mod proven;
mod prover;
mod relay;
mod rpc;
mod tally;
pub mod transport;

use std::sync::Arc;

use alloy_primitives::Bytes;
use async_trait::async_trait;
use clresolve_core::cause::LocalLimit;
use clresolve_core::name::EnsName;
use clresolve_core::reading::{Block, BlockSelector, ChainError, Holding, Reading};
use clresolve_core::records::{Key, Record};
use clresolve_state::Recording;
use metrics::counter;

pub use self::endpoint::Endpoint;
pub use self::proven::{Head, HeaderSource, ProvenChain};
pub use self::rpc::{ChainConfig, Clock, RpcChain};

/// The counter of answers that proof or the other endpoints contradict, by endpoint.
pub const RPC_LIES: &str = "clresolve_rpc_lies_total";

/// A source of readings: RPC endpoints, a proof engine, a script in a test.
#[async_trait]
pub trait Chain: Send + Sync {
    /// Everything about `name` at the block that `block` selects, with the records of the walk.
    async fn read(&self, name: &EnsName, block: BlockSelector) -> Result<Reading, ChainError> {
        self.read_keys(name, block, &Key::ALL).await
    }

    /// As [`Chain::read`], with the records of these keys.
    async fn read_keys(
        &self,
        name: &EnsName,
        block: BlockSelector,
        keys: &'static [Key],
    ) -> Result<Reading, ChainError>;

    /// Address and holder of `owner` (the name in `cl.owner`) at the very block of an earlier reading, and from the very
    /// `endpoints` (labels) that gave it: the word of others would be vouched for by nobody.
    async fn holding(&self, owner: &EnsName, block: &Block, endpoints: &[String]) -> Result<Holding, ChainError>;

    /// Further text records of `name` at the very block of an earlier reading, as told by the very `endpoints` (labels) that
    /// gave it: told, also where readings are computed. One answer for each of `keys`.
    async fn texts(
        &self,
        _name: &EnsName,
        _block: &Block,
        _endpoints: &[String],
        _keys: &[String],
    ) -> Result<Vec<Record>, ChainError> {
        Err(ChainError::LocalLimit(LocalLimit::FurtherRecords))
    }

    /// The RLP of the header whose hash `block` has, from any of these `endpoints` (labels): its bytes hash to it.
    /// Nothing, where nobody gives one that does.
    async fn header(&self, _block: &Block, _endpoints: &[String]) -> Option<Bytes> {
        None
    }

    /// The same chain, taking down what proves its readings. Nothing, where it proves none.
    fn recording(&self) -> Option<(Arc<dyn Chain>, Arc<Recording>)> {
        None
    }
}

/// An endpoint gave an answer that proof or the other endpoints contradict.
fn rpc_lied(label: &str) {
    counter!(RPC_LIES, "endpoint" => label.to_owned()).increment(1);
}
