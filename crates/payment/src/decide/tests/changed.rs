//! Denials with every single-byte change of the terms and of published data: none of them is allowed.

mod records;

use std::collections::HashSet;
use std::ops::Range;
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clresolve_core::reason::{Reason, ReasonCode};
use serde_json::{Value, json};

use super::{Case, PAYEE, THIEF, URL, USDC, agent_at};
use crate::terms::{PaymentOption, PaymentTerms, SellerHttpReply, X402Version};

/// The members whose bytes are changed in every denial, with their names in versions 1 and 2.
const MEMBERS: [&str; 6] = ["amount", "maxAmountRequired", "payTo", "asset", "network", "maxTimeoutSeconds"];

/// Wrong values with their codes. Each differs so much from the right value that changing a single byte cannot fix it.
fn denials() -> [(&'static str, Value, &'static str); 5] {
    [
        ("payTo", json!(THIEF), "payee-mismatch"),
        ("asset", json!("0x00000000000000000000000000000000facecafe"), "payment-asset-unlisted"),
        ("network", json!("eip155:8453"), "payment-network-mismatch"),
        ("amount", json!("990000"), "payment-amount-exceeds"),
        ("maxTimeoutSeconds", json!(99_999), "payment-timeout-excessive"),
    ]
}

/// The terms of an honest seller with one member changed.
fn demand(version: X402Version, member: &str, value: Value) -> Vec<u8> {
    let mut entry = json!({
        "scheme": "exact",
        "network": "eip155:84532",
        "amount": "10000",
        "asset": USDC,
        "payTo": PAYEE,
        "maxTimeoutSeconds": 60,
        "extra": {"name": "USDC", "version": "2"},
    });
    entry[member] = value;
    if version == X402Version::V2 {
        return json!({"x402Version": 2, "resource": {"url": URL}, "accepts": [entry]}).to_string().into_bytes();
    }
    let network = if entry["network"] == "eip155:84532" { "base-sepolia" } else { "base" };
    (entry["network"], entry["resource"]) = (network.into(), URL.into());
    entry["maxAmountRequired"] = entry["amount"].take();
    json!({"x402Version": 1, "accepts": [entry]}).to_string().into_bytes()
}

/// The positions of the members' values, including quotes.
fn places(text: &[u8]) -> Vec<Range<usize>> {
    let text = std::str::from_utf8(text).expect("JSON");
    let place = |member: &str| {
        let start = text.find(&format!("\"{member}\":"))? + member.len() + 3;
        Some(start..start + text[start..].find([',', '}'])?)
    };
    MEMBERS.iter().filter_map(|member| place(member)).collect()
}

fn read(version: X402Version, text: &[u8]) -> Result<PaymentTerms, Box<Reason>> {
    let (headers, body) = match version {
        X402Version::V1 => (Vec::new(), text),
        X402Version::V2 => (vec![("PAYMENT-REQUIRED".to_owned(), STANDARD.encode(text))], &b"{}"[..]),
    };
    PaymentTerms::from_reply(&SellerHttpReply { status: 402, headers, body: body.to_vec() })
}

/// Whether the terms or their entry cannot be read, with the code.
fn unread(terms: &Result<PaymentTerms, Reason>) -> Option<(&'static str, ReasonCode)> {
    match terms {
        Ok(terms) => terms.entries[0].price.as_ref().err().map(|reason| ("entry", reason.code)),
        Err(reason) => Some(("terms", reason.code)),
    }
}

#[test]
fn no_byte_of_what_an_entry_says_turns_a_denial_into_an_allowance() {
    let by_payee = denials().into_iter().take(1).map(|denial| (X402Version::V1, denial));
    thread::scope(|scope| {
        for (version, (member, value, code)) in
            denials().map(|denial| (X402Version::V2, denial)).into_iter().chain(by_payee)
        {
            let honest = read(version, &demand(version, "scheme", json!("exact"))).expect("terms");
            assert!(!Case { terms: Ok(honest), ..Case::default() }.decide().abort);
            scope.spawn(move || {
                let text = demand(version, member, value);
                let places = places(&text);
                stays_denied(version, text, code, places);
            });
        }
    });
}

/// All bytes of the terms, if the payee or the host is wrong.
#[test]
fn no_byte_of_terms_turns_a_denial_into_an_allowance() {
    let elsewhere = json!({"url": "https://thief.example/summarize/v1"});
    let mut of_another_host: Value =
        serde_json::from_slice(&demand(X402Version::V2, "amount", json!("10000"))).expect("JSON");
    of_another_host["resource"] = elsewhere;
    let denials = [
        (X402Version::V2, demand(X402Version::V2, "payTo", json!(THIEF)), "payee-mismatch"),
        (X402Version::V1, demand(X402Version::V1, "payTo", json!(THIEF)), "payee-mismatch"),
        (X402Version::V2, of_another_host.to_string().into_bytes(), "resource-mismatch"),
    ];
    thread::scope(|scope| {
        for (version, text, code) in denials {
            scope.spawn(move || {
                let whole = 0..text.len();
                stays_denied(version, text, code, [whole]);
            });
        }
    });
}

/// Unreadable terms are decided once per code, since nothing else in them matters. Terms with the original price and
/// resource are skipped.
fn stays_denied(version: X402Version, mut text: Vec<u8>, code: &str, places: impl IntoIterator<Item = Range<usize>>) {
    let mut case = Case { terms: Ok(read(version, &text).expect("terms")), ..Case::default() };
    let resolution = agent_at(case.state, case.tag);
    assert!(case.decide_on(&resolution).codes.iter().any(|found| found == code), "{code}");
    let original = case.terms.clone().expect("terms").entries.remove(0);
    let is_original = |terms: &Result<PaymentTerms, Reason>| {
        let same = |entry: &PaymentOption| (&entry.price, &entry.resource) == (&original.price, &original.resource);
        terms.as_ref().is_ok_and(|terms| terms.entries.iter().all(same))
    };
    let mut refused = HashSet::new();
    for at in places.into_iter().flatten() {
        let byte = text[at];
        for change in 1..=u8::MAX {
            text[at] = byte ^ change;
            case.terms = read(version, &text).map_err(|reason| *reason);
            if !is_original(&case.terms) && unread(&case.terms).is_none_or(|cause| refused.insert(cause)) {
                let decision = case.decide_on(&resolution);
                assert!(decision.abort, "byte {at}: {}", String::from_utf8_lossy(&text));
            }
        }
        text[at] = byte;
    }
    assert!(!refused.is_empty());
}
