//! Reads ENS names from an Ethereum chain through JSON-RPC endpoints, at one pinned block.
//!
//! [`EnsReader`] is the interface that the resolver uses. [`RpcEnsReader`] trusts what the endpoints state;
//! [`ProvenEnsReader`] executes calls locally over state that is proven against a block header, which a quorum of
//! endpoints or a [`LightClient`] of the beacon chain vouches for. "The name or record does not exist"
//! ([`EnsAnswer::Unregistered`](clresolve_core::reading::EnsAnswer::Unregistered),
//! [`TextRecord::Absent`]) and "the chain could not be read" ([`ChainError`]) are different types.

mod agent_registry;
mod answers;
mod batch;
mod beacon_metrics;
mod capabilities;
pub mod ccip;
#[cfg(feature = "state-proof")]
mod consensus_headers;
mod endpoint;
mod exchange;
mod failure;
mod fan_out;
pub mod gateway;
mod head;
mod head_age;
mod head_reader;
mod header;
mod header_only;
#[cfg(feature = "state-proof")]
mod header_source;
mod keys;
#[cfg(feature = "state-proof")]
mod light_client;
mod name_finder;
mod poll;
mod pool;
#[cfg(feature = "state-proof")]
mod proof_source;
#[cfg(feature = "state-proof")]
mod proven_chain;
#[cfg(feature = "state-proof")]
mod proven_heads;
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
mod revert;
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
use clresolve_core::cause::LocalLimitError;
use clresolve_core::light_client::LightClientSyncTranscript;
use clresolve_core::name::EnsName;
use clresolve_core::reading::{BlockSelector, ChainBlock, ChainError, ClOwnerReading, NameReading, ProofStrength};
use clresolve_core::records::{TextRecord, TextRecordKey};
use clresolve_state::StateProofRecorder;
use metrics::counter;

pub use self::agent_registry::{AgentRegistryError, AgentRegistryReader, AgentRegistryReading};
pub use self::beacon_metrics::{
    BEACON_FINALIZED_TIME, BEACON_LIES, BEACON_OPTIMISTIC_TIME, BEACON_PARTICIPATION, BEACON_REFUSED,
};
pub use self::capabilities::EndpointCapabilities;
#[cfg(feature = "state-proof")]
pub use self::consensus_headers::ConsensusHeaderSource;
pub use self::endpoint::{ANSWERS_REFUSED, RpcEndpointSettings, has_public_host_name};
pub use self::head::{ChainHead, MAX_STEP_BACK};
pub use self::head_age::{HEADS_REFUSED, MAX_AHEAD};
pub use self::head_reader::{ChainHeadReader, NameStateAtHead, QuorumHeadReader};
#[cfg(feature = "state-proof")]
pub use self::header_source::{BlockHeaderSource, VouchedBlockHeader};
#[cfg(feature = "state-proof")]
pub use self::light_client::{
    BEACON_ACCEPT, BeaconEndpointDemotion, BeaconEndpointSettings, BeaconEndpointStatus, BeaconHttpClient,
    BeaconResponse, LightClient, LightClientConfig, LightClientStatus, SyncCommitteeParticipation,
    VerifiedHeadersStatus,
};
pub use self::name_finder::{EventLogNameFinder, FoundNamehashes, NameSearchScope, NamehashPreimages};
pub use self::pool::{ChainReaderConfig, TimeSource};
#[cfg(feature = "state-proof")]
pub use self::proven_chain::ProvenEnsReader;
#[cfg(feature = "state-proof")]
pub use self::proven_heads::ProvenHeadReader;
#[cfg(feature = "state-proof")]
pub use self::quorum_headers::QuorumHeaderSource;
pub use self::rpc_chain::RpcEnsReader;
pub use self::transactions::{AgreedTransaction, TransactionReader};
#[cfg(feature = "state-proof")]
pub use clresolve_beacon::ChainSpec;

/// Metric name: answers that a proof or the other endpoints contradict, counted per endpoint.
pub const RPC_LIES: &str = "clresolve_rpc_lies_total";

/// A source of ENS readings.
#[async_trait]
pub trait EnsReader: Send + Sync {
    /// Reads `name` at the block that `block` selects: the text records that a resolution needs and, if this chain is
    /// configured for it, the name's payment records.
    async fn read_name(&self, name: &EnsName, block: BlockSelector) -> Result<NameReading, ChainError> {
        self.read_selected_records(name, block, &TextRecordKey::ALL).await
    }

    /// Like [`EnsReader::read_name`], but reads only the records under `keys`.
    async fn read_selected_records(
        &self,
        name: &EnsName,
        block: BlockSelector,
        keys: &'static [TextRecordKey],
    ) -> Result<NameReading, ChainError>;

    /// Reads the address and holder of `owner` (the name in `cl.owner`) at the block of an earlier reading. Asks the
    /// `endpoints` (labels) that produced that reading, since no others have been vouched for.
    async fn read_cl_owner(
        &self,
        owner: &EnsName,
        block: &ChainBlock,
        endpoints: &[String],
    ) -> Result<ClOwnerReading, ChainError>;

    /// Reads further text records of `name` at the block of an earlier reading, from the `endpoints` (labels) that
    /// produced it. Returns one record per entry of `keys`. These records are never proven, even if readings are.
    async fn read_texts_at_block(
        &self,
        _name: &EnsName,
        _block: &ChainBlock,
        _endpoints: &[String],
        _keys: &[String],
    ) -> Result<Vec<TextRecord>, ChainError> {
        Err(ChainError::LocalLimit(LocalLimitError::FurtherRecords))
    }

    /// Reads text records of `name` under arbitrary keys, at the block that `block` selects and at the newest block,
    /// with the same guarantees as a reading. Returns one record per entry of `keys`. A chain that computes its
    /// readings does not support this.
    async fn read_extra_texts(
        &self,
        _name: &EnsName,
        _block: BlockSelector,
        _keys: &[String],
    ) -> Result<ExtraTextRecords, ChainError> {
        Err(ChainError::LocalLimit(LocalLimitError::FurtherRecords))
    }

    /// Fetches the RLP of the header with the hash of `block` from any of these `endpoints` (labels). Returns `None` if
    /// no endpoint supplies bytes with that hash.
    async fn fetch_header_rlp(&self, _block: &ChainBlock, _endpoints: &[String]) -> Option<Bytes> {
        None
    }

    /// What proves the header of a finalized block to others. `None` if operators vouch for it.
    async fn fetch_header_proof(&self, _block: &ChainBlock) -> Result<Option<LightClientSyncTranscript>, ChainError> {
        Ok(None)
    }

    /// Returns the same chain with a recorder for the proofs of its readings, or `None` if this chain proves nothing.
    fn with_proof_recorder(&self) -> Option<(Arc<dyn EnsReader>, Arc<StateProofRecorder>)> {
        None
    }
}

/// Text records under keys that a resolution does not need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtraTextRecords {
    /// The block at which the records were read.
    pub block: ChainBlock,
    /// The records at that block.
    pub records: Vec<TextRecord>,
    /// The records at the newest block. `None` if the block was chosen by number or is itself the newest.
    pub latest: Option<Result<Vec<TextRecord>, ChainError>>,
    /// How far the endpoints vouch for the records.
    pub proof: ProofStrength,
}

/// Counts an answer that a proof or the other endpoints contradict.
fn count_rpc_lie(label: &str) {
    counter!(RPC_LIES, "endpoint" => label.to_owned()).increment(1);
}
