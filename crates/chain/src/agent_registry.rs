//! [`AgentRegistryReader`]: reads an agent's entry in the ERC-8004 identity registry of a chain.
//!
//! The endpoints first agree on a finalized block and on a newest block, then on the registry's state at both. This
//! takes two round trips but needs no other contract on that chain, and does not depend on the meaning of
//! `block.number` there. Each endpoint answers for its own newest block: at a shared block, one lagging endpoint could
//! hide what the others see.

use std::sync::Arc;

use alloy_primitives::{Address, Bytes, U256};
use alloy_rpc_client::RpcClient;
use alloy_rpc_types_eth::BlockId;
use clresolve_core::reading::{BlockSelector, ChainBlock, ChainError, ProofGradeDemand, ProofStrength};
use clresolve_core::text::excerpt_text;
use clresolve_state::agent_registry::{self, AgentRegistryDecodeError};

use crate::endpoint::RpcEndpoint;
use crate::failure::EndpointFailure;
use crate::header_only::BlockHeaderQuery;
use crate::poll::{QuorumPollOutcome, poll_quorum};
use crate::pool::{ChainReaderConfig, EndpointPool, TimeSource};
use crate::request::{block_id_by_hash, eth_call_request};
use crate::revert::revert_data;
use crate::transport::JsonRpcHttpClient;

/// The identity registry of one chain.
pub struct AgentRegistryReader {
    pool: EndpointPool,
    address: Address,
}

/// The registry's entry for an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRegistryReading {
    /// The finalized block at which the entry was read.
    pub block: ChainBlock,
    /// The address at which the agent is paid. `None` if none is set or the agent does not exist.
    pub wallet: Option<Address>,
    /// The payment address at the newest block.
    pub latest_wallet: Option<Address>,
    /// The URI of the agent's registration file. `None` if the agent does not exist.
    pub uri: Option<String>,
    /// How far the endpoints vouch for the entry.
    pub proof: ProofStrength,
}

/// Why an agent could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentRegistryError {
    /// The chain could not be read.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The contract that answered is not an identity registry.
    #[error(transparent)]
    NotARegistry(#[from] AgentRegistryDecodeError),
}

impl AgentRegistryReader {
    /// A reader for the registry at `address`. Requests go through `http`, the client for the operator's URLs. The
    /// contracts, coin types and CCIP-Read setting of `config` are ignored.
    pub fn new(
        address: Address,
        config: ChainReaderConfig,
        http: &Arc<dyn JsonRpcHttpClient>,
        clock: TimeSource,
    ) -> Self {
        Self { pool: EndpointPool::new(config, http).with_clock(clock), address }
    }

    /// Reads the entry of `agent` at the finalized block, and its payment address at each endpoint's newest block.
    ///
    /// # Errors
    /// [`AgentRegistryError`].
    pub async fn read_agent(&self, agent: U256) -> Result<AgentRegistryReading, AgentRegistryError> {
        let header = |selector| poll_quorum(&self.pool, Arc::new(BlockHeaderQuery), selector);
        let (finalized, newest) = tokio::try_join!(header(BlockSelector::Finalized), header(BlockSelector::Latest))?;
        let (block, proof) = (finalized.block, finalized.proof_strength(self.pool.demand));
        if newest.block.number < block.number {
            let below = EndpointFailure::HeadBelowFinalized { head: newest.block.number, finalized: block.number };
            return Err(below
                .into_chain_error(&newest.member_labels().join(", "), "latest", self.pool.chain_id)
                .into());
        }
        let client = self.pool.client_for_members(finalized.members, finalized.spares);
        let wallet_call = agent_registry::agent_wallet_call(agent);
        let (wallet, latest_wallet, uri) = tokio::try_join!(
            self.call_registry(&client, wallet_call.clone(), block_id_by_hash(&block)),
            self.call_registry_at_newest_blocks(newest, wallet_call, block.number),
            self.call_registry(&client, agent_registry::agent_uri_call(agent), block_id_by_hash(&block)),
        )?;
        let wallet_of = |data: Option<Bytes>| data.map_or(Ok(None), |data| agent_registry::decode_agent_address(&data));
        Ok(AgentRegistryReading {
            block,
            wallet: wallet_of(wallet)?,
            latest_wallet: wallet_of(latest_wallet)?,
            uri: uri.map(|data| agent_registry::decode_agent_uri(&data)).transpose()?,
            proof,
        })
    }

    /// Reads the owner of the entry of `agent` at the finalized block. `None` if the agent does not exist.
    ///
    /// # Errors
    /// [`AgentRegistryError`].
    pub async fn read_agent_owner(&self, agent: U256) -> Result<Option<Address>, AgentRegistryError> {
        let finalized = poll_quorum(&self.pool, Arc::new(BlockHeaderQuery), BlockSelector::Finalized).await?;
        let block = block_id_by_hash(&finalized.block);
        let client = self.pool.client_for_members(finalized.members, finalized.spares);
        match self.call_registry(&client, agent_registry::agent_owner_call(agent), block).await? {
            Some(data) => Ok(agent_registry::decode_agent_address(&data)?),
            None => Ok(None),
        }
    }

    /// Runs a call at each endpoint's own newest block. Asks only endpoints whose newest block was checked: those that
    /// agree on `newest` and, if these contradict each other or fail, all others whose newest block is recent and not
    /// below `floor`.
    async fn call_registry_at_newest_blocks<V>(
        &self,
        newest: QuorumPollOutcome<V>,
        data: Bytes,
        floor: u64,
    ) -> Result<Option<Bytes>, ChainError> {
        let (mut checked, others) = newest.into_agreed_and_unchecked();
        let ask = async |endpoints: &[Arc<RpcEndpoint>]| {
            let client = self.pool.client_for_members(endpoints.to_vec(), Vec::new());
            self.call_registry(&client, data.clone(), BlockId::latest()).await
        };
        let answer = ask(&checked).await;
        let is_undecided = matches!(answer, Err(ChainError::Disagree(_) | ChainError::Unreachable(_)));
        if is_undecided && self.pool.demand != ProofGradeDemand::SingleRpc {
            let recent = self.pool.select_recent_endpoints(others, floor).await;
            if !recent.is_empty() {
                checked.extend(recent);
                return ask(&checked).await;
            }
        }
        answer
    }

    /// Runs a call. Returns `None` if the registry reverts, as it does for an agent that does not exist.
    async fn call_registry(
        &self,
        client: &RpcClient,
        data: Bytes,
        block: BlockId,
    ) -> Result<Option<Bytes>, ChainError> {
        match client.request::<_, Bytes>("eth_call", (eth_call_request(self.address, data), block)).await {
            Ok(data) => Ok(Some(data)),
            Err(error) if error.as_error_resp().and_then(revert_data).is_some() => Ok(None),
            Err(error) => {
                let place = match block {
                    BlockId::Hash(hash) => hash.block_hash.to_string(),
                    BlockId::Number(tag) => tag.to_string(),
                };
                Err(EndpointFailure::from_transport_error(&error, excerpt_text).into_chain_error(
                    "the endpoints",
                    &place,
                    self.pool.chain_id,
                ))
            }
        }
    }
}
