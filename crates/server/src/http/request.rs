//! Handles one request: it is admitted or refused, routed, protected against panics, counted and logged.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::body::{Body, HttpBody as _};
use axum::http::header::{
    ALLOW, CONNECTION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, HOST, TRANSFER_ENCODING, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Request};
use axum::response::Response;
use clresolve_core::reason::RefusalCode;
use clresolve_resolver::cpu_share::{self, CpuJobUrgency};
use futures_util::FutureExt as _;
use tokio::time::Instant;
use tower::Service as _;

use super::activity::ConnectionActivity;
use super::api_kind::{ListenerApiScope, RequestedApi};
use super::client_limits::ClientIdentity;
use super::gate_path;
use super::head_scan::RequestHeadFindings;
use super::in_force::{ConfiguredService, CurrentService};
use super::log::{self, RequestLogFields};
use super::request_slot::RequestSlot;
use super::state::AppState;
use super::{gate, verdicts};

/// A policy that prevents a browser from executing any part of a response that it displays.
const NOTHING_RUNS: &str = "default-src 'none'; frame-ancestors 'none'; sandbox";

/// Answers one request. A panic becomes the refusal of the request's API.
pub(super) async fn answer_request(
    in_force: &Arc<CurrentService>,
    role: ListenerApiScope,
    client: ClientIdentity,
    activity: &ConnectionActivity,
    request: Request<Body>,
) -> Response {
    let started = Instant::now();
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let api = RequestedApi::for_listener(role, uri.path());
    let found = activity.begin_request(api == RequestedApi::Gate);
    let serving = in_force.configured_service();
    let ConfiguredService { state, pages, .. } = &*serving;
    let client = pages.attributed_client(api, client, &request);
    let is_chunked = request.headers().contains_key(TRANSFER_ENCODING);
    let routed = async |request| {
        let routed = async {
            match request_head_refusal(api, found, &request) {
                Some(refusal) => api.refusal_response(refusal),
                None => route_request(in_force, &serving, client, api, request).await,
            }
        };
        let routed = AssertUnwindSafe(routed).catch_unwind().await;
        let answer = routed.unwrap_or_else(|_| api.refusal_response(RefusalCode::InternalError));
        if api != RequestedApi::Report {
            return answer;
        }
        state.answers.reserve_slots(client, answer).unwrap_or_else(|refusal| api.refusal_response(refusal))
    };
    let mut response = pages.answer_with_cors(api, request, routed).await;
    set_security_headers(response.headers_mut());
    if is_chunked {
        // The connection closes here, so nothing after the chunks is read, however another server would parse it.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    state.counters.count_response(uri.path(), api, &response, started.elapsed());
    log::write_request_log(
        &RequestLogFields { method: &method, uri: &uri, client, started },
        &response,
        api == RequestedApi::Health,
    );
    response
}

/// Why the request must not be processed at all.
fn request_head_refusal(api: RequestedApi, found: RequestHeadFindings, request: &Request<Body>) -> Option<RefusalCode> {
    let headers = request.headers();
    // The scan finds a length beside chunks, which hyper drops. The headers cover every request, including pipelined
    // ones that the scan did not reach.
    let two_lengths = found.two_lengths && !clresolve_core::mutant!("hidden-lengths-pass");
    if two_lengths || (headers.contains_key(CONTENT_LENGTH) && headers.contains_key(TRANSFER_ENCODING)) {
        return Some(RefusalCode::RequestMalformed);
    }
    if !has_unambiguous_host(request) {
        return Some(RefusalCode::RequestMalformed);
    }
    match api {
        // A target that was not scanned for a fragment is refused like one with a fragment.
        RequestedApi::Gate if found.fragment || found.unseen => Some(RefusalCode::RequestAmbiguous),
        RequestedApi::Gate => gate_path::check_gate_path(request.uri().path()).err(),
        RequestedApi::DisguisedGate | RequestedApi::Health | RequestedApi::Report => None,
    }
}

/// Whether every server derives the same host from the request (RFC 9112, 3.2). It has at most one `Host`, which must
/// equal the target's authority if there is one, and no user information. A proxy may have joined two into `a,b`.
fn has_unambiguous_host(request: &Request<Body>) -> bool {
    let mut hosts = request.headers().get_all(HOST).iter().map(HeaderValue::as_bytes);
    let (host, is_one) = (hosts.next(), hosts.next().is_none());
    let target = request.uri().authority().map(|authority| authority.as_str().as_bytes());
    let agree = host.zip(target).is_none_or(|(host, target)| host.eq_ignore_ascii_case(target));
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b".-_~:[]%".contains(byte);
    is_one && agree && host.into_iter().chain(target).all(|host| host.iter().all(fits))
}

async fn route_request(
    in_force: &Arc<CurrentService>,
    serving: &ConfiguredService,
    client: ClientIdentity,
    api: RequestedApi,
    request: Request<Body>,
) -> Response {
    if api == RequestedApi::DisguisedGate {
        return api.refusal_response(RefusalCode::RouteUnknown);
    }
    if request.method() == Method::CONNECT {
        return refuse_connect_method(api);
    }
    let (head, body) = request.into_parts();
    if let Some(response) = answer_without_router(in_force, &serving.state, client, api, &head).await {
        return response;
    }
    // Boxed, so that the future of a response without a route is small.
    Box::pin(answer_by_router(in_force, serving, client, api, Request::from_parts(head, body))).await
}

/// Answers the most frequent requests without the router, at half the cost: gate requests with a plain path, and
/// requests for a cached verdict. The response equals that of the route. `None` for all other requests.
async fn answer_without_router(
    in_force: &CurrentService,
    state: &AppState,
    client: ClientIdentity,
    api: RequestedApi,
    head: &Parts,
) -> Option<Response> {
    match api {
        RequestedApi::Gate => {
            let plain = gate_path::split_plain_path(&head.uri)?;
            let work = state.cpu_task_context(client, CpuJobUrgency::Gate);
            Some(cpu_share::run_in_context(work, gate::answer_plain_path(state, in_force, client, plain)).await)
        }
        RequestedApi::Report => verdicts::cached_verdict_response(state, client, head).await,
        RequestedApi::DisguisedGate | RequestedApi::Health => None,
    }
}

async fn answer_by_router(
    in_force: &Arc<CurrentService>,
    ConfiguredService { state, router, .. }: &ConfiguredService,
    client: ClientIdentity,
    api: RequestedApi,
    mut request: Request<Body>,
) -> Response {
    let mut held = None;
    if api == RequestedApi::Report {
        let slot = held.insert(RequestSlot::new(Arc::clone(state), client));
        let has_body = !clresolve_core::mutant!("bodies-hold-slots")
            && request.method() == Method::POST
            && !request.body().is_end_stream();
        if !has_body && let Err(refusal) = slot.take_slot() {
            return api.refusal_response(refusal);
        }
        request.extensions_mut().insert(slot.clone());
    }
    request.extensions_mut().insert(client);
    request.extensions_mut().insert(Arc::clone(in_force));
    let work = state.cpu_task_context(client, request_urgency(api, request.uri().path()));
    let response = cpu_share::run_in_context(work, router.clone().call(request)).await;
    // Held until here, since a handler that does not use its copy drops it at once.
    drop(held);
    response.unwrap_or_else(|never| match never {})
}

/// The urgency of the request. Decisions and checks are urgent, since a purchase waits for them.
fn request_urgency(api: RequestedApi, path: &str) -> CpuJobUrgency {
    match path.strip_suffix('/').unwrap_or(path) {
        _ if api == RequestedApi::Gate => CpuJobUrgency::Gate,
        "/v1/checks" | "/v1/decisions" | "/v1/decisions/signed" => CpuJobUrgency::Decision,
        _ => CpuJobUrgency::Document,
    }
}

/// The response to `CONNECT`. A successful status would turn the connection into a tunnel.
fn refuse_connect_method(api: RequestedApi) -> Response {
    let mut response = api.refusal_response(RefusalCode::MethodUnsupported);
    if matches!(api, RequestedApi::Health | RequestedApi::Report) {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(""));
    }
    response
}

/// Sets the headers of every response. The explorer's page has its own policy.
fn set_security_headers(headers: &mut HeaderMap) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(NOTHING_RUNS));
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use axum::body::to_bytes;
    use axum::http::HeaderName;
    use axum::http::header::{ACCEPT, AGE, CACHE_CONTROL, CONTENT_LENGTH, ETAG, IF_NONE_MATCH};
    use clresolve_resolver::resolve::Resolver;
    use clresolve_resolver::sandbox::Sandbox;

    use super::*;
    use crate::http::build_service;
    use crate::http::caching::CACHE_STATUS;

    #[tokio::test]
    async fn response_without_route_equals_that_of_the_route() {
        let sandbox = Sandbox::start().await.expect("the sandbox starts");
        let mut config = sandbox.config();
        (config.timeout, config.gate.deadline) =
            (std::time::Duration::from_secs(120), std::time::Duration::from_secs(100));
        let resolver = Resolver::new(&config).await.expect("a resolver");
        for name in ["summarizeagent.eth", "entry-version.eth"] {
            resolver.resolve(name).await;
        }
        let in_force = Arc::new(CurrentService::new(build_service(AppState::new(resolver, &config, None, None))));
        let serving = in_force.configured_service();
        let client = ClientIdentity::from(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let request = |method: &Method, path: &str, (name, value): (HeaderName, &HeaderValue)| {
            let request = Request::builder().method(method).uri(path).header(name, value);
            request.body(Body::empty()).expect("a request")
        };
        let both = async |method: &Method, path: &str, header: (HeaderName, &HeaderValue)| {
            let ((head, body), api) = (request(method, path, header).into_parts(), RequestedApi::from_path(path));
            let without = answer_without_router(&in_force, &serving.state, client, api, &head).await;
            (without, answer_by_router(&in_force, &serving, client, api, Request::from_parts(head, body)).await)
        };
        let json = HeaderValue::from_static("application/json");
        let (_, first) = both(&Method::GET, "/v1/verdicts/summarizeagent.eth", (ACCEPT, &json)).await;
        let (tag, anew) = (&first.headers()[ETAG], HeaderValue::from_static("no-cache"));
        let (events, signed) =
            (HeaderValue::from_static("text/event-stream"), HeaderValue::from_static("application/jose, */*"));
        for (needs_route, method, path, header) in [
            (false, Method::GET, "/v1/verdicts/summarizeagent.eth", (ACCEPT, &json)),
            (false, Method::GET, "/v1/verdicts/summarizeagent.eth/", (IF_NONE_MATCH, tag)),
            (false, Method::HEAD, "/v1/verdicts/summarizeagent.eth?profile=", (ACCEPT, &json)),
            (false, Method::GET, "/v1/verdicts/entry%2Dversion.eth", (ACCEPT, &json)),
            (true, Method::GET, "/v1/verdicts/SummarizeAgent.eth", (ACCEPT, &json)),
            (true, Method::GET, "/v1/verdicts/summarizeagent.eth?depth=deep", (ACCEPT, &json)),
            (true, Method::GET, "/v1/verdicts/summarizeagent.eth", (ACCEPT, &signed)),
            (true, Method::GET, "/v1/verdicts/summarizeagent.eth", (ACCEPT, &events)),
            (true, Method::GET, "/v1/verdicts/summarizeagent.eth", (CACHE_CONTROL, &anew)),
            (true, Method::GET, "/v1/verdicts/no%20name", (ACCEPT, &json)),
            (true, Method::GET, "/v1/verdicts/", (ACCEPT, &json)),
            (true, Method::GET, "/v1/verdicts/summarizeagent.eth/more", (ACCEPT, &json)),
            (true, Method::POST, "/v1/verdicts/summarizeagent.eth", (ACCEPT, &json)),
            (false, Method::GET, "/v1/gate/summarizeagent.eth", (ACCEPT, &json)),
            (false, Method::POST, "/v1/gate/summarizeagent.eth/summarize/", (ACCEPT, &json)),
            (false, Method::GET, "/v1/gate/summarizeagent.eth/other", (ACCEPT, &json)),
            (false, Method::GET, "/v1/gate/entry-version.eth", (ACCEPT, &json)),
            (true, Method::GET, "/v1/gate", (ACCEPT, &json)),
            (true, Method::GET, "/v1/gate/summarizeagent%2Eeth", (ACCEPT, &json)),
            (true, Method::GET, "/v1/gate/summarizeagent.eth?network=eip155:1", (ACCEPT, &json)),
            (true, Method::GET, "/v1/gate/summarizeagent.eth/summarize/more", (ACCEPT, &json)),
            (true, Method::GET, "/v1/envoy/summarizeagent.eth/summarize", (ACCEPT, &json)),
        ] {
            let (without, by_route) = both(&method, path, header).await;
            assert_eq!(without.is_none(), needs_route, "{method} {path}");
            let Some(without) = without else { continue };
            assert_eq!(without.status(), by_route.status(), "{method} {path}");
            let [without, by_route] = [without, by_route].map(|response| {
                let (mut head, body) = response.into_parts();
                // `Age` and `Cache-Status` depend on the time. hyper sets `Content-Length`.
                for header in [AGE, CACHE_STATUS, CONTENT_LENGTH] {
                    head.headers.remove(header);
                }
                (head.headers, if method == Method::HEAD { Body::empty() } else { body })
            });
            assert_eq!(without.0, by_route.0, "{method} {path}");
            let bytes = async |body| to_bytes(body, usize::MAX).await.expect("bytes in memory");
            assert_eq!(bytes(without.1).await, bytes(by_route.1).await, "{method} {path}");
        }
    }
}
