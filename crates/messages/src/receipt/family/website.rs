//! B2, receipts of the website: digest and signature are objects in `metadata.proof`.
//!
//! The signature covers the members of B1, in another order. If a member is absent, the published code signs a text
//! that is not JSON; if `receipt_type` is `genesis`, it signs other members. Neither case is supported. `receipt_type`
//! and `family` are unsigned, so a receipt that names another kind belongs to this family if its signature is valid in
//! this form.

use clresolve_core::reason::Code;

use super::agent_sdk::{CANONICAL, SIGNED};
use super::{Claim, Family, NoSignedParts, SignedParts, Signs, others};
use crate::receipt::canonical::MemberOrder;
use crate::receipt::json::Node;

pub(super) fn is(receipt: &Node) -> bool {
    let is_object = |member: &str| receipt.at(&["metadata", "proof", member]).is_some_and(Node::is_object);
    is_object("hash") && is_object("signature")
}

/// Whether the receipt declares another kind, whose signed content is unknown.
pub(super) fn names_another(receipt: &Node) -> bool {
    receipt.says(&["family"], "trust") || receipt.says(&["receipt_type"], "genesis")
}

pub(super) fn take_apart(receipt: &Node) -> Result<SignedParts, NoSignedParts> {
    if let Some(missing) = SIGNED.into_iter().find(|member| receipt.get(member).is_none()) {
        let (place, code) = (format!("/{missing}"), Code::ReceiptSchemaInvalid);
        let why = "a receipt of this family without the member has no canonical form";
        return Err(NoSignedParts { place, why, code });
    }
    let mut unsigned = others(receipt, &[], &[&SIGNED[..], &["metadata"]].concat());
    unsigned.extend(others(receipt, &["metadata"], &["proof"]));
    unsigned.extend(unsigned_in_proof(receipt));
    Ok(SignedParts { content: receipt.only(&SIGNED), unsigned, ..parts(receipt) })
}

/// The statements of the proof.
pub(super) fn parts(receipt: &Node) -> SignedParts {
    let at = |path: &[&str]| Claim::at(receipt, &[&["metadata", "proof"], path].concat());
    SignedParts {
        family: Family::B2,
        content: Node::Null,
        root: "",
        order: MemberOrder::Sorted,
        signs: Signs::HexDigest,
        algorithms: vec![(at(&["hash", "alg"]), "SHA-256"), (at(&["signature", "alg"]), "Ed25519")],
        canonical: (at(&["canonicalization"]), CANONICAL),
        hash: Some(at(&["hash", "value"])),
        signature: at(&["signature", "value"]),
        kids: vec![at(&["signature", "kid"])],
        signers: vec![Claim::at(receipt, &["signer"]), at(&["signer_id"])],
        agent: None,
        unsigned: Vec::new(),
    }
}

/// The members of the proof that neither a signature nor a check covers.
pub(super) fn unsigned_in_proof(receipt: &Node) -> Vec<String> {
    let below = |path: &[&str], known: &[&str]| others(receipt, &[&["metadata", "proof"], path].concat(), known);
    [
        below(&[], &["canonicalization", "hash", "signature", "signer_id"]),
        below(&["hash"], &["alg", "value"]),
        below(&["signature"], &["alg", "kid", "value"]),
    ]
    .concat()
}
