//! The operator's door: configured RPC endpoints and gateways, at any address.

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use tokio::time::Instant;
use url::{Origin, Url};

use crate::Egress;
use crate::body_budget::BodyBudget;
use crate::config::{CONFIGURED, deadline_in};
use crate::message::{Call, Reply};
use clresolve_core::fetch::{Cause, EgressViolation, FetchError, Forbidden};

/// A client for one configured origin: plain `http` or `https`, no redirects, no proxy, no other origin.
#[derive(Clone, Debug)]
pub struct OperatorClient {
    egress: Egress,
    origin: Origin,
    bodies: BodyBudget,
}

/// A response to a JSON request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The value of the `Date` header.
    pub date: Option<Timestamp>,
    /// The body. Empty if it could not be read and the status is no success.
    pub body: Bytes,
}

impl Answer {
    /// Whether the status is a success (2xx).
    pub const fn is_success(&self) -> bool {
        is_success(self.status)
    }
}

const fn is_success(status: u16) -> bool {
    matches!(status, 200..=299)
}

impl Egress {
    /// A client for the origin of the configured `endpoint` only.
    ///
    /// # Errors
    /// [`EgressViolation`] if the URL is neither `http` nor `https`, or has no host.
    pub fn operator(&self, endpoint: &Url) -> Result<OperatorClient, EgressViolation> {
        if !matches!(endpoint.scheme(), "http" | "https") {
            return Err(EgressViolation::Scheme);
        }
        if !endpoint.has_host() {
            return Err(EgressViolation::NotUrl);
        }
        let origin = endpoint.origin();
        let bodies = self.clients.bodies(&origin);
        Ok(OperatorClient { egress: self.clone(), origin, bodies })
    }
}

impl OperatorClient {
    /// Posts a JSON body.
    ///
    /// # Errors
    /// [`FetchError::Oversize`] if the body of a success (2xx) has more than `cap` bytes, [`Cause::Timeout`]
    /// after `limit` in all. Any other status is an answer.
    pub async fn post_json(&self, url: &Url, body: Bytes, cap: usize, limit: Duration) -> Result<Answer, FetchError> {
        let reply = self.send(url, Call::post_json(body).gzip().patient(), deadline_in(limit)).await?;
        let (status, date) = (reply.status(), reply.date());
        let body = reply.bytes_within(cap, &self.bodies).await;
        // The status of a refusal is more informative than a defect of its body.
        let body = if is_success(status) { body? } else { body.unwrap_or_default() };
        Ok(Answer { status, date, body })
    }

    /// Gets the body of a successful response, accepting the media type `accept`.
    ///
    /// # Errors
    /// [`FetchError::Oversize`] beyond `cap` bytes, [`Cause::Timeout`] after `limit` in all, [`Cause::Status`] for any
    /// status except 200.
    pub async fn get(&self, url: &Url, accept: &'static str, cap: usize, limit: Duration) -> Result<Bytes, FetchError> {
        whole_body(self.send(url, Call::get(accept), deadline_in(limit)).await?, cap, &self.bodies).await
    }

    /// Sends `call` to a URL of the configured origin and waits for the response head.
    ///
    /// # Errors
    /// [`EgressViolation::OtherOrigin`] for another origin, otherwise the cause of the failure.
    pub async fn send(&self, url: &Url, call: Call, deadline: Instant) -> Result<Reply, FetchError> {
        if url.origin() != self.origin {
            return Err(Forbidden { hop: 0, target: CONFIGURED.to_owned(), why: EgressViolation::OtherOrigin }.into());
        }
        self.egress.configured(url, call, deadline).await
    }
}

/// Reads the body of a response with status 200, within the server's `budget`.
pub async fn whole_body(reply: Reply, cap: usize, budget: &BodyBudget) -> Result<Bytes, FetchError> {
    match reply.status() {
        200 => reply.bytes_within(cap, budget).await,
        status => Err(Cause::Status(status).into()),
    }
}
