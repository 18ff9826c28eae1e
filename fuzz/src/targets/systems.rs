//! Cards of every system: recognised by their shape, judged, converted.

use clresolve_cards::convert::{MAX_LOST, convert_card};
use clresolve_cards::lint::lint_document;
use clresolve_cards::system::{CardLintContext, CardSystem, CardSystemDetection, detect_card_system};
use clresolve_core::reason::ReasonEffect;
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::profile::{ConformanceProfiles, DEFAULT};

/// Any bytes as a card of any system: findings have a place in the text, and a conversion lists what it loses.
pub(crate) fn system(input: &[u8]) {
    let profile = ConformanceProfiles::builtin().get(DEFAULT).expect("it is built in");
    let rules = CardLintContext::from_profile(&profile);
    let lines = input.split(|byte| *byte == b'\n').count();
    let card = AgentCard::parse(input);
    for named in CardSystem::ALL.iter().copied().map(Some).chain([None]) {
        let report = lint_document(input, named, &rules);
        assert_eq!(report.valid, report.findings.iter().all(|finding| finding.effect != ReasonEffect::Fail));
        assert!(card.is_ok() || !report.valid, "what is no card is found valid");
        assert!(named.is_none() || report.system == named);
        for finding in &report.findings {
            assert!(finding.line.is_none_or(|line| (1..=lines).contains(&line)), "{finding:?}");
            assert!(finding.span.as_ref().is_none_or(|span| input.get(span.clone()).is_some()), "{finding:?}");
        }
    }
    let Ok(card) = card else { return };
    if let CardSystemDetection::Several(systems) = detect_card_system(&card) {
        assert!(systems.len() > 1);
    }
    for from in CardSystem::ALL {
        for to in CardSystem::ALL {
            let made = convert_card(&card, *from, *to, &rules);
            assert!(made.lost.len() <= MAX_LOST && (made.lost_further == 0 || made.lost.len() == MAX_LOST));
            AgentCard::parse(made.card.to_string().as_bytes()).expect("what is made is a card");
        }
    }
}
