//! B1, receipts of the agent SDK: a top-level `signature`, with the digest in `metadata.proof`.
//!
//! The signature covers six members; absent members stay absent. A member named `__proto__` is an ordinary member, as
//! in the agent SDK. Verifyagent drops it, and therefore accepts receipts in which it was altered.

use super::{ReceiptClaim, ReceiptFamily, ReceiptParts, ReceiptPartsError, SignedMessageFormat, unknown_members};
use crate::receipt::canonical::JsonMemberOrder;
use crate::receipt::json::JsonNode;

/// The signed members.
pub(super) const SIGNED: [&str; 6] = ["signer", "verb", "input", "output", "execution", "ts"];

/// Name of the canonical form in families B to E.
pub(super) const CANONICAL: &str = "json.sorted_keys.v1";

pub(super) fn has_family_shape(receipt: &JsonNode) -> bool {
    receipt.get_path(&["signature", "sig"]).is_some()
        && receipt.get_path(&["metadata", "proof", "hash_sha256"]).is_some()
}

pub(super) fn split_receipt(receipt: &JsonNode) -> Result<ReceiptParts, ReceiptPartsError> {
    let content = receipt.with_only_members(&SIGNED);
    let unsigned = [
        unknown_members(receipt, &[], &[&SIGNED[..], &["metadata", "signature"]].concat()),
        unknown_members(receipt, &["metadata"], &["proof"]),
        unknown_members(receipt, &["metadata", "proof"], &["canonicalization", "hash_sha256"]),
        unknown_members(receipt, &["signature"], &["alg", "kid", "sig"]),
    ];
    Ok(ReceiptParts {
        family: ReceiptFamily::B1,
        content,
        root: "",
        order: JsonMemberOrder::Rebuilt,
        signs: SignedMessageFormat::HexDigest,
        algorithms: vec![(ReceiptClaim::from_path(receipt, &["signature", "alg"]), "ed25519")],
        canonical: (ReceiptClaim::from_path(receipt, &["metadata", "proof", "canonicalization"]), CANONICAL),
        hash: Some(ReceiptClaim::from_path(receipt, &["metadata", "proof", "hash_sha256"])),
        signature: ReceiptClaim::from_path(receipt, &["signature", "sig"]),
        kids: vec![ReceiptClaim::from_path(receipt, &["signature", "kid"])],
        signers: vec![ReceiptClaim::from_path(receipt, &["signer"])],
        agent: None,
        unsigned: unsigned.concat(),
    })
}
