//! Step `continuity`: compares the resolution with the name's history. Yields only warnings, which never change a
//! state.

use semver::Version;

use crate::card::Card;
use crate::check::edition;
use crate::evidence::Evidence;
use crate::evidence::continuity::{Continuity, History, SeenVersion, as_version, record_digests};
use crate::evidence::edition::Edition;
use crate::verdict::Status;
use clresolve_core::digest::Digest;
use clresolve_core::reason::{Code, Reason};

/// All differences between the resolution and the history.
///
/// `proven` is the card whose bytes are proven; an unproven card may be anyone's. A record that changed within the
/// last `rest` blocks is reported; 0 disables the check.
pub fn continuity(evidence: &Evidence, proven: Option<&Card>, rest: u64) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = evidence
        .continuity
        .store_failure()
        .map(|cause| Reason::new(Code::MemoryUnavailable).observed(cause))
        .into_iter()
        .collect();
    let (Some(history), Ok(reading)) = (evidence.continuity.history(), &evidence.reading) else { return reasons };
    let block = reading.block.number;
    reasons.extend(recent_records(evidence, history, block, rest));
    if let Some(card) = proven {
        reasons.extend(versions(evidence, card, history, block));
    }
    reasons
}

/// The status before reasons are considered. This step cannot fail.
pub(super) const fn status(continuity: &Continuity) -> Status {
    match continuity {
        Continuity::NotAsked => Status::Skip,
        Continuity::Unavailable(_) => Status::Unknown,
        Continuity::Recalled(_) | Continuity::NotKept(..) => Status::Pass,
    }
}

fn versions(evidence: &Evidence, card: &Card, history: &History, block: u64) -> Vec<Reason> {
    let (Some(bytes), Some(version)) = (evidence.card_bytes(), card.version()) else { return Vec::new() };
    // Observations after the resolution's block are not part of its past.
    let past: Vec<&SeenVersion> = history.versions.iter().filter(|seen| seen.block <= block).collect();
    let digest = Digest::of(bytes).to_string();
    let Some(now) = as_version(version) else { return Vec::new() };
    let same = || past.iter().filter(|seen| as_version(&seen.version).as_ref() == Some(&now));
    let is_known = same().any(|seen| seen.card == digest);
    let changed = same().next().filter(|_| !is_known && !clresolve_core::mutant!("silent-change")).map(|seen| {
        Reason::new(Code::CardChangedSilently)
            .at("/version")
            .message(format!(
                "Version {} had other bytes when it was first seen, at block {}.",
                seen.version, seen.block
            ))
            .expected(&seen.card)
            .observed(&digest)
    });
    let rollback = rollback(version, &now, &past);
    let since = since(card, Digest::of(bytes), history, block);
    // The rollback already reports the lower version.
    let since = since.into_iter().filter(|reason| rollback.is_none() || reason.code != Code::VersionNotRaised);
    changed.into_iter().chain(since.collect::<Vec<_>>()).chain(rollback).collect()
}

/// CL-69, compared with the latest card that validly followed its predecessor.
fn since(card: &Card, digest: Digest, history: &History, block: u64) -> Vec<Reason> {
    let latest = history.latest.as_ref().filter(|_| history.last_block <= block);
    latest.map(|before| edition::since(before, &Edition::of(card, digest))).unwrap_or_default()
}

fn rollback(version: &str, now: &Version, past: &[&SeenVersion]) -> Option<Reason> {
    let parsed = past.iter().filter_map(|seen| Some((as_version(&seen.version)?, seen)));
    let (highest, seen) = parsed.max_by(|(a, _), (b, _)| a.cmp_precedence(b))?;
    now.cmp_precedence(&highest).is_lt().then(|| {
        Reason::new(Code::VersionRollback)
            .at("/version")
            .expected(format!("{} or higher, first seen at block {}", seen.version, seen.block))
            .observed(version)
    })
}

fn recent_records(evidence: &Evidence, history: &History, block: u64, rest: u64) -> Vec<Reason> {
    let Some(found) = evidence.found() else { return Vec::new() };
    let now = record_digests(&found.records);
    let changed = |key: &str| {
        let seen = history.records.get(key)?;
        if now.get(key) == Some(&seen.value) {
            return seen.changed;
        }
        (history.last_block <= block).then_some(block)
    };
    let recent = now.keys().filter_map(|key| {
        let at = changed(key)?;
        (block.checked_sub(at)? < rest).then(|| {
            Reason::new(Code::RecordRecent)
                .at(key)
                .expected(format!("unchanged for {rest} blocks"))
                .observed(format!("another value first seen at block {at}, {} blocks before", block - at))
        })
    });
    recent.collect()
}
