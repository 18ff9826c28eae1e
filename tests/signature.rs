//! Signatures of A2A cards: the corpus, every refusal with its code, what a changed byte does, roots, the commands, and
//! the A2A SDKs in JavaScript and Python.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as BASE64URL};
use clresolve::card::json::{Limits, parse};
use clresolve::name::EnsName;
use clresolve::reason::{Code, Effect, Reason};
use clresolve::sign::KeyError;
use clresolve::signature::{
    CardKey, CardSigner as _, DidWeb, Form, MAX_HEADER_BYTES, MAX_ROOTS, MAX_SIGNATURES, Outcome, Root, RootError,
    SignError, SignatureState, TrustRoots, Verification, payload, sign, verify,
};
use ed25519_dalek::Signer as _;
use serde_json::{Value, json};

/// The private key of RFC 8037, appendix A.1; its thumbprint stands in A.3.
const SEED: &str = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A";
const THUMBPRINT: &str = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";
const X: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

fn seed() -> [u8; 32] {
    BASE64URL.decode(SEED).expect("base64url").try_into().expect("32 bytes")
}

/// RFC 8410's fixed head, then the 32 bytes.
fn key() -> CardKey {
    let head = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    let der = STANDARD.encode([head.as_slice(), &seed()].concat());
    CardKey::from_pem(&format!("-----BEGIN PRIVATE KEY-----\n{der}\n-----END PRIVATE KEY-----\n")).expect("a key")
}

fn jwk() -> Value {
    json!({"kty": "OKP", "crv": "Ed25519", "x": X, "kid": "k"})
}

fn jwks(keys: &[Value]) -> Result<Root, RootError> {
    Root::from_jwks("keys", json!({ "keys": keys }).to_string().as_bytes())
}

fn roots(keys: &[Value]) -> TrustRoots {
    jwks(keys).expect("a key set").into()
}

/// A file of the corpus; none where there is no corpus, and then a test says that it is skipped.
fn corpus(name: &str) -> Option<Vec<u8>> {
    let Some(folder) = std::env::var_os("CLRESOLVE_CORPUS") else {
        println!("skipped: CLRESOLVE_CORPUS names no corpus");
        return None;
    };
    let path = PathBuf::from(folder).join("a2a/v1.0.1").join(name);
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

/// The card with one entry, made of any protected header; the signature holds over whatever is written there.
fn under(header: &str) -> Value {
    let protected = BASE64URL.encode(header);
    signed_by_hand(card(), &protected)
}

fn signed_by_hand(mut card: Value, protected: &str) -> Value {
    let input = format!("{protected}.{}", BASE64URL.encode(payload(&card).expect("a canonical form")));
    let signature = ed25519_dalek::SigningKey::from_bytes(&seed()).sign(input.as_bytes());
    let entry = json!({"protected": protected, "signature": BASE64URL.encode(signature.to_bytes())});
    card["signatures"] = json!([entry]);
    card
}

/// The one code that a card with one signature gets.
#[track_caller]
fn refused(card: &Value, roots: &TrustRoots) -> Code {
    let found = verify(card, roots);
    assert_eq!(found.state, SignatureState::Refused, "{found:?}");
    let codes: BTreeSet<Code> = found.reasons.iter().map(|reason| reason.code).collect();
    assert_eq!(codes.len(), 1, "{found:?}");
    assert!(found.reasons.iter().all(|reason| reason.effect == Effect::Fail), "{found:?}");
    let code = found.reasons[0].code;
    assert!(found.signatures.iter().all(|checked| checked.outcome == Outcome::Refused(code)), "{found:?}");
    code
}

#[track_caller]
fn verified(found: &Verification) -> (&str, &str, Form) {
    assert_eq!(found.state, SignatureState::Verified, "{found:?}");
    let held = found.signatures.iter().find_map(|checked| match &checked.outcome {
        Outcome::Verified { root, key, form } => Some((root.as_str(), key.as_str(), *form)),
        Outcome::Refused(_) => None,
    });
    held.expect("one that holds")
}

#[test]
fn the_signed_cards_of_the_corpus_hold_and_their_tampered_copies_do_not() {
    let Some(keys) = corpus("jwks.authored.json") else { return };
    let roots = TrustRoots::from(Root::from_jwks("corpus", &keys).expect("a key set"));
    for kind in ["eddsa", "es256"] {
        let read = |suffix: &str| json(&corpus(&format!("signed-{kind}{suffix}.authored.json")).expect("there"));
        let (root, _, form) = {
            let found = verify(&read(""), &roots);
            (verified(&found).0.to_owned(), 0, verified(&found).2)
        };
        assert_eq!((root.as_str(), form), ("corpus", Form::Specification));
        assert_eq!(refused(&read("-tampered"), &roots), Code::SignatureInvalid);
    }
    let printed = json(&corpus("spec-sample-card.json").expect("there"));
    assert_eq!(refused(&printed, &roots), Code::SignatureKeyUnknown, "its key is published nowhere");
}

#[test]
fn the_example_of_the_specification_has_its_canonical_form() {
    let (Some(input), Some(expected)) = (corpus("jcs-example-input.json"), corpus("jcs-example-canonical.json")) else {
        return;
    };
    let found = payload(&json(&input)).expect("a canonical form");
    assert_eq!(String::from_utf8(found).unwrap(), String::from_utf8(expected).unwrap().trim_end());
}

#[test]
fn what_is_signed_is_verified_and_nothing_else_of_the_card_changes() {
    let signed = sign(&card(), &key()).expect("it is signed");
    let found = verify(&signed, &roots(&[jwk()]));
    assert_eq!(verified(&found), ("keys", THUMBPRINT, Form::Specification));
    assert!(found.reasons.is_empty());
    let mut plain = signed.clone();
    let entry = plain.as_object_mut().unwrap().remove("signatures").unwrap();
    assert_eq!(plain, card());
    let header = json(&BASE64URL.decode(entry[0]["protected"].as_str().unwrap()).unwrap());
    assert_eq!(header, json!({"alg": "EdDSA", "kid": THUMBPRINT, "typ": "JOSE"}));

    let twice = sign(&signed, &key().named("k").at("https://a.example/jwks.json")).expect("it is signed");
    assert_eq!(twice["signatures"][0], signed["signatures"][0], "the first one stays as it is");
    let header = json(&BASE64URL.decode(twice["signatures"][1]["protected"].as_str().unwrap()).unwrap());
    assert_eq!((&header["kid"], &header["jku"]), (&json!("k"), &json!("https://a.example/jwks.json")));
    let found = verify(&twice, &roots(&[jwk()]));
    assert!(found.signatures.iter().all(|checked| matches!(checked.outcome, Outcome::Verified { .. })), "{found:?}");
}
