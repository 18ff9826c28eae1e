//! The decision request, and its JSON form.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clresolve_core::digest::{Digest, Digester};
use clresolve_core::json::object::{ObjectOnlyValue, deserialize_object};
use clresolve_core::json::parse_strict_json;
use clresolve_core::reason::Reason;
use clresolve_core::text::{excerpt_text, truncate_bytes};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::decide::PaymentOptionSelection;
use crate::limits::CallerLimits;
use crate::terms::{self, MAX_HEADERS, PaymentTerms, SellerHttpReply};

/// Maximum size of a request. It leaves room for an oversized reply, so that the decision can report the excess.
pub const MAX_REQUEST_BYTES: usize = 512 * 1024;

/// Maximum length of a name or verb: the same as for member names in a card.
pub const MAX_WORD_BYTES: usize = 1024;

/// Maximum length of a URL: the longest request line that common servers accept. It is compared with every entry and
/// every offer.
pub const MAX_URL_BYTES: usize = 8 * 1024;

/// Maximum number of bytes kept of a header's name. All relevant headers have shorter names.
const MAX_HEADER_NAME_BYTES: usize = 256;

/// A request to decide whether a payment may be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentDecisionRequest {
    /// The agent's name, as typed.
    pub name: String,
    /// The verb to invoke.
    pub verb: String,
    /// The seller's demand.
    pub demand: PaymentDemand,
    /// The URL that answered. `None` if the caller does not know it.
    pub url: Option<String>,
    /// The entry that the client has chosen. `None`: any entry.
    pub selected: Option<PaymentOptionSelection>,
    /// Limits that the caller tightens.
    pub limits: CallerLimits,
    /// The payment header that the client is about to send.
    pub header: Option<String>,
}

/// A seller's demand for payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaymentDemand {
    /// The seller's unmodified reply.
    Reply(SellerHttpReply),
    /// The terms alone as JSON, as an SDK passes them on.
    PaymentRequired(String),
    /// The JSON result of an MCP tool, or the JSON-RPC error in its place.
    ToolResult(String),
    /// There is no demand: the seller was not asked, for the contained reason.
    Unasked(Box<Reason>),
}

/// Why a request is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PaymentRequestError {
    /// It is longer than [`MAX_REQUEST_BYTES`].
    #[error("a request has at most {MAX_REQUEST_BYTES} bytes")]
    TooLong,
    /// It is not JSON, or a member is missing, unknown, duplicate, or has the wrong type.
    #[error("{0}")]
    Form(String),
}

impl PaymentDecisionRequest {
    /// A request about a seller's reply.
    pub fn from_seller_reply(
        name: impl Into<String>,
        verb: impl Into<String>,
        url: impl Into<String>,
        reply: SellerHttpReply,
    ) -> Self {
        Self {
            name: name.into(),
            verb: verb.into(),
            demand: PaymentDemand::Reply(reply),
            url: Some(url.into()),
            selected: None,
            limits: CallerLimits::default(),
            header: None,
        }
    }

    /// Parses the JSON form.
    ///
    /// # Errors
    /// [`PaymentRequestError`], for mistakes of the caller rather than the seller.
    pub fn from_json(bytes: &[u8]) -> Result<Self, PaymentRequestError> {
        PaymentDecisionRequestDocument::<String>::from_json(bytes)?.into_decision_request()
    }

    /// Like [`from_json`](Self::from_json), and returns a digest of all input to the decision. Two requests with the
    /// same digest differ only in ignored reply headers and in equivalent notation.
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json).
    pub fn from_json_with_digest(bytes: &[u8]) -> Result<(Self, Digest), PaymentRequestError> {
        let form = PaymentDecisionRequestDocument::<String>::from_json(bytes)?;
        let digest = form.input_digest();
        Ok((form.into_decision_request()?, digest))
    }

    /// The JSON Schema of the input of [`from_json`](Self::from_json).
    #[cfg(feature = "schema")]
    pub fn input_schema() -> serde_json::Value {
        clresolve_core::schema::deserialization_schema::<PaymentDecisionRequestDocument<String>>()
    }

    /// The terms.
    ///
    /// # Errors
    /// `payment-terms-malformed`, `payment-terms-ambiguous`, or why the seller was not asked.
    pub fn parse_terms(&self) -> Result<PaymentTerms, Box<Reason>> {
        self.demand.parse_terms()
    }
}

impl PaymentDemand {
    /// The terms.
    ///
    /// # Errors
    /// `payment-terms-malformed`, `payment-terms-ambiguous`, or why the seller was not asked.
    pub fn parse_terms(&self) -> Result<PaymentTerms, Box<Reason>> {
        match self {
            Self::Reply(reply) => PaymentTerms::from_reply(reply),
            Self::PaymentRequired(text) => PaymentTerms::from_json(text),
            Self::ToolResult(text) => PaymentTerms::from_tool_result(text),
            Self::Unasked(reason) => Err(reason.clone()),
        }
    }
}

/// The name or the verb of a request: text that a decision requires and a check does not.
pub(crate) trait AsOptionalText {
    fn as_optional_text(&self) -> Option<&str>;
}

impl AsOptionalText for String {
    fn as_optional_text(&self) -> Option<&str> {
        Some(self)
    }
}

impl AsOptionalText for Option<String> {
    fn as_optional_text(&self) -> Option<&str> {
        self.as_deref()
    }
}

/// The JSON form.
#[derive(Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(
        description = "A payment that may be made.",
        rename = "Form",
        transform = crate::schema::require_one_demand
    )
)]
#[serde(deny_unknown_fields)]
pub(crate) struct PaymentDecisionRequestDocument<W> {
    /// The agent's ENS name.
    name: W,
    /// The verb to invoke.
    verb: W,
    /// The seller's unmodified reply.
    #[cfg_attr(feature = "schema", schemars(with = "Option<SellerReplyDocument>"))]
    response: Option<ObjectOnlyValue<SellerReplyDocument>>,
    /// The terms alone.
    #[serde(rename = "paymentRequired")]
    payment_required: Option<Box<RawValue>>,
    /// Where the terms come from.
    url: Option<String>,
    /// The entry that the client has chosen, or its index in `accepts`.
    selected: Option<Box<RawValue>>,
    /// Limits that the caller tightens.
    #[cfg_attr(feature = "schema", schemars(with = "Option<CallerLimits>"))]
    limits: Option<Box<RawValue>>,
    /// The payment header that is about to be sent.
    header: Option<String>,
}

/// The members of a request, each of which is read.
pub(crate) struct ParsedPaymentRequest<W> {
    pub(crate) name: W,
    pub(crate) verb: W,
    pub(crate) demand: PaymentDemand,
    /// The URL that answered.
    pub(crate) url: Option<String>,
    /// The member `url` beside a response.
    pub(crate) asked: Option<String>,
    pub(crate) selected: Option<PaymentOptionSelection>,
    pub(crate) limits: CallerLimits,
    pub(crate) header: Option<String>,
}

impl PaymentDecisionRequestDocument<String> {
    fn into_decision_request(self) -> Result<PaymentDecisionRequest, PaymentRequestError> {
        let ParsedPaymentRequest { name, verb, demand, url, asked, selected, limits, header } = self.parse_members()?;
        if asked.is_some() {
            return Err(expected_error("url beside paymentRequired alone: a response has its own"));
        }
        Ok(PaymentDecisionRequest { name, verb, demand, url, selected, limits, header })
    }
}

impl<W: AsOptionalText + for<'de> Deserialize<'de>> PaymentDecisionRequestDocument<W> {
    pub(crate) fn from_json(bytes: &[u8]) -> Result<Self, PaymentRequestError> {
        if bytes.len() > MAX_REQUEST_BYTES {
            return Err(PaymentRequestError::TooLong);
        }
        deserialize_object(bytes).map_err(|error| PaymentRequestError::Form(excerpt_text(&error.to_string())))
    }

    pub(crate) fn parse_members(self) -> Result<ParsedPaymentRequest<W>, PaymentRequestError> {
        let (demand, url, asked) = match (self.response, self.payment_required) {
            (Some(ObjectOnlyValue(response)), None) => {
                let (demand, url) = response.into_demand_and_url()?;
                (demand, Some(url), self.url)
            }
            (None, Some(terms)) => (PaymentDemand::PaymentRequired(terms.get().to_owned()), self.url, None),
            _ => return Err(expected_error("either response or paymentRequired")),
        };
        let limits = self.limits.as_deref().map(parse_caller_limits).transpose()?.unwrap_or_default();
        let Self { name, verb, selected, header, .. } = self;
        check_length(MAX_WORD_BYTES, "name", name.as_optional_text().unwrap_or_default())?;
        check_length(MAX_WORD_BYTES, "verb", verb.as_optional_text().unwrap_or_default())?;
        for url in [&url, &asked].into_iter().flatten() {
            check_length(MAX_URL_BYTES, "url", url)?;
        }
        let selected = selected.as_deref().map(PaymentOptionSelection::from_raw_value);
        Ok(ParsedPaymentRequest { name, verb, demand, url, asked, selected, limits, header })
    }

    /// See [`PaymentDecisionRequest::from_json_with_digest`].
    pub(crate) fn input_digest(&self) -> Digest {
        let Self { name, verb, response, payment_required, url, selected, limits, header } = self;
        let mut parts = TextListDigester::default();
        parts.add_text(name.as_optional_text());
        parts.add_text(verb.as_optional_text());
        parts.add_text(url.as_deref());
        parts.add_text(header.as_deref());
        parts.add_text(payment_required.as_deref().map(RawValue::get));
        parts.add_text(selected.as_deref().map(RawValue::get));
        if !clresolve_core::mutant!("any-limits-are-the-same") {
            parts.add_text(limits.as_deref().map(RawValue::get));
        }
        if let Some(ObjectOnlyValue(response)) = response {
            response.add_to_digest(&mut parts);
        }
        parts.0.finalize()
    }
}

/// The digest of a list of texts. Each text is preceded by its length, so that different lists have different
/// encodings.
#[derive(Default)]
struct TextListDigester(Digester);

impl TextListDigester {
    fn add_text(&mut self, part: Option<&str>) {
        let text = part.unwrap_or_default();
        self.0.update(&[u8::from(part.is_some())]);
        self.0.update(&text.len().to_le_bytes());
        self.0.update(text.as_bytes());
    }
}

/// Parses the caller's limits. Duplicate members are rejected, so that it is clear which one applies.
fn parse_caller_limits(raw: &RawValue) -> Result<CallerLimits, PaymentRequestError> {
    let refused = |why: &dyn fmt::Display| PaymentRequestError::Form(excerpt_text(&format!("limits: {why}")));
    let value = parse_strict_json(raw.get().as_bytes(), terms::LIMITS).map_err(|error| refused(&error))?;
    serde_json::from_value(value).map_err(|error| refused(&error))
}

impl PaymentOptionSelection {
    fn from_raw_value(raw: &RawValue) -> Self {
        if let Ok(index) = raw.get().parse() {
            return Self::Index(index);
        }
        // An entry is part of terms, so the limits for terms apply.
        match parse_strict_json(raw.get().as_bytes(), terms::LIMITS) {
            Ok(entry) => Self::Entry(entry),
            Err(error) => Self::Unreadable(excerpt_text(&error.to_string())),
        }
    }
}

#[derive(Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(extend("not" = {
        "required": ["body", "body_base64"],
        "properties": {"body": {"type": "string"}, "body_base64": {"type": "string"}},
    }))
)]
#[serde(deny_unknown_fields)]
struct SellerReplyDocument {
    #[serde(deserialize_with = "crate::forms::deserialize_whole_number")]
    status: u16,
    /// The URL that answered.
    url: String,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "HeadersDocument"))]
    headers: SellerReplyHeaders,
    /// The body, if it is text.
    body: Option<String>,
    /// The body as base64.
    #[cfg_attr(
        feature = "schema",
        schemars(extend("contentEncoding" = "base64", "pattern" = crate::schema::BASE64))
    )]
    body_base64: Option<String>,
}

/// The headers of a reply, in order: an object, or a list of pairs. Either may contain a header several times. One more
/// than the maximum is kept, so that the decision can report that there are too many.
#[derive(Default)]
struct SellerReplyHeaders(Vec<(String, String)>);

impl SellerReplyHeaders {
    fn add_header(&mut self, name: &str, value: String) {
        if self.0.len() <= MAX_HEADERS && !clresolve_core::mutant!("endless-headers") {
            self.0.push((truncate_bytes(name, MAX_HEADER_NAME_BYTES), value));
        }
    }
}

impl<'de> Deserialize<'de> for SellerReplyHeaders {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SellerReplyHeadersVisitor)
    }
}

struct SellerReplyHeadersVisitor;

impl<'de> Visitor<'de> for SellerReplyHeadersVisitor {
    type Value = SellerReplyHeaders;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object, or a list of pairs")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<SellerReplyHeaders, A::Error> {
        let mut headers = SellerReplyHeaders::default();
        while let Some((name, values)) = members.next_entry::<String, HeaderValues>()? {
            match values {
                HeaderValues::One(value) => headers.add_header(&name, value),
                HeaderValues::Several(values) => values.into_iter().for_each(|value| headers.add_header(&name, value)),
            }
        }
        Ok(headers)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut pairs: A) -> Result<SellerReplyHeaders, A::Error> {
        let mut headers = SellerReplyHeaders::default();
        while let Some((name, value)) = pairs.next_element::<(String, String)>()? {
            headers.add_header(&name, value);
        }
        Ok(headers)
    }
}

/// The JSON form of [`SellerReplyHeaders`]: by name or in pairs.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(untagged, rename = "Headers")]
#[expect(dead_code, reason = "a visitor reads headers; this type only describes them")]
enum HeadersDocument {
    ByName(std::collections::BTreeMap<String, HeaderValues>),
    Pairs(Vec<[String; 2]>),
}

/// One value of a header, or several.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(crate) enum HeaderValues {
    One(String),
    Several(Vec<String>),
}

impl SellerReplyDocument {
    /// Adds the input to the decision. The values of headers come last, because their number varies.
    fn add_to_digest(&self, parts: &mut TextListDigester) {
        let Self { status, url, headers: SellerReplyHeaders(headers), body, body_base64 } = self;
        parts.add_text(Some(&status.to_string()));
        parts.add_text(Some(url));
        parts.add_text(body.as_deref());
        parts.add_text(body_base64.as_deref());
        parts.add_text(Some(&headers.len().to_string()));
        for (place, value) in terms::decisive_headers(headers) {
            parts.add_text(Some(&place.to_string()));
            parts.add_text(Some(value));
        }
    }

    fn into_demand_and_url(self) -> Result<(PaymentDemand, String), PaymentRequestError> {
        let body = match (self.body, self.body_base64) {
            (Some(_), Some(_)) => return Err(expected_error("body or body_base64, not both")),
            (Some(text), None) => text.into_bytes(),
            (None, Some(encoded)) => STANDARD.decode(encoded).map_err(|_| expected_error("body_base64 in base64"))?,
            (None, None) => Vec::new(),
        };
        Ok((PaymentDemand::Reply(SellerHttpReply { status: self.status, headers: self.headers.0, body }), self.url))
    }
}

fn check_length(limit: usize, member: &str, text: &str) -> Result<(), PaymentRequestError> {
    if text.len() <= limit { Ok(()) } else { Err(expected_error(&format!("{member}: at most {limit} bytes"))) }
}

fn expected_error(what: &str) -> PaymentRequestError {
    PaymentRequestError::Form(format!("expected {what}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(value: &Value) -> Result<PaymentDecisionRequest, PaymentRequestError> {
        PaymentDecisionRequest::from_json(value.to_string().as_bytes())
    }

    #[test]
    fn headers_are_an_object_or_pairs() {
        let with = |headers: Value| {
            let response = json!({"status": 402, "url": "https://a.example/", "headers": headers, "body": "{}"});
            match read(&json!({"name": "a.eth", "verb": "v", "response": response})).unwrap().demand {
                PaymentDemand::Reply(reply) => reply.headers,
                other => panic!("{other:?}"),
            }
        };
        let pair = |value: &str| ("x".to_owned(), value.to_owned());
        assert_eq!(with(json!({"x": "1"})), [pair("1")]);
        assert_eq!(with(json!([["x", "1"], ["x", "2"]])), [pair("1"), pair("2")]);
        assert_eq!(with(json!({"x": ["1", "2"]})), [pair("1"), pair("2")]);
    }

    #[test]
    fn a_request_without_end_is_not_read() {
        let longest = vec![b' '; MAX_REQUEST_BYTES];
        assert!(matches!(PaymentDecisionRequest::from_json(&longest), Err(PaymentRequestError::Form(_))));
        let longer = vec![b' '; MAX_REQUEST_BYTES + 1];
        assert_eq!(PaymentDecisionRequest::from_json(&longer).map(|_| ()), Err(PaymentRequestError::TooLong));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let response = json!({"status": 402, "url": "https://a.example/"});
        for value in [
            json!({}),
            json!({"name": "a.eth", "verb": "v"}),
            json!({"name": "a.eth", "verb": "v", "response": response, "paymentRequired": {}}),
            json!({"name": "a.eth", "verb": "v", "response": response, "url": "https://b.example/"}),
            json!({"name": "a.eth", "verb": "v", "response": response, "limit": {}}),
            json!({"name": "a.eth", "verb": "v", "response": {"status": "402", "url": ""}}),
            json!({"name": "a.eth", "verb": "v", "response": {"status": 402, "url": "", "body": "", "body_base64": ""}}),
            json!(["a.eth", "v", null, {}, null, null, null, null]),
            json!({"name": "a.eth", "verb": "v", "response": [402, "https://a.example/", [], "{}", null]}),
            json!({"name": "a.eth", "verb": "v", "paymentRequired": {}, "limits": [null, null, null, null, null]}),
        ] {
            assert!(read(&value).is_err(), "{value}");
        }
        let twice = r#"{"name": "a.eth", "name": "b.eth", "verb": "v", "paymentRequired": {}}"#;
        assert!(matches!(PaymentDecisionRequest::from_json(twice.as_bytes()), Err(PaymentRequestError::Form(_))));
    }

    /// Otherwise the second would replace the first, which may have been tighter.
    #[test]
    fn a_limit_that_is_given_twice_is_refused() {
        let with = |limits: &str| {
            let request = format!(r#"{{"name": "a.eth", "verb": "v", "paymentRequired": {{}}, "limits": {limits}}}"#);
            PaymentDecisionRequest::from_json(request.as_bytes())
        };
        let (checked, lower) =
            ("0x036CbD53842c5426634e7929541eC2318f3dCF7e", "0x036cbd53842c5426634e7929541ec2318f3dcf7e");
        assert!(with(&format!(r#"{{"assets": {{"eip155:1": {{"{lower}": "5"}}}}}}"#)).is_ok());
        for limits in [
            format!(r#"{{"assets": {{"eip155:1": {{"{checked}": "5", "{lower}": "50000"}}}}}}"#),
            format!(r#"{{"assets": {{"eip155:1": {{"{lower}": "5", "{lower}": "50000"}}}}}}"#),
            format!(r#"{{"assets": {{"eip155:1": {{"{lower}": "5"}}, "eip155:1": ["{lower}"]}}}}"#),
            r#"{"max_amount": "5", "maxAmount": "50000"}"#.to_owned(),
            r#"{"max_amount": "5", "max_amount": "50000"}"#.to_owned(),
        ] {
            assert!(matches!(with(&limits), Err(PaymentRequestError::Form(_))), "{limits}");
        }
    }

    #[test]
    fn a_header_may_stand_twice_in_an_object() {
        let response = r#"{"status": 402, "url": "u", "headers": {"x": "1", "x": ["2"]}}"#;
        let request = format!(r#"{{"name": "a.eth", "verb": "v", "response": {response}}}"#);
        let request = PaymentDecisionRequest::from_json(request.as_bytes()).unwrap();
        let PaymentDemand::Reply(reply) = request.demand else { panic!("a reply") };
        assert_eq!(reply.headers, [("x".to_owned(), "1".to_owned()), ("x".to_owned(), "2".to_owned())]);
    }

    #[test]
    fn headers_are_bounded_in_number_and_name() {
        let name = "n".repeat(2 * MAX_HEADER_NAME_BYTES);
        for headers in [json!({name.clone(): vec![""; MAX_HEADERS + 9]}), json!(vec![(&*name, ""); MAX_HEADERS + 9])] {
            let response = json!({"status": 402, "url": "u", "headers": headers});
            let request = read(&json!({"name": "a.eth", "verb": "v", "response": response})).unwrap();
            assert_eq!(request.parse_terms().unwrap_err().code.slug(), "payment-terms-malformed");
            let PaymentDemand::Reply(SellerHttpReply { headers, .. }) = request.demand else { panic!("a reply") };
            assert_eq!(headers.len(), MAX_HEADERS + 1);
            assert!(headers.iter().all(|(name, _)| name.len() <= MAX_HEADER_NAME_BYTES));
        }
    }

    #[test]
    fn what_is_compared_with_every_entry_is_bounded() {
        let with = |member: &str, value: Value| {
            let mut request = json!({"name": "a.eth", "verb": "v", "paymentRequired": {}});
            request[member] = value;
            read(&request)
        };
        for (member, most) in [("name", MAX_WORD_BYTES), ("verb", MAX_WORD_BYTES), ("url", MAX_URL_BYTES)] {
            assert!(with(member, "a".repeat(most).into()).is_ok(), "{member}");
            let error = with(member, "a".repeat(most + 1).into()).unwrap_err().to_string();
            assert_eq!(error, format!("expected {member}: at most {most} bytes"));
        }
    }

    /// A request about the reply of a seller.
    fn about_reply() -> Value {
        let headers = json!([["date", "now"], ["payment-required", "one"], ["Payment-Required", "two"]]);
        json!({
            "name": "a.eth", "verb": "v", "selected": 0, "limits": {}, "header": "h",
            "response": {"status": 402, "url": "u", "headers": headers, "body": "{}"},
        })
    }

    fn digest(request: &Value) -> Digest {
        PaymentDecisionRequest::from_json_with_digest(request.to_string().as_bytes()).expect("a request").1
    }

    /// The same request with another value at `pointer`.
    fn with(request: &Value, pointer: &str, value: Value) -> Value {
        let mut changed = request.clone();
        *changed.pointer_mut(pointer).expect("it is there") = value;
        changed
    }

    /// Otherwise two different questions could get the same answer.
    #[test]
    fn whatever_a_decision_goes_by_is_in_the_digest_of_its_request() {
        let reply = about_reply();
        let mut base64 = reply.clone();
        base64["response"] = json!({"status": 402, "url": "u", "headers": {}, "body_base64": "e30="});
        let terms = json!({"name": "a.eth", "verb": "v", "paymentRequired": {"a": 1}, "url": "u"});
        let date = || json!(["date", "now"]);
        let of = |name: &str, value: &str| json!([name, value]);
        let requests = [
            with(&reply, "/name", json!("b.eth")),
            with(&reply, "/verb", json!("w")),
            with(&reply, "/selected", json!(1)),
            with(&reply, "/selected", json!({"scheme": "exact"})),
            with(&reply, "/selected", Value::Null),
            with(&reply, "/limits", json!({"max_amount": "5"})),
            with(&reply, "/limits", Value::Null),
            with(&reply, "/header", json!("i")),
            with(&reply, "/response/status", json!(200)),
            with(&reply, "/response/url", json!("w")),
            with(&reply, "/response/body", json!("[]")),
            with(&reply, "/response/body", Value::Null),
            with(&reply, "/response/headers/1/1", json!("three")),
            with(&reply, "/response/headers", json!([date(), of("payment-required", "one")])),
            with(&reply, "/response/headers/0/0", json!("www-authenticate")),
            with(&reply, "/response/headers/0", of("WWW-Authenticate", "Payment id=1")),
            with(&reply, "/response/headers/0", of("Proxy-Authenticate", "Payment id=1")),
            with(&reply, "/response/headers", json!([date(), date(), of("payment-required", "one")])),
            with(
                &reply,
                "/response/headers",
                json!([date(), of("payment-required", "two"), of("payment-required", "one")]),
            ),
            with(&base64, "/response/body_base64", json!("W10=")),
            with(&terms, "/paymentRequired/a", json!(2)),
            with(&terms, "/url", json!("w")),
            with(&terms, "/url", Value::Null),
            reply,
            base64,
            terms,
        ];
        let digests: std::collections::BTreeSet<Digest> = requests.iter().map(digest).collect();
        assert_eq!(digests.len(), requests.len(), "one for each");
    }

    /// A seller dates each of its replies and gives it a unique identifier.
    #[test]
    fn what_no_decision_goes_by_is_not_in_the_digest_of_its_request() {
        let reply = about_reply();
        for (pointer, value) in [
            ("/response/headers/0/1", json!("a moment later")),
            ("/response/headers/0/0", json!("x-request-id")),
            ("/response/headers/1/0", json!("PAYMENT-REQUIRED")),
        ] {
            assert_eq!(digest(&with(&reply, pointer, value)), digest(&reply), "{pointer}");
        }
        let spaced = reply.to_string().replacen('{', " { ", 1);
        assert_eq!(
            PaymentDecisionRequest::from_json_with_digest(spaced.as_bytes()).expect("a request").1,
            digest(&reply)
        );
    }

    /// The seller's data is judged as terms, even if it is malformed.
    #[test]
    fn broken_terms_are_a_request_all_the_same() {
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        for terms in [deep.as_str(), "1e999", r#"{"a": 1, "a": 2}"#, &format!("[{}0]", "0,".repeat(20_000))] {
            let request = format!(r#"{{"name": "a.eth", "verb": "v", "paymentRequired": {terms}}}"#);
            let request = PaymentDecisionRequest::from_json(request.as_bytes()).expect(terms);
            assert_eq!(request.parse_terms().unwrap_err().code.slug(), "payment-terms-malformed");
        }
    }

    #[test]
    fn a_selected_entry_is_a_place_or_the_entry() {
        let selected = |value: Value| {
            read(&json!({"name": "a.eth", "verb": "v", "paymentRequired": {}, "selected": value})).unwrap().selected
        };
        assert_eq!(selected(json!(1)), Some(PaymentOptionSelection::Index(1)));
        assert_eq!(selected(json!({"a": 1})), Some(PaymentOptionSelection::Entry(json!({"a": 1}))));
        assert_eq!(selected(Value::Null), None);
        for unreadable in [json!("0"), json!([0]), json!(-1), json!({"a": vec![0; 5000]})] {
            assert!(matches!(selected(unreadable), Some(PaymentOptionSelection::Unreadable(_))));
        }
    }
}
