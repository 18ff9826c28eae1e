//! [`ProvenChain`]: readings that this process computes from proven state.
//!
//! Three parts stand behind a reading, and only the first has to be believed: a [`HeaderSource`] says which header is the
//! chain's, any endpoint proves the state under it, and endpoints gossip about what will be read and whether the newest
//! block says something else (which may only downgrade).

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use alloy_json_rpc::{ErrorPayload, RequestPacket, Response, ResponsePacket, ResponsePayload, SerializedRequest};
use alloy_primitives::{B256, Bytes, TxKind};
use alloy_rpc_client::RpcClient;
use alloy_rpc_types_eth::{AccessList, BlockId, TransactionRequest};
use alloy_transport::{TransportError, TransportErrorKind, TransportFut};
use async_trait::async_trait;
use futures_util::future::{OptionFuture, join, try_join};
use futures_util::stream::FuturesUnordered;
use moka::future::Cache;
use serde_json::value::RawValue;
use tokio::sync::Mutex;
use tokio::task::{JoinError, JoinHandle};
use tower::Service;

use super::Chain;
use super::endpoint::{Failure, Gossip, Node, by_hash, decode_at};
use super::hedge::{self, Next};
use super::prover::{Prover, ProverError, Session};
use super::relay::Relay;
use super::rpc::{Asked, RpcChain};
use super::tally::{Standing, Tally};
use super::transport::TransportFault;
use clresolve_core::cause::ResolverFault;
use clresolve_core::name::EnsName;
use clresolve_core::reading::{Answer, Block, BlockSelector, ChainError, Grade, Holding, Proof, Reading};
use clresolve_core::records::{Key, Record};
use clresolve_state::contracts::{Findings, Resolved, decode_texts};
use clresolve_state::{About, CALL_GAS, Call, HashedHeader, Outcome, Recording, answer_in};

/// Headers that are remembered for questions about an earlier reading's block.
const KNOWN_HEADERS: u64 = 64;

/// Says which block is the chain's. This is all that a state proof leaves to trust: [`RpcChain`] asks a quorum, a
/// consensus light client can take its place.
#[async_trait]
pub trait HeaderSource: Send + Sync {
    /// The header of the block that `selector` means.
    async fn head(&self, selector: BlockSelector) -> Result<Head, ChainError>;
}

/// A header and who vouches for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The header.
    pub header: HashedHeader,
    /// Its block.
    pub block: Block,
    /// How many were asked.
    pub asked: u32,
    /// How many say so.
    pub agreed: u32,
    /// Whether those who say so are all the operator's own.
    pub own: bool,
    /// Labels of those who say so.
    pub endpoints: Vec<String>,
    /// Labels of those who say otherwise, with what they say.
    pub contradicted_by: Vec<(String, String)>,
    /// Labels of those who gave nothing usable, with the cause.
    pub failed_endpoints: Vec<(String, String)>,
}

/// A [`Chain`] that believes a header and computes the rest.
#[derive(Clone)]
pub struct ProvenChain {
    endpoints: Arc<RpcChain>,
    headers: Arc<dyn HeaderSource>,
    prover: Arc<Prover>,
    known: Cache<B256, Arc<HashedHeader>>,
    /// Where what proves a reading is taken down, if it is.
    recording: Option<Arc<Recording>>,
}

impl ProvenChain {
    /// Believes the header that the endpoints agree on.
    pub fn new(endpoints: RpcChain) -> Self {
        let endpoints = Arc::new(endpoints);
        let headers: Arc<dyn HeaderSource> = Arc::clone(&endpoints) as _;
        Self::with_headers(endpoints, headers)
    }

    /// Believes `headers`; the endpoints only prove, and gossip.
    pub fn with_headers(endpoints: Arc<RpcChain>, headers: Arc<dyn HeaderSource>) -> Self {
        let prover = Arc::new(Prover::new(endpoints.chain_id));
        Self { endpoints, headers, prover, known: Cache::new(KNOWN_HEADERS), recording: None }
    }

    /// What endpoints say of the newest block, and what the call is likely to read: the first hint, and as many words as
    /// must agree. Those that are still under way then may yet be heard.
    async fn gossip(&self, asked: &Arc<Asked>, selector: BlockSelector) -> Rumours {
        let mut rumours = Rumours {
            question: (Arc::clone(asked), selector),
            waiting: self.endpoints.in_order().into_iter(),
            patience: self.endpoints.patience(),
            asked: Vec::new(),
            hint: None,
            latest: Vec::new(),
            heard: 0,
            under_way: FuturesUnordered::new(),
        };
        while rumours.heard < self.endpoints.agree() {
            let width = self.endpoints.width().saturating_sub(rumours.heard + rumours.under_way.len());
            for _ in 0..width {
                rumours.ask_next();
            }
            if !rumours.hear_next().await {
                break;
            }
        }
        rumours
    }

    /// Asks what the question about the owner will read, at the same time as the records are computed, so that it need
    /// not be asked for then. Who the owner is, is only told here; if that is wrong, nobody asks about him.
    fn foresee_owner(&self, rumours: &Rumours, head: &Head) {
        let Some(owner) = rumours.owner() else { return };
        let call = self.call_of(&Asked::address(&owner, &self.endpoints.contracts));
        let (relay, prover, at) = (self.relay(&head.endpoints), Arc::clone(&self.prover), head.header.id());
        tokio::spawn(async move { prover.foresee(&relay, at, &call).await });
    }

    fn call_of(&self, asked: &Asked) -> Call {
        let data = asked.call.input.input().cloned().unwrap_or_default();
        Call { to: self.endpoints.contracts.multicall3, data, gas: CALL_GAS }
    }

    /// The endpoints as a source of state; those with these labels come first.
    fn relay(&self, first: &[String]) -> Relay {
        let (firsts, others): (Vec<_>, Vec<_>) =
            self.endpoints.in_order().into_iter().partition(|node| first.contains(&node.label));
        let nodes = firsts.into_iter().chain(others).collect();
        Relay::new(nodes, self.endpoints.hedge_after, Arc::clone(&self.endpoints.clock))
    }

    /// Computes under `header`, over what the endpoints prove; those with these labels come first.
    fn computer(&self, header: Arc<HashedHeader>, first: &[String]) -> Computer {
        let at = header.id();
        let session = if self.recording.is_some() { Session::keeping(header) } else { Session::new(header) };
        let progress = Mutex::new(Progress { session, calls: Vec::new(), lies: Vec::new() });
        Computer(Arc::new(Work { prover: Arc::clone(&self.prover), at, relay: self.relay(first), progress }))
    }

    /// What the contracts say about the subject in the computer's block.
    async fn findings(
        &self,
        computer: &Computer,
        asked: &Asked,
        block: &Block,
        hint: Option<AccessList>,
    ) -> Result<Findings, ChainError> {
        let data = match computer.call(&self.call_of(asked), hint).await? {
            Outcome::Returned(data) => data,
            Outcome::Reverted(_) => return Err(ChainError::Resolver(ResolverFault::CallReverted)),
            Outcome::Halted(cause) => return Err(ChainError::Resolver(ResolverFault::Halted(cause))),
        };
        let failed = |failure: Failure| failure.into_error("proven state", &block.number.to_string(), 0);
        decode_at(&asked.subject, block, &data).map_err(failed)
    }

    /// Takes down what the computer went by, where that is wanted.
    async fn record(&self, about: About, computer: &Computer) {
        let Some(recording) = &self.recording else { return };
        let progress = computer.0.progress.lock().await;
        if let Some(kept) = progress.session.kept() {
            let look_ups = progress.calls.iter().skip(1).filter_map(|call| answer_in(call)).collect();
            recording.add(about, self.endpoints.contracts, kept, look_ups);
        }
    }

    /// The header of a block that somebody vouched for earlier.
    async fn header_of(&self, block: &Block) -> Result<Arc<HashedHeader>, ChainError> {
        if let Some(header) = self.known.get(&block.hash).await {
            return Ok(header);
        }
        let mut failures = Vec::new();
        for node in self.endpoints.in_order() {
            match node.header_of(block.hash).await {
                Ok(header) => return Ok(Arc::new(header)),
                Err(failure) => failures.push((node.label.clone(), failure.to_string())),
            }
        }
        Err(ChainError::Unreachable(failures))
    }

    /// What the newest block says about the name, where that was asked for. It is told, not proven: enough operators
    /// must say what was computed, or the name is held back.
    async fn newest(
        &self,
        mut rumours: Rumours,
        asked: &Asked,
        head: &Head,
        pinned: &Findings,
    ) -> Result<Answer, ChainError> {
        let mut tally = Tally::new(self.endpoints.agree());
        let mut counted = 0;
        let seat = loop {
            for (seat, (node, latest)) in rumours.latest.iter().enumerate().skip(counted) {
                let latest = latest.clone().and_then(|latest| not_before(latest, &head.block));
                if !head.excludes(&node.label) {
                    tally.hear(seat, &node.operator, head.block, pinned.clone(), Some(latest));
                }
            }
            counted = rumours.latest.len();
            let standing = tally.standing();
            if let Standing::Settled(agreement) = &standing {
                break agreement.latest;
            }
            // While others can be asked, one that objects and one that fails withhold no name.
            if !rumours.hear_next().await && !rumours.ask_next() {
                break match standing {
                    Standing::Settled(agreement) | Standing::Provisional(agreement, _) => agreement.latest,
                    Standing::Open { .. } => tally.objection(pinned),
                };
            }
        };
        let word = seat.and_then(|seat| Some((rumours.latest.get(seat)?, tally.latest_word(seat)?)));
        let Some(((node, _), word)) = word else {
            let few = "too few endpoints say what the newest block holds".to_owned();
            return Err(ChainError::Unreachable(vec![("newest block".to_owned(), few)]));
        };
        let failed = |failure: Failure| failure.into_error(&node.label, "latest", self.endpoints.chain_id);
        let findings = word.clone().map_err(failed)?;
        let counts = |node: &Arc<Node>| !head.excludes(&node.label);
        let voices = rumours.asked.into_iter().filter(counts).collect();
        let voices = self.endpoints.chorus(voices, rumours.waiting.filter(counts).collect());
        self.endpoints.answer(&voices, asked, &findings, BlockId::latest()).await
    }
}

impl Head {
    /// Whether that endpoint's word counts for nothing at this block.
    fn excludes(&self, label: &str) -> bool {
        self.contradicted_by.iter().chain(&self.failed_endpoints).any(|(other, _)| other == label)
    }
}

#[async_trait]
impl Chain for ProvenChain {
    async fn read_keys(
        &self,
        name: &EnsName,
        selector: BlockSelector,
        keys: &'static [Key],
    ) -> Result<Reading, ChainError> {
        let asked = Arc::new(Asked::texts(name, &self.endpoints.contracts, keys));
        let gossip = async { Ok(self.gossip(&asked, selector).await) };
        let (head, mut rumours) = try_join(self.headers.head(selector), gossip).await?;
        let header = Arc::new(head.header.clone());
        self.known.insert(head.block.hash, Arc::clone(&header)).await;
        self.foresee_owner(&rumours, &head);
        let computer = self.computer(header, &head.endpoints);
        // A hint that is missing costs runs, not an exchange of its own: it would not have come here either.
        let hint = rumours.hint.take().unwrap_or_default();
        let pinned = self.findings(&computer, &asked, &head.block, Some(hint)).await?;
        let voices = computer.client();
        let asks_latest = matches!(selector, BlockSelector::Finalized | BlockSelector::Safe);
        let latest = OptionFuture::from(asks_latest.then(|| self.newest(rumours, &asked, &head, &pinned)));
        let answer = self.endpoints.answer(&voices, &asked, &pinned, by_hash(&head.block));
        let (answer, latest) = join(answer, latest).await;
        let (lies, failures) = computer.complaints().await;
        self.record(About::Name, &computer).await;
        Ok(Reading {
            block: head.block,
            answer: answer?,
            latest,
            holder: pinned.holder,
            expiry: pinned.expiry,
            proof: Proof { grade: Grade::StateProof, asked: head.asked, agreed: head.agreed, own: head.own },
            endpoints: head.endpoints,
            contradicted_by: head.contradicted_by.into_iter().chain(lies).collect(),
            failed_endpoints: head.failed_endpoints.into_iter().chain(failures).collect(),
        })
    }

    async fn holding(&self, owner: &EnsName, block: &Block, endpoints: &[String]) -> Result<Holding, ChainError> {
        let asked = Asked::address(owner, &self.endpoints.contracts);
        let computer = self.computer(self.header_of(block).await?, endpoints);
        let findings = self.findings(&computer, &asked, block, None).await?;
        let holding = self.endpoints.held(&computer.client(), &asked, findings, block).await?;
        self.record(About::Owner, &computer).await;
        Ok(holding)
    }

    async fn texts(
        &self,
        name: &EnsName,
        block: &Block,
        endpoints: &[String],
        keys: &[String],
    ) -> Result<Vec<Record>, ChainError> {
        self.endpoints.texts(name, block, endpoints, keys).await
    }

    fn recording(&self) -> Option<(Arc<dyn Chain>, Arc<Recording>)> {
        let recording = Arc::new(Recording::default());
        let chain = Self { recording: Some(Arc::clone(&recording)), ..self.clone() };
        Some((Arc::new(chain), recording))
    }

    async fn header(&self, block: &Block, _endpoints: &[String]) -> Option<Bytes> {
        Some(self.header_of(block).await.ok()?.rlp())
    }
}

/// What endpoints tell without proof.
struct Rumours {
    /// What they are asked.
    question: (Arc<Asked>, BlockSelector),
    /// Who may be asked yet.
    waiting: std::vec::IntoIter<Arc<Node>>,
    /// How long nobody may tell anything until one more is asked.
    patience: Option<Duration>,
    asked: Vec<Arc<Node>>,
    hint: Option<AccessList>,
    latest: Vec<(Arc<Node>, Result<Findings, Failure>)>,
    /// Endpoints that told something.
    heard: usize,
    /// A request is a task of its own, so that it goes on while the answer is computed.
    under_way: FuturesUnordered<JoinHandle<Told>>,
}

/// What an endpoint told.
type Told = (Arc<Node>, Result<Gossip, Failure>);

impl Rumours {
    /// Asks the next endpoint; says whether there is one.
    fn ask_next(&mut self) -> bool {
        let Some(node) = self.waiting.next() else { return false };
        self.asked.push(Arc::clone(&node));
        let (asked, selector) = (Arc::clone(&self.question.0), self.question.1);
        self.under_way.push(tokio::spawn(async move {
            let gossip = node.gossip(&asked.subject, &asked.call, selector).await;
            (node, gossip)
        }));
        true
    }

    /// Waits for the next endpoint, and asks others beside those that stall; says whether there was one to wait for.
    async fn hear_next(&mut self) -> bool {
        loop {
            let patience = self.patience.filter(|_| !self.waiting.as_slice().is_empty());
            match hedge::next(&mut self.under_way, patience).await {
                Next::Nobody => return false,
                Next::Stall => _ = self.ask_next(),
                Next::Answer(told) => {
                    self.hear(told);
                    return true;
                }
            }
        }
    }

    fn hear(&mut self, told: Result<Told, JoinError>) {
        if let Ok((node, Ok(Gossip { touched, latest }))) = told {
            self.heard += 1;
            self.hint = self.hint.take().or(touched);
            self.latest.extend(latest.map(|latest| (node, latest)));
        }
    }

    /// Who the owner is, as somebody tells of the newest block.
    fn owner(&self) -> Option<EnsName> {
        let told = self.latest.iter().find_map(|(_, latest)| match &latest.as_ref().ok()?.resolved {
            Resolved::Returned(data) => decode_texts(data, &Key::ALL).ok(),
            _ => None,
        });
        EnsName::parse(told?.1.text(Key::Owner)?.trim()).ok()
    }
}

/// The newest block cannot be older than the pinned one.
fn not_before(latest: Findings, block: &Block) -> Result<Findings, Failure> {
    if latest.block < block.number {
        return Err(Failure::Unusable("the newest block is older than the block that was read".to_owned()));
    }
    Ok(latest)
}

/// Computes calls in one block: an alloy transport that answers `eth_call` from proven state and sends nothing else on.
#[derive(Clone)]
struct Computer(Arc<Work>);

struct Work {
    prover: Arc<Prover>,
    /// The block.
    at: BlockId,
    relay: Relay,
    progress: Mutex<Progress>,
}

struct Progress {
    session: Session,
    /// The data of the calls of a look-up: the question, then what gateways answered.
    calls: Vec<Bytes>,
    /// Labels of those whose proofs did not hold, with the lies.
    lies: Vec<(String, String)>,
}

impl Computer {
    fn client(&self) -> RpcClient {
        RpcClient::new(self.clone(), true)
    }

    /// What the call does, over what an endpoint proves whose proofs hold.
    async fn call(&self, call: &Call, hint: Option<AccessList>) -> Result<Outcome, ChainError> {
        let Work { prover, relay, .. } = &*self.0;
        let mut progress = self.0.progress.lock().await;
        let Progress { session, lies, .. } = &mut *progress;
        loop {
            let error = match prover.call(relay, session, call, hint.clone()).await {
                Ok(outcome) => return Ok(outcome),
                Err(error) => error,
            };
            match error {
                ProverError::Endpoint(_) => break,
                ProverError::Proof(error) => {
                    if let Some(limit) = error.local_limit() {
                        return Err(ChainError::LocalLimit(limit));
                    }
                    let Some(liar) = relay.put_out_latest() else { break };
                    tracing::warn!(endpoint = liar.label, "an endpoint's proof is refused: {error}");
                    crate::rpc_lied(&liar.label);
                    lies.push((liar.label.clone(), error.to_string()));
                }
            }
        }
        let all = lies.iter().cloned().chain(relay.failures()).collect();
        Err(if lies.is_empty() { ChainError::Unreachable(all) } else { ChainError::Unproven(all) })
    }

    /// Labels of those whose proofs did not hold, and of those who gave none, with the causes.
    async fn complaints(&self) -> (Vec<(String, String)>, Vec<(String, String)>) {
        (self.0.progress.lock().await.lies.clone(), self.0.relay.failures())
    }

    async fn answer(&self, request: SerializedRequest) -> Result<Response, TransportError> {
        let call = self.asked(&request).ok_or_else(|| TransportErrorKind::custom_str("no call in the proven block"))?;
        self.0.progress.lock().await.calls.push(call.data.clone());
        let failure = |code, message: String, data| {
            ResponsePayload::Failure(ErrorPayload { code, message: message.into(), data })
        };
        let payload = match self.call(&call, None).await {
            Ok(Outcome::Returned(data)) => ResponsePayload::Success(json(&data)?),
            Ok(Outcome::Reverted(data)) => failure(3, "execution reverted".to_owned(), Some(json(&data)?)),
            Ok(Outcome::Halted(cause)) => failure(-32000, cause, None),
            Err(ChainError::LocalLimit(limit)) => {
                return Err(TransportErrorKind::custom(TransportFault::LocalLimit(limit)));
            }
            Err(ChainError::Unproven(causes)) => {
                return Err(TransportErrorKind::custom(TransportFault::Unproven(causes)));
            }
            Err(error) => return Err(TransportErrorKind::custom_str(&error.to_string())),
        };
        Ok(Response { id: request.id().clone(), payload })
    }

    /// The call that a request makes, if it is one in this block.
    fn asked(&self, request: &SerializedRequest) -> Option<Call> {
        if request.method() != "eth_call" {
            return None;
        }
        let parameters: Vec<serde_json::Value> = serde_json::from_str(request.params()?.get()).ok()?;
        let at: BlockId = serde_json::from_value(parameters.get(1)?.clone()).ok()?;
        let call: TransactionRequest = serde_json::from_value(parameters.first()?.clone()).ok()?;
        let Some(TxKind::Call(to)) = call.to else { return None };
        let gas = call.gas.unwrap_or(CALL_GAS);
        (at == self.0.at).then(|| Call { to, data: call.input.into_input().unwrap_or_default(), gas })
    }
}

impl Service<RequestPacket> for Computer {
    type Response = ResponsePacket;
    type Error = TransportError;
    type Future = TransportFut<'static>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, packet: RequestPacket) -> Self::Future {
        let computer = self.clone();
        Box::pin(async move {
            match packet {
                RequestPacket::Single(request) => computer.answer(request).await.map(ResponsePacket::Single),
                RequestPacket::Batch(_) => Err(TransportErrorKind::custom_str("a batch is not computed")),
            }
        })
    }
}

fn json(data: &Bytes) -> Result<Box<RawValue>, TransportError> {
    serde_json::value::to_raw_value(data).map_err(TransportError::ser_err)
}
