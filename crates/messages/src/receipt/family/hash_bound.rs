//! D0, older receipts of runtime-core: the proof is in `metadata`, or next to the receipt in `signature`.
//!
//! The signature covers the receipt without the whole of `metadata`. Any other content of `metadata` is unsigned.

use super::agent_sdk::CANONICAL;
use super::{
    ReceiptClaim, ReceiptFamily, ReceiptParts, ReceiptPartsError, SignedMessageFormat, existing_pointers, sdk,
    unknown_members,
};
use crate::receipt::canonical::JsonMemberOrder;
use crate::receipt::json::JsonNode;

const BESIDE: [&str; 2] = ["signature", "proof"];
const WITHIN: [&str; 2] = ["metadata", "proof"];

/// The members of a proof that are compared, besides the signature.
const COMPARED: [&str; 5] = ["alg", "canonical", "hash_sha256", "kid", "signer_id"];

pub(super) fn has_family_shape(receipt: &JsonNode) -> bool {
    has_detached_proof(receipt) || has_proof_at(receipt, WITHIN)
}

/// Whether the proof is next to the receipt. A `metadata` inside the receipt is then unsigned and ignored.
fn has_detached_proof(receipt: &JsonNode) -> bool {
    receipt.get("receipt").is_some_and(JsonNode::is_object) && has_proof_at(receipt, BESIDE)
}

fn has_proof_at(receipt: &JsonNode, proof: [&str; 2]) -> bool {
    let says = |member: &str, word: &str| receipt.has_text_at(&[proof[0], proof[1], member], word);
    says("alg", sdk::ALG) && says("canonical", CANONICAL)
}

pub(super) fn split_receipt(receipt: &JsonNode) -> Result<ReceiptParts, ReceiptPartsError> {
    let is_within = !has_detached_proof(receipt);
    let proof = if is_within { WITHIN } else { BESIDE };
    let mut content =
        if is_within { receipt.clone() } else { receipt.get("receipt").cloned().unwrap_or(JsonNode::Null) };
    content.remove("metadata");
    let at = |member: &str| ReceiptClaim::from_path(receipt, &[proof[0], proof[1], member]);
    let signature = if at("signature_b64").value.is_some() { "signature_b64" } else { "signature" };
    let mut unsigned = unknown_members(receipt, &proof, &[&COMPARED[..], &[signature]].concat());
    unsigned.extend(unknown_members(receipt, &proof[..1], &["proof"]));
    if !is_within {
        unsigned.extend(unknown_members(receipt, &[], &["receipt", "signature"]));
        unsigned.extend(existing_pointers(receipt, &[&["receipt", "metadata"]]));
    }
    Ok(ReceiptParts {
        family: ReceiptFamily::D0,
        content,
        root: if is_within { "" } else { "/receipt" },
        order: JsonMemberOrder::Rebuilt,
        signs: SignedMessageFormat::HexDigest,
        algorithms: vec![(at("alg"), sdk::ALG)],
        canonical: (at("canonical"), CANONICAL),
        hash: Some(at("hash_sha256")),
        signature: at(signature),
        kids: vec![at("kid")],
        signers: vec![at("signer_id")],
        agent: None,
        unsigned,
    })
}
