mod places;

use alloy_primitives::U256;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::json;

use clresolve_core::reason::ReasonCode;

use super::*;

const THIEF: &str = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";

fn entry() -> Value {
    json!({
        "scheme": "exact", "network": "eip155:84532", "amount": "10000", "maxTimeoutSeconds": 60,
        "asset": "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "payTo": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
        "extra": {"name": "USDC", "version": "2"},
    })
}

/// Version 2 terms with these entries.
fn v2(accepts: Value) -> Value {
    let resource = json!({"url": "https://api.example.org/summarize/v1", "mimeType": "application/json"});
    json!({"x402Version": 2, "error": "payment required", "resource": resource, "accepts": accepts, "extensions": {}})
}

/// An entry in version 1 form.
fn entry_v1() -> Value {
    let mut entry = entry();
    let members = entry.as_object_mut().unwrap();
    let amount = members.remove("amount").unwrap();
    members.insert("maxAmountRequired".to_owned(), amount);
    members.insert("network".to_owned(), "base-sepolia".into());
    members.insert("resource".to_owned(), "https://api.example.org/summarize/v1".into());
    entry
}

fn v1(accepts: Value) -> Value {
    json!({"x402Version": 1, "error": "X-PAYMENT header is required", "accepts": accepts})
}

/// The document with another value at a pointer.
fn with(mut document: Value, pointer: &str, value: Value) -> Value {
    let (parent, member) = pointer.rsplit_once('/').unwrap();
    document.pointer_mut(parent).unwrap()[member] = value;
    document
}

fn without(mut document: Value, pointer: &str) -> Value {
    let (parent, member) = pointer.rsplit_once('/').unwrap();
    document.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(member);
    document
}

fn reply(headers: &[(&str, &str)], body: &str) -> SellerHttpReply {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    SellerHttpReply { status: 402, headers, body: body.as_bytes().to_vec() }
}

fn encoded(document: &Value) -> String {
    STANDARD.encode(document.to_string())
}

/// A reply with this document in the header.
fn headed(document: &Value, body: &str) -> SellerHttpReply {
    reply(&[("payment-required", &encoded(document))], body)
}

/// The code, with the place of the error.
fn refused(terms: Result<PaymentTerms, Box<Reason>>) -> (ReasonCode, String) {
    let reason = terms.expect_err("it is refused");
    (reason.code, reason.place.expect("a place"))
}

fn malformed_at(place: &str) -> (ReasonCode, String) {
    (ReasonCode::PaymentTermsMalformed, place.to_owned())
}

/// The price of version 2 terms whose only entry has another value at `member`.
fn priced(member: &str, value: Value) -> Result<ExactPrice, (ReasonCode, String)> {
    let terms = PaymentTerms::from_value(&v2(json!([with(entry(), &format!("/{member}"), value)]))).unwrap();
    terms.entries.into_iter().next().unwrap().price.map_err(|reason| (reason.code, reason.place.unwrap()))
}

#[test]
fn terms_of_version_2_are_read() {
    let document = v2(json!([entry()]));
    let terms = PaymentTerms::from_reply(&headed(&document, "{}")).unwrap();
    assert_eq!((terms.version, terms.offers.len(), terms.entries.len()), (X402Version::V2, 0, 1));
    let PaymentOption { json, resource, price } = &terms.entries[0];
    assert_eq!(json, &entry());
    assert_eq!(resource.as_deref(), Some("https://api.example.org/summarize/v1"));
    let expected = ExactPrice {
        network: "eip155:84532".parse().unwrap(),
        chain_id: 84_532,
        amount: U256::from(10_000),
        asset: "0x036CbD53842c5426634e7929541eC2318f3dCF7e".parse().unwrap(),
        pay_to: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8".parse().unwrap(),
        max_timeout_seconds: 60,
        transfer: TransferMethod::Eip3009,
        domain: StatedEip712Domain { name: Some("USDC".to_owned()), version: Some("2".to_owned()) },
    };
    assert_eq!(price.as_ref(), Ok(&expected));
    assert_eq!(PaymentTerms::from_value(&document), Ok(terms), "an SDK or MCP hands the same on");
}

#[test]
fn terms_of_version_1_are_read_from_the_body() {
    let document = v1(json!([entry_v1()]));
    let terms = PaymentTerms::from_reply(&reply(&[], &document.to_string())).unwrap();
    let known = PaymentTerms::from_value(&v2(json!([entry()]))).unwrap();
    assert_eq!(terms.version, X402Version::V1);
    assert_eq!(terms.entries[0].price, known.entries[0].price, "the same price in other words");
    assert_eq!(terms.entries[0].resource, known.entries[0].resource);
    let null = with(document.clone(), "/accepts/0/extra", Value::Null);
    let terms = PaymentTerms::from_reply(&reply(&[], &null.to_string())).unwrap();
    assert_eq!(terms.entries[0].price.as_ref().unwrap().domain, StatedEip712Domain::default());
    for (member, value) in [("network", json!("eip155:84532")), ("network", json!("Base")), ("resource", json!(null))] {
        let changed = with(document.clone(), &format!("/accepts/0/{member}"), value);
        let terms = PaymentTerms::from_reply(&reply(&[], &changed.to_string())).unwrap();
        let reason = terms.entries[0].price.as_ref().unwrap_err();
        assert_eq!(reason.code, ReasonCode::PaymentTermsMalformed, "{changed}");
        assert_eq!(reason.place.as_deref(), Some(&*format!("/accepts/0/{member}")));
    }
    let solana = with(document, "/accepts/0/network", "solana".into());
    let terms = PaymentTerms::from_reply(&reply(&[], &solana.to_string())).unwrap();
    assert_eq!(terms.entries[0].price.as_ref().unwrap_err().code, ReasonCode::PaymentNetworkMismatch);
}

#[test]
fn only_status_402_demands() {
    for status in [0, 200, 401, 403, 500] {
        let reply = SellerHttpReply { status, ..headed(&v2(json!([entry()])), "{}") };
        assert_eq!(refused(PaymentTerms::from_reply(&reply)), malformed_at("status"));
    }
}

#[test]
fn a_header_that_is_present_decides() {
    let body = v1(json!([entry_v1()])).to_string();
    assert!(PaymentTerms::from_reply(&reply(&[("content-type", "application/json")], &body)).is_ok());
    let document = encoded(&v2(json!([entry()])));
    let cut = &document[..document.len() - 1];
    let listed = format!(", {document}");
    for value in ["", " ", "null", "e30", "{}", &*body, cut, &*listed, &format!(" {document}"), "é", "bnVsbA==", "W10="]
    {
        let refusal = refused(PaymentTerms::from_reply(&reply(&[("PAYMENT-REQUIRED", value)], &body)));
        assert_eq!(refusal, malformed_at(HEADER), "{value:?}");
    }
    let other = reply(&[("Payment-Required", &encoded(&v2(json!([]))))], &body);
    assert_eq!(refused(PaymentTerms::from_reply(&other)), malformed_at("/accepts"));
}

#[test]
fn a_header_that_stands_there_twice_is_ambiguous() {
    let value = encoded(&v2(json!([entry()])));
    for names in [["payment-required", "payment-required"], ["PAYMENT-REQUIRED", "Payment-Required"]] {
        for second in [&*value, "", "e30="] {
            let reply = reply(&[(names[0], &value), ("date", "now"), (names[1], second)], "");
            assert_eq!(
                refused(PaymentTerms::from_reply(&reply)),
                (ReasonCode::PaymentTermsAmbiguous, HEADER.to_owned())
            );
        }
    }
    for joined in [format!("{value}, {value}"), format!("{value},"), format!("e30=,{value}")] {
        let refusal = refused(PaymentTerms::from_reply(&reply(&[("payment-required", &joined)], "")));
        assert_eq!(refusal, (ReasonCode::PaymentTermsAmbiguous, HEADER.to_owned()), "{joined}");
    }
}

#[test]
fn a_body_that_demands_something_else_than_the_header_is_ambiguous() {
    let terms = v2(json!([entry()]));
    let same = [
        "",
        "{}",
        "<html>{}</html>",
        "payment required",
        "[{\"accepts\": []}]",
        r#"{"error": "payment required", "x402Version": 1}"#,
        &v1(json!([entry_v1()])).to_string(),
        &terms.to_string(),
        &with(terms.clone(), "/accepts/0/payTo", "0x70997970c51812dc3a010c7d01b50e0d17dc79c8".into()).to_string(),
        &format!("<p>{}</p>", "x".repeat(MAX_TERMS_BYTES)),
        // The entries alone, and what is paid for in another spelling.
        &json!({"error": "x", "accepts": [entry()]}).to_string(),
        &json!({"x402Version": 2, "accepts": ["x402", entry(), {"type": "mpp"}]}).to_string(),
        &json!({"details": {"accepts": [entry_v1()]}}).to_string(),
        &json!({"accepts": {"types": ["application/json"]}}).to_string(),
        &with(v1(json!([entry_v1()])), "/accepts/0/resource", "/summarize/v1".into()).to_string(),
        &with(v1(json!([entry_v1()])), "/accepts/0/resource", "http://api.example.org:8080/?a=1".into()).to_string(),
    ];
    for body in same {
        let also_v1 = body.contains("maxAmountRequired") && !body.contains("details");
        assert_eq!(PaymentTerms::from_reply(&headed(&terms, body)).map(|terms| terms.also_v1), Ok(also_v1), "{body}");
    }
    let honest = v1(json!([entry_v1()]));
    let stolen = with(honest.clone(), "/accepts/0/payTo", THIEF.into());
    let other = [
        &stolen.to_string(),
        &with(honest.clone(), "/accepts/0/maxAmountRequired", "10001".into()).to_string(),
        &with(honest.clone(), "/accepts/0/network", "base".into()).to_string(),
        &with(honest.clone(), "/accepts/0/asset", THIEF.into()).to_string(),
        &with(honest.clone(), "/accepts/0/maxTimeoutSeconds", 61.into()).to_string(),
        &with(honest.clone(), "/accepts/0/scheme", "upto".into()).to_string(),
        &with(honest.clone(), "/accepts/0/extra/name", "Evil Dollar".into()).to_string(),
        &with(honest.clone(), "/accepts/0/resource", "https://evil.example/summarize/v1".into()).to_string(),
        &with(terms.clone(), "/resource/url", "https://evil.example/summarize/v1".into()).to_string(),
        &with(honest.clone(), "/x402Version", "1".into()).to_string(),
        &with(terms.clone(), "/accepts/0/payTo", THIEF.into()).to_string(),
        // Lenient parsers may interpret these in any way.
        &stolen.to_string().replacen("accepts", "accepts\":[],\"accepts", 1),
        &format!("\u{feff} {stolen}"),
        &format!("\u{a0}\u{3000}\u{2028}\u{200b}{stolen}"),
        &json!({"accepts": [with(entry(), "/payTo", THIEF.into())]}).to_string(),
        &json!({"accepts": [entry_v1(), with(entry_v1(), "/payTo", THIEF.into())]}).to_string(),
        &format!("{stolen} trailing"),
        &format!("{{\"a\": \"{}\"}}", "x".repeat(MAX_TERMS_BYTES)),
    ];
    for body in other {
        let refusal = refused(PaymentTerms::from_reply(&headed(&terms, body)));
        assert_eq!(refusal.0, ReasonCode::PaymentTermsAmbiguous, "{body}");
        assert!(refusal.1.starts_with("body"), "{refusal:?}");
    }
    let utf_16: Vec<u8> = stolen.to_string().encode_utf16().flat_map(u16::to_be_bytes).collect();
    let reply = SellerHttpReply { body: utf_16, ..headed(&terms, "") };
    assert_eq!(refused(PaymentTerms::from_reply(&reply)).0, ReasonCode::PaymentTermsAmbiguous);
}

#[test]
fn each_version_has_its_place() {
    let in_header = headed(&v1(json!([entry_v1()])), "");
    assert_eq!(refused(PaymentTerms::from_reply(&in_header)), malformed_at("/x402Version"));
    let in_body = reply(&[], &v2(json!([entry()])).to_string());
    assert_eq!(refused(PaymentTerms::from_reply(&in_body)), malformed_at("/x402Version"));
}

#[test]
fn a_reply_without_terms_is_malformed() {
    let long = " ".repeat(MAX_TERMS_BYTES + 1);
    let deep = format!("{}1{}", r#"{"a":"#.repeat(40), "}".repeat(40));
    for body in ["", "no", "[]", "null", r#"{"a":1,"a":2}"#, &long, &deep] {
        assert_eq!(refused(PaymentTerms::from_reply(&reply(&[], body))), malformed_at("body"));
    }
    let reply = reply(&vec![("date", "now"); MAX_HEADERS + 1], "");
    assert_eq!(refused(PaymentTerms::from_reply(&reply)), malformed_at("headers"));
}

#[test]
fn a_header_with_too_much_in_it_is_refused_before_it_is_decoded() {
    let with_text = |bytes| with(v2(json!([entry()])), "/error", "x".repeat(bytes).into());
    let room = MAX_TERMS_BYTES - with_text(0).to_string().len();
    assert!(PaymentTerms::from_reply(&headed(&with_text(room), "")).is_ok());
    assert_eq!(refused(PaymentTerms::from_reply(&headed(&with_text(room + 1), ""))), malformed_at(HEADER));
}

#[test]
fn what_is_wrong_around_the_entries_is_wrong_with_all_of_them() {
    let good = v2(json!([entry()]));
    let changes = [
        ("/x402Version", json!("2")),
        ("/x402Version", json!(3)),
        ("/x402Version", json!(2.0)),
        ("/x402Version", json!(0)),
        ("/x402Version", Value::Null),
        ("/resource", json!("https://api.example.org")),
        ("/resource/url", json!(1)),
        ("/accepts", json!({})),
        ("/accepts", json!([])),
        ("/accepts", json!(vec![entry(); MAX_ENTRIES + 1])),
        ("/extensions", json!([])),
        ("/extensions/offer-receipt", json!("x")),
    ];
    for (place, value) in changes {
        let refusal = refused(PaymentTerms::from_value(&with(good.clone(), place, value.clone())));
        assert_eq!(refusal, malformed_at(place), "{value}");
    }
    for place in ["/x402Version", "/resource", "/resource/url", "/accepts"] {
        assert_eq!(refused(PaymentTerms::from_value(&without(good.clone(), place))), malformed_at(place));
    }
    assert!(PaymentTerms::from_value(&without(good.clone(), "/extensions")).is_ok());
    assert!(PaymentTerms::from_value(&with(good, "/accepts", json!(vec![entry(); MAX_ENTRIES]))).is_ok());
    assert_eq!(refused(PaymentTerms::from_value(&json!([]))).0, ReasonCode::PaymentTermsMalformed);
}

#[test]
fn offers_are_handed_on_as_they_came() {
    let good = |info: Value| with(v2(json!([entry()])), "/extensions", json!({"offer-receipt": {"info": info}}));
    let offers = json!([{"format": "jws", "signature": "a.b.c"}, 7]);
    let terms = PaymentTerms::from_value(&good(json!({"offers": offers}))).unwrap();
    assert_eq!(Value::Array(terms.offers), offers);
    assert_eq!(PaymentTerms::from_value(&good(json!({}))).unwrap().offers, Vec::<Value>::new());
    let place = malformed_at("/extensions/offer-receipt/info/offers");
    assert_eq!(refused(PaymentTerms::from_value(&good(json!({"offers": {}})))), place);
}

#[test]
fn what_is_wrong_within_an_entry_is_its_own() {
    let entries = json!([{"scheme": 1}, entry(), "exact", with(entry(), "/payTo", "summarizeagent.eth".into())]);
    let terms = PaymentTerms::from_value(&v2(entries)).unwrap();
    let prices: Vec<_> =
        terms.entries.iter().map(|entry| entry.price.as_ref().map_err(|r| r.place.as_deref())).collect();
    assert_eq!(prices[0], Err(Some("/accepts/0/scheme")));
    assert!(prices[1].is_ok());
    assert_eq!(prices[2], Err(Some("/accepts/2")));
    assert_eq!(prices[3], Err(Some("/accepts/3/payTo")));
}

#[test]
fn members_of_an_entry_have_one_form() {
    let changes = [
        ("scheme", json!(null)),
        ("network", json!("base-sepolia")),
        ("network", json!("EIP155:84532")),
        ("network", json!("eip155")),
        ("network", json!(84532)),
        ("amount", json!("0.01")),
        ("amount", json!("1e4")),
        ("amount", json!("0010000")),
        ("amount", json!("0x2710")),
        ("amount", json!("-1")),
        ("amount", json!("")),
        ("amount", json!(10000)),
        ("asset", json!("USDC")),
        ("asset", json!("0x036cbD53842c5426634e7929541eC2318f3dCF7e")),
        ("asset", json!(null)),
        ("payTo", json!("summarizeagent.eth")),
        ("payTo", json!("merchant")),
        ("payTo", json!("0x70997970c51812dc3A010C7d01b50e0d17dc79C8")),
        ("payTo", json!(["0x70997970C51812dc3A010C7d01b50e0d17dc79C8"])),
        ("maxTimeoutSeconds", json!("60")),
        ("maxTimeoutSeconds", json!(60.0)),
        ("maxTimeoutSeconds", json!(60.5)),
        ("maxTimeoutSeconds", json!(-1)),
        ("maxTimeoutSeconds", json!(1e30)),
        ("extra", json!([])),
        ("extra/name", json!(1)),
        ("extra/version", json!(2)),
    ];
    for (member, value) in changes {
        assert_eq!(priced(member, value.clone()), Err(malformed_at(&format!("/accepts/0/{member}"))), "{value}");
    }
    for member in ["scheme", "network", "amount", "asset", "payTo", "maxTimeoutSeconds"] {
        let terms = PaymentTerms::from_value(&v2(json!([without(entry(), &format!("/{member}"))]))).unwrap();
        let reason = terms.entries[0].price.as_ref().unwrap_err();
        assert_eq!(reason.code, ReasonCode::PaymentTermsMalformed, "{member}");
    }
}

#[test]
fn an_entry_with_two_amounts_is_ambiguous() {
    let (v2_amount, v1_amount) = (entry()["amount"].clone(), entry_v1()["maxAmountRequired"].clone());
    let ambiguous = |place: &str| Err((ReasonCode::PaymentTermsAmbiguous, place.to_owned()));
    let of_v2 = |value: Value| priced("maxAmountRequired", value).map(drop);
    assert_eq!(of_v2(json!("1")), ambiguous("/accepts/0/maxAmountRequired"));
    assert_eq!((of_v2(v2_amount), of_v2(Value::Null)), (Ok(()), Ok(())));
    let of_v1 = |value: Value| {
        let terms = parse_terms(&v1(json!([with(entry_v1(), "/amount", value)]))).unwrap();
        terms.entries[0].price.clone().map(drop).map_err(|reason| (reason.code, reason.place.unwrap_or_default()))
    };
    assert_eq!(of_v1(json!("1")), ambiguous("/accepts/0/amount"));
    assert_eq!(of_v1(v1_amount), Ok(()));
}

#[test]
fn an_address_is_read_in_either_case() {
    let lower = priced("payTo", json!("0x70997970c51812dc3a010c7d01b50e0d17dc79c8")).unwrap();
    assert_eq!(lower, priced("error", json!("")).unwrap());
}

#[test]
fn only_checked_schemes_and_transfers_state_a_price() {
    let unchecked = |place: &str| (ReasonCode::PaymentSchemeUnchecked, format!("/accepts/0/{place}"));
    for scheme in ["upto", "Exact", "", "batch-settlement"] {
        assert_eq!(priced("scheme", scheme.into()), Err(unchecked("scheme")));
    }
    for method in ["erc7710", "", "Permit2"] {
        let place = "extra/assetTransferMethod";
        assert_eq!(priced(place, method.into()), Err(unchecked(place)));
    }
    assert_eq!(priced("extra/assetTransferMethod", "permit2".into()).unwrap().transfer, TransferMethod::Permit2);
    assert_eq!(priced("extra/assetTransferMethod", "eip3009".into()).unwrap().transfer, TransferMethod::Eip3009);
    let named = StatedEip712Domain { name: Some("USDC".to_owned()), version: None };
    assert_eq!(priced("extra", json!({"name": "USDC"})).unwrap().domain, named);
}

#[test]
fn the_scheme_comes_before_the_network_and_the_network_before_the_rest() {
    let entry = json!({"scheme": "upto", "network": "ach:us", "amount": "1.00"});
    let code = |entry: Value| {
        let terms = PaymentTerms::from_value(&v2(json!([entry]))).unwrap();
        terms.entries[0].price.as_ref().unwrap_err().code
    };
    assert_eq!(code(entry.clone()), ReasonCode::PaymentSchemeUnchecked);
    let solana = "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp";
    for network in [solana, "eip155:0", "eip155:08453"] {
        let entry = with(with(entry.clone(), "/scheme", "exact".into()), "/network", network.into());
        assert_eq!(code(entry), ReasonCode::PaymentNetworkMismatch, "{network}");
    }
}

proptest! {
    #[test]
    fn every_reply_is_read_or_refused(
        status in prop_oneof![Just(402), any::<u16>()],
        headers in prop::collection::vec(("(?i)payment-required|date", "\\PC*"), 0..3),
        body in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let reply = SellerHttpReply { status, headers, body };
        prop_assert!(PaymentTerms::from_reply(&reply).is_err(), "terms in noise");
    }

    #[test]
    fn a_changed_byte_of_an_honest_header_changes_the_price_or_nothing(at in any::<prop::sample::Index>(), byte: u8) {
        let honest = v2(json!([entry()])).to_string();
        let mut changed = honest.clone().into_bytes();
        let at = at.index(changed.len());
        changed[at] = byte;
        let header = STANDARD.encode(&changed);
        if let Ok(terms) = PaymentTerms::from_reply(&reply(&[("payment-required", &header)], "")) {
            // A lenient parser reads the same values from the entry.
            let lax: Value = serde_json::from_slice(&changed).unwrap();
            if let Ok(price) = &terms.entries[0].price {
                let entry = &lax["accepts"][0];
                prop_assert_eq!(price.amount.to_string(), entry["amount"].as_str().unwrap());
                prop_assert_eq!(price.pay_to.to_string().to_lowercase(), entry["payTo"].as_str().unwrap().to_lowercase());
                prop_assert_eq!(price.asset.to_string().to_lowercase(), entry["asset"].as_str().unwrap().to_lowercase());
                prop_assert_eq!(price.network.as_str(), entry["network"].as_str().unwrap());
                prop_assert_eq!(Some(price.max_timeout_seconds), entry["maxTimeoutSeconds"].as_u64());
            }
        }
    }

    #[test]
    fn no_value_makes_reading_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), value()), 1..4)) {
        let pointers = [
            "/x402Version", "/resource", "/resource/url", "/accepts", "/accepts/0", "/accepts/0/scheme", "/extensions",
            "/accepts/0/network", "/accepts/0/amount", "/accepts/0/payTo", "/accepts/0/extra", "/accepts/0/extra/name",
        ];
        let mut document = v2(json!([entry()]));
        for (pointer, value) in changes {
            if let Some(place) = document.pointer_mut(pointers[pointer.index(pointers.len())]) {
                *place = value;
            }
        }
        if let Ok(terms) = PaymentTerms::from_value(&document) {
            prop_assert!((1..=MAX_ENTRIES).contains(&terms.entries.len()));
        }
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z0-9:]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,6}", inner, 0..4).prop_map(|members| members.into_iter().collect()),
        ]
    })
}
