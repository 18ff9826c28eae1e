//! The families of receipts, distinguished by shape. Each CommandLayer family has a module that defines what is signed.
//! x402's own receipts are parsed by `clresolve-payment` according to the x402 specification.
//!
//! Nothing here verifies a signature. A module splits a receipt into the content to canonicalize, the signed message,
//! the claims of the proof, and the unsigned members.

mod agent_sdk;
mod execution;
mod hash_bound;
mod layered;
mod mcp;
mod parts;
mod raw_proof;
mod runtime;
mod sdk;
mod website;

pub use self::parts::Family;
pub(crate) use self::parts::{Claim, NoSignedParts, SignedParts, Signs};
use self::parts::{is_ed25519, others, present, states};
use crate::receipt::json::Node;

struct Row {
    family: Family,
    /// Whether a receipt has the family's shape.
    is: fn(&Node) -> bool,
    /// Splits such a receipt into its parts; `None` for x402's own receipts.
    take_apart: Option<Take>,
}

/// Splits a receipt of a family into its parts.
type Take = fn(&Node) -> Result<SignedParts, NoSignedParts>;

/// A1 and A2, B2 and B3, and E and E2 have the same shape; the likelier one comes first.
static TABLE: [Row; 13] = [
    Row { family: Family::A1, is: sdk::is, take_apart: Some(sdk::take_apart) },
    Row { family: Family::A2, is: sdk::is, take_apart: Some(runtime::take_apart) },
    Row { family: Family::A3, is: runtime::is_commercial, take_apart: Some(runtime::take_commercial_apart) },
    Row { family: Family::B1, is: agent_sdk::is, take_apart: Some(agent_sdk::take_apart) },
    Row { family: Family::B2, is: website::is, take_apart: Some(website::take_apart) },
    Row { family: Family::B3, is: website::is, take_apart: Some(raw_proof::take_apart) },
    Row { family: Family::C, is: mcp::is, take_apart: Some(mcp::take_apart) },
    Row { family: Family::D, is: layered::is, take_apart: Some(layered::take_apart) },
    Row { family: Family::D0, is: hash_bound::is, take_apart: Some(hash_bound::take_apart) },
    Row { family: Family::E, is: execution::is, take_apart: Some(execution::take_apart) },
    Row { family: Family::E2, is: execution::is_scoped, take_apart: Some(execution::take_scoped_apart) },
    Row { family: Family::X1, is: |receipt| is_artifact(receipt, "eip712"), take_apart: None },
    Row { family: Family::X2, is: |receipt| is_artifact(receipt, "jws"), take_apart: None },
];

fn is_artifact(receipt: &Node, format: &str) -> bool {
    receipt.says(&["format"], format) && receipt.text_at(&["signature"]).is_some()
}

/// The families that the shape of a receipt allows.
#[derive(Debug)]
pub(crate) enum Shape {
    /// One family, or two with the same shape, the likelier one first.
    Clear(Vec<Candidate>),
    /// None, several, or one whose members name another kind. Anyone can add such members where they are unsigned, so
    /// only a signature identifies the family.
    Open(Vec<Candidate>),
}

/// A family whose shape the receipt has.
#[derive(Clone, Copy)]
pub(crate) struct Candidate(&'static Row);

impl std::fmt::Debug for Candidate {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.family().fmt(out)
    }
}

/// A receipt parsed as one of a family.
pub(crate) enum Reading {
    /// The parts, or why the receipt lacks some.
    Parts(Box<Result<SignedParts, NoSignedParts>>),
    /// x402's own receipt.
    Artifact {
        /// The members defined by x402: format, payload and signature.
        artifact: Node,
        /// JSON Pointers of unsigned members.
        unsigned: Vec<String>,
    },
}

impl Candidate {
    pub(crate) const fn family(self) -> Family {
        self.0.family
    }

    pub(crate) fn read(self, receipt: &Node) -> Reading {
        const KNOWN: [&str; 3] = ["format", "payload", "signature"];
        match self.0.take_apart {
            Some(take_apart) => Reading::Parts(Box::new(take_apart(receipt))),
            None => Reading::Artifact { artifact: receipt.only(&KNOWN), unsigned: others(receipt, &[], &KNOWN) },
        }
    }
}

/// The candidate families of a receipt, by its shape.
pub(crate) fn shape(receipt: &Node) -> Shape {
    let mut candidates: Vec<_> = TABLE.iter().filter(|row| (row.is)(receipt)).map(Candidate).collect();
    let families: Vec<_> = candidates.iter().map(|candidate| candidate.family()).collect();
    let is_clear = match families[..] {
        [Family::A1, Family::A2] | [Family::E, Family::E2] | [_] => true,
        [Family::B2, Family::B3] => !website::names_another(receipt),
        _ => false,
    };
    if !is_clear && !clresolve_core::mutant!("receipts-of-any-shape") {
        return Shape::Open(candidates);
    }
    if runtime::repeats_its_digest(receipt) {
        candidates.reverse();
    }
    Shape::Clear(candidates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_one_line_for_each_family() {
        let families: Vec<_> = TABLE.iter().map(|row| row.family).collect();
        assert_eq!(families, Family::ALL);
    }
}
