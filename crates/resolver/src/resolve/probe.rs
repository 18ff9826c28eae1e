//! Queries a seller for payment terms, without paying: that of an agent for a verb, or that behind a URL.

use bytes::Bytes;
use clresolve_core::fetch::FetchError;
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::state::TrustState;
use clresolve_payment::PaymentDecision;
use clresolve_payment::check::SellerCheckRequest;
use clresolve_payment::request::{PaymentDecisionRequest, PaymentDemand};
use clresolve_payment::terms::{PaymentTerms, SellerHttpReply, X402Version};
use clresolve_verdict::trust::Resolution;
use serde::Serialize;
use serde_json::{Value, json};

use super::Resolver;
use super::seller_url::SellerUrl;

/// A query to a seller.
#[derive(Clone, Debug)]
pub struct SellerProbeRequest {
    /// The agent's name, as typed.
    pub name: String,
    /// The verb to be paid for.
    pub verb: String,
    /// The body to POST. `None` sends a GET.
    pub body: Option<&'static str>,
    /// Whether a seller is queried even if the gate does not admit its agent.
    pub ignores_gate: bool,
}

/// The body of an unpaid request: the empty object, as for an invocation without arguments.
pub const EMPTY: &str = "{}";

impl Resolver {
    /// Queries an agent's route and returns the response as a decision request. A seller is not queried if that is not
    /// permitted or if its URL is unknown.
    pub async fn probe_seller(&self, resolution: &Resolution, probe: &SellerProbeRequest) -> PaymentDecisionRequest {
        let SellerProbeRequest { name, verb, body, ignores_gate } = probe;
        let unasked = |reason: Box<Reason>| {
            let question = PaymentDecisionRequest::from_seller_reply(name, verb, "", SellerHttpReply::default());
            PaymentDecisionRequest { url: None, demand: PaymentDemand::Unasked(reason), ..question }
        };
        let resolution = &self.confirm_for_gate(resolution.clone()).await;
        let policy = self.0.walker.config.gate.gate_policy();
        if !ignores_gate && policy.request_objection(resolution, Some(verb), None).is_some() {
            return unasked(Box::new(gate_denied_reason(resolution.verdict().state)));
        }
        let route = match self.agent_route(resolution, Some(verb)) {
            Ok(route) => route,
            Err(reason) => return unasked(reason),
        };
        let url = route.url().as_str();
        match self.send_unpaid_request(url, *body).await {
            Ok(reply) => PaymentDecisionRequest::from_seller_reply(name, verb, url, reply),
            Err(error) => unasked(seller_fetch_failure_reason(&error)),
        }
    }

    /// Queries the seller at `url` and returns the response as a request for [`Resolver::check_seller`]: a POST of
    /// `body` if there is one, otherwise a GET. A redirect is not followed; it is a response without payment terms.
    pub async fn request_seller_terms(&self, url: &SellerUrl, body: Option<Bytes>) -> SellerCheckRequest {
        match self.send_unpaid_request(url.as_str(), body).await {
            Ok(reply) => SellerCheckRequest::from_seller_reply(url.as_str(), reply),
            Err(error) => {
                let question = SellerCheckRequest::from_seller_reply(url.as_str(), SellerHttpReply::default());
                SellerCheckRequest { demand: PaymentDemand::Unasked(seller_fetch_failure_reason(&error)), ..question }
            }
        }
    }
}

/// Why there is no response of the seller.
fn seller_fetch_failure_reason(error: &FetchError) -> Box<Reason> {
    let reason = Reason::new(ReasonCode::InvokeNoRoute).message("The seller cannot be asked.");
    Box::new(reason.observed(error.to_string()))
}

/// Why the seller of an agent is not queried that the gate denies. The gate's objection is reported separately.
fn gate_denied_reason(state: TrustState) -> Reason {
    match state {
        TrustState::Untrusted => Reason::new(ReasonCode::InvokeRefusedUntrusted),
        TrustState::Trusted | TrustState::Indeterminate => {
            Reason::new(ReasonCode::InvokeNoRoute).message("The seller is not asked, since the gate denies this call.")
        }
    }
}

/// The probe's answer as a document.
#[derive(Serialize)]
pub struct SellerProbeResultDocument<'a> {
    /// The terms, if the seller's response contains parsable terms.
    terms: Option<Value>,
    decision: &'a PaymentDecision,
}

impl<'a> SellerProbeResultDocument<'a> {
    /// The answer that was decided from `terms`; `None` if the seller's reply has none.
    pub fn new(terms: Option<&PaymentTerms>, decision: &'a PaymentDecision) -> Self {
        Self { terms: terms.map(payment_terms_to_json), decision }
    }
}

/// The terms in a form that can be decided on again. Members without use are omitted.
fn payment_terms_to_json(terms: &PaymentTerms) -> Value {
    let entries: Vec<_> = terms.entries.iter().map(|entry| &entry.json).collect();
    let mut written = json!({"x402Version": terms.version.version_number(), "accepts": entries});
    if terms.version == X402Version::V2 {
        written["resource"] = terms.resource.clone().into();
        written["extensions"] = Value::Object(terms.extensions.clone());
    }
    written
}
