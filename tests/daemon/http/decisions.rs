//! Decisions over HTTP: the same as the library's, and whatever a seller sent gets one.

use std::collections::BTreeMap;

use alloy_primitives::{Address, address};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as BASE64URL};
use clresolve_payment::limits::NetworkAllowlistSource;
use clresolve_resolver::config::{Config, PermittedAssetConfig, PermittedNetworks};
use reqwest::Method;
use serde_json::{Value, json};

use super::{BAD, Daemon, GOOD, HttpResponse, answer};
use crate::support::payer;

const URL: &str = "https://api.example/summarize/v1";
const USDC: Address = address!("036CbD53842c5426634e7929541eC2318f3dCF7e");
const PAYEE: Address = address!("70997970C51812dc3A010C7d01b50e0d17dc79C8");
const THIEF: Address = address!("3C44CdDdB6a900fa2b585dd299e03d12FA4293BC");

/// Limits, the route and the payee of one agent, and of one that is not trusted.
fn payable(config: &mut Config) {
    let asset = json!({"network": "eip155:84532", "address": USDC, "max-amount": "50000"});
    config.limits.assets = vec![serde_json::from_value::<PermittedAssetConfig>(asset).expect("an asset")];
    config.limits.networks = PermittedNetworks::Source(NetworkAllowlistSource::Limits);
    let accounts = || vec![format!("eip155:84532:{PAYEE}").parse().expect("an account")];
    config.routes = [GOOD, BAD].map(|name| (name.to_owned(), URL.to_owned())).into();
    config.payees = [GOOD, BAD].map(|name| (name.to_owned(), accounts())).into();
}

fn entry(pay_to: Address) -> Value {
    json!({
        "scheme": "exact",
        "network": "eip155:84532",
        "amount": "10000",
        "asset": USDC,
        "payTo": pay_to,
        "maxTimeoutSeconds": 60,
        "extra": {"name": "USDC", "version": "2"},
    })
}

fn terms(entries: &[Value]) -> Value {
    json!({"x402Version": 2, "resource": {"url": URL}, "accepts": entries})
}

fn encoded(value: &Value) -> String {
    STANDARD.encode(value.to_string())
}

fn asked(name: &str, header: &str) -> Value {
    json!({
        "name": name,
        "verb": "summarize",
        "response": {"status": 402, "url": URL, "headers": [["PAYMENT-REQUIRED", header]], "body": "{}"},
    })
}

fn honest() -> Value {
    asked(GOOD, &encoded(&terms(&[entry(PAYEE)])))
}

async fn decide(daemon: &Daemon, path: &str, body: &Value) -> HttpResponse {
    let request = daemon.request(Method::POST, path).header("content-type", "application/json");
    answer(request.body(body.to_string())).await
}

/// The decision, which must be what its schema describes.
#[track_caller]
fn decision(answer: &HttpResponse) -> Value {
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    assert_eq!((answer.header("content-type"), answer.header("cache-control")), ("application/json", "no-store"));
    let decision = answer.json();
    let schema: Value = serde_json::from_str(include_str!("../../../schemas/decision.schema.json")).expect("JSON");
    let schema = jsonschema::validator_for(&schema).expect("a schema");
    let errors: Vec<_> = schema.iter_errors(&decision).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}: {decision}");
    decision
}

fn codes(decision: &Value) -> Vec<&str> {
    decision["codes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_is_allowed_where_everything_fits() {
    let daemon = Daemon::start(payable).await;
    let allowed = decision(&decide(&daemon, "/v1/decisions", &honest()).await);
    assert_eq!((&allowed["abort"], &allowed["decision"]), (&json!(false), &json!("allow")), "{allowed}");
    let reason = allowed["reason"].as_str().expect("a sentence");
    assert!(
        reason.starts_with(&format!("Pay 0.01 USDC (eip155:84532) to {PAYEE}, proven by the configuration")),
        "{reason}"
    );
    assert_eq!(allowed["route"], json!({"url": URL, "source": "configured"}));
    assert_eq!(allowed["payee"]["proven_by"], "configured");
    assert!(allowed["valid_until"].is_string());
    // The same question has the same answer, and another one another.
    assert_eq!(decision(&decide(&daemon, "/v1/decisions", &honest()).await)["id"], allowed["id"]);
    let stolen = decision(&decide(&daemon, "/v1/decisions", &asked(GOOD, &encoded(&terms(&[entry(THIEF)])))).await);
    assert_eq!((codes(&stolen), &stolen["abort"]), (vec!["payee-mismatch"], &json!(true)));
    let tightened = {
        let mut request = honest();
        request["limits"] = json!({"max_amount": "9999"});
        decision(&decide(&daemon, "/v1/decisions", &request).await)
    };
    assert_eq!(codes(&tightened), ["payment-amount-exceeds"]);
    let metrics = String::from_utf8(daemon.get("/metrics").await.body).expect("text");
    assert!(metrics.contains("clresolve_payment_decisions_total{decision=\"allow\"}"), "{metrics}");
}

/// Whatever the gate denies aborts, with the gate's own code.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_gate_denies_is_never_paid() {
    let daemon = Daemon::start(payable).await;
    let names = clresolve_resolver::sandbox::Sandbox::expected_verdicts();
    let mut denied = 0;
    for expected in names.iter().filter(|expected| expected.state != clresolve_core::state::TrustState::Indeterminate) {
        let gate = daemon.get(&format!("/v1/gate/{}/pay", expected.name)).await;
        assert_eq!(gate.status, 403, "{}", expected.name);
        let mut request = asked(&expected.name, &encoded(&terms(&[entry(PAYEE)])));
        request["verb"] = "pay".into();
        let decision = decision(&decide(&daemon, "/v1/decisions", &request).await);
        assert_eq!(decision["abort"], true, "{}", expected.name);
        assert!(codes(&decision).contains(&gate.header("clresolve-code")), "{}: {decision}", expected.name);
        denied += 1;
    }
    assert!(denied > 100, "{denied}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_seller_sends_gets_a_decision_and_what_is_no_request_a_problem() {
    let daemon = Daemon::start(payable).await;
    let malformed = "payment-terms-malformed";
    let thirty_three = terms(&vec![entry(PAYEE); 33]);
    let from_seller: BTreeMap<&str, Value> = [
        ("an empty header", asked(GOOD, "")),
        ("no base64", asked(GOOD, "%%%")),
        ("a long header", asked(GOOD, &"A".repeat(100_000))),
        ("33 entries", asked(GOOD, &encoded(&thirty_three))),
        ("deep nesting", asked(GOOD, &STANDARD.encode("[".repeat(5000)))),
        ("a status", {
            let mut request = honest();
            request["response"]["status"] = json!(200);
            request
        }),
        ("a body that is no text", {
            json!({"name": GOOD, "verb": "summarize", "response": {"status": 402, "url": URL, "body_base64": "/w=="}})
        }),
        ("a terminal's escape", asked(GOOD, "\u{1b}[2J")),
    ]
    .into();
    for (what, request) in from_seller {
        let decision = decision(&decide(&daemon, "/v1/decisions", &request).await);
        assert_eq!((codes(&decision), &decision["abort"]), (vec![malformed], &json!(true)), "{what}");
    }
    let no_request = [
        json!({}),
        json!({"name": GOOD, "verb": "summarize"}),
        json!({"name": GOOD, "verb": "summarize", "response": {"status": 402}}),
        json!({"name": GOOD, "verb": "summarize", "paymentRequired": {}, "limits": {"max": "1"}}),
        json!({"name": GOOD, "verb": "summarize", "paymentRequired": {}, "header": "x"}),
        json!({"name": 5, "verb": "summarize", "paymentRequired": {}}),
    ];
    for request in no_request {
        decide(&daemon, "/v1/decisions", &request).await.is_problem(400, "request-malformed");
    }
    decide(&daemon, "/v1/decisions/signed", &honest()).await.is_problem(400, "request-malformed");
    let long = json!({"name": GOOD, "verb": "summarize", "paymentRequired": {"a": "a".repeat(600_000)}});
    decide(&daemon, "/v1/decisions", &long).await.is_problem(413, "body-too-large");
    let plain = daemon.request(Method::POST, "/v1/decisions").header("content-type", "text/plain").body("{}");
    answer(plain).await.is_problem(415, "media-type-unsupported");
    // The sandbox signs nothing.
    let signed = daemon.request(Method::POST, "/v1/decisions").header("content-type", "application/json");
    let signed = signed.header("accept", "application/jose").body(honest().to_string());
    answer(signed).await.is_problem(406, "not-acceptable");
}

/// A reader of the answer's bytes sees no text that acts on a terminal, or that hides or turns what stands beside it.
/// The second question differs from the first by a header alone, so an answer that is given again must be another one.
#[tokio::test(flavor = "multi_thread")]
async fn challenge_of_another_protocol_is_denied() {
    let daemon = Daemon::start(payable).await;
    let with = |name: &str, value: &str| {
        let mut question = honest();
        let headers = question["response"]["headers"].as_array_mut().expect("a list");
        headers.push(json!([name, value]));
        question
    };
    let ask = async |question: Value| decision(&decide(&daemon, "/v1/decisions", &question).await);
    assert_eq!(ask(with("www-authenticate", "Bearer realm=\"a\"")).await["abort"], false);
    for (name, value, place) in [
        ("www-authenticate", "Bearer realm=\"a\", payment id=\"1\", request=\"e30\"", "WWW-Authenticate"),
        ("Proxy-Authenticate", "LSAT macaroon=\"m\", invoice=\"i\"", "Proxy-Authenticate"),
        ("WWW-AUTHENTICATE", "L402 macaroon=\"m\", invoice=\"i\"", "WWW-Authenticate"),
    ] {
        let denied = ask(with(name, value)).await;
        assert_eq!((&denied["decision"], codes(&denied)), (&json!("deny"), vec!["payment-terms-ambiguous"]), "{value}");
        assert!(denied["reason"].to_string().contains(place), "{denied}");
        assert!(denied["reason"].as_str().is_some_and(|reason| reason.contains("Remove that challenge")), "{denied}");
    }
    assert_eq!(ask(honest()).await["abort"], false);
}

/// Sellers write fewer entries in the body, lists of something else, and `null` for what they leave out.
#[tokio::test(flavor = "multi_thread")]
async fn body_that_repeats_some_entries_is_no_contradiction() {
    let daemon = Daemon::start(payable).await;
    let upto = json!({"scheme": "upto", "network": "eip155:84532", "amount": "1", "payTo": PAYEE, "asset": USDC});
    let mut both = terms(&[entry(PAYEE), upto]);
    both["extensions"] = Value::Null;
    let ask = async |body: Value| {
        let mut question = asked(GOOD, &encoded(&both));
        question["selected"] = json!(0);
        question["response"]["body"] = body.to_string().into();
        decision(&decide(&daemon, "/v1/decisions", &question).await)
    };
    for body in [json!({}), terms(&[entry(PAYEE)]), json!({"accepts": ["x402"]}), both.clone()] {
        assert_eq!(ask(body.clone()).await["abort"], false, "{body}");
    }
    for body in [terms(&[entry(THIEF)]), terms(&[entry(PAYEE), entry(THIEF)])] {
        assert_eq!(codes(&ask(body.clone()).await), ["payment-terms-ambiguous"], "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_text_of_a_seller_is_answered_raw() {
    const HOSTILE: &str = "\u{202e}\u{1b}[2J\u{7f}";
    let daemon = Daemon::start(payable).await;
    let mut elsewhere = terms(&[entry(PAYEE)]);
    elsewhere["resource"]["url"] = format!("https://other.example/{HOSTILE}").into();
    let mut to_nobody = terms(&[entry(PAYEE)]);
    to_nobody["accepts"][0]["payTo"] = HOSTILE.into();
    for (terms, code) in [(elsewhere, "resource-mismatch"), (to_nobody, "payment-terms-malformed")] {
        let answer = decide(&daemon, "/v1/decisions", &asked(GOOD, &encoded(&terms))).await;
        let decision = decision(&answer);
        assert_eq!(codes(&decision), [code], "{decision}");
        let observed = decision["reasons"][0]["observed"].as_str().expect("what was found");
        assert!(observed.contains('\u{202e}') && observed.contains('\u{7f}'), "{observed:?}");
        let raw = String::from_utf8(answer.body.clone()).expect("UTF-8");
        assert!(raw.contains("\\u202e") && !raw.contains(['\u{202e}', '\u{1b}', '\u{7f}']), "{raw:?}");
    }
}

/// For guards that do not ask over loopback: the daemon's signature over the decision, and over what was asked.
#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_with_a_key_signs_its_decisions() {
    const ISSUER: &str = "https://clresolve.example";
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("k.pem");
    clresolve_resolver::sign::save_signing_key(&clresolve_jose::Ed25519SigningKey::generate().expect("a key"), &path)
        .expect("written");
    let daemon = Daemon::start(|config| {
        payable(config);
        // Another world than the sandbox's, which is never signed for.
        config.chain.world = "lab".to_owned();
        config.sign.key = Some(path.clone());
        config.sign.issuer = Some(ISSUER.to_owned());
    })
    .await;
    let key = daemon.get("/.well-known/jwks.json").await.json()["keys"][0]["x"].as_str().expect("a key").to_owned();
    let key: [u8; 32] = BASE64URL.decode(key).expect("base64url").try_into().expect("32 bytes");
    let key = ed25519_dalek::VerifyingKey::from_bytes(&key).expect("a point");

    for (body, aborts) in [(honest(), false), (asked(GOOD, &encoded(&terms(&[entry(THIEF)]))), true)] {
        let request = daemon.request(Method::POST, "/v1/decisions").header("content-type", "application/json");
        let signed = answer(request.header("accept", "application/jose").body(body.to_string())).await;
        let jws = String::from_utf8(signed.body.clone()).expect("ASCII");
        assert_eq!((signed.status, signed.header("content-type")), (200, "application/jose"), "{jws}");
        assert_eq!((signed.header("cache-control"), signed.header("vary")), ("no-store", "accept"));
        let (covered, signature) = jws.rsplit_once('.').expect("three parts");
        let signature: [u8; 64] = BASE64URL.decode(signature).expect("base64url").try_into().expect("64 bytes");
        key.verify_strict(covered.as_bytes(), &signature.into()).expect("it holds");
        let parts: Vec<Value> = covered
            .split('.')
            .map(|part| serde_json::from_slice(&BASE64URL.decode(part).expect("base64url")).expect("JSON"))
            .collect();
        let [head, payload] = &*parts else { panic!("{covered}") };
        assert_eq!(head["typ"], "clresolve-decision+jwt");
        assert_eq!(payload["iss"], ISSUER);
        assert_eq!(
            payload["request"],
            clresolve_core::digest::Digest::compute(body.to_string().as_bytes()).to_string()
        );
        assert_eq!((&payload["decision"]["name"], &payload["decision"]["abort"]), (&json!(GOOD), &json!(aborts)));
        let (issued, ends) = (payload["iat"].as_i64().expect("seconds"), payload["exp"].as_i64().expect("seconds"));
        // An allowance lives no longer than the terms, which leave a minute.
        assert!(ends > issued && (aborts || ends - issued <= 60), "{payload}");
    }
}

/// A payment header that pays `to`.
fn payment(accepted: &Value, to: Address, valid_before: i64) -> String {
    encoded(&payer::payment(accepted, to, valid_before))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_signed_must_be_what_was_decided() {
    let daemon = Daemon::start(payable).await;
    let now = jiff::Timestamp::now().as_second();
    let both = asked(GOOD, &encoded(&terms(&[entry(THIEF), entry(PAYEE)])));
    let signed = async |header: String, request: &Value| {
        let mut request = request.clone();
        request["header"] = header.into();
        decision(&decide(&daemon, "/v1/decisions/signed", &request).await)
    };
    let good = signed(payment(&entry(PAYEE), PAYEE, now + 60), &both).await;
    assert_eq!((&good["abort"], &good["entries"][0]["index"]), (&json!(false), &json!(1)), "{good}");
    assert!(good["checked"].as_array().expect("a list").contains(&json!("signature")));
    let mismatch = "payment-signature-mismatch";
    for (what, header) in [
        ("it pays the thief", payment(&entry(PAYEE), THIEF, now + 60)),
        ("it lives for years", payment(&entry(PAYEE), PAYEE, now + 315_360_000)),
        ("it has ended", payment(&entry(PAYEE), PAYEE, now - 1)),
        ("it is none", "e30=".to_owned()),
        ("it is empty", String::new()),
    ] {
        let bad = signed(header, &honest()).await;
        assert_eq!((codes(&bad), &bad["abort"]), (vec![mismatch], &json!(true)), "{what}");
    }
    // What is signed for a thief's own entry keeps that entry's terms, and pays a stranger.
    let thief = signed(payment(&entry(THIEF), THIEF, now + 60), &both).await;
    assert!(thief["abort"] == true && codes(&thief).contains(&"payee-mismatch"), "{thief}");
}

#[tokio::test(flavor = "multi_thread")]
async fn terms_alone_are_decided_about_where_the_asker_says_which_url_answered() {
    let daemon = Daemon::start(payable).await;
    let mut request = json!({"name": GOOD, "verb": "summarize", "paymentRequired": terms(&[entry(PAYEE)])});
    let blind = decision(&decide(&daemon, "/v1/decisions", &request).await);
    assert_eq!((&blind["abort"], &blind["unchecked"]), (&json!(true), &json!(["route", "resource"])));
    request["url"] = URL.into();
    assert_eq!(decision(&decide(&daemon, "/v1/decisions", &request).await)["abort"], false);
    request["url"] = "https://evil.example/summarize/v1".into();
    assert_eq!(codes(&decision(&decide(&daemon, "/v1/decisions", &request).await))[0], "endpoint-mismatch");
}
