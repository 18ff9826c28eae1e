//! Step `records`: judges what the chain states about the name, before anything is fetched.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::evidence::{ClOwnerEvidence, RecordUsability, ResolutionEvidence};
use crate::profile::ConformanceProfile;
use clresolve_core::characters::first_unsafe_character_in_value;
use clresolve_core::name::EnsName;
use clresolve_core::reading::{
    BlockSelector, ChainBlock, ChainError, ClOwnerReading, EnsAnswer, NameHolder, NameReading, ResolvedRecords,
    max_finalized_header_age,
};
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::records::{TextRecord, TextRecordKey, TextRecordSet};
use clresolve_core::text::UntrustedText;

/// Remaining time of a registration below which its end is reported.
pub const EXPIRY_NOTICE: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Grace period after the expiry of a second-level `.eth` name, during which it can be renewed but not registered.
/// `GRACE_PERIOD` of ENS's `BaseRegistrarImplementation`, whose `available` is `expiries[id] + GRACE_PERIOD <
/// block.timestamp`.
pub const GRACE: SignedDuration = SignedDuration::from_hours(90 * 24);

/// All findings on the name's state on the chain.
pub fn check_records(evidence: &ResolutionEvidence, profile: &ConformanceProfile) -> Vec<Reason> {
    let reading = match &evidence.reading {
        Ok(reading) => reading,
        Err(error) => return vec![chain_error_reason(error)],
    };
    let mut reasons = unsettled_reading_reasons(reading, evidence.block, evidence.chain_id, evidence.now);
    match &reading.answer {
        EnsAnswer::Unregistered => reasons.push(Reason::new(ReasonCode::NameUnregistered)),
        EnsAnswer::NoResolver(address) => {
            reasons.push(resolver_missing_reason(address.as_ref().map(ToString::to_string)))
        }
        EnsAnswer::Records(found) => {
            reasons.extend(wildcard_and_offchain_reasons(found));
            reasons.extend(check_expiry(&evidence.name, reading.expiry, reading.block.timestamp));
            reasons.extend(check_record_values(&found.records, profile));
            reasons.extend(evidence.misspelt_keys.iter().map(|(key, spelt)| misspelt_key_reason(*key, spelt)));
            reasons.extend(holder_unreadable_reason(reading.holder));
            reasons.extend(check_owner(evidence, found));
        }
    }
    reasons
}

/// Reasons against relying on a reading: a single third-party endpoint, an old block, or a change that is not final.
pub fn unsettled_reading_reasons(
    reading: &NameReading,
    block: BlockSelector,
    chain_id: u64,
    now: Timestamp,
) -> Vec<Reason> {
    [
        single_endpoint_reason(reading),
        old_block_reason(&reading.block, block, chain_id, now),
        pending_change_reason(reading),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The location in a reason if the machine has no network: neither an endpoint nor a setting is to blame.
pub const NO_NETWORK: &str = "network";

/// The reason for a failed reading.
pub fn chain_error_reason(error: &ChainError) -> Reason {
    let code = match error {
        ChainError::NoNetwork(why) => {
            let reason = Reason::new(ReasonCode::RpcUnreachable).message("This machine seems to have no network.");
            return reason.at_place(NO_NETWORK).observed(why.symptom_of_all_hosts());
        }
        ChainError::Unreachable(_) | ChainError::Late { .. } | ChainError::TooFew { .. } => ReasonCode::RpcUnreachable,
        ChainError::Disagree(_) => ReasonCode::RpcDisagree,
        ChainError::Unproven(_) => ReasonCode::ProofRefused,
        ChainError::HeaderUnproven(_) => ReasonCode::HeaderUnproven,
        ChainError::WrongChain { .. } | ChainError::WrongGenesis { .. } => ReasonCode::RpcWrongChain,
        ChainError::BlockUnavailable { .. } => ReasonCode::BlockUnavailable,
        ChainError::Resolver(_) => ReasonCode::ResolverFailed,
        ChainError::Ccip(_) => ReasonCode::CcipFailed,
        ChainError::LocalLimit(_) => ReasonCode::LocalLimit,
    };
    Reason::new(code).observed(error.to_string())
}

fn single_endpoint_reason(reading: &NameReading) -> Option<Reason> {
    reading.proof.relies_on_single_third_party().then(|| Reason::new(ReasonCode::SingleRpc))
}

/// The reason if the chain's block is too old to rely on. A block selected by number is never too old.
pub fn old_block_reason(block: &ChainBlock, selector: BlockSelector, chain_id: u64, now: Timestamp) -> Option<Reason> {
    if selector.number().is_some() {
        return None;
    }
    let (age, most) = (now.duration_since(block.timestamp), max_finalized_header_age(chain_id));
    (age > most && !clresolve_core::mutant!("old-header")).then(|| {
        Reason::new(ReasonCode::ChainBehind)
            .expected(format!("at most {} minutes old", most.as_mins()))
            .observed(format!("{} minutes old (block {})", age.as_mins(), block.number))
    })
}

fn pending_change_reason(reading: &NameReading) -> Option<Reason> {
    let latest = match reading.latest.as_ref()? {
        Ok(latest) => latest,
        // An undecided value counts as a change.
        Err(error @ ChainError::Disagree(_)) => {
            return Some(Reason::new(ReasonCode::RecordPending).observed(error.to_string()));
        }
        Err(error) => {
            return Some(
                chain_error_reason(error)
                    .at_place("latest")
                    .message("The records at the newest block could not be read."),
            );
        }
    };
    if latest.agrees_with_reading(reading) {
        return None;
    }
    let mut changed = match (&reading.answer, &latest.answer) {
        (EnsAnswer::Records(then), EnsAnswer::Records(now)) => changed_keys(&then.records, &now.records),
        _ => Vec::new(),
    };
    if reading.holder != latest.holder {
        changed.push("the holder");
    }
    if changed.is_empty() && !clresolve_core::mutant!("twins-of-resolvers-are-settled") {
        changed.push("the resolver");
    }
    (!changed.is_empty())
        .then(|| Reason::new(ReasonCode::RecordPending).observed(format!("changed: {}", changed.join(", "))))
}

fn changed_keys(then: &TextRecordSet, now: &TextRecordSet) -> Vec<&'static str> {
    let asked: BTreeSet<TextRecordKey> = then.iter().chain(now.iter()).map(|(key, _)| key).collect();
    asked.into_iter().filter(|key| then.get(*key) != now.get(*key)).map(TextRecordKey::as_str).collect()
}

fn resolver_missing_reason(address: Option<String>) -> Reason {
    let reason = Reason::new(ReasonCode::ResolverMissing);
    match address {
        Some(address) => reason.observed(format!("{address} has no code")),
        None => reason,
    }
}

fn wildcard_and_offchain_reasons(found: &ResolvedRecords) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if let Some(ancestor) = &found.wildcard {
        reasons.push(Reason::new(ReasonCode::NameWildcard).observed(ancestor.as_str()));
    }
    if found.offchain {
        reasons.push(Reason::new(ReasonCode::RecordOffchain));
    }
    reasons
}

/// Whether the registration has ended, or ends soon, at the block's timestamp, so that the result does not depend on
/// when it is judged. Only second-level `.eth` names can be released: other names do not expire at the registrar.
fn check_expiry(name: &EnsName, expiry: Option<Timestamp>, now: Timestamp) -> Option<Reason> {
    let expiry = expiry?;
    let code = if name.is_second_level_eth() && now.duration_since(expiry) > GRACE {
        ReasonCode::NameReleased
    } else if expiry <= now {
        ReasonCode::NameExpired
    } else if expiry.duration_since(now) <= EXPIRY_NOTICE {
        ReasonCode::NameExpiring
    } else {
        return None;
    };
    Some(Reason::new(code).observed(expiry.to_string()))
}

fn check_record_values(records: &TextRecordSet, profile: &ConformanceProfile) -> Vec<Reason> {
    let missing =
        profile.required_records().iter().filter(|key| *records.get(**key) == TextRecord::Absent).map(|key| {
            Reason::new(ReasonCode::TxtMissing)
                .with_requirement(requirement_id_of_key(*key))
                .at_place(key.as_str())
                .message(format!("The text record {key} is not set."))
        });
    let present = records.iter().filter_map(|(key, record)| check_record_value(key, record));
    missing.chain(present).collect()
}

/// A record whose key resembles that of a missing one. Its value is not read.
fn misspelt_key_reason(key: TextRecordKey, spelt: &str) -> Reason {
    Reason::new(ReasonCode::TxtKeyNearMiss).at_place(spelt).expected(key.as_str()).observed(spelt)
}

/// The checklist row that requires `key`.
fn requirement_id_of_key(key: TextRecordKey) -> &'static str {
    match key {
        TextRecordKey::Agentcard => "CL-36",
        TextRecordKey::CidAgentcard => "CL-37",
        TextRecordKey::MirrorIpfs => "CL-38",
        TextRecordKey::Checksum => "CL-39",
        TextRecordKey::Owner => "CL-40",
        _ => "CL-35",
    }
}

/// The defect of a value, if any: unsafe characters, otherwise surrounding white space.
fn check_record_value(key: TextRecordKey, record: &TextRecord) -> Option<Reason> {
    let text = match record {
        TextRecord::Absent => return None,
        TextRecord::NotUtf8(bytes) => {
            let head = &bytes[..bytes.len().min(64)];
            let hex = alloy_primitives::hex::encode_prefixed(head);
            return Some(
                Reason::new(ReasonCode::TxtUnsafeCharacters)
                    .at_place(key.as_str())
                    .observed(hex)
                    .expected("valid UTF-8"),
            );
        }
        TextRecord::Text(text) => text,
    };
    if let Some(character) = first_unsafe_character_in_value(text) {
        let found = format!("U+{:04X} in {}", u32::from(character), UntrustedText::new(text));
        return Some(Reason::new(ReasonCode::TxtUnsafeCharacters).at_place(key.as_str()).observed(found));
    }
    let trimmed = text.trim();
    (trimmed != text).then(|| {
        Reason::new(ReasonCode::TxtValueInexact).at_place(key.as_str()).expected(trimmed).observed(text.as_str())
    })
}

/// Whether the chain shows that `cl.owner` controls the name.
pub fn owner_is_proven(evidence: &ResolutionEvidence) -> bool {
    let holder = evidence.reading.as_ref().ok().and_then(|reading| reading.holder.address());
    match (&evidence.owner, holder) {
        (ClOwnerEvidence::Read(_), Some(_)) if clresolve_core::mutant!("every-owner-is-proven") => true,
        (ClOwnerEvidence::Read(owner), Some(holder)) => {
            owner.address == Some(holder) || owner.holder.address() == Some(holder)
        }
        _ => false,
    }
}

/// The name's holder and expiry are unknown.
fn holder_unreadable_reason(holder: NameHolder) -> Option<Reason> {
    holder.ensv2_migration_sign().map(|how| Reason::new(ReasonCode::HolderUnreadable).observed(how.to_string()))
}

fn check_owner(evidence: &ResolutionEvidence, found: &ResolvedRecords) -> Option<Reason> {
    let owner = RecordUsability::from_record(&found.records, TextRecordKey::Owner).text()?;
    if owner_is_proven(evidence) {
        return None;
    }
    let holder = evidence.reading.as_ref().map_or(NameHolder::Nobody, |reading| reading.holder);
    let observed = match (&evidence.owner, holder) {
        // `holder_unreadable` reports this already.
        (_, NameHolder::Unreadable { .. }) => return None,
        (_, NameHolder::Nobody) => "the registry names no holder".to_owned(),
        (ClOwnerEvidence::Failed(cause), _) => cause.to_string(),
        (ClOwnerEvidence::NotAName(cause), _) => cause.to_string(),
        (ClOwnerEvidence::Read(ClOwnerReading { holder, .. }), _) if holder.ensv2_migration_sign().is_some() => {
            return holder_unreadable_reason(*holder)
                .map(|reason| reason.at_place(TextRecordKey::Owner.as_str()).expected(owner));
        }
        (_, NameHolder::Address(holder)) => format!("the holder is {holder}"),
    };
    Some(
        Reason::new(ReasonCode::OwnerUnproven)
            .at_place(TextRecordKey::Owner.as_str())
            .expected(owner)
            .observed(observed),
    )
}

#[cfg(test)]
mod tests {
    use clresolve_core::reading::LatestNameState;
    use clresolve_core::world::{MAINNET_ID, SANDBOX_ID};
    use jiff::Timestamp;

    use super::*;
    use crate::sample;

    /// The reason for a reading after `change` to its newest block.
    fn reason_for(change: impl FnOnce(&mut Result<LatestNameState, ChainError>)) -> Option<Reason> {
        let evidence = sample::faultless_evidence(&sample::good_card(), &bytes::Bytes::new(), Timestamp::UNIX_EPOCH);
        let mut reading = evidence.reading.expect("it was read");
        change(reading.latest.as_mut().expect("it was asked"));
        pending_change_reason(&reading)
    }

    fn observed_in(change: impl FnOnce(&mut LatestNameState)) -> Option<String> {
        let reason = reason_for(|latest| change(latest.as_mut().expect("it was read")))?;
        assert_eq!(reason.code, ReasonCode::RecordPending);
        reason.observed
    }

    #[test]
    fn finalized_block_is_behind_after_the_minutes_of_its_chain() {
        let profiles = crate::profile::ConformanceProfiles::builtin();
        let profile = profiles.get(crate::profile::DEFAULT).expect("it is built in");
        let mut evidence =
            sample::faultless_evidence(&sample::good_card(), &bytes::Bytes::new(), Timestamp::UNIX_EPOCH);
        let mut is_behind = |chain_id, age: SignedDuration| {
            evidence.chain_id = chain_id;
            evidence.now = Timestamp::UNIX_EPOCH + age;
            check_records(&evidence, &profile).iter().any(|reason| reason.code == ReasonCode::ChainBehind)
        };
        for (chain_id, minutes) in [(MAINNET_ID, 25), (11_155_111, 45), (8453, 45), (SANDBOX_ID, 45)] {
            let most = SignedDuration::from_mins(minutes);
            assert!(!is_behind(chain_id, most), "{chain_id}");
            assert!(is_behind(chain_id, most + SignedDuration::from_secs(1)), "{chain_id}");
        }
    }

    #[test]
    fn eth_name_is_released_after_90_days_of_grace() {
        let days = |days: i64| SignedDuration::from_hours(24 * days);
        let second = SignedDuration::from_secs(1);
        for (name, since_expiry, expected) in [
            ("agent.eth", days(-31), None),
            ("agent.eth", days(-30), Some(ReasonCode::NameExpiring)),
            ("agent.eth", -second, Some(ReasonCode::NameExpiring)),
            ("agent.eth", SignedDuration::ZERO, Some(ReasonCode::NameExpired)),
            ("agent.eth", days(90), Some(ReasonCode::NameExpired)),
            ("agent.eth", days(90) + second, Some(ReasonCode::NameReleased)),
            ("agent.eth", days(1000), Some(ReasonCode::NameReleased)),
            // The registrar has no subnames, and no names of other top-level domains.
            ("sub.agent.eth", days(90) + second, Some(ReasonCode::NameExpired)),
            ("agent.xyz", days(90) + second, Some(ReasonCode::NameExpired)),
        ] {
            let parsed = EnsName::parse(name).expect("a name");
            let found = check_expiry(&parsed, Some(Timestamp::UNIX_EPOCH), Timestamp::UNIX_EPOCH + since_expiry);
            assert_eq!(found.map(|reason| reason.code), expected, "{name} {since_expiry}");
            assert_eq!(check_expiry(&parsed, None, Timestamp::UNIX_EPOCH), None, "{name}");
        }
    }

    #[test]
    fn released_name_has_no_second_code_about_its_expiry() {
        let profiles = crate::profile::ConformanceProfiles::builtin();
        let profile = profiles.get(crate::profile::DEFAULT).expect("it is built in");
        let released = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(91 * 24);
        let mut evidence = sample::faultless_evidence(&sample::good_card(), &bytes::Bytes::new(), released);
        evidence.reading.as_mut().expect("it was read").expiry = Some(Timestamp::UNIX_EPOCH);
        assert_eq!(sample::distinct_codes(&check_records(&evidence, &profile)), ["name-released"]);
    }

    #[test]
    fn whatever_differs_at_the_newest_block_is_pending() {
        assert_eq!(observed_in(|_| ()), None);
        assert_eq!(observed_in(|latest| latest.holder = NameHolder::Nobody).as_deref(), Some("changed: the holder"));
        let gone = observed_in(|latest| latest.answer = EnsAnswer::Unregistered);
        assert_eq!(gone.as_deref(), Some("changed: the resolver"));
        // It says the same, for now.
        let twin = observed_in(|latest| match &mut latest.answer {
            EnsAnswer::Records(found) => found.resolver = [9; 20].into(),
            other => panic!("{other:?}"),
        });
        assert_eq!(twin.as_deref(), Some("changed: the resolver"));
        let disagree = ChainError::Disagree(vec![("a".to_owned(), "another".to_owned())]);
        let undecided = reason_for(|latest| *latest = Err(disagree)).expect("it counts as a change");
        assert_eq!(undecided.code, ReasonCode::RecordPending);
        let failed = reason_for(|latest| *latest = Err(ChainError::Unreachable(Vec::new()))).expect("a failure");
        assert_eq!((failed.code, failed.place.as_deref()), (ReasonCode::RpcUnreachable, Some("latest")));
    }
}
