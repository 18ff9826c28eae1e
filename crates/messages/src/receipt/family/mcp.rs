//! C, receipts of the MCP server: a top-level `proof` without a digest.
//!
//! The signature covers the canonical bytes of the whole receipt without `proof`.

use super::agent_sdk::CANONICAL;
use super::{ReceiptClaim, ReceiptFamily, ReceiptParts, ReceiptPartsError, SignedMessageFormat, unknown_members};
use crate::receipt::canonical::JsonMemberOrder;
use crate::receipt::json::JsonNode;

pub(super) fn has_family_shape(receipt: &JsonNode) -> bool {
    receipt.get_path(&["proof", "signature"]).is_some()
        && receipt.has_text_at(&["version"], "1.1.0")
        && receipt.has_text_at(&["family"], "trust-verification")
}

pub(super) fn split_receipt(receipt: &JsonNode) -> Result<ReceiptParts, ReceiptPartsError> {
    let mut content = receipt.clone();
    content.remove("proof");
    let at = |member: &str| ReceiptClaim::from_path(receipt, &["proof", member]);
    Ok(ReceiptParts {
        family: ReceiptFamily::C,
        content,
        root: "",
        order: JsonMemberOrder::Sorted,
        signs: SignedMessageFormat::CanonicalBytes,
        algorithms: vec![(at("alg"), "ed25519")],
        canonical: (at("canonical"), CANONICAL),
        hash: None,
        signature: at("signature"),
        kids: vec![at("kid")],
        signers: vec![ReceiptClaim::from_path(receipt, &["signer"]), at("signer_id")],
        agent: None,
        unsigned: unknown_members(receipt, &["proof"], &["alg", "canonical", "kid", "signature", "signer_id"]),
    })
}
