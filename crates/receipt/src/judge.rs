//! The checks of a receipt, each with what was expected and what was observed.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use clresolve_core::digest::Digest;
use clresolve_core::name::EnsName;
use clresolve_core::reason::{self, Code, Effect, Reason};
use clresolve_core::state::State;
use clresolve_jose::PublicKey;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::canonical::{NoForm, form};
use crate::echo;
use crate::family::{Alphabet, Claim, Family, Seal, Shape, Signs, Unsealable, shape};
use crate::json::{Node, Unreadable, parse};
use crate::question::Request;

/// How far the clock of a signer may be ahead of ours.
pub const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(5);

/// The verbs that CommandLayer defines (PC-1). A receipt for another word names none of its agents' calls.
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

/// A check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Check {
    /// The agent that was asked is trusted.
    Identity,
    /// The receipt is strict JSON of one known shape.
    Family,
    /// It is what the schemas of its line demand.
    Schema,
    /// The claimed digest is the recomputed one.
    Hash,
    /// The signature holds over what was recomputed.
    Signature,
    /// The key's id is the published one.
    Key,
    /// The canonical form is the family's.
    Canonical,
    /// The signer is the one that the agent's records name.
    Signer,
    /// The agent, its entry and its verb are those that were asked.
    Agent,
    /// Its times can be right.
    Time,
    /// It is about the request.
    Request,
}

impl Check {
    /// The check's stable word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Family => "family",
            Self::Schema => "schema",
            Self::Hash => "hash",
            Self::Signature => "signature",
            Self::Key => "key",
            Self::Canonical => "canonical",
            Self::Signer => "signer",
            Self::Agent => "agent",
            Self::Time => "time",
            Self::Request => "request",
        }
    }
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Decided, and right.
    Pass,
    /// Decided, and wrong.
    Fail,
    /// Not decided.
    Unknown,
    /// There was nothing to check.
    Skip,
}

/// One check and its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The check.
    pub check: Check,
    /// How it ended.
    pub status: Status,
    /// What would be right.
    pub expected: Option<String>,
    /// What stands there.
    pub observed: Option<String>,
    /// JSON Pointer into the receipt, or a record's key.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// CLAS's code for it, where it has one.
    pub clas: Option<&'static str>,
}

impl Row {
    fn new(check: Check, status: Status) -> Self {
        Self { check, status, expected: None, observed: None, place: None, clas: None }
    }
}

/// The agent that was asked.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Its name.
    pub name: EnsName,
    /// The x402 entry of its card.
    pub entry: Option<String>,
    /// The verbs of its card; empty where that is not known.
    pub verbs: Vec<String>,
}

/// Who signs for the agent, by its records and those of the name that they name.
#[derive(Clone, Debug)]
pub struct Signer {
    /// The name that the agent's records name.
    pub name: EnsName,
    /// The key in `cl.sig.pub`, or the reason why it cannot be used.
    pub key: Result<PublicKey, Box<Reason>>,
    /// `cl.sig.kid`.
    pub kid: Option<String>,
    /// `cl.sig.canonical`.
    pub canonical: Option<String>,
    /// Number of the block that the records of both names were read at.
    pub block: u64,
}

/// What a receipt is judged by.
#[derive(Clone, Copy, Debug)]
pub struct Knowledge<'a> {
    /// The agent that was asked; `None` where its name is none.
    pub agent: Option<&'a Agent>,
    /// Who signs for it, or why that is not known.
    pub signer: Result<&'a Signer, &'a Reason>,
    /// The request that was sent.
    pub request: Option<&'a Request>,
    /// The time.
    pub now: Timestamp,
}

/// What the checks found.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The family, where the shape says it.
    pub family: Option<Family>,
    /// Each check, in their order.
    pub checks: Vec<Row>,
    /// Everything found, sorted.
    pub reasons: Vec<Reason>,
    /// SHA-256 of the receipt's bytes.
    pub sha256: Digest,
    /// SHA-256 of the canonical bytes, where there are any.
    pub canonical_sha256: Option<Digest>,
    /// JSON Pointers of members that no signature covers: evidence of nothing.
    pub unsigned: Vec<String>,
}

impl Judgement {
    /// What was found of one check.
    pub fn row(&self, check: Check) -> Option<&Row> {
        self.checks.iter().find(|row| row.check == check)
    }

    /// CLAS's codes for what was found, in the order of the checks.
    pub fn clas(&self) -> Vec<&'static str> {
        let mut codes: Vec<_> = self.checks.iter().filter_map(|row| row.clas).collect();
        codes.dedup();
        codes
    }

    /// The state that follows from all checks. Trusted needs a signature that holds, whatever else is not found.
    pub fn state(&self) -> State {
        let worst = self.reasons.iter().map(|reason| reason.effect).min();
        let is_signed = self.row(Check::Signature).is_some_and(|row| row.status == Status::Pass);
        match worst {
            Some(Effect::Fail) => State::Untrusted,
            Some(Effect::Unknown) => State::Indeterminate,
            Some(Effect::Warn) | None if is_signed => State::Trusted,
            Some(Effect::Warn) | None => State::Indeterminate,
        }
    }
}

/// Judges the bytes of a receipt. Never fails: what is wrong with them is in the judgement.
pub fn judge(receipt: &[u8], known: &Knowledge<'_>) -> Judgement {
    let mut checks = Checks::default();
    let sealed = match parse(receipt) {
        Ok(receipt) => checks.taken_apart(&receipt),
        Err(error) => {
            checks.unreadable(&error);
            None
        }
    };
    let mut judgement = Judgement {
        family: sealed.as_ref().map(|sealed| sealed.seal.family),
        checks: Vec::new(),
        reasons: Vec::new(),
        sha256: Digest::of(receipt),
        canonical_sha256: sealed.as_ref().map(|sealed| sealed.digest),
        unsigned: sealed.as_ref().map(|sealed| sealed.seal.unsigned.clone()).unwrap_or_default(),
    };
    if let Some(sealed) = &sealed {
        checks.sealed(sealed, known);
    }
    reason::sort(&mut checks.reasons);
    judgement.checks = checks.rows;
    judgement.reasons = checks.reasons;
    judgement
}

/// A receipt taken apart, with its canonical bytes.
struct Sealed {
    seal: Seal,
    canonical: Vec<u8>,
    digest: Digest,
}

impl Sealed {
    fn states_its_digest(&self) -> bool {
        let claimed = self.seal.hash.as_ref().and_then(|claim| claim.value.as_deref());
        claimed == Some(self.digest.hex().as_str())
    }

    /// The message under the signature.
    fn message(&self) -> Vec<u8> {
        if clresolve_core::mutant!("receipts-say-their-digest") {
            let claimed = self.seal.hash.as_ref().and_then(|claim| claim.value.clone());
            return claimed.unwrap_or_default().into_bytes();
        }
        match self.seal.signs {
            Signs::HexDigest => self.digest.hex().into_bytes(),
            Signs::CanonicalBytes => self.canonical.clone(),
        }
    }
}

/// Rows and reasons as they are found.
#[derive(Default)]
struct Checks {
    rows: Vec<Row>,
    reasons: Vec<Reason>,
}

impl Checks {
    fn pass(&mut self, check: Check, claim: &Claim) {
        let observed = claim.value.as_deref().map(clipped);
        let place = Some(claim.place.clone());
        self.rows.push(Row { expected: observed.clone(), observed, place, ..Row::new(check, Status::Pass) });
    }

    fn skip(&mut self, check: Check) {
        self.rows.push(Row::new(check, Status::Skip));
    }

    /// A reason, and a row that says the same.
    fn object(&mut self, check: Check, reason: Reason, clas: Option<&'static str>) {
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

    fn unreadable(&mut self, error: &Unreadable) {
        let reason = match error {
            Unreadable::DuplicateKey { pointer } => Reason::new(Code::ReceiptDuplicateKey).at(pointer.as_str()),
            Unreadable::NotJson(_) => {
                Reason::new(Code::ReceiptSchemaInvalid).message("The receipt is not strict JSON.")
            }
            Unreadable::TooMuch { .. } => {
                Reason::new(Code::ReceiptFamilyUnknown).message("The receipt is larger than what is read.")
            }
        };
        self.object(Check::Family, reason.observed(error.to_string()), Some("ERR_SCHEMA_INVALID"));
    }

    /// The reading of a receipt: of two with the same shape the one that states its digest, else the first.
    fn taken_apart(&mut self, receipt: &Node) -> Option<Sealed> {
        let readings = match shape(receipt) {
            Shape::Known(readings) => readings,
            Shape::Unknown(families) => {
                let slugs: Vec<_> = families.iter().map(|family| family.slug()).collect();
                let reason = Reason::new(Code::ReceiptFamilyUnknown).expected("the shape of one family");
                let observed = if slugs.is_empty() { "none".to_owned() } else { slugs.join(", ") };
                self.object(Check::Family, reason.observed(observed), None);
                return None;
            }
        };
        let mut sealed = Vec::new();
        for reading in readings {
            match reading.map(|seal| (form(&seal.content, seal.order), seal)) {
                Ok((Ok(canonical), seal)) => sealed.push(Sealed { digest: Digest::of(&canonical), canonical, seal }),
                Ok((Err(error), _)) => {
                    self.without_form(&error);
                    return None;
                }
                Err(error) => {
                    self.unsealable(&error);
                    return None;
                }
            }
        }
        let at = sealed.iter().position(Sealed::states_its_digest).unwrap_or_default();
        let chosen = (at < sealed.len()).then(|| sealed.swap_remove(at))?;
        let slug = Some(chosen.seal.family.slug().to_owned());
        self.rows.push(Row { expected: slug.clone(), observed: slug, ..Row::new(Check::Family, Status::Pass) });
        Some(chosen)
    }

    fn without_form(&mut self, error: &NoForm) {
        let (code, place) = match error {
            NoForm::Number(place) => (Code::ReceiptSchemaInvalid, place),
            NoForm::Order(place) => (Code::ReceiptFamilyUnknown, place),
        };
        let reason = Reason::new(code).observed(error.to_string()).at(clipped(place));
        self.object(Check::Canonical, reason, Some("ERR_CANONICALIZATION_MISMATCH"));
    }

    fn unsealable(&mut self, error: &Unsealable) {
        let reason = Reason::new(Code::ReceiptSchemaInvalid).observed(error.why).at(error.place.as_str());
        self.object(Check::Schema, reason, Some("ERR_SCHEMA_INVALID"));
    }

    fn sealed(&mut self, sealed: &Sealed, known: &Knowledge<'_>) {
        self.schema(&sealed.seal);
        self.hash(sealed);
        self.signature(sealed, known.signer);
        self.key(&sealed.seal, known.signer);
        self.canonical(&sealed.seal);
        self.signer(&sealed.seal, known.signer);
        match known.agent {
            Some(agent) => self.agent(&sealed.seal, agent),
            None => self.undecided(Check::Agent),
        }
        self.time(&sealed.seal.content, known.now);
        self.request(sealed, known.request);
    }

    /// PC-7, of the families whose receipts are those of the schemas.
    fn schema(&mut self, seal: &Seal) {
        if !seal.family.is_of_schemas() {
            return self.skip(Check::Schema);
        }
        let content = &seal.content;
        let has_text = |path: &[&str]| content.text_at(path).is_some();
        let status = content.text_at(&["status"]);
        let missing = [
            (!has_text(&["x402", "verb"]), "/x402/verb", "a text"),
            (!has_text(&["x402", "version"]), "/x402/version", "a text"),
            (!has_text(&["trace", "trace_id"]), "/trace/trace_id", "a text"),
            (
                !status.as_deref().is_some_and(|word| ["success", "error", "delegated"].contains(&word)),
                "/status",
                "success, error or delegated",
            ),
            (
                status.as_deref() == Some("error") && !content.get("error").is_some_and(Node::is_object),
                "/error",
                "an object",
            ),
        ];
        match missing.into_iter().find(|(is_missing, ..)| *is_missing) {
            None => self.rows.push(Row::new(Check::Schema, Status::Pass)),
            Some((_, place, expected)) => {
                let reason = Reason::new(Code::ReceiptSchemaInvalid).requirement("PC-7").expected(expected).at(place);
                self.object(Check::Schema, reason, Some("ERR_SCHEMA_INVALID"));
            }
        }
    }

    fn hash(&mut self, sealed: &Sealed) {
        let Some(claim) = &sealed.seal.hash else { return self.skip(Check::Hash) };
        if sealed.states_its_digest() {
            return self.pass(Check::Hash, claim);
        }
        let reason = differs(Code::ReceiptHashMismatch, &sealed.digest.hex(), claim);
        self.object(Check::Hash, reason, Some("ERR_HASH_MISMATCH"));
    }

    fn signature(&mut self, sealed: &Sealed, signer: Result<&Signer, &Reason>) {
        let Seal { algorithms, signature, alphabet, .. } = &sealed.seal;
        for (claim, expected) in algorithms {
            if claim.value.as_deref() != Some(*expected) {
                let reason = differs(Code::ReceiptSignatureInvalid, expected, claim);
                return self.object(Check::Signature, reason, Some("ERR_UNSUPPORTED_ALGORITHM"));
            }
        }
        let key = match signer.and_then(|signer| signer.key.as_ref().map_err(|reason| &**reason)) {
            Ok(key) => key,
            Err(reason) => return self.object(Check::Signature, reason.clone(), Some("ERR_ENS_KEY_NOT_FOUND")),
        };
        let text = signature.value.as_deref().unwrap_or_default();
        let bytes = match alphabet {
            Alphabet::Standard => STANDARD.decode(text),
            Alphabet::Url => URL_SAFE_NO_PAD.decode(text),
        };
        let holds = bytes.is_ok_and(|bytes| key.has_signed(&sealed.message(), &bytes));
        if holds || clresolve_core::mutant!("anybody-signs-receipts") {
            return self.pass(Check::Signature, signature);
        }
        let reason = Reason::new(Code::ReceiptSignatureInvalid).at(signature.place.as_str());
        let reason = reason.expected("a signature by the key of cl.sig.pub").observed(text);
        self.object(Check::Signature, reason, Some("ERR_INVALID_SIGNATURE"));
    }

    fn key(&mut self, seal: &Seal, signer: Result<&Signer, &Reason>) {
        let Ok(Signer { kid, .. }) = signer else { return self.undecided(Check::Key) };
        let Some(first) = seal.kids.first() else { return self.skip(Check::Key) };
        let Some(published) = kid else {
            let reason = Reason::new(Code::ReceiptKeyUnpublished).at("cl.sig.kid").observed("not set");
            return self.object(Check::Key, reason, Some("ERR_ENS_KEY_NOT_FOUND"));
        };
        let other = seal.kids.iter().find(|claim| claim.value.as_ref() != Some(published));
        match other.filter(|_| !clresolve_core::mutant!("any-key-id-of-a-receipt")) {
            None => self.pass(Check::Key, first),
            Some(claim) => {
                self.object(Check::Key, differs(Code::ReceiptKeyMismatch, published, claim), None);
            }
        }
    }

    fn canonical(&mut self, seal: &Seal) {
        let (claim, expected) = &seal.canonical;
        if claim.value.as_deref() == Some(*expected) {
            return self.pass(Check::Canonical, claim);
        }
        let reason = differs(Code::ReceiptFamilyUnknown, expected, claim)
            .message("The receipt states a canonical form that its family does not have.");
        self.object(Check::Canonical, reason, Some("ERR_CANONICALIZATION_MISMATCH"));
    }

    fn signer(&mut self, seal: &Seal, signer: Result<&Signer, &Reason>) {
        let Ok(Signer { name, .. }) = signer else { return self.undecided(Check::Signer) };
        let other = seal.signers.iter().find(|claim| !is_name(claim, name));
        match (other.filter(|_| !clresolve_core::mutant!("receipts-name-their-signer")), seal.signers.first()) {
            (Some(claim), _) => {
                self.object(Check::Signer, differs(Code::ReceiptSignerMismatch, name.as_str(), claim), None);
            }
            (None, Some(first)) => self.pass(Check::Signer, first),
            (None, None) => self.skip(Check::Signer),
        }
    }

    /// That the receipt is not one of another agent of the same signer.
    fn agent(&mut self, seal: &Seal, agent: &Agent) {
        if let Some(claim) = seal.agent.as_ref().filter(|claim| !is_name(claim, &agent.name)) {
            let reason = differs(Code::ReceiptSignerMismatch, agent.name.as_str(), claim);
            return self.object(Check::Agent, reason, None);
        }
        let entry = Claim::at(&seal.content, &["x402", "entry"]);
        if let (Some(expected), Some(stated)) = (&agent.entry, &entry.value)
            && expected != stated
        {
            return self.object(Check::Agent, differs(Code::ReceiptRequestMismatch, expected, &entry), None);
        }
        let verbs = [Claim::at(&seal.content, &["x402", "verb"]), Claim::at(&seal.content, &["verb"])];
        let is_of_another = |claim: &&Claim| {
            let verb = claim.value.as_deref().unwrap_or_default();
            VERBS.contains(&verb) && !agent.verbs.is_empty() && !agent.verbs.iter().any(|known| known == verb)
        };
        if let Some(claim) = verbs.iter().find(is_of_another) {
            let reason = differs(Code::ReceiptRequestMismatch, &agent.verbs.join(", "), claim);
            return self.object(Check::Agent, reason, None);
        }
        let stated = seal.agent.as_ref().into_iter().chain([&entry]).chain(&verbs).find(|claim| claim.value.is_some());
        match stated {
            Some(claim) => self.pass(Check::Agent, claim),
            None => self.skip(Check::Agent),
        }
    }

    fn time(&mut self, content: &Node, now: Timestamp) {
        const MOMENTS: [&[&str]; 7] = [
            &["ts"],
            &["execution", "started_at"],
            &["execution", "completed_at"],
            &["trace", "started_at"],
            &["trace", "completed_at"],
            &["action", "started_at"],
            &["action", "completed_at"],
        ];
        let latest = now.checked_add(MAX_CLOCK_SKEW).unwrap_or(Timestamp::MAX);
        let mut last = None;
        for path in MOMENTS.into_iter().filter(|path| content.at(path).is_some()) {
            let claim = Claim::at(content, path);
            let Some(moment) = claim.value.as_deref().and_then(|text| text.parse::<Timestamp>().ok()) else {
                let reason = differs(Code::ReceiptTimeImplausible, "an RFC 3339 time", &claim);
                return self.object(Check::Time, reason, None);
            };
            if moment > latest && !clresolve_core::mutant!("receipts-of-tomorrow") {
                let reason = differs(Code::ReceiptTimeImplausible, &format!("no later than {latest}"), &claim);
                return self.object(Check::Time, reason, None);
            }
            let began = Claim::at(content, &[path[0], "started_at"]).value.and_then(|text| text.parse().ok());
            if let Some(began) = began
                && path.ends_with(&["completed_at"])
                && moment < began
            {
                let reason = differs(Code::ReceiptTimeImplausible, &format!("no earlier than {began}"), &claim);
                return self.object(Check::Time, reason, None);
            }
            last = Some(claim);
        }
        match last {
            Some(claim) => self.pass(Check::Time, &claim),
            None => self.skip(Check::Time),
        }
    }

    fn request(&mut self, sealed: &Sealed, request: Option<&Request>) {
        let Some(request) = request else { return self.skip(Check::Request) };
        match echo::of(&sealed.seal.content, request.content()) {
            Ok(claim) => self.pass(Check::Request, &claim),
            Err(reason) => self.object(Check::Request, *reason, None),
        }
    }

    /// What cannot be decided without the signer, whose absence the signature's row has told.
    fn undecided(&mut self, check: Check) {
        self.rows.push(Row::new(check, Status::Unknown));
    }
}

fn differs(code: Code, expected: &str, claim: &Claim) -> Reason {
    let observed = claim.value.as_deref().unwrap_or("nothing");
    Reason::new(code).expected(expected).observed(observed).at(claim.place.as_str())
}

/// Byte for byte, so that there is one way to write a receipt's signer.
fn is_name(claim: &Claim, name: &EnsName) -> bool {
    claim.value.as_deref() == Some(name.as_str())
}

fn clipped(text: &str) -> String {
    clresolve_core::text::clipped(text, reason::MAX_VALUE_BYTES)
}

#[cfg(test)]
mod tests;
