//! The payee by ERC-8004: the wallet of the agent that a name vouches for, in the registry of the network that is paid.
//!
//! The operator or the registration file on the host of the card's URL names the agent. This alone proves nothing.
//! Three facts form the proof: the name vouches for the agent by its ENSIP-25 record, the registry on that chain stores
//! the agent's payee, and the agent's own registration names the name. The registry is queried only if no cheaper
//! source determines the payee.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{Address, U256};
use bytes::Bytes;
use clresolve_chain::TransactionReader;
use clresolve_chain::transport::HttpPost;
use clresolve_chain::{AgentReading, AgentRegistry, ChainConfig};
use clresolve_core::digest::Digest;
use clresolve_core::json::JsonError;
use clresolve_core::name::EnsName;
use clresolve_core::reading::{Answer, Block, BlockSelector, ChainError, Proof};
use clresolve_core::reason::{Code, Reason};
use clresolve_core::records::{Key, Record};
use clresolve_core::state::State;
use clresolve_core::text::excerpt;
use clresolve_core::uri;
use clresolve_payment::check::RegistrationReading;
use clresolve_payment::network::Network;
use clresolve_payment::payee::{self, Claim, ClaimSource};
use clresolve_verdict::check::records::behind;
use clresolve_verdict::evidence::links::{Registration, RegistrationFile, registration_file};
use jiff::Timestamp;
use tokio::sync::Semaphore;

use super::look_ups::{Beside, LookUpResult, LookUps, after};
use super::walk::Walker;
use crate::clock::Clock;
use crate::config::{GradeDemand, RegistryChain};
use crate::fetch::{Cause, FetchError};

/// The share of a question's time limit that a lookup may use. The verdict has its own share.
pub(super) const LOOK_UP_SHARE: f64 = 0.5;

/// The share of a lookup's time that a document may use, so that a stalling host can be reported as the cause.
const DOCUMENT_SHARE: f64 = 0.4;

type ByChain = Arc<BTreeMap<u64, Arc<Registry>>>;

/// The configured registries and the lookups in them. Clones share both.
#[derive(Clone)]
pub(super) struct AgentRegistries {
    by_chain: ByChain,
    look_ups: LookUps<u64, Claim>,
    /// Permits for reading entries that no name vouches for. Any terms can request one.
    permits: Arc<Semaphore>,
}

/// Maximum number of concurrent readings of entries that no name vouches for.
const MAX_UNVOUCHED_READINGS: usize = 16;

pub(super) struct Registry {
    id: u64,
    address: Address,
    agents: BTreeMap<String, u64>,
    reader: AgentRegistry,
    transactions: TransactionReader,
}

impl Registry {
    /// The configured registry of the chain. `chain` describes how to read that chain, through `http`.
    pub(super) fn new(
        config: &RegistryChain,
        chain: ChainConfig,
        http: &Arc<dyn HttpPost>,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        let time = || {
            let clock = Arc::clone(clock);
            Arc::new(move || clock.now())
        };
        Self {
            id: chain.chain_id,
            address: config.registry,
            agents: config.agents.clone(),
            transactions: TransactionReader::new(chain.clone(), http, time()),
            reader: AgentRegistry::new(config.registry, chain, http, time()),
        }
    }

    /// The reader of transactions on the same chain.
    pub(super) const fn transactions(&self) -> &TransactionReader {
        &self.transactions
    }

    fn entry(&self, agent: u64) -> Registration {
        Registration::new(self.id, self.address, U256::from(agent))
    }
}

impl AgentRegistries {
    /// Creates the set of registries. Other chains have none.
    pub(super) fn new(registries: impl IntoIterator<Item = Registry>) -> Self {
        Self::over(Arc::new(registries.into_iter().map(|registry| (registry.id, Arc::new(registry))).collect()))
    }

    fn over(by_chain: ByChain) -> Self {
        Self { by_chain, look_ups: LookUps::default(), permits: Arc::new(Semaphore::new(MAX_UNVOUCHED_READINGS)) }
    }

    /// The same registries without cached results.
    pub(super) fn forgetful(&self) -> Self {
        Self::over(Arc::clone(&self.by_chain))
    }

    pub(super) fn of(&self, network: &Network) -> Option<Arc<Registry>> {
        self.by_chain.get(&network.chain_id()?).cloned()
    }

    /// The claim about the payee in the registration of a name on a network. Each decision reads the registration anew.
    pub(super) async fn claim(&self, walker: &Arc<Walker>, beside: &Beside, network: &Network) -> Claim {
        let Some(registry) = self.of(network) else { return Claim::None };
        if let Some(cause) = beyond_quorum(walker) {
            return undecided(&cause);
        }
        let (id, subject, asking) = (registry.id, beside.clone(), Arc::clone(walker));
        let look_up = async move { LookUp::new(&asking, &registry, &subject).claim().await };
        self.look_ups.answer(beside.clone(), id, &walker.clock, look_up).await
    }

    /// Reads an entry for which no name vouches. `payees` are the addresses that the terms demand. The owner of the
    /// entry is read only if one of them is not the wallet.
    pub(super) async fn reading(
        &self,
        walker: &Arc<Walker>,
        entry: &Registration,
        payees: &BTreeSet<Address>,
    ) -> RegistrationReading {
        let is_configured = |known: &&Arc<Registry>| {
            entry.is_in(known.id, known.address) || clresolve_core::mutant!("registries-have-any-address")
        };
        let Some(registry) = self.by_chain.get(&entry.chain_id()).filter(is_configured) else {
            return not_read("no endpoints are configured for this registry under [chains.ID]");
        };
        if let Some(cause) = beyond_quorum(walker) {
            return not_read(&cause);
        }
        let limit = walker.config.timeout.mul_f64(LOOK_UP_SHARE);
        let look_up = EntryLookUp { walker, registry, entry, payees, began: walker.now(), limit };
        let read = async {
            let _permit = self.permits.acquire().await.map_err(|_| because("the resolver stops"))?;
            look_up.read().await
        };
        match tokio::time::timeout(limit, read).await {
            Ok(Ok(reading)) => reading,
            Ok(Err(reason)) => RegistrationReading::NotRead(reason),
            Err(_) => not_read("no answer in time"),
        }
    }
}

/// Why no registration meets the required proof. `None`: a quorum is enough.
fn beyond_quorum(walker: &Walker) -> Option<String> {
    let grade = match walker.config.chain.demand() {
        Ok(GradeDemand::StateProof(_)) => "state-proof",
        Ok(GradeDemand::ConsensusProof(_)) => "consensus-proof",
        Ok(GradeDemand::SingleRpc | GradeDemand::Quorum(_)) | Err(_) => return None,
    };
    Some(format!("the configured grade is {grade}, but registrations are read with a quorum at most"))
}

/// The wallet of an entry, if it is the same at the newest block.
fn settled_wallet(reading: &AgentReading) -> Result<Option<Address>, Box<Reason>> {
    if reading.wallet != reading.latest_wallet && !clresolve_core::mutant!("pending-wallet-is-settled") {
        return Err(Box::new(Reason::new(Code::RecordPending).at("getAgentWallet")));
    }
    Ok(reading.wallet)
}

fn not_read(cause: &str) -> RegistrationReading {
    RegistrationReading::NotRead(because(cause))
}

/// The reading of one entry of a registry.
struct EntryLookUp<'w> {
    walker: &'w Walker,
    registry: &'w Registry,
    entry: &'w Registration,
    payees: &'w BTreeSet<Address>,
    began: Timestamp,
    limit: Duration,
}

impl EntryLookUp<'_> {
    async fn read(&self) -> Result<RegistrationReading, Box<Reason>> {
        let reader = &self.registry.reader;
        let reading = reader.agent(self.entry.agent()).await.map_err(|error| because(&error.to_string()))?;
        relied_on(self.walker, &reading.proof, &reading.block, BlockSelector::Finalized, self.registry.id)?;
        let wallet = settled_wallet(&reading)?;
        let Some(uri) = reading.uri else { return Ok(RegistrationReading::NoIdentity) };
        let is_paid = self.payees.iter().all(|payee| Some(*payee) == wallet);
        // A payee that owns the entry does not contradict it. Until the owner is known, a payee other than the wallet
        // is therefore no contradiction.
        let owner = if is_paid { None } else { self.owner().await? };
        Ok(RegistrationReading::Read {
            entry: self.entry.clone(),
            wallet,
            owner,
            file: self.file(&uri).await,
            block: reading.block.number,
            grade: reading.proof.grade,
            until: after(self.began, State::Trusted, 0),
        })
    }

    async fn owner(&self) -> Result<Option<Address>, Box<Reason>> {
        let owner = self.registry.reader.owner(self.entry.agent()).await;
        owner.map_err(|error| because(&format!("the owner of the agent: {error}")))
    }

    /// The registration file. It is parsed off the threads that answer requests.
    async fn file(&self, uri: &str) -> Result<RegistrationFile, Box<Reason>> {
        let unread = |cause: String| because(&format!("the agent's registration: {cause}"));
        let limit = self.limit.mul_f64(DOCUMENT_SHARE);
        let file = self.walker.sources.named_by_contract(uri, limit).await.map_err(unread)?;
        let parsed = self.walker.pool.run(move || RegistrationFile::parse(&file)).await;
        parsed.map_err(|error| unread(error.to_string()))
    }
}

impl LookUpResult for Claim {
    fn state(&self) -> State {
        match self {
            Self::Is(..) => State::Trusted,
            Self::None => State::Untrusted,
            Self::Undecided(_) => State::Indeterminate,
        }
    }

    fn undecided(cause: &str) -> Self {
        undecided(cause)
    }
}

/// One lookup of one name in one registry.
struct LookUp<'w> {
    walker: &'w Walker,
    registry: &'w Registry,
    name: &'w EnsName,
    /// SHA-256 of the name's trusted card, in hex.
    card: Option<&'w str>,
    began: Timestamp,
    /// Time limit of the whole lookup.
    limit: Duration,
}

impl<'w> LookUp<'w> {
    fn new(walker: &'w Walker, registry: &'w Registry, beside: &'w Beside) -> Self {
        let limit = walker.config.timeout.mul_f64(LOOK_UP_SHARE);
        Self { walker, registry, name: &beside.name, card: beside.card.as_deref(), began: walker.now(), limit }
    }

    async fn claim(&self) -> Claim {
        match tokio::time::timeout(self.limit, self.looked_up()).await {
            Ok(Ok(claim)) => claim,
            Ok(Err(reason)) => Claim::Undecided(reason),
            Err(_) => undecided("no answer in time"),
        }
    }

    async fn looked_up(&self) -> Result<Claim, Box<Reason>> {
        let Registry { agents, reader, .. } = self.registry;
        let hints = match agents.get(self.name.as_str()) {
            Some(agent) => vec![self.registry.entry(*agent)],
            None => self.hinted().await?,
        };
        let Some(entry) = self.vouched_for(&hints).await? else { return Ok(Claim::None) };
        let reading = reader.agent(entry.agent()).await.map_err(|error| because(&error.to_string()))?;
        self.relied_on(&reading.proof, &reading.block, BlockSelector::Finalized, self.registry.id)?;
        let (Some(wallet), Some(uri)) = (settled_wallet(&reading)?, &reading.uri) else { return Ok(Claim::None) };
        self.names_back(uri).await?;
        let until = after(self.began, State::Trusted, 0);
        let read = payee::RegistrationSource { agent: entry.agent(), block: reading.block.number, until };
        Ok(Claim::Is(wallet, ClaimSource::Registration(Box::new(read))))
    }

    /// The agents of this registry that are named by the file on the host of the card's URL. Empty if the host has no
    /// file.
    async fn hinted(&self) -> Result<Vec<Registration>, Box<Reason>> {
        let unread = |cause: String| because(&format!("the host's registration file: {cause}"));
        let block = self.walker.config.chain.block;
        let reading = self.walker.chain.read_keys(self.name, block, &[Key::Agentcard]).await;
        let Answer::Records(found) = reading.map_err(|error| because(&error.to_string()))?.answer else {
            return Ok(Vec::new());
        };
        let Some(url) = registration_file(found.records.text(Key::Agentcard)) else { return Ok(Vec::new()) };
        let file = match self.walker.sources.content.document(&url, self.document_limit()).await {
            Ok(body) => body.bytes,
            Err(FetchError::Unavailable(Cause::Status(404 | 410))) => return Ok(Vec::new()),
            Err(error) => return Err(unread(error.to_string())),
        };
        let file = self.parsed(file).await.map_err(|error| unread(error.to_string()))?;
        let Registry { id, address, .. } = self.registry;
        Ok(file.registrations.into_iter().filter(|entry| entry.is_in(*id, *address)).collect())
    }

    /// The hinted registration that the name vouches for (ENSIP-25), at a settled block and at the newest one.
    async fn vouched_for(&self, hints: &[Registration]) -> Result<Option<Registration>, Box<Reason>> {
        if hints.is_empty() || clresolve_core::mutant!("any-agent-is-vouched-for") {
            return Ok(hints.first().cloned());
        }
        let keys: Vec<String> = hints.iter().map(Registration::key).collect();
        let block = self.walker.config.chain.block;
        let unread = |error: &ChainError| because(&error.to_string());
        let reading = self.walker.chain.read_texts(self.name, block, &keys).await.map_err(|error| unread(&error))?;
        self.relied_on(&reading.proof, &reading.block, block, self.walker.config.chain.id)?;
        let latest = match &reading.latest {
            Some(latest) => latest.as_ref().map_err(unread)?,
            None => &reading.records,
        };
        let mut vouched: Vec<Registration> = Vec::new();
        for (((hint, key), record), latest) in hints.iter().zip(&keys).zip(&reading.records).zip(latest) {
            if is_set(record) != is_set(latest) {
                return Err(Box::new(Reason::new(Code::RecordPending).at(key.as_str())));
            }
            // A file may name an agent twice.
            vouched.extend((is_set(record) && !vouched.contains(hint)).then(|| hint.clone()));
        }
        if vouched.len() > 1 && !clresolve_core::mutant!("one-of-two-agents-is-guessed") {
            return Err(because("the name vouches for more than one agent of the registry"));
        }
        Ok(vouched.pop())
    }

    /// Checks that the registration at `uri` names the name, or is the name's trusted card under a CID.
    async fn names_back(&self, uri: &str) -> Result<(), Box<Reason>> {
        let unread = |cause: String| because(&format!("the agent's registration: {cause}"));
        let file = self.walker.sources.named_by_contract(uri, self.document_limit()).await.map_err(unread)?;
        if self.is_card(uri, &file).await {
            return Ok(());
        }
        let file = self.parsed(file).await.map_err(|error| unread(error.to_string()))?;
        if file.is_of(self.name) || clresolve_core::mutant!("registrations-name-nobody") {
            return Ok(());
        }
        let named = file.names().next().map_or_else(|| "no ENS name".to_owned(), excerpt);
        Err(Box::new(
            unproven().expected(self.name.as_str()).observed(format!("the agent's registration names {named}")),
        ))
    }

    /// Whether the file is the name's trusted card. Only a CID binds the registration to these bytes.
    async fn is_card(&self, uri: &str, file: &Bytes) -> bool {
        let is_bound =
            uri::strip_scheme(uri, "ipfs").is_some() || clresolve_core::mutant!("cards-name-back-from-hosts");
        let Some(card) = self.card.filter(|_| is_bound).map(str::to_owned) else { return false };
        let file = file.clone();
        self.walker.pool.run(move || Digest::of(&file).hex() == card).await
    }

    /// Parses an untrusted file off the threads that answer requests.
    async fn parsed(&self, file: Bytes) -> Result<RegistrationFile, JsonError> {
        self.walker.pool.run(move || RegistrationFile::parse(&file)).await
    }

    fn document_limit(&self) -> Duration {
        self.limit.mul_f64(DOCUMENT_SHARE)
    }

    fn relied_on(
        &self,
        proof: &Proof,
        block: &Block,
        selector: BlockSelector,
        chain_id: u64,
    ) -> Result<(), Box<Reason>> {
        relied_on(self.walker, proof, block, selector, chain_id)
    }
}

/// Rejects a reading with a weaker proof than the gate requires, or at an old block of its chain.
fn relied_on(
    walker: &Walker,
    proof: &Proof,
    block: &Block,
    selector: BlockSelector,
    chain_id: u64,
) -> Result<(), Box<Reason>> {
    if let Some(code) = walker.config.gate.policy().against_proof(proof)
        && !clresolve_core::mutant!("any-proof-of-a-wallet")
    {
        return Err(because(code));
    }
    match behind(block, selector, chain_id, walker.now()) {
        Some(reason) => Err(because(&format!("{}: {}", reason.code, reason.message))),
        None => Ok(()),
    }
}

/// Any value counts (ENSIP-25).
fn is_set(record: &Record) -> bool {
    matches!(record, Record::Text(text) if !text.is_empty())
}

fn undecided(cause: &str) -> Claim {
    Claim::Undecided(because(cause))
}

fn because(cause: &str) -> Box<Reason> {
    Box::new(unproven().observed(cause))
}

fn unproven() -> Reason {
    Reason::new(Code::PayeeUnproven).at("erc8004")
}
