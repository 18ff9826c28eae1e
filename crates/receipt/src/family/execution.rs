//! E, CLAS execution receipts: `schema` `clas.execution.receipt.v1`, proofs in a list.
//!
//! Signed are six members, whatever `covers` of the proof says. Of the proofs only the one of execution counts.

use super::agent_sdk::CANONICAL;
use super::{Alphabet, Claim, Family, NoSignedParts, SignedParts, Signs, others};
use crate::canonical::MemberOrder;
use crate::json::Node;

/// The members that are signed.
const SIGNED: [&str; 6] = ["clas", "schema", "receipt_id", "verb", "agent", "action"];

pub(super) fn is(receipt: &Node) -> bool {
    receipt.says(&["schema"], "clas.execution.receipt.v1")
}

pub(super) fn take_apart(receipt: &Node) -> Result<SignedParts, NoSignedParts> {
    let proofs = match receipt.get("proofs") {
        Some(Node::List(proofs)) => proofs.as_slice(),
        _ => &[],
    };
    let is_of_execution = |proof: &Node| proof.says(&["type"], "execution");
    let mut of_execution = proofs.iter().enumerate().filter(|(_, proof)| is_of_execution(proof));
    let (Some((index, proof)), None) = (of_execution.next(), of_execution.next()) else {
        return Err(NoSignedParts { place: "/proofs".to_owned(), why: "expected one proof of the type execution" });
    };
    let at = |path: &[&str]| Claim::at(proof, path).below(&format!("/proofs/{index}"));
    let below = |path: &[&str], known: &[&str]| {
        others(proof, path, known).into_iter().map(|place| format!("/proofs/{index}{place}")).collect::<Vec<_>>()
    };
    let further = (0..proofs.len()).filter(|at| *at != index).map(|at| format!("/proofs/{at}")).collect();
    let unsigned = [
        others(receipt, &[], &[&SIGNED[..], &["proofs"]].concat()),
        further,
        below(&[], &["type", "signer", "canonicalization", "signature"]),
        below(&["signature"], &["alg", "kid", "value"]),
    ];
    Ok(SignedParts {
        family: Family::E,
        content: receipt.only(&SIGNED),
        root: "",
        order: MemberOrder::Sorted,
        signs: Signs::HexDigest,
        algorithms: vec![(at(&["signature", "alg"]), "Ed25519")],
        canonical: (at(&["canonicalization"]), CANONICAL),
        hash: None,
        signature: at(&["signature", "value"]),
        alphabet: Alphabet::Standard,
        kids: vec![at(&["signature", "kid"]), Claim::at(receipt, &["agent", "kid"])],
        signers: vec![at(&["signer"])],
        agent: Some(Claim::at(receipt, &["agent", "ens"])),
        unsigned: unsigned.concat(),
    })
}
