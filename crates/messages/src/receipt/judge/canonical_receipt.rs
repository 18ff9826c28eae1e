//! A receipt with its recomputed canonical bytes, and whether the signature covers them.

use std::collections::BTreeSet;

use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine as _, alphabet};
use clresolve_core::digest::Digest;
use clresolve_core::reason::Reason;
use clresolve_jose::PublicKey;

use super::knowledge::ReceiptSigner;
use crate::receipt::canonical::{NoForm, form};
use crate::receipt::family::{NoSignedParts, SignedParts, Signs};

/// The parts of a receipt and its canonical bytes.
pub(super) struct CanonicalReceipt {
    pub(super) parts: SignedParts,
    bytes: Vec<u8>,
    pub(super) digest: Digest,
}

/// Why a receipt cannot be read as one of a family.
pub(super) enum NoReading {
    /// A part is missing, or the form is unknown.
    Parts(NoSignedParts),
    /// The signed content at this place has no canonical form.
    Form(NoForm, &'static str),
}

impl CanonicalReceipt {
    pub(super) fn of(reading: Result<SignedParts, NoSignedParts>) -> Result<Self, NoReading> {
        let parts = reading.map_err(NoReading::Parts)?;
        let bytes = form(&parts.content, parts.order).map_err(|error| NoReading::Form(error, parts.root))?;
        Ok(Self { digest: Digest::of(&bytes), bytes, parts })
    }

    pub(super) fn states_its_digest(&self) -> bool {
        let claimed = self.parts.hash.as_ref().and_then(|claim| claim.value.as_deref()?.parse().ok());
        claimed == Some(self.digest)
    }

    /// Whether the signature over the recomputed message is valid for this signer's key.
    pub(super) fn is_signed_by(&self, signer: Result<&ReceiptSigner, &Reason>) -> bool {
        self.has_signed(signer, self.parts.signs)
    }

    /// Whether the signature covers the recomputed content, but as a message that the family does not sign.
    pub(super) fn is_signed_otherwise_by(&self, signer: Result<&ReceiptSigner, &Reason>) -> bool {
        self.has_signed(signer, self.parts.signs.other())
    }

    fn has_signed(&self, signer: Result<&ReceiptSigner, &Reason>, signs: Signs) -> bool {
        let text = self.parts.signature.value.as_deref().unwrap_or_default();
        let bytes = decoded(text);
        let key = signer.ok().and_then(|signer| signer.key.as_ref().ok());
        key.zip(bytes).is_some_and(|(key, bytes)| key.has_signed(&self.message(signs), &bytes))
    }

    fn message(&self, signs: Signs) -> Vec<u8> {
        if clresolve_core::mutant!("receipts-say-their-digest") {
            let claimed = self.parts.hash.as_ref().and_then(|claim| claim.value.clone());
            return claimed.unwrap_or_default().into_bytes();
        }
        match signs {
            Signs::HexDigest => self.digest.hex().into_bytes(),
            Signs::CanonicalBytes => self.bytes.clone(),
        }
    }
}

/// Decodes base64 in either alphabet, with or without padding.
fn decoded(text: &str) -> Option<Vec<u8>> {
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
pub(super) fn likeliest(
    mut readings: Vec<Result<CanonicalReceipt, NoReading>>,
    signer: Result<&ReceiptSigner, &Reason>,
) -> Option<Result<CanonicalReceipt, NoReading>> {
    let is_read = |holds: &dyn Fn(&CanonicalReceipt) -> bool| {
        readings.iter().position(|reading| reading.as_ref().is_ok_and(holds))
    };
    let is_unchecked = |reading: &Result<_, NoReading>| match key_of(signer) {
        Ok(_) => matches!(reading, Err(NoReading::Parts(_))),
        Err(_) => reading.is_ok(),
    };
    let signed = is_read(&|canonical| readings.len() > 1 && canonical.is_signed_by(signer));
    let chosen = match readings.len() {
        0 | 1 => None,
        _ => signed
            .or_else(|| is_read(&|canonical| canonical.is_signed_otherwise_by(signer)))
            .or_else(|| is_read(&CanonicalReceipt::states_its_digest))
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
pub(super) fn key_of<'a>(signer: Result<&'a ReceiptSigner, &'a Reason>) -> Result<&'a PublicKey, &'a Reason> {
    signer?.key.as_ref().map_err(|reason| &**reason)
}
