//! Signatures of A2A cards: the corpus, every refusal with its code, changed bytes, roots, the commands, and the A2A
//! SDKs in JavaScript and Python.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{Address, B256};
use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as BASE64URL};
use clresolve_cards::signature::{
    CardSignError, CardSignatureOutcome, CardSignatureVerification, CardSigner as _, CardSigningKey, CardTrustRoot,
    CardTrustRootError, CardTrustRoots, DefaultFieldOmissionRule, DidWeb, MAX_HEADER_BYTES, MAX_ROOTS,
    MAX_SIGNATURE_BYTES, MAX_SIGNATURES, SignedCardState, canonical_payload, sign_card, sign_text,
    verify_card_signatures,
};
use clresolve_chain::EnsReader;
use clresolve_core::json::{JsonLimits, parse_strict_json};
use clresolve_core::name::EnsName;
use clresolve_core::payment::PaymentRecords;
use clresolve_core::reading::{
    BlockSelector, ChainBlock, ChainError, ClOwnerReading, EnsAnswer, LatestNameState, NameHolder, NameReading,
    ProofGrade, ProofStrength, ResolvedRecords,
};
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};
use clresolve_core::records::{TextRecord, TextRecordKey};
use clresolve_discover::{VerificationKeySource, fetch_trust_root};
use clresolve_ipfs::{ContentId, DagWalkBudget, UnixFsPath};
use clresolve_jose::SignatureKeyError;
use clresolve_resolver::config::Config;
use clresolve_resolver::fetch::{EgressViolation, FetchError, ForbiddenUrlError, SourceUnavailableError};
use clresolve_resolver::resolve::{ContentFetcher, IpfsPathResult, Resolver};
use clresolve_resolver::sandbox::Sandbox;
use clresolve_server::http::HttpDaemon;
use clresolve_verdict::evidence::{HttpsOutcome, IpfsWalkOutcome};
use clresolve_verdict::profile::ConformanceProfiles;
use ed25519_dalek::Signer as _;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::corpus::corpus;
use crate::support::orloj;
use crate::support::program::{clresolve, ends};
use crate::support::rfc8037::{SEED, THUMBPRINT, seed};
use crate::support::server;

/// The public key of [`seed`], as the member `x` of a JWK.
const X: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

/// RFC 8410's fixed head, then the 32 bytes.
fn key() -> CardSigningKey {
    let head = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    CardSigningKey::from_pem(&pem(&[head.as_slice(), &seed()].concat())).expect("a key")
}

fn jwk() -> Value {
    json!({"kty": "OKP", "crv": "Ed25519", "x": X, "kid": "k"})
}

fn jwks(keys: &[Value]) -> Result<CardTrustRoot, CardTrustRootError> {
    CardTrustRoot::from_jwks("keys", json!({ "keys": keys }).to_string().as_bytes())
}

fn roots(keys: &[Value]) -> CardTrustRoots {
    jwks(keys).expect("a key set").into()
}

/// A published file of the A2A project; `None` without a corpus.
fn published(name: &str) -> Option<Vec<u8>> {
    let path = corpus("a2a/v1.0.1")?.join(name);
    Some(fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("JSON")
}

fn card() -> Value {
    json!({
        "name": "Gr\u{fc}\u{df}e \u{1f600}", "description": "Says hello.", "version": "1.0.0",
        "supportedInterfaces": [{"url": "https://a.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": false, "extensions": [{"uri": "urn:x", "params": {"n": 1.5, "e": ""}}]},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "greet", "name": "Greet", "description": "Greets.", "tags": ["hello"]}],
    })
}

/// The card with one entry of any protected header. The signature over it is valid.
fn under(header: &str) -> Value {
    let protected = BASE64URL.encode(header);
    signed_by_hand(card(), &protected)
}

fn signed_by_hand(mut card: Value, protected: &str) -> Value {
    let input = format!("{protected}.{}", BASE64URL.encode(canonical_payload(&card).expect("a canonical form")));
    let signature = ed25519_dalek::SigningKey::from_bytes(&seed()).sign(input.as_bytes());
    let entry = json!({"protected": protected, "signature": BASE64URL.encode(signature.to_bytes())});
    card["signatures"] = json!([entry]);
    card
}

/// The one code that a card with one signature gets.
#[track_caller]
fn refused(card: &Value, roots: &CardTrustRoots) -> ReasonCode {
    let found = verify_card_signatures(card, roots);
    assert_eq!(found.state, SignedCardState::Refused, "{found:?}");
    let codes: BTreeSet<ReasonCode> = found.reasons.iter().map(|reason| reason.code).collect();
    assert_eq!(codes.len(), 1, "{found:?}");
    assert!(found.reasons.iter().all(|reason| reason.effect == ReasonEffect::Fail), "{found:?}");
    let code = found.reasons[0].code;
    assert!(found.signatures.iter().all(|checked| checked.outcome == CardSignatureOutcome::Refused(code)), "{found:?}");
    code
}

#[track_caller]
fn verified(found: &CardSignatureVerification) -> (&str, &str, DefaultFieldOmissionRule) {
    assert_eq!(found.state, SignedCardState::Verified, "{found:?}");
    let held = found.signatures.iter().find_map(|checked| match &checked.outcome {
        CardSignatureOutcome::Verified { root, key, form } => Some((root.as_str(), key.as_str(), *form)),
        CardSignatureOutcome::Refused(_) => None,
    });
    held.expect("one that holds")
}

#[test]
fn the_signed_cards_of_the_corpus_hold_and_their_tampered_copies_do_not() {
    let Some(keys) = published("jwks.authored.json") else { return };
    let roots = CardTrustRoots::from(CardTrustRoot::from_jwks("corpus", &keys).expect("a key set"));
    for kind in ["eddsa", "es256"] {
        let read = |suffix: &str| json(&published(&format!("signed-{kind}{suffix}.authored.json")).expect("there"));
        let found = verify_card_signatures(&read(""), &roots);
        let (root, _, form) = verified(&found);
        assert_eq!((root, form), ("corpus", DefaultFieldOmissionRule::Specification));
        assert_eq!(refused(&read("-tampered"), &roots), ReasonCode::SignatureInvalid);
    }
    let printed = json(&published("spec-sample-card.json").expect("there"));
    assert_eq!(refused(&printed, &roots), ReasonCode::SignatureKeyUnknown, "its key is published nowhere");
}

#[test]
fn the_example_of_the_specification_has_its_canonical_form() {
    let (Some(input), Some(expected)) = (published("jcs-example-input.json"), published("jcs-example-canonical.json"))
    else {
        return;
    };
    let found = canonical_payload(&json(&input)).expect("a canonical form");
    assert_eq!(String::from_utf8(found).unwrap(), String::from_utf8(expected).unwrap().trim_end());
}

#[test]
fn what_is_signed_is_verified_and_nothing_else_of_the_card_changes() {
    let signed = sign_card(&card(), &key()).expect("it is signed");
    let found = verify_card_signatures(&signed, &roots(&[jwk()]));
    assert_eq!(verified(&found), ("keys", THUMBPRINT, DefaultFieldOmissionRule::Specification));
    assert!(found.reasons.is_empty());
    let mut plain = signed.clone();
    let entry = plain.as_object_mut().unwrap().remove("signatures").unwrap();
    assert_eq!(plain, card());
    let header = json(&BASE64URL.decode(entry[0]["protected"].as_str().unwrap()).unwrap());
    assert_eq!(header, json!({"alg": "EdDSA", "kid": THUMBPRINT, "typ": "JOSE"}));

    let twice = sign_card(&signed, &key().with_key_id("k").with_key_set_url("https://a.example/jwks.json"))
        .expect("it is signed");
    assert_eq!(twice["signatures"][0], signed["signatures"][0], "the first one stays as it is");
    let header = json(&BASE64URL.decode(twice["signatures"][1]["protected"].as_str().unwrap()).unwrap());
    assert_eq!((&header["kid"], &header["jku"]), (&json!("k"), &json!("https://a.example/jwks.json")));
    let found = verify_card_signatures(&twice, &roots(&[jwk()]));
    assert!(
        found.signatures.iter().all(|checked| matches!(checked.outcome, CardSignatureOutcome::Verified { .. })),
        "{found:?}"
    );
}

#[test]
fn keys_of_all_three_kinds_sign_and_verify() {
    for (key, alg) in [(key(), "EdDSA"), (p256(), "ES256"), (rsa(), "RS256")] {
        assert_eq!(key.algorithm().as_str(), alg);
        let root = jwks(&[key.public_jwk()]).expect("a key set").into();
        let signed = sign_card(&card(), &key).expect("it is signed");
        let found = verify_card_signatures(&signed, &root);
        assert_eq!(verified(&found), ("keys", key.key_id(), DefaultFieldOmissionRule::Specification));
        assert_eq!(found.signatures[0].alg.as_deref(), Some(alg));
        let mut changed = signed;
        changed["name"] = json!("another");
        assert_eq!(refused(&changed, &root), ReasonCode::SignatureInvalid);
        assert!(!format!("{key:?}").contains("secret"));
    }
}

fn p256() -> CardSigningKey {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
    CardSigningKey::from_pem(&pem(pair.to_pkcs8v1().expect("PKCS#8").as_ref())).expect("a key")
}

fn rsa() -> CardSigningKey {
    CardSigningKey::from_pem(&rsa_pem()).expect("a key")
}

fn pem(der: &[u8]) -> String {
    let base64 = STANDARD.encode(der);
    let lines: Vec<&str> = base64.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).expect("ASCII")).collect();
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"))
}

/// A card and the roots that it is judged by.
type Case = (Value, CardTrustRoots);

/// The card with a good signature whose protected header has these members too.
fn header(change: Value) -> Value {
    let mut header = json!({"alg": "EdDSA", "kid": "k", "typ": "JOSE"});
    header.as_object_mut().expect("an object").extend(change.as_object().expect("an object").clone());
    under(&header.to_string())
}

/// The card with a good signature of which one member is replaced.
fn entry_with(member: &str, value: Value) -> Value {
    let mut card = header(json!({}));
    card["signatures"][0][member] = value;
    card
}

fn listed(signatures: Value) -> Value {
    let mut card = card();
    card["signatures"] = signatures;
    card
}

/// The roots of the good key with one member replaced.
fn key_with(member: &str, value: Value) -> CardTrustRoots {
    let mut jwk = jwk();
    jwk[member] = value;
    roots(&[jwk])
}

/// Cards whose form or header is refused for any root.
fn malformed() -> Vec<(ReasonCode, Value)> {
    use ReasonCode::{SignatureAlgorithmRefused, SignatureHeaderRefused, SignatureMalformed, SignatureMissing};
    let entry = header(json!({}))["signatures"][0].clone();
    vec![
        (SignatureMissing, card()),
        (SignatureMissing, listed(json!([]))),
        (SignatureMalformed, listed(json!({}))),
        (SignatureMalformed, listed(Value::Null)),
        (SignatureMalformed, listed(json!(["x"]))),
        (SignatureMalformed, listed(json!([{"protected": "e30"}]))),
        (SignatureMalformed, listed(json!([{"signature": "AA"}]))),
        (SignatureMalformed, listed(vec![entry; MAX_SIGNATURES + 1].into())),
        (SignatureMalformed, entry_with("protected", json!("e30="))),
        (SignatureMalformed, entry_with("protected", json!("e31"))),
        (SignatureMalformed, entry_with("protected", json!("bm8"))),
        (SignatureMalformed, entry_with("protected", json!(7))),
        (SignatureMalformed, entry_with("signature", json!("A"))),
        (SignatureMalformed, entry_with("signature", json!("AA=="))),
        (SignatureMalformed, entry_with("signature", json!("A".repeat(MAX_SIGNATURE_BYTES * 2)))),
        (SignatureMalformed, entry_with("header", json!([]))),
        (SignatureMalformed, entry_with("header", json!({"kid": "k"}))),
        (SignatureMalformed, under("{}")),
        (SignatureMalformed, under("[]")),
        (SignatureMalformed, under(r#"{"alg":"EdDSA","alg":"EdDSA"}"#)),
        (SignatureMalformed, header(json!({"alg": 1}))),
        (SignatureMalformed, header(json!({"kid": 1}))),
        (SignatureMalformed, header(json!({"x5c": ["A".repeat(MAX_HEADER_BYTES)]}))),
        (SignatureAlgorithmRefused, header(json!({"alg": "none"}))),
        (SignatureAlgorithmRefused, header(json!({"alg": "NONE"}))),
        (SignatureAlgorithmRefused, header(json!({"alg": ""}))),
        (SignatureAlgorithmRefused, header(json!({"alg": "HS256"}))),
        (SignatureAlgorithmRefused, header(json!({"alg": "HS512"}))),
        (SignatureAlgorithmRefused, header(json!({"alg": "PS256"}))),
        (SignatureAlgorithmRefused, header(json!({"alg": "ES256K"}))),
        (SignatureAlgorithmRefused, header(json!({"alg": "eddsa"}))),
        (SignatureHeaderRefused, header(json!({"crit": ["exp"], "exp": 1}))),
        (SignatureHeaderRefused, header(json!({"crit": []}))),
        (SignatureHeaderRefused, header(json!({"b64": false, "crit": ["b64"]}))),
        (SignatureHeaderRefused, header(json!({"b64": false}))),
        (SignatureHeaderRefused, header(json!({"typ": "clresolve-verdict+jwt"}))),
        (SignatureHeaderRefused, header(json!({"typ": 1}))),
        (SignatureHeaderRefused, entry_with("header", json!({"crit": ["x"]}))),
    ]
}

/// Cards whose key or signature is refused.
fn unvouched() -> Vec<(ReasonCode, Case)> {
    use ReasonCode::{
        SignatureInvalid, SignatureKeyUnfit, SignatureKeyUnknown, SignatureKeyWeak, SignaturePayloadRefused,
    };
    let good = || header(json!({}));
    let rs256 = || header(json!({"alg": "RS256"}));
    let es256 = || header(json!({"alg": "ES256"}));
    let rsa = |bits: usize, e: &str| {
        let mut n = vec![0xa5; bits / 8];
        n[0] |= 0x80;
        roots(&[json!({"kty": "RSA", "n": BASE64URL.encode(n), "e": e, "kid": "k"})])
    };
    let off_the_curve = json!({"kty": "EC", "crv": "P-256", "x": BASE64URL.encode([9; 32]),
        "y": BASE64URL.encode([1; 32]), "kid": "k"});
    let small_order = json!({"kty": "OKP", "crv": "Ed25519", "x": BASE64URL.encode([0; 32]), "kid": "k"});
    let mut changed = good();
    changed["version"] = json!("1.0.1");
    let mut anothers = good();
    let other = sign_card(&json!({"name": "another"}), &key().with_key_id("k")).expect("it is signed");
    anothers["signatures"] = other["signatures"].clone();
    let mut huge = good();
    huge["x"] = json!(u64::MAX);
    vec![
        (SignatureKeyUnknown, (header(json!({"kid": "other"})), roots(&[jwk()]))),
        (SignatureKeyUnknown, (header(json!({"jwk": jwk(), "kid": "other"})), roots(&[jwk()]))),
        (SignatureKeyUnknown, (good(), roots(&[]))),
        (SignatureKeyUnknown, (good(), CardTrustRoots::default())),
        (SignatureKeyUnfit, (es256(), roots(&[jwk()]))),
        (SignatureKeyUnfit, (rs256(), roots(&[jwk()]))),
        (SignatureKeyUnfit, (good(), roots(&[json!({"kty": "oct", "k": "AA", "kid": "k"})]))),
        (SignatureKeyUnfit, (good(), key_with("use", json!("enc")))),
        (SignatureKeyUnfit, (good(), key_with("alg", json!("ES256")))),
        (SignatureKeyUnfit, (good(), key_with("key_ops", json!(["sign"])))),
        (SignatureKeyUnfit, (good(), key_with("crv", json!("Ed448")))),
        (SignatureKeyWeak, (good(), roots(&[small_order]))),
        (SignatureKeyWeak, (es256(), roots(&[off_the_curve]))),
        (SignatureKeyWeak, (rs256(), rsa(1024, "AQAB"))),
        (SignatureKeyWeak, (rs256(), rsa(2040, "AQAB"))),
        (SignatureKeyWeak, (rs256(), rsa(4104, "AQAB"))),
        (SignatureKeyWeak, (rs256(), rsa(2048, "AQAD"))),
        (SignatureKeyWeak, (rs256(), rsa(2048, "Aw"))),
        (SignatureKeyWeak, (rs256(), rsa(2048, "AQAC"))),
        (SignatureInvalid, (rs256(), rsa(2048, "AQAB"))),
        (SignatureInvalid, (rs256(), rsa(4096, "AQAB"))),
        (SignatureInvalid, (changed, roots(&[jwk()]))),
        (SignatureInvalid, (anothers, roots(&[jwk()]))),
        (SignatureInvalid, (entry_with("signature", json!("")), roots(&[jwk()]))),
        (SignatureInvalid, (entry_with("signature", json!(BASE64URL.encode([0; 64]))), roots(&[jwk()]))),
        (SignaturePayloadRefused, (huge, roots(&[jwk()]))),
    ]
}

#[test]
fn every_refusal_has_its_code() {
    assert_eq!(
        verify_card_signatures(&header(json!({})), &roots(&[jwk()])).state,
        SignedCardState::Verified,
        "the cases are changes of it"
    );
    let mut cases = unvouched();
    cases.extend(malformed().into_iter().map(|(code, card)| (code, (card, roots(&[jwk()])))));
    let mut seen: BTreeSet<ReasonCode> =
        [ReasonCode::SignatureRootUnavailable, ReasonCode::SignatureRootUnusable].into();
    for (code, (card, roots)) in &cases {
        assert_eq!(refused(card, roots), *code, "{}", card["signatures"]);
        seen.insert(*code);
    }
    let all = ReasonCode::ALL.iter().copied().filter(|code| code.slug().starts_with("signature-"));
    assert_eq!(seen, all.collect::<BTreeSet<_>>(), "each code has a case here; those of roots have tests of their own");
}

#[test]
fn headers_that_say_more_than_they_must_are_read_past() {
    for more in [
        json!({"jku": "https://evil.example/jwks", "jwk": {"kty": "oct"}, "x5u": "x", "x5c": ["x"], "iat": 1, "x": {}}),
        json!({"typ": "JOSE+JSON"}),
        json!({"typ": "jose"}),
        json!({"typ": "agent-card+jws"}),
        json!({"typ": "application/agent-card+jws"}),
        json!({"typ": "JWT"}),
    ] {
        verified(&verify_card_signatures(&header(more), &roots(&[jwk()])));
    }
    verified(&verify_card_signatures(&under(r#"{"alg":"EdDSA","kid":"k"}"#), &roots(&[jwk()])));
    verified(&verify_card_signatures(&entry_with("header", json!({"note": "not signed"})), &roots(&[jwk()])));
}

#[test]
fn a_signature_finds_its_key_by_name_by_thumbprint_or_because_neither_has_a_name() {
    let mut nameless = jwk();
    nameless.as_object_mut().expect("an object").remove("kid");
    let by = |kid: &str| header(json!({ "kid": kid }));
    verified(&verify_card_signatures(&by(THUMBPRINT), &roots(&[jwk()])));
    verified(&verify_card_signatures(&by("anything"), &roots(&[nameless])));
    verified(&verify_card_signatures(&under(r#"{"alg":"EdDSA"}"#), &roots(&[jwk()])));
    // Two keys of one name: the second is tried too.
    let mut other = p256().public_jwk();
    other["kid"] = json!("k");
    verified(&verify_card_signatures(&by("k"), &roots(&[other, jwk()])));
}

#[test]
fn one_signature_that_holds_is_enough_and_the_others_become_warnings() {
    let mut card = header(json!({}));
    let others =
        [entry_with("signature", json!(BASE64URL.encode([0; 64]))), header(json!({"alg": "none"})), listed(json!([7]))];
    for other in others {
        card["signatures"].as_array_mut().expect("a list").insert(0, other["signatures"][0].clone());
    }
    let broken = CardTrustRoot::from_failure_reason(
        "down",
        Reason::new(ReasonCode::SignatureRootUnavailable).observed("timeout"),
    );
    let roots = CardTrustRoots::new(vec![broken, jwks(&[jwk()]).expect("a key set")]).expect("few");
    let found = verify_card_signatures(&card, &roots);
    assert_eq!(verified(&found).0, "keys");
    let reasons: Vec<_> = found.reasons.iter().map(|r| (r.effect, r.code, r.place.as_deref().unwrap_or(""))).collect();
    assert_eq!(
        reasons,
        [
            (ReasonEffect::Warn, ReasonCode::SignatureAlgorithmRefused, "/signatures/1"),
            (ReasonEffect::Warn, ReasonCode::SignatureInvalid, "/signatures/2"),
            (ReasonEffect::Warn, ReasonCode::SignatureMalformed, "/signatures/0"),
            (ReasonEffect::Warn, ReasonCode::SignatureRootUnavailable, "down"),
        ]
    );
    assert_eq!(found.signatures[3].kid.as_deref(), Some("k"));
}

#[test]
fn a_root_that_could_not_be_asked_leaves_it_open_and_one_that_is_unusable_does_not() {
    let root = |code| CardTrustRoots::from(CardTrustRoot::from_failure_reason("r", Reason::new(code)));
    let open = verify_card_signatures(&header(json!({})), &root(ReasonCode::SignatureRootUnavailable));
    assert_eq!(open.state, SignedCardState::Undecided);
    assert!(open.reasons.iter().all(|reason| reason.effect == ReasonEffect::Unknown), "{open:?}");
    let shut = verify_card_signatures(&header(json!({})), &root(ReasonCode::SignatureRootUnusable));
    assert_eq!(shut.state, SignedCardState::Refused);
    // Entries that no key can verify are refused even if a root is unavailable.
    let hopeless = verify_card_signatures(&header(json!({"alg": "none"})), &root(ReasonCode::SignatureRootUnavailable));
    assert_eq!(hopeless.state, SignedCardState::Refused);
}

#[test]
fn no_changed_byte_passes_unless_it_has_no_meaning() {
    let signed = sign_card(&card(), &key().with_key_id("k")).expect("it is signed");
    let text = signed.to_string();
    let roots = roots(&[jwk()]);
    let mut told_apart = 0;
    for at in 0..text.len() {
        for change in [1, 0x20, 0x80] {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= change;
            let Ok(changed) = parse_strict_json(&bytes, JsonLimits::CARD) else { continue };
            told_apart += 1;
            let state = verify_card_signatures(&changed, &roots).state;
            assert!(
                state != SignedCardState::Verified || changed == signed,
                "byte {at}: {}",
                String::from_utf8_lossy(&bytes)
            );
        }
    }
    assert!(told_apart > text.len(), "{told_apart} changes were judged");
}

#[test]
fn what_an_sdk_leaves_out_may_be_missing_from_what_was_signed_and_nothing_more() {
    let mut given = card();
    for (member, value) in
        [("capabilities", json!({})), ("description", json!("")), ("skills", json!([])), ("iconUrl", json!(""))]
    {
        given[member] = value;
    }
    let mut left_out = given.clone();
    for member in ["capabilities", "description", "skills", "iconUrl"] {
        left_out.as_object_mut().expect("an object").remove(member);
    }
    given["signatures"] = sign_card(&left_out, &key()).expect("it is signed")["signatures"].clone();
    assert_eq!(verified(&verify_card_signatures(&given, &roots(&[jwk()]))).2, DefaultFieldOmissionRule::WithoutEmpty);
    // Security requirements, unknown members and capabilities count by their presence.
    for (member, value) in [
        ("securityRequirements", json!([{"schemes": {"key": {}}}])),
        ("securitySchemes", json!({"m": {"mtlsSecurityScheme": {}}})),
        ("unknown", json!("")),
        ("provider", json!({})),
        ("capabilities", json!({"streaming": false})),
    ] {
        let mut more = given.clone();
        more[member] = value;
        assert_eq!(refused(&more, &roots(&[jwk()])), ReasonCode::SignatureInvalid, "{member}");
    }
}

#[test]
fn signatures_share_one_budget() {
    let many = |keys: usize| roots(&vec![json!({"kty": "OKP", "crv": "Ed25519", "x": X}); keys]);
    let wrong = json!({"protected": BASE64URL.encode(r#"{"alg":"EdDSA"}"#), "signature": "A".repeat(86)});
    let codes = |card: &Value, roots: &CardTrustRoots| -> Vec<ReasonCode> {
        verify_card_signatures(card, roots).reasons.into_iter().map(|reason| reason.code).collect()
    };
    // 16 signatures with 4 keys are 64 attempts.
    let full = listed(vec![wrong.clone(); MAX_SIGNATURES].into());
    assert_eq!(codes(&full, &many(4)), vec![ReasonCode::SignatureInvalid; MAX_SIGNATURES]);
    let beyond = codes(&full, &many(8));
    assert_eq!(beyond.iter().filter(|code| **code == ReasonCode::SignatureInvalid).count(), 8);
    assert_eq!(beyond.iter().filter(|code| **code == ReasonCode::CardTooComplex).count(), 8);
    // Such a card has 347,000 bytes in base64url: six attempts, and not seven.
    let mut large = listed(vec![wrong; 8].into());
    large["x"] = "a".repeat(260_000).into();
    let beyond = codes(&large, &many(1));
    assert_eq!(beyond.iter().filter(|code| **code == ReasonCode::SignatureInvalid).count(), 6);
    assert_eq!(beyond.iter().filter(|code| **code == ReasonCode::CardTooComplex).count(), 2);
}

#[test]
fn cards_that_cannot_be_signed_are_told() {
    let full = listed(vec![json!({}); MAX_SIGNATURES].into());
    assert_eq!(sign_card(&full, &key()), Err(CardSignError::TooMany));
    assert_eq!(sign_card(&json!([]), &key()), Err(CardSignError::NotObject));
    assert_eq!(sign_card(&listed(json!({})), &key()), Err(CardSignError::Signatures));
    assert!(matches!(sign_card(&json!({"x": u64::MAX}), &key()), Err(CardSignError::Payload(_))));
    assert!(matches!(sign_text("{\"a\":1,\"a\":2}", &key()), Err(CardSignError::Json(_))));
    assert_eq!(CardSigningKey::from_pem("x").err(), Some(SignatureKeyError::NotCardKey));
    let p384 = EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).expect("a key");
    let p384 = pem(p384.to_pkcs8v1().expect("PKCS#8").as_ref());
    assert_eq!(CardSigningKey::from_pem(&p384).err(), Some(SignatureKeyError::NotCardKey));
}

#[test]
fn signing_a_text_changes_no_other_byte_of_it() {
    let texts = [
        "{\"name\":\"a\"}",
        "{}",
        " { \"b\" : 1.50 ,\t\"a\" : \"\\u00fc\" }\n\n",
        "{\n  \"b\": 1,\n  \"a\": [1e2]\n}\n",
        "{\r\n  \"b\": 1\r\n}\r\n",
        "{\"signatures\":[],\"a\":1}",
        "{\n  \"signatures\": [\n  ],\n  \"a\": 1\n}\n",
        "{\"x\":{\"signatures\":[]},\"a\":[\"]\"]}",
    ];
    for text in texts {
        let mut text = text.to_owned();
        for count in 1..=3 {
            let signed = sign_text(&text, &key()).expect("it is signed");
            let card = parse_strict_json(text.as_bytes(), JsonLimits::CARD).expect("JSON");
            let expected = sign_card(&card, &key()).expect("it is signed");
            assert_eq!(parse_strict_json(signed.as_bytes(), JsonLimits::CARD), Ok(expected), "{signed}");
            assert_eq!(json(signed.as_bytes())["signatures"].as_array().map(Vec::len), Some(count));
            // The new text is the old one with an insertion.
            let (mut old, mut matched) = (text.bytes().filter(|byte| !byte.is_ascii_whitespace()).peekable(), 0);
            for byte in signed.bytes() {
                if old.peek() == Some(&byte) {
                    old.next();
                    matched += 1;
                }
            }
            assert!(old.peek().is_none(), "{matched} bytes of {text:?} are in {signed:?}");
            text = signed;
        }
    }
    let signed = sign_text("{\n  \"b\": 1.50,\n  \"a\": 2\n}\n", &key()).expect("it is signed");
    assert!(
        signed.starts_with("{\n  \"b\": 1.50,\n  \"a\": 2,\n  \"signatures\": [\n    {\n      \"protected\":"),
        "{signed}"
    );
    assert!(signed.ends_with("\n    }\n  ]\n}\n"), "{signed}");
}

#[test]
fn key_sets_are_read_strictly() {
    let with = |member: &str, value: Value| {
        let mut jwk = jwk();
        jwk[member] = value;
        jwks(&[jwk]).err()
    };
    assert_eq!(with("d", json!(SEED)), Some(CardTrustRootError::Keys(SignatureKeyError::Private)));
    assert_eq!(with("x", json!("AA")), Some(CardTrustRootError::Keys(SignatureKeyError::NotJwk)));
    let ec = json!({"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"});
    assert_eq!(jwks(std::slice::from_ref(&ec)).err(), Some(CardTrustRootError::Keys(SignatureKeyError::NotJwk)));
    assert_eq!(
        jwks(&[json!({"kty": "RSA", "e": "AQAB"})]).err(),
        Some(CardTrustRootError::Keys(SignatureKeyError::NotJwk))
    );
    let enc = json!({"kty": "RSA", "n": "AQAB", "e": "AQAB", "use": "enc"});
    assert_eq!(
        jwks(&[ec.clone(), enc.clone()]).err(),
        Some(CardTrustRootError::Keys(SignatureKeyError::NotJwk)),
        "none is of use"
    );
    verified(&verify_card_signatures(&header(json!({})), &jwks(&[ec.clone(), enc, jwk()]).expect("a key set").into()));
    let private = json!({"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "d": "AA"});
    assert_eq!(jwks(&[jwk(), private]).err(), Some(CardTrustRootError::Keys(SignatureKeyError::Private)));
    assert!(matches!(jwks(&vec![jwk(); 65]).err(), Some(CardTrustRootError::Keys(SignatureKeyError::NotJwks { .. }))));
    for bytes in [b"[]".as_slice(), b"{}", b"{\"keys\":{}}", b"{\"keys\":[],\"keys\":[]}", b"\xff"] {
        assert!(matches!(
            CardTrustRoot::from_jwks("r", bytes).err(),
            Some(CardTrustRootError::Keys(SignatureKeyError::NotJwks { .. }))
        ));
    }
    let root = jwks(&[jwk()]).expect("a key set");
    assert_eq!(CardTrustRoots::new(vec![root; MAX_ROOTS + 1]).err(), Some(CardTrustRootError::TooMany));
}

#[test]
fn dids_lead_to_their_documents() {
    let url = |did: &str| did.parse::<DidWeb>().map(|did| did.document_url().to_owned());
    assert_eq!(url("did:web:example.com").as_deref(), Ok("https://example.com/.well-known/did.json"));
    assert_eq!(url("did:web:example.com%3A8443").as_deref(), Ok("https://example.com:8443/.well-known/did.json"));
    assert_eq!(url("did:web:example.com:a:b").as_deref(), Ok("https://example.com/a/b/did.json"));
    for bad in [
        "did:web:",
        "did:key:z6Mk",
        "did:web:example.com:",
        "did:web:a@b.example",
        "did:web:example.com/x",
        "did:web:example.com%2Fx",
        "did:web:example.com:..:x",
        "did:web:example.com#key",
        "did:web:example.com?x",
        "did:web:example.com%3A99999",
        "did:web:[::1]",
        "web:example.com",
    ] {
        assert_eq!(url(bad), Err(CardTrustRootError::NoDid), "{bad}");
    }
}

#[test]
fn a_did_document_vouches_for_the_keys_that_it_lets_make_assertions() {
    let did: DidWeb = "did:web:example.com".parse().expect("a DID");
    let method = |id: &str| {
        json!({"id": id, "type": "JsonWebKey2020", "controller": "did:web:example.com",
        "publicKeyJwk": {"kty": "OKP", "crv": "Ed25519", "x": X}})
    };
    let read = |document: &Value| CardTrustRoot::from_did_document(&did, document.to_string().as_bytes());
    let judged = |document: &Value, kid: &str| {
        let root = read(document).expect("a document").into();
        verify_card_signatures(&header(json!({ "kid": kid })), &root).state
    };
    use SignedCardState::{Refused, Verified};
    let all = json!({"id": "did:web:example.com", "verificationMethod": [method("did:web:example.com#k1"), {"id": "#other"}]});
    assert_eq!(judged(&all, "did:web:example.com#k1"), Verified);
    assert_eq!(judged(&all, "k1"), Verified);
    assert_eq!(judged(&all, "k2"), Refused);
    let mut limited = all.clone();
    limited["assertionMethod"] = json!([]);
    assert_eq!(judged(&limited, "k1"), Refused, "a key for something else");
    limited["assertionMethod"] = json!(["#k1"]);
    assert_eq!(judged(&limited, "k1"), Verified);
    let embedded = json!({"id": "did:web:example.com", "assertionMethod": [method("#k3")]});
    assert_eq!(judged(&embedded, "did:web:example.com#k3"), Verified);

    let malformed = json!({"id": "#k0", "publicKeyJwk": {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}});
    let mixed = json!({"id": "did:web:example.com", "verificationMethod": [malformed, method("#k1")]});
    assert_eq!(judged(&mixed, "k1"), Verified);
    let none = json!({"id": "did:web:example.com", "verificationMethod": [malformed]});
    assert_eq!(read(&none).err(), Some(CardTrustRootError::Keys(SignatureKeyError::NotJwk)));

    assert_eq!(read(&json!({"id": "did:web:other.example"})).err(), Some(CardTrustRootError::OtherDid));
    assert_eq!(read(&json!({"verificationMethod": []})).err(), Some(CardTrustRootError::OtherDid));
    assert!(matches!(read(&json!([])).err(), Some(CardTrustRootError::Document(_))));
    let many = json!({"id": "did:web:example.com", "verificationMethod": vec![method("#k"); 65]});
    assert_eq!(read(&many).err(), Some(CardTrustRootError::Methods));
}

#[test]
fn records_hold_an_ed25519_key_in_base64() {
    let name = EnsName::parse("signer.eth").expect("a name");
    let bytes = BASE64URL.decode(X).expect("base64url");
    let judged = |record: &str, kid: Option<&str>, signature: &str| {
        let root = CardTrustRoot::from_cl_sig_records(&name, record, kid).expect("a record").into();
        verify_card_signatures(&header(json!({ "kid": signature })), &root).state
    };
    let padded = format!("ed25519:{}", STANDARD.encode(&bytes));
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let spellings = [X, &hex, &format!("0x{hex}")].map(|key| [format!("ed25519:{key}"), format!("ed25519={key}")]);
    for record in [padded.as_str(), padded.trim_end_matches('='), &hex]
        .into_iter()
        .chain(spellings.as_flattened().iter().map(String::as_str))
    {
        assert_eq!(judged(record, None, "any"), SignedCardState::Verified, "{record}");
    }
    assert_eq!(judged(&padded, Some("k"), "k"), SignedCardState::Verified);
    assert_eq!(judged(&padded, Some("k"), THUMBPRINT), SignedCardState::Verified);
    assert_eq!(judged(&padded, Some("k"), "other"), SignedCardState::Refused);
    let real = "ed25519:hhyCuPNoMk4JtEvGEV8F6nMZ4uDO1EcyizPufmnJTOY=";
    assert!(
        CardTrustRoot::from_cl_sig_records(&name, real, Some("vC4WbcNoq2znSCiQ")).is_ok(),
        "as runtime.commandlayer.eth has it"
    );
    for bad in [
        "",
        X,
        "ed25519:",
        "ed25519:AA==",
        "Ed25519:AA",
        "secp256k1:AA",
        "ed25519: AA",
        &hex[2..],
        &format!("0x0x{hex}"),
    ] {
        assert_eq!(
            CardTrustRoot::from_cl_sig_records(&name, bad, None).err(),
            Some(CardTrustRootError::Keys(SignatureKeyError::NotRecord)),
            "{bad}"
        );
    }
    let weak = format!("ed25519:{}", STANDARD.encode([0; 32]));
    assert_eq!(
        CardTrustRoot::from_cl_sig_records(&name, &weak, None).err(),
        Some(CardTrustRootError::Keys(SignatureKeyError::Weak))
    );
}

/// A chain with one name on it, and nothing else.
struct OneName {
    answer: EnsAnswer,
    latest: Option<EnsAnswer>,
    proof: ProofStrength,
}

#[async_trait::async_trait]
impl EnsReader for OneName {
    async fn read_selected_records(
        &self,
        _: &EnsName,
        _: BlockSelector,
        keys: &'static [TextRecordKey],
    ) -> Result<NameReading, ChainError> {
        assert_eq!(keys, TextRecordKey::SIGNER);
        Ok(NameReading {
            block: ChainBlock { number: 1, hash: B256::ZERO, timestamp: Timestamp::now() },
            answer: self.answer.clone(),
            latest: self.latest.clone().map(|answer| Ok(LatestNameState { answer, holder: NameHolder::Nobody })),
            newest: None,
            holder: NameHolder::Nobody,
            expiry: None,
            proof: self.proof,
            endpoints: Vec::new(),
            contradicted_by: Vec::new(),
            failed_endpoints: Vec::new(),
        })
    }

    async fn read_cl_owner(&self, _: &EnsName, _: &ChainBlock, _: &[String]) -> Result<ClOwnerReading, ChainError> {
        Ok(ClOwnerReading::default())
    }
}

/// A web with these pages.
struct Pages(BTreeMap<&'static str, HttpsOutcome>);

#[async_trait::async_trait]
impl ContentFetcher for Pages {
    async fn fetch_card(&self, url: &str, _: Duration) -> HttpsOutcome {
        self.0.get(url).cloned().unwrap_or(HttpsOutcome::Unavailable(SourceUnavailableError::Status(404).into()))
    }

    async fn walk_ipfs_path(
        &self,
        _: &ContentId,
        _: &UnixFsPath,
        _: &[bytes::Bytes],
        _: DagWalkBudget,
        _: Duration,
    ) -> IpfsPathResult {
        IpfsWalkOutcome::NotAsked.into()
    }

    async fn fetch_schema(&self, _: &str, _: Duration) -> Result<bytes::Bytes, FetchError> {
        Err(forbidden().into())
    }
}

fn forbidden() -> ForbiddenUrlError {
    ForbiddenUrlError { hop: 0, target: "https://example.com".to_owned(), why: EgressViolation::Disabled }
}

const QUORUM: ProofStrength = ProofStrength { grade: ProofGrade::Quorum, asked: 2, agreed: 2, own: false };

fn records(records: &[(TextRecordKey, &str)]) -> EnsAnswer {
    let records = records.iter().map(|(key, text)| (*key, TextRecord::Text((*text).to_owned()))).collect();
    EnsAnswer::Records(ResolvedRecords {
        resolver: Address::ZERO,
        wildcard: None,
        offchain: false,
        records,
        payment: PaymentRecords::default(),
    })
}

fn resolver(chain: OneName, pages: Pages) -> Resolver {
    Resolver::from_chain_and_content(
        Config::default(),
        ConformanceProfiles::builtin(),
        Arc::new(chain),
        Arc::new(pages),
    )
    .expect("a resolver")
}

fn unregistered() -> OneName {
    OneName { answer: EnsAnswer::Unregistered, latest: None, proof: QUORUM }
}

#[tokio::test]
async fn a_record_counts_if_it_is_settled_and_not_one_strangers_word() {
    let record = format!("ed25519:{}", STANDARD.encode(BASE64URL.decode(X).expect("base64url")));
    let good = records(&[(TextRecordKey::SigPub, &record), (TextRecordKey::SigKid, "k")]);
    let asked = async |chain: OneName| {
        let source = VerificationKeySource::Ens(EnsName::parse("signer.eth").expect("a name"));
        fetch_trust_root(&resolver(chain, Pages(BTreeMap::new())), &source).await
    };
    let settled = OneName { answer: good.clone(), latest: Some(good.clone()), proof: QUORUM };
    let root = asked(settled).await;
    assert_eq!(root.label(), "signer.eth");
    verified(&verify_card_signatures(&header(json!({})), &root.into()));
    let own = ProofStrength { grade: ProofGrade::SingleRpc, asked: 1, agreed: 1, own: true };
    let root = asked(OneName { answer: good.clone(), latest: Some(good.clone()), proof: own }).await;
    verified(&verify_card_signatures(&header(json!({})), &root.into()));

    let failure = async |chain: OneName| {
        let root = asked(chain).await;
        let reason = root.failure_reason().expect("no keys");
        assert_eq!(reason.place.as_deref(), Some("signer.eth"));
        (reason.code, reason.observed.clone().unwrap_or_default())
    };
    use ReasonCode::{SignatureRootUnavailable, SignatureRootUnusable};
    let stranger = ProofStrength { own: false, ..own };
    let (code, why) = failure(OneName { answer: good.clone(), latest: Some(good.clone()), proof: stranger }).await;
    assert_eq!(code, SignatureRootUnavailable);
    assert!(why.starts_with("single-rpc"), "{why}");
    let changed = records(&[(TextRecordKey::SigPub, "ed25519:AA"), (TextRecordKey::SigKid, "k")]);
    let (code, why) = failure(OneName { answer: good.clone(), latest: Some(changed), proof: QUORUM }).await;
    assert_eq!(code, SignatureRootUnavailable);
    assert!(why.starts_with("record-pending"), "{why}");
    for answer in [
        EnsAnswer::Unregistered,
        EnsAnswer::NoResolver(None),
        records(&[]),
        records(&[(TextRecordKey::SigKid, "k")]),
        records(&[(TextRecordKey::SigPub, "secp256k1:AA")]),
    ] {
        assert_eq!(
            failure(OneName { answer: answer.clone(), latest: Some(answer), proof: QUORUM }).await.0,
            SignatureRootUnusable
        );
    }
}

#[tokio::test]
async fn roots_on_the_web_are_pages_that_were_got() {
    let set = json!({"keys": [jwk()]}).to_string();
    let document = json!({"id": "did:web:example.com", "verificationMethod": [{"id": "#k", "publicKeyJwk": jwk()}]});
    let body = |text: String| HttpsOutcome::Body { bytes: text.into(), url: String::new() };
    let pages = Pages(BTreeMap::from([
        ("https://example.com/jwks", body(set)),
        ("https://example.com/no-jwks", body("<html>".to_owned())),
        ("https://example.com/inside", HttpsOutcome::Forbidden(forbidden().into())),
        ("https://example.com/much", HttpsOutcome::Oversize(262_144)),
        ("https://example.com/.well-known/did.json", body(document.to_string())),
    ]));
    let resolver = resolver(unregistered(), pages);
    let url = |path: &str| VerificationKeySource::Url(format!("https://example.com/{path}"));
    let did = |did: &str| VerificationKeySource::Did(did.parse().expect("a DID"));
    for source in [url("jwks"), did("did:web:example.com")] {
        verified(&verify_card_signatures(&header(json!({})), &fetch_trust_root(&resolver, &source).await.into()));
    }
    for (source, code) in [
        (url("no-jwks"), ReasonCode::SignatureRootUnusable),
        (url("inside"), ReasonCode::SignatureRootUnusable),
        (url("much"), ReasonCode::SignatureRootUnusable),
        (url("gone"), ReasonCode::SignatureRootUnavailable),
        (did("did:web:other.example"), ReasonCode::SignatureRootUnavailable),
    ] {
        let root = fetch_trust_root(&resolver, &source).await;
        assert_eq!(root.failure_reason().map(|reason| reason.code), Some(code), "{source:?}");
    }
}

#[tokio::test]
async fn roots_are_fetched_by_the_rules_for_foreign_urls() {
    let resolver = Resolver::new(&Config::default()).await.expect("a resolver");
    for source in [
        VerificationKeySource::Url("https://127.0.0.1/jwks.json".to_owned()),
        VerificationKeySource::Url("https://user:pass@example.com/jwks.json".to_owned()),
        VerificationKeySource::Did("did:web:localhost".parse().expect("a DID")),
        VerificationKeySource::Did("did:web:2130706433".parse().expect("a DID")),
        VerificationKeySource::Did("did:web:example.com%3A22".parse().expect("a DID")),
    ] {
        let root = fetch_trust_root(&resolver, &source).await;
        assert_eq!(
            root.failure_reason().map(|reason| reason.code),
            Some(ReasonCode::SignatureRootUnusable),
            "{source:?}"
        );
    }
}

/// A root is the origin that the verifier names. Keys of another origin must not be trusted in its name.
#[tokio::test]
async fn no_redirect_lets_another_origin_answer_for_a_root() {
    let set = json!({"keys": [jwk()]}).to_string();
    let document = json!({"id": "did:web:moved.example", "verificationMethod": [{"id": "#k", "publicKeyJwk": jwk()}]});
    let handler = move |head: &str| {
        let path = head.split(' ').nth(1).unwrap_or_default();
        match (path, head.to_ascii_lowercase().contains("host: evil.example")) {
            ("/away.json" | "/.well-known/did.json", false) => server::redirect(&format!("https://evil.example{path}")),
            ("/port.json", false) => server::redirect("https://moved.example:8443/set.json"),
            ("/near.json", false) => server::redirect("/set.json"),
            ("/set.json" | "/away.json", _) => server::ok(set.as_bytes()),
            ("/.well-known/did.json", true) => server::ok(document.to_string().as_bytes()),
            _ => server::status("404 Not Found"),
        }
    };
    let host = server::Server::tls(&["moved.example", "evil.example"], handler).await;
    let mut config = Config::default();
    for origin in ["moved.example:443", "moved.example:8443", "evil.example:443"] {
        config.network.connect_to.push(host.detour(origin).parse().expect("a detour"));
    }
    config.network.ca_pems = vec![String::from_utf8(host.root.to_vec()).expect("PEM")];
    let resolver = Resolver::new(&config).await.expect("a resolver");
    let url = |path: &str| VerificationKeySource::Url(format!("https://moved.example{path}"));

    let near = fetch_trust_root(&resolver, &url("/near.json")).await;
    verified(&verify_card_signatures(&header(json!({})), &near.into()));
    let did = VerificationKeySource::Did("did:web:moved.example".parse().expect("a DID"));
    for (source, origin) in [
        (url("/away.json"), "https://evil.example"),
        (url("/port.json"), "https://moved.example:8443"),
        (did, "https://evil.example"),
    ] {
        let root = fetch_trust_root(&resolver, &source).await;
        let reason = root.failure_reason().expect("no keys");
        assert_eq!(reason.code, ReasonCode::SignatureRootUnusable, "{source:?}");
        let why = format!("redirect hop 1: {origin}: a redirect may not lead to another origin here");
        assert_eq!(reason.observed.as_deref(), Some(why.as_str()));
    }
    assert!(!host.heads().iter().any(|head| head.to_ascii_lowercase().contains("evil.example")), "{:?}", host.heads());
}

/// A folder with files, and the program beside it.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), bytes).expect("written");
        self.path(name)
    }

    fn read(&self, name: &str) -> Value {
        json(&fs::read(self.path(name)).expect("there"))
    }
}

#[test]
fn the_commands_sign_and_verify() {
    let desk = Desk::new();
    let (key, keys) = (desk.path("k.pem"), desk.path("keys.json"));
    ends(&clresolve(&["signature", "key", "new", &key, "--out", &keys], ""), 0);
    let plain = desk.write("card.json", serde_json::to_vec_pretty(&card()).expect("JSON"));
    let signed = desk.path("signed.json");
    ends(&clresolve(&["signature", "sign", &plain, "--key", &key, "--out", &signed], ""), 0);

    let (out, err) = ends(&clresolve(&["signature", "verify", &signed, "--jwks", &keys], ""), 0);
    assert!(out.starts_with("verified  ") && out.contains("holds, by key") && err.is_empty(), "{out}{err}");
    let (out, _) = ends(&clresolve(&["signature", "verify", &signed, "--jwks", &keys, "-o", "json"], ""), 0);
    let answer = json(out.as_bytes());
    assert_eq!((&answer["state"], &answer["roots"][0]), (&json!("verified"), &json!(keys)));
    assert_eq!(answer["signatures"][0]["verified"]["form"], "specification");
    assert_eq!(answer["reasons"], json!([]));

    let tampered = fs::read_to_string(&signed).expect("there").replace("Says hello", "Says nothing");
    let (out, _) = ends(&clresolve(&["signature", "verify", "-", "--jwks", &keys, "-o", "short"], &tampered), 1);
    assert_eq!(out, "refused  -  signature-invalid\n");
    let (out, _) = ends(&clresolve(&["signature", "verify", &plain, "--jwks", &keys, "-o", "json"], ""), 1);
    assert_eq!(json(out.as_bytes())["reasons"][0]["code"], "signature-missing");
    let (_, err) = ends(&clresolve(&["signature", "verify", "-", "--jwks", &keys], "{\"a\":1,\"a\":2}"), 1);
    assert!(err.contains("rejected"), "{err}");

    // A key of another kind, under a name of its own, beside the first signature.
    let rsa_key = desk.write("rsa.pem", rsa_pem());
    owner_only(&rsa_key);
    let more = ["--kid", "rsa-1", "--jku", "https://a.example/jwks.json"];
    let (both, _) =
        ends(&clresolve(&[&["signature", "sign", &signed, "--key", &rsa_key], more.as_slice()].concat(), ""), 0);
    let (set, _) = ends(&clresolve(&["signature", "key", "public", &rsa_key], ""), 0);
    let mut set = json(set.as_bytes());
    set["keys"][0]["kid"] = json!("rsa-1");
    let rsa_keys = desk.write("rsa.json", set.to_string());
    let verify = ["signature", "verify", "-", "-o", "json", "--jwks", &rsa_keys];
    let (out, _) = ends(&clresolve(&verify, &both), 0);
    let answer = json(out.as_bytes());
    assert_eq!(answer["signatures"][0]["refused"], "signature-key-unknown");
    assert!(answer["signatures"][1]["verified"].is_object());
    assert_eq!(answer["reasons"][0]["effect"], "warn");
    let (out, _) = ends(&clresolve(&[verify.as_slice(), &["--jwks", &keys]].concat(), &both), 0);
    assert_eq!(json(out.as_bytes())["reasons"], json!([]));
}

fn rsa_pem() -> String {
    let pair = aws_lc_rs::rsa::KeyPair::generate(KeySize::Rsa2048).expect("a key");
    let der: Pkcs8V1Der<'_> = pair.as_der().expect("PKCS#8");
    pem(der.as_ref())
}

#[cfg(unix)]
fn owner_only(path: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("own file");
}

#[cfg(not(unix))]
fn owner_only(_: &str) {}

/// A pipe has no length to ask for.
#[cfg(unix)]
#[test]
fn keys_from_a_pipe_are_read_with_a_bound() {
    let desk = Desk::new();
    let signed = desk.write("signed.json", header(json!({})).to_string());
    let verify = ["signature", "verify", &signed, "--jwks", "/dev/stdin"];
    let most = 256 * 1024;
    let (_, err) = ends(&clresolve(&verify, " ".repeat(most + 1)), 2);
    assert!(err.contains("a key set has at most"), "{err}");
    let (_, err) = ends(&clresolve(&verify, " ".repeat(most)), 2);
    assert!(!err.contains("a key set has at most"), "{err}");
}

#[test]
fn wrong_calls_are_told_and_roots_that_cannot_be_asked_leave_it_open() {
    let desk = Desk::new();
    let key = desk.path("k.pem");
    ends(&clresolve(&["signature", "key", "new", &key, "--out", &desk.path("keys.json")], ""), 0);
    let signed = header(json!({})).to_string();
    let (_, err) = ends(&clresolve(&["signature", "verify", "-"], &signed), 2);
    assert!(err.contains("--jwks") && err.contains("--ens"), "{err}");
    ends(&clresolve(&["signature", "verify", "-", "--jwks", "http://a.example/x"], &signed), 2);
    ends(&clresolve(&["signature", "verify", "-", "--jwks", &desk.path("none.json")], &signed), 2);
    ends(&clresolve(&["signature", "verify", "-", "--jwks", &key], &signed), 2);
    ends(&clresolve(&["signature", "verify", "-", "--did", "did:key:x"], &signed), 2);
    ends(&clresolve(&["signature", "verify", "-", "--ens", "no name"], &signed), 2);
    ends(&clresolve(&["signature", "sign", "-", "--key", &key], "[]"), 2);
    ends(&clresolve(&["signature", "sign", "-", "--key", &key, "--jku", "http://a.example"], "{}"), 2);
    ends(&clresolve(&["signature", "sign", "-", "--key", &desk.path("keys.json")], "{}"), 2);

    let dead = ["--rpc", "http://127.0.0.1:1", "--timeout", "2s", "-o", "json"];
    let (out, _) =
        ends(&clresolve(&[&["signature", "verify", "-", "--ens", "a.eth"], dead.as_slice()].concat(), &signed), 3);
    let answer = json(out.as_bytes());
    assert_eq!(answer["state"], "undecided");
    assert_eq!(answer["reasons"][1]["code"], "signature-root-unavailable");
    // The sandbox's chain is there, and its name has no such record.
    let sandbox = ["signature", "verify", "-", "--ens", "summarizeagent.eth", "--sandbox", "-o", "json"];
    let (out, _) = ends(&clresolve(&sandbox, &signed), 1);
    let answer = json(out.as_bytes());
    let root = answer["reasons"].as_array().expect("a list").iter().find(|r| r["code"] == "signature-root-unusable");
    assert_eq!(root.expect("the reason names the root")["observed"], "cl.sig.pub is not set");
}

/// A program that signs and verifies cards with an SDK, if it can be run.
struct Sdk {
    program: PathBuf,
    script: &'static str,
}

impl Sdk {
    fn script(&self) -> PathBuf {
        folder().join(self.script)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(&self.program).arg(self.script()).args(arguments).output().expect("it runs")
    }

    /// Each side verifies what the other has signed, with each kind of key.
    fn exchange(&self) {
        let desk = Desk::new();
        let rich = json(&fs::read(folder().join("card.json")).expect("the card"));
        // Inside `params` the SDKs leave out what is empty too. That is refused here, since there it may say something.
        let mut plain = card();
        plain["capabilities"]["extensions"][0]["params"] = json!({"n": 1.5});
        // With nothing to say of capabilities an SDK signs less than the specification demands.
        let mut bare = plain.clone();
        bare["capabilities"] = json!({});
        let (key, ours) = (p256(), desk.path("ours.json"));
        for alg in ["EdDSA", "ES256", "RS256"] {
            for (given, form) in [
                (&rich, DefaultFieldOmissionRule::Specification),
                (&plain, DefaultFieldOmissionRule::Specification),
                (&bare, DefaultFieldOmissionRule::WithoutEmpty),
            ] {
                let card = desk.write("card.json", given.to_string());
                let (signed, keys) = (desk.path("signed.json"), desk.path("keys.json"));
                ends(&self.run(&["sign", alg, &card, &signed, &keys]), 0);
                let root: CardTrustRoots =
                    CardTrustRoot::from_jwks(alg, &fs::read(&keys).expect("keys")).expect("a key set").into();
                let mut theirs = desk.read("signed.json");
                let found = verify_card_signatures(&theirs, &root);
                assert_eq!((verified(&found).0, verified(&found).2), (alg, form), "{alg}: {theirs}");
                theirs["description"] = json!("changed");
                assert_eq!(refused(&theirs, &root), ReasonCode::SignatureInvalid);
            }
        }
        for key in [self::key(), key, rsa()] {
            let keys = desk.write("keys.json", json!({"keys": [key.public_jwk()]}).to_string());
            for given in [&rich, &plain] {
                let mut signed = sign_card(given, &key).expect("it is signed");
                desk.write("ours.json", signed.to_string());
                ends(&self.run(&["verify", &ours, &keys]), 0);
                signed["description"] = json!("changed");
                desk.write("ours.json", signed.to_string());
                ends(&self.run(&["verify", &ours, &keys]), 1);
            }
        }
    }
}

/// The SDKs and their drivers.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/a2a")
}

/// A daemon in a world that is not called the sandbox, so that its cards are signed; it serves an AgentSystem of Orloj
/// too.
struct Daemon {
    base: String,
    desk: Desk,
    runtime: tokio::runtime::Runtime,
    stop: tokio::sync::oneshot::Sender<()>,
    ended: tokio::task::JoinHandle<()>,
    _sandbox: Sandbox,
}

impl Daemon {
    fn start() -> Self {
        let runtime = tokio::runtime::Runtime::new().expect("threads can be had");
        let sandbox = runtime.block_on(Sandbox::start()).expect("the sandbox starts");
        let desk = Desk::new();
        let mut config = sandbox.config();
        config.chain.world = "devnet".to_owned();
        config.http.listen = clresolve_resolver::config::ListenAddress::loopback(0);
        config.sign.key = Some(desk.path("k.pem").into());
        config.sign.issuer = Some("https://clresolve.example".to_owned());
        ends(&clresolve(&["signature", "key", "new", &desk.path("k.pem")], ""), 0);
        let (keys, _) = ends(&clresolve(&["signature", "key", "public", &desk.path("k.pem")], ""), 0);
        desk.write("keys.json", keys);
        config.orloj.resources = vec![desk.write("orloj.yaml", orloj::SYSTEM).into()];
        config.orloj.base_url = Some("https://orloj.example".parse().expect("a URL"));
        let server = runtime.block_on(HttpDaemon::bind(&config)).expect("the daemon starts");
        let base = format!("http://{}/", server.address());
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let ended = runtime.spawn(server.run(async { stopped.await.unwrap_or_default() }));
        Self { base, desk, runtime, stop, ended, _sandbox: sandbox }
    }

    /// The SDK finds the agents, reads their cards, and verifies the signature of the proven one.
    fn be_discovered_by(self, sdk: &Sdk) {
        let found = |arguments: &[&str]| json(ends(&sdk.run(arguments), 0).0.as_bytes());
        let agent = format!("{}v1/agents/summarizeagent.eth/", self.base);
        let expected = json!({
            "name": "Sandbox agent summarizeagent", "version": "1.0.0", "skills": ["summarize"],
            "url": "x402://summarizeagent.eth/summarize/v1", "protocolBinding": "x402",
        });
        assert_eq!(found(&["discover", &agent]), expected);
        assert_eq!(found(&["discover", &agent, &self.desk.path("keys.json")]), expected);
        let other = self.desk.write("other.json", json!({"keys": [p256().public_jwk()]}).to_string());
        assert_ne!(sdk.run(&["discover", &agent, &other]).status.code(), Some(0), "an unknown key");
        let bad = format!("{}v1/agents/entry-version.eth/", self.base);
        assert_ne!(sdk.run(&["discover", &bad]).status.code(), Some(0), "what is not trusted has no card");
        for base in [self.base.clone(), format!("{}v1/agent-systems/research/", self.base)] {
            let seen = found(&["discover", &base]);
            assert_eq!((&seen["name"], &seen["version"]), (&json!("research"), &json!("2.0.0")), "{base}");
        }
        let _ = self.stop.send(());
        self.runtime.block_on(self.ended).expect("the daemon ends");
    }
}

#[test]
fn cards_are_exchanged_with_the_javascript_sdk() {
    let installed = Command::new("sh").arg(folder().join("install.sh")).output().expect("there is a shell");
    if installed.status.code() == Some(69) {
        println!("skipped: there is no node");
        return;
    }
    ends(&installed, 0);
    let sdk = Sdk { program: "node".into(), script: "cards.mjs" };
    sdk.exchange();
    Daemon::start().be_discovered_by(&sdk);
}

#[test]
fn cards_are_exchanged_with_the_python_sdk() {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: there is no python3");
        return;
    }
    let venv = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("a2a-venv");
    let python = venv.join("bin/python");
    let wanted = fs::read_to_string(folder().join("requirements.txt")).expect("the requirements");
    let stamp = venv.join("installed.txt");
    if fs::read_to_string(&stamp).ok().as_ref() != Some(&wanted) {
        ends(&Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv).output().expect("it runs"), 0);
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
        let installed = Command::new(&python).args(install).arg(folder().join("requirements.txt")).output();
        ends(&installed.expect("it runs"), 0);
        fs::write(&stamp, wanted).expect("written");
    }
    let sdk = Sdk { program: python, script: "cards.py" };
    sdk.exchange();
    Daemon::start().be_discovered_by(&sdk);
}
