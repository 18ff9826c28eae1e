//! The checks of a receipt, each with the expected and the observed value.

mod canonical_receipt;
mod check;
mod knowledge;
mod x402;

use clresolve_core::call::VERB;
use clresolve_core::digest::Digest;
use clresolve_core::name::EnsName;
use clresolve_core::reason::{self, Code, Effect, Reason};
use clresolve_core::state::State;
use clresolve_payment::receipt::{Bought, Receipt};
use clresolve_verdict::card::instant;
use clresolve_verdict::schema::bound::BoundName;
use jiff::Timestamp;

pub use clresolve_verdict::verdict::Status;

use self::canonical_receipt::{CanonicalReceipt, NoReading, key_of, likeliest};
pub use self::check::{ReceiptCheck, Row};
pub use self::knowledge::{
    AgentRoutes, BoundReceipt, MAX_CLOCK_SKEW, ReceiptAgent, ReceiptKnowledge, ReceiptSigner, SignerAddresses,
};
use crate::receipt::canonical::NoForm;
pub use crate::receipt::echo::Tie;
use crate::receipt::echo::{self, Echo, stated_at};
use crate::receipt::family::{Candidate, Claim, Family, NoSignedParts, Reading, Shape, SignedParts, shape};
use crate::receipt::json::{MAX_BYTES, Node, Unreadable, parse};
use crate::receipt::question::Request;

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
    pub family: Option<Family>,
    /// Every check, in their fixed order.
    pub checks: Vec<Row>,
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
    pub tie: Option<Tie>,
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
    pub bound: Option<BoundName>,
    /// What x402's own receipt states about the payment.
    pub paid: Option<Receipt>,
}

impl ReceiptJudgement {
    /// Adds reasons found outside the receipt.
    pub(crate) fn with(mut self, further: &[Reason]) -> Self {
        self.reasons.extend_from_slice(further);
        reason::sort(&mut self.reasons);
        self
    }

    /// The result of one check.
    pub fn row(&self, check: ReceiptCheck) -> Option<&Row> {
        self.checks.iter().find(|row| row.check == check)
    }

    fn is_signed(&self) -> bool {
        self.row(ReceiptCheck::Signature).is_some_and(|row| row.status == Status::Pass)
    }

    /// CLAS error codes of the failed checks, in the order of the checks.
    pub fn clas(&self) -> Vec<&'static str> {
        let mut codes: Vec<_> = self.checks.iter().filter_map(|row| row.clas).collect();
        codes.dedup();
        codes
    }

    /// The state that follows from all checks. A receipt is trusted only if its signature is valid and no check failed
    /// or is undecided.
    pub fn state(&self) -> State {
        let worst = self.reasons.iter().map(|reason| reason.effect).min();
        let is_signed = self.is_signed();
        let is_open = self.checks.iter().any(|row| row.status == Status::Unknown)
            && !clresolve_core::mutant!("receipts-hold-undecided");
        match worst {
            Some(Effect::Fail) => State::Untrusted,
            Some(Effect::Unknown) => State::Indeterminate,
            Some(Effect::Warn) | None if is_signed && !is_open => State::Trusted,
            Some(Effect::Warn) | None => State::Indeterminate,
        }
    }
}

/// Judges the bytes of a receipt. Never fails: defects are part of the judgement.
pub fn judge(receipt: &[u8], known: &ReceiptKnowledge<'_>) -> ReceiptJudgement {
    let found = match parse(receipt) {
        Err(error) => Checks::unreadable(&error),
        Ok(receipt) => match shape(&receipt) {
            Shape::Clear(families) => judged_by_shape(&receipt, &families, known),
            Shape::Open(families) => judged_by_signature(&receipt, &families, known),
        },
    };
    let occasion = match found.family {
        Some(Family::X1 | Family::X2) => known.bought.map(|bought| Digest::of(bought.decision.as_bytes())),
        _ => known.request.map(Request::meaning),
    };
    ReceiptJudgement { sha256: (receipt.len() <= MAX_BYTES).then(|| Digest::of(receipt)), occasion, ..found }
}

/// Judges the receipt as the family of its shape, or as one of two families with the same shape.
fn judged_by_shape(receipt: &Node, families: &[Candidate], known: &ReceiptKnowledge<'_>) -> ReceiptJudgement {
    let mut checks = Checks::default();
    let mut readings = Vec::new();
    for family in families {
        match family.read(receipt) {
            Reading::Parts(reading) => readings.push(CanonicalReceipt::of(*reading)),
            Reading::Artifact { artifact, unsigned } => {
                return checks.artifact_judged(family.family(), &artifact, unsigned, known);
            }
        }
    }
    match likeliest(readings, known.signer) {
        Some(Ok(canonical)) => {
            checks.family(canonical.parts.family);
            return checks.canonical_judged(canonical, known);
        }
        Some(Err(NoReading::Form(error, root))) => checks.without_form(&error, root),
        Some(Err(NoReading::Parts(error))) => checks.without_parts(&error),
        None => {}
    }
    checks.judged()
}

/// Judges the receipt as the family under which its signature is valid, because unsigned members can give a receipt the
/// shape of several families. Prefers the first family in which the receipt is trusted, then the first in which it is
/// signed.
fn judged_by_signature(receipt: &Node, families: &[Candidate], known: &ReceiptKnowledge<'_>) -> ReceiptJudgement {
    let mut signed = None;
    for family in families {
        let found = match family.read(receipt) {
            Reading::Artifact { artifact, unsigned } => {
                Checks::default().artifact_judged(family.family(), &artifact, unsigned, known)
            }
            Reading::Parts(reading) => match CanonicalReceipt::of(*reading) {
                Ok(canonical) if canonical.is_signed_by(known.signer) => {
                    let mut checks = Checks::default();
                    checks.family(family.family());
                    checks.canonical_judged(canonical, known)
                }
                _ => continue,
            },
        };
        if found.state() == State::Trusted {
            return found;
        }
        if found.is_signed() {
            signed.get_or_insert(found);
        }
    }
    signed.unwrap_or_else(|| Checks::without_family(families, known.signer))
}

/// Collects rows and reasons.
#[derive(Default)]
struct Checks {
    rows: Vec<Row>,
    reasons: Vec<Reason>,
    tie: Option<Tie>,
    is_id_unchecked: bool,
    is_agent_compared: bool,
    is_by_address: bool,
    bound: Option<BoundName>,
}

impl Checks {
    /// The judgement of a receipt without a family.
    fn judged(self) -> ReceiptJudgement {
        let Self { rows, mut reasons, tie, is_id_unchecked, is_agent_compared, is_by_address, bound } = self;
        reason::sort(&mut reasons);
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

    fn canonical_judged(mut self, canonical: CanonicalReceipt, known: &ReceiptKnowledge<'_>) -> ReceiptJudgement {
        self.signed(&canonical, known);
        ReceiptJudgement {
            family: Some(canonical.parts.family),
            canonical_sha256: Some(canonical.digest),
            unsigned: canonical.parts.unsigned,
            ..self.judged()
        }
    }

    fn artifact_judged(
        mut self,
        family: Family,
        artifact: &Node,
        unsigned: Vec<String>,
        known: &ReceiptKnowledge<'_>,
    ) -> ReceiptJudgement {
        let paid = self.artifact(family, artifact, known);
        let canonical_sha256 = paid.as_ref().and_then(|paid| paid.digest().parse().ok());
        ReceiptJudgement { family: Some(family), canonical_sha256, unsigned, paid, ..self.judged() }
    }

    fn pass(&mut self, check: ReceiptCheck, expected: &str, claim: &Claim) {
        let (expected, observed) = (Some(clipped(expected)), claim.value.as_deref().map(clipped));
        let place = Some(claim.place.clone());
        self.rows.push(Row { expected, observed, place, ..Row::new(check, Status::Pass) });
    }

    fn skip(&mut self, check: ReceiptCheck) {
        self.rows.push(Row::new(check, Status::Skip));
    }

    /// Adds a reason and the matching row.
    fn object(&mut self, check: ReceiptCheck, reason: Reason, clas: Option<&'static str>) {
        let status = if reason.effect == Effect::Fail { Status::Fail } else { Status::Unknown };
        self.rows.push(Row {
            check,
            status,
            expected: reason.expected.clone(),
            observed: reason.observed.clone(),
            place: reason.place.clone(),
            clas,
        });
        self.reasons.push(reason);
    }

    fn unreadable(error: &Unreadable) -> ReceiptJudgement {
        let mut checks = Self::default();
        let invalid = Some("ERR_SCHEMA_INVALID");
        let (reason, clas) = match error {
            Unreadable::DuplicateKey { pointer } => {
                (Reason::new(Code::ReceiptDuplicateKey).at(pointer.as_str()), invalid)
            }
            Unreadable::NotJson(_) => {
                (Reason::new(Code::ReceiptSchemaInvalid).message("The receipt is not strict JSON."), invalid)
            }
            Unreadable::TooCostly(error) => {
                let reason = Reason::new(Code::ReceiptFamilyUnknown)
                    .message("The receipt has numbers that cost more to read than is spent on one.");
                (reason.expected(error.at_most().unwrap_or_default()).at(error.position().unwrap_or_default()), None)
            }
            // A receipt that is too large has no known defect, so the check is undecided.
            Unreadable::TooMuch { .. } => {
                (Reason::new(Code::ReceiptFamilyUnknown).message("The receipt is larger than what is read."), None)
            }
        };
        checks.object(ReceiptCheck::Family, reason.observed(error.to_string()), clas);
        checks.judged()
    }

    fn without_family(families: &[Candidate], signer: Result<&ReceiptSigner, &Reason>) -> ReceiptJudgement {
        let mut checks = Self::default();
        if let (false, Err(reason)) = (families.is_empty(), key_of(signer)) {
            checks.undecided(ReceiptCheck::Family);
            checks.object(ReceiptCheck::Signature, reason.clone(), Some("ERR_ENS_KEY_NOT_FOUND"));
            return checks.judged();
        }
        let slugs: Vec<_> = families.iter().map(|family| family.family().slug()).collect();
        let expected = "the shape of one family, or a signature that is valid in one of them";
        let reason = Reason::new(Code::ReceiptFamilyUnknown).expected(expected);
        let observed = if slugs.is_empty() { "none".to_owned() } else { slugs.join(", ") };
        checks.object(ReceiptCheck::Family, reason.observed(observed), None);
        checks.judged()
    }

    fn family(&mut self, family: Family) {
        let slug = Some(family.slug().to_owned());
        self.rows.push(Row { expected: slug.clone(), observed: slug, ..Row::new(ReceiptCheck::Family, Status::Pass) });
    }

    fn without_form(&mut self, error: &NoForm, root: &str) {
        let (code, place) = match error {
            NoForm::Number(place) => (Code::ReceiptSchemaInvalid, place),
            NoForm::MemberOrder(place) => (Code::ReceiptFamilyUnknown, place),
        };
        let reason = Reason::new(code).observed(error.to_string()).at(clipped(&format!("{root}{place}")));
        self.object(ReceiptCheck::Canonical, reason, Some("ERR_CANONICALIZATION_MISMATCH"));
    }

    fn without_parts(&mut self, error: &NoSignedParts) {
        let reason = Reason::new(error.code).observed(error.why).at(error.place.as_str());
        match error.code {
            Code::ReceiptFamilyUnknown => self.object(ReceiptCheck::Family, reason, None),
            _ => self.object(ReceiptCheck::Schema, reason, Some("ERR_SCHEMA_INVALID")),
        }
    }

    fn signed(&mut self, canonical: &CanonicalReceipt, known: &ReceiptKnowledge<'_>) {
        self.schema(&canonical.parts, known.schema);
        if canonical.parts.names_its_form() || canonical.is_signed_by(known.signer) {
            self.hash(canonical);
            self.signature(canonical, known.signer);
        } else {
            // Digest and signature may cover an unknown canonical form. The row of the canonical form reports that.
            self.undecided(ReceiptCheck::Hash);
            self.undecided(ReceiptCheck::Signature);
        }
        self.key(&canonical.parts, known.signer);
        self.canonical(&canonical.parts);
        self.signer(&canonical.parts, known.signer);
        match known.agent {
            Some(agent) => self.agent(&canonical.parts, agent, known.signer.ok()),
            None => self.undecided(ReceiptCheck::Agent),
        }
        self.time(&canonical.parts, known);
        self.request(canonical, known.request);
        match known.bought {
            Some(bought) => self.decision(&canonical.parts, known, bought),
            None => self.skip(ReceiptCheck::Decision),
        }
    }

    /// Checks that the decision is about this agent and the called verb. CommandLayer's receipts do not describe the
    /// payment.
    fn decision(&mut self, parts: &SignedParts, known: &ReceiptKnowledge<'_>, bought: &Bought) {
        let Some(agent) = known.agent else { return self.undecided(ReceiptCheck::Decision) };
        let asked = known.request.into_iter().flat_map(|request| verbs(request.content(), Envelope::OfSchemas, agent));
        let asked = asked.map(|claim| claim.below("request: "));
        let mut called = signed_verbs(parts, agent).chain(asked);
        let other = called.find(|claim| claim.value.as_deref() != Some(bought.verb.as_str()));
        match (decided_about(agent, bought), other.filter(|_| !clresolve_core::mutant!("decisions-about-any-verb"))) {
            (Err(reason), _) => self.object(ReceiptCheck::Decision, *reason, None),
            (Ok(_), Some(claim)) => {
                self.object(ReceiptCheck::Decision, differs(Code::ReceiptRequestMismatch, &bought.verb, &claim), None);
            }
            (Ok(row), None) => self.rows.push(row),
        }
    }

    /// PC-7 and CL-63, for the families whose receipts follow the published schemas.
    fn schema(&mut self, parts: &SignedParts, bound: Option<BoundReceipt<'_>>) {
        if !parts.family.is_of_schemas() {
            return self.skip(ReceiptCheck::Schema);
        }
        let content = &parts.content;
        let has_text = |path: &[&str]| content.text_at(path).is_some();
        let status = content.text_at(&["status"]);
        let missing = [
            (!has_text(&["x402", "verb"]), "/x402/verb", "a text"),
            (!has_text(&["x402", "version"]), "/x402/version", "a text"),
            (!has_text(&["trace", "trace_id"]), "/trace/trace_id", "a text"),
            (
                !status.is_some_and(|word| ["success", "error", "delegated"].contains(&word)),
                "/status",
                "success, error or delegated",
            ),
            (status == Some("success") && !content.get("result").is_some_and(Node::is_object), "/result", "an object"),
            (status == Some("error") && !content.get("error").is_some_and(Node::is_object), "/error", "an object"),
        ];
        match missing.into_iter().find(|(is_missing, ..)| *is_missing) {
            None => self.bound_schema(parts, bound),
            Some((_, place, expected)) => {
                let reason = Reason::new(Code::ReceiptSchemaInvalid).requirement("PC-7").expected(expected);
                let reason = reason.at(format!("{}{place}", parts.root));
                self.object(ReceiptCheck::Schema, reason, Some("ERR_SCHEMA_INVALID"));
            }
        }
    }

    /// CL-63: validates the signed content against the schema that the agent's card binds for the verb. Unsigned
    /// members are excluded.
    fn bound_schema(&mut self, parts: &SignedParts, bound: Option<BoundReceipt<'_>>) {
        let verb = parts.content.text_at(&["x402", "verb"]);
        let Some(BoundReceipt { schema, .. }) = bound.filter(|bound| verb == Some(bound.verb)) else {
            return self.rows.push(Row::new(ReceiptCheck::Schema, Status::Pass));
        };
        let schema = match schema {
            Ok(schema) => schema,
            Err(reasons) => return self.no_schema(reasons),
        };
        self.bound = Some(schema.name().clone());
        let id = schema.name().id.as_str();
        let content = parts.content.to_value();
        let mut violations =
            schema.every_violation(&content).filter(|_| !clresolve_core::mutant!("receipts-of-any-schema"));
        match violations.next() {
            None => {
                let row = Row::new(ReceiptCheck::Schema, Status::Pass);
                self.rows.push(Row { expected: Some(id.to_owned()), observed: Some("valid".to_owned()), ..row });
            }
            Some(violation) => {
                let reason = Reason::new(Code::ReceiptSchemaInvalid)
                    .message("The receipt is not what its bound schema demands.");
                let reason = reason.expected(id).observed(violation.detail);
                let reason = reason.at(format!("{}{}", parts.root, violation.pointer));
                self.object(ReceiptCheck::Schema, reason, Some("ERR_SCHEMA_INVALID"));
            }
        }
    }

    /// Adds every reason why the schema is unknown, and a row with the worst of them.
    fn no_schema(&mut self, reasons: &[Reason]) {
        let mut reasons = reasons.to_vec();
        reason::sort(&mut reasons);
        let mut reasons = reasons.into_iter();
        let worst =
            reasons.next().unwrap_or_else(|| Reason::new(Code::SchemaUnavailable).observed("the cause is unknown"));
        self.object(ReceiptCheck::Schema, worst, None);
        self.reasons.extend(reasons);
    }

    fn hash(&mut self, canonical: &CanonicalReceipt) {
        let Some(claim) = &canonical.parts.hash else { return self.skip(ReceiptCheck::Hash) };
        if canonical.states_its_digest() {
            return self.pass(ReceiptCheck::Hash, &canonical.digest.hex(), claim);
        }
        let reason = differs(Code::ReceiptHashMismatch, &canonical.digest.hex(), claim);
        self.object(ReceiptCheck::Hash, reason, Some("ERR_HASH_MISMATCH"));
    }

    fn signature(&mut self, canonical: &CanonicalReceipt, signer: Result<&ReceiptSigner, &Reason>) {
        let SignedParts { algorithms, signature, .. } = &canonical.parts;
        for (claim, expected) in algorithms {
            if !claim.names_algorithm(expected) {
                let reason = match claim.value.as_deref() {
                    Some("none") => differs(Code::ReceiptSignatureInvalid, expected, claim),
                    _ => differs(Code::ReceiptFamilyUnknown, expected, claim).message(UNCHECKED_ALGORITHM),
                };
                return self.object(ReceiptCheck::Signature, reason, Some("ERR_UNSUPPORTED_ALGORITHM"));
            }
        }
        if let Err(reason) = key_of(signer) {
            return self.object(ReceiptCheck::Signature, reason.clone(), Some("ERR_ENS_KEY_NOT_FOUND"));
        }
        if canonical.is_signed_by(signer) || clresolve_core::mutant!("anybody-signs-receipts") {
            return self.pass(ReceiptCheck::Signature, SIGNED, signature);
        }
        let (reason, clas) = if canonical.is_signed_otherwise_by(signer) {
            (Reason::new(Code::ReceiptFamilyUnknown).message(SIGNED_OTHERWISE), None)
        } else {
            (Reason::new(Code::ReceiptSignatureInvalid), Some("ERR_INVALID_SIGNATURE"))
        };
        let observed = signature.value.as_deref().unwrap_or_default();
        let reason = reason.at(signature.place.as_str()).expected(SIGNED).observed(observed);
        self.object(ReceiptCheck::Signature, reason, clas);
    }

    fn key(&mut self, parts: &SignedParts, signer: Result<&ReceiptSigner, &Reason>) {
        let Ok(ReceiptSigner { kid, .. }) = signer else { return self.undecided(ReceiptCheck::Key) };
        let Some(first) = parts.kids.first() else { return self.skip(ReceiptCheck::Key) };
        let published = match kid {
            Ok(published) => published,
            Err(reason) => {
                return self.object(ReceiptCheck::Key, Reason::clone(reason), Some("ERR_ENS_KEY_NOT_FOUND"));
            }
        };
        let other = parts.kids.iter().find(|claim| claim.value.as_ref() != Some(published));
        match other.filter(|_| !clresolve_core::mutant!("any-key-id-of-a-receipt")) {
            None => self.pass(ReceiptCheck::Key, published, first),
            Some(claim) => {
                self.object(ReceiptCheck::Key, differs(Code::ReceiptKeyMismatch, published, claim), None);
            }
        }
    }

    fn canonical(&mut self, parts: &SignedParts) {
        let (claim, expected) = &parts.canonical;
        if parts.names_its_form() {
            return self.pass(ReceiptCheck::Canonical, expected, claim);
        }
        let reason = differs(Code::ReceiptFamilyUnknown, expected, claim)
            .message("The receipt states a canonical form that its family does not have.");
        self.object(ReceiptCheck::Canonical, reason, Some("ERR_CANONICALIZATION_MISMATCH"));
    }

    fn signer(&mut self, parts: &SignedParts, signer: Result<&ReceiptSigner, &Reason>) {
        let Ok(ReceiptSigner { name, .. }) = signer else { return self.undecided(ReceiptCheck::Signer) };
        let other = parts.signers.iter().find(|claim| !is_name(claim, name));
        match (other.filter(|_| !clresolve_core::mutant!("receipts-name-their-signer")), parts.signers.first()) {
            (Some(claim), _) => {
                self.object(ReceiptCheck::Signer, differs(Code::ReceiptSignerMismatch, name.as_str(), claim), None);
            }
            (None, Some(first)) => self.pass(ReceiptCheck::Signer, name.as_str(), first),
            (None, None) => self.skip(ReceiptCheck::Signer),
        }
    }

    /// Checks that the receipt does not belong to another agent of the same signer. The check passes only if something
    /// was compared.
    fn agent(&mut self, parts: &SignedParts, agent: &ReceiptAgent, signer: Option<&ReceiptSigner>) {
        let named = parts.agent.clone().into_iter().chain(agent_names(parts, &agent.name, signer));
        let named = named.map(|claim| (Code::ReceiptSignerMismatch, vec![agent.name.as_str()], claim));
        let named: Vec<_> = named.collect();
        let entry = parts.claim(&["x402", "entry"]);
        let own = agent.entry.as_deref().filter(|_| entry.value.is_some());
        let entry = own.map(|own| (Code::ReceiptRequestMismatch, vec![own], entry));
        let own: Vec<_> = agent.verbs.iter().map(String::as_str).collect();
        let verbs = signed_verbs(parts, agent).filter(|_| !own.is_empty());
        let verbs = verbs.map(|claim| (Code::ReceiptRequestMismatch, own.clone(), claim));
        self.is_agent_compared =
            !named.is_empty() || entry.is_some() || clresolve_core::mutant!("a-verb-names-the-agent");
        let compared: Vec<_> = named.into_iter().chain(entry).chain(verbs).collect();
        let is_other = |own: &[&str], claim: &Claim| !claim.value.as_deref().is_some_and(|value| own.contains(&value));
        let other = compared.iter().find(|(_, own, claim)| is_other(own, claim));
        match (other, compared.first()) {
            (Some((code, own, claim)), _) => {
                self.object(ReceiptCheck::Agent, differs(*code, &own.join(", "), claim), None)
            }
            (None, Some((_, own, claim))) => self.pass(ReceiptCheck::Agent, &own.join(", "), claim),
            (None, None) => self.skip(ReceiptCheck::Agent),
        }
    }

    fn time(&mut self, parts: &SignedParts, known: &ReceiptKnowledge<'_>) {
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
        let mut last: Option<(Timestamp, Claim)> = None;
        for path in MOMENTS.into_iter().filter(|path| parts.content.at(path).is_some()) {
            let claim = parts.claim(path);
            let Some(moment) = claim.value.as_deref().and_then(instant) else {
                let reason = differs(Code::ReceiptTimeImplausible, "an RFC 3339 time", &claim);
                return self.object(ReceiptCheck::Time, reason, None);
            };
            if moment > latest && !clresolve_core::mutant!("receipts-of-tomorrow") {
                let reason = differs(Code::ReceiptTimeImplausible, &format!("no later than {latest}"), &claim);
                return self.object(ReceiptCheck::Time, reason, None);
            }
            let began = parts.content.text_at(&[path[0], "started_at"]).and_then(instant);
            if let Some(began) = began
                && path.ends_with(&["completed_at"])
                && moment < began
            {
                let reason = differs(Code::ReceiptTimeImplausible, &format!("no earlier than {began}"), &claim);
                return self.object(ReceiptCheck::Time, reason, None);
            }
            if last.as_ref().is_none_or(|(last, _)| *last <= moment) {
                last = Some((moment, claim));
            }
        }
        let Some((moment, claim)) = last else { return self.skip(ReceiptCheck::Time) };
        // Activity may begin before the purchase, so the latest time in the receipt is compared.
        match known.first().filter(|first| moment < *first) {
            Some(first) => self.is_older(first, &claim),
            None => self.pass(ReceiptCheck::Time, &format!("no later than {latest}"), &claim),
        }
    }

    /// Reports a receipt from before the purchase.
    fn is_older(&mut self, first: Timestamp, claim: &Claim) {
        let reason = differs(Code::ReceiptTimeImplausible, &format!("no earlier than {first}"), claim);
        self.object(ReceiptCheck::Time, reason.message("The receipt was signed before the purchase."), None);
    }

    fn request(&mut self, canonical: &CanonicalReceipt, request: Option<&Request>) {
        let Some(request) = request else { return self.skip(ReceiptCheck::Request) };
        let root = canonical.parts.root;
        match echo::of(&canonical.parts.content, request.content()) {
            Ok(Echo { asked, claim, tie }) => {
                self.tie = Some(tie);
                self.is_id_unchecked = tie != Tie::RequestId && echo::is_identified(request.content());
                self.pass(ReceiptCheck::Request, &asked, &claim.below(root));
            }
            Err(reason) => {
                let place = reason.place.as_ref().map(|place| format!("{root}{place}"));
                self.object(ReceiptCheck::Request, Reason { place, ..*reason }, None);
            }
        }
    }

    /// Marks a check as undecided without a reason of its own. The signature's row reports the cause.
    fn undecided(&mut self, check: ReceiptCheck) {
        self.rows.push(Row::new(check, Status::Unknown));
    }
}

/// The names in the signed content, besides the family's own place, that may identify the agent, in normal form: the
/// asked one, and every other below `.eth`. Published runtimes also write the signer's name there. Other words with a
/// dot, such as `node.js`, are not names of agents.
fn agent_names(parts: &SignedParts, asked: &EnsName, signer: Option<&ReceiptSigner>) -> impl Iterator<Item = Claim> {
    const PLACES: [&[&str]; 4] = [&["agent"], &["agent", "ens"], &["agent_name"], &["ens_name"]];
    PLACES.into_iter().filter_map(move |path| {
        let claim = parts.claim(path);
        let name = EnsName::parse(claim.value.as_deref()?).ok()?;
        let is_other = || name.as_str().ends_with(".eth") && signer.is_none_or(|signer| signer.name != name);
        (name == *asked || is_other()).then(|| Claim { value: Some(name.as_str().to_owned()), ..claim })
    })
}

fn signed_verbs(parts: &SignedParts, agent: &ReceiptAgent) -> impl Iterator<Item = Claim> {
    let envelope = if parts.family.is_of_schemas() { Envelope::OfSchemas } else { Envelope::Own };
    verbs(&parts.content, envelope, agent).into_iter().map(|claim| claim.below(parts.root))
}

/// Whose definition of `x402` applies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Envelope {
    /// CommandLayer's schemas, which define a member for the verb.
    OfSchemas,
    /// The signer's own definition.
    Own,
}

/// What a receipt or a request states about the called verb. Outside the schemas' member, a word counts only if it is a
/// verb of CommandLayer or of the agent, because a signer may use its own words.
fn verbs(content: &Node, envelope: Envelope, agent: &ReceiptAgent) -> Vec<Claim> {
    let is_known = |word: &str| VERBS.contains(&word) || agent.verbs.iter().any(|own| own == word);
    let is_verb = |place: &str, word: &str| is_known(word) || (envelope == Envelope::OfSchemas && place == VERB[0]);
    let stated = VERB.map(|place| (place, stated_at(content, place)));
    let named =
        stated.into_iter().filter(|(place, claim)| claim.value.as_deref().is_some_and(|word| is_verb(place, word)));
    named.map(|(_, claim)| claim).collect()
}

/// The row for a decision about this agent.
///
/// # Errors
/// `receipt-request-mismatch` if the decision is about another agent.
fn decided_about(agent: &ReceiptAgent, bought: &Bought) -> Result<Row, Box<Reason>> {
    let (name, place) = (agent.name.as_str(), "decision: /name");
    if bought.name != name {
        let reason = Reason::new(Code::ReceiptRequestMismatch).expected(name).observed(bought.name.as_str()).at(place);
        return Err(Box::new(reason));
    }
    let (expected, observed) = (Some(name.to_owned()), Some(bought.name.clone()));
    Ok(Row { expected, observed, place: Some(place.to_owned()), ..Row::new(ReceiptCheck::Decision, Status::Pass) })
}

fn differs(code: Code, expected: &str, claim: &Claim) -> Reason {
    let observed = claim.value.as_deref().unwrap_or("nothing");
    Reason::new(code).expected(expected).observed(observed).at(claim.place.as_str())
}

/// Compares byte for byte, so that a receipt's signer has one spelling.
fn is_name(claim: &Claim, name: &EnsName) -> bool {
    claim.value.as_deref() == Some(name.as_str())
}

fn clipped(text: &str) -> String {
    clresolve_core::text::clipped(text, reason::MAX_VALUE_BYTES)
}

#[cfg(test)]
mod tests;
