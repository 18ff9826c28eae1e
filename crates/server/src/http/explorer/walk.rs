//! Draws the diagram of a resolution: name → chain → two sources → proof → card → verdict.

use clresolve_core::reason::{Reason, ReasonEffect, ResolutionStep};
use clresolve_core::state::TrustState;
use clresolve_verdict::verdict::{StepReport, StepStatus, Verdict};
use maud::{Markup, html};

use super::html::{foreign_text, group_thousands, shorten_digest};

/// The status of a stage in the diagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DiagramStageStatus {
    /// Nothing has been asked yet.
    Waiting,
    Pass,
    Fail,
    Unknown,
    /// Not needed, or irrelevant after an earlier stage.
    Skip,
}

impl DiagramStageStatus {
    /// The class in the style sheet.
    const fn css_class(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Unknown => "unknown",
            Self::Skip => "skip",
        }
    }

    /// The icon's text.
    const fn icon_text(self) -> &'static str {
        match self {
            Self::Waiting => "to be proven",
            Self::Pass => "holds",
            Self::Fail => "fails",
            Self::Unknown => "open",
            Self::Skip => "not needed",
        }
    }

    /// The worst of several marks. A stage whose steps are all skipped is skipped.
    fn worst_status(marks: impl Iterator<Item = Self>) -> Self {
        let weight = |mark: &Self| match mark {
            Self::Skip | Self::Waiting => 0,
            Self::Pass => 1,
            Self::Unknown => 2,
            Self::Fail => 3,
        };
        marks.max_by_key(weight).unwrap_or(Self::Skip)
    }
}

impl From<StepStatus> for DiagramStageStatus {
    fn from(status: StepStatus) -> Self {
        match status {
            StepStatus::Pass => Self::Pass,
            StepStatus::Fail => Self::Fail,
            StepStatus::Unknown => Self::Unknown,
            StepStatus::Skip => Self::Skip,
        }
    }
}

impl From<TrustState> for DiagramStageStatus {
    fn from(state: TrustState) -> Self {
        match state {
            TrustState::Trusted => Self::Pass,
            TrustState::Untrusted => Self::Fail,
            TrustState::Indeterminate => Self::Unknown,
        }
    }
}

/// The icon of a mark: lines in a 24 by 24 square. Its shape carries the same information as its colour.
pub(super) fn status_icon(mark: DiagramStageStatus) -> Markup {
    html! {
        svg.sign viewBox="0 0 24 24" aria-hidden="true" {
            @match mark {
                DiagramStageStatus::Waiting => circle cx="12" cy="12" r="2.5" {},
                DiagramStageStatus::Pass => path d="M5 12.5l4.6 4.6L19 7.6" {},
                DiagramStageStatus::Fail => path d="M6.5 6.5l11 11M17.5 6.5l-11 11" {},
                DiagramStageStatus::Unknown => {
                    path d="M8.6 9a3.5 3.5 0 1 1 5 3.1c-1.1.6-1.6 1.3-1.6 2.4" {}
                    path d="M12 18.4v.2" {}
                },
                DiagramStageStatus::Skip => path d="M6.5 12h11" {},
            }
        }
    }
}

/// The heading of an answer about `name`: a conclusion in one word, with its icon.
pub(super) fn conclusion_heading(mark: DiagramStageStatus, word: &str, name: &str) -> Markup {
    html! { h2 #state { span.seal { (status_icon(mark)) } span.state { (word) } " " span.name { (foreign_text(name)) } } }
}

struct DiagramStage {
    id: &'static str,
    title: &'static str,
    /// What the stage proves.
    asks: &'static str,
    steps: &'static [ResolutionStep],
}

const NAME: DiagramStage =
    DiagramStage { id: "name", title: "Name", asks: "Has it a normal form?", steps: &[ResolutionStep::Name] };
const CHAIN: DiagramStage = DiagramStage {
    id: "chain",
    title: "Chain",
    asks: "What do its records say, at one block?",
    steps: &[ResolutionStep::Records],
};
const HTTPS: DiagramStage =
    DiagramStage { id: "https", title: "Web host", asks: "The card, over HTTPS", steps: &[ResolutionStep::FetchHttps] };
const IPFS: DiagramStage = DiagramStage {
    id: "ipfs",
    title: "IPFS",
    asks: "The card, each block hashed",
    steps: &[ResolutionStep::FetchIpfs],
};
const PROOF: DiagramStage = DiagramStage {
    id: "proof",
    title: "Proof",
    asks: "Do CID and SHA-256 fit the bytes?",
    steps: &[ResolutionStep::Integrity],
};
const CARD: DiagramStage = DiagramStage {
    id: "card",
    title: "Card",
    asks: "Does it fit the records and the rules?",
    steps: &[
        ResolutionStep::Card,
        ResolutionStep::Binding,
        ResolutionStep::Entry,
        ResolutionStep::Verbs,
        ResolutionStep::Schemas,
    ],
};
const VERDICT: DiagramStage =
    DiagramStage { id: "verdict", title: "Verdict", asks: "One answer, with its evidence", steps: &[] };

/// The diagram before a name is entered.
pub(super) fn empty_diagram() -> Markup {
    let mark = DiagramStageStatus::Waiting;
    draw_diagram(&|stage| (mark, mark.icon_text(), stage.asks.to_owned()))
}

/// The diagram of a verdict.
pub(super) fn verdict_diagram(verdict: &Verdict) -> Markup {
    draw_diagram(&|stage| {
        if stage.id == VERDICT.id {
            return (verdict.state.into(), verdict.state.as_str(), reason_count_text(verdict));
        }
        let mark = stage_status(stage, verdict);
        (mark, mark.icon_text(), stage_summary(stage, mark, verdict))
    })
}

/// Draws all stages. `caption` returns the status of a stage, its word, and a few words that may contain foreign text.
fn draw_diagram(caption: &dyn Fn(&DiagramStage) -> (DiagramStageStatus, &'static str, String)) -> Markup {
    let one = |stage: &DiagramStage| {
        let (mark, word, seen) = caption(stage);
        let DiagramStage { id, title, steps, .. } = stage;
        let steps: Vec<_> = steps.iter().map(|step| step.slug()).collect();
        html! {
            li.stage.(mark.css_class()) data-stage=(id) data-steps=(steps.join(" ")) {
                span.head { span.dot { (status_icon(mark)) } span.title { (title) } }
                " " span.word { (word) }
                " " span.seen { (foreign_text(&seen)) }
            }
        }
    };
    html! {
        section.picture aria-labelledby="walk-title" {
            h2 #walk-title { "Resolution steps" }
            ol.walk #walk {
                (one(&NAME)) (one(&CHAIN))
                li.fork { span.unseen { "Two sources:" } ul { (one(&HTTPS)) (one(&IPFS)) } }
                (one(&PROOF)) (one(&CARD)) (one(&VERDICT))
            }
            // For the script, which shows a resolution while it runs.
            @for mark in [DiagramStageStatus::Pass, DiagramStageStatus::Fail, DiagramStageStatus::Unknown, DiagramStageStatus::Skip] {
                template data-mark=(mark.css_class()) data-word=(mark.icon_text()) { (status_icon(mark)) }
            }
        }
    }
}

fn reason_count_text(verdict: &Verdict) -> String {
    match verdict.reasons.len() {
        0 => "every step holds".to_owned(),
        1 => "one reason".to_owned(),
        more => format!("{more} reasons"),
    }
}

fn stage_status(stage: &DiagramStage, verdict: &Verdict) -> DiagramStageStatus {
    let steps = verdict.steps.iter().filter(|report| stage.steps.contains(&report.step));
    let by_steps = steps.map(|report| DiagramStageStatus::from(report.status));
    DiagramStageStatus::worst_status(
        by_steps.chain(wrong_bytes_reason(stage, verdict).map(|_| DiagramStageStatus::Fail)),
    )
}

/// The reason of a source that returned wrong bytes. The proof step detects them, but the failure is shown at the
/// source.
fn wrong_bytes_reason<'v>(stage: &DiagramStage, verdict: &'v Verdict) -> Option<&'v Reason> {
    let of_source =
        |reason: &&Reason| reason.step == ResolutionStep::Integrity && reason.place.as_deref() == Some(stage.id);
    verdict.reasons.iter().filter(|reason| reason.effect == ReasonEffect::Fail).find(of_source)
}

/// What a stage found, in a few words. A stage that failed shows the reason code.
fn stage_summary(stage: &DiagramStage, mark: DiagramStageStatus, verdict: &Verdict) -> String {
    let effect = match mark {
        DiagramStageStatus::Fail => Some(ReasonEffect::Fail),
        DiagramStageStatus::Unknown => Some(ReasonEffect::Unknown),
        DiagramStageStatus::Pass | DiagramStageStatus::Skip | DiagramStageStatus::Waiting => None,
    };
    let of_stage = |reason: &&Reason| Some(reason.effect) == effect && stage.steps.contains(&reason.step);
    if let Some(reason) = verdict.reasons.iter().find(of_stage).or_else(|| wrong_bytes_reason(stage, verdict)) {
        return reason.code.to_string();
    }
    let report = |step: ResolutionStep| verdict.steps.iter().find(|report| report.step == step);
    let words = match stage.id {
        "name" => verdict.name.normalized.clone(),
        "chain" => {
            let block = verdict.anchor.as_ref().map(|anchor| &anchor.block);
            block.map(|block| format!("block {}, {}", group_thousands(block.number), block.tag))
        }
        "https" => {
            report(ResolutionStep::FetchHttps).and_then(|report| card_source_summary(report, "from the card’s URL"))
        }
        "ipfs" => report(ResolutionStep::FetchIpfs).and_then(|report| card_source_summary(report, "proven")),
        "proof" => {
            let proven = report(ResolutionStep::Integrity).filter(|report| report.evidence["proven"] == true);
            proven
                .and(verdict.identity.as_ref())
                .map(|identity| format!("SHA-256 {}", shorten_digest(&identity.card.sha256)))
        }
        _ => verdict.identity.as_ref().map(|identity| {
            let words = [identity.class.as_deref(), identity.version.as_deref()];
            let words = words.into_iter().flatten().chain(identity.verbs.iter().map(String::as_str));
            words.collect::<Vec<_>>().join(" · ")
        }),
    };
    words.unwrap_or_else(|| "nothing to judge".to_owned())
}

/// What a source of the card returned, or why it returned nothing.
fn card_source_summary(report: &StepReport, how: &str) -> Option<String> {
    let evidence = &report.evidence;
    let how = evidence["proven_by"].as_str().unwrap_or(how);
    if let Some(bytes) = evidence["bytes"].as_u64() {
        let bytes = format!("{} bytes, {how}", group_thousands(bytes));
        return Some(if report.status == StepStatus::Skip { how.to_owned() } else { bytes });
    }
    let of_gateway = || evidence["gateways"][0]["cause"].as_str();
    let asked = || (evidence["asked"] == false).then_some("not asked");
    evidence["unavailable"].as_str().or_else(of_gateway).or_else(asked).map(str::to_owned)
}
