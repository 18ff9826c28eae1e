//! [`AgentRegistry`]: reads an agent's entry in the ERC-8004 identity registry of a chain.
//!
//! The endpoints first agree on a finalized block and on a newest block, then on the registry's state at both. This
//! takes two round trips but needs no other contract on that chain, and does not depend on the meaning of
//! `block.number` there. Each endpoint answers for its own newest block: at a shared block, one lagging endpoint could
//! hide what the others see.

use std::sync::Arc;

use alloy_primitives::{Address, Bytes, U256};
use alloy_rpc_client::RpcClient;
use alloy_rpc_types_eth::BlockId;
use clresolve_core::reading::{Block, BlockSelector, ChainError, GradeDemand, Proof};
use clresolve_core::text::excerpt;
use clresolve_state::agent_registry::{self, NotARegistry};

use crate::endpoint::RpcEndpoint;
use crate::failure::Failure;
use crate::header_only::HeaderOnly;
use crate::poll::{Consensus, poll};
use crate::pool::{ChainConfig, Clock, EndpointPool};
use crate::request::{by_hash, eth_call};
use crate::revert::revert_data;
use crate::transport::HttpPost;

/// The identity registry of one chain.
pub struct AgentRegistry {
    pool: EndpointPool,
    address: Address,
}

/// The registry's entry for an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentReading {
    /// The finalized block at which the entry was read.
    pub block: Block,
    /// The address at which the agent is paid. `None` if none is set or the agent does not exist.
    pub wallet: Option<Address>,
    /// The payment address at the newest block.
    pub latest_wallet: Option<Address>,
    /// The URI of the agent's registration file. `None` if the agent does not exist.
    pub uri: Option<String>,
    /// How far the endpoints vouch for the entry.
    pub proof: Proof,
}

/// Why an agent could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// The chain could not be read.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The contract that answered is not an identity registry.
    #[error(transparent)]
    NotARegistry(#[from] NotARegistry),
}

impl AgentRegistry {
    /// A reader for the registry at `address`. Requests go through `http`, the client for the operator's URLs. The
    /// contracts, coin types and CCIP-Read setting of `config` are ignored.
    pub fn new(address: Address, config: ChainConfig, http: &Arc<dyn HttpPost>, clock: Clock) -> Self {
        Self { pool: EndpointPool::new(config, http).with_clock(clock), address }
    }

    /// Reads the entry of `agent` at the finalized block, and its payment address at each endpoint's newest block.
    ///
    /// # Errors
    /// [`AgentError`].
    pub async fn agent(&self, agent: U256) -> Result<AgentReading, AgentError> {
        let header = |selector| poll(&self.pool, Arc::new(HeaderOnly), selector);
        let (finalized, newest) = tokio::try_join!(header(BlockSelector::Finalized), header(BlockSelector::Latest))?;
        let (block, proof) = (finalized.block, finalized.proof(self.pool.demand));
        if newest.block.number < block.number {
            let below = Failure::HeadBelowFinalized { head: newest.block.number, finalized: block.number };
            return Err(below.into_error(&newest.labels().join(", "), "latest", self.pool.chain_id).into());
        }
        let client = self.pool.client(finalized.members, finalized.spares);
        let wallet_call = agent_registry::wallet_call(agent);
        let (wallet, latest_wallet, uri) = tokio::try_join!(
            self.called(&client, wallet_call.clone(), by_hash(&block)),
            self.called_at_latest(newest, wallet_call, block.number),
            self.called(&client, agent_registry::uri_call(agent), by_hash(&block)),
        )?;
        let wallet_of = |data: Option<Bytes>| data.map_or(Ok(None), |data| agent_registry::wallet(&data));
        Ok(AgentReading {
            block,
            wallet: wallet_of(wallet)?,
            latest_wallet: wallet_of(latest_wallet)?,
            uri: uri.map(|data| agent_registry::uri(&data)).transpose()?,
            proof,
        })
    }

    /// Reads the owner of the entry of `agent` at the finalized block. `None` if the agent does not exist.
    ///
    /// # Errors
    /// [`AgentError`].
    pub async fn owner(&self, agent: U256) -> Result<Option<Address>, AgentError> {
        let finalized = poll(&self.pool, Arc::new(HeaderOnly), BlockSelector::Finalized).await?;
        let block = by_hash(&finalized.block);
        let client = self.pool.client(finalized.members, finalized.spares);
        match self.called(&client, agent_registry::owner_call(agent), block).await? {
            Some(data) => Ok(agent_registry::wallet(&data)?),
            None => Ok(None),
        }
    }

    /// Runs a call at each endpoint's own newest block. Asks only endpoints whose newest block was checked: those that
    /// agree on `newest` and, if these contradict each other or fail, all others whose newest block is recent and not
    /// below `floor`.
    async fn called_at_latest<V>(
        &self,
        newest: Consensus<V>,
        data: Bytes,
        floor: u64,
    ) -> Result<Option<Bytes>, ChainError> {
        let (mut checked, others) = newest.into_checked();
        let ask = async |endpoints: &[Arc<RpcEndpoint>]| {
            let client = self.pool.client(endpoints.to_vec(), Vec::new());
            self.called(&client, data.clone(), BlockId::latest()).await
        };
        let answer = ask(&checked).await;
        let is_undecided = matches!(answer, Err(ChainError::Disagree(_) | ChainError::Unreachable(_)));
        if is_undecided && self.pool.demand != GradeDemand::SingleRpc {
            let recent = self.pool.recent(others, floor).await;
            if !recent.is_empty() {
                checked.extend(recent);
                return ask(&checked).await;
            }
        }
        answer
    }

    /// Runs a call. Returns `None` if the registry reverts, as it does for an agent that does not exist.
    async fn called(&self, client: &RpcClient, data: Bytes, block: BlockId) -> Result<Option<Bytes>, ChainError> {
        match client.request::<_, Bytes>("eth_call", (eth_call(self.address, data), block)).await {
            Ok(data) => Ok(Some(data)),
            Err(error) if error.as_error_resp().and_then(revert_data).is_some() => Ok(None),
            Err(error) => {
                let place = match block {
                    BlockId::Hash(hash) => hash.block_hash.to_string(),
                    BlockId::Number(tag) => tag.to_string(),
                };
                Err(Failure::of(&error, excerpt).into_error("the endpoints", &place, self.pool.chain_id))
            }
        }
    }
}
