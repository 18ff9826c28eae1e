//! E, CLAS execution receipts: `schema` is `clas.execution.receipt.v1`, and the proofs are a list.
//!
//! E signs six fixed members, regardless of the proof's `covers`; E2 signs the members that `covers` lists. Only the
//! proof of execution is used. No published program signs a scope other than a list of members, or two such proofs, so
//! what such signatures cover is unknown.

use std::iter;

use clresolve_core::reason::ReasonCode;

use super::agent_sdk::CANONICAL;
use super::{ReceiptClaim, ReceiptFamily, ReceiptParts, ReceiptPartsError, SignedMessageFormat, unknown_members};
use crate::receipt::canonical::JsonMemberOrder;
use crate::receipt::json::JsonNode;

/// The members that E signs.
const SIGNED: [&str; 6] = ["clas", "schema", "receipt_id", "verb", "agent", ACTION];

/// The member that describes the executed action.
const ACTION: &str = "action";

/// Maximum number of members that a proof may cover. A receipt has six besides the proofs.
const MAX_COVERED: usize = 32;

pub(super) fn has_family_shape(receipt: &JsonNode) -> bool {
    receipt.has_text_at(&["schema"], "clas.execution.receipt.v1")
}

/// Whether the proof of execution lists the members that it covers.
pub(super) fn has_scoped_proof(receipt: &JsonNode) -> bool {
    has_family_shape(receipt) && execution_proof(receipt).is_ok_and(|(_, proof)| proof.get("covers").is_some())
}

pub(super) fn split_receipt(receipt: &JsonNode) -> Result<ReceiptParts, ReceiptPartsError> {
    Ok(assemble_parts(receipt, execution_proof(receipt)?, ReceiptFamily::E, SignedMessageFormat::HexDigest, &SIGNED))
}

/// The signature covers the canonical bytes of exactly the members that `covers` lists.
pub(super) fn split_scoped_receipt(receipt: &JsonNode) -> Result<ReceiptParts, ReceiptPartsError> {
    let (index, proof) = execution_proof(receipt)?;
    let no_scope = |why, code| ReceiptPartsError { place: format!("/proofs/{index}/covers"), why, code };
    let unknown = |why| no_scope(why, ReasonCode::ReceiptFamilyUnknown);
    let Some(JsonNode::List(names)) = proof.get("covers") else { return Err(unknown("no list of members")) };
    if names.len() > MAX_COVERED {
        return Err(unknown("more members than a receipt has"));
    }
    let mut covered = Vec::new();
    for name in names {
        let name = name.as_text().filter(|name| *name != "proofs" && receipt.get(name).is_some());
        let name = name.ok_or_else(|| unknown("an item that names no member beside the proofs"))?;
        if covered.contains(&name) {
            return Err(unknown("a member twice"));
        }
        covered.push(name);
    }
    if !covered.contains(&ACTION) {
        return Err(no_scope("a proof of execution covers the action", ReasonCode::ReceiptSchemaInvalid));
    }
    Ok(assemble_parts(receipt, (index, proof), ReceiptFamily::E2, SignedMessageFormat::CanonicalBytes, &covered))
}

/// The single proof of execution, and its index in the list.
fn execution_proof(receipt: &JsonNode) -> Result<(usize, &JsonNode), ReceiptPartsError> {
    let proofs = match receipt.get("proofs") {
        Some(JsonNode::List(proofs)) => proofs.as_slice(),
        _ => &[],
    };
    let is_of_execution = |proof: &JsonNode| proof.has_text_at(&["type"], "execution");
    let mut of_execution = proofs.iter().enumerate().filter(|(_, proof)| is_of_execution(proof));
    let (why, code) = match (of_execution.next(), of_execution.next()) {
        (Some(proof), None) => return Ok(proof),
        (Some(_), Some(_)) => ("more than one proof of the type execution", ReasonCode::ReceiptFamilyUnknown),
        (None, _) => ("no proof of the type execution", ReasonCode::ReceiptSchemaInvalid),
    };
    Err(ReceiptPartsError { place: "/proofs".to_owned(), why, code })
}

/// The parts of the receipt, given the proof at `index` and the members `signed` that it signs.
fn assemble_parts(
    receipt: &JsonNode,
    (index, proof): (usize, &JsonNode),
    family: ReceiptFamily,
    signs: SignedMessageFormat,
    signed: &[&str],
) -> ReceiptParts {
    let at = |path: &[&str]| ReceiptClaim::from_path(proof, path).with_root_prefix(&format!("/proofs/{index}"));
    let below = |path: &[&str], known: &[&str]| {
        unknown_members(proof, path, known)
            .into_iter()
            .map(|place| format!("/proofs/{index}{place}"))
            .collect::<Vec<_>>()
    };
    let count = match receipt.get("proofs") {
        Some(JsonNode::List(proofs)) => proofs.len(),
        _ => 0,
    };
    let further = (0..count).filter(|at| *at != index).map(|at| format!("/proofs/{at}")).collect();
    let known = ["type", "signer", "canonicalization", "signature", "covers"];
    let known = if family == ReceiptFamily::E2 { &known[..] } else { &known[..4] };
    let unsigned = [
        unknown_members(receipt, &[], &[signed, &["schema", "proofs"]].concat()),
        further,
        below(&[], known),
        below(&["signature"], &["alg", "kid", "value"]),
    ];
    let names_agent = signed.contains(&"agent");
    let kid = names_agent.then(|| ReceiptClaim::from_path(receipt, &["agent", "kid"]));
    ReceiptParts {
        family,
        content: receipt.with_only_members(signed),
        root: "",
        order: JsonMemberOrder::Sorted,
        signs,
        algorithms: vec![(at(&["signature", "alg"]), "Ed25519")],
        canonical: (at(&["canonicalization"]), CANONICAL),
        hash: None,
        signature: at(&["signature", "value"]),
        kids: iter::once(at(&["signature", "kid"])).chain(kid).collect(),
        signers: vec![at(&["signer"])],
        agent: names_agent.then(|| ReceiptClaim::from_path(receipt, &["agent", "ens"])),
        unsigned: unsigned.concat(),
    }
}
