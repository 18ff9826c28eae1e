//! The request for a check, and its JSON form: that of a decision, with name and verb optional.

use clresolve_core::digest::Digest;
use clresolve_core::reason::Reason;

use super::identity::SellerIdentitySource;
use crate::decide::PaymentOptionSelection;
use crate::limits::CallerLimits;
use crate::request::{ParsedPaymentRequest, PaymentDecisionRequestDocument, PaymentDemand, PaymentRequestError};
use crate::terms::{PaymentTerms, SellerHttpReply};

/// A request to check who is paid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SellerCheckRequest {
    /// The seller's ENS name, as typed. `None` if the caller knows none.
    pub name: Option<String>,
    /// Who names it: the caller or, if a model made the request, the seller.
    pub named_by: SellerIdentitySource,
    /// The verb to invoke. `None`: that of the card's entry.
    pub verb: Option<String>,
    /// The URL that was requested, if it may differ from the one that answered.
    pub asked: Option<String>,
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

impl SellerCheckRequest {
    /// A request about a seller's reply, without a name.
    pub fn from_seller_reply(url: impl Into<String>, reply: SellerHttpReply) -> Self {
        let url = Some(url.into());
        Self {
            name: None,
            named_by: SellerIdentitySource::Caller,
            verb: None,
            asked: url.clone(),
            demand: PaymentDemand::Reply(reply),
            url,
            selected: None,
            limits: CallerLimits::default(),
            header: None,
        }
    }

    /// Parses the JSON form. If it has a `response`, the member `url` beside it is the URL that was requested.
    ///
    /// # Errors
    /// [`PaymentRequestError`], for mistakes of the caller rather than the seller.
    pub fn from_json(bytes: &[u8]) -> Result<Self, PaymentRequestError> {
        Self::from_document(PaymentDecisionRequestDocument::from_json(bytes)?)
    }

    /// Like [`from_json`](Self::from_json), and returns a digest of all input, as
    /// [`PaymentDecisionRequest::from_json_with_digest`](crate::PaymentDecisionRequest::from_json_with_digest) does.
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json).
    pub fn from_json_with_digest(bytes: &[u8]) -> Result<(Self, Digest), PaymentRequestError> {
        let form = PaymentDecisionRequestDocument::from_json(bytes)?;
        let digest = form.input_digest();
        Ok((Self::from_document(form)?, digest))
    }

    /// The JSON Schema of the input of [`from_json`](Self::from_json).
    #[cfg(feature = "schema")]
    pub fn input_schema() -> serde_json::Value {
        let mut schema =
            clresolve_core::schema::deserialization_schema::<PaymentDecisionRequestDocument<Option<String>>>();
        // The alternative with a response: there it is the URL that was asked.
        schema["oneOf"][0]["properties"]["url"] = serde_json::json!({"type": ["string", "null"]});
        schema
    }

    /// The terms.
    ///
    /// # Errors
    /// `payment-terms-malformed`, `payment-terms-ambiguous`, or why the seller was not asked.
    pub fn parse_terms(&self) -> Result<PaymentTerms, Box<Reason>> {
        self.demand.parse_terms()
    }

    fn from_document(form: PaymentDecisionRequestDocument<Option<String>>) -> Result<Self, PaymentRequestError> {
        let ParsedPaymentRequest { name, verb, demand, url, asked, selected, limits, header } = form.parse_members()?;
        Ok(Self { name, named_by: SellerIdentitySource::Caller, verb, asked, demand, url, selected, limits, header })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(value: &Value) -> Result<SellerCheckRequest, PaymentRequestError> {
        SellerCheckRequest::from_json(value.to_string().as_bytes())
    }

    #[test]
    fn name_and_verb_may_be_left_out() {
        let response = json!({"status": 402, "url": "https://a.example/"});
        let request = read(&json!({"response": response, "url": "https://b.example/", "header": "x"})).unwrap();
        assert_eq!((request.name, request.verb), (None, None));
        assert_eq!(request.asked.as_deref(), Some("https://b.example/"));
        assert_eq!(request.url.as_deref(), Some("https://a.example/"));
        let named = read(&json!({"name": "a.eth", "verb": "v", "paymentRequired": {}, "url": "https://a.example/"}));
        let named = named.unwrap();
        assert_eq!(
            (named.name.as_deref(), named.named_by, named.asked),
            (Some("a.eth"), SellerIdentitySource::Caller, None)
        );
        for bad in [json!({}), json!({"response": response, "paymentRequired": {}}), json!({"agent": "any"})] {
            assert!(read(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn each_member_counts_for_the_digest() {
        let base = json!({"response": {"status": 402, "url": "https://a.example/", "body": "{}"}});
        let digest = |value: &Value| SellerCheckRequest::from_json_with_digest(value.to_string().as_bytes()).unwrap().1;
        for (member, value) in [("name", "a.eth"), ("verb", "v"), ("url", "https://a.example/"), ("header", "x")] {
            let mut other = base.clone();
            other[member] = json!(value);
            assert_ne!(digest(&base), digest(&other), "{member}");
        }
    }
}
