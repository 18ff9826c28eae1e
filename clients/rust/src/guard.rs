//! The guard's rules.

use std::time::Duration;

use async_trait::async_trait;
use http::Extensions;
use http::header::{CONTENT_ENCODING, LOCATION, REFRESH};
use reqwest::redirect::Policy;
use reqwest::{Request, Response, ResponseBuilderExt as _, StatusCode, Url};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Middleware, Next};
use serde_json::Value;
use tokio::time::timeout;

use crate::challenges::{body_carries_credential, headers_carry_credential, strip_other_payment_demands};
use crate::paid::{InFlightPayment, OnPaid, Paid, latin1_to_string};
use crate::refusal::{Refusal, Why};
use crate::reply::{PayableEntries, PaymentRequiredResponse};
use crate::waiting::{PendingDecision, PendingDecisions};

/// Maximum size of a 402 response, in bytes. The daemon rejects larger ones.
const MAX_REPLY_BYTES: usize = 64 * 1024;

/// Time limit for reading the body of a 402 response.
const MAX_READ_TIME: Duration = Duration::from_secs(10);

/// Maximum number of requests about one payment header. A 402 response has at most 32 entries, and most have one or
/// two.
const MAX_QUESTIONS: usize = 32;

/// The headers that carry a payment, in x402 versions 2 and 1.
const PAYMENT_HEADERS: [&str; 2] = ["payment-signature", "x-payment"];

/// The source of decisions about payments to one agent for one verb, or to any seller: the daemon, or a resolver in
/// this process.
#[async_trait]
pub trait PaymentDecider: Send + Sync + 'static {
    /// Whether the agent may be called. Any seller may.
    ///
    /// # Errors
    /// [`Why::Denied`] or [`Why::Unavailable`].
    async fn check_gate(&self) -> Result<(), Refusal>;

    /// Decides which entries of a 402 response may be paid.
    ///
    /// # Errors
    /// [`Why::Denied`] if none may be paid, or [`Why::Unavailable`].
    async fn decide_payable_entries(&self, reply: &PaymentRequiredResponse) -> Result<PayableEntries, Refusal>;

    /// Confirms that the signed payment matches what is allowed for this entry, and returns the decision.
    ///
    /// # Errors
    /// [`Why::PaymentDenied`] or [`Why::Unavailable`].
    async fn confirm_signed_payment(
        &self,
        reply: &PaymentRequiredResponse,
        header: &str,
        entry: usize,
    ) -> Result<Value, Refusal>;
}

/// Asks before a request is sent, and only sends payments for terms that were allowed.
///
/// A guard serves one agent and verb. As a middleware it must be the last one: it sends requests with its own client,
/// which follows no redirects, and never calls the next middleware. A refusal is a [`Refusal`] in
/// [`reqwest_middleware::Error::Middleware`]; [`Refusal::of`] extracts it.
#[derive(Debug)]
pub struct Guard<D> {
    client: reqwest::Client,
    decides: D,
    on_paid: Option<OnPaid>,
    waiting: PendingDecisions,
}

impl<D: PaymentDecider> Guard<D> {
    /// A guard that sends permitted requests with the client that `sellers` builds, without following redirects.
    ///
    /// # Errors
    /// If the client cannot be built.
    pub fn new(decides: D, sellers: reqwest::ClientBuilder) -> reqwest::Result<Self> {
        let client = sellers.redirect(Policy::none()).build()?;
        Ok(Self { client, decides, on_paid: None, waiting: PendingDecisions::default() })
    }

    /// Calls `hook` with the record of each payment that was sent, before its response is returned. A panic of `hook`
    /// is ignored, so that no paid response is lost.
    #[must_use]
    pub fn on_paid(self, hook: impl Fn(&Paid) + Send + Sync + 'static) -> Self {
        Self { on_paid: Some(OnPaid(Box::new(hook))), ..self }
    }

    /// A client that pays with `payments`, an `X402Client`, on top of the guard.
    pub fn beneath(self, payments: impl Middleware) -> ClientWithMiddleware {
        ClientBuilder::new(self.client.clone()).with(payments).with(self).build()
    }

    async fn send_guarded(&self, request: Request) -> reqwest_middleware::Result<Response> {
        if headers_carry_credential(request.headers()) || body_carries_credential(&request) {
            return Err(Refusal::from_kind(Why::OtherProtocol).into());
        }
        match payment_header_values(&request).as_slice() {
            [] => self.send_without_payment(request).await,
            [payment] => self.send_with_payment(request, payment).await,
            _ => Err(Refusal::from_kind(Why::TwoPayments).into()),
        }
    }

    /// Sends a request without a payment: asks the gate first and, after a 402 response, for a decision on its terms.
    async fn send_without_payment(&self, request: Request) -> reqwest_middleware::Result<Response> {
        self.decides.check_gate().await?;
        let url = url_as_sent(request.url());
        let mut response = self.client.execute(request).await?;
        if is_redirect(response.status()) || url_as_sent(response.url()) != url {
            return Err(Refusal::from_kind(Why::Redirected).into());
        }
        strip_other_payment_demands(&mut response);
        if response.status() != StatusCode::PAYMENT_REQUIRED {
            return Ok(response);
        }
        let (response, reply) = read_payment_required(response, url).await?;
        let allowed = self.decides.decide_payable_entries(&reply).await?;
        self.waiting.add(PendingDecision { reply, allowed });
        Ok(response)
    }

    /// Sends a request with a payment, only if a pending decision allows it. Each decision is used once.
    async fn send_with_payment(&self, request: Request, payment: &str) -> reqwest_middleware::Result<Response> {
        let questions = self.waiting.payable_entries_for_url(&url_as_sent(request.url()));
        let mut refusal = Refusal::from_kind(Why::NoDecision);
        for (decision, payable) in questions.into_iter().take(MAX_QUESTIONS) {
            match self.decides.confirm_signed_payment(&decision.reply, payment, payable.entry).await {
                Ok(document) if self.waiting.take_decision(&decision, payable) => {
                    return Ok(sanitize_paid_response(self.execute_payment(request, document, payment).await?));
                }
                Ok(_) => {}
                Err(other) if other.why() == Why::PaymentDenied => refusal = other,
                Err(fault) => return Err(fault.into()),
            }
        }
        Err(refusal.into())
    }

    async fn execute_payment(&self, request: Request, decision: Value, payment: &str) -> reqwest::Result<Response> {
        let paid = Paid { url: url_as_sent(request.url()), decision, payment: payment.to_owned(), settlement: None };
        let leaving = InFlightPayment { hook: self.on_paid.as_ref(), paid };
        let response = self.client.execute(request).await?;
        leaving.record_settlement(response.headers());
        Ok(response)
    }
}

#[async_trait]
impl<D: PaymentDecider> Middleware for Guard<D> {
    async fn handle(&self, request: Request, _: &mut Extensions, _: Next<'_>) -> reqwest_middleware::Result<Response> {
        self.send_guarded(request).await
    }
}

/// The values of all payment headers.
fn payment_header_values(request: &Request) -> Vec<String> {
    let values = PAYMENT_HEADERS.iter().flat_map(|name| request.headers().get_all(*name));
    values.map(|value| latin1_to_string(value.as_bytes())).collect()
}

/// Whether clients follow this status as a redirect.
fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// The response to a payment, without the payment challenges of other protocols. Redirects are disarmed; otherwise a
/// client above the guard would pay again.
fn sanitize_paid_response(mut response: Response) -> Response {
    strip_other_payment_demands(&mut response);
    if is_redirect(response.status()) {
        for name in [LOCATION, REFRESH] {
            response.headers_mut().remove(name);
        }
    }
    response
}

/// The URL without the parts that are never sent.
fn url_as_sent(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_fragment(None);
    // Only fails for a URL that cannot have a user.
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    url
}

/// Reads a 402 response. Returns the response for the caller, and the question for the daemon. A client that decodes
/// bodies undoes one content coding while the body is read, and removes `Content-Encoding`.
async fn read_payment_required(
    mut response: Response,
    url: Url,
) -> Result<(Response, PaymentRequiredResponse), Refusal> {
    let unreadable = || Refusal::from_kind(Why::Unreadable);
    let codings = response.headers().get_all(CONTENT_ENCODING).iter();
    if codings.flat_map(|value| value.as_bytes().split(|&byte| byte == b',')).count() > 1 {
        return Err(unreadable());
    }
    let body = timeout(MAX_READ_TIME, read_limited_body(&mut response))
        .await
        .map_err(|error| unreadable().with_cause(error))??;
    let headers = response.headers().iter();
    let headers = headers.map(|(name, value)| (name.as_str().to_owned(), latin1_to_string(value.as_bytes()))).collect();
    let mut copy = http::Response::builder().status(response.status()).version(response.version());
    copy = copy.url(response.url().clone());
    let mut copy = copy.body(body.clone()).map_err(|_| unreadable())?;
    *copy.headers_mut() = response.headers().clone();
    Ok((Response::from(copy), PaymentRequiredResponse { url, headers, body }))
}

async fn read_limited_body(response: &mut Response) -> Result<Vec<u8>, Refusal> {
    let unreadable = || Refusal::from_kind(Why::Unreadable);
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unreadable().with_cause(error))? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_REPLY_BYTES {
            return Err(unreadable());
        }
    }
    Ok(body)
}
