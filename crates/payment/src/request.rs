//! What is asked of a decision, and its JSON form.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clresolve_core::reason::Reason;
use clresolve_core::text::excerpt;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::decide::Selected;
use crate::limits::CallerLimits;
use crate::terms::{Reply, Terms};

/// Longest request, in bytes: room for a reply that is far too long, so that the answer says that it is.
pub const MAX_REQUEST_BYTES: usize = 512 * 1024;

/// May this payment be made?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionRequest {
    /// The agent's name, as typed.
    pub name: String,
    /// The verb that is to be invoked.
    pub verb: String,
    /// What the seller demands.
    pub demand: Demand,
    /// The URL that answered; `None` where the asker cannot tell.
    pub url: Option<String>,
    /// The entry that the client has chosen; `None`: any.
    pub selected: Option<Selected>,
    /// What the caller tightens.
    pub limits: CallerLimits,
    /// The payment header that is about to be sent.
    pub header: Option<String>,
}

/// What a seller demands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Its reply, as it came.
    Reply(Reply),
    /// The terms alone, a JSON text, as an SDK hands them on, or an MCP result's `structuredContent`.
    PaymentRequired(String),
    /// Nothing: the seller was not asked, for this reason.
    Unasked(Box<Reason>),
}

/// Why a request is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// It is longer than [`MAX_REQUEST_BYTES`].
    #[error("a request has at most {MAX_REQUEST_BYTES} bytes")]
    TooLong,
    /// It is no JSON, or a member is missing, unknown, given twice, or has the wrong type.
    #[error("{0}")]
    Form(String),
}

impl DecisionRequest {
    /// A question about a seller's reply.
    pub fn about_reply(name: impl Into<String>, verb: impl Into<String>, url: impl Into<String>, reply: Reply) -> Self {
        Self {
            name: name.into(),
            verb: verb.into(),
            demand: Demand::Reply(reply),
            url: Some(url.into()),
            selected: None,
            limits: CallerLimits::default(),
            header: None,
        }
    }

    /// Reads the JSON form.
    ///
    /// # Errors
    /// [`RequestError`]: what is wrong is the asker's, not the seller's.
    pub fn from_json(bytes: &[u8]) -> Result<Self, RequestError> {
        if bytes.len() > MAX_REQUEST_BYTES {
            return Err(RequestError::TooLong);
        }
        let form = serde_json::from_slice(bytes).map_err(|error| RequestError::Form(excerpt(&error.to_string())));
        let form: Form = form?;
        let (demand, url) = match (form.response, form.payment_required) {
            (Some(response), None) => response.read(form.url)?,
            (None, Some(terms)) => (Demand::PaymentRequired(terms.get().to_owned()), form.url),
            _ => return Err(expected("either response or paymentRequired")),
        };
        let limits = form.limits.unwrap_or_default();
        let Form { name, verb, selected, header, .. } = form;
        Ok(Self { name, verb, demand, url, selected, limits, header })
    }

    /// The terms.
    ///
    /// # Errors
    /// `payment-terms-malformed`, `payment-terms-ambiguous`, or why the seller was not asked.
    pub fn terms(&self) -> Result<Terms, Box<Reason>> {
        match &self.demand {
            Demand::Reply(reply) => Terms::of_reply(reply),
            Demand::PaymentRequired(text) => Terms::of_json(text),
            Demand::Unasked(reason) => Err(reason.clone()),
        }
    }
}

/// The JSON form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    name: String,
    verb: String,
    response: Option<Response>,
    #[serde(rename = "paymentRequired")]
    payment_required: Option<Box<RawValue>>,
    url: Option<String>,
    selected: Option<Selected>,
    limits: Option<CallerLimits>,
    header: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Response {
    status: u16,
    url: String,
    #[serde(default)]
    headers: Headers,
    body: Option<String>,
    body_base64: Option<String>,
}

/// Headers: an object, or a list of pairs. A header may stand twice in either.
#[derive(Deserialize)]
#[serde(untagged)]
enum Headers {
    Named(BTreeMap<String, Values>),
    Pairs(Vec<(String, String)>),
}

/// One value of a header, or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum Values {
    One(String),
    Several(Vec<String>),
}

impl Headers {
    fn pairs(self) -> Vec<(String, String)> {
        let each = |(name, values): (String, Values)| {
            let values = match values {
                Values::One(value) => vec![value],
                Values::Several(values) => values,
            };
            values.into_iter().map(move |value| (name.clone(), value))
        };
        match self {
            Self::Named(named) => named.into_iter().flat_map(each).collect(),
            Self::Pairs(pairs) => pairs,
        }
    }
}

impl Default for Headers {
    fn default() -> Self {
        Self::Pairs(Vec::new())
    }
}

impl Response {
    fn read(self, url: Option<String>) -> Result<(Demand, Option<String>), RequestError> {
        if url.is_some() {
            return Err(expected("url beside paymentRequired alone: a response has its own"));
        }
        let headers = self.headers.pairs();
        let body = match (self.body, self.body_base64) {
            (Some(_), Some(_)) => return Err(expected("body or body_base64, not both")),
            (Some(text), None) => text.into_bytes(),
            (None, Some(encoded)) => STANDARD.decode(encoded).map_err(|_| expected("body_base64 in base64"))?,
            (None, None) => Vec::new(),
        };
        Ok((Demand::Reply(Reply { status: self.status, headers, body }), Some(self.url)))
    }
}

fn expected(what: &str) -> RequestError {
    RequestError::Form(format!("expected {what}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(value: &Value) -> Result<DecisionRequest, RequestError> {
        DecisionRequest::from_json(value.to_string().as_bytes())
    }

    #[test]
    fn headers_are_an_object_or_pairs() {
        let with = |headers: Value| {
            let response = json!({"status": 402, "url": "https://a.example/", "headers": headers, "body": "{}"});
            match read(&json!({"name": "a.eth", "verb": "v", "response": response})).unwrap().demand {
                Demand::Reply(reply) => reply.headers,
                other => panic!("{other:?}"),
            }
        };
        let pair = |value: &str| ("x".to_owned(), value.to_owned());
        assert_eq!(with(json!({"x": "1"})), [pair("1")]);
        assert_eq!(with(json!([["x", "1"], ["x", "2"]])), [pair("1"), pair("2")]);
        assert_eq!(with(json!({"x": ["1", "2"]})), [pair("1"), pair("2")]);
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
        ] {
            assert!(read(&value).is_err(), "{value}");
        }
        let twice = r#"{"name": "a.eth", "name": "b.eth", "verb": "v", "paymentRequired": {}}"#;
        assert!(matches!(DecisionRequest::from_json(twice.as_bytes()), Err(RequestError::Form(_))));
    }

    /// What a seller sent is judged as terms, however broken it is.
    #[test]
    fn broken_terms_are_a_request_all_the_same() {
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        for terms in [deep.as_str(), "1e999", r#"{"a": 1, "a": 2}"#, &format!("[{}0]", "0,".repeat(20_000))] {
            let request = format!(r#"{{"name": "a.eth", "verb": "v", "paymentRequired": {terms}}}"#);
            let request = DecisionRequest::from_json(request.as_bytes()).expect(terms);
            assert_eq!(request.terms().unwrap_err().code.slug(), "payment-terms-malformed");
        }
    }

    #[test]
    fn a_selected_entry_is_a_place_or_the_entry() {
        let selected = |value: Value| {
            read(&json!({"name": "a.eth", "verb": "v", "paymentRequired": {}, "selected": value})).unwrap().selected
        };
        assert_eq!(selected(json!(1)), Some(Selected::Index(1)));
        assert_eq!(selected(json!({"a": 1})), Some(Selected::Entry(json!({"a": 1}))));
        assert_eq!(selected(Value::Null), None);
    }
}
