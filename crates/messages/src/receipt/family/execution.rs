//! E, CLAS execution receipts: `schema` is `clas.execution.receipt.v1`, and the proofs are a list.
//!
//! E signs six fixed members, regardless of the proof's `covers`; E2 signs the members that `covers` lists. Only the
//! proof of execution is used. No published program signs a scope other than a list of members, or two such proofs, so
//! what such signatures cover is unknown.

use std::iter;

use clresolve_core::reason::Code;

use super::agent_sdk::CANONICAL;
use super::{Claim, Family, NoSignedParts, SignedParts, Signs, others};
use crate::receipt::canonical::MemberOrder;
use crate::receipt::json::Node;

/// The members that E signs.
const SIGNED: [&str; 6] = ["clas", "schema", "receipt_id", "verb", "agent", ACTION];

/// The member that describes the executed action.
const ACTION: &str = "action";

/// Maximum number of members that a proof may cover. A receipt has six besides the proofs.
const MAX_COVERED: usize = 32;

pub(super) fn is(receipt: &Node) -> bool {
    receipt.says(&["schema"], "clas.execution.receipt.v1")
}

/// Whether the proof of execution lists the members that it covers.
pub(super) fn is_scoped(receipt: &Node) -> bool {
    is(receipt) && proof(receipt).is_ok_and(|(_, proof)| proof.get("covers").is_some())
}

pub(super) fn take_apart(receipt: &Node) -> Result<SignedParts, NoSignedParts> {
    Ok(parts(receipt, proof(receipt)?, Family::E, Signs::HexDigest, &SIGNED))
}

/// The signature covers the canonical bytes of exactly the members that `covers` lists.
pub(super) fn take_scoped_apart(receipt: &Node) -> Result<SignedParts, NoSignedParts> {
    let (index, proof) = proof(receipt)?;
    let no_scope = |why, code| NoSignedParts { place: format!("/proofs/{index}/covers"), why, code };
    let unknown = |why| no_scope(why, Code::ReceiptFamilyUnknown);
    let Some(Node::List(names)) = proof.get("covers") else { return Err(unknown("no list of members")) };
    if names.len() > MAX_COVERED {
        return Err(unknown("more members than a receipt has"));
    }
    let mut covered = Vec::new();
    for name in names {
        let name = name.text().filter(|name| *name != "proofs" && receipt.get(name).is_some());
        let name = name.ok_or_else(|| unknown("an item that names no member beside the proofs"))?;
        if covered.contains(&name) {
            return Err(unknown("a member twice"));
        }
        covered.push(name);
    }
    if !covered.contains(&ACTION) {
        return Err(no_scope("a proof of execution covers the action", Code::ReceiptSchemaInvalid));
    }
    Ok(parts(receipt, (index, proof), Family::E2, Signs::CanonicalBytes, &covered))
}

/// The single proof of execution, and its index in the list.
fn proof(receipt: &Node) -> Result<(usize, &Node), NoSignedParts> {
    let proofs = match receipt.get("proofs") {
        Some(Node::List(proofs)) => proofs.as_slice(),
        _ => &[],
    };
    let is_of_execution = |proof: &Node| proof.says(&["type"], "execution");
    let mut of_execution = proofs.iter().enumerate().filter(|(_, proof)| is_of_execution(proof));
    let (why, code) = match (of_execution.next(), of_execution.next()) {
        (Some(proof), None) => return Ok(proof),
        (Some(_), Some(_)) => ("more than one proof of the type execution", Code::ReceiptFamilyUnknown),
        (None, _) => ("no proof of the type execution", Code::ReceiptSchemaInvalid),
    };
    Err(NoSignedParts { place: "/proofs".to_owned(), why, code })
}

/// The parts of the receipt, given the proof at `index` and the members `signed` that it signs.
fn parts(receipt: &Node, (index, proof): (usize, &Node), family: Family, signs: Signs, signed: &[&str]) -> SignedParts {
    let at = |path: &[&str]| Claim::at(proof, path).below(&format!("/proofs/{index}"));
    let below = |path: &[&str], known: &[&str]| {
        others(proof, path, known).into_iter().map(|place| format!("/proofs/{index}{place}")).collect::<Vec<_>>()
    };
    let count = match receipt.get("proofs") {
        Some(Node::List(proofs)) => proofs.len(),
        _ => 0,
    };
    let further = (0..count).filter(|at| *at != index).map(|at| format!("/proofs/{at}")).collect();
    let known = ["type", "signer", "canonicalization", "signature", "covers"];
    let known = if family == Family::E2 { &known[..] } else { &known[..4] };
    let unsigned = [
        others(receipt, &[], &[signed, &["schema", "proofs"]].concat()),
        further,
        below(&[], known),
        below(&["signature"], &["alg", "kid", "value"]),
    ];
    let names_agent = signed.contains(&"agent");
    let kid = names_agent.then(|| Claim::at(receipt, &["agent", "kid"]));
    SignedParts {
        family,
        content: receipt.only(signed),
        root: "",
        order: MemberOrder::Sorted,
        signs,
        algorithms: vec![(at(&["signature", "alg"]), "Ed25519")],
        canonical: (at(&["canonicalization"]), CANONICAL),
        hash: None,
        signature: at(&["signature", "value"]),
        kids: iter::once(at(&["signature", "kid"])).chain(kid).collect(),
        signers: vec![at(&["signer"])],
        agent: names_agent.then(|| Claim::at(receipt, &["agent", "ens"])),
        unsigned: unsigned.concat(),
    }
}
