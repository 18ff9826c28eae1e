//! Judges the worst-case receipts.

#[path = "kinds.rs"]
pub(crate) mod kinds;

use std::hint::black_box;

use clresolve_core::name::EnsName;
use clresolve_core::reason::{Code, Reason};
use clresolve_core::state::State;
use clresolve_jose::PublicKey;
use clresolve_messages::receipt::document::ReceiptSetting;
use clresolve_messages::receipt::judge::{
    AgentRoutes, BoundReceipt, ReceiptAgent, ReceiptKnowledge, ReceiptSigner, SignerAddresses,
};
use clresolve_messages::receipt::question::Request;
use clresolve_messages::receipt::replay::Mark;
use clresolve_messages::receipt::{ReceiptQuestion, Verification, judge};
use clresolve_payment::settlement::Settlement;
use clresolve_verdict::sample::{self, bound};
use clresolve_verdict::schema::bound::CompiledSchema;
use clresolve_verdict::verdict::Verdict;
use jiff::Timestamp;
use serde_json::json;

pub(crate) const NAME: &str = "summarizeagent.eth";

/// Test data about the agent.
pub(crate) struct World {
    verdict: Verdict,
    agent: ReceiptAgent,
    signer: ReceiptSigner,
    schema: CompiledSchema,
}

impl World {
    pub(crate) fn new() -> Self {
        let name = |text| EnsName::parse(text).expect("a name");
        let agent = ReceiptAgent {
            name: name(NAME),
            entry: None,
            verbs: vec!["summarize".to_owned()],
            addresses: SignerAddresses::default(),
            routes: AgentRoutes::default(),
        };
        let key = PublicKey::from_record("ed25519:6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw").expect("a key");
        let (kid, name) = (Ok("test-key-7".to_owned()), name("runtime.sandbox.eth"));
        let verdict = sample::empty(State::Trusted, Timestamp::UNIX_EPOCH, 300).verdict().as_ref().clone();
        Self {
            verdict,
            agent,
            signer: ReceiptSigner { name, key: Ok(key), kid, canonical: None, block: 1, lent: Vec::new() },
            schema: schema(),
        }
    }

    /// Processes one question like the daemon: parses it, judges it, and serializes the answer.
    #[inline(never)]
    pub(crate) fn judge_measured(&self, question: &[u8]) -> Verification {
        self.judge(question)
    }

    /// The same under a function name that no instruction counter matches.
    #[inline(never)]
    pub(crate) fn judge(&self, question: &[u8]) -> Verification {
        let question = ReceiptQuestion::from_json(question).expect("a question");
        let (now, bought) = (Timestamp::UNIX_EPOCH, question.purchase.bought());
        let known = ReceiptKnowledge {
            agent: Some(&self.agent),
            signer: Ok(&self.signer),
            request: question.request.as_ref(),
            bought: bought.as_ref(),
            earliest: None,
            schema: Some(BoundReceipt { verb: "summarize", schema: Ok(&self.schema) }),
            now,
        };
        let due = question.purchase.due(self.agent.name.as_str());
        let unseen = Err(Reason::new(Code::SettlementUnproven).into());
        let settlement = Settlement::of(&question.purchase, due.ok(), unseen);
        let setting = ReceiptSetting {
            verdict: &self.verdict,
            signer: Some(&self.signer),
            is_signer_attested: false,
            request: question.request.as_ref().map(Request::sha256),
            decision: bought.as_ref().map(|bought| &*bought.decision),
            settlement: Some(&settlement),
            now,
        };
        let judgement = judge(&question.receipt, &known);
        black_box(Mark::of(&judgement, &known));
        let found = Verification::of(judgement, &setting);
        black_box(serde_json::to_vec(&found).expect("JSON"));
        found
    }
}

/// A schema that tries two alternatives for each value of a result.
fn schema() -> CompiledSchema {
    bound(&json!({"$id": "https://schemas.example/receipt.json", "type": "object", "properties": {"result": {
        "type": "object", "additionalProperties":
            {"additionalProperties": {"$ref": "#/$defs/item"}, "items": {"$ref": "#/$defs/item"}}}},
        "$defs": {"item": {"anyOf": [{"type": "number", "minimum": 1}, {"type": "object"}, {"const": 0}]}}}))
}
