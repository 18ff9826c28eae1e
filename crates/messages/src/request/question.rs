//! The input of a request check.

use clresolve_core::json::JsonLimits;
use clresolve_core::json::object::deserialize_object;
use clresolve_core::text::excerpt_text;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Maximum size of a request, in bytes.
pub const MAX_BYTES: usize = JsonLimits::CARD.bytes;

/// Maximum size of a question in JSON, in bytes: a request, plus name and verb.
pub const MAX_QUESTION_BYTES: usize = MAX_BYTES + 4096;

/// A request and its recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingAgentRequest {
    /// The agent's name as typed.
    pub name: String,
    /// The verb to call.
    pub verb: String,
    /// The request's bytes, exactly as they will be sent.
    pub request: Vec<u8>,
}

/// Body of `POST /v1/requests/check`. The request is judged by its own bytes, so they are kept unparsed.
#[derive(Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(description = "A request that is to be sent to an agent.")
)]
#[serde(deny_unknown_fields)]
struct RequestCheckBody<'a> {
    /// The agent's ENS name.
    name: String,
    /// The verb to call.
    verb: String,
    /// The request, exactly as it will be sent.
    #[serde(borrow)]
    request: &'a RawValue,
}

impl OutgoingAgentRequest {
    /// Parses a question: `{"name", "verb", "request"}`.
    ///
    /// # Errors
    /// A message that describes the defect of the question. Any JSON value is accepted as the request.
    pub fn from_json(bytes: &[u8]) -> Result<Self, String> {
        let body: RequestCheckBody<'_> = deserialize_object(bytes).map_err(|error| excerpt_text(&error.to_string()))?;
        Ok(Self { name: body.name, verb: body.verb, request: body.request.get().as_bytes().to_vec() })
    }

    /// The JSON Schema of the input of [`from_json`](Self::from_json).
    #[cfg(feature = "schema")]
    pub fn input_schema() -> serde_json::Value {
        clresolve_core::schema::deserialization_schema::<RequestCheckBody<'_>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_request_are_kept() {
        let request = "{\"a\": 1.0,\n \"a\":1}";
        let question = OutgoingAgentRequest::from_json(
            format!(r#"{{"name":"a.eth","verb":"sum","request":{request}}}"#).as_bytes(),
        );
        assert_eq!(question.expect("a question").request, request.as_bytes());
    }

    #[test]
    fn what_is_no_question_is_refused() {
        for body in [
            "",
            "[]",
            r#"["a.eth","sum",{}]"#,
            r#"{"name":"a.eth","verb":"sum"}"#,
            r#"{"name":"a.eth","request":{}}"#,
            r#"{"name":"a.eth","verb":"sum","request":{},"request":{}}"#,
            r#"{"name":"a.eth","verb":"sum","request":{},"send":true}"#,
        ] {
            assert!(OutgoingAgentRequest::from_json(body.as_bytes()).is_err(), "{body}");
        }
    }
}
