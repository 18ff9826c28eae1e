//! Published and constructed x402 messages, each with its expected result.
//!
//! `CLRESOLVE_X402` specifies the folder that contains them below `vectors`. If it is unset, the tests report this and
//! pass. Every file is tested, so new files of the same form need no code.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clresolve_core::reason::ReasonCode;
use clresolve_jose::Ed25519PublicKey;
use clresolve_payment::artifact::{ArtifactSignerMatch, PublishedSigningKeys, SignedArtifact};
use clresolve_payment::asset::{AssetId, AssetProperties};
use clresolve_payment::offer::{OfferProofError, OfferResources, ParsedOffers, X402Offer};
use clresolve_payment::receipt::X402Receipt;
use clresolve_payment::signed::PaymentHeader;
use clresolve_payment::terms::{ExactPrice, PaymentOption, PaymentTerms, SellerHttpReply};
use jiff::Timestamp;
use serde_json::{Value, json};

/// The payee of the vectors: the second development account of anvil.
const PAYEE: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

/// The Ed25519 key of the vectors, from the seed of 32 sevens, as the `x` of a JSON Web Key.
const KEY: &str = "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw";

/// Replies that are rejected when they are parsed, each with its code. All others are parsed, whatever the decision is.
const REFUSED: [(&str, ReasonCode); 14] = [
    ("accepts-empty", ReasonCode::PaymentTermsMalformed),
    ("amount-decimal", ReasonCode::PaymentTermsMalformed),
    ("amount-exponent", ReasonCode::PaymentTermsMalformed),
    ("amount-leading-zero", ReasonCode::PaymentTermsMalformed),
    ("asset-symbol", ReasonCode::PaymentTermsMalformed),
    ("header-and-body-differ", ReasonCode::PaymentTermsAmbiguous),
    ("network-case", ReasonCode::PaymentTermsMalformed),
    ("network-v1-name-in-v2", ReasonCode::PaymentTermsMalformed),
    ("payto-bad-checksum", ReasonCode::PaymentTermsMalformed),
    ("payto-ens-name", ReasonCode::PaymentTermsMalformed),
    ("scheme-upto", ReasonCode::PaymentSchemeUnchecked),
    ("status-200-with-header", ReasonCode::PaymentTermsMalformed),
    ("transfer-method-erc7710", ReasonCode::PaymentSchemeUnchecked),
    ("two-headers", ReasonCode::PaymentTermsAmbiguous),
];

#[test]
fn x402_vectors_of_replies_are_read_or_refused() {
    for (name, vector) in vectors("payment-required").unwrap_or_default() {
        let price =
            PaymentTerms::from_reply(&reply(&vector["response"])).map(|terms| Some(selected(terms, &vector)?.price));
        if vector["honest"] == true {
            assert!(matches!(price, Ok(Some(Ok(_)))), "{name}: {price:?}");
        }
        let code = price.map_or_else(|reason| Some(reason.code), |price| Some(price?.err()?.code));
        if let Some((_, expected)) = REFUSED.iter().find(|(known, _)| *known == name) {
            assert_eq!(code, Some(*expected), "{name}");
        }
    }
}

/// The entry that the client chose. `None` if there is no such entry.
fn selected(terms: PaymentTerms, vector: &Value) -> Option<PaymentOption> {
    let index = vector["selected_index"].as_u64().unwrap_or_default() as usize;
    terms.entries.into_iter().nth(index)
}

fn reply(response: &Value) -> SellerHttpReply {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let headers = match &response["headers"] {
        Value::Array(pairs) => pairs.iter().map(|pair| (text(&pair[0]), text(&pair[1]))).collect(),
        members => {
            let members = members.as_object().expect("headers are an object or pairs");
            members.iter().map(|(name, value)| (name.clone(), text(value))).collect()
        }
    };
    let body = match response["body_base64"].as_str() {
        Some(encoded) => STANDARD.decode(encoded).expect("base64"),
        None => response["body"].as_str().unwrap_or_default().as_bytes().to_vec(),
    };
    let status = response["status"].as_u64().and_then(|status| status.try_into().ok()).expect("a status");
    SellerHttpReply { status, headers, body }
}

#[test]
fn x402_vectors_of_payment_headers_get_their_result() {
    let Some(vectors) = vectors("payment-signature") else { return };
    headers_get_their_result(&vectors);
}

fn headers_get_their_result(vectors: &[(String, Value)]) {
    // A bad header must not fail because of its age alone, so it is checked at the time at which a good one was made.
    let good = vectors.iter().find(|(_, vector)| vector["matches_terms"] == true);
    let made = good.map(|(_, vector)| times(vector)[0]).expect("one of them matches");
    for (name, vector) in vectors {
        let matches = vector["matches_terms"].as_bool().expect("it says whether it matches");
        let times = if matches { times(vector).to_vec() } else { vec![made] };
        let Some((terms, entry, price)) = demanded(vector) else {
            assert!(!matches, "{name}: what it demands is no price");
            continue;
        };
        let id = AssetId { network: price.network.clone(), address: price.asset };
        let asset = AssetProperties::find_known(&id).unwrap_or_else(|| stated(&price));
        let header = vector["header"].as_str().expect("a header");
        for now in times {
            let read = PaymentHeader::parse_for_terms(header, &terms);
            let result = read.and_then(|header| header.check_against_price(&entry, &price, &asset, at(now)));
            assert_eq!(result.is_ok(), matches, "{name}: {result:?}");
            let code = result.err().map(|reason| reason.code);
            assert!(code.is_none_or(|code| code == ReasonCode::PaymentSignatureMismatch), "{name}: {code:?}");
        }
    }
}

/// Payments made by the SDKs, in every form of a vector: with and without the accepted entry, without the asset's
/// domain, and signed for another payee than stated.
#[test]
fn payment_headers_of_every_form_get_their_result() {
    let payments: Vec<Value> = serde_json::from_str(include_str!("../src/signed/payments.json")).expect("JSON");
    let vector = |name: &str, payment: &Value, matches: bool| {
        let header = STANDARD.encode(payment.to_string());
        (name.to_owned(), json!({"header": header, "decoded": payment, "matches_terms": matches}))
    };
    let [eip3009, permit2, v1] = payments.as_slice() else { panic!("three payments") };
    let mut unnamed = permit2.clone();
    unnamed["accepted"]["extra"] = json!({"assetTransferMethod": "permit2"});
    let mut v1_for_thief = v1.clone();
    v1_for_thief["payload"]["authorization"]["to"] = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC".into();
    let mut permit2_for_thief = permit2.clone();
    permit2_for_thief["payload"]["permit2Authorization"]["witness"]["to"] =
        "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC".into();
    let mut undecoded = vector("a header alone", v1, true);
    undecoded.1.as_object_mut().expect("a vector").remove("decoded");
    let mut listed = vector("terms of version 1", v1, true);
    listed.1["paymentRequired"] = demand_of_v1(v1);
    headers_get_their_result(&[
        vector("EIP-3009", eip3009, true),
        vector("Permit2", permit2, true),
        vector("Permit2 without a domain", &unnamed, true),
        vector("version 1", v1, true),
        undecoded,
        listed,
        vector("version 1 for the thief", &v1_for_thief, false),
        vector("Permit2 for the thief", &permit2_for_thief, false),
        vector("no payment", &json!({"x402Version": 2}), false),
    ]);
}

/// The contents of a vector's header: `decoded`, else the header itself.
fn decoded(vector: &Value) -> Value {
    vector.get("decoded").cloned().unwrap_or_else(|| {
        let header = STANDARD.decode(vector["header"].as_str().expect("a header")).expect("base64");
        serde_json::from_slice(&header).expect("JSON")
    })
}

/// The demand that a payment answers, with its entry and price: `paymentRequired`, else the entry that the header
/// claims to accept. A version 1 header contains neither.
fn demanded(vector: &Value) -> Option<(PaymentTerms, Value, ExactPrice)> {
    let payment = decoded(vector);
    let terms = match vector.get("paymentRequired") {
        Some(terms) => terms.clone(),
        None if payment["x402Version"] == 1 => demand_of_v1(&payment),
        None => {
            let extensions = payment.get("extensions").cloned().unwrap_or_else(|| json!({}));
            let resource = payment.get("resource").cloned().unwrap_or_else(|| json!({"url": ""}));
            json!({"x402Version": 2, "resource": resource, "accepts": [payment["accepted"]], "extensions": extensions})
        }
    };
    let terms = PaymentTerms::from_value(&terms).ok()?;
    let PaymentOption { json, price, .. } = selected(terms.clone(), vector)?;
    Some((terms, json, price.ok()?))
}

/// The demand that a version 1 payment answers: its amount in USDC on its network, to the payee of the vectors.
fn demand_of_v1(payment: &Value) -> Value {
    let (asset, name) = match payment["network"].as_str() {
        Some("base") => ("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "USD Coin"),
        _ => ("0x036CbD53842c5426634e7929541eC2318f3dCF7e", "USDC"),
    };
    let amount = &payment["payload"]["authorization"]["value"];
    json!({"x402Version": 1, "accepts": [{
        "scheme": "exact", "network": payment["network"], "maxAmountRequired": amount, "resource": "", "payTo": PAYEE,
        "maxTimeoutSeconds": 60, "asset": asset, "extra": {"name": name, "version": "2"},
    }]})
}

/// The asset as the seller states it. With Permit2 the domain may be missing, and no part of it is signed.
fn stated(price: &ExactPrice) -> AssetProperties {
    let stated = |text: &Option<String>| text.clone().unwrap_or_default().into();
    AssetProperties {
        name: stated(&price.domain.name),
        version: stated(&price.domain.version),
        decimals: 6,
        symbol: "".into(),
    }
}

/// The time at which an honest payment was made, and its last valid second.
fn times(vector: &Value) -> [i64; 2] {
    let payload = &decoded(vector)["payload"];
    let ends = [&payload["authorization"]["validBefore"], &payload["permit2Authorization"]["deadline"]];
    let end: i64 = ends.into_iter().find_map(Value::as_str).and_then(|end| end.parse().ok()).expect("it has an end");
    let (_, _, price) = demanded(vector).expect("what it demands is a price");
    [end - i64::try_from(price.max_timeout_seconds).expect("a short time"), end - 1]
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).expect("a time that can be written")
}

#[test]
fn x402_vectors_of_offers_and_receipts_get_their_result() {
    for (name, vector) in vectors("offer-receipt").unwrap_or_default() {
        let (artifact, expect) = (&vector["artifact"], &vector["expect"]);
        let published = published(artifact, expect);
        if let Some(expected) = expect["signature_valid"].as_bool() {
            // For offers, only EdDSA signatures are checked, since no other kind of JWS key can be published.
            let is_checked = expect["alg"].as_str().is_none_or(|algorithm| ["EdDSA", "Ed25519"].contains(&algorithm));
            assert_eq!(holds(artifact, &published), expected && is_checked, "{name}");
            assert!(!holds(artifact, &PublishedSigningKeys::default()), "{name}: by a key that it brings itself");
        }
        if let Some(expected) = expect["signature_valid_for_payee"].as_bool() {
            let payee = PublishedSigningKeys { addresses: vec![address(PAYEE)], ..PublishedSigningKeys::default() };
            assert_eq!(holds(artifact, &payee), expected, "{name}");
        }
        if let Some(expected) = expect["signer_is_payTo"].as_bool() {
            let pay_to = artifact["payload"]["payTo"].as_str().map(address).expect("an offer");
            assert_eq!(published.addresses == [pay_to], expected, "{name}");
        }
        if let Ok(offer) = SignedArtifact::<X402Offer>::from_value(artifact)
            && let Some(claim) = Claim::of(&payload(artifact))
        {
            let is_proven = claim.proven(artifact, &published).is_some_and(|proven| proven.is_ok());
            assert_eq!(is_proven, offer.find_signer(&published) == ArtifactSignerMatch::Published, "{name}");
        }
    }
}

/// The keys in a vector or its JWS, or the makers' keys if there are none.
fn published(artifact: &Value, expect: &Value) -> PublishedSigningKeys {
    let jws = artifact["signature"].as_str().filter(|_| artifact["format"] == "jws");
    let header = jws.and_then(|jws| part(jws, 0)).unwrap_or_default();
    let key = expect["public_jwk"]["x"].as_str().or_else(|| header["jwk"]["x"].as_str()).unwrap_or(KEY);
    PublishedSigningKeys {
        addresses: vec![address(expect["signer"].as_str().unwrap_or(PAYEE))],
        ed25519: Ed25519PublicKey::from_jwk_x(key).into_iter().collect(),
        unread: None,
    }
}

/// The header or payload of a JWS.
fn part(jws: &str, index: usize) -> Option<Value> {
    serde_json::from_slice(&clresolve_jose::BASE64URL.decode(jws.split('.').nth(index)?).ok()?).ok()
}

/// Whether an offer or a receipt is signed by one of these keys.
fn holds(artifact: &Value, keys: &PublishedSigningKeys) -> bool {
    let offer = SignedArtifact::<X402Offer>::from_value(artifact).map(|offer| offer.find_signer(keys));
    let signed =
        offer.or_else(|_| SignedArtifact::<X402Receipt>::from_value(artifact).map(|receipt| receipt.find_signer(keys)));
    signed == Ok(ArtifactSignerMatch::Published)
}

/// The price that an offer itself states.
struct Claim {
    price: ExactPrice,
    url: String,
    /// One second before the offer expires.
    now: Timestamp,
}

impl Claim {
    /// `None` if the payload states no price.
    fn of(payload: &Value) -> Option<Self> {
        let mut entry = payload.clone();
        entry["maxTimeoutSeconds"] = 60.into();
        let url = payload["resourceUrl"].as_str()?.to_owned();
        let terms = json!({"x402Version": 2, "resource": {"url": url}, "accepts": [entry]});
        let price = PaymentTerms::from_value(&terms).ok()?.entries.remove(0).price.ok()?;
        let now = at(payload["validUntil"].as_i64().unwrap_or(1_767_225_600) - 1);
        Some(Self { price, url, now })
    }

    /// Whether an offer proves it.
    fn proven(&self, offer: &Value, keys: &PublishedSigningKeys) -> Option<Result<Option<Timestamp>, OfferProofError>> {
        let resources = OfferResources::from_texts([self.url.as_str()]);
        ParsedOffers::from_values(std::slice::from_ref(offer)).prove_price(&self.price, &resources, keys, self.now)
    }
}

/// With any byte of an offer changed, it proves the price only if its contents and signature equal those of a good
/// offer. Changes to unsigned members never change the result, whether the offer is good or bad.
#[test]
fn x402_vectors_of_offers_withstand_every_changed_byte() {
    let Some(vectors) = vectors("offer-receipt") else { return };
    let offers: Vec<_> = vectors.iter().filter(|(name, _)| name.starts_with("offer")).map(Changeable::of).collect();
    let good: Vec<_> = offers.iter().filter(|offer| offer.is_good()).map(|offer| signed(&offer.offer)).collect();
    assert!(good.len() > 1 && good.len() + 1 < offers.len(), "{} of {} are good", good.len(), offers.len());
    for offer in &offers {
        let mut unsigned = 0;
        for changed in offer.changed() {
            let found = offer.claim.proven(&changed, &offer.keys);
            let says = signed(&changed);
            assert!(!matches!(found, Some(Ok(_))) || good.contains(&says), "{}: {changed}", offer.name);
            if says == signed(&offer.offer) {
                assert_eq!(found, offer.found, "{}: {changed}", offer.name);
                unsigned += 1;
            }
        }
        assert!(unsigned > 0, "{}", offer.name);
    }
}

/// An offer with an unsigned member, its claim, and the result for that claim.
struct Changeable {
    name: String,
    offer: Value,
    keys: PublishedSigningKeys,
    claim: Claim,
    found: Option<Result<Option<Timestamp>, OfferProofError>>,
}

impl Changeable {
    fn of((name, vector): &(String, Value)) -> Self {
        let mut offer = vector["artifact"].clone();
        offer["note"] = "of nobody".into();
        let keys = published(&offer, &vector["expect"]);
        let claim = Claim::of(&payload(&offer)).unwrap_or_else(|| panic!("{name}: no price"));
        let found = claim.proven(&offer, &keys);
        Self { name: name.clone(), offer, keys, claim, found }
    }

    fn is_good(&self) -> bool {
        matches!(self.found, Some(Ok(_)))
    }

    /// All single-byte changes that leave valid JSON.
    fn changed(&self) -> impl Iterator<Item = Value> {
        let text = self.offer.to_string().into_bytes();
        let each = (0..text.len()).flat_map(|at| (0..=u8::MAX).map(move |byte| (at, byte)));
        each.filter_map(move |(at, byte)| {
            let mut changed = text.clone();
            changed[at] = byte;
            serde_json::from_slice(&changed).ok().filter(|_| changed != text)
        })
    }
}

/// The contents of an offer, and its signature. The case of hexadecimal digits is ignored.
fn signed(offer: &Value) -> Value {
    let signature = match offer["signature"].as_str() {
        Some(digits) if digits.starts_with("0x") => digits.to_lowercase().into(),
        _ => offer["signature"].clone(),
    };
    json!([offer["format"], offer["payload"], signature])
}

/// The payload of an offer or receipt, in either format.
fn payload(artifact: &Value) -> Value {
    match artifact.get("payload") {
        Some(payload) => payload.clone(),
        None => artifact["signature"].as_str().and_then(|jws| part(jws, 1)).expect("a JWS"),
    }
}

fn address(text: &str) -> alloy_primitives::Address {
    text.parse().expect("an address")
}

/// The vectors in a folder, by file name. `None` if no folder is specified.
fn vectors(folder: &str) -> Option<Vec<(String, Value)>> {
    let Some(root) = std::env::var_os("CLRESOLVE_X402") else {
        println!("skipped: CLRESOLVE_X402 is not set");
        return None;
    };
    let folder = Path::new(&root).join("vectors").join(folder);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    let read = |path: &Path| {
        let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let name = |path: &Path| path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
    Some(files.iter().map(|path| (name(path), read(path))).collect())
}
