//! A2, the receipts of the runtime, which look like the SDKs', and A3, those of the commercial runtime.
//!
//! Signed is the whole receipt, with empty texts for the digest and the signature of the proof and for
//! `metadata.receipt_id`, which repeats the digest.

use super::{Family, NoSignedParts, SignedParts, present, sdk};
use crate::canonical::MemberOrder;
use crate::json::Node;

const CANONICAL: &str = "json-stringify";

pub(super) fn is_commercial(receipt: &Node) -> bool {
    receipt.says(&["metadata", "proof", "alg"], sdk::ALG)
        && receipt.says(&["metadata", "proof", "canonical"], CANONICAL)
}

/// Whether the receipt's id is the claimed digest, as the runtime has it. Nobody signs that: it says which reading of a
/// receipt that holds in none is shown.
pub(super) fn repeats_its_digest(receipt: &Node) -> bool {
    let id = receipt.text_at(&["metadata", "receipt_id"]);
    id.is_some() && id == receipt.text_at(&["metadata", "proof", "hash_sha256"])
}

pub(super) fn take_apart(receipt: &Node) -> Result<SignedParts, NoSignedParts> {
    Ok(emptied(receipt, Family::A2, sdk::CANONICAL))
}

pub(super) fn take_commercial_apart(receipt: &Node) -> Result<SignedParts, NoSignedParts> {
    Ok(emptied(receipt, Family::A3, CANONICAL))
}

fn emptied(receipt: &Node, family: Family, canonical: &'static str) -> SignedParts {
    let mut content = receipt.clone();
    let empty = || Node::Text("".into());
    if let Some(metadata) = content.get_mut("metadata") {
        metadata.set("receipt_id", empty());
        if let Some(proof) = metadata.get_mut("proof") {
            proof.set("hash_sha256", empty());
            proof.set("signature_b64", empty());
        }
    }
    let unsigned = present(receipt, &[&["metadata", "receipt_id"]]);
    SignedParts { unsigned, ..sdk::parts(receipt, family, canonical, content, MemberOrder::Rebuilt) }
}
