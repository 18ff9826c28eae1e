//! Compares a new resolution with earlier ones, to detect results that are no longer valid.

use std::collections::BTreeSet;

use clresolve_core::reason::ReasonCode;
use clresolve_core::state::TrustState;
use clresolve_verdict::verdict::Verdict;

/// Whether a later resolution contradicts an earlier verdict: another state, other records, or pending changes to the
/// records. Data that a failed resolution could not read does not count as a change.
pub(super) fn contradicts_earlier_verdict(before: &Verdict, after: &Verdict) -> bool {
    let decided = |verdict: &Verdict| Some(verdict.state).filter(|state| *state != TrustState::Indeterminate);
    shows_changed_records(before, after) || is_known_to_differ(decided(before), decided(after))
}

/// Whether a later resolution, under any rules, read other records or found pending changes to them.
pub(super) fn shows_changed_records(before: &Verdict, after: &Verdict) -> bool {
    let is_pending = |verdict: &Verdict| verdict.reasons.iter().any(|reason| reason.code == ReasonCode::RecordPending);
    let source = |verdict: &Verdict| {
        verdict.anchor.clone().map(|anchor| (anchor.resolver, anchor.wildcard, anchor.offchain, anchor.records_digest))
    };
    (is_pending(after) && !is_pending(before)) || is_known_to_differ(source(before), source(after))
}

/// Whether a later resolution has the same result as an earlier one, at any block: the state, every code, the identity
/// and the records. Warnings count, since a gate may deny on them.
pub(super) fn has_same_result(before: &Verdict, after: &Verdict) -> bool {
    let codes = |verdict: &Verdict| verdict.reasons.iter().map(|reason| reason.code).collect::<BTreeSet<_>>();
    before.state == after.state
        && codes(before) == codes(after)
        && before.identity == after.identity
        && !shows_changed_records(before, after)
}

/// Whether both are present and differ.
fn is_known_to_differ<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
    one.zip(other).is_some_and(|(one, other)| one != other)
}
