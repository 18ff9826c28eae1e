//! The history of a name across resolutions, and how a new observation updates it. Pure data: the `memory` module
//! stores it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::edition::CardSuccessionFacts;
pub use super::edition::parse_version_without_build;
use clresolve_core::digest::Digest;
use clresolve_core::records::{TextRecord, TextRecordKey, TextRecordSet};

/// Maximum number of versions remembered per name. An honest card has a handful. If a publisher exceeds the limit,
/// their lowest version is forgotten. Reusing it gains nothing: it is below the highest version and therefore a
/// rollback.
pub const MAX_VERSIONS: usize = 32;

/// Number of blocks after which an unchanged observation is recorded again: about an hour.
const SIGHTING_STEP: u64 = 300;

/// What the history store returned for the name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HistoryOutcome {
    /// There is no history store, or the block was chosen by number.
    #[default]
    NotAsked,
    /// The history store is unavailable; the text describes the cause.
    Unavailable(String),
    /// The stored history.
    Recalled(NameHistory),
    /// The stored history. The new observation could not be added; the text describes the cause.
    NotKept(NameHistory, String),
}

impl HistoryOutcome {
    /// The stored history, if it could be read.
    pub const fn history(&self) -> Option<&NameHistory> {
        match self {
            Self::Recalled(history) | Self::NotKept(history, _) => Some(history),
            Self::NotAsked | Self::Unavailable(_) => None,
        }
    }

    /// Why reading or writing the history failed, if it did.
    pub fn store_failure(&self) -> Option<&str> {
        match self {
            Self::Unavailable(cause) | Self::NotKept(_, cause) => Some(cause),
            Self::NotAsked | Self::Recalled(_) => None,
        }
    }

    /// The same history after its update failed because of `cause`.
    #[must_use]
    pub fn with_store_failure(self, cause: String) -> Self {
        match self {
            Self::Recalled(history) | Self::NotKept(history, _) => Self::NotKept(history, cause),
            Self::NotAsked | Self::Unavailable(_) => Self::Unavailable(cause),
        }
    }
}

/// The history of one name, recorded only from trusted verdicts. The default is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameHistory {
    /// Block height of the first observation.
    pub first_block: u64,
    /// Highest block up to which the history is recorded as valid.
    pub last_block: u64,
    /// The observed versions, at most [`MAX_VERSIONS`], oldest observation first.
    pub versions: Vec<FirstSeenVersion>,
    /// The records of the Agent-Card specification, by key.
    pub records: BTreeMap<String, LastSeenRecord>,
    /// The latest card that validly followed its predecessor, starting with the first observed card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<CardSuccessionFacts>,
}

/// A card version at its first observation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstSeenVersion {
    /// The card's `version` as [`parse_version_without_build`] reads it.
    pub version: String,
    /// SHA-256 of the card: `sha256:` and 64 hex digits.
    pub card: String,
    /// Block height of the first observation.
    pub block: u64,
}

/// A record at its latest observation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastSeenRecord {
    /// SHA-256 of its value: `sha256:` and 64 hex digits.
    pub value: String,
    /// Block height at which a changed value was first observed; `None` if the value never changed.
    pub changed: Option<u64>,
}

/// What one resolution observed about a name. It is recorded only if the verdict is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameObservation {
    /// Block height.
    pub block: u64,
    /// Version and digest of the card, if the version is a semantic version.
    pub card: Option<(String, String)>,
    /// Digest of each record, by key.
    pub records: BTreeMap<String, String>,
    /// The card's edition, against which later cards are checked.
    pub edition: Option<CardSuccessionFacts>,
}

/// The digest of each record of the Agent-Card specification, by key.
pub fn record_digests(records: &TextRecordSet) -> BTreeMap<String, String> {
    let digest = |key: TextRecordKey| match records.get(key) {
        TextRecord::Absent => Digest::compute(b""),
        TextRecord::Text(text) => Digest::compute(text.as_bytes()),
        TextRecord::NotUtf8(bytes) => Digest::compute(bytes),
    };
    TextRecordKey::CARD.into_iter().map(|key| (key.as_str().to_owned(), digest(key).to_string())).collect()
}

impl NameHistory {
    /// Whether the history is empty.
    pub fn is_empty(&self) -> bool {
        self.versions.is_empty() && self.records.is_empty()
    }

    /// Number of blocks between the first and the last observation.
    pub const fn block_span(&self) -> u64 {
        self.last_block.saturating_sub(self.first_block)
    }

    /// The history after one more observation. `None` if there is nothing to record: the observation adds nothing new
    /// or is older than the history.
    #[must_use]
    pub fn with_observation(&self, sighting: &NameObservation) -> Option<Self> {
        if self.is_empty() {
            let mut first = Self { first_block: sighting.block, last_block: sighting.block, ..Self::default() };
            first.add_version(sighting);
            first.add_records(sighting);
            first.latest.clone_from(&sighting.edition);
            return Some(first);
        }
        let since = sighting.block.checked_sub(self.last_block)?;
        let mut next = self.clone();
        next.add_version(sighting);
        next.add_records(sighting);
        next.update_latest_card(sighting);
        if next == *self && since < SIGHTING_STEP {
            return None;
        }
        next.last_block = sighting.block;
        (next != *self).then_some(next)
    }

    fn add_version(&mut self, sighting: &NameObservation) {
        let Some((version, card)) = &sighting.card else { return };
        if self.versions.iter().any(|seen| seen.version == *version) {
            return;
        }
        self.versions.push(FirstSeenVersion { version: version.clone(), card: card.clone(), block: sighting.block });
        if self.versions.len() > MAX_VERSIONS {
            let precedence = |seen: &FirstSeenVersion| parse_version_without_build(&seen.version);
            let lowest = self.versions.iter().enumerate().min_by(|a, b| match (precedence(a.1), precedence(b.1)) {
                (Some(a), Some(b)) => a.cmp_precedence(&b),
                (a, b) => a.is_some().cmp(&b.is_some()),
            });
            if let Some(at) = lowest.map(|(at, _)| at) {
                self.versions.remove(at);
            }
        }
    }

    /// Keeps the latest edition if the new card does not validly follow it, so that the next resolution reports the
    /// defect again. If the new card has no usable date, the previous date remains the reference.
    fn update_latest_card(&mut self, sighting: &NameObservation) {
        let Some(now) = &sighting.edition else { return };
        match &mut self.latest {
            Some(before) if !now.is_valid_successor(before) => {}
            latest => {
                let date = latest.take().and_then(|before| before.updated_at);
                *latest = Some(CardSuccessionFacts { updated_at: now.updated_at.clone().or(date), ..now.clone() });
            }
        }
    }

    fn add_records(&mut self, sighting: &NameObservation) {
        for (key, value) in &sighting.records {
            match self.records.get_mut(key) {
                Some(seen) if seen.value == *value => {}
                Some(seen) => *seen = LastSeenRecord { value: value.clone(), changed: Some(sighting.block) },
                None => {
                    self.records.insert(key.clone(), LastSeenRecord { value: value.clone(), changed: None });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;
    use crate::sample::{faultless_evidence, good_card, sample_observation};

    fn first() -> NameHistory {
        NameHistory::default().with_observation(&sample_observation(100, "1.0.0", "a")).expect("something new")
    }

    #[test]
    fn the_first_bytes_under_a_version_stay() {
        let next = first().with_observation(&sample_observation(101, "1.0.0", "b")).expect("the records are new");
        assert_eq!(next.versions, first().versions);
        assert!(next.records.values().all(|record| record.changed == Some(101)));
        assert_eq!(next.last_block, 101);
    }

    #[test]
    fn nothing_new_is_written_only_now_and_then() {
        let known = first();
        assert_eq!(known.with_observation(&sample_observation(100, "1.0.0", "a")), None);
        assert_eq!(known.with_observation(&sample_observation(100 + SIGHTING_STEP - 1, "1.0.0", "a")), None);
        let next =
            known.with_observation(&sample_observation(100 + SIGHTING_STEP, "1.0.0", "a")).expect("an hour has passed");
        assert_eq!(
            (next.block_span(), &next.versions, &next.records),
            (SIGHTING_STEP, &known.versions, &known.records)
        );
    }

    /// The warning repeats until a valid card is published.
    #[test]
    fn a_card_that_does_not_follow_is_not_the_next_measure() {
        let edition = |version: &str, updated_at: &str| CardSuccessionFacts {
            card: format!("{version} {updated_at}"),
            version: Some(version.to_owned()),
            updated_at: Some(updated_at.to_owned()),
            binding: BTreeMap::new(),
            verbs: [version.to_owned()].into(),
        };
        let seen = |block, edition: &CardSuccessionFacts| NameObservation {
            edition: Some(edition.clone()),
            ..sample_observation(block, "1.0.0", &block.to_string())
        };
        let [good, same_time, proper] = [("1.0.0", "2026-01-01"), ("1.1.0", "2026-01-01"), ("1.1.0", "2026-01-02")]
            .map(|(version, day)| edition(version, &format!("{day}T00:00:00Z")));
        let mut history = NameHistory::default();
        for (block, card, latest) in
            [(1, &good, &good), (2, &same_time, &good), (3, &proper, &proper), (4, &good, &proper)]
        {
            history = history.with_observation(&seen(block, card)).expect("the records are new");
            assert_eq!(history.latest.as_ref(), Some(latest), "block {block}");
        }
        let written = serde_json::to_string(&history).expect("JSON");
        assert_eq!(serde_json::from_str::<NameHistory>(&written).expect("a history"), history);
    }

    #[test]
    fn a_date_that_has_not_come_yet_is_no_measure_of_later_cards() {
        let now: Timestamp = "2026-02-01T00:00:00Z".parse().expect("a time");
        let seen = |block: u64, updated_at: &str| {
            let card = Bytes::from(format!(r#"{{"version": "1.0.{block}", "updated_at": "{updated_at}"}}"#));
            let mut evidence = faultless_evidence(&good_card(), &card, now);
            evidence.reading.as_mut().expect("it was read").block.number = block;
            evidence.name_observation().expect("records and a card")
        };
        let measure = |history: &NameHistory| history.latest.clone().expect("a card").updated_at;
        let first = NameHistory::default().with_observation(&seen(1, "2026-01-01T00:00:00Z")).expect("something new");
        let early = first.with_observation(&seen(2, "2999-01-01T00:00:00Z")).expect("another version");
        assert_eq!(measure(&early).as_deref(), Some("2026-01-01T00:00:00Z"), "that of the card before");
        assert_eq!(early.latest.as_ref().and_then(|latest| latest.version.as_deref()), Some("1.0.2"));
        let later = early.with_observation(&seen(3, "2026-02-01T00:00:00Z")).expect("another version");
        assert_eq!(measure(&later).as_deref(), Some("2026-02-01T00:00:00Z"));
        let alone = NameHistory::default().with_observation(&seen(1, "2026-02-01T00:00:00.1Z")).expect("something new");
        assert_eq!(measure(&alone), None);
    }

    #[test]
    fn an_older_block_teaches_nothing() {
        assert_eq!(first().with_observation(&sample_observation(99, "2.0.0", "b")), None);
    }

    #[test]
    fn a_version_that_is_none_is_not_remembered() {
        assert_eq!(parse_version_without_build("1.0"), None);
        assert!(parse_version_without_build("1.0.0-rc.1").is_some());
    }

    #[test]
    fn no_spelling_of_a_version_escapes_the_memory() {
        assert_eq!(parse_version_without_build("1.0.0+build.7"), parse_version_without_build("1.0.0"));
        assert_eq!(
            parse_version_without_build(&format!("1.0.0+{}", "a".repeat(1000))),
            parse_version_without_build("1.0.0")
        );
        let long = |last| parse_version_without_build(&format!("1.0.0-{}{last}", "a".repeat(1000))).expect("a version");
        assert!(long("b") == long("b") && long("b") != long("c") && long("b").to_string().len() < 100);
        assert!(long("b") < parse_version_without_build("1.0.0").expect("a version"));
    }

    proptest! {
        /// Whatever a publisher does, the history stays bounded and keeps the highest version.
        #[test]
        fn a_history_is_bounded_and_keeps_the_highest_version(minors in prop::collection::vec(0u64..200, 1..120)) {
            let mut history = NameHistory::default();
            for (block, minor) in (1..).zip(&minors) {
                let sighting = sample_observation(block, &format!("1.{minor}.0"), &block.to_string());
                history = history.with_observation(&sighting).expect("the records are new");
            }
            prop_assert!(history.versions.len() <= MAX_VERSIONS);
            let highest = minors.iter().max().map(|minor| format!("1.{minor}.0")).expect("at least one");
            prop_assert!(history.versions.iter().any(|seen| seen.version == highest));
        }
    }
}
