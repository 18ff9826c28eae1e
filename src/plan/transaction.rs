//! The transaction that sets planned records: one call of the name's resolver, whose owner signs it elsewhere.

use std::collections::BTreeMap;

use alloy_primitives::Bytes;
use alloy_sol_types::{SolCall as _, sol};
use url::Url;

use crate::name::EnsName;
use crate::records::Key;

sol! {
    function setText(bytes32 node, string key, string value);
    function multicall(bytes[] data) returns (bytes[] results);
}

/// The page of a name in the manager of ENS.
const MANAGER: &str = "https://app.ens.domains/";

/// The call data of `multicall(bytes[])` over one `setText` (ENSIP-5) for each record, as ENS's PublicResolver has both.
pub(super) fn calldata(name: &EnsName, records: &BTreeMap<Key, String>) -> Bytes {
    let set = |(key, value): (&Key, &String)| {
        setTextCall { node: name.node(), key: key.as_str().to_owned(), value: value.clone() }.abi_encode().into()
    };
    multicallCall { data: records.iter().map(set).collect() }.abi_encode().into()
}

/// The page at which the holder of a name on mainnet can set its records.
pub(super) fn manager(name: &EnsName) -> String {
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
            (Key::Entry, "x402://summarizeagent.eth/summarize/v1".to_owned()),
            (Key::Owner, "publisher.eth".to_owned()),
        ]);
        let calldata = calldata(&name, &records);
        assert_eq!(calldata[..4], hex!("ac9650d8"), "the selector of multicall(bytes[])");
        let calls = multicallCall::abi_decode(&calldata).unwrap().data;
        let set: Vec<(B256, String, String)> = calls
            .iter()
            .map(|call| setTextCall::abi_decode(call).unwrap())
            .map(|call| (call.node, call.key, call.value))
            .collect();
        let expected = |key: &str, value: &str| (name.node(), key.to_owned(), value.to_owned());
        assert_eq!(
            set,
            [expected("cl.entry", "x402://summarizeagent.eth/summarize/v1"), expected("cl.owner", "publisher.eth")]
        );
        assert_eq!(calls[0][..4], hex!("10f13a8c"), "the selector of setText(bytes32,string,string)");
    }

    #[test]
    fn the_page_of_a_name_is_a_url() {
        let page = |name: &str| manager(&EnsName::parse(name).unwrap());
        assert_eq!(page("summarizeagent.eth"), "https://app.ens.domains/summarizeagent.eth");
        assert_eq!(page("🦇.eth"), "https://app.ens.domains/%F0%9F%A6%87.eth");
    }
}
