//! The families of receipts, told apart by shape. Each of CommandLayer's has a module of its own, which says what is signed;
//! x402's own are read as its text has them (`clresolve-payment`).
//!
//! Nothing here verifies anything. A module takes a receipt apart: what is canonicalised and how, what is signed, what the
//! proof claims, and which members nobody signs.

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
pub(crate) use self::parts::{Alphabet, Claim, NoSignedParts, SignedParts, Signs};
use self::parts::{others, present};
use crate::json::Node;

/// A family's line of the table.
struct Row {
    family: Family,
    /// Whether a receipt has its shape.
    is: fn(&Node) -> bool,
    /// Takes such a receipt apart; `None` for those of x402.
    take_apart: Option<Take>,
}

/// Takes a receipt of a family apart.
type Take = fn(&Node) -> Result<SignedParts, NoSignedParts>;

/// A1 stands before A2, B2 before B3 and E before E2, which have the same shapes.
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

/// What the shape of a receipt says.
#[derive(Debug)]
pub(crate) enum Shape {
    /// Of one family, or of the two with the same shape, the likelier one first.
    Clear(Vec<Candidate>),
    /// Of none, of several, or of one whose members name another. Anybody may add such members where nobody signs them, so
    /// a signature alone tells which it is.
    Open(Vec<Candidate>),
}

/// A family whose shape a receipt has.
#[derive(Clone, Copy)]
pub(crate) struct Candidate(&'static Row);

impl std::fmt::Debug for Candidate {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.family().fmt(out)
    }
}

/// How a receipt reads as one of a family.
pub(crate) enum Reading {
    /// Taken apart, or why it cannot be.
    Parts(Box<Result<SignedParts, NoSignedParts>>),
    /// Of x402's own.
    Artifact {
        /// The members that its text has: format, payload and signature.
        artifact: Node,
        /// JSON Pointers of members that nobody signs.
        unsigned: Vec<String>,
    },
}

impl Candidate {
    pub(crate) const fn family(self) -> Family {
        self.0.family
    }

    /// How the receipt reads as one of this family.
    pub(crate) fn read(self, receipt: &Node) -> Reading {
        const KNOWN: [&str; 3] = ["format", "payload", "signature"];
        match self.0.take_apart {
            Some(take_apart) => Reading::Parts(Box::new(take_apart(receipt))),
            None => Reading::Artifact { artifact: receipt.only(&KNOWN), unsigned: others(receipt, &[], &KNOWN) },
        }
    }
}

/// The family or families of a receipt, by its shape.
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
