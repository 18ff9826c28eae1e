//! D0, older receipts of runtime-core: the proof is in `metadata`, or next to the receipt in `signature`.
//!
//! The signature covers the receipt without the whole of `metadata`. Any other content of `metadata` is unsigned.

use super::agent_sdk::CANONICAL;
use super::{Claim, Family, NoSignedParts, SignedParts, Signs, others, present, sdk};
use crate::receipt::canonical::MemberOrder;
use crate::receipt::json::Node;

const BESIDE: [&str; 2] = ["signature", "proof"];
const WITHIN: [&str; 2] = ["metadata", "proof"];

/// The members of a proof that are compared, besides the signature.
const COMPARED: [&str; 5] = ["alg", "canonical", "hash_sha256", "kid", "signer_id"];

pub(super) fn is(receipt: &Node) -> bool {
    is_beside(receipt) || stands(receipt, WITHIN)
}

/// Whether the proof is next to the receipt. A `metadata` inside the receipt is then unsigned and ignored.
fn is_beside(receipt: &Node) -> bool {
    receipt.get("receipt").is_some_and(Node::is_object) && stands(receipt, BESIDE)
}

fn stands(receipt: &Node, proof: [&str; 2]) -> bool {
    let says = |member: &str, word: &str| receipt.says(&[proof[0], proof[1], member], word);
    says("alg", sdk::ALG) && says("canonical", CANONICAL)
}

pub(super) fn take_apart(receipt: &Node) -> Result<SignedParts, NoSignedParts> {
    let is_within = !is_beside(receipt);
    let proof = if is_within { WITHIN } else { BESIDE };
    let mut content = if is_within { receipt.clone() } else { receipt.get("receipt").cloned().unwrap_or(Node::Null) };
    content.remove("metadata");
    let at = |member: &str| Claim::at(receipt, &[proof[0], proof[1], member]);
    let signature = if at("signature_b64").value.is_some() { "signature_b64" } else { "signature" };
    let mut unsigned = others(receipt, &proof, &[&COMPARED[..], &[signature]].concat());
    unsigned.extend(others(receipt, &proof[..1], &["proof"]));
    if !is_within {
        unsigned.extend(others(receipt, &[], &["receipt", "signature"]));
        unsigned.extend(present(receipt, &[&["receipt", "metadata"]]));
    }
    Ok(SignedParts {
        family: Family::D0,
        content,
        root: if is_within { "" } else { "/receipt" },
        order: MemberOrder::Rebuilt,
        signs: Signs::HexDigest,
        algorithms: vec![(at("alg"), sdk::ALG)],
        canonical: (at("canonical"), CANONICAL),
        hash: Some(at("hash_sha256")),
        signature: at(signature),
        kids: vec![at("kid")],
        signers: vec![at("signer_id")],
        agent: None,
        unsigned,
    })
}
