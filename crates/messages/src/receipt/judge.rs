//! The checks of a receipt, each with the expected and the observed value.

mod canonical_receipt;
mod check;
mod knowledge;
mod schema;
mod x402;

use clresolve_core::call::VERB;
use clresolve_core::digest::Digest;
use clresolve_core::name::EnsName;
use clresolve_core::reason::{self, Reason, ReasonCode, ReasonEffect};
use clresolve_core::state::TrustState;
use clresolve_payment::receipt::{PurchaseFacts, X402Receipt};
use clresolve_verdict::card::parse_instant;
use clresolve_verdict::schema::bound::BoundSchemaIdentity;
use jiff::Timestamp;

pub use clresolve_verdict::verdict::StepStatus;

use self::canonical_receipt::{CanonicalReceipt, ReceiptFamilyMismatch, choose_likeliest_reading, signer_key};
pub use self::check::{ReceiptCheckKind, ReceiptCheckResult};
pub use self::knowledge::{
    AgentEntryRoutes, BoundReceiptSchema, CalledAgent, MAX_CLOCK_SKEW, PublishedReceiptSigner, ReceiptKnowledge,
    SignerAddresses,
};
use crate::receipt::canonical::CanonicalJsonError;
pub use crate::receipt::echo::RequestMatchStrength;
use crate::receipt::echo::{self, RequestEcho, claim_at_pointer};
use crate::receipt::family::{
    ParsedReceipt, ReceiptClaim, ReceiptFamily, ReceiptFamilyCandidates, ReceiptFamilyDefinition, ReceiptParts,
    ReceiptPartsError, candidate_families,
};
use crate::receipt::json::{JsonNode, MAX_BYTES, ReceiptParseError, parse_receipt_object};
use crate::receipt::question::AgentRequest;

/// The expected value of the signature check.
const SIGNED: &str = "a signature by the key of cl.sig.pub";

/// Message for a signature by the signer's key over a message that no published program signs.
const SIGNED_OTHERWISE: &str = "The signer has signed this receipt in a form that is not published.";

/// Message for a signature algorithm that this program does not check.
const UNCHECKED_ALGORITHM: &str = "The signature's algorithm is not one that is checked.";

/// The verbs that CommandLayer defines (PC-1).
const VERBS: [&str; 15] = [
    "analyze",
    "classify",
    "clean",
    "convert",
    "describe",
    "explain",
    "fetch",
    "format",
    "parse",
    "summarize",
    "authorize",
    "checkout",
    "purchase",
    "ship",
    "verify",
];

/// Result of the checks.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceiptJudgement {
    /// The family, if the shape or the signature determines it.
    pub family: Option<ReceiptFamily>,
    /// Every check, in their fixed order.
    pub checks: Vec<ReceiptCheckResult>,
    /// Every reason, sorted.
    pub reasons: Vec<Reason>,
    /// SHA-256 of the receipt's bytes. `None` if the receipt exceeds the size limit, because a digest of a part would
    /// mislead.
    pub sha256: Option<Digest>,
    /// SHA-256 of the canonical bytes, if there are any.
    pub canonical_sha256: Option<Digest>,
    /// JSON Pointers of members that neither a signature nor a check covers. They prove nothing.
    pub unsigned: Vec<String>,
    /// SHA-256 of the request and purchase that the receipt was shown for, independent of their spelling.
    pub occasion: Option<Digest>,
    /// How the receipt is tied to the request, if it is.
    pub tie: Option<RequestMatchStrength>,
    /// Whether the request has an identifier that no signed member repeats. Nothing then distinguishes it from another
    /// request.
    pub is_id_unchecked: bool,
    /// Whether signed content names the agent, so that the receipt cannot belong to another agent of the same signer. A
    /// verb does not name an agent.
    pub is_agent_compared: bool,
    /// Whether only an address of the agent can have signed the receipt: with EIP-712, or a JWS with ES256K. The signer
    /// that the agent's records name is then irrelevant.
    pub is_by_address: bool,
    /// The schema that the signed members were validated against.
    pub bound: Option<BoundSchemaIdentity>,
    /// What x402's own receipt states about the payment.
    pub paid: Option<X402Receipt>,
}

impl ReceiptJudgement {
    /// Adds reasons found outside the receipt.
    pub(crate) fn with_reasons(mut self, further: &[Reason]) -> Self {
        self.reasons.extend_from_slice(further);
        reason::sort_reasons(&mut self.reasons);
        self
    }

    /// The result of one check.
    pub fn check_result(&self, check: ReceiptCheckKind) -> Option<&ReceiptCheckResult> {
        self.checks.iter().find(|row| row.check == check)
    }

    fn has_valid_signature(&self) -> bool {
        self.check_result(ReceiptCheckKind::Signature).is_some_and(|row| row.status == StepStatus::Pass)
    }

    /// CLAS error codes of the failed checks, in the order of the checks.
    pub fn clas_codes(&self) -> Vec<&'static str> {
        let mut codes: Vec<_> = self.checks.iter().filter_map(|row| row.clas).collect();
        codes.dedup();
        codes
    }

    /// The state that follows from all checks. A receipt is trusted only if its signature is valid and no check failed
    /// or is undecided.
    pub fn trust_state(&self) -> TrustState {
        let worst = self.reasons.iter().map(|reason| reason.effect).min();
        let is_signed = self.has_valid_signature();
        let is_open = self.checks.iter().any(|row| row.status == StepStatus::Unknown)
            && !clresolve_core::mutant!("receipts-hold-undecided");
        match worst {
            Some(ReasonEffect::Fail) => TrustState::Untrusted,
            Some(ReasonEffect::Unknown) => TrustState::Indeterminate,
            Some(ReasonEffect::Warn) | None if is_signed && !is_open => TrustState::Trusted,
            Some(ReasonEffect::Warn) | None => TrustState::Indeterminate,
        }
    }
}

/// Judges the bytes of a receipt. Never fails: defects are part of the judgement.
pub fn judge_receipt(receipt: &[u8], known: &ReceiptKnowledge<'_>) -> ReceiptJudgement {
    let found = match parse_receipt_object(receipt) {
        Err(error) => ReceiptJudgementBuilder::judge_unreadable(&error),
        Ok(receipt) => match candidate_families(&receipt) {
            ReceiptFamilyCandidates::Clear(families) => judge_by_shape(&receipt, &families, known),
            ReceiptFamilyCandidates::Open(families) => judge_by_signature(&receipt, &families, known),
        },
    };
    let occasion = match found.family {
        Some(ReceiptFamily::X1 | ReceiptFamily::X2) => {
            known.bought.map(|bought| Digest::compute(bought.decision.as_bytes()))
        }
        _ => known.request.map(AgentRequest::canonical_digest),
    };
    ReceiptJudgement { sha256: (receipt.len() <= MAX_BYTES).then(|| Digest::compute(receipt)), occasion, ..found }
}

/// Judges the receipt as the family of its shape, or as one of two families with the same shape.
fn judge_by_shape(
    receipt: &JsonNode,
    families: &[&ReceiptFamilyDefinition],
    known: &ReceiptKnowledge<'_>,
) -> ReceiptJudgement {
    let mut checks = ReceiptJudgementBuilder::default();
    let mut readings = Vec::new();
    for family in families {
        match family.parse_receipt(receipt) {
            ParsedReceipt::Parts(reading) => readings.push(CanonicalReceipt::from_parts(*reading)),
            ParsedReceipt::Artifact { artifact, unsigned } => {
                return checks.judge_artifact(family.family, &artifact, unsigned, known);
            }
        }
    }
    match choose_likeliest_reading(readings, known.signer) {
        Some(Ok(canonical)) => {
            checks.add_family_pass(canonical.parts.family);
            return checks.judge_canonical_receipt(canonical, known);
        }
        Some(Err(ReceiptFamilyMismatch::Form(error, root))) => checks.add_canonical_form_error(&error, root),
        Some(Err(ReceiptFamilyMismatch::Parts(error))) => checks.add_parts_error(&error),
        None => {}
    }
    checks.into_judgement()
}

/// Judges the receipt as the family under which its signature is valid, because unsigned members can give a receipt the
/// shape of several families. Prefers the first family in which the receipt is trusted, then the first in which it is
/// signed.
fn judge_by_signature(
    receipt: &JsonNode,
    families: &[&ReceiptFamilyDefinition],
    known: &ReceiptKnowledge<'_>,
) -> ReceiptJudgement {
    let mut signed = None;
    for family in families {
        let found = match family.parse_receipt(receipt) {
            ParsedReceipt::Artifact { artifact, unsigned } => {
                ReceiptJudgementBuilder::default().judge_artifact(family.family, &artifact, unsigned, known)
            }
            ParsedReceipt::Parts(reading) => match CanonicalReceipt::from_parts(*reading) {
                Ok(canonical) if canonical.is_signed_by(known.signer) => {
                    let mut checks = ReceiptJudgementBuilder::default();
                    checks.add_family_pass(family.family);
                    checks.judge_canonical_receipt(canonical, known)
                }
                _ => continue,
            },
        };
        if found.trust_state() == TrustState::Trusted {
            return found;
        }
        if found.has_valid_signature() {
            signed.get_or_insert(found);
        }
    }
    signed.unwrap_or_else(|| ReceiptJudgementBuilder::judgement_without_family(families, known.signer))
}

/// Collects rows and reasons.
#[derive(Default)]
struct ReceiptJudgementBuilder {
    rows: Vec<ReceiptCheckResult>,
    reasons: Vec<Reason>,
    tie: Option<RequestMatchStrength>,
    is_id_unchecked: bool,
    is_agent_compared: bool,
    is_by_address: bool,
    bound: Option<BoundSchemaIdentity>,
}

impl ReceiptJudgementBuilder {
    /// The judgement of a receipt without a family.
    fn into_judgement(self) -> ReceiptJudgement {
        let Self { rows, mut reasons, tie, is_id_unchecked, is_agent_compared, is_by_address, bound } = self;
        reason::sort_reasons(&mut reasons);
        ReceiptJudgement {
            family: None,
            checks: rows,
            reasons,
            sha256: None,
            canonical_sha256: None,
            unsigned: Vec::new(),
            occasion: None,
            tie,
            is_id_unchecked,
            is_agent_compared,
            is_by_address,
            bound,
            paid: None,
        }
    }

    fn judge_canonical_receipt(
        mut self,
        canonical: CanonicalReceipt,
        known: &ReceiptKnowledge<'_>,
    ) -> ReceiptJudgement {
        self.check_signed_content(&canonical, known);
        ReceiptJudgement {
            family: Some(canonical.parts.family),
            canonical_sha256: Some(canonical.digest),
            unsigned: canonical.parts.unsigned,
            ..self.into_judgement()
        }
    }

    fn judge_artifact(
        mut self,
        family: ReceiptFamily,
        artifact: &JsonNode,
        unsigned: Vec<String>,
        known: &ReceiptKnowledge<'_>,
    ) -> ReceiptJudgement {
        let paid = self.check_artifact(family, artifact, known);
        let canonical_sha256 = paid.as_ref().and_then(|paid| paid.digest().parse().ok());
        ReceiptJudgement { family: Some(family), canonical_sha256, unsigned, paid, ..self.into_judgement() }
    }

    fn add_pass(&mut self, check: ReceiptCheckKind, expected: &str, claim: &ReceiptClaim) {
        let (expected, observed) = (Some(clipped_text(expected)), claim.value.as_deref().map(clipped_text));
        let place = Some(claim.place.clone());
        self.rows.push(ReceiptCheckResult {
            expected,
            observed,
            place,
            ..ReceiptCheckResult::new(check, StepStatus::Pass)
        });
    }

    fn add_skip(&mut self, check: ReceiptCheckKind) {
        self.rows.push(ReceiptCheckResult::new(check, StepStatus::Skip));
    }

    /// Adds a reason and the matching row.
    fn add_objection(&mut self, check: ReceiptCheckKind, reason: Reason, clas: Option<&'static str>) {
        let status = if reason.effect == ReasonEffect::Fail { StepStatus::Fail } else { StepStatus::Unknown };
        self.rows.push(ReceiptCheckResult {
            check,
            status,
            expected: reason.expected.clone(),
            observed: reason.observed.clone(),
            place: reason.place.clone(),
            clas,
        });
        self.reasons.push(reason);
    }

    fn judge_unreadable(error: &ReceiptParseError) -> ReceiptJudgement {
        let mut checks = Self::default();
        let invalid = Some("ERR_SCHEMA_INVALID");
        let (reason, clas) = match error {
            ReceiptParseError::DuplicateKey { pointer } => {
                (Reason::new(ReasonCode::ReceiptDuplicateKey).at_place(pointer.as_str()), invalid)
            }
            ReceiptParseError::NotJson(_) => {
                (Reason::new(ReasonCode::ReceiptSchemaInvalid).message("The receipt is not strict JSON."), invalid)
            }
            ReceiptParseError::TooCostly(error) => {
                let reason = Reason::new(ReasonCode::ReceiptFamilyUnknown)
                    .message("The receipt has numbers that cost more to read than is spent on one.");
                (
                    reason
                        .expected(error.exceeded_limit_text().unwrap_or_default())
                        .at_place(error.exceeded_limit_position().unwrap_or_default()),
                    None,
                )
            }
            // A receipt that is too large has no known defect, so the check is undecided.
            ReceiptParseError::TooMuch { .. } => (
                Reason::new(ReasonCode::ReceiptFamilyUnknown).message("The receipt is larger than what is read."),
                None,
            ),
        };
        checks.add_objection(ReceiptCheckKind::Family, reason.observed(error.to_string()), clas);
        checks.into_judgement()
    }

    fn judgement_without_family(
        families: &[&ReceiptFamilyDefinition],
        signer: Result<&PublishedReceiptSigner, &Reason>,
    ) -> ReceiptJudgement {
        let mut checks = Self::default();
        if let (false, Err(reason)) = (families.is_empty(), signer_key(signer)) {
            checks.add_undecided(ReceiptCheckKind::Family);
            checks.add_objection(ReceiptCheckKind::Signature, reason.clone(), Some("ERR_ENS_KEY_NOT_FOUND"));
            return checks.into_judgement();
        }
        let slugs: Vec<_> = families.iter().map(|family| family.family.slug()).collect();
        let expected = "the shape of one family, or a signature that is valid in one of them";
        let reason = Reason::new(ReasonCode::ReceiptFamilyUnknown).expected(expected);
        let observed = if slugs.is_empty() { "none".to_owned() } else { slugs.join(", ") };
        checks.add_objection(ReceiptCheckKind::Family, reason.observed(observed), None);
        checks.into_judgement()
    }

    fn add_family_pass(&mut self, family: ReceiptFamily) {
        let slug = Some(family.slug().to_owned());
        self.rows.push(ReceiptCheckResult {
            expected: slug.clone(),
            observed: slug,
            ..ReceiptCheckResult::new(ReceiptCheckKind::Family, StepStatus::Pass)
        });
    }

    fn add_canonical_form_error(&mut self, error: &CanonicalJsonError, root: &str) {
        let (code, place) = match error {
            CanonicalJsonError::Number(place) => (ReasonCode::ReceiptSchemaInvalid, place),
            CanonicalJsonError::MemberOrder(place) => (ReasonCode::ReceiptFamilyUnknown, place),
        };
        let reason = Reason::new(code).observed(error.to_string()).at_place(clipped_text(&format!("{root}{place}")));
        self.add_objection(ReceiptCheckKind::Canonical, reason, Some("ERR_CANONICALIZATION_MISMATCH"));
    }

    fn add_parts_error(&mut self, error: &ReceiptPartsError) {
        let reason = Reason::new(error.code).observed(error.why).at_place(error.place.as_str());
        match error.code {
            ReasonCode::ReceiptFamilyUnknown => self.add_objection(ReceiptCheckKind::Family, reason, None),
            _ => self.add_objection(ReceiptCheckKind::Schema, reason, Some("ERR_SCHEMA_INVALID")),
        }
    }

    fn check_signed_content(&mut self, canonical: &CanonicalReceipt, known: &ReceiptKnowledge<'_>) {
        self.check_schema(&canonical.parts, known.schema);
        if canonical.parts.names_own_canonical_form() || canonical.is_signed_by(known.signer) {
            self.check_hash(canonical);
            self.check_signature(canonical, known.signer);
        } else {
            // Digest and signature may cover an unknown canonical form. The row of the canonical form reports that.
            self.add_undecided(ReceiptCheckKind::Hash);
            self.add_undecided(ReceiptCheckKind::Signature);
        }
        self.check_key_id(&canonical.parts, known.signer);
        self.check_canonical_form(&canonical.parts);
        self.check_signer(&canonical.parts, known.signer);
        match known.agent {
            Some(agent) => self.check_agent(&canonical.parts, agent, known.signer.ok()),
            None => self.add_undecided(ReceiptCheckKind::Agent),
        }
        self.check_time(&canonical.parts, known);
        self.check_request(canonical, known.request);
        match known.bought {
            Some(bought) => self.check_decision(&canonical.parts, known, bought),
            None => self.add_skip(ReceiptCheckKind::Decision),
        }
    }

    /// Checks that the decision is about this agent and the called verb. CommandLayer's receipts do not describe the
    /// payment.
    fn check_decision(&mut self, parts: &ReceiptParts, known: &ReceiptKnowledge<'_>, bought: &PurchaseFacts) {
        let Some(agent) = known.agent else { return self.add_undecided(ReceiptCheckKind::Decision) };
        let asked =
            known.request.into_iter().flat_map(|request| stated_verbs(request.json_content(), Some(VERB[0]), agent));
        let asked = asked.map(|claim| claim.with_root_prefix("request: "));
        let mut called = signed_verbs(parts, agent).chain(asked);
        let other = called.find(|claim| claim.value.as_deref() != Some(bought.verb.as_str()));
        match (
            check_decision_agent(agent, bought),
            other.filter(|_| !clresolve_core::mutant!("decisions-about-any-verb")),
        ) {
            (Err(reason), _) => self.add_objection(ReceiptCheckKind::Decision, *reason, None),
            (Ok(_), Some(claim)) => {
                self.add_objection(
                    ReceiptCheckKind::Decision,
                    claim_mismatch(ReasonCode::ReceiptRequestMismatch, &bought.verb, &claim),
                    None,
                );
            }
            (Ok(row), None) => self.rows.push(row),
        }
    }

    fn check_hash(&mut self, canonical: &CanonicalReceipt) {
        let Some(claim) = &canonical.parts.hash else { return self.add_skip(ReceiptCheckKind::Hash) };
        if canonical.has_correct_stated_digest() {
            return self.add_pass(ReceiptCheckKind::Hash, &canonical.digest.to_hex(), claim);
        }
        let reason = claim_mismatch(ReasonCode::ReceiptHashMismatch, &canonical.digest.to_hex(), claim);
        self.add_objection(ReceiptCheckKind::Hash, reason, Some("ERR_HASH_MISMATCH"));
    }

    fn check_signature(&mut self, canonical: &CanonicalReceipt, signer: Result<&PublishedReceiptSigner, &Reason>) {
        let ReceiptParts { algorithms, signature, .. } = &canonical.parts;
        for (claim, expected) in algorithms {
            if !claim.names_algorithm(expected) {
                let reason = match claim.value.as_deref() {
                    Some("none") => claim_mismatch(ReasonCode::ReceiptSignatureInvalid, expected, claim),
                    _ => claim_mismatch(ReasonCode::ReceiptFamilyUnknown, expected, claim).message(UNCHECKED_ALGORITHM),
                };
                return self.add_objection(ReceiptCheckKind::Signature, reason, Some("ERR_UNSUPPORTED_ALGORITHM"));
            }
        }
        if let Err(reason) = signer_key(signer) {
            return self.add_objection(ReceiptCheckKind::Signature, reason.clone(), Some("ERR_ENS_KEY_NOT_FOUND"));
        }
        if canonical.is_signed_by(signer) || clresolve_core::mutant!("anybody-signs-receipts") {
            return self.add_pass(ReceiptCheckKind::Signature, SIGNED, signature);
        }
        let (reason, clas) = if canonical.is_signed_in_other_format_by(signer) {
            (Reason::new(ReasonCode::ReceiptFamilyUnknown).message(SIGNED_OTHERWISE), None)
        } else {
            (Reason::new(ReasonCode::ReceiptSignatureInvalid), Some("ERR_INVALID_SIGNATURE"))
        };
        let observed = signature.value.as_deref().unwrap_or_default();
        let reason = reason.at_place(signature.place.as_str()).expected(SIGNED).observed(observed);
        self.add_objection(ReceiptCheckKind::Signature, reason, clas);
    }

    fn check_key_id(&mut self, parts: &ReceiptParts, signer: Result<&PublishedReceiptSigner, &Reason>) {
        let Ok(PublishedReceiptSigner { kid, .. }) = signer else { return self.add_undecided(ReceiptCheckKind::Key) };
        let Some(first) = parts.kids.first() else { return self.add_skip(ReceiptCheckKind::Key) };
        let published = match kid {
            Ok(published) => published,
            Err(reason) => {
                return self.add_objection(ReceiptCheckKind::Key, Reason::clone(reason), Some("ERR_ENS_KEY_NOT_FOUND"));
            }
        };
        let other = parts.kids.iter().find(|claim| claim.value.as_ref() != Some(published));
        match other.filter(|_| !clresolve_core::mutant!("any-key-id-of-a-receipt")) {
            None => self.add_pass(ReceiptCheckKind::Key, published, first),
            Some(claim) => {
                self.add_objection(
                    ReceiptCheckKind::Key,
                    claim_mismatch(ReasonCode::ReceiptKeyMismatch, published, claim),
                    None,
                );
            }
        }
    }

    fn check_canonical_form(&mut self, parts: &ReceiptParts) {
        let (claim, expected) = &parts.canonical;
        if parts.names_own_canonical_form() {
            return self.add_pass(ReceiptCheckKind::Canonical, expected, claim);
        }
        let reason = claim_mismatch(ReasonCode::ReceiptFamilyUnknown, expected, claim)
            .message("The receipt states a canonical form that its family does not have.");
        self.add_objection(ReceiptCheckKind::Canonical, reason, Some("ERR_CANONICALIZATION_MISMATCH"));
    }

    fn check_signer(&mut self, parts: &ReceiptParts, signer: Result<&PublishedReceiptSigner, &Reason>) {
        let Ok(PublishedReceiptSigner { name, .. }) = signer else {
            return self.add_undecided(ReceiptCheckKind::Signer);
        };
        let other = parts.signers.iter().find(|claim| !is_claimed_name(claim, name));
        match (other.filter(|_| !clresolve_core::mutant!("receipts-name-their-signer")), parts.signers.first()) {
            (Some(claim), _) => {
                self.add_objection(
                    ReceiptCheckKind::Signer,
                    claim_mismatch(ReasonCode::ReceiptSignerMismatch, name.as_str(), claim),
                    None,
                );
            }
            (None, Some(first)) => self.add_pass(ReceiptCheckKind::Signer, name.as_str(), first),
            (None, None) => self.add_skip(ReceiptCheckKind::Signer),
        }
    }

    /// Checks that the receipt does not belong to another agent of the same signer. The check passes only if something
    /// was compared.
    fn check_agent(&mut self, parts: &ReceiptParts, agent: &CalledAgent, signer: Option<&PublishedReceiptSigner>) {
        let named = parts.agent.clone().into_iter().chain(agent_names(parts, &agent.name, signer));
        let named = named.map(|claim| (ReasonCode::ReceiptSignerMismatch, vec![agent.name.as_str()], claim));
        let named: Vec<_> = named.collect();
        let entry = parts.claim_at_path(&["x402", "entry"]);
        let own = agent.entry.as_deref().filter(|_| entry.value.is_some());
        let entry = own.map(|own| (ReasonCode::ReceiptRequestMismatch, vec![own], entry));
        let own: Vec<_> = agent.verbs.iter().map(String::as_str).collect();
        let verbs = signed_verbs(parts, agent).filter(|_| !own.is_empty());
        let verbs = verbs.map(|claim| (ReasonCode::ReceiptRequestMismatch, own.clone(), claim));
        self.is_agent_compared =
            !named.is_empty() || entry.is_some() || clresolve_core::mutant!("a-verb-names-the-agent");
        let compared: Vec<_> = named.into_iter().chain(entry).chain(verbs).collect();
        let is_other =
            |own: &[&str], claim: &ReceiptClaim| !claim.value.as_deref().is_some_and(|value| own.contains(&value));
        let other = compared.iter().find(|(_, own, claim)| is_other(own, claim));
        match (other, compared.first()) {
            (Some((code, own, claim)), _) => {
                self.add_objection(ReceiptCheckKind::Agent, claim_mismatch(*code, &own.join(", "), claim), None)
            }
            (None, Some((_, own, claim))) => self.add_pass(ReceiptCheckKind::Agent, &own.join(", "), claim),
            (None, None) => self.add_skip(ReceiptCheckKind::Agent),
        }
    }

    fn check_time(&mut self, parts: &ReceiptParts, known: &ReceiptKnowledge<'_>) {
        const MOMENTS: [&[&str]; 7] = [
            &["ts"],
            &["execution", "started_at"],
            &["execution", "completed_at"],
            &["trace", "started_at"],
            &["trace", "completed_at"],
            &["action", "started_at"],
            &["action", "completed_at"],
        ];
        let latest = known.now.checked_add(MAX_CLOCK_SKEW).unwrap_or(Timestamp::MAX);
        let mut last: Option<(Timestamp, ReceiptClaim)> = None;
        for path in MOMENTS.into_iter().filter(|path| parts.content.get_path(path).is_some()) {
            let claim = parts.claim_at_path(path);
            let Some(moment) = claim.value.as_deref().and_then(parse_instant) else {
                let reason = claim_mismatch(ReasonCode::ReceiptTimeImplausible, "an RFC 3339 time", &claim);
                return self.add_objection(ReceiptCheckKind::Time, reason, None);
            };
            if moment > latest && !clresolve_core::mutant!("receipts-of-tomorrow") {
                let reason =
                    claim_mismatch(ReasonCode::ReceiptTimeImplausible, &format!("no later than {latest}"), &claim);
                return self.add_objection(ReceiptCheckKind::Time, reason, None);
            }
            let began = parts.content.text_at(&[path[0], "started_at"]).and_then(parse_instant);
            if let Some(began) = began
                && path.ends_with(&["completed_at"])
                && moment < began
            {
                let reason =
                    claim_mismatch(ReasonCode::ReceiptTimeImplausible, &format!("no earlier than {began}"), &claim);
                return self.add_objection(ReceiptCheckKind::Time, reason, None);
            }
            if last.as_ref().is_none_or(|(last, _)| *last <= moment) {
                last = Some((moment, claim));
            }
        }
        let Some((moment, claim)) = last else { return self.add_skip(ReceiptCheckKind::Time) };
        // Activity may begin before the purchase, so the latest time in the receipt is compared.
        match known.earliest_receipt_time().filter(|first| moment < *first) {
            Some(first) => self.add_predates_purchase(first, &claim),
            None => self.add_pass(ReceiptCheckKind::Time, &format!("no later than {latest}"), &claim),
        }
    }

    /// Reports a receipt from before the purchase.
    fn add_predates_purchase(&mut self, first: Timestamp, claim: &ReceiptClaim) {
        let reason = claim_mismatch(ReasonCode::ReceiptTimeImplausible, &format!("no earlier than {first}"), claim);
        self.add_objection(ReceiptCheckKind::Time, reason.message("The receipt was signed before the purchase."), None);
    }

    fn check_request(&mut self, canonical: &CanonicalReceipt, request: Option<&AgentRequest>) {
        let Some(request) = request else { return self.add_skip(ReceiptCheckKind::Request) };
        let root = canonical.parts.root;
        match echo::find_echo(&canonical.parts.content, request.json_content()) {
            Ok(RequestEcho { asked, claim, tie }) => {
                self.tie = Some(tie);
                self.is_id_unchecked =
                    tie != RequestMatchStrength::RequestId && echo::has_request_id(request.json_content());
                self.add_pass(ReceiptCheckKind::Request, &asked, &claim.with_root_prefix(root));
            }
            Err(reason) => {
                let place = reason.place.as_ref().map(|place| format!("{root}{place}"));
                self.add_objection(ReceiptCheckKind::Request, Reason { place, ..*reason }, None);
            }
        }
    }

    /// Marks a check as undecided without a reason of its own. The signature's row reports the cause.
    fn add_undecided(&mut self, check: ReceiptCheckKind) {
        self.rows.push(ReceiptCheckResult::new(check, StepStatus::Unknown));
    }
}

/// The names in the signed content, besides the family's own place, that may identify the agent, in normal form: the
/// asked one, and every other below `.eth`. Published runtimes also write the signer's name there. Other words with a
/// dot, such as `node.js`, are not names of agents.
fn agent_names(
    parts: &ReceiptParts,
    asked: &EnsName,
    signer: Option<&PublishedReceiptSigner>,
) -> impl Iterator<Item = ReceiptClaim> {
    const PLACES: [&[&str]; 4] = [&["agent"], &["agent", "ens"], &["agent_name"], &["ens_name"]];
    PLACES.into_iter().filter_map(move |path| {
        let claim = parts.claim_at_path(path);
        let name = EnsName::parse(claim.value.as_deref()?).ok()?;
        let is_other = || name.as_str().ends_with(".eth") && signer.is_none_or(|signer| signer.name != name);
        (name == *asked || is_other()).then(|| ReceiptClaim { value: Some(name.as_str().to_owned()), ..claim })
    })
}

fn signed_verbs(parts: &ReceiptParts, agent: &CalledAgent) -> impl Iterator<Item = ReceiptClaim> {
    let verb_member = parts.family.follows_published_schemas().then_some(VERB[0]);
    let stated = stated_verbs(&parts.content, verb_member, agent);
    stated.into_iter().map(|claim| claim.with_root_prefix(parts.root))
}

/// What a receipt or a request states about the called verb. Any word counts in `verb_member`, the member of
/// CommandLayer's schemas for the verb, if the document follows them. Elsewhere a word counts only if it is a verb of
/// CommandLayer or of the agent, because a signer may use its own words.
fn stated_verbs(content: &JsonNode, verb_member: Option<&str>, agent: &CalledAgent) -> Vec<ReceiptClaim> {
    let is_known = |word: &str| VERBS.contains(&word) || agent.verbs.iter().any(|own| own == word);
    let is_verb = |place: &str, word: &str| is_known(word) || verb_member == Some(place);
    let stated = VERB.map(|place| (place, claim_at_pointer(content, place)));
    let named =
        stated.into_iter().filter(|(place, claim)| claim.value.as_deref().is_some_and(|word| is_verb(place, word)));
    named.map(|(_, claim)| claim).collect()
}

/// The row for a decision about this agent.
///
/// # Errors
/// `receipt-request-mismatch` if the decision is about another agent.
fn check_decision_agent(agent: &CalledAgent, bought: &PurchaseFacts) -> Result<ReceiptCheckResult, Box<Reason>> {
    let (name, place) = (agent.name.as_str(), "decision: /name");
    if bought.name != name {
        let reason = Reason::new(ReasonCode::ReceiptRequestMismatch)
            .expected(name)
            .observed(bought.name.as_str())
            .at_place(place);
        return Err(Box::new(reason));
    }
    let (expected, observed) = (Some(name.to_owned()), Some(bought.name.clone()));
    Ok(ReceiptCheckResult {
        expected,
        observed,
        place: Some(place.to_owned()),
        ..ReceiptCheckResult::new(ReceiptCheckKind::Decision, StepStatus::Pass)
    })
}

fn claim_mismatch(code: ReasonCode, expected: &str, claim: &ReceiptClaim) -> Reason {
    let observed = claim.value.as_deref().unwrap_or("nothing");
    Reason::new(code).expected(expected).observed(observed).at_place(claim.place.as_str())
}

/// Compares byte for byte, so that a receipt's signer has one spelling.
fn is_claimed_name(claim: &ReceiptClaim, name: &EnsName) -> bool {
    claim.value.as_deref() == Some(name.as_str())
}

fn clipped_text(text: &str) -> String {
    clresolve_core::text::truncate_bytes(text, reason::MAX_VALUE_BYTES)
}

#[cfg(test)]
mod tests;
