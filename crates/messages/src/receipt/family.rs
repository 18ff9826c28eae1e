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

pub use self::parts::ReceiptFamily;
pub(crate) use self::parts::{ReceiptClaim, ReceiptParts, ReceiptPartsError, SignedMessageFormat};
use self::parts::{existing_pointers, has_value_at, is_ed25519, unknown_members};
use crate::receipt::json::JsonNode;

/// How a family of receipts is recognized and split.
#[derive(Debug)]
pub(crate) struct ReceiptFamilyDefinition {
    pub(crate) family: ReceiptFamily,
    /// Whether a receipt has the family's shape.
    is: fn(&JsonNode) -> bool,
    /// Splits such a receipt into its parts; `None` for x402's own receipts.
    take_apart: Option<ReceiptSplitter>,
}

/// Splits a receipt of a family into its parts.
type ReceiptSplitter = fn(&JsonNode) -> Result<ReceiptParts, ReceiptPartsError>;

/// A1 and A2, B2 and B3, and E and E2 have the same shape; the likelier one comes first.
static TABLE: [ReceiptFamilyDefinition; 13] = [
    ReceiptFamilyDefinition {
        family: ReceiptFamily::A1,
        is: sdk::has_family_shape,
        take_apart: Some(sdk::split_receipt),
    },
    ReceiptFamilyDefinition {
        family: ReceiptFamily::A2,
        is: sdk::has_family_shape,
        take_apart: Some(runtime::split_receipt),
    },
    ReceiptFamilyDefinition {
        family: ReceiptFamily::A3,
        is: runtime::is_commercial,
        take_apart: Some(runtime::split_commercial_receipt),
    },
    ReceiptFamilyDefinition {
        family: ReceiptFamily::B1,
        is: agent_sdk::has_family_shape,
        take_apart: Some(agent_sdk::split_receipt),
    },
    ReceiptFamilyDefinition {
        family: ReceiptFamily::B2,
        is: website::has_family_shape,
        take_apart: Some(website::split_receipt),
    },
    ReceiptFamilyDefinition {
        family: ReceiptFamily::B3,
        is: website::has_family_shape,
        take_apart: Some(raw_proof::split_receipt),
    },
    ReceiptFamilyDefinition {
        family: ReceiptFamily::C,
        is: mcp::has_family_shape,
        take_apart: Some(mcp::split_receipt),
    },
    ReceiptFamilyDefinition {
        family: ReceiptFamily::D,
        is: layered::has_family_shape,
        take_apart: Some(layered::split_receipt),
    },
    ReceiptFamilyDefinition {
        family: ReceiptFamily::D0,
        is: hash_bound::has_family_shape,
        take_apart: Some(hash_bound::split_receipt),
    },
    ReceiptFamilyDefinition {
        family: ReceiptFamily::E,
        is: execution::has_family_shape,
        take_apart: Some(execution::split_receipt),
    },
    ReceiptFamilyDefinition {
        family: ReceiptFamily::E2,
        is: execution::has_scoped_proof,
        take_apart: Some(execution::split_scoped_receipt),
    },
    ReceiptFamilyDefinition {
        family: ReceiptFamily::X1,
        is: |receipt| is_x402_artifact(receipt, "eip712"),
        take_apart: None,
    },
    ReceiptFamilyDefinition {
        family: ReceiptFamily::X2,
        is: |receipt| is_x402_artifact(receipt, "jws"),
        take_apart: None,
    },
];

fn is_x402_artifact(receipt: &JsonNode, format: &str) -> bool {
    receipt.has_text_at(&["format"], format) && receipt.text_at(&["signature"]).is_some()
}

/// The families that the shape of a receipt allows.
#[derive(Debug)]
pub(crate) enum ReceiptFamilyCandidates {
    /// One family, or two with the same shape, the likelier one first.
    Clear(Vec<&'static ReceiptFamilyDefinition>),
    /// None, several, or one whose members name another kind. Anyone can add such members where they are unsigned, so
    /// only a signature identifies the family.
    Open(Vec<&'static ReceiptFamilyDefinition>),
}

/// A receipt parsed as one of a family.
pub(crate) enum ParsedReceipt {
    /// The parts, or why the receipt lacks some.
    Parts(Box<Result<ReceiptParts, ReceiptPartsError>>),
    /// x402's own receipt.
    Artifact {
        /// The members defined by x402: format, payload and signature.
        artifact: JsonNode,
        /// JSON Pointers of unsigned members.
        unsigned: Vec<String>,
    },
}

impl ReceiptFamilyDefinition {
    pub(crate) fn parse_receipt(&self, receipt: &JsonNode) -> ParsedReceipt {
        const KNOWN: [&str; 3] = ["format", "payload", "signature"];
        match self.take_apart {
            Some(take_apart) => ParsedReceipt::Parts(Box::new(take_apart(receipt))),
            None => ParsedReceipt::Artifact {
                artifact: receipt.with_only_members(&KNOWN),
                unsigned: unknown_members(receipt, &[], &KNOWN),
            },
        }
    }
}

/// The candidate families of a receipt, by its shape.
pub(crate) fn candidate_families(receipt: &JsonNode) -> ReceiptFamilyCandidates {
    let mut candidates: Vec<_> = TABLE.iter().filter(|row| (row.is)(receipt)).collect();
    let families: Vec<_> = candidates.iter().map(|candidate| candidate.family).collect();
    let is_clear = match families[..] {
        [ReceiptFamily::A1, ReceiptFamily::A2] | [ReceiptFamily::E, ReceiptFamily::E2] | [_] => true,
        [ReceiptFamily::B2, ReceiptFamily::B3] => !website::declares_other_kind(receipt),
        _ => false,
    };
    if !is_clear && !clresolve_core::mutant!("receipts-of-any-shape") {
        return ReceiptFamilyCandidates::Open(candidates);
    }
    if runtime::has_digest_as_id(receipt) {
        candidates.reverse();
    }
    ReceiptFamilyCandidates::Clear(candidates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_one_line_for_each_family() {
        let families: Vec<_> = TABLE.iter().map(|row| row.family).collect();
        assert_eq!(families, ReceiptFamily::ALL);
    }
}
