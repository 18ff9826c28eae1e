//! D, layered receipts of runtime-core: `{receipt, runtime?, signature: {proof}}`.
//!
//! The signature covers the canonical bytes of the known members of `receipt`, in the order of the signer's locale. The
//! published verifier substitutes its own `line` and `contract`. This one uses the receipt's, so they are covered.

use super::agent_sdk::CANONICAL;
use super::{Claim, Family, NoSignedParts, SignedParts, Signs, is_ed25519, others};
use crate::receipt::canonical::MemberOrder;
use crate::receipt::json::Node;

/// The place of the signed content.
const INNER: &str = "/receipt";

/// The signed members.
const SIGNED: [&str; 10] =
    ["line", "contract", "verb", "version", "payload", "status", "trace", "result", "error", "commercial"];

pub(super) fn is(receipt: &Node) -> bool {
    receipt.get("receipt").is_some_and(Node::is_object)
        && receipt.text_at(&["signature", "proof", "alg"]).is_some_and(is_ed25519)
}

pub(super) fn take_apart(receipt: &Node) -> Result<SignedParts, NoSignedParts> {
    let content = receipt.get("receipt").map_or(Node::Null, |inner| inner.only(&SIGNED));
    let at = |member: &str| Claim::at(receipt, &["signature", "proof", member]);
    let unsigned = [
        others(receipt, &[], &["receipt", "signature"]),
        others(receipt, &["receipt"], &SIGNED),
        others(receipt, &["signature"], &["proof"]),
        others(receipt, &["signature", "proof"], &["alg", "canonical", "kid", "signature", "signer_id"]),
    ];
    Ok(SignedParts {
        family: Family::D,
        content,
        root: INNER,
        order: MemberOrder::ByLocale,
        signs: Signs::CanonicalBytes,
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
