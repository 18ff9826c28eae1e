//! What is asked about a receipt.

use clresolve_core::digest::Digest;
use clresolve_core::json::object::from_object;
use clresolve_core::text::excerpt;
use clresolve_payment::settlement::{MAX_DECISION_BYTES, Purchase};
use clresolve_payment::signed::MAX_HEADER_BYTES;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::canonical::{MemberOrder, form};
use crate::json::{MAX_BYTES, Node, Unreadable, parse};

/// Most bytes of a question in JSON: a receipt, a request, what was kept of the purchase, and the name around them.
pub const MAX_QUESTION_BYTES: usize = 2 * MAX_BYTES + MAX_DECISION_BYTES + 2 * MAX_HEADER_BYTES + 4096;

/// A receipt, and whom it is said to be of.
#[derive(Clone, Debug)]
pub struct ReceiptQuestion {
    /// The agent that was asked, as typed.
    pub name: String,
    /// The receipt, as it came.
    pub receipt: Vec<u8>,
    /// The request that it is said to answer.
    pub request: Option<Request>,
    /// What was kept of the purchase.
    pub purchase: Purchase,
}

/// A request that was sent to an agent.
#[derive(Clone, Debug)]
pub struct Request {
    content: Node,
    sha256: Digest,
}

impl Request {
    /// Reads a request: one strict JSON object, bounded as a receipt is.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Unreadable> {
        Ok(Self { content: parse(bytes)?, sha256: Digest::of(bytes) })
    }

    /// SHA-256 of its bytes.
    pub const fn sha256(&self) -> Digest {
        self.sha256
    }

    /// SHA-256 of what it says, however that is written; of its bytes where other readers would read a number differently.
    pub(crate) fn meaning(&self) -> Digest {
        form(&self.content, MemberOrder::Sorted).map_or(self.sha256, |bytes| Digest::of(&bytes))
    }

    pub(crate) const fn content(&self) -> &Node {
        &self.content
    }
}

/// What `POST /v1/receipts/verify` takes. The receipt is judged by its own bytes, so they are kept as they stand there.
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
struct Body<'a> {
    /// The agent's ENS name.
    name: String,
    /// The receipt as it came, where that is JSON.
    #[serde(borrow, default, deserialize_with = "present")]
    receipt: Option<&'a RawValue>,
    /// The receipt as it came, whatever it is, as text.
    receipt_text: Option<String>,
    /// The request that it is said to answer.
    #[serde(borrow)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Map<String, serde_json::Value>>"))]
    request: Option<&'a RawValue>,
    /// The decision that the payment was made on, which allowed it.
    #[serde(borrow)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Map<String, serde_json::Value>>"))]
    decision: Option<&'a RawValue>,
    /// The payment header that was sent: `PAYMENT-SIGNATURE`, or `X-PAYMENT`.
    payment: Option<String>,
    /// The header of the reply: `PAYMENT-RESPONSE`, or `X-PAYMENT-RESPONSE`.
    settlement: Option<String>,
}

/// Whatever stands there; `null` is what an agent may send.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl ReceiptQuestion {
    /// Reads a question: `{"name", "receipt" or "receipt_text", "request"?, "decision"?, "payment"?, "settlement"?}`. What
    /// an agent sent may be no JSON: it comes as text.
    ///
    /// # Errors
    /// What is wrong with the question, in words. A receipt, however broken, is never wrong here.
    pub fn from_json(bytes: &[u8]) -> Result<Self, String> {
        let body: Body<'_> = from_object(bytes).map_err(|error| excerpt(&error.to_string()))?;
        let request = body.request.map(|raw| Request::from_bytes(raw.get().as_bytes())).transpose();
        let receipt = match (body.receipt, body.receipt_text) {
            (Some(raw), None) => raw.get().as_bytes().to_vec(),
            (None, Some(text)) => text.into_bytes(),
            _ => return Err("expected either receipt or receipt_text".to_owned()),
        };
        Ok(Self {
            name: body.name,
            receipt,
            request: request.map_err(|error| format!("request: {error}"))?,
            purchase: Purchase::read(
                body.decision.map(|raw| raw.get().as_bytes()),
                body.payment.as_deref(),
                body.settlement,
            )?,
        })
    }

    /// The JSON Schema of what [`from_json`](Self::from_json) reads.
    #[cfg(feature = "schema")]
    pub fn schema() -> serde_json::Value {
        clresolve_core::schema::read_as::<Body<'_>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_receipt_are_kept() {
        let receipt = r#"{"a": 1.0, "a":1}"#;
        let question = ReceiptQuestion::from_json(format!(r#"{{"name":"a.eth","receipt":{receipt}}}"#).as_bytes());
        assert_eq!(question.expect("a question").receipt, receipt.as_bytes());
    }

    #[test]
    fn what_an_agent_sent_may_be_no_json() {
        for (sent, member) in [("null", r#""receipt":null"#), ("{\"a\": oops", r#""receipt_text":"{\"a\": oops""#)] {
            let question = ReceiptQuestion::from_json(format!(r#"{{"name":"a.eth",{member}}}"#).as_bytes());
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
            assert!(ReceiptQuestion::from_json(body.as_bytes()).is_err(), "{body}");
        }
    }
}
