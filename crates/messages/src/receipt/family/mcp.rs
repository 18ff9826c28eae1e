//! C, receipts of the MCP server: a top-level `proof` without a digest.
//!
//! The signature covers the canonical bytes of the whole receipt without `proof`.

use super::agent_sdk::CANONICAL;
use super::{Claim, Family, NoSignedParts, SignedParts, Signs, others};
use crate::receipt::canonical::MemberOrder;
use crate::receipt::json::Node;

pub(super) fn is(receipt: &Node) -> bool {
    receipt.at(&["proof", "signature"]).is_some()
        && receipt.says(&["version"], "1.1.0")
        && receipt.says(&["family"], "trust-verification")
}

pub(super) fn take_apart(receipt: &Node) -> Result<SignedParts, NoSignedParts> {
    let mut content = receipt.clone();
    content.remove("proof");
    let at = |member: &str| Claim::at(receipt, &["proof", member]);
    Ok(SignedParts {
        family: Family::C,
        content,
        root: "",
        order: MemberOrder::Sorted,
        signs: Signs::CanonicalBytes,
        algorithms: vec![(at("alg"), "ed25519")],
        canonical: (at("canonical"), CANONICAL),
        hash: None,
        signature: at("signature"),
        kids: vec![at("kid")],
        signers: vec![Claim::at(receipt, &["signer"]), at("signer_id")],
        agent: None,
        unsigned: others(receipt, &["proof"], &["alg", "canonical", "kid", "signature", "signer_id"]),
    })
}
