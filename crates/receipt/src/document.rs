//! The written form of what is said of a receipt. One JSON schema (`schemas/receipt.schema.json`) for command line, HTTP
//! and library.

use std::collections::BTreeSet;
use std::iter;

use clresolve_core::digest::Digest;
use clresolve_core::reason::{self, Code, Effect, Reason};
use clresolve_core::state::State;
use clresolve_payment::settlement::Settlement;
use clresolve_verdict::schema::bound::BoundName;
use clresolve_verdict::verdict::{Anchor, Tool, Verdict, canonical_digest, document_id};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::family::Family;
use crate::judge::{ReceiptCheck, ReceiptJudgement, ReceiptSigner, Row, Status, Tie};
use crate::replay::{self, Seen};

/// The schema identifier.
pub const SCHEMA: &str = "clresolve.receipt/1";

/// What is not checked where the agent's card binds no schema for such a receipt, or one whose bytes nothing pins.
const BOUND_SCHEMA: &str = "bound-schema";

/// What is not checked where nothing that is signed names the agent, so that the receipt may be one of another agent of the
/// same signer.
const AGENT: &str = "agent";

/// The same as a sentence.
const NAMES_NO_AGENT: &str = "Nothing that is signed names the agent, and its signer may sign for others too.";

/// What is not checked where the request has an identifier that nothing signed repeats.
const REQUEST_ID: &str = "request_id";

/// What is not checked of a settlement where no decision says that the payee is the agent's.
const PAYEE: &str = "payee";

/// What is not checked in a bundle: it has the signer's key, and no proof of the records that name signer and key.
const SIGNER: &str = "signer";

/// The same as a sentence.
const ATTESTS_SIGNER: &str = "Who signs for the agent, and by which key, is the word of whoever made the bundle.";

/// Whether a receipt holds, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verification {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// SHA-256 over the RFC 8785 form of the whole document less `id`.
    pub id: String,
    /// SHA-256 over the RFC 8785 form of what two honest verifiers agree on at the same block; so not over what one of them
    /// remembers.
    pub conclusion: String,
    /// The agent, in normal form; as it was asked for where it has none.
    pub name: String,
    /// The state.
    pub state: State,
    /// One plain sentence.
    pub summary: String,
    /// The family, where the shape says it.
    pub family: Option<FamilyRow>,
    /// Each check that was made or could be made, in their order.
    pub checks: Vec<Row>,
    /// The codes of all reasons, the verdict's too where it is not trusted, by effect.
    pub codes: Vec<String>,
    /// All reasons but the verdict's own, by effect.
    pub reasons: Vec<Reason>,
    /// CLAS's codes for what failed.
    pub clas: Vec<&'static str>,
    /// JSON Pointers of members that no signature covers and no check compares: evidence of nothing.
    pub unsigned: Vec<String>,
    /// What this program does not check.
    pub unchecked: Vec<&'static str>,
    /// The schema that the receipt was held against.
    pub bound: Option<BoundName>,
    /// The receipt by its digests.
    pub receipt: Digests,
    /// SHA-256 of the request's bytes, where one was given.
    pub request: Option<Digest>,
    /// SHA-256 over the RFC 8785 form of the decision, where one was given.
    pub decision: Option<String>,
    /// By what the receipt is tied to the request, where it is. Its words stand in the summary.
    #[serde(skip)]
    pub tie: Option<Tie>,
    /// Who signs for the agent.
    pub signer: Option<SignerRow>,
    /// Whether the payment was settled, where anything is said of one.
    pub settlement: Option<Settlement>,
    /// `id` of the verdict on the agent.
    pub verdict: String,
    /// Codes of what the verdict warns of, by name, and of who else has a hand in the signer's records.
    pub warnings: Vec<&'static str>,
    /// Where on which chain agent and signer were read.
    pub anchor: Option<Anchor>,
    /// When it was judged.
    pub checked_at: Timestamp,
    /// The program that made it.
    pub tool: Tool,
}

/// A family by its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FamilyRow {
    /// Its letter.
    pub id: Family,
    /// Its slug.
    pub slug: &'static str,
}

/// A receipt by its digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Digests {
    /// Of its bytes; `None` where there are more than are read.
    pub sha256: Option<Digest>,
    /// Of the canonical form of what is signed.
    pub canonical_sha256: Option<Digest>,
}

/// Who signs for the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SignerRow {
    /// The name.
    pub name: String,
    /// RFC 7638 thumbprint of the key.
    pub key: Option<String>,
    /// `cl.sig.kid`.
    pub kid: Option<String>,
    /// `cl.sig.canonical`.
    pub canonical: Option<String>,
    /// Number of the block that both names' records were read at.
    pub block: u64,
}

impl SignerRow {
    fn of(ReceiptSigner { name, key, kid, canonical, block, .. }: &ReceiptSigner) -> Self {
        let key = key.as_ref().ok().map(|key| key.id().to_owned());
        let clip = |text: &str| clresolve_core::text::clipped(text, reason::MAX_VALUE_BYTES);
        let (kid, canonical) = (kid.as_deref().ok().map(clip), canonical.as_deref().map(clip));
        Self { name: name.as_str().to_owned(), key, kid, canonical, block: *block }
    }
}

/// What a judgement is written down with.
#[derive(Clone, Copy, Debug)]
pub struct ReceiptSetting<'a> {
    /// The verdict on the agent.
    pub verdict: &'a Verdict,
    /// Who signs for it, where that is known.
    pub signer: Option<&'a ReceiptSigner>,
    /// Whether the signer is somebody's word, as in a bundle, however the agent's own records are proven.
    pub is_signer_attested: bool,
    /// SHA-256 of the request's bytes.
    pub request: Option<Digest>,
    /// SHA-256 over the RFC 8785 form of the decision.
    pub decision: Option<&'a str>,
    /// Whether the payment was settled, where anything is said of one.
    pub settlement: Option<&'a Settlement>,
    /// The time.
    pub now: Timestamp,
}

impl Verification {
    /// Writes a judgement down. A receipt of an agent that is not trusted is not trusted either.
    pub fn of(judgement: ReceiptJudgement, setting: &ReceiptSetting<'_>) -> Self {
        let ReceiptSetting { verdict, signer, settlement, .. } = setting;
        let unsettled = unsettled(*settlement, &judgement);
        let judgement = judgement.with(&unsettled);
        let state = verdict.state.and(judgement.state());
        let reasons = judgement.reasons.iter().chain(verdict.against());
        let codes = reason::codes(reasons.map(|reason| (reason.effect, reason.code)));
        let clas = judgement.clas();
        let unchecked = unchecked(&judgement, setting);
        let summary = summary(state, &judgement, setting);
        let beside = [settled(*settlement, unsettled.first()), Row::new(ReceiptCheck::Replay, Status::Skip)];
        let mut document = Self {
            schema: SCHEMA,
            id: String::new(),
            conclusion: String::new(),
            name: verdict.name.normalized.clone().unwrap_or_else(|| verdict.name.input.clone()),
            state,
            summary,
            family: judgement.family.map(|family| FamilyRow { id: family, slug: family.slug() }),
            checks: iter::once(identity(verdict)).chain(judgement.checks).chain(beside).collect(),
            codes,
            reasons: judgement.reasons,
            clas,
            unsigned: judgement.unsigned,
            unchecked,
            tie: judgement.tie,
            bound: judgement.bound,
            receipt: Digests { sha256: judgement.sha256, canonical_sha256: judgement.canonical_sha256 },
            request: setting.request,
            decision: setting.decision.map(str::to_owned),
            signer: signer.map(SignerRow::of),
            settlement: settlement.cloned(),
            verdict: verdict.id.clone(),
            warnings: warnings(verdict, *signer),
            anchor: verdict.anchor.clone(),
            checked_at: setting.now,
            tool: Tool::default(),
        };
        document.conclusion = document.conclude(&verdict.conclusion);
        document.id = document.identify();
        document
    }

    /// The same, with what the memory says of the receipt. It stays out of the conclusion: others remember other things.
    #[must_use]
    pub fn remembered(mut self, seen: Result<Seen, String>) -> Self {
        let (row, reason) = replay::row(seen);
        self.checks.retain(|row| row.check != ReceiptCheck::Replay);
        self.checks.push(row);
        if let Some(reason) = reason {
            let state = if reason.effect == Effect::Fail { State::Untrusted } else { State::Indeterminate };
            self.state = self.state.and(state);
            self.summary.clone_from(&reason.message);
            self.codes.push(reason.code.slug().to_owned());
            self.reasons.push(reason);
        }
        self.id = self.identify();
        self
    }

    fn conclude(&self, verdict: &str) -> String {
        // An address of the agent signs for itself.
        let is_by_address = self.family.is_some_and(|family| family.id == Family::X1);
        let by_key = self.signer.as_ref().filter(|_| !is_by_address);
        canonical_digest(&json!({
            "schema": self.schema,
            "name": self.name,
            "state": self.state,
            "codes": self.codes,
            "family": self.family,
            "receipt": self.receipt,
            "request": self.request,
            "decision": self.decision,
            "signer": by_key.map(|signer| (&signer.name, &signer.key, &signer.kid)),
            "settlement": self.settlement.as_ref().map(|settlement| (&settlement.due, &settlement.block)),
            "verdict": verdict,
        }))
    }

    fn identify(&self) -> String {
        document_id(serde_json::to_value(self).expect("it has a JSON form: its keys are strings"))
    }

    /// A sentence where nothing that is signed names the agent: the receipt may be one of another agent of the same signer.
    pub fn caveat(&self) -> Option<&'static str> {
        self.unchecked.contains(&AGENT).then_some(NAMES_NO_AGENT)
    }

    /// What is said of a payment, as the end of a sentence.
    pub fn settled(&self) -> Option<&'static str> {
        self.settlement.as_ref()?;
        if self.unchecked.contains(&PAYEE) {
            return Some("a payment was settled, and nothing says that its payee is the agent's");
        }
        Some("the payment was settled")
    }

    /// The document as JSON.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("it has a JSON form: its keys are strings")
    }
}

fn unchecked(judgement: &ReceiptJudgement, setting: &ReceiptSetting<'_>) -> Vec<&'static str> {
    let is_undecided = setting.settlement.is_some_and(|settlement| settlement.decision.is_none());
    let payee = is_undecided && !clresolve_core::mutant!("any-payee-is-the-agents");
    let rows = [
        (judgement.bound.is_none(), BOUND_SCHEMA),
        (!judgement.is_agent_compared, AGENT),
        (judgement.is_id_unchecked, REQUEST_ID),
        (payee, PAYEE),
        (
            rests_on_attested_signer(judgement, setting) && !clresolve_core::mutant!("bundled-signers-are-proven"),
            SIGNER,
        ),
    ];
    rows.into_iter().filter_map(|(is_unchecked, what)| is_unchecked.then_some(what)).collect()
}

/// Whether the signer is the word of the bundle's maker. An address stands with the agent's own records.
fn rests_on_attested_signer(judgement: &ReceiptJudgement, setting: &ReceiptSetting<'_>) -> bool {
    setting.is_signer_attested && judgement.family != Some(Family::X1)
}

fn warnings(verdict: &Verdict, signer: Option<&ReceiptSigner>) -> Vec<&'static str> {
    let warnings = verdict.reasons.iter().filter(|reason| reason.effect == Effect::Warn).map(|reason| reason.code);
    let lent = signer.iter().flat_map(|signer| signer.lent.iter().copied());
    let codes: BTreeSet<_> = warnings.chain(lent).map(Code::slug).collect();
    codes.into_iter().collect()
}

fn identity(verdict: &Verdict) -> Row {
    let status = match verdict.state {
        State::Trusted => Status::Pass,
        State::Untrusted => Status::Fail,
        State::Indeterminate => Status::Unknown,
    };
    Row {
        check: ReceiptCheck::Identity,
        status,
        expected: Some(State::Trusted.to_string()),
        observed: Some(verdict.state.to_string()),
        place: None,
        clas: None,
    }
}

/// What stands against the settlement of this receipt: what the receipt says of it itself comes first.
fn unsettled(settlement: Option<&Settlement>, judgement: &ReceiptJudgement) -> Vec<Reason> {
    let Some(settlement) = settlement else { return Vec::new() };
    let other = judgement.paid.as_ref().and_then(|paid| settlement.against_receipt(paid));
    other.as_deref().into_iter().chain(settlement.objection.as_deref()).cloned().collect()
}

fn settled(settlement: Option<&Settlement>, objection: Option<&Reason>) -> Row {
    let Some(settlement) = settlement else { return Row::new(ReceiptCheck::Settlement, Status::Skip) };
    let Some(objection) = objection else {
        let due = settlement.due.as_ref();
        let expected = due.map(|due| format!("{} of {} to {}", due.amount, due.asset, due.pay_to));
        let row = Row::new(ReceiptCheck::Settlement, Status::Pass);
        return Row { expected, observed: settlement.shown(), ..row };
    };
    let status = if objection.effect == Effect::Fail { Status::Fail } else { Status::Unknown };
    let (expected, observed, place) = (objection.expected.clone(), objection.observed.clone(), objection.place.clone());
    Row { expected, observed, place, ..Row::new(ReceiptCheck::Settlement, status) }
}

fn summary(state: State, judgement: &ReceiptJudgement, setting: &ReceiptSetting<'_>) -> String {
    if state != State::Trusted {
        return judgement.reasons.first().map_or(&setting.verdict.summary, |reason| &reason.message).clone();
    }
    let mut signed = match judgement.tie {
        Some(tie) => format!("The agent's signer has signed this receipt for {}.", tie.words()),
        None => "The agent's signer has signed this receipt; no request was given to compare it with.".to_owned(),
    };
    let is_attested = rests_on_attested_signer(judgement, setting);
    let caveats = [(!judgement.is_agent_compared, NAMES_NO_AGENT), (is_attested, ATTESTS_SIGNER)];
    for (_, caveat) in caveats.into_iter().filter(|(holds, _)| *holds) {
        signed.push(' ');
        signed.push_str(caveat);
    }
    signed
}
