//! Step `binding`: compares the records with the card, byte for byte.

use crate::card::AgentCard;
use crate::check::records::owner_is_proven;
use crate::evidence::{ClOwnerEvidence, RecordUsability, ResolutionEvidence};
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};
use clresolve_core::records::TextRecordKey;

/// All mismatches between the records and the card.
///
/// `allowed` lists the owners whose commons cards are accepted (CL-58); empty accepts all.
pub fn check_records_match_card(evidence: &ResolutionEvidence, card: &AgentCard, allowed: &[String]) -> Vec<Reason> {
    let Some(found) = evidence.resolved_records() else { return Vec::new() };
    let record = |key| RecordUsability::from_record(&found.records, key).text();
    let pairs = [
        (TextRecordKey::Entry, card.entry(), ReasonCode::TxtEntryMismatch),
        (TextRecordKey::Owner, card.owner(), ReasonCode::TxtOwnerMismatch),
    ];
    let mut reasons: Vec<Reason> = pairs
        .into_iter()
        .filter_map(|(key, member, code)| compare_record_with_member(key, record(key)?, member?, code))
        .collect();
    reasons.extend(compare_ens(evidence, card));
    reasons.extend(check_publisher(evidence, card, record(TextRecordKey::Owner), allowed));
    reasons
}

/// Compares one record with one member: equal, inexact (CL-52), or different.
fn compare_record_with_member(key: TextRecordKey, record: &str, member: &str, mismatch: ReasonCode) -> Option<Reason> {
    if record == member {
        return None;
    }
    let code = if record.to_lowercase() == member.to_lowercase() { ReasonCode::TxtValueInexact } else { mismatch };
    Some(Reason::new(code).at_place(key.as_str()).expected(member).observed(record))
}

fn compare_ens(evidence: &ResolutionEvidence, card: &AgentCard) -> Option<Reason> {
    let ens = card.ens()?;
    (ens != evidence.name.as_str()).then(|| {
        Reason::new(ReasonCode::CardEnsMismatch).at_place("/ens").expected(evidence.name.as_str()).observed(ens)
    })
}

fn check_publisher(
    evidence: &ResolutionEvidence,
    card: &AgentCard,
    owner: Option<&str>,
    allowed: &[String],
) -> Option<Reason> {
    if allowed.is_empty() || card.class() != Some("commons") {
        return None;
    }
    let listed = owner.is_some_and(|owner| allowed.iter().any(|a| a == owner));
    if listed && owner_is_proven(evidence) {
        return None;
    }
    let reason = Reason::new(ReasonCode::PublisherNotAllowed).at_place(TextRecordKey::Owner.as_str());
    // The proof of an allowed owner could not be read, so the result is unknown, not a refusal.
    let Some((cause, retryable)) = owner_unread_cause(evidence).filter(|_| listed) else {
        return Some(reason.observed(owner.unwrap_or("no owner")));
    };
    let reason = reason.message("It is unknown whether the chain proves the owner.").observed(cause);
    Some(Reason { effect: ReasonEffect::Unknown, retryable, ..reason })
}

/// Why it is unknown whether the owner holds the name, and whether a later attempt may succeed.
fn owner_unread_cause(evidence: &ResolutionEvidence) -> Option<(String, bool)> {
    let of_name = evidence.reading.as_ref().ok().and_then(|reading| reading.holder.ensv2_migration_sign());
    let unreadable = match &evidence.owner {
        ClOwnerEvidence::Failed(cause) => return Some((cause.to_string(), true)),
        ClOwnerEvidence::Read(owner) => of_name.or_else(|| owner.holder.ensv2_migration_sign()),
        _ => of_name,
    };
    unreadable.map(|how| (how.to_string(), false))
}
