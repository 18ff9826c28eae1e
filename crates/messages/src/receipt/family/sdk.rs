//! A1, receipts of the SDKs: `metadata.proof` with alg `ed25519-sha256` and canonical `cl-stable-json-v1`.
//!
//! The signature covers the whole receipt without `receipt_id` and `metadata.receipt_id`. Of the proof, it covers the
//! members that describe the method.

use super::{Claim, Family, NoSignedParts, SignedParts, Signs, others, present, states};
use crate::receipt::canonical::MemberOrder;
use crate::receipt::json::Node;

pub(super) const ALG: &str = "ed25519-sha256";
pub(super) const CANONICAL: &str = "cl-stable-json-v1";

/// The signed members of the proof.
const SIGNED: [&str; 3] = ["alg", "canonical", "signer_id"];

pub(super) fn is(receipt: &Node) -> bool {
    receipt.says(&["metadata", "proof", "alg"], ALG) && receipt.says(&["metadata", "proof", "canonical"], CANONICAL)
}

pub(super) fn take_apart(receipt: &Node) -> Result<SignedParts, NoSignedParts> {
    let mut content = receipt.clone();
    content.remove("receipt_id");
    if let Some(metadata) = content.get_mut("metadata") {
        metadata.remove("receipt_id");
        if let Some(proof) = metadata.get_mut("proof") {
            *proof = proof.only(&SIGNED);
        }
    }
    let mut unsigned = present(receipt, &[&["receipt_id"], &["metadata", "receipt_id"]]);
    let known = [&SIGNED[..], &["hash_sha256", "signature_b64"]].concat();
    unsigned.extend(others(receipt, &["metadata", "proof"], &known));
    Ok(SignedParts { unsigned, ..parts(receipt, Family::A1, CANONICAL, content, MemberOrder::Sorted) })
}

/// The statements of the proof of A1, A2 and A3 about `content`.
pub(super) fn parts(
    receipt: &Node,
    family: Family,
    canonical: &'static str,
    content: Node,
    order: MemberOrder,
) -> SignedParts {
    let at = |member: &str| Claim::at(receipt, &["metadata", "proof", member]);
    // No published program names the key in the proof, and the SDKs' own vectors sign one at the top level. Any signed
    // place is compared.
    let places: [&[&str]; 2] = [&["kid"], &["metadata", "proof", "kid"]];
    let signed = places.into_iter().filter(|place| states(&content, place));
    let kids = signed.map(|place| Claim::at(receipt, place)).collect();
    SignedParts {
        family,
        content,
        root: "",
        order,
        signs: Signs::HexDigest,
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
