//! [`AgentRegistry`]: what the identity registry of ERC-8004 on some chain says of an agent.
//!
//! The endpoints first agree on a finalized block and on a newest one, and then on what the registry says in both: two
//! round trips, but no other contract is needed on that chain, and whatever its `block.number` means is of no concern. Each
//! endpoint is asked about its own newest block: in one that all share, an endpoint behind could hide what others see.

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
use crate::request::{by_hash, eth_call, revert_data};
use crate::transport::HttpPost;

/// The registry of one chain, read through endpoints of that chain.
pub struct AgentRegistry {
    pool: EndpointPool,
    address: Address,
}

/// What the registry says of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentReading {
    /// The finalized block that was read.
    pub block: Block,
    /// The address at which the agent is paid; `None` where none is set, or no such agent is.
    pub wallet: Option<Address>,
    /// The same at the newest block.
    pub latest_wallet: Option<Address>,
    /// The URI of its registration file; `None` where no such agent is.
    pub uri: Option<String>,
    /// How far the endpoints vouch for it.
    pub proof: Proof,
}

/// Why nothing is known of an agent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// The chain could not be read.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// What answered is no registry.
    #[error(transparent)]
    NotARegistry(#[from] NotARegistry),
}

impl AgentRegistry {
    /// The registry at `address`, read as `config` says through `http`, the door for the operator's URLs. Of the
    /// configuration the contracts, the coin types and CCIP-Read are not used.
    pub fn new(address: Address, config: ChainConfig, http: &Arc<dyn HttpPost>, clock: Clock) -> Self {
        Self { pool: EndpointPool::new(config, http).with_clock(clock), address }
    }

    /// What the registry says of `agent` at the finalized block, and of its wallet at each endpoint's newest one.
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

    /// What a call returns at the newest block of each endpoint. Only endpoints whose newest block was checked are asked:
    /// those that agree on `newest`, and if these contradict each other or fail, all others whose newest block is recent and
    /// not below `floor`.
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

    /// What a call returns; `None` where the registry reverts, as it does for an agent that does not exist.
    async fn called(&self, client: &RpcClient, data: Bytes, block: BlockId) -> Result<Option<Bytes>, ChainError> {
        match client.request::<_, Bytes>("eth_call", (eth_call(self.address, data), block)).await {
            Ok(data) => Ok(Some(data)),
            Err(error) if revert_data(&error).is_some() => Ok(None),
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
