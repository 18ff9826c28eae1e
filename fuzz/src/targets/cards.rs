//! What cards of other systems are computed from: Orloj's resources, and ledgers.

use clresolve_cards::generate::{GeneratedOrlojCards, OrlojResourceFile, PublicBaseUrl};
use clresolve_cards::ledger::{PacrDecayRate, PacrLedger, PacrLedgerMetrics};
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::check;
use jiff::Timestamp;

/// Every member that a card may have.
const MEMBERS: [&str; 13] = [
    "authentication",
    "capabilities",
    "defaultInputModes",
    "defaultOutputModes",
    "description",
    "name",
    "protocolVersion",
    "provider",
    "securityRequirements",
    "securitySchemes",
    "skills",
    "supportedInterfaces",
    "url",
];

/// Resources: a card that comes out is a card, holds no credential, and no member that is not of the mapping.
pub(crate) fn resources(input: &[u8]) {
    const BASE: &str = "https://orloj.example";
    let base: PublicBaseUrl = BASE.parse().expect("a base URL");
    let Ok(cards) =
        GeneratedOrlojCards::generate_cards(&[OrlojResourceFile { file: "o.yaml", bytes: input }], Some(base))
    else {
        return;
    };
    assert_eq!(cards.iter().count(), cards.len());
    for made in cards.iter() {
        let card = AgentCard::parse(made.text().as_bytes()).expect("a card");
        assert_eq!(card.document(), made.json());
        assert_eq!(check::find_secrets(&card), []);
        assert!(
            card.members().all(|(name, _)| name == "version" || MEMBERS.contains(&name.as_str())),
            "{}",
            made.text()
        );
        assert_eq!(card.text_at("/name"), Some(made.name()));
        assert!(card.text_at("/url").is_some_and(|url| url.starts_with(BASE)), "{}", made.text());
        assert_ne!(card.text_at("/description"), Some(""));
    }
}

/// A ledger: figures are finite and in their bounds, and those of the same lines in another order.
pub(crate) fn ledger(input: &[u8]) {
    let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    let Some(forwards) = projected(lines.iter().copied()) else { return };
    assert_eq!(projected(lines.iter().rev().copied()).as_ref(), Some(&forwards));
    let counts = forwards.ledger;
    assert_eq!(counts.records, counts.used + counts.later + counts.counterfactual + counts.unattributed);
    assert_eq!(counts.agents, forwards.agents.len());
    let ranks: f64 = forwards.agents.iter().map(|agent| agent.metadata.influence_rank).sum();
    assert!(counts.agents == 0 || (ranks - 1.0).abs() < 1e-6, "{ranks}");
    for agent in &forwards.agents {
        let figures = agent.metadata;
        assert!((0.0..=1.0).contains(&figures.critical_score), "{figures:?}");
        assert!(figures.avg_latency_ms.is_finite() && figures.avg_latency_ms > 0.0, "{figures:?}");
        assert!(figures.avg_cost_joules.is_finite() && figures.avg_cost_joules >= 0.0, "{figures:?}");
    }
}

fn projected<'l>(lines: impl Iterator<Item = &'l [u8]>) -> Option<PacrLedgerMetrics> {
    let mut ledger = PacrLedger::default();
    for line in lines {
        ledger.add_line(line).ok()?;
    }
    ledger.compute_metrics(Timestamp::from_second(1_767_225_600).ok()?, PacrDecayRate::default()).ok()
}
