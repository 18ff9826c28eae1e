//! Signed verdicts: what is signed, what is refused, key files, the commands, and the verifiers of examples/verdicts.

#[path = "sign/purchases.rs"]
mod purchases;
#[path = "sign/receipts.rs"]
mod receipts;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as BASE64URL};
use clresolve_bundle::signed::{
    ExpectedVerdict, MAX_LIFETIME, SKEW, SignedDocumentMismatch, TYPE, VerdictIssuer, VerdictSignError,
    VerdictVerifyError, verify_signed_verdict,
};
use clresolve_bundle::{BundleError, ResolutionBundle, VerifiedVerdictSignature};
use clresolve_core::digest::Digest;
use clresolve_core::json::JsonError;
use clresolve_core::name::EnsName;
use clresolve_core::reading::ProofGrade;
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::state::TrustState;
use clresolve_jose::{Ed25519KeySet, Ed25519PublicKey, Ed25519SigningKey, JwsError, SignatureKeyError};
use clresolve_payment::decision::{DecisionOutcome, PaymentDecision};
use clresolve_resolver::config::{Config, ConfigLayer, SignConfig};
use clresolve_resolver::sandbox::Sandbox;
use clresolve_resolver::sign::{
    DECISION_TYPE, KeyFileError, read_signing_key, read_trusted_keys, save_signing_key, sign_decision,
};
use clresolve_verdict::sample::resolution_of_verdict;
use clresolve_verdict::trust::TrustOrigin;
use clresolve_verdict::verdict::{ResolutionDepth, Verdict, canonical_digest};
use ed25519_dalek::Signer as _;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::support::program::{clresolve, ends};
use crate::support::rfc8037::{SEED, THUMBPRINT, seed};

const NAME: &str = "summarizeagent.eth";
const ISSUER: &str = "https://clresolve.example";

/// A moment when the verdict of [`verdict`] is fresh.
const NOW: i64 = 1_795_000_000;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).expect("in range")
}

/// The key as `openssl genpkey` writes it: RFC 8410's fixed head, then the 32 bytes.
fn pem() -> String {
    let head = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    let der = [head.as_slice(), &seed()].concat();
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(der))
}

fn key() -> Ed25519SigningKey {
    Ed25519SigningKey::from_pem(&pem()).expect("a key")
}

fn keys() -> Ed25519KeySet {
    Ed25519KeySet::from(key().public_key())
}

/// A trusted verdict that was made at `now` and is fresh for 300 seconds.
fn verdict(now: i64) -> Verdict {
    let digest = format!("sha256:{}", "cd".repeat(32));
    let verdict = json!({
        "schema": "clresolve.verdict/1", "id": "", "conclusion": "",
        "name": {"input": NAME, "normalized": NAME, "node": format!("0x{}", "11".repeat(32))},
        "state": "trusted", "summary": "Every required step passed.", "reasons": [], "identity": null,
        "anchor": {
            "world": "mainnet", "chain": "eip155:1",
            "block": {"number": 1, "hash": format!("0x{}", "22".repeat(32)), "timestamp": "2026-11-20T10:00:00Z",
                "tag": "finalized"},
            "resolver": null, "wildcard": null, "offchain": false,
            "proof": {"grade": "single-rpc", "asked": 1, "agreed": 1, "own": true}, "records_digest": digest,
        },
        "profile": {"id": "agent-cards/1.0.0", "depth": "identity", "digest": digest, "manifests": [], "near_misses": []},
        "steps": [],
        "freshness": {"checked_at": at(now).to_string(), "fresh_until": at(now + 300).to_string(), "retry_after": null,
            "served": "fresh"},
        "tool": {"name": "clresolve", "version": "0.0.0"},
    });
    serde_json::from_value::<Verdict>(verdict).expect("a verdict").with_computed_digests()
}

fn expected() -> ExpectedVerdict {
    ExpectedVerdict {
        name: EnsName::parse(NAME).expect("a name"),
        profile: "agent-cards/1.0.0".to_owned(),
        depth: ResolutionDepth::Identity,
        chain: "eip155:1".to_owned(),
        world: "mainnet".to_owned(),
        issuer: Some(ISSUER.to_owned()),
        proof: None,
    }
}

fn signed(verdict: &Verdict, now: i64) -> String {
    VerdictIssuer::new(key(), ISSUER)
        .sign_verdict(&resolution_of_verdict(verdict.clone(), None), at(now))
        .expect("it is signed")
}

/// A JWS over any header and payload, with a signature that holds.
fn forged(header: &Value, payload: &Value) -> String {
    let encode = |value: &Value| BASE64URL.encode(value.to_string());
    let signed = format!("{}.{}", encode(header), encode(payload));
    let signature = ed25519_dalek::SigningKey::from_bytes(&seed()).sign(signed.as_bytes());
    format!("{signed}.{}", BASE64URL.encode(signature.to_bytes()))
}

fn header() -> Value {
    json!({"alg": "EdDSA", "kid": THUMBPRINT, "typ": "clresolve-verdict+jwt"})
}

fn claims() -> Value {
    json!({"iss": ISSUER, "iat": NOW, "exp": NOW + 300, "verdict": verdict(NOW)})
}

#[track_caller]
fn refused(jws: &str) -> VerdictVerifyError {
    verify_signed_verdict(jws, &keys(), &expected(), at(NOW)).expect_err("it is refused")
}

#[test]
fn what_is_signed_is_verified_and_is_the_whole_verdict() {
    let jws = signed(&verdict(NOW), NOW);
    let verified = verify_signed_verdict(&jws, &keys(), &expected(), at(NOW)).expect("it holds");
    assert_eq!((verified.verdict().as_ref(), verified.issuer.as_str()), (&verdict(NOW), ISSUER));
    assert_eq!((verified.key_id.as_str(), verified.expires), (THUMBPRINT, NOW + 300));
    let trusted = verified.trusted_verdict().expect("its state is trusted");
    assert_eq!((trusted.origin(), trusted.card_bytes()), (TrustOrigin::Signed { until: at(NOW + 300) }, None));
    let payload: Value = serde_json::from_slice(&decoded(&jws, 1)).expect("JSON");
    assert_eq!(payload, claims());
    assert_eq!(serde_json::from_slice::<Value>(&decoded(&jws, 0)).expect("JSON"), header());
}

fn decoded(jws: &str, part: usize) -> Vec<u8> {
    BASE64URL.decode(jws.split('.').nth(part).expect("a part")).expect("base64url")
}

/// A decision about the agent of [`verdict`], which holds for a minute.
fn decision() -> PaymentDecision {
    PaymentDecision {
        schema: clresolve_payment::decision::SCHEMA,
        id: format!("sha256:{}", "ab".repeat(32)),
        name: NAME.to_owned(),
        verb: "summarize".to_owned(),
        decision: DecisionOutcome::Allow,
        abort: false,
        reason: "Pay.".to_owned(),
        codes: Vec::new(),
        reasons: Vec::new(),
        state: TrustState::Trusted,
        verdict: verdict(NOW).id,
        terms_digest: None,
        entries: Vec::new(),
        price: None,
        payee: None,
        route: None,
        checked: Vec::new(),
        unchecked: Vec::new(),
        valid_until: Some(at(NOW + 60)),
    }
}

#[test]
fn a_signed_decision_names_the_request_that_it_answers() {
    let (signer, resolution) = (VerdictIssuer::new(key(), ISSUER), resolution_of_verdict(verdict(NOW), None));
    let request = Digest::compute(b"{}");
    let jws = sign_decision(&signer, &decision(), &resolution, request, at(NOW)).expect("it is signed");
    let typed = json!({"alg": "EdDSA", "kid": THUMBPRINT, "typ": DECISION_TYPE});
    assert_eq!(serde_json::from_slice::<Value>(&decoded(&jws, 0)).expect("JSON"), typed);
    let payload: Value = serde_json::from_slice(&decoded(&jws, 1)).expect("JSON");
    // The SHA-256 of two braces.
    let request_of = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
    let decided = serde_json::to_value(decision()).expect("JSON");
    assert_eq!(
        payload,
        json!({"iss": ISSUER, "iat": NOW, "exp": NOW + 60, "request": request_of, "decision": decided})
    );
    assert!(sign_decision(&signer, &decision(), &resolution, request, at(NOW + 60)).is_err(), "it is over");
}

#[test]
fn an_old_one_and_one_for_another_question_are_refused() {
    let jws = signed(&verdict(NOW), NOW);
    let later = |seconds| verify_signed_verdict(&jws, &keys(), &expected(), at(NOW + seconds)).err();
    assert_eq!(later(300 + SKEW - 1), None);
    assert_eq!(later(300 + SKEW), Some(VerdictVerifyError::Expired { ago: SKEW }));
    assert_eq!(later(-SKEW), None);
    assert_eq!(later(-SKEW - 1), Some(VerdictVerifyError::IssuedInTheFuture));

    let asked = |change: fn(&mut ExpectedVerdict)| {
        let mut expected = expected();
        change(&mut expected);
        verify_signed_verdict(&jws, &keys(), &expected, at(NOW)).expect_err("another question")
    };
    let other = |what, expected: &str, observed: &str| VerdictVerifyError::Other {
        what,
        expected: expected.to_owned(),
        observed: observed.to_owned(),
    };
    assert_eq!(
        asked(|e| e.name = EnsName::parse("a.eth").expect("a name")),
        other(SignedDocumentMismatch::Name, "a.eth", NAME)
    );
    assert_eq!(
        asked(|e| e.profile = "a/1".to_owned()),
        other(SignedDocumentMismatch::Profile, "a/1", "agent-cards/1.0.0")
    );
    assert_eq!(
        asked(|e| e.chain = "eip155:5".to_owned()),
        other(SignedDocumentMismatch::Chain, "eip155:5", "eip155:1")
    );
    assert_eq!(asked(|e| e.world = "fork".to_owned()), other(SignedDocumentMismatch::World, "fork", "mainnet"));
    assert_eq!(asked(|e| e.depth = ResolutionDepth::Schemas), VerdictVerifyError::Shallow);
    let issuer = VerdictVerifyError::Issuer { expected: "x".to_owned(), observed: ISSUER.to_owned() };
    assert_eq!(asked(|e| e.issuer = Some("x".to_owned())), issuer);
    assert_eq!(asked(|e| e.proof = Some(ProofGrade::Quorum)), VerdictVerifyError::ProofTooWeak);
}

/// As [`verdict`], and a stranger's word is all that stands behind it.
fn strangers_word(now: i64) -> Verdict {
    let mut verdict = verdict(now);
    verdict.reasons = vec![Reason::new(ReasonCode::SingleRpc)];
    verdict.with_computed_digests()
}

#[test]
fn one_strangers_word_is_enough_for_who_says_so() {
    let jws = signed(&strangers_word(NOW), NOW);
    assert_eq!(refused(&jws), VerdictVerifyError::OneStrangersWord);
    let high = ExpectedVerdict { proof: Some(ProofGrade::StateProof), ..expected() };
    let mut proven = strangers_word(NOW);
    proven.anchor.as_mut().expect("it has one").proof.grade = ProofGrade::StateProof;
    let proven = signed(&proven.with_computed_digests(), NOW);
    assert_eq!(verify_signed_verdict(&proven, &keys(), &high, at(NOW)), Err(VerdictVerifyError::OneStrangersWord));
    let enough = ExpectedVerdict { proof: Some(ProofGrade::SingleRpc), ..expected() };
    assert!(verify_signed_verdict(&jws, &keys(), &enough, at(NOW)).is_ok());
}

#[test]
fn no_header_but_ours_is_accepted() {
    let with = |change: fn(&mut Value)| {
        let mut header = header();
        change(&mut header);
        refused(&forged(&header, &claims()))
    };
    for algorithm in ["none", "None", "HS256", "RS256", "Ed25519", "EdDsa", ""] {
        let mut header = header();
        header["alg"] = algorithm.into();
        let error = VerdictVerifyError::Jws(JwsError::Algorithm { observed: algorithm.to_owned() });
        assert_eq!(refused(&forged(&header, &claims())), error);
    }
    let jws = signed(&verdict(NOW), NOW);
    let payload = jws.split('.').nth(1).expect("a payload");
    let none = BASE64URL.encode(r#"{"alg":"none"}"#);
    assert_eq!(
        refused(&format!("{none}.{payload}.")),
        VerdictVerifyError::Jws(JwsError::Algorithm { observed: "none".to_owned() })
    );
    assert_eq!(
        with(|h| h["typ"] = "JWT".into()),
        VerdictVerifyError::Jws(JwsError::Type { expected: TYPE.to_owned(), observed: "JWT".to_owned() })
    );
    assert_eq!(
        with(|h| drop(h.as_object_mut().map(|h| h.remove("typ")))),
        VerdictVerifyError::Jws(JwsError::Type { expected: TYPE.to_owned(), observed: String::new() })
    );
    assert_eq!(with(|h| h["kid"] = "x".into()), VerdictVerifyError::Jws(JwsError::KeyUnknown { kid: "x".to_owned() }));
    assert_eq!(
        with(|h| drop(h.as_object_mut().map(|h| h.remove("kid")))),
        VerdictVerifyError::Jws(JwsError::KeyUnknown { kid: String::new() })
    );
    for member in ["jku", "jwk", "x5u", "x5c", "crit", "b64", "zip"] {
        let mut header = header();
        header[member] = json!(["x"]);
        assert_eq!(
            refused(&forged(&header, &claims())),
            VerdictVerifyError::Jws(JwsError::HeaderMember { member: member.to_owned() })
        );
    }
    let twice = BASE64URL.encode(r#"{"alg":"none","alg":"EdDSA"}"#);
    assert!(matches!(refused(&format!("{twice}.{payload}.")), VerdictVerifyError::Jws(JwsError::Header(_))));
}

/// Everything fits together: the keys, their ids, the token. Only, the keys are the signer's own.
#[test]
fn a_signer_with_a_key_set_of_its_own_is_refused() {
    let own = Ed25519SigningKey::generate().expect("randomness");
    let own_keys = Ed25519KeySet::from_jwks(Ed25519KeySet::from(own.public_key()).to_jwks().to_string().as_bytes());
    let payload = claims().to_string();
    let jws = own.sign_compact(TYPE, payload.as_bytes());
    assert!(
        verify_signed_verdict(&jws, &own_keys.expect("a key set"), &expected(), at(NOW)).is_ok(),
        "the lie is consistent"
    );
    assert_eq!(
        refused(&jws),
        VerdictVerifyError::Jws(JwsError::KeyUnknown { kid: own.public_key().thumbprint().to_owned() })
    );

    // Under the id of a key that is trusted the signature is still the other key's.
    let signed = format!("{}.{}", BASE64URL.encode(header().to_string()), BASE64URL.encode(&payload));
    let passed_off = format!("{signed}.{}", BASE64URL.encode(own.sign(signed.as_bytes())));
    assert_eq!(refused(&passed_off), VerdictVerifyError::Jws(JwsError::Signature));
}

#[test]
fn a_payload_that_two_readers_read_differently_is_refused_although_it_is_signed() {
    let twice = key().sign_compact(TYPE, br#"{"iss":"a","iss":"b"}"#);
    assert!(matches!(refused(&twice), VerdictVerifyError::Payload(JsonError::DuplicateKey { .. })));
}

#[test]
fn claims_that_do_not_fit_the_verdict_are_refused_although_they_are_signed() {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut claims = claims();
        change(&mut claims);
        refused(&forged(&header(), &claims))
    };
    assert_eq!(with(&|c| c["exp"] = (NOW + 301).into()), VerdictVerifyError::Lifetime);
    assert_eq!(with(&|c| c["iat"] = (NOW + 300).into()), VerdictVerifyError::Lifetime);
    assert_eq!(with(&|c| c["iat"] = (NOW + 299 - MAX_LIFETIME).into()), VerdictVerifyError::Lifetime);
    assert_eq!(with(&|c| c["iat"] = i64::MIN.into()), VerdictVerifyError::Lifetime);
    assert_eq!(with(&|c| c["verdict"]["state"] = "untrusted".into()), VerdictVerifyError::WrongDigests);
    for change in [
        &|c: &mut Value| c["aud"] = "x".into(),
        &|c: &mut Value| drop(c.as_object_mut().map(|c| c.remove("exp"))),
        &|c: &mut Value| c["exp"] = json!("soon"),
        &|c: &mut Value| c["verdict"] = Value::Null,
    ] as [&dyn Fn(&mut Value); 4]
    {
        assert!(matches!(with(change), VerdictVerifyError::Claims { .. }));
    }
    let mut sandbox = verdict(NOW);
    sandbox.anchor.as_mut().expect("an anchor").world = "sandbox".to_owned();
    let sandbox = json!(sandbox.with_computed_digests());
    assert_eq!(with(&|c| c["verdict"] = sandbox.clone()), VerdictVerifyError::Sandbox);
    let mut nowhere = verdict(NOW);
    nowhere.anchor = None;
    let nowhere = json!(nowhere.with_computed_digests());
    assert!(matches!(
        with(&|c| c["verdict"] = nowhere.clone()),
        VerdictVerifyError::Other { what: SignedDocumentMismatch::Chain, .. }
    ));
}

#[test]
fn no_changed_character_passes() {
    let jws = signed(&verdict(NOW), NOW);
    for at_byte in 0..jws.len() {
        let mut bytes = jws.clone().into_bytes();
        bytes[at_byte] = if bytes[at_byte] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).expect("ASCII");
        assert!(verify_signed_verdict(&changed, &keys(), &expected(), at(NOW)).is_err(), "character {at_byte}");
    }
    for bad in
        [format!("{jws}="), format!("{jws}\n"), format!("{jws}."), format!(".{jws}"), String::new(), "..".to_owned()]
    {
        assert!(verify_signed_verdict(&bad, &keys(), &expected(), at(NOW)).is_err(), "{bad}");
    }
    for (bad, expected) in [
        (String::new(), JwsError::NotCompact),
        ("a.b".to_owned(), JwsError::NotCompact),
        (format!("{jws}."), JwsError::NotCompact),
        (format!("{jws}="), JwsError::NotBase64Url),
    ] {
        assert_eq!(refused(&bad), VerdictVerifyError::Jws(expected), "{bad}");
    }
    assert_eq!(
        refused(&"a".repeat(clresolve_bundle::signed::MAX_JWS_BYTES + 1)),
        VerdictVerifyError::Jws(JwsError::TooLong { most: clresolve_bundle::signed::MAX_JWS_BYTES })
    );
}

#[test]
fn a_signature_that_was_changed_into_another_is_refused() {
    // The order of the group, little-endian. S + L signs the same for a verifier that does not look.
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let jws = signed(&verdict(NOW), NOW);
    let (text, _) = jws.rsplit_once('.').expect("a signature");
    let mut signature = decoded(&jws, 2);
    let mut carry = 0;
    for (byte, order) in signature[32..].iter_mut().zip(ORDER) {
        let sum = u16::from(*byte) + u16::from(order) + carry;
        (*byte, carry) = (sum.to_le_bytes()[0], sum >> 8);
    }
    let mut identity = [0; 64];
    identity[0] = 1;
    for bad in [signature, vec![0; 64], identity.to_vec(), decoded(&jws, 2)[..63].to_vec(), vec![]] {
        assert_eq!(refused(&format!("{text}.{}", BASE64URL.encode(bad))), VerdictVerifyError::Jws(JwsError::Signature));
    }
}

#[test]
fn weak_keys_are_no_keys() {
    let point = |first: u8, middle: u8, last: u8| {
        let mut point = [middle; 32];
        (point[0], point[31]) = (first, last);
        point
    };
    let order_eight = [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf,
        0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
    ];
    for bytes in [
        point(1, 0, 0),          // the identity
        point(1, 0, 0x80),       // the same, with the sign of zero
        point(0xee, 0xff, 0x7f), // the same, above the field
        point(0xec, 0xff, 0x7f), // order 2
        point(0, 0, 0),          // order 4
        point(0, 0, 0x80),       // order 4
        point(0xed, 0xff, 0x7f), // order 4, above the field
        order_eight,
        point(2, 0, 0), // no point of the curve
    ] {
        assert_eq!(Ed25519PublicKey::from_bytes(&bytes), Err(SignatureKeyError::Weak), "{bytes:?}");
        let set = json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "x": BASE64URL.encode(bytes)}]});
        assert_eq!(Ed25519KeySet::from_jwks(set.to_string().as_bytes()), Err(SignatureKeyError::Weak));
    }
}

#[test]
fn key_sets_are_read_strictly_and_foreign_kinds_passed_over() {
    let ours = key().public_key().to_jwk();
    assert_eq!((&ours["kid"], &ours["x"]), (&json!(THUMBPRINT), &json!("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")));
    let read = |keys: Value| Ed25519KeySet::from_jwks(json!({ "keys": keys }).to_string().as_bytes());
    let with = |member: &str, value: Value| {
        let mut jwk = ours.clone();
        jwk[member] = value;
        jwk
    };
    assert_eq!(read(json!([{"kty": "RSA", "n": "AQAB"}, ours])), Ok(keys()));
    assert_eq!(read(json!([with("use", json!("enc"))])), Err(SignatureKeyError::NoKey));
    assert_eq!(read(json!([with("alg", json!("none"))])), Err(SignatureKeyError::NoKey));
    assert_eq!(read(json!([])), Err(SignatureKeyError::NoKey));
    assert_eq!(read(json!([with("d", json!(SEED))])), Err(SignatureKeyError::Private));
    assert_eq!(read(json!([with("kid", json!("mine"))])), Err(SignatureKeyError::OtherId));
    assert_eq!(read(json!([with("x", json!("AA"))])), Err(SignatureKeyError::NotJwk));
    assert!(matches!(read(json!(vec![ours.clone(); 65])), Err(SignatureKeyError::NotJwks { .. })));
    assert!(matches!(Ed25519KeySet::from_jwks(b"[]"), Err(SignatureKeyError::NotJwks { .. })));
}

#[test]
fn what_is_stale_numbered_or_of_the_sandbox_is_not_signed() {
    let sign = |verdict: Verdict, now| {
        VerdictIssuer::new(key(), ISSUER).sign_verdict(&resolution_of_verdict(verdict, None), at(now)).err()
    };
    assert_eq!(sign(verdict(NOW), NOW + 299), None);
    assert_eq!(sign(verdict(NOW), NOW + 300), Some(VerdictSignError::NotFresh));
    let anchored = |change: fn(&mut clresolve_verdict::verdict::ChainAnchor)| {
        let mut verdict = verdict(NOW);
        verdict.anchor.as_mut().map(change);
        verdict.with_computed_digests()
    };
    assert_eq!(sign(anchored(|a| a.block.tag = "17".to_owned()), NOW), Some(VerdictSignError::NumberedBlock));
    assert_eq!(sign(anchored(|a| a.world = "sandbox".to_owned()), NOW), Some(VerdictSignError::Sandbox));
}

#[cfg(unix)]
#[test]
fn a_key_that_others_can_read_is_refused() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("k.pem");
    fs::write(&path, pem()).expect("written");
    let read = |mode| {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("own file");
        read_signing_key(&path)
    };
    for mode in [0o640, 0o604, 0o660, 0o644, 0o610, 0o601, 0o602] {
        let error = read(mode).expect_err("loose");
        assert_eq!(error, KeyFileError::Loose { path: path.display().to_string(), mode });
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }
    assert_eq!(read(0o400).expect("a key").public_key(), key().public_key());
    assert_eq!(read(0o600).expect("a key").public_key(), key().public_key());
    let link = folder.path().join("link");
    symlink(&path, &link).expect("a link");
    assert!(read_signing_key(&link).is_ok());
    read(0o644).expect_err("loose");
    assert!(matches!(read_signing_key(&link), Err(KeyFileError::Loose { .. })), "the file is judged, not the link");
    assert!(matches!(read_signing_key(folder.path()), Err(KeyFileError::Unusable { .. })));
    assert!(matches!(read_signing_key(Path::new("/dev/null")), Err(KeyFileError::Unusable { .. })));
}

#[test]
fn a_key_file_is_neither_overwritten_nor_taken_for_what_it_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("k.pem");
    save_signing_key(&key(), &path).expect("a new file");
    let before = fs::read(&path).expect("own file");
    let again = save_signing_key(&Ed25519SigningKey::generate().expect("randomness"), &path);
    assert_eq!(again, Err(KeyFileError::Exists { path: path.display().to_string() }));
    assert_eq!(fs::read(&path).expect("own file"), before);
    assert_eq!(read_signing_key(&path).expect("a key").public_key(), key().public_key());
    assert!(matches!(read_trusted_keys(&path), Err(KeyFileError::NoKey { .. })), "it is no key set");
    fs::write(&path, "no key").expect("own file");
    assert!(matches!(read_signing_key(&path), Err(KeyFileError::NoKey { error: SignatureKeyError::NotPkcs8, .. })));
    let nobody = SignConfig { key: Some(path), ..SignConfig::default() };
    assert!(matches!(clresolve_resolver::sign::open_signer(&nobody), Err(KeyFileError::IssuerMissing)));
}

/// A folder with a key file and its public part.
struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let desk = Self { folder };
        let (set, _) = ends(&clresolve(&["signature", "key", "new", &desk.path("k.pem")], ""), 0);
        fs::write(desk.path("keys.json"), set).expect("written");
        desk
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn signed(&self, verdict: &Verdict, now: i64) -> String {
        let key = read_signing_key(Path::new(&self.path("k.pem"))).expect("a key");
        VerdictIssuer::new(key, ISSUER)
            .sign_verdict(&resolution_of_verdict(verdict.clone(), None), at(now))
            .expect("it is signed")
    }
}

fn now() -> i64 {
    Timestamp::now().as_second()
}

#[test]
fn keys_are_made_shown_and_never_overwritten() {
    let desk = Desk::new();
    let before = fs::read_to_string(desk.path("k.pem")).expect("the key");
    let (out, err) = ends(&clresolve(&["signature", "key", "new", &desk.path("k.pem")], ""), 2);
    assert!(out.is_empty() && err.contains("never overwritten"), "{err}");
    assert_eq!(fs::read_to_string(desk.path("k.pem")).expect("the key"), before);
    let (public, _) = ends(&clresolve(&["signature", "key", "public", &desk.path("k.pem")], ""), 0);
    assert_eq!(public, fs::read_to_string(desk.path("keys.json")).expect("the set"));
    assert!(!public.contains("\"d\""));
    let secret = before.lines().nth(1).expect("base64");
    assert!(!format!("{:?}", Ed25519SigningKey::from_pem(&before)).contains(secret));
    ends(&clresolve(&["signature", "key", "public", &desk.path("keys.json")], ""), 2);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(desk.path("k.pem")).expect("the key").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_key_of_openssl_is_read() {
    let Ok(output) = Command::new("openssl").args(["genpkey", "-algorithm", "ed25519"]).output() else {
        println!("skipped: there is no openssl");
        return;
    };
    let pem = String::from_utf8(output.stdout).expect("PEM");
    assert!(Ed25519SigningKey::from_pem(&pem).is_ok());
    assert_eq!(Ed25519SigningKey::from_pem("x").err(), Some(SignatureKeyError::NotPkcs8));
}

#[test]
fn the_command_checks_a_signed_verdict() {
    let desk = Desk::new();
    let jws = desk.signed(&verdict(now()), now());
    let keys = desk.path("keys.json");
    let check = |further: &[&str], jws: &str| {
        clresolve(&[&["verdict", "verify", "-", "--jwks", &keys, "-o", "json"], further].concat(), jws)
    };
    let good = ["--name", "SummarizeAgent.eth", "--issuer", ISSUER, "--chain", "eip155:1"];
    let (out, err) = ends(&check(&good, &format!("{jws}\n")), 0);
    assert_eq!(serde_json::from_str::<Verdict>(&out).expect("a verdict").state.as_str(), "trusted");
    assert!(err.contains(ISSUER), "{err}");
    for (further, why) in [
        (vec!["--name", "other.eth"], "the name is"),
        (vec!["--name", NAME, "--profile", "agent-cards/1.1.0"], "the profile is"),
        (vec!["--name", NAME, "--chain", "eip155:5"], "the chain is"),
        (vec!["--name", NAME, "--issuer", "x"], "issued by"),
        (vec!["--name", NAME, "--depth", "schemas"], "the depth is"),
    ] {
        let (out, err) = ends(&check(&further, &jws), 1);
        assert!(out.is_empty() && err.contains("rejected") && err.contains(why), "{err}");
    }
    let old = now() - 1000;
    let (_, err) = ends(&check(&["--name", NAME], &desk.signed(&verdict(old), old)), 1);
    assert!(err.contains("expired"), "{err}");
    ends(&check(&["--name", NAME, "--expect-verb", "pay"], &jws), 4);
    ends(&check(&["--name", "a b"], &jws), 2);
    ends(&check(&["--name", NAME, "--sandbox"], &jws), 2);
    let (_, err) = ends(&check(&["--name", NAME], "no\u{1b}[31mthing"), 1);
    assert!(!err.contains('\u{1b}'), "{err}");
}

#[test]
fn the_sandbox_and_whoever_has_no_key_sign_nothing() {
    let desk = Desk::new();
    let key = desk.path("k.pem");
    let signing = ["-o", "jws", "--sign-key", &key, "--sign-issuer", ISSUER];
    let (out, err) = ends(&clresolve(&[&["--sandbox", NAME], signing.as_slice()].concat(), ""), 2);
    assert!(out.is_empty() && err.contains("the sandbox signs nothing"), "{err}");
    let (_, err) = ends(&clresolve(&["--sandbox", NAME, "-o", "jws"], ""), 2);
    assert!(err.contains("the sandbox signs nothing"), "{err}");
    let (_, err) = ends(&clresolve(&["a.eth", "--rpc", "http://127.0.0.1:1", "-o", "jws"], ""), 2);
    assert!(err.contains("clresolve signature key new"), "{err}");
    let (_, err) = ends(&clresolve(&["a.eth", "--rpc", "http://127.0.0.1:1", "-o", "jws", "--sign-key", &key], ""), 2);
    assert!(err.contains("sign.issuer"), "{err}");
    // A name that is none is judged, and its verdict is never fresh.
    let (out, err) =
        ends(&clresolve(&[&["no name", "--rpc", "http://127.0.0.1:1"], signing.as_slice()].concat(), ""), 1);
    assert!(out.is_empty() && err.contains("not fresh"), "{err}");
}

/// Runs an example verifier on a valid verdict and on each kind of invalid one.
fn try_verifier(interpreter: &Path, example: &str) {
    let desk = Desk::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/verdicts").join(example);
    let run = |jws: &str, expected: [&str; 5]| {
        fs::write(desk.path("v.jws"), format!("{jws}\n")).expect("written");
        let (file, keys) = (desk.path("v.jws"), desk.path("keys.json"));
        Command::new(interpreter).arg(&script).args([&file, &keys]).args(expected).output().expect("it runs")
    };
    let good = [NAME, "agent-cards/1.0.0", "eip155:1", "mainnet", ISSUER];
    let now = now();
    let jws = desk.signed(&verdict(now), now);
    assert_eq!(ends(&run(&jws, good), 0).0.trim(), "trusted");
    #[track_caller]
    fn is_refused(output: &Output) {
        let (out, err) = ends(output, 1);
        assert!(out.is_empty() && !err.is_empty(), "{out}{err}");
    }
    for wrong in 0..good.len() {
        let mut expected = good;
        expected[wrong] = "other";
        is_refused(&run(&jws, expected));
    }
    let old = now - 1000;
    is_refused(&run(&desk.signed(&verdict(old), old), good));
    is_refused(&run(&desk.signed(&strangers_word(now), now), good));
    is_refused(&run(&desk.signed(&verdict(now + 1000), now + 1000), good));
    // By a key that is not trusted, of another type, unsigned, and changed.
    is_refused(&run(&signed(&verdict(now), now), good));
    let [header, payload, signature] = jws.split('.').collect::<Vec<_>>().try_into().expect("three parts");
    for forged in [r#"{"alg":"none"}"#.to_owned(), with_type(header, "JWT")] {
        is_refused(&run(&format!("{}.{payload}.{signature}", BASE64URL.encode(forged)), good));
    }
    is_refused(&run(&format!("{header}.{payload}."), good));
    let changed = String::from_utf8(decoded(&jws, 1)).expect("JSON").replace("fresh\"", "cached\"");
    is_refused(&run(&format!("{header}.{}.{signature}", BASE64URL.encode(changed)), good));
}

fn with_type(header: &str, typ: &str) -> String {
    let mut header: Value = serde_json::from_slice(&BASE64URL.decode(header).expect("base64url")).expect("JSON");
    header["typ"] = typ.into();
    header.to_string()
}

#[test]
fn javascript_example_verifies_signed_verdicts() {
    if Command::new("node").arg("--version").output().is_err() {
        println!("skipped: there is no node");
        return;
    }
    try_verifier(Path::new("node"), "verify.mjs");
}

#[test]
fn python_example_verifies_signed_verdicts() {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: there is no python3");
        return;
    }
    let venv = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("signed-verdicts-venv");
    let python = venv.join("bin/python");
    let has_package = || {
        Command::new(&python).args(["-c", "import cryptography"]).output().is_ok_and(|output| output.status.success())
    };
    if !has_package() {
        let made = Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv).output().expect("it runs");
        ends(&made, 0);
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "cryptography>=44,<50"];
        ends(&Command::new(&python).args(install).output().expect("it runs"), 0);
    }
    try_verifier(&python, "verify.py");
}

#[test]
fn what_was_signed_a_moment_ago_is_not_from_the_future() {
    let verdict = verdict(NOW);
    let early = at(NOW).checked_sub(SignedDuration::from_secs(5)).expect("in range");
    assert!(verify_signed_verdict(&signed(&verdict, NOW), &keys(), &expected(), early).is_ok());
}

/// The identity for R and h·a for S: the plain equation holds for it, whatever is signed. Libraries differ on it, so
/// one verdict would be good for one verifier and bad for another.
#[test]
fn a_signature_whose_first_half_is_of_small_order_is_refused() {
    use alloy_primitives::{U256, U512};
    use ed25519_dalek::{Verifier as _, VerifyingKey};
    use sha2::{Digest as _, Sha512};

    let order = U512::from_limbs([0x5812_631a_5cf5_d3ed, 0x14de_f9de_a2f7_9cd6, 0, 0x1000_0000_0000_0000, 0, 0, 0, 0]);
    let (jws, public) = (signed(&verdict(NOW), NOW), ed25519_dalek::SigningKey::from_bytes(&seed()).verifying_key());
    let (text, _) = jws.rsplit_once('.').expect("a signature");
    let mut secret: [u8; 64] = Sha512::digest(seed()).into();
    (secret[0], secret[31]) = (secret[0] & 0xf8, secret[31] & 0x7f | 0x40);
    let mut point = [0; 32];
    point[0] = 1;
    let challenge = Sha512::new().chain_update(point).chain_update(public.as_bytes()).chain_update(text).finalize();
    let factor = U512::from_le_slice(&challenge).reduce_mod(order);
    let scalar = factor.mul_mod(U512::from_le_slice(&secret[..32]), order);
    let forged = [point, U256::from(scalar).to_le_bytes()].concat();

    let lenient = VerifyingKey::from_bytes(public.as_bytes()).expect("a key");
    let signature = ed25519_dalek::Signature::from_slice(&forged).expect("64 bytes");
    assert!(lenient.verify(text.as_bytes(), &signature).is_ok(), "the plain equation holds");
    assert_eq!(refused(&format!("{text}.{}", BASE64URL.encode(forged))), VerdictVerifyError::Jws(JwsError::Signature));
}

/// The world of the sandbox under another name, so that its verdicts can be signed, and the configuration that asks it.
struct Devnet {
    desk: Desk,
    _runtime: tokio::runtime::Runtime,
    _sandbox: Sandbox,
}

impl Devnet {
    fn start() -> Self {
        let runtime = tokio::runtime::Runtime::new().expect("threads can be had");
        let sandbox = runtime.block_on(Sandbox::start()).expect("the sandbox starts");
        let desk = Desk::new();
        let mut config = sandbox.config();
        config.chain.world = "devnet".to_owned();
        config.save(Path::new(&desk.path("devnet.toml"))).expect("written");
        Self { desk, _runtime: runtime, _sandbox: sandbox }
    }

    /// Judges under the rules that everybody has, so that the program knows them.
    fn with_builtin_rules(&self) {
        let path = self.desk.path("devnet.toml");
        let mut config =
            Config::default().with_layers([ConfigLayer::from_file(Path::new(&path)).expect("a layer")]).expect("good");
        config.rules.manifests.clear();
        config.rules.profile_files.clear();
        config.save(Path::new(&path)).expect("written");
    }

    /// Runs the program in this world, with or without the key.
    fn run(&self, arguments: &[&str], signing: bool) -> Output {
        let (config, key) = (self.desk.path("devnet.toml"), self.desk.path("k.pem"));
        let mut all = [arguments, &["--config", &config]].concat();
        if signing {
            all.extend(["--sign-key", &key, "--sign-issuer", ISSUER]);
        }
        clresolve(&all, "")
    }
}

#[test]
fn a_verdict_of_a_world_is_signed_and_checked_by_the_program() {
    let world = Devnet::start();
    let (jws, _) = ends(&world.run(&[NAME, "-o", "jws"], true), 0);
    let (config, keys) = (world.desk.path("devnet.toml"), world.desk.path("keys.json"));
    let check = ["verdict", "verify", "-", "--jwks", &keys, "--name", NAME, "--config", &config, "-o", "json"];
    let (out, err) = ends(&clresolve(&check, &jws), 0);
    let verdict: Verdict = serde_json::from_str(&out).expect("a verdict");
    assert_eq!((verdict.state.as_str(), verdict.anchor.map(|anchor| anchor.world)), ("trusted", Some("devnet".into())));
    assert!(err.contains(ISSUER), "{err}");
    // Several names, a line each; a bad one is signed too.
    let (out, _) = ends(&world.run(&[NAME, "card-byte-order-mark.eth", "-o", "jws"], true), 1);
    assert_eq!(out.lines().count(), 2, "{out}");
}

#[test]
fn the_verdict_in_a_bundle_is_signed_and_the_signature_tells_whose_it_is() {
    let world = Devnet::start();
    let (document, _) = ends(&world.run(&["bundle", "export", NAME], true), 0);
    let (unsigned, _) = ends(&world.run(&["bundle", "export", NAME], false), 0);
    let keys = read_trusted_keys(Path::new(&world.desk.path("keys.json"))).expect("keys");
    let read = |document: &str| ResolutionBundle::from_bytes(document.as_bytes()).expect("a bundle");
    let bundle = read(&document);
    let verified = bundle.verify_by_replay(&Sandbox::profiles()).expect("it holds together");
    assert!(bundle.has_signature() && !read(&unsigned).has_signature());
    fn check(
        bundle: &ResolutionBundle,
        keys: &Ed25519KeySet,
        issuer: Option<&str>,
        now: i64,
    ) -> Result<VerifiedVerdictSignature, BundleError> {
        let expected = ExpectedVerdict {
            profile: "agent-cards/1.0.0".to_owned(),
            chain: "eip155:31337".to_owned(),
            world: "devnet".to_owned(),
            issuer: issuer.map(str::to_owned),
            ..expected()
        };
        bundle.check_verdict_signature(keys, &expected, at(now))
    }
    let signature = check(&bundle, &keys, Some(ISSUER), now()).expect("the signature holds");
    assert_eq!((signature.issuer.as_str(), signature.is_expired), (ISSUER, false));
    let years_later = check(&bundle, &keys, None, now() + 100_000_000).expect("it still tells who said this");
    assert!(years_later.is_expired && years_later.expires == signature.expires);
    assert_eq!(verified.replay.verdict().freshness.fresh_until.to_string()[..19], signature.expires.to_string()[..19]);

    let class = |result: Result<VerifiedVerdictSignature, BundleError>| result.err().map(|error| error.error_class());
    assert_eq!(class(check(&read(&unsigned), &keys, None, now())), Some("bundle-unsigned"));
    for error in [
        check(&bundle, &self::keys(), None, now()),
        check(&bundle, &keys, Some("x"), now()),
        check(&bundle, &keys, None, now() - 1000),
        bundle.check_verdict_signature(&keys, &ExpectedVerdict { issuer: None, ..expected() }, at(now())),
    ] {
        assert_eq!(class(error), Some("bundle-signature-refused"));
    }
    // The signature of another verdict of the same signer about the same name.
    let mut other: Value = serde_json::from_str(&unsigned).expect("JSON");
    other["signed"] = serde_json::from_str::<Value>(&document).expect("JSON")["signed"].clone();
    let other = read(&resealed(other));
    assert_eq!(check(&other, &keys, None, now()), Err(BundleError::OtherSigned));

    // Of the sandbox nothing is signed, and a bundle of it with a signature is refused as it stands.
    let key = world.desk.path("k.pem");
    let (_, err) =
        ends(&clresolve(&["bundle", "export", "--sandbox", NAME, "--sign-key", &key, "--sign-issuer", ISSUER], ""), 2);
    assert!(err.contains("the sandbox signs nothing"), "{err}");
    let (sandbox, _) = ends(&clresolve(&["bundle", "export", "--sandbox", NAME], ""), 0);
    let mut signed: Value = serde_json::from_str(&sandbox).expect("JSON");
    signed["signed"] = json!("a.b.c");
    let refused = read(&resealed(signed)).verify_by_replay(&Sandbox::profiles()).expect_err("refused");
    assert_eq!(refused.error_class(), "bundle-inconsistent");
}

/// A bundle with a digest that fits.
fn resealed(mut bundle: Value) -> String {
    bundle.as_object_mut().expect("a map").remove("digest");
    bundle["digest"] = canonical_digest(&bundle).into();
    bundle.to_string()
}

#[test]
fn the_program_says_who_signed_a_bundle() {
    let world = Devnet::start();
    let path = world.desk.path("devnet.toml");
    world.with_builtin_rules();
    let (document, err) = ends(&world.run(&["bundle", "export", NAME], true), 0);
    assert!(err.is_empty(), "{err}");
    let verify = |further: &[&str]| {
        let output = clresolve(&[&["bundle", "verify", "-"], further].concat(), &document);
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let state = serde_json::from_str::<Value>(&document).expect("JSON")["verdict"]["state"].clone();
    let code = Some(if state == "trusted" { 0 } else { 1 });
    let (found, text) = verify(&[]);
    assert!(found == code && text.contains("signed: by somebody; not checked, --jwks does"), "{text}");
    let keys = world.desk.path("keys.json");
    let asked = ["--jwks", &keys, "--name", NAME, "--config", &path];
    let asked = |further: &[&str]| verify(&[&asked, further].concat());
    let (found, text) = asked(&["--issuer", ISSUER]);
    assert!(found == code && text.contains(&format!("signed by {ISSUER}, key ")), "{text}");
    assert!(text.contains("the signature is valid, expires "), "{text}");
    let (_, text) = asked(&["-o", "json"]);
    let check: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&check["signature"]["checked"], &check["signature"]["issuer"]), (&json!(true), &json!(ISSUER)));
    assert_eq!(check["signature"]["expired"], json!(false));
    let (found, text) = asked(&["--issuer", "x"]);
    assert!(found == Some(1) && text.starts_with("bundle-signature-refused: "), "{text}");
    assert_eq!(verify(&["--issuer", "x"]).0, Some(2), "an issuer means nothing without keys");
    assert_eq!(verify(&["--jwks", &keys]).0, Some(2), "of whom, its reader has to say");
    for (further, class) in [
        (&["--name", "other.eth"] as &[&str], "bundle-other-name: "),
        (&["--name", "other.eth", "--jwks", &keys, "--config", &path], "bundle-other-name: "),
        (&["--name", NAME, "--jwks", &keys], "bundle-signature-refused: "),
        (&["--name", NAME, "--jwks", &keys, "--config", &path, "--depth", "schemas"], "bundle-signature-refused: "),
    ] {
        let (found, text) = verify(further);
        assert!(found == Some(1) && text.starts_with(class), "{text}");
    }
}

#[test]
fn rules_that_a_configuration_adds_from_files_are_known_to_it() {
    let world = Devnet::start();
    let (path, rules) = (world.desk.path("devnet.toml"), world.desk.path("mine.json"));
    let builtin = include_str!("../../manifests/profiles/agent-cards-1.0.0.json");
    fs::write(&rules, builtin.replacen("\"agent-cards/1.0.0\"", "\"mine/1\"", 1)).expect("written");
    let mut config =
        Config::default().with_layers([ConfigLayer::from_file(Path::new(&path)).expect("a layer")]).expect("good");
    config.rules.manifests.clear();
    config.rules.profile_files = vec![rules.into()];
    config.rules.profile = "mine/1".to_owned();
    config.save(Path::new(&path)).expect("written");
    let (document, _) = ends(&world.run(&["bundle", "export", NAME], false), 0);
    let state = serde_json::from_str::<Value>(&document).expect("JSON")["verdict"]["state"].clone();
    let (_, text) = ends(&clresolve(&["bundle", "verify", "-"], &document), 1);
    assert!(text.starts_with("bundle-rules-unknown: "), "{text}");
    let known = clresolve(&["bundle", "verify", "-", "--config", &path], &document);
    let (out, err) = ends(&known, if state == "trusted" { 0 } else { 1 });
    assert!(out.contains("rules: mine/1 and its manifests"), "{out}{err}");
}
