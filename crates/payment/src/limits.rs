//! Payment limits: what the operator permits, and how a caller tightens it.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, U256};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::asset::{AssetId, AssetProperties};
use crate::forms;
use crate::network::Caip2Network;

/// Maximum validity of an authorisation, in seconds.
pub const MAX_TIMEOUT_SECONDS: u64 = 300;

/// Maximum number of networks in the limits. For each one, an address record is read along with the name's other
/// records.
pub const MAX_NETWORKS: usize = 32;

/// What may be paid. The default permits nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PaymentLimits {
    /// Whether the operator has configured any limits.
    pub set: bool,
    /// Permitted networks.
    pub networks: BTreeSet<Caip2Network>,
    /// Whether the agent's card must list the network too.
    pub source: NetworkAllowlistSource,
    /// Permitted schemes.
    pub schemes: BTreeSet<PaymentScheme>,
    /// Maximum validity of an authorisation, in seconds; at most [`MAX_TIMEOUT_SECONDS`].
    pub max_timeout_seconds: u64,
    /// Permitted assets.
    #[serde(serialize_with = "serialize_assets")]
    pub assets: BTreeMap<AssetId, AssetLimit>,
}

/// Where a network must be listed for a payment on it to be permitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkAllowlistSource {
    /// In the agent's card and in the limits.
    #[default]
    Card,
    /// In the limits only. Published cards list only chain 1, whatever their sellers accept.
    Limits,
}

/// A payment scheme that states a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PaymentScheme {
    /// Exactly the stated amount.
    Exact,
}

/// The limit for one asset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AssetLimit {
    /// The asset's EIP-712 domain and unit.
    #[serde(flatten)]
    pub asset: AssetProperties,
    /// Maximum amount of one payment, in atomic units. `None` permits no payment.
    #[serde(serialize_with = "serialize_amount_or_zero")]
    pub max_amount: Option<U256>,
}

impl Default for PaymentLimits {
    fn default() -> Self {
        Self {
            set: false,
            networks: BTreeSet::new(),
            source: NetworkAllowlistSource::default(),
            schemes: BTreeSet::from([PaymentScheme::Exact]),
            max_timeout_seconds: MAX_TIMEOUT_SECONDS,
            assets: BTreeMap::new(),
        }
    }
}

impl PaymentLimits {
    /// Applies the limits of `caller`. They can only tighten, never permit more.
    #[must_use]
    pub fn tightened_by_caller(&self, caller: &CallerLimits) -> Self {
        let mut limits = self.clone();
        if let Some(networks) = &caller.networks {
            limits.networks.retain(|network| networks.contains(network));
        }
        if let Some(schemes) = &caller.schemes {
            limits.schemes.retain(|scheme| schemes.iter().any(|named| named == scheme.as_str()));
        }
        if let Some(seconds) = caller.max_timeout_seconds {
            limits.max_timeout_seconds = limits.max_timeout_seconds.min(seconds);
        }
        if let Some(assets) = &caller.assets {
            limits.assets.retain(|id, _| assets.get(&id.network).is_some_and(|named| named.contains(&id.address)));
        }
        for (id, limit) in &mut limits.assets {
            let of_asset =
                caller.assets.as_ref().and_then(|assets| assets.get(&id.network)?.asset_amount_limit(&id.address));
            let tightest = caller.max_amount.into_iter().chain(of_asset).map(|AtomicAmount(amount)| amount).min();
            // An asset without an operator limit remains without one: a caller cannot permit anything.
            limit.max_amount = limit.max_amount.map(|most| tightest.map_or(most, |amount| most.min(amount)));
        }
        limits
    }
}

impl PaymentScheme {
    /// The scheme's identifier in terms.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
        }
    }
}

/// Limits that a caller tightens. For missing members, the operator's limits apply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transform = crate::schema::add_alternative_spellings))]
#[serde(deny_unknown_fields)]
pub struct CallerLimits {
    /// Networks that remain permitted.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<Caip2Network>>"))]
    pub networks: Option<BTreeSet<Caip2Network>>,
    /// Schemes that remain permitted.
    pub schemes: Option<Vec<String>>,
    /// Maximum validity of an authorisation, in seconds.
    #[serde(default, alias = "maxTimeoutSeconds", deserialize_with = "forms::deserialize_whole_number_or_null")]
    pub max_timeout_seconds: Option<u64>,
    /// Maximum amount in atomic units, for every asset.
    #[serde(alias = "maxAmount")]
    pub max_amount: Option<AtomicAmount>,
    /// Assets that remain permitted, by network.
    pub assets: Option<BTreeMap<Caip2Network, CallerAssetList>>,
}

/// Assets of one network, as listed by a caller.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    untagged,
    expecting = "expected a list of contracts, or an object from each contract, once, to its most atomic units; a \
                 contract is 0x and 40 hex digits, where they are in mixed case with a valid EIP-55 checksum"
)]
pub enum CallerAssetList {
    /// Contracts.
    Listed(
        #[serde(deserialize_with = "deserialize_unique_addresses")]
        #[cfg_attr(feature = "schema", schemars(with = "Vec<crate::schema::ContractAddressSchema>"))]
        BTreeSet<Address>,
    ),
    /// Contracts, each with the maximum amount in atomic units.
    Limited(
        #[serde(deserialize_with = "deserialize_unique_assets")]
        #[cfg_attr(
            feature = "schema",
            schemars(with = "BTreeMap<crate::schema::ContractAddressSchema, AtomicAmount>")
        )]
        BTreeMap<Address, AtomicAmount>,
    ),
}

fn deserialize_unique_addresses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<Address>, D::Error> {
    Vec::<String>::deserialize(deserializer)?.iter().map(|text| parse_asset_address(text)).collect()
}

fn parse_asset_address<E: serde::de::Error>(text: &str) -> Result<Address, E> {
    forms::parse_address(text).ok_or_else(|| E::custom(format_args!("expected {}", forms::ADDRESS)))
}

/// Reads contracts with amounts. A contract can be spelt in several ways, and must not appear twice.
fn deserialize_unique_assets<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<Address, AtomicAmount>, D::Error> {
    let named = BTreeMap::<String, AtomicAmount>::deserialize(deserializer)?;
    let mut assets = BTreeMap::new();
    for (text, amount) in named {
        let asset = parse_asset_address(&text)?;
        if assets.insert(asset, amount).is_some() && !clresolve_core::mutant!("the-last-limit-counts") {
            return Err(D::Error::custom(format_args!("{asset} is given twice")));
        }
    }
    Ok(assets)
}

impl CallerAssetList {
    fn contains(&self, address: &Address) -> bool {
        match self {
            Self::Listed(listed) => listed.contains(address),
            Self::Limited(limited) => limited.contains_key(address),
        }
    }

    fn asset_amount_limit(&self, address: &Address) -> Option<AtomicAmount> {
        match self {
            Self::Listed(_) => None,
            Self::Limited(limited) => limited.get(address).copied(),
        }
    }
}

/// A number of atomic units. In JSON it is a string, `0|[1-9][0-9]*`, below 2^256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicAmount(pub U256);

// Some numbers with 78 digits are above 2^256.
#[cfg(feature = "schema")]
crate::schema::texts!(AtomicAmount: "^(0|[1-9][0-9]{0,76})$");

/// The text is not a number of atomic units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a whole number of atomic units, in decimal digits without leading zeros, below 2^256")]
pub struct AtomicAmountError;

impl AtomicAmount {
    /// Parses the text.
    ///
    /// # Errors
    /// [`AtomicAmountError`].
    pub fn parse(text: &str) -> Result<Self, AtomicAmountError> {
        text.parse()
    }
}

impl std::str::FromStr for AtomicAmount {
    type Err = AtomicAmountError;

    fn from_str(text: &str) -> Result<Self, AtomicAmountError> {
        forms::parse_amount(text).map(Self).ok_or(AtomicAmountError)
    }
}

impl<'de> Deserialize<'de> for AtomicAmount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

fn serialize_amount_or_zero<S: Serializer>(amount: &Option<U256>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&amount.unwrap_or_default())
}

/// JSON does not support keys with two parts.
fn serialize_assets<S: Serializer>(assets: &BTreeMap<AssetId, AssetLimit>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(assets)
}

#[cfg(test)]
mod tests {
    use alloy_primitives::address;
    use serde_json::json;

    use super::*;

    const USDC: Address = address!("036CbD53842c5426634e7929541eC2318f3dCF7e");

    fn network() -> Caip2Network {
        "eip155:84532".parse().unwrap()
    }

    fn limits() -> PaymentLimits {
        let id = AssetId { network: network(), address: USDC };
        let asset = AssetProperties::find_known(&id).unwrap();
        let limit = AssetLimit { asset, max_amount: Some(U256::from(50_000)) };
        PaymentLimits {
            set: true,
            networks: [network()].into(),
            assets: [(id, limit)].into(),
            ..PaymentLimits::default()
        }
    }

    fn tightened(caller: serde_json::Value) -> PaymentLimits {
        limits().tightened_by_caller(&serde_json::from_value(caller).unwrap())
    }

    fn amount(limits: &PaymentLimits) -> Option<u64> {
        limits.assets.values().next().and_then(|limit| u64::try_from(limit.max_amount?).ok())
    }

    #[test]
    fn a_caller_tightens_and_never_loosens() {
        assert_eq!(tightened(json!({})), limits());
        assert_eq!(amount(&tightened(json!({"max_amount": "10000"}))), Some(10_000));
        assert_eq!(amount(&tightened(json!({"maxAmount": "90000"}))), Some(50_000));
        let of_asset = |amount: &str| json!({"assets": {"eip155:84532": {USDC.to_string(): amount}}});
        assert_eq!(amount(&tightened(of_asset("7"))), Some(7));
        assert_eq!(amount(&tightened(of_asset("70000"))), Some(50_000));
        assert_eq!(amount(&tightened(json!({"assets": {"eip155:84532": [USDC]}}))), Some(50_000));
        assert_eq!(amount(&tightened(json!({"assets": {"eip155:1": [USDC]}}))), None);
        assert_eq!(tightened(json!({"networks": ["eip155:1"]})).networks, BTreeSet::new());
        assert_eq!(tightened(json!({"schemes": ["upto"]})).schemes, BTreeSet::new());
        assert_eq!(tightened(json!({"max_timeout_seconds": 60})).max_timeout_seconds, 60);
        assert_eq!(tightened(json!({"maxTimeoutSeconds": 60.0})).max_timeout_seconds, 60);
        assert_eq!(tightened(json!({"max_timeout_seconds": null})).max_timeout_seconds, MAX_TIMEOUT_SECONDS);
        assert_eq!(tightened(json!({"max_timeout_seconds": 9000})).max_timeout_seconds, MAX_TIMEOUT_SECONDS);
    }

    #[test]
    fn an_asset_without_the_operators_limit_gets_none_from_a_caller() {
        let mut limits = limits();
        limits.assets.values_mut().for_each(|limit| limit.max_amount = None);
        let caller: CallerLimits = serde_json::from_value(json!({"max_amount": "5"})).unwrap();
        assert_eq!(amount(&limits.tightened_by_caller(&caller)), None);
    }

    #[test]
    fn a_limit_that_is_misspelt_is_refused() {
        for text in [
            r#"{"amount": "5"}"#,
            r#"{"max_amount": 5}"#,
            r#"{"max_amount": "05"}"#,
            r#"{"max_amount": ""}"#,
            r#"{"max_amount": "0x5"}"#,
            r#"{"assets": {"eip155:84532": ["0x036cbD53842c5426634e7929541eC2318f3dCF7e"]}}"#,
            r#"{"assets": {"eip155:84532": {"0x036cbD53842c5426634e7929541eC2318f3dCF7e": "5"}}}"#,
            r#"{"max_timeout_seconds": 0.5}"#,
            r#"{"max_timeout_seconds": 5, "maxTimeoutSeconds": 50}"#,
            r#"{"networks": ["base"]}"#,
            r#"{"assets": {"eip155:1": ["USDC"]}}"#,
        ] {
            assert!(serde_json::from_str::<CallerLimits>(text).is_err(), "{text}");
        }
        let most = U256::MAX.to_string();
        assert_eq!(most.parse(), Ok(AtomicAmount(U256::MAX)));
        assert_eq!(format!("{}6", &most[..most.len() - 1]).parse::<AtomicAmount>(), Err(AtomicAmountError));
    }
}
