//! The places with terms in one reply, and the result if they differ.

use std::io::Write as _;

use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::terms::places::MAX_PLACES;

/// The places where published MCP clients read terms.
const PLACES: [&str; 7] = [
    "/structuredContent",
    "/content/0/text",
    "/content/3/text",
    "/content/1/resource/text",
    "/_meta/x402~1error",
    "/paymentRequired",
    "/error/data",
];

/// A tool's result with a document in each of these places. The other places are as sellers leave them.
fn result(places: &[(&str, &Value)]) -> Value {
    let text = |text: &str| json!({"type": "text", "text": text});
    let mut result = json!({
        "isError": true, "structuredContent": null, "paymentRequired": null, "_meta": {"x402/error": null},
        "content": [text("Payment required"), {"resource": {"text": ""}}, text("[1, 2]"), text("")],
        "error": {"code": 402, "data": null},
    });
    for (place, document) in places {
        let is_text = place.ends_with("/text");
        let written = if is_text { Value::String(format!(" \n{document:#}\t")) } else { (*document).clone() };
        *result.pointer_mut(place).expect("a place") = written;
    }
    result
}

fn of_tool(result: &Value) -> Result<PaymentTerms, Box<Reason>> {
    PaymentTerms::from_tool_result(&result.to_string())
}

/// The entry with every relevant member changed in turn, each with the member's name in its version.
fn other_entries(entry: &Value) -> Vec<(String, Value)> {
    let amount = if entry.get("amount").is_some() { "amount" } else { "maxAmountRequired" };
    let network = if amount == "amount" { "eip155:8453" } else { "base" };
    let changes = [
        ("payTo", json!(THIEF)),
        (amount, json!("10001")),
        (amount, json!(10_000)),
        ("asset", json!(THIEF)),
        ("network", json!(network)),
        ("scheme", json!("upto")),
        ("maxTimeoutSeconds", json!(61)),
    ];
    changes
        .into_iter()
        .map(|(name, value)| (name.to_owned(), with(entry.clone(), &format!("/{name}"), value)))
        .collect()
}

#[test]
fn terms_of_a_tools_result_are_read_in_every_place() {
    for document in [v2(json!([entry()])), v1(json!([entry_v1()]))] {
        for place in PLACES {
            assert_eq!(of_tool(&result(&[(place, &document)])), PaymentTerms::from_value(&document), "{place}");
        }
        let everywhere = PLACES.map(|place| (place, &document));
        assert_eq!(of_tool(&result(&everywhere)), PaymentTerms::from_value(&document));
    }
    for prose in ["{summarize} costs a cent", "{\"ok\": false}", "{"] {
        let mut own = result(&[("/structuredContent", &v2(json!([entry()])))]);
        own["content"][0]["text"] = prose.into();
        assert!(of_tool(&own).is_ok(), "{prose}");
    }
    // A tool's own structured content, and the bare extension binding.
    let document = v2(json!([entry()]));
    let mut own = result(&[("/content/0/text", &document)]);
    own["structuredContent"] =
        json!({"ok": false, "accepts": ["x402"], "nested": {"accepts": [{"type": "image/png"}]}});
    assert_eq!(of_tool(&own), PaymentTerms::from_value(&document));
    let extension = json!({"resultType": "payment_required", "paymentRequired": document});
    assert_eq!(of_tool(&extension), PaymentTerms::from_value(&document));
}

#[test]
fn each_place_that_differs_in_a_member_is_named() {
    let [first, second] = [v2(json!([entry()])), v1(json!([entry_v1()]))];
    for (honest_place, other_place) in PLACES.iter().flat_map(|one| PLACES.map(|other| (*one, other))) {
        if honest_place == other_place {
            continue;
        }
        for (member, changed) in other_entries(&entry()) {
            let other = v2(json!([changed]));
            let reason = of_tool(&result(&[(honest_place, &first), (other_place, &other)])).expect_err(&member);
            assert_eq!(reason.code, ReasonCode::PaymentTermsAmbiguous, "{honest_place}, {other_place}: {member}");
            assert!(reason.place.expect("a place").contains("/accepts/0/"), "{honest_place}, {other_place}: {member}");
            assert!(reason.expected.is_some() && reason.observed.is_some(), "{member}");
        }
        for (member, changed) in other_entries(&entry_v1()) {
            let other = v1(json!([changed]));
            let refusal = refused(of_tool(&result(&[(honest_place, &first), (other_place, &other)])));
            assert_eq!(refusal, (ReasonCode::PaymentTermsAmbiguous, format!("{other_place}/accepts/0/{member}")));
        }
        let agreed =
            of_tool(&result(&[(honest_place, &first), (other_place, &second)])).expect("the same in other words");
        assert!(agreed.also_v1 && agreed.version == X402Version::V2);
    }
}

#[test]
fn message_says_which_place_differs_where_and_how() {
    let stolen = v2(json!([with(entry(), "/payTo", THIEF.into())]));
    let result = result(&[("/structuredContent", &v2(json!([entry()]))), ("/_meta/x402~1error", &stolen)]);
    let reason = of_tool(&result).unwrap_err();
    assert_eq!(reason.place.as_deref(), Some("/_meta/x402~1error/accepts/0/payTo"));
    assert_eq!(reason.expected.as_deref(), Some("\"0x70997970c51812dc3a010c7d01b50e0d17dc79c8\""));
    assert_eq!(reason.observed, Some(format!("\"{}\"", THIEF.to_ascii_lowercase())));
}

#[test]
fn message_names_the_member_for_which_one_place_has_no_price() {
    for (place, value, expected) in [
        ("/network", json!("eip155:84532"), "a network as x402 version 1 names it"),
        ("/extra/assetTransferMethod", json!("erc7710"), "eip3009 or permit2"),
    ] {
        let other = v1(json!([with(entry_v1(), place, value.clone())]));
        let result = result(&[("/structuredContent", &v2(json!([entry()]))), ("/_meta/x402~1error", &other)]);
        let reason = of_tool(&result).unwrap_err();
        let at = reason.place.expect("a place");
        assert!(
            at.starts_with("/_meta/x402~1error/accepts/0/") && at.ends_with(place.rsplit('/').next().unwrap()),
            "{at}"
        );
        assert_eq!(reason.expected.as_deref(), Some(expected));
    }
}

#[test]
fn entry_that_only_one_place_holds_is_ambiguous() {
    let upto = |payee: &str| with(with(entry(), "/scheme", "upto".into()), "/payTo", payee.into());
    let honest = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
    let both = v2(json!([entry(), upto(honest)]));
    for (other, is_read) in [
        (v2(json!([entry()])), true),
        (v2(json!([upto(honest)])), true),
        (v2(json!([upto(honest), entry()])), true),
        (v2(json!(["x402", entry()])), true),
        (v1(json!([entry_v1()])), true),
        (v2(json!([entry(), upto(THIEF)])), false),
        (v2(json!([entry(), with(entry(), "/payTo", THIEF.into())])), false),
        (v1(json!([entry_v1(), with(entry_v1(), "/payTo", THIEF.into())])), false),
        (v2(json!([with(upto(honest), "/extra/facilitatorAddress", THIEF.into())])), false),
        (v2(json!([{}])), true),
        (with(v2(json!([])), "/accepts", json!({"0": upto(THIEF)})), false),
    ] {
        let over_mcp = of_tool(&result(&[("/structuredContent", &both), ("/content/0/text", &other)]));
        assert_eq!(over_mcp.is_ok(), is_read, "{other}: {over_mcp:?}");
        let over_http = PaymentTerms::from_reply(&headed(&both, &other.to_string()));
        assert_eq!(over_http.is_ok(), is_read, "{other}: {over_http:?}");
    }
}

#[test]
fn body_that_names_no_entry_is_no_contradiction() {
    let terms = v2(json!([entry()]));
    for body in [r#"{"accepts": ["x402"]}"#, r#"{"accepts": []}"#, r#"{"accepts": "exact"}"#, r#"{"accepts": null}"#] {
        assert_eq!(PaymentTerms::from_reply(&headed(&terms, body)), PaymentTerms::from_value(&terms), "{body}");
    }
}

#[test]
fn terms_in_an_unexpected_place_are_compared_and_never_judged() {
    let (honest, stolen) = (v2(json!([entry()])), v2(json!([with(entry(), "/payTo", THIEF.into())])));
    let hide = |document: &Value| {
        let unknown =
            ["/_meta/x402~1terms", "/x402", "/structuredContent/detail", "/content/0/_meta", "/error/data/terms"];
        unknown.map(|place| {
            let mut result = result(&[]);
            result["_meta"]["x402/terms"] = Value::Null;
            result["x402"] = Value::Null;
            result["structuredContent"] = json!({"detail": null});
            result["error"]["data"] = json!({"terms": null});
            result["content"][0]["_meta"] = Value::Null;
            *result.pointer_mut(place).expect("a place") = document.clone();
            result
        })
    };
    for result in hide(&honest) {
        assert_eq!(refused(of_tool(&result)), malformed_at("toolResult"), "{result}");
    }
    assert_eq!(refused(of_tool(&honest)), malformed_at("toolResult"), "terms in the place of the result");
    for (document, is_read) in [(&honest, true), (&stolen, false)] {
        for mut result in hide(document) {
            result["paymentRequired"] = honest.clone();
            assert_eq!(of_tool(&result).is_ok(), is_read, "{result}");
        }
        let nested = json!({"error": {"data": document}}).to_string();
        assert_eq!(PaymentTerms::from_reply(&headed(&honest, &nested)).is_ok(), is_read);
        let nested = with(v1(json!([entry_v1()])), "/detail", document.clone());
        assert_eq!(PaymentTerms::from_reply(&reply(&[], &nested.to_string())).is_ok(), is_read);
        let nested = with(honest.clone(), "/detail", document.clone());
        assert_eq!(PaymentTerms::from_json(&nested.to_string()).is_ok(), is_read);
    }
}

#[test]
fn text_that_a_lenient_reader_may_take_for_terms_is_refused() {
    let (honest, stolen) = (v2(json!([entry()])), v2(json!([with(entry(), "/payTo", THIEF.into())])));
    let texts = [
        stolen.to_string().replacen("accepts", "acc\\u0065pts", 1),
        honest.to_string().replacen("\"payTo\"", &format!("\"payTo\":\"{THIEF}\",\"payTo\""), 1),
        stolen.to_string().replacen("\"x402Version\"", "\"x402Version\":2,\"x402Version\"", 1),
        format!("\u{feff}{stolen}"),
        format!("{stolen},"),
        stolen.to_string().replacen("60", "NaN", 1),
    ];
    for text in texts {
        let mut result = result(&[("/structuredContent", &honest)]);
        result["content"][3]["text"] = text.clone().into();
        let (code, place) = refused(of_tool(&result));
        assert_eq!(code, ReasonCode::PaymentTermsAmbiguous, "{text}");
        assert!(place.starts_with("/content/3/text"), "{place}");
        result["structuredContent"] = Value::Null;
        assert!(of_tool(&result).is_err() || text.contains("\\u0065"), "{text}");
    }
}

#[test]
fn places_of_a_result_are_bounded_in_number_and_size() {
    let document = v2(json!([entry()]));
    let texts = |count| {
        let text = json!({"type": "text", "text": document.to_string()});
        of_tool(&json!({"content": vec![text; count]}))
    };
    assert!(texts(MAX_PLACES).is_ok());
    assert_eq!(texts(MAX_PLACES + 1).unwrap_err().code, ReasonCode::PaymentTermsAmbiguous);
    let nested = |count| of_tool(&json!({"structuredContent": document, "more": vec![&document; count]}));
    assert!(nested(MAX_PLACES - 1).is_ok());
    assert_eq!(nested(MAX_PLACES).unwrap_err().code, ReasonCode::PaymentTermsAmbiguous);
    assert_eq!(nested(50).unwrap_err().code, ReasonCode::PaymentTermsAmbiguous);
    let body = with(document.clone(), "/more", json!(vec![&document; MAX_PLACES]));
    assert_eq!(
        PaymentTerms::from_reply(&headed(&document, &body.to_string())).unwrap_err().code,
        ReasonCode::PaymentTermsAmbiguous
    );
    let long = json!({"structuredContent": document, "content": [{"text": "x".repeat(RESULT_LIMITS.bytes)}]});
    assert_eq!(refused(of_tool(&long)), malformed_at("toolResult"));
}

/// Types that derive serde's `Deserialize` accept a list of values in place of an object.
#[test]
fn terms_written_as_lists_are_ambiguous() {
    let honest = v2(json!([entry()]));
    let entry =
        json!(["exact", "base-sepolia", "10000", "https://a.example", "", "application/json", THIEF, 60, THIEF]);
    let in_object = json!({"x402Version": 1, "error": "", "accepts": [entry]});
    let in_list = json!([1, [entry], ""]);
    for document in [in_object, in_list] {
        let over_http = PaymentTerms::from_reply(&headed(&honest, &document.to_string()));
        assert_eq!(over_http.expect_err("over HTTP").code, ReasonCode::PaymentTermsAmbiguous, "{document}");
        let over_mcp = of_tool(&result(&[("/structuredContent", &honest), ("/content/0/text", &document)]));
        assert_eq!(over_mcp.expect_err("over MCP").code, ReasonCode::PaymentTermsAmbiguous, "{document}");
    }
    for body in ["[]", r#"["x402"]"#, r#"[{"error": "pay"}]"#, "[1, 2]"] {
        assert!(PaymentTerms::from_reply(&headed(&honest, body)).is_ok(), "{body}");
    }
}

#[test]
fn null_stands_for_an_absent_member() {
    let document = v2(json!([entry()]));
    for place in ["/extensions", "/error", "/resource/mimeType", "/resource/description", "/accepts/0/extra"] {
        let terms = PaymentTerms::from_value(&with(document.clone(), place, Value::Null)).expect(place);
        assert!(terms.entries[0].price.is_ok(), "{place}");
    }
    for member in ["name", "version", "assetTransferMethod"] {
        let terms =
            PaymentTerms::from_value(&with(document.clone(), &format!("/accepts/0/extra/{member}"), Value::Null));
        assert!(terms.expect(member).entries[0].price.is_ok(), "{member}");
    }
    for info in [json!(null), json!({"info": null}), json!({"info": {"offers": null}})] {
        let terms = PaymentTerms::from_value(&with(document.clone(), "/extensions", json!({"offer-receipt": info})));
        assert_eq!(terms.expect("readable").offers, Vec::<Value>::new());
    }
    for place in ["/x402Version", "/resource", "/resource/url", "/accepts"] {
        assert_eq!(refused(PaymentTerms::from_value(&with(document.clone(), place, Value::Null))), malformed_at(place));
    }
}

#[test]
fn challenge_of_another_protocol_beside_terms_is_ambiguous() {
    let document = v2(json!([entry()]));
    let challenge = r#"Payment id="c1", realm="a", method="evm", intent="charge", request="e30""#;
    for (name, value, place) in [
        ("www-authenticate", challenge, Some("WWW-Authenticate")),
        ("Proxy-Authenticate", challenge, Some("Proxy-Authenticate")),
        ("WWW-Authenticate", r#"Bearer realm="a", l402 macaroon="m", invoice="i""#, Some("WWW-Authenticate")),
        ("WWW-Authenticate", r#"Bearer realm="a""#, None),
    ] {
        let headers = [("payment-required", &*encoded(&document)), (name, value)];
        let refusal =
            PaymentTerms::from_reply(&reply(&headers, "")).err().map(|reason| (reason.code, reason.place.unwrap()));
        assert_eq!(
            refusal,
            place.map(|place| (ReasonCode::PaymentTermsAmbiguous, place.to_owned())),
            "{name}: {value}"
        );
    }
    let alone = reply(&[("WWW-Authenticate", challenge)], &v1(json!([entry_v1()])).to_string());
    assert_eq!(
        refused(PaymentTerms::from_reply(&alone)).0,
        ReasonCode::PaymentTermsAmbiguous,
        "beside terms of version 1"
    );
    let mut over_mcp = result(&[("/structuredContent", &document)]);
    over_mcp["error"]["code"] = json!(-32042);
    assert_eq!(refused(of_tool(&over_mcp)), (ReasonCode::PaymentTermsAmbiguous, "/error/code".to_owned()));
    let mut over_mcp = result(&[("/structuredContent", &document)]);
    over_mcp["_meta"]["org.paymentauth/payment-required"] = json!({"challenges": []});
    assert_eq!(refused(of_tool(&over_mcp)).0, ReasonCode::PaymentTermsAmbiguous);
}

#[test]
fn member_in_another_case_is_ambiguous_in_every_place() {
    let honest = v2(json!([entry()]));
    let stolen = json!([with(entry(), "/payTo", THIEF.into())]);
    let renamed = |place: &str| {
        let mut renamed = with(honest.clone(), place, stolen.clone());
        renamed.as_object_mut().unwrap().remove("accepts");
        renamed
    };
    for (document, place) in [
        (with(honest.clone(), "/Accepts", stolen.clone()), "/Accepts"),
        (renamed("/Accepts"), "/Accepts"),
        (renamed("/accept\u{17f}"), "/accept\u{17f}"),
        (with(honest.clone(), "/accepts/0/a\u{17f}set", THIEF.into()), "/accepts/0/a\u{17f}set"),
        (with(honest.clone(), "/accepts/0/networ\u{212a}", json!("eip155:1")), "/accepts/0/networ\u{212a}"),
        (with(honest.clone(), "/X402VERSION", json!(1)), "/X402VERSION"),
        (with(honest.clone(), "/accepts/0/payto", THIEF.into()), "/accepts/0/payto"),
    ] {
        let at = |name: &str| (ReasonCode::PaymentTermsAmbiguous, format!("{name}{place}"));
        assert_eq!(refused(PaymentTerms::from_reply(&headed(&document, ""))), at(""));
        assert_eq!(refused(PaymentTerms::from_reply(&headed(&honest, &document.to_string()))), at("body"));
        assert_eq!(refused(PaymentTerms::from_reply(&reply(&[], &document.to_string()))), at(""));
        for name in ["/structuredContent", "/content/3/text"] {
            let beside = of_tool(&result(&[("/paymentRequired", &honest), (name, &document)]));
            assert_eq!(beside.expect_err(name).code, ReasonCode::PaymentTermsAmbiguous, "{name}: {document}");
        }
    }
    for (place, name) in [
        ("", "Content"),
        ("", "\u{17f}tructuredContent"),
        ("/_meta", "X402/error"),
        ("/error", "Data"),
        ("/content/0", "Text"),
        ("/content/1/resource", "TEXT"),
    ] {
        let mut beside = result(&[("/structuredContent", &honest)]);
        beside.pointer_mut(place).unwrap()[name] = honest.to_string().into();
        assert_eq!(refused(of_tool(&beside)), (ReasonCode::PaymentTermsAmbiguous, place.to_owned()), "{name}");
    }
    let mut own = result(&[("/content/0/text", &honest)]);
    own["structuredContent"] = json!({"Accepts": ["x402"], "Amount": 1, "payto": "anybody"});
    assert!(of_tool(&own).is_ok());
}

#[test]
fn content_that_is_no_list_beside_terms_is_ambiguous() {
    let document = v2(json!([entry()]));
    for content in [json!("text"), json!({"text": document.to_string()}), json!(1)] {
        let refusal = refused(of_tool(&json!({"structuredContent": document, "content": content})));
        assert_eq!(refusal, (ReasonCode::PaymentTermsAmbiguous, "/content".to_owned()));
    }
    for content in [json!(null), json!([])] {
        assert!(of_tool(&json!({"structuredContent": document, "content": content})).is_ok(), "{content}");
    }
}

/// No published client reads these, and any could.
#[test]
fn terms_within_other_texts_are_compared() {
    let (honest, stolen) = (v2(json!([entry()])), v2(json!([with(entry(), "/payTo", THIEF.into())])));
    let written = |terms: &Value| {
        [
            format!("\u{a0}{terms}"),
            format!("Payment required: {terms}"),
            format!("```json\n{terms}\n```"),
            STANDARD.encode(terms.to_string()),
            URL_SAFE_NO_PAD.encode(terms.to_string()),
        ]
    };
    let hidden = |text: &str| {
        ["/content/0/text", "/content/1/resource/blob", "/_meta/x402~1error", "/error/message", "/contents"].map(
            |place| {
                let mut result = result(&[("/structuredContent", &honest)]);
                result["error"] = json!({"code": 402, "message": null});
                result["contents"] = Value::Null;
                result["content"][1]["resource"]["blob"] = Value::Null;
                *result.pointer_mut(place).expect("a place") = text.into();
                result
            },
        )
    };
    let twice = json!(stolen.to_string()).to_string();
    for result in written(&stolen).into_iter().chain([twice]).flat_map(|text| hidden(&text)) {
        assert_eq!(refused(of_tool(&result)).0, ReasonCode::PaymentTermsAmbiguous, "{result}");
    }
    // The first is no JSON text.
    for result in written(&honest).into_iter().skip(1).flat_map(|text| hidden(&text)) {
        assert!(of_tool(&result).is_ok(), "{result}");
    }
    for text in ["This tool accepts any text.", "{any} text", "x".repeat(4096).as_str(), "e30="] {
        for result in hidden(text) {
            assert!(of_tool(&result).is_ok(), "{result}");
        }
    }
}

#[test]
fn older_header_demands_the_same() {
    let (honest, stolen) = (v2(json!([entry()])), v2(json!([with(entry(), "/payTo", THIEF.into())])));
    let beside = |value: &str| {
        PaymentTerms::from_reply(&reply(&[("x-payment-required", value), ("payment-required", &encoded(&honest))], ""))
    };
    assert_eq!(beside(&encoded(&honest)), PaymentTerms::from_value(&honest));
    assert_eq!(beside(""), PaymentTerms::from_value(&honest));
    for value in [encoded(&stolen), "e30".to_owned(), stolen.to_string()] {
        assert_eq!(refused(beside(&value)).0, ReasonCode::PaymentTermsAmbiguous, "{value}");
    }
    let empty = encoded(&json!({}));
    let two =
        [("payment-required", &*encoded(&honest)), ("x-payment-required", &empty), ("x-payment-required", &empty)];
    assert_eq!(refused(PaymentTerms::from_reply(&reply(&two, ""))).1, "X-PAYMENT-REQUIRED");
    let beside_v1 = reply(&[("X-PAYMENT-REQUIRED", &encoded(&stolen))], &v1(json!([entry_v1()])).to_string());
    assert_eq!(refused(PaymentTerms::from_reply(&beside_v1)).0, ReasonCode::PaymentTermsAmbiguous);
}

#[test]
fn compressed_body_is_not_passed_over() {
    let (honest, stolen) = (v2(json!([entry()])), v2(json!([with(entry(), "/payTo", THIEF.into())])));
    let coded = |coding: &str, body: &[u8]| {
        let reply = reply(&[("payment-required", &encoded(&honest)), ("content-encoding", coding)], "");
        PaymentTerms::from_reply(&SellerHttpReply { body: body.to_vec(), ..reply })
    };
    let gzip = |text: &str| {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(text.as_bytes()).expect("memory");
        packed.finish().expect("memory")
    };
    for coding in ["gzip", "X-GZIP"] {
        assert_eq!(coded(coding, &gzip(&honest.to_string())), PaymentTerms::from_value(&honest));
        assert_eq!(refused(coded(coding, &gzip(&stolen.to_string()))).1, "body/accepts/0/payTo");
        // A page for people.
        assert!(coded(coding, &gzip(&"<p>".repeat(MAX_TERMS_BYTES))).is_ok());
    }
    // White space within one member and terms in the next.
    let blank = [gzip(&" ".repeat(MAX_TERMS_BYTES + 1)), gzip(&stolen.to_string())].concat();
    // A stored block of deflate that is text, as terms may be behind it.
    let deflate = [b"! @\xdf\xbf".as_slice(), stolen.to_string().as_bytes()].concat();
    let (bomb, cut) = (gzip(&format!("{{{}", " ".repeat(1 << 20))), gzip("{}")[..15].to_vec());
    for (coding, body) in [
        ("gzip", &bomb[..]),
        ("gzip", &cut),
        ("gzip", &blank),
        ("deflate", &deflate),
        ("gzip, gzip", &gzip("{}")),
        ("br", b"\x0b\x02\x80{}\x03"),
        ("zstd", b"(\xb5/\xfd"),
    ] {
        assert_eq!(refused(coded(coding, body)), (ReasonCode::PaymentTermsAmbiguous, "body".to_owned()), "{coding}");
    }
    assert!(coded("br", b"<p>decoded</p>").is_ok());
    // A client that decodes leaves the header as it came.
    assert_eq!(coded("gzip", b"{\"error\": \"payment required\"}\r\n"), PaymentTerms::from_value(&honest));
    assert_eq!(coded("br", b""), PaymentTerms::from_value(&honest));
    for first in ["gzip", "identity"] {
        let lines =
            [("payment-required", &*encoded(&honest)), ("content-encoding", first), ("content-encoding", "gzip")];
        let lines = SellerHttpReply { body: gzip(&honest.to_string()), ..reply(&lines, "") };
        assert_eq!(refused(PaymentTerms::from_reply(&lines)).1, "body");
    }
}

#[test]
fn demand_of_another_protocol_is_refused_wherever_it_stands() {
    let terms = v2(json!([entry()]));
    let body = json!({"jsonrpc": "2.0", "error": {"code": -32042, "data": {"challenges": []}}});
    assert_eq!(refused(PaymentTerms::from_reply(&headed(&terms, &body.to_string()))).1, "/error/code");
    let lightning = with(entry(), "/extra/invoice", "lnbc1".into());
    let both = v2(json!([entry(), lightning]));
    let place = "/accepts/1/extra/invoice";
    assert_eq!(refused(PaymentTerms::from_value(&both)).1, place);
    assert_eq!(refused(PaymentTerms::from_reply(&headed(&both, ""))).1, place);
    assert_eq!(refused(of_tool(&result(&[("/structuredContent", &both)]))).1, format!("/structuredContent{place}"));
    assert_eq!(refused(PaymentTerms::from_reply(&headed(&terms, &both.to_string()))).1, format!("body{place}"));
}

#[test]
fn one_network_has_a_name_in_each_version() {
    let solana = "solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1";
    let (mint, payee) =
        ("4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU", "2wKupLR9q6wXYppw8Gr2NvWxKBUqm4PPJKkQfoxHDBg4");
    let of_solana = |entry: Value, network: &str| {
        let entry = with(with(entry, "/network", network.into()), "/asset", mint.into());
        with(entry, "/payTo", payee.into())
    };
    let terms = v2(json!([entry(), of_solana(entry(), solana)]));
    let body = |network: &str| v1(json!([entry_v1(), of_solana(entry_v1(), network)])).to_string();
    assert!(PaymentTerms::from_reply(&headed(&terms, &body("solana-devnet"))).is_ok());
    assert_eq!(
        refused(PaymentTerms::from_reply(&headed(&terms, &body("solana")))).0,
        ReasonCode::PaymentTermsAmbiguous
    );
}
