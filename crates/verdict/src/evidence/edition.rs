//! One edition of an agent's card: what a later one is held against (CL-69).

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use semver::{BuildMetadata, Prerelease, Version};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::card::{Card, instant};
use clresolve_core::digest::Digest;
use clresolve_core::text::excerpt;

/// Members that bind callers: with another value the version must rise.
const BINDING: [&str; 3] = ["owner", "entry", "schemas"];

/// Most verbs of a card that are kept, each once. A layer has a dozen or so.
const MAX_VERBS: usize = 64;

/// Longest pre-release part of a version that is remembered as it stands, in bytes; of a longer one, which is nobody's
/// honest one, the digest is.
const MAX_PRERELEASE_BYTES: usize = 64;

/// What matters of a card when it is followed by another one. Small, whatever the card holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edition {
    /// SHA-256 of the card: `sha256:` and 64 hex digits.
    pub card: String,
    /// The card's `version` as [`as_version`] reads it.
    pub version: Option<String>,
    /// The card's `updated_at`, in UTC.
    pub updated_at: Option<String>,
    /// SHA-256 of each member that binds callers, by its name; nothing for a member that is missing.
    pub binding: BTreeMap<String, String>,
    /// The verbs that it implements.
    pub verbs: BTreeSet<String>,
}

impl Edition {
    /// The edition that a card with this digest is.
    pub fn of(card: &Card, digest: Digest) -> Self {
        let of_member = |value: &Value| Digest::of(value.to_string().as_bytes()).to_string();
        let bound = BINDING.into_iter().filter_map(|name| Some((name.to_owned(), of_member(card.get(name)?))));
        let mut seen = BTreeSet::new();
        let verbs = card.verbs().filter(|verb| seen.insert(*verb)).take(MAX_VERBS);
        Self {
            card: digest.to_string(),
            version: card.version().and_then(as_version).map(|version| version.to_string()),
            updated_at: card.text("/updated_at").and_then(instant).map(|instant| instant.to_string()),
            binding: bound.collect(),
            verbs: verbs.map(excerpt).collect(),
        }
    }

    /// What of the edition is a measure of later ones at `time`: a date that has not come yet is none, or no later card
    /// would pass before that day.
    #[must_use]
    pub fn as_of(mut self, time: Timestamp) -> Self {
        let is_future = |date: &String| instant(date).is_some_and(|date| date > time);
        if self.updated_at.as_ref().is_some_and(is_future) && !clresolve_core::mutant!("dates-to-come-count") {
            self.updated_at = None;
        }
        self
    }

    /// Whether `self` follows an earlier edition as a later card must.
    pub fn follows(&self, before: &Self) -> bool {
        self.card == before.card || (self.is_later_than(before) && self.raises_version_of(before))
    }

    /// Whether `updated_at` has advanced. An instant that is missing or malformed is another defect.
    pub fn is_later_than(&self, before: &Self) -> bool {
        let of = |edition: &Self| edition.updated_at.as_deref().and_then(instant);
        of(self).zip(of(before)).is_none_or(|(now, before)| now > before)
    }

    /// Whether the version has risen, where it has to. One that is missing or malformed is another defect.
    pub fn raises_version_of(&self, before: &Self) -> bool {
        let of = |edition: &Self| edition.version.as_deref().and_then(as_version);
        let risen = of(self).zip(of(before)).is_none_or(|(now, before)| now.cmp_precedence(&before).is_gt());
        risen || before.broken_by(self).is_empty() || clresolve_core::mutant!("versions-need-not-rise")
    }

    /// What in `self` is another value in `next`, or gone from it, and binds callers: the members, and the verbs.
    pub fn broken_by(&self, next: &Self) -> Vec<String> {
        let changed = BINDING.into_iter().filter(|name| self.binding.get(*name) != next.binding.get(*name));
        let removed = self.verbs.difference(&next.verbs).map(|verb| format!("the verb {verb} was removed"));
        changed.map(|name| format!("{name} changed")).chain(removed).collect()
    }
}

/// The semantic version that `text` is, as it is remembered and compared: without build metadata, since what differs
/// only there is the same version (Semantic Versioning 2.0.0, 10), and never long.
pub fn as_version(text: &str) -> Option<Version> {
    let Version { major, minor, patch, pre, build } = Version::parse(text).ok()?;
    let pre = if pre.len() > MAX_PRERELEASE_BYTES {
        let digest = Digest::of(pre.as_bytes()).to_string().replace(':', "-");
        Prerelease::new(&digest).expect("letters, digits and a hyphen")
    } else {
        pre
    };
    let build = if clresolve_core::mutant!("build-metadata-counts") { build } else { BuildMetadata::EMPTY };
    Some(Version { major, minor, patch, pre, build })
}
