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
    let website = website::parts(receipt);
    // The published form has no `signer_id`: the signed `signer` names the signer. One that is there is compared.
    let names_signer_again = receipt.at(&["metadata", "proof", "signer_id"]).is_some();
    let signers = website.signers.into_iter().take(1 + usize::from(names_signer_again)).collect();
    Ok(SignedParts {
        family: Family::B3,
        content,
        signs: Signs::CanonicalBytes,
        signers,
        unsigned: website::unsigned_in_proof(receipt),
        ..website
    })
}
