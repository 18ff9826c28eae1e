//! Tests of single checks, on receipts signed here.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use clresolve_jose::{Ed25519PublicKey, Ed25519SigningKey};
use clresolve_verdict::sample::sample_bound_schema;
use clresolve_verdict::schema::bound::BoundSchema;
use serde_json::{Value, json};

use super::*;

const KID: &str = "key-1";
const SIGNER: &str = "runtime.example.eth";

fn name(text: &str) -> EnsName {
    EnsName::parse(text).expect("a name")
}

/// Facts about an agent whose signer has `key`.
struct World {
    agent: CalledAgent,
    signer: PublishedReceiptSigner,
    key: Ed25519SigningKey,
}

impl World {
    fn new() -> Self {
        let key = Ed25519SigningKey::generate().expect("randomness");
        let public =
            Ed25519PublicKey::from_bytes(key_bytes(&key).as_slice().try_into().expect("32 bytes")).expect("a key");
        Self {
            agent: CalledAgent {
                name: name("summarizeagent.eth"),
                entry: Some("x402://summarizeagent.eth/summarize/v1".to_owned()),
                verbs: vec!["summarize".to_owned()],
                addresses: SignerAddresses::default(),
                routes: AgentEntryRoutes::default(),
            },
            signer: PublishedReceiptSigner {
                name: name(SIGNER),
                key: Ok(public),
                kid: Ok(KID.to_owned()),
                canonical: None,
                block: 1,
                lent: Vec::new(),
            },
            key,
        }
    }

    /// A receipt of the SDKs: adds the proof to `content`.
    fn of_the_sdks(&self, mut content: Value) -> Value {
        content["metadata"]["proof"] =
            json!({"alg": "ed25519-sha256", "canonical": "cl-stable-json-v1", "signer_id": SIGNER});
        let (hash, signature) = self.sealed(&content);
        content["metadata"]["proof"]["hash_sha256"] = json!(hash);
        content["metadata"]["proof"]["signature_b64"] = json!(signature);
        content
    }

    /// A receipt of a runtime, which signs its whole proof, with this key id in the proof.
    fn of_a_runtime(&self, canonical: &str, kid: Value) -> Value {
        let mut receipt = content();
        receipt["metadata"] = json!({"receipt_id": "", "proof": {"alg": "ed25519-sha256", "canonical": canonical,
            "signer_id": SIGNER, "kid": kid, "hash_sha256": "", "signature_b64": ""}});
        let (hash, signature) = self.sealed(&receipt);
        receipt["metadata"]["proof"]["hash_sha256"] = json!(hash);
        receipt["metadata"]["proof"]["signature_b64"] = json!(signature);
        receipt
    }

    fn of_the_agent_sdk(&self, content: Value) -> Value {
        let (hash, signature) = self.sealed(&content);
        let mut receipt = content;
        receipt["metadata"] = json!({"proof": {"canonicalization": "json.sorted_keys.v1", "hash_sha256": hash}});
        receipt["signature"] = json!({"alg": "ed25519", "kid": KID, "sig": signature});
        receipt
    }

    fn sealed(&self, content: &Value) -> (String, String) {
        let hash = Digest::compute(&serde_json_canonicalizer::to_vec(content).expect("a form")).to_hex();
        let signature = STANDARD.encode(self.key.sign(hash.as_bytes()));
        (hash, signature)
    }

    fn judged(&self, receipt: &Value) -> ReceiptJudgement {
        self.judged_bytes(receipt.to_string().as_bytes(), None)
    }

    fn judged_for(&self, receipt: &Value, request: &Value) -> ReceiptJudgement {
        self.judged_bytes(receipt.to_string().as_bytes(), Some(request))
    }

    fn judged_bytes(&self, receipt: &[u8], request: Option<&Value>) -> ReceiptJudgement {
        let request =
            request.map(|request| AgentRequest::from_bytes(request.to_string().as_bytes()).expect("a request"));
        let now: Timestamp = "2026-01-02T00:00:00Z".parse().expect("a time");
        judge_receipt(
            receipt,
            &ReceiptKnowledge {
                agent: Some(&self.agent),
                signer: Ok(&self.signer),
                request: request.as_ref(),
                bought: None,
                earliest: None,
                schema: None,
                now,
            },
        )
    }
}

fn key_bytes(key: &Ed25519SigningKey) -> Vec<u8> {
    let jwk = key.public_key().to_jwk();
    URL_SAFE_NO_PAD.decode(jwk["x"].as_str().expect("x")).expect("base64url")
}

fn content() -> Value {
    json!({
        "x402": {"verb": "summarize", "version": "1.0.0", "entry": "x402://summarizeagent.eth/summarize/v1",
            "request_id": "req-1"},
        "trace": {"trace_id": "t-1", "started_at": "2026-01-01T00:00:00Z", "completed_at": "2026-01-01T00:00:01Z"},
        "status": "success",
        "result": {"summary": "hello"},
    })
}

fn call() -> Value {
    json!({"signer": SIGNER, "verb": "summarize", "ts": "2026-01-01T00:00:00Z", "input": {"content": "x"},
        "output": {"summary": "x"}, "execution": {"status": "ok"}})
}

fn codes(found: &ReceiptJudgement) -> Vec<ReasonCode> {
    found.reasons.iter().map(|reason| reason.code).collect()
}

fn status(found: &ReceiptJudgement, check: ReceiptCheckKind) -> StepStatus {
    found.check_result(check).expect("a row").status
}

#[test]
fn an_honest_receipt_is_trusted() {
    let world = World::new();
    for receipt in [world.of_the_sdks(content()), world.of_the_agent_sdk(call())] {
        let found = world.judged(&receipt);
        assert_eq!((found.trust_state(), codes(&found)), (TrustState::Trusted, vec![]), "{found:#?}");
    }
}

/// A schema that allows neither a member `note` nor a text in `metadata`.
fn bound_schema() -> BoundSchema {
    sample_bound_schema(
        &json!({"$id": "https://schemas.example/receipt.json", "type": "object", "additionalProperties": false,
        "properties": {"x402": {}, "trace": {}, "status": {}, "result": {}, "metadata": {"properties": {"note": false}}}}),
    )
}

fn judged_by(world: &World, receipt: &Value, schema: Result<&BoundSchema, &[Reason]>) -> ReceiptJudgement {
    let now: Timestamp = "2026-01-02T00:00:00Z".parse().expect("a time");
    let schema = Some(BoundReceiptSchema { verb: "summarize", schema });
    let known = ReceiptKnowledge {
        agent: Some(&world.agent),
        signer: Ok(&world.signer),
        request: None,
        bought: None,
        earliest: None,
        schema,
        now,
    };
    judge_receipt(receipt.to_string().as_bytes(), &known)
}

#[test]
fn a_receipt_is_what_its_bound_schema_demands() {
    let (world, schema) = (World::new(), bound_schema());
    let judged = |receipt: &Value| judged_by(&world, receipt, Ok(&schema));
    let found = judged(&world.of_the_sdks(content()));
    assert_eq!((found.trust_state(), codes(&found)), (TrustState::Trusted, vec![]), "{found:#?}");
    assert_eq!(
        found.bound.as_ref().map(|bound| &bound.id),
        found.check_result(ReceiptCheckKind::Schema).expect("a row").expected.as_ref()
    );
    let mut noted = content();
    noted["note"] = json!("no schema has this");
    let found = judged(&world.of_the_sdks(noted));
    assert_eq!(
        (codes(&found), found.clas_codes()),
        (vec![ReasonCode::ReceiptSchemaInvalid], vec!["ERR_SCHEMA_INVALID"])
    );
    let row = found.check_result(ReceiptCheckKind::Schema).expect("a row");
    assert_eq!((row.status, row.place.as_deref()), (StepStatus::Fail, Some("/note")));
    assert_eq!(row.expected.as_deref(), Some("https://schemas.example/receipt.json"));
    // No schema is bound for another family or another verb.
    assert_eq!(judged(&world.of_the_agent_sdk(call())).bound, None);
    let mut other = content();
    other["x402"]["verb"] = json!("agent.execute");
    assert_eq!(judged(&world.of_the_sdks(other)).bound, None);
}

#[test]
fn what_nobody_signs_has_no_say_in_the_schema() {
    let (world, schema) = (World::new(), bound_schema());
    let mut receipt = world.of_the_sdks(content());
    receipt["receipt_id"] = json!("anything");
    receipt["metadata"]["proof"]["note"] = json!(1);
    let found = judged_by(&world, &receipt, Ok(&schema));
    assert_eq!((found.trust_state(), codes(&found)), (TrustState::Trusted, vec![]), "{found:#?}");
}

#[test]
fn a_bound_schema_that_is_not_known_decides_nothing() {
    let world = World::new();
    let reasons = [Reason::new(ReasonCode::SchemaUnavailable)];
    let found = judged_by(&world, &world.of_the_sdks(content()), Err(&reasons));
    assert_eq!((found.trust_state(), codes(&found)), (TrustState::Indeterminate, vec![ReasonCode::SchemaUnavailable]));
    assert_eq!((status(&found, ReceiptCheckKind::Schema), found.bound), (StepStatus::Unknown, None));
}

#[test]
fn every_reason_against_the_bound_schema_counts() {
    let world = World::new();
    let reasons = [Reason::new(ReasonCode::SchemaUnavailable), Reason::new(ReasonCode::SchemaMirrorMismatch)];
    let found = judged_by(&world, &world.of_the_sdks(content()), Err(&reasons));
    let all = vec![ReasonCode::SchemaMirrorMismatch, ReasonCode::SchemaUnavailable];
    assert_eq!((found.trust_state(), codes(&found)), (TrustState::Untrusted, all));
    assert_eq!(status(&found, ReceiptCheckKind::Schema), StepStatus::Fail);
    let none = judged_by(&world, &world.of_the_sdks(content()), Err(&[]));
    assert_eq!((none.trust_state(), codes(&none)), (TrustState::Indeterminate, vec![ReasonCode::SchemaUnavailable]));
}

#[test]
fn the_signature_is_over_what_was_recomputed() {
    let world = World::new();
    let mut receipt = world.of_the_sdks(content());
    receipt["result"]["summary"] = json!("other");
    let found = world.judged(&receipt);
    assert_eq!(codes(&found), [ReasonCode::ReceiptHashMismatch, ReasonCode::ReceiptSignatureInvalid]);
    let row = found.check_result(ReceiptCheckKind::Hash).expect("a row");
    assert_ne!(row.expected, row.observed);
    assert_eq!(found.clas_codes(), ["ERR_HASH_MISMATCH", "ERR_INVALID_SIGNATURE"]);
}

#[test]
fn a_signature_of_another_key_does_not_hold() {
    let (world, thief) = (World::new(), World::new());
    assert_eq!(codes(&world.judged(&thief.of_the_agent_sdk(call()))), [ReasonCode::ReceiptSignatureInvalid]);
}

/// Adding the group order to the second half of a signature satisfies the same equation.
#[test]
fn malleable_and_misspelt_signatures_do_not_hold() {
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let world = World::new();
    let receipt = world.of_the_agent_sdk(call());
    let text = receipt["signature"]["sig"].as_str().expect("a text").to_owned();
    let mut bytes = STANDARD.decode(&text).expect("base64");
    let mut carry = 0;
    for (byte, order) in bytes[32..].iter_mut().zip(ORDER) {
        let sum = u16::from(*byte) + u16::from(order) + carry;
        *byte = sum.to_le_bytes()[0];
        carry = sum >> 8;
    }
    for other in [STANDARD.encode(bytes), format!("{text}!"), format!("{text} ")] {
        let mut changed = receipt.clone();
        changed["signature"]["sig"] = json!(other);
        assert_eq!(codes(&world.judged(&changed)), [ReasonCode::ReceiptSignatureInvalid], "{other}");
    }
}

#[test]
fn an_algorithm_that_the_family_lacks_is_refused() {
    let world = World::new();
    let mut receipt = world.of_the_agent_sdk(call());
    receipt["signature"]["alg"] = json!("none");
    let found = world.judged(&receipt);
    assert_eq!(
        (codes(&found), found.clas_codes()),
        (vec![ReasonCode::ReceiptSignatureInvalid], vec!["ERR_UNSUPPORTED_ALGORITHM"])
    );
}

/// The signature may be valid under that algorithm.
#[test]
fn signature_by_an_unknown_algorithm_is_undecided() {
    let world = World::new();
    let other = World::new();
    for receipt in [world.of_the_agent_sdk(call()), other.of_the_agent_sdk(call())] {
        for algorithm in [json!("ml-dsa-65"), json!("Ed448"), json!(null)] {
            let mut receipt = receipt.clone();
            receipt["signature"]["alg"] = algorithm;
            let found = world.judged(&receipt);
            assert_eq!(
                (found.trust_state(), codes(&found)),
                (TrustState::Indeterminate, vec![ReasonCode::ReceiptFamilyUnknown])
            );
            assert_eq!(status(&found, ReceiptCheckKind::Signature), StepStatus::Unknown);
        }
    }
}

#[test]
fn signature_over_an_unknown_form_is_undecided() {
    let world = World::new();
    let mut receipt = World::new().of_the_agent_sdk(call());
    receipt["metadata"]["proof"]["canonicalization"] = json!("json.other_form.v7");
    receipt["metadata"]["proof"]["hash_sha256"] = json!("00");
    let found = world.judged(&receipt);
    assert_eq!(
        (found.trust_state(), codes(&found)),
        (TrustState::Indeterminate, vec![ReasonCode::ReceiptFamilyUnknown])
    );
}

impl World {
    /// An execution receipt whose proof covers these members.
    fn scoped(&self, covers: &[&str]) -> Value {
        let mut receipt = json!({"clas": "1.0", "schema": "clas.execution.receipt.v1", "receipt_id": "r-9", "verb": "summarize",
            "agent": {"ens": "summarizeagent.eth", "kid": KID},
            "action": {"input_hash": "sha256:11", "completed_at": "2026-01-01T10:00:00Z"}, "note": "as agreed"});
        let mut covered = receipt.clone();
        covered.as_object_mut().expect("an object").retain(|name, _| covers.contains(&name.as_str()));
        let signature = self.sign_raw(&covered);
        receipt["proofs"] = json!([{"type": "execution", "covers": covers, "signer": SIGNER,
            "canonicalization": "json.sorted_keys.v1",
            "signature": {"alg": "Ed25519", "kid": KID, "value": signature}}]);
        receipt
    }

    /// An execution receipt whose signature covers the six members of family E.
    fn of_six_members(&self) -> Value {
        let mut receipt = self.scoped(&SCOPE);
        receipt["proofs"][0]["signature"]["value"] = json!(self.sealed(&six_members(&receipt)).1);
        receipt
    }

    /// A receipt of the agent SDK since 1.1.
    fn with_a_raw_proof(&self, content: Value) -> Value {
        let (hash, _) = self.sealed(&content);
        let signature = self.sign_raw(&content);
        let mut receipt = content;
        receipt["metadata"]["proof"] = json!({"canonicalization": "json.sorted_keys.v1",
            "hash": {"alg": "SHA-256", "value": hash},
            "signature": {"alg": "Ed25519", "kid": KID, "value": signature}});
        receipt
    }

    fn of_the_website(&self) -> Value {
        let (hash, signature) = self.sealed(&call());
        let mut receipt = call();
        receipt["metadata"]["proof"] = json!({"canonicalization": "json.sorted_keys.v1", "signer_id": SIGNER,
            "hash": {"alg": "SHA-256", "value": hash},
            "signature": {"alg": "Ed25519", "kid": KID, "value": signature}});
        receipt
    }

    fn sign_raw(&self, content: &Value) -> String {
        STANDARD.encode(self.key.sign(&serde_json_canonicalizer::to_vec(content).expect("a form")))
    }
}

/// The members that family E signs.
fn six_members(receipt: &Value) -> Value {
    let mut content = receipt.clone();
    let signed = ["clas", "schema", "receipt_id", "verb", "agent", "action"];
    content.as_object_mut().expect("an object").retain(|name, _| signed.contains(&name.as_str()));
    content
}

const SCOPE: [&str; 4] = ["receipt_id", "verb", "agent", "action"];

#[test]
fn scoped_proof_signs_the_members_that_it_lists() {
    let world = World::new();
    let receipt = world.scoped(&SCOPE);
    let found = world.judged(&receipt);
    assert_eq!((found.trust_state(), found.family), (TrustState::Trusted, Some(ReceiptFamily::E2)), "{found:#?}");
    assert_eq!(found.unsigned, ["/clas", "/note"]);
    for place in ["/receipt_id", "/verb", "/agent/ens", "/agent/kid", "/action/input_hash", "/action/completed_at"] {
        let mut altered = receipt.clone();
        *altered.pointer_mut(place).expect("a member") = json!("2026-01-01T10:00:01Z");
        let found = world.judged(&altered);
        assert_eq!(found.trust_state(), TrustState::Untrusted, "{place}");
        assert!(codes(&found).contains(&ReasonCode::ReceiptSignatureInvalid), "{place}: {found:#?}");
    }
    for place in ["/clas", "/note"] {
        let mut altered = receipt.clone();
        *altered.pointer_mut(place).expect("a member") = json!({"verb": "other"});
        assert_eq!(world.judged(&altered).trust_state(), TrustState::Trusted, "{place}");
    }
    let longest = world.judged(&world.scoped(&["clas", "schema", "receipt_id", "verb", "agent", "action", "note"]));
    assert_eq!((longest.trust_state(), longest.unsigned.len()), (TrustState::Trusted, 0), "{longest:#?}");
}

#[test]
fn scope_other_than_the_signed_one_is_refused() {
    let world = World::new();
    let receipt = world.scoped(&SCOPE);
    let with = |covers: Value| {
        let mut receipt = receipt.clone();
        receipt["proofs"][0]["covers"] = covers;
        let found = world.judged(&receipt);
        (found.trust_state(), codes(&found))
    };
    // The order of the list does not affect the signed content.
    assert_eq!(with(json!(["action", "agent", "verb", "receipt_id"])).0, TrustState::Trusted);
    for covers in [
        json!(["verb", "agent", "action"]),
        json!(["action"]),
        json!(["clas", "receipt_id", "verb", "agent", "action"]),
    ] {
        assert_eq!(
            with(covers.clone()),
            (TrustState::Untrusted, vec![ReasonCode::ReceiptSignatureInvalid]),
            "{covers}"
        );
    }
    for covers in [json!(["receipt_id", "verb", "agent"]), json!([])] {
        assert_eq!(with(covers.clone()), (TrustState::Untrusted, vec![ReasonCode::ReceiptSchemaInvalid]), "{covers}");
    }
}

/// Whatever such a proof was signed over, it was not checked.
#[test]
fn scope_of_an_untried_form_is_undecided() {
    let world = World::new();
    let undecided = (TrustState::Indeterminate, vec![ReasonCode::ReceiptFamilyUnknown]);
    let many: Vec<_> = (0..40).map(|number| format!("m{number}")).collect();
    for covers in [
        json!(["receipt_id", "verb", "agent", "action", "absent"]),
        json!(["receipt_id", "verb", "agent", "action", "settlement/amount"]),
        json!(["/receipt_id", "/verb", "/agent", "/action"]),
        json!(["receipt_id", "verb", "agent.ens", "action.input_hash"]),
        json!(["$.receipt_id", "$.action"]),
        json!([["receipt_id"], ["action", "input_hash"]]),
        json!(["receipt_id", "verb", "agent", "action", "action"]),
        json!(["receipt_id", "verb", "agent", "action", 7]),
        json!(["receipt_id", "verb", "agent", "action", "proofs"]),
        json!(many),
        json!({"members": ["action"]}),
        json!("action"),
        json!(null),
    ] {
        for mut receipt in [world.scoped(&SCOPE), World::new().scoped(&SCOPE)] {
            receipt["proofs"][0]["covers"] = covers.clone();
            let found = world.judged(&receipt);
            assert_eq!((found.trust_state(), codes(&found)), undecided, "{covers}: {found:#?}");
            assert_eq!(
                (status(&found, ReceiptCheckKind::Family), found.clas_codes()),
                (StepStatus::Unknown, vec![]),
                "{covers}"
            );
            let place = found.reasons[0].place.as_deref();
            assert_eq!(place, Some("/proofs/0/covers"), "{covers}");
        }
        // Family E signs six members, whatever `covers` contains.
        let mut fixed = world.of_six_members();
        fixed["proofs"][0]["covers"] = covers.clone();
        let found = world.judged(&fixed);
        assert_eq!(
            (found.trust_state(), found.family),
            (TrustState::Trusted, Some(ReceiptFamily::E)),
            "{covers}: {found:#?}"
        );
    }
}

#[test]
fn scope_of_a_refused_receipt_is_not_listed_as_unsigned() {
    let (world, thief) = (World::new(), World::new());
    let unsigned = |receipt: &Value| world.judged(receipt).unsigned;
    assert_eq!(unsigned(&world.of_six_members()), ["/note", "/proofs/0/covers"]);
    assert_eq!(unsigned(&world.scoped(&SCOPE)), ["/clas", "/note"]);
    for refused in [thief.of_six_members(), thief.scoped(&SCOPE)] {
        assert_eq!(unsigned(&refused), ["/note"]);
    }
}

#[test]
fn two_proofs_of_execution_are_undecided_and_none_is_invalid() {
    let (world, thief) = (World::new(), World::new());
    for (first, second) in [(&world, &thief), (&thief, &world), (&thief, &thief)] {
        let mut receipt = first.scoped(&SCOPE);
        receipt["proofs"].as_array_mut().expect("a list").push(second.of_six_members()["proofs"][0].clone());
        let found = world.judged(&receipt);
        assert_eq!(
            (found.trust_state(), codes(&found)),
            (TrustState::Indeterminate, vec![ReasonCode::ReceiptFamilyUnknown])
        );
        assert_eq!(found.reasons[0].place.as_deref(), Some("/proofs"));
    }
    let mut none = world.scoped(&SCOPE);
    none["proofs"][0]["type"] = json!("settlement");
    let found = world.judged(&none);
    assert_eq!((found.trust_state(), codes(&found)), (TrustState::Untrusted, vec![ReasonCode::ReceiptSchemaInvalid]));
}

/// Another form of the same shape may be the signed one, and anyone who forwards the receipt can change its scope.
#[test]
fn form_that_lacks_a_part_leaves_an_unread_key_retryable() {
    let mut world = World::new();
    let mut fixed = world.of_six_members();
    fixed["proofs"][0]["covers"] = json!(["/action"]);
    let mut without_execution = call();
    without_execution.as_object_mut().expect("an object").remove("execution");
    let receipts = [fixed, world.with_a_raw_proof(without_execution)];
    world.signer.key = Err(Box::new(Reason::new(ReasonCode::ReceiptKeyUnpublished).at_place("cl.sig.pub")));
    for receipt in receipts {
        let found = world.judged(&receipt);
        assert_eq!(
            (found.trust_state(), codes(&found)),
            (TrustState::Indeterminate, vec![ReasonCode::ReceiptKeyUnpublished])
        );
    }
}

/// The message is the hex digest of the covered members instead of their bytes, and the like in other families.
#[test]
fn signature_by_the_key_in_an_unpublished_form_is_undecided() {
    let world = World::new();
    let mut scoped = world.scoped(&SCOPE);
    let mut covered = scoped.clone();
    covered.as_object_mut().expect("an object").retain(|name, _| SCOPE.contains(&name.as_str()));
    scoped["proofs"][0]["signature"]["value"] = json!(world.sealed(&covered).1);
    let mut fixed = world.of_six_members();
    fixed["proofs"][0]["signature"]["value"] = json!(world.sign_raw(&six_members(&fixed)));
    let mut agent_sdk = world.of_the_agent_sdk(call());
    agent_sdk["signature"]["sig"] = json!(world.sign_raw(&call()));
    let mut content = call();
    content["family"] = json!("trust-verification");
    let mut raw_proof = world.with_a_raw_proof(content.clone());
    raw_proof["metadata"]["proof"]["signature"]["value"] = json!(world.sealed(&content).1);
    for (receipt, place, family) in [
        (scoped, "/receipt_id", ReceiptFamily::E2),
        (fixed, "/receipt_id", ReceiptFamily::E),
        (agent_sdk, "/verb", ReceiptFamily::B1),
        (raw_proof, "/family", ReceiptFamily::B3),
    ] {
        let found = world.judged(&receipt);
        assert_eq!(
            (found.trust_state(), codes(&found)),
            (TrustState::Indeterminate, vec![ReasonCode::ReceiptFamilyUnknown])
        );
        assert_eq!((status(&found, ReceiptCheckKind::Signature), found.family), (StepStatus::Unknown, Some(family)));
        let mut altered = receipt.clone();
        altered[&place[1..]] = json!("forged");
        let found = world.judged(&altered);
        assert_eq!(found.trust_state(), TrustState::Untrusted, "{family:?}");
        assert!(codes(&found).contains(&ReasonCode::ReceiptSignatureInvalid), "{family:?}: {found:#?}");
        assert_eq!(World::new().judged(&receipt).trust_state(), TrustState::Untrusted, "{family:?} by another key");
    }
}

#[test]
fn member_outside_the_scope_is_not_used() {
    let world = World::new();
    let mut receipt = world.scoped(&["receipt_id", "verb", "action"]);
    assert!(!world.judged(&receipt).is_agent_compared);
    receipt["agent"] = json!({"ens": "another.eth", "kid": "key-9"});
    receipt["ts"] = json!("2999-01-01T00:00:00Z");
    let found = world.judged(&receipt);
    assert_eq!((found.trust_state(), codes(&found)), (TrustState::Trusted, vec![]), "{found:#?}");
    assert!(!found.is_agent_compared);
}

#[test]
fn raw_proof_signs_the_receipt_without_itself() {
    let world = World::new();
    let mut content = call();
    content["version"] = json!("1.1.0");
    content["family"] = json!("trust-verification");
    let mut with_metadata = content.clone();
    with_metadata["metadata"] = json!({"note": "kept"});
    for content in [content, with_metadata] {
        let receipt = world.with_a_raw_proof(content);
        let found = world.judged(&receipt);
        assert_eq!((found.trust_state(), found.family), (TrustState::Trusted, Some(ReceiptFamily::B3)), "{found:#?}");
        assert!(found.unsigned.is_empty());
        for member in ["version", "family", "signer", "verb", "ts", "input", "output", "execution", "metadata", "added"]
        {
            let mut altered = receipt.clone();
            let place = if member == "metadata" { &mut altered["metadata"]["note"] } else { &mut altered[member] };
            *place = json!("2026-01-01T00:00:01Z");
            let found = world.judged(&altered);
            assert_eq!(found.trust_state(), TrustState::Untrusted, "{member}");
            assert!(codes(&found).contains(&ReasonCode::ReceiptSignatureInvalid), "{member}: {found:#?}");
        }
        let mut other = receipt;
        other["metadata"]["proof"]["hash"]["value"] = json!("00");
        assert_eq!(codes(&world.judged(&other)), [ReasonCode::ReceiptHashMismatch]);
    }
}

/// Content that makes no receipt of the agent SDK since 1.1 one of the website.
fn raw_call() -> Value {
    let mut content = call();
    content["family"] = json!("trust-verification");
    content
}

impl World {
    fn of_the_mcp_server(&self, mut content: Value) -> Value {
        content["version"] = json!("1.1.0");
        let signature = self.sign_raw(&content);
        content["proof"] = json!({"canonical": "json.sorted_keys.v1", "alg": "ed25519", "signature": signature,
            "kid": KID, "signer_id": SIGNER});
        content
    }

    /// An older receipt of runtime-core.
    fn hash_bound(&self, content: Value) -> Value {
        let (hash, signature) = self.sealed(&content);
        let proof = json!({"alg": "ed25519-sha256", "canonical": "json.sorted_keys.v1", "kid": KID,
            "signer_id": SIGNER, "hash_sha256": hash, "signature": signature});
        json!({"receipt": content, "signature": {"proof": proof}})
    }

    /// A layered receipt of runtime-core.
    fn layered(&self, content: Value) -> Value {
        let proof = json!({"alg": "ed25519", "canonical": "json.sorted_keys.v1", "kid": KID, "signer_id": SIGNER,
            "signature": self.sign_raw(&content)});
        json!({"receipt": content, "signature": {"proof": proof}})
    }

    /// Receipts with the places of a signed text and of the signature.
    fn signed(&self) -> [(Value, &'static str, &'static str); 8] {
        let (within, execution) = ("/metadata/proof/signature/value", "/proofs/0/signature/value");
        let (sdk, beside) = ("/metadata/proof/signature_b64", "/signature/proof/signature");
        [
            (self.scoped(&SCOPE), "/receipt_id", execution),
            (self.of_six_members(), "/receipt_id", execution),
            (self.with_a_raw_proof(raw_call()), "/ts", within),
            (self.of_the_website(), "/ts", within),
            (self.of_the_sdks(content()), "/trace/started_at", sdk),
            (self.of_the_mcp_server(raw_call()), "/ts", "/proof/signature"),
            (self.layered(json!({"verb": "summarize", "status": "ok"})), "/receipt/status", beside),
            (self.hash_bound(content()), "/receipt/trace/started_at", beside),
        ]
    }
}

/// Both alphabets are in use, with and without padding.
#[test]
fn a_signature_is_checked_in_every_spelling_of_base64() {
    let (world, thief) = (World::new(), World::new());
    for ((receipt, signed, at), (forged, ..)) in world.signed().into_iter().zip(thief.signed()) {
        for engine in [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD] {
            let respelt = |receipt: &Value, change: &dyn Fn(&mut Vec<u8>)| {
                let mut receipt = receipt.clone();
                let text = receipt.pointer_mut(at).expect("a signature");
                let mut bytes = STANDARD.decode(text.as_str().expect("a text")).expect("base64");
                change(&mut bytes);
                *text = json!(engine.encode(bytes));
                receipt
            };
            let found = world.judged(&respelt(&receipt, &|_| {}));
            assert_eq!((found.trust_state(), codes(&found)), (TrustState::Trusted, vec![]), "{at}: {found:#?}");
            let mut altered = receipt.clone();
            *altered.pointer_mut(signed).expect("a member") = json!("2026-01-01T00:00:01Z");
            let short = respelt(&receipt, &|bytes| bytes.truncate(63));
            let mut odd = respelt(&receipt, &|_| {});
            let text = odd.pointer_mut(at).expect("a signature");
            *text = json!(format!("{} ", text.as_str().expect("a text")));
            for wrong in [respelt(&altered, &|_| {}), respelt(&forged, &|_| {}), short, odd] {
                let found = world.judged(&wrong);
                assert!(codes(&found).contains(&ReasonCode::ReceiptSignatureInvalid), "{wrong}: {found:#?}");
            }
        }
    }
}

#[test]
fn a_digest_is_compared_in_every_spelling() {
    let world = World::new();
    let (objects, text) = ("/metadata/proof/hash/value", "/metadata/proof/hash_sha256");
    for (receipt, at) in [
        (world.with_a_raw_proof(raw_call()), objects),
        (world.of_the_website(), objects),
        (world.of_the_agent_sdk(call()), text),
        (world.of_the_sdks(content()), text),
        (world.of_a_runtime("json-stringify", json!(KID)), text),
        (world.hash_bound(content()), "/signature/proof/hash_sha256"),
    ] {
        let of = |digest: &str| {
            let mut receipt = receipt.clone();
            *receipt.pointer_mut(at).expect("a digest") = json!(digest);
            codes(&world.judged(&receipt))
        };
        let digest = receipt.pointer(at).and_then(Value::as_str).expect("a digest");
        let upper = digest.to_uppercase();
        for same in [digest, &upper, &format!("sha256:{digest}"), &format!("sha256:{upper}")] {
            assert_eq!(of(same), [], "{at}: {same}");
        }
        let other = Digest::compute(b"other").to_string();
        for wrong in [&other, &digest[1..], &format!("sha512:{digest}"), &format!("{digest} ")] {
            assert_eq!(of(wrong), [ReasonCode::ReceiptHashMismatch], "{at}: {wrong}");
        }
    }
}

/// RFC 9864 and RFC 8037 have two names for it, and CommandLayer's programs a third.
#[test]
fn ed25519_has_several_names() {
    let world = World::new();
    for (receipt, signed, at) in [
        (world.scoped(&SCOPE), "/receipt_id", "/proofs/0/signature/alg"),
        (world.of_six_members(), "/receipt_id", "/proofs/0/signature/alg"),
        (world.with_a_raw_proof(raw_call()), "/ts", "/metadata/proof/signature/alg"),
        (world.of_the_website(), "/ts", "/metadata/proof/signature/alg"),
        (world.of_the_agent_sdk(call()), "/ts", "/signature/alg"),
        (world.of_the_mcp_server(raw_call()), "/ts", "/proof/alg"),
        (world.layered(json!({"verb": "summarize", "status": "ok"})), "/receipt/status", "/signature/proof/alg"),
    ] {
        let of = |receipt: &Value, algorithm: &str| {
            let mut receipt = receipt.clone();
            *receipt.pointer_mut(at).expect("an algorithm") = json!(algorithm);
            let found = world.judged(&receipt);
            (found.trust_state(), codes(&found))
        };
        let mut altered = receipt.clone();
        *altered.pointer_mut(signed).expect("a member") = json!("2026-01-01T00:00:01Z");
        for same in ["EdDSA", "Ed25519", "ed25519", "ED25519"] {
            assert_eq!(of(&receipt, same), (TrustState::Trusted, vec![]), "{at}: {same}");
            assert!(of(&altered, same).1.contains(&ReasonCode::ReceiptSignatureInvalid), "{at}: {same}");
        }
        for other in ["Ed448", "ed25519ph", "ES256K"] {
            assert_eq!(
                of(&receipt, other),
                (TrustState::Indeterminate, vec![ReasonCode::ReceiptFamilyUnknown]),
                "{at}: {other}"
            );
        }
    }
}

/// In most families, only these members distinguish two agents of one signer.
#[test]
fn a_signed_member_that_names_an_agent_names_the_asked_one() {
    type Sign<'w> = &'w dyn Fn(Value) -> Value;
    let world = World::new();
    let of_the_sdks = || {
        let mut content = content();
        content["x402"].as_object_mut().expect("an object").remove("entry");
        content
    };
    let families: [(Value, &str, Sign<'_>); 4] = [
        (raw_call(), "", &|content| world.with_a_raw_proof(content)),
        (raw_call(), "", &|content| world.of_the_mcp_server(content)),
        (of_the_sdks(), "", &|content| world.of_the_sdks(content)),
        (of_the_sdks(), "/receipt", &|content| world.hash_bound(content)),
    ];
    for (content, root, sign) in families {
        let with = |member: &str, value: Value| {
            let mut content = content.clone();
            content[member] = value;
            world.judged(&sign(content))
        };
        for (member, below) in [("agent", ""), ("agent_name", ""), ("ens_name", ""), ("agent", "/ens")] {
            let value = |name: &str| if below.is_empty() { json!(name) } else { json!({"ens": name}) };
            for own in ["summarizeagent.eth", "SummarizeAgent.eth"] {
                let found = with(member, value(own));
                assert_eq!((found.trust_state(), codes(&found)), (TrustState::Trusted, vec![]), "{member}: {found:#?}");
                assert!(found.is_agent_compared, "{member}: {own}");
            }
            for other in ["thief.eth", "Thief.eth", "a.summarizeagent.eth"] {
                let found = with(member, value(other));
                assert_eq!(codes(&found), [ReasonCode::ReceiptSignerMismatch], "{member}: {other}");
                let place = found.check_result(ReceiptCheckKind::Agent).and_then(|row| row.place.clone());
                assert_eq!(place, Some(format!("{root}/{member}{below}")));
            }
            for nobody in [json!(SIGNER), json!("summarizer"), json!("Node.js"), json!("gpt-4.1"), json!(""), json!(7)]
            {
                let value = if below.is_empty() { nobody } else { json!({"ens": nobody}) };
                let found = with(member, value);
                assert_eq!(
                    (found.trust_state(), found.is_agent_compared),
                    (TrustState::Trusted, false),
                    "{member}: {found:#?}"
                );
            }
        }
    }
    let mut two = raw_call();
    (two["agent"], two["agent_name"]) = (json!("summarizeagent.eth"), json!("thief.eth"));
    assert_eq!(codes(&world.judged(&world.with_a_raw_proof(two))), [ReasonCode::ReceiptSignerMismatch]);
    // Unsigned members identify no agent.
    let mut unsigned = world.of_the_website();
    unsigned["agent"] = json!("thief.eth");
    let found = world.judged(&unsigned);
    assert_eq!((found.trust_state(), found.is_agent_compared), (TrustState::Trusted, false), "{found:#?}");
}

#[test]
fn null_at_an_optional_place_of_the_proof_counts_as_absent() {
    let world = World::new();
    let mut content = call();
    content["family"] = json!("trust-verification");
    let with = |signer_id: Value| {
        let mut receipt = world.with_a_raw_proof(content.clone());
        receipt["metadata"]["proof"]["signer_id"] = signer_id;
        let found = world.judged(&receipt);
        (found.trust_state(), found.family, codes(&found))
    };
    assert_eq!(with(json!(null)), (TrustState::Trusted, Some(ReceiptFamily::B3), vec![]));
    assert_eq!(with(json!(SIGNER)).0, TrustState::Trusted);
    for other in [json!("thief.eth"), json!(""), json!(7), json!({}), json!([SIGNER])] {
        let found = with(other.clone());
        assert_eq!(
            found,
            (TrustState::Untrusted, Some(ReceiptFamily::B3), vec![ReasonCode::ReceiptSignerMismatch]),
            "{other}"
        );
    }
    let found = world.judged(&world.of_a_runtime("json-stringify", json!(null)));
    assert_eq!((found.trust_state(), status(&found, ReceiptCheckKind::Key)), (TrustState::Trusted, StepStatus::Skip));
    // The website's form requires the member.
    let mut website = world.of_the_website();
    assert_eq!(world.judged(&website).trust_state(), TrustState::Trusted);
    website["metadata"]["proof"]["signer_id"] = json!(null);
    assert_eq!(codes(&world.judged(&website)), [ReasonCode::ReceiptSignerMismatch]);
}

#[test]
fn receipt_with_too_many_long_numbers_is_refused_unread() {
    let world = World::new();
    let receipt = world.of_the_agent_sdk(call()).to_string();
    let with = |count: usize| {
        let numbers = vec!["8.43387743279489105278063e-294"; count].join(",");
        let found = world.judged_bytes(receipt.replace(r#"{"status":"ok"}"#, &format!("[{numbers}]")).as_bytes(), None);
        let reason = found.reasons[0].clone();
        (reason.code, reason.expected, reason.place.is_some(), reason.observed.is_some())
    };
    assert_eq!(with(1000).0, ReasonCode::ReceiptSchemaInvalid);
    let most = Some("at most 1000 numbers of more than 17 significant digits".to_owned());
    assert_eq!(with(1001), (ReasonCode::ReceiptFamilyUnknown, most, true, true));
}

#[test]
fn hash_signature_and_key_are_reported_apart() {
    let world = World::new();
    let (own, other) = (world.of_the_agent_sdk(call()), World::new().of_the_agent_sdk(call()));
    let wrong = [
        (ReceiptCheckKind::Hash, "/metadata/proof/hash_sha256", json!(Digest::compute(b"other").to_hex())),
        (ReceiptCheckKind::Signature, "/signature/sig", other["signature"]["sig"].clone()),
        (ReceiptCheckKind::Key, "/signature/kid", json!("key-2")),
    ];
    for (check, place, value) in wrong {
        let mut receipt = own.clone();
        *receipt.pointer_mut(place).expect("a member") = value;
        let found = world.judged(&receipt);
        for other in [ReceiptCheckKind::Hash, ReceiptCheckKind::Signature, ReceiptCheckKind::Key] {
            let expected = if other == check { StepStatus::Fail } else { StepStatus::Pass };
            assert_eq!(status(&found, other), expected, "{place}: {other:?}");
        }
    }
}

#[test]
fn another_canonical_form_than_that_of_the_family_is_told() {
    let world = World::new();
    let mut receipt = world.of_the_agent_sdk(call());
    receipt["metadata"]["proof"]["canonicalization"] = json!("json.sorted_keys.v2");
    let found = world.judged(&receipt);
    assert_eq!(
        (found.trust_state(), codes(&found)),
        (TrustState::Indeterminate, vec![ReasonCode::ReceiptFamilyUnknown])
    );
    assert_eq!(found.clas_codes(), ["ERR_CANONICALIZATION_MISMATCH"]);
}

#[test]
fn the_key_id_is_compared() {
    let world = World::new();
    let mut receipt = world.of_the_agent_sdk(call());
    receipt["signature"]["kid"] = json!("key-2");
    assert_eq!(codes(&world.judged(&receipt)), [ReasonCode::ReceiptKeyMismatch]);
    receipt["signature"].as_object_mut().expect("an object").remove("kid");
    assert_eq!(codes(&world.judged(&receipt)), [ReasonCode::ReceiptKeyMismatch]);
    let mut signed = content();
    signed["kid"] = json!("key-2");
    assert_eq!(codes(&world.judged(&world.of_the_sdks(signed))), [ReasonCode::ReceiptKeyMismatch]);
}

/// A2 and A3 sign their whole proof; A1 signs three members of it.
#[test]
fn a_key_id_in_the_proof_is_compared_where_it_is_signed() {
    let world = World::new();
    let of = |canonical: &str, kid: Value| {
        let found = world.judged(&world.of_a_runtime(canonical, kid));
        (found.family, status(&found, ReceiptCheckKind::Key), codes(&found))
    };
    for (canonical, family) in [("cl-stable-json-v1", ReceiptFamily::A2), ("json-stringify", ReceiptFamily::A3)] {
        assert_eq!(of(canonical, json!(KID)), (Some(family), StepStatus::Pass, vec![]));
        for other in [json!("key-2"), json!(7)] {
            assert_eq!(of(canonical, other), (Some(family), StepStatus::Fail, vec![ReasonCode::ReceiptKeyMismatch]));
        }
    }
    let mut of_the_sdks = world.of_the_sdks(content());
    of_the_sdks["metadata"]["proof"]["kid"] = json!("key-2");
    let found = world.judged(&of_the_sdks);
    assert_eq!((found.trust_state(), status(&found, ReceiptCheckKind::Key)), (TrustState::Trusted, StepStatus::Skip));
    assert_eq!(found.unsigned, ["/metadata/proof/kid"]);
}

#[test]
fn a_key_that_is_not_published_decides_nothing() {
    let mut world = World::new();
    let receipt = world.of_the_agent_sdk(call());
    world.signer.kid = Err(Box::new(Reason::new(ReasonCode::ReceiptKeyUnpublished).at_place("cl.sig.kid")));
    world.signer.key = Err(Box::new(Reason::new(ReasonCode::ReceiptKeyUnpublished).at_place("cl.sig.pub")));
    let found = world.judged(&receipt);
    assert_eq!(found.trust_state(), TrustState::Indeterminate);
    assert_eq!(codes(&found), [ReasonCode::ReceiptKeyUnpublished; 2]);
    assert!(found.clas_codes().contains(&"ERR_ENS_KEY_NOT_FOUND"), "{:?}", found.clas_codes());
    let unknown = Reason::new(ReasonCode::ReceiptKeyUnpublished);
    let known = ReceiptKnowledge {
        agent: Some(&world.agent),
        signer: Err(&unknown),
        request: None,
        bought: None,
        earliest: None,
        schema: None,
        now: Timestamp::UNIX_EPOCH,
    };
    let found = judge_receipt(world.of_the_sdks(json!({})).to_string().as_bytes(), &known);
    assert_eq!(
        (status(&found, ReceiptCheckKind::Signature), status(&found, ReceiptCheckKind::Signer)),
        (StepStatus::Unknown, StepStatus::Unknown)
    );
}

/// An agent whose name cannot be parsed has no entry to compare.
#[test]
fn what_is_undecided_is_not_trusted() {
    let world = World::new();
    let known = ReceiptKnowledge {
        agent: None,
        signer: Ok(&world.signer),
        request: None,
        bought: None,
        earliest: None,
        schema: None,
        now: "2026-01-02T00:00:00Z".parse().expect("a time"),
    };
    let found = judge_receipt(world.of_the_sdks(content()).to_string().as_bytes(), &known);
    assert_eq!((status(&found, ReceiptCheckKind::Agent), codes(&found)), (StepStatus::Unknown, vec![]));
    assert_eq!(
        (status(&found, ReceiptCheckKind::Signature), found.trust_state()),
        (StepStatus::Pass, TrustState::Indeterminate)
    );
}

#[test]
fn the_signer_is_the_one_that_the_agent_names() {
    let world = World::new();
    let mut call = call();
    call["signer"] = json!("thief.eth");
    assert_eq!(codes(&world.judged(&world.of_the_agent_sdk(call))), [ReasonCode::ReceiptSignerMismatch]);
}

#[test]
fn a_receipt_of_another_agent_of_the_same_signer_is_refused() {
    let world = World::new();
    for (pointer, value) in [("/x402/entry", "x402://analyzeagent.eth/analyze/v1"), ("/x402/verb", "analyze")] {
        let mut content = content();
        *content.pointer_mut(pointer).expect("a member") = json!(value);
        let found = world.judged(&world.of_the_sdks(content));
        assert_eq!(codes(&found), [ReasonCode::ReceiptRequestMismatch], "{pointer}");
    }
}

/// A signer of many agents produces the same signed content for each if the family has no member for the agent. A verb
/// does not name an agent.
#[test]
fn a_receipt_that_names_no_agent_may_be_another_one_s() {
    let world = World::new();
    let of = |receipt: &Value| {
        let found = world.judged(receipt);
        (found.trust_state(), found.is_agent_compared)
    };
    assert_eq!(of(&world.of_the_sdks(content())), (TrustState::Trusted, true));
    let mut without_entry = content();
    without_entry["x402"].as_object_mut().expect("an object").remove("entry");
    assert_eq!(of(&world.of_the_sdks(without_entry)), (TrustState::Trusted, false));
    for verb in ["summarize", "agent.execute"] {
        let mut call = call();
        call["verb"] = json!(verb);
        assert_eq!(of(&world.of_the_agent_sdk(call)), (TrustState::Trusted, false), "{verb}");
    }
}

/// A passing row states the compared value.
#[test]
fn what_is_not_compared_does_not_pass_as_the_agent_s() {
    let mut world = World::new();
    let row = |world: &World, receipt: &Value| {
        world.judged(receipt).check_result(ReceiptCheckKind::Agent).expect("a row").clone()
    };
    let mut execute = call();
    execute["verb"] = json!("agent.execute");
    assert_eq!(row(&world, &world.of_the_agent_sdk(execute)).status, StepStatus::Skip, "no word of CommandLayer's");
    world.agent.verbs.push("analyze".to_owned());
    let found = row(&world, &world.of_the_agent_sdk(call()));
    let compared = (found.status, found.expected.as_deref(), found.observed.as_deref());
    assert_eq!(compared, (StepStatus::Pass, Some("summarize, analyze"), Some("summarize")));
    world.agent.verbs.clear();
    assert_eq!(
        row(&world, &world.of_the_agent_sdk(call())).status,
        StepStatus::Skip,
        "the agent's verbs are not known"
    );
    world.agent.entry = None;
    assert_eq!(row(&world, &world.of_the_sdks(content())).status, StepStatus::Skip, "the agent has no entry");
}

#[test]
fn a_time_in_the_future_is_implausible() {
    let world = World::new();
    let with = |pointer: &str, time: &str| {
        let mut content = content();
        *content.pointer_mut(pointer).expect("a member") = json!(time);
        codes(&world.judged(&world.of_the_sdks(content)))
    };
    assert_eq!(with("/trace/completed_at", "2026-01-02T00:05:00Z"), []);
    assert_eq!(with("/trace/completed_at", "2026-01-02T00:05:01Z"), [ReasonCode::ReceiptTimeImplausible]);
    assert_eq!(with("/trace/completed_at", "2025-12-31T23:59:59Z"), [ReasonCode::ReceiptTimeImplausible]);
    for (time, found) in [
        ("yesterday", &[ReasonCode::ReceiptTimeImplausible][..]),
        ("2026-01-01 00Z", &[ReasonCode::ReceiptTimeImplausible]),
        ("2026-01-01T00:00:00.1234567891Z", &[]),
    ] {
        assert_eq!(with("/trace/started_at", time), found, "{time}");
    }
}

/// CLAS has no code for a receipt that is too large, and its code for an invalid receipt means something else.
#[test]
fn oversized_receipt_is_undecided_without_a_clas_code() {
    let found = World::new().judged(&json!("x".repeat(crate::receipt::MAX_BYTES)));
    assert_eq!(
        (codes(&found), found.trust_state()),
        (vec![ReasonCode::ReceiptFamilyUnknown], TrustState::Indeterminate)
    );
    assert_eq!(found.clas_codes(), [""; 0]);
}

/// A receipt of an earlier purchase is signed with the right key too.
#[test]
fn a_receipt_that_was_signed_before_the_purchase_is_implausible() {
    let world = World::new();
    let receipt = world.of_the_sdks(content());
    let bought = |earliest: &str| {
        let known = ReceiptKnowledge {
            agent: Some(&world.agent),
            signer: Ok(&world.signer),
            request: None,
            bought: None,
            earliest: Some(earliest.parse().expect("a time")),
            schema: None,
            now: "2026-01-02T00:00:00Z".parse().expect("a time"),
        };
        let found = judge_receipt(receipt.to_string().as_bytes(), &known);
        let row = found.check_result(ReceiptCheckKind::Time).expect("a row").clone();
        (codes(&found), row.expected.unwrap_or_default(), row.place.unwrap_or_default())
    };
    // The receipt began at 00:00:00 and was complete a second later.
    assert_eq!(bought("2026-01-01T00:05:01Z").0, []);
    let (codes, expected, place) = bought("2026-01-01T00:05:02Z");
    assert_eq!(codes, [ReasonCode::ReceiptTimeImplausible]);
    assert_eq!((expected.as_str(), place.as_str()), ("no earlier than 2026-01-01T00:00:02Z", "/trace/completed_at"));
}

#[test]
fn a_receipt_echoes_the_request() {
    let world = World::new();
    let receipt = world.of_the_sdks(content());
    let request = |id: &str| json!({"x402": {"verb": "summarize", "version": "1.0.0", "request_id": id}});
    assert_eq!(world.judged_for(&receipt, &request("req-1")).trust_state(), TrustState::Trusted);
    assert_eq!(codes(&world.judged_for(&receipt, &request("req-2"))), [ReasonCode::ReceiptTraceNotEchoed]);
    let without = json!({"x402": {"verb": "summarize", "version": "1.0.0"}});
    let undecided = world.judged_for(&receipt, &without);
    assert_eq!(
        (undecided.trust_state(), codes(&undecided)),
        (TrustState::Indeterminate, vec![ReasonCode::ReceiptTraceNotEchoed])
    );
    let mut traced = request("req-1");
    traced["trace"] = json!({"trace_id": "t-2"});
    assert_eq!(codes(&world.judged_for(&receipt, &traced)), [ReasonCode::ReceiptTraceNotEchoed]);
    let other = json!({"x402": {"verb": "analyze", "version": "1.0.0", "request_id": "req-1"}});
    assert_eq!(codes(&world.judged_for(&receipt, &other)), [ReasonCode::ReceiptRequestMismatch]);
}

/// Line 1.0.0 states in `x402` what line 1.1.0 and most families state at the top level.
#[test]
fn a_receipt_is_about_the_call_of_its_request_wherever_either_says_it() {
    let world = World::new();
    let asked = json!({"input": {"content": "x"}});
    let of_request = |receipt: Value, place: &str, value: &str| {
        let mut request = asked.clone();
        match place.rsplit_once('/') {
            Some((envelope, name)) if !envelope.is_empty() => request[&envelope[1..]] = json!({name: value}),
            _ => request[&place[1..]] = json!(value),
        }
        codes(&world.judged_for(&receipt, &request))
    };
    let top = || world.of_the_agent_sdk(call());
    for place in ["/x402/verb", "/verb"] {
        assert_eq!(of_request(top(), place, "summarize"), [], "{place}");
        assert_eq!(of_request(top(), place, "analyze"), [ReasonCode::ReceiptRequestMismatch], "{place}");
        let enveloped = || world.of_the_sdks(content());
        assert_eq!(of_request(enveloped(), place, "analyze"), [ReasonCode::ReceiptRequestMismatch], "{place}");
    }
    for place in ["/x402/request_id", "/request_id"] {
        assert_eq!(of_request(world.of_the_sdks(content()), place, "req-1"), [], "{place}");
        assert_eq!(
            of_request(world.of_the_sdks(content()), place, "req-2"),
            [ReasonCode::ReceiptTraceNotEchoed],
            "{place}"
        );
        let mut above = content();
        above["request_id"] = json!("req-2");
        assert_eq!(
            of_request(world.of_the_sdks(above), place, "req-1"),
            [ReasonCode::ReceiptTraceNotEchoed],
            "{place}"
        );
    }
    let mut versioned = content();
    versioned["version"] = json!("1.1.0");
    let versioned = world.of_the_sdks(versioned);
    let asked = |request: Value| codes(&world.judged_for(&versioned, &request));
    let request = |x402: &str, top: &str| json!({"x402": {"version": x402, "request_id": "req-1"}, "version": top});
    assert_eq!(asked(request("1.0.0", "1.1.0")), []);
    assert_eq!(asked(request("1.0.1", "1.1.0")), [ReasonCode::ReceiptRequestMismatch]);
    assert_eq!(asked(request("1.0.0", "1.2.0")), [ReasonCode::ReceiptRequestMismatch]);
}

#[test]
fn a_receipt_with_its_input_is_about_that_input() {
    let world = World::new();
    let receipt = world.of_the_agent_sdk(call());
    for request in [json!({"input": {"content": "x"}}), json!({"content": "x"})] {
        assert_eq!(world.judged_for(&receipt, &request).trust_state(), TrustState::Trusted, "{request}");
    }
    let other = world.judged_for(&receipt, &json!({"input": {"content": "y"}}));
    assert_eq!(codes(&other), [ReasonCode::ReceiptRequestMismatch]);
}

/// A signer may answer two requests with the same input. If it repeats no identifier, the receipt does not identify the
/// request.
#[test]
fn an_input_alone_does_not_tell_one_request_from_another() {
    let world = World::new();
    let layered = |content: Value| {
        let bytes = serde_json_canonicalizer::to_vec(&content).expect("a form");
        let proof = json!({"alg": "ed25519", "canonical": "json.sorted_keys.v1", "kid": KID, "signer_id": SIGNER,
            "signature": URL_SAFE_NO_PAD.encode(world.key.sign(&bytes))});
        json!({"receipt": content, "signature": {"proof": proof}})
    };
    let traced =
        |trace: &str| layered(json!({"verb": "summarize", "payload": {"content": "x"}, "trace": {"trace_id": trace}}));
    let mute = || world.of_the_agent_sdk(call());
    let x402 = json!({"x402": {"verb": "summarize", "request_id": "of today"}, "input": {"content": "x"}});
    let top = json!({"verb": "summarize", "request_id": "of today", "input": {"content": "x"}});
    let number = json!({"request_id": 7, "input": {"content": "x"}});
    let none = json!({"input": {"content": "x"}});
    let in_trace = json!({"request_id": "of today", "trace": {"trace_id": "t-1"}, "payload": {"content": "x"}});
    let mut echoed = content();
    echoed["input"] = json!({"content": "x"});
    let of_the_sdks = world.of_the_sdks(echoed);
    let whole = json!({"x402": {"request_id": "req-1"}, "trace": {"trace_id": "t-1"}, "input": {"content": "x"}});
    for (receipt, request, tie, is_id_unchecked) in [
        (mute(), &x402, RequestMatchStrength::Input, true),
        (mute(), &top, RequestMatchStrength::Input, true),
        (mute(), &number, RequestMatchStrength::Input, true),
        (mute(), &none, RequestMatchStrength::Input, false),
        (traced("t-1"), &in_trace, RequestMatchStrength::Trace, true),
        (of_the_sdks, &whole, RequestMatchStrength::RequestId, false),
    ] {
        let found = world.judged_for(&receipt, request);
        assert_eq!(
            (found.trust_state(), status(&found, ReceiptCheckKind::Request)),
            (TrustState::Trusted, StepStatus::Pass),
            "{request}"
        );
        assert_eq!((found.tie, found.is_id_unchecked), (Some(tie), is_id_unchecked), "{request}");
    }
    let other = world.judged_for(&traced("t-2"), &in_trace);
    assert_eq!((other.tie, codes(&other)), (None, vec![ReasonCode::ReceiptTraceNotEchoed]));
}

#[test]
fn what_line_1_0_0_demands_is_demanded() {
    let world = World::new();
    for (pointer, name) in [("/x402", "verb"), ("/x402", "version"), ("/trace", "trace_id"), ("", "status")] {
        let mut content = content();
        let object = content.pointer_mut(pointer).and_then(Value::as_object_mut).expect("an object");
        object.remove(name);
        let found = world.judged(&world.of_the_sdks(content));
        assert!(codes(&found).contains(&ReasonCode::ReceiptSchemaInvalid), "{pointer}/{name}");
    }
}

#[test]
fn receipt_has_the_result_or_error_of_its_status() {
    let world = World::new();
    let of = |status: &str, further: Value| {
        let mut content = content();
        let members = content.as_object_mut().expect("an object");
        members.remove("result");
        members.insert("status".to_owned(), status.into());
        members.extend(further.as_object().expect("an object").clone());
        let found = world.judged(&world.of_the_sdks(content));
        let row = found.check_result(ReceiptCheckKind::Schema).expect("a row");
        (row.status, row.place.clone().unwrap_or_default())
    };
    let (passes, lacks) = ((StepStatus::Pass, String::new()), |place: &str| (StepStatus::Fail, place.to_owned()));
    assert_eq!(of("success", json!({"result": {}})), passes);
    assert_eq!(of("success", json!({})), lacks("/result"));
    assert_eq!(of("success", json!({"result": "hello"})), lacks("/result"));
    assert_eq!(of("success", json!({"error": {}})), lacks("/result"));
    assert_eq!(of("error", json!({"error": {}})), passes);
    assert_eq!(of("error", json!({"result": {}})), lacks("/error"));
    assert_eq!(of("error", json!({"error": "none"})), lacks("/error"));
    assert_eq!(of("delegated", json!({})), passes);
    assert_eq!(of("ok", json!({"result": {}})), lacks("/status"));
}

/// A parser that treats `__proto__` specially would report VERIFIED.
#[test]
fn a_member_that_is_named_as_the_prototype_is_covered() {
    let world = World::new();
    let receipt = world.of_the_agent_sdk(call()).to_string();
    let altered = receipt.replace(r#""content":"x""#, r#""content":"x","__proto__":{"content":"y"}"#);
    assert_ne!(receipt, altered);
    let found = world.judged_bytes(altered.as_bytes(), None);
    assert_eq!(codes(&found), [ReasonCode::ReceiptHashMismatch, ReasonCode::ReceiptSignatureInvalid]);
}

#[test]
fn what_nobody_signs_is_listed_and_decides_nothing() {
    let world = World::new();
    let mut receipt = world.of_the_agent_sdk(call());
    receipt["metadata"]["settled"] = json!(true);
    receipt["status"] = json!("success");
    receipt["signature"]["at"] = json!("2099-01-01T00:00:00Z");
    let found = world.judged(&receipt);
    assert_eq!(found.trust_state(), TrustState::Trusted);
    assert_eq!(found.unsigned, ["/status", "/metadata/settled", "/signature/at"]);
}

/// Adds the unsigned parts of an SDK proof to a receipt of the agent SDK, which gives it both shapes.
fn with_a_second_proof(mut receipt: Value) -> Value {
    receipt["metadata"]["proof"]["alg"] = json!("ed25519-sha256");
    receipt["metadata"]["proof"]["canonical"] = json!("cl-stable-json-v1");
    receipt
}

#[test]
fn a_shape_of_no_family_or_of_several_is_not_guessed() {
    let world = World::new();
    let both = with_a_second_proof(World::new().of_the_agent_sdk(call()));
    let trust = json!({"family": "trust", "metadata": {"proof": {"hash": {}, "signature": {}}}});
    for receipt in [json!({}), both, trust] {
        let found = world.judged(&receipt);
        assert_eq!(
            (found.trust_state(), codes(&found)),
            (TrustState::Indeterminate, vec![ReasonCode::ReceiptFamilyUnknown])
        );
    }
}

#[test]
fn of_several_families_it_is_the_one_in_which_it_is_signed() {
    let world = World::new();
    let found = world.judged(&with_a_second_proof(world.of_the_agent_sdk(call())));
    assert_eq!((found.trust_state(), found.family), (TrustState::Trusted, Some(ReceiptFamily::B1)), "{found:#?}");
    assert_eq!(found.unsigned, ["/metadata/proof/alg", "/metadata/proof/canonical"]);
    let mut other = call();
    other["verb"] = json!("analyze");
    let found = world.judged(&with_a_second_proof(world.of_the_agent_sdk(other)));
    assert_eq!((found.trust_state(), codes(&found)), (TrustState::Untrusted, vec![ReasonCode::ReceiptRequestMismatch]));
}

/// Anyone who forwards the receipt can add a shape. That must not turn "ask again" into "never known".
#[test]
fn of_several_families_and_without_a_key_the_keys_reason_counts() {
    let mut world = World::new();
    let receipt = with_a_second_proof(world.of_the_agent_sdk(call()));
    world.signer.key = Err(Box::new(Reason::new(ReasonCode::ReceiptKeyUnpublished).at_place("cl.sig.pub")));
    let found = world.judged(&receipt);
    assert_eq!(
        (found.trust_state(), codes(&found)),
        (TrustState::Indeterminate, vec![ReasonCode::ReceiptKeyUnpublished])
    );
    assert_eq!(found.check_result(ReceiptCheckKind::Family).map(|row| row.status), Some(StepStatus::Unknown));
}

/// The signature of one family is also valid in the other, which makes additional statements.
#[test]
fn receipt_signed_in_two_families_gets_the_valid_one() {
    let world = World::new();
    let mut receipt = world.of_the_agent_sdk(call());
    let proof = &receipt["metadata"]["proof"];
    let (form, hash) = (proof["canonicalization"].clone(), proof["hash_sha256"].clone());
    receipt["metadata"]["proof"] = json!({"canonicalization": form, "signer_id": SIGNER, "hash_sha256": "00",
        "hash": {"alg": "SHA-256", "value": hash},
        "signature": {"alg": "Ed25519", "kid": KID, "value": receipt["signature"]["sig"]}});
    let found = world.judged(&receipt);
    assert_eq!((found.trust_state(), found.family), (TrustState::Trusted, Some(ReceiptFamily::B2)), "{found:#?}");

    // Only the website's form: it names its signer in the proof too.
    receipt.as_object_mut().expect("a receipt").remove("signature");
    let found = world.judged(&receipt);
    assert_eq!((found.trust_state(), found.family), (TrustState::Trusted, Some(ReceiptFamily::B2)), "{found:#?}");
    receipt["metadata"]["proof"].as_object_mut().expect("a proof").remove("signer_id");
    let found = world.judged(&receipt);
    assert_eq!(
        (found.trust_state(), codes(&found)),
        (TrustState::Untrusted, vec![ReasonCode::ReceiptSignerMismatch]),
        "{found:#?}"
    );
}

/// A command reads at most the size limit, so it may hold only a part of the receipt.
#[test]
fn of_a_part_there_is_no_digest() {
    let world = World::new();
    let digest = |bytes: usize| world.judged_bytes(" ".repeat(bytes).as_bytes(), None).sha256;
    assert!(digest(MAX_BYTES).is_some());
    assert_eq!(digest(MAX_BYTES + 1), None);
}

#[test]
fn whatever_an_agent_sends_gets_a_code() {
    let world = World::new();
    let code = |text: &str| match codes(&world.judged_bytes(text.as_bytes(), None))[..] {
        [code] => code,
        ref codes => panic!("{codes:?}"),
    };
    assert_eq!(code(""), ReasonCode::ReceiptSchemaInvalid);
    assert_eq!(code("<html>"), ReasonCode::ReceiptSchemaInvalid);
    assert_eq!(code(r#"{"a":1,"a":2}"#), ReasonCode::ReceiptDuplicateKey);
    assert_eq!(code(&" ".repeat(1 << 20)), ReasonCode::ReceiptFamilyUnknown);
    assert_eq!(code(&"[".repeat(5000)), ReasonCode::ReceiptSchemaInvalid);
    let receipt = world.of_the_agent_sdk(call()).to_string();
    for number in ["12345678901234567890", "9007199254740993", "1e400", "-1e999999999999999999999"] {
        let altered = receipt.replace(r#"{"status":"ok"}"#, &format!(r#"{{"status":"ok","n":{number}}}"#));
        assert_eq!(code(&altered), ReasonCode::ReceiptSchemaInvalid, "{number}");
    }
}

/// The two receipts published by verifyagent, with their signer's documented key.
#[test]
fn published_examples_get_their_result() {
    let Some(corpus) = std::env::var_os("CLRESOLVE_CORPUS") else {
        println!("skipped: CLRESOLVE_CORPUS is not set");
        return;
    };
    let folder = std::path::Path::new(&corpus).join("commandlayer/receipts/verifyagent");
    let key =
        Ed25519PublicKey::from_signer_record("ed25519:hhyCuPNoMk4JtEvGEV8F6nMZ4uDO1EcyizPufmnJTOY=").expect("a key");
    let signer = PublishedReceiptSigner {
        name: name("runtime.commandlayer.eth"),
        key: Ok(key),
        kid: Ok("vC4WbcNoq2znSCiQ".to_owned()),
        canonical: None,
        block: 1,
        lent: Vec::new(),
    };
    let world = World { signer, ..World::new() };
    for (file, state) in
        [("sample-receipt.json", TrustState::Trusted), ("tampered-receipt.json", TrustState::Untrusted)]
    {
        let bytes = std::fs::read(folder.join(file)).expect("the corpus has it");
        let now = "2026-11-01T00:00:00Z".parse().expect("a time");
        let known = ReceiptKnowledge {
            agent: Some(&world.agent),
            signer: Ok(&world.signer),
            request: None,
            bought: None,
            earliest: None,
            schema: None,
            now,
        };
        let found = judge_receipt(&bytes, &known);
        assert_eq!((found.family, found.trust_state()), (Some(ReceiptFamily::B1), state), "{file}: {found:#?}");
    }
}

/// An operator's manifest may define further verbs.
#[test]
fn a_receipt_of_another_verb_is_refused_whatever_the_verb() {
    let mut world = World::new();
    (world.agent.verbs, world.agent.entry) = (vec!["translate".to_owned()], None);
    let of = |verb: &str| {
        let mut receipt = content();
        receipt["x402"]["verb"] = json!(verb);
        world.judged(&world.of_the_sdks(receipt))
    };
    assert_eq!(status(&of("translate"), ReceiptCheckKind::Agent), StepStatus::Pass);
    for other in ["transcribe", "Translate", "summarize"] {
        let row = of(other).check_result(ReceiptCheckKind::Agent).cloned().expect("a row");
        assert_eq!((row.status, row.place.as_deref()), (StepStatus::Fail, Some("/x402/verb")), "{other}");
    }
}

/// Receipts of the MCP server follow no published schema, so an unknown word in the schemas' member is no verb.
#[test]
fn a_signer_may_use_its_own_words() {
    let mut world = World::new();
    world.agent.verbs = vec!["summarize".to_owned()];
    let mut content = raw_call();
    content["x402"] = json!({"verb": "condense"});
    let found = world.judged(&world.of_the_mcp_server(content));
    assert_eq!((found.trust_state(), status(&found, ReceiptCheckKind::Agent)), (TrustState::Trusted, StepStatus::Pass));
}

#[test]
fn a_decision_about_another_verb_covers_no_purchase() {
    let world = World::new();
    let bought = |verb: &str| PurchaseFacts {
        decision: "sha256:00".to_owned(),
        name: "summarizeagent.eth".to_owned(),
        verb: verb.to_owned(),
        network: None,
        url: "https://api.example.org/".parse().expect("a URL"),
        payer: None,
    };
    let decided = |receipt: &Value, request: Option<&Value>, verb: &str| {
        let request =
            request.map(|request| AgentRequest::from_bytes(request.to_string().as_bytes()).expect("a request"));
        let known = ReceiptKnowledge {
            agent: Some(&world.agent),
            signer: Ok(&world.signer),
            request: request.as_ref(),
            bought: Some(&bought(verb)),
            earliest: None,
            schema: None,
            now: "2026-01-02T00:00:00Z".parse().expect("a time"),
        };
        let found = judge_receipt(receipt.to_string().as_bytes(), &known);
        let row = found.check_result(ReceiptCheckKind::Decision).expect("a row");
        (row.status, row.place.clone().unwrap_or_default())
    };
    let (receipt, website) = (world.of_the_sdks(content()), world.of_the_agent_sdk(call()));
    assert_eq!(decided(&receipt, None, "summarize"), (StepStatus::Pass, "decision: /name".to_owned()));
    assert_eq!(decided(&receipt, None, "classify"), (StepStatus::Fail, "/x402/verb".to_owned()));
    assert_eq!(decided(&website, None, "classify"), (StepStatus::Fail, "/verb".to_owned()));
    let mute = world
        .of_the_agent_sdk(json!({"signer": SIGNER, "ts": "2026-01-01T00:00:00Z", "input": {}, "output": {},
        "verb": "agent.run", "execution": {"status": "ok"}}));
    let request = json!({"x402": {"verb": "summarize"}});
    assert_eq!(decided(&mute, Some(&request), "summarize").0, StepStatus::Pass);
    assert_eq!(decided(&mute, Some(&request), "classify"), (StepStatus::Fail, "request: /x402/verb".to_owned()));
    let own_word = json!({"verb": "agent.run", "input": {}});
    assert_eq!(decided(&mute, Some(&own_word), "summarize").0, StepStatus::Pass, "a word of the signer's own");
    let top = json!({"verb": "summarize", "input": {}});
    assert_eq!(decided(&mute, Some(&top), "classify"), (StepStatus::Fail, "request: /verb".to_owned()));
}

/// The signed content may be a part of the receipt.
#[test]
fn places_are_those_of_the_receipt() {
    let world = World::new();
    let of = |place: &str, change: Value| {
        let proof = json!({"alg": "ed25519", "canonical": "json.sorted_keys.v1", "kid": KID, "signer_id": SIGNER,
            "signature": "AAAA"});
        let mut receipt = json!({"receipt": content(), "signature": {"proof": proof}});
        receipt["receipt"]["verb"] = json!("summarize");
        *receipt.pointer_mut(place).expect("it is there") = change;
        world.judged(&receipt)
    };
    let place = |found: &ReceiptJudgement, check| {
        found.check_result(check).and_then(|row| row.place.clone()).unwrap_or_default()
    };
    let other = of("/receipt/verb", json!("classify"));
    assert_eq!(
        (other.family, place(&other, ReceiptCheckKind::Agent).as_str()),
        (Some(ReceiptFamily::D), "/receipt/verb"),
        "{other:#?}"
    );
    let late = of("/receipt/trace/started_at", json!("2030-01-01T00:00:00Z"));
    assert_eq!(place(&late, ReceiptCheckKind::Time), "/receipt/trace/started_at");
}
