//! `GET /v1/agents/{name}/.well-known/agent-card.json` returns a trusted agent as an A2A card, for clients that look
//! for one at that path.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::header::{CONTENT_TYPE, ETAG};
use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::response::Response;
use clresolve_cards::project::signed_a2a_card_from_resolution;
use clresolve_core::digest::Digest;
use clresolve_core::reason::RefusalCode;
use clresolve_resolver::cpu_pool::CpuPoolFullError;
use clresolve_resolver::resolve::NameQuestion;
use clresolve_verdict::trust::Resolution;

use super::caching::{ResponseLifetime, matches_if_none_match, not_modified};
use super::client_limits::ClientIdentity;
use super::log::ResponseLogFields;
use super::path::decoded_segment;
use super::problem;
use super::state::AppState;

pub(super) async fn serve_agent_card(
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
    // A card may be 256 KiB, so it is converted off the worker threads, which also serve the gate.
    let (making, resolution) = (Arc::clone(&state), answered.resolution.clone());
    let made = state.resolver.cpu_pool().try_run(move || render_card(&making, &resolution)).await;
    let (body, tag) = match made {
        Ok(Ok(projected)) => projected,
        Ok(Err(code)) => return problem::verdict_objection_response(verdict, code),
        Err(CpuPoolFullError) => return problem::refusal_response(RefusalCode::Overloaded, None),
    };
    let mut response = if matches_if_none_match(&headers, &tag) {
        not_modified()
    } else {
        let mut response = Response::new(Body::from(body));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    };
    ResponseLifetime::from_freshness(&verdict.freshness).set_cache_headers(
        response.headers_mut(),
        answered.cache_use,
        state.resolver.now(),
    );
    response.headers_mut().insert(ETAG, HeaderValue::from_str(&tag).expect("hex is a header value"));
    response.extensions_mut().insert(ResponseLogFields::from_verdict(verdict));
    response
}

/// Serializes a card, and returns it with its entity tag.
fn render_card(state: &AppState, resolution: &Resolution) -> Result<(String, String), &'static str> {
    let signer = state.signatures.as_ref().map(|signatures| signatures.signer().signing_key());
    let body = signed_a2a_card_from_resolution(resolution, &state.gate.gate_policy(), signer)?.to_string();
    let tag = format!("\"{}\"", Digest::compute(body.as_bytes()).to_hex());
    Ok((body, tag))
}
