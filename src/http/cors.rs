//! Which web pages may read answers (CORS): those of the configured origins, and none by default.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::header::{
    ACCEPT, ACCESS_CONTROL_REQUEST_METHOD, AGE, CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, RETRY_AFTER,
};
use axum::http::{HeaderName, HeaderValue, Method};
use axum::response::Response;
use axum::routing::Route;
use futures_util::future::BoxFuture;
use tower::{Layer, Service};
use tower_http::cors::{AllowHeaders, AllowOrigin, Cors, CorsLayer};
use url::Url;

use super::caching::CACHE_STATUS;
use super::cards::REPR_DIGEST;
use super::events::LAST_EVENT_ID;
use super::state::AppState;
use crate::config::{ANY_ORIGIN, CorsConfig, McpConfig};

/// How long a browser may remember what is permitted.
const REMEMBERED: Duration = Duration::from_secs(600);

/// What pages may send and read beyond what is always safe.
const SENT: [HeaderName; 5] = [ACCEPT, CACHE_CONTROL, CONTENT_TYPE, IF_NONE_MATCH, LAST_EVENT_ID];
const READ: [HeaderName; 5] = [AGE, CACHE_STATUS, ETAG, REPR_DIGEST, RETRY_AFTER];

/// Lets pages of the configured origins use these routes.
pub(super) fn permit(routes: Router<Arc<AppState>>, config: &CorsConfig) -> Router<Arc<AppState>> {
    if config.origins.is_empty() {
        return routes;
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
    routes.layer(Permit(permitted))
}

/// Lets pages of the origins in `[mcp]` use the tools. Their clients send headers of the protocol, which are judged there.
pub(super) fn permit_tools(routes: Router<Arc<AppState>>, config: &McpConfig) -> Router<Arc<AppState>> {
    if config.origins.is_empty() {
        return routes;
    }
    // As browsers write them: without the port that goes without saying.
    let written =
        config.origins.iter().filter_map(|origin| Some(Url::parse(origin).ok()?.origin().ascii_serialization()));
    let permitted = CorsLayer::new()
        .allow_origin(list(&written.collect::<Vec<_>>()))
        .allow_methods([Method::POST])
        .allow_headers(AllowHeaders::mirror_request())
        .max_age(REMEMBERED);
    routes.layer(Permit(permitted))
}

/// Applies the permission to routes, but leaves them an `OPTIONS` that is no preflight: the library would answer it too,
/// and without `Allow`.
#[derive(Clone)]
struct Permit(CorsLayer);

impl Layer<Route> for Permit {
    type Service = Permitted;

    fn layer(&self, plain: Route) -> Permitted {
        Permitted { cors: self.0.layer(plain.clone()), plain }
    }
}

/// A route with the permission and without it.
#[derive(Clone)]
struct Permitted {
    cors: Cors<Route>,
    plain: Route,
}

impl Service<Request> for Permitted {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        ready!(Service::<Request>::poll_ready(&mut self.plain, context))?;
        Service::<Request>::poll_ready(&mut self.cors, context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let is_preflight = request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        if request.method() == Method::OPTIONS && !is_preflight {
            return Box::pin(self.plain.call(request));
        }
        Box::pin(self.cors.call(request))
    }
}

fn list(origins: &[String]) -> AllowOrigin {
    AllowOrigin::list(origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()))
}
