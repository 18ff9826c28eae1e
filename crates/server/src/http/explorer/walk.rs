//! Draws the diagram of a resolution: name → chain → two sources → proof → card → verdict.

use clresolve_core::reason::{Effect, Reason, Step};
use clresolve_core::state::State;
use clresolve_verdict::verdict::{Status, StepReport, Verdict};
use maud::{Markup, html};

use super::html::{foreign, grouped, short};

/// The status of a stage in the diagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// Nothing has been asked yet.
    Waiting,
    Pass,
    Fail,
    Unknown,
    /// Not needed, or irrelevant after an earlier stage.
    Skip,
}

impl Mark {
    /// The class in the style sheet.
    const fn class(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Unknown => "unknown",
            Self::Skip => "skip",
        }
    }

    /// The icon's text.
    const fn word(self) -> &'static str {
        match self {
            Self::Waiting => "to be proven",
            Self::Pass => "holds",
            Self::Fail => "fails",
            Self::Unknown => "open",
            Self::Skip => "not needed",
        }
    }

    /// The worst of several marks. A stage whose steps are all skipped is skipped.
    fn worst(marks: impl Iterator<Item = Self>) -> Self {
        let weight = |mark: &Self| match mark {
            Self::Skip | Self::Waiting => 0,
            Self::Pass => 1,
            Self::Unknown => 2,
            Self::Fail => 3,
        };
        marks.max_by_key(weight).unwrap_or(Self::Skip)
    }
}

impl From<Status> for Mark {
    fn from(status: Status) -> Self {
        match status {
            Status::Pass => Self::Pass,
            Status::Fail => Self::Fail,
            Status::Unknown => Self::Unknown,
            Status::Skip => Self::Skip,
        }
    }
}

impl From<State> for Mark {
    fn from(state: State) -> Self {
        match state {
            State::Trusted => Self::Pass,
            State::Untrusted => Self::Fail,
            State::Indeterminate => Self::Unknown,
        }
    }
}

/// The icon of a mark: lines in a 24 by 24 square. Its shape carries the same information as its colour.
pub(super) fn sign(mark: Mark) -> Markup {
    html! {
        svg.sign viewBox="0 0 24 24" aria-hidden="true" {
            @match mark {
                Mark::Waiting => circle cx="12" cy="12" r="2.5" {},
                Mark::Pass => path d="M5 12.5l4.6 4.6L19 7.6" {},
                Mark::Fail => path d="M6.5 6.5l11 11M17.5 6.5l-11 11" {},
                Mark::Unknown => {
                    path d="M8.6 9a3.5 3.5 0 1 1 5 3.1c-1.1.6-1.6 1.3-1.6 2.4" {}
                    path d="M12 18.4v.2" {}
                },
                Mark::Skip => path d="M6.5 12h11" {},
            }
        }
    }
}

/// The heading of an answer about `name`: a conclusion in one word, with its icon.
pub(super) fn headline(mark: Mark, word: &str, name: &str) -> Markup {
    html! { h2 #state { span.seal { (sign(mark)) } span.state { (word) } " " span.name { (foreign(name)) } } }
}

struct Stage {
    id: &'static str,
    title: &'static str,
    /// What the stage proves.
    asks: &'static str,
    steps: &'static [Step],
}

const NAME: Stage = Stage { id: "name", title: "Name", asks: "Has it a normal form?", steps: &[Step::Name] };
const CHAIN: Stage =
    Stage { id: "chain", title: "Chain", asks: "What do its records say, at one block?", steps: &[Step::Records] };
const HTTPS: Stage = Stage { id: "https", title: "Web host", asks: "The card, over HTTPS", steps: &[Step::FetchHttps] };
const IPFS: Stage = Stage { id: "ipfs", title: "IPFS", asks: "The card, each block hashed", steps: &[Step::FetchIpfs] };
const PROOF: Stage =
    Stage { id: "proof", title: "Proof", asks: "Do CID and SHA-256 fit the bytes?", steps: &[Step::Integrity] };
const CARD: Stage = Stage {
    id: "card",
    title: "Card",
    asks: "Does it fit the records and the rules?",
    steps: &[Step::Card, Step::Binding, Step::Entry, Step::Verbs, Step::Schemas],
};
const VERDICT: Stage = Stage { id: "verdict", title: "Verdict", asks: "One answer, with its evidence", steps: &[] };

/// The diagram before a name is entered.
pub(super) fn waiting() -> Markup {
    picture(&|stage| Caption { mark: Mark::Waiting, word: Mark::Waiting.word(), seen: stage.asks.to_owned() })
}

/// The diagram of a verdict.
pub(super) fn of(verdict: &Verdict) -> Markup {
    picture(&|stage| {
        if stage.id == VERDICT.id {
            return Caption { mark: verdict.state.into(), word: verdict.state.as_str(), seen: counted(verdict) };
        }
        let mark = mark(stage, verdict);
        Caption { mark, word: mark.word(), seen: seen(stage, mark, verdict) }
    })
}

/// The text below a stage.
struct Caption {
    mark: Mark,
    word: &'static str,
    /// A few words. They may contain foreign text.
    seen: String,
}

fn picture(caption: &dyn Fn(&Stage) -> Caption) -> Markup {
    let one = |stage: &Stage| {
        let Caption { mark, word, seen } = caption(stage);
        let Stage { id, title, steps, .. } = stage;
        let steps: Vec<_> = steps.iter().map(|step| step.slug()).collect();
        html! {
            li.stage.(mark.class()) data-stage=(id) data-steps=(steps.join(" ")) {
                span.head { span.dot { (sign(mark)) } span.title { (title) } }
                " " span.word { (word) }
                " " span.seen { (foreign(&seen)) }
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
            @for mark in [Mark::Pass, Mark::Fail, Mark::Unknown, Mark::Skip] {
                template data-mark=(mark.class()) data-word=(mark.word()) { (sign(mark)) }
            }
        }
    }
}

fn counted(verdict: &Verdict) -> String {
    match verdict.reasons.len() {
        0 => "every step holds".to_owned(),
        1 => "one reason".to_owned(),
        more => format!("{more} reasons"),
    }
}

fn mark(stage: &Stage, verdict: &Verdict) -> Mark {
    let steps = verdict.steps.iter().filter(|report| stage.steps.contains(&report.step));
    let by_steps = steps.map(|report| Mark::from(report.status));
    Mark::worst(by_steps.chain(gave_others(stage, verdict).map(|_| Mark::Fail)))
}

/// The reason of a source that returned wrong bytes. The proof step detects them, but the failure is shown at the
/// source.
fn gave_others<'v>(stage: &Stage, verdict: &'v Verdict) -> Option<&'v Reason> {
    let of_source = |reason: &&Reason| reason.step == Step::Integrity && reason.place.as_deref() == Some(stage.id);
    verdict.reasons.iter().filter(|reason| reason.effect == Effect::Fail).find(of_source)
}

/// What a stage found, in a few words. A stage that failed shows the reason code.
fn seen(stage: &Stage, mark: Mark, verdict: &Verdict) -> String {
    let effect = match mark {
        Mark::Fail => Some(Effect::Fail),
        Mark::Unknown => Some(Effect::Unknown),
        Mark::Pass | Mark::Skip | Mark::Waiting => None,
    };
    let of_stage = |reason: &&Reason| Some(reason.effect) == effect && stage.steps.contains(&reason.step);
    if let Some(reason) = verdict.reasons.iter().find(of_stage).or_else(|| gave_others(stage, verdict)) {
        return reason.code.to_string();
    }
    let report = |step: Step| verdict.steps.iter().find(|report| report.step == step);
    let words = match stage.id {
        "name" => verdict.name.normalized.clone(),
        "chain" => {
            let block = verdict.anchor.as_ref().map(|anchor| &anchor.block);
            block.map(|block| format!("block {}, {}", grouped(block.number), block.tag))
        }
        "https" => report(Step::FetchHttps).and_then(|report| source(report, "from the card’s URL")),
        "ipfs" => report(Step::FetchIpfs).and_then(|report| source(report, "proven")),
        "proof" => {
            let proven = report(Step::Integrity).filter(|report| report.evidence["proven"] == true);
            proven.and(verdict.identity.as_ref()).map(|identity| format!("SHA-256 {}", short(&identity.card.sha256)))
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
fn source(report: &StepReport, how: &str) -> Option<String> {
    let evidence = &report.evidence;
    let how = evidence["proven_by"].as_str().unwrap_or(how);
    if let Some(bytes) = evidence["bytes"].as_u64() {
        let bytes = format!("{} bytes, {how}", grouped(bytes));
        return Some(if report.status == Status::Skip { how.to_owned() } else { bytes });
    }
    let of_gateway = || evidence["gateways"][0]["cause"].as_str();
    let asked = || (evidence["asked"] == false).then_some("not asked");
    evidence["unavailable"].as_str().or_else(of_gateway).or_else(asked).map(str::to_owned)
}
