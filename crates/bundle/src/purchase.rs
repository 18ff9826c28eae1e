//! Bundles of a purchase: the bundle of the agent's name; the request and the agent's receipt; the payment decision,
//! the payment header and the seller's reply; and what the payment's chain returned. Everything can be judged again
//! offline.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use clresolve_core::digest::Digest;
use clresolve_core::json::{self, Limits};
use clresolve_core::mutant;
use clresolve_core::name::EnsName;
use clresolve_core::reading::{Block, Grade};
use clresolve_core::reason::{Code, Effect, Reason};
use clresolve_core::records::Key;
use clresolve_core::state::State;
use clresolve_jose::PublicKey;
use clresolve_messages::receipt::document::ReceiptSetting;
use clresolve_messages::receipt::judge::{
    AgentRoutes, ReceiptAgent, ReceiptCheck, ReceiptKnowledge, ReceiptSigner, SignerAddresses, Status,
};
use clresolve_messages::receipt::question::Request;
use clresolve_messages::receipt::{ReceiptQuestion, Verification, judge};
use clresolve_payment::payee::Claim;
use clresolve_payment::request::DecisionRequest;
use clresolve_payment::route::Route;
use clresolve_payment::settlement::{Purchase, Settlement, ShownBy};
use clresolve_state::receipts::TransactionReading;
use clresolve_verdict::gate::GatePolicy;
use clresolve_verdict::trust::Replay;
use clresolve_verdict::verdict::document_id;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::form::Base64;
use super::replay::first_difference;
use super::{Bundle, BundleError, VerifiedBundle, digest_of, opened, shape};

/// Identifier of the format. Its JSON form is `schemas/purchase.schema.json`.
pub const SCHEMA: &str = "clresolve.purchase/1";

/// Maximum size of a purchase bundle in bytes: the bundle of a name, and a transaction with its proof, which arrived in
/// RPC responses of a few MiB.
pub const MAX_BYTES: usize = super::MAX_BYTES + (8 << 20);

/// JSON limits: those of a name's bundle, plus one level and one value for each topic of a transaction's logs.
const LIMITS: Limits =
    Limits { bytes: MAX_BYTES, levels: super::LIMITS.levels + 1, values: 2 * super::LIMITS.values, ..super::LIMITS };

/// The documents of a purchase, exactly as they were sent or received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Papers {
    /// The receipt.
    pub receipt: Vec<u8>,
    /// The request.
    pub request: Option<Vec<u8>>,
    /// The payment decision document.
    pub decision: Option<Vec<u8>>,
    /// The decision request, as sent to `POST /v1/decisions`.
    pub asked: Option<Vec<u8>>,
    /// The payment header that the buyer sent.
    pub payment: Option<String>,
    /// The settlement header of the seller's reply.
    pub settlement: Option<String>,
}

impl Papers {
    /// The receipt question that these documents pose about the agent `name`.
    ///
    /// # Errors
    /// A message with the unreadable document (request, decision or payment header) and the cause. The receipt and the
    /// settlement come from the agent and never cause an error, however broken they are.
    pub fn question(&self, name: &str) -> Result<ReceiptQuestion, String> {
        let request = self.request.as_deref().map(Request::from_bytes).transpose();
        Ok(ReceiptQuestion {
            name: name.to_owned(),
            receipt: self.receipt.clone(),
            request: request.map_err(|error| format!("request: {error}"))?,
            purchase: Purchase::read(self.decision.as_deref(), self.payment.as_deref(), self.settlement.clone())?,
        })
    }

    /// Checks the decision against the decision request, if there is one.
    fn held_decision(&self, purchase: &Purchase) -> Result<(), BundleError> {
        let Some(asked) = &self.asked else { return Ok(()) };
        let asked =
            DecisionRequest::from_json(asked).map_err(|error| BundleError::Shape(format!("/asked: {error}")))?;
        let decided = purchase.decision.as_ref();
        let decided = decided.ok_or(BundleError::Inconsistent("a decision request without a decision"))?;
        decided.follows_from(&asked).map_err(BundleError::Decision)
    }
}

/// Evidence about a purchase besides the name's bundle.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// Who signs receipts for the agent. `None` if only an address of the agent can have signed.
    pub signer: Option<ReceiptSigner>,
    /// What the payment's chain returned for the transaction, if the purchase requires one.
    pub transaction: Option<TransactionReading>,
    /// When the purchase was judged.
    pub at: Timestamp,
}

/// A purchase bundle with a valid form and a matching digest. Its content is not verified yet.
#[derive(Clone, Debug)]
pub struct PurchaseBundle {
    document: Document,
    bundle: Bundle,
    digest: Digest,
}

/// A bundle of either format.
#[derive(Clone, Debug)]
pub enum AnyBundle {
    /// A bundle of a name.
    Name(Box<Bundle>),
    /// A bundle of a purchase, which contains the bundle of a name.
    Purchase(Box<PurchaseBundle>),
}

impl AnyBundle {
    /// Parses a bundle of the format that it declares, within the limits of purchase bundles.
    ///
    /// # Errors
    /// As [`Bundle::read`] and [`PurchaseBundle::read`].
    pub fn read(bytes: &[u8]) -> Result<Self, BundleError> {
        let value = json::parse(bytes, LIMITS)?;
        if value.get("schema").and_then(Value::as_str) == Some(SCHEMA) {
            return Ok(Self::Purchase(Box::new(PurchaseBundle::of(value)?)));
        }
        Ok(Self::Name(Box::new(Bundle::of(value)?)))
    }
}

/// A purchase whose verification follows from its evidence.
#[derive(Clone, Debug)]
pub struct VerifiedPurchase {
    /// The verification of receipt and settlement.
    pub verification: Verification,
    /// The digest of the bundle.
    pub digest: Digest,
    /// When the purchase was judged, according to the bundle.
    pub made_at: Timestamp,
    /// Facts proven from the bytes of the bundle alone; one clause each.
    pub proven: Vec<String>,
    /// Facts that rest on the exporter's word; one clause each.
    pub attested: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Document {
    schema: String,
    at: Timestamp,
    bundle: Value,
    signer: Option<SignerForm>,
    receipt: Base64,
    request: Option<Base64>,
    decision: Option<Base64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<Base64>,
    payment: Option<String>,
    settlement: Option<String>,
    transaction: Option<TransactionReading>,
    verification: Value,
}

/// The JSON form of a [`ReceiptSigner`] whose key is known.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SignerForm {
    name: EnsName,
    /// The key's bytes in base64.
    key: String,
    kid: Option<String>,
    canonical: Option<String>,
    block: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lent: Vec<Code>,
}

impl SignerForm {
    fn of(signer: &ReceiptSigner) -> Result<Self, BundleError> {
        let key = signer.key.as_ref().map_err(|_| BundleError::Inconsistent("the signer's key is not known"))?;
        Ok(Self {
            name: signer.name.clone(),
            key: STANDARD.encode(key.to_bytes()),
            kid: signer.kid.clone().ok(),
            canonical: signer.canonical.clone(),
            block: signer.block,
            lent: signer.lent.clone(),
        })
    }

    fn signer(&self) -> Result<ReceiptSigner, BundleError> {
        let bytes = STANDARD.decode(&self.key).ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        let key = bytes.and_then(|bytes| PublicKey::from_bytes(&bytes).ok());
        let key = key.ok_or_else(|| BundleError::Shape("/signer/key is no key".to_owned()))?;
        Ok(ReceiptSigner {
            name: self.name.clone(),
            key: Ok(key),
            kid: self.kid.clone().ok_or_else(|| Box::new(unpublished(Key::SigKid.as_str()))),
            canonical: self.canonical.clone(),
            block: self.block,
            lent: self.lent.clone(),
        })
    }
}

fn unpublished(place: &str) -> Reason {
    Reason::new(Code::ReceiptKeyUnpublished).at(place).observed("none in the bundle")
}

impl Document {
    fn papers(&self) -> Papers {
        let bytes = |part: &Option<Base64>| part.as_ref().map(|part| part.0.to_vec());
        Papers {
            receipt: self.receipt.0.to_vec(),
            request: bytes(&self.request),
            decision: bytes(&self.decision),
            asked: bytes(&self.asked),
            payment: self.payment.clone(),
            settlement: self.settlement.clone(),
        }
    }

    /// Judges this evidence for the agent that the name's bundle has proven.
    fn judged(&self, agent: &VerifiedBundle) -> Result<Verification, BundleError> {
        if self.at < agent.made_at && !mutant!("purchases-before-their-names") {
            return Err(BundleError::Inconsistent("a purchase that was judged before its agent"));
        }
        let verdict = agent.replay.verdict();
        let name = verdict.name.normalized.as_deref().unwrap_or_default();
        let papers = self.papers();
        let question = papers.question(name).map_err(BundleError::Shape)?;
        papers.held_decision(&question.purchase)?;
        let settlement = self.settled(&question.purchase, name)?;
        let signer = self.signer.as_ref().map(SignerForm::signer).transpose()?;
        let (agent, nobody) = (shown_agent(&agent.replay), unpublished(Key::SigPub.as_str()));
        let (request, bought) = (question.request.as_ref(), question.purchase.bought());
        let known = ReceiptKnowledge {
            agent: agent.as_ref(),
            signer: signer.as_ref().ok_or(&nobody),
            request,
            bought: bought.as_ref(),
            earliest: question.purchase.earliest(settlement.as_ref()),
            // The bundle lacks the bound schema and its references.
            schema: None,
            now: self.at,
        };
        let setting = ReceiptSetting {
            verdict,
            signer: signer.as_ref(),
            is_signer_attested: true,
            request: request.map(Request::sha256),
            decision: bought.as_ref().map(|bought| &*bought.decision),
            settlement: settlement.as_ref(),
            now: self.at,
        };
        let judgement = judge(&question.receipt, &known);
        if judgement.is_by_address != signer.is_none() {
            return Err(BundleError::Inconsistent(
                "a signer although an address signed, or no signer although a key signed",
            ));
        }
        Ok(Verification::of(judgement, &setting))
    }

    /// Whether the purchase from `name` was settled according to the chain. The bundle must contain a transaction if,
    /// and only if, the purchase requires one.
    fn settled(&self, purchase: &Purchase, name: &str) -> Result<Option<Settlement>, BundleError> {
        if !purchase.asks_for_settlement() {
            return match self.transaction {
                Some(_) => Err(BundleError::Inconsistent("a transaction that the purchase does not require")),
                None => Ok(None),
            };
        }
        let (due, seen) = match (purchase.due(name), &self.transaction) {
            (Ok(due), Some(reading)) => {
                consistent(reading)?;
                let is_proven = is_proven(reading)?;
                let seen = due.seen(&reading.head, reading.execution.as_ref(), &reading.proof, is_proven);
                (Some(due), seen)
            }
            (Err(objection), None) => (None, Err(objection)),
            (Ok(_), None) => return Err(BundleError::Inconsistent("the transaction is missing")),
            (Err(_), Some(_)) => {
                return Err(BundleError::Inconsistent("a transaction that the purchase does not require"));
            }
        };
        Ok(Some(Settlement::of(purchase, due, seen)))
    }
}

/// Who was paid, as text, if the payee is one of the agent's addresses.
fn shown_payee(purchase: &Purchase, settlement: Option<&Settlement>, agent: &Replay) -> Option<String> {
    let (network, payee) = purchase.paid_to(settlement.and_then(|settlement| settlement.due.as_ref()))?;
    let claim = Claim::of_records(agent.payment()?, network);
    let is_own = matches!(claim, Claim::Is(address, _) if address == payee);
    is_own.then(|| format!("that the payee {payee} is the address for {network} in the name's bundle"))
}

/// The agent as its name publishes it. The exporter may have configured further routes, so a receipt for another URL is
/// not a contradiction.
fn shown_agent(agent: &Replay) -> Option<ReceiptAgent> {
    let (verdict, published) = (agent.verdict(), agent.payment());
    let addresses = match published {
        Some(_) => SignerAddresses::of(verdict, published, &GatePolicy::default()),
        None => SignerAddresses { settled: Vec::new(), open: Some(Box::new(unpublished("addr"))) },
    };
    let route = |verb: Option<&str>| Route::published(verdict.identity.as_ref(), published, verb);
    let mut routes = AgentRoutes::of_verbs(verdict, published, route);
    routes.open.get_or_insert_with(|| {
        let others = Reason { effect: Effect::Unknown, ..Reason::new(Code::ReceiptRequestMismatch) };
        Box::new(others.at("route").observed("a URL that the name does not publish: a configuration may list it"))
    });
    ReceiptAgent::of(verdict, addresses, routes)
}

/// Rejects a reading that no resolver could have produced.
fn consistent(reading: &TransactionReading) -> Result<(), BundleError> {
    let TransactionReading { head, execution, proof, .. } = reading;
    let is_below_head = |block: &Block| block.number < head.number && block.hash != head.hash;
    let is_in_chain = |block: &Block| is_below_head(block) || block == head;
    if !execution.as_ref().is_none_or(|execution| is_in_chain(&execution.block)) && !mutant!("settled-above-the-head") {
        return Err(BundleError::Inconsistent("a transaction in a block that is not below the head"));
    }
    let is_of_grade = match proof.grade {
        Grade::SingleRpc => proof.agreed == 1,
        Grade::Quorum => proof.agreed > 1,
        // A state proof cannot back a settlement. A settlement's receipt proof is reported separately.
        _ => false,
    };
    if is_of_grade && proof.agreed <= proof.asked || mutant!("any-number-of-endpoints-agrees") {
        return Ok(());
    }
    Err(BundleError::Inconsistent("an impossible number of endpoints"))
}

fn is_proven(reading: &TransactionReading) -> Result<bool, BundleError> {
    match (&reading.receipt_proof, &reading.execution) {
        (None, _) => Ok(false),
        (Some(proof), Some(execution)) => {
            if !mutant!("bundled-receipts-are-believed") {
                proof.check(execution)?;
            }
            Ok(true)
        }
        (Some(_), None) => Err(BundleError::Inconsistent("a proof without a transaction")),
    }
}

impl PurchaseBundle {
    /// Parses untrusted bytes as strict JSON of this format. Unknown members and wrong digests are errors.
    ///
    /// # Errors
    /// [`BundleError::Json`], [`BundleError::Format`], [`BundleError::Shape`] or [`BundleError::Digest`].
    pub fn read(bytes: &[u8]) -> Result<Self, BundleError> {
        Self::of(json::parse(bytes, LIMITS)?)
    }

    fn of(value: Value) -> Result<Self, BundleError> {
        let (document, digest) = opened::<Document>(value, SCHEMA)?;
        Ok(Self { bundle: Bundle::of(document.bundle.clone())?, document, digest })
    }

    /// Packs a purchase from the agent of `bundle`, with its verification. `agent` is the result of verifying `bundle`.
    ///
    /// # Errors
    /// [`BundleError`] if the bundle would not verify, so that every packed bundle can be replayed.
    pub fn pack(
        bundle: Bundle,
        agent: &VerifiedBundle,
        papers: &Papers,
        evidence: Evidence,
    ) -> Result<(Self, Verification), BundleError> {
        let encoded = |bytes: &Vec<u8>| Base64(Bytes::copy_from_slice(bytes));
        let mut document = Document {
            schema: SCHEMA.to_owned(),
            at: evidence.at,
            bundle: bundle.to_json(),
            signer: evidence.signer.as_ref().map(SignerForm::of).transpose()?,
            receipt: encoded(&papers.receipt),
            request: papers.request.as_ref().map(encoded),
            decision: papers.decision.as_ref().map(encoded),
            asked: papers.asked.as_ref().map(encoded),
            payment: papers.payment.clone(),
            settlement: papers.settlement.clone(),
            transaction: evidence.transaction,
            verification: Value::Null,
        };
        let verification = document.judged(agent)?;
        document.verification = verification.to_value();
        let digest = digest_of(&shape(&document)?)?;
        Ok((Self { document, bundle, digest }, verification))
    }

    /// The bundle of the agent's name.
    pub const fn bundle(&self) -> &Bundle {
        &self.bundle
    }

    /// The verification that follows from the evidence, regardless of the verification in the bundle. A forger would
    /// write this one into it. `agent` is the result of verifying its [`bundle`](Self::bundle).
    ///
    /// # Errors
    /// As [`verify`](Self::verify), but never [`BundleError::Verdict`].
    pub fn judge(&self, agent: &VerifiedBundle) -> Result<Verification, BundleError> {
        self.document.judged(agent)
    }

    /// Judges the purchase again. `agent` is the result of verifying its [`bundle`](Self::bundle).
    ///
    /// # Errors
    /// [`BundleError`]: the first defect.
    pub fn verify(&self, agent: &VerifiedBundle) -> Result<VerifiedPurchase, BundleError> {
        let verification = self.judge(agent)?;
        let agents = self.document.bundle.pointer("/verdict/id");
        if let Some(at) = difference(&self.document.verification, &verification, agents)
            && !mutant!("bundled-purchases-are-believed")
        {
            return Err(BundleError::Verdict { at: format!("/verification{at}") });
        }
        let question = self.document.papers().question(&verification.name).map_err(BundleError::Shape)?;
        let payee = shown_payee(&question.purchase, verification.settlement.as_ref(), &agent.replay);
        Ok(VerifiedPurchase {
            digest: self.digest,
            made_at: self.document.at,
            proven: proven(&self.document, &verification, payee.as_deref()),
            attested: attested(&self.document, &verification, agent, payee.is_some()),
            verification,
        })
    }

    /// The bundle as JSON.
    pub fn to_json(&self) -> Value {
        let mut value = shape(&self.document).unwrap_or_default();
        value["digest"] = self.digest.to_string().into();
        value
    }
}

/// Members that another version of this program may word differently, including the digests that cover such texts.
const WORDED: [&str; 6] = ["id", "tool", "summary", "reasons", "checks", "verdict"];

/// JSON Pointer of the first difference. A bundle written by another version must be self-consistent and may differ
/// only in wording. `agents` is the id of the agent's verdict as that version wrote it.
fn difference(bundled: &Value, found: &Verification, agents: Option<&Value>) -> Option<String> {
    let found = found.to_value();
    if bundled.get("tool") == found.get("tool") {
        return first_difference(bundled, &found);
    }
    if !mutant!("other-versions-say-anything") {
        if bundled.get("id") != Some(&document_id(bundled).into()) {
            return Some("/id".to_owned());
        }
        if bundled.get("verdict") != agents {
            return Some("/verdict".to_owned());
        }
        if outcomes(bundled) != outcomes(&found) {
            return Some("/checks".to_owned());
        }
    }
    let mut stated = found.as_object()?.iter().filter(|(member, _)| !WORDED.contains(&member.as_str()));
    stated.find(|(member, value)| bundled.get(member) != Some(value)).map(|(member, _)| format!("/{member}"))
}

/// The status of each check of a verification.
fn outcomes(verification: &Value) -> Option<Vec<(&Value, &Value)>> {
    verification.get("checks")?.as_array()?.iter().map(|row| Some((row.get("check")?, row.get("status")?))).collect()
}

fn proven(document: &Document, verification: &Verification, payee: Option<&str>) -> Vec<String> {
    let passed =
        |check: ReceiptCheck| verification.checks.iter().any(|row| row.check == check && row.status == Status::Pass);
    // The bundle does not prove to whom the key belongs.
    let by = document.signer.as_ref().map_or("", |_| " by the signer's key");
    let mut clauses = vec![format!("that the receipt is {}{by}: its checks were made again", verification.state)];
    if passed(ReceiptCheck::Signature) {
        let whose = document.signer.as_ref().map_or("an address that the name's bundle has", |_| "the signer's key");
        clauses.push(format!("the receipt's signature by {whose}"));
    }
    if let Some(tie) = verification.tie {
        clauses.push(format!("that the receipt answers {}", tie.words()));
    }
    clauses.extend(payee.map(str::to_owned));
    if document.asked.is_some() {
        clauses.push("that the decision's terms, price, payee and URL are those that were demanded".to_owned());
    }
    if let Some(settlement) = verification.settlement.as_ref().filter(|it| it.shown_by == Some(ShownBy::Proven)) {
        let block = settlement.block.map(|block| block.hash.to_string()).unwrap_or_default();
        clauses.push(format!("that a transaction of block {block} has moved the payment by its own nonce"));
    }
    clauses
}

fn attested(
    document: &Document,
    verification: &Verification,
    agent: &VerifiedBundle,
    is_payee_shown: bool,
) -> Vec<String> {
    let signer = document.signer.as_ref();
    let mut clauses: Vec<_> =
        signer.map(|signer| format!("that {} signs for the agent, and its key", signer.name)).into_iter().collect();
    match (&document.decision, &verification.settlement) {
        (Some(_), _) if document.asked.is_some() => {
            clauses.push("what was demanded, and the payer's limits".to_owned())
        }
        (Some(_), _) => clauses.push("the decision".to_owned()),
        (None, _) => {}
    }
    let grade = agent.replay.verdict().anchor.as_ref().map(|anchor| anchor.proof.grade);
    if (is_payee_shown || signer.is_none()) && grade < Some(Grade::StateProof) {
        clauses.push("that the name publishes these addresses and endpoints".to_owned());
    }
    if document.decision.is_some() || verification.settlement.is_some() {
        clauses.extend((!is_payee_shown).then(|| "that the payee is the agent's".to_owned()));
        let then = agent.replay.verdict().anchor.as_ref();
        let then = then.map_or_else(|| agent.made_at.to_string(), |anchor| format!("block {}", anchor.block.number));
        clauses.push(format!("that the agent was the same when it was paid: it is shown as of {then}"));
    }
    if let Some(TransactionReading { head, proof, .. }) = &document.transaction {
        let settlement = verification.settlement.as_ref();
        let what = match settlement.and_then(|settlement| settlement.shown_by) {
            Some(ShownBy::Proven) => "that its block is in the chain, and which transaction it was",
            Some(ShownBy::Reported) | None => "what the transaction contains, and that its block is in the chain",
        };
        let (agreed, asked) = (proof.agreed, proof.asked);
        clauses.push(format!("{what}: reported by {agreed} of {asked} endpoints at block {}", head.number));
    }
    clauses
}

impl VerifiedPurchase {
    /// The overall state: that of the receipt, which is trusted only if agent and settlement are.
    pub const fn state(&self) -> State {
        self.verification.state
    }
}
