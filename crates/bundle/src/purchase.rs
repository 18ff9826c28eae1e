//! Bundles of a purchase: the bundle of the agent's name; the request and the agent's receipt; the payment decision,
//! the payment header and the seller's reply; and what the payment's chain returned. Everything can be judged again
//! offline.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use clresolve_core::digest::Digest;
use clresolve_core::json::{self, JsonLimits};
use clresolve_core::mutant;
use clresolve_core::name::EnsName;
use clresolve_core::reading::{ChainBlock, ProofGrade};
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};
use clresolve_core::records::TextRecordKey;
use clresolve_core::state::TrustState;
use clresolve_jose::Ed25519PublicKey;
use clresolve_messages::receipt::document::ReceiptVerificationDocumentInputs;
use clresolve_messages::receipt::judge::{
    AgentEntryRoutes, CalledAgent, PublishedReceiptSigner, ReceiptCheckKind, ReceiptKnowledge, SignerAddresses,
    StepStatus,
};
use clresolve_messages::receipt::question::AgentRequest;
use clresolve_messages::receipt::{ReceiptVerificationDocument, ReceiptVerificationRequest, judge_receipt};
use clresolve_payment::payee::PayeeClaim;
use clresolve_payment::request::PaymentDecisionRequest;
use clresolve_payment::route::AgentRoute;
use clresolve_payment::settlement::{PurchasePaymentDocuments, SettlementAssuranceLevel, SettlementCheckResult};
use clresolve_state::receipts::TransactionReading;
use clresolve_verdict::gate::GatePolicy;
use clresolve_verdict::trust::ReplayedResolution;
use clresolve_verdict::verdict::document_id;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::form::Base64Bytes;
use super::replay::first_json_difference;
use super::{BundleError, ResolutionBundle, VerifiedBundle, document_digest, parse_document, serialize_document};

/// Identifier of the format. Its JSON form is `schemas/purchase.schema.json`.
pub const SCHEMA: &str = "clresolve.purchase/1";

/// Maximum size of a purchase bundle in bytes: the bundle of a name, and a transaction with its proof, which arrived in
/// RPC responses of a few MiB.
pub const MAX_BYTES: usize = super::MAX_BYTES + (8 << 20);

/// JSON limits: those of a name's bundle, plus one level and one value for each topic of a transaction's logs.
const LIMITS: JsonLimits = JsonLimits {
    bytes: MAX_BYTES,
    levels: super::LIMITS.levels + 1,
    values: 2 * super::LIMITS.values,
    ..super::LIMITS
};

/// The documents of a purchase, exactly as they were sent or received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PurchaseDocuments {
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

impl PurchaseDocuments {
    /// The receipt question that these documents pose about the agent `name`.
    ///
    /// # Errors
    /// A message with the unreadable document (request, decision or payment header) and the cause. The receipt and the
    /// settlement come from the agent and never cause an error, however broken they are.
    pub fn verification_request(&self, name: &str) -> Result<ReceiptVerificationRequest, String> {
        let request = self.request.as_deref().map(AgentRequest::from_bytes).transpose();
        Ok(ReceiptVerificationRequest {
            name: name.to_owned(),
            receipt: self.receipt.clone(),
            request: request.map_err(|error| format!("request: {error}"))?,
            purchase: PurchasePaymentDocuments::from_documents(
                self.decision.as_deref(),
                self.payment.as_deref(),
                self.settlement.clone(),
            )?,
        })
    }

    /// Checks the decision against the decision request, if there is one.
    fn check_decision(&self, purchase: &PurchasePaymentDocuments) -> Result<(), BundleError> {
        let Some(asked) = &self.asked else { return Ok(()) };
        let asked =
            PaymentDecisionRequest::from_json(asked).map_err(|error| BundleError::Shape(format!("/asked: {error}")))?;
        let decided = purchase.decision.as_ref();
        let decided = decided.ok_or(BundleError::Inconsistent("a decision request without a decision"))?;
        decided.check_against_request(&asked).map_err(BundleError::Decision)
    }
}

/// Evidence about a purchase besides the name's bundle.
#[derive(Clone, Debug)]
pub struct PurchaseEvidence {
    /// Who signs receipts for the agent. `None` if only an address of the agent can have signed.
    pub signer: Option<PublishedReceiptSigner>,
    /// What the payment's chain returned for the transaction, if the purchase requires one.
    pub transaction: Option<TransactionReading>,
    /// When the purchase was judged.
    pub at: Timestamp,
}

/// A purchase bundle with a valid form and a matching digest. Its content is not verified yet.
#[derive(Clone, Debug)]
pub struct PurchaseBundle {
    document: PurchaseBundleDocument,
    bundle: ResolutionBundle,
    digest: Digest,
}

/// A bundle of either format.
#[derive(Clone, Debug)]
pub enum AnyBundle {
    /// A bundle of a name.
    Name(Box<ResolutionBundle>),
    /// A bundle of a purchase, which contains the bundle of a name.
    Purchase(Box<PurchaseBundle>),
}

impl AnyBundle {
    /// Parses a bundle of the format that it declares, within the limits of purchase bundles.
    ///
    /// # Errors
    /// As [`ResolutionBundle::from_bytes`] and [`PurchaseBundle::from_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BundleError> {
        let value = json::parse_strict_json(bytes, LIMITS)?;
        if value.get("schema").and_then(Value::as_str) == Some(SCHEMA) {
            return Ok(Self::Purchase(Box::new(PurchaseBundle::from_value(value)?)));
        }
        Ok(Self::Name(Box::new(ResolutionBundle::from_value(value)?)))
    }
}

/// A purchase whose verification follows from its evidence.
#[derive(Clone, Debug)]
pub struct VerifiedPurchase {
    /// The verification of receipt and settlement.
    pub verification: ReceiptVerificationDocument,
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
struct PurchaseBundleDocument {
    schema: String,
    at: Timestamp,
    bundle: Value,
    signer: Option<BundledReceiptSignerDocument>,
    receipt: Base64Bytes,
    request: Option<Base64Bytes>,
    decision: Option<Base64Bytes>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<Base64Bytes>,
    payment: Option<String>,
    settlement: Option<String>,
    transaction: Option<TransactionReading>,
    verification: Value,
}

/// The JSON form of a [`PublishedReceiptSigner`] whose key is known.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct BundledReceiptSignerDocument {
    name: EnsName,
    /// The key's bytes in base64.
    key: String,
    kid: Option<String>,
    canonical: Option<String>,
    block: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lent: Vec<ReasonCode>,
}

impl BundledReceiptSignerDocument {
    fn from_signer(signer: &PublishedReceiptSigner) -> Result<Self, BundleError> {
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

    fn to_receipt_signer(&self) -> Result<PublishedReceiptSigner, BundleError> {
        let bytes = STANDARD.decode(&self.key).ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        let key = bytes.and_then(|bytes| Ed25519PublicKey::from_bytes(&bytes).ok());
        let key = key.ok_or_else(|| BundleError::Shape("/signer/key is no key".to_owned()))?;
        Ok(PublishedReceiptSigner {
            name: self.name.clone(),
            key: Ok(key),
            kid: self.kid.clone().ok_or_else(|| Box::new(unpublished_key_reason(TextRecordKey::SigKid.as_str()))),
            canonical: self.canonical.clone(),
            block: self.block,
            lent: self.lent.clone(),
        })
    }
}

fn unpublished_key_reason(place: &str) -> Reason {
    Reason::new(ReasonCode::ReceiptKeyUnpublished).at_place(place).observed("none in the bundle")
}

impl PurchaseBundleDocument {
    fn purchase_documents(&self) -> PurchaseDocuments {
        let bytes = |part: &Option<Base64Bytes>| part.as_ref().map(|part| part.0.to_vec());
        PurchaseDocuments {
            receipt: self.receipt.0.to_vec(),
            request: bytes(&self.request),
            decision: bytes(&self.decision),
            asked: bytes(&self.asked),
            payment: self.payment.clone(),
            settlement: self.settlement.clone(),
        }
    }

    /// Judges this evidence for the agent that the name's bundle has proven.
    fn judge_receipt(&self, agent: &VerifiedBundle) -> Result<ReceiptVerificationDocument, BundleError> {
        if self.at < agent.made_at && !mutant!("purchases-before-their-names") {
            return Err(BundleError::Inconsistent("a purchase that was judged before its agent"));
        }
        let verdict = agent.replay.verdict();
        let name = verdict.name.normalized.as_deref().unwrap_or_default();
        let papers = self.purchase_documents();
        let question = papers.verification_request(name).map_err(BundleError::Shape)?;
        papers.check_decision(&question.purchase)?;
        let settlement = self.check_settlement(&question.purchase, name)?;
        let signer = self.signer.as_ref().map(BundledReceiptSignerDocument::to_receipt_signer).transpose()?;
        let (agent, nobody) = (published_agent(&agent.replay), unpublished_key_reason(TextRecordKey::SigPub.as_str()));
        let (request, bought) = (question.request.as_ref(), question.purchase.purchase_facts());
        let known = ReceiptKnowledge {
            agent: agent.as_ref(),
            signer: signer.as_ref().ok_or(&nobody),
            request,
            bought: bought.as_ref(),
            earliest: question.purchase.earliest_purchase_time(settlement.as_ref()),
            // The bundle lacks the bound schema and its references.
            schema: None,
            now: self.at,
        };
        let setting = ReceiptVerificationDocumentInputs {
            verdict,
            signer: signer.as_ref(),
            is_signer_attested: true,
            request: request.map(AgentRequest::sha256),
            decision: bought.as_ref().map(|bought| &*bought.decision),
            settlement: settlement.as_ref(),
            now: self.at,
        };
        let judgement = judge_receipt(&question.receipt, &known);
        if judgement.is_by_address != signer.is_none() {
            return Err(BundleError::Inconsistent(
                "a signer although an address signed, or no signer although a key signed",
            ));
        }
        Ok(ReceiptVerificationDocument::from_judgement(judgement, &setting))
    }

    /// Whether the purchase from `name` was settled according to the chain. The bundle must contain a transaction if,
    /// and only if, the purchase requires one.
    fn check_settlement(
        &self,
        purchase: &PurchasePaymentDocuments,
        name: &str,
    ) -> Result<Option<SettlementCheckResult>, BundleError> {
        if !purchase.requires_settlement_check() {
            return match self.transaction {
                Some(_) => Err(BundleError::Inconsistent("a transaction that the purchase does not require")),
                None => Ok(None),
            };
        }
        let (due, seen) = match (purchase.due_transfer(name), &self.transaction) {
            (Ok(due), Some(reading)) => {
                check_reading_consistency(reading)?;
                let is_proven = has_valid_receipt_proof(reading)?;
                let seen = due.check_transaction(&reading.head, reading.execution.as_ref(), &reading.proof, is_proven);
                (Some(due), seen)
            }
            (Err(objection), None) => (None, Err(objection)),
            (Ok(_), None) => return Err(BundleError::Inconsistent("the transaction is missing")),
            (Err(_), Some(_)) => {
                return Err(BundleError::Inconsistent("a transaction that the purchase does not require"));
            }
        };
        Ok(Some(SettlementCheckResult::from_transaction_check(purchase, due, seen)))
    }
}

/// Who was paid, as text, if the payee is one of the agent's addresses.
fn matching_payee_clause(
    purchase: &PurchasePaymentDocuments,
    settlement: Option<&SettlementCheckResult>,
    agent: &ReplayedResolution,
) -> Option<String> {
    let (network, payee) = purchase.network_and_payee(settlement.and_then(|settlement| settlement.due.as_ref()))?;
    let claim = PayeeClaim::from_records(agent.payment_records()?, network);
    let is_own = matches!(claim, PayeeClaim::Is(address, _) if address == payee);
    is_own.then(|| format!("that the payee {payee} is the address for {network} in the name's bundle"))
}

/// The agent as its name publishes it. The exporter may have configured further routes, so a receipt for another URL is
/// not a contradiction.
fn published_agent(agent: &ReplayedResolution) -> Option<CalledAgent> {
    let (verdict, published) = (agent.verdict(), agent.payment_records());
    let addresses = match published {
        Some(_) => SignerAddresses::from_published(verdict, published, &GatePolicy::default()),
        None => SignerAddresses { settled: Vec::new(), open: Some(Box::new(unpublished_key_reason("addr"))) },
    };
    let route = |verb: Option<&str>| AgentRoute::from_published(verdict.identity.as_ref(), published, verb);
    let mut routes = AgentEntryRoutes::lookup_for_verbs(verdict, published, route);
    routes.open.get_or_insert_with(|| {
        let others = Reason { effect: ReasonEffect::Unknown, ..Reason::new(ReasonCode::ReceiptRequestMismatch) };
        Box::new(others.at_place("route").observed("a URL that the name does not publish: a configuration may list it"))
    });
    CalledAgent::from_verdict(verdict, addresses, routes)
}

/// Rejects a reading that no resolver could have produced.
fn check_reading_consistency(reading: &TransactionReading) -> Result<(), BundleError> {
    let TransactionReading { head, execution, proof, .. } = reading;
    let is_below_head = |block: &ChainBlock| block.number < head.number && block.hash != head.hash;
    let is_in_chain = |block: &ChainBlock| is_below_head(block) || block == head;
    if !execution.as_ref().is_none_or(|execution| is_in_chain(&execution.block)) && !mutant!("settled-above-the-head") {
        return Err(BundleError::Inconsistent("a transaction in a block that is not below the head"));
    }
    let is_of_grade = match proof.grade {
        ProofGrade::SingleRpc => proof.agreed == 1,
        ProofGrade::Quorum => proof.agreed > 1,
        // A state proof cannot back a settlement. A settlement's receipt proof is reported separately.
        _ => false,
    };
    if is_of_grade && proof.agreed <= proof.asked || mutant!("any-number-of-endpoints-agrees") {
        return Ok(());
    }
    Err(BundleError::Inconsistent("an impossible number of endpoints"))
}

fn has_valid_receipt_proof(reading: &TransactionReading) -> Result<bool, BundleError> {
    match (&reading.receipt_proof, &reading.execution) {
        (None, _) => Ok(false),
        (Some(proof), Some(execution)) => {
            if !mutant!("bundled-receipts-are-believed") {
                proof.check_inclusion(execution)?;
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
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BundleError> {
        Self::from_value(json::parse_strict_json(bytes, LIMITS)?)
    }

    fn from_value(value: Value) -> Result<Self, BundleError> {
        let (document, digest) = parse_document::<PurchaseBundleDocument>(value, SCHEMA)?;
        Ok(Self { bundle: ResolutionBundle::from_value(document.bundle.clone())?, document, digest })
    }

    /// Packs a purchase from the agent of `bundle`, with its verification. `agent` is the result of verifying `bundle`.
    ///
    /// # Errors
    /// [`BundleError`] if the bundle would not verify, so that every packed bundle can be replayed.
    pub fn pack_purchase(
        bundle: ResolutionBundle,
        agent: &VerifiedBundle,
        papers: &PurchaseDocuments,
        evidence: PurchaseEvidence,
    ) -> Result<(Self, ReceiptVerificationDocument), BundleError> {
        let encoded = |bytes: &Vec<u8>| Base64Bytes(Bytes::copy_from_slice(bytes));
        let mut document = PurchaseBundleDocument {
            schema: SCHEMA.to_owned(),
            at: evidence.at,
            bundle: bundle.to_json(),
            signer: evidence.signer.as_ref().map(BundledReceiptSignerDocument::from_signer).transpose()?,
            receipt: encoded(&papers.receipt),
            request: papers.request.as_ref().map(encoded),
            decision: papers.decision.as_ref().map(encoded),
            asked: papers.asked.as_ref().map(encoded),
            payment: papers.payment.clone(),
            settlement: papers.settlement.clone(),
            transaction: evidence.transaction,
            verification: Value::Null,
        };
        let verification = document.judge_receipt(agent)?;
        document.verification = verification.to_value();
        let digest = document_digest(&serialize_document(&document)?)?;
        Ok((Self { document, bundle, digest }, verification))
    }

    /// The bundle of the agent's name.
    pub const fn name_bundle(&self) -> &ResolutionBundle {
        &self.bundle
    }

    /// The verification that follows from the evidence, regardless of the verification in the bundle. A forger would
    /// write this one into it. `agent` is the result of verifying its [`name_bundle`](Self::name_bundle).
    ///
    /// # Errors
    /// As [`verify_evidence`](Self::verify_evidence), but never [`BundleError::Verdict`].
    pub fn judge_evidence(&self, agent: &VerifiedBundle) -> Result<ReceiptVerificationDocument, BundleError> {
        self.document.judge_receipt(agent)
    }

    /// Judges the purchase again. `agent` is the result of verifying its [`name_bundle`](Self::name_bundle).
    ///
    /// # Errors
    /// [`BundleError`]: the first defect.
    pub fn verify_evidence(&self, agent: &VerifiedBundle) -> Result<VerifiedPurchase, BundleError> {
        let verification = self.judge_evidence(agent)?;
        let agents = self.document.bundle.pointer("/verdict/id");
        if let Some(at) = verification_difference(&self.document.verification, &verification, agents)
            && !mutant!("bundled-purchases-are-believed")
        {
            return Err(BundleError::Verdict { at: format!("/verification{at}") });
        }
        let question =
            self.document.purchase_documents().verification_request(&verification.name).map_err(BundleError::Shape)?;
        let payee = matching_payee_clause(&question.purchase, verification.settlement.as_ref(), &agent.replay);
        Ok(VerifiedPurchase {
            digest: self.digest,
            made_at: self.document.at,
            proven: proven_facts(&self.document, &verification, payee.as_deref()),
            attested: attested_facts(&self.document, &verification, agent, payee.is_some()),
            verification,
        })
    }

    /// The bundle as JSON.
    pub fn to_json(&self) -> Value {
        let mut value = serialize_document(&self.document).unwrap_or_default();
        value["digest"] = self.digest.to_string().into();
        value
    }
}

/// Members that another version of this program may word differently, including the digests that cover such texts.
const WORDED: [&str; 6] = ["id", "tool", "summary", "reasons", "checks", "verdict"];

/// JSON Pointer of the first difference. A bundle written by another version must be self-consistent and may differ
/// only in wording. `agents` is the id of the agent's verdict as that version wrote it.
fn verification_difference(
    bundled: &Value,
    found: &ReceiptVerificationDocument,
    agents: Option<&Value>,
) -> Option<String> {
    let found = found.to_value();
    if bundled.get("tool") == found.get("tool") {
        return first_json_difference(bundled, &found);
    }
    if !mutant!("other-versions-say-anything") {
        if bundled.get("id") != Some(&document_id(bundled).into()) {
            return Some("/id".to_owned());
        }
        if bundled.get("verdict") != agents {
            return Some("/verdict".to_owned());
        }
        if statuses_of_checks(bundled) != statuses_of_checks(&found) {
            return Some("/checks".to_owned());
        }
    }
    let mut stated = found.as_object()?.iter().filter(|(member, _)| !WORDED.contains(&member.as_str()));
    stated.find(|(member, value)| bundled.get(member) != Some(value)).map(|(member, _)| format!("/{member}"))
}

/// The status of each check of a verification.
fn statuses_of_checks(verification: &Value) -> Option<Vec<(&Value, &Value)>> {
    verification.get("checks")?.as_array()?.iter().map(|row| Some((row.get("check")?, row.get("status")?))).collect()
}

fn proven_facts(
    document: &PurchaseBundleDocument,
    verification: &ReceiptVerificationDocument,
    payee: Option<&str>,
) -> Vec<String> {
    let passed = |check: ReceiptCheckKind| {
        verification.checks.iter().any(|row| row.check == check && row.status == StepStatus::Pass)
    };
    // The bundle does not prove to whom the key belongs.
    let by = document.signer.as_ref().map_or("", |_| " by the signer's key");
    let mut clauses = vec![format!("that the receipt is {}{by}: its checks were made again", verification.state)];
    if passed(ReceiptCheckKind::Signature) {
        let whose = document.signer.as_ref().map_or("an address that the name's bundle has", |_| "the signer's key");
        clauses.push(format!("the receipt's signature by {whose}"));
    }
    if let Some(tie) = verification.tie {
        clauses.push(format!("that the receipt answers {}", tie.match_description()));
    }
    clauses.extend(payee.map(str::to_owned));
    if document.asked.is_some() {
        clauses.push("that the decision's terms, price, payee and URL are those that were demanded".to_owned());
    }
    if let Some(settlement) =
        verification.settlement.as_ref().filter(|it| it.shown_by == Some(SettlementAssuranceLevel::Proven))
    {
        let block = settlement.block.map(|block| block.hash.to_string()).unwrap_or_default();
        clauses.push(format!("that a transaction of block {block} has moved the payment by its own nonce"));
    }
    clauses
}

fn attested_facts(
    document: &PurchaseBundleDocument,
    verification: &ReceiptVerificationDocument,
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
    if (is_payee_shown || signer.is_none()) && grade < Some(ProofGrade::StateProof) {
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
            Some(SettlementAssuranceLevel::Proven) => "that its block is in the chain, and which transaction it was",
            Some(SettlementAssuranceLevel::Reported) | None => {
                "what the transaction contains, and that its block is in the chain"
            }
        };
        let (agreed, asked) = (proof.agreed, proof.asked);
        clauses.push(format!("{what}: reported by {agreed} of {asked} endpoints at block {}", head.number));
    }
    clauses
}

impl VerifiedPurchase {
    /// The overall state: that of the receipt, which is trusted only if agent and settlement are.
    pub const fn trust_state(&self) -> TrustState {
        self.verification.state
    }
}
