//! [`ConsensusHeaders`]: supplies the header that a light client of the beacon chain verified.

use std::sync::Arc;

use alloy_primitives::B256;
use alloy_rpc_types_eth::{BlockId, RpcBlockHash};
use async_trait::async_trait;
use clresolve_beacon::VerifiedHeader;
use clresolve_core::light_client::LightClientProof;
use clresolve_core::reading::{Block, BlockSelector, ChainError, Grade, GradeDemand, HeaderFault, max_header_age};
use clresolve_state::HashedHeader;
use jiff::Timestamp;
use moka::future::Cache;

use crate::endpoint::RpcEndpoint;
use crate::failure::Failure;
use crate::fan_out::first;
use crate::head::ChainHead;
use crate::head_age::signed;
use crate::header_only::HeaderOnly;
use crate::header_source::{Head, HeaderSource};
use crate::light_client::LightClient;
use crate::poll::{Consensus, poll};
use crate::pool::{ChainConfig, Clock, EndpointPool};
use crate::transport::HttpPost;

/// Number of verified headers that are kept. Only the finalized and the newest one are in use at a time.
const KNOWN_HEADERS: u64 = 16;

/// Number of finalized headers that may be selected by number, for lists of names that are read at one block. An epoch
/// has one.
const NUMBERED_HEADERS: u64 = 256;

/// A header source that selects the block that the sync committees of the beacon chain signed.
///
/// The light client verifies the block's hash. RPC endpoints supply the header with this hash, since the beacon chain
/// does not contain all of its fields. With
/// [`GradeDemand::ConsensusProof(k)`](clresolve_core::reading::GradeDemand::ConsensusProof) and *k* > 0, *k* operators
/// must have the same block.
pub struct ConsensusHeaders {
    light_client: Arc<LightClient>,
    pool: EndpointPool,
    /// Verified headers by hash. Concurrent callers share a request.
    known: Cache<B256, Head>,
    /// The latest finalized headers by block number.
    numbered: Cache<u64, VerifiedHeader>,
}

impl ConsensusHeaders {
    /// Takes headers from `light_client`, and their fields from the endpoints of `config` through `http`.
    pub fn new(light_client: Arc<LightClient>, config: ChainConfig, http: &Arc<dyn HttpPost>) -> Self {
        let (known, numbered) = (Cache::new(KNOWN_HEADERS), Cache::new(NUMBERED_HEADERS));
        Self { light_client, pool: EndpointPool::new(config, http), known, numbered }
    }

    /// Replaces the clock.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { pool: self.pool.with_clock(clock), ..self }
    }

    /// The newest block, and when a beacon endpoint last reported it. If a quorum is demanded too, it must have the same
    /// block.
    pub(crate) async fn newest(&self) -> Result<ChainHead, ChainError> {
        let (verified, reported_at) = self.light_client.newest().await?;
        if self.pool.demand != GradeDemand::ConsensusProof(0) {
            self.fetched_head(&verified).await?;
        }
        Ok(ChainHead { block: block_of(&verified)?, reported_at })
    }

    /// The verified header that `selector` selects. By number, only blocks can be selected that were read as the
    /// finalized one before.
    async fn verified(&self, selector: BlockSelector) -> Result<VerifiedHeader, ChainError> {
        let numbered = match selector.number() {
            Some(number) => self.numbered.get(&number).await,
            None => None,
        };
        if let Some(verified) = numbered {
            return Ok(verified);
        }
        let verified = self.light_client.header(selector).await?;
        self.check_age(&verified, selector)?;
        if selector == BlockSelector::Finalized {
            self.numbered.insert(verified.block_number(), verified).await;
        }
        Ok(verified)
    }

    /// Checks that the chain progresses: that it finalizes, or that its newest header is recent.
    fn check_age(&self, verified: &VerifiedHeader, selector: BlockSelector) -> Result<(), ChainError> {
        let most = match selector {
            BlockSelector::Latest => self.pool.head_age.0.map(signed),
            _ => Some(max_header_age(self.pool.chain_id)),
        };
        let age = (self.pool.clock)().duration_since(block_of(verified)?.timestamp);
        let is_old = most.is_some_and(|most| age > most) && !clresolve_core::mutant!("beacon-stalled-headers-count");
        if is_old {
            return Err(ChainError::HeaderUnproven(HeaderFault::Stalled(age.unsigned_abs())));
        }
        Ok(())
    }

    /// The header of the verified block, from one endpoint or from as many operators as are demanded.
    async fn fetched_head(&self, verified: &VerifiedHeader) -> Result<Head, ChainError> {
        let head = async {
            match self.pool.demand {
                GradeDemand::ConsensusProof(0) => self.supplied(verified).await,
                _ => self.agreed(verified).await,
            }
        };
        let head = self.known.try_get_with(verified.block_hash(), head).await;
        head.map_err(|error| ChainError::clone(&error))
    }

    /// The header of the verified block, with the endpoints that have it.
    async fn supplied(&self, verified: &VerifiedHeader) -> Result<Head, ChainError> {
        let endpoints = self.pool.in_order();
        let hash = verified.block_hash();
        let asked = first(endpoints.len(), self.pool.patience(), |index| endpoints[index].header_of(hash)).await;
        let failed_endpoints = causes(&endpoints, asked.failures);
        let Some((index, header)) = asked.success else { return Err(ChainError::Unreachable(failed_endpoints)) };
        Ok(Head {
            block: header.block().ok_or_else(time_out_of_range)?,
            header,
            grade: Grade::ConsensusProof,
            asked: 0,
            agreed: 0,
            own: false,
            endpoints: vec![endpoints[index].label.clone()],
            contradicted_by: Vec::new(),
            failed_endpoints,
        })
    }

    /// Like [`ConsensusHeaders::supplied`], if enough operators have the verified block at its height.
    async fn agreed(&self, verified: &VerifiedHeader) -> Result<Head, ChainError> {
        let selector = BlockSelector::Pinned(verified.block_number());
        let agreed: Consensus<HashedHeader> = poll(&self.pool, Arc::new(HeaderOnly), selector).await?;
        if agreed.block.hash != verified.block_hash() && !clresolve_core::mutant!("quorum-overrules-consensus") {
            return Err(contradiction(verified, &agreed));
        }
        let proof = agreed.proof(self.pool.demand);
        Ok(Head {
            block: agreed.block,
            grade: Grade::ConsensusProof,
            asked: proof.asked,
            agreed: proof.agreed,
            own: false,
            endpoints: agreed.labels(),
            contradicted_by: agreed.contradicted_by,
            failed_endpoints: agreed.failed,
            header: agreed.pinned,
        })
    }
}

#[async_trait]
impl HeaderSource for ConsensusHeaders {
    async fn head(&self, selector: BlockSelector) -> Result<Head, ChainError> {
        self.fetched_head(&self.verified(selector).await?).await
    }

    async fn block_id(&self, selector: BlockSelector) -> Result<BlockId, ChainError> {
        let block_hash = self.verified(selector).await?.block_hash();
        Ok(BlockId::Hash(RpcBlockHash { block_hash, require_canonical: Some(true) }))
    }

    async fn proof_of(&self, block: &Block) -> Result<Option<LightClientProof>, ChainError> {
        self.light_client.proof_of(block.hash).await.map(Some)
    }

    fn is_newest_proven(&self) -> bool {
        true
    }
}

/// The block of a verified header.
fn block_of(verified: &VerifiedHeader) -> Result<Block, ChainError> {
    let timestamp = i64::try_from(verified.timestamp()).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    let timestamp = timestamp.ok_or_else(time_out_of_range)?;
    Ok(Block { number: verified.block_number(), hash: verified.block_hash(), timestamp })
}

fn time_out_of_range() -> ChainError {
    ChainError::HeaderUnproven(HeaderFault::Refused("the header's timestamp is out of range".to_owned()))
}

fn causes(endpoints: &[Arc<RpcEndpoint>], failures: Vec<(usize, Failure)>) -> Vec<(String, String)> {
    failures.into_iter().map(|(index, failure)| (endpoints[index].label.clone(), failure.to_string())).collect()
}

/// The error if the operators agree on another block than the light client verified.
fn contradiction(verified: &VerifiedHeader, agreed: &Consensus<HashedHeader>) -> ChainError {
    let number = verified.block_number();
    let statement = |hash: B256| format!("block {number} is {hash}");
    let light_client = ("light client".to_owned(), statement(verified.block_hash()));
    let operators = agreed.labels().into_iter().map(|label| (label, statement(agreed.block.hash)));
    ChainError::Disagree([light_client].into_iter().chain(operators).collect())
}

#[cfg(test)]
mod tests;
