//! Request exchanges with one endpoint. Each checks everything that a single response can show: the header matches its
//! hash, the call ran in that block, and the chain is the right one.

#[cfg(feature = "state-proof")]
pub(crate) mod computed;
mod of_header;
mod of_many;

use std::future::IntoFuture as _;
use std::pin::pin;
use std::time::Duration;

use alloy_primitives::{B256, Bytes, U64};
use alloy_rpc_client::{BatchRequest, NoParams, Waiter};
use alloy_rpc_types_eth::{BlockId, BlockNumberOrTag, Header, TransactionRequest};
use alloy_transport::TransportError;
use clresolve_core::reading::{BlockSelector, ChainBlock};
use clresolve_state::HashedBlockHeader;
use clresolve_state::contracts::NameFindings;
use futures_util::future::{Either, OptionFuture, select};
use jiff::Timestamp;
use serde::Deserialize;
use tokio::time::timeout;

use crate::endpoint::RpcEndpoint;
use crate::failure::EndpointFailure;
use crate::head_age::HeadAgeLimit;
use crate::header;
use crate::header::BlockHeaderRejection;
use crate::query::{NameQuery, check_latest_not_before_pinned};
use crate::quorum::QuorumVote;
use crate::request::{block_id_by_hash, block_tag};

const MAINNET_GENESIS: B256 =
    alloy_primitives::b256!("d4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3");

const MAINNET: u64 = 1;

/// How much longer the hash of block 0 may take than the rest of the exchange.
const GENESIS_PATIENCE: Duration = Duration::from_secs(1);

/// The properties that all endpoints of a chain share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChainIdentity {
    pub(crate) id: u64,
    /// Hash of block 0, if known.
    pub(crate) genesis: Option<B256>,
}

/// An endpoint's statements about the pinned block and the newest block.
pub(crate) struct EndpointPinnedAndLatestVotes<V> {
    pub(crate) block: ChainBlock,
    pub(crate) pinned: V,
    /// `None` if the newest block was not requested.
    pub(crate) latest: Option<Result<V, EndpointFailure>>,
    /// Hash of the endpoint's block 0, if it was requested and returned.
    pub(crate) genesis: Option<B256>,
}

impl<V: QuorumVote> EndpointPinnedAndLatestVotes<V> {
    /// Checks the age of the blocks. If the newest block is not recent, the vote on it becomes a failure.
    ///
    /// # Errors
    /// [`EndpointFailure`] if the pinned block is ahead of the clock, or is itself the newest block and too old.
    pub(crate) fn check_block_ages(
        self,
        age: HeadAgeLimit,
        selector: BlockSelector,
        now: Timestamp,
    ) -> Result<Self, EndpointFailure> {
        match selector {
            BlockSelector::Latest => age.check_newest_block_age(self.block.timestamp, now)?,
            BlockSelector::Finalized | BlockSelector::Safe => age.check_not_in_future(self.block.timestamp, now)?,
            BlockSelector::Number(_) | BlockSelector::Pinned(_) => {}
        }
        let latest = self.latest.map(|latest| age.require_recent_vote(latest?, now));
        Ok(Self { latest, ..self })
    }
}

/// An endpoint's statement about a block that other endpoints have finalized.
pub(crate) enum VoteOrConflictingBlock<V> {
    /// The endpoint has the same block; this is its vote.
    Same(V),
    /// The endpoint has another block at that height.
    Other(ChainBlock),
}

/// The results of an exchange.
pub(crate) struct HeaderAndCallResults {
    pub(crate) block: ChainBlock,
    /// Hash of the endpoint's block 0, if it was requested and returned.
    pub(crate) genesis: Option<B256>,
    pub(crate) results: Vec<PinnedAndLatest<Result<Bytes, TransportError>>>,
}

/// A value at the pinned block and at the newest block.
pub(crate) struct PinnedAndLatest<T> {
    pub(crate) pinned: T,
    /// `None` if the newest block was not requested.
    pub(crate) latest: Option<T>,
}

impl RpcEndpoint {
    /// Requests the header, the call at that block and the call at `latest` in one exchange. The first exchange also
    /// requests the data that identifies the chain.
    ///
    /// # Errors
    /// [`EndpointFailure`]. A failure of only the call at `latest` is part of the observation.
    pub(crate) async fn fetch_pinned_and_latest_votes(
        &self,
        query: &NameQuery,
        selector: BlockSelector,
        identity: ChainIdentity,
    ) -> Result<EndpointPinnedAndLatestVotes<NameFindings>, EndpointFailure> {
        let HeaderAndCallResults { block, genesis, mut results } =
            self.request_header_and_calls(&[&query.call], selector, identity).await?;
        let results = results.pop().expect("each call has its results");
        self.decode_pinned_and_latest_votes(query, block, genesis, results).await
    }

    /// Interprets the results of the call of `query`.
    pub(crate) async fn decode_pinned_and_latest_votes(
        &self,
        query: &NameQuery,
        block: ChainBlock,
        genesis: Option<B256>,
        results: PinnedAndLatest<Result<Bytes, TransportError>>,
    ) -> Result<EndpointPinnedAndLatestVotes<NameFindings>, EndpointFailure> {
        let mut pinned = self.decode_findings(query, results.pinned)?;
        if pinned.block != block.number {
            pinned = self.fetch_findings_at_block(query, &block).await?;
        }
        let latest =
            results.latest.map(|latest| check_latest_not_before_pinned(self.decode_findings(query, latest)?, &block));
        self.note_chain_identified();
        Ok(EndpointPinnedAndLatestVotes { block, pinned, latest, genesis })
    }

    /// Requests the header, and each of `calls` at that block and at `latest`, in one exchange. The first exchange also
    /// requests the data that identifies the chain. A call by tag may run in a different block than the header's.
    ///
    /// # Errors
    /// [`EndpointFailure`]. The failure of a single call is part of its result.
    pub(crate) async fn request_header_and_calls(
        &self,
        calls: &[&TransactionRequest],
        selector: BlockSelector,
        identity: ChainIdentity,
    ) -> Result<HeaderAndCallResults, EndpointFailure> {
        let tag = block_tag(selector);
        let mut batch = self.rpc.new_batch();
        let chain_id = self.add_chain_id_request(&mut batch)?;
        let genesis = OptionFuture::from(chain_id.is_some().then(|| self.fetch_genesis_hash()));
        let header = batch
            .add_call::<_, Option<Header>>("eth_getBlockByNumber", &(tag, false))
            .map_err(|e| self.failure_from_transport_error(&e))?;
        let mut waiting = Vec::with_capacity(calls.len());
        for call in calls {
            let pinned = batch
                .add_call::<_, Bytes>("eth_call", &(call, BlockId::from(tag)))
                .map_err(|e| self.failure_from_transport_error(&e))?;
            waiting.push(PinnedAndLatest { pinned, latest: self.add_latest_call(&mut batch, call, selector)? });
        }
        let genesis = join_needed_and_optional(batch.into_future(), genesis)
            .await
            .map_err(|e| self.failure_from_transport_error(&e))?
            .flatten();
        self.check_chain_identity(chain_id, genesis, identity).await?;
        let header = header.await.map_err(|e| self.failure_from_block_tag_error(&e))?;
        let (_, block) = header::check_requested_header(header, selector)?;
        let mut results = Vec::with_capacity(waiting.len());
        for PinnedAndLatest { pinned, latest } in waiting {
            results.push(PinnedAndLatest { pinned: pinned.await, latest: OptionFuture::from(latest).await });
        }
        Ok(HeaderAndCallResults { block, genesis: genesis.flatten(), results })
    }

    /// Requests the block at the height of `block`, and the call in exactly `block`.
    pub(crate) async fn fetch_vote_at_block(
        &self,
        query: &NameQuery,
        block: &ChainBlock,
    ) -> Result<VoteOrConflictingBlock<NameFindings>, EndpointFailure> {
        let mut batch = self.rpc.new_batch();
        let number = BlockNumberOrTag::Number(block.number);
        let header = batch
            .add_call::<_, Option<Header>>("eth_getBlockByNumber", &(number, false))
            .map_err(|e| self.failure_from_transport_error(&e))?;
        let response = batch
            .add_call::<_, Bytes>("eth_call", &(&query.call, block_id_by_hash(block)))
            .map_err(|e| self.failure_from_transport_error(&e))?;
        batch.await.map_err(|e| self.failure_from_transport_error(&e))?;
        let header = header.await.map_err(|e| self.failure_from_transport_error(&e))?;
        let (_, observed) = header::check_requested_header(header, BlockSelector::Number(block.number))?;
        if observed != *block {
            return Ok(VoteOrConflictingBlock::Other(observed));
        }
        self.decode_findings_at_block(query, block, response.await).map(VoteOrConflictingBlock::Same)
    }

    /// Requests the header with this hash. Any endpoint may supply it, since the hash verifies it.
    pub(crate) async fn fetch_header_by_hash(&self, hash: B256) -> Result<HashedBlockHeader, EndpointFailure> {
        let header = self.rpc.request::<_, Option<Header>>("eth_getBlockByHash", (hash, false)).await;
        let header = header.map_err(|e| self.failure_from_transport_error(&e))?.ok_or(BlockHeaderRejection::Missing)?;
        HashedBlockHeader::with_expected_hash(header.inner, hash)
            .map_err(|error| EndpointFailure::Unusable(error.to_string()))
    }

    /// Adds the call at the newest block to a batch, if `selector` requires it.
    fn add_latest_call(
        &self,
        batch: &mut BatchRequest<'_>,
        call: &TransactionRequest,
        selector: BlockSelector,
    ) -> Result<Option<Waiter<Bytes>>, EndpointFailure> {
        let latest = selector
            .is_compared_with_latest()
            .then(|| batch.add_call::<_, Bytes>("eth_call", &(call, BlockId::latest())))
            .transpose();
        latest.map_err(|e| self.failure_from_transport_error(&e))
    }

    /// Adds the request for the chain id to a batch, unless the id was checked before.
    fn add_chain_id_request(&self, batch: &mut BatchRequest<'_>) -> Result<Option<Waiter<U64>>, EndpointFailure> {
        let no_params: NoParams = [];
        let is_new = !self.is_chain_identified();
        let chain_id = is_new.then(|| batch.add_call::<_, U64>("eth_chainId", &no_params)).transpose();
        chain_id.map_err(|e| self.failure_from_transport_error(&e))
    }

    /// Requests the hash of block 0. Not every endpoint has it: some pruned their oldest blocks, and some providers
    /// refuse a whole batch that asks for it.
    ///
    /// Returns `None` if there was no answer, and `Some(None)` if the endpoint does not return the block.
    async fn fetch_genesis_hash(&self) -> Option<Option<B256>> {
        let genesis = (BlockNumberOrTag::Number(0), false);
        match self.rpc.request::<_, Option<GenesisBlockDocument>>("eth_getBlockByNumber", genesis).await {
            Ok(genesis) => Some(genesis.map(|genesis| genesis.hash)),
            Err(error) => EndpointFailure::is_permanent_refusal(&error).then_some(None),
        }
    }

    /// Checks the identity of the chain, if its id was requested. Without block 0, the hash of a newer block still
    /// identifies the chain.
    async fn check_chain_identity(
        &self,
        chain_id: Option<Waiter<U64>>,
        genesis: Option<Option<B256>>,
        identity: ChainIdentity,
    ) -> Result<(), EndpointFailure> {
        let Some(chain_id) = chain_id else { return Ok(()) };
        self.set_genesis_pending(genesis.is_none() && self.expected_genesis_hash(identity).is_some());
        let observed = chain_id.await.map_err(|e| self.failure_from_transport_error(&e))?.to::<u64>();
        if observed != identity.id && !clresolve_core::mutant!("other-chain") {
            return Err(EndpointFailure::WrongChain(observed));
        }
        self.check_genesis_hash(genesis.flatten(), identity)
    }

    /// The hash that block 0 must have, if it is known. A configured or remembered hash applies to every endpoint; the
    /// built-in mainnet hash applies to public endpoints.
    fn expected_genesis_hash(&self, identity: ChainIdentity) -> Option<B256> {
        let is_mainnet = identity.id == MAINNET && self.is_public;
        identity.genesis.or_else(|| is_mainnet.then_some(MAINNET_GENESIS))
    }

    fn check_genesis_hash(&self, observed: Option<B256>, identity: ChainIdentity) -> Result<(), EndpointFailure> {
        match (observed, self.expected_genesis_hash(identity)) {
            (Some(observed), Some(expected))
                if observed != expected && !clresolve_core::mutant!("other-first-block") =>
            {
                Err(EndpointFailure::WrongGenesis(observed))
            }
            _ => Ok(()),
        }
    }

    /// Requests the call in exactly this block, by its hash.
    async fn fetch_findings_at_block(
        &self,
        query: &NameQuery,
        block: &ChainBlock,
    ) -> Result<NameFindings, EndpointFailure> {
        let response = self.rpc.request::<_, Bytes>("eth_call", (&query.call, block_id_by_hash(block))).await;
        self.decode_findings_at_block(query, block, response)
    }

    fn decode_findings(
        &self,
        query: &NameQuery,
        response: Result<Bytes, TransportError>,
    ) -> Result<NameFindings, EndpointFailure> {
        query.decode_findings(&response.map_err(|e| self.failure_from_transport_error(&e))?)
    }

    fn decode_findings_at_block(
        &self,
        query: &NameQuery,
        block: &ChainBlock,
        response: Result<Bytes, TransportError>,
    ) -> Result<NameFindings, EndpointFailure> {
        query.decode_findings_at_block(block, &response.map_err(|e| self.failure_from_transport_error(&e))?)
    }
}

/// Runs both futures concurrently. Once `needed` has succeeded, waits for `optional` for at most [`GENESIS_PATIENCE`].
///
/// # Errors
/// The error of `needed`.
async fn join_needed_and_optional<E, T>(
    needed: impl Future<Output = Result<(), E>>,
    optional: impl Future<Output = Option<T>>,
) -> Result<Option<T>, E> {
    match select(pin!(needed), pin!(optional)).await {
        Either::Left((needed, optional)) => {
            needed?;
            Ok(timeout(GENESIS_PATIENCE, optional).await.ok().flatten())
        }
        Either::Right((optional, needed)) => needed.await.map(|()| optional),
    }
}

#[derive(Debug, Deserialize)]
struct GenesisBlockDocument {
    hash: B256,
}
