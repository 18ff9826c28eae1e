//! B3, receipts of the agent SDK since 1.1: `metadata.proof` as in the website's receipts.
//!
//! The signature covers the canonical bytes of the whole receipt without the proof, and without `metadata` if it
//! contains nothing else. The proof states the digest of these bytes.

use super::{ReceiptFamily, ReceiptParts, ReceiptPartsError, SignedMessageFormat, has_value_at, website};
use crate::receipt::json::JsonNode;

pub(super) fn split_receipt(receipt: &JsonNode) -> Result<ReceiptParts, ReceiptPartsError> {
    let mut content = receipt.clone();
    if let Some(metadata) = content.get_mut("metadata") {
        metadata.remove("proof");
        if *metadata == JsonNode::Object(Vec::new()) {
            content.remove("metadata");
        }
    }
    let website = website::website_proof_parts(receipt);
    // The published form has no `signer_id`, because the signed `signer` names the signer. If one is present, it is
    // compared.
    let names_signer_again = has_value_at(receipt, &["metadata", "proof", "signer_id"]);
    let signers = website.signers.into_iter().take(1 + usize::from(names_signer_again)).collect();
    Ok(ReceiptParts {
        family: ReceiptFamily::B3,
        content,
        signs: SignedMessageFormat::CanonicalBytes,
        signers,
        unsigned: website::unsigned_in_proof(receipt),
        ..website
    })
}
