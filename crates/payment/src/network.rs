//! Networks, identified by CAIP-2.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use clresolve_verdict::check::card::is_caip2;

/// A network: a CAIP-2 identifier, compared byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Caip2Network(String);

#[cfg(feature = "schema")]
crate::schema::texts!(Caip2Network: "^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$");

/// The text is not a CAIP-2 identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a network as CAIP-2 names it, such as eip155:8453")]
pub struct Caip2NetworkError;

impl Caip2Network {
    /// The network with this name in x402 version 1.
    pub fn from_v1_name(name: &str) -> Option<Self> {
        let evm = V1_NAMES.iter().find(|(known, _)| *known == name).map(|(_, id)| format!("eip155:{id}"));
        let solana = SOLANA_V1_NAMES.iter().find(|(known, _)| *known == name).map(|(_, id)| format!("solana:{id}"));
        evm.or(solana).map(Self)
    }

    /// The EIP-155 chain id. `None` for other kinds of networks, or an id that is not in its shortest form.
    pub fn chain_id(&self) -> Option<u64> {
        let digits = self.0.strip_prefix("eip155:")?;
        let id: u64 = digits.parse().ok()?;
        (id > 0 && id.to_string() == digits).then_some(id)
    }

    /// The identifier.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Caip2Network {
    type Err = Caip2NetworkError;

    fn from_str(text: &str) -> Result<Self, Caip2NetworkError> {
        if is_caip2(text) { Ok(Self(text.to_owned())) } else { Err(Caip2NetworkError) }
    }
}

impl fmt::Display for Caip2Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Caip2Network {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Caip2Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Network names of x402 version 1, as defined in `@x402/evm` 2.27.0.
pub(crate) const V1_NAMES: [(&str, u64); 23] = [
    ("ethereum", 1),
    ("sepolia", 11_155_111),
    ("abstract", 2741),
    ("abstract-testnet", 11_124),
    ("base-sepolia", 84_532),
    ("base", 8453),
    ("avalanche-fuji", 43_113),
    ("avalanche", 43_114),
    ("iotex", 4689),
    ("sei", 1329),
    ("sei-testnet", 1328),
    ("polygon", 137),
    ("polygon-amoy", 80_002),
    ("peaq", 3338),
    ("story", 1514),
    ("educhain", 41_923),
    ("skale-base-sepolia", 324_705_682),
    ("megaeth", 4326),
    ("monad", 143),
    ("stable", 988),
    ("stable-testnet", 2201),
    ("celo", 42_220),
    ("flare", 14),
];

/// Further network names of x402 version 1, as in the npm package `x402` 1.2.0. No payment there is checked: the names
/// only show whether two places of a reply mean one network.
const SOLANA_V1_NAMES: [(&str, &str); 2] =
    [("solana", "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp"), ("solana-devnet", "EtWTRABZaYq6iMfeYKouRu166VU2xqa1")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_named_in_one_way() {
        let id = |text: &str| text.parse::<Caip2Network>().ok().and_then(|network| network.chain_id());
        assert_eq!(id("eip155:8453"), Some(8453));
        for other in ["eip155:08453", "eip155:0", "eip155:+1", "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp", "EIP155:1"] {
            assert_eq!(id(other), None, "{other}");
        }
        for text in ["", "base-sepolia", "EIP155:84532", "eip155:", "eip155:1 ", "ei:1"] {
            assert_eq!(text.parse::<Caip2Network>(), Err(Caip2NetworkError), "{text:?}");
        }
    }

    #[test]
    fn version_1_has_names_of_its_own() {
        assert_eq!(Caip2Network::from_v1_name("base-sepolia").unwrap().as_str(), "eip155:84532");
        assert_eq!(
            Caip2Network::from_v1_name("solana-devnet").unwrap().as_str(),
            "solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1"
        );
        assert_eq!(Caip2Network::from_v1_name("eip155:84532"), None);
    }
}
