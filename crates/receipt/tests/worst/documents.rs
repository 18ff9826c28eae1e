//! What judges the worst receipts.

#[path = "kinds.rs"]
pub(crate) mod kinds;

use clresolve_core::name::EnsName;
use clresolve_jose::PublicKey;
use clresolve_receipt::judge::{
    AgentRoutes, BoundReceipt, ReceiptAgent, ReceiptKnowledge, ReceiptSigner, SignerAddresses,
};
use clresolve_receipt::question::Request;
use clresolve_receipt::{ReceiptJudgement, judge};
use clresolve_verdict::sample::bound;
use clresolve_verdict::schema::bound::CompiledSchema;
use jiff::Timestamp;
use serde_json::json;

/// What is known of the agent.
pub(crate) struct World {
    agent: ReceiptAgent,
    signer: ReceiptSigner,
    schema: CompiledSchema,
}

impl World {
    pub(crate) fn new() -> Self {
        let name = |text| EnsName::parse(text).expect("a name");
        let agent = ReceiptAgent {
            name: name("summarizeagent.eth"),
            entry: None,
            verbs: vec!["summarize".to_owned()],
            addresses: SignerAddresses::default(),
            routes: AgentRoutes::default(),
        };
        let key = PublicKey::from_record("ed25519:6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw").expect("a key");
        let (kid, name) = (Ok("test-key-7".to_owned()), name("runtime.sandbox.eth"));
        Self { agent, signer: ReceiptSigner { name, key: Ok(key), kid, canonical: None, block: 1 }, schema: schema() }
    }

    /// Reads the request and judges the receipt.
    #[inline(never)]
    pub(crate) fn judge_measured(&self, receipt: &[u8], request: &[u8]) -> ReceiptJudgement {
        self.judge(receipt, request)
    }

    /// The same, under a name that no counter looks for.
    #[inline(never)]
    pub(crate) fn judge(&self, receipt: &[u8], request: &[u8]) -> ReceiptJudgement {
        let request = Request::from_bytes(request).expect("a request");
        let now = Timestamp::UNIX_EPOCH;
        let known = ReceiptKnowledge {
            agent: Some(&self.agent),
            signer: Ok(&self.signer),
            request: Some(&request),
            bought: None,
            schema: Some(BoundReceipt { verb: "summarize", schema: Ok(&self.schema) }),
            now,
        };
        judge(receipt, &known)
    }
}

/// A schema that tries two alternatives for each value of a result.
fn schema() -> CompiledSchema {
    bound(&json!({"$id": "https://schemas.example/receipt.json", "type": "object", "properties": {"result": {
        "type": "object", "additionalProperties":
            {"additionalProperties": {"$ref": "#/$defs/item"}, "items": {"$ref": "#/$defs/item"}}}},
        "$defs": {"item": {"anyOf": [{"type": "number", "minimum": 1}, {"type": "object"}, {"const": 0}]}}}))
}
