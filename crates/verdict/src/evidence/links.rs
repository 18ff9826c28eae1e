//! Links to the card from outside CommandLayer: ENSIP-26 records, an ERC-8004 registration file, and the ENSIP-25
//! records that confirm its registrations.

use std::fmt;
use std::str::FromStr;

use alloy_primitives::{Address, U256, hex};
use bytes::Bytes;
use serde_json::Value;

use clresolve_core::json;
use clresolve_core::json::{JsonError, JsonLimits};
use clresolve_core::name::EnsName;
use clresolve_core::records::TextRecord;

/// The ENSIP-26 records that are read: the free-form entry point, and endpoints by protocol.
pub const KEYS: [&str; 5] =
    ["agent-context", "agent-endpoint[card]", "agent-endpoint[a2a]", "agent-endpoint[mcp]", "agent-endpoint[web]"];

/// Path of a host's registration file (ERC-8004).
pub const WELL_KNOWN: &str = "/.well-known/agent-registration.json";

/// URL of the registration file on the host of the card's URL.
pub fn registration_file_url(card_url: Option<&str>) -> Option<String> {
    let url = url::Url::parse(card_url?).ok()?;
    url.join(WELL_KNOWN).ok().map(String::from)
}

/// Maximum number of endpoints read from a registration file. Real files name a handful.
pub const MAX_SERVICES: usize = 32;

/// Maximum number of registrations read from a file. Each costs one more text record lookup.
pub const MAX_REGISTRATIONS: usize = 4;

/// The links that were read for a name, or the cause of the failure as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalLinks {
    /// Text records under [`KEYS`].
    pub records: Result<Vec<(String, TextRecord)>, String>,
    /// The registration file on the host of the card's URL.
    pub file: Result<Bytes, String>,
    /// The ENSIP-25 record of each registration in the file.
    pub registrations: Result<Vec<(String, TextRecord)>, String>,
}

/// The members of an ERC-8004 registration file that can confirm or contradict a card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistrationFile {
    /// The agent's name.
    pub name: Option<String>,
    /// Name and endpoint of each entry in `services` (`endpoints` in older files).
    pub services: Vec<(String, String)>,
    /// The well-formed `registrations`.
    pub registrations: Vec<RegisteredAgentId>,
}

impl RegistrationFile {
    /// Parses a registration file. A member of the wrong type counts as missing.
    ///
    /// # Errors
    /// [`JsonError`] unless the file is one strict JSON object within the limits of a card.
    pub fn parse(bytes: &[u8]) -> Result<Self, JsonError> {
        let document = json::parse_strict_json(bytes, JsonLimits::CARD)?;
        let items = |member: &str| document.get(member).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let text = |item: &Value, member: &str| item.get(member).and_then(Value::as_str).map(str::to_owned);
        let services = items("services").iter().chain(items("endpoints")).take(MAX_SERVICES);
        let registrations = items("registrations").iter().take(if clresolve_core::mutant!("links-unbounded") {
            usize::MAX
        } else {
            MAX_REGISTRATIONS
        });
        Ok(Self {
            name: text(&document, "name"),
            services: services.filter_map(|item| Some((text(item, "name")?, text(item, "endpoint")?))).collect(),
            registrations: registrations.filter_map(RegisteredAgentId::from_json).collect(),
        })
    }
}

impl RegistrationFile {
    /// The names in its ENS services.
    pub fn ens_service_names(&self) -> impl Iterator<Item = &str> {
        self.services.iter().filter(|(service, _)| service.eq_ignore_ascii_case("ens")).map(|(_, name)| name.as_str())
    }

    /// The URLs in its services.
    pub fn service_urls(&self) -> impl Iterator<Item = &str> {
        self.services.iter().map(|(_, endpoint)| endpoint.as_str())
    }

    /// Whether one of its ENS services names `name`.
    pub fn has_ens_service_for(&self, name: &EnsName) -> bool {
        self.ens_service_names().any(|stated| normalizes_to(stated, name))
    }
}

/// Whether the name stated in an ENS service normalizes to `name`.
pub(crate) fn normalizes_to(stated: &str, name: &EnsName) -> bool {
    EnsName::parse(stated).is_ok_and(|other| other == *name)
}

/// An entry in a registry of agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisteredAgentId {
    chain_id: u64,
    registry: Address,
    agent: U256,
}

impl RegisteredAgentId {
    /// The entry of `agent` in the registry at this address of an EIP-155 chain.
    pub const fn new(chain_id: u64, registry: Address, agent: U256) -> Self {
        Self { chain_id, registry, agent }
    }

    /// Whether the entry belongs to the registry at this address of an EIP-155 chain.
    pub fn belongs_to_registry(&self, chain_id: u64, registry: Address) -> bool {
        (self.chain_id, self.registry) == (chain_id, registry)
    }

    /// The EIP-155 chain of the registry.
    pub const fn chain_id(&self) -> u64 {
        self.chain_id
    }

    /// The agent's identifier in the registry.
    pub const fn agent_id(&self) -> U256 {
        self.agent
    }

    /// Parses `{"agentRegistry": "eip155:1:0x…", "agentId": 1}` (ERC-8004). The identifier may also be a decimal
    /// string.
    pub fn from_json(item: &Value) -> Option<Self> {
        let registry = item.get("agentRegistry")?.as_str()?;
        let (chain, address) = registry.strip_prefix("eip155:")?.split_once(':')?;
        let agent = match item.get("agentId")? {
            Value::Number(number) => U256::from(number.as_u64()?),
            Value::String(digits) if is_decimal(digits) => U256::from_str_radix(digits, 10).ok()?,
            _ => return None,
        };
        if !is_decimal(chain) || !address.starts_with("0x") {
            return None;
        }
        Some(Self { chain_id: chain.parse().ok()?, registry: address.parse().ok()?, agent })
    }

    /// Key of the text record by which a name confirms the entry (ENSIP-25).
    pub fn ensip25_record_key(&self) -> String {
        format!("agent-registration[{}][{}]", self.interoperable_address(), self.agent)
    }

    /// The registry as an interoperable address (ERC-7930, version 1): version, chain type (CASA: 0 for eip155), length
    /// and bytes of the chain id without leading zeros, length and bytes of the address.
    fn interoperable_address(&self) -> String {
        let id = self.chain_id.to_be_bytes();
        let reference = &id[id.iter().position(|byte| *byte != 0).unwrap_or(id.len())..];
        let length = u8::try_from(reference.len()).expect("a u64 has eight bytes");
        let address = self.registry.as_slice();
        hex::encode_prefixed([&[0, 1, 0, 0, length], reference, &[20], address].concat())
    }
}

/// `eip155:CHAIN:REGISTRY:AGENT`.
impl fmt::Display for RegisteredAgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "eip155:{}:{}:{}", self.chain_id, self.registry, self.agent)
    }
}

/// The text is not `eip155:CHAIN:REGISTRY:AGENT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected eip155:CHAIN:REGISTRY:AGENT, such as eip155:8453:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432:22")]
pub struct RegisteredAgentIdError;

impl FromStr for RegisteredAgentId {
    type Err = RegisteredAgentIdError;

    fn from_str(text: &str) -> Result<Self, RegisteredAgentIdError> {
        let (registry, agent) = text.rsplit_once(':').ok_or(RegisteredAgentIdError)?;
        let item = serde_json::json!({"agentRegistry": registry, "agentId": agent});
        Self::from_json(&item).ok_or(RegisteredAgentIdError)
    }
}

/// Whether `text` is a decimal number without leading zeros, so that each number has one spelling.
fn is_decimal(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const REGISTRY: &str = "0x8004A169FB4a3325136EB29fA0ceB6D2e539a432";

    #[test]
    fn the_key_of_a_registration_is_that_of_ensip_25() {
        let key = |chain: &str, id: Value| {
            let item = json!({"agentRegistry": format!("eip155:{chain}:{REGISTRY}"), "agentId": id});
            RegisteredAgentId::from_json(&item).map(|registration| registration.ensip25_record_key())
        };
        let expected = "agent-registration[0x000100000101148004a169fb4a3325136eb29fa0ceb6d2e539a432][167]";
        assert_eq!(key("1", json!(167)).as_deref(), Some(expected));
        assert_eq!(key("1", json!("167")).as_deref(), Some(expected));
        let base = "agent-registration[0x00010000022105148004a169fb4a3325136eb29fa0ceb6d2e539a432][0]";
        assert_eq!(key("8453", json!(0)).as_deref(), Some(base));
        for (chain, id) in [("01", json!(1)), ("", json!(1)), ("1", json!("0x1")), ("1", json!(-1)), ("1", json!("01"))]
        {
            assert_eq!(key(chain, id.clone()), None, "{chain} {id}");
        }
    }

    #[test]
    fn a_file_is_of_the_names_that_its_ens_services_state() {
        let of = |name: &str, services: Value| {
            let file =
                RegistrationFile::parse(json!({"services": services}).to_string().as_bytes()).expect("strict JSON");
            file.has_ens_service_for(&EnsName::parse(name).expect("a name"))
        };
        let both = json!([{"name": "ens", "endpoint": "other.eth"}, {"name": "ENS", "endpoint": "SummarizeAgent.eth"}]);
        assert!(of("summarizeagent.eth", both.clone()) && of("other.eth", both.clone()));
        assert!(!of("agent.eth", both));
        assert!(!of("summarizeagent.eth", json!([{"name": "web", "endpoint": "summarizeagent.eth"}])));
        assert!(!of("summarizeagent.eth", json!([{"name": "ENS", "endpoint": "x.summarizeagent.eth"}])));
    }

    #[test]
    fn of_a_file_only_so_much_is_read() {
        let service = json!({"name": "ENS", "endpoint": "a.eth"});
        let entry = json!({"agentRegistry": format!("eip155:1:{REGISTRY}"), "agentId": 1});
        let file = json!({"name": 5, "services": vec![service; 40], "registrations": vec![entry; 9]});
        let read = RegistrationFile::parse(file.to_string().as_bytes()).expect("strict JSON");
        assert_eq!((read.services.len(), read.registrations.len()), (MAX_SERVICES, MAX_REGISTRATIONS));
        assert_eq!(read.name, None);
        assert!(RegistrationFile::parse(br#"{"name":"a","name":"b"}"#).is_err());
    }
}
