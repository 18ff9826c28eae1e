//! B3, the receipts of the agent SDK from 1.1 on: `metadata.proof` as the website writes it.
//!
//! Signed is the whole receipt without the proof, and without `metadata` where that holds nothing else: the canonical bytes
//! themselves, of which the proof states the digest.

use super::{Family, NoSignedParts, SignedParts, Signs, website};
use crate::json::Node;

pub(super) fn take_apart(receipt: &Node) -> Result<SignedParts, NoSignedParts> {
    let mut content = receipt.clone();
    if let Some(metadata) = content.get_mut("metadata") {
        metadata.remove("proof");
        if *metadata == Node::Object(Vec::new()) {
            content.remove("metadata");
        }
    }
    Ok(SignedParts {
        family: Family::B3,
        content,
        signs: Signs::CanonicalBytes,
        unsigned: website::unsigned_in_proof(receipt),
        ..website::parts(receipt)
    })
}
