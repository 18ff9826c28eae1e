//! The written form of what is said of a request. One JSON schema (`schemas/request.schema.json`) for command line, HTTP
//! and library.

use clresolve_core::digest::Digest;
use clresolve_core::finding::Finding;
use clresolve_core::reason::{self, Reason};
use clresolve_core::state::State;
use clresolve_core::text::excerpt;
use clresolve_verdict::schema::bound::{BoundName, CompiledSchema};
use clresolve_verdict::verdict::{Anchor, Tool, Verdict, canonical_digest, document_id};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::judge::{self, RequestJudgement};

/// The schema identifier.
pub const SCHEMA: &str = "clresolve.request/1";

/// Whether a request is fit to be sent, and why not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checked {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// SHA-256 over the RFC 8785 form of the whole document less `id`.
    pub id: String,
    /// SHA-256 over the RFC 8785 form of what two honest checkers agree on at the same block.
    pub conclusion: String,
    /// The agent, in normal form; as it was asked for where it has none.
    pub name: String,
    /// What it is to do.
    pub verb: String,
    /// The state: trusted where the request may be sent.
    pub state: State,
    /// One plain sentence.
    pub summary: String,
    /// The schema that the request was held against; absent where no schema is proven.
    pub bound: Option<BoundName>,
    /// What was found in the request, in the order of its text.
    pub findings: Vec<Finding>,
    /// The codes of findings and reasons, the verdict's too where it is not trusted, by effect.
    pub codes: Vec<String>,
    /// What is wrong apart from the request, but for the verdict's own reasons.
    pub reasons: Vec<Reason>,
    /// SHA-256 of the request's bytes; none where only a template was asked for.
    pub request: Option<Digest>,
    /// `id` of the verdict on the agent.
    pub verdict: String,
    /// Where on which chain the agent was read.
    pub anchor: Option<Anchor>,
    /// When it was checked.
    pub checked_at: Timestamp,
    /// The program that made it.
    pub tool: Tool,
}

/// What a judgement is written down with.
#[derive(Clone, Copy, Debug)]
pub struct RequestSetting<'a> {
    /// The verdict on the agent.
    pub verdict: &'a Verdict,
    /// What the agent is to do.
    pub verb: &'a str,
    /// The schema, or the reasons why no schema is known. The list is empty where the verdict tells the reasons.
    pub bound: Result<&'a CompiledSchema, &'a [Reason]>,
    /// The time.
    pub now: Timestamp,
}

impl Checked {
    /// Writes a judgement down. Without a schema there is no judgement, and the request is not trusted. Nor is a request to
    /// an agent that is not trusted.
    pub fn of(judgement: Option<RequestJudgement>, setting: &RequestSetting<'_>) -> Self {
        let RequestSetting { verdict, bound, now, .. } = *setting;
        let (findings, sha256) = judgement.map(|found| (found.findings, found.sha256)).unzip();
        let findings = findings.unwrap_or_default();
        let reasons = bound.err().unwrap_or_default().to_vec();
        let of_findings = findings.iter().map(|finding| (finding.effect, finding.code));
        let of_reasons = reasons.iter().chain(verdict.against()).map(|reason| (reason.effect, reason.code));
        let codes = reason::codes(of_findings.chain(of_reasons));
        let decided = match bound {
            Ok(_) => State::Trusted,
            Err(reasons) => State::Indeterminate.and(judge::state(reasons.iter().map(|reason| reason.effect))),
        };
        let of_request = judge::state(findings.iter().map(|finding| finding.effect));
        let agent = if clresolve_core::mutant!("requests-to-strangers") { State::Trusted } else { verdict.state };
        let state = agent.and(decided).and(of_request);
        let mut document = Self {
            schema: SCHEMA,
            id: String::new(),
            conclusion: String::new(),
            name: verdict.name.normalized.clone().unwrap_or_else(|| verdict.name.input.clone()),
            verb: excerpt(setting.verb),
            state,
            summary: summary(state, &findings, &reasons, verdict),
            bound: bound.ok().map(|bound| bound.name().clone()),
            findings,
            codes,
            reasons,
            request: sha256.flatten(),
            verdict: verdict.id.clone(),
            anchor: verdict.anchor.clone(),
            checked_at: now,
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
            "verb": self.verb,
            "state": self.state,
            "codes": self.codes,
            "bound": self.bound,
            "request": self.request,
            "verdict": verdict,
        }))
    }

    fn identify(&self) -> String {
        document_id(self.to_value())
    }

    /// The document as JSON.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("it has a JSON form: its keys are strings")
    }
}

fn summary(state: State, findings: &[Finding], reasons: &[Reason], verdict: &Verdict) -> String {
    if verdict.state != State::Trusted {
        return verdict.summary.clone();
    }
    let of_findings = findings.iter().map(|finding| (finding.effect, &finding.message));
    let all = reasons.iter().map(|reason| (reason.effect, &reason.message)).chain(of_findings);
    match (state, all.min_by_key(|(effect, _)| *effect)) {
        (State::Trusted, _) | (_, None) => "The request is what the agent's schema demands.".to_owned(),
        (_, Some((_, message))) => message.clone(),
    }
}
