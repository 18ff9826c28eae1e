//! The keys that one source (file, environment, flags) sets, and how layers combine into a configuration.

use std::borrow::Borrow;
use std::fmt;

use clresolve_verdict::verdict::ResolutionDepth;
use serde::Serialize;
use toml::{Table, Value};

use super::labels::number_duplicate_labels;
use super::message::redact_secrets;
use super::value::{BlockHeaderProofMode, ChainProofMode, parse_chain_id};
use super::{Config, ConfigError, MAINNET, ProofGrade};

/// The variables of the environment that are read: the file, and the keys of [`ConfigLayer::from_environment`].
pub const VARIABLES: [&str; 9] = [
    "CLRESOLVE_CONFIG",
    "CLRESOLVE_RPC",
    "CLRESOLVE_GATEWAY",
    "CLRESOLVE_BLOCK",
    "CLRESOLVE_PROFILE",
    "CLRESOLVE_DEPTH",
    "CLRESOLVE_TIMEOUT",
    "CLRESOLVE_CHAIN_ID",
    "CLRESOLVE_UNIVERSAL_RESOLVER",
];

/// Lists that are prepended to those below. Any other list replaces the one below.
pub const PREPENDED_LISTS: [&str; 3] = ["connect-to", "allow-host", "ca"];

/// Tables that replace those below. Of any other table, each key replaces the one below.
const REPLACED_TABLES: [&str; 3] = ["routes", "payees", "chains"];

/// The keys that one source sets, as a file contains them. A key that is not set leaves the value of the layer below
/// unchanged.
#[derive(Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct ConfigLayer(pub(super) Table);

impl fmt::Debug for ConfigLayer {
    /// Only the keys: a value may be a URL with an API key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

impl ConfigLayer {
    /// Reads the environment: `CLRESOLVE_RPC` and `CLRESOLVE_GATEWAY` (URLs separated by white space),
    /// `CLRESOLVE_BLOCK`, `CLRESOLVE_PROFILE`, `CLRESOLVE_DEPTH`, `CLRESOLVE_TIMEOUT`, `CLRESOLVE_CHAIN_ID` and
    /// `CLRESOLVE_UNIVERSAL_RESOLVER`. An empty variable counts as unset.
    ///
    /// # Errors
    /// With the variable and what was expected.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let mut layer = Self::default();
        for (name, key) in VARIABLES.into_iter().filter_map(|name| Some((name, key_from_variable_name(name)?))) {
            let Some(text) = variable(name).filter(|text| !text.is_empty()) else { continue };
            let value = parse_variable_value(&key, &text).map_err(|detail| ConfigError::conflict(name, detail))?;
            config_from_table(Table::from_iter([(key.clone(), value.clone())]))
                .map_err(|(_, detail)| ConfigError::conflict(name, detail))?;
            layer.0.insert(key, value);
        }
        Ok(layer)
    }

    /// The layer that turns the default configuration into `config`. It omits what a file cannot express (in-memory
    /// trust roots, denied addresses), and also the default depth, which differs between commands.
    ///
    /// # Errors
    /// [`ConfigError::Conflict`] if TOML cannot express a value, such as a path that is not UTF-8.
    pub fn from_config(config: &Config) -> Result<Self, ConfigError> {
        let mut layer = Self(config_to_table(config)?);
        if config.rules.depth == ResolutionDepth::default() {
            layer.0.remove("depth");
        }
        Ok(layer)
    }

    /// Sets a key, written as `timeout` or `sign.key`, to a value as in a file. `None` leaves it as it is.
    ///
    /// # Errors
    /// [`ConfigError::Conflict`] if TOML cannot express the value, such as a path that is not UTF-8.
    pub fn set_key(&mut self, key: &str, value: Option<impl Serialize>) -> Result<(), ConfigError> {
        let Some(value) = value else { return Ok(()) };
        let value = Value::try_from(value).map_err(|error| ConfigError::conflict(key, error.to_string()))?;
        let (table, name) = match key.split_once('.') {
            None => (&mut self.0, key),
            Some((table, name)) => {
                let below = self.0.entry(table).or_insert_with(|| Table::new().into());
                (below.as_table_mut().ok_or_else(|| ConfigError::conflict(table, "expected a table"))?, name)
            }
        };
        table.insert(name.to_owned(), value);
        Ok(())
    }

    /// Whether it sets keys of `[payees]`, `[limits]` or `[check]`.
    #[cfg(unix)]
    pub fn sets_payment_keys(&self) -> bool {
        ["payees", "limits", "check"].iter().any(|table| self.0.contains_key(*table))
    }

    /// Applies this layer to the keys below it.
    pub(super) fn merge_into_table(self, below: &mut Table) -> Result<(), ConfigError> {
        self.reset_chain_keys(below);
        self.reset_proof_keys(below)?;
        for (key, value) in self.0 {
            match (below.get_mut(&key), value) {
                (Some(Value::Table(below)), Value::Table(table)) if !REPLACED_TABLES.contains(&&*key) => {
                    below.extend(table)
                }
                (Some(Value::Array(below)), Value::Array(list)) if PREPENDED_LISTS.contains(&&*key) => {
                    below.splice(0..0, list);
                }
                (_, value) => {
                    below.insert(key, value);
                }
            }
        }
        Ok(())
    }

    /// Another chain also means another world, another block 0 and another slot time.
    fn reset_chain_keys(&self, below: &mut Table) {
        let Some(id) = self.0.get("chain-id").filter(|id| below.get("chain-id") != Some(*id)) else { return };
        let is_mainnet = id.as_integer().is_some_and(|id| u64::try_from(id) == Ok(MAINNET));
        let world = if is_mainnet { "mainnet".to_owned() } else { format!("eip155-{id}") };
        below.insert("world".to_owned(), world.into());
        below.remove("genesis");
        below.remove("max-head-age");
    }

    /// A stronger layer's `proof` resets a weaker layer's `quorum`, and vice versa.
    fn reset_proof_keys(&self, below: &mut Table) -> Result<(), ConfigError> {
        match (proof_mode_from_table(&self.0), self.0.contains_key("quorum")) {
            (Some(ChainProofMode::SingleRpc), true) => {
                return Err(ConfigError::conflict("quorum", "proof single-rpc needs no quorum; remove one of the two"));
            }
            (Some(ChainProofMode::SingleRpc), false) => {
                below.remove("quorum");
            }
            (Some(ChainProofMode::ConsensusProof), false) if !self.requires_header_quorum(below) => {
                below.remove("quorum");
            }
            (None, true)
                if proof_mode_from_table(below).is_none_or(|proof| proof.proof_grade() < ProofGrade::StateProof) =>
            {
                below.insert("proof".to_owned(), ChainProofMode::Quorum.to_string().into());
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether operators must agree on the header too once this layer is applied.
    fn requires_header_quorum(&self, below: &Table) -> bool {
        let header = |table: &Table| table.get("chain")?.get("header")?.as_str()?.parse().ok();
        header(&self.0)
            .or_else(|| header(below))
            .is_some_and(|header: BlockHeaderProofMode| header != BlockHeaderProofMode::Consensus)
    }
}

fn proof_mode_from_table(table: &Table) -> Option<ChainProofMode> {
    table.get("proof")?.as_str()?.parse().ok()
}

impl Config {
    /// Applies `layers` to this configuration, the strongest last.
    ///
    /// # Errors
    /// If the combined configuration is inconsistent: world `mainnet` on a chain other than 1, another chain without
    /// endpoints, an empty list of endpoints, or a quorum larger than the number of operators.
    pub fn with_layers(self, layers: impl IntoIterator<Item = ConfigLayer>) -> Result<Self, ConfigError> {
        let mut table = config_to_table(&self)?;
        for layer in layers {
            layer.merge_into_table(&mut table)?;
        }
        let mut config = config_from_table(table).map_err(|(key, detail)| ConfigError::conflict(&key, detail))?;
        config.network.ca_pems = self.network.ca_pems;
        config.network.denied = self.network.denied;
        config.network.dns = self.network.dns;
        config.check_conflicts()?;
        config.chain.endpoints = config.chain.labelled_endpoints();
        config.beacon.endpoints = config.beacon.labelled_endpoints();
        config.chains.iter_mut().for_each(|(id, chain)| chain.assign_endpoint_labels(*id));
        number_duplicate_labels(config.gateways.iter_mut().map(|gateway| &mut gateway.label));
        Ok(config)
    }
}

/// The configuration that is written as `table`. The error consists of the key and of what was expected.
fn config_from_table(table: Table) -> Result<Config, (String, String)> {
    if let Some((key, message)) = find_unknown_top_level_key(table.keys()) {
        return Err((key.clone(), redact_secrets(&message)));
    }
    table.try_into().map_err(|error: toml::de::Error| {
        let text = error.to_string();
        // The text ends with the key, as in "in `gateway`".
        let key = text.trim_end().rsplit_once("in `").map_or("configuration", |(_, key)| key.trim_end_matches('`'));
        (key.to_owned(), redact_secrets(error.message()))
    })
}

/// The first key that the top level does not have, and the error for it. Its tables reject unknown keys themselves.
pub(super) fn find_unknown_top_level_key<'t, K: Borrow<str>>(
    keys: impl IntoIterator<Item = &'t K>,
) -> Option<(&'t K, String)> {
    let known = serde_json::to_value(Config::default()).ok()?;
    let known = known.as_object()?;
    let unknown = keys.into_iter().find(|key| !known.contains_key((*key).borrow()))?;
    let known: Vec<String> = known.keys().map(|key| format!("`{key}`")).collect();
    Some((unknown, format!("unknown field `{}`, expected one of {}", unknown.borrow(), known.join(", "))))
}

/// All keys of a configuration, except for lists that add nothing.
fn config_to_table(config: &Config) -> Result<Table, ConfigError> {
    let mut table =
        Table::try_from(config).map_err(|error| ConfigError::conflict("configuration", error.to_string()))?;
    table.retain(|key, value| !(PREPENDED_LISTS.contains(&key) && value.as_array().is_some_and(Vec::is_empty)));
    Ok(table)
}

/// The key that a variable sets: its name in lower case, with dashes. `None` for the variable that names the file.
fn key_from_variable_name(variable: &str) -> Option<String> {
    let key = variable.strip_prefix("CLRESOLVE_").filter(|key| *key != "CONFIG")?;
    Some(key.to_lowercase().replace('_', "-"))
}

/// The value of a key that is written in a variable.
fn parse_variable_value(key: &str, text: &str) -> Result<Value, String> {
    match key {
        "rpc" | "gateway" => Ok(text.split_whitespace().collect::<Vec<_>>().into()),
        "chain-id" => Value::try_from(parse_chain_id(text)?).map_err(|error| error.to_string()),
        _ => Ok(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::ProofGradeDemand;

    #[test]
    fn the_default_reads_mainnet_through_many_operators() {
        let config = Config::default();
        assert_eq!((config.chain.world.as_str(), config.chain.id), ("mainnet", 1));
        assert!(config.chain.endpoints.len() >= 4);
        assert!(config.gateways.len() >= 5);
        assert!(config.gateways.iter().all(|g| !g.own && g.url.scheme() == "https"));
        assert!(config.chain.endpoints.iter().all(|e| !e.own && e.url.scheme() == "https"));
        assert_eq!(config.timeout, Duration::from_secs(15));
        assert_eq!(Config::default().with_layers([]), Ok(config));
    }

    fn layer(text: &str) -> ConfigLayer {
        ConfigLayer::from_toml(text, "f.toml").unwrap()
    }

    #[test]
    fn later_layers_win_and_permissions_add_up() {
        let file = layer("timeout = \"5s\"\nprofile = \"a/1\"\nallow-host = [\"a.example:1\"]");
        let flags = layer("timeout = \"7s\"\nrpc = [\"https://rpc.example/k\"]\nallow-host = [\"b.example:2\"]");
        let config = Config::default().with_layers([file, flags]).unwrap();
        assert_eq!(config.timeout, Duration::from_secs(7));
        assert_eq!(config.rules.profile, "a/1");
        assert_eq!(
            config.network.allow_hosts.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["b.example:2", "a.example:1"]
        );
        assert_eq!(config.chain.endpoints.len(), 1);
    }

    #[test]
    fn keys_of_a_table_add_up_and_maps_of_the_operator_are_replaced() {
        let account = "eip155:1:0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
        let file = layer(&format!("[payees]\n\"a.eth\" = [\"{account}\"]\n[http]\nrequests = 5\nheaders = 6"));
        let stronger = layer(&format!("[payees]\n\"b.eth\" = [\"{account}\"]\n[http]\nheaders = 7"));
        let config = Config::default().with_layers([file, stronger]).unwrap();
        assert_eq!((config.http.requests, config.http.headers), (5, 7));
        assert_eq!(config.payees.keys().collect::<Vec<_>>(), ["b.eth"]);
    }

    #[test]
    fn worlds_that_cannot_be_are_refused() {
        let name = |text: &str| Config::default().with_layers([layer(text)]).map(|config| config.chain.world);
        let world = |id: u64, world: Option<&str>| {
            let world = world.map(|world| format!("world = \"{world}\"\n")).unwrap_or_default();
            name(&format!("chain-id = {id}\n{world}rpc = [\"http://127.0.0.1:8545\"]"))
        };
        assert_eq!(world(1, None), Ok("mainnet".to_owned()));
        assert_eq!(world(1, Some("fork")), Ok("fork".to_owned()));
        assert_eq!(world(31_337, None), Ok("eip155-31337".to_owned()));
        assert_eq!(world(31_337, Some("sandbox")), Ok("sandbox".to_owned()));
        assert!(world(31_337, Some("mainnet")).is_err());
        assert!(world(1, Some("sandbox")).is_err());
        assert!(matches!(name("chain-id = 5"), Err(ConfigError::Conflict { key, .. }) if key == "rpc"));
        assert!(name("rpc = []").is_err());
    }

    #[test]
    fn another_chain_resets_only_weaker_layers() {
        let hash = format!("0x{}", "11".repeat(32));
        let file = layer(&format!("genesis = \"{hash}\"\nmax-head-age = \"9s\"\nworld = \"fork\""));
        let flags = layer("chain-id = 5\nmax-head-age = \"7s\"\nrpc = [\"http://127.0.0.1:8545\"]");
        let chain = Config::default().with_layers([file, flags]).unwrap().chain;
        assert_eq!((chain.world.as_str(), chain.genesis), ("eip155-5", None));
        assert_eq!(chain.max_head_age, Some(Duration::from_secs(7)));
    }

    #[test]
    fn several_operators_are_a_quorum_unless_something_else_is_said() {
        let demand = |texts: &[&str]| {
            Config::default().with_layers(texts.iter().map(|text| layer(text)))?.chain.proof_grade_demand()
        };
        let one = "rpc = [\"https://rpc.one\"]";
        let two = "rpc = [\"https://rpc.one\", \"https://rpc.two\"]";
        let same = "rpc = [\"https://a.rpc.one\", \"https://b.rpc.one\"]";
        let own = "rpc = [{ url = \"https://rpc.one\", own = true }, \"https://rpc.other\"]";
        let single = "proof = \"single-rpc\"";
        assert_eq!(demand(&[]), Ok(ProofGradeDemand::Quorum(2)), "the built-in endpoints");
        assert_eq!(demand(&[one]), Ok(ProofGradeDemand::SingleRpc));
        assert_eq!(demand(&[two]), Ok(ProofGradeDemand::Quorum(2)));
        assert_eq!(demand(&[same]), Ok(ProofGradeDemand::SingleRpc), "one operator");
        assert_eq!(demand(&["quorum = 4"]), Ok(ProofGradeDemand::Quorum(4)));
        assert_eq!(demand(&[single]), Ok(ProofGradeDemand::SingleRpc));
        assert_eq!(demand(&[single, "quorum = 3"]), Ok(ProofGradeDemand::Quorum(3)), "the stronger wins");
        assert_eq!(demand(&["quorum = 3", single]), Ok(ProofGradeDemand::SingleRpc));
        assert!(demand(&["proof = \"single-rpc\"\nquorum = 3", "quorum = 3"]).is_err(), "one layer contradicts itself");
        assert!(demand(&[one, "quorum = 2"]).is_err());
        assert!(demand(&[same, "proof = \"quorum\""]).is_err());
        assert!(demand(&["quorum = 7"]).is_err());
        assert_eq!(demand(&[own]), Ok(ProofGradeDemand::SingleRpc));
        assert_eq!(demand(&[own, "quorum = 2"]), Ok(ProofGradeDemand::Quorum(2)));
    }

    #[test]
    fn a_gate_that_would_refuse_everything_is_refused() {
        let with = |grade: &str, rpc: &str| {
            Config::default().with_layers([layer(&format!("{rpc}\n[gate]\nmin-proof = \"{grade}\""))])
        };
        assert!(with("quorum", "").is_ok());
        assert!(with("state-proof", "").is_err());
        assert!(with("quorum", "rpc = [\"https://rpc.example\"]").is_err());
    }

    /// Each merge writes the configuration and reads it back.
    #[test]
    fn long_hosts_and_equal_labels_are_read_back() {
        let host = format!("{}.{}.example", "g".repeat(60), "h".repeat(60));
        let label = "l".repeat(64);
        let endpoint = |url: &str| format!("{{ url = \"{url}\", label = \"{label}\" }}");
        let text = format!(
            "gateway = [\"https://{host}:8443/ipfs/ipfs\", \"https://a!b.example\", \"http://[::1]:8080\"]\nrpc = [{}, {}, \
             \"https://x.{host}\"]",
            endpoint("https://a.example/1"),
            endpoint("https://b.example/2")
        );
        let once = Config::default().with_layers([layer(&text)]).unwrap();
        assert!(once.gateways[0].label.ends_with(".example:8443") && once.gateways[0].label.len() == 64);
        assert_eq!((once.gateways[1].label.as_str(), once.gateways[0].url.path()), ("a_b.example", "/"));
        assert!(labels(&once)[1].ends_with("l#2") && labels(&once)[1].len() == 64);
        assert_eq!(once.clone().with_layers([]), Ok(once));
    }

    /// An embedder can set any value.
    #[test]
    fn value_that_cannot_be_read_names_its_key() {
        let config = Config { timeout: Duration::ZERO, ..Config::default() };
        let error = config.with_layers([]).unwrap_err();
        assert!(matches!(&error, ConfigError::Conflict { key, .. } if key == "timeout"), "{error}");
    }

    #[test]
    fn equal_labels_are_numbered() {
        let text =
            r#"rpc = [{ url = "https://a.example/1", label = "a" }, { url = "https://a.example/2", label = "a" }]"#;
        let config = Config::default().with_layers([ConfigLayer::from_toml(text, "f.toml").unwrap()]).unwrap();
        assert_eq!(labels(&config), ["a", "a#2"]);
    }

    fn labels(config: &Config) -> Vec<&str> {
        config.chain.endpoints.iter().map(|endpoint| endpoint.label.as_str()).collect()
    }

    /// A host name can contain a key (`KEY.rpc.example`), but that of a built-in endpoint never does.
    #[test]
    fn an_endpoint_without_a_label_has_that_of_its_place() {
        let text = r#"rpc = ["https://SECRET.rpc.example/", { url = "https://b.example", label = "mine" }, "https://b.example"]"#;
        let config = Config::default().with_layers([ConfigLayer::from_toml(text, "f.toml").unwrap()]).unwrap();
        assert_eq!(labels(&config), ["rpc-1", "mine", "rpc-3"]);
        assert_eq!(
            labels(&Config::default().with_layers([ConfigLayer::from_config(&config).unwrap()]).unwrap()),
            ["rpc-1", "mine", "rpc-3"]
        );
        let text = r#"rpc = [{ url = "https://b.example", label = "rpc-2" }, "https://b.example"]"#;
        let config = Config::default().with_layers([ConfigLayer::from_toml(text, "f.toml").unwrap()]).unwrap();
        assert_eq!(labels(&config), ["rpc-2", "rpc-2#2"]);
        assert_eq!(labels(&Config::default())[0], "ethereum-rpc.publicnode.com");
    }

    #[test]
    fn the_environment_is_a_layer_and_shows_no_key() {
        let set = |key: &str| match key {
            "CLRESOLVE_RPC" => Some("https://a.example/k https://b.example".to_owned()),
            "CLRESOLVE_BLOCK" => Some("17".to_owned()),
            "CLRESOLVE_PROFILE" => Some(String::new()),
            _ => None,
        };
        let layer = ConfigLayer::from_environment(set).unwrap();
        assert_eq!(layer, self::layer("rpc = [\"https://a.example/k\", \"https://b.example\"]\nblock = \"17\""));
        let error =
            ConfigLayer::from_environment(|k| (k == "CLRESOLVE_RPC").then(|| "ftp://a.example/SECRET".to_owned()));
        let message = error.unwrap_err().to_string();
        assert!(message.starts_with("CLRESOLVE_RPC: expected") && !message.contains("SECRET"), "{message}");
    }
}
