//! `GET /v1/cards/{name}` returns the exact verified bytes of the card. It returns nothing for a name that is not
//! trusted.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::header::{CONTENT_TYPE, ETAG};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clresolve_core::digest::Digest;
use clresolve_resolver::resolve::NameQuestion;

use super::caching::{ResponseLifetime, matches_if_none_match, not_modified};
use super::client_limits::ClientIdentity;
use super::log::ResponseLogFields;
use super::path::decoded_segment;
use super::problem;
use super::state::AppState;

/// Defined in RFC 9530.
pub(super) const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");

pub(super) async fn serve_card(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientIdentity>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let answered = match state.admission.resolve_with_cache(client, NameQuestion::new(decoded_segment(&uri, 0))).await {
        Ok(answered) => answered,
        Err(refusal) => return problem::refusal_response(refusal, None),
    };
    let verdict = answered.resolution.verdict();
    // The card was hashed when it was judged, off the worker threads, which also serve the gate.
    let digest = verdict.identity.as_ref().and_then(|agent| agent.card.sha256.parse::<Digest>().ok());
    let Some((card, digest)) = answered.resolution.card_bytes().cloned().zip(digest) else {
        return problem::not_trusted_response(verdict);
    };
    let tag = format!("\"{}\"", digest.to_hex());
    let mut response = if matches_if_none_match(&headers, &tag) {
        not_modified()
    } else {
        let mut response = Response::new(Body::from(card));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        insert_header(headers, REPR_DIGEST, &format!("sha-256=:{}:", STANDARD.encode(digest.as_bytes())));
        response
    };
    ResponseLifetime::from_freshness(&verdict.freshness).set_cache_headers(
        response.headers_mut(),
        answered.cache_use,
        state.resolver.now(),
    );
    insert_header(response.headers_mut(), ETAG, &tag);
    response.extensions_mut().insert(ResponseLogFields::from_verdict(verdict));
    response
}

fn insert_header(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    headers.insert(name, HeaderValue::from_str(value).expect("hex and base64 are header values"));
}
