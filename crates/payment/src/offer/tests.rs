use base64::Engine as _;
use clresolve_jose::{BASE64URL, Ed25519SigningKey};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::testing::{PAYEE, THIEF, jws_offer as jws, sign_hash, test_address, usdc_price};

const URL: &str = "https://api.example.org/summarize/v1";
const NOW: i64 = 1_767_225_600;

fn now() -> Timestamp {
    Timestamp::from_second(NOW).unwrap()
}

/// The only URL that an offer may be for.
fn at(url: &str) -> OfferResources<'_> {
    OfferResources::from_texts([url])
}

fn payload() -> Value {
    json!({
        "version": 1, "resourceUrl": URL, "scheme": "exact", "network": "eip155:84532", "amount": "10000",
        "asset": "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "payTo": test_address(PAYEE).to_string(),
        "validUntil": NOW + 60,
    })
}

fn with(member: &str, value: Value) -> Value {
    let mut payload = payload();
    payload[member] = value;
    payload
}

/// The payload, signed by EIP-712.
fn eip712(payload: Value, key: u8) -> Value {
    let offer: X402Offer = serde_json::from_value(payload.clone()).unwrap();
    json!({"format": "eip712", "acceptIndex": 0, "payload": payload, "signature": sign_hash(offer.signing_hash(), key)})
}

#[test]
fn offer_by_either_name_of_the_algorithm_is_proven() {
    let key = Ed25519SigningKey::generate().unwrap();
    for algorithm in ["EdDSA", "Ed25519"] {
        let offer = jws(&json!({"alg": algorithm, "kid": "k"}), &payload(), &key);
        assert!(matches!(proven(offer, &keys(&key)), Some(Ok(_))), "{algorithm}");
        let other = Ed25519SigningKey::generate().unwrap();
        let strange = jws(&json!({"alg": algorithm, "kid": "k"}), &payload(), &other);
        assert_eq!(proven(strange, &keys(&key)), unproven(), "{algorithm}");
    }
}

fn header() -> Value {
    json!({"alg": "EdDSA", "kid": "did:web:api.example.org#key-1"})
}

/// The keys of the payee and `ed25519`.
fn keys(ed25519: &Ed25519SigningKey) -> PublishedSigningKeys {
    let addresses = vec![test_address(9), test_address(PAYEE)];
    PublishedSigningKeys { addresses, ed25519: vec![ed25519.public_key().clone()], unread: None }
}

fn payee_only() -> PublishedSigningKeys {
    PublishedSigningKeys { addresses: vec![test_address(PAYEE)], ..PublishedSigningKeys::default() }
}

/// The result of one offer: its expiry, or why it proves nothing. Several objections share a code, so their messages
/// distinguish them.
fn proven(offer: Value, keys: &PublishedSigningKeys) -> Option<Result<Option<i64>, String>> {
    let proven = ParsedOffers::from_values(&[offer]).prove_price(&usdc_price(), &at(URL), keys, now())?;
    let why = |reason: Reason| match reason.code {
        ReasonCode::OfferInvalid => reason.message,
        code => code.slug().to_owned(),
    };
    Some(proven.map(|end| end.map(Timestamp::as_second)).map_err(|unproven| why(*unproven.reason)))
}

/// The result of [`proven`] for an invalid offer.
fn refused(objection: SignedOfferObjection) -> Option<Result<Option<i64>, String>> {
    Some(Err(objection.into_reason(0).message))
}

fn malformed() -> Option<Result<Option<i64>, String>> {
    refused(SignedOfferObjection::Form(String::new()))
}

fn unproven() -> Option<Result<Option<i64>, String>> {
    Some(Err(ReasonCode::OfferSignerUnproven.slug().to_owned()))
}

#[test]
fn an_offer_by_a_published_key_proves() {
    let key = Ed25519SigningKey::generate().unwrap();
    assert_eq!(proven(eip712(payload(), PAYEE), &keys(&key)), Some(Ok(Some(NOW + 60))));
    assert_eq!(proven(jws(&header(), &payload(), &key), &keys(&key)), Some(Ok(Some(NOW + 60))));
    let mut endless = payload();
    endless.as_object_mut().unwrap().remove("validUntil");
    assert_eq!(proven(eip712(endless.clone(), PAYEE), &keys(&key)), Some(Ok(None)));
    assert_eq!(proven(jws(&header(), &endless, &key), &keys(&key)), Some(Ok(None)));
    assert_eq!(proven(eip712(with("validUntil", 0.into()), PAYEE), &keys(&key)), Some(Ok(None)));
    let far = proven(eip712(with("validUntil", u64::MAX.into()), PAYEE), &keys(&key));
    assert_eq!(far, Some(Ok(Some(Timestamp::MAX.as_second()))));
}

#[test]
fn an_offer_by_a_key_that_the_name_does_not_publish_proves_nothing() {
    let (key, other) = (Ed25519SigningKey::generate().unwrap(), Ed25519SigningKey::generate().unwrap());
    // The thief's offer pays the same payee as the entry, but is signed by the thief.
    assert_eq!(proven(eip712(payload(), THIEF), &keys(&key)), unproven());
    assert_eq!(proven(jws(&header(), &payload(), &other), &keys(&key)), unproven());
    assert_eq!(proven(eip712(payload(), PAYEE), &PublishedSigningKeys::default()), unproven());
    assert_eq!(proven(jws(&header(), &payload(), &key), &payee_only()), unproven());
    // A key in the offer itself is ignored.
    let mut brought = header();
    brought["jwk"] = other.public_key().to_jwk();
    brought["kid"] = format!("did:jwk:{}", other.public_key().thumbprint()).into();
    assert_eq!(proven(jws(&brought, &payload(), &other), &keys(&key)), unproven());
    assert_eq!(proven(jws(&brought, &payload(), &key), &keys(&key)), Some(Ok(Some(NOW + 60))));
}

#[test]
fn the_thief_cannot_offer_for_himself() {
    let key = Ed25519SigningKey::generate().unwrap();
    let stolen = ExactPrice { pay_to: test_address(THIEF), ..usdc_price() };
    let own = eip712(with("payTo", test_address(THIEF).to_string().into()), THIEF);
    let reason = ParsedOffers::from_values(&[own])
        .prove_price(&stolen, &at(URL), &keys(&key), now())
        .unwrap()
        .unwrap_err()
        .reason;
    assert_eq!(reason.code, ReasonCode::OfferSignerUnproven);
    assert_eq!(reason.place.as_deref(), Some("/extensions/offer-receipt/info/offers/0"));
}

#[test]
fn an_offer_of_other_terms_proves_nothing() {
    let key = Ed25519SigningKey::generate().unwrap();
    let others = [
        ("payTo", json!(test_address(THIEF).to_string())),
        ("payTo", json!("summarizeagent.eth")),
        ("amount", json!("9999")),
        ("amount", json!("010000")),
        ("resourceUrl", json!("https://api.example.org/summarize/v2")),
        ("resourceUrl", json!("https://api.example.net/summarize/v1")),
        ("resourceUrl", json!("https://аpi.example.org/summarize/v1")),
        ("resourceUrl", json!("")),
    ];
    for (member, value) in others {
        let payload = with(member, value);
        assert_eq!(
            proven(eip712(payload.clone(), PAYEE), &keys(&key)),
            refused(SignedOfferObjection::Terms),
            "{payload}"
        );
        assert_eq!(
            proven(jws(&header(), &payload, &key), &keys(&key)),
            refused(SignedOfferObjection::Terms),
            "{payload}"
        );
    }
}

#[test]
fn an_offer_of_another_way_to_pay_is_not_about_the_entry() {
    let key = Ed25519SigningKey::generate().unwrap();
    let others = [
        ("scheme", json!("upto")),
        ("network", json!("eip155:8453")),
        ("asset", json!(test_address(THIEF).to_string())),
        ("asset", json!("USDC")),
    ];
    for (member, value) in others {
        let payload = with(member, value);
        assert_eq!(proven(eip712(payload.clone(), PAYEE), &keys(&key)), None, "{payload}");
        assert_eq!(proven(jws(&header(), &payload, &key), &keys(&key)), None, "{payload}");
    }
    assert_eq!(ParsedOffers::from_values(&[]).prove_price(&usdc_price(), &at(URL), &keys(&key), now()), None);
}

#[test]
fn addresses_and_urls_are_compared_by_what_they_are() {
    let key = Ed25519SigningKey::generate().unwrap();
    let lower = with("payTo", test_address(PAYEE).to_string().to_lowercase().into());
    assert!(matches!(proven(eip712(lower, PAYEE), &keys(&key)), Some(Ok(_))));
    let spelled = with("resourceUrl", "HTTPS://API.example.org:443/a/../summarize/v1".into());
    assert!(matches!(proven(eip712(spelled, PAYEE), &keys(&key)), Some(Ok(_))));
    let is_same = |resource: &str, answered: &str| {
        let offers = ParsedOffers::from_values(&[eip712(with("resourceUrl", resource.into()), PAYEE)]);
        offers.prove_price(&usdc_price(), &at(answered), &keys(&key), now()).is_some_and(|proven| proven.is_ok())
    };
    assert!(is_same("mcp://tool/x", "mcp://tool/x") && is_same("no url", "no url"));
    assert!(!is_same("https://a.example/x", "https://a.example/x?y") && !is_same("no url", "none"));
}

/// Sellers sign the resource in their terms or the URL that was requested.
#[test]
fn an_offer_is_for_one_of_the_resources() {
    let key = Ed25519SigningKey::generate().unwrap();
    let is_proven = |resources: &[&str]| {
        let offers = ParsedOffers::from_values(&[eip712(payload(), PAYEE)]);
        let resources = OfferResources::from_texts(resources.iter().copied());
        offers.prove_price(&usdc_price(), &resources, &keys(&key), now()).is_some_and(|proven| proven.is_ok())
    };
    assert!(is_proven(&[URL]) && is_proven(&["https://api.example.org/?q=1", URL]));
    assert!(!is_proven(&[]) && !is_proven(&["", "mcp://tool/x"]));
}

#[test]
fn an_offer_ends_with_its_last_second() {
    let key = Ed25519SigningKey::generate().unwrap();
    for (end, expected) in [
        (NOW + 1, Some(Ok(Some(NOW + 1)))),
        (NOW, refused(SignedOfferObjection::Ended)),
        (NOW - 1, refused(SignedOfferObjection::Ended)),
        (1, refused(SignedOfferObjection::Ended)),
    ] {
        let payload = with("validUntil", end.into());
        assert_eq!(proven(eip712(payload.clone(), PAYEE), &keys(&key)), expected);
        assert_eq!(proven(jws(&header(), &payload, &key), &keys(&key)), expected);
    }
}

#[test]
fn what_is_signed_is_what_is_stated() {
    let key = Ed25519SigningKey::generate().unwrap();
    let signature = eip712(with("amount", "1".into()), PAYEE)["signature"].clone();
    let changed = json!({"format": "eip712", "payload": payload(), "signature": signature});
    // The signature recovers to an arbitrary address.
    assert_eq!(proven(changed, &keys(&key)), unproven());
    let compact = |offer: &Value| offer["signature"].as_str().unwrap().to_owned();
    let (cheap, dear) = (jws(&header(), &with("amount", "1".into()), &key), jws(&header(), &payload(), &key));
    let (cheap, dear) = (compact(&cheap), compact(&dear));
    let (signature, payload) = (cheap.rsplit_once('.').unwrap().1, dear.rsplit_once('.').unwrap().0);
    let changed = json!({"format": "jws", "signature": format!("{payload}.{signature}")});
    assert_eq!(proven(changed, &keys(&key)), unproven());
}

#[test]
fn a_signature_that_no_key_makes_is_invalid() {
    let key = Ed25519SigningKey::generate().unwrap();
    let good = eip712(payload(), PAYEE);
    let digits = &good["signature"].as_str().unwrap()[2..];
    let high = {
        let signature = alloy_primitives::Signature::from_raw(&alloy_primitives::hex::decode(digits).unwrap()).unwrap();
        // The second signature that recovers to the same key.
        let order: U256 = "0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141".parse().unwrap();
        let other = alloy_primitives::Signature::new(signature.r(), order - signature.s(), !signature.v());
        alloy_primitives::hex::encode_prefixed(other.as_bytes())
    };
    let parity = |v: &str| format!("0x{}{v}", &digits[..128]);
    let broken = [
        String::new(),
        "0x".to_owned() + &"00".repeat(65),
        "0x".to_owned() + &"ff".repeat(65),
        "0x".to_owned() + &"zz".repeat(65),
        digits.to_owned(),
        parity("00"),
        parity("1d"),
        parity("2a"),
        high,
    ];
    for signature in broken {
        let mut offer = good.clone();
        offer["signature"] = signature.clone().into();
        assert_eq!(proven(offer, &keys(&key)), refused(SignedOfferObjection::Signature), "{signature}");
    }
    let mut contract = good;
    contract["signature"] = format!("0x{}", "11".repeat(200)).into();
    assert_eq!(proven(contract, &keys(&key)), unproven(), "only the chain can check it");
    for header in [json!({"alg": "none", "kid": "k"}), json!({"alg": "EdDSA", "kid": "k"})] {
        let mut unsigned = jws(&header, &payload(), &key);
        let signed = unsigned["signature"].as_str().unwrap().rsplit_once('.').unwrap().0.to_owned();
        unsigned["signature"] = format!("{signed}.").into();
        assert_eq!(proven(unsigned, &keys(&key)), refused(SignedOfferObjection::Signature), "{header}");
    }
    assert_eq!(
        proven(jws(&json!({"alg": "none", "kid": "k"}), &payload(), &key), &keys(&key)),
        refused(SignedOfferObjection::Signature)
    );
}

/// It may be unknown which key a name publishes. A signature that no published key can have made is a third party's
/// regardless.
#[test]
fn an_offer_is_open_where_its_signer_could_not_be_found_out() {
    let key = Ed25519SigningKey::generate().unwrap();
    let reason = Reason::new(ReasonCode::RecordPending).observed("changed: cl.sig.pub");
    let unread = PublishedSigningKeys { unread: Some(Box::new(reason.clone())), ..payee_only() };
    let open = |offers: &[Value], keys: &PublishedSigningKeys| {
        let proven = ParsedOffers::from_values(offers).prove_price(&usdc_price(), &at(URL), keys, now());
        let unproven = proven.unwrap().expect_err("it proves nothing");
        (unproven.is_open, unproven.reason.code)
    };
    let by_jws = jws(&header(), &payload(), &key);
    let by_stranger = eip712(payload(), THIEF);
    let mut by_contract = by_stranger.clone();
    by_contract["signature"] = format!("0x{}", "11".repeat(200)).into();
    assert_eq!(open(std::slice::from_ref(&by_jws), &unread), (true, ReasonCode::RecordPending));
    assert_eq!(open(&[by_stranger.clone(), by_jws.clone()], &unread), (true, ReasonCode::RecordPending));
    assert_eq!(
        open(&[by_contract], &unread),
        (false, ReasonCode::OfferSignerUnproven),
        "a thief writes any bytes there"
    );
    assert_eq!(open(&[by_stranger], &unread), (false, ReasonCode::OfferSignerUnproven));
    assert_eq!(open(&[by_jws], &payee_only()), (false, ReasonCode::OfferSignerUnproven));
    let other = jws(&json!({"alg": "ES256K", "kid": "k"}), &payload(), &key);
    assert_eq!(open(&[other], &unread), (false, ReasonCode::OfferSignerUnproven));
    let mut known = unread;
    known.ed25519.push(key.public_key().clone());
    assert!(proven(jws(&header(), &payload(), &key), &known).unwrap().is_ok());
}

#[test]
fn other_algorithms_prove_nothing() {
    let key = Ed25519SigningKey::generate().unwrap();
    for algorithm in ["ES256K", "HS256", "eddsa", "None", ""] {
        let header = json!({"alg": algorithm, "kid": "k"});
        assert_eq!(proven(jws(&header, &payload(), &key), &keys(&key)), unproven(), "{algorithm}");
    }
}

#[test]
fn an_offer_has_one_form() {
    let key = Ed25519SigningKey::generate().unwrap();
    let good = || eip712(payload(), PAYEE);
    let changed = |member: &str, value: Value| {
        let mut offer = good();
        offer[member] = value;
        offer
    };
    let mut listed = payload();
    listed["amount"] = json!(["10000"]);
    let values = json!([1, URL, "exact", "eip155:84532", "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "0x", "1", 0]);
    let both = {
        let mut offer = jws(&header(), &payload(), &key);
        offer["payload"] = payload();
        offer
    };
    let critical = json!({"alg": "EdDSA", "kid": "k", "crit": ["b64"], "b64": false});
    let broken = [
        json!(null),
        json!([]),
        json!("x"),
        json!(["eip712", payload(), "0x"]),
        changed("format", "EIP712".into()),
        changed("format", "jws".into()),
        changed("payload", Value::Null),
        changed("payload", values),
        changed("payload", listed),
        changed("payload", with("version", 2.into())),
        changed("payload", with("version", "1".into())),
        changed("payload", with("validUntil", 1.5.into())),
        changed("payload", with("validUntil", (-1).into())),
        changed("payload", with("more", 1.into())),
        changed("signature", 1.into()),
        changed("signature", format!("0x{}", "1".repeat(crate::artifact::MAX_ARTIFACT_BYTES)).into()),
        json!({"format": "eip712", "signature": "0x"}),
        json!({"format": "jws", "signature": "a.b"}),
        json!({"format": "jws", "signature": "e30.e30.e30.e30"}),
        json!({"format": "jws", "signature": "e30=.e30.e30"}),
        both,
        jws(&critical, &payload(), &key),
        jws(&json!({"alg": "EdDSA"}), &payload(), &key),
        jws(&json!({"kid": "k"}), &payload(), &key),
        jws(&json!([]), &payload(), &key),
        jws(&header(), &json!([]), &key),
        jws(&header(), &with("more", 1.into()), &key),
    ];
    for offer in broken {
        assert_eq!(proven(offer.clone(), &keys(&key)), malformed(), "{offer}");
    }
    let twice = r#"{"amount":"1","amount":"10000"}"#;
    let signed = format!("{}.{}", BASE64URL.encode(header().to_string()), BASE64URL.encode(twice));
    let compact = format!("{signed}.{}", BASE64URL.encode(key.sign(signed.as_bytes())));
    assert_eq!(proven(json!({"format": "jws", "signature": compact}), &keys(&key)), malformed());
}

#[test]
fn one_offer_that_holds_is_enough_and_else_the_weakest_objection_counts() {
    let keys = payee_only();
    let good = eip712(payload(), PAYEE);
    let stranger = eip712(payload(), THIEF);
    let ended = eip712(with("validUntil", NOW.into()), PAYEE);
    let other = eip712(with("amount", "1".into()), PAYEE);
    let elsewhere = eip712(with("network", "eip155:1".into()), PAYEE);
    let proven = |offers: &[&Value]| {
        let offers: Vec<Value> = offers.iter().copied().cloned().collect();
        let proven = ParsedOffers::from_values(&offers).prove_price(&usdc_price(), &at(URL), &keys, now()).unwrap();
        proven.map(|_| ()).map_err(|unproven| (unproven.reason.code, unproven.reason.place.unwrap()))
    };
    let place = |index: usize| format!("/extensions/offer-receipt/info/offers/{index}");
    assert_eq!(proven(&[&other, &json!(1), &elsewhere, &ended, &stranger, &good]), Ok(()));
    assert_eq!(proven(&[&other, &ended, &stranger]), Err((ReasonCode::OfferSignerUnproven, place(2))));
    assert_eq!(proven(&[&json!(1), &other, &ended, &other]), Err((ReasonCode::OfferInvalid, place(2))));
    assert_eq!(proven(&[&json!(1), &elsewhere, &other]), Err((ReasonCode::OfferInvalid, place(2))));
    assert_eq!(proven(&[&elsewhere, &json!(1)]), Err((ReasonCode::OfferInvalid, place(1))));
}

#[test]
fn so_many_offers_and_signatures_are_looked_at() {
    let keys = payee_only();
    let (good, stranger) = (eip712(payload(), PAYEE), eip712(payload(), THIEF));
    let elsewhere = eip712(with("network", "eip155:1".into()), PAYEE);
    let behind = |offer: &Value, count: usize| {
        let mut offers = vec![offer.clone(); count];
        offers.push(good.clone());
        ParsedOffers::from_values(&offers)
            .prove_price(&usdc_price(), &at(URL), &keys, now())
            .is_some_and(|proven| proven.is_ok())
    };
    assert!(behind(&elsewhere, MAX_OFFERS - 1) && !behind(&elsewhere, MAX_OFFERS));
    assert!(behind(&stranger, MAX_SIGNATURES - 1) && !behind(&stranger, MAX_SIGNATURES));
}

/// The case of hexadecimal digits, white space and unsigned members may change.
#[test]
fn no_changed_byte_of_an_offer_proves_anything_else() {
    let key = Ed25519SigningKey::generate().unwrap();
    let keys = keys(&key);
    let offers = [eip712(payload(), PAYEE), jws(&header(), &payload(), &key)];
    let is_honest = |offer: &Value| offer["payload"] == payload() || offer["signature"] == offers[1]["signature"];
    for honest in &offers {
        assert!(matches!(proven(honest.clone(), &keys), Some(Ok(_))));
        let text = honest.to_string().into_bytes();
        for at in 0..text.len() {
            let mut changed = text.clone();
            for change in (1..=u8::MAX).filter(|change| change.is_power_of_two() || change % 31 == 0) {
                changed[at] = text[at] ^ change;
                let Ok(offer) = serde_json::from_slice::<Value>(&changed) else { continue };
                let is_proven = matches!(proven(offer.clone(), &keys), Some(Ok(_)));
                assert!(!is_proven || is_honest(&offer), "byte {at}: {offer}");
            }
        }
    }
}

proptest! {
    #[test]
    fn nothing_makes_reading_panic(format in "eip712|jws|\\PC{0,4}", signature in "0x[0-9a-f]{130}|\\PC{0,40}") {
        let offer = json!({"format": format, "signature": signature, "payload": payload()});
        prop_assert!(!matches!(proven(offer, &payee_only()), Some(Ok(_))));
        let offer = json!({"format": format, "signature": signature});
        prop_assert!(!matches!(proven(offer, &payee_only()), Some(Ok(_))));
    }
}
