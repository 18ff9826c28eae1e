//! What a name publishes about payments beside the records of the walk: addresses by coin type, and endpoints. It stays
//! out of the digest of the records and out of a verdict's conclusion.

use std::collections::BTreeMap;
use std::fmt;

use alloy_primitives::Address;
use serde::{Deserialize, Serialize};

use crate::cause::ResolverFault;
use crate::records::Record;

/// A coin type of `addr(node, coinType)` (ENSIP-9), of an EVM chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CoinType(u64);

impl CoinType {
    /// Ether on chain 1 (SLIP-44). No fallback for any other chain.
    pub const ETHER: Self = Self(60);

    /// Every EVM chain whose own coin type is not set (ENSIP-19).
    pub const EVM_DEFAULT: Self = Self(EVM_BIT);

    /// The coin type of an EVM chain (ENSIP-11): 60 for chain 1, else the chain id with the highest of 32 bits set.
    /// `None` for an id that does not fit.
    pub const fn of_chain(id: u64) -> Option<Self> {
        match id {
            1 => Some(Self::ETHER),
            1.. if id < EVM_BIT => Some(Self(EVM_BIT | id)),
            _ => None,
        }
    }

    /// The number, as the resolver takes it.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// The bit that marks the coin type of an EVM chain (ENSIP-11).
const EVM_BIT: u64 = 0x8000_0000;

impl fmt::Display for CoinType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What the resolver answered for one coin type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AddressRecord {
    /// Not set: no bytes, or 20 zeros.
    Absent,
    /// Set.
    Address(Address),
    /// Set, but not 20 bytes.
    Malformed(alloy_primitives::Bytes),
    /// This one could not be read, although the records could.
    Failed(ResolverFault),
}

/// The text records that say where an agent is called, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EndpointKey {
    /// `cl.endpoint.runtime`: the base URL of the runtime; verb and version of the entry follow.
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
}

impl EndpointKey {
    /// Every key, strongest first.
    pub const ALL: [Self; 4] = [Self::Runtime, Self::Web, Self::Mcp, Self::A2a];

    /// The key as it stands in the resolver.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Runtime => "cl.endpoint.runtime",
            Self::Web => "agent-endpoint[web]",
            Self::Mcp => "agent-endpoint[mcp]",
            Self::A2a => "agent-endpoint[a2a]",
        }
    }
}

impl fmt::Display for EndpointKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a name publishes about payments at one block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentRecords {
    /// Whom to pay, by coin type. A coin type that was not asked for is missing.
    pub addresses: BTreeMap<CoinType, AddressRecord>,
    /// Where to call. A key that was not asked for is missing.
    pub endpoints: BTreeMap<EndpointKey, Record>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_has_one_coin_type() {
        assert_eq!(CoinType::of_chain(1), Some(CoinType::ETHER));
        assert_eq!(CoinType::of_chain(8453).map(CoinType::number), Some(2_147_492_101));
        assert_eq!(CoinType::of_chain(31_337).map(CoinType::number), Some(0x8000_7A69));
        assert_eq!(CoinType::of_chain(0), None, "that is the default of all chains");
        assert_eq!(CoinType::of_chain(0x8000_0000), None);
        assert_eq!(CoinType::EVM_DEFAULT.number(), 0x8000_0000);
    }

    #[test]
    fn an_endpoint_is_written_as_its_record() {
        for key in EndpointKey::ALL {
            assert_eq!(serde_json::to_value(key).unwrap(), key.as_str());
        }
    }
}
