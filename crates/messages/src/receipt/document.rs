//! The JSON document that reports the verification of a receipt. One schema (`schemas/receipt.schema.json`) serves
//! command line, HTTP and library.

use std::collections::BTreeSet;
use std::iter;

use clresolve_core::digest::Digest;
use clresolve_core::reason::{self, Reason, ReasonCode, ReasonEffect};
use clresolve_core::state::TrustState;
use clresolve_payment::settlement::SettlementCheckResult;
use clresolve_verdict::schema::bound::BoundSchemaIdentity;
use clresolve_verdict::verdict::{ChainAnchor, ToolVersion, Verdict, canonical_digest, document_id};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::receipt::family::ReceiptFamily;
use crate::receipt::judge::{
    PublishedReceiptSigner, ReceiptCheckKind, ReceiptCheckResult, ReceiptJudgement, RequestMatchStrength, StepStatus,
};
use crate::receipt::replay::{self, ReceiptReplayStatus};

/// The schema identifier.
pub const SCHEMA: &str = "clresolve.receipt/1";

/// Unchecked if the agent's card binds no schema for such a receipt, or if nothing pins the schema's bytes.
const BOUND_SCHEMA: &str = "bound-schema";

/// Unchecked if nothing signed names the agent: the receipt may belong to another agent of the same signer.
const AGENT: &str = "agent";

/// The [`AGENT`] caveat as a sentence.
const NAMES_NO_AGENT: &str = "Nothing that is signed names the agent, and its signer may sign for others too.";

/// Unchecked if the request has an identifier that no signed member repeats.
const REQUEST_ID: &str = "request_id";

/// Unchecked in a settlement if no decision shows that the payee is the agent's.
const PAYEE: &str = "payee";

/// Unchecked in a bundle: it contains the signer's key, but no proof of the records that name signer and key.
const SIGNER: &str = "signer";

/// The [`SIGNER`] caveat as a sentence.
const ATTESTS_SIGNER: &str = "Who signs for the agent, and with which key, rests on the exporter's word.";

/// Whether a receipt is valid, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReceiptVerificationDocument {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// SHA-256 over the RFC 8785 form of the whole document without `id`.
    pub id: String,
    /// SHA-256 over the RFC 8785 form of the members on which two honest verifiers agree at the same block. It excludes
    /// the replay check, which depends on one verifier's history.
    pub conclusion: String,
    /// The agent's name in normal form, or as typed if it has none.
    pub name: String,
    /// Whether the receipt is trusted.
    pub state: TrustState,
    /// One sentence for a person.
    pub summary: String,
    /// The family, if the shape determines it.
    pub family: Option<ReceiptFamilyIdentifiers>,
    /// Every check that was made or applies, in their fixed order.
    pub checks: Vec<ReceiptCheckResult>,
    /// The codes of all reasons, sorted by effect. Includes the verdict's codes if the verdict is not trusted.
    pub codes: Vec<String>,
    /// All reasons except the verdict's own, sorted by effect.
    pub reasons: Vec<Reason>,
    /// CLAS error codes of the failed checks.
    pub clas: Vec<&'static str>,
    /// JSON Pointers of members that neither a signature nor a check covers. They prove nothing.
    pub unsigned: Vec<String>,
    /// Properties that this program does not check.
    pub unchecked: Vec<&'static str>,
    /// The schema that the receipt was validated against.
    pub bound: Option<BoundSchemaIdentity>,
    /// Digests of the receipt.
    pub receipt: ReceiptDigests,
    /// SHA-256 of the request's bytes, if there is a request.
    pub request: Option<Digest>,
    /// SHA-256 over the RFC 8785 form of the payment decision, if there is one.
    pub decision: Option<String>,
    /// How the receipt is tied to the request, if it is. The summary states it in words.
    #[serde(skip)]
    pub tie: Option<RequestMatchStrength>,
    /// Whether only an address of the agent can have signed the receipt. `signer` is then `None`.
    #[serde(skip)]
    pub is_by_address: bool,
    /// Who signs for the agent. `None` if unknown, or if only an address of the agent can have signed.
    pub signer: Option<PublishedSignerSummary>,
    /// Whether the payment was settled, if the purchase includes a payment.
    pub settlement: Option<SettlementCheckResult>,
    /// `id` of the verdict on the agent.
    pub verdict: String,
    /// Codes of the verdict's warnings, and of the warnings about the signer's records.
    pub warnings: Vec<&'static str>,
    /// The block and resolvers from which agent and signer were read.
    pub anchor: Option<ChainAnchor>,
    /// Time of the verification.
    pub checked_at: Timestamp,
    /// The program that made the document.
    pub tool: ToolVersion,
}

/// Identifiers of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ReceiptFamilyIdentifiers {
    /// Identifier of the family, such as `A1`.
    pub id: ReceiptFamily,
    /// Stable slug of the family.
    pub slug: &'static str,
}

/// Digests of a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ReceiptDigests {
    /// SHA-256 of its bytes; `None` if it exceeds the size limit.
    pub sha256: Option<Digest>,
    /// SHA-256 of the canonical form of the signed content.
    pub canonical_sha256: Option<Digest>,
}

/// Who signs for the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PublishedSignerSummary {
    /// The signer's ENS name.
    pub name: String,
    /// RFC 7638 thumbprint of the key.
    pub key: Option<String>,
    /// `cl.sig.kid`.
    pub kid: Option<String>,
    /// `cl.sig.canonical`.
    pub canonical: Option<String>,
    /// Height of the block at which the records of agent and signer were read.
    pub block: u64,
}

impl PublishedSignerSummary {
    fn from_signer(PublishedReceiptSigner { name, key, kid, canonical, block, .. }: &PublishedReceiptSigner) -> Self {
        let key = key.as_ref().ok().map(|key| key.thumbprint().to_owned());
        let clip = |text: &str| clresolve_core::text::truncate_bytes(text, reason::MAX_VALUE_BYTES);
        let (kid, canonical) = (kid.as_deref().ok().map(clip), canonical.as_deref().map(clip));
        Self { name: name.as_str().to_owned(), key, kid, canonical, block: *block }
    }
}

/// Inputs to the document besides the judgement.
#[derive(Clone, Copy, Debug)]
pub struct ReceiptVerificationDocumentInputs<'a> {
    /// The verdict on the agent.
    pub verdict: &'a Verdict,
    /// Who signs for the agent, if known.
    pub signer: Option<&'a PublishedReceiptSigner>,
    /// Whether the signer rests on the exporter's word, as in a bundle, regardless of the proof of the agent's own
    /// records.
    pub is_signer_attested: bool,
    /// SHA-256 of the request's bytes.
    pub request: Option<Digest>,
    /// SHA-256 over the RFC 8785 form of the decision.
    pub decision: Option<&'a str>,
    /// Whether the payment was settled, if the purchase includes a payment.
    pub settlement: Option<&'a SettlementCheckResult>,
    /// Time of the verification.
    pub now: Timestamp,
}

impl ReceiptVerificationDocument {
    /// Builds the document. A receipt of an untrusted agent is not trusted.
    pub fn from_judgement(judgement: ReceiptJudgement, setting: &ReceiptVerificationDocumentInputs<'_>) -> Self {
        let ReceiptVerificationDocumentInputs { verdict, settlement, .. } = setting;
        let signer = setting.signer.filter(|_| !judgement.is_by_address);
        let unsettled = settlement_objections(*settlement, &judgement);
        let judgement = judgement.with_reasons(&unsettled);
        let state = verdict.state.combine_with(judgement.trust_state());
        let reasons = judgement.reasons.iter().chain(verdict.reasons_against());
        let codes = reason::sorted_reason_codes(reasons.map(|reason| (reason.effect, reason.code)));
        let clas = judgement.clas_codes();
        let unchecked = unchecked_properties(&judgement, setting);
        let summary = summary_sentence(state, &judgement, setting);
        let beside = [
            settlement_check_result(*settlement, unsettled.first()),
            ReceiptCheckResult::new(ReceiptCheckKind::Replay, StepStatus::Skip),
        ];
        let mut document = Self {
            schema: SCHEMA,
            id: String::new(),
            conclusion: String::new(),
            name: verdict.name.normalized.clone().unwrap_or_else(|| verdict.name.input.clone()),
            state,
            summary,
            family: judgement.family.map(|family| ReceiptFamilyIdentifiers { id: family, slug: family.slug() }),
            checks: iter::once(identity_check_result(verdict)).chain(judgement.checks).chain(beside).collect(),
            codes,
            reasons: judgement.reasons,
            clas,
            unsigned: judgement.unsigned,
            unchecked,
            tie: judgement.tie,
            is_by_address: judgement.is_by_address,
            bound: judgement.bound,
            receipt: ReceiptDigests { sha256: judgement.sha256, canonical_sha256: judgement.canonical_sha256 },
            request: setting.request,
            decision: setting.decision.map(str::to_owned),
            signer: signer.map(PublishedSignerSummary::from_signer),
            settlement: settlement.cloned(),
            verdict: verdict.id.clone(),
            warnings: warning_codes(verdict, signer),
            anchor: verdict.anchor.clone(),
            checked_at: setting.now,
            tool: ToolVersion::default(),
        };
        document.conclusion = document.compute_conclusion(&verdict.conclusion);
        document.id = document.compute_id();
        document
    }

    /// Adds the result of the replay check. The conclusion excludes it, because other verifiers have other histories.
    #[must_use]
    pub fn with_replay_status(mut self, seen: Result<ReceiptReplayStatus, String>) -> Self {
        let (row, reason) = replay::replay_check_result(seen);
        self.checks.retain(|row| row.check != ReceiptCheckKind::Replay);
        self.checks.push(row);
        if let Some(reason) = reason {
            let state =
                if reason.effect == ReasonEffect::Fail { TrustState::Untrusted } else { TrustState::Indeterminate };
            self.state = self.state.combine_with(state);
            self.summary.clone_from(&reason.message);
            self.codes.push(reason.code.slug().to_owned());
            self.reasons.push(reason);
        }
        self.id = self.compute_id();
        self
    }

    fn compute_conclusion(&self, verdict: &str) -> String {
        canonical_digest(&json!({
            "schema": self.schema,
            "name": self.name,
            "state": self.state,
            "codes": self.codes,
            "family": self.family,
            "receipt": self.receipt,
            "request": self.request,
            "decision": self.decision,
            "signer": self.signer.as_ref().map(|signer| (&signer.name, &signer.key, &signer.kid)),
            "settlement": self.settlement.as_ref().map(|settlement| (&settlement.due, &settlement.block)),
            "verdict": verdict,
        }))
    }

    fn compute_id(&self) -> String {
        document_id(self)
    }

    /// A caveat if nothing signed names the agent: the receipt may belong to another agent of the same signer.
    pub fn unnamed_agent_caveat(&self) -> Option<&'static str> {
        self.unchecked.contains(&AGENT).then_some(NAMES_NO_AGENT)
    }

    /// The settlement result as the end of a sentence.
    pub fn settlement_phrase(&self) -> Option<&'static str> {
        self.settlement.as_ref()?;
        if self.unchecked.contains(&PAYEE) {
            return Some("a payment was settled, but nothing proves that its payee is the agent's");
        }
        Some("the payment was settled")
    }

    /// The document as JSON.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("it has a JSON form: its keys are strings")
    }
}

fn unchecked_properties(
    judgement: &ReceiptJudgement,
    setting: &ReceiptVerificationDocumentInputs<'_>,
) -> Vec<&'static str> {
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

/// Whether the signer rests on the exporter's word. An address is proven with the agent's own records.
fn rests_on_attested_signer(judgement: &ReceiptJudgement, setting: &ReceiptVerificationDocumentInputs<'_>) -> bool {
    setting.is_signer_attested && !judgement.is_by_address
}

fn warning_codes(verdict: &Verdict, signer: Option<&PublishedReceiptSigner>) -> Vec<&'static str> {
    let warnings =
        verdict.reasons.iter().filter(|reason| reason.effect == ReasonEffect::Warn).map(|reason| reason.code);
    let lent = signer.iter().flat_map(|signer| signer.lent.iter().copied());
    let codes: BTreeSet<_> = warnings.chain(lent).map(ReasonCode::slug).collect();
    codes.into_iter().collect()
}

fn identity_check_result(verdict: &Verdict) -> ReceiptCheckResult {
    let status = match verdict.state {
        TrustState::Trusted => StepStatus::Pass,
        TrustState::Untrusted => StepStatus::Fail,
        TrustState::Indeterminate => StepStatus::Unknown,
    };
    ReceiptCheckResult {
        check: ReceiptCheckKind::Identity,
        status,
        expected: Some(TrustState::Trusted.to_string()),
        observed: Some(verdict.state.to_string()),
        place: None,
        clas: None,
    }
}

/// Reasons against the settlement of this receipt. The receipt's own statements come first.
fn settlement_objections(settlement: Option<&SettlementCheckResult>, judgement: &ReceiptJudgement) -> Vec<Reason> {
    let Some(settlement) = settlement else { return Vec::new() };
    let other = judgement.paid.as_ref().and_then(|paid| settlement.objection_to_receipt(paid));
    other.as_deref().into_iter().chain(settlement.objection.as_deref()).cloned().collect()
}

fn settlement_check_result(
    settlement: Option<&SettlementCheckResult>,
    objection: Option<&Reason>,
) -> ReceiptCheckResult {
    let Some(settlement) = settlement else {
        return ReceiptCheckResult::new(ReceiptCheckKind::Settlement, StepStatus::Skip);
    };
    let Some(objection) = objection else {
        let due = settlement.due.as_ref();
        let expected = due.map(|due| format!("{} of {} to {}", due.amount, due.asset, due.pay_to));
        let row = ReceiptCheckResult::new(ReceiptCheckKind::Settlement, StepStatus::Pass);
        return ReceiptCheckResult { expected, observed: settlement.evidence_phrase(), ..row };
    };
    let status = if objection.effect == ReasonEffect::Fail { StepStatus::Fail } else { StepStatus::Unknown };
    let (expected, observed, place) = (objection.expected.clone(), objection.observed.clone(), objection.place.clone());
    ReceiptCheckResult { expected, observed, place, ..ReceiptCheckResult::new(ReceiptCheckKind::Settlement, status) }
}

fn summary_sentence(
    state: TrustState,
    judgement: &ReceiptJudgement,
    setting: &ReceiptVerificationDocumentInputs<'_>,
) -> String {
    if state != TrustState::Trusted {
        return judgement.reasons.first().map_or(&setting.verdict.summary, |reason| &reason.message).clone();
    }
    let by = if judgement.is_by_address { "An address of the agent" } else { "The agent's signer" };
    let mut signed = match judgement.tie {
        Some(tie) => format!("{by} has signed this receipt for {}.", tie.match_description()),
        None => format!("{by} has signed this receipt; no request was given to compare it with."),
    };
    let is_attested = rests_on_attested_signer(judgement, setting);
    let caveats = [(!judgement.is_agent_compared, NAMES_NO_AGENT), (is_attested, ATTESTS_SIGNER)];
    for (_, caveat) in caveats.into_iter().filter(|(holds, _)| *holds) {
        signed.push(' ');
        signed.push_str(caveat);
    }
    signed
}

#[cfg(test)]
mod tests {
    use clresolve_core::name::EnsName;
    use clresolve_jose::Ed25519PublicKey;
    use clresolve_payment::route::AgentRoute;
    use clresolve_verdict::sample;

    use super::*;
    use crate::receipt::judge::{AgentEntryRoutes, CalledAgent, ReceiptKnowledge, SignerAddresses, judge_receipt};

    const EIP712: &str = include_str!("../../../sandbox/src/receipts/x402-eip712.json");
    const EDDSA: &str = include_str!("../../../sandbox/src/receipts/x402-jws.json");
    /// A JWS by the key of the agent's address.
    const ES256K: &str = "eyJhbGciOiJFUzI1NksiLCJraWQiOiJkaWQ6cGtoOmVpcDE1NToxOjB4NzA5OTc5NzBDNTE4MTJkYzNBMDEwQzdkMDFiNTBlMGQxN2RjNzlDOCJ9.eyJ2ZXJzaW9uIjoxLCJuZXR3b3JrIjoiZWlwMTU1OjMxMzM3IiwicmVzb3VyY2VVcmwiOiJodHRwczovL2FwaS5zYW5kYm94LmV4YW1wbGUvc3VtbWFyaXplL3YxIiwicGF5ZXIiOiIweGYzOUZkNmU1MWFhZDg4RjZGNGNlNmFCODgyNzI3OWNmZkZiOTIyNjYiLCJpc3N1ZWRBdCI6MTc3MDgwMDQ2MH0.dCTH3ZrzNphAx0k7x1W8H5whWZzwzHMmsDruHr1JsTsYO3N2SzF5I8-YI911mdY6jUW34FDvy9RYJQJGf5-TPg";

    fn name(text: &str) -> EnsName {
        EnsName::parse(text).expect("a name")
    }

    /// What a bundle with this signer shows of a receipt.
    fn shown(receipt: &str, signer: Option<&PublishedReceiptSigner>) -> ReceiptVerificationDocument {
        let now = "2026-02-12T00:00:00Z".parse().expect("a time");
        let trusted = sample::empty_resolution(TrustState::Trusted, now, 60);
        let address = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8".parse().expect("an address");
        let route = AgentRoute::from_configuration("https://api.sandbox.example/summarize/v1").expect("a route");
        let agent = CalledAgent {
            name: name("summarizeagent.eth"),
            entry: None,
            verbs: Vec::new(),
            addresses: SignerAddresses { settled: vec![address], open: None },
            routes: AgentEntryRoutes { settled: vec![route], open: None },
        };
        let unknown = Reason::new(ReasonCode::ReceiptKeyUnpublished);
        let known = ReceiptKnowledge {
            agent: Some(&agent),
            signer: signer.ok_or(&unknown),
            request: None,
            bought: None,
            earliest: None,
            schema: None,
            now,
        };
        let setting = ReceiptVerificationDocumentInputs {
            verdict: trusted.verdict(),
            signer,
            is_signer_attested: true,
            request: None,
            decision: None,
            settlement: None,
            now,
        };
        ReceiptVerificationDocument::from_judgement(judge_receipt(receipt.as_bytes(), &known), &setting)
    }

    #[test]
    fn receipt_by_an_address_does_not_depend_on_the_signer() {
        let key = Ed25519PublicKey::from_signer_record("ed25519:6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw=")
            .expect("a key");
        let signer = PublishedReceiptSigner {
            name: name("runtime.sandbox.eth"),
            key: Ok(key),
            kid: Ok("test-key-7".to_owned()),
            canonical: None,
            block: 1,
            lent: vec![ReasonCode::RecordOffchain],
        };
        let es256k = json!({"format": "jws", "signature": ES256K}).to_string();
        let forged = json!({"format": "jws", "signature": ES256K.replace(".dCTH", ".dCTI")}).to_string();
        let cases = [(EIP712, TrustState::Trusted), (&*es256k, TrustState::Trusted), (&*forged, TrustState::Untrusted)];
        for (receipt, state) in cases {
            let (with, without) = (shown(receipt, Some(&signer)), shown(receipt, None));
            assert_eq!(with, without, "{receipt}");
            assert_eq!((with.state, &with.signer, &*with.warnings), (state, &None, &[][..]), "{with:#?}");
            assert!(!with.unchecked.contains(&SIGNER), "{:?}", with.unchecked);
            assert!(!with.to_value().to_string().contains("agent's signer"), "{with:#?}");
        }
        let by_key = shown(EDDSA, Some(&signer));
        assert_eq!((by_key.state, by_key.signer.is_some()), (TrustState::Trusted, true), "{by_key:#?}");
        assert_eq!(by_key.warnings, ["record-offchain"]);
        assert!(by_key.unchecked.contains(&SIGNER) && by_key.conclusion != shown(EDDSA, None).conclusion);
    }
}
