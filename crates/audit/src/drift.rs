//! Drift: which of a name's text records, host, IPFS content and manifest agree, and the text records that would fix a
//! difference.

use serde::{Deserialize, Serialize};

use clresolve_core::digest::Digest;
use clresolve_core::reason::{Code, Effect, Reason, Step};
use clresolve_core::records::Key;
use clresolve_core::text;
use clresolve_verdict::verdict::{Status, StepReport, Verdict};

/// Pairwise comparison of one name's sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    /// The digest in `cl.checksum.agentcard`.
    pub claimed: Option<Digest>,
    /// The digest of the bytes that the card's URL served.
    pub served: Option<Digest>,
    /// The digest of the bytes that `cl.cid.agentcard` proves.
    pub proven: Option<Digest>,
    /// The records about the content, and what the URL served.
    pub txt_https: Agreement,
    /// The records about the content, and what IPFS proved.
    pub txt_ipfs: Agreement,
    /// What the URL served, and what IPFS proved.
    pub https_ipfs: Agreement,
    /// The records that repeat the card (`cl.entry`, `cl.owner`), and the card.
    pub txt_card: Agreement,
    /// Verbs and schema locations of the card, and the manifest.
    pub card_manifest: Agreement,
    /// The bytes of the bound schemas and the binding records, and the manifest.
    pub schemas_manifest: Agreement,
}

/// Whether two sources agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Agreement {
    /// No difference was found.
    Agree,
    /// A difference was found.
    Differ,
    /// One of them was not requested, or did not respond.
    #[default]
    Open,
}

impl Agreement {
    /// The symbol in reports.
    pub const fn mark(self) -> char {
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
    fn unless(self, differs: bool) -> Self {
        if differs { Self::Differ } else { self }
    }
}

impl From<Status> for Agreement {
    fn from(status: Status) -> Self {
        match status {
            Status::Pass => Self::Agree,
            Status::Fail => Self::Differ,
            Status::Unknown | Status::Skip => Self::Open,
        }
    }
}

impl Drift {
    /// The compared pairs, as named in the columns of reports.
    pub const PAIRS: [&str; 6] =
        ["TXT = HTTPS", "TXT = IPFS", "HTTPS = IPFS", "TXT = card", "card = manifest", "schemas = manifest"];

    /// Compares the sources of a verdict.
    pub fn of(verdict: &Verdict) -> Self {
        let facts = Facts(verdict);
        let (claimed, served, proven) =
            (facts.claimed(), facts.digest(Step::FetchHttps), facts.digest(Step::FetchIpfs));
        let walk_failed = facts.status(Step::FetchIpfs) == Status::Fail;
        let has_card = facts.status(Step::Card) != Status::Skip;
        let unlike_card = has_card && [Key::Entry, Key::Owner].into_iter().any(|key| facts.record_fails(key));
        Self {
            claimed,
            served,
            proven,
            txt_https: Agreement::between(claimed, served).unless(facts.fails(Code::CidMismatch)),
            txt_ipfs: Agreement::between(claimed, proven).unless(walk_failed),
            https_ipfs: Agreement::between(served, proven).unless(facts.fails(Code::MirrorContentMismatch)),
            txt_card: Agreement::from(facts.status(Step::Binding)).unless(unlike_card),
            card_manifest: facts.status(Step::Verbs).into(),
            schemas_manifest: facts.status(Step::Schemas).into(),
        }
    }

    /// The results, in the order of [`Self::PAIRS`].
    pub const fn agreements(&self) -> [Agreement; 6] {
        [self.txt_https, self.txt_ipfs, self.https_ipfs, self.txt_card, self.card_manifest, self.schemas_manifest]
    }

    /// Whether the card's bytes differ between records, URL and IPFS.
    pub fn content_differs(&self) -> bool {
        [self.txt_https, self.txt_ipfs, self.https_ipfs].contains(&Agreement::Differ)
    }

    /// Whether any two sources differ.
    pub fn differs(&self) -> bool {
        self.agreements().contains(&Agreement::Differ)
    }
}

/// A text record that has to be set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TxtLine {
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
}

impl std::fmt::Display for TxtLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// The text records that would fix a verdict. Empty unless the CID proves the card's bytes and the card itself has no
/// defect: a corrected card gets another CID and checksum anyway.
///
/// Served but unproven bytes are never proposed.
pub fn fixing_lines(verdict: &Verdict) -> Vec<TxtLine> {
    let facts = Facts(verdict);
    let Some(proven) = facts.digest(Step::FetchIpfs) else { return Vec::new() };
    if !facts.card_is_sound() {
        return Vec::new();
    }
    let identity = verdict.identity.as_ref().filter(|identity| identity.card.sha256 == proven.hex());
    let owner = identity.and_then(|_| facts.owner_of_card());
    let values = [
        (Key::Checksum, Some(proven.to_string()).filter(|_| facts.checksum_is_not(proven))),
        (Key::Entry, identity.and_then(|i| i.entry.clone()).filter(|_| facts.record_fails(Key::Entry))),
        (Key::Owner, owner.filter(|_| facts.record_fails(Key::Owner))),
    ];
    let proposed = values.into_iter().filter_map(|(key, value)| Some((key, value.filter(|v| can_be_copied(v))?)));
    proposed.map(|(key, value)| TxtLine { key: key.as_str().to_owned(), value }).collect()
}

/// Whether a report shows a value exactly as it must be set.
fn can_be_copied(value: &str) -> bool {
    value.chars().count() <= text::SHOWN_CHARACTERS
        && value.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '\\' | '|' | '`'))
}

/// The facts in a verdict's steps and reasons.
struct Facts<'a>(&'a Verdict);

impl<'a> Facts<'a> {
    fn step(&self, step: Step) -> Option<&'a StepReport> {
        self.0.steps.iter().find(|report| report.step == step)
    }

    fn status(&self, step: Step) -> Status {
        self.step(step).map_or(Status::Skip, |report| report.status)
    }

    fn digest(&self, step: Step) -> Option<Digest> {
        self.step(step)?.evidence["sha256"].as_str()?.parse().ok()
    }

    fn claimed(&self) -> Option<Digest> {
        let records = &self.step(Step::Records)?.evidence["records"];
        records[Key::Checksum.as_str()].as_str()?.trim().parse().ok()
    }

    fn owner_of_card(&self) -> Option<String> {
        self.step(Step::Card)?.evidence["owner"].as_str().map(str::to_owned)
    }

    fn fails(&self, code: Code) -> bool {
        self.0.reasons.iter().any(|reason| reason.code == code && reason.effect == Effect::Fail)
    }

    /// Whether a reason rejects the value of the record under `key`. Who may publish and who holds the name does not
    /// count.
    fn record_fails(&self, key: Key) -> bool {
        let here = |reason: &&Reason| reason.effect == Effect::Fail && reason.place.as_deref() == Some(key.as_str());
        let of_value = |reason: &Reason| !matches!(reason.code, Code::PublisherNotAllowed | Code::OwnerUnproven);
        self.0.reasons.iter().filter(here).any(of_value)
    }

    /// Whether the checksum record must change to name the `proven` bytes.
    fn checksum_is_not(&self, proven: Digest) -> bool {
        let differs = self.claimed().is_some_and(|claimed| claimed != proven);
        (differs && self.fails(Code::ChecksumMismatch)) || self.record_fails(Key::Checksum)
    }

    /// Whether the card itself has no known defect.
    fn card_is_sound(&self) -> bool {
        let passed = |step| self.status(step) == Status::Pass;
        [Step::Card, Step::Entry, Step::Verbs].into_iter().all(passed) && !self.fails(Code::CardEnsMismatch)
    }
}
