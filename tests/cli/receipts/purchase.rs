//! Bundles of purchases: made from the sandbox, and judged again without it.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as BASE64URL};
use clresolve_bundle::BundleError;
use clresolve_bundle::purchase::{PurchaseBundle, PurchaseDocuments, VerifiedPurchase};
use clresolve_core::digest::Digest;
use clresolve_core::state::TrustState;
use clresolve_messages::receipt::ReceiptVerificationDocument;
use clresolve_payment::request::PaymentDecisionRequest;
use clresolve_payment::settlement::SettlementAssuranceLevel;
use clresolve_resolver::ExportError;
use clresolve_resolver::config::{ChainProofMode, ProofGrade};
use clresolve_resolver::resolve::{NameQuestion, Resolver};
use clresolve_resolver::sandbox::{CustomSandbox, Sandbox};
use clresolve_sandbox::purchase::SandboxPurchase;
use clresolve_sandbox::spec::SandboxSpec;
use clresolve_verdict::verdict::{Verdict, canonical_digest};
use ed25519_dalek::{Signer as _, SigningKey};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{fits, run, sample};

const NAME: &str = "summarizeagent.eth";

fn papers(settlement: &str) -> PurchaseDocuments {
    PurchaseDocuments {
        receipt: sample("agent-sdk.json").as_bytes().to_vec(),
        request: Some(Sandbox::sample_request().1.as_bytes().to_vec()),
        decision: None,
        asked: None,
        payment: Some(Sandbox::sample_payment().1),
        settlement: Some(settlement.to_owned()),
    }
}

async fn exported(papers: &PurchaseDocuments) -> Value {
    let sandbox = Sandbox::start().await.expect("it starts");
    let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
    let (bundle, _) = resolver.export_purchase(&NameQuestion::new(NAME), papers).await.expect("all is known");
    bundle.to_json()
}

/// Judged again, with nothing but its bytes.
fn replayed(bundle: &Value) -> Result<VerifiedPurchase, BundleError> {
    let purchase = PurchaseBundle::from_bytes(bundle.to_string().as_bytes())?;
    let agent = purchase.name_bundle().verify_by_replay(&Sandbox::profiles())?;
    purchase.verify_evidence(&agent)
}

/// The bundle with another value at a place, and with digests that fit: what a forger would hand on.
fn forged(bundle: &Value, pointer: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut forged = bundle.clone();
    change(forged.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer} is there")));
    let digest = |document: &mut Value| {
        document.as_object_mut().expect("an object").remove("digest");
        document["digest"] = canonical_digest(document).into();
    };
    digest(&mut forged["bundle"]);
    digest(&mut forged);
    forged
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purchase_is_judged_again_from_its_bytes() {
    let text = std::fs::read_to_string("schemas/purchase.schema.json").expect("a schema");
    let schema = jsonschema::draft202012::new(&serde_json::from_str(&text).expect("JSON")).expect("a schema");
    for reply in Sandbox::sample_settlement_headers() {
        let bundle = exported(&papers(&reply.header)).await;
        let errors: Vec<_> = schema.iter_errors(&bundle).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        let purchase = replayed(&bundle).expect("it follows from its evidence");
        assert_eq!(purchase.trust_state(), reply.state, "{}", reply.file);
        assert_eq!(purchase.verification.to_value(), bundle["verification"]);
        let says_proven = purchase.proven.iter().any(|clause| clause.contains("moved the payment"));
        assert_eq!(says_proven, reply.state == TrustState::Trusted, "{:?}", purchase.proven);
        let answers: Vec<_> = purchase.proven.iter().filter(|clause| clause.contains("answers")).collect();
        assert_eq!(answers, ["that the receipt answers a request with this input"]);
        let says_payee = purchase
            .proven
            .iter()
            .any(|clause| clause.contains("is the address for eip155:31337 in the name's bundle"));
        let rests_on_word = purchase.attested.iter().any(|clause| clause.contains("the payee is the agent's"));
        assert!(says_payee && !rests_on_word, "{:?} {:?}", purchase.proven, purchase.attested);
        let says_when =
            purchase.attested.iter().any(|clause| clause.contains("when it was paid: it is shown as of block"));
        assert!(says_when, "{:?}", purchase.attested);
    }
    let unpaid = exported(&PurchaseDocuments { payment: None, settlement: None, ..papers("") }).await;
    let unpaid = replayed(&unpaid).expect("it follows from its evidence");
    assert_eq!((unpaid.trust_state(), unpaid.verification.settlement), (TrustState::Trusted, None));
}

/// The bound schema with all that it refers to is no part of a bundle.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_bundle_does_not_hold_is_not_judged_by_it() {
    let alone = |file| PurchaseDocuments { receipt: sample(file).as_bytes().to_vec(), ..PurchaseDocuments::default() };
    let shown =
        async |file| replayed(&exported(&alone(file)).await).expect("it follows from its evidence").verification;
    let of_schemas = shown("sdk.json").await;
    assert_eq!((of_schemas.state, &*of_schemas.unchecked), (TrustState::Trusted, &["bound-schema", "signer"][..]));
    assert_eq!(of_schemas.bound, None);
}

/// x402's own receipts, by the addresses and endpoints in the name's bundle.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_name_publishes_is_judged_by_its_bundle() {
    let alone = |file| PurchaseDocuments { receipt: sample(file).as_bytes().to_vec(), ..PurchaseDocuments::default() };
    let good = exported(&alone("x402-eip712.json")).await;
    let shown = replayed(&good).expect("it follows from its evidence");
    assert_eq!((shown.trust_state(), &*shown.verification.unchecked), (TrustState::Trusted, &["bound-schema"][..]));
    fits(&shown.verification);
    let attested = vec!["that the name publishes these addresses and endpoints".to_owned()];
    assert_eq!((good["signer"].clone(), shown.attested), (Value::Null, attested));
    assert!(shown.proven.contains(&"the receipt's signature by an address that the name's bundle has".to_owned()));
    let by_key = replayed(&exported(&alone("x402-jws.json")).await).expect("it follows from its evidence");
    assert_eq!((by_key.trust_state(), by_key.verification.unchecked.contains(&"signer")), (TrustState::Trusted, true));
    fits(&by_key.verification);
    for file in ["x402-eip712-forged.json", "x402-eip712-altered.json"] {
        let receipt = json!(STANDARD.encode(sample(file)));
        let found = judged(&forged(&good, "/receipt", |place| *place = receipt)).1.expect("it is judged");
        assert_eq!(found.state, TrustState::Untrusted, "{file}");
    }
    let of_a_key = exported(&alone("x402-jws.json")).await;
    for (bundle, other) in [(&good, &of_a_key), (&of_a_key, &good)] {
        let refused = judged(&forged(bundle, "/signer", |signer| *signer = other["signer"].clone())).1;
        assert!(
            matches!(refused, Err(BundleError::Inconsistent(_))),
            "a signer has signed, or an address: {refused:?}"
        );
    }
}

/// The key of an address needs no record that names a signer.
#[tokio::test(flavor = "multi_thread")]
async fn purchase_signed_by_an_address_needs_no_signer() {
    const ES256K: &str = "eyJhbGciOiJFUzI1NksiLCJraWQiOiJkaWQ6cGtoOmVpcDE1NToxOjB4NzA5OTc5NzBDNTE4MTJkYzNBMDEwQzdkMDFiNTBlMGQxN2RjNzlDOCJ9.eyJ2ZXJzaW9uIjoxLCJuZXR3b3JrIjoiZWlwMTU1OjMxMzM3IiwicmVzb3VyY2VVcmwiOiJodHRwczovL2FwaS5zYW5kYm94LmV4YW1wbGUvc3VtbWFyaXplL3YxIiwicGF5ZXIiOiIweGYzOUZkNmU1MWFhZDg4RjZGNGNlNmFCODgyNzI3OWNmZkZiOTIyNjYiLCJpc3N1ZWRBdCI6MTc3MDgwMDQ2MH0.dCTH3ZrzNphAx0k7x1W8H5whWZzwzHMmsDruHr1JsTsYO3N2SzF5I8-YI911mdY6jUW34FDvy9RYJQJGf5-TPg";
    let spec = "[[agent]]\nname = \"agent.eth\"\nabout = \"It sells.\"\nseller = \"\"\n\
                records.\"cl.receipt.signer\" = \"not a name\"\n";
    let world = CustomSandbox::start(&SandboxSpec::parse(spec).expect("it is a world")).await.expect("it starts");
    let resolver = Resolver::new(&world.config()).await.expect("its configuration is good");
    let exported = async |receipt: Vec<u8>| {
        let papers = PurchaseDocuments { receipt, ..PurchaseDocuments::default() };
        resolver.export_purchase(&NameQuestion::new("agent.eth"), &papers).await
    };
    let jws = |text: &str| json!({"format": "jws", "signature": text}).to_string().into_bytes();
    let forged = ES256K.replace(".dCTH", ".dCTI");
    for (receipt, state) in [
        (sample("x402-eip712.json").as_bytes().to_vec(), TrustState::Trusted),
        (jws(ES256K), TrustState::Trusted),
        (jws(&forged), TrustState::Untrusted),
    ] {
        let (bundle, shown) = exported(receipt).await.expect("no signer is read");
        assert_eq!((shown.state, &bundle.to_json()["signer"]), (state, &Value::Null), "{shown:#?}");
        fits(&shown);
    }
    let refused = exported(sample("x402-jws.json").as_bytes().to_vec()).await;
    assert!(matches!(refused, Err(ExportError::Purchase { .. })), "{refused:?}");
}

/// A receipt by the key of the bundle's signer, for this URL.
fn signed_for(bundle: &Value, url: &str) -> Value {
    let key = SigningKey::from_bytes(&[7; 32]);
    let encoded = |value: Value| BASE64URL.encode(value.to_string());
    let payload = json!({"version": 1, "network": "eip155:31337", "resourceUrl": url, "issuedAt": 1_770_800_400,
        "payer": "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"});
    let signed = format!("{}.{}", encoded(json!({"alg": "EdDSA", "kid": "k"})), encoded(payload));
    let signature = BASE64URL.encode(key.sign(signed.as_bytes()).to_bytes());
    let receipt = json!({"format": "jws", "signature": format!("{signed}.{signature}")}).to_string();
    let public = json!(STANDARD.encode(key.verifying_key().as_bytes()));
    let exchanged = forged(bundle, "/signer/key", |place| *place = public);
    forged(&exchanged, "/receipt", |place| *place = json!(STANDARD.encode(&receipt)))
}

/// Whoever exported it may have had routes of its own, of which the bundle knows nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_for_a_place_that_the_name_does_not_publish_is_undecided_by_a_bundle() {
    let papers =
        PurchaseDocuments { receipt: sample("x402-jws.json").as_bytes().to_vec(), ..PurchaseDocuments::default() };
    let bundle = exported(&papers).await;
    let of = |url| judged(&signed_for(&bundle, url)).1.expect("it is judged");
    assert_eq!(of("https://api.sandbox.example/summarize/v1").state, TrustState::Trusted);
    let elsewhere = of("https://api.sandbox.example/analyze/v1");
    let found: Vec<_> = elsewhere.codes.iter().map(String::as_str).collect();
    assert_eq!(
        (elsewhere.state, found),
        (TrustState::Indeterminate, vec!["receipt-request-mismatch"]),
        "{elsewhere:#?}"
    );
}

/// Where the agent's records are proven, the signer's are not: whoever makes a bundle may exchange signer and receipt
/// together. The bundle never hides that.
#[tokio::test(flavor = "multi_thread")]
async fn no_bundle_passes_its_signer_off_as_proven() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let mut config = sandbox.config();
    config.chain.proof = Some(ChainProofMode::StateProof);
    let resolver = Resolver::new(&config).await.expect("its configuration is good");
    let papers =
        PurchaseDocuments { receipt: sample("agent-sdk.json").as_bytes().to_vec(), ..PurchaseDocuments::default() };
    let (bundle, _) = resolver.export_purchase(&NameQuestion::new(NAME), &papers).await.expect("all is known");
    let good = bundle.to_json();

    let thief = SigningKey::from_bytes(&[7; 32]);
    let signed = r#"{"execution":{"status":"ok"},"input":{},"output":{},"signer":"runtime.sandbox.eth","ts":"2026-02-11T09:00:00Z","verb":"summarize"}"#;
    let hash = Digest::compute(signed.as_bytes()).to_hex();
    let mut receipt: Value = serde_json::from_str(signed).expect("JSON");
    receipt["metadata"] = json!({"proof": {"canonicalization": "json.sorted_keys.v1", "hash_sha256": hash}});
    let signature = STANDARD.encode(thief.sign(hash.as_bytes()).to_bytes());
    receipt["signature"] = json!({"alg": "ed25519", "kid": "test-key-7", "sig": signature});
    let key = STANDARD.encode(thief.verifying_key().as_bytes());
    let exchanged = forged(&good, "/signer/key", |place| *place = json!(key));
    let exchanged = forged(&exchanged, "/receipt", |place| *place = json!(STANDARD.encode(receipt.to_string())));

    let replayed = replayed(&good).expect("it follows from its evidence");
    assert_eq!(replayed.proven[0], "that the receipt is trusted by the signer's key: its checks were made again");
    assert_eq!(replayed.attested[0], "that runtime.sandbox.eth signs for the agent, and its key");
    for found in [replayed.verification, judged(&exchanged).1.expect("nothing contradicts it")] {
        let grade = found.anchor.as_ref().map(|anchor| anchor.proof.grade);
        assert_eq!((found.state, grade), (TrustState::Trusted, Some(ProofGrade::StateProof)), "{found:#?}");
        assert!(found.unchecked.contains(&"signer"), "{found:#?}");
        assert!(found.summary.ends_with("rests on the exporter's word."), "{}", found.summary);
    }
}

/// What the live answer says against a receipt is never lost by packing it.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_bundle_would_hide_is_not_packed() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
    let papers =
        PurchaseDocuments { receipt: sample("bound-schema.json").as_bytes().to_vec(), ..PurchaseDocuments::default() };
    let Err(refused) = resolver.export_purchase(&NameQuestion::new(NAME), &papers).await else {
        panic!("it is packed")
    };
    let ExportError::Purchase { why, state } = &refused else { panic!("{refused}") };
    assert_eq!(*state, TrustState::Untrusted);
    assert!(why.contains("untrusted (receipt-schema-invalid)"), "{why}");
}

/// Another version may word things in another way, and say nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn another_version_has_said_the_same() {
    let mut good = exported(&papers(&Sandbox::sample_settlement_headers()[0].header)).await;
    let verdict = &mut good["bundle"]["verdict"];
    (verdict["tool"]["version"], verdict["summary"]) = (json!("9"), json!("All was well."));
    let sealed: Verdict = serde_json::from_value(verdict.take()).expect("a verdict");
    *verdict = serde_json::to_value(sealed.with_computed_digests()).expect("JSON");
    let of_another = |change: &dyn Fn(&mut Value)| {
        replayed(&forged(&good, "/verification", |verification| {
            verification["tool"]["version"] = json!("9");
            verification["verdict"] = good["bundle"]["verdict"]["id"].clone();
            change(verification);
            verification.as_object_mut().expect("an object").remove("id");
            verification["id"] = canonical_digest(verification).into();
        }))
    };
    assert!(of_another(&|_| {}).is_ok());
    assert!(of_another(&|it| it["summary"] = json!("All is well.")).is_ok());
    for (pointer, value) in [
        ("/settlement/shown_by", json!("reported")),
        ("/unchecked", json!([])),
        ("/signer/kid", json!("another")),
        ("/checks/0/status", json!("skip")),
        ("/conclusion", json!("sha256:00")),
        ("/verdict", json!("sha256:00")),
        ("/state", json!("untrusted")),
    ] {
        let refused = of_another(&|it| *it.pointer_mut(pointer).expect("it is there") = value.clone());
        assert!(matches!(refused, Err(BundleError::Verdict { .. })), "{pointer}: {refused:?}");
    }
    let unsealed = forged(&good, "/verification/tool/version", |version| *version = json!("9"));
    assert!(matches!(replayed(&unsealed), Err(BundleError::Verdict { .. })), "its id is that of another document");
}

#[test]
fn what_a_bundle_cannot_show_goes_with_none() {
    let verify = ["receipt", "verify", "-", "--name", NAME, "--sandbox", "--bundle", "none.json"];
    for further in [["--request", "none.json", "--remember"].as_slice(), &["-o", "jws"]] {
        let refused = run(&[&verify[..], further].concat());
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("--bundle"), "{refused:?}");
    }
}

/// Whatever verification a forger writes beside it.
#[tokio::test(flavor = "multi_thread")]
async fn a_reading_that_no_run_could_have_made_is_refused() {
    let good = exported(&papers(&Sandbox::sample_settlement_headers()[0].header)).await;
    let refused = |bundle: &Value, pointer: &str, value: Value| {
        let found = judged(&forged(bundle, pointer, |place| *place = value.clone())).1;
        assert!(matches!(found, Err(BundleError::Inconsistent(_))), "{pointer}: {value}: {found:?}");
    };
    let block = &good["transaction"]["execution"]["block"];
    let (number, hash) = (block["number"].as_u64().expect("a number"), block["hash"].clone());
    refused(&good, "/transaction/head/number", json!(number - 1));
    refused(&good, "/transaction/head/number", json!(number));
    refused(&good, "/transaction/head/hash", hash);
    for (agreed, asked) in [(0, 0), (0, 1), (2, 1), (9, 9)] {
        refused(&good, "/transaction/proof", json!({"grade": "single-rpc", "asked": asked, "agreed": agreed}));
    }
    for (agreed, asked) in [(0, 3), (1, 1), (1, 3), (3, 2)] {
        refused(&good, "/transaction/proof", json!({"grade": "quorum", "asked": asked, "agreed": agreed}));
    }
    refused(&good, "/transaction/proof/grade", json!("state-proof"));
    let mut in_head = good.clone();
    in_head["transaction"]["head"] = block.clone();
    assert!(judged(&forged(&in_head, "/at", |_| {})).1.is_ok(), "the head is in the chain too");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_member_of_a_purchase_can_be_exchanged() {
    let good = exported(&papers(&Sandbox::sample_settlement_headers()[0].header)).await;
    replayed(&good).expect("it follows from its evidence");
    let other = |text: &str| json!(text);
    let receipt = sample("website.json").as_bytes();
    let encoded = |bytes: &[u8]| json!(STANDARD.encode(bytes));
    let log = "/transaction/execution/logs/0/data";
    // With what comes out where a forger writes down the verification that fits.
    let (refused, trusted) = (None, Some((TrustState::Trusted, Some(SettlementAssuranceLevel::Proven))));
    let without = |state| Some((state, None));
    let changes: Vec<(&str, Value, Anew)> = vec![
        ("/at", other("2020-01-01T00:00:00Z"), refused),
        ("/receipt", encoded(receipt), trusted),
        ("/request", encoded(b"{}"), Some((TrustState::Untrusted, Some(SettlementAssuranceLevel::Proven)))),
        ("/request", Value::Null, trusted),
        ("/payment", json!(SandboxPurchase::Earlier.payment_header()), without(TrustState::Untrusted)),
        ("/payment", Value::Null, refused),
        ("/settlement", json!(SandboxPurchase::Earlier.settlement_header()), without(TrustState::Untrusted)),
        ("/settlement", Value::Null, refused),
        ("/signer/name", other("thief.eth"), Some((TrustState::Untrusted, Some(SettlementAssuranceLevel::Proven)))),
        ("/signer/key", encoded(&[7; 32]), refused),
        ("/signer/kid", Value::Null, Some((TrustState::Indeterminate, Some(SettlementAssuranceLevel::Proven)))),
        ("/transaction", Value::Null, refused),
        ("/transaction/execution", Value::Null, refused),
        ("/transaction/execution/has_succeeded", json!(false), refused),
        ("/transaction/execution/index", json!(0), refused),
        ("/transaction/execution/transaction", json!(format!("0x{}", "5a".repeat(32))), without(TrustState::Untrusted)),
        ("/transaction/execution/block/number", json!(1), refused),
        ("/transaction/receipt_proof/header", other("0xc0"), refused),
        ("/transaction/receipt_proof/nodes", json!([]), refused),
        (
            "/transaction/receipt_proof",
            Value::Null,
            Some((TrustState::Trusted, Some(SettlementAssuranceLevel::Reported))),
        ),
        ("/transaction/proof/agreed", json!(9), refused),
        (log, other("0x00"), refused),
        ("/verification/state", other("indeterminate"), trusted),
        ("/verification/summary", other("All is well."), trusted),
        ("/verification/settlement/shown_by", other("reported"), trusted),
        ("/bundle/verdict/state", other("untrusted"), refused),
        ("/bundle/run/at", other("2020-01-01T00:00:00Z"), refused),
    ];
    for (pointer, value, anew) in changes {
        let changed = forged(&good, pointer, |place| *place = value.clone());
        let (as_it_stands, found) = judged(&changed);
        assert!(as_it_stands.is_err(), "{pointer}: {value}");
        let shown_by =
            |found: &ReceiptVerificationDocument| found.settlement.as_ref().and_then(|settlement| settlement.shown_by);
        let found = found.ok().map(|found| (found.state, shown_by(&found)));
        assert_eq!(found, anew, "{pointer}: {value}");
    }
    let mut unsealed = good.clone();
    unsealed["at"] = other("2020-01-01T00:00:00Z");
    assert!(matches!(replayed(&unsealed), Err(BundleError::Digest { .. })));
    let mut further = good;
    further["more"] = json!(1);
    assert!(replayed(&further).is_err());
}

/// A seller's terms, the question about them, and a decision that allows them.
async fn decided() -> (Value, Value) {
    let sandbox = Sandbox::start().await.expect("it starts");
    let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
    let route = resolver.agent_route(&resolver.resolve(NAME).await, Some("summarize")).expect("a route");
    let reply = resolver.send_unpaid_request(route.url().as_str(), Some("{}")).await.expect("the seller answers");
    let body = String::from_utf8(reply.body).expect("UTF-8");
    let response = json!({"status": reply.status, "url": route.url().as_str(), "headers": reply.headers, "body": body});
    let asked = json!({"name": NAME, "verb": "summarize", "response": response});
    let request = PaymentDecisionRequest::from_json(asked.to_string().as_bytes()).expect("a request");
    let decision = resolver.decide_payment(&request).await;
    assert!(!decision.abort, "{decision:#?}");
    (asked, serde_json::to_value(decision).expect("JSON"))
}

/// A decision is held against the terms as they came, so that neither can be exchanged alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_does_not_follow_from_its_terms_is_refused() {
    let (asked, decision) = decided().await;
    let kept = |asked: &Value, decision: &Value| PurchaseDocuments {
        decision: Some(decision.to_string().into_bytes()),
        asked: Some(asked.to_string().into_bytes()),
        payment: None,
        settlement: None,
        ..papers("")
    };
    let good = exported(&kept(&asked, &decision)).await;
    let text = std::fs::read_to_string("schemas/purchase.schema.json").expect("a schema");
    let schema = jsonschema::draft202012::new(&serde_json::from_str(&text).expect("JSON")).expect("a schema");
    assert!(schema.is_valid(&good), "{:?}", schema.iter_errors(&good).map(|e| e.to_string()).collect::<Vec<_>>());
    let purchase = replayed(&good).expect("it follows from its evidence");
    let said = "that the decision's terms, price, payee and URL are those that were demanded";
    assert!(purchase.proven.iter().any(|clause| clause == said), "{:?}", purchase.proven);
    let encoded = |document: &Value| json!(STANDARD.encode(document.to_string()));
    let with = |document: &Value, pointer: &str, value: &Value| {
        let mut changed = document.clone();
        *changed.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer} is there")) = value.clone();
        changed
    };
    let thief = json!("0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC");
    for (pointer, value) in [
        ("/price/amount", json!("1")),
        ("/price/asset", thief.clone()),
        ("/price/network", json!("eip155:1")),
        ("/payee/address", thief),
        ("/route/url", json!("https://thief.example/")),
        ("/verb", json!("translate")),
        ("/name", json!("thief.eth")),
        ("/terms_digest", json!("sha256:00")),
    ] {
        let changed = forged(&good, "/decision", |place| *place = encoded(&with(&decision, pointer, &value)));
        let found = judged(&changed).1;
        assert!(matches!(found, Err(BundleError::Decision(_))), "{pointer}: {found:?}");
    }
    for (pointer, value) in [
        ("/verb", json!("translate")),
        ("/response/status", json!(200)),
        ("/response/url", json!("https://thief.example/")),
        ("/response/headers", json!([])),
    ] {
        let changed = forged(&good, "/asked", |place| *place = encoded(&with(&asked, pointer, &value)));
        let found = judged(&changed).1;
        assert!(matches!(found, Err(BundleError::Decision(_))), "{pointer}: {found:?}");
    }
    let undecided = judged(&forged(&good, "/decision", |place| *place = Value::Null)).1;
    assert!(matches!(undecided, Err(BundleError::Inconsistent(_))), "{undecided:?}");
}

/// A forger may write down another verification that fits what it changed. What is proven cannot be changed all the
/// same.
#[tokio::test(flavor = "multi_thread")]
async fn a_proof_of_a_settlement_binds_its_logs() {
    let good = exported(&papers(&Sandbox::sample_settlement_headers()[0].header)).await;
    let refused = replayed(&forged(&good, "/transaction/execution/logs/1/data", |data| *data = json!("0x00")));
    assert!(matches!(refused, Err(BundleError::Receipt(_))), "{refused:?}");
}

/// State and settlement of a purchase that is judged anew; `None` where it is refused.
type Anew = Option<(TrustState, Option<SettlementAssuranceLevel>)>;

/// What is said of a bundle as it stands, and what a forger would write into it.
fn judged(bundle: &Value) -> (Result<VerifiedPurchase, BundleError>, Result<ReceiptVerificationDocument, BundleError>) {
    let read = || {
        let purchase = PurchaseBundle::from_bytes(bundle.to_string().as_bytes())?;
        let agent = purchase.name_bundle().verify_by_replay(&Sandbox::profiles())?;
        Ok((purchase.verify_evidence(&agent), purchase.judge_evidence(&agent)))
    };
    read().unwrap_or_else(|error: BundleError| (Err(error.clone()), Err(error)))
}

/// As a forger writes it: with another value at a place, and with the verification that follows from that.
fn rejudged(bundle: &Value, pointer: &str, change: impl FnOnce(&mut Value)) -> Result<Value, BundleError> {
    let changed = forged(bundle, pointer, change);
    let found = judged(&changed).1?;
    Ok(forged(&changed, "/verification", |verification| *verification = found.to_value()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purchase_has_a_time_of_its_own() {
    let good = exported(&papers(&Sandbox::sample_settlement_headers()[0].header)).await;
    let gathered: Timestamp = good["bundle"]["run"]["at"].as_str().expect("a time").parse().expect("a time");
    let at = |seconds| {
        let time = gathered.checked_add(SignedDuration::from_secs(seconds)).expect("in range");
        rejudged(&good, "/at", |at| *at = json!(time))
    };
    let before = at(-1).expect_err("its agent was not judged yet");
    assert!(matches!(before, BundleError::Inconsistent(_)), "{before:?}");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("later.json").display().to_string();
    std::fs::write(&file, at(3600).expect("a receipt of the past").to_string()).expect("a folder takes files");
    let later = run(&["bundle", "verify", &file, "--max-age", "10m"]);
    assert!(String::from_utf8_lossy(&later.stderr).starts_with("bundle-from-the-future"), "{later:?}");
    assert_eq!(run(&["bundle", "verify", &file]).status.code(), Some(0));
}

#[test]
fn the_command_writes_and_replays_a_purchase() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |file: &str| folder.path().join(file).display().to_string();
    assert!(run(&["sandbox", "--receipts", &path("")]).status.success());
    let advice = [
        "If you believe the exporter of this bundle: the binding was real then, and the receipt holds.",
        "Do not rely on this receipt: the evidence contradicts it.",
        "Do not rely on this receipt yet: the evidence does not decide.",
    ];
    for (reply, (code, advice)) in Sandbox::sample_settlement_headers().iter().zip([0, 1, 3].into_iter().zip(advice)) {
        let files = ["agent-sdk.json", "request.json", "payment.txt", reply.file, "bundle.json"].map(path);
        let [receipt, request, payment, settlement, bundle] = &files;
        let verify = ["receipt", "verify", receipt, "--name", NAME, "--sandbox", "--request", request];
        let written =
            run(&[&verify[..], &["--payment", payment, "--settlement", settlement, "--bundle", bundle]].concat());
        assert_eq!(written.status.code(), Some(code), "{written:?}");
        let replayed = run(&["bundle", "verify", bundle, "--name", NAME, "-o", "json"]);
        assert_eq!(replayed.status.code(), Some(code), "{replayed:?}");
        let document: Value = serde_json::from_slice(&replayed.stdout).expect("JSON");
        assert_eq!(document["purchase"]["state"], reply.state.as_str());
        let unmet = run(&["bundle", "verify", bundle, "--expect-verb", "translate"]);
        assert_eq!(unmet.status.code(), Some(if code == 0 { 4 } else { code }), "{unmet:?}");
        let shown = run(&["bundle", "verify", bundle]);
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(shown.contains("purchase sha256:"), "{shown}");
        assert_eq!(shown.lines().last(), Some(advice), "{shown}");
        assert_eq!(shown.contains("binding was real"), code == 0, "{shown}");
        let other = run(&["bundle", "verify", bundle, "--name", "other.eth"]);
        assert!(String::from_utf8_lossy(&other.stderr).starts_with("bundle-other-name"), "{other:?}");
    }
    let text = std::fs::read_to_string(path("bundle.json")).expect("it was written");
    std::fs::write(path("changed.json"), text.replacen("\"kid\":\"", "\"kid\":\"x", 1)).expect("a folder takes files");
    let refused = run(&["bundle", "verify", &path("changed.json")]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).starts_with("bundle-digest-mismatch"), "{refused:?}");
}

/// What nothing speaks against is no forgery because there is no bundle of it.
#[test]
fn a_purchase_that_cannot_be_exported_ends_with_what_is_known_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |file: &str| folder.path().join(file).display().to_string();
    assert!(run(&["sandbox", "--receipts", &path("")]).status.success());
    let unpublished = Sandbox::sample_receipts().iter().find(|sample| sample.file == "receipt-key-unpublished.json");
    let of = unpublished.expect("a receipt").name;
    for (file, name, code) in
        [("bound-schema.json", NAME, 1), ("receipt-key-unpublished.json", of, 3), ("agent-sdk.json", "not a name", 1)]
    {
        let (receipt, bundle) = (path(file), path("none.json"));
        let verify = ["receipt", "verify", &receipt, "--name", name, "--sandbox", "--bundle", &bundle];
        let refused = run(&verify);
        assert_eq!(refused.status.code(), Some(code), "{file} of {name}: {refused:?}");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains("no bundle was written"), "{said}");
        assert!(!folder.path().join("none.json").exists());
    }
}

#[test]
fn a_bundle_that_cannot_be_written_is_74() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |file: &str| folder.path().join(file).display().to_string();
    assert!(run(&["sandbox", "--receipts", &path("")]).status.success());
    let receipt = path("agent-sdk.json");
    let export = |to: &str| run(&["receipt", "verify", &receipt, "--name", NAME, "--sandbox", "--bundle", to]);
    let full = export("/dev/full");
    assert_eq!((full.status.code(), full.stdout.len()), (Some(74), 0), "{full:?}");
    for (nowhere, why) in [(path("none/b.json"), "does not exist"), (path(""), "this is a folder")] {
        let refused = export(&nowhere);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains("--bundle") && said.contains(why), "{said}");
    }
}
