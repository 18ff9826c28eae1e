//! [`RpcChain`]: readings from RPC endpoints, as many at the same time as it takes for enough of them to agree.
//!
//! Each endpoint's first answer ([`Node::observe`]) is counted by the [`Tally`]; those that are further on are asked
//! again; the answer comes as soon as enough operators say the same. Where nobody answers for a while, the next endpoint
//! is asked beside those that stall. With [`Demand::SingleRpc`] enough is one, and the endpoints are asked one after
//! another.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use alloy_primitives::{B256, Bytes, keccak256};
use alloy_rpc_client::RpcClient;
use alloy_rpc_types_eth::{BlockId, Header, TransactionRequest};
use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::future::{OptionFuture, join};
use futures_util::stream::FuturesUnordered;
use jiff::Timestamp;
use tokio::task::{JoinError, JoinHandle};

use super::Chain;
use super::ccip::{CcipReadGateway, Lookups};
use super::chorus::Chorus;
use super::endpoint::{Attestation, ChainIdentity, Endpoint, Failure, Node, Observation, by_hash, decode_at, eth_call};
use super::hedge::{self, Next};
use super::proven::{Head, HeaderSource};
use super::tally::{Agreement, Lacking, Standing, Tally, Word};
use super::transport::HttpPost;
use clresolve_core::cause::CcipFault;
use clresolve_core::name::EnsName;
use clresolve_core::reading::{Answer, Block, BlockSelector, ChainError, Demand, Grade, Holding, Proof, Reading};
use clresolve_core::records::{Key, Record};
use clresolve_state::HashedHeader;
use clresolve_state::answer::{self, Said};
use clresolve_state::contracts::{Contracts, Findings, Subject};

/// Endpoints asked beyond those that must agree, so that one that is slow or lies costs no second exchange.
const SPARE: usize = 1;

/// What to read, and from whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainConfig {
    /// The chain's id (EIP-155). An endpoint that serves another is not used.
    pub chain_id: u64,
    /// Hash of block 0, where it is known. Without it mainnet's own is held against public endpoints, and on other
    /// chains the one that the first quorum agrees on against all later endpoints.
    pub genesis: Option<B256>,
    /// Where the contracts stand.
    pub contracts: Contracts,
    /// The endpoints, the preferred one first.
    pub endpoints: Vec<Endpoint>,
    /// How far they must vouch for an answer.
    pub demand: Demand,
    /// Longest time for one request.
    pub timeout: Duration,
    /// How long nobody may answer until the next endpoint is asked beside those that stall. Under
    /// [`Demand::SingleRpc`] that waits for `timeout`, since there the order of the endpoints says whose word counts.
    pub hedge_after: Duration,
    /// Whether look-ups off the chain (CCIP-Read) are followed.
    pub ccip: bool,
}

/// Tells the time. Only how long a failed endpoint rests depends on it.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A [`Chain`] over JSON-RPC. Its word is that of the endpoints that agreed.
pub struct RpcChain {
    pub(super) chain_id: u64,
    genesis: Option<B256>,
    /// What a quorum agreed on, where nothing is configured.
    agreed_genesis: OnceLock<B256>,
    pub(super) contracts: Contracts,
    nodes: Vec<Arc<Node>>,
    demand: Demand,
    pub(super) hedge_after: Duration,
    /// `None` when look-ups off the chain are switched off.
    lookups: Option<Lookups>,
    pub(super) clock: Clock,
}

#[async_trait]
impl HeaderSource for RpcChain {
    async fn head(&self, selector: BlockSelector) -> Result<Head, ChainError> {
        let outcome = self.poll(Arc::new(HeaderOnly), selector).await?;
        let proof = self.proof(&outcome);
        Ok(Head {
            block: outcome.block,
            asked: proof.asked,
            agreed: proof.agreed,
            own: proof.own,
            endpoints: outcome.agreed.iter().map(|node| node.label.clone()).collect(),
            contradicted_by: outcome.contradicted_by,
            failed_endpoints: outcome.failed,
            header: outcome.pinned,
        })
    }
}

impl RpcChain {
    /// Reads through `http`, the door for the operator's URLs, and follows look-ups through `gateway`, which must
    /// keep to the rules for foreign URLs.
    pub fn new(config: ChainConfig, http: &Arc<dyn HttpPost>, gateway: Arc<dyn CcipReadGateway>) -> Self {
        let node = |endpoint| Arc::new(Node::new(endpoint, Arc::clone(http), config.timeout));
        Self {
            chain_id: config.chain_id,
            genesis: config.genesis,
            agreed_genesis: OnceLock::new(),
            contracts: config.contracts,
            nodes: config.endpoints.into_iter().map(node).collect(),
            demand: config.demand,
            hedge_after: config.hedge_after,
            lookups: config.ccip.then(|| Lookups::new(gateway, config.timeout)),
            clock: Arc::new(Timestamp::now),
        }
    }

    /// The same with another clock.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Operators that must say the same.
    pub(super) const fn agree(&self) -> usize {
        match self.demand {
            Demand::SingleRpc => 1,
            Demand::Quorum(agree) | Demand::StateProof(agree) => agree,
        }
    }

    /// Endpoints that are asked at the same time.
    pub(super) const fn width(&self) -> usize {
        match self.demand {
            Demand::SingleRpc => 1,
            Demand::Quorum(agree) | Demand::StateProof(agree) => agree + SPARE,
        }
    }

    /// These endpoints as one, and others in place of those among them that stall or fail: where several must agree, it
    /// does not matter who they are.
    pub(super) fn chorus(&self, nodes: Vec<Arc<Node>>, spares: Vec<Arc<Node>>) -> RpcClient {
        let spares = if self.agree() > 1 { spares } else { Vec::new() };
        RpcClient::new(Chorus::new(nodes, spares, self.agree(), self.hedge_after), false)
    }

    /// How long nobody may answer until one more endpoint is asked, where that is to be done.
    pub(super) fn patience(&self) -> Option<Duration> {
        (self.demand != Demand::SingleRpc).then_some(self.hedge_after)
    }

    /// The endpoints in the order in which they are asked: as configured, but those that failed of late last. In a
    /// quorum the first of each operator comes before the second of any.
    pub(super) fn in_order(&self) -> Vec<Arc<Node>> {
        let now = (self.clock)();
        let (resting, ready): (Vec<_>, Vec<_>) = self.nodes.iter().cloned().partition(|node| node.rests(now));
        let order = ready.into_iter().chain(resting);
        match self.demand {
            Demand::SingleRpc => order.collect(),
            Demand::Quorum(_) | Demand::StateProof(_) => {
                let mut operators = HashSet::new();
                let (firsts, others): (Vec<_>, Vec<_>) =
                    order.partition(|node| operators.insert(node.operator.clone()));
                firsts.into_iter().chain(others).collect()
            }
        }
    }

    pub(super) fn identity(&self) -> ChainIdentity {
        ChainIdentity { id: self.chain_id, genesis: self.genesis.or_else(|| self.agreed_genesis.get().copied()) }
    }

    /// Asks endpoints until enough of them agree on a block and on what it says.
    async fn poll<A: Ask>(&self, asked: Arc<A>, selector: BlockSelector) -> Result<Outcome<A::Word>, ChainError> {
        let mut poll = Poll::new(self, asked, selector);
        let mut fallback = None;
        let agreement = loop {
            let mut lacking = None;
            let in_sight = match poll.tally.standing() {
                Standing::Settled(agreement) => break Some(agreement),
                Standing::Provisional(agreement, lacks) => {
                    fallback = Some(agreement);
                    lacking = Some(lacks).filter(|_| self.agree() > 1);
                    match lacks {
                        Lacking::Youth => 1,
                        Lacking::Latest => usize::MAX,
                    }
                }
                Standing::Open { most, again } => {
                    for (seat, block) in again {
                        poll.ask_again(seat, block);
                    }
                    most
                }
            };
            while in_sight.saturating_add(poll.under_way.len()) < self.width() {
                if !poll.ask_next() {
                    break;
                }
            }
            let is_worth_it = poll.has_next() || poll.tally.awaits() || lacking == Some(Lacking::Youth);
            match hedge::next(&mut poll.under_way, self.patience().filter(|_| is_worth_it)).await {
                Next::Answer(heard) => poll.hear(heard),
                Next::Stall if poll.ask_next() => {}
                // One endpoint that claims a much newer block makes nobody wait for one that stalls.
                Next::Stall if lacking == Some(Lacking::Youth) => break fallback,
                Next::Stall => poll.tally.stop_awaiting(),
                // One that objects to the newest block and one that fails withhold no name while others can be asked.
                Next::Nobody if lacking == Some(Lacking::Latest) && poll.ask_next() => {}
                Next::Nobody => break fallback,
            }
        };
        poll.sort_failures();
        match agreement {
            Some(agreement) => Ok(poll.agreed(self, &agreement)),
            None => Err(self.disagreement(&poll)),
        }
    }

    /// What it means that too few endpoints agree. Where one contradicts another, that; else what those say that
    /// failed.
    fn disagreement<A: Ask>(&self, poll: &Poll<A>) -> ChainError {
        if poll.tally.is_divided() {
            return ChainError::Disagree(poll.statements());
        }
        let wrong = |failure: &Failure| matches!(failure, Failure::WrongChain(_) | Failure::WrongGenesis(_));
        let answered: Vec<String> = poll.tally.seats().map(|seat| poll.label(seat)).collect();
        let says_it_all = !poll.failures.is_empty() && poll.failures.iter().all(|(_, failure)| wrong(failure));
        if answered.is_empty() || says_it_all {
            return self.verdict(&poll.selector.to_string(), &poll.failures);
        }
        ChainError::TooFew { agree: self.agree(), answered, failed: causes(&poll.failures) }
    }

    /// What it means that every endpoint failed. A call that came to nothing somewhere, or a block that is missing
    /// somewhere, says more than an endpoint that is down.
    fn verdict(&self, block: &str, failures: &[(Arc<Node>, Failure)]) -> ChainError {
        let is_wrong = |failure: &Failure| matches!(failure, Failure::WrongChain(_) | Failure::WrongGenesis(_));
        let all_wrong = failures.iter().all(|(_, failure)| is_wrong(failure));
        let telling = failures.iter().find(|(_, failure)| match failure {
            Failure::CallFailed(_) | Failure::LocalLimit(_) => true,
            failure => all_wrong && is_wrong(failure),
        });
        let telling = telling.or_else(|| failures.iter().find(|(_, f)| matches!(f, Failure::NoBlock(_))));
        match telling {
            Some((node, failure)) => failure.clone().into_error(&node.label, block, self.chain_id),
            None => ChainError::Unreachable(causes(failures)),
        }
    }

    fn proof<W>(&self, outcome: &Outcome<W>) -> Proof {
        let count = |nodes: &[Arc<Node>]| {
            let operators: HashSet<&str> = nodes.iter().map(|node| node.operator.as_str()).collect();
            u32::try_from(operators.len()).unwrap_or(u32::MAX)
        };
        let grade = match self.demand {
            Demand::SingleRpc => Grade::SingleRpc,
            Demand::Quorum(_) => Grade::Quorum,
            Demand::StateProof(_) => Grade::StateProof,
        };
        let own = grade != Grade::Quorum && outcome.agreed.iter().all(|node| node.own);
        let asked = if grade == Grade::SingleRpc { 1 } else { count(&outcome.asked) };
        Proof { grade, asked, agreed: count(&outcome.agreed), own }
    }

    pub(super) async fn answer(
        &self,
        voices: &RpcClient,
        asked: &Asked,
        findings: &Findings,
        at: BlockId,
    ) -> Result<Answer, ChainError> {
        let (data, offchain) = match answer::records_told(findings)? {
            Said::All(answer) => return Ok(answer),
            Said::Data(data) => (data, false),
            Said::OffChain => (self.look_up(voices, asked, at).await?, true),
        };
        answer::records(findings, asked.keys, &data, offchain)
    }

    async fn look_up(&self, voices: &RpcClient, asked: &Asked, at: BlockId) -> Result<Bytes, ChainError> {
        let Some(lookups) = &self.lookups else {
            return Err(ChainError::Ccip(CcipFault::SwitchedOff));
        };
        let call = asked.resolve.clone();
        lookups.follow(voices, self.contracts.universal_resolver, call, at).await
    }
}

#[async_trait]
impl Chain for RpcChain {
    async fn read_keys(
        &self,
        name: &EnsName,
        block: BlockSelector,
        keys: &'static [Key],
    ) -> Result<Reading, ChainError> {
        let asked = Arc::new(Asked::texts(name, &self.contracts, keys));
        let outcome = self.poll(Arc::clone(&asked), block).await?;
        let voices = self.chorus(outcome.voices.clone(), outcome.spares.clone());
        let Outcome { block, pinned, latest, .. } = &outcome;
        let at_latest = latest.as_ref().map(async |findings| {
            let findings =
                findings.clone().map_err(|f| f.into_error(&outcome.latest_label, "latest", self.chain_id))?;
            self.answer(&voices, &asked, &findings, BlockId::latest()).await
        });
        let (answer, latest) =
            join(self.answer(&voices, &asked, pinned, by_hash(block)), OptionFuture::from(at_latest)).await;
        Ok(Reading {
            block: *block,
            answer: answer?,
            latest,
            holder: pinned.holder,
            expiry: pinned.expiry,
            proof: self.proof(&outcome),
            endpoints: outcome.agreed.iter().map(|node| node.label.clone()).collect(),
            contradicted_by: outcome.contradicted_by,
            failed_endpoints: outcome.failed,
        })
    }

    async fn holding(&self, owner: &EnsName, block: &Block, endpoints: &[String]) -> Result<Holding, ChainError> {
        let (voices, labels) = self.voices_of(endpoints)?;
        let asked = Asked::address(owner, &self.contracts);
        let findings = self.found(&voices, &asked, block, &labels).await?;
        self.held(&voices, &asked, findings, block).await
    }

    async fn texts(
        &self,
        name: &EnsName,
        block: &Block,
        endpoints: &[String],
        keys: &[String],
    ) -> Result<Vec<Record>, ChainError> {
        let (voices, labels) = self.voices_of(endpoints)?;
        let asked = Asked::further_texts(name, &self.contracts, keys);
        let findings = self.found(&voices, &asked, block, &labels).await?;
        let (data, offchain) = match answer::records_told(&findings)? {
            Said::All(_) => return Ok(vec![Record::Absent; keys.len()]),
            Said::Data(data) => (data, false),
            Said::OffChain => (self.look_up(&voices, &asked, by_hash(block)).await?, true),
        };
        answer::further_records(&data, keys.len(), offchain)
    }

    async fn header(&self, block: &Block, endpoints: &[String]) -> Option<Bytes> {
        for node in self.nodes.iter().filter(|node| endpoints.contains(&node.label)) {
            let voice = RpcClient::new(Chorus::of(Arc::clone(node)), false);
            let header = voice.request::<_, Option<Header>>("eth_getBlockByHash", (block.hash, false)).await;
            // A fork may have members that this program does not know: their header's hash comes out differently.
            if let Ok(Some(header)) = header {
                let rlp = alloy_rlp::encode(&header.inner);
                if keccak256(&rlp) == block.hash {
                    return Some(rlp.into());
                }
            }
        }
        None
    }
}

impl RpcChain {
    /// The endpoints of these labels as one, with the others for those that fail; and the labels for messages.
    fn voices_of(&self, endpoints: &[String]) -> Result<(RpcClient, String), ChainError> {
        let labels = endpoints.join(", ");
        let (nodes, others): (Vec<_>, Vec<_>) =
            self.in_order().into_iter().partition(|node| endpoints.contains(&node.label));
        if nodes.is_empty() {
            return Err(ChainError::Unreachable(vec![(labels, "no endpoint has this label".to_owned())]));
        }
        Ok((self.chorus(nodes, others), labels))
    }

    /// What the contracts say in a block that is known.
    async fn found(
        &self,
        voices: &RpcClient,
        asked: &Asked,
        block: &Block,
        labels: &str,
    ) -> Result<Findings, ChainError> {
        let failed = |failure: Failure| failure.into_error(labels, &block.number.to_string(), self.chain_id);
        let data = voices.request::<_, Bytes>("eth_call", (&asked.call, by_hash(block))).await;
        let data = data.map_err(|error| failed(Failure::of(&error, clresolve_core::text::excerpt)))?;
        decode_at(&asked.subject, block, &data).map_err(failed)
    }

    /// What the findings on an owner's name mean. What they leave to a look-up is asked of `voices`.
    pub(super) async fn held(
        &self,
        voices: &RpcClient,
        asked: &Asked,
        findings: Findings,
        block: &Block,
    ) -> Result<Holding, ChainError> {
        let (data, offchain) = match answer::holding_told(&findings)? {
            Said::All(holding) => return Ok(holding),
            Said::Data(data) => (data, false),
            Said::OffChain => (self.look_up(voices, asked, by_hash(block)).await?, true),
        };
        answer::holding(&findings, &data, offchain)
    }
}

/// A question about a name, ready to be sent.
pub(super) struct Asked {
    pub(super) subject: Subject,
    /// The records that are asked for; none where it is the address.
    keys: &'static [Key],
    /// The Universal Resolver's part, which a look-up repeats.
    resolve: Bytes,
    pub(super) call: TransactionRequest,
}

impl Asked {
    /// The text records of these keys.
    pub(super) fn texts(name: &EnsName, contracts: &Contracts, keys: &'static [Key]) -> Self {
        let subject = Subject::new(name, contracts);
        let resolve = subject.resolve_texts(keys.iter().map(|key| key.as_str()));
        Self::new(subject, contracts, resolve, keys)
    }

    /// Text records of other keys, whose answers the caller reads.
    fn further_texts(name: &EnsName, contracts: &Contracts, keys: &[String]) -> Self {
        let subject = Subject::new(name, contracts);
        let resolve = subject.resolve_texts(keys.iter().map(String::as_str));
        Self::new(subject, contracts, resolve, &[])
    }

    /// The address.
    pub(super) fn address(name: &EnsName, contracts: &Contracts) -> Self {
        let subject = Subject::new(name, contracts);
        let resolve = subject.resolve_address();
        Self::new(subject, contracts, resolve, &[])
    }

    fn new(subject: Subject, contracts: &Contracts, resolve: Bytes, keys: &'static [Key]) -> Self {
        let call = eth_call(contracts.multicall3, subject.aggregate(resolve.clone()));
        Self { subject, keys, resolve, call }
    }
}

/// What endpoints agreed on.
struct Outcome<W> {
    block: Block,
    pinned: W,
    latest: Option<Result<W, Failure>>,
    /// Label of the endpoint whose word on the newest block that is.
    latest_label: String,
    /// Those who were asked.
    asked: Vec<Arc<Node>>,
    /// Those who agreed.
    agreed: Vec<Arc<Node>>,
    /// Those who may be asked further: who agreed, and who has not contradicted.
    voices: Vec<Arc<Node>>,
    /// Those who were not asked.
    spares: Vec<Arc<Node>>,
    contradicted_by: Vec<(String, String)>,
    failed: Vec<(String, String)>,
}

/// One question on its way through the endpoints.
struct Poll<A: Ask> {
    asked: Arc<A>,
    selector: BlockSelector,
    identity: ChainIdentity,
    clock: Clock,
    waiting: std::vec::IntoIter<Arc<Node>>,
    /// Who was asked; an endpoint's number is its place here.
    seats: Vec<Arc<Node>>,
    under_way: FuturesUnordered<JoinHandle<Heard<A::Word>>>,
    tally: Tally<A::Word>,
    failures: Vec<(Arc<Node>, Failure)>,
    /// What endpoints say of block 0.
    genesis: Vec<(usize, B256)>,
}

/// What came from an endpoint.
struct Heard<W> {
    seat: usize,
    told: Result<Told<W>, Failure>,
    /// The block that it was asked about, if it was not its own.
    about: Option<Block>,
}

enum Told<W> {
    Observed(Box<Observation<W>>),
    Attested(Box<Attestation<W>>),
}

/// What is asked of every endpoint, and counted.
#[async_trait]
trait Ask: Send + Sync + 'static {
    /// What an endpoint says about a block.
    type Word: Word + Clone + fmt::Display + Send + Sync + 'static;

    /// Asks an endpoint about the block that it has by itself.
    async fn observe(
        &self,
        node: &Node,
        selector: BlockSelector,
        identity: ChainIdentity,
    ) -> Result<Observation<Self::Word>, Failure>;

    /// Asks an endpoint about a block of others.
    async fn attest(&self, node: &Node, block: &Block) -> Result<Attestation<Self::Word>, Failure>;
}

#[async_trait]
impl Ask for Asked {
    type Word = Findings;

    async fn observe(
        &self,
        node: &Node,
        selector: BlockSelector,
        identity: ChainIdentity,
    ) -> Result<Observation<Findings>, Failure> {
        node.observe(&self.subject, &self.call, selector, identity).await
    }

    async fn attest(&self, node: &Node, block: &Block) -> Result<Attestation<Findings>, Failure> {
        node.attest(&self.subject, &self.call, block).await
    }
}

/// The header and nothing else is asked for.
struct HeaderOnly;

#[async_trait]
impl Ask for HeaderOnly {
    type Word = HashedHeader;

    async fn observe(
        &self,
        node: &Node,
        selector: BlockSelector,
        identity: ChainIdentity,
    ) -> Result<Observation<HashedHeader>, Failure> {
        node.head(selector, identity).await
    }

    async fn attest(&self, node: &Node, block: &Block) -> Result<Attestation<HashedHeader>, Failure> {
        node.attest_head(block).await
    }
}

impl<A: Ask> Poll<A> {
    fn new(chain: &RpcChain, asked: Arc<A>, selector: BlockSelector) -> Self {
        Self {
            asked,
            selector,
            identity: chain.identity(),
            clock: Arc::clone(&chain.clock),
            waiting: chain.in_order().into_iter(),
            seats: Vec::new(),
            under_way: FuturesUnordered::new(),
            tally: Tally::new(chain.agree()),
            failures: Vec::new(),
            genesis: Vec::new(),
        }
    }

    /// Into the order in which the endpoints were asked: that of their answers is chance.
    fn sort_failures(&mut self) {
        let place = |node: &Arc<Node>| self.seats.iter().position(|other| other.label == node.label);
        self.failures.sort_by_key(|(node, _)| place(node));
    }

    fn label(&self, seat: usize) -> String {
        self.seats.get(seat).map(|node| node.label.clone()).unwrap_or_default()
    }

    /// Asks the next endpoint; says whether there was one. A request is a task of its own: one that nobody waits for
    /// any more still ends, so that its connection stays open and its endpoint's health is known.
    fn ask_next(&mut self) -> bool {
        let Some(node) = self.waiting.next() else { return false };
        let seat = self.seats.len();
        self.seats.push(Arc::clone(&node));
        let (asked, selector, identity) = (Arc::clone(&self.asked), self.selector, self.identity);
        let clock = Arc::clone(&self.clock);
        self.under_way.push(tokio::spawn(async move {
            let told = asked.observe(&node, selector, identity).await;
            note(&node, &told, &clock);
            Heard { seat, told: told.map(|observed| Told::Observed(Box::new(observed))), about: None }
        }));
        true
    }

    /// Asks an endpoint about a block of others.
    fn ask_again(&mut self, seat: usize, block: Block) {
        let Some(node) = self.seats.get(seat).cloned() else { return };
        self.tally.ask_again(seat, block);
        let (asked, clock) = (Arc::clone(&self.asked), Arc::clone(&self.clock));
        self.under_way.push(tokio::spawn(async move {
            let told = asked.attest(&node, &block).await;
            note(&node, &told, &clock);
            Heard { seat, told: told.map(|attested| Told::Attested(Box::new(attested))), about: Some(block) }
        }));
    }

    /// Whether there is an endpoint that was not asked.
    fn has_next(&self) -> bool {
        !self.waiting.as_slice().is_empty()
    }

    /// Counts what came from an endpoint.
    fn hear(&mut self, heard: Result<Heard<A::Word>, JoinError>) {
        // The runtime is shutting down, or the request's task has a bug; its endpoint counts as one that failed.
        let Ok(Heard { seat, told, about }) = heard else { return };
        let Some(node) = self.seats.get(seat) else { return };
        match (told, about) {
            (Ok(Told::Observed(observed)), _) => {
                let Observation { block, pinned, latest, genesis } = *observed;
                self.genesis.extend(genesis.map(|hash| (seat, hash)));
                self.tally.hear(seat, &node.operator, block, pinned, latest);
            }
            (Ok(Told::Attested(attested)), Some(block)) => match *attested {
                Attestation::Same(findings) => self.tally.attest(seat, block, findings),
                Attestation::Instead(other) => self.tally.deny(seat, other),
            },
            (Ok(Told::Attested(_)), None) => {}
            (Err(failure), about) => {
                if let Some(block) = about {
                    self.tally.keep_silent(seat, block);
                }
                self.failures.push((Arc::clone(node), failure));
            }
        }
    }

    /// What every endpoint that answered says, for people.
    fn statements(&self) -> Vec<(String, String)> {
        let mut said: Vec<_> = self.tally.statements().collect();
        said.sort_by_key(|(seat, ..)| *seat);
        said.into_iter().map(|(seat, block, word)| (self.label(seat), statement(&block, word))).collect()
    }

    /// The outcome. Answers that are still under way are compared with it when they come, by nobody's wait.
    fn agreed(self, chain: &RpcChain, agreement: &Agreement) -> Outcome<A::Word> {
        let Agreement { block, seats, latest } = agreement;
        let node_of = |seat: &usize| self.seats.get(*seat).cloned();
        let against = self.against(agreement);
        let is_against = |node: &Arc<Node>| against.iter().any(|(label, _)| *label == node.label);
        let has_failed = |node: &Arc<Node>| self.failures.iter().any(|(failed, _)| failed.label == node.label);
        let agreed: Vec<_> = seats.iter().filter_map(node_of).collect();
        let others = self.seats.iter().filter(|node| !agreed.iter().any(|other| other.label == node.label));
        let voices = agreed.iter().chain(others.filter(|node| !is_against(node) && !has_failed(node)));
        let pinned = seats.first().and_then(|seat| self.tally.word(*seat, block)).cloned();
        let outcome = Outcome {
            block: *block,
            pinned: pinned.expect("those who agree have said it"),
            latest: latest.and_then(|seat| self.tally.latest_word(seat)).cloned(),
            latest_label: latest.map(|seat| self.label(seat)).unwrap_or_default(),
            asked: self.seats.clone(),
            voices: voices.cloned().collect(),
            spares: self.waiting.as_slice().to_vec(),
            agreed,
            contradicted_by: against,
            failed: causes(&self.failures),
        };
        if chain.demand != Demand::SingleRpc {
            self.remember_genesis(chain, seats);
            self.note_liars(agreement.clone());
        }
        outcome
    }

    /// The genesis that all who agreed name is held against other endpoints from now on.
    fn remember_genesis(&self, chain: &RpcChain, seats: &[usize]) {
        let named = |seat: &usize| self.genesis.iter().find(|(of, _)| of == seat).map(|(_, hash)| *hash);
        let mut hashes = seats.iter().map(named);
        if let Some(Some(first)) = hashes.next()
            && hashes.all(|hash| hash == Some(first))
        {
            chain.agreed_genesis.get_or_init(|| first);
        }
    }

    /// Who contradicts the agreement, with what they say.
    fn against(&self, agreement: &Agreement) -> Vec<(String, String)> {
        let said = |(seat, other): (usize, Block)| {
            let words = self.tally.word(seat, &other).map_or_else(|| height(&other), |word| statement(&other, word));
            (self.label(seat), words)
        };
        self.tally.against(agreement).into_iter().map(said).collect()
    }

    /// Counts the endpoints that contradict the agreement, also those whose answers come later, and lets them rest.
    fn note_liars(mut self, agreement: Agreement) {
        tokio::spawn(async move {
            while let Some(heard) = self.under_way.next().await {
                self.hear(heard);
            }
            for (seat, _) in self.tally.against(&agreement) {
                let Some(node) = self.seats.get(seat) else { continue };
                node.failed((self.clock)());
                crate::rpc_lied(&node.label);
                tracing::warn!(
                    endpoint = node.label,
                    block = agreement.block.number,
                    "endpoint contradicts the quorum"
                );
            }
        });
    }
}

/// Notes how an endpoint did.
fn note<T>(node: &Node, told: &Result<T, Failure>, clock: &Clock) {
    match told {
        Ok(_) => node.succeeded(),
        Err(failure) if failure.is_endpoints_fault() => node.failed(clock()),
        Err(_) => {}
    }
}

fn height(block: &Block) -> String {
    format!("block {} is {}", block.number, block.hash)
}

fn statement(block: &Block, word: &impl fmt::Display) -> String {
    format!("{}: {word}", height(block))
}

fn causes(failures: &[(Arc<Node>, Failure)]) -> Vec<(String, String)> {
    failures.iter().map(|(node, failure)| (node.label.clone(), failure.to_string())).collect()
}
