//! Measures the warm verification of a receipt, from its bytes to the document, and compares it with the necessary
//! parts (hash, strict parse, bound schema, signature), measured alone in the same run. The agent's verdict, its
//! signer's records and the schema are cached, and the head that confirms the records is followed.

mod support;

use std::hint::black_box;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clresolve_core::digest::Digest;
use clresolve_core::json::{JsonLimits, parse_strict_json};
use clresolve_core::state::TrustState;
use clresolve_jose::Ed25519PublicKey;
use clresolve_messages::receipt::ReceiptVerificationRequest;
use clresolve_messages::receipt::question::AgentRequest;
use clresolve_payment::settlement::PurchasePaymentDocuments;
use clresolve_resolver::sandbox::Sandbox;
use clresolve_verdict::card::SchemaRole;

use support::{GOOD, Good, ROUNDS, Row, following, in_turn, micros, sandbox, timed, timed_in, undisturbed};

/// Maximum ratio to the parts.
const BUDGET: f64 = 3.0;

const KEY: &str = "ed25519:6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw";

fn main() {
    if !support::asked_to_measure() {
        return;
    }
    let (runtime, sandbox, _) = sandbox();
    let (resolver, _follower) = following(&runtime, &sandbox);
    // A resolution counts as confirmed itself, so the second question reads the head.
    for _ in 0..2 {
        assert_eq!(runtime.block_on(resolver.check_gate(GOOD, "summarize")), Ok(()));
    }
    let receipt =
        Sandbox::sample_receipts().iter().find(|sample| sample.file == "sdk.json").expect("a sample").text.as_bytes();
    let request = AgentRequest::from_bytes(Sandbox::sample_request().1.as_bytes()).expect("a request");
    let question = ReceiptVerificationRequest {
        name: GOOD.to_owned(),
        receipt: receipt.to_vec(),
        request: Some(request),
        purchase: PurchasePaymentDocuments::default(),
    };
    let found = runtime.block_on(resolver.verify_receipt(&question));
    assert_eq!((found.state, found.unchecked.as_slice()), (TrustState::Trusted, &[][..]), "{found:#?}");

    let document = parse_strict_json(receipt, JsonLimits::CARD).expect("strict JSON");
    let signature = document["metadata"]["proof"]["signature_b64"].as_str().expect("a text");
    let signature = STANDARD.decode(signature).expect("base64");
    let signed = found.receipt.canonical_sha256.expect("it has a form").to_hex();
    let key = Ed25519PublicKey::from_signer_record(KEY).expect("a key");
    let schema = runtime.block_on(resolver.bound_schema(GOOD, SchemaRole::Receipt)).expect("a trusted agent binds one");
    let mut members = document.clone();
    members.as_object_mut().expect("an object").remove("metadata");
    assert!(schema.every_violation(&members).next().is_none());

    let [whole, hash, parsed, held, signed] = in_turn(
        ROUNDS,
        [
            &mut timed_in(&runtime, async || resolver.verify_receipt(black_box(&question)).await),
            &mut timed(|| Digest::compute(receipt)),
            &mut timed(|| parse_strict_json(receipt, JsonLimits::CARD)),
            &mut timed(|| schema.every_violation(&members).count()),
            &mut timed(|| key.has_signed(signed.as_bytes(), &signature)),
        ],
    );
    let parts = [&hash, &parsed, &held, &signed].map(|part| undisturbed(part));
    let [hash, parsed, held, signed] = parts.map(micros);
    println!(
        "of {} bytes, alone: hash {hash}, strict parse {parsed}, schema {held}, signature {signed}",
        receipt.len()
    );
    let (whole, parts): (f64, f64) = (undisturbed(&whole), parts.iter().sum());
    Row {
        what: "a receipt verified warm",
        measured: micros(whole),
        beside: format!("hash, strict parse, schema and signature alone: {}", micros(parts)),
        ratio: whole / parts,
        budget: BUDGET,
        good: Good::AtMost,
    }
    .end("bench-receipt");
}
