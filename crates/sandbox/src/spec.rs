//! The definition of a sandbox as data: its agents, what each publishes, and the one defect that some of them have.
//!
//! [`SandboxSpec`] is the content of a TOML file: the sandbox's own `agents.toml`, and every test scenario. Each
//! [`SandboxAgentSpec`] lists only its differences from a good one. Texts may contain placeholders: `{name}`, `{label}`
//! (its first label), `{class}`, `{verb}`, `{url}`, `{cid}`, `{cid.v0}` (version 0 form), `{path}`, `{sha256}`,
//! `{SHA256}` (in upper case), `{other.cid}`, `{other.path}`, `{other.sha256}` (of another version of the card),
//! `{schemas.cid}`, `{schemas.request.sha256}`, `{schemas.receipt.sha256}` and `{schemas.crlf}` (of the request schema
//! with CRLF line endings).

use std::collections::BTreeMap;

use alloy_primitives::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::chain::{CustodyContract, Ensv1Remnant, HostileResolverMode};
use super::gateway::IpfsGatewayBehaviour;
use super::web::WebServerBehaviour;
use clresolve_core::payment::CoinType;
use clresolve_core::reason::ReasonCode;
use clresolve_core::state::{TrustState, TrustStateUnderOtherProfile};
use clresolve_ipfs::build::BlocksByCid;

const PUBLISHER: &str = "publisher.eth";

/// The account that holds the names of [`PUBLISHER`].
pub(crate) const PUBLISHER_ACCOUNT: &str = "publisher";

/// The definition of a sandbox, or a part of one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxSpec {
    /// Names with an Agent-Card.
    #[serde(rename = "agent")]
    pub agents: Vec<SandboxAgentSpec>,
    /// Names without an Agent-Card.
    #[serde(rename = "name")]
    pub names: Vec<CardlessNameSpec>,
    /// Schemas with a defect.
    #[serde(rename = "schema")]
    pub schemas: Vec<DefectiveSchema>,
    /// Sellers without an Agent-Card.
    #[serde(rename = "seller")]
    pub sellers: Vec<SandboxSellerSpec>,
    /// Cards that a publisher wrote, published byte for byte.
    #[serde(skip)]
    pub planned: Vec<PublisherCardSet>,
}

/// Cards that a publisher wrote, and their IPFS blocks.
#[derive(Clone, Debug)]
pub struct PublisherCardSet {
    /// The cards.
    pub cards: Vec<PublisherCard>,
    /// The blocks of the folder or file that contains the cards.
    pub blocks: BlocksByCid,
}

/// A card that a publisher wrote. The sandbox's publisher holds the card's name and, unless the sandbox already has it,
/// the owner's name.
#[derive(Clone, Debug)]
pub struct PublisherCard {
    /// The name.
    pub name: String,
    /// The bytes that are served at the URL in `cl.agentcard`.
    pub card: bytes::Bytes,
    /// Its text records by key.
    pub records: BTreeMap<String, String>,
}

/// A name that exists only on the chain: an owner, or an ancestor of other names.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardlessNameSpec {
    /// The name.
    pub name: String,
    /// The account that holds it.
    #[serde(default = "default_holder")]
    pub holder: String,
    /// The account in its address record.
    pub addr: Option<String>,
    /// Its address records by chain, as for an [`SandboxAgentSpec`]. On other chains, a seller's name has the honest
    /// payee as its address.
    #[serde(default)]
    pub addresses: AddressRecordsSpec,
    /// Its text records, with any keys.
    #[serde(default)]
    pub records: BTreeMap<String, String>,
    /// The contract that holds it.
    #[serde(default)]
    pub custody: CustodyContract,
    /// Days from the start of the sandbox until the registration expires. The default is the year 2100.
    pub expires_in_days: Option<i64>,
    /// Its resolver.
    #[serde(default)]
    pub resolver: EnsResolverSpec,
}

/// A seller without an Agent-Card: the terms that it demands, the identity that it claims, its names and registration
/// on the chain, and the expected decision of a check of its URL.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxSellerSpec {
    /// The URL to check. At the host of the agents' sellers (`seller.rs`), the seller is that agent's, and this
    /// definition only adds the expected decision.
    pub url: String,
    /// What is special about it, in one plain sentence.
    pub about: String,
    /// The expected decision.
    pub decision: ExpectedCheckDecision,
    /// The expected codes, including warnings, in alphabetical order.
    #[serde(default)]
    pub codes: Vec<ReasonCode>,
    /// The name that the caller passes.
    pub name: Option<String>,
    /// The identity that the configuration pins for its origin. `{registration}` stands for its own registration.
    pub pinned: Option<String>,
    /// The identity that the memory has accepted for its origin, with the same placeholder.
    pub remembered: Option<String>,
    /// Whether the memory has another payee for its origin.
    #[serde(default)]
    pub remembered_other_payee: bool,
    /// How it replies: the first segment of a path on the host of the agents' sellers (`seller.rs`).
    #[serde(default)]
    pub behaviour: String,
    /// The URL to which it redirects instead.
    pub redirect: Option<String>,
    /// The name that its terms claim (`extra.ens`).
    pub claims_name: Option<String>,
    /// Whether its terms claim its registration (`extra.erc8004`).
    #[serde(default)]
    pub claims_registration: bool,
    /// Names that exist because of it. `{url}` in a record stands for the URL to check, `{origin}` for its origin.
    #[serde(default)]
    pub names: Vec<CardlessNameSpec>,
    /// Its registration (ERC-8004). The registrations of sellers are numbered after those of agents.
    pub erc8004: Option<AgentRegistryEntrySpec>,
    /// The endpoint in its registration file. The default is the URL to check.
    pub listed_endpoint: Option<String>,
    /// What its origin serves as its registration file.
    #[serde(default)]
    pub well_known: WellKnownRegistrationSpec,
}

/// What an origin serves at `/.well-known/agent-registration.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WellKnownRegistrationSpec {
    /// The seller's registration file, if it has a registration.
    #[default]
    Own,
    /// Nothing.
    Missing,
    /// A file without registrations whose only ENS service is this name.
    Ens(String),
    /// A redirect to this URL.
    Moved(String),
}

/// The decision that a check should give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExpectedCheckDecision {
    /// The terms may be paid.
    Allow,
    /// A check failed, so the terms must not be paid.
    Deny,
    /// The payee is not proven, so the terms must not be paid.
    Undecided,
}

impl ExpectedCheckDecision {
    /// The form in a document.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Undecided => "undecided",
        }
    }
}

/// A schema with a defect.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefectiveSchema {
    /// The verb of the request schema.
    pub verb: String,
    /// The defect.
    pub defect: SchemaDefectKind,
}

/// A defect of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchemaDefectKind {
    /// It contains a keyword that no specification defines.
    UnknownKeyword,
    /// It refers to a schema that the release does not contain.
    ForeignReference,
    /// Its `$id` differs from its location.
    WrongId,
    /// Neither its location nor its mirror serves it.
    Unavailable,
    /// Its mirror does not respond.
    MirrorDown,
    /// Its mirror serves another schema.
    MirrorOther,
    /// Its canonical https location serves another schema than the released one.
    Mutated,
}

/// An agent: what it publishes, and its expected verdict.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxAgentSpec {
    /// The name.
    pub name: String,
    /// What is special about it, in one plain sentence.
    pub about: String,
    /// The requirements of the conformance checklist that it tests.
    #[serde(default)]
    pub requirements: Vec<String>,
    /// The expected state with the default settings. `None` if it is used only with other settings.
    pub state: Option<TrustState>,
    /// The expected codes, including warnings, in alphabetical order.
    #[serde(default)]
    pub codes: Vec<ReasonCode>,
    /// The expected near misses.
    #[serde(default)]
    pub near_misses: Vec<TrustStateUnderOtherProfile>,
    /// The layer that defines its verb.
    #[serde(default)]
    pub class: VerbProtocolLayer,
    /// Its primary verb. The default depends on the class.
    pub verb: Option<String>,
    /// The last segment of its entry.
    #[serde(default = "default_route")]
    pub route: String,
    /// Value of `owner` and `cl.owner`.
    #[serde(default = "default_owner")]
    pub owner: String,
    /// How its card differs from a good one.
    #[serde(default)]
    pub card: CardEdit,
    /// How another version of its card differs from a good one, in addition to its description.
    #[serde(default)]
    pub other: CardEdit,
    /// Records that differ from good ones, with any keys. An empty text means that the record is not set.
    #[serde(default)]
    pub records: BTreeMap<String, String>,
    /// Records that differ in the newest block, which is not final yet.
    #[serde(default)]
    pub latest: BTreeMap<String, String>,
    /// The account that holds the name in the newest block, if that is another one.
    pub latest_holder: Option<String>,
    /// Address records (ENSIP-9), keyed by the EIP-155 ID of the chain, or `default` for the record for all EVM chains
    /// (ENSIP-19). The bytes are in hexadecimal. Empty means that the record is not set.
    #[serde(default)]
    pub addresses: AddressRecordsSpec,
    /// Address records that differ in the newest block.
    #[serde(default)]
    pub latest_addresses: AddressRecordsSpec,
    /// The seller behind its entry, by the path on the sellers' host (`seller.rs`). If set, its runtime and the address
    /// of the payee are published.
    pub seller: Option<String>,
    /// Its entry in the registry of agents (ERC-8004). Agents with an entry are numbered from 1 in their order.
    pub erc8004: Option<AgentRegistryEntrySpec>,
    /// Whether the schema binding records are set too.
    #[serde(default)]
    pub schema_records: bool,
    /// The layout of the card in IPFS.
    #[serde(default)]
    pub layout: IpfsCardLayout,
    /// How its card is served over https.
    #[serde(default)]
    pub web: WebServerBehaviour,
    /// How gateways respond to requests for its card's blocks.
    #[serde(default)]
    pub ipfs: IpfsGatewayBehaviour,
    /// The registration of its name.
    #[serde(default)]
    pub chain: NameRegistrationSpec,
}

/// An entry in the registry of agents.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentRegistryEntrySpec {
    /// The agent's wallet in the registry.
    #[serde(default)]
    pub wallet: AgentWalletSpec,
    /// The ENS name in its registration file. The default is the agent's name.
    pub ens: Option<String>,
    /// Whether the file is in IPFS. Otherwise it is a `data` URI.
    #[serde(default)]
    pub ipfs: bool,
    /// A URI to use in place of the file's.
    pub uri: Option<String>,
}

/// The wallet of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentWalletSpec {
    /// The payee address of honest sellers.
    #[default]
    Payee,
    /// An address that no name publishes.
    Stranger,
    /// None, because it was unset.
    Unset,
    /// That of honest sellers, but unset in the newest block.
    Leaving,
}

/// Address records by coin type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "BTreeMap<String, Bytes>")]
pub struct AddressRecordsSpec(pub BTreeMap<CoinType, Bytes>);

impl TryFrom<BTreeMap<String, Bytes>> for AddressRecordsSpec {
    type Error = String;

    fn try_from(by_chain: BTreeMap<String, Bytes>) -> Result<Self, String> {
        let coin = |chain: &str| match chain {
            "default" => Some(CoinType::EVM_DEFAULT),
            id => id.parse().ok().and_then(CoinType::from_chain_id),
        };
        let known = by_chain.into_iter().map(|(chain, address)| match coin(&chain) {
            Some(coin) => Ok((coin, address)),
            None => Err(format!("{chain} is neither the id of an EVM chain nor default")),
        });
        known.collect::<Result<_, _>>().map(Self)
    }
}

/// The layer that defines a card's verb.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VerbProtocolLayer {
    /// Protocol-Commons.
    #[default]
    Commons,
    /// Protocol-Commercial.
    Commercial,
}

impl VerbProtocolLayer {
    /// The name used in cards and locations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Commons => "commons",
            Self::Commercial => "commercial",
        }
    }

    const fn default_verb(self) -> &'static str {
        match self {
            Self::Commons => "summarize",
            Self::Commercial => "checkout",
        }
    }
}

/// The registration of a name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NameRegistrationSpec {
    /// Whether it exists at all.
    pub registered: bool,
    /// The account that holds it.
    pub holder: String,
    /// The contract that holds it.
    pub custody: CustodyContract,
    /// Days from the start of the sandbox until the registration expires. Negative if it has expired.
    pub expires_in_days: i64,
    /// Its resolver.
    pub resolver: EnsResolverSpec,
    /// If the name has migrated to ENSv2, what ENSv1 still contains of it. With [`EnsResolverSpec::ParentWildcard`],
    /// this is about the parent.
    pub migrated: Option<Ensv1Remnant>,
}

impl Default for NameRegistrationSpec {
    fn default() -> Self {
        Self {
            registered: true,
            holder: PUBLISHER_ACCOUNT.to_owned(),
            custody: CustodyContract::Registry,
            expires_in_days: 365,
            resolver: EnsResolverSpec::Public,
            migrated: None,
        }
    }
}

/// The resolver of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnsResolverSpec {
    /// The public resolver.
    #[default]
    Public,
    /// No resolver is set.
    None,
    /// A resolver address that has no code.
    NoCode,
    /// The name has no resolver. Its parent's resolver answers for every name below it (ENSIP-10).
    ParentWildcard,
    /// A resolver that sends clients to these gateways (EIP-3668).
    Offchain(Vec<String>),
    /// A resolver that misbehaves.
    Hostile {
        /// The kind of misbehaviour.
        mode: HostileResolverMode,
        /// For a mode with a lookup, the URL. Otherwise the record that misbehaves, or all records if empty.
        #[serde(default)]
        arg: String,
    },
}

/// The layout of a card in IPFS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IpfsCardLayout {
    /// One raw block.
    #[default]
    Raw,
    /// A file in several blocks.
    File,
    /// In a tree of directories.
    Directory,
    /// In several blocks, in a tree of directories.
    DirectoryOfBlocks,
    /// In a tree of sharded directories.
    Hamt,
    /// The path leads to a symlink.
    Symlink,
    /// The path leads to a block that is not UnixFS.
    Garbage,
}

/// How a card differs from a good one. Members are changed first, then the text, then the bytes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CardEdit {
    /// A merge patch (RFC 7386).
    pub patch: Map<String, Value>,
    /// Members to remove, as JSON Pointers (RFC 6901).
    pub remove: Vec<String>,
    /// Texts to replace after serialization, each once.
    pub replace: Vec<TextReplacement>,
    /// A text that replaces the whole card.
    pub text: Option<String>,
    /// Text to append.
    pub append: String,
    /// Number of nested arrays in `meta`.
    pub nest: usize,
    /// Number of spaces to append.
    pub pad: usize,
    /// How the text is encoded.
    pub encoding: TextEncoding,
}

/// A text and its replacement.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextReplacement {
    /// The text to replace. It must occur in the card.
    pub from: String,
    /// The replacement.
    pub to: String,
}

/// How the text of a card is encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TextEncoding {
    /// UTF-8.
    #[default]
    Utf8,
    /// UTF-8 after a byte order mark.
    Utf8Bom,
    /// UTF-16, little-endian, after a byte order mark.
    Utf16,
    /// ISO 8859-1. A character outside it becomes `?`.
    Latin1,
}

fn default_route() -> String {
    "v1".to_owned()
}

fn default_owner() -> String {
    PUBLISHER.to_owned()
}

fn default_holder() -> String {
    PUBLISHER_ACCOUNT.to_owned()
}

/// Why a sandbox cannot be built from its definition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{agent}: {detail}")]
pub struct SandboxSpecError {
    /// The name with the defect.
    pub agent: String,
    /// What is wrong with it.
    pub detail: String,
}

impl SandboxSpec {
    /// Parses a definition from TOML.
    ///
    /// # Errors
    /// The parser's message, with line and column.
    pub fn parse(toml: &str) -> Result<Self, String> {
        toml::from_str(toml).map_err(|error| error.to_string())
    }

    /// Combines both definitions.
    #[must_use]
    pub fn merged_with_spec(mut self, other: Self) -> Self {
        self.agents.extend(other.agents);
        self.names.extend(other.names);
        self.schemas.extend(other.schemas);
        self.sellers.extend(other.sellers);
        self.planned.extend(other.planned);
        self
    }
}

impl SandboxAgentSpec {
    /// The primary verb.
    pub fn verb(&self) -> &str {
        self.verb.as_deref().unwrap_or_else(|| self.class.default_verb())
    }

    pub(crate) fn label(&self) -> &str {
        self.name.split('.').next().unwrap_or_default()
    }

    pub(crate) fn spec_error(&self, detail: String) -> SandboxSpecError {
        SandboxSpecError { agent: self.name.clone(), detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(more: &str) -> Result<SandboxSpec, String> {
        SandboxSpec::parse(&format!("[[agent]]\nname = \"a.eth\"\nabout = \"An agent.\"\n{more}\n"))
    }

    #[test]
    fn addresses_are_written_by_chain() {
        let agent = agent("addresses = { 1 = \"0x01\", 31337 = \"0x02\", default = \"0x\" }").unwrap().agents.remove(0);
        let chain = CoinType::from_chain_id(31_337).unwrap();
        let expected: [(CoinType, Bytes); 3] =
            [(CoinType::ETHER, vec![1].into()), (CoinType::EVM_DEFAULT, Bytes::new()), (chain, vec![2].into())];
        assert_eq!(agent.addresses, AddressRecordsSpec(expected.into()));
        assert_eq!(agent.latest_addresses, AddressRecordsSpec::default());
    }

    #[test]
    fn what_is_no_chain_has_no_address() {
        for key in ["0", "-1", "eth", "2147483648", "\"\""] {
            let error = agent(&format!("addresses = {{ {key} = \"0x01\" }}")).unwrap_err();
            assert!(error.contains("neither the id of an EVM chain nor default"), "{error}");
        }
        assert!(agent("addresses = { default = \"words\" }").is_err());
    }
}
