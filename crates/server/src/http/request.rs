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
use super::api_kind::{ApiKind, ListenerRole};
use super::client_limits::{Client, HeldSlots};
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
pub(super) struct RequestSlot(Arc<InWork>);

struct InWork {
    state: Arc<AppState>,
    client: Client,
    taken: OnceLock<HeldSlots>,
}

impl RequestSlot {
    pub(super) fn new(state: Arc<AppState>, client: Client) -> Self {
        Self(Arc::new(InWork { state, client, taken: OnceLock::new() }))
    }

    /// Takes the slot, unless the request already has it.
    ///
    /// # Errors
    /// The client has used up its share, or no slot is free.
    pub(super) fn take(&self) -> Result<(), Refusal> {
        if self.0.taken.get().is_none() {
            let slot = self.0.state.requests.take(self.0.client, 1)?;
            // A request is handled by one task, so the slot cannot have been set in the meantime.
            let _ = self.0.taken.set(slot);
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
    let api = ApiKind::behind(role, uri.path());
    let found = activity.request_begins(api == ApiKind::Gate);
    let Serving { state, router, pages } = in_force.serving();
    let client = pages.client(api, client, &request);
    let is_chunked = request.headers().contains_key(TRANSFER_ENCODING);
    request.extensions_mut().insert(Arc::clone(in_force));
    let routed = async |request| {
        let routed = async {
            match objection(api, found, &request) {
                Some(refusal) => api.refuse(refusal),
                None => route(&state, router, client, api, request).await,
            }
        };
        let routed = AssertUnwindSafe(routed).catch_unwind().await;
        let answer = routed.unwrap_or_else(|_| api.refuse(Refusal::InternalError));
        if api != ApiKind::Report {
            return answer;
        }
        state.answers.hold(client, answer).unwrap_or_else(|refusal| api.refuse(refusal))
    };
    let mut response = pages.around(api, request, routed).await;
    protect(response.headers_mut());
    if is_chunked {
        // The connection closes here, so nothing after the chunks is read, however another server would parse it.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    state.counters.count(uri.path(), api, &response, started.elapsed());
    log::write(&LoggedRequest { method: &method, uri: &uri, client, started }, &response, api == ApiKind::Health);
    response
}

/// Why the request must not be processed at all.
fn objection(api: ApiKind, found: HeadFindings, request: &Request<Body>) -> Option<Refusal> {
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
    match api {
        // A target that was not scanned for a fragment is refused like one with a fragment.
        ApiKind::Gate if found.fragment || found.unseen => Some(Refusal::RequestAmbiguous),
        ApiKind::Gate => gate_path::check(request.uri().path()).err(),
        ApiKind::DisguisedGate | ApiKind::Health | ApiKind::Report => None,
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
    api: ApiKind,
    mut request: Request<Body>,
) -> Response {
    if api == ApiKind::DisguisedGate {
        return api.refuse(Refusal::RouteUnknown);
    }
    if request.method() == Method::CONNECT {
        return without_tunnel(api);
    }
    let mut held = None;
    if api == ApiKind::Report {
        let slot = held.insert(RequestSlot::new(Arc::clone(state), client));
        let has_body = !clresolve_core::mutant!("bodies-hold-places")
            && request.method() == Method::POST
            && !request.body().is_end_stream();
        if !has_body
            && let Err(refusal) = slot.take()
            && !may_be_known(&request)
        {
            return api.refuse(refusal);
        }
        request.extensions_mut().insert(slot.clone());
    }
    request.extensions_mut().insert(client);
    let work = state.work(client, urgency(api, request.uri().path()));
    let response = cpu_share::within(work, router.call(request)).await;
    // Held until here, since a handler that does not use its copy drops it at once.
    drop(held);
    response.unwrap_or_else(|never| match never {})
}

/// The urgency of the request. Decisions and checks are urgent, since a purchase waits for them.
fn urgency(api: ApiKind, path: &str) -> Urgency {
    match path.strip_suffix('/').unwrap_or(path) {
        _ if api == ApiKind::Gate => Urgency::Gate,
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
fn without_tunnel(api: ApiKind) -> Response {
    let mut response = api.refuse(Refusal::MethodUnsupported);
    if matches!(api, ApiKind::Health | ApiKind::Report) {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(""));
    }
    response
}

/// Sets the headers of every response. The explorer's page has its own policy.
fn protect(headers: &mut HeaderMap) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(NOTHING_RUNS));
}
