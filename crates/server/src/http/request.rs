//! Handles one request: it is admitted or refused, routed, protected against panics, counted and logged.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::{Body, HttpBody as _};
use axum::http::header::{
    ALLOW, CONNECTION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, HOST, TRANSFER_ENCODING, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, Request};
use axum::response::Response;
use clresolve_core::reason::Refusal;
use clresolve_resolver::cpu_share::{self, Urgency};
use futures_util::FutureExt as _;
use tokio::time::Instant;
use tower::Service as _;

use super::activity::Activity;
use super::client_limits::{Client, HeldPlaces};
use super::face::{Face, ListenerRole};
use super::gate_path;
use super::head_scan::HeadFindings;
use super::in_force::{InForce, Serving};
use super::log::{self, LoggedRequest};
use super::state::AppState;

/// A policy that prevents a browser from executing any part of a response that it displays.
const NOTHING_RUNS: &str = "default-src 'none'; frame-ancestors 'none'; sandbox";

/// The slot of a request in progress, held until its response is written. A request with a body takes the slot once the
/// body has arrived, so a slow client occupies only its connection.
#[derive(Clone)]
pub(super) struct RequestPlace(Arc<InWork>);

struct InWork {
    state: Arc<AppState>,
    client: Client,
    taken: OnceLock<HeldPlaces>,
}

impl RequestPlace {
    pub(super) fn new(state: Arc<AppState>, client: Client) -> Self {
        Self(Arc::new(InWork { state, client, taken: OnceLock::new() }))
    }

    /// Takes the slot, unless the request already has it.
    ///
    /// # Errors
    /// The client has used up its share, or no slot is free.
    pub(super) fn take(&self) -> Result<(), Refusal> {
        if self.0.taken.get().is_none() {
            let place = self.0.state.requests.take(self.0.client, 1)?;
            // A request is handled by one task, so the slot cannot have been set in the meantime.
            let _ = self.0.taken.set(place);
        }
        Ok(())
    }
}

/// Answers one request. A panic becomes the refusal of the request's API.
pub(super) async fn answer(
    in_force: &Arc<InForce>,
    role: ListenerRole,
    client: Client,
    activity: &Activity,
    mut request: Request<Body>,
) -> Response {
    let started = Instant::now();
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let face = Face::behind(role, uri.path());
    let found = activity.request_begins(face == Face::Gate);
    let Serving { state, router, pages } = in_force.serving();
    let client = pages.client(face, client, &request);
    let is_chunked = request.headers().contains_key(TRANSFER_ENCODING);
    request.extensions_mut().insert(Arc::clone(in_force));
    let routed = async |request| {
        let routed = async {
            match objection(face, found, &request) {
                Some(refusal) => face.refuse(refusal),
                None => route(&state, router, client, face, request).await,
            }
        };
        let routed = AssertUnwindSafe(routed).catch_unwind().await;
        let answer = routed.unwrap_or_else(|_| face.refuse(Refusal::InternalError));
        if face != Face::Report {
            return answer;
        }
        state.answers.hold(client, answer).unwrap_or_else(|refusal| face.refuse(refusal))
    };
    let mut response = pages.around(face, request, routed).await;
    protect(response.headers_mut());
    if is_chunked {
        // The connection closes here, so nothing after the chunks is read, however another server would parse it.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    state.counters.count(uri.path(), face, &response, started.elapsed());
    log::write(&LoggedRequest { method: &method, uri: &uri, client, started }, &response, face == Face::Health);
    response
}

/// Why the request must not be processed at all.
fn objection(face: Face, found: HeadFindings, request: &Request<Body>) -> Option<Refusal> {
    let headers = request.headers();
    // The scan finds a length beside chunks, which hyper drops. The headers cover every request, including pipelined
    // ones that the scan did not reach.
    let two_lengths = found.two_lengths && !clresolve_core::mutant!("hidden-lengths-pass");
    if two_lengths || (headers.contains_key(CONTENT_LENGTH) && headers.contains_key(TRANSFER_ENCODING)) {
        return Some(Refusal::RequestMalformed);
    }
    if !names_one_host(request) {
        return Some(Refusal::RequestMalformed);
    }
    match face {
        // A target that was not scanned for a fragment is refused like one with a fragment.
        Face::Gate if found.fragment || found.unseen => Some(Refusal::RequestAmbiguous),
        Face::Gate => gate_path::check(request.uri().path()).err(),
        Face::DisguisedGate | Face::Health | Face::Report => None,
    }
}

/// Whether every server derives the same host from the request (RFC 9112, 3.2). It has at most one `Host`, which must
/// equal the target's authority if there is one, and no user information. A proxy may have joined two into `a,b`.
fn names_one_host(request: &Request<Body>) -> bool {
    let mut hosts = request.headers().get_all(HOST).iter().map(HeaderValue::as_bytes);
    let (host, is_one) = (hosts.next(), hosts.next().is_none());
    let target = request.uri().authority().map(|authority| authority.as_str().as_bytes());
    let agree = host.zip(target).is_none_or(|(host, target)| host.eq_ignore_ascii_case(target));
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b".-_~:[]%".contains(byte);
    is_one && agree && host.into_iter().chain(target).all(|host| host.iter().all(fits))
}

async fn route(
    state: &Arc<AppState>,
    mut router: Router,
    client: Client,
    face: Face,
    mut request: Request<Body>,
) -> Response {
    if face == Face::DisguisedGate {
        return face.refuse(Refusal::RouteUnknown);
    }
    if request.method() == Method::CONNECT {
        return without_tunnel(face);
    }
    let mut held = None;
    if face == Face::Report {
        let place = held.insert(RequestPlace::new(Arc::clone(state), client));
        let has_body = !clresolve_core::mutant!("bodies-hold-places")
            && request.method() == Method::POST
            && !request.body().is_end_stream();
        if !has_body
            && let Err(refusal) = place.take()
            && !may_be_known(&request)
        {
            return face.refuse(refusal);
        }
        request.extensions_mut().insert(place.clone());
    }
    request.extensions_mut().insert(client);
    let work = state.work(client, urgency(face, request.uri().path()));
    let response = cpu_share::within(work, router.call(request)).await;
    // Held until here, since a handler that does not use its copy drops it at once.
    drop(held);
    response.unwrap_or_else(|never| match never {})
}

/// The urgency of the request. Decisions and checks are urgent, since a purchase waits for them.
fn urgency(face: Face, path: &str) -> Urgency {
    match path.strip_suffix('/').unwrap_or(path) {
        _ if face == Face::Gate => Urgency::Gate,
        "/v1/checks" | "/v1/decisions" | "/v1/decisions/signed" => Urgency::Decision,
        _ => Urgency::Document,
    }
}

/// Whether the response may be in the cache, so that the request needs no slot. The handler refuses it if it is not.
fn may_be_known(request: &Request<Body>) -> bool {
    let name = request.uri().path().strip_prefix("/v1/verdicts/");
    let name = name.map(|name| name.strip_suffix('/').unwrap_or(name));
    matches!(*request.method(), Method::GET | Method::HEAD) && name.is_some_and(|name| !name.contains('/'))
}

/// The response to `CONNECT`. A successful status would turn the connection into a tunnel.
fn without_tunnel(face: Face) -> Response {
    let mut response = face.refuse(Refusal::MethodUnsupported);
    if matches!(face, Face::Health | Face::Report) {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(""));
    }
    response
}

/// Sets the headers of every response. The explorer's page has its own policy.
fn protect(headers: &mut HeaderMap) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(NOTHING_RUNS));
}
