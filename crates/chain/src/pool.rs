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

/// Endpoints asked beyond those that must agree, so that one that is slow or lies costs no second exchange.
const SPARE: usize = 1;

/// What to read, and from which endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainConfig {
    /// The chain's id (EIP-155). An endpoint that serves another is not used.
    pub chain_id: u64,
    /// Hash of block 0, where it is known. Without it, public endpoints of mainnet are compared with mainnet's own, and
    /// endpoints of other chains with the one that the first quorum agreed on.
    pub genesis: Option<B256>,
    /// The addresses of the contracts.
    pub contracts: Contracts,
    /// The endpoints, the preferred one first.
    pub endpoints: Vec<Endpoint>,
    /// How far the endpoints must vouch for an answer.
    pub demand: GradeDemand,
    /// Time limit of one request.
    pub timeout: Duration,
    /// How long endpoints may stall until the next one is asked too. Under [`GradeDemand::SingleRpc`] the next one is asked
    /// only after `timeout`, since there the order of the endpoints decides which one is trusted.
    pub hedge_after: Duration,
    /// Whether look-ups off the chain (CCIP-Read) are followed.
    pub ccip: bool,
    /// The coin types for which addresses are read with the records of the walk.
    pub coins: Coins,
    /// The age that the newest block may have. `None`: any, where nobody states the chain's slot time.
    pub max_head_age: Option<Duration>,
}

/// Gives the time, by which endpoints that stand still are refused, and those that failed rest.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The endpoints of a chain.
pub(crate) struct EndpointPool {
    pub(crate) chain_id: u64,
    pub(crate) demand: GradeDemand,
    pub(crate) hedge_after: Duration,
    pub(crate) clock: Clock,
    pub(crate) head_age: HeadAge,
    genesis: Option<B256>,
    /// What a quorum agreed on, where nothing is configured.
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

    /// The same endpoints under another clock.
    pub(crate) fn with_clock(&self, clock: Clock) -> Self {
        Self { clock, agreed_genesis: self.agreed_genesis.clone(), endpoints: self.endpoints.clone(), ..*self }
    }

    /// Number of operators that must agree.
    pub(crate) const fn agree(&self) -> usize {
        match self.demand {
            GradeDemand::SingleRpc => 1,
            GradeDemand::Quorum(agree) | GradeDemand::StateProof(agree) => agree,
        }
    }

    /// Number of endpoints that are asked at the same time.
    pub(crate) const fn width(&self) -> usize {
        match self.demand {
            GradeDemand::SingleRpc => 1,
            GradeDemand::Quorum(agree) | GradeDemand::StateProof(agree) => agree + SPARE,
        }
    }

    /// How long endpoints may stall until one more is asked, where that is done.
    pub(crate) fn patience(&self) -> Option<Duration> {
        (self.demand != GradeDemand::SingleRpc).then_some(self.hedge_after)
    }

    /// What every endpoint must have in common.
    pub(crate) fn identity(&self) -> ChainIdentity {
        ChainIdentity { id: self.chain_id, genesis: self.genesis.or_else(|| self.agreed_genesis.get().copied()) }
    }

    /// Compares all later endpoints with this block 0, unless another one was agreed on before.
    pub(crate) fn remember_genesis(&self, genesis: B256) {
        self.agreed_genesis.get_or_init(|| genesis);
    }

    /// The endpoints in the order in which they are asked: as configured, but those that failed recently last. In a
    /// quorum the first of each operator comes before the second of any.
    pub(crate) fn in_order(&self) -> Vec<Arc<RpcEndpoint>> {
        let now = (self.clock)();
        let (resting, ready): (Vec<_>, Vec<_>) = self.endpoints.iter().cloned().partition(|e| e.rests(now));
        let order = ready.into_iter().chain(resting);
        match self.demand {
            GradeDemand::SingleRpc => order.collect(),
            GradeDemand::Quorum(_) | GradeDemand::StateProof(_) => {
                let mut operators = HashSet::new();
                let (firsts, others): (Vec<_>, Vec<_>) =
                    order.partition(|endpoint| operators.insert(endpoint.operator.clone()));
                firsts.into_iter().chain(others).collect()
            }
        }
    }

    /// The endpoints in order, those with these labels apart from the others.
    pub(crate) fn split(&self, labels: &[String]) -> (Vec<Arc<RpcEndpoint>>, Vec<Arc<RpcEndpoint>>) {
        self.in_order().into_iter().partition(|endpoint| labels.contains(&endpoint.label))
    }

    /// The findings of `query` in a known block, as the endpoints with these labels state them, and these endpoints as
    /// one client.
    ///
    /// # Errors
    /// [`ChainError`].
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

    /// The endpoints with these labels as one client.
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

    /// The failure of the endpoints with these labels at `block`.
    pub(crate) fn explain(&self, failure: Failure, labels: &[String], block: &Block) -> ChainError {
        failure.into_error(&labels.join(", "), &block.number.to_string(), self.chain_id)
    }

    /// Those of these endpoints that serve the chain and whose newest block is recent and not below `floor`. All are asked at
    /// the same time, and have as long as an endpoint may stall.
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

    /// The header with this hash, from the first of these endpoints that gives it.
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

    /// These members as one client. `spares` take the place of those that stall or fail, where several must agree: there
    /// it does not matter which ones do.
    pub(crate) fn client(&self, members: Vec<Arc<RpcEndpoint>>, spares: Vec<Arc<RpcEndpoint>>) -> RpcClient {
        let spares = if self.agree() > 1 { spares } else { Vec::new() };
        RpcClient::new(QuorumTransport::new(members, spares, self.agree(), self.hedge_after), false)
    }
}
