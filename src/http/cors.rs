//! Which web pages may read answers (CORS): those of the configured origins, and none by default.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::header::{ACCEPT, AGE, CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, Method};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};
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
    routes.layer(permitted)
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
    routes.layer(permitted)
}

fn list(origins: &[String]) -> AllowOrigin {
    AllowOrigin::list(origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()))
}
