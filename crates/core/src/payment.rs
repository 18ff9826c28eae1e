//! What a name publishes about payments in addition to the records of a resolution: addresses by coin type, and
//! endpoints. It affects neither the digest of the records nor a verdict's conclusion.
//!
//! Three cases are distinct here: the record is not set, the record could not be read, and the record was not
//! requested.

use std::collections::BTreeMap;
use std::fmt;

use alloy_primitives::{Address, Bytes};
use serde::{Deserialize, Serialize};

use crate::chain_error::ChainError;
use crate::records::TextRecord;

/// The payment records of a name at one block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentRecords {
    /// Payment addresses by coin type. A coin type that was not requested is missing.
    pub addresses: BTreeMap<CoinType, AddressRecord>,
    /// Endpoints to call. A key that was not requested is missing.
    pub endpoints: BTreeMap<EndpointRecordKey, EndpointRecord>,
    /// Whether they came from a CCIP-Read gateway (EIP-3668).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub offchain: bool,
}

impl PaymentRecords {
    /// The result when none of the records could be read, for this cause.
    pub fn from_read_failure(coins: &RequestedCoinTypes, cause: &ChainError) -> Self {
        Self {
            addresses: coins.iter().map(|coin| (coin, AddressRecord::Failed(cause.clone()))).collect(),
            endpoints: EndpointRecordKey::ALL.map(|key| (key, EndpointRecord::Failed(cause.clone()))).into(),
            offchain: false,
        }
    }

    /// Whether nothing was requested.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.endpoints.is_empty()
    }

    /// Whether a later reading has the same values. A record that this reading could not read may have any value.
    pub fn is_confirmed_by(&self, later: &Self) -> bool {
        let is_address = |(coin, address): (&CoinType, &AddressRecord)| {
            matches!(address, AddressRecord::Failed(_)) || later.addresses.get(coin) == Some(address)
        };
        let is_endpoint = |(key, endpoint): (&EndpointRecordKey, &EndpointRecord)| {
            matches!(endpoint, EndpointRecord::Failed(_)) || later.endpoints.get(key) == Some(endpoint)
        };
        self.addresses.iter().all(is_address) && self.endpoints.iter().all(is_endpoint)
    }

    /// Whether both contain the same values, and fail for the same records. Causes of failure are not compared.
    pub fn has_same_values(&self, other: &Self) -> bool {
        let address = |(one, other): (&AddressRecord, &AddressRecord)| {
            one == other || matches!((one, other), (AddressRecord::Failed(_), AddressRecord::Failed(_)))
        };
        let endpoint = |(one, other): (&EndpointRecord, &EndpointRecord)| {
            one == other || matches!((one, other), (EndpointRecord::Failed(_), EndpointRecord::Failed(_)))
        };
        self.addresses.keys().eq(other.addresses.keys())
            && self.endpoints.keys().eq(other.endpoints.keys())
            && self.addresses.values().zip(other.addresses.values()).all(address)
            && self.endpoints.values().zip(other.endpoints.values()).all(endpoint)
    }
}

/// The coin type of an EVM chain, for `addr(node, coinType)` (ENSIP-9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CoinType(u64);

impl CoinType {
    /// Ether on chain 1 (SLIP-44). It is not a fallback for any other chain.
    pub const ETHER: Self = Self(60);

    /// The default for every EVM chain whose own coin type is not set (ENSIP-19).
    pub const EVM_DEFAULT: Self = Self(EVM_BIT);

    /// The coin type of an EVM chain (ENSIP-11): 60 for chain 1, otherwise the chain id with bit 31 set. `None` if the
    /// id does not fit.
    pub const fn from_chain_id(id: u64) -> Option<Self> {
        match id {
            1 => Some(Self::ETHER),
            1.. if id < EVM_BIT => Some(Self(EVM_BIT | id)),
            _ => None,
        }
    }

    /// The number, as resolvers expect it.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// The bit that marks the coin type of an EVM chain (ENSIP-11).
const EVM_BIT: u64 = 0x8000_0000;

/// Maximum number of coin types in addition to the two that are always requested. Together with the endpoints, one
/// resolver call then stays within the 64 accepted elements of its answer, with room for further records.
pub const MAX_FURTHER_COINS: usize = 32;

/// The requested coin types, without duplicates: [`CoinType::ETHER`], [`CoinType::EVM_DEFAULT`], then further
/// ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestedCoinTypes(#[serde(deserialize_with = "deserialize_canonical_coin_types")] Vec<CoinType>);

/// More than [`MAX_FURTHER_COINS`] further coin types, or a list that is not in canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a list of coin types names 60 and {EVM_BIT}, then at most {MAX_FURTHER_COINS} others, each once")]
pub struct RequestedCoinTypesError;

impl RequestedCoinTypes {
    /// The two coin types that are always requested, and `further` ones.
    ///
    /// # Errors
    /// [`RequestedCoinTypesError`] if there are too many.
    pub fn new(further: impl IntoIterator<Item = CoinType>) -> Result<Self, RequestedCoinTypesError> {
        let mut coins = vec![CoinType::ETHER, CoinType::EVM_DEFAULT];
        let most = coins.len() + MAX_FURTHER_COINS;
        for coin in further {
            if coins.contains(&coin) {
                continue;
            }
            if coins.len() == most {
                return Err(RequestedCoinTypesError);
            }
            coins.push(coin);
        }
        Ok(Self(coins))
    }

    /// The coin types in the order in which they are requested.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = CoinType> {
        self.0.iter().copied()
    }

    /// The number of coin types.
    pub const fn count(&self) -> usize {
        self.0.len()
    }
}

impl Default for RequestedCoinTypes {
    fn default() -> Self {
        Self(vec![CoinType::ETHER, CoinType::EVM_DEFAULT])
    }
}

/// Deserializes only lists that [`RequestedCoinTypes::new`] can produce, because a list may come from an untrusted
/// bundle.
fn deserialize_canonical_coin_types<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<CoinType>, D::Error> {
    let given = Vec::<CoinType>::deserialize(deserializer)?;
    let coins = RequestedCoinTypes::new(given.iter().copied()).map_err(serde::de::Error::custom)?;
    if coins.0 == given { Ok(given) } else { Err(serde::de::Error::custom(RequestedCoinTypesError)) }
}

impl fmt::Display for CoinType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The resolver's answer for one coin type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AddressRecord {
    /// Not set: the answer has no bytes.
    Absent,
    /// Set. The zero address means that nobody is paid, but it counts as set: a resolver stores it as 20 bytes.
    Address(Address),
    /// Set, but not 20 bytes: the first [`MAX_MALFORMED_BYTES`] of them.
    Malformed(Bytes),
    /// This record could not be read, although the records of the resolution could. Whether it is set is unknown.
    Failed(ChainError),
}

/// Maximum number of bytes kept of a malformed address: longer than an address of any chain.
pub const MAX_MALFORMED_BYTES: usize = 64;

impl AddressRecord {
    /// Interprets the bytes of a resolver's answer (ENSIP-9, ENSIP-11).
    pub fn from_bytes(bytes: &[u8]) -> Self {
        match Address::try_from(bytes) {
            Ok(address) => Self::Address(address),
            Err(_) if bytes.is_empty() => Self::Absent,
            Err(_) => Self::Malformed(Bytes::copy_from_slice(&bytes[..bytes.len().min(MAX_MALFORMED_BYTES)])),
        }
    }
}

impl fmt::Display for AddressRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("not set"),
            Self::Address(address) => address.fmt(f),
            Self::Malformed(bytes) => write!(f, "not an address: {bytes}"),
            Self::Failed(cause) => write!(f, "not read: {cause}"),
        }
    }
}

/// The resolver's answer for one endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndpointRecord {
    /// The resolver's answer.
    Read(TextRecord),
    /// This record could not be read, although the records of the resolution could. Whether it is set is unknown.
    Failed(ChainError),
}

/// The text records that hold an agent's endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EndpointRecordKey {
    /// `cl.endpoint.runtime`: the base URL of the runtime. Verb and version of the entry are appended to it.
    #[serde(rename = "cl.endpoint.runtime")]
    Runtime,
    /// `agent-endpoint[web]` (ENSIP-26).
    #[serde(rename = "agent-endpoint[web]")]
    Web,
    /// `agent-endpoint[mcp]` (ENSIP-26).
    #[serde(rename = "agent-endpoint[mcp]")]
    Mcp,
    /// `agent-endpoint[a2a]` (ENSIP-26).
    #[serde(rename = "agent-endpoint[a2a]")]
    A2a,
    /// `agent-endpoint[x402]`: ENSIP-26's form with a protocol that sellers use. It names an origin, not a route.
    #[serde(rename = "agent-endpoint[x402]")]
    X402,
    /// `url` (ENSIP-5). It names an origin, not a route.
    #[serde(rename = "url")]
    Url,
}

impl EndpointRecordKey {
    /// Every key that is read.
    pub const ALL: [Self; 6] = [Self::Runtime, Self::Web, Self::Mcp, Self::A2a, Self::X402, Self::Url];

    /// The keys that may hold the URL behind an agent's entry, highest precedence first.
    pub const ROUTES: [Self; 4] = [Self::Runtime, Self::Web, Self::Mcp, Self::A2a];

    /// The keys by which a name points to the origin of its seller.
    pub const ORIGINS: [Self; 4] = [Self::X402, Self::Web, Self::Runtime, Self::Url];

    /// The key of the text record.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Runtime => "cl.endpoint.runtime",
            Self::Web => "agent-endpoint[web]",
            Self::Mcp => "agent-endpoint[mcp]",
            Self::A2a => "agent-endpoint[a2a]",
            Self::X402 => "agent-endpoint[x402]",
            Self::Url => "url",
        }
    }
}

impl fmt::Display for EndpointRecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::ResolverContractError;

    #[test]
    fn a_chain_has_one_coin_type() {
        assert_eq!(CoinType::from_chain_id(1), Some(CoinType::ETHER));
        assert_eq!(CoinType::from_chain_id(8453).map(CoinType::number), Some(2_147_492_101));
        assert_eq!(CoinType::from_chain_id(31_337).map(CoinType::number), Some(0x8000_7A69));
        assert_eq!(CoinType::from_chain_id(0), None, "that is the default of all chains");
        assert_eq!(CoinType::from_chain_id(0x8000_0000), None);
        assert_eq!(CoinType::EVM_DEFAULT.number(), 0x8000_0000);
    }

    #[test]
    fn an_address_has_20_bytes_and_none_is_not_set() {
        let address = Address::repeat_byte(7);
        assert_eq!(AddressRecord::from_bytes(address.as_slice()), AddressRecord::Address(address));
        assert_eq!(AddressRecord::from_bytes(&[]), AddressRecord::Absent);
        assert_eq!(AddressRecord::from_bytes(&[0; 20]), AddressRecord::Address(Address::ZERO));
        for length in [1, 19, 21, 32] {
            let bytes = vec![0; length];
            assert_eq!(AddressRecord::from_bytes(&bytes), AddressRecord::Malformed(bytes.into()));
        }
        assert_eq!(
            AddressRecord::from_bytes(&[1; 1 << 20]),
            AddressRecord::Malformed(vec![1; MAX_MALFORMED_BYTES].into())
        );
    }

    #[test]
    fn coin_types_are_listed_once_and_bounded() {
        let chain = |id| CoinType::from_chain_id(id).unwrap();
        let coins = RequestedCoinTypes::new([chain(8453), CoinType::ETHER, chain(8453)]).unwrap();
        assert_eq!(coins.iter().collect::<Vec<_>>(), [CoinType::ETHER, CoinType::EVM_DEFAULT, chain(8453)]);
        assert_eq!(RequestedCoinTypes::new([]), Ok(RequestedCoinTypes::default()));
        let most = MAX_FURTHER_COINS as u64;
        assert_eq!(
            RequestedCoinTypes::new((2..most + 2).map(chain)).map(|coins| coins.count()),
            Ok(MAX_FURTHER_COINS + 2)
        );
        assert_eq!(RequestedCoinTypes::new((2..most + 3).map(chain)), Err(RequestedCoinTypesError));
    }

    #[test]
    fn coin_types_are_read_in_one_form_alone() {
        let coins = RequestedCoinTypes::new(CoinType::from_chain_id(8453)).unwrap();
        let json = serde_json::to_string(&coins).unwrap();
        assert_eq!(json, "[60,2147483648,2147492101]");
        assert_eq!(serde_json::from_str::<RequestedCoinTypes>(&json).unwrap(), coins);
        let endless = serde_json::to_string(&(0..40).chain([60, 0x8000_0000]).collect::<Vec<u64>>()).unwrap();
        for other in ["[]", "[60]", "[2147483648,60]", "[60,2147483648,60]", endless.as_str()] {
            assert!(serde_json::from_str::<RequestedCoinTypes>(other).is_err(), "{other}");
        }
    }

    #[test]
    fn records_are_read_back_as_they_were_written() {
        let cause = ChainError::Resolver(ResolverContractError::Recorded("why".to_owned()));
        let mut records = PaymentRecords::from_read_failure(&RequestedCoinTypes::default(), &cause);
        records.addresses.insert(CoinType::ETHER, AddressRecord::Address(Address::repeat_byte(7)));
        records.addresses.insert(CoinType::EVM_DEFAULT, AddressRecord::Malformed(vec![1].into()));
        records.endpoints.insert(EndpointRecordKey::Web, EndpointRecord::Read(TextRecord::Absent));
        records
            .endpoints
            .insert(EndpointRecordKey::Mcp, EndpointRecord::Read(TextRecord::Text("https://a.example".to_owned())));
        let json = serde_json::to_string(&records).unwrap();
        assert_eq!(serde_json::from_str::<PaymentRecords>(&json).unwrap(), records, "{json}");
    }

    #[test]
    fn a_failure_is_no_value_and_its_cause_is_not_compared() {
        let failed = |words: &str| {
            PaymentRecords::from_read_failure(
                &RequestedCoinTypes::default(),
                &ChainError::Resolver(ResolverContractError::Recorded(words.to_owned())),
            )
        };
        let (one, other) = (failed("one"), failed("other"));
        assert!(one != other && one.has_same_values(&other));
        let mut absent = one.clone();
        absent.addresses.insert(CoinType::ETHER, AddressRecord::Absent);
        assert!(!absent.has_same_values(&one) && !one.has_same_values(&absent));
        let mut unset = one.clone();
        unset.endpoints.insert(EndpointRecordKey::Web, EndpointRecord::Read(TextRecord::Absent));
        assert!(!unset.has_same_values(&one) && !one.has_same_values(&unset));
        assert!(!one.has_same_values(&PaymentRecords::default()) && !PaymentRecords::default().has_same_values(&one));
    }

    #[test]
    fn later_reading_confirms_equal_values_alone() {
        let of = |address: AddressRecord, endpoint: EndpointRecord| PaymentRecords {
            addresses: [(CoinType::ETHER, address)].into(),
            endpoints: [(EndpointRecordKey::Web, endpoint)].into(),
            offchain: false,
        };
        let text = |text: &str| EndpointRecord::Read(TextRecord::Text(text.to_owned()));
        let address = |byte| AddressRecord::Address(Address::repeat_byte(byte));
        let cause = ChainError::Resolver(ResolverContractError::CallReverted);
        let before = of(address(1), text("https://a.example"));
        assert!(before.is_confirmed_by(&before));
        for later in [
            of(address(2), text("https://a.example")),
            of(AddressRecord::Absent, text("https://a.example")),
            of(AddressRecord::Failed(cause.clone()), text("https://a.example")),
            of(address(1), text("https://b.example")),
            of(address(1), EndpointRecord::Read(TextRecord::Absent)),
            of(address(1), EndpointRecord::Failed(cause.clone())),
            PaymentRecords { addresses: BTreeMap::new(), ..before.clone() },
            PaymentRecords { endpoints: BTreeMap::new(), ..before.clone() },
        ] {
            assert!(!before.is_confirmed_by(&later), "{later:?}");
        }
    }

    #[test]
    fn record_that_failed_before_may_have_any_value_later() {
        let cause = ChainError::Resolver(ResolverContractError::CallReverted);
        let before = PaymentRecords::from_read_failure(&RequestedCoinTypes::default(), &cause);
        let mut later = before.clone();
        later.addresses.insert(CoinType::ETHER, AddressRecord::Address(Address::repeat_byte(1)));
        later.endpoints.insert(EndpointRecordKey::Web, EndpointRecord::Read(TextRecord::Absent));
        assert!(before.is_confirmed_by(&before) && before.is_confirmed_by(&later));
        assert!(before.is_confirmed_by(&PaymentRecords::default()) && !later.is_confirmed_by(&before));
    }

    #[test]
    fn an_endpoint_is_written_as_its_record() {
        for key in EndpointRecordKey::ALL {
            assert_eq!(serde_json::to_value(key).unwrap(), key.as_str());
        }
    }
}
