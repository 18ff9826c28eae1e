//! Drift: which of a name's text records, host, IPFS content and manifest agree, and the text records that would fix a
//! difference.

use serde::{Deserialize, Serialize};

use clresolve_core::digest::Digest;
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect, ResolutionStep};
use clresolve_core::records::TextRecordKey;
use clresolve_core::text;
use clresolve_verdict::verdict::{StepReport, StepStatus, Verdict};

/// Pairwise comparison of one name's sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardSourceComparison {
    /// The digest in `cl.checksum.agentcard`.
    pub claimed: Option<Digest>,
    /// The digest of the bytes that the card's URL served.
    pub served: Option<Digest>,
    /// The digest of the bytes that `cl.cid.agentcard` proves.
    pub proven: Option<Digest>,
    /// The records about the content, and what the URL served.
    pub txt_https: SourceAgreement,
    /// The records about the content, and what IPFS proved.
    pub txt_ipfs: SourceAgreement,
    /// What the URL served, and what IPFS proved.
    pub https_ipfs: SourceAgreement,
    /// The records that repeat the card (`cl.entry`, `cl.owner`), and the card.
    pub txt_card: SourceAgreement,
    /// Verbs and schema locations of the card, and the manifest.
    pub card_manifest: SourceAgreement,
    /// The bytes of the bound schemas and the binding records, and the manifest.
    pub schemas_manifest: SourceAgreement,
}

/// Whether two sources agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceAgreement {
    /// No difference was found.
    Agree,
    /// A difference was found.
    Differ,
    /// One of them was not requested, or did not respond.
    #[default]
    Open,
}

impl SourceAgreement {
    /// The symbol in reports.
    pub const fn symbol(self) -> char {
        match self {
            Self::Agree => '✓',
            Self::Differ => '✗',
            Self::Open => '–',
        }
    }

    /// The word in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agree => "agree",
            Self::Differ => "differ",
            Self::Open => "open",
        }
    }

    fn between(left: Option<Digest>, right: Option<Digest>) -> Self {
        match (left, right) {
            (Some(left), Some(right)) if left == right => Self::Agree,
            (Some(_), Some(_)) => Self::Differ,
            _ => Self::Open,
        }
    }

    /// [`Self::Differ`] if there is a difference that the digests do not show.
    fn differ_if(self, differs: bool) -> Self {
        if differs { Self::Differ } else { self }
    }
}

impl From<StepStatus> for SourceAgreement {
    fn from(status: StepStatus) -> Self {
        match status {
            StepStatus::Pass => Self::Agree,
            StepStatus::Fail => Self::Differ,
            StepStatus::Unknown | StepStatus::Skip => Self::Open,
        }
    }
}

impl CardSourceComparison {
    /// The compared pairs, as named in the columns of reports.
    pub const PAIRS: [&str; 6] =
        ["TXT = HTTPS", "TXT = IPFS", "HTTPS = IPFS", "TXT = card", "card = manifest", "schemas = manifest"];

    /// Compares the sources of a verdict.
    pub fn from_verdict(verdict: &Verdict) -> Self {
        let facts = VerdictAccessor(verdict);
        let (claimed, served, proven) =
            (facts.claimed_digest(), facts.digest(ResolutionStep::FetchHttps), facts.digest(ResolutionStep::FetchIpfs));
        let walk_failed = facts.status(ResolutionStep::FetchIpfs) == StepStatus::Fail;
        let has_card = facts.status(ResolutionStep::Card) != StepStatus::Skip;
        let unlike_card =
            has_card && [TextRecordKey::Entry, TextRecordKey::Owner].into_iter().any(|key| facts.record_fails(key));
        Self {
            claimed,
            served,
            proven,
            txt_https: SourceAgreement::between(claimed, served).differ_if(facts.has_failure(ReasonCode::CidMismatch)),
            txt_ipfs: SourceAgreement::between(claimed, proven).differ_if(walk_failed),
            https_ipfs: SourceAgreement::between(served, proven)
                .differ_if(facts.has_failure(ReasonCode::MirrorContentMismatch)),
            txt_card: SourceAgreement::from(facts.status(ResolutionStep::Binding)).differ_if(unlike_card),
            card_manifest: facts.status(ResolutionStep::Verbs).into(),
            schemas_manifest: facts.status(ResolutionStep::Schemas).into(),
        }
    }

    /// The results, in the order of [`Self::PAIRS`].
    pub const fn agreements(&self) -> [SourceAgreement; 6] {
        [self.txt_https, self.txt_ipfs, self.https_ipfs, self.txt_card, self.card_manifest, self.schemas_manifest]
    }

    /// Whether the card's bytes differ between records, URL and IPFS.
    pub fn content_differs(&self) -> bool {
        [self.txt_https, self.txt_ipfs, self.https_ipfs].contains(&SourceAgreement::Differ)
    }

    /// Whether any two sources differ.
    pub fn differs(&self) -> bool {
        self.agreements().contains(&SourceAgreement::Differ)
    }
}

/// A text record that has to be set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextRecordFix {
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
}

impl std::fmt::Display for TextRecordFix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// The text records that would fix a verdict. Empty unless the CID proves the card's bytes and the card itself has no
/// defect: a corrected card gets another CID and checksum anyway.
///
/// Served but unproven bytes are never proposed.
pub fn text_record_fixes(verdict: &Verdict) -> Vec<TextRecordFix> {
    let facts = VerdictAccessor(verdict);
    let Some(proven) = facts.digest(ResolutionStep::FetchIpfs) else { return Vec::new() };
    if !facts.card_is_sound() {
        return Vec::new();
    }
    let identity = verdict.identity.as_ref().filter(|identity| identity.card.sha256 == proven.to_hex());
    let owner = identity.and_then(|_| facts.owner_of_card());
    let values = [
        (TextRecordKey::Checksum, Some(proven.to_string()).filter(|_| facts.checksum_differs_from(proven))),
        (
            TextRecordKey::Entry,
            identity.and_then(|i| i.entry.clone()).filter(|_| facts.record_fails(TextRecordKey::Entry)),
        ),
        (TextRecordKey::Owner, owner.filter(|_| facts.record_fails(TextRecordKey::Owner))),
    ];
    let proposed = values.into_iter().filter_map(|(key, value)| Some((key, value.filter(|v| is_copyable_value(v))?)));
    proposed.map(|(key, value)| TextRecordFix { key: key.as_str().to_owned(), value }).collect()
}

/// Whether a report shows a value exactly as it must be set.
fn is_copyable_value(value: &str) -> bool {
    value.chars().count() <= text::SHOWN_CHARACTERS
        && value.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '\\' | '|' | '`'))
}

/// The facts in a verdict's steps and reasons.
struct VerdictAccessor<'a>(&'a Verdict);

impl<'a> VerdictAccessor<'a> {
    fn step(&self, step: ResolutionStep) -> Option<&'a StepReport> {
        self.0.steps.iter().find(|report| report.step == step)
    }

    fn status(&self, step: ResolutionStep) -> StepStatus {
        self.step(step).map_or(StepStatus::Skip, |report| report.status)
    }

    fn digest(&self, step: ResolutionStep) -> Option<Digest> {
        self.step(step)?.evidence["sha256"].as_str()?.parse().ok()
    }

    fn claimed_digest(&self) -> Option<Digest> {
        let records = &self.step(ResolutionStep::Records)?.evidence["records"];
        records[TextRecordKey::Checksum.as_str()].as_str()?.trim().parse().ok()
    }

    fn owner_of_card(&self) -> Option<String> {
        self.step(ResolutionStep::Card)?.evidence["owner"].as_str().map(str::to_owned)
    }

    fn has_failure(&self, code: ReasonCode) -> bool {
        self.0.reasons.iter().any(|reason| reason.code == code && reason.effect == ReasonEffect::Fail)
    }

    /// Whether a reason rejects the value of the record under `key`. Who may publish and who holds the name does not
    /// count.
    fn record_fails(&self, key: TextRecordKey) -> bool {
        let here =
            |reason: &&Reason| reason.effect == ReasonEffect::Fail && reason.place.as_deref() == Some(key.as_str());
        let of_value =
            |reason: &Reason| !matches!(reason.code, ReasonCode::PublisherNotAllowed | ReasonCode::OwnerUnproven);
        self.0.reasons.iter().filter(here).any(of_value)
    }

    /// Whether the checksum record must change to name the `proven` bytes.
    fn checksum_differs_from(&self, proven: Digest) -> bool {
        let differs = self.claimed_digest().is_some_and(|claimed| claimed != proven);
        (differs && self.has_failure(ReasonCode::ChecksumMismatch)) || self.record_fails(TextRecordKey::Checksum)
    }

    /// Whether the card itself has no known defect.
    fn card_is_sound(&self) -> bool {
        let passed = |step| self.status(step) == StepStatus::Pass;
        [ResolutionStep::Card, ResolutionStep::Entry, ResolutionStep::Verbs].into_iter().all(passed)
            && !self.has_failure(ReasonCode::CardEnsMismatch)
    }
}
