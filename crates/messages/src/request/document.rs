//! The JSON document that reports the check of a request. One schema (`schemas/request.schema.json`) serves command
//! line, HTTP and library.

use clresolve_core::digest::Digest;
use clresolve_core::finding::DocumentFinding;
use clresolve_core::reason::{self, Reason};
use clresolve_core::state::TrustState;
use clresolve_core::text::excerpt_text;
use clresolve_verdict::schema::bound::{BoundSchema, BoundSchemaIdentity};
use clresolve_verdict::verdict::{ChainAnchor, ToolVersion, Verdict, canonical_digest, document_id};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::request::judge::{self, RequestJudgement};

/// The schema identifier.
pub const SCHEMA: &str = "clresolve.request/1";

/// Whether a request may be sent to an agent, and if not, why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestCheckDocument {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// SHA-256 over the RFC 8785 form of the whole document without `id`.
    pub id: String,
    /// SHA-256 over the RFC 8785 form of the members on which two honest checkers agree at the same block.
    pub conclusion: String,
    /// The agent's name in normal form, or as typed if it has none.
    pub name: String,
    /// The verb that the request calls.
    pub verb: String,
    /// Trusted if the request may be sent.
    pub state: TrustState,
    /// One sentence for a person.
    pub summary: String,
    /// The schema that the request was validated against; absent if no schema is proven.
    pub bound: Option<BoundSchemaIdentity>,
    /// Findings in the request, in the order of its text.
    pub findings: Vec<DocumentFinding>,
    /// The codes of findings and reasons, sorted by effect. Includes the verdict's codes if the verdict is not trusted.
    pub codes: Vec<String>,
    /// Defects outside the request, except for the verdict's own reasons.
    pub reasons: Vec<Reason>,
    /// SHA-256 of the request's bytes; absent if only a template was requested.
    pub request: Option<Digest>,
    /// `id` of the verdict on the agent.
    pub verdict: String,
    /// The block and resolver from which the agent was read.
    pub anchor: Option<ChainAnchor>,
    /// Time of the check.
    pub checked_at: Timestamp,
    /// The program that made the document.
    pub tool: ToolVersion,
}

/// Inputs to the document besides the judgement.
#[derive(Clone, Copy, Debug)]
pub struct RequestCheckDocumentInputs<'a> {
    /// The verdict on the agent.
    pub verdict: &'a Verdict,
    /// The verb that the request calls.
    pub verb: &'a str,
    /// The schema, or the reasons why no schema is proven. The list is empty if the verdict states the reasons.
    pub bound: Result<&'a BoundSchema, &'a [Reason]>,
    /// Time of the check.
    pub now: Timestamp,
}

impl RequestCheckDocument {
    /// Builds the document. Without a schema there is no judgement, and the request is not trusted. A request to an
    /// untrusted agent is not trusted either.
    pub fn from_judgement(judgement: Option<RequestJudgement>, setting: &RequestCheckDocumentInputs<'_>) -> Self {
        let RequestCheckDocumentInputs { verdict, bound, now, .. } = *setting;
        let (findings, sha256) = judgement.map(|found| (found.findings, found.sha256)).unzip();
        let findings = findings.unwrap_or_default();
        let reasons = bound.err().unwrap_or_default().to_vec();
        let of_findings = findings.iter().map(|finding| (finding.effect, finding.code));
        let of_reasons = reasons.iter().chain(verdict.reasons_against()).map(|reason| (reason.effect, reason.code));
        let codes = reason::sorted_reason_codes(of_findings.chain(of_reasons));
        let decided = match bound {
            Ok(_) => TrustState::Trusted,
            Err(reasons) => TrustState::Indeterminate
                .combine_with(judge::state_from_effects(reasons.iter().map(|reason| reason.effect))),
        };
        let of_request = judge::state_from_effects(findings.iter().map(|finding| finding.effect));
        let agent = if clresolve_core::mutant!("requests-to-strangers") { TrustState::Trusted } else { verdict.state };
        let state = agent.combine_with(decided).combine_with(of_request);
        let mut document = Self {
            schema: SCHEMA,
            id: String::new(),
            conclusion: String::new(),
            name: verdict.name.normalized.clone().unwrap_or_else(|| verdict.name.input.clone()),
            verb: excerpt_text(setting.verb),
            state,
            summary: summary_sentence(state, &findings, &reasons, verdict),
            bound: bound.ok().map(|bound| bound.identity().clone()),
            findings,
            codes,
            reasons,
            request: sha256.flatten(),
            verdict: verdict.id.clone(),
            anchor: verdict.anchor.clone(),
            checked_at: now,
            tool: ToolVersion::default(),
        };
        document.conclusion = document.compute_conclusion(&verdict.conclusion);
        document.id = document.compute_id();
        document
    }

    fn compute_conclusion(&self, verdict: &str) -> String {
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

    fn compute_id(&self) -> String {
        document_id(self)
    }

    /// The document as JSON.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("it has a JSON form: its keys are strings")
    }
}

fn summary_sentence(state: TrustState, findings: &[DocumentFinding], reasons: &[Reason], verdict: &Verdict) -> String {
    if verdict.state != TrustState::Trusted {
        return verdict.summary.clone();
    }
    let of_findings = findings.iter().map(|finding| (finding.effect, &finding.message));
    let all = reasons.iter().map(|reason| (reason.effect, &reason.message)).chain(of_findings);
    match (state, all.min_by_key(|(effect, _)| *effect)) {
        (TrustState::Trusted, _) | (_, None) => "The request is what the agent's schema demands.".to_owned(),
        (_, Some((_, message))) => message.clone(),
    }
}
