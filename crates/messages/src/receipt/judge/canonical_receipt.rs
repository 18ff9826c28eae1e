//! A receipt with its recomputed canonical bytes, and whether the signature covers them.

use std::collections::BTreeSet;

use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine as _, alphabet};
use clresolve_core::digest::Digest;
use clresolve_core::reason::Reason;
use clresolve_jose::Ed25519PublicKey;

use super::knowledge::PublishedReceiptSigner;
use crate::receipt::canonical::{CanonicalJsonError, canonical_bytes};
use crate::receipt::family::{ReceiptParts, ReceiptPartsError, SignedMessageFormat};

/// The parts of a receipt and its canonical bytes.
pub(super) struct CanonicalReceipt {
    pub(super) parts: ReceiptParts,
    bytes: Vec<u8>,
    pub(super) digest: Digest,
}

/// Why a receipt cannot be read as one of a family.
pub(super) enum ReceiptFamilyMismatch {
    /// A part is missing, or the form is unknown.
    Parts(ReceiptPartsError),
    /// The signed content at this place has no canonical form.
    Form(CanonicalJsonError, &'static str),
}

impl CanonicalReceipt {
    pub(super) fn from_parts(reading: Result<ReceiptParts, ReceiptPartsError>) -> Result<Self, ReceiptFamilyMismatch> {
        let parts = reading.map_err(ReceiptFamilyMismatch::Parts)?;
        let bytes = canonical_bytes(&parts.content, parts.order)
            .map_err(|error| ReceiptFamilyMismatch::Form(error, parts.root))?;
        Ok(Self { digest: Digest::compute(&bytes), bytes, parts })
    }

    pub(super) fn has_correct_stated_digest(&self) -> bool {
        let claimed = self.parts.hash.as_ref().and_then(|claim| claim.value.as_deref()?.parse().ok());
        claimed == Some(self.digest)
    }

    /// Whether the signature over the recomputed message is valid for this signer's key.
    pub(super) fn is_signed_by(&self, signer: Result<&PublishedReceiptSigner, &Reason>) -> bool {
        self.is_message_signed_by(signer, self.parts.signs)
    }

    /// Whether the signature covers the recomputed content, but as a message that the family does not sign.
    pub(super) fn is_signed_in_other_format_by(&self, signer: Result<&PublishedReceiptSigner, &Reason>) -> bool {
        self.is_message_signed_by(signer, self.parts.signs.opposite_format())
    }

    fn is_message_signed_by(
        &self,
        signer: Result<&PublishedReceiptSigner, &Reason>,
        signs: SignedMessageFormat,
    ) -> bool {
        let text = self.parts.signature.value.as_deref().unwrap_or_default();
        let bytes = decode_base64(text);
        let key = signer.ok().and_then(|signer| signer.key.as_ref().ok());
        key.zip(bytes).is_some_and(|(key, bytes)| key.has_signed(&self.signed_message(signs), &bytes))
    }

    fn signed_message(&self, signs: SignedMessageFormat) -> Vec<u8> {
        if clresolve_core::mutant!("receipts-say-their-digest") {
            let claimed = self.parts.hash.as_ref().and_then(|claim| claim.value.clone());
            return claimed.unwrap_or_default().into_bytes();
        }
        match signs {
            SignedMessageFormat::HexDigest => self.digest.to_hex().into_bytes(),
            SignedMessageFormat::CanonicalBytes => self.bytes.clone(),
        }
    }
}

/// Decodes base64 in either alphabet, with or without padding.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    const PADDING: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    [&alphabet::STANDARD, &alphabet::URL_SAFE]
        .into_iter()
        .find_map(|alphabet| GeneralPurpose::new(alphabet, PADDING).decode(text).ok())
}

/// Chooses among the readings of families with one shape: first a reading whose signature is valid, then one whose
/// signature is valid in an unpublished form, then one whose stated digest matches. Otherwise a reading that lacks a
/// part is preferred, because its signature was not checked. If the key is unknown, no signature was checked, so a
/// complete reading is preferred. Members that one family leaves unsigned may have no canonical form in the other.
///
/// If no signature is valid, only the members that every reading leaves unsigned are listed as unsigned: a scope
/// decides what E2 signs, and E leaves it unsigned.
pub(super) fn choose_likeliest_reading(
    mut readings: Vec<Result<CanonicalReceipt, ReceiptFamilyMismatch>>,
    signer: Result<&PublishedReceiptSigner, &Reason>,
) -> Option<Result<CanonicalReceipt, ReceiptFamilyMismatch>> {
    let is_read = |holds: &dyn Fn(&CanonicalReceipt) -> bool| {
        readings.iter().position(|reading| reading.as_ref().is_ok_and(holds))
    };
    let is_unchecked = |reading: &Result<_, ReceiptFamilyMismatch>| match signer_key(signer) {
        Ok(_) => matches!(reading, Err(ReceiptFamilyMismatch::Parts(_))),
        Err(_) => reading.is_ok(),
    };
    let signed = is_read(&|canonical| readings.len() > 1 && canonical.is_signed_by(signer));
    let chosen = match readings.len() {
        0 | 1 => None,
        _ => signed
            .or_else(|| is_read(&|canonical| canonical.is_signed_in_other_format_by(signer)))
            .or_else(|| is_read(&CanonicalReceipt::has_correct_stated_digest))
            .or_else(|| readings.iter().position(is_unchecked)),
    };
    let chosen = chosen.unwrap_or(0);
    let mut reading = (chosen < readings.len()).then(|| readings.swap_remove(chosen));
    if let (None, Some(Ok(canonical))) = (signed, &mut reading) {
        for other in readings.iter().flatten() {
            let unsigned: BTreeSet<_> = other.parts.unsigned.iter().collect();
            canonical.parts.unsigned.retain(|place| unsigned.contains(place));
        }
    }
    reading
}

/// The key in `cl.sig.pub`, or why it is unknown.
pub(super) fn signer_key<'a>(
    signer: Result<&'a PublishedReceiptSigner, &'a Reason>,
) -> Result<&'a Ed25519PublicKey, &'a Reason> {
    signer?.key.as_ref().map_err(|reason| &**reason)
}
