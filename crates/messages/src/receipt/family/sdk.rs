//! A1, receipts of the SDKs: `metadata.proof` with alg `ed25519-sha256` and canonical `cl-stable-json-v1`.
//!
//! The signature covers the whole receipt without `receipt_id` and `metadata.receipt_id`. Of the proof, it covers the
//! members that describe the method.

use super::{
    ReceiptClaim, ReceiptFamily, ReceiptParts, ReceiptPartsError, SignedMessageFormat, existing_pointers, has_value_at,
    unknown_members,
};
use crate::receipt::canonical::JsonMemberOrder;
use crate::receipt::json::JsonNode;

pub(super) const ALG: &str = "ed25519-sha256";
pub(super) const CANONICAL: &str = "cl-stable-json-v1";

/// The signed members of the proof.
const SIGNED: [&str; 3] = ["alg", "canonical", "signer_id"];

pub(super) fn has_family_shape(receipt: &JsonNode) -> bool {
    receipt.has_text_at(&["metadata", "proof", "alg"], ALG)
        && receipt.has_text_at(&["metadata", "proof", "canonical"], CANONICAL)
}

pub(super) fn split_receipt(receipt: &JsonNode) -> Result<ReceiptParts, ReceiptPartsError> {
    let mut content = receipt.clone();
    content.remove("receipt_id");
    if let Some(metadata) = content.get_mut("metadata") {
        metadata.remove("receipt_id");
        if let Some(proof) = metadata.get_mut("proof") {
            *proof = proof.with_only_members(&SIGNED);
        }
    }
    let mut unsigned = existing_pointers(receipt, &[&["receipt_id"], &["metadata", "receipt_id"]]);
    let known = [&SIGNED[..], &["hash_sha256", "signature_b64"]].concat();
    unsigned.extend(unknown_members(receipt, &["metadata", "proof"], &known));
    Ok(ReceiptParts {
        unsigned,
        ..metadata_proof_parts(receipt, ReceiptFamily::A1, CANONICAL, content, JsonMemberOrder::Sorted)
    })
}

/// The statements of the proof of A1, A2 and A3 about `content`.
pub(super) fn metadata_proof_parts(
    receipt: &JsonNode,
    family: ReceiptFamily,
    canonical: &'static str,
    content: JsonNode,
    order: JsonMemberOrder,
) -> ReceiptParts {
    let at = |member: &str| ReceiptClaim::from_path(receipt, &["metadata", "proof", member]);
    // No published program names the key in the proof, and the SDKs' own vectors sign one at the top level. Any signed
    // place is compared.
    let places: [&[&str]; 2] = [&["kid"], &["metadata", "proof", "kid"]];
    let signed = places.into_iter().filter(|place| has_value_at(&content, place));
    let kids = signed.map(|place| ReceiptClaim::from_path(receipt, place)).collect();
    ReceiptParts {
        family,
        content,
        root: "",
        order,
        signs: SignedMessageFormat::HexDigest,
        algorithms: vec![(at("alg"), ALG)],
        canonical: (at("canonical"), canonical),
        hash: Some(at("hash_sha256")),
        signature: at("signature_b64"),
        kids,
        signers: vec![at("signer_id")],
        agent: None,
        unsigned: Vec::new(),
    }
}
