//! Differing sources, and the record to set.

use super::*;

#[test]
fn where_all_agree_there_is_no_drift() {
    let row = AuditRow::from_verdict(1, &trusted());
    assert_eq!(row.drift.agreements(), [SourceAgreement::Agree; 6]);
    assert!(!row.has_details() && row.txt.is_empty());
    assert_eq!(LogRowDraft::from_row(&report(&[], AuditEnding::Complete), &row), None);
}

#[test]
fn the_source_that_differs_is_told() {
    use SourceAgreement::{Agree, Differ, Open};
    let pairs = |verdict: &Verdict| CardSourceComparison::from_verdict(verdict).agreements();
    assert_eq!(pairs(&wrong_checksum()), [Differ, Differ, Agree, Agree, Agree, Agree]);
    assert_eq!(pairs(&changed_host()), [Differ, Agree, Differ, Agree, Agree, Agree]);
    let other_entry = failing([Reason::new(ReasonCode::TxtEntryMismatch).at_place("cl.entry")]);
    assert_eq!(pairs(&other_entry), [Agree, Agree, Agree, Differ, Agree, Agree]);
    let other_schema = failing([Reason::new(ReasonCode::PublishedVersionMutated)]);
    assert_eq!(pairs(&other_schema), [Agree, Agree, Agree, Agree, Agree, Differ]);
    let mut host_down = trusted();
    see(&mut host_down, ResolutionStep::FetchHttps, json!({"unavailable": "404"}));
    assert_eq!(pairs(&host_down), [Open, Agree, Open, Agree, Agree, Agree]);
}

#[test]
fn a_record_is_proposed_where_the_cid_proves_its_value() {
    assert_eq!(txt(&wrong_checksum()), [format!("cl.checksum.agentcard={}", digest("card"))]);
    let missing = failing([Reason::new(ReasonCode::TxtMissing).at_place("cl.checksum.agentcard")]);
    assert_eq!(txt(&missing), [format!("cl.checksum.agentcard={}", digest("card"))]);
    let entry = failing([Reason::new(ReasonCode::TxtEntryMismatch).at_place("cl.entry")]);
    assert_eq!(txt(&entry), ["cl.entry=x402://a.eth/summarize/v1"]);
}

#[test]
fn owner_of_a_proven_card_is_proposed_for_any_record_defect() {
    let owned = |reason: Reason| {
        let mut verdict = failing([reason.at_place("cl.owner").expected("trimmed")]);
        see(&mut verdict, ResolutionStep::Card, json!({"owner": "o.eth"}));
        verdict
    };
    for code in [
        ReasonCode::TxtOwnerMismatch,
        ReasonCode::TxtMissing,
        ReasonCode::TxtValueInexact,
        ReasonCode::TxtUnsafeCharacters,
    ] {
        let mut verdict = owned(Reason::new(code));
        assert_eq!(txt(&verdict), ["cl.owner=o.eth"], "{code}");
        verdict.identity.as_mut().expect("a card").card.sha256 = Digest::compute(b"other").to_hex();
        assert_eq!(txt(&verdict), [""; 0], "{code}: another card than the proven one");
    }
    for code in [ReasonCode::OwnerUnproven, ReasonCode::PublisherNotAllowed] {
        let of_no_value = Reason { effect: ReasonEffect::Fail, ..Reason::new(code) };
        assert_eq!(txt(&owned(of_no_value)), [""; 0], "{code}");
    }
    let nameless = failing([Reason::new(ReasonCode::TxtValueInexact).at_place("cl.owner").expected("trimmed")]);
    assert_eq!(txt(&nameless), [""; 0]);
}

#[test]
fn what_a_host_served_is_never_proposed() {
    assert_eq!(txt(&changed_host()), [""; 0]);
    let mut unproven = wrong_checksum();
    see(&mut unproven, ResolutionStep::FetchIpfs, json!({"gateways": []}));
    assert_eq!(txt(&unproven), [""; 0]);
}

#[test]
fn a_card_with_a_defect_gets_no_record() {
    for defect in [
        ReasonCode::EntryVersionNoncompliant,
        ReasonCode::CardFieldMissing,
        ReasonCode::VerbUnknown,
        ReasonCode::CardEnsMismatch,
    ] {
        let mut verdict = failing([Reason::new(ReasonCode::ChecksumMismatch), Reason::new(defect)]);
        see(&mut verdict, ResolutionStep::Records, json!({"records": {"cl.checksum.agentcard": digest("other")}}));
        assert_eq!(txt(&verdict), [""; 0], "{defect}");
    }
}

#[test]
fn a_value_that_cannot_be_copied_is_not_proposed() {
    for owner in ["a`b.eth", "a|b.eth", "a\u{202e}.eth", "a b.eth", "a\\b.eth", &"a".repeat(201)] {
        let mut verdict = failing([Reason::new(ReasonCode::TxtOwnerMismatch).at_place("cl.owner")]);
        see(&mut verdict, ResolutionStep::Card, json!({"owner": owner}));
        assert_eq!(txt(&verdict), [""; 0], "{owner}");
    }
}

#[test]
fn without_a_card_records_do_not_differ_from_it() {
    let mut verdict = failing([Reason::new(ReasonCode::TxtMissing).at_place("cl.entry")]);
    assert_eq!(CardSourceComparison::from_verdict(&verdict).txt_card, SourceAgreement::Differ);
    for report in
        verdict.steps.iter_mut().filter(|report| matches!(report.step, ResolutionStep::Card | ResolutionStep::Binding))
    {
        report.status = StepStatus::Skip;
    }
    assert_eq!(CardSourceComparison::from_verdict(&verdict).txt_card, SourceAgreement::Open);
}
