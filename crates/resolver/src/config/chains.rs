//! `[chains.ID]`: other chains whose ERC-8004 registries list the accounts of agents, and the endpoints to read them.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use alloy_primitives::Address;
use clresolve_core::payment::CoinType;
use clresolve_core::reading::ProofGradeDemand;
use clresolve_core::world::MAINNET_ID as MAINNET;
use clresolve_state::agent_registry::IDENTITY_REGISTRY;
use serde::{Deserialize, Serialize};

use super::demand::derive_proof_grade_demand;
use super::endpoint::RpcEndpointConfig;
use super::error::ConfigError;
use super::labels::label_endpoints;
use super::payment::is_normalized_name;
use super::text;
use super::value::{ChainProofMode, deserialize_quorum};

/// `[chains]`: by EIP-155 chain id.
pub type RegistryChainMap = BTreeMap<ChainId, RegistryChainConfig>;

/// The id of an EVM chain, written as a number. It must be small enough to have a coin type (ENSIP-11), since x402
/// names chains that way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ChainId(u64);

impl ChainId {
    /// Returns `None` if the id is too large for a coin type.
    pub fn new(id: u64) -> Option<Self> {
        CoinType::from_chain_id(id).map(|_| Self(id))
    }

    /// The id.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl TryFrom<String> for ChainId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let id = text.parse().ok().and_then(Self::new).filter(|id| id.to_string() == text);
        id.ok_or("expected the id of an EVM chain as a number, such as 8453")
    }
}

impl From<ChainId> for String {
    fn from(id: ChainId) -> Self {
        id.to_string()
    }
}

impl fmt::Display for ChainId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The ERC-8004 registry of one chain, and the endpoints to read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[non_exhaustive]
pub struct RegistryChainConfig {
    /// RPC endpoints of that chain, in order of preference.
    #[serde(rename = "rpc")]
    pub endpoints: Vec<RpcEndpointConfig>,
    /// The grade of proof that the endpoints must provide. If unset, the same defaults apply as for the chain of names.
    #[serde(default, with = "text::optional")]
    pub proof: Option<ChainProofMode>,
    /// Number of operators that must agree in a quorum.
    #[serde(default, deserialize_with = "deserialize_quorum")]
    pub quorum: Option<usize>,
    /// Maximum age of the chain's newest block. If unset: five slots, if the slot time is known.
    #[serde(default, with = "text::optional")]
    pub max_head_age: Option<Duration>,
    /// The identity registry. The default is the one deployed by the authors of ERC-8004.
    #[serde(default = "default_erc8004_registry_address", with = "text")]
    pub registry: Address,
    /// Agent ids in the registry, by name, if the operator knows them. For other names, the id comes from the
    /// registration file on the host of the card's URL.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, u64>,
}

const fn default_erc8004_registry_address() -> Address {
    IDENTITY_REGISTRY
}

impl RegistryChainConfig {
    /// The published registry, read through `endpoints`.
    pub const fn new(endpoints: Vec<RpcEndpointConfig>) -> Self {
        Self {
            endpoints,
            proof: None,
            quorum: None,
            max_head_age: None,
            registry: IDENTITY_REGISTRY,
            agents: BTreeMap::new(),
        }
    }

    /// The demand that the endpoints must meet for an answer, as for
    /// [`EnsChainConfig::proof_grade_demand`](super::EnsChainConfig::proof_grade_demand). State proofs are supported
    /// only for the chain of names.
    ///
    /// # Errors
    /// [`ConfigError::Conflict`].
    pub fn proof_grade_demand(&self) -> Result<ProofGradeDemand, ConfigError> {
        match derive_proof_grade_demand(&self.endpoints, self.proof, self.quorum)? {
            ProofGradeDemand::StateProof(_) | ProofGradeDemand::ConsensusProof(_) => Err(ConfigError::conflict(
                "proof",
                "a registry is read by single-rpc or quorum; no state of this chain is proven",
            )),
            demand => Ok(demand),
        }
    }

    /// Maximum age of the newest block of this chain, as for
    /// [`EnsChainConfig::effective_max_head_age`](super::EnsChainConfig::effective_max_head_age).
    pub fn effective_max_head_age(&self, id: ChainId) -> Option<Duration> {
        self.max_head_age.or_else(|| five_slot_duration(id.number()))
    }

    /// Gives each endpoint a unique label. The default label includes the chain: `rpc-8453-1`.
    pub(super) fn assign_endpoint_labels(&mut self, id: ChainId) {
        self.endpoints = label_endpoints(&self.endpoints, &format!("{}-{id}", RpcEndpointConfig::UNNAMED));
    }
}

/// Checks that each chain has endpoints that can meet its demand and a registry, and that the names are in normal form.
pub(super) fn check_registry_chains(chains: &RegistryChainMap) -> Result<(), ConfigError> {
    for (id, chain) in chains {
        let wrong =
            |key: &str, detail: String| Err(ConfigError::Conflict { key: format!("chains.{id}.{key}"), detail });
        if chain.endpoints.is_empty() {
            return wrong("rpc", "expected at least one endpoint".to_owned());
        }
        match chain.proof_grade_demand() {
            Err(ConfigError::Conflict { key, detail }) => return wrong(&key, detail),
            Err(other) => return Err(other),
            Ok(ProofGradeDemand::SingleRpc) if chain.endpoints.iter().all(|endpoint| !endpoint.own) => {
                return wrong(
                    "rpc",
                    "a single third-party endpoint proves no payee: add operators, or set own = true".to_owned(),
                );
            }
            Ok(_) => {}
        }
        if chain.registry.is_zero() {
            return wrong("registry", "expected the address of an ERC-8004 identity registry".to_owned());
        }
        if let Some(name) = chain.agents.keys().find(|name| !is_normalized_name(name)) {
            return wrong(&format!("agents.{name}"), "expected a name in normal form".to_owned());
        }
    }
    Ok(())
}

/// Five slots of the chain, if its slot time is fixed and known here. A slot may stay empty, and an endpoint may be a
/// block behind.
pub(super) fn five_slot_duration(chain_id: u64) -> Option<Duration> {
    let seconds = match chain_id {
        // Ethereum, and its test networks Holesky, Hoodi and Sepolia.
        MAINNET | 17_000 | 560_048 | 11_155_111 => 12,
        // Gnosis and its test network Chiado.
        100 | 10_200 => 5,
        // OP Mainnet, Base, and their test networks on Sepolia.
        10 | 8453 | 11_155_420 | 84_532 => 2,
        _ => return None,
    };
    Some(5 * Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::testing::parse_over_defaults;
    use crate::config::{Config, ConfigLayer};

    const FULL: &str = r#"
[chains.8453]
rpc = ["https://a.example/SECRET", { url = "https://b.example", label = "b" }]
quorum = 2
max-head-age = "20s"
registry = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
agents = { "summarizeagent.eth" = 22 }

[chains.1]
rpc = [{ url = "http://127.0.0.1:8545", own = true }]
"#;

    #[test]
    fn every_key_is_read_and_written() {
        let config = parse_over_defaults(FULL).unwrap();
        let base = &config.chains[&ChainId::new(8453).unwrap()];
        assert_eq!(base.proof_grade_demand(), Ok(ProofGradeDemand::Quorum(2)));
        assert_eq!(base.max_head_age, Some(Duration::from_secs(20)));
        assert_eq!(base.agents["summarizeagent.eth"], 22);
        let labels: Vec<&str> = base.endpoints.iter().map(|endpoint| endpoint.label.as_str()).collect();
        assert_eq!(labels, ["rpc-8453-1", "b"]);
        let mainnet = &config.chains[&ChainId::new(1).unwrap()];
        assert_eq!(
            (mainnet.proof_grade_demand(), mainnet.registry),
            (Ok(ProofGradeDemand::SingleRpc), IDENTITY_REGISTRY)
        );
        let text = toml::to_string(&ConfigLayer::from_config(&config).unwrap()).unwrap();
        assert_eq!(parse_over_defaults(&text), Ok(config), "{text}");
        assert!(Config::default().chains.is_empty());
    }

    #[test]
    fn a_registry_that_proves_nothing_is_refused() {
        let two = r#"rpc = ["https://a.example", "https://b.example"]"#;
        for (id, keys, expected) in [
            ("8453", r#"rpc = []"#, "chains.8453.rpc"),
            ("8453", r#"rpc = [{ url = "http://a", own = true, ws = "ws://a" }]"#, "`ws` is no longer a key"),
            ("8453", r#"rpc = ["https://a.example"]"#, "a single third-party endpoint"),
            ("8453", &format!("{two}\nproof = \"single-rpc\""), "a single third-party endpoint"),
            ("8453", &format!("{two}\nquorum = 3"), "chains.8453.quorum"),
            ("8453", &format!("{two}\nproof = \"state-proof\""), "chains.8453.proof"),
            ("8453", &format!("{two}\nregistry = \"0x0000000000000000000000000000000000000000\""), "registry"),
            ("8453", &format!("{two}\nregistry = \"base\""), "address"),
            ("8453", &format!("{two}\nagents = {{ \"A.eth\" = 1 }}"), "normal form"),
            ("8453", &format!("{two}\nagents = {{ \"a.eth\" = -1 }}"), ""),
            ("8453", &format!("{two}\nregistery = \"\""), "registry"),
            ("8453", "", "rpc"),
            ("08453", two, "such as 8453"),
            ("\"eip155:8453\"", two, "such as 8453"),
            ("0", two, "such as 8453"),
            ("2147483648", two, "such as 8453"),
        ] {
            let error = parse_over_defaults(&format!("[chains.{id}]\n{keys}")).expect_err(keys).to_string();
            assert!(error.contains(expected), "{id} {keys}: {error}");
        }
    }

    #[test]
    fn an_error_holds_no_key_of_a_url() {
        let error = parse_over_defaults("[chains.8453]\nrpc = [\"ftp://a.example/SECRET\"]").unwrap_err().to_string();
        assert!(!error.contains("SECRET"), "{error}");
    }
}
