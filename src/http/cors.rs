//! Which web pages may read answers (CORS): those of the configured origins, and none by default.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{
    ACCEPT, ACCESS_CONTROL_REQUEST_METHOD, AGE, CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, RETRY_AFTER,
};
use axum::http::{HeaderName, HeaderValue, Method, Request};
use axum::response::Response;
use futures_util::FutureExt as _;
use tower::{Layer as _, Service as _, service_fn};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};
use url::Url;

use super::caching::CACHE_STATUS;
use super::cards::REPR_DIGEST;
use super::events::LAST_EVENT_ID;
use super::face::Face;
use crate::config::{ANY_ORIGIN, CorsConfig, McpConfig};

/// How long a browser may remember what is permitted.
const REMEMBERED: Duration = Duration::from_secs(600);

/// What pages may send and read beyond what is always safe.
const SENT: [HeaderName; 5] = [ACCEPT, CACHE_CONTROL, CONTENT_TYPE, IF_NONE_MATCH, LAST_EVENT_ID];
const READ: [HeaderName; 5] = [AGE, CACHE_STATUS, ETAG, REPR_DIGEST, RETRY_AFTER];

/// The path of the tools, whose pages `[mcp]` names.
const TOOLS: &str = "/mcp";

/// What pages may read, where the configuration names some.
#[derive(Clone)]
pub(super) struct PagePermissions {
    report: Option<CorsLayer>,
    tools: Option<CorsLayer>,
}

impl PagePermissions {
    pub(super) fn new(report: &CorsConfig, tools: &McpConfig) -> Self {
        Self { report: of_report(report), tools: of_tools(tools) }
    }

    /// Answers by `answer`, and lets permitted pages read it: a refusal as well. A preflight is answered here, whatever the
    /// load: it says only what the configuration does. The gate has no part in it, because that answer is a 200.
    pub(super) async fn around<F>(
        &self,
        face: Face,
        request: Request<Body>,
        answer: impl FnOnce(Request<Body>) -> F,
    ) -> Response
    where
        F: Future<Output = Response>,
    {
        let Some(permission) = self.of(face, request.uri().path()).filter(|_| !asks_for_methods(&request)) else {
            return answer(request).await;
        };
        let mut answer = Some(answer);
        let once = |request| {
            let answer = answer.take().expect("a request is answered once");
            answer(request).map(Ok::<_, Infallible>)
        };
        permission.layer(service_fn(once)).call(request).await.unwrap_or_else(|never| match never {})
    }

    fn of(&self, face: Face, path: &str) -> Option<&CorsLayer> {
        match face {
            Face::Gate | Face::DisguisedGate => None,
            Face::Health | Face::Report if path.strip_suffix('/').unwrap_or(path) == TOOLS => self.tools.as_ref(),
            Face::Health | Face::Report => self.report.as_ref(),
        }
    }
}

/// Whether it is an `OPTIONS` that is no preflight: the library would answer it too, and without `Allow`.
fn asks_for_methods(request: &Request<Body>) -> bool {
    request.method() == Method::OPTIONS && !request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Pages of the configured origins may use the report face.
fn of_report(config: &CorsConfig) -> Option<CorsLayer> {
    if config.origins.is_empty() {
        return None;
    }
    let origins = if config.origins.iter().any(|origin| origin == ANY_ORIGIN) {
        AllowOrigin::any()
    } else {
        list(&config.origins)
    };
    let permitted = CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([Method::GET, Method::POST])
        .allow_headers(SENT)
        .expose_headers(READ)
        .max_age(REMEMBERED);
    Some(permitted)
}

/// Pages of the origins in `[mcp]` may use the tools. Their clients send headers of the protocol, which are judged there.
fn of_tools(config: &McpConfig) -> Option<CorsLayer> {
    if config.origins.is_empty() {
        return None;
    }
    // As browsers write them: without the port that goes without saying.
    let written =
        config.origins.iter().filter_map(|origin| Some(Url::parse(origin).ok()?.origin().ascii_serialization()));
    let permitted = CorsLayer::new()
        .allow_origin(list(&written.collect::<Vec<_>>()))
        .allow_methods([Method::POST])
        .allow_headers(AllowHeaders::mirror_request())
        .max_age(REMEMBERED);
    Some(permitted)
}

fn list(origins: &[String]) -> AllowOrigin {
    AllowOrigin::list(origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()))
}
