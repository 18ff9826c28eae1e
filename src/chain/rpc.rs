//! [`RpcChain`]: readings from a list of RPC endpoints, one after another until one answers.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::Bytes;
use alloy_rpc_types_eth::{BlockId, TransactionRequest};
use async_trait::async_trait;
use futures_util::future::{OptionFuture, join};
use jiff::Timestamp;

use super::ccip::{CcipReadGateway, Lookups};
use super::contracts::{BadAnswer, Contracts, Findings, Place, Resolved, Subject, decode_address, decode_texts};
use super::endpoint::{Endpoint, Failure, Node, Observation, by_hash, eth_call};
use super::transport::HttpPost;
use super::{Answer, Block, BlockSelector, Chain, ChainError, Found, Grade, Holding, Proof, Reading};
use crate::name::EnsName;

/// What to read, and from whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainConfig {
    /// The chain's id (EIP-155). An endpoint that serves another is not used.
    pub chain_id: u64,
    /// Where the contracts stand.
    pub contracts: Contracts,
    /// The endpoints, the preferred one first.
    pub endpoints: Vec<Endpoint>,
    /// Longest time for one request.
    pub timeout: Duration,
    /// Whether look-ups off the chain (CCIP-Read) are followed.
    pub ccip: bool,
}

/// Tells the time. Only how long a failed endpoint rests depends on it.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A [`Chain`] over JSON-RPC. Its word is that of the one endpoint that answered: [`Grade::SingleRpc`].
pub struct RpcChain {
    chain_id: u64,
    contracts: Contracts,
    nodes: Vec<Node>,
    /// `None` when look-ups off the chain are switched off.
    lookups: Option<Lookups>,
    clock: Clock,
}

impl RpcChain {
    /// Reads through `http`, the door for the operator's URLs, and follows look-ups through `gateway`, which must
    /// keep to the rules for foreign URLs.
    pub fn new(config: ChainConfig, http: &Arc<dyn HttpPost>, gateway: Arc<dyn CcipReadGateway>) -> Self {
        let node = |endpoint| Node::new(endpoint, Arc::clone(http), config.timeout);
        Self {
            chain_id: config.chain_id,
            contracts: config.contracts,
            nodes: config.endpoints.into_iter().map(node).collect(),
            lookups: config.ccip.then(|| Lookups::new(gateway, config.timeout)),
            clock: Arc::new(Timestamp::now),
        }
    }

    /// The same with another clock.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// The endpoints in the order in which they are asked: as configured, but those that failed of late last.
    fn in_order(&self) -> Vec<&Node> {
        let now = (self.clock)();
        let (resting, ready): (Vec<_>, Vec<_>) = self.nodes.iter().partition(|node| node.rests(now));
        ready.into_iter().chain(resting).collect()
    }

    /// What the first endpoint that answers says at `block` and at the newest one.
    async fn observe(&self, asked: &Asked<'_>, block: BlockSelector) -> Result<Told<'_, Observation>, ChainError> {
        let mut failures = Vec::new();
        for node in self.in_order() {
            let told = node.observe(&asked.subject, &asked.call, block, self.chain_id).await;
            if let Some(value) = self.settle(node, told, &mut failures) {
                return Ok(Told { node, value, failures });
            }
        }
        Err(self.verdict(&block.to_string(), &failures))
    }

    /// What this endpoint says at the very block.
    async fn observe_at(&self, node: &Node, asked: &Asked<'_>, block: &Block) -> Result<Findings, ChainError> {
        let mut failures = Vec::new();
        let told = node.observe_at(&asked.subject, &asked.call, block).await;
        self.settle(node, told, &mut failures).ok_or_else(|| self.verdict(&block.number.to_string(), &failures))
    }

    /// Notes how an endpoint did.
    fn settle<'a, T>(
        &self,
        node: &'a Node,
        told: Result<T, Failure>,
        failures: &mut Vec<(&'a Node, Failure)>,
    ) -> Option<T> {
        match told {
            Ok(value) => {
                node.succeeded();
                Some(value)
            }
            Err(failure) => {
                if failure.is_endpoints_fault() {
                    node.failed((self.clock)());
                }
                failures.push((node, failure));
                None
            }
        }
    }

    /// What it means that every endpoint failed. A call that came to nothing somewhere, or a block that is missing
    /// somewhere, says more than an endpoint that is down.
    fn verdict(&self, block: &str, failures: &[(&Node, Failure)]) -> ChainError {
        let all_wrong = failures.iter().all(|(_, failure)| matches!(failure, Failure::WrongChain(_)));
        let telling = failures.iter().find(|(_, failure)| match failure {
            Failure::CallFailed(_) => true,
            Failure::WrongChain(_) => all_wrong,
            Failure::NoBlock(_) | Failure::Unusable(_) => false,
        });
        let telling = telling.or_else(|| failures.iter().find(|(_, f)| matches!(f, Failure::NoBlock(_))));
        match telling {
            Some((node, failure)) => failure.clone().into_error(&node.label, block, self.chain_id),
            None => ChainError::Unreachable(causes(failures)),
        }
    }

    async fn answer(
        &self,
        node: &Node,
        asked: &Asked<'_>,
        findings: &Findings,
        at: BlockId,
    ) -> Result<Answer, ChainError> {
        let (data, offchain) = match &findings.resolved {
            Resolved::Returned(data) => (data.clone(), false),
            Resolved::Offchain => (self.look_up(node, asked, at).await?, true),
            Resolved::NoResolver if findings.registered => return Ok(Answer::NoResolver(None)),
            Resolved::NoResolver => return Ok(Answer::Unregistered),
            Resolved::NotContract(resolver) => return Ok(Answer::NoResolver(Some(*resolver))),
            Resolved::Unsupported => return Err(ChainError::Resolver("it does not know text records".to_owned())),
            Resolved::Gateway(cause) => return Err(ChainError::Ccip(cause.clone())),
            Resolved::Failed(cause) => return Err(ChainError::Resolver(cause.clone())),
        };
        let (resolver, records) = decode_texts(&data).map_err(|bad| bad_answer(bad, offchain))?;
        if resolver != findings.source.resolver {
            return Err(ChainError::Resolver("the Universal Resolver names two resolvers".to_owned()));
        }
        let wildcard = match &findings.source.place {
            Place::Own => None,
            Place::Ancestor(ancestor) => Some(ancestor.clone()),
            Place::Nameless => {
                return Err(ChainError::Resolver("the resolver is that of no name above".to_owned()));
            }
        };
        Ok(Answer::Records(Found { resolver, wildcard, offchain, records }))
    }

    async fn look_up(&self, node: &Node, asked: &Asked<'_>, at: BlockId) -> Result<Bytes, ChainError> {
        let Some(lookups) = &self.lookups else {
            return Err(ChainError::Ccip("look-ups off the chain are switched off".to_owned()));
        };
        let call = asked.resolve.clone();
        lookups.follow(&node.rpc, self.contracts.universal_resolver, call, at).await.map_err(ChainError::Ccip)
    }
}

#[async_trait]
impl Chain for RpcChain {
    async fn read(&self, name: &EnsName, block: BlockSelector) -> Result<Reading, ChainError> {
        let asked = Asked::new(name, &self.contracts, Subject::resolve_texts);
        let told = self.observe(&asked, block).await?;
        let node = told.node;
        let Observation { block, pinned, latest } = told.value;
        let at_latest = latest.map(async |findings| {
            let findings = findings.map_err(|f| f.into_error(&node.label, "latest", self.chain_id))?;
            self.answer(node, &asked, &findings, BlockId::latest()).await
        });
        let (answer, latest) =
            join(self.answer(node, &asked, &pinned, by_hash(&block)), OptionFuture::from(at_latest)).await;
        Ok(Reading {
            block,
            answer: answer?,
            latest,
            holder: pinned.holder,
            expiry: pinned.expiry,
            proof: Proof { grade: Grade::SingleRpc, asked: 1, agreed: 1, own: node.own },
            endpoint: node.label.clone(),
            failed_endpoints: causes(&told.failures),
        })
    }

    async fn holding(&self, owner: &EnsName, block: &Block, endpoint: &str) -> Result<Holding, ChainError> {
        let node = self.nodes.iter().find(|node| node.label == endpoint).ok_or_else(|| {
            ChainError::Unreachable(vec![(endpoint.to_owned(), "no endpoint has this label".to_owned())])
        })?;
        let asked = Asked::new(owner, &self.contracts, Subject::resolve_address);
        let findings = self.observe_at(node, &asked, block).await?;
        let (data, offchain) = match findings.resolved {
            Resolved::Returned(data) => (data, false),
            Resolved::Offchain => (self.look_up(node, &asked, by_hash(block)).await?, true),
            Resolved::NoResolver | Resolved::NotContract(_) | Resolved::Unsupported => {
                return Ok(Holding { address: None, holder: findings.holder });
            }
            Resolved::Gateway(cause) => return Err(ChainError::Ccip(cause)),
            Resolved::Failed(cause) => return Err(ChainError::Resolver(cause)),
        };
        let address = decode_address(&data).map_err(|bad| bad_answer(bad, offchain))?;
        Ok(Holding { address, holder: findings.holder })
    }
}

/// A question about a name, ready to be sent.
struct Asked<'a> {
    subject: Subject<'a>,
    /// The Universal Resolver's part, which a look-up repeats.
    resolve: Bytes,
    call: TransactionRequest,
}

impl<'a> Asked<'a> {
    fn new(name: &'a EnsName, contracts: &'a Contracts, resolve: fn(&Subject<'a>) -> Bytes) -> Self {
        let subject = Subject::new(name, contracts);
        let resolve = resolve(&subject);
        let call = eth_call(contracts.multicall3, subject.aggregate(resolve.clone()));
        Self { subject, resolve, call }
    }
}

/// What an endpoint told, and which ones had failed before.
struct Told<'a, T> {
    node: &'a Node,
    value: T,
    failures: Vec<(&'a Node, Failure)>,
}

fn causes(failures: &[(&Node, Failure)]) -> Vec<(String, String)> {
    failures.iter().map(|(node, failure)| (node.label.clone(), failure.to_string())).collect()
}

/// Where a gateway had a hand in it, a revert is the callback's refusal of what the gateway gave.
fn bad_answer(bad: BadAnswer, offchain: bool) -> ChainError {
    match bad {
        BadAnswer::Gateway(cause) => ChainError::Ccip(cause),
        BadAnswer::Reverted(cause) if offchain => ChainError::Ccip(cause),
        BadAnswer::Reverted(cause) | BadAnswer::Garbage(cause) => ChainError::Resolver(cause),
    }
}
