//! `GET /.well-known/jwks.json` returns the keys that verify signed verdicts.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use clresolve_core::reason::RefusalCode;

use super::caching::{matches_if_none_match, not_modified};
use super::problem;
use super::state::AppState;

/// How long a client may cache the keys. A new key must be published for this long before it signs. A withdrawn key
/// disappears from caches within the same time.
const KEYS_FRESH: &str = "public, max-age=600";

pub(super) async fn serve_key_set(State(state): State<Arc<AppState>>, headers: HeaderMap) -> Response {
    let Some(signatures) = &state.signatures else {
        return problem::refusal_response(RefusalCode::RouteUnknown, None);
    };
    let tag = signatures.keys_tag.clone();
    let mut response = if matches_if_none_match(&headers, tag.to_str().unwrap_or_default()) {
        not_modified()
    } else {
        let mut response = Response::new(Body::from(signatures.keys.clone()));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/jwk-set+json"));
        response
    };
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(KEYS_FRESH));
    response.headers_mut().insert(ETAG, tag);
    response
}
