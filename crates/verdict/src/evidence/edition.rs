//! One edition of an agent's card, against which later editions are checked (CL-69).

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use semver::{BuildMetadata, Prerelease, Version};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::card::{AgentCard, parse_instant};
use clresolve_core::digest::Digest;
use clresolve_core::text::excerpt_text;

/// Members that bind callers. If one changes, the version must rise.
const BINDING: [&str; 3] = ["owner", "entry", "schemas"];

/// Maximum number of distinct verbs kept per card. A real card has about a dozen.
const MAX_VERBS: usize = 64;

/// Maximum length, in bytes, of a pre-release part stored verbatim. No honest version has a longer one; its digest is
/// stored instead.
const MAX_PRERELEASE_BYTES: usize = 64;

/// The properties of a card that constrain its successor. Bounded in size, whatever the card contains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardSuccessionFacts {
    /// SHA-256 of the card: `sha256:` and 64 hex digits.
    pub card: String,
    /// The card's `version` as [`parse_version_without_build`] reads it.
    pub version: Option<String>,
    /// The card's `updated_at`, in UTC.
    pub updated_at: Option<String>,
    /// SHA-256 of each binding member, by name. Missing members have no entry.
    pub binding: BTreeMap<String, String>,
    /// Verbs that the card implements.
    pub verbs: BTreeSet<String>,
}

impl CardSuccessionFacts {
    /// The edition of a card with this digest.
    pub fn from_card(card: &AgentCard, digest: Digest) -> Self {
        let of_member = |value: &Value| Digest::compute(value.to_string().as_bytes()).to_string();
        let bound = BINDING.into_iter().filter_map(|name| Some((name.to_owned(), of_member(card.get(name)?))));
        let mut seen = BTreeSet::new();
        let verbs = card.verbs().filter(|verb| seen.insert(*verb)).take(MAX_VERBS);
        Self {
            card: digest.to_string(),
            version: card.version().and_then(parse_version_without_build).map(|version| version.to_string()),
            updated_at: card.text_at("/updated_at").and_then(parse_instant).map(|instant| instant.to_string()),
            binding: bound.collect(),
            verbs: verbs.map(excerpt_text).collect(),
        }
    }

    /// The edition as a reference for later ones at `time`. A date in the future is dropped; otherwise every later card
    /// would fail until that date.
    #[must_use]
    pub fn without_future_date(mut self, time: Timestamp) -> Self {
        let is_future = |date: &String| parse_instant(date).is_some_and(|date| date > time);
        if self.updated_at.as_ref().is_some_and(is_future) && !clresolve_core::mutant!("dates-to-come-count") {
            self.updated_at = None;
        }
        self
    }

    /// Whether `self` is a valid successor of `before`.
    pub fn is_valid_successor(&self, before: &Self) -> bool {
        self.card == before.card || (self.is_later_than(before) && self.raises_version_of(before))
    }

    /// Whether `updated_at` has advanced. Also true if either date is missing or malformed, which other checks report.
    pub fn is_later_than(&self, before: &Self) -> bool {
        let of = |edition: &Self| edition.updated_at.as_deref().and_then(parse_instant);
        of(self).zip(of(before)).is_none_or(|(now, before)| now > before)
    }

    /// Whether the version has risen where it must. Also true if either version is missing or malformed, which other
    /// checks report.
    pub fn raises_version_of(&self, before: &Self) -> bool {
        let of = |edition: &Self| edition.version.as_deref().and_then(parse_version_without_build);
        let risen = of(self).zip(of(before)).is_none_or(|(now, before)| now.cmp_precedence(&before).is_gt());
        risen || before.bindings_broken_by(self).is_empty() || clresolve_core::mutant!("versions-need-not-rise")
    }

    /// The binding members and verbs of `self` that `next` changes or removes.
    pub fn bindings_broken_by(&self, next: &Self) -> Vec<String> {
        let changed = BINDING.into_iter().filter(|name| self.binding.get(*name) != next.binding.get(*name));
        let removed = self.verbs.difference(&next.verbs).map(|verb| format!("the verb {verb} was removed"));
        changed.map(|name| format!("{name} changed")).chain(removed).collect()
    }
}

/// Parses a semantic version into the form that is stored and compared: without build metadata, because versions that
/// differ only in build metadata are equal (Semantic Versioning 2.0.0, 10), and bounded in length.
pub fn parse_version_without_build(text: &str) -> Option<Version> {
    let Version { major, minor, patch, pre, build } = Version::parse(text).ok()?;
    let pre = if pre.len() > MAX_PRERELEASE_BYTES {
        let digest = Digest::compute(pre.as_bytes()).to_string().replace(':', "-");
        Prerelease::new(&digest).expect("letters, digits and a hyphen")
    } else {
        pre
    };
    let build = if clresolve_core::mutant!("build-metadata-counts") { build } else { BuildMetadata::EMPTY };
    Some(Version { major, minor, patch, pre, build })
}
