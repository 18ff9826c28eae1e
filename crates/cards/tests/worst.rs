//! Checks that the worst known documents of 256 KiB stay within the memory budget, by counting allocations.
//!
//! `.ci/worst` counts their instructions and compares them with the time budget.

#[path = "worst/documents.rs"]
mod documents;

use std::collections::BTreeSet;

use allocation_counter::measure;
use clresolve_cards::lint::lint_document;
use clresolve_cards::signature::{CardTrustRoots, verify_card_signatures};
use clresolve_cards::system::CardLintContext;
use clresolve_core::json::JsonLimits;
use clresolve_core::reason::ReasonCode;
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::profile::{ConformanceProfiles, DEFAULT};
use serde_json::{Value, json};

use documents::seeds::{self, Judge};

/// Maximum number of bytes in use during a judgement, in addition to the document itself.
const MOST_BYTES: u64 = 16 << 20;

#[test]
fn every_known_worst_document_stays_within_16_mib() {
    let seeds = seeds::known();
    let judges: BTreeSet<Judge> = seeds.iter().map(|seed| seed.judge).collect();
    assert_eq!(judges, BTreeSet::from(Judge::ALL), "the corpus has documents for every judge");
    for seed in &seeds {
        assert!(seed.document().len() <= JsonLimits::CARD.bytes, "{seed:?}");
        // The evidence gathered for the judgement counts too.
        let peak = measure(|| _ = seed.prepared().judge_measured()).bytes_max;
        println!("{peak} bytes: {seed:?}");
        assert!(peak <= MOST_BYTES, "{peak} bytes: {seed:?}");
    }
}

/// One error for each value, each with its whole path, once used gigabytes.
fn long_names_over_long_lists(name: usize) -> Vec<u8> {
    let fixed =
        r#"{"url":"https://a.example/","protocolVersion":"0.3.0","defaultInputModes":[],"security":[{"":[0]}]}"#;
    let items = ",0".repeat((JsonLimits::CARD.bytes - fixed.len() - name) / 2);
    fixed.replacen("\"\":[0]", &format!("\"{}\":[0{items}]", "n".repeat(name)), 1).into_bytes()
}

#[test]
fn long_names_over_long_lists_are_too_complex_to_lint() {
    let profile = ConformanceProfiles::builtin().get(DEFAULT).expect("built in");
    for name in [1, 40, 1000, 64 << 10, 128 << 10] {
        let document = long_names_over_long_lists(name);
        let mut codes = Vec::new();
        let peak = measure(|| {
            let report = lint_document(&document, None, &CardLintContext::from_profile(&profile));
            codes = report.findings.iter().map(|finding| finding.code).collect();
        })
        .bytes_max;
        assert_eq!(codes, [ReasonCode::CardTooComplex], "names of {name} bytes");
        assert!(peak <= MOST_BYTES, "names of {name} bytes: {peak} bytes");
    }
}

#[test]
fn more_defects_than_are_looked_at_make_a_card_too_complex() {
    let profile = ConformanceProfiles::builtin().get(DEFAULT).expect("built in");
    let with =
        |card: &Value| lint_document(card.to_string().as_bytes(), None, &CardLintContext::from_profile(&profile));
    let codes =
        |card: Value| -> BTreeSet<ReasonCode> { with(&card).findings.iter().map(|finding| finding.code).collect() };
    let a2a = |modes: usize| json!({"supportedInterfaces": [], "defaultInputModes": vec![0; modes]});
    assert!(codes(a2a(8000)).contains(&ReasonCode::CardTooComplex));
    assert!(!codes(a2a(4000)).contains(&ReasonCode::CardTooComplex));
    let mut commandlayer = clresolve_verdict::sample::good_card();
    commandlayer["implements"] = json!(vec![0; 8000]);
    assert!(codes(commandlayer).contains(&ReasonCode::CardTooComplex));
}

#[test]
fn unsignable_number_is_found_without_a_path_per_value() {
    let mut value = json!(vec![0; 100]);
    for _ in 0..12 {
        value = json!({"n".repeat(1000): value});
    }
    let mut card = json!({"name": "a", "signatures": [{}], "x": vec![value; 12]});
    card["z"] = json!(1e300);
    let document = card.to_string().into_bytes();
    let mut place = None;
    let peak = measure(|| {
        let found = verify_card_signatures(&card, &CardTrustRoots::default());
        place = found.reasons.first().map(|reason| (reason.code, reason.place.clone()));
    })
    .bytes_max;
    assert_eq!(place, Some((ReasonCode::SignaturePayloadRefused, Some("/z".to_owned()))));
    assert!(peak <= 64 << 10, "{peak} bytes for {} bytes of card", document.len());
    assert!(AgentCard::parse(&document).is_err(), "the paths of its values are too long together");
}
