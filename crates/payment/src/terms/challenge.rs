//! Detects payment challenges of other protocols next to x402 terms. Their contents are not checked, and a client that
//! supports both protocols may prefer the other one.

use serde_json::{Map, Value};

use clresolve_core::reason::Reason;

use super::reading::{ambiguous_terms_reason, is_case_variant_of};

/// Headers that contain challenges (RFC 9110, sections 11.6 and 11.7).
pub(super) const HEADERS: [&str; 2] = ["WWW-Authenticate", "Proxy-Authenticate"];

/// Authentication schemes of the Machine Payments Protocol (MPP) and of Lightning. A client may mistake any scheme that
/// contains such a name for the protocol.
const SCHEMES: [&str; 3] = ["payment", "l402", "lsat"];

/// Parameters by which Lightning clients find an invoice, whatever the scheme of the challenge.
const PARAMETERS: [&str; 2] = ["invoice", "macaroon"];

/// Prefix of MPP member names in `_meta` of an MCP message.
const META_PREFIX: &str = "org.paymentauth/";

/// The only MPP member that neither demands nor permits a payment.
const META_RECEIPT: &str = "org.paymentauth/receipt";

/// JSON-RPC error codes with MPP challenges: a payment is required, or the payment that was sent is invalid. MPP
/// clients pay after either.
const ERROR_CODES: [i64; 2] = [-32042, -32043];

pub(super) fn check_challenge_headers(headers: &[(String, String)]) -> Result<(), Box<Reason>> {
    for (name, value) in headers {
        let Some(header) = HEADERS.into_iter().find(|header| header.eq_ignore_ascii_case(name)) else { continue };
        let Some(scheme) = find_payment_scheme(value) else { continue };
        let message = format!(
            "The reply's {header} header demands payment by a protocol other than x402, which clresolve cannot check. \
             Remove that challenge before the client sees the reply."
        );
        let reason =
            ambiguous_terms_reason(header, &message).expected("no challenge of a payment protocol").observed(scheme);
        return Err(Box::new(reason));
    }
    Ok(())
}

/// Rejects a tool's result, or the JSON-RPC error in its place, if it contains a payment challenge.
pub(super) fn check_result_challenges(result: &Value) -> Result<(), Box<Reason>> {
    if let Some(Value::Object(meta)) = result.get("_meta") {
        check_meta_challenges(meta)?;
    }
    for pointer in ["/error/code", "/code"] {
        let code = result.pointer(pointer).and_then(Value::as_f64);
        if let Some(code) = ERROR_CODES.into_iter().find(|known| code == Some(*known as f64)) {
            let reason = ambiguous_terms_reason(
                pointer,
                "The tool demands payment by a protocol other than x402, which clresolve cannot check.",
            );
            return Err(Box::new(reason.expected("another code").observed(code.to_string())));
        }
    }
    Ok(())
}

/// Rejects `_meta` of an MCP message, in either direction, if it contains a challenge or payment of another protocol.
///
/// # Errors
/// `payment-terms-ambiguous`.
pub fn check_meta_challenges(meta: &Map<String, Value>) -> Result<(), Box<Reason>> {
    let of_payment = |name: &&String| name.starts_with(META_PREFIX) && *name != META_RECEIPT;
    let Some(name) = meta.keys().find(of_payment) else { return Ok(()) };
    let place = format!("/_meta/{}", name.replace('~', "~0").replace('/', "~1"));
    let message = "The message demands or makes a payment by a protocol other than x402, which clresolve cannot check.";
    Err(Box::new(
        ambiguous_terms_reason(&place, message)
            .expected("no such member")
            .observed(clresolve_core::text::excerpt_text(name)),
    ))
}

/// Rejects terms with an entry that clients pay at once, without a payment header that could be checked first.
pub(super) fn reject_lightning_entries(terms: &Value, place: &str) -> Result<(), Box<Reason>> {
    let entries = terms.get("accepts").and_then(Value::as_array).into_iter().flatten().enumerate();
    for (index, entry) in entries {
        for (object, part) in [(Some(entry), ""), (entry.get("extra"), "/extra")] {
            let Some(Value::Object(members)) = object else { continue };
            let Some((name, value)) = members.iter().find(|(name, value)| is_lightning_member(name, value)) else {
                continue;
            };
            let message = "An entry demands payment by Lightning. Its client pays before it sends a header that could be \
                           checked.";
            let place = format!("{place}/accepts/{index}{part}/{}", name.replace('~', "~0").replace('/', "~1"));
            let reason = ambiguous_terms_reason(&place, message).expected("no such member");
            return Err(Box::new(reason.observed(clresolve_core::text::excerpt_text(&value.to_string()))));
        }
    }
    Ok(())
}

fn is_lightning_member(member: &str, value: &Value) -> bool {
    let is_invoice = PARAMETERS.iter().any(|name| is_case_variant_of(member, name)) && !value.is_null();
    let names_lightning = || value.as_str().is_some_and(|method| method.eq_ignore_ascii_case("lightning"));
    is_invoice || (is_case_variant_of(member, "paymentmethod") && names_lightning())
}

/// The payment scheme of a challenge, or a parameter that only such a challenge has. The value is parsed both by RFC
/// 9110 and as leniently as any client might.
fn find_payment_scheme(value: &str) -> Option<&'static str> {
    let value = &*value.to_ascii_lowercase();
    let strictly = split_challenges(value).enumerate().find_map(|(index, challenge)| {
        let (token, rest) = challenge.split_at(token_length(challenge));
        // Some clients look only at the start of the value.
        let is_parameter = index > 0 && rest.trim_start().starts_with('=');
        scheme_in_token(token).filter(|_| !is_parameter)
    });
    strictly.or_else(|| find_scheme_loosely(value))
}

fn scheme_in_token(token: &str) -> Option<&'static str> {
    SCHEMES.into_iter().find(|scheme| token.contains(scheme))
}

/// Splits a list at commas outside quoted strings.
fn split_challenges(value: &str) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let elements = value.split(move |character: char| {
        let is_separator = character == ',' && !is_quoted;
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ => {}
        }
        is_separator
    });
    elements.map(str::trim)
}

/// Finds a scheme that is followed by a parameter, or an invoice parameter, anywhere in the value. Clients that search
/// with a pattern find these inside quoted strings too.
fn find_scheme_loosely(value: &str) -> Option<&'static str> {
    let mut rest = value;
    while !rest.is_empty() {
        let (token, behind) = rest.split_at(token_length(rest));
        let scheme = scheme_in_token(token).filter(|_| starts_with_parameter(behind));
        let parameter = || {
            PARAMETERS
                .into_iter()
                .find(|name| token_ends_with_parameter(token, name) && starts_with_parameter_value(behind))
        };
        if let Some(found) = scheme.or_else(parameter) {
            return Some(found);
        }
        rest = behind.get(behind.chars().next().map_or(0, char::len_utf8)..).unwrap_or_default();
    }
    None
}

/// Whether a parameter value follows.
fn starts_with_parameter_value(behind: &str) -> bool {
    behind.trim_start().starts_with('=')
}

/// Whether a parameter follows after white space.
fn starts_with_parameter(behind: &str) -> bool {
    let parameter = behind.trim_start();
    let (name, equals) = parameter.split_at(token_length(parameter));
    parameter.len() < behind.len() && !name.is_empty() && starts_with_parameter_value(equals)
}

/// Whether a client finds the parameter in a token. Some clients first remove the names of their schemes.
fn token_ends_with_parameter(token: &str, name: &str) -> bool {
    let is_split = || token.contains("l402") || token.contains("lsat");
    token.ends_with(name) || is_split() && token.replace("l402", "").replace("lsat", "").ends_with(name)
}

/// Length of the token (RFC 9110, section 5.6.2) at the start of a text.
fn token_length(text: &str) -> usize {
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    text.bytes().position(|byte| !is_token(&byte)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn challenge_of_a_payment_protocol_is_found() {
        for value in [
            r#"Payment id="c1", realm="a", method="evm", intent="charge", request="e30""#,
            "payment",
            "PAYMENT id=c1",
            "Payment e30=",
            r#"Bearer realm="a", Payment id="c1""#,
            r#"Basic realm="a, b \" c", charset="UTF-8" , L402 macaroon="m", invoice="i""#,
            r#"LSAT macaroon="m", invoice="i", Bearer"#,
            r#", ,	lsat macaroon="m""#,
            r#"Bearer realm="a, Payment id="c1""#,
            r#"Bearer realm="a, Payment id = c1""#,
            r#"Bearer Payment id="c1""#,
            "Bearer realm=\"\u{e9}\",Payment\tid=\"c1\"",
            "Negotiate YWFh, Payments id=1",
            "Payment-2 e30=",
            r#"Paymentid="c1", method="lightning""#,
            r#"payment=1, id="c1""#,
            r#"L402x token="m""#,
            r#"Bearer token="m", invoice="lnbc1""#,
            r#"Basic realm="x", MACAROON = m"#,
            r#"Bearer token="m", invL402oice="lnbc1""#,
            r#"Bearer token="m", invLSL402AToice="lnbc1""#,
        ] {
            assert!(find_payment_scheme(value).is_some(), "{value}");
        }
    }

    #[test]
    fn challenge_of_another_scheme_is_none_of_a_payment() {
        for value in [
            "",
            "Bearer",
            r#"Basic realm="Payment required", charset="UTF-8""#,
            r#"Bearer realm="a", scope="payment", error="l402""#,
            r#"Digest realm="a", payment="b""#,
            r#"DPoP algs="ES256", payment = b"#,
            r#"Bearer realm="the invoice is paid""#,
        ] {
            assert_eq!(find_payment_scheme(value), None, "{value}");
        }
    }

    #[test]
    fn entry_that_is_paid_before_a_header_is_refused() {
        let checked = |entry: Value| {
            reject_lightning_entries(&json!({"accepts": [{"payTo": "0x1"}, entry]}), "body")
                .err()
                .and_then(|reason| reason.place)
        };
        for (entry, place) in [
            (json!({"extra": {"invoice": "lnbc1"}}), Some("body/accepts/1/extra/invoice")),
            (json!({"Invoice": "lnbc1"}), Some("body/accepts/1/Invoice")),
            (json!({"extra": {"paymentMethod": "Lightning"}}), Some("body/accepts/1/extra/paymentMethod")),
            (json!({"extra": {"macaroon": {}}}), Some("body/accepts/1/extra/macaroon")),
            (json!({"extra": {"paymentMethod": "usdc", "invoice": null, "name": "invoice"}}), None),
            (json!({"extra": null}), None),
        ] {
            assert_eq!(checked(entry.clone()).as_deref(), place, "{entry}");
        }
    }

    #[test]
    fn header_with_a_payment_challenge_is_refused_in_any_case() {
        for (name, expected) in [
            ("www-authenticate", Some("WWW-Authenticate")),
            ("PROXY-Authenticate", Some("Proxy-Authenticate")),
            ("x-authenticate", None),
        ] {
            let headers = [("date".to_owned(), "now".to_owned()), (name.to_owned(), r#"pAyMeNt id="c1""#.to_owned())];
            let place = check_challenge_headers(&headers).err().and_then(|reason| reason.place);
            assert_eq!(place.as_deref(), expected);
        }
    }

    #[test]
    fn result_with_a_payment_challenge_is_refused() {
        for (result, place) in [
            (json!({"error": {"code": -32042, "data": {"challenges": []}}}), Some("/error/code")),
            (json!({"code": -32042.0}), Some("/code")),
            (json!({"error": {"code": -32043}}), Some("/error/code")),
            (json!({"error": {"code": -32041}}), None),
            (
                json!({"_meta": {"org.paymentauth/payment-required": {}}}),
                Some("/_meta/org.paymentauth~1payment-required"),
            ),
            (json!({"_meta": {"org.paymentauth/credential": {}}}), Some("/_meta/org.paymentauth~1credential")),
            (json!({"_meta": {"org.paymentauth/receipt": {}, "x402/error": {}}, "error": {"code": 402}}), None),
        ] {
            assert_eq!(
                check_result_challenges(&result).err().and_then(|reason| reason.place).as_deref(),
                place,
                "{result}"
            );
        }
    }
}
