//! Judges the worst-case receipts.

#[path = "kinds.rs"]
pub(crate) mod kinds;

use std::hint::black_box;

use clresolve_core::name::EnsName;
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::state::TrustState;
use clresolve_jose::Ed25519PublicKey;
use clresolve_messages::receipt::document::ReceiptVerificationDocumentInputs;
use clresolve_messages::receipt::judge::{
    AgentEntryRoutes, BoundReceiptSchema, CalledAgent, PublishedReceiptSigner, ReceiptKnowledge, SignerAddresses,
};
use clresolve_messages::receipt::question::AgentRequest;
use clresolve_messages::receipt::replay::ReceiptReplayKey;
use clresolve_messages::receipt::{ReceiptVerificationDocument, ReceiptVerificationRequest, judge_receipt};
use clresolve_payment::settlement::SettlementCheckResult;
use clresolve_verdict::sample::{self, sample_bound_schema};
use clresolve_verdict::schema::bound::BoundSchema;
use clresolve_verdict::verdict::Verdict;
use jiff::Timestamp;
use serde_json::json;

pub(crate) const NAME: &str = "summarizeagent.eth";

/// Test data about the agent.
pub(crate) struct World {
    verdict: Verdict,
    agent: CalledAgent,
    signer: PublishedReceiptSigner,
    schema: BoundSchema,
}

impl World {
    pub(crate) fn new() -> Self {
        let name = |text| EnsName::parse(text).expect("a name");
        let agent = CalledAgent {
            name: name(NAME),
            entry: None,
            verbs: vec!["summarize".to_owned()],
            addresses: SignerAddresses::default(),
            routes: AgentEntryRoutes::default(),
        };
        let key =
            Ed25519PublicKey::from_signer_record("ed25519:6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw").expect("a key");
        let (kid, name) = (Ok("test-key-7".to_owned()), name("runtime.sandbox.eth"));
        let verdict =
            sample::empty_resolution(TrustState::Trusted, Timestamp::UNIX_EPOCH, 300).verdict().as_ref().clone();
        Self {
            verdict,
            agent,
            signer: PublishedReceiptSigner { name, key: Ok(key), kid, canonical: None, block: 1, lent: Vec::new() },
            schema: schema(),
        }
    }

    /// Processes one question like the daemon: parses it, judges it, and serializes the answer.
    #[inline(never)]
    pub(crate) fn judge_measured(&self, question: &[u8]) -> ReceiptVerificationDocument {
        self.judge(question)
    }

    /// The same under a function name that no instruction counter matches.
    #[inline(never)]
    pub(crate) fn judge(&self, question: &[u8]) -> ReceiptVerificationDocument {
        let question = ReceiptVerificationRequest::from_json(question).expect("a question");
        let (now, bought) = (Timestamp::UNIX_EPOCH, question.purchase.purchase_facts());
        let known = ReceiptKnowledge {
            agent: Some(&self.agent),
            signer: Ok(&self.signer),
            request: question.request.as_ref(),
            bought: bought.as_ref(),
            earliest: None,
            schema: Some(BoundReceiptSchema { verb: "summarize", schema: Ok(&self.schema) }),
            now,
        };
        let due = question.purchase.due_transfer(self.agent.name.as_str());
        let unseen = Err(Reason::new(ReasonCode::SettlementUnproven).into());
        let settlement = SettlementCheckResult::from_transaction_check(&question.purchase, due.ok(), unseen);
        let setting = ReceiptVerificationDocumentInputs {
            verdict: &self.verdict,
            signer: Some(&self.signer),
            is_signer_attested: false,
            request: question.request.as_ref().map(AgentRequest::sha256),
            decision: bought.as_ref().map(|bought| &*bought.decision),
            settlement: Some(&settlement),
            now,
        };
        let judgement = judge_receipt(&question.receipt, &known);
        black_box(ReceiptReplayKey::from_judgement(&judgement, &known));
        let found = ReceiptVerificationDocument::from_judgement(judgement, &setting);
        black_box(serde_json::to_vec(&found).expect("JSON"));
        found
    }
}

/// A schema that tries two alternatives for each value of a result.
fn schema() -> BoundSchema {
    sample_bound_schema(
        &json!({"$id": "https://schemas.example/receipt.json", "type": "object", "properties": {"result": {
        "type": "object", "additionalProperties":
            {"additionalProperties": {"$ref": "#/$defs/item"}, "items": {"$ref": "#/$defs/item"}}}},
        "$defs": {"item": {"anyOf": [{"type": "number", "minimum": 1}, {"type": "object"}, {"const": 0}]}}}),
    )
}
