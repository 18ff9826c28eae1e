//! The built-in tables match the published ones.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use crate::asset::{self, AssetId, AssetProperties};
use crate::network::{self, Caip2Network};

/// A file or folder in the folder that `CLRESOLVE_X402` specifies. If the variable is unset, prints that the test is
/// skipped.
pub(crate) fn published(path: &str) -> Option<PathBuf> {
    let Some(root) = std::env::var_os("CLRESOLVE_X402") else {
        println!("skipped: CLRESOLVE_X402 is not set");
        return None;
    };
    let path = PathBuf::from(root).join(path);
    assert!(path.exists(), "{} is missing", path.display());
    Some(path)
}

#[test]
fn x402_vectors_of_network_names_are_the_table() {
    let Some(path) = published("tables/x402-v1-network-names.json") else { return };
    let text = std::fs::read(path).expect("readable");
    let names: BTreeMap<String, String> = serde_json::from_slice(&text).expect("JSON");
    let own = network::V1_NAMES.map(|(name, id)| (name.to_owned(), format!("eip155:{id}")));
    assert_eq!(BTreeMap::from(own), names);
}

#[test]
fn x402_vectors_of_default_assets_are_the_table() {
    let Some(path) = published("tables/x402-default-assets.json") else { return };
    let text = std::fs::read(path).expect("readable");
    let assets: BTreeMap<Caip2Network, Vec<Value>> = serde_json::from_slice(&text).expect("JSON");
    let mut count = 0;
    for (network, rows) in assets {
        for row in rows {
            let address = row["asset"].as_str().and_then(|text| text.parse().ok()).expect("an address");
            let id = AssetId { network: network.clone(), address };
            let known = serde_json::to_value(AssetProperties::find_known(&id)).expect("JSON");
            for member in ["name", "version", "decimals", "symbol"] {
                assert_eq!(known[member], row[member], "{member} of {id:?}");
            }
            count += 1;
        }
    }
    assert_eq!(count, asset::TABLE.len());
}
