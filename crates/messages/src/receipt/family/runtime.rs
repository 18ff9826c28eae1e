//! A2, receipts of the runtime, which look like those of the SDKs, and A3, receipts of the commercial runtime.
//!
//! The signature covers the whole receipt, in which the proof's digest and signature and `metadata.receipt_id`, which
//! repeats the digest, are replaced by empty texts.

use super::{ReceiptFamily, ReceiptParts, ReceiptPartsError, existing_pointers, sdk};
use crate::receipt::canonical::JsonMemberOrder;
use crate::receipt::json::JsonNode;

const CANONICAL: &str = "json-stringify";

pub(super) fn is_commercial(receipt: &JsonNode) -> bool {
    receipt.has_text_at(&["metadata", "proof", "alg"], sdk::ALG)
        && receipt.has_text_at(&["metadata", "proof", "canonical"], CANONICAL)
}

/// Whether the receipt's id equals the stated digest, as the runtime writes it. The id is unsigned. It only selects the
/// reading to report if the signature is valid under neither.
pub(super) fn has_digest_as_id(receipt: &JsonNode) -> bool {
    let id = receipt.text_at(&["metadata", "receipt_id"]);
    id.is_some() && id == receipt.text_at(&["metadata", "proof", "hash_sha256"])
}

pub(super) fn split_receipt(receipt: &JsonNode) -> Result<ReceiptParts, ReceiptPartsError> {
    Ok(parts_with_emptied_proof(receipt, ReceiptFamily::A2, sdk::CANONICAL))
}

pub(super) fn split_commercial_receipt(receipt: &JsonNode) -> Result<ReceiptParts, ReceiptPartsError> {
    Ok(parts_with_emptied_proof(receipt, ReceiptFamily::A3, CANONICAL))
}

fn parts_with_emptied_proof(receipt: &JsonNode, family: ReceiptFamily, canonical: &'static str) -> ReceiptParts {
    let mut content = receipt.clone();
    let empty = || JsonNode::Text("".into());
    if let Some(metadata) = content.get_mut("metadata") {
        metadata.set("receipt_id", empty());
        if let Some(proof) = metadata.get_mut("proof") {
            proof.set("hash_sha256", empty());
            proof.set("signature_b64", empty());
        }
    }
    let unsigned = existing_pointers(receipt, &[&["metadata", "receipt_id"]]);
    ReceiptParts {
        unsigned,
        ..sdk::metadata_proof_parts(receipt, family, canonical, content, JsonMemberOrder::Rebuilt)
    }
}
