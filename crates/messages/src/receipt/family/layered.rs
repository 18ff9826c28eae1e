//! D, layered receipts of runtime-core: `{receipt, runtime?, signature: {proof}}`.
//!
//! The signature covers the canonical bytes of the known members of `receipt`, in the order of the signer's locale. The
//! published verifier substitutes its own `line` and `contract`. This one uses the receipt's, so they are covered.

use super::agent_sdk::CANONICAL;
use super::{
    ReceiptClaim, ReceiptFamily, ReceiptParts, ReceiptPartsError, SignedMessageFormat, is_ed25519, unknown_members,
};
use crate::receipt::canonical::JsonMemberOrder;
use crate::receipt::json::JsonNode;

/// The place of the signed content.
const INNER: &str = "/receipt";

/// The signed members.
const SIGNED: [&str; 10] =
    ["line", "contract", "verb", "version", "payload", "status", "trace", "result", "error", "commercial"];

pub(super) fn has_family_shape(receipt: &JsonNode) -> bool {
    receipt.get("receipt").is_some_and(JsonNode::is_object)
        && receipt.text_at(&["signature", "proof", "alg"]).is_some_and(is_ed25519)
}

pub(super) fn split_receipt(receipt: &JsonNode) -> Result<ReceiptParts, ReceiptPartsError> {
    let content = receipt.get("receipt").map_or(JsonNode::Null, |inner| inner.with_only_members(&SIGNED));
    let at = |member: &str| ReceiptClaim::from_path(receipt, &["signature", "proof", member]);
    let unsigned = [
        unknown_members(receipt, &[], &["receipt", "signature"]),
        unknown_members(receipt, &["receipt"], &SIGNED),
        unknown_members(receipt, &["signature"], &["proof"]),
        unknown_members(receipt, &["signature", "proof"], &["alg", "canonical", "kid", "signature", "signer_id"]),
    ];
    Ok(ReceiptParts {
        family: ReceiptFamily::D,
        content,
        root: INNER,
        order: JsonMemberOrder::ByLocale,
        signs: SignedMessageFormat::CanonicalBytes,
        algorithms: vec![(at("alg"), "ed25519")],
        canonical: (at("canonical"), CANONICAL),
        hash: None,
        signature: at("signature"),
        kids: vec![at("kid")],
        signers: vec![at("signer_id")],
        agent: None,
        unsigned: unsigned.concat(),
    })
}
