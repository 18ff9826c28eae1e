//! Assets: token contracts on networks, each with its EIP-712 domain. A symbol does not identify an asset.

use std::borrow::Cow;

use alloy_primitives::{Address, U256, address};
use serde::{Deserialize, Serialize};

use crate::network::Caip2Network;

/// The identity of an asset.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AssetId {
    /// The network of the contract.
    pub network: Caip2Network,
    /// The address of the contract.
    pub address: Address,
}

/// The properties of an asset's contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssetProperties {
    /// The `name` of its EIP-712 domain.
    pub name: Cow<'static, str>,
    /// The `version` of its EIP-712 domain.
    pub version: Cow<'static, str>,
    /// Number of decimals of the unit.
    pub decimals: u8,
    /// The symbol of the unit. For display only.
    pub symbol: Cow<'static, str>,
}

impl AssetProperties {
    /// Looks up a contract in the built-in table.
    pub fn find_known(id: &AssetId) -> Option<Self> {
        let chain = id.network.chain_id()?;
        let row = TABLE.iter().find(|row| row.0 == chain && row.1 == id.address)?;
        let &(_, _, name, version, decimals, symbol) = row;
        Some(Self { name: name.into(), version: version.into(), decimals, symbol: symbol.into() })
    }

    /// Formats an amount of atomic units as a decimal number of units, without trailing zeros.
    pub fn format_units(&self, amount: U256) -> String {
        let digits = amount.to_string();
        let decimals = usize::from(self.decimals);
        let padded = format!("{digits:0>width$}", width = decimals + 1);
        let (whole, fraction) = padded.split_at(padded.len() - decimals);
        let fraction = fraction.trim_end_matches('0');
        if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
    }
}

/// Chain id, contract, EIP-712 name and version, decimals and symbol of the default assets of `@x402/evm` 2.27.0.
pub(crate) const TABLE: [(u64, Address, &str, &str, u8, &str); 28] = [
    (8453, address!("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"), "USD Coin", "2", 6, "USDC"),
    (84_532, address!("0x036CbD53842c5426634e7929541eC2318f3dCF7e"), "USDC", "2", 6, "USDC"),
    (1, address!("0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"), "USD Coin", "2", 6, "USDC"),
    (43_114, address!("0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E"), "USD Coin", "2", 6, "USDC"),
    (4326, address!("0xFAfDdbb3FC7688494971a79cc65DCa3EF82079E7"), "MegaUSD", "1", 18, "MegaUSD"),
    (143, address!("0x754704Bc059F8C67012fEd69BC8A327a5aafb603"), "USDC", "2", 6, "USDC"),
    (988, address!("0x779Ded0c9e1022225f8E0630b35a9b54bE713736"), "USDT0", "1", 6, "USDT0"),
    (2201, address!("0x78Cf24370174180738C5B8E352B6D14c83a6c9A9"), "USDT0", "1", 6, "USDT0"),
    (137, address!("0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359"), "USD Coin", "2", 6, "USDC"),
    (42_161, address!("0xaf88d065e77c8cC2239327C5EDb3A432268e5831"), "USD Coin", "2", 6, "USDC"),
    (421_614, address!("0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d"), "USD Coin", "2", 6, "USDC"),
    (31_612, address!("0xdD468A1DDc392dcdbEf6db6e34E89AA338F9F186"), "Mezo USD", "1", 18, "mUSD"),
    (31_611, address!("0x118917a40FAF1CD7a13dB0Ef56C86De7973Ac503"), "Mezo USD", "1", 18, "mUSD"),
    (723_487, address!("0x33ad9e4BD16B69B5BFdED37D8B5D9fF9aba014Fb"), "Stable Coin", "1", 6, "SBC"),
    (72_344, address!("0x33ad9e4BD16B69B5BFdED37D8B5D9fF9aba014Fb"), "Stable Coin", "1", 6, "SBC"),
    (36_900, address!("0x9cb8142aEBBcdc60AF7c97Af897A67A8f3CA71C2"), "USDC.e", "2", 6, "USDC.e"),
    (190_415, address!("0x401eCb1D350407f13ba348573E5630B83638E30D"), "Bridged USDC", "2", 6, "USDC.e"),
    (181_228, address!("0x401eCb1D350407f13ba348573E5630B83638E30D"), "Bridged USDC", "2", 6, "USDC.e"),
    (50, address!("0xfA2958CB79b0491CC627c1557F441eF849Ca8eb1"), "USDC", "2", 6, "USDC"),
    (51, address!("0xb5AB69F7bBada22B28e79C8FFAECe55eF1c771D4"), "USDC", "2", 6, "USDC"),
    (38_833, address!("0xA5b8BF902b2844dA17d4506cc827F7F1681735E7"), "USDC", "1", 6, "USDC"),
    (14, address!("0xe7cd86e13AC4309349F30B3435a9d337750fC82D"), "USD₮0", "1", 6, "USDT0"),
    (42_220, address!("0xcebA9300f2b948710d2653dD7B07f33A8B32118C"), "USDC", "2", 6, "USDC"),
    (42_220, address!("0x48065fbBE25f71C9282ddf5e1cD6D6A887483D5e"), "Tether USD", "1", 6, "USDT"),
    (42_220, address!("0xD2ab3C9A02DBBAB236BfEC45D1d755DF4267F771"), "Tether America USD", "1", 6, "USAT"),
    (11_142_220, address!("0x01C5C0122039549AD1493B8220cABEdD739BC44E"), "USDC", "2", 6, "USDC"),
    (1329, address!("0xe15fC38F6D8c56aF07bbCBe3BAf5708A2Bf42392"), "USDC", "2", 6, "USDC"),
    (1328, address!("0x4fCF1784B31630811181f670Aea7A7bEF803eaED"), "USDC", "2", 6, "USDC"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asset_is_known_by_its_contract() {
        let id = |network: &str, address| AssetId { network: network.parse().unwrap(), address };
        let usdc = address!("833589fCD6eDb6E08f4c7C32D4f71b54bdA02913");
        assert_eq!(AssetProperties::find_known(&id("eip155:8453", usdc)).unwrap().name, "USD Coin");
        assert_eq!(AssetProperties::find_known(&id("eip155:1", usdc)), None);
    }

    #[test]
    fn amounts_are_written_in_units() {
        let asset = |decimals| AssetProperties { name: "".into(), version: "".into(), decimals, symbol: "".into() };
        assert_eq!(asset(6).format_units(U256::from(10_000)), "0.01");
        assert_eq!(asset(6).format_units(U256::from(1_000_000)), "1");
        assert_eq!(asset(6).format_units(U256::ZERO), "0");
        assert_eq!(asset(0).format_units(U256::from(70)), "70");
        assert_eq!(asset(18).format_units(U256::from(1)), "0.000000000000000001");
    }
}
