//! The written form of what is said of a receipt. One JSON schema (`schemas/receipt.schema.json`) for command line, HTTP
//! and library.

use clresolve_core::digest::Digest;
use clresolve_core::reason::{self, Effect, Reason};
use clresolve_core::state::State;
use clresolve_verdict::verdict::{Anchor, Tool, Verdict, canonical_digest};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::family::Family;
use crate::judge::{Check, Judgement, Row, Signer, Status};

/// The schema identifier.
pub const SCHEMA: &str = "clresolve.receipt/1";

/// What is not checked yet, whatever the receipt.
const UNCHECKED: [&str; 3] = ["bound-schema", "replay", "settlement"];

/// Whether a receipt holds, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verification {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// SHA-256 over the RFC 8785 form of the whole document less `id`.
    pub id: String,
    /// SHA-256 over the RFC 8785 form of what two honest verifiers agree on at the same block.
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
    /// JSON Pointers of members that no signature covers: evidence of nothing.
    pub unsigned: Vec<String>,
    /// What this program does not check.
    pub unchecked: [&'static str; 3],
    /// The receipt by its digests.
    pub receipt: Digests,
    /// SHA-256 of the request's bytes, where one was given.
    pub request: Option<Digest>,
    /// Who signs for the agent.
    pub signer: Option<SignerRow>,
    /// `id` of the verdict on the agent.
    pub verdict: String,
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
    /// Of its bytes.
    pub sha256: Digest,
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
    fn of(Signer { name, key, kid, canonical, block }: &Signer) -> Self {
        let key = key.as_ref().ok().map(|key| key.id().to_owned());
        let clip = |text: &Option<String>| {
            text.as_deref().map(|text| clresolve_core::text::clipped(text, reason::MAX_VALUE_BYTES))
        };
        Self { name: name.as_str().to_owned(), key, kid: clip(kid), canonical: clip(canonical), block: *block }
    }
}

/// What a judgement is written down with.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The verdict on the agent.
    pub verdict: &'a Verdict,
    /// Who signs for it, where that is known.
    pub signer: Option<&'a Signer>,
    /// SHA-256 of the request's bytes.
    pub request: Option<Digest>,
    /// The time.
    pub now: Timestamp,
}

impl Verification {
    /// Writes a judgement down. A receipt of an agent that is not trusted is not trusted either.
    pub fn of(judgement: Judgement, setting: &Setting<'_>) -> Self {
        let Setting { verdict, signer, .. } = setting;
        let state = worse(verdict.state, judgement.state());
        let mut checks = vec![identity(verdict)];
        checks.extend(judgement.checks.iter().cloned());
        let mut coded: Vec<(Effect, String)> =
            judgement.reasons.iter().map(|reason| (reason.effect, reason.code.slug().to_owned())).collect();
        if verdict.state != State::Trusted {
            let deciding = verdict.reasons.iter().filter(|reason| reason.effect != Effect::Warn);
            coded.extend(deciding.map(|reason| (reason.effect, reason.code.slug().to_owned())));
        }
        coded.sort();
        coded.dedup();
        let codes: Vec<String> = coded.into_iter().map(|(_, code)| code).collect();
        let clas = judgement.clas();
        let mut document = Self {
            schema: SCHEMA,
            id: String::new(),
            conclusion: String::new(),
            name: verdict.name.normalized.clone().unwrap_or_else(|| verdict.name.input.clone()),
            state,
            summary: summary(state, setting.request.is_some(), &judgement.reasons, verdict),
            family: judgement.family.map(|family| FamilyRow { id: family, slug: family.slug() }),
            checks,
            codes,
            reasons: judgement.reasons,
            clas,
            unsigned: judgement.unsigned,
            unchecked: UNCHECKED,
            receipt: Digests { sha256: judgement.sha256, canonical_sha256: judgement.canonical_sha256 },
            request: setting.request,
            signer: signer.map(SignerRow::of),
            verdict: verdict.id.clone(),
            anchor: verdict.anchor.clone(),
            checked_at: setting.now,
            tool: Tool::default(),
        };
        document.conclusion = document.conclude(&verdict.conclusion);
        document.id = document.identify();
        document
    }

    fn conclude(&self, verdict: &str) -> String {
        canonical_digest(&json!({
            "schema": self.schema,
            "name": self.name,
            "state": self.state,
            "codes": self.codes,
            "family": self.family,
            "receipt": self.receipt,
            "request": self.request,
            "signer": self.signer.as_ref().map(|signer| (&signer.name, &signer.key, &signer.kid)),
            "verdict": verdict,
        }))
    }

    fn identify(&self) -> String {
        let mut value = serde_json::to_value(self).expect("it has a JSON form: its keys are strings");
        if let Some(object) = value.as_object_mut() {
            object.remove("id");
        }
        canonical_digest(&value)
    }

    /// The document as JSON.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("it has a JSON form: its keys are strings")
    }
}

fn worse(agent: State, receipt: State) -> State {
    match (agent, receipt) {
        (State::Untrusted, _) | (_, State::Untrusted) => State::Untrusted,
        (State::Trusted, State::Trusted) => State::Trusted,
        _ => State::Indeterminate,
    }
}

fn identity(verdict: &Verdict) -> Row {
    let status = match verdict.state {
        State::Trusted => Status::Pass,
        State::Untrusted => Status::Fail,
        State::Indeterminate => Status::Unknown,
    };
    Row {
        check: Check::Identity,
        status,
        expected: Some(State::Trusted.to_string()),
        observed: Some(verdict.state.to_string()),
        place: None,
        clas: None,
    }
}

fn summary(state: State, has_request: bool, reasons: &[Reason], verdict: &Verdict) -> String {
    match (state, reasons.first(), has_request) {
        (State::Trusted, _, true) => "The agent's signer has signed this receipt for this request.".to_owned(),
        (State::Trusted, _, false) => {
            "The agent's signer has signed this receipt; no request was given to compare it with.".to_owned()
        }
        (_, Some(reason), _) => reason.message.clone(),
        (_, None, _) => verdict.summary.clone(),
    }
}
