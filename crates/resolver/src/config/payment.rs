//! `[limits]`, `[routes]` and `[payees]`: payment limits, the URLs of agents, and the accounts that the operator knows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use alloy_primitives::Address;
use clresolve_core::name::EnsName;
use clresolve_core::payment::CoinType;
use clresolve_payment::asset::{AssetId, AssetProperties};
use clresolve_payment::limits::{
    AssetLimit, AtomicAmount, MAX_NETWORKS, MAX_TIMEOUT_SECONDS, NetworkAllowlistSource, PaymentLimits, PaymentScheme,
};
use clresolve_payment::network::Caip2Network;
use clresolve_payment::route::AgentRoute;
use serde::{Deserialize, Serialize, Serializer};

use super::error::ConfigError;
use super::text::{self, TextConfigValue};
use super::value::parse_address;

/// The payment limits. By default no payment is permitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct PaymentLimitsConfig {
    /// Permitted networks.
    pub networks: PermittedNetworks,
    /// Permitted schemes.
    pub schemes: Vec<PaymentScheme>,
    /// Maximum validity of an authorization; at most 300 s.
    #[serde(with = "text")]
    pub max_timeout: Duration,
    /// Permitted assets.
    pub assets: Vec<PermittedAssetConfig>,
}

impl Default for PaymentLimitsConfig {
    fn default() -> Self {
        Self {
            networks: PermittedNetworks::Source(NetworkAllowlistSource::Card),
            schemes: vec![PaymentScheme::Exact],
            max_timeout: Duration::from_secs(MAX_TIMEOUT_SECONDS),
            assets: Vec::new(),
        }
    }
}

/// Permitted networks. Those of the configured assets are always permitted; in addition…
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected \"card\", \"limits\" or a list of networks such as eip155:8453")]
pub enum PermittedNetworks {
    /// …those that the agent's card lists, or none: published cards list only chain 1.
    Source(NetworkAllowlistSource),
    /// …those that the agent's card lists, and those in this list.
    Listed(BTreeSet<Caip2Network>),
}

/// A permitted asset: its contract, and the maximum amount of one payment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[non_exhaustive]
pub struct PermittedAssetConfig {
    /// The network.
    pub network: Caip2Network,
    /// The contract.
    #[serde(deserialize_with = "text::deserialize")]
    pub address: Address,
    /// Maximum amount of one payment, in atomic units. Without it, no payment in this asset is permitted.
    #[serde(default, with = "text::optional")]
    pub max_amount: Option<AtomicAmount>,
    /// `name` of its EIP-712 domain. Required for an asset that is not in the built-in table.
    pub name: Option<String>,
    /// `version` of its EIP-712 domain. Required for an asset that is not in the built-in table.
    pub version: Option<String>,
    /// Decimals of its unit, for display only.
    pub decimals: Option<u8>,
    /// The symbol of the unit, for display only.
    pub symbol: Option<String>,
}

impl TextConfigValue for AtomicAmount {
    fn parse_text(text: &str) -> Result<Self, String> {
        Self::parse(text).map_err(|error| error.to_string())
    }

    fn serialize_text<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&self.0)
    }
}

impl PermittedAssetConfig {
    fn asset_id(&self) -> AssetId {
        AssetId { network: self.network.clone(), address: self.address }
    }

    /// The asset, from the built-in table and this entry.
    fn asset_properties(&self) -> Option<AssetProperties> {
        let known = AssetProperties::find_known(&self.asset_id());
        let text = |said: &Option<String>, known: Option<std::borrow::Cow<'static, str>>| {
            said.clone().map(Into::into).or(known)
        };
        Some(AssetProperties {
            name: text(&self.name, known.as_ref().map(|asset| asset.name.clone()))?,
            version: text(&self.version, known.as_ref().map(|asset| asset.version.clone()))?,
            decimals: self.decimals.or_else(|| known.as_ref().map(|asset| asset.decimals)).unwrap_or_default(),
            symbol: text(&self.symbol, known.map(|asset| asset.symbol)).unwrap_or_else(|| "units".into()),
        })
    }
}

impl PaymentLimitsConfig {
    /// The payment limits in the form that decisions use.
    pub fn payment_limits(&self) -> PaymentLimits {
        let of_assets = self.assets.iter().map(|asset| asset.network.clone());
        let (source, networks) = match &self.networks {
            PermittedNetworks::Source(source) => (*source, of_assets.collect()),
            PermittedNetworks::Listed(listed) => (NetworkAllowlistSource::Card, listed.clone()),
        };
        let limit = |config: &PermittedAssetConfig| {
            let max_amount = config.max_amount.map(|AtomicAmount(amount)| amount);
            Some((config.asset_id(), AssetLimit { asset: config.asset_properties()?, max_amount }))
        };
        PaymentLimits {
            set: *self != Self::default(),
            networks,
            source,
            schemes: self.schemes.iter().copied().collect(),
            max_timeout_seconds: self.max_timeout.as_secs(),
            assets: self.assets.iter().filter_map(limit).collect(),
        }
    }

    /// The coin types of the permitted networks.
    pub fn coin_types(&self) -> BTreeSet<CoinType> {
        self.payment_limits()
            .networks
            .iter()
            .filter_map(|network| CoinType::from_chain_id(network.chain_id()?))
            .collect()
    }

    pub(super) fn check_limits(&self) -> Result<(), ConfigError> {
        let wrong = |detail: String| Err(ConfigError::Conflict { key: "limits".to_owned(), detail });
        if self.max_timeout.as_secs() > MAX_TIMEOUT_SECONDS || self.max_timeout.subsec_nanos() != 0 {
            return wrong(format!("max-timeout is a whole number of seconds, at most {MAX_TIMEOUT_SECONDS}"));
        }
        let networks = self.payment_limits().networks;
        if let Some(other) =
            networks.iter().find(|network| network.chain_id().and_then(CoinType::from_chain_id).is_none())
        {
            return wrong(format!("{other} is no EVM chain with a coin type (ENSIP-11)"));
        }
        if networks.len() > MAX_NETWORKS {
            return wrong(format!("at most {MAX_NETWORKS} networks"));
        }
        if let Some(unknown) = self.assets.iter().find(|asset| asset.asset_properties().is_none()) {
            let PermittedAssetConfig { network, address, .. } = unknown;
            return wrong(format!(
                "{address} on {network} is not in the built-in table: set its name and version (EIP-712)"
            ));
        }
        let ids: BTreeSet<_> = self.assets.iter().map(PermittedAssetConfig::asset_id).collect();
        if ids.len() < self.assets.len() {
            return wrong("an asset is listed twice".to_owned());
        }
        Ok(())
    }
}

/// `[routes]`: the https URL of an agent (`NAME`), or of one of its verbs (`NAME/VERB`).
pub type AgentRouteUrls = BTreeMap<String, String>;

/// `[payees]`: accounts (CAIP-10) that the operator knows to be an agent's, by name.
pub type KnownPayees = BTreeMap<String, Vec<Caip10Account>>;

/// An account on an EVM chain, as CAIP-10 writes it: `eip155:8453:0x…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caip10Account {
    /// The network.
    pub network: Caip2Network,
    /// The address.
    pub address: Address,
}

impl FromStr for Caip10Account {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected =
            || "expected an account such as eip155:8453:0x… (CAIP-10), in mixed case with a valid checksum".to_owned();
        let (network, address) = text.rsplit_once(':').ok_or_else(expected)?;
        let network: Caip2Network = network.parse().map_err(|_| expected())?;
        network.chain_id().ok_or_else(expected)?;
        Ok(Self { network, address: parse_address(address).map_err(|_| expected())? })
    }
}

impl fmt::Display for Caip10Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.network, self.address)
    }
}

impl Serialize for Caip10Account {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Caip10Account {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Checks that names are in normal form and that URLs are usable.
pub(super) fn check_routes_and_payees(routes: &AgentRouteUrls, payees: &KnownPayees) -> Result<(), ConfigError> {
    let wrong = |key: String, detail: &str| Err(ConfigError::Conflict { key, detail: detail.to_owned() });
    for (agent, url) in routes {
        let (name, verb) = agent.split_once('/').map_or((agent.as_str(), None), |(name, verb)| (name, Some(verb)));
        if !is_normalized_name(name) || verb.is_some_and(|verb| verb.is_empty() || verb.contains('/')) {
            return wrong(format!("routes.{agent}"), "expected NAME or NAME/VERB, the name in normal form");
        }
        if AgentRoute::from_configuration(url).is_none() {
            return wrong(format!("routes.{agent}"), "expected an https URL; http is for this machine alone");
        }
    }
    match payees.keys().find(|name| !is_normalized_name(name)) {
        Some(name) => wrong(format!("payees.{name}"), "expected a name in normal form"),
        None => Ok(()),
    }
}

pub(super) fn is_normalized_name(name: &str) -> bool {
    EnsName::parse(name).is_ok_and(|parsed| parsed.as_str() == name)
}

#[cfg(test)]
mod tests {
    use crate::config::testing::parse_over_defaults;
    use crate::config::{Config, ConfigLayer};

    const FULL: &str = r#"
[limits]
networks = "limits"
schemes = ["exact"]
max-timeout = "1m"

[[limits.assets]]
network = "eip155:8453"
address = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
max-amount = "50000"

[[limits.assets]]
network = "eip155:31337"
address = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
max-amount = "1"
name = "Test Dollar"
version = "1"
decimals = 6
symbol = "TUSD"

[routes]
"summarizeagent.eth" = "https://api.example/summarize/v1"
"summarizeagent.eth/summarize" = "http://127.0.0.1:8080/summarize"

[payees]
"summarizeagent.eth" = ["eip155:8453:0x70997970C51812dc3A010C7d01b50e0d17dc79C8"]
"#;

    #[test]
    fn every_key_is_read_and_written() {
        let config = parse_over_defaults(FULL).unwrap();
        assert_eq!(config.limits.payment_limits().networks.len(), 2);
        assert_eq!(config.limits.coin_types().len(), 2);
        assert_eq!(config.limits.payment_limits().max_timeout_seconds, 60);
        assert_eq!((config.routes.len(), config.payees.len()), (2, 1));
        let written = ConfigLayer::from_config(&config).unwrap();
        assert_eq!(Config::default().with_layers([written.clone()]).unwrap(), config);
        let text = toml::to_string(&written).unwrap();
        assert_eq!(
            Config::default().with_layers([ConfigLayer::from_toml(&text, "g.toml").unwrap()]).unwrap(),
            config,
            "{text}"
        );
    }

    #[test]
    fn nothing_is_permitted_by_default() {
        let limits = Config::default().limits.payment_limits();
        assert!(limits.assets.is_empty() && !limits.set);
        assert!(Config::default().limits.coin_types().is_empty());
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for text in [
            "[limits]\nnetworks = \"all\"",
            "[limits]\nnetworks = [\"base\"]",
            "[limits]\nnetworks = [\"solana:x\"]",
            "[limits]\nmax-timeout = \"301s\"",
            "[limits]\nmax-timeout = \"1500ms\"",
            "[limits]\nschemes = [\"upto\"]",
            "[[limits.assets]]\nnetwork = \"eip155:1\"\naddress = \"0x5FbDB2315678afecb367f032d93F642f64180aa3\"\n",
            "[[limits.assets]]\nnetwork = \"eip155:1\"\naddress = \"USDC\"\n",
            "[[limits.assets]]\nnetwork = \"eip155:8453\"\naddress = \"0x833589fcD6eDb6E08f4c7C32D4f71b54bdA02913\"\n",
            "[[limits.assets]]\nnetwork = \"eip155:8453\"\naddress = \"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913\"\nmax-amount = 5\n",
            "[routes]\n\"A.eth\" = \"https://a.example\"",
            "[routes]\n\"a.eth\" = \"http://a.example\"",
            "[routes]\n\"a.eth/\" = \"https://a.example\"",
            "[routes]\n\"a.eth/x/y\" = \"https://a.example\"",
            "[payees]\n\"a.eth\" = [\"0x70997970C51812dc3A010C7d01b50e0d17dc79C8\"]",
            "[payees]\n\"a.eth\" = [\"eip155:1:0x70997970c51812dc3A010C7d01b50e0d17dc79C8\"]",
        ] {
            assert!(parse_over_defaults(text).is_err(), "{text}");
        }
    }
}
