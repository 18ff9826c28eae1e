//! The call of the name's resolver that sets the planned records. clresolve does not send it: the holder of the name
//! signs and sends the transaction.

use std::collections::BTreeMap;

use alloy_primitives::{Address, Bytes, U256};
use alloy_sol_types::{SolCall as _, sol};
use url::Url;

use clresolve_core::payment::CoinType;

use clresolve_core::name::EnsName;
use clresolve_core::records::TextRecordKey;

sol! {
    function setText(bytes32 node, string key, string value);
    function setAddr(bytes32 node, uint256 coinType, bytes a);
    function multicall(bytes[] data) returns (bytes[] results);
}

/// The base URL of a name's page in the ENS manager.
const MANAGER: &str = "https://app.ens.domains/";

/// The call data of `multicall(bytes[])` over one `setText` (ENSIP-5) per record and one `setAddr` (ENSIP-9) per
/// address, as in ENS's PublicResolver.
pub(super) fn set_records_calldata(
    name: &EnsName,
    records: &BTreeMap<TextRecordKey, String>,
    addresses: &BTreeMap<CoinType, Address>,
) -> Bytes {
    let node = name.namehash();
    let text = |(key, value): (&TextRecordKey, &String)| {
        setTextCall { node, key: key.as_str().to_owned(), value: value.clone() }.abi_encode().into()
    };
    let address = |(coin, address): (&CoinType, &Address)| {
        let a = Bytes::copy_from_slice(address.as_slice());
        setAddrCall { node, coinType: U256::from(coin.number()), a }.abi_encode().into()
    };
    let data = records.iter().map(text).chain(addresses.iter().map(address)).collect();
    multicallCall { data }.abi_encode().into()
}

/// The page where the holder of a mainnet name can set its records.
pub(super) fn ens_manager_url(name: &EnsName) -> String {
    let mut page = Url::parse(MANAGER).expect("a constant URL");
    page.set_path(name.as_str());
    page.into()
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{B256, hex};

    use super::*;

    #[test]
    fn one_call_sets_each_record_of_the_name() {
        let name = EnsName::parse("summarizeagent.eth").unwrap();
        let records = BTreeMap::from([
            (TextRecordKey::Entry, "x402://summarizeagent.eth/summarize/v1".to_owned()),
            (TextRecordKey::Owner, "publisher.eth".to_owned()),
        ]);
        let calldata = set_records_calldata(&name, &records, &BTreeMap::new());
        assert_eq!(calldata[..4], hex!("ac9650d8"), "the selector of multicall(bytes[])");
        let calls = multicallCall::abi_decode(&calldata).unwrap().data;
        let set: Vec<(B256, String, String)> = calls
            .iter()
            .map(|call| setTextCall::abi_decode(call).unwrap())
            .map(|call| (call.node, call.key, call.value))
            .collect();
        let expected = |key: &str, value: &str| (name.namehash(), key.to_owned(), value.to_owned());
        assert_eq!(
            set,
            [expected("cl.entry", "x402://summarizeagent.eth/summarize/v1"), expected("cl.owner", "publisher.eth")]
        );
        assert_eq!(calls[0][..4], hex!("10f13a8c"), "the selector of setText(bytes32,string,string)");
    }

    #[test]
    fn the_same_call_sets_the_address_of_each_coin_type() {
        let name = EnsName::parse("summarizeagent.eth").unwrap();
        let payee = Address::repeat_byte(0xaa);
        let coin = CoinType::from_chain_id(8453).unwrap();
        let calldata = set_records_calldata(&name, &BTreeMap::new(), &BTreeMap::from([(coin, payee)]));
        let calls = multicallCall::abi_decode(&calldata).unwrap().data;
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0][..4], hex!("8b95dd71"), "the selector of setAddr(bytes32,uint256,bytes)");
        let set = setAddrCall::abi_decode(&calls[0]).unwrap();
        assert_eq!(
            (set.node, set.coinType, &set.a[..]),
            (name.namehash(), U256::from(2_147_492_101_u64), payee.as_slice())
        );
    }

    #[test]
    fn the_page_of_a_name_is_a_url() {
        let page = |name: &str| ens_manager_url(&EnsName::parse(name).unwrap());
        assert_eq!(page("summarizeagent.eth"), "https://app.ens.domains/summarizeagent.eth");
        assert_eq!(page("🦇.eth"), "https://app.ens.domains/%F0%9F%A6%87.eth");
    }
}
