//! [`ConsensusHeaderSource`]: supplies the header that a light client of the beacon chain verified.

use std::sync::Arc;

use alloy_primitives::B256;
use alloy_rpc_types_eth::{BlockId, RpcBlockHash};
use async_trait::async_trait;
use clresolve_beacon::VerifiedBeaconHeader;
use clresolve_core::light_client::LightClientSyncTranscript;
use clresolve_core::reading::{
    BlockSelector, ChainBlock, ChainError, LightClientHeaderError, ProofGrade, ProofGradeDemand,
    max_finalized_header_age,
};
use clresolve_state::HashedBlockHeader;
use jiff::Timestamp;
use moka::future::Cache;

use crate::endpoint::RpcEndpoint;
use crate::failure::EndpointFailure;
use crate::fan_out::ask_until_success;
use crate::head::ChainHead;
use crate::head_age::to_signed_duration;
use crate::header_only::BlockHeaderQuery;
use crate::header_source::{BlockHeaderSource, VouchedBlockHeader};
use crate::light_client::LightClient;
use crate::poll::{QuorumPollOutcome, poll_quorum};
use crate::pool::{ChainReaderConfig, EndpointPool, TimeSource};
use crate::transport::JsonRpcHttpClient;

/// Number of verified headers that are kept. Only the finalized and the newest one are in use at a time.
const KNOWN_HEADERS: u64 = 16;

/// Number of finalized headers that may be selected by number, for lists of names that are read at one block. An epoch
/// has one.
const NUMBERED_HEADERS: u64 = 256;

/// A header source that selects the block that the sync committees of the beacon chain signed.
///
/// The light client verifies the block's hash. RPC endpoints supply the header with this hash, since the beacon chain
/// does not contain all of its fields. With
/// [`ProofGradeDemand::ConsensusProof(k)`](clresolve_core::reading::ProofGradeDemand::ConsensusProof) and *k* > 0, *k*
/// operators must have the same block.
pub struct ConsensusHeaderSource {
    light_client: Arc<LightClient>,
    pool: EndpointPool,
    /// Verified headers by hash. Concurrent callers share a request.
    known: Cache<B256, VouchedBlockHeader>,
    /// The latest finalized headers by block number.
    numbered: Cache<u64, VerifiedBeaconHeader>,
}

impl ConsensusHeaderSource {
    /// Takes headers from `light_client`, and their fields from the endpoints of `config` through `http`.
    pub fn new(light_client: Arc<LightClient>, config: ChainReaderConfig, http: &Arc<dyn JsonRpcHttpClient>) -> Self {
        let (known, numbered) = (Cache::new(KNOWN_HEADERS), Cache::new(NUMBERED_HEADERS));
        Self { light_client, pool: EndpointPool::new(config, http), known, numbered }
    }

    /// Replaces the clock.
    #[must_use]
    pub fn with_clock(self, clock: TimeSource) -> Self {
        Self { pool: self.pool.with_clock(clock), ..self }
    }

    /// The newest block, and when a beacon endpoint last reported it. If a quorum is demanded too, it must have the
    /// same block.
    pub(crate) async fn newest_head(&self) -> Result<ChainHead, ChainError> {
        let (verified, reported_at) = self.light_client.fetch_newest_header().await?;
        if self.pool.demand != ProofGradeDemand::ConsensusProof(0) {
            self.fetch_vouched_header(&verified).await?;
        }
        Ok(ChainHead { block: block_of_verified_header(&verified)?, reported_at })
    }

    /// The verified header that `selector` selects. By number, only blocks can be selected that were read as the
    /// finalized one before.
    async fn select_verified_header(&self, selector: BlockSelector) -> Result<VerifiedBeaconHeader, ChainError> {
        let numbered = match selector.number() {
            Some(number) => self.numbered.get(&number).await,
            None => None,
        };
        if let Some(verified) = numbered {
            return Ok(verified);
        }
        let verified = self.light_client.fetch_verified_header(selector).await?;
        self.check_chain_progress(&verified, selector)?;
        if selector == BlockSelector::Finalized {
            self.numbered.insert(verified.block_number(), verified).await;
        }
        Ok(verified)
    }

    /// Checks that the chain progresses: that it finalizes, or that its newest header is recent.
    fn check_chain_progress(&self, verified: &VerifiedBeaconHeader, selector: BlockSelector) -> Result<(), ChainError> {
        let most = match selector {
            BlockSelector::Latest => self.pool.head_age.0.map(to_signed_duration),
            _ => Some(max_finalized_header_age(self.pool.chain_id)),
        };
        let age = (self.pool.clock)().duration_since(block_of_verified_header(verified)?.timestamp);
        let is_old = most.is_some_and(|most| age > most) && !clresolve_core::mutant!("beacon-stalled-headers-count");
        if is_old {
            return Err(ChainError::HeaderUnproven(LightClientHeaderError::Stalled(age.unsigned_abs())));
        }
        Ok(())
    }

    /// The header of the verified block, from one endpoint or from as many operators as are demanded.
    async fn fetch_vouched_header(&self, verified: &VerifiedBeaconHeader) -> Result<VouchedBlockHeader, ChainError> {
        let head = async {
            match self.pool.demand {
                ProofGradeDemand::ConsensusProof(0) => self.fetch_header_from_any_endpoint(verified).await,
                _ => self.fetch_header_from_quorum(verified).await,
            }
        };
        let head = self.known.try_get_with(verified.block_hash(), head).await;
        head.map_err(|error| ChainError::clone(&error))
    }

    /// The header of the verified block, with the endpoints that have it.
    async fn fetch_header_from_any_endpoint(
        &self,
        verified: &VerifiedBeaconHeader,
    ) -> Result<VouchedBlockHeader, ChainError> {
        let endpoints = self.pool.endpoints_in_order();
        let hash = verified.block_hash();
        let asked = ask_until_success(endpoints.len(), self.pool.hedge_delay(), |index| {
            endpoints[index].fetch_header_by_hash(hash)
        })
        .await;
        let failed_endpoints = label_failures(&endpoints, asked.failures);
        let Some((index, header)) = asked.success else { return Err(ChainError::Unreachable(failed_endpoints)) };
        Ok(VouchedBlockHeader {
            block: header.block().ok_or_else(timestamp_out_of_range_error)?,
            header,
            grade: ProofGrade::ConsensusProof,
            asked: 0,
            agreed: 0,
            own: false,
            endpoints: vec![endpoints[index].label.clone()],
            contradicted_by: Vec::new(),
            failed_endpoints,
        })
    }

    /// Like [`ConsensusHeaderSource::fetch_header_from_any_endpoint`], if enough operators have the verified block at
    /// its height.
    async fn fetch_header_from_quorum(
        &self,
        verified: &VerifiedBeaconHeader,
    ) -> Result<VouchedBlockHeader, ChainError> {
        let selector = BlockSelector::Pinned(verified.block_number());
        let agreed: QuorumPollOutcome<HashedBlockHeader> =
            poll_quorum(&self.pool, Arc::new(BlockHeaderQuery), selector).await?;
        if agreed.block.hash != verified.block_hash() && !clresolve_core::mutant!("quorum-overrules-consensus") {
            return Err(contradiction_error(verified, &agreed));
        }
        let proof = agreed.proof_strength(self.pool.demand);
        Ok(VouchedBlockHeader {
            block: agreed.block,
            grade: ProofGrade::ConsensusProof,
            asked: proof.asked,
            agreed: proof.agreed,
            own: false,
            endpoints: agreed.member_labels(),
            contradicted_by: agreed.contradicted_by,
            failed_endpoints: agreed.failed,
            header: agreed.pinned,
        })
    }
}

#[async_trait]
impl BlockHeaderSource for ConsensusHeaderSource {
    async fn select_header(&self, selector: BlockSelector) -> Result<VouchedBlockHeader, ChainError> {
        self.fetch_vouched_header(&self.select_verified_header(selector).await?).await
    }

    async fn block_id_for_prefetch(&self, selector: BlockSelector) -> Result<BlockId, ChainError> {
        let block_hash = self.select_verified_header(selector).await?.block_hash();
        Ok(BlockId::Hash(RpcBlockHash { block_hash, require_canonical: Some(true) }))
    }

    async fn fetch_header_proof(&self, block: &ChainBlock) -> Result<Option<LightClientSyncTranscript>, ChainError> {
        self.light_client.prove_finality(block.hash).await.map(Some)
    }

    fn is_newest_block_proven(&self) -> bool {
        true
    }
}

/// The block of a verified header.
fn block_of_verified_header(verified: &VerifiedBeaconHeader) -> Result<ChainBlock, ChainError> {
    let timestamp = i64::try_from(verified.timestamp()).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    let timestamp = timestamp.ok_or_else(timestamp_out_of_range_error)?;
    Ok(ChainBlock { number: verified.block_number(), hash: verified.block_hash(), timestamp })
}

fn timestamp_out_of_range_error() -> ChainError {
    ChainError::HeaderUnproven(LightClientHeaderError::Refused("the header's timestamp is out of range".to_owned()))
}

fn label_failures(endpoints: &[Arc<RpcEndpoint>], failures: Vec<(usize, EndpointFailure)>) -> Vec<(String, String)> {
    failures.into_iter().map(|(index, failure)| (endpoints[index].label.clone(), failure.to_string())).collect()
}

/// The error if the operators agree on another block than the light client verified.
fn contradiction_error(verified: &VerifiedBeaconHeader, agreed: &QuorumPollOutcome<HashedBlockHeader>) -> ChainError {
    let number = verified.block_number();
    let statement = |hash: B256| format!("block {number} is {hash}");
    let light_client = ("light client".to_owned(), statement(verified.block_hash()));
    let operators = agreed.member_labels().into_iter().map(|label| (label, statement(agreed.block.hash)));
    ChainError::Disagree([light_client].into_iter().chain(operators).collect())
}

#[cfg(test)]
mod tests;
