//! A value in the shared cache: the evidence of a resolution, and the data to which its MAC binds it.

use clresolve_core::digest::Digest;
use clresolve_verdict::verdict::ResolutionDepth;
use jiff::Timestamp;

use super::mac::{MAC_BYTES, MacKeys};
use crate::cache::VerdictCacheKey;

/// Domain separation for the MAC of a value, with the version of its format.
const WHAT: &str = "clresolve.shared/3";

/// Maximum length of a value, in bytes. The largest card, served by its host and proven under both CIDs, uses half of
/// it in base64; the rest is for state proofs. Longer evidence is not shared.
pub const MAX_VALUE_BYTES: usize = 2 << 20;

/// Bytes before the evidence: MAC, start of the resolution, end of freshness, newest height, and age of the content.
const HEAD_BYTES: usize = MAC_BYTES + 4 * 8;

/// Encodes a missing height or time. It is never a real one.
const NONE: i64 = i64::MIN;

/// The context to which a value is bound. The same evidence for another question, or from another version of the
/// program, is invalid.
#[derive(Clone, Copy, Debug)]
pub struct SharedEvidenceBinding<'a> {
    /// The version of the program that created the value.
    pub version: &'a str,
    /// Everything that the answer depends on.
    pub key: &'a VerdictCacheKey,
}

/// The shared evidence of a resolution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedEvidence {
    /// Height up to which the chain was read. The evidence does not reflect changes in later blocks.
    pub newest: Option<u64>,
    /// When the resolution began.
    pub began: Timestamp,
    /// Until when its verdict is fresh.
    pub fresh_until: Timestamp,
    /// When the content was fetched, if it was reused from an earlier resolution with the same records.
    pub content_fetched_at: Option<Timestamp>,
    /// The evidence, as a bundle.
    pub evidence: Vec<u8>,
}

/// Why the server's bytes are not a valid value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SharedEvidenceError {
    /// It is truncated or too long.
    #[error("length")]
    Length,
    /// The MAC does not match.
    #[error("mac")]
    Mac,
    /// A height or time is missing or out of range.
    #[error("form")]
    Form,
}

impl SharedEvidenceBinding<'_> {
    /// The key under which the value is stored: a digest of its context, so that versions and questions never collide.
    pub fn storage_key(&self) -> String {
        let fields = self.binding_fields().join("\n");
        Digest::compute(fields.as_bytes()).to_hex()
    }

    /// No field contains a line break.
    fn binding_fields(&self) -> [String; 6] {
        let Self { version, key } = self;
        let VerdictCacheKey { name, block, depth, rules, world } = key;
        [
            (*version).to_owned(),
            name.as_str().to_owned(),
            block.to_string(),
            match depth {
                ResolutionDepth::Identity => "identity".to_owned(),
                ResolutionDepth::Schemas => "schemas".to_owned(),
            },
            rules.to_string(),
            world.to_string(),
        ]
    }
}

impl SharedEvidence {
    /// Encodes the value with its MAC. `None` if the evidence is too long to be shared.
    pub fn encode_with_mac(&self, keys: &MacKeys, binding: SharedEvidenceBinding<'_>) -> Option<Vec<u8>> {
        let head = self.encode_header_fields();
        let tag = keys.compute_mac(WHAT, &mac_fields(&binding.binding_fields(), &head, &self.evidence));
        let stored = [&tag[..], &head, &self.evidence].concat();
        (stored.len() <= MAX_VALUE_BYTES).then_some(stored)
    }

    /// Decodes a stored value, if its MAC is valid.
    ///
    /// # Errors
    /// [`SharedEvidenceError`].
    pub fn decode_verified(
        stored: &[u8],
        keys: &MacKeys,
        binding: SharedEvidenceBinding<'_>,
    ) -> Result<Self, SharedEvidenceError> {
        if !(HEAD_BYTES..=MAX_VALUE_BYTES).contains(&stored.len()) {
            return Err(SharedEvidenceError::Length);
        }
        let (tag, rest) = stored.split_at(MAC_BYTES);
        let (head, evidence) = rest.split_at(HEAD_BYTES - MAC_BYTES);
        if !keys.verify_mac(WHAT, &mac_fields(&binding.binding_fields(), head, evidence), tag)
            && !clresolve_core::mutant!("shared-mac-unchecked")
        {
            return Err(SharedEvidenceError::Mac);
        }
        let number = |at: usize| {
            <[u8; 8]>::try_from(&head[at..at + 8]).map(i64::from_be_bytes).map_err(|_| SharedEvidenceError::Form)
        };
        let height = |number: i64| u64::try_from(number).map_err(|_| SharedEvidenceError::Form);
        let time = |number: i64| Timestamp::from_millisecond(number).map_err(|_| SharedEvidenceError::Form);
        let [newest, content_fetched_at] =
            [number(16)?, number(24)?].map(|number| Some(number).filter(|it| *it != NONE));
        Ok(Self {
            began: time(number(0)?)?,
            fresh_until: time(number(8)?)?,
            newest: newest.map(height).transpose()?,
            content_fetched_at: content_fetched_at.map(time).transpose()?,
            evidence: evidence.to_vec(),
        })
    }

    fn encode_header_fields(&self) -> Vec<u8> {
        // No chain has a larger height.
        let height = |number: u64| i64::try_from(number).unwrap_or(NONE);
        let numbers = [
            self.began.as_millisecond(),
            self.fresh_until.as_millisecond(),
            self.newest.map_or(NONE, height),
            self.content_fetched_at.map_or(NONE, Timestamp::as_millisecond),
        ];
        numbers.map(i64::to_be_bytes).concat()
    }
}

fn mac_fields<'a>(fields: &'a [String], head: &'a [u8], evidence: &'a [u8]) -> Vec<&'a [u8]> {
    fields.iter().map(String::as_bytes).chain([head, evidence]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clresolve_core::name::EnsName;
    use clresolve_core::reading::BlockSelector;

    fn keys() -> MacKeys {
        MacKeys::parse(&"11".repeat(32)).expect("a good key")
    }

    fn key() -> VerdictCacheKey {
        VerdictCacheKey {
            name: EnsName::parse("a.eth").expect("a good name"),
            block: BlockSelector::Finalized,
            depth: ResolutionDepth::Identity,
            rules: Digest::compute(b"rules"),
            world: "world".into(),
        }
    }

    fn value() -> SharedEvidence {
        let time = |second| Timestamp::from_second(second).expect("a time");
        SharedEvidence {
            newest: Some(9),
            began: time(1),
            fresh_until: time(2),
            content_fetched_at: Some(time(0)),
            evidence: b"{}".to_vec(),
        }
    }

    fn open(stored: &[u8], binding: SharedEvidenceBinding<'_>) -> Result<SharedEvidence, SharedEvidenceError> {
        SharedEvidence::decode_verified(stored, &keys(), binding)
    }

    #[test]
    fn a_value_is_one_under_its_own_key_and_version_alone() {
        let key = key();
        let binding = SharedEvidenceBinding { version: "1.0.0", key: &key };
        let stored = value().encode_with_mac(&keys(), binding).expect("it is short");
        assert_eq!(open(&stored, binding), Ok(value()));
        let without = SharedEvidence { newest: None, content_fetched_at: None, ..value() };
        assert_eq!(open(&without.encode_with_mac(&keys(), binding).expect("it is short"), binding), Ok(without));
        assert_eq!(open(&stored, SharedEvidenceBinding { version: "1.0.1", key: &key }), Err(SharedEvidenceError::Mac));
        let others = [
            VerdictCacheKey { name: EnsName::parse("b.eth").unwrap(), ..key.clone() },
            VerdictCacheKey { block: BlockSelector::Latest, ..key.clone() },
            VerdictCacheKey { depth: ResolutionDepth::Schemas, ..key.clone() },
            VerdictCacheKey { rules: Digest::compute(b"others"), ..key.clone() },
            VerdictCacheKey { world: "other".into(), ..key.clone() },
        ];
        for other in &others {
            let elsewhere = SharedEvidenceBinding { version: "1.0.0", key: other };
            assert_eq!(open(&stored, elsewhere), Err(SharedEvidenceError::Mac));
            assert_ne!(elsewhere.storage_key(), binding.storage_key());
        }
    }

    /// A daemon that has the key may still have a bug.
    #[test]
    fn a_value_with_a_good_mac_and_impossible_numbers_is_none() {
        let key = key();
        let binding = SharedEvidenceBinding { version: "1.0.0", key: &key };
        for (at, number) in [(0, i64::MAX), (8, i64::MIN), (16, -2), (24, i64::MAX)] {
            let mut head = value().encode_header_fields();
            head[at..at + 8].copy_from_slice(&i64::to_be_bytes(number));
            let tag = keys().compute_mac(WHAT, &mac_fields(&binding.binding_fields(), &head, b"{}"));
            let stored = [&tag[..], &head, b"{}"].concat();
            assert_eq!(open(&stored, binding), Err(SharedEvidenceError::Form), "{number} at {at}");
        }
    }

    #[test]
    fn no_byte_of_a_value_can_be_changed_or_left_out() {
        let key = key();
        let binding = SharedEvidenceBinding { version: "1.0.0", key: &key };
        let stored = value().encode_with_mac(&keys(), binding).expect("it is short");
        for at in 0..stored.len() {
            let mut changed = stored.clone();
            changed[at] ^= 1;
            assert_eq!(open(&changed, binding), Err(SharedEvidenceError::Mac), "byte {at}");
            assert!(open(&stored[..at], binding).is_err(), "cut at {at}");
        }
        let long = SharedEvidence { evidence: vec![0; MAX_VALUE_BYTES], ..value() };
        assert_eq!(long.encode_with_mac(&keys(), binding), None);
        assert_eq!(open(&vec![0; MAX_VALUE_BYTES + 1], binding), Err(SharedEvidenceError::Length));
    }
}
