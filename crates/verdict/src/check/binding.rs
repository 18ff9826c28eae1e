//! Step `binding`: compares the records with the card, byte for byte.

use crate::card::Card;
use crate::check::records::owner_is_proven;
use crate::evidence::{Evidence, OwnerEvidence, Usable};
use clresolve_core::reason::{Code, Effect, Reason};
use clresolve_core::records::Key;

/// All mismatches between the records and the card.
///
/// `allowed` lists the owners whose commons cards are accepted (CL-58); empty accepts all.
pub fn binding(evidence: &Evidence, card: &Card, allowed: &[String]) -> Vec<Reason> {
    let Some(found) = evidence.found() else { return Vec::new() };
    let record = |key| Usable::of(&found.records, key).text();
    let pairs =
        [(Key::Entry, card.entry(), Code::TxtEntryMismatch), (Key::Owner, card.owner(), Code::TxtOwnerMismatch)];
    let mut reasons: Vec<Reason> =
        pairs.into_iter().filter_map(|(key, member, code)| compare(key, record(key)?, member?, code)).collect();
    reasons.extend(ens(evidence, card));
    reasons.extend(publisher(evidence, card, record(Key::Owner), allowed));
    reasons
}

/// Compares one record with one member: equal, inexact (CL-52), or different.
fn compare(key: Key, record: &str, member: &str, mismatch: Code) -> Option<Reason> {
    if record == member {
        return None;
    }
    let code = if record.to_lowercase() == member.to_lowercase() { Code::TxtValueInexact } else { mismatch };
    Some(Reason::new(code).at(key.as_str()).expected(member).observed(record))
}

fn ens(evidence: &Evidence, card: &Card) -> Option<Reason> {
    let ens = card.ens()?;
    (ens != evidence.name.as_str())
        .then(|| Reason::new(Code::CardEnsMismatch).at("/ens").expected(evidence.name.as_str()).observed(ens))
}

fn publisher(evidence: &Evidence, card: &Card, owner: Option<&str>, allowed: &[String]) -> Option<Reason> {
    if allowed.is_empty() || card.class() != Some("commons") {
        return None;
    }
    let listed = owner.is_some_and(|owner| allowed.iter().any(|a| a == owner));
    if listed && owner_is_proven(evidence) {
        return None;
    }
    let reason = Reason::new(Code::PublisherNotAllowed).at(Key::Owner.as_str());
    // The proof of an allowed owner could not be read, so the result is unknown, not a refusal.
    let Some((cause, retryable)) = unread(evidence).filter(|_| listed) else {
        return Some(reason.observed(owner.unwrap_or("no owner")));
    };
    let reason = reason.message("It is unknown whether the chain proves the owner.").observed(cause);
    Some(Reason { effect: Effect::Unknown, retryable, ..reason })
}

/// Why it is unknown whether the owner holds the name, and whether a later attempt may succeed.
fn unread(evidence: &Evidence) -> Option<(String, bool)> {
    let of_name = evidence.reading.as_ref().ok().and_then(|reading| reading.holder.unreadable());
    let unreadable = match &evidence.owner {
        OwnerEvidence::Failed(cause) => return Some((cause.to_string(), true)),
        OwnerEvidence::Read(owner) => of_name.or_else(|| owner.holder.unreadable()),
        _ => of_name,
    };
    unreadable.map(|how| (how.to_string(), false))
}
