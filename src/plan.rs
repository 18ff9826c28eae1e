//! Plans a publication: computes the CID of a folder or card, lists the records to set, and predicts how the rules
//! would judge them. It uses only the given files and opens no connection.
//!
//! A plan is not a verdict. It has no anchor and no `state`: the prediction is [`CardPublicationPlan::would_be`], and
//! its assumptions are listed in [`ASSUMED`].

mod transaction;

use std::collections::BTreeMap;
use std::str::FromStr;

use alloy_primitives::{Address, B256};
use bytes::Bytes;
use clresolve_core::address::PublicHostName;
use clresolve_core::digest::Digest;
use clresolve_core::fetch::ForbiddenUrlError;
use clresolve_core::json::{JsonError, JsonLimits};
use clresolve_core::name::{EnsName, EnsNameError};
use clresolve_core::payment::{CoinType, EndpointRecordKey, PaymentRecords};
use clresolve_core::reading::{
    BlockSelector, ChainBlock, ClOwnerReading, EnsAnswer, NameHolder, NameReading, ProofGrade, ProofStrength,
    ResolvedRecords,
};
use clresolve_core::reason::{self, Reason, ReasonCode};
use clresolve_core::records::{TextRecord, TextRecordKey, TextRecordSet};
use clresolve_core::state::TrustState;
use clresolve_ipfs::build::{BlocksByCid, BuiltDagNode, DagBuilder, DirectoryEntries, IpfsImportProfile};
use clresolve_ipfs::{ContentId, DagWalk, DagWalkBudget, UnixFsPath, UnixFsPathError};
use clresolve_payment::network::Caip2Network;
use clresolve_resolver::config::parse_address;
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::check::{self, JudgementPolicy};
use clresolve_verdict::evidence::continuity::HistoryOutcome;
use clresolve_verdict::evidence::{
    ClOwnerEvidence, ContentProofSource, HttpsOutcome, IpfsWalkOutcome, ResolutionEvidence, is_https_url,
};
use clresolve_verdict::profile::{ConformanceProfile, ConformanceProfiles};
use clresolve_verdict::verdict::ResolutionDepth;
use jiff::Timestamp;
use serde::Serialize;

/// `schema` of a [`CardPublicationPlan`] in JSON.
pub(crate) const SCHEMA: &str = "clresolve.plan/1";

/// The assumptions of a plan, which only the publication can confirm.
pub(crate) const ASSUMED: [&str; 4] = [
    "the name exists, has a resolver of its own, and is held by its owner",
    "the records are set as planned",
    "the card's URL serves these bytes",
    "gateways serve the blocks of this CID",
];

/// A further assumption of a plan at depth `schemas`.
pub(crate) const ASSUMED_OF_SCHEMAS: &str = "the locations of the schemas serve the bytes that the manifests pin";

/// Maximum bytes of a directory's entries in its block. Common importers shard larger directories, each at a different
/// threshold, so that the CID cannot be predicted.
pub(crate) const MAX_DIRECTORY_BYTES: usize = 256 << 10;

/// Bytes of a directory link besides its name: a CID of 36 bytes, a size, and their tags.
const LINK_BYTES: usize = 50;

/// Common importers chunk larger files in different ways.
pub(crate) const AGREED_CHUNK: usize = 256 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileTreeNode {
    File(Bytes),
    Folder(BTreeMap<String, FileTreeNode>),
}

/// A publication: its root and all blocks below it.
#[derive(Clone, Debug)]
pub(crate) struct UnixFsPublication {
    root: ContentId,
    /// The root CID under each import profile.
    roots: BTreeMap<&'static str, ContentId>,
    blocks: BlocksByCid,
    files: BTreeMap<String, Bytes>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum PublicationPlanError {
    /// A folder is so large that importers shard it.
    #[error("the folder {0:?} has more entries than fit into one block, and importers shard it differently")]
    FolderTooLarge(String),
    /// The name cannot be part of a path.
    #[error("{path:?}: {error}")]
    Name { path: String, error: UnixFsPathError },
    /// One URL was given for several cards.
    #[error("there are {0} cards: a URL for all of them ends with a slash")]
    OneUrl(usize),
}

impl UnixFsPublication {
    /// Builds the UnixFS graph in the way of importers with this profile. [`UnixFsPath`] limits the depth.
    ///
    /// # Errors
    /// [`PublicationPlanError`] if no reader could find a file, or if importers differ.
    pub(crate) fn build(root: &FileTreeNode, profile: IpfsImportProfile) -> Result<Self, PublicationPlanError> {
        let mut builder = UnixFsPublicationBuilder::with_import_profile(profile);
        let built = builder.add_node(root, "")?;
        let mut roots = BTreeMap::new();
        for other in IpfsImportProfile::ALL {
            roots.insert(other.as_str(), UnixFsPublicationBuilder::with_import_profile(other).add_node(root, "")?.cid);
        }
        Ok(Self { root: built.cid, roots, blocks: builder.dag.into_blocks(), files: builder.files })
    }

    /// Files that importers may split into different blocks, so that their CID and the root's may differ.
    pub(crate) fn ambiguous_files(&self) -> impl Iterator<Item = &str> {
        self.files.iter().filter(|(_, bytes)| bytes.len() > AGREED_CHUNK).map(|(path, _)| path.as_str())
    }

    /// The paths of the cards: the single file, or every `.json` file with the members that identify a card.
    pub(crate) fn card_paths(&self) -> Vec<&str> {
        let is_card = |path: &str, bytes: &[u8]| path.is_empty() || is_json_path(path) && is_card_document(bytes);
        self.files.iter().filter(|(path, bytes)| is_card(path, bytes)).map(|(path, _)| path.as_str()).collect()
    }

    /// The bytes of the file at this path. `None` if there is no such file.
    pub(crate) fn file_bytes(&self, path: &str) -> Option<&Bytes> {
        self.files.get(path)
    }

    pub(crate) fn into_blocks(self) -> BlocksByCid {
        self.blocks
    }

    /// `.json` files that cannot be parsed, with the cause. They may or may not be cards.
    pub(crate) fn unreadable_json_files(&self) -> Vec<(&str, JsonError)> {
        let json = self.files.iter().filter(|(path, _)| is_json_path(path));
        json.filter_map(|(path, bytes)| Some((path.as_str(), AgentCard::parse(bytes).err()?))).collect()
    }
}

fn is_json_path(path: &str) -> bool {
    path.ends_with(".json")
}

/// Whether a document contains an ENS name and what it implements. Schemas and registries do not.
fn is_card_document(bytes: &[u8]) -> bool {
    AgentCard::parse(bytes).is_ok_and(|card| card.get("ens").is_some() && card.get("implements").is_some())
}

struct UnixFsPublicationBuilder {
    profile: IpfsImportProfile,
    dag: DagBuilder,
    files: BTreeMap<String, Bytes>,
}

impl UnixFsPublicationBuilder {
    fn with_import_profile(profile: IpfsImportProfile) -> Self {
        Self { profile, dag: DagBuilder::with_profile(profile), files: BTreeMap::new() }
    }

    fn add_node(&mut self, node: &FileTreeNode, path: &str) -> Result<BuiltDagNode, PublicationPlanError> {
        UnixFsPath::parse_literal(path).map_err(|error| PublicationPlanError::Name { path: path.to_owned(), error })?;
        match node {
            FileTreeNode::File(bytes) => {
                self.files.insert(path.to_owned(), bytes.clone());
                Ok(self.dag.add_file(bytes, self.profile.chunk_size()))
            }
            FileTreeNode::Folder(nodes) => self.add_folder(nodes, path),
        }
    }

    fn add_folder(
        &mut self,
        nodes: &BTreeMap<String, FileTreeNode>,
        path: &str,
    ) -> Result<BuiltDagNode, PublicationPlanError> {
        let size: usize = nodes.keys().map(|name| name.len() + LINK_BYTES).sum();
        if size > MAX_DIRECTORY_BYTES {
            return Err(PublicationPlanError::FolderTooLarge(path.to_owned()));
        }
        let mut entries = DirectoryEntries::new();
        for (name, node) in nodes {
            let below = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            entries.insert(name.clone(), self.add_node(node, &below)?);
        }
        Ok(self.dag.add_directory(&entries))
    }
}

/// What to publish for one card, and the predicted judgement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CardPublicationPlan {
    pub(crate) schema: &'static str,
    /// The name, in normal form; `None` if the card has no usable one.
    pub(crate) name: Option<String>,
    /// The CID to publish, which the records name: of the folder, or of the card itself.
    pub(crate) cid: String,
    /// The CID of the same content under each import profile. The records only match `cid`.
    pub(crate) cids: BTreeMap<&'static str, String>,
    pub(crate) path: Option<String>,
    pub(crate) sha256: Digest,
    pub(crate) bytes: usize,
    /// The records to set. A record whose value is unknown is omitted.
    pub(crate) records: BTreeMap<&'static str, String>,
    /// The page where the holder of a mainnet name can set the records by hand; `None` if the card has no usable name.
    pub(crate) manager: Option<String>,
    /// Call data for the name's resolver, which sets the records and the addresses of known payees in one call. `None`
    /// unless the card would be trusted.
    #[serde(skip)]
    pub(crate) calldata: Option<alloy_primitives::Bytes>,
    /// Records that make the agent payable. The publisher chooses their values.
    pub(crate) payment_records: Vec<PlannedPaymentRecord>,
    /// The predicted state of a verdict after publication.
    pub(crate) would_be: TrustState,
    pub(crate) would_be_at: BTreeMap<&'static str, TrustState>,
    pub(crate) profile: String,
    pub(crate) depth: ResolutionDepth,
    pub(crate) reasons: Vec<Reason>,
    /// Other profiles under which the state would be `trusted`.
    pub(crate) near_misses: Vec<String>,
    /// The assumptions: [`ASSUMED`], and at depth `schemas` also [`ASSUMED_OF_SCHEMAS`].
    pub(crate) assumed: Vec<&'static str>,
}

/// A record from which a runtime learns whom to pay or where to call (`docs/pay.md`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct PlannedPaymentRecord {
    /// The record: `addr(COIN)`, or the key of a text record.
    pub(crate) record: String,
    pub(crate) says: String,
    pub(crate) value: Option<String>,
}

/// The account to pay on a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PayeeAccount {
    coin: CoinType,
    address: Address,
}

/// The text is not an account of an EVM chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an account such as eip155:8453:0x…; eip155:0:0x… is for every other EVM chain")]
pub(crate) struct PayeeAccountError;

impl FromStr for PayeeAccount {
    type Err = PayeeAccountError;

    fn from_str(text: &str) -> Result<Self, PayeeAccountError> {
        let (chain, address) = text.rsplit_once(':').ok_or(PayeeAccountError)?;
        let id = chain.strip_prefix("eip155:").and_then(|id| id.parse::<u64>().ok()).ok_or(PayeeAccountError)?;
        let coin = if id == 0 { Some(CoinType::EVM_DEFAULT) } else { CoinType::from_chain_id(id) };
        let address = parse_address(address).map_err(|_| PayeeAccountError)?;
        Ok(Self { coin: coin.ok_or(PayeeAccountError)?, address })
    }
}

/// What the publisher declares in addition to the files.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PublisherDeclarations<'a> {
    /// The URL where the card will be served. If it ends with a slash, the card's path is appended. Defaults to the
    /// card's `$id`.
    pub(crate) url: Option<&'a str>,
    /// The accounts to pay. For each chain, the last one counts.
    pub(crate) payees: &'a [PayeeAccount],
}

/// The rules and the time of the prediction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VerdictPredictionRules<'a> {
    pub(crate) profile: &'a ConformanceProfile,
    /// All profiles, to find near misses.
    pub(crate) profiles: &'a ConformanceProfiles,
    /// The operator's policy on top of the profile.
    pub(crate) policy: &'a JudgementPolicy,
    pub(crate) now: Timestamp,
}

/// The plan for each card of a publication.
///
/// # Errors
/// [`PublicationPlanError::OneUrl`].
pub(crate) fn plan_card_publications(
    publication: &UnixFsPublication,
    declared: PublisherDeclarations<'_>,
    rules: VerdictPredictionRules<'_>,
) -> Result<Vec<CardPublicationPlan>, PublicationPlanError> {
    let cards = publication.card_paths();
    if cards.len() > 1 && declared.url.is_some_and(|url| !url.ends_with('/')) {
        return Err(PublicationPlanError::OneUrl(cards.len()));
    }
    Ok(cards.into_iter().map(|path| plan_card_publication(publication, path, declared, rules)).collect())
}

fn plan_card_publication(
    publication: &UnixFsPublication,
    path: &str,
    declared: PublisherDeclarations<'_>,
    rules: VerdictPredictionRules<'_>,
) -> CardPublicationPlan {
    let bytes = &publication.files[path];
    let card = AgentCard::parse(bytes).ok();
    let path = UnixFsPath::parse_literal(path).expect("checked when the publication was built");
    let records = planned_text_records(publication, &path, bytes, card.as_ref(), declared.url);
    let name = card.as_ref().and_then(AgentCard::ens).map(EnsName::parse);
    let at = |depth: ResolutionDepth| {
        let policy = JudgementPolicy { depth, ..rules.policy.clone() };
        let rules = VerdictPredictionRules { policy: &policy, ..rules };
        match &name {
            Some(Ok(name)) => {
                predict_verdict(&predicted_evidence(name, publication, &path, bytes, &records, rules.now), rules)
            }
            _ => judge_unnamed_card(bytes, name.as_ref(), rules),
        }
    };
    let would_be_at =
        [ResolutionDepth::Identity, ResolutionDepth::Schemas].map(|depth| (depth.as_str(), at(depth).0)).into();
    let (would_be, reasons, near_misses) = at(rules.policy.depth);
    let named = name.as_ref().and_then(|name| name.as_ref().ok());
    let settable = named.filter(|_| would_be == TrustState::Trusted);
    let manager = named.map(transaction::ens_manager_url);
    let calldata =
        settable.map(|name| transaction::set_records_calldata(name, &records, &payee_addresses(declared.payees)));
    CardPublicationPlan {
        schema: SCHEMA,
        name: name.and_then(Result::ok).map(|name| name.as_str().to_owned()),
        cid: publication.root.to_string(),
        cids: publication.roots.iter().map(|(profile, root)| (*profile, root.to_string())).collect(),
        path: Some(path.to_string()).filter(|path| !path.is_empty()),
        sha256: Digest::compute(bytes),
        bytes: bytes.len(),
        records: records.into_iter().map(|(key, value)| (key.as_str(), value)).collect(),
        manager,
        calldata,
        payment_records: planned_payment_records(card.as_ref(), declared.payees),
        would_be,
        would_be_at,
        profile: rules.profile.id().to_owned(),
        depth: rules.policy.depth,
        reasons,
        near_misses,
        assumed: plan_assumptions(rules.policy.depth),
    }
}

/// An address for each network of the card that has a coin type, one for all other EVM chains, and the URL to call.
fn planned_payment_records(card: Option<&AgentCard>, payees: &[PayeeAccount]) -> Vec<PlannedPaymentRecord> {
    let known = payee_addresses(payees);
    let coin = |network: &str| CoinType::from_chain_id(network.parse::<Caip2Network>().ok()?.chain_id()?);
    let networks: BTreeMap<CoinType, &str> =
        card.iter().flat_map(|card| card.networks()).filter_map(|network| Some((coin(network)?, network))).collect();
    let mut coins: BTreeMap<CoinType, String> =
        networks.into_iter().map(|(coin, network)| (coin, format!("the address that is paid on {network}"))).collect();
    for coin in known.keys().filter(|coin| **coin != CoinType::EVM_DEFAULT) {
        coins
            .entry(*coin)
            .or_insert_with(|| "the address that is paid on a chain that the card does not name".to_owned());
    }
    let every_other = (CoinType::EVM_DEFAULT, "the address on every other EVM chain (ENSIP-19)".to_owned());
    let mut records: Vec<_> = coins
        .into_iter()
        .chain([every_other])
        .map(|(coin, says)| PlannedPaymentRecord {
            record: format!("addr({coin})"),
            says,
            value: known.get(&coin).map(Address::to_string),
        })
        .collect();
    let says = "the https URL of the runtime; verb and version follow".to_owned();
    records.push(PlannedPaymentRecord { record: EndpointRecordKey::Runtime.to_string(), says, value: None });
    let says = "the name whose cl.sig.pub signs receipts, and offers where each request has an address of its own";
    records.push(PlannedPaymentRecord {
        record: TextRecordKey::ReceiptSigner.to_string(),
        says: says.to_owned(),
        value: None,
    });
    records
}

fn payee_addresses(payees: &[PayeeAccount]) -> BTreeMap<CoinType, Address> {
    payees.iter().map(|payee| (payee.coin, payee.address)).collect()
}

fn plan_assumptions(depth: ResolutionDepth) -> Vec<&'static str> {
    match depth {
        ResolutionDepth::Identity => ASSUMED.to_vec(),
        ResolutionDepth::Schemas => ASSUMED.into_iter().chain([ASSUMED_OF_SCHEMAS]).collect(),
    }
}

fn planned_text_records(
    publication: &UnixFsPublication,
    path: &UnixFsPath,
    bytes: &[u8],
    card: Option<&AgentCard>,
    url: Option<&str>,
) -> BTreeMap<TextRecordKey, String> {
    let cid = &publication.root;
    let below = if path.is_empty() { String::new() } else { format!("/{path}") };
    let own = || card.and_then(|card| card.text_at("/$id")).map(str::to_owned);
    let url = match url {
        Some(url) if url.ends_with('/') && !path.is_empty() => Some(format!("{url}{path}")),
        Some(url) => Some(url.to_owned()),
        None => own(),
    };
    let text = |text: Option<&str>| text.map(str::to_owned);
    [
        (TextRecordKey::Entry, text(card.and_then(AgentCard::entry))),
        (TextRecordKey::Agentcard, url),
        (TextRecordKey::CidAgentcard, Some(cid.to_string())),
        (TextRecordKey::MirrorIpfs, Some(format!("ipfs://{cid}{below}"))),
        (TextRecordKey::Checksum, Some(Digest::compute(bytes).to_string())),
        (TextRecordKey::Owner, text(card.and_then(AgentCard::owner))),
    ]
    .into_iter()
    .filter_map(|(key, value)| Some((key, value?)))
    .collect()
}

/// The evidence that a resolution would gather if all of this were published and all servers were honest.
fn predicted_evidence(
    name: &EnsName,
    publication: &UnixFsPublication,
    path: &UnixFsPath,
    bytes: &Bytes,
    records: &BTreeMap<TextRecordKey, String>,
    now: Timestamp,
) -> ResolutionEvidence {
    let holder = Address::repeat_byte(1);
    let records: TextRecordSet = records.iter().map(|(key, value)| (*key, TextRecord::Text(value.clone()))).collect();
    let https = predicted_https_response(records.text(TextRecordKey::Agentcard), bytes);
    let found = ResolvedRecords {
        resolver: Address::ZERO,
        wildcard: None,
        offchain: false,
        records,
        payment: PaymentRecords::default(),
    };
    let reading = NameReading {
        block: ChainBlock { number: 0, hash: B256::ZERO, timestamp: now },
        answer: EnsAnswer::Records(found),
        latest: None,
        newest: None,
        holder: NameHolder::Address(holder),
        expiry: None,
        // The grade of proof depends on the endpoints of the resolver, not on the publication.
        proof: ProofStrength { grade: ProofGrade::SingleRpc, asked: 0, agreed: 0, own: true },
        endpoints: vec!["plan".to_owned()],
        contradicted_by: Vec::new(),
        failed_endpoints: Vec::new(),
    };
    ResolutionEvidence {
        name: name.clone(),
        now,
        chain_id: clresolve_core::world::MAINNET_ID,
        block: BlockSelector::Finalized,
        reading: Ok(reading),
        owner: ClOwnerEvidence::Read(ClOwnerReading { address: Some(holder), holder: NameHolder::Address(holder) }),
        https,
        ipfs: predicted_ipfs_walk(publication, path),
        mirror: IpfsWalkOutcome::NotAsked,
        liars: Vec::new(),
        schemas: None,
        continuity: HistoryOutcome::NotAsked,
        links: None,
        misspelt_keys: Vec::new(),
    }
}

/// What the URL would serve. A URL that no resolver requests serves nothing.
fn predicted_https_response(url: Option<&str>, bytes: &Bytes) -> HttpsOutcome {
    let Some(url) = url.filter(|url| is_https_url(url)) else { return HttpsOutcome::NotAsked };
    let parsed = url::Url::parse(url).ok();
    let host = parsed.as_ref().and_then(|url| url.host_str().map(PublicHostName::parse));
    match (host, parsed) {
        (Some(Err(error)), Some(url)) => {
            let target = url.origin().ascii_serialization();
            HttpsOutcome::Forbidden(ForbiddenUrlError { hop: 0, target, why: error.into() }.into())
        }
        _ if bytes.len() > JsonLimits::CARD.bytes => HttpsOutcome::Oversize(JsonLimits::CARD.bytes as u64),
        _ => HttpsOutcome::Body { bytes: bytes.clone(), url: url.to_owned() },
    }
}

/// Resolves the path over the blocks that were built.
fn predicted_ipfs_walk(publication: &UnixFsPublication, path: &UnixFsPath) -> IpfsWalkOutcome {
    let mut walk = DagWalk::new(publication.root, path, DagWalkBudget::for_agent_card());
    // Terminates: each block is supplied once or rejected, and a budget limits the visits.
    while let Some(block) = walk.wanted_block().and_then(|cid| publication.blocks.get(cid)) {
        if walk.supply_block(block.clone()).is_err() {
            break;
        }
    }
    IpfsWalkOutcome::from_walk(walk.finish(), ContentProofSource::Gateway, Vec::new())
}

fn predict_verdict(
    evidence: &ResolutionEvidence,
    rules: VerdictPredictionRules<'_>,
) -> (TrustState, Vec<Reason>, Vec<String>) {
    let judgement = check::judge_planned_evidence(evidence, rules.profile, rules.policy);
    let near_misses = match judgement.state {
        TrustState::Trusted => Vec::new(),
        _ => {
            let others = rules.profiles.iter().filter(|other| other.id() != rules.profile.id());
            let better = others.filter(|other| {
                check::judge_planned_evidence(evidence, other, rules.policy).state == TrustState::Trusted
            });
            better.map(|other| other.id().to_owned()).collect()
        }
    };
    (judgement.state, judgement.reasons, near_misses)
}

/// Judges a card without a usable name: its own faults, and the missing name.
fn judge_unnamed_card(
    bytes: &[u8],
    name: Option<&Result<EnsName, EnsNameError>>,
    rules: VerdictPredictionRules<'_>,
) -> (TrustState, Vec<Reason>, Vec<String>) {
    let mut reasons = match AgentCard::parse(bytes) {
        Ok(card) => {
            let checks = [check::card::check_card, check::entry::check_entry, check::verbs::check_verbs];
            checks.iter().flat_map(|check| check(&card, rules.profile)).collect()
        }
        Err(error) => vec![error.to_card_reason()],
    };
    if let Some(Err(error)) = name {
        reasons.push(Reason::new(ReasonCode::NameInvalid).observed(error.to_string()).at_place("/ens"));
    }
    reason::sort_reasons(&mut reasons);
    (TrustState::Untrusted, reasons, Vec::new())
}

#[cfg(test)]
mod tests {
    use clresolve_verdict::profile::DEFAULT;
    use clresolve_verdict::sample::{distinct_codes, good_card, good_commercial_card};
    use serde_json::{Value, json};

    use super::*;

    fn file(value: &Value) -> FileTreeNode {
        FileTreeNode::File(format!("{value:#}\n").into())
    }

    fn folder<const N: usize>(nodes: [(&str, FileTreeNode); N]) -> FileTreeNode {
        FileTreeNode::Folder(nodes.into_iter().map(|(name, node)| (name.to_owned(), node)).collect())
    }

    fn planned(root: &FileTreeNode, url: Option<&str>) -> Vec<CardPublicationPlan> {
        planned_by(root, url, DEFAULT, ResolutionDepth::Identity)
    }

    fn planned_by(
        root: &FileTreeNode,
        url: Option<&str>,
        profile: &str,
        depth: ResolutionDepth,
    ) -> Vec<CardPublicationPlan> {
        let profiles = ConformanceProfiles::builtin();
        let profile = profiles.get(profile).expect("built in");
        let policy = JudgementPolicy { depth, ..JudgementPolicy::default() };
        let rules = VerdictPredictionRules {
            profile: &profile,
            profiles: &profiles,
            policy: &policy,
            now: Timestamp::UNIX_EPOCH,
        };
        plan_card_publications(&built(root), PublisherDeclarations { url, payees: &[] }, rules).expect("a good URL")
    }

    fn built(root: &FileTreeNode) -> UnixFsPublication {
        UnixFsPublication::build(root, IpfsImportProfile::UnixfsV1).expect("a good tree")
    }

    fn one(card: &Value, url: Option<&str>) -> CardPublicationPlan {
        planned(&file(card), url).pop().expect("one card")
    }

    #[test]
    fn a_good_card_would_be_trusted() {
        let plan = one(&good_card(), None);
        assert_eq!((plan.would_be, &plan.reasons), (TrustState::Trusted, &Vec::new()));
        assert_eq!(plan.name.as_deref(), Some("summarizeagent.eth"));
        let text = format!("{:#}\n", good_card());
        let cid = ContentId::from_raw_block(text.as_bytes()).to_string();
        let expected = [
            ("cl.agentcard", good_card()["$id"].as_str().expect("a text").to_owned()),
            ("cl.agentcard.mirror.ipfs", format!("ipfs://{cid}")),
            ("cl.checksum.agentcard", Digest::compute(text.as_bytes()).to_string()),
            ("cl.cid.agentcard", cid),
            ("cl.entry", "x402://summarizeagent.eth/summarize/v1".to_owned()),
            ("cl.owner", "commandlayer.eth".to_owned()),
        ];
        assert_eq!(plan.records.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_plan_names_the_records_to_be_paid() {
        let mut card = good_card();
        card["networks"] = serde_json::json!(["eip155:8453", "eip155:1", "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp"]);
        let records: Vec<_> = one(&card, None).payment_records.into_iter().map(|record| record.record).collect();
        assert_eq!(
            records,
            ["addr(60)", "addr(2147492101)", "addr(2147483648)", "cl.endpoint.runtime", "cl.receipt.signer"]
        );
    }

    #[test]
    fn a_name_that_no_path_can_hold_is_refused() {
        for name in ["..", ".", "a\u{0}"] {
            let root = folder([(name, file(&good_card()))]);
            let refused = UnixFsPublication::build(&root, IpfsImportProfile::UnixfsV1).map(|_| ());
            assert!(matches!(refused, Err(PublicationPlanError::Name { .. })), "{name:?}: {refused:?}");
        }
    }

    #[test]
    fn a_payee_is_an_account_of_an_evm_chain() {
        let coin = |text: &str| text.parse::<PayeeAccount>().map(|payee| payee.coin.number());
        let address = "0x00000000000000000000000000000000000000aa";
        let mistyped = "eip155:1:0x00000000000C2E074eC69A0dFb2997BA6C7d2e1d";
        assert_eq!(coin(&format!("eip155:1:{address}")), Ok(60));
        assert_eq!(coin(&format!("eip155:8453:{address}")), Ok(2_147_492_101));
        assert_eq!(coin(&format!("eip155:0:{address}")), Ok(CoinType::EVM_DEFAULT.number()));
        let far = format!("eip155:99999999999:{address}");
        for text in [address, "eip155:1:0x00", "solana:1:x", "eip155::0x", &far, mistyped] {
            assert_eq!(coin(text), Err(PayeeAccountError), "{text}");
        }
    }

    /// The records contain the CID that the publisher's importer computes, and the blocks below it are traversed.
    #[test]
    fn the_records_are_those_of_the_import_profile() {
        let root = folder([("a.json", file(&good_card()))]);
        let profiles = ConformanceProfiles::builtin();
        let profile = profiles.get(DEFAULT).expect("built in");
        let policy = JudgementPolicy::default();
        let rules = VerdictPredictionRules {
            profile: &profile,
            profiles: &profiles,
            policy: &policy,
            now: Timestamp::UNIX_EPOCH,
        };
        for import in IpfsImportProfile::ALL {
            let publication = UnixFsPublication::build(&root, import).expect("a good tree");
            let plan = plan_card_publications(&publication, PublisherDeclarations::default(), rules)
                .expect("no URL")
                .pop()
                .expect("a card");
            assert_eq!(plan.cid, plan.cids[import.as_str()]);
            assert_eq!(plan.records["cl.cid.agentcard"], plan.cid);
            assert_eq!(plan.records["cl.agentcard.mirror.ipfs"], format!("ipfs://{}/a.json", plan.cid));
            assert_eq!(plan.would_be, TrustState::Trusted);
            let data = plan.calldata.expect("it would be trusted");
            let has = |text: &str| data.windows(text.len()).any(|part| part == text.as_bytes());
            assert!(plan.cids.values().all(|cid| has(cid) == (*cid == plan.cid)), "{import:?}");
        }
    }

    #[test]
    fn a_folder_gives_a_plan_for_each_card() {
        let agents = folder([
            ("a b%.json", file(&good_card())),
            ("purchase.json", file(&good_commercial_card())),
            ("schema.json", file(&json!({"ens": "x.eth"}))),
            ("README.md", FileTreeNode::File("# cards".into())),
        ]);
        let root = folder([("agents", agents), ("empty", folder([]))]);
        let plans = planned(&root, Some("https://cards.example/"));
        let paths: Vec<_> = plans.iter().filter_map(|plan| plan.path.as_deref()).collect();
        assert_eq!(paths, ["agents/a%20b%25.json", "agents/purchase.json"]);
        for plan in &plans {
            // The sample's $id is another location.
            assert_eq!((plan.would_be, distinct_codes(&plan.reasons)), (TrustState::Trusted, vec!["card-id-mismatch"]));
            let path = plan.path.as_deref().expect("a path");
            assert_eq!(plan.records["cl.agentcard"], format!("https://cards.example/{path}"));
            assert_eq!(plan.records["cl.agentcard.mirror.ipfs"], format!("ipfs://{}/{path}", plan.cid));
        }
        let publication = built(&root);
        let rules_need_one = PublicationPlanError::OneUrl(2);
        let profiles = ConformanceProfiles::builtin();
        let profile = profiles.get(DEFAULT).expect("built in");
        let policy = JudgementPolicy::default();
        let rules = VerdictPredictionRules {
            profile: &profile,
            profiles: &profiles,
            policy: &policy,
            now: Timestamp::UNIX_EPOCH,
        };
        let declared = PublisherDeclarations { url: Some("https://cards.example/a.json"), payees: &[] };
        assert_eq!(plan_card_publications(&publication, declared, rules), Err(rules_need_one));
    }

    /// The CID that Helia's importer computes for the same tree.
    #[test]
    fn the_cid_is_that_of_importers() {
        let root = folder([
            ("a.txt", FileTreeNode::File("hello world\n".into())),
            ("b", folder([("c.txt", FileTreeNode::File("".into())), ("d", folder([]))])),
        ]);
        let publication = built(&root);
        assert_eq!(publication.root.to_string(), "bafybeigpb6ppg4x3355i3yyyewy5g5mpry4sk7impilth27uouhrd6wjve");
    }

    #[test]
    fn what_a_real_run_would_find_is_foreseen() {
        let with = |member: &str, value: Value| {
            let mut card = good_card();
            card[member] = value;
            let plan = one(&card, None);
            (plan.would_be, distinct_codes(&plan.reasons))
        };
        assert_eq!(
            with("entry", json!("x402://a.eth/summarize/v1")),
            (TrustState::Untrusted, vec!["entry-ens-mismatch"])
        );
        assert_eq!(with("status", json!("deprecated")), (TrustState::Trusted, vec!["status-deprecated"]));
        assert_eq!(with("ens", json!("a_.eth.")).0, TrustState::Untrusted);
        assert!(with("ens", json!("a..eth")).1.contains(&"name-invalid"));
        assert!(with("ens", json!("SummarizeAgent.eth")).1.contains(&"card-ens-mismatch"));
        assert_eq!(with("meta", json!({"x": "y".repeat(300_000)})), (TrustState::Untrusted, vec!["source-oversize"]));

        let of_url = |url: &str| distinct_codes(&one(&good_card(), Some(url)).reasons);
        assert_eq!(of_url("http://cards.example/a.json"), ["agentcard-url-not-https"]);
        assert_eq!(of_url("https://10.0.0.1/a.json"), ["source-forbidden"]);
        assert_eq!(of_url("https://cards.internal/a.json"), ["source-forbidden"]);
        let mut bare = good_card();
        bare.as_object_mut().expect("a card").remove("$id");
        assert_eq!(distinct_codes(&one(&bare, None).reasons), ["txt-missing"]);
        let broken = planned(&FileTreeNode::File("{".into()), None).pop().expect("one card");
        assert_eq!((broken.would_be, distinct_codes(&broken.reasons)), (TrustState::Untrusted, vec!["card-not-json"]));
    }

    #[test]
    fn near_misses_are_named() {
        let mut card = good_card();
        card["entry"] = json!("x402://summarizeagent.eth/summarize/v1.0.0");
        let plan = one(&card, None);
        assert_eq!((plan.near_misses, plan.calldata), (vec!["agent-cards/1.0.0+released".to_owned()], None));
    }

    #[test]
    fn depth_schemas_takes_pinned_schemas_for_served() {
        let plan = |profile: &str| {
            planned_by(&file(&good_card()), None, profile, ResolutionDepth::Schemas).pop().expect("one card")
        };
        let letter = plan(DEFAULT);
        let of_bytes = ["schema-unavailable", "schema-unpinned", "published-version-mutated"];
        assert!(distinct_codes(&letter.reasons).iter().all(|code| !of_bytes.contains(code)), "{:?}", letter.reasons);
        assert_eq!((letter.depth, letter.assumed.len()), (ResolutionDepth::Schemas, ASSUMED.len() + 1));
        let newer = plan("agent-cards/1.1.0");
        assert_eq!(newer.would_be_at[ResolutionDepth::Schemas.as_str()], newer.would_be);
        assert_eq!(
            letter.would_be_at,
            BTreeMap::from([("identity", TrustState::Trusted), ("schemas", TrustState::Trusted)])
        );
        assert!(distinct_codes(&newer.reasons).contains(&"schema-unpinned"), "{:?}", newer.reasons);
        assert!(one(&good_card(), None).assumed.iter().eq(&ASSUMED));
    }

    #[test]
    fn what_importers_shard_is_refused() {
        let many = (0..6000).map(|n| (format!("{n:06}.json"), FileTreeNode::File(Bytes::new()))).collect();
        let tree = folder([("many", FileTreeNode::Folder(many))]);
        let error = UnixFsPublication::build(&tree, IpfsImportProfile::UnixfsV1).expect_err("too large");
        assert_eq!(error, PublicationPlanError::FolderTooLarge("many".into()));
    }
}
