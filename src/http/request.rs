//! One request: admitted or refused, routed, guarded against bugs, counted and logged.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::{Body, HttpBody as _};
use axum::http::header::{
    ALLOW, CONNECTION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, HOST, TRANSFER_ENCODING, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, Request};
use axum::response::Response;
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
use crate::cpu_share::{self, Urgency};
use crate::reason::Refusal;

/// A policy under which a browser that shows an answer runs nothing of it.
const NOTHING_RUNS: &str = "default-src 'none'; frame-ancestors 'none'; sandbox";

/// The place of a request among those in work, until its answer is written. A request with a body takes it once the body
/// has come: what a slow client holds is its connection.
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

    /// Takes the place, unless it is taken already.
    ///
    /// # Errors
    /// When the client has used up its share, or no place is free.
    pub(super) fn take(&self) -> Result<(), Refusal> {
        if self.0.taken.get().is_none() {
            let place = self.0.state.requests.take(self.0.client, 1)?;
            // A request is one task, so nobody has set it meanwhile.
            let _ = self.0.taken.set(place);
        }
        Ok(())
    }
}

/// Answers one request. A panic becomes the face's refusal.
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
        // On a connection that ends here nothing is read after the chunks, however another server would read them.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    state.counters.count(uri.path(), face, &response, started.elapsed());
    log::write(&LoggedRequest { method: &method, uri: &uri, client, started }, &response, face == Face::Health);
    response
}

/// What forbids to answer the request at all.
fn objection(face: Face, found: HeadFindings, request: &Request<Body>) -> Option<Refusal> {
    let headers = request.headers();
    // The scan sees a length behind chunks, which hyper drops; the headers are of each request, also of one sent ahead.
    let two_lengths = found.two_lengths && !clresolve_core::mutant!("hidden-lengths-pass");
    if two_lengths || (headers.contains_key(CONTENT_LENGTH) && headers.contains_key(TRANSFER_ENCODING)) {
        return Some(Refusal::RequestMalformed);
    }
    if !names_one_host(request) {
        return Some(Refusal::RequestMalformed);
    }
    match face {
        // A fragment that was not looked for is refused as one that was found.
        Face::Gate if found.fragment || found.unseen => Some(Refusal::RequestAmbiguous),
        Face::Gate => gate_path::check(request.uri().path()).err(),
        Face::DisguisedGate | Face::Health | Face::Report => None,
    }
}

/// Whether every server takes the request for the same host (RFC 9112, 3.2): it has one `Host` at most, which is also
/// the target's authority where that has one, and no user information.
fn names_one_host(request: &Request<Body>) -> bool {
    let mut hosts = request.headers().get_all(HOST).iter().map(HeaderValue::as_bytes);
    let (host, is_one) = (hosts.next(), hosts.next().is_none());
    let target = request.uri().authority().map(|authority| authority.as_str().as_bytes());
    let agree = host.zip(target).is_none_or(|(host, target)| host.eq_ignore_ascii_case(target));
    is_one && agree && !host.into_iter().chain(target).any(|host| host.contains(&b'@'))
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
    // Held until here, since a handler that ignores its copy drops it at once.
    drop(held);
    response.unwrap_or_else(|never| match never {})
}

/// Who waits for the answer: a purchase stops until a decision is made.
fn urgency(face: Face, path: &str) -> Urgency {
    match path.strip_suffix('/').unwrap_or(path) {
        _ if face == Face::Gate => Urgency::Gate,
        "/v1/decisions" | "/v1/decisions/signed" => Urgency::Decision,
        _ => Urgency::Document,
    }
}

/// Whether the cache may have the answer, which needs no place then. Its handler refuses what the cache has not.
fn may_be_known(request: &Request<Body>) -> bool {
    let name = request.uri().path().strip_prefix("/v1/verdicts/");
    let name = name.map(|name| name.strip_suffix('/').unwrap_or(name));
    matches!(*request.method(), Method::GET | Method::HEAD) && name.is_some_and(|name| !name.contains('/'))
}

/// The answer to `CONNECT`: a success would turn the connection into a tunnel.
fn without_tunnel(face: Face) -> Response {
    let mut response = face.refuse(Refusal::MethodUnsupported);
    if matches!(face, Face::Health | Face::Report) {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(""));
    }
    response
}

/// Sets the headers that every answer has. The explorer's page has a policy of its own.
fn protect(headers: &mut HeaderMap) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(NOTHING_RUNS));
}
