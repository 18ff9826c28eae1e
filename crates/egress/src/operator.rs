//! The operator's class: configured RPC endpoints and gateways, at any address.

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use tokio::time::Instant;
use url::{Origin, Url};

use crate::Egress;
use crate::body_budget::BodyBudget;
use crate::config::{CONFIGURED, deadline_in};
use crate::message::{EgressRequest, EgressResponse};
use clresolve_core::fetch::{EgressViolation, FetchError, ForbiddenUrlError, SourceUnavailableError};

/// A client for one configured origin: plain `http` or `https`, no redirects, no proxy, no other origin.
#[derive(Clone, Debug)]
pub struct SingleOriginClient {
    egress: Egress,
    origin: Origin,
    bodies: BodyBudget,
}

/// A response to a JSON request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferedResponse {
    /// The HTTP status.
    pub status: u16,
    /// The value of the `Date` header.
    pub date: Option<Timestamp>,
    /// The body. Empty if it could not be read and the status is no success.
    pub body: Bytes,
}

impl BufferedResponse {
    /// Whether the status is a success (2xx).
    pub const fn is_success(&self) -> bool {
        is_success_status(self.status)
    }
}

const fn is_success_status(status: u16) -> bool {
    matches!(status, 200..=299)
}

impl Egress {
    /// A client for the origin of the configured `endpoint` only.
    ///
    /// # Errors
    /// [`EgressViolation`] if the URL is neither `http` nor `https`, or has no host.
    pub fn single_origin_client(&self, endpoint: &Url) -> Result<SingleOriginClient, EgressViolation> {
        if !matches!(endpoint.scheme(), "http" | "https") {
            return Err(EgressViolation::Scheme);
        }
        if !endpoint.has_host() {
            return Err(EgressViolation::NotUrl);
        }
        let origin = endpoint.origin();
        let bodies = self.clients.budget_for_origin(&origin);
        Ok(SingleOriginClient { egress: self.clone(), origin, bodies })
    }
}

impl SingleOriginClient {
    /// Posts a JSON body.
    ///
    /// # Errors
    /// [`FetchError::Oversize`] if the body of a success (2xx) has more than `cap` bytes,
    /// [`SourceUnavailableError::Timeout`] after `limit` in all. Any other status is an answer.
    pub async fn post_json(
        &self,
        url: &Url,
        body: Bytes,
        cap: usize,
        limit: Duration,
    ) -> Result<BufferedResponse, FetchError> {
        let reply =
            self.send(url, EgressRequest::post_json(body).accept_gzip().with_retries(), deadline_in(limit)).await?;
        let (status, date) = (reply.status(), reply.date());
        let body = reply.read_body_within_budget(cap, &self.bodies).await;
        // The status of a refusal is more informative than a defect of its body.
        let body = if is_success_status(status) { body? } else { body.unwrap_or_default() };
        Ok(BufferedResponse { status, date, body })
    }

    /// Gets the body of a successful response, accepting the media type `accept`.
    ///
    /// # Errors
    /// [`FetchError::Oversize`] beyond `cap` bytes, [`SourceUnavailableError::Timeout`] after `limit` in all,
    /// [`SourceUnavailableError::Status`] for any status except 200.
    pub async fn get(&self, url: &Url, accept: &'static str, cap: usize, limit: Duration) -> Result<Bytes, FetchError> {
        read_success_body(self.send(url, EgressRequest::get(accept), deadline_in(limit)).await?, cap, &self.bodies)
            .await
    }

    /// Sends `call` to a URL of the configured origin and waits for the response head.
    ///
    /// # Errors
    /// [`EgressViolation::OtherOrigin`] for another origin, otherwise the cause of the failure.
    pub async fn send(&self, url: &Url, call: EgressRequest, deadline: Instant) -> Result<EgressResponse, FetchError> {
        if url.origin() != self.origin {
            return Err(
                ForbiddenUrlError { hop: 0, target: CONFIGURED.to_owned(), why: EgressViolation::OtherOrigin }.into()
            );
        }
        self.egress.send_configured(url, call, deadline).await
    }
}

/// Reads the body of a response with status 200, within the server's `budget`.
pub async fn read_success_body(reply: EgressResponse, cap: usize, budget: &BodyBudget) -> Result<Bytes, FetchError> {
    match reply.status() {
        200 => reply.read_body_within_budget(cap, budget).await,
        status => Err(SourceUnavailableError::Status(status).into()),
    }
}
