//! Differing sources, and the record to set.

use super::*;

#[test]
fn where_all_agree_there_is_no_drift() {
    let row = Row::of(1, &trusted());
    assert_eq!(row.drift.agreements(), [Agreement::Agree; 6]);
    assert!(!row.has_findings() && row.txt.is_empty());
    assert_eq!(Draft::of(&report(&[], Ending::Complete), &row), None);
}

#[test]
fn the_source_that_differs_is_told() {
    use Agreement::{Agree, Differ, Open};
    let pairs = |verdict: &Verdict| Drift::of(verdict).agreements();
    assert_eq!(pairs(&wrong_checksum()), [Differ, Differ, Agree, Agree, Agree, Agree]);
    assert_eq!(pairs(&changed_host()), [Differ, Agree, Differ, Agree, Agree, Agree]);
    let other_entry = failing([Reason::new(Code::TxtEntryMismatch).at("cl.entry")]);
    assert_eq!(pairs(&other_entry), [Agree, Agree, Agree, Differ, Agree, Agree]);
    let other_schema = failing([Reason::new(Code::PublishedVersionMutated)]);
    assert_eq!(pairs(&other_schema), [Agree, Agree, Agree, Agree, Agree, Differ]);
    let mut host_down = trusted();
    see(&mut host_down, Step::FetchHttps, json!({"unavailable": "404"}));
    assert_eq!(pairs(&host_down), [Open, Agree, Open, Agree, Agree, Agree]);
}

#[test]
fn a_record_is_proposed_where_the_cid_proves_its_value() {
    assert_eq!(txt(&wrong_checksum()), [format!("cl.checksum.agentcard={}", digest("card"))]);
    let missing = failing([Reason::new(Code::TxtMissing).at("cl.checksum.agentcard")]);
    assert_eq!(txt(&missing), [format!("cl.checksum.agentcard={}", digest("card"))]);
    let entry = failing([Reason::new(Code::TxtEntryMismatch).at("cl.entry")]);
    assert_eq!(txt(&entry), ["cl.entry=x402://a.eth/summarize/v1"]);
}

#[test]
fn owner_of_a_proven_card_is_proposed_for_any_record_defect() {
    let owned = |reason: Reason| {
        let mut verdict = failing([reason.at("cl.owner").expected("trimmed")]);
        see(&mut verdict, Step::Card, json!({"owner": "o.eth"}));
        verdict
    };
    for code in [Code::TxtOwnerMismatch, Code::TxtMissing, Code::TxtValueInexact, Code::TxtUnsafeCharacters] {
        let mut verdict = owned(Reason::new(code));
        assert_eq!(txt(&verdict), ["cl.owner=o.eth"], "{code}");
        verdict.identity.as_mut().expect("a card").card.sha256 = Digest::of(b"other").hex();
        assert_eq!(txt(&verdict), [""; 0], "{code}: another card than the proven one");
    }
    for code in [Code::OwnerUnproven, Code::PublisherNotAllowed] {
        let of_no_value = Reason { effect: Effect::Fail, ..Reason::new(code) };
        assert_eq!(txt(&owned(of_no_value)), [""; 0], "{code}");
    }
    let nameless = failing([Reason::new(Code::TxtValueInexact).at("cl.owner").expected("trimmed")]);
    assert_eq!(txt(&nameless), [""; 0]);
}

#[test]
fn what_a_host_served_is_never_proposed() {
    assert_eq!(txt(&changed_host()), [""; 0]);
    let mut unproven = wrong_checksum();
    see(&mut unproven, Step::FetchIpfs, json!({"gateways": []}));
    assert_eq!(txt(&unproven), [""; 0]);
}

#[test]
fn a_card_with_a_defect_gets_no_record() {
    for defect in [Code::EntryVersionNoncompliant, Code::CardFieldMissing, Code::VerbUnknown, Code::CardEnsMismatch] {
        let mut verdict = failing([Reason::new(Code::ChecksumMismatch), Reason::new(defect)]);
        see(&mut verdict, Step::Records, json!({"records": {"cl.checksum.agentcard": digest("other")}}));
        assert_eq!(txt(&verdict), [""; 0], "{defect}");
    }
}

#[test]
fn a_value_that_cannot_be_copied_is_not_proposed() {
    for owner in ["a`b.eth", "a|b.eth", "a\u{202e}.eth", "a b.eth", "a\\b.eth", &"a".repeat(201)] {
        let mut verdict = failing([Reason::new(Code::TxtOwnerMismatch).at("cl.owner")]);
        see(&mut verdict, Step::Card, json!({"owner": owner}));
        assert_eq!(txt(&verdict), [""; 0], "{owner}");
    }
}

#[test]
fn without_a_card_records_do_not_differ_from_it() {
    let mut verdict = failing([Reason::new(Code::TxtMissing).at("cl.entry")]);
    assert_eq!(Drift::of(&verdict).txt_card, Agreement::Differ);
    for report in verdict.steps.iter_mut().filter(|report| matches!(report.step, Step::Card | Step::Binding)) {
        report.status = Status::Skip;
    }
    assert_eq!(Drift::of(&verdict).txt_card, Agreement::Open);
}
