//! The endpoints of a chain: their order, how many are asked, and how many must agree.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use alloy_primitives::B256;
use alloy_rpc_client::RpcClient;
use clresolve_core::payment::RequestedCoinTypes;
use clresolve_core::reading::{BlockSelector, ChainBlock, ChainError, ProofGradeDemand};
use clresolve_state::contracts::NameFindings;
use clresolve_state::{EnsContractAddresses, HashedBlockHeader};
use futures_util::future::join_all;
use jiff::Timestamp;
use tokio::time::timeout;

use crate::endpoint::{RpcEndpoint, RpcEndpointSettings};
use crate::exchange::ChainIdentity;
use crate::failure::EndpointFailure;
use crate::fan_out::ask_until_success;
use crate::head_age::HeadAgeLimit;
use crate::query::NameQuery;
use crate::quorum_transport::QuorumTransport;
use crate::transport::JsonRpcHttpClient;

/// Number of endpoints asked beyond those that must agree, so that a single slow or lying endpoint costs no second
/// exchange.
const SPARE: usize = 1;

/// What to read, and from which endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainReaderConfig {
    /// The chain id (EIP-155). Endpoints that serve another chain are not used.
    pub chain_id: u64,
    /// Hash of block 0, if known. Otherwise public mainnet endpoints are compared with the known mainnet hash, and the
    /// endpoints of other chains with the hash on which the first quorum agreed.
    pub genesis: Option<B256>,
    /// The addresses of the contracts.
    pub contracts: EnsContractAddresses,
    /// The endpoints, in order of preference.
    pub endpoints: Vec<RpcEndpointSettings>,
    /// How far the endpoints must vouch for an answer.
    pub demand: ProofGradeDemand,
    /// Time limit of one request.
    pub timeout: Duration,
    /// After a stall of this length, the next endpoint is asked too. With [`ProofGradeDemand::SingleRpc`] the next
    /// endpoint is asked only after `timeout`, because the order then decides which endpoint is trusted.
    pub hedge_after: Duration,
    /// Time limit of one off-chain lookup (CCIP-Read), including redirects. `None`: lookups are not followed.
    pub lookup_timeout: Option<Duration>,
    /// The coin types of the addresses that are read along with the records.
    pub coins: RequestedCoinTypes,
    /// The maximum age of the newest block. `None`: unlimited, if the chain's slot time is unknown.
    pub max_head_age: Option<Duration>,
}

/// Supplies the current time, to detect endpoints with an outdated newest block and to expire failures.
pub type TimeSource = Arc<dyn Fn() -> Timestamp + Send + Sync>;

pub(crate) struct EndpointPool {
    pub(crate) chain_id: u64,
    pub(crate) demand: ProofGradeDemand,
    pub(crate) hedge_after: Duration,
    pub(crate) clock: TimeSource,
    pub(crate) head_age: HeadAgeLimit,
    genesis: Option<B256>,
    /// The hash on which a quorum agreed, if none is configured.
    agreed_genesis: OnceLock<B256>,
    endpoints: Vec<Arc<RpcEndpoint>>,
}

impl EndpointPool {
    pub(crate) fn new(config: ChainReaderConfig, http: &Arc<dyn JsonRpcHttpClient>) -> Self {
        let endpoint =
            |endpoint: RpcEndpointSettings| Arc::new(RpcEndpoint::new(endpoint, Arc::clone(http), config.timeout));
        Self {
            chain_id: config.chain_id,
            demand: config.demand,
            hedge_after: config.hedge_after,
            clock: Arc::new(Timestamp::now),
            head_age: HeadAgeLimit(config.max_head_age),
            genesis: config.genesis,
            agreed_genesis: OnceLock::new(),
            endpoints: config.endpoints.into_iter().map(endpoint).collect(),
        }
    }

    pub(crate) fn with_clock(&self, clock: TimeSource) -> Self {
        Self { clock, agreed_genesis: self.agreed_genesis.clone(), endpoints: self.endpoints.clone(), ..*self }
    }

    pub(crate) fn endpoints(&self) -> &[Arc<RpcEndpoint>] {
        &self.endpoints
    }

    /// Number of operators that must agree. One if the light client alone gives the header, since everything else is
    /// proven.
    pub(crate) const fn required_operator_count(&self) -> usize {
        match self.demand {
            ProofGradeDemand::SingleRpc | ProofGradeDemand::ConsensusProof(0) => 1,
            ProofGradeDemand::Quorum(agree)
            | ProofGradeDemand::StateProof(agree)
            | ProofGradeDemand::ConsensusProof(agree) => agree,
        }
    }

    /// Number of endpoints asked concurrently.
    pub(crate) const fn concurrent_request_count(&self) -> usize {
        match self.demand {
            ProofGradeDemand::SingleRpc => 1,
            ProofGradeDemand::Quorum(_) | ProofGradeDemand::StateProof(_) | ProofGradeDemand::ConsensusProof(_) => {
                self.required_operator_count() + SPARE
            }
        }
    }

    /// How long endpoints may stall before another is asked. `None` if no other endpoint is asked early.
    pub(crate) fn hedge_delay(&self) -> Option<Duration> {
        (self.demand != ProofGradeDemand::SingleRpc).then_some(self.hedge_after)
    }

    /// The properties that every endpoint must share.
    pub(crate) fn chain_identity(&self) -> ChainIdentity {
        ChainIdentity { id: self.chain_id, genesis: self.genesis.or_else(|| self.agreed_genesis.get().copied()) }
    }

    /// Compares all later endpoints with this block 0, unless a hash was agreed on before.
    pub(crate) fn remember_agreed_genesis(&self, genesis: B256) {
        self.agreed_genesis.get_or_init(|| genesis);
    }

    /// The endpoints in the order of asking: as configured, but recently failed ones last. In a quorum, the first
    /// endpoint of each operator comes before the second of any.
    pub(crate) fn endpoints_in_order(&self) -> Vec<Arc<RpcEndpoint>> {
        let now = (self.clock)();
        let (resting, ready): (Vec<_>, Vec<_>) =
            self.endpoints.iter().cloned().partition(|e| e.has_failed_recently(now));
        let order = ready.into_iter().chain(resting);
        match self.demand {
            ProofGradeDemand::SingleRpc => order.collect(),
            ProofGradeDemand::Quorum(_) | ProofGradeDemand::StateProof(_) | ProofGradeDemand::ConsensusProof(_) => {
                let mut operators = HashSet::new();
                let (firsts, others): (Vec<_>, Vec<_>) =
                    order.partition(|endpoint| operators.insert(endpoint.operator.clone()));
                firsts.into_iter().chain(others).collect()
            }
        }
    }

    /// Partitions the ordered endpoints: those with these labels, and the others.
    pub(crate) fn partition_by_labels(&self, labels: &[String]) -> (Vec<Arc<RpcEndpoint>>, Vec<Arc<RpcEndpoint>>) {
        self.endpoints_in_order().into_iter().partition(|endpoint| labels.contains(&endpoint.label))
    }

    /// The findings of `query` at a known block according to the endpoints with these labels, and a client for these
    /// endpoints.
    pub(crate) async fn fetch_findings(
        &self,
        labels: &[String],
        query: &NameQuery,
        block: &ChainBlock,
    ) -> Result<(RpcClient, NameFindings), ChainError> {
        let client = self.client_for_labels(labels)?;
        let findings = query
            .fetch_findings(&client, block)
            .await
            .map_err(|failure| self.failure_to_chain_error(failure, labels, block))?;
        Ok((client, findings))
    }

    /// A client for the endpoints with these labels.
    ///
    /// # Errors
    /// [`ChainError::Unreachable`].
    pub(crate) fn client_for_labels(&self, labels: &[String]) -> Result<RpcClient, ChainError> {
        let (members, spares) = self.partition_by_labels(labels);
        if members.is_empty() {
            let cause = "no endpoint has this label".to_owned();
            return Err(ChainError::Unreachable(vec![(labels.join(", "), cause)]));
        }
        Ok(self.client_for_members(members, spares))
    }

    /// Converts the failure of the endpoints with these labels at `block` into an error.
    pub(crate) fn failure_to_chain_error(
        &self,
        failure: EndpointFailure,
        labels: &[String],
        block: &ChainBlock,
    ) -> ChainError {
        failure.into_chain_error(&labels.join(", "), &block.number.to_string(), self.chain_id)
    }

    /// Selects the endpoints that serve the chain and whose newest block is recent and not below `floor`. Asks them
    /// concurrently; each has as much time as an endpoint may stall.
    pub(crate) async fn select_recent_endpoints(
        &self,
        endpoints: Vec<Arc<RpcEndpoint>>,
        floor: u64,
    ) -> Vec<Arc<RpcEndpoint>> {
        let patience = self.hedge_delay().unwrap_or(self.hedge_after);
        let recent = endpoints.into_iter().map(async |endpoint| {
            let newest = BlockSelector::Latest;
            let observed = timeout(patience, endpoint.fetch_header_vote(newest, self.chain_identity())).await.ok()?;
            let now = (self.clock)();
            match observed.and_then(|observed| observed.check_block_ages(self.head_age, newest, now)) {
                Ok(observed) => (observed.block.number >= floor).then_some(endpoint),
                Err(failure) => {
                    endpoint.note_refused_head(&failure, now);
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
    pub(crate) async fn fetch_header_by_hash(
        &self,
        endpoints: &[Arc<RpcEndpoint>],
        hash: B256,
    ) -> Result<HashedBlockHeader, ChainError> {
        let headers =
            ask_until_success(endpoints.len(), self.hedge_delay(), |index| endpoints[index].fetch_header_by_hash(hash))
                .await;
        let cause = |(index, failure): (usize, EndpointFailure)| (endpoints[index].label.clone(), failure.to_string());
        match headers.success {
            Some((_, header)) => Ok(header),
            None => Err(ChainError::Unreachable(headers.failures.into_iter().map(cause).collect())),
        }
    }

    /// A client for these members. If several operators must agree, `spares` replace members that stall or fail,
    /// because then any endpoints may form the agreement.
    pub(crate) fn client_for_members(
        &self,
        members: Vec<Arc<RpcEndpoint>>,
        spares: Vec<Arc<RpcEndpoint>>,
    ) -> RpcClient {
        let spares = if self.required_operator_count() > 1 { spares } else { Vec::new() };
        RpcClient::new(QuorumTransport::new(members, spares, self.required_operator_count(), self.hedge_after), false)
    }
}

#[cfg(test)]
mod tests {
    use clresolve_sandbox::chain::{CHAIN_ID, SandboxChainBuilder, SandboxRpcServer};

    use super::*;
    use crate::testing::{UnguardedHttpClient, test_config};

    async fn recent(server: &SandboxRpcServer, chain_id: u64, genesis: Option<B256>, floor: u64) -> usize {
        let config = ChainReaderConfig { chain_id, genesis, ..test_config(std::slice::from_ref(server)) };
        let http: Arc<dyn JsonRpcHttpClient> = Arc::new(UnguardedHttpClient::new());
        let pool = EndpointPool::new(config, &http);
        pool.select_recent_endpoints(pool.endpoints_in_order(), floor).await.len()
    }

    #[tokio::test]
    async fn recent_endpoints_serve_this_chain_and_are_not_behind() {
        let mut builder = SandboxChainBuilder::new().unwrap();
        builder.seal_block("2026-11-20T12:00:00Z".parse().unwrap()).unwrap();
        let chain = Arc::new(builder.build().unwrap());
        let newest = chain.latest().number;
        let server = SandboxRpcServer::bind(chain).await.unwrap();
        assert_eq!(recent(&server, CHAIN_ID, None, newest).await, 1);
        assert_eq!(recent(&server, CHAIN_ID, None, newest + 1).await, 0);
        assert_eq!(recent(&server, CHAIN_ID + 1, None, newest).await, 0);
        assert_eq!(recent(&server, CHAIN_ID, Some(B256::repeat_byte(1)), newest).await, 0);
    }
}
