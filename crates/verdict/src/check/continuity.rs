//! Step `continuity`: compares the resolution with the name's history. Yields only warnings, which never change a
//! state.

use semver::Version;

use crate::card::AgentCard;
use crate::check::edition;
use crate::evidence::ResolutionEvidence;
use crate::evidence::continuity::{
    FirstSeenVersion, HistoryOutcome, NameHistory, parse_version_without_build, record_digests,
};
use crate::evidence::edition::CardSuccessionFacts;
use crate::verdict::StepStatus;
use clresolve_core::digest::Digest;
use clresolve_core::reason::{Reason, ReasonCode};

/// All differences between the resolution and the history.
///
/// `proven` is the card whose bytes are proven; an unproven card may be anyone's. A record that changed within the
/// last `rest` blocks is reported; 0 disables the check.
pub fn check_continuity(evidence: &ResolutionEvidence, proven: Option<&AgentCard>, rest: u64) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = evidence
        .continuity
        .store_failure()
        .map(|cause| Reason::new(ReasonCode::MemoryUnavailable).observed(cause))
        .into_iter()
        .collect();
    let (Some(history), Ok(reading)) = (evidence.continuity.history(), &evidence.reading) else { return reasons };
    let block = reading.block.number;
    reasons.extend(check_recent_records(evidence, history, block, rest));
    if let Some(card) = proven {
        reasons.extend(check_version_history(evidence, card, history, block));
    }
    reasons
}

/// The status before reasons are considered. This step cannot fail.
pub(super) const fn initial_continuity_status(continuity: &HistoryOutcome) -> StepStatus {
    match continuity {
        HistoryOutcome::NotAsked => StepStatus::Skip,
        HistoryOutcome::Unavailable(_) => StepStatus::Unknown,
        HistoryOutcome::Recalled(_) | HistoryOutcome::NotKept(..) => StepStatus::Pass,
    }
}

fn check_version_history(
    evidence: &ResolutionEvidence,
    card: &AgentCard,
    history: &NameHistory,
    block: u64,
) -> Vec<Reason> {
    let (Some(bytes), Some(version)) = (evidence.card_bytes(), card.version()) else { return Vec::new() };
    // Observations after the resolution's block are not part of its past.
    let past: Vec<&FirstSeenVersion> = history.versions.iter().filter(|seen| seen.block <= block).collect();
    let digest = Digest::compute(bytes).to_string();
    let Some(now) = parse_version_without_build(version) else { return Vec::new() };
    let same = || past.iter().filter(|seen| parse_version_without_build(&seen.version).as_ref() == Some(&now));
    let is_known = same().any(|seen| seen.card == digest);
    let changed = same().next().filter(|_| !is_known && !clresolve_core::mutant!("silent-change")).map(|seen| {
        Reason::new(ReasonCode::CardChangedSilently)
            .at_place("/version")
            .message(format!(
                "Version {} had other bytes when it was first seen, at block {}.",
                seen.version, seen.block
            ))
            .expected(&seen.card)
            .observed(&digest)
    });
    let rollback = check_rollback(version, &now, &past);
    let since = check_succession(card, Digest::compute(bytes), history, block);
    // The rollback already reports the lower version.
    let since = since.into_iter().filter(|reason| rollback.is_none() || reason.code != ReasonCode::VersionNotRaised);
    changed.into_iter().chain(since.collect::<Vec<_>>()).chain(rollback).collect()
}

/// CL-69, compared with the latest card that validly followed its predecessor.
fn check_succession(card: &AgentCard, digest: Digest, history: &NameHistory, block: u64) -> Vec<Reason> {
    let latest = history.latest.as_ref().filter(|_| history.last_block <= block);
    latest
        .map(|before| edition::check_succession(before, &CardSuccessionFacts::from_card(card, digest)))
        .unwrap_or_default()
}

fn check_rollback(version: &str, now: &Version, past: &[&FirstSeenVersion]) -> Option<Reason> {
    let parsed = past.iter().filter_map(|seen| Some((parse_version_without_build(&seen.version)?, seen)));
    let (highest, seen) = parsed.max_by(|(a, _), (b, _)| a.cmp_precedence(b))?;
    now.cmp_precedence(&highest).is_lt().then(|| {
        Reason::new(ReasonCode::VersionRollback)
            .at_place("/version")
            .expected(format!("{} or higher, first seen at block {}", seen.version, seen.block))
            .observed(version)
    })
}

fn check_recent_records(evidence: &ResolutionEvidence, history: &NameHistory, block: u64, rest: u64) -> Vec<Reason> {
    let Some(found) = evidence.resolved_records() else { return Vec::new() };
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
            Reason::new(ReasonCode::RecordRecent)
                .at_place(key)
                .expected(format!("unchanged for {rest} blocks"))
                .observed(format!("another value first seen at block {at}, {} blocks before", block - at))
        })
    });
    recent.collect()
}
