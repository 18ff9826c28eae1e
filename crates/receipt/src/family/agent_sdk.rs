//! B1, the receipts of the agent SDK: a `signature` at the top, the digest in `metadata.proof`.
//!
//! Signed are six members; one that is absent is absent. A member that is named `__proto__` is one like any other, as the
//! agent SDK has it; verifyagent loses it, and so verifies what was altered there.

use super::{Alphabet, Claim, Family, NoSignedParts, SignedParts, Signs, others};
use crate::canonical::MemberOrder;
use crate::json::Node;

/// The members that are signed.
pub(super) const SIGNED: [&str; 6] = ["signer", "verb", "input", "output", "execution", "ts"];

/// What the families B to E call their canonical form.
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
        alphabet: Alphabet::Standard,
        kids: vec![Claim::at(receipt, &["signature", "kid"])],
        signers: vec![Claim::at(receipt, &["signer"])],
        agent: None,
        unsigned: unsigned.concat(),
    })
}
