//! Payment challenges and credentials of protocols other than x402.
//!
//! One response can demand payment through x402 and through another protocol. clresolve judges only the x402 terms, so
//! the payment client must never see the other demand.

use std::ops::Range;

use http::header::{AUTHORIZATION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Body, Request, Response, StatusCode};

/// What an auth scheme that demands a payment contains: clients take `Payments` or `L402x` for one, too.
const SCHEMES: [&str; 3] = ["payment", "l402", "lsat"];

/// The ends of the parameters by which clients of Lightning find an invoice, whatever the scheme, and even inside a
/// quoted string.
const PARAMETERS: [&str; 2] = ["invoice", "macaroon"];

/// Maximum length of the rest of such a name behind the name of a scheme.
const MAX_REST: usize = 10;

/// The headers that carry challenges.
const CHALLENGE_HEADERS: [HeaderName; 2] = [WWW_AUTHENTICATE, PROXY_AUTHENTICATE];

/// The headers in which clients find terms.
const TERMS_HEADERS: [&str; 2] = ["payment-required", "x-payment-required"];

/// The headers in which the published clients send credentials.
const CREDENTIAL_HEADERS: [HeaderName; 3] =
    [AUTHORIZATION, PROXY_AUTHORIZATION, HeaderName::from_static("payment-authorization")];

/// The member of an MCP request body in which the published clients send credentials.
const CREDENTIAL_MEMBER: &[u8] = b"org.paymentauth/credential\"";

/// Minimum length in bytes of a credential of MPP (JSON in base64) in any other header. Other headers are searched
/// because a challenge can name the header to use.
const CREDENTIAL_BYTES: usize = 32;

/// Maximum length of a challenge header that is parsed, in bytes. A longer one is removed if it mentions a payment.
const MAX_CHALLENGES_BYTES: usize = 16 * 1024;

/// Whether a request carries a credential of another payment protocol.
pub(crate) fn headers_carry_credential(headers: &HeaderMap) -> bool {
    headers.iter().any(|(name, value)| is_credential_header(name, value.as_bytes()))
}

/// Whether the body of a request carries such a credential. A streamed body is not inspected.
pub(crate) fn body_carries_credential(request: &Request) -> bool {
    let body = unescape_ascii_json(request.body().and_then(Body::as_bytes).unwrap_or_default());
    let mut ends = (0..body.len()).filter_map(|at| body[at..].strip_prefix(CREDENTIAL_MEMBER));
    ends.any(|behind| behind.trim_ascii_start().starts_with(b":"))
}

/// A JSON text without escapes of ASCII characters: a member's name has many spellings.
fn unescape_ascii_json(text: &[u8]) -> Vec<u8> {
    let (mut plain, mut left) = (Vec::with_capacity(text.len()), text);
    while let Some((first, rest)) = left.split_first() {
        let escaped = match rest {
            [b'u', b'0', b'0', code @ ..] => {
                code.split_at_checked(2).and_then(|(code, rest)| Some((parse_hex_byte(code)?, rest)))
            }
            _ => None,
        };
        let (byte, rest) = match (first, rest.split_first()) {
            (b'\\', Some((&other, after))) => escaped.unwrap_or((other, after)),
            _ => (*first, rest),
        };
        plain.push(byte);
        left = rest;
    }
    plain
}

fn parse_hex_byte(code: &[u8]) -> Option<u8> {
    u8::from_str_radix(str::from_utf8(code).ok()?, 16).ok()
}

fn is_credential_header(name: &HeaderName, value: &[u8]) -> bool {
    let belongs_here = CREDENTIAL_HEADERS.contains(name);
    value.split(|&byte| byte == b',').any(|element| {
        let scheme = skip_matching_bytes(element, 0, is_invisible_byte);
        if belongs_here {
            let rest = match_word_at(element, scheme, &SCHEMES);
            return rest.is_some_and(|rest| !element.get(rest).copied().is_some_and(is_token_byte));
        }
        let Some(rest) = match_word_at(element, scheme, &["payment"]) else { return false };
        let start = skip_matching_bytes(element, rest, is_invisible_byte);
        start > rest
            && match_word_at(element, start, &["ew", "ey"]).is_some()
            && skip_matching_bytes(element, start, is_visible_byte) - start >= CREDENTIAL_BYTES
    })
}

/// Removes the payment challenges of other protocols from the headers of a response.
fn remove_payment_challenges(headers: &mut HeaderMap) {
    for name in CHALLENGE_HEADERS {
        let values: Vec<HeaderValue> = headers.get_all(&name).iter().cloned().collect();
        let kept: Vec<_> = values.iter().map(|value| strip_payment_challenges(value.as_bytes())).collect();
        if values.iter().zip(&kept).all(|(value, kept)| value.as_bytes() == kept) {
            continue;
        }
        headers.remove(&name);
        // Removing parts of a valid header value leaves a valid value.
        for value in kept.iter().filter(|kept| !kept.is_empty()).filter_map(|kept| HeaderValue::from_bytes(kept).ok()) {
            headers.append(name.clone(), value);
        }
    }
}

/// Removes the payment challenges of other protocols, and terms from responses other than a 402: some clients pay them
/// whatever the status.
pub(crate) fn strip_other_payment_demands(response: &mut Response) {
    let is_demand = response.status() == StatusCode::PAYMENT_REQUIRED;
    remove_payment_challenges(response.headers_mut());
    for name in TERMS_HEADERS.into_iter().filter(|_| !is_demand) {
        response.headers_mut().remove(name);
    }
}

/// Removes the payment challenges from a value. An ambiguous value that mentions a payment is removed completely (the
/// result is empty). A value without a payment challenge is returned unchanged.
fn strip_payment_challenges(value: &[u8]) -> Vec<u8> {
    if find_word_ends(value, &SCHEMES).next().is_none() && !has_invoice_parameter(value) {
        return value.to_vec();
    }
    let challenges = if value.len() <= MAX_CHALLENGES_BYTES { parse_challenges(value) } else { None };
    let Some(challenges) = challenges else { return Vec::new() };
    let is_other = |one: &&AuthChallengeRange| {
        find_word_ends(&value[one.whole.start..one.scheme_end], &SCHEMES).next().is_none()
            && !has_invoice_parameter(&value[one.whole.clone()])
    };
    let others: Vec<&[u8]> = challenges.iter().filter(is_other).map(|one| &value[one.whole.clone()]).collect();
    let kept = if others.len() == challenges.len() { value.to_vec() } else { others.join(&b", "[..]) };
    if contains_challenge_lookalike(&kept) { Vec::new() } else { kept }
}

/// Whether a parameter by which clients find an invoice is in this text.
fn has_invoice_parameter(text: &[u8]) -> bool {
    // Some clients drop the names of schemes from a parameter first (`invL402oice`).
    let split = find_word_ends(text, &["l402", "lsat"]).map(|end| {
        let rest = skip_matching_bytes(text, end, |byte| byte.is_ascii_alphabetic());
        if rest - end <= MAX_REST { rest } else { end }
    });
    find_word_ends(text, &PARAMETERS)
        .chain(split)
        .any(|end| text.get(skip_matching_bytes(text, end, is_invisible_byte)) == Some(&b'='))
}

/// Whether a client that searches for challenges would find one in this text, even in a quoted string: a scheme, a gap,
/// and a name with a value.
fn contains_challenge_lookalike(text: &[u8]) -> bool {
    let mut token_end = 0;
    find_word_ends(text, &SCHEMES).any(|end| {
        if end <= token_end {
            return false;
        }
        let end = skip_matching_bytes(text, end, is_token_byte);
        token_end = end;
        let name = skip_matching_bytes(text, end, is_invisible_byte);
        let after = skip_matching_bytes(text, name, |byte| is_visible_byte(byte) && !b"\",=".contains(&byte));
        let equals = if after > name { skip_matching_bytes(text, after, is_invisible_byte) } else { name };
        name > end && text.get(equals) == Some(&b'=')
    })
}

/// The end of each mention of one of the words.
fn find_word_ends(text: &[u8], words: &[&str]) -> impl Iterator<Item = usize> {
    (0..text.len()).filter_map(move |at| match_word_at(text, at, words))
}

/// The end of the word at this position, compared without regard to case.
fn match_word_at(text: &[u8], at: usize, words: &[&str]) -> Option<usize> {
    let ends = words.iter().map(|word| (word, at + word.len()));
    let found = |&(scheme, end): &(&&str, usize)| {
        text.get(at..end).is_some_and(|word| word.eq_ignore_ascii_case(scheme.as_bytes()))
    };
    ends.into_iter().find(found).map(|(_, end)| end)
}

struct AuthChallengeRange {
    scheme_end: usize,
    whole: Range<usize>,
}

/// Parses the challenges of a value (RFC 9110, sections 11.2 and 11.3). `None` if it does not follow the grammar.
fn parse_challenges(value: &[u8]) -> Option<Vec<AuthChallengeRange>> {
    let mut challenges: Vec<AuthChallengeRange> = Vec::new();
    let mut at = skip_matching_bytes(value, 0, is_separator_byte);
    while at < value.len() {
        let name_end = find_token_end(value, at)?;
        let end = if let Some(end) = find_auth_parameter_end(value, at) {
            challenges.last_mut()?.whole.end = end;
            end
        } else {
            let argument = skip_matching_bytes(value, name_end, |byte| byte == b' ');
            let has_argument = argument > name_end;
            let end = has_argument
                .then(|| find_auth_parameter_end(value, argument).or_else(|| find_token68_end(value, argument)))
                .flatten();
            let end = end.unwrap_or(name_end);
            challenges.push(AuthChallengeRange { scheme_end: name_end, whole: at..end });
            end
        };
        let next = skip_matching_bytes(value, end, is_blank_byte);
        if value.get(next).is_some_and(|&byte| byte != b',') {
            return None;
        }
        at = skip_matching_bytes(value, next, is_separator_byte);
    }
    Some(challenges)
}

/// The end of the token at this position.
fn find_token_end(value: &[u8], at: usize) -> Option<usize> {
    Some(skip_matching_bytes(value, at, is_token_byte)).filter(|&end| end > at)
}

/// The end of the parameter at this position.
fn find_auth_parameter_end(value: &[u8], at: usize) -> Option<usize> {
    let equals = skip_matching_bytes(value, find_token_end(value, at)?, is_blank_byte);
    if value.get(equals) != Some(&b'=') {
        return None;
    }
    let at = skip_matching_bytes(value, equals + 1, is_blank_byte);
    find_token_end(value, at).or_else(|| find_quoted_string_end(value, at))
}

fn find_quoted_string_end(value: &[u8], at: usize) -> Option<usize> {
    if value.get(at) != Some(&b'"') {
        return None;
    }
    let mut at = at + 1;
    loop {
        match value.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' if value.get(at + 1).copied().is_some_and(is_quoted_text_byte) => at += 2,
            &byte if is_quoted_text_byte(byte) && byte != b'\\' => at += 1,
            _ => return None,
        }
    }
}

fn find_token68_end(value: &[u8], at: usize) -> Option<usize> {
    let end = skip_matching_bytes(value, at, |byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte));
    Some(skip_matching_bytes(value, end, |byte| byte == b'=')).filter(|_| end > at)
}

/// The first position from `from` whose byte does not satisfy `is_one`.
fn skip_matching_bytes(text: &[u8], from: usize, is_one: impl Fn(u8) -> bool) -> usize {
    text[from..].iter().position(|&byte| !is_one(byte)).map_or(text.len(), |count| from + count)
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn is_blank_byte(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

fn is_separator_byte(byte: u8) -> bool {
    is_blank_byte(byte) || byte == b','
}

fn is_visible_byte(byte: u8) -> bool {
    byte.is_ascii_graphic()
}

fn is_invisible_byte(byte: u8) -> bool {
    !is_visible_byte(byte)
}

fn is_quoted_text_byte(byte: u8) -> bool {
    byte == b'\t' || !byte.is_ascii_control()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::paid::latin1_to_string;

    /// The test values that all four guards share.
    #[derive(Deserialize)]
    struct Cases {
        challenges: Vec<(String, String)>,
        credentials: Vec<(String, String)>,
        others: Vec<(String, String)>,
        repeat: Repeat,
    }

    #[derive(Deserialize)]
    struct Repeat {
        text: String,
        times: usize,
    }

    fn cases() -> Cases {
        serde_json::from_str(include_str!("../../testing/challenges.json")).expect("the cases")
    }

    /// Each character as one byte, as in every HTTP header.
    fn bytes(text: &str) -> Vec<u8> {
        text.chars().map(|one| u8::try_from(u32::from(one)).expect("latin-1")).collect()
    }

    #[test]
    fn payment_challenges_are_removed_and_others_stay() {
        let Cases { challenges, repeat, .. } = cases();
        for (value, kept) in challenges {
            let long = |text: &str| text.replace('#', &repeat.text.repeat(repeat.times));
            assert_eq!(latin1_to_string(&strip_payment_challenges(&bytes(&long(&value)))), long(&kept), "{value}");
        }
    }

    #[test]
    fn credentials_of_other_payment_protocols_are_recognized() {
        let Cases { credentials, others, .. } = cases();
        for (cases, expected) in [(credentials, true), (others, false)] {
            for (name, value) in cases {
                let header = name.parse().expect("a name");
                assert_eq!(is_credential_header(&header, &bytes(&value)), expected, "{name}: {value}");
            }
        }
    }
}
