//! The light client's settings.

use std::ffi::OsString;
use std::path::PathBuf;

use alloy_primitives::B256;
use clresolve_core::reading::ProofGradeDemand;
use clresolve_core::world::SANDBOX;

use super::beacon::BeaconNetwork;
use super::endpoint::BeaconEndpointConfig;
use super::{Config, ConfigError};

/// Maximum number of beacon endpoints.
const MAX_BEACON_ENDPOINTS: usize = 8;

/// Appended to the path of the memory: the default file of the light client.
const STATE_SUFFIX: &str = ".light-client";

/// The required parts of `[beacon]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LightClientSettings {
    /// The network.
    pub(crate) network: BeaconNetwork,
    /// The trusted block root.
    pub(crate) checkpoint: B256,
    /// The endpoints, each with a unique label.
    pub(crate) endpoints: Vec<BeaconEndpointConfig>,
    /// The file that keeps the verified state.
    pub(crate) file: Option<PathBuf>,
}

impl Config {
    /// What the light client needs. `None` if no header must be vouched for by consensus.
    ///
    /// # Errors
    /// [`ConfigError::Conflict`] if the checkpoint or the endpoints are missing, or if the network belongs to another
    /// chain.
    pub(crate) fn light_client_settings(&self) -> Result<Option<LightClientSettings>, ConfigError> {
        let Self { chain, beacon, .. } = self;
        if !matches!(chain.proof_grade_demand()?, ProofGradeDemand::ConsensusProof(_)) {
            return Ok(None);
        }
        let Some(checkpoint) = beacon.checkpoint else {
            let detail = "a header by consensus starts from a block root that you trust; set it, or another proof";
            return Err(ConfigError::conflict("beacon.checkpoint", detail));
        };
        if !(1..=MAX_BEACON_ENDPOINTS).contains(&beacon.endpoints.len()) {
            let detail = format!("expected 1 to {MAX_BEACON_ENDPOINTS} URLs of beacon nodes");
            return Err(ConfigError::conflict("beacon.endpoints", detail));
        }
        let network = beacon.network;
        if network.chain_id() != chain.id && !clresolve_core::mutant!("beacon-of-another-chain") {
            let detail = format!("{} is chain {}, not {}", network.as_str(), network.chain_id(), chain.id);
            return Err(ConfigError::conflict("beacon.network", detail));
        }
        if network == BeaconNetwork::Sandbox && chain.world != SANDBOX {
            let detail =
                format!("the validators of sandbox have public keys, so they prove nothing on {}", chain.world);
            return Err(ConfigError::conflict("beacon.network", detail));
        }
        let (endpoints, file) = (beacon.labelled_endpoints(), self.light_client_state_file());
        Ok(Some(LightClientSettings { network, checkpoint, endpoints, file }))
    }

    /// The file that keeps the verified state: as configured, else beside the file of the memory. `None` without a
    /// memory.
    fn light_client_state_file(&self) -> Option<PathBuf> {
        let beside = |memory: &PathBuf| {
            let mut path = OsString::from(memory);
            path.push(STATE_SUFFIX);
            PathBuf::from(path)
        };
        self.beacon.file.clone().or_else(|| self.memory.path.as_ref().map(beside))
    }
}

#[cfg(all(test, feature = "state-proof"))]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::ConfigLayer;
    use crate::config::testing::parse_over_defaults;

    const ROOT: &str = "0x1111111111111111111111111111111111111111111111111111111111111111";

    /// A file with this proof and header, and a complete `[beacon]`.
    fn config_text(proof: &str, header: &str, beacon: &str) -> String {
        let header = if header.is_empty() { String::new() } else { format!("[chain]\nheader = \"{header}\"\n") };
        format!("{proof}\n{header}[beacon]\ncheckpoint = \"{ROOT}\"\nendpoints = [\"https://b.example/KEY\"]\n{beacon}")
    }

    fn conflict_of(text: &str) -> (String, String) {
        match parse_over_defaults(text) {
            Err(ConfigError::Conflict { key, detail }) => (key, detail),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn every_key_is_read_and_written() {
        let text = format!(
            "proof = \"consensus-proof\"\nquorum = 2\n[chain]\nheader = \"both\"\n[beacon]\ncheckpoint = \"{ROOT}\"\n\
             endpoints = [\"https://a.example/KEY\", {{ url = \"https://b.example\", label = \"mine\" }}]\nfile = \"s\"\n\
             network = \"mainnet\"\n"
        );
        let config = parse_over_defaults(&text).unwrap();
        let settings = config.light_client_settings().unwrap().expect("headers need consensus");
        let labels: Vec<&str> = settings.endpoints.iter().map(|endpoint| endpoint.label.as_str()).collect();
        assert_eq!((labels, settings.checkpoint), (vec!["beacon-1", "mine"], B256::repeat_byte(0x11)));
        assert_eq!((settings.file.as_deref(), settings.network), (Some(Path::new("s")), BeaconNetwork::Mainnet));
        assert_eq!(config.chain.proof_grade_demand(), Ok(ProofGradeDemand::ConsensusProof(2)));
        let written = toml::to_string(&ConfigLayer::from_config(&config).unwrap()).unwrap();
        for layer in [ConfigLayer::from_config(&config).unwrap(), ConfigLayer::from_toml(&written, "g.toml").unwrap()] {
            assert_eq!(Config::default().with_layers([layer]).unwrap(), config, "{written}");
        }
        assert!(!format!("{config:?}").contains("KEY"), "the URL may contain a key");
    }

    #[test]
    fn header_and_proof_decide_the_demand() {
        for (proof, header, demand) in [
            ("", "", ProofGradeDemand::Quorum(2)),
            ("", "quorum", ProofGradeDemand::Quorum(2)),
            ("proof = \"state-proof\"", "", ProofGradeDemand::StateProof(2)),
            ("proof = \"state-proof\"", "consensus", ProofGradeDemand::ConsensusProof(0)),
            ("proof = \"state-proof\"", "both", ProofGradeDemand::ConsensusProof(2)),
            ("proof = \"consensus-proof\"", "", ProofGradeDemand::ConsensusProof(0)),
            ("proof = \"consensus-proof\"", "consensus", ProofGradeDemand::ConsensusProof(0)),
            ("proof = \"consensus-proof\"", "both", ProofGradeDemand::ConsensusProof(2)),
            ("proof = \"consensus-proof\"\nquorum = 3", "both", ProofGradeDemand::ConsensusProof(3)),
        ] {
            let config = parse_over_defaults(&config_text(proof, header, "")).unwrap();
            assert_eq!(config.chain.proof_grade_demand(), Ok(demand), "{proof}, {header}");
            assert_eq!(
                config.light_client_settings().unwrap().is_some(),
                matches!(demand, ProofGradeDemand::ConsensusProof(_))
            );
        }
    }

    #[test]
    fn contradictions_name_key_and_remedy() {
        let consensus = "proof = \"consensus-proof\"";
        let many: Vec<String> = (0..9).map(|place| format!("\"https://b{place}.example\"")).collect();
        let many = format!("{consensus}\n[beacon]\ncheckpoint = \"{ROOT}\"\nendpoints = [{}]", many.join(", "));
        let none = format!("{consensus}\n[beacon]\ncheckpoint = \"{ROOT}\"");
        for (text, key, part) in [
            (config_text(consensus, "quorum", ""), "chain.header", "needs a header by consensus"),
            (config_text("", "consensus", ""), "chain.header", "consensus proves headers, but no records"),
            (config_text("proof = \"quorum\"", "both", ""), "chain.header", "both proves headers, but no records"),
            (config_text("proof = \"single-rpc\"", "consensus", ""), "chain.header", "set proof consensus-proof"),
            (
                config_text("proof = \"consensus-proof\"\nquorum = 2", "", ""),
                "quorum",
                "set it to both, or remove quorum",
            ),
            (config_text("proof = \"consensus-proof\"\nquorum = 9", "both", ""), "quorum", "9 operators must agree"),
            (consensus.to_owned(), "beacon.checkpoint", "a block root that you trust"),
            (none, "beacon.endpoints", "expected 1 to 8 URLs"),
            (many, "beacon.endpoints", "expected 1 to 8 URLs"),
            (config_text(consensus, "", "network = \"sandbox\""), "beacon.network", "sandbox is chain 31337, not 1"),
        ] {
            let (found, detail) = conflict_of(&text);
            assert!(found == key && detail.contains(part), "{text}: {found}: {detail}");
        }
    }

    #[test]
    fn sandbox_vouches_for_no_other_network_of_its_chain_id() {
        let of_world = |world: &str| {
            let chain = "proof = \"consensus-proof\"\nchain-id = 31337\nrpc = [\"http://127.0.0.1:8545\"]";
            parse_over_defaults(&config_text(&format!("{chain}\n{world}"), "", "network = \"sandbox\""))
        };
        assert!(of_world("world = \"sandbox\"").is_ok());
        for (world, name) in [("", "eip155-31337"), ("world = \"anvil\"", "anvil")] {
            match of_world(world) {
                Err(ConfigError::Conflict { key, detail }) => {
                    assert!(key == "beacon.network" && detail.contains(name), "{key}: {detail}");
                }
                other => panic!("{name}: {other:?}"),
            }
        }
    }

    #[test]
    fn errors_of_values_name_line_key_and_expectation() {
        for (text, key, expected) in [
            ("[chain]\nheader = \"quorums\"", "header", "expected quorum, consensus or both"),
            ("[chain]\nproof = \"quorum\"", "proof", "unknown field"),
            ("[beacon]\ncheckpoint = \"0x11\"", "checkpoint", "expected a hash: 0x and 64 hex digits"),
            ("[beacon]\nendpoints = [\"b.example\"]", "endpoints", "the scheme is missing"),
            ("[beacon]\nnetwork = \"sepolia\"", "network", "expected `mainnet` or `sandbox`"),
            ("[beacon]\nendpoint = []", "endpoint", "did you mean `endpoints`?"),
        ] {
            match parse_over_defaults(text) {
                Err(ConfigError::Invalid { line: 2, key: found, detail, .. }) => {
                    assert!(found == key && detail.contains(expected), "{text}: {found}: {detail}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn flag_for_consensus_replaces_a_quorum_of_the_file() {
        let flag = || ConfigLayer::from_toml("proof = \"consensus-proof\"", "f.toml").unwrap();
        let with_flag =
            |text: &str| parse_over_defaults(text).unwrap().with_layers([flag()]).unwrap().chain.proof_grade_demand();
        assert_eq!(with_flag(&config_text("quorum = 3", "", "")), Ok(ProofGradeDemand::ConsensusProof(0)));
        let both = config_text("proof = \"state-proof\"\nquorum = 3", "both", "");
        assert_eq!(with_flag(&both), Ok(ProofGradeDemand::ConsensusProof(3)), "operators must agree too");
    }

    #[test]
    fn verified_state_is_kept_beside_the_memory() {
        let consensus = "proof = \"consensus-proof\"";
        let path = |text: &str| parse_over_defaults(text).unwrap().light_client_state_file();
        assert_eq!(path(&config_text(consensus, "", "")), None);
        let with_memory = config_text(consensus, "", "[memory]\npath = \"/var/lib/clresolve/memory\"");
        assert_eq!(path(&with_memory).as_deref(), Some(Path::new("/var/lib/clresolve/memory.light-client")));
        assert_eq!(path(&config_text(consensus, "", "file = \"/s\"\n[memory]\npath = \"m\"")), Some("/s".into()));
    }

    #[test]
    fn gate_may_require_the_strongest_grade() {
        let gate =
            |proof: &str| parse_over_defaults(&config_text(proof, "", "[gate]\nmin-proof = \"consensus-proof\""));
        assert!(gate("proof = \"consensus-proof\"").is_ok());
        assert!(gate("proof = \"state-proof\"").is_err());
    }
}
