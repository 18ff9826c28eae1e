//! B2, receipts of the website: digest and signature are objects in `metadata.proof`.
//!
//! The signature covers the members of B1, in another order. If a member is absent, the published code signs a text
//! that is not JSON; if `receipt_type` is `genesis`, it signs other members. Neither case is supported. `receipt_type`
//! and `family` are unsigned, so a receipt that names another kind belongs to this family if its signature is valid in
//! this form.

use clresolve_core::reason::ReasonCode;

use super::agent_sdk::{CANONICAL, SIGNED};
use super::{ReceiptClaim, ReceiptFamily, ReceiptParts, ReceiptPartsError, SignedMessageFormat, unknown_members};
use crate::receipt::canonical::JsonMemberOrder;
use crate::receipt::json::JsonNode;

pub(super) fn has_family_shape(receipt: &JsonNode) -> bool {
    let is_object = |member: &str| receipt.get_path(&["metadata", "proof", member]).is_some_and(JsonNode::is_object);
    is_object("hash") && is_object("signature")
}

/// Whether the receipt declares another kind, whose signed content is unknown.
pub(super) fn declares_other_kind(receipt: &JsonNode) -> bool {
    receipt.has_text_at(&["family"], "trust") || receipt.has_text_at(&["receipt_type"], "genesis")
}

pub(super) fn split_receipt(receipt: &JsonNode) -> Result<ReceiptParts, ReceiptPartsError> {
    if let Some(missing) = SIGNED.into_iter().find(|member| receipt.get(member).is_none()) {
        let (place, code) = (format!("/{missing}"), ReasonCode::ReceiptSchemaInvalid);
        let why = "a receipt of this family without the member has no canonical form";
        return Err(ReceiptPartsError { place, why, code });
    }
    let mut unsigned = unknown_members(receipt, &[], &[&SIGNED[..], &["metadata"]].concat());
    unsigned.extend(unknown_members(receipt, &["metadata"], &["proof"]));
    unsigned.extend(unsigned_in_proof(receipt));
    Ok(ReceiptParts { content: receipt.with_only_members(&SIGNED), unsigned, ..website_proof_parts(receipt) })
}

/// The statements of the proof.
pub(super) fn website_proof_parts(receipt: &JsonNode) -> ReceiptParts {
    let at = |path: &[&str]| ReceiptClaim::from_path(receipt, &[&["metadata", "proof"], path].concat());
    ReceiptParts {
        family: ReceiptFamily::B2,
        content: JsonNode::Null,
        root: "",
        order: JsonMemberOrder::Sorted,
        signs: SignedMessageFormat::HexDigest,
        algorithms: vec![(at(&["hash", "alg"]), "SHA-256"), (at(&["signature", "alg"]), "Ed25519")],
        canonical: (at(&["canonicalization"]), CANONICAL),
        hash: Some(at(&["hash", "value"])),
        signature: at(&["signature", "value"]),
        kids: vec![at(&["signature", "kid"])],
        signers: vec![ReceiptClaim::from_path(receipt, &["signer"]), at(&["signer_id"])],
        agent: None,
        unsigned: Vec::new(),
    }
}

/// The members of the proof that neither a signature nor a check covers.
pub(super) fn unsigned_in_proof(receipt: &JsonNode) -> Vec<String> {
    let below =
        |path: &[&str], known: &[&str]| unknown_members(receipt, &[&["metadata", "proof"], path].concat(), known);
    [
        below(&[], &["canonicalization", "hash", "signature", "signer_id"]),
        below(&["hash"], &["alg", "value"]),
        below(&["signature"], &["alg", "kid", "value"]),
    ]
    .concat()
}
