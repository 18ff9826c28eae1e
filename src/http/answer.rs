//! One request: let in or refused, routed, guarded against bugs, and logged in one line.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::header::{
    ALLOW, CONNECTION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, TRANSFER_ENCODING, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use axum::response::Response;
use futures_util::FutureExt as _;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tower::Service as _;

use super::head::Face;
use super::shares::Client;
use super::{Shared, gate, problem};
use crate::reason::Refusal;
use crate::text::Foreign;
use crate::verdict::{Served, Verdict};

/// What runs nothing, should a browser show an answer.
const NOTHING_RUNS: &str = "default-src 'none'; frame-ancestors 'none'; sandbox";

/// Held for as long as a request is in work, also by an answer that is still being written.
#[derive(Clone)]
pub(super) struct InWork(#[expect(dead_code, reason = "held for its end")] Arc<OwnedSemaphorePermit>);

/// What the log says of an answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Noted {
    verdict: Option<Arc<Verdict>>,
    /// The name of a request that was refused.
    name: Option<String>,
    code: Option<&'static str>,
}

impl Noted {
    /// The code of a reason or a refusal.
    pub(super) const fn code(&self) -> Option<&'static str> {
        self.code
    }

    /// A verdict was given.
    pub(super) fn verdict(verdict: &Arc<Verdict>) -> Self {
        let code = verdict.reasons.first().map(|reason| reason.code.slug());
        Self { verdict: Some(Arc::clone(verdict)), name: None, code }
    }

    /// A request was refused.
    pub(super) fn refusal(refusal: Refusal) -> Self {
        Self { code: Some(refusal.slug()), ..Self::default() }
    }

    /// The request asked for this name.
    #[must_use]
    pub(super) fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// The answer was given for this reason.
    #[must_use]
    pub(super) fn because(mut self, code: Option<&'static str>) -> Self {
        self.code = code;
        self
    }
}

/// Answers one request.
pub(super) async fn answer(
    shared: &Shared,
    router: Router,
    client: Client,
    request: Request<Body>,
    started: Instant,
) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let is_chunked = request.headers().contains_key(TRANSFER_ENCODING);
    let worked = AssertUnwindSafe(work(shared, router, client, request)).catch_unwind().await;
    let mut response = worked.unwrap_or_else(|_| refused(&uri, Refusal::InternalError));
    always(response.headers_mut());
    if is_chunked {
        // Only hyper knows where the chunks end, so what comes after them could not be judged.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    shared.counters.count(&uri, &response);
    log(&method, &uri, client, &response, started);
    response
}

async fn work(shared: &Shared, mut router: Router, client: Client, mut request: Request<Body>) -> Response {
    let path = request.uri().path();
    let is_gate = gate::is_gate(path);
    if !is_gate && gate::is_gate_in_disguise(path) {
        return gate::refused(Refusal::RouteUnknown);
    }
    if request.method() == Method::CONNECT {
        // A success would make a tunnel of the connection.
        let mut response = refused(request.uri(), Refusal::MethodUnsupported);
        if response.status() == StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static(""));
        }
        return response;
    }
    let mut in_work = None;
    if !is_health(request.uri()) {
        let places = if is_gate { &shared.gate_requests } else { &shared.requests };
        let Ok(permit) = Arc::clone(places).try_acquire_owned() else {
            return refused(request.uri(), Refusal::Overloaded);
        };
        let held = in_work.insert(InWork(Arc::new(permit)));
        request.extensions_mut().insert(held.clone());
    }
    request.extensions_mut().insert(client);
    let response = router.call(request).await;
    // Until here: a handler that has no use for it lets its copy go at once.
    drop(in_work);
    response.unwrap_or_else(|never| match never {})
}

/// What each face says instead of a verdict.
pub(super) fn refused(uri: &Uri, refusal: Refusal) -> Response {
    let is_gate = gate::is_gate(uri.path()) || gate::is_gate_in_disguise(uri.path());
    if is_gate { gate::refused(refusal) } else { problem::refused(refusal, None) }
}

/// The same to a head that hyper never sees, with its status, as bytes.
pub(super) fn to_bad_head(face: Face, refusal: Refusal) -> (u16, Vec<u8>) {
    let (response, body) = match face {
        Face::Gate => (gate::refused(refusal), String::new()),
        Face::Report => (problem::refused(refusal, None), problem::document(refusal, None).to_string()),
    };
    let (mut head, _) = response.into_parts();
    always(&mut head.headers);
    head.headers.insert(CONNECTION, HeaderValue::from_static("close"));
    head.headers.insert(CONTENT_LENGTH, body.len().into());
    let mut bytes = format!("HTTP/1.1 {}\r\n", head.status).into_bytes();
    for (name, value) in &head.headers {
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body.as_bytes());
    (head.status.as_u16(), bytes)
}

/// Headers of every answer.
fn always(headers: &mut HeaderMap) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(NOTHING_RUNS));
}

/// Whether an overloaded daemon answers too, so that whoever watches it does not take it for dead.
fn is_health(uri: &Uri) -> bool {
    matches!(uri.path(), "/livez" | "/readyz" | "/metrics")
}

/// One line. Of what happens all the time (health, and verdicts from the cache that nobody is refused for) only for whoever
/// asks for more than runs and refusals: at some ten thousand lines a second the log would cost more than the answers.
fn log(method: &Method, uri: &Uri, client: Client, response: &Response, started: Instant) {
    let nothing = Noted::default();
    let Noted { verdict, name, code } = response.extensions().get().unwrap_or(&nothing);
    let verdict = verdict.as_deref();
    let is_cached = verdict.is_some_and(|verdict| verdict.freshness.served == Served::Cached);
    let routine = is_health(uri) || (is_cached && !response.status().is_client_error());
    if routine && !tracing::enabled!(tracing::Level::DEBUG) {
        return;
    }
    let status = response.status().as_u16();
    let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let path = Foreign::new(uri.path());
    let name = verdict.map(|verdict| verdict.name.input.as_str()).or(name.as_deref());
    let name = name.map(|name| tracing::field::display(Foreign::new(name)));
    let state = verdict.map(|verdict| verdict.state.as_str());
    if routine {
        tracing::debug!(%method, %path, name, state, code, status, ms, client = %client.0, "request");
    } else {
        tracing::info!(%method, %path, name, state, code, status, ms, client = %client.0, "request");
    }
}
