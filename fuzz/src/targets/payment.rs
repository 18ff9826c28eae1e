//! What a seller and a payer's client send: terms, offers, payment headers.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as BASE64URL};
use clresolve_jose::Ed25519PublicKey;
use clresolve_payment::asset::{AssetId, AssetProperties};
use clresolve_payment::offer::{OfferResources, ParsedOffers, PublishedSigningKeys};
use clresolve_payment::signed::{MAX_CLOCK_SKEW, PaymentHeader};
use clresolve_payment::terms::{
    ExactPrice, MAX_ENTRIES, PaymentTerms, SellerHttpReply, StatedEip712Domain, TransferMethod, X402Version,
};
use ed25519_dalek::{Signer as _, SigningKey};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// When the payments in the seeds were made, and their offers are good.
pub(crate) const MADE: i64 = 1_767_225_600;

/// The URL that the offers in the seeds are for.
pub(crate) const SHOP: &str = "https://api.example.org/summarize/v1";

/// Who is paid in the seeds: the second development account of anvil. The first one pays.
pub(crate) const PAYEE: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

/// An offer of the price of the seeds, for [`SHOP`], which the payee has signed.
pub(crate) const OFFER: &str = r#"{
    "format": "eip712",
    "payload": {
        "amount": "10000", "asset": "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "network": "eip155:84532",
        "payTo": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "resourceUrl": "https://api.example.org/summarize/v1",
        "scheme": "exact", "validUntil": 1767225660, "version": 1
    },
    "signature": "0x1c4a3265a62fbe8e0789ff795a65e3b07a553848bc30784bf8f955f34e90a6bb60ac0fba8d31e8000a1fd8b947fb1e294cda9ea9d7038d7a228a42696ccef0711b"
}"#;

/// A reply. The first byte says what the rest is: terms for the header (0) or for the body (1), or pieces: two values
/// of headers and a body (2).
pub(crate) fn terms(input: &[u8]) {
    let Some((kind, rest)) = input.split_first() else { return };
    let encoded = || STANDARD.encode(rest);
    let (values, body) = match kind % 3 {
        0 => (vec![encoded()], &b"{}"[..]),
        1 => (Vec::new(), rest),
        _ => match super::pieces(rest)[..] {
            [first, second, body, ..] => {
                let values = [first, second].into_iter().filter(|value| !value.is_empty());
                (values.map(|value| String::from_utf8_lossy(value).into_owned()).collect(), body)
            }
            _ => return,
        },
    };
    let headers = values.into_iter().map(|value| ("Payment-Required".to_owned(), value));
    let reply = SellerHttpReply { status: 402, headers: headers.collect(), body: body.to_vec() };
    check_reply(&reply);
}

fn check_reply(reply: &SellerHttpReply) {
    let elsewhere = SellerHttpReply { status: 200, ..reply.clone() };
    assert!(PaymentTerms::from_reply(&elsewhere).is_err(), "terms without a demand");
    let Ok(terms) = PaymentTerms::from_reply(reply) else { return };
    assert!((1..=MAX_ENTRIES).contains(&terms.entries.len()));
    let terms = PaymentTerms { also_v1: false, moved: Default::default(), ..terms };
    let [header] = &reply.headers[..] else {
        assert!(reply.headers.is_empty(), "one of two headers was chosen");
        assert_eq!(terms.version, X402Version::V1, "terms of version 2 from a body");
        return check_prices(&serde_json::from_slice(&reply.body).expect("strict JSON is JSON"), &terms);
    };
    let alone = SellerHttpReply { body: Vec::new(), ..reply.clone() };
    assert_eq!(PaymentTerms::from_reply(&alone).as_ref(), Ok(&terms), "the body changes what the header says");
    let headless = SellerHttpReply { headers: Vec::new(), ..reply.clone() };
    if let Ok(other) = PaymentTerms::from_reply(&headless) {
        for price in other.entries.iter().filter_map(|entry| entry.price.as_ref().ok()) {
            let is_judged = terms.entries.iter().any(|entry| entry.price.as_ref() == Ok(price));
            assert!(is_judged, "the body demands something else");
        }
    }
    let document = STANDARD.decode(&header.1).expect("it was decoded");
    check_prices(&serde_json::from_slice(&document).expect("strict JSON is JSON"), &terms);
}

/// A lenient reader sees the same prices.
fn check_prices(document: &Value, terms: &PaymentTerms) {
    assert_eq!(PaymentTerms::from_value(document).as_ref(), Ok(terms));
    let accepts = document["accepts"].as_array().expect("a list");
    for (json, entry) in accepts.iter().zip(&terms.entries) {
        assert_eq!(json, &entry.json);
        let Ok(price) = &entry.price else { continue };
        let amount = match terms.version {
            X402Version::V1 => "maxAmountRequired",
            X402Version::V2 => "amount",
        };
        assert_eq!(json["scheme"], "exact");
        assert_eq!(json[amount], price.amount.to_string());
        assert_eq!(json["maxTimeoutSeconds"], price.max_timeout_seconds);
        assert!(is_address(&json["payTo"], price.pay_to) && is_address(&json["asset"], price.asset));
        assert_eq!(price.network.chain_id(), Some(price.chain_id));
        assert!(terms.version == X402Version::V1 || json["network"] == price.network.as_str());
    }
}

fn is_address(value: &Value, address: alloy_primitives::Address) -> bool {
    value.as_str().is_some_and(|text| text.eq_ignore_ascii_case(&address.to_string()))
}

/// Offers. The first byte says what the rest is: a list of them (0), or header and payload of a JWS whose signature
/// holds (1).
///
/// The signature in [`OFFER`] and those that are made here are the only ones by published keys. So an offer proves
/// nothing unless it states what that one does, or its payload is signed here and states the price.
pub(crate) fn offers(input: &[u8]) {
    let Some((kind, rest)) = input.split_first() else { return };
    let key = SigningKey::from_bytes(&[7; 32]);
    let (offers, signed) = if kind % 2 == 0 {
        let Ok(Value::Array(offers)) = serde_json::from_slice(rest) else { return };
        (offers, None)
    } else {
        let [header, payload, ..] = super::pieces(rest)[..] else { return };
        let signed = format!("{}.{}", BASE64URL.encode(header), BASE64URL.encode(payload));
        let signature = BASE64URL.encode(key.sign(signed.as_bytes()).to_bytes());
        (vec![json!({"format": "jws", "signature": format!("{signed}.{signature}")})], Some(payload))
    };
    let public = Ed25519PublicKey::from_bytes(key.verifying_key().as_bytes()).expect("a good key");
    let keys = PublishedSigningKeys {
        addresses: vec![PAYEE.parse().expect("an address")],
        ed25519: vec![public],
        unread: None,
    };
    let now = Timestamp::from_second(MADE).expect("in range");
    let proven = |keys: &_| {
        ParsedOffers::from_values(&offers).prove_price(
            &price(TransferMethod::Eip3009),
            &OfferResources::from_texts([SHOP]),
            keys,
            now,
        )
    };
    assert!(!matches!(proven(&PublishedSigningKeys::default()), Some(Ok(_))), "proven by a key that nobody publishes");
    let Some(Ok(end)) = proven(&keys) else { return };
    assert!(end.is_none_or(|end| end > now), "an offer that has ended");
    match signed {
        Some(payload) => check_offer(&serde_json::from_slice(payload).expect("strict JSON is JSON")),
        None => {
            let made: Value = serde_json::from_str(OFFER).expect("JSON");
            assert!(offers.iter().any(|offer| offer["payload"] == made["payload"]), "an offer that nobody made");
        }
    }
}

fn check_offer(payload: &Value) {
    let price = price(TransferMethod::Eip3009);
    assert_eq!(payload["amount"], price.amount.to_string());
    assert!(is_address(&payload["payTo"], price.pay_to) && is_address(&payload["asset"], price.asset));
    assert_eq!((&payload["scheme"], &payload["network"]), (&json!("exact"), &json!("eip155:84532")));
    let url = payload["resourceUrl"].as_str().and_then(|url| url::Url::parse(url).ok());
    assert_eq!(url, url::Url::parse(SHOP).ok());
}

/// The price of the seeds: a hundredth of USDC on Base Sepolia.
fn price(transfer: TransferMethod) -> ExactPrice {
    ExactPrice {
        network: "eip155:84532".parse().expect("CAIP-2"),
        chain_id: 84_532,
        amount: alloy_primitives::U256::from(10_000),
        asset: "0x036CbD53842c5426634e7929541eC2318f3dCF7e".parse().expect("an address"),
        pay_to: PAYEE.parse().expect("an address"),
        max_timeout_seconds: 60,
        transfer,
        domain: StatedEip712Domain { name: Some("USDC".to_owned()), version: Some("2".to_owned()) },
    }
}

/// A payment header. The first byte says what the rest is: its bytes (0), or the JSON text in it (1). One that is let
/// out pays this price, and is by a key: nobody can sign for the payer of the seeds but who made them.
pub(crate) fn payment_header(input: &[u8]) {
    let Some((kind, rest)) = input.split_first() else { return };
    let header = if kind % 2 == 0 { String::from_utf8_lossy(rest).into_owned() } else { STANDARD.encode(rest) };
    let now = Timestamp::from_second(MADE).expect("in range");
    for transfer in [TransferMethod::Eip3009, TransferMethod::Permit2] {
        let price = price(transfer);
        let id = AssetId { network: price.network.clone(), address: price.asset };
        let asset = AssetProperties::find_known(&id).expect("it is in the table");
        for (version, also_v1) in [(X402Version::V1, false), (X402Version::V2, false), (X402Version::V2, true)] {
            let terms = terms_of_seeds(version, also_v1);
            let read = PaymentHeader::parse_for_terms(&header, &terms);
            if read.is_ok_and(|read| read.check_against_price(&entry(&price), &price, &asset, now).is_ok()) {
                check_payment(&STANDARD.decode(&header).expect("it was decoded"), &price);
            }
        }
    }
}

fn terms_of_seeds(version: X402Version, also_v1: bool) -> PaymentTerms {
    let resource =
        json!({"url": "https://api.sandbox.example/summarize/v1", "description": "", "mimeType": "application/json"});
    let resource = (version == X402Version::V2).then_some(resource);
    PaymentTerms {
        version,
        also_v1,
        moved: Default::default(),
        resource,
        entries: Vec::new(),
        extensions: Map::new(),
        offers: Vec::new(),
    }
}

/// The entry that states the price of the seeds.
fn entry(price: &ExactPrice) -> Value {
    let mut entry = json!({
        "scheme": "exact", "network": "eip155:84532", "amount": "10000", "payTo": PAYEE, "maxTimeoutSeconds": 60,
        "asset": "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "extra": {"name": "USDC", "version": "2"},
    });
    if price.transfer == TransferMethod::Permit2 {
        entry["extra"]["assetTransferMethod"] = "permit2".into();
    }
    entry
}

fn check_payment(document: &[u8], price: &ExactPrice) {
    let document: Value = serde_json::from_slice(document).expect("strict JSON is JSON");
    let own = [entry(price), json!(terms_of_seeds(X402Version::V2, false).resource)];
    for (said, own) in [&document["accepted"], &document["resource"]].into_iter().zip(own) {
        let members = said.as_object().into_iter().flatten();
        assert!(members.into_iter().all(|(name, _)| own.get(name).is_some()), "{said} says more than {own}");
    }
    let payload = &document["payload"];
    let (paid, amount, end) = match price.transfer {
        TransferMethod::Eip3009 => {
            let authorization = &payload["authorization"];
            (&authorization["to"], &authorization["value"], &authorization["validBefore"])
        }
        TransferMethod::Permit2 => {
            let permit = &payload["permit2Authorization"];
            assert!(is_address(&permit["permitted"]["token"], price.asset), "another asset");
            (&permit["witness"]["to"], &permit["permitted"]["amount"], &permit["deadline"])
        }
    };
    assert!(is_address(paid, price.pay_to), "another payee");
    let said = document["extensions"].as_object();
    assert!(said.is_none_or(Map::is_empty), "the terms have no extensions, and it says something");
    assert_eq!(amount, &price.amount.to_string());
    let end: u64 = end.as_str().and_then(|end| end.parse().ok()).expect("a number in a text");
    assert!(end <= MADE as u64 + price.max_timeout_seconds + MAX_CLOCK_SKEW, "too late an end");
}
