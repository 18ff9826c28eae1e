//! B1, receipts of the agent SDK: a top-level `signature`, with the digest in `metadata.proof`.
//!
//! The signature covers six members; absent members stay absent. A member named `__proto__` is an ordinary member, as
//! in the agent SDK. Verifyagent drops it, and therefore accepts receipts in which it was altered.

use super::{Claim, Family, NoSignedParts, SignedParts, Signs, others};
use crate::receipt::canonical::MemberOrder;
use crate::receipt::json::Node;

/// The signed members.
pub(super) const SIGNED: [&str; 6] = ["signer", "verb", "input", "output", "execution", "ts"];

/// Name of the canonical form in families B to E.
pub(super) const CANONICAL: &str = "json.sorted_keys.v1";

pub(super) fn is(receipt: &Node) -> bool {
    receipt.at(&["signature", "sig"]).is_some() && receipt.at(&["metadata", "proof", "hash_sha256"]).is_some()
}

pub(super) fn take_apart(receipt: &Node) -> Result<SignedParts, NoSignedParts> {
    let content = receipt.only(&SIGNED);
    let unsigned = [
        others(receipt, &[], &[&SIGNED[..], &["metadata", "signature"]].concat()),
        others(receipt, &["metadata"], &["proof"]),
        others(receipt, &["metadata", "proof"], &["canonicalization", "hash_sha256"]),
        others(receipt, &["signature"], &["alg", "kid", "sig"]),
    ];
    Ok(SignedParts {
        family: Family::B1,
        content,
        root: "",
        order: MemberOrder::Rebuilt,
        signs: Signs::HexDigest,
        algorithms: vec![(Claim::at(receipt, &["signature", "alg"]), "ed25519")],
        canonical: (Claim::at(receipt, &["metadata", "proof", "canonicalization"]), CANONICAL),
        hash: Some(Claim::at(receipt, &["metadata", "proof", "hash_sha256"])),
        signature: Claim::at(receipt, &["signature", "sig"]),
        kids: vec![Claim::at(receipt, &["signature", "kid"])],
        signers: vec![Claim::at(receipt, &["signer"])],
        agent: None,
        unsigned: unsigned.concat(),
    })
}
