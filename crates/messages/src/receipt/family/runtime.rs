//! A2, receipts of the runtime, which look like those of the SDKs, and A3, receipts of the commercial runtime.
//!
//! The signature covers the whole receipt, in which the proof's digest and signature and `metadata.receipt_id`, which
//! repeats the digest, are replaced by empty texts.

use super::{Family, NoSignedParts, SignedParts, present, sdk};
use crate::receipt::canonical::MemberOrder;
use crate::receipt::json::Node;

const CANONICAL: &str = "json-stringify";

pub(super) fn is_commercial(receipt: &Node) -> bool {
    receipt.says(&["metadata", "proof", "alg"], sdk::ALG)
        && receipt.says(&["metadata", "proof", "canonical"], CANONICAL)
}

/// Whether the receipt's id equals the stated digest, as the runtime writes it. The id is unsigned. It only selects the
/// reading to report if the signature is valid under neither.
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
