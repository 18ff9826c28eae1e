//! The endpoints of a chain: their order, how many are asked, and how many must agree.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use alloy_primitives::B256;
use alloy_rpc_client::RpcClient;
use clresolve_core::payment::Coins;
use clresolve_core::reading::{Block, BlockSelector, ChainError, GradeDemand};
use clresolve_state::contracts::Findings;
use clresolve_state::{Contracts, HashedHeader};
use futures_util::future::join_all;
use jiff::Timestamp;
use tokio::time::timeout;

use crate::endpoint::{Endpoint, RpcEndpoint};
use crate::exchange::ChainIdentity;
use crate::failure::Failure;
use crate::fan_out::first;
use crate::head_age::HeadAge;
use crate::query::Query;
use crate::quorum_transport::QuorumTransport;
use crate::transport::HttpPost;

/// Number of endpoints asked beyond those that must agree, so that a single slow or lying endpoint costs no second
/// exchange.
const SPARE: usize = 1;

/// What to read, and from which endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainConfig {
    /// The chain id (EIP-155). Endpoints that serve another chain are not used.
    pub chain_id: u64,
    /// Hash of block 0, if known. Otherwise public mainnet endpoints are compared with the known mainnet hash, and the
    /// endpoints of other chains with the hash on which the first quorum agreed.
    pub genesis: Option<B256>,
    /// The addresses of the contracts.
    pub contracts: Contracts,
    /// The endpoints, in order of preference.
    pub endpoints: Vec<Endpoint>,
    /// How far the endpoints must vouch for an answer.
    pub demand: GradeDemand,
    /// Time limit of one request.
    pub timeout: Duration,
    /// After a stall of this length, the next endpoint is asked too. With [`GradeDemand::SingleRpc`] the next endpoint
    /// is asked only after `timeout`, because the order then decides which endpoint is trusted.
    pub hedge_after: Duration,
    /// Time limit of one off-chain lookup (CCIP-Read), including redirects. `None`: lookups are not followed.
    pub lookup_timeout: Option<Duration>,
    /// The coin types of the addresses that are read along with the records.
    pub coins: Coins,
    /// The maximum age of the newest block. `None`: unlimited, if the chain's slot time is unknown.
    pub max_head_age: Option<Duration>,
}

/// Supplies the current time, to detect endpoints with an outdated newest block and to expire failures.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

pub(crate) struct EndpointPool {
    pub(crate) chain_id: u64,
    pub(crate) demand: GradeDemand,
    pub(crate) hedge_after: Duration,
    pub(crate) clock: Clock,
    pub(crate) head_age: HeadAge,
    genesis: Option<B256>,
    /// The hash on which a quorum agreed, if none is configured.
    agreed_genesis: OnceLock<B256>,
    endpoints: Vec<Arc<RpcEndpoint>>,
}

impl EndpointPool {
    pub(crate) fn new(config: ChainConfig, http: &Arc<dyn HttpPost>) -> Self {
        let endpoint = |endpoint: Endpoint| Arc::new(RpcEndpoint::new(endpoint, Arc::clone(http), config.timeout));
        Self {
            chain_id: config.chain_id,
            demand: config.demand,
            hedge_after: config.hedge_after,
            clock: Arc::new(Timestamp::now),
            head_age: HeadAge(config.max_head_age),
            genesis: config.genesis,
            agreed_genesis: OnceLock::new(),
            endpoints: config.endpoints.into_iter().map(endpoint).collect(),
        }
    }

    pub(crate) fn with_clock(&self, clock: Clock) -> Self {
        Self { clock, agreed_genesis: self.agreed_genesis.clone(), endpoints: self.endpoints.clone(), ..*self }
    }

    pub(crate) fn endpoints(&self) -> &[Arc<RpcEndpoint>] {
        &self.endpoints
    }

    /// Number of operators that must agree. One if the light client alone gives the header, since everything else is
    /// proven.
    pub(crate) const fn agree(&self) -> usize {
        match self.demand {
            GradeDemand::SingleRpc | GradeDemand::ConsensusProof(0) => 1,
            GradeDemand::Quorum(agree) | GradeDemand::StateProof(agree) | GradeDemand::ConsensusProof(agree) => agree,
        }
    }

    /// Number of endpoints asked concurrently.
    pub(crate) const fn width(&self) -> usize {
        match self.demand {
            GradeDemand::SingleRpc => 1,
            GradeDemand::Quorum(_) | GradeDemand::StateProof(_) | GradeDemand::ConsensusProof(_) => {
                self.agree() + SPARE
            }
        }
    }

    /// How long endpoints may stall before another is asked. `None` if no other endpoint is asked early.
    pub(crate) fn patience(&self) -> Option<Duration> {
        (self.demand != GradeDemand::SingleRpc).then_some(self.hedge_after)
    }

    /// The properties that every endpoint must share.
    pub(crate) fn identity(&self) -> ChainIdentity {
        ChainIdentity { id: self.chain_id, genesis: self.genesis.or_else(|| self.agreed_genesis.get().copied()) }
    }

    /// Compares all later endpoints with this block 0, unless a hash was agreed on before.
    pub(crate) fn remember_genesis(&self, genesis: B256) {
        self.agreed_genesis.get_or_init(|| genesis);
    }

    /// The endpoints in the order of asking: as configured, but recently failed ones last. In a quorum, the first
    /// endpoint of each operator comes before the second of any.
    pub(crate) fn in_order(&self) -> Vec<Arc<RpcEndpoint>> {
        let now = (self.clock)();
        let (resting, ready): (Vec<_>, Vec<_>) = self.endpoints.iter().cloned().partition(|e| e.rests(now));
        let order = ready.into_iter().chain(resting);
        match self.demand {
            GradeDemand::SingleRpc => order.collect(),
            GradeDemand::Quorum(_) | GradeDemand::StateProof(_) | GradeDemand::ConsensusProof(_) => {
                let mut operators = HashSet::new();
                let (firsts, others): (Vec<_>, Vec<_>) =
                    order.partition(|endpoint| operators.insert(endpoint.operator.clone()));
                firsts.into_iter().chain(others).collect()
            }
        }
    }

    /// Partitions the ordered endpoints: those with these labels, and the others.
    pub(crate) fn split(&self, labels: &[String]) -> (Vec<Arc<RpcEndpoint>>, Vec<Arc<RpcEndpoint>>) {
        self.in_order().into_iter().partition(|endpoint| labels.contains(&endpoint.label))
    }

    /// The findings of `query` at a known block according to the endpoints with these labels, and a client for these
    /// endpoints.
    pub(crate) async fn findings(
        &self,
        labels: &[String],
        query: &Query,
        block: &Block,
    ) -> Result<(RpcClient, Findings), ChainError> {
        let client = self.client_of(labels)?;
        let findings = query.ask(&client, block).await.map_err(|failure| self.explain(failure, labels, block))?;
        Ok((client, findings))
    }

    /// A client for the endpoints with these labels.
    ///
    /// # Errors
    /// [`ChainError::Unreachable`].
    pub(crate) fn client_of(&self, labels: &[String]) -> Result<RpcClient, ChainError> {
        let (members, spares) = self.split(labels);
        if members.is_empty() {
            let cause = "no endpoint has this label".to_owned();
            return Err(ChainError::Unreachable(vec![(labels.join(", "), cause)]));
        }
        Ok(self.client(members, spares))
    }

    /// Converts the failure of the endpoints with these labels at `block` into an error.
    pub(crate) fn explain(&self, failure: Failure, labels: &[String], block: &Block) -> ChainError {
        failure.into_error(&labels.join(", "), &block.number.to_string(), self.chain_id)
    }

    /// Selects the endpoints that serve the chain and whose newest block is recent and not below `floor`. Asks them
    /// concurrently; each has as much time as an endpoint may stall.
    pub(crate) async fn recent(&self, endpoints: Vec<Arc<RpcEndpoint>>, floor: u64) -> Vec<Arc<RpcEndpoint>> {
        let patience = self.patience().unwrap_or(self.hedge_after);
        let recent = endpoints.into_iter().map(async |endpoint| {
            let newest = BlockSelector::Latest;
            let observed = timeout(patience, endpoint.observe_header(newest, self.identity())).await.ok()?;
            let now = (self.clock)();
            match observed.and_then(|observed| observed.checked(self.head_age, newest, now)) {
                Ok(observed) => (observed.block.number >= floor).then_some(endpoint),
                Err(failure) => {
                    endpoint.note_head(&failure, now);
                    None
                }
            }
        });
        join_all(recent).await.into_iter().flatten().collect()
    }

    /// The header with this hash, from the first of these endpoints that returns it.
    ///
    /// # Errors
    /// [`ChainError::Unreachable`].
    pub(crate) async fn header_of(
        &self,
        endpoints: &[Arc<RpcEndpoint>],
        hash: B256,
    ) -> Result<HashedHeader, ChainError> {
        let headers = first(endpoints.len(), self.patience(), |index| endpoints[index].header_of(hash)).await;
        let cause = |(index, failure): (usize, Failure)| (endpoints[index].label.clone(), failure.to_string());
        match headers.success {
            Some((_, header)) => Ok(header),
            None => Err(ChainError::Unreachable(headers.failures.into_iter().map(cause).collect())),
        }
    }

    /// A client for these members. If several operators must agree, `spares` replace members that stall or fail,
    /// because then any endpoints may form the agreement.
    pub(crate) fn client(&self, members: Vec<Arc<RpcEndpoint>>, spares: Vec<Arc<RpcEndpoint>>) -> RpcClient {
        let spares = if self.agree() > 1 { spares } else { Vec::new() };
        RpcClient::new(QuorumTransport::new(members, spares, self.agree(), self.hedge_after), false)
    }
}

#[cfg(test)]
mod tests {
    use clresolve_sandbox::chain::{CHAIN_ID, ChainBuilder, RpcServer};

    use super::*;
    use crate::testing::{OpenDoor, config};

    async fn recent(server: &RpcServer, chain_id: u64, genesis: Option<B256>, floor: u64) -> usize {
        let config = ChainConfig { chain_id, genesis, ..config(std::slice::from_ref(server)) };
        let http: Arc<dyn HttpPost> = Arc::new(OpenDoor::new());
        let pool = EndpointPool::new(config, &http);
        pool.recent(pool.in_order(), floor).await.len()
    }

    #[tokio::test]
    async fn recent_endpoints_serve_this_chain_and_are_not_behind() {
        let mut builder = ChainBuilder::new().unwrap();
        builder.seal("2026-11-20T12:00:00Z".parse().unwrap()).unwrap();
        let chain = Arc::new(builder.build().unwrap());
        let newest = chain.latest().number;
        let server = RpcServer::bind(chain).await.unwrap();
        assert_eq!(recent(&server, CHAIN_ID, None, newest).await, 1);
        assert_eq!(recent(&server, CHAIN_ID, None, newest + 1).await, 0);
        assert_eq!(recent(&server, CHAIN_ID + 1, None, newest).await, 0);
        assert_eq!(recent(&server, CHAIN_ID, Some(B256::repeat_byte(1)), newest).await, 0);
    }
}
