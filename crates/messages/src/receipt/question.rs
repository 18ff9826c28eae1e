//! The input of a receipt verification.

use clresolve_core::digest::Digest;
use clresolve_core::json::object::deserialize_object;
use clresolve_core::text::excerpt_text;
use clresolve_payment::settlement::{MAX_DECISION_BYTES, PurchasePaymentDocuments};
use clresolve_payment::signed::MAX_HEADER_BYTES;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::receipt::canonical::{JsonMemberOrder, canonical_bytes};
use crate::receipt::json::{JsonNode, MAX_BYTES, ReceiptParseError, parse_receipt_object};

/// Maximum size of a question in JSON, in bytes: a receipt, a request, the documents of the purchase, and the name.
pub const MAX_QUESTION_BYTES: usize = 2 * MAX_BYTES + MAX_DECISION_BYTES + 2 * MAX_HEADER_BYTES + 4096;

/// A receipt, and the agent that is said to have issued it.
#[derive(Clone, Debug)]
pub struct ReceiptVerificationRequest {
    /// The agent's name as typed.
    pub name: String,
    /// The receipt's bytes as received.
    pub receipt: Vec<u8>,
    /// The request that the receipt is said to answer.
    pub request: Option<AgentRequest>,
    /// The documents of the purchase.
    pub purchase: PurchasePaymentDocuments,
}

/// A request that was sent to an agent.
#[derive(Clone, Debug)]
pub struct AgentRequest {
    content: JsonNode,
    sha256: Digest,
}

impl AgentRequest {
    /// Parses a request: one strict JSON object within the limits of a receipt.
    ///
    /// # Errors
    /// [`ReceiptParseError`] if it is none.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ReceiptParseError> {
        Ok(Self { content: parse_receipt_object(bytes)?, sha256: Digest::compute(bytes) })
    }

    /// SHA-256 of the request's bytes.
    pub const fn sha256(&self) -> Digest {
        self.sha256
    }

    /// SHA-256 of the request's canonical form; of its bytes if parsers would read a number differently.
    pub(crate) fn canonical_digest(&self) -> Digest {
        canonical_bytes(&self.content, JsonMemberOrder::Sorted).map_or(self.sha256, |bytes| Digest::compute(&bytes))
    }

    pub(crate) const fn json_content(&self) -> &JsonNode {
        &self.content
    }
}

/// Body of `POST /v1/receipts/verify`. The receipt is judged by its own bytes, so they are kept unparsed.
#[derive(Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(description = "A receipt, and what is known of its purchase.", extend("oneOf" = [
        {"required": ["receipt"], "properties": {"receipt_text": {"type": "null"}}},
        {"required": ["receipt_text"], "properties": {"receipt": false, "receipt_text": {"type": "string"}}},
    ]))
)]
#[serde(deny_unknown_fields)]
struct ReceiptVerificationBody<'a> {
    /// The agent's ENS name.
    name: String,
    /// The receipt as received, if it is JSON.
    #[serde(borrow, default, deserialize_with = "deserialize_present")]
    receipt: Option<&'a RawValue>,
    /// The receipt as received, as text; it need not be JSON.
    receipt_text: Option<String>,
    /// The request that the receipt is said to answer.
    #[serde(borrow)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Map<String, serde_json::Value>>"))]
    request: Option<&'a RawValue>,
    /// The decision that allowed the payment.
    #[serde(borrow)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Map<String, serde_json::Value>>"))]
    decision: Option<&'a RawValue>,
    /// The payment header that the buyer sent: `PAYMENT-SIGNATURE`, or `X-PAYMENT`.
    payment: Option<String>,
    /// The settlement header of the reply: `PAYMENT-RESPONSE`, or `X-PAYMENT-RESPONSE`.
    settlement: Option<String>,
}

/// Any value, including `null`, which an agent may send as its receipt.
fn deserialize_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl ReceiptVerificationRequest {
    /// Parses a question: `{"name", "receipt" or "receipt_text", "request"?, "decision"?, "payment"?, "settlement"?}`.
    /// Use `receipt_text` if the agent's receipt is not JSON.
    ///
    /// # Errors
    /// A message that describes the defect of the question. Any receipt is accepted, however broken.
    pub fn from_json(bytes: &[u8]) -> Result<Self, String> {
        let body: ReceiptVerificationBody<'_> =
            deserialize_object(bytes).map_err(|error| excerpt_text(&error.to_string()))?;
        let request = body.request.map(|raw| AgentRequest::from_bytes(raw.get().as_bytes())).transpose();
        let receipt = match (body.receipt, body.receipt_text) {
            (Some(raw), None) => raw.get().as_bytes().to_vec(),
            (None, Some(text)) => text.into_bytes(),
            _ => return Err("expected either receipt or receipt_text".to_owned()),
        };
        Ok(Self {
            name: body.name,
            receipt,
            request: request.map_err(|error| format!("request: {error}"))?,
            purchase: PurchasePaymentDocuments::from_documents(
                body.decision.map(|raw| raw.get().as_bytes()),
                body.payment.as_deref(),
                body.settlement,
            )?,
        })
    }

    /// The JSON Schema of the input of [`from_json`](Self::from_json).
    #[cfg(feature = "schema")]
    pub fn input_schema() -> serde_json::Value {
        clresolve_core::schema::deserialization_schema::<ReceiptVerificationBody<'_>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_receipt_are_kept() {
        let receipt = r#"{"a": 1.0, "a":1}"#;
        let question =
            ReceiptVerificationRequest::from_json(format!(r#"{{"name":"a.eth","receipt":{receipt}}}"#).as_bytes());
        assert_eq!(question.expect("a question").receipt, receipt.as_bytes());
    }

    #[test]
    fn what_an_agent_sent_may_be_no_json() {
        for (sent, member) in [("null", r#""receipt":null"#), ("{\"a\": oops", r#""receipt_text":"{\"a\": oops""#)] {
            let question = ReceiptVerificationRequest::from_json(format!(r#"{{"name":"a.eth",{member}}}"#).as_bytes());
            assert_eq!(question.expect("a question").receipt, sent.as_bytes());
        }
    }

    #[test]
    fn what_is_no_question_is_refused() {
        for body in [
            "",
            "[]",
            r#"["a.eth",{},null,null,null,null]"#,
            r#"{"name":"a.eth"}"#,
            r#"{"name":"a.eth","receipt":{},"receipt":{}}"#,
            r#"{"name":"a.eth","receipt":{},"receipt_text":"{}"}"#,
            r#"{"name":"a.eth","receipt_text":{}}"#,
            r#"{"name":"a.eth","receipt":{},"remember":true}"#,
            r#"{"name":"a.eth","receipt":{},"request":[]}"#,
            r#"{"name":"a.eth","receipt":{},"decision":{}}"#,
            r#"{"name":"a.eth","receipt":{},"payment":"e30="}"#,
            r#"{"name":"a.eth","receipt":{},"settlement":{}}"#,
            r#"{"name":"a.eth","receipt":{},"request":{"a":1,"a":2}}"#,
        ] {
            assert!(ReceiptVerificationRequest::from_json(body.as_bytes()).is_err(), "{body}");
        }
    }
}
