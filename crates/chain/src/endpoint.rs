//! One RPC endpoint: what it says about a name in one exchange, checked as far as a single answer can be.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use alloy_json_rpc::RpcError;
use alloy_primitives::{Address, B256, Bytes, U64};
use alloy_rpc_client::{BatchRequest, NoParams, RpcClient, Waiter};
use alloy_rpc_types_eth::{
    AccessList, AccessListResult, BlockId, BlockNumberOrTag, Header, RpcBlockHash, TransactionInput, TransactionRequest,
};
use alloy_transport::{TransportError, TransportErrorKind};
use jiff::Timestamp;
use serde::Deserialize;
use url::{Host, Url};

use super::transport::{EndpointTransport, HttpPost, PostError, TransportFault};
use clresolve_core::cause::{LocalLimit, ResolverFault};
use clresolve_core::reading::{Block, BlockSelector, ChainError};
use clresolve_core::text::excerpt;
use clresolve_state::CALL_GAS;
use clresolve_state::HashedHeader;
use clresolve_state::contracts::{Findings, Garbled, Subject};

/// How long an endpoint that failed is asked last, in milliseconds.
const REST_MS: i64 = 30_000;

/// Shortest part of a URL that is taken for a key, and cut out of what an endpoint says.
const MIN_KEY_BYTES: usize = 8;

/// An RPC endpoint of the configuration.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The name under which it appears in verdicts and logs.
    pub label: String,
    /// Where it is asked. It may hold a key and is shown nowhere.
    pub url: Url,
    /// Whether the operator runs it himself.
    pub own: bool,
    /// Whose it is. Endpoints of one operator count once in a quorum.
    pub operator: String,
}

impl Endpoint {
    /// Whether the host is a name of the public DNS, to all appearances: such an endpoint serves no test chain that
    /// borrows the id of a real one.
    fn is_public(&self) -> bool {
        matches!(self.url.host(), Some(Host::Domain(name)) if name.trim_end_matches('.').contains('.'))
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("label", &self.label)
            .field("own", &self.own)
            .field("operator", &self.operator)
            .finish_non_exhaustive()
    }
}

/// What every endpoint of a chain has in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChainIdentity {
    /// EIP-155 chain id.
    pub(super) id: u64,
    /// Hash of block 0, where it is known.
    pub(super) genesis: Option<B256>,
}

/// Hash of block 0 of Ethereum mainnet.
const MAINNET_GENESIS: B256 =
    alloy_primitives::b256!("d4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3");

/// Chain id of Ethereum mainnet.
const MAINNET: u64 = 1;

/// An endpoint with its connection and its health.
pub(super) struct Node {
    pub(super) label: String,
    pub(super) own: bool,
    pub(super) operator: String,
    pub(super) transport: EndpointTransport,
    pub(super) rpc: RpcClient,
    url: Url,
    is_public: bool,
    /// Set once it has shown that it serves the right chain.
    is_identified: AtomicBool,
    /// When it last failed, in milliseconds since 1970; [`i64::MIN`] for never.
    failed_at: AtomicI64,
}

/// What an endpoint says about the pinned block and about the newest one.
pub(super) struct Observation<W> {
    pub(super) block: Block,
    pub(super) pinned: W,
    /// `None` where the newest block was not asked for.
    pub(super) latest: Option<Result<W, Failure>>,
    /// Hash of its block 0, where it was asked for and is told.
    pub(super) genesis: Option<B256>,
}

/// What an endpoint says about a block that others have finalized.
pub(super) enum Attestation<W> {
    /// It has it too.
    Same(W),
    /// It has this one at that height.
    Instead(Block),
}

/// Why an endpoint gave no observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// No answer, or one that cannot be used.
    Unusable(String),
    /// It serves the chain with this id.
    WrongChain(u64),
    /// Its chain begins with this block.
    WrongGenesis(B256),
    /// It does not have the block.
    NoBlock(String),
    /// The call was made, and came to nothing: too much gas, or time. The resolver's doing, as a rule.
    CallFailed(ResolverFault),
    /// A bound of this program was met.
    LocalLimit(LocalLimit),
    /// Several endpoints were asked the same, and too few of them said the same; what each said, by label.
    Divided(Vec<(String, String)>),
    /// No endpoint gave a proof that holds; what became of each, by label.
    Unproven(Vec<(String, String)>),
}

impl Node {
    pub(super) fn new(endpoint: Endpoint, http: Arc<dyn HttpPost>, timeout: Duration) -> Self {
        let transport = EndpointTransport::new(http, endpoint.url.clone(), endpoint.label.clone(), timeout);
        Self {
            is_public: endpoint.is_public(),
            label: endpoint.label,
            own: endpoint.own,
            operator: endpoint.operator,
            rpc: RpcClient::new(transport.clone(), false),
            transport,
            url: endpoint.url,
            is_identified: AtomicBool::new(false),
            failed_at: AtomicI64::new(i64::MIN),
        }
    }

    /// Asks for the header, the subject there and the subject at `latest`, in one exchange; the first time also for
    /// what identifies the chain.
    ///
    /// # Errors
    /// [`Failure`]; a failure at `latest` alone is part of the observation.
    pub(super) async fn observe(
        &self,
        subject: &Subject,
        call: &TransactionRequest,
        selector: BlockSelector,
        identity: ChainIdentity,
    ) -> Result<Observation<Findings>, Failure> {
        let tag = tag(selector);
        let mut batch = self.rpc.new_batch();
        let chain = self.ask_chain(&mut batch)?;
        let header =
            batch.add_call::<_, Option<Header>>("eth_getBlockByNumber", &(tag, false)).map_err(|e| self.failure(&e))?;
        let pinned =
            batch.add_call::<_, Bytes>("eth_call", &(call, BlockId::from(tag))).map_err(|e| self.failure(&e))?;
        let latest = is_older_than_latest(selector)
            .then(|| batch.add_call::<_, Bytes>("eth_call", &(call, BlockId::latest())))
            .transpose()
            .map_err(|e| self.failure(&e))?;
        let introduction = self.ask_first(&mut batch, chain)?;
        batch.await.map_err(|e| self.failure(&e))?;

        let genesis = self.identify(introduction, identity).await?;
        let header = header.await.map_err(|e| self.failure(&e))?;
        let block = checked_block(header, selector)?;
        let mut findings = self.findings(subject, pinned.await)?;
        if findings.block != block.number {
            findings = self.observe_at(subject, call, &block).await?;
        }
        let latest = match latest {
            Some(answer) => Some(self.findings(subject, answer.await).and_then(|latest| not_before(latest, &block))),
            None => None,
        };
        self.is_identified.store(true, Ordering::Relaxed);
        Ok(Observation { block, pinned: findings, latest, genesis })
    }

    /// Asks for the header alone.
    ///
    /// # Errors
    /// [`Failure`].
    pub(super) async fn head(
        &self,
        selector: BlockSelector,
        identity: ChainIdentity,
    ) -> Result<Observation<HashedHeader>, Failure> {
        let mut batch = self.rpc.new_batch();
        let chain = self.ask_chain(&mut batch)?;
        let header = batch
            .add_call::<_, Option<Header>>("eth_getBlockByNumber", &(tag(selector), false))
            .map_err(|e| self.failure(&e))?;
        let introduction = self.ask_first(&mut batch, chain)?;
        batch.await.map_err(|e| self.failure(&e))?;
        let genesis = self.identify(introduction, identity).await?;
        let header = checked_header(header.await.map_err(|e| self.failure(&e))?, selector)?;
        self.is_identified.store(true, Ordering::Relaxed);
        Ok(Observation { block: block_of(&header)?, pinned: header, latest: None, genesis })
    }

    /// Asks which block it has at that height.
    ///
    /// # Errors
    /// [`Failure`].
    pub(super) async fn attest_head(&self, block: &Block) -> Result<Attestation<HashedHeader>, Failure> {
        let number = BlockSelector::Number(block.number);
        let header = self.rpc.request::<_, Option<Header>>("eth_getBlockByNumber", (tag(number), false)).await;
        let header = checked_header(header.map_err(|e| self.failure(&e))?, number)?;
        let own = block_of(&header)?;
        Ok(if own == *block { Attestation::Same(header) } else { Attestation::Instead(own) })
    }

    /// Asks for the header with that hash, which anybody may give.
    ///
    /// # Errors
    /// [`Failure`].
    pub(super) async fn header_of(&self, hash: B256) -> Result<HashedHeader, Failure> {
        let header = self.rpc.request::<_, Option<Header>>("eth_getBlockByHash", (hash, false)).await;
        let header = header.map_err(|e| self.failure(&e))?;
        let header = header.ok_or_else(|| Failure::NoBlock("the endpoint knows no such block".to_owned()))?;
        HashedHeader::checked(header.inner, hash).map_err(|error| Failure::Unusable(error.to_string()))
    }

    /// Asks, in one exchange, what the call is likely to read and what it gives at the newest block. Nothing of it is
    /// proven.
    ///
    /// # Errors
    /// [`Failure`], where nothing at all came back.
    pub(super) async fn gossip(
        &self,
        subject: &Subject,
        call: &TransactionRequest,
        selector: BlockSelector,
    ) -> Result<Gossip, Failure> {
        let mut batch = self.rpc.new_batch();
        let touched = batch
            .add_call::<_, AccessListResult>("eth_createAccessList", &(call, BlockId::from(tag(selector))))
            .map_err(|e| self.failure(&e))?;
        let latest = is_older_than_latest(selector)
            .then(|| batch.add_call::<_, Bytes>("eth_call", &(call, BlockId::latest())))
            .transpose()
            .map_err(|e| self.failure(&e))?;
        batch.await.map_err(|e| self.failure(&e))?;
        let touched = touched.await.ok().map(|result| result.access_list);
        let latest = match latest {
            Some(answer) => Some(self.findings(subject, answer.await)),
            None => None,
        };
        Ok(Gossip { touched, latest })
    }

    /// Adds to a batch the question for the chain's id, where that is not known yet.
    fn ask_chain(&self, batch: &mut BatchRequest<'_>) -> Result<Option<Waiter<U64>>, Failure> {
        let no_params: NoParams = [];
        let is_new = !self.is_identified.load(Ordering::Relaxed);
        let chain = is_new.then(|| batch.add_call::<_, U64>("eth_chainId", &no_params)).transpose();
        chain.map_err(|e| self.failure(&e))
    }

    /// Adds to a batch the question for block 0, where the chain's id is asked for too.
    fn ask_first(&self, batch: &mut BatchRequest<'_>, chain: Option<Waiter<U64>>) -> Result<Introduction, Failure> {
        let Some(chain) = chain else { return Ok(None) };
        let first = (BlockNumberOrTag::Number(0), false);
        let first = batch.add_call::<_, Option<First>>("eth_getBlockByNumber", &first).map_err(|e| self.failure(&e))?;
        Ok(Some((chain, first)))
    }

    /// Compares what identifies the chain; gives the hash of its block 0 where it was asked for and is told.
    async fn identify(&self, introduction: Introduction, identity: ChainIdentity) -> Result<Option<B256>, Failure> {
        let Some((chain, first)) = introduction else { return Ok(None) };
        let observed = chain.await.map_err(|e| self.failure(&e))?.to::<u64>();
        if observed != identity.id {
            return Err(Failure::WrongChain(observed));
        }
        // A node that has dropped its oldest blocks says nothing; the hash of a newer block still tells the chain.
        let genesis = first.await.ok().flatten().map(|first| first.hash);
        self.compare_genesis(genesis, identity)?;
        Ok(genesis)
    }

    /// What is configured or remembered binds every endpoint; what is known of mainnet, those that seem public.
    fn compare_genesis(&self, observed: Option<B256>, identity: ChainIdentity) -> Result<(), Failure> {
        let known = (identity.id == MAINNET && self.is_public).then_some(MAINNET_GENESIS);
        match (observed, identity.genesis.or(known)) {
            (Some(observed), Some(expected)) if observed != expected => Err(Failure::WrongGenesis(observed)),
            _ => Ok(()),
        }
    }

    /// Asks about the subject at the very block, by its hash.
    async fn observe_at(
        &self,
        subject: &Subject,
        call: &TransactionRequest,
        block: &Block,
    ) -> Result<Findings, Failure> {
        let answer = self.rpc.request::<_, Bytes>("eth_call", (call, by_hash(block))).await;
        self.findings_at(subject, block, answer)
    }

    /// Asks whether it has that block at its height, and about the subject there, in one exchange.
    ///
    /// # Errors
    /// [`Failure`].
    pub(super) async fn attest(
        &self,
        subject: &Subject,
        call: &TransactionRequest,
        block: &Block,
    ) -> Result<Attestation<Findings>, Failure> {
        let mut batch = self.rpc.new_batch();
        let number = BlockNumberOrTag::Number(block.number);
        let header = batch
            .add_call::<_, Option<Header>>("eth_getBlockByNumber", &(number, false))
            .map_err(|e| self.failure(&e))?;
        let answer = batch.add_call::<_, Bytes>("eth_call", &(call, by_hash(block))).map_err(|e| self.failure(&e))?;
        batch.await.map_err(|e| self.failure(&e))?;
        let header = header.await.map_err(|e| self.failure(&e))?;
        let own = checked_block(header, BlockSelector::Number(block.number))?;
        if own != *block {
            return Ok(Attestation::Instead(own));
        }
        self.findings_at(subject, block, answer.await).map(Attestation::Same)
    }

    fn findings(&self, subject: &Subject, answer: Result<Bytes, TransportError>) -> Result<Findings, Failure> {
        decode(subject, &answer.map_err(|e| self.failure(&e))?)
    }

    fn findings_at(
        &self,
        subject: &Subject,
        block: &Block,
        answer: Result<Bytes, TransportError>,
    ) -> Result<Findings, Failure> {
        decode_at(subject, block, &answer.map_err(|e| self.failure(&e))?)
    }

    pub(super) fn succeeded(&self) {
        self.failed_at.store(i64::MIN, Ordering::Relaxed);
    }

    pub(super) fn failed(&self, now: Timestamp) {
        self.failed_at.store(now.as_millisecond(), Ordering::Relaxed);
    }

    /// Whether it failed a short time ago.
    pub(super) fn rests(&self, now: Timestamp) -> bool {
        let failed_at = self.failed_at.load(Ordering::Relaxed);
        (0..REST_MS).contains(&now.as_millisecond().saturating_sub(failed_at))
    }

    /// What an error of this endpoint means.
    pub(super) fn failure(&self, error: &TransportError) -> Failure {
        Failure::of(error, |text| self.redact(text))
    }

    /// An endpoint's words without what may be a key of its URL, and cut short.
    pub(super) fn redact(&self, text: &str) -> String {
        let segments = self.url.path_segments().into_iter().flatten();
        let query = self.url.query().unwrap_or_default().split(['&', '=']);
        let user = [self.url.username(), self.url.password().unwrap_or_default()];
        let keys = segments.chain(query).chain(user).filter(|part| part.len() >= MIN_KEY_BYTES);
        excerpt(&keys.fold(text.to_owned(), |text, key| text.replace(key, "[key]")))
    }
}

/// What Multicall3 returned.
fn decode(subject: &Subject, data: &[u8]) -> Result<Findings, Failure> {
    subject.decode(data).map_err(|garbled: Garbled| Failure::Unusable(garbled.to_string()))
}

/// What Multicall3 returned in a call at the very block.
///
/// # Errors
/// [`Failure::Unusable`].
pub(super) fn decode_at(subject: &Subject, block: &Block, data: &[u8]) -> Result<Findings, Failure> {
    let findings = decode(subject, data)?;
    if findings.block != block.number {
        return Err(Failure::Unusable("a call by block hash ran in another block".to_owned()));
    }
    Ok(findings)
}

/// What an endpoint tells without proof.
pub(super) struct Gossip {
    /// What the call is likely to read.
    pub(super) touched: Option<AccessList>,
    /// What it gives at the newest block. `None` where that was not asked for.
    pub(super) latest: Option<Result<Findings, Failure>>,
}

/// The answers to come that identify a chain: its id and its block 0.
type Introduction = Option<(Waiter<U64>, Waiter<Option<First>>)>;

/// What is read of block 0.
#[derive(Debug, Deserialize)]
struct First {
    hash: B256,
}

impl Failure {
    /// What an error means; `redact` takes keys out of foreign words.
    pub(super) fn of(error: &TransportError, redact: impl Fn(&str) -> String) -> Self {
        match error {
            RpcError::ErrorResp(payload) => {
                let message = redact(&payload.message);
                let said = payload.message.to_ascii_lowercase();
                if MISSING_BLOCK.iter().any(|words| said.contains(words)) {
                    Self::NoBlock(message)
                } else if payload.code == EXECUTION_REVERTED || FAILED_CALL.iter().any(|words| said.contains(words)) {
                    Self::CallFailed(ResolverFault::Halted(message))
                } else {
                    Self::Unusable(format!("error {}: {message}", payload.code))
                }
            }
            RpcError::Transport(TransportErrorKind::Custom(cause)) => match cause.downcast_ref() {
                Some(TransportFault::Post(PostError::TooLarge(cap))) => Self::LocalLimit(LocalLimit::Reply(*cap)),
                Some(TransportFault::LocalLimit(limit)) => Self::LocalLimit(limit.clone()),
                Some(TransportFault::Divided(said)) => Self::Divided(said.clone()),
                Some(TransportFault::Unproven(causes)) => Self::Unproven(causes.clone()),
                _ => Self::Unusable(redact(&cause.to_string())),
            },
            RpcError::DeserError { err, .. } => {
                Self::Unusable(format!("the reply is malformed: {}", excerpt(&err.to_string())))
            }
            other => Self::Unusable(redact(&other.to_string())),
        }
    }

    /// Whether the endpoint itself, not what it was asked for, is at fault.
    pub(super) const fn is_endpoints_fault(&self) -> bool {
        matches!(self, Self::Unusable(_) | Self::WrongChain(_) | Self::WrongGenesis(_))
    }

    /// The failure as one endpoint's word on `block`.
    pub(super) fn into_error(self, label: &str, block: &str, expected: u64) -> ChainError {
        match self {
            Self::Unusable(cause) => ChainError::Unreachable(vec![(label.to_owned(), cause)]),
            Self::WrongChain(observed) => ChainError::WrongChain { endpoint: label.to_owned(), expected, observed },
            Self::WrongGenesis(observed) => ChainError::WrongGenesis { endpoint: label.to_owned(), observed },
            Self::NoBlock(detail) => ChainError::BlockUnavailable { block: block.to_owned(), detail },
            Self::CallFailed(cause) => ChainError::Resolver(cause),
            Self::LocalLimit(limit) => ChainError::LocalLimit(limit),
            Self::Divided(said) => ChainError::Disagree(said),
            Self::Unproven(causes) => ChainError::Unproven(causes),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable(cause) => f.write_str(cause),
            Self::WrongChain(id) => write!(f, "it serves chain {id}"),
            Self::WrongGenesis(hash) => write!(f, "its chain begins with block {hash}"),
            Self::NoBlock(detail) => write!(f, "it does not have the block: {detail}"),
            Self::CallFailed(cause) => write!(f, "the call failed: {cause}"),
            Self::LocalLimit(limit) => limit.fmt(f),
            Self::Divided(_) => f.write_str("the endpoints contradict each other"),
            Self::Unproven(_) => f.write_str("no endpoint gave a proof that holds"),
        }
    }
}

/// The error code with which nodes report a revert.
const EXECUTION_REVERTED: i64 = 3;

/// How nodes say that they do not have a block, or its state no more. Lower case.
const MISSING_BLOCK: [&str; 10] = [
    "header not found",
    "unknown block",
    "block not found",
    "header for hash not found",
    "cannot find block",
    "missing trie node",
    "historical state",
    "state not available",
    "state is not available",
    "not currently canonical",
];

/// How nodes say that a call used too much of something. Lower case.
const FAILED_CALL: [&str; 5] =
    ["execution reverted", "execution aborted", "execution timeout", "out of gas", "response size"];

/// A call with [`CALL_GAS`].
pub(super) fn eth_call(to: Address, data: Bytes) -> TransactionRequest {
    let input = TransactionInput { data: Some(data), input: None };
    TransactionRequest::default().to(to).input(input).gas_limit(CALL_GAS)
}

/// The revert data that an error carries.
pub(super) fn revert_data(error: &TransportError) -> Option<Bytes> {
    error.as_error_resp()?.as_revert_data()
}

/// The block by its hash (EIP-1898), so that no reorganisation can slip another under it.
pub(super) const fn by_hash(block: &Block) -> BlockId {
    BlockId::Hash(RpcBlockHash { block_hash: block.hash, require_canonical: Some(true) })
}

const fn tag(selector: BlockSelector) -> BlockNumberOrTag {
    match selector {
        BlockSelector::Finalized => BlockNumberOrTag::Finalized,
        BlockSelector::Safe => BlockNumberOrTag::Safe,
        BlockSelector::Latest => BlockNumberOrTag::Latest,
        BlockSelector::Number(number) => BlockNumberOrTag::Number(number),
    }
}

const fn is_older_than_latest(selector: BlockSelector) -> bool {
    matches!(selector, BlockSelector::Finalized | BlockSelector::Safe)
}

/// The header's block, if its fields hash to its hash and it is the one that was asked for.
fn checked_block(header: Option<Header>, selector: BlockSelector) -> Result<Block, Failure> {
    block_of(&checked_header(header, selector)?)
}

/// The header, if its fields hash to its hash and it is the one that was asked for.
fn checked_header(header: Option<Header>, selector: BlockSelector) -> Result<HashedHeader, Failure> {
    let header = header.ok_or_else(|| Failure::NoBlock("the endpoint knows no such block".to_owned()))?;
    let header = HashedHeader::checked(header.inner, header.hash)
        .map_err(|_| Failure::Unusable("the header's fields do not hash to its hash".to_owned()))?;
    if matches!(selector, BlockSelector::Number(number) if number != header.number()) {
        return Err(Failure::Unusable("the header is that of another block".to_owned()));
    }
    Ok(header)
}

fn block_of(header: &HashedHeader) -> Result<Block, Failure> {
    header.block().ok_or_else(|| Failure::Unusable("the header's time is no time".to_owned()))
}

/// The newest block cannot be older than the pinned one.
fn not_before(latest: Findings, block: &Block) -> Result<Findings, Failure> {
    if latest.block < block.number {
        return Err(Failure::Unusable("the newest block is older than the block that was read".to_owned()));
    }
    Ok(latest)
}
