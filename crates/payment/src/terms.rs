//! The terms that a seller demands: x402 versions 1 and 2, parsed strictly from the raw reply into one type.

mod agreement;
mod challenge;
mod demand;
mod places;
mod reading;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::io::Read as _;

use flate2::bufread::GzDecoder;
use serde_json::Value;

use clresolve_core::json::{JsonLimits, parse_strict_json};
use clresolve_core::mutant;
use clresolve_core::reason::Reason;
use clresolve_core::text::excerpt_text;

use crate::encoding::{base64_length, decode_header_json};
use places::{TermsPlace, may_be_an_object};
use reading::{ambiguous_terms_reason, malformed_terms_reason, parse_terms};

pub(crate) use agreement::without_nulls;
pub use challenge::check_meta_challenges;
pub use demand::{
    ExactPrice, MAX_ENTRIES, PaymentOption, PaymentTerms, StatedEip712Domain, TransferMethod, X402Version,
};
pub(crate) use reading::parse_price;

/// Maximum size of decoded terms. Published terms take two kilobytes.
pub const MAX_TERMS_BYTES: usize = 64 * 1024;

/// Maximum length of a header that contains terms, in base64.
pub const MAX_VALUE_BYTES: usize = base64_length(MAX_TERMS_BYTES);

/// Maximum number of headers of a reply: more than any HTTP client accepts by default.
pub const MAX_HEADERS: usize = 256;

/// The header that contains terms in version 2.
pub const HEADER: &str = "PAYMENT-REQUIRED";

/// The name of that header before it was standard. Some clients read it first.
const OLDER_HEADER: &str = "X-PAYMENT-REQUIRED";

/// Names the compression of a body (RFC 9110, section 8.4).
const CONTENT_ENCODING: &str = "Content-Encoding";

/// Parser limits for terms. Extensions contain JSON Schemas, which nest two or three levels for each level that they
/// describe. Published terms stay below half of each limit.
pub(crate) const LIMITS: JsonLimits =
    JsonLimits { bytes: MAX_TERMS_BYTES, levels: 32, values: 4096, name: 1024, paths: 512 * 1024 };

/// Parser limits for a tool's result: room for terms in each of its places, some of them encoded as text.
const RESULT_LIMITS: JsonLimits = JsonLimits {
    bytes: 4 * MAX_TERMS_BYTES,
    levels: LIMITS.levels + 4,
    values: 2 * LIMITS.values,
    name: LIMITS.name,
    paths: 4 * LIMITS.paths,
};

/// The HTTP status of a demand for payment.
const STATUS: u16 = 402;

/// A seller's unmodified reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SellerHttpReply {
    /// The status.
    pub status: u16,
    /// The headers in order. A repeated header is listed repeatedly.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl PaymentTerms {
    /// Parses the terms in an HTTP reply.
    ///
    /// # Errors
    /// `payment-terms-malformed` or `payment-terms-ambiguous`.
    pub fn from_reply(reply: &SellerHttpReply) -> Result<Self, Box<Reason>> {
        if reply.status != STATUS && !mutant!("any-status-demands") {
            let message = "Only a reply with status 402 demands a payment.";
            return Err(malformed_terms_reason("status", message)
                .expected("402")
                .observed(reply.status.to_string())
                .into());
        }
        let header = terms_header(&reply.headers)?;
        challenge::check_challenge_headers(&reply.headers)?;
        let body = decoded_body(reply)?;
        let older = older_header_terms(&reply.headers)?;
        let mut places = Vec::new();
        for terms in &older {
            places.extend(places::terms_places_in_document(terms, OLDER_HEADER)?);
        }
        Self::from_header_and_body(header, &body)?.require_agreement(&places)
    }

    fn from_header_and_body(header: Option<&str>, body: &[u8]) -> Result<Self, Box<Reason>> {
        let header =
            header.filter(|value| !mutant!("broken-header-is-no-header") || decode_header_json(value, LIMITS).is_ok());
        let Some(header) = header else { return Self::from_body(body) };
        let terms = Self::from_header(header)?;
        if let Some(list) = places::parse_list_encoded_terms(body, LIMITS) {
            return terms.require_agreement(&places::terms_places_in_document(&list, "body")?);
        }
        if !may_be_an_object(body) || mutant!("body-beside-the-header-is-ignored") {
            return Ok(terms);
        }
        let body = parse_strict_json(body, LIMITS).map_err(|error| {
            let message =
                "The body beside the header PAYMENT-REQUIRED cannot be read strictly, so it may demand anything.";
            Box::new(ambiguous_terms_reason("body", message).observed(excerpt_text(&error.to_string())))
        })?;
        challenge::check_result_challenges(&body)?;
        terms.require_agreement(&places::terms_places_in_document(&body, "body")?)
    }

    /// Parses terms from a JSON value, as an SDK passes them on.
    ///
    /// # Errors
    /// `payment-terms-malformed`, or `payment-terms-ambiguous` if the case of a member's name differs.
    pub fn from_value(value: &Value) -> Result<Self, Box<Reason>> {
        challenge::reject_lightning_entries(value, "")?;
        parse_terms(value)
    }

    /// Like [`PaymentTerms::from_value`], for unparsed JSON text. Duplicate members make it malformed.
    ///
    /// # Errors
    /// `payment-terms-malformed`, or `payment-terms-ambiguous` if the text contains other terms at a deeper level.
    pub fn from_json(text: &str) -> Result<Self, Box<Reason>> {
        let document = parse_strict_json(text.as_bytes(), LIMITS).map_err(|error| {
            malformed_terms_reason("paymentRequired", "The terms cannot be read.")
                .observed(excerpt_text(&error.to_string()))
        })?;
        Self::from_value(&document)?
            .require_agreement(&other_terms_places(places::terms_places_in_document(&document, "")?, &document))
    }

    /// Parses the terms in the JSON result of an MCP tool. Clients read `structuredContent`, a text of `content`,
    /// `_meta["x402/error"]`, `paymentRequired`, or the data of a JSON-RPC error.
    ///
    /// # Errors
    /// `payment-terms-malformed`, or `payment-terms-ambiguous` if two places differ.
    pub fn from_tool_result(result: &str) -> Result<Self, Box<Reason>> {
        let result = parse_strict_json(result.as_bytes(), RESULT_LIMITS).map_err(|error| {
            malformed_terms_reason("toolResult", "The tool's result cannot be read.")
                .observed(excerpt_text(&error.to_string()))
        })?;
        challenge::check_result_challenges(&result)?;
        places::check_member_case(&result)?;
        let texts = places::result_texts(&result, LIMITS)?;
        let places = places::terms_places_in_tool_result(&result, &texts)?;
        let is_v2 = |place: &&TermsPlace<'_>| place.document.get("x402Version").and_then(Value::as_u64) == Some(2);
        let read = || places.iter().filter(|place| place.is_read);
        let judged = read().find(is_v2).or_else(|| read().next());
        let unreadable = texts.iter().find_map(|(name, text)| Some((name, text.as_ref().err()?)));
        match (judged, unreadable) {
            (Some(_), Some((name, error))) => {
                let message = "A text of the tool's result cannot be parsed strictly, so it may demand anything.";
                Err(Box::new(ambiguous_terms_reason(name, message).observed(excerpt_text(&error.to_string()))))
            }
            (None, Some((name, error))) => {
                let message = "A text of the tool's result cannot be parsed, and no other place contains terms.";
                Err(malformed_terms_reason(name, message).observed(excerpt_text(&error.to_string())).into())
            }
            (None, None) => {
                let message = "The tool's result contains no terms in the places where x402 clients read them.";
                Err(malformed_terms_reason("toolResult", message).expected("accepts, with an entry").into())
            }
            (Some(judged), None) => {
                if result.get("content").is_some_and(|content| !content.is_array() && !content.is_null()) {
                    let message = "The content of the tool's result is not a list, so clients may find anything in it.";
                    return Err(Box::new(ambiguous_terms_reason("/content", message).expected("a list")));
                }
                let document = judged.document;
                let terms = Self::from_value(document).map_err(|reason| {
                    let place = format!("{}{}", judged.name, reason.place.as_deref().unwrap_or_default());
                    Box::new(reason.at_place(place))
                })?;
                terms.require_agreement(&other_terms_places(places, document))
            }
        }
    }

    /// Whether they contain an offer that a key in `cl.sig.pub` may have signed.
    pub fn has_jws_offers(&self) -> bool {
        self.offers.iter().any(|offer| offer.get("format").and_then(Value::as_str) == Some("jws"))
    }

    fn from_header(header: &str) -> Result<Self, Box<Reason>> {
        let document = decode_header_json(header, LIMITS).map_err(|error| {
            malformed_terms_reason(HEADER, "The header PAYMENT-REQUIRED cannot be decoded.")
                .observed(excerpt_text(&error.to_string()))
        })?;
        Self::from_value(&document)?.require_version(X402Version::V2)
    }

    fn from_body(body: &[u8]) -> Result<Self, Box<Reason>> {
        let document = parse_strict_json(body, LIMITS).map_err(|error| {
            malformed_terms_reason("body", "There is no header PAYMENT-REQUIRED, and the body contains no terms.")
                .observed(excerpt_text(&error.to_string()))
        })?;
        challenge::check_result_challenges(&document)?;
        let terms = Self::from_value(&document)?.require_version(X402Version::V1)?;
        terms.require_agreement(&other_terms_places(places::terms_places_in_document(&document, "body")?, &document))
    }

    /// These terms, if a client expects terms of their version in this place.
    fn require_version(self, version: X402Version) -> Result<Self, Box<Reason>> {
        if self.version == version {
            return Ok(self);
        }
        let message = "Terms of x402 version 2 belong in the header PAYMENT-REQUIRED, those of version 1 in the body.";
        let (expected, observed) = (version.version_number().to_string(), self.version.version_number().to_string());
        Err(malformed_terms_reason("/x402Version", message).expected(expected).observed(observed).into())
    }

    /// Whether a client of this version finds these terms and can pay them.
    pub(crate) fn can_be_paid_in(&self, version: X402Version) -> bool {
        version == self.version || (version == X402Version::V1 && self.also_v1)
    }
}

/// All places except the one whose document is judged.
fn other_terms_places<'v>(mut places: Vec<TermsPlace<'v>>, judged: &Value) -> Vec<TermsPlace<'v>> {
    places.retain(|place| !std::ptr::eq(place.document, judged));
    places
}

/// The headers that a decision depends on, in order: the index of each in the list of relevant headers, and its value.
/// For other headers only their number matters.
pub(crate) fn decisive_headers(headers: &[(String, String)]) -> impl Iterator<Item = (usize, &str)> {
    let place = |name: &str| {
        let mut read = [HEADER, OLDER_HEADER, CONTENT_ENCODING].into_iter().chain(challenge::HEADERS);
        read.position(|known| known.eq_ignore_ascii_case(name))
    };
    headers.iter().filter_map(move |(name, value)| Some((place(name)?, &**value)))
}

/// The values of all [`HEADER`] headers, in order.
fn terms_header_values(headers: &[(String, String)]) -> impl Iterator<Item = &str> {
    headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(HEADER)).map(|(_, value)| &**value)
}

/// The terms in the [`OLDER_HEADER`], which are compared but never judged.
fn older_header_terms(headers: &[(String, String)]) -> Result<Vec<Value>, Box<Reason>> {
    let values = headers.iter().filter(|(name, value)| name.eq_ignore_ascii_case(OLDER_HEADER) && !value.is_empty());
    let decoded = values.map(|(_, value)| {
        decode_header_json(value, LIMITS).map_err(|error| {
            let message = "The header X-PAYMENT-REQUIRED cannot be decoded, so it may demand anything.";
            Box::new(ambiguous_terms_reason(OLDER_HEADER, message).observed(excerpt_text(&error.to_string())))
        })
    });
    let decoded: Vec<Value> = decoded.take(2).collect::<Result<_, _>>()?;
    if decoded.len() > 1 {
        return Err(ambiguous_terms_reason(OLDER_HEADER, "The header X-PAYMENT-REQUIRED occurs twice.").into());
    }
    Ok(decoded)
}

/// The decoded body (RFC 9110, section 8.4). A client that has already decoded it leaves the header unchanged.
fn decoded_body(reply: &SellerHttpReply) -> Result<Cow<'_, [u8]>, Box<Reason>> {
    let codings = reply.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(CONTENT_ENCODING));
    let codings: Vec<_> = codings.map(|(_, coding)| coding.trim().to_ascii_lowercase()).collect();
    let coding = codings.join(", ");
    if codings.is_empty() || coding == "identity" || is_body_already_decoded(&coding, &reply.body) {
        return Ok(Cow::Borrowed(&reply.body));
    }
    let body = if matches!(&*coding, "gzip" | "x-gzip") { unzip_body(&reply.body) } else { None };
    body.map(Cow::Owned).ok_or_else(|| {
        let message = "The body of the reply is compressed, and cannot be decoded within the limits.";
        let expected = format!("gzip of at most {MAX_TERMS_BYTES} bytes, or a decoded body");
        Box::new(ambiguous_terms_reason("body", message).expected(expected).observed(excerpt_text(&coding)))
    })
}

/// Whether a body was already decoded: it does not start like a stream of this coding.
fn is_body_already_decoded(coding: &str, body: &[u8]) -> bool {
    let is_text = || {
        std::str::from_utf8(body)
            .is_ok_and(|body| !body.chars().any(|letter| letter.is_control() && !letter.is_ascii_whitespace()))
    };
    body.is_empty()
        || parse_strict_json(body, LIMITS).is_ok()
        || match coding {
            "gzip" | "x-gzip" => is_text(),
            "br" | "zstd" => is_html_page(body) && is_text(),
            _ => false,
        }
}

/// The content of a single gzip stream without trailing data. For a web page, a part suffices.
fn unzip_body(body: &[u8]) -> Option<Vec<u8>> {
    let (mut rest, mut content) = (body, Vec::new());
    GzDecoder::new(&mut rest).take(MAX_TERMS_BYTES as u64 + 1).read_to_end(&mut content).ok()?;
    let is_whole = content.len() <= MAX_TERMS_BYTES && rest.is_empty();
    (is_whole || is_html_page(&content)).then_some(content)
}

/// Whether a body begins as HTML does.
fn is_html_page(body: &[u8]) -> bool {
    body.trim_ascii_start().first() == Some(&b'<')
}

/// The value of the only [`HEADER`] header, if there is one.
fn terms_header(headers: &[(String, String)]) -> Result<Option<&str>, Box<Reason>> {
    if headers.len() > MAX_HEADERS {
        let message = "The reply has more headers than are read.";
        return Err(malformed_terms_reason("headers", message).expected(format!("at most {MAX_HEADERS}")).into());
    }
    let mut values = terms_header_values(headers);
    let first = values.next();
    if (values.next().is_some() || first.is_some_and(is_joined_header)) && !mutant!("second-header-is-ignored") {
        return Err(ambiguous_terms_reason(HEADER, "The header PAYMENT-REQUIRED occurs twice.").into());
    }
    Ok(first)
}

/// Whether a client has joined two headers into one value, as `fetch` does (RFC 9110, section 5.3): the part before the
/// first comma is valid, and base64 never contains a comma.
fn is_joined_header(value: &str) -> bool {
    value.split_once(',').is_some_and(|(first, _)| decode_header_json(first, LIMITS).is_ok())
}
