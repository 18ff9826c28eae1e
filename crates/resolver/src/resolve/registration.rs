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
use clresolve_chain::transport::JsonRpcHttpClient;
use clresolve_chain::{AgentRegistryReader, AgentRegistryReading, ChainReaderConfig};
use clresolve_core::digest::Digest;
use clresolve_core::json::JsonError;
use clresolve_core::name::EnsName;
use clresolve_core::reading::{BlockSelector, ChainBlock, ChainError, EnsAnswer, ProofStrength};
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::records::{TextRecord, TextRecordKey};
use clresolve_core::state::TrustState;
use clresolve_core::text::excerpt_text;
use clresolve_core::uri;
use clresolve_payment::check::RegistrationReading;
use clresolve_payment::network::Caip2Network;
use clresolve_payment::payee::{self, PayeeClaim, PayeeClaimSource};
use clresolve_verdict::check::records::old_block_reason;
use clresolve_verdict::evidence::links::{RegisteredAgentId, RegistrationFile, registration_file_url};
use jiff::Timestamp;
use tokio::sync::Semaphore;

use super::look_ups::{LookupCache, LookupCacheValue, ResolvedVerdictKey, result_expiry};
use super::walk::UncachedResolver;
use crate::clock::Clock;
use crate::config::{ProofGradeDemand, RegistryChainConfig};
use crate::fetch::{FetchError, SourceUnavailableError};

/// The share of a question's time limit that a lookup may use. The verdict has its own share.
pub(super) const LOOK_UP_SHARE: f64 = 0.5;

/// The share of a lookup's time that a document may use, so that a stalling host can be reported as the cause.
const DOCUMENT_SHARE: f64 = 0.4;

/// The configured registries and the lookups in them. Clones share both.
#[derive(Clone)]
pub(super) struct AgentRegistries {
    by_chain: Arc<BTreeMap<u64, Arc<ConfiguredAgentRegistry>>>,
    look_ups: LookupCache<u64, PayeeClaim>,
    /// Permits for reading entries that no name vouches for. Any terms can request one.
    permits: Arc<Semaphore>,
}

/// Maximum number of concurrent readings of entries that no name vouches for.
const MAX_UNVOUCHED_READINGS: usize = 16;

pub(super) struct ConfiguredAgentRegistry {
    id: u64,
    address: Address,
    agents: BTreeMap<String, u64>,
    reader: AgentRegistryReader,
    transactions: TransactionReader,
}

impl ConfiguredAgentRegistry {
    /// The configured registry of the chain. `chain` describes how to read that chain, through `http`.
    pub(super) fn new(
        config: &RegistryChainConfig,
        chain: ChainReaderConfig,
        http: &Arc<dyn JsonRpcHttpClient>,
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
            reader: AgentRegistryReader::new(config.registry, chain, http, time()),
        }
    }

    /// The reader of transactions on the same chain.
    pub(super) const fn transaction_reader(&self) -> &TransactionReader {
        &self.transactions
    }

    fn registered_agent_id(&self, agent: u64) -> RegisteredAgentId {
        RegisteredAgentId::new(self.id, self.address, U256::from(agent))
    }
}

impl AgentRegistries {
    /// Creates the set of registries. Other chains have none.
    pub(super) fn new(registries: impl IntoIterator<Item = ConfiguredAgentRegistry>) -> Self {
        Self::from_chains(Arc::new(registries.into_iter().map(|registry| (registry.id, Arc::new(registry))).collect()))
    }

    fn from_chains(by_chain: Arc<BTreeMap<u64, Arc<ConfiguredAgentRegistry>>>) -> Self {
        Self { by_chain, look_ups: LookupCache::default(), permits: Arc::new(Semaphore::new(MAX_UNVOUCHED_READINGS)) }
    }

    /// The same registries without cached results.
    pub(super) fn without_cache(&self) -> Self {
        Self::from_chains(Arc::clone(&self.by_chain))
    }

    pub(super) fn registry_for_network(&self, network: &Caip2Network) -> Option<Arc<ConfiguredAgentRegistry>> {
        self.by_chain.get(&network.chain_id()?).cloned()
    }

    /// The claim about the payee in the registration of a name on a network. Each decision reads the registration anew.
    pub(super) async fn look_up_payee_claim(
        &self,
        walker: &Arc<UncachedResolver>,
        beside: &ResolvedVerdictKey,
        network: &Caip2Network,
    ) -> PayeeClaim {
        let Some(registry) = self.registry_for_network(network) else { return PayeeClaim::None };
        if let Some(cause) = unmet_proof_demand(walker) {
            return undecided_claim(&cause);
        }
        let (id, subject, asking) = (registry.id, beside.clone(), Arc::clone(walker));
        let look_up =
            async move { NameRegistrationLookup::new(&asking, &registry, &subject).look_up_payee_claim().await };
        self.look_ups.get_or_look_up(beside.clone(), id, &walker.clock, look_up).await
    }

    /// Reads an entry for which no name vouches. `payees` are the addresses that the terms demand. The owner of the
    /// entry is read only if one of them is not the wallet.
    pub(super) async fn read_entry(
        &self,
        walker: &Arc<UncachedResolver>,
        entry: &RegisteredAgentId,
        payees: &BTreeSet<Address>,
    ) -> RegistrationReading {
        let is_configured = |known: &&Arc<ConfiguredAgentRegistry>| {
            entry.belongs_to_registry(known.id, known.address) || clresolve_core::mutant!("registries-have-any-address")
        };
        let Some(registry) = self.by_chain.get(&entry.chain_id()).filter(is_configured) else {
            return unread_registration("no endpoints are configured for this registry under [chains.ID]");
        };
        if let Some(cause) = unmet_proof_demand(walker) {
            return unread_registration(&cause);
        }
        let limit = walker.config.timeout.mul_f64(LOOK_UP_SHARE);
        let look_up = RegistryEntryLookup { walker, registry, entry, payees, began: walker.now(), limit };
        let read = async {
            let _permit = self.permits.acquire().await.map_err(|_| unproven_reason_with_cause("the resolver stops"))?;
            look_up.read_registration().await
        };
        match tokio::time::timeout(limit, read).await {
            Ok(Ok(reading)) => reading,
            Ok(Err(reason)) => RegistrationReading::NotRead(reason),
            Err(_) => unread_registration("no answer in time"),
        }
    }
}

/// Why no registration meets the required proof. `None`: a quorum is enough.
fn unmet_proof_demand(walker: &UncachedResolver) -> Option<String> {
    let grade = match walker.config.chain.proof_grade_demand() {
        Ok(ProofGradeDemand::StateProof(_)) => "state-proof",
        Ok(ProofGradeDemand::ConsensusProof(_)) => "consensus-proof",
        Ok(ProofGradeDemand::SingleRpc | ProofGradeDemand::Quorum(_)) | Err(_) => return None,
    };
    Some(format!("the configured grade is {grade}, but registrations are read with a quorum at most"))
}

/// The wallet of an entry, if it is the same at the newest block.
fn settled_wallet(reading: &AgentRegistryReading) -> Result<Option<Address>, Box<Reason>> {
    if reading.wallet != reading.latest_wallet && !clresolve_core::mutant!("pending-wallet-is-settled") {
        return Err(Box::new(Reason::new(ReasonCode::RecordPending).at_place("getAgentWallet")));
    }
    Ok(reading.wallet)
}

fn unread_registration(cause: &str) -> RegistrationReading {
    RegistrationReading::NotRead(unproven_reason_with_cause(cause))
}

/// The reading of one entry of a registry.
struct RegistryEntryLookup<'w> {
    walker: &'w UncachedResolver,
    registry: &'w ConfiguredAgentRegistry,
    entry: &'w RegisteredAgentId,
    payees: &'w BTreeSet<Address>,
    began: Timestamp,
    limit: Duration,
}

impl RegistryEntryLookup<'_> {
    async fn read_registration(&self) -> Result<RegistrationReading, Box<Reason>> {
        let reader = &self.registry.reader;
        let reading = reader
            .read_agent(self.entry.agent_id())
            .await
            .map_err(|error| unproven_reason_with_cause(&error.to_string()))?;
        check_reading_proof(self.walker, &reading.proof, &reading.block, BlockSelector::Finalized, self.registry.id)?;
        let wallet = settled_wallet(&reading)?;
        let Some(uri) = reading.uri else { return Ok(RegistrationReading::NoIdentity) };
        let is_paid = self.payees.iter().all(|payee| Some(*payee) == wallet);
        // A payee that owns the entry does not contradict it. Until the owner is known, a payee other than the wallet
        // is therefore no contradiction.
        let owner = if is_paid { None } else { self.read_owner().await? };
        Ok(RegistrationReading::Read {
            entry: self.entry.clone(),
            wallet,
            owner,
            file: self.fetch_registration_file(&uri).await,
            block: reading.block.number,
            grade: reading.proof.grade,
            until: result_expiry(self.began, TrustState::Trusted, 0),
        })
    }

    async fn read_owner(&self) -> Result<Option<Address>, Box<Reason>> {
        let owner = self.registry.reader.read_agent_owner(self.entry.agent_id()).await;
        owner.map_err(|error| unproven_reason_with_cause(&format!("the owner of the agent: {error}")))
    }

    /// The registration file. It is parsed off the threads that answer requests.
    async fn fetch_registration_file(&self, uri: &str) -> Result<RegistrationFile, Box<Reason>> {
        let unread = |cause: String| unproven_reason_with_cause(&format!("the agent's registration: {cause}"));
        let limit = self.limit.mul_f64(DOCUMENT_SHARE);
        let file = self.walker.sources.fetch_contract_uri(uri, limit).await.map_err(unread)?;
        let parsed = self.walker.pool.run(move || RegistrationFile::parse(&file)).await;
        parsed.map_err(|error| unread(error.to_string()))
    }
}

impl LookupCacheValue for PayeeClaim {
    fn lifetime_state(&self) -> TrustState {
        match self {
            Self::Is(..) => TrustState::Trusted,
            Self::None => TrustState::Untrusted,
            Self::Undecided(_) => TrustState::Indeterminate,
        }
    }

    fn undecided(cause: &str) -> Self {
        undecided_claim(cause)
    }
}

/// One lookup of one name in one registry.
struct NameRegistrationLookup<'w> {
    walker: &'w UncachedResolver,
    registry: &'w ConfiguredAgentRegistry,
    name: &'w EnsName,
    /// SHA-256 of the name's trusted card, in hex.
    card: Option<&'w str>,
    began: Timestamp,
    /// Time limit of the whole lookup.
    limit: Duration,
}

impl<'w> NameRegistrationLookup<'w> {
    fn new(
        walker: &'w UncachedResolver,
        registry: &'w ConfiguredAgentRegistry,
        beside: &'w ResolvedVerdictKey,
    ) -> Self {
        let limit = walker.config.timeout.mul_f64(LOOK_UP_SHARE);
        Self { walker, registry, name: &beside.name, card: beside.card.as_deref(), began: walker.now(), limit }
    }

    async fn look_up_payee_claim(&self) -> PayeeClaim {
        match tokio::time::timeout(self.limit, self.find_payee_claim()).await {
            Ok(Ok(claim)) => claim,
            Ok(Err(reason)) => PayeeClaim::Undecided(reason),
            Err(_) => undecided_claim("no answer in time"),
        }
    }

    async fn find_payee_claim(&self) -> Result<PayeeClaim, Box<Reason>> {
        let ConfiguredAgentRegistry { agents, reader, .. } = self.registry;
        let hints = match agents.get(self.name.as_str()) {
            Some(agent) => vec![self.registry.registered_agent_id(*agent)],
            None => self.hinted_registrations().await?,
        };
        let Some(entry) = self.vouched_registration(&hints).await? else { return Ok(PayeeClaim::None) };
        let reading = reader
            .read_agent(entry.agent_id())
            .await
            .map_err(|error| unproven_reason_with_cause(&error.to_string()))?;
        self.check_reading_proof(&reading.proof, &reading.block, BlockSelector::Finalized, self.registry.id)?;
        let (Some(wallet), Some(uri)) = (settled_wallet(&reading)?, &reading.uri) else { return Ok(PayeeClaim::None) };
        self.check_backlink(uri).await?;
        let until = result_expiry(self.began, TrustState::Trusted, 0);
        let read = payee::Erc8004WalletProvenance { agent: entry.agent_id(), block: reading.block.number, until };
        Ok(PayeeClaim::Is(wallet, PayeeClaimSource::Registration(Box::new(read))))
    }

    /// The agents of this registry that are named by the file on the host of the card's URL. Empty if the host has no
    /// file.
    async fn hinted_registrations(&self) -> Result<Vec<RegisteredAgentId>, Box<Reason>> {
        let unread = |cause: String| unproven_reason_with_cause(&format!("the host's registration file: {cause}"));
        let block = self.walker.config.chain.block;
        let reading = self.walker.chain.read_selected_records(self.name, block, &[TextRecordKey::Agentcard]).await;
        let EnsAnswer::Records(found) = reading.map_err(|error| unproven_reason_with_cause(&error.to_string()))?.answer
        else {
            return Ok(Vec::new());
        };
        let Some(url) = registration_file_url(found.records.text(TextRecordKey::Agentcard)) else {
            return Ok(Vec::new());
        };
        let file = match self.walker.sources.content.fetch_document(&url, self.document_time_limit()).await {
            Ok(body) => body.bytes,
            Err(FetchError::Unavailable(SourceUnavailableError::Status(404 | 410))) => return Ok(Vec::new()),
            Err(error) => return Err(unread(error.to_string())),
        };
        let file = self.parse_registration_file(file).await.map_err(|error| unread(error.to_string()))?;
        let ConfiguredAgentRegistry { id, address, .. } = self.registry;
        Ok(file.registrations.into_iter().filter(|entry| entry.belongs_to_registry(*id, *address)).collect())
    }

    /// The hinted registration that the name vouches for (ENSIP-25), at a settled block and at the newest one.
    async fn vouched_registration(
        &self,
        hints: &[RegisteredAgentId],
    ) -> Result<Option<RegisteredAgentId>, Box<Reason>> {
        if hints.is_empty() || clresolve_core::mutant!("any-agent-is-vouched-for") {
            return Ok(hints.first().cloned());
        }
        let keys: Vec<String> = hints.iter().map(RegisteredAgentId::ensip25_record_key).collect();
        let block = self.walker.config.chain.block;
        let unread = |error: &ChainError| unproven_reason_with_cause(&error.to_string());
        let reading =
            self.walker.chain.read_extra_texts(self.name, block, &keys).await.map_err(|error| unread(&error))?;
        self.check_reading_proof(&reading.proof, &reading.block, block, self.walker.config.chain.id)?;
        let latest = match &reading.latest {
            Some(latest) => latest.as_ref().map_err(unread)?,
            None => &reading.records,
        };
        let mut vouched: Vec<RegisteredAgentId> = Vec::new();
        for (((hint, key), record), latest) in hints.iter().zip(&keys).zip(&reading.records).zip(latest) {
            if is_record_set(record) != is_record_set(latest) {
                return Err(Box::new(Reason::new(ReasonCode::RecordPending).at_place(key.as_str())));
            }
            // A file may name an agent twice.
            vouched.extend((is_record_set(record) && !vouched.contains(hint)).then(|| hint.clone()));
        }
        if vouched.len() > 1 && !clresolve_core::mutant!("one-of-two-agents-is-guessed") {
            return Err(unproven_reason_with_cause("the name vouches for more than one agent of the registry"));
        }
        Ok(vouched.pop())
    }

    /// Checks that the registration at `uri` names the name, or is the name's trusted card under a CID.
    async fn check_backlink(&self, uri: &str) -> Result<(), Box<Reason>> {
        let unread = |cause: String| unproven_reason_with_cause(&format!("the agent's registration: {cause}"));
        let file = self.walker.sources.fetch_contract_uri(uri, self.document_time_limit()).await.map_err(unread)?;
        if self.is_trusted_card(uri, &file).await {
            return Ok(());
        }
        let file = self.parse_registration_file(file).await.map_err(|error| unread(error.to_string()))?;
        if file.has_ens_service_for(self.name) || clresolve_core::mutant!("registrations-name-nobody") {
            return Ok(());
        }
        let named = file.ens_service_names().next().map_or_else(|| "no ENS name".to_owned(), excerpt_text);
        Err(Box::new(
            payee_unproven_reason()
                .expected(self.name.as_str())
                .observed(format!("the agent's registration names {named}")),
        ))
    }

    /// Whether the file is the name's trusted card. Only a CID binds the registration to these bytes.
    async fn is_trusted_card(&self, uri: &str, file: &Bytes) -> bool {
        let is_bound =
            uri::strip_scheme(uri, "ipfs").is_some() || clresolve_core::mutant!("cards-name-back-from-hosts");
        let Some(card) = self.card.filter(|_| is_bound).map(str::to_owned) else { return false };
        let file = file.clone();
        self.walker.pool.run(move || Digest::compute(&file).to_hex() == card).await
    }

    /// Parses an untrusted file off the threads that answer requests.
    async fn parse_registration_file(&self, file: Bytes) -> Result<RegistrationFile, JsonError> {
        self.walker.pool.run(move || RegistrationFile::parse(&file)).await
    }

    fn document_time_limit(&self) -> Duration {
        self.limit.mul_f64(DOCUMENT_SHARE)
    }

    fn check_reading_proof(
        &self,
        proof: &ProofStrength,
        block: &ChainBlock,
        selector: BlockSelector,
        chain_id: u64,
    ) -> Result<(), Box<Reason>> {
        check_reading_proof(self.walker, proof, block, selector, chain_id)
    }
}

/// Rejects a reading with a weaker proof than the gate requires, or at an old block of its chain.
fn check_reading_proof(
    walker: &UncachedResolver,
    proof: &ProofStrength,
    block: &ChainBlock,
    selector: BlockSelector,
    chain_id: u64,
) -> Result<(), Box<Reason>> {
    if let Some(code) = walker.config.gate.gate_policy().proof_objection(proof)
        && !clresolve_core::mutant!("any-proof-of-a-wallet")
    {
        return Err(unproven_reason_with_cause(code));
    }
    match old_block_reason(block, selector, chain_id, walker.now()) {
        Some(reason) => Err(unproven_reason_with_cause(&format!("{}: {}", reason.code, reason.message))),
        None => Ok(()),
    }
}

/// Any value counts (ENSIP-25).
fn is_record_set(record: &TextRecord) -> bool {
    matches!(record, TextRecord::Text(text) if !text.is_empty())
}

fn undecided_claim(cause: &str) -> PayeeClaim {
    PayeeClaim::Undecided(unproven_reason_with_cause(cause))
}

fn unproven_reason_with_cause(cause: &str) -> Box<Reason> {
    Box::new(payee_unproven_reason().observed(cause))
}

fn payee_unproven_reason() -> Reason {
    Reason::new(ReasonCode::PayeeUnproven).at_place("erc8004")
}
