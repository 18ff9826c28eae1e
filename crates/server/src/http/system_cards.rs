//! Serves Orloj's agent cards at the two paths where A2A clients look for them. They are public.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{AGE, CACHE_CONTROL, CONTENT_TYPE, ETAG};
use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::response::Response;
use clresolve_cards::generate::{GeneratedOrlojCard, GeneratedOrlojCards};
use clresolve_core::digest::Digest;
use clresolve_core::reason::RefusalCode;

use super::caching::{matches_if_none_match, not_modified};
use super::path::decoded_segment;
use super::problem;
use super::query;
use super::state::AppState;
use super::systems::FRESH_SECONDS;

/// The query parameter: the system's namespace.
pub(super) const PARAMETERS: [&str; 1] = ["namespace"];

/// `GET /.well-known/agent-card.json` returns the card if exactly one system is exposed.
pub(super) async fn serve_root_card(State(state): State<Arc<AppState>>, headers: HeaderMap) -> Response {
    answer_with_card(&state, &headers, |cards| {
        cards.single_card().ok_or_else(|| match cards.len() {
            0 => "no AgentSystem is exposed".into(),
            many => format!(
                "{many} AgentSystems are exposed, so none stands at the root; each has its card at \
                 /v1/agent-systems/NAME/.well-known/agent-card.json"
            )
            .into(),
        })
    })
    .await
}

/// `GET /v1/agent-systems/{name}/.well-known/agent-card.json` `?namespace=`
pub(super) async fn serve_system_card(State(state): State<Arc<AppState>>, headers: HeaderMap, uri: Uri) -> Response {
    let name = decoded_segment(&uri, 0);
    let namespace = match query::parse_query_parameters(uri.query().unwrap_or_default(), PARAMETERS) {
        Ok([namespace]) => namespace,
        Err(detail) => {
            return problem::refusal_response(RefusalCode::RequestMalformed, Some(detail.into()));
        }
    };
    answer_with_card(&state, &headers, |cards| {
        cards.get(namespace.as_deref(), &name).ok_or_else(|| "no AgentSystem of this name is exposed".into())
    })
    .await
}

async fn answer_with_card(
    state: &AppState,
    headers: &HeaderMap,
    choose: impl FnOnce(&GeneratedOrlojCards) -> Result<&GeneratedOrlojCard, Cow<'static, str>>,
) -> Response {
    let Some(systems) = &state.systems else {
        return problem::refusal_response(RefusalCode::RouteUnknown, None);
    };
    let now = state.resolver.now();
    let computed = match systems.current_cards(now).await {
        Ok(computed) => computed,
        Err(refusal) => return problem::refusal_response(refusal, None),
    };
    let card = match choose(&computed.cards) {
        Ok(card) => card,
        Err(detail) => return problem::refusal_response(RefusalCode::CardAbsent, Some(detail)),
    };
    let tag = format!("\"{}\"", Digest::compute(card.text().as_bytes()).to_hex());
    let mut response = if matches_if_none_match(headers, &tag) {
        not_modified()
    } else {
        let mut response = Response::new(Body::from(card.text().to_owned()));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    };
    let headers = response.headers_mut();
    let control = format!("public, max-age={FRESH_SECONDS}");
    headers.insert(CACHE_CONTROL, HeaderValue::from_str(&control).expect("words and digits are a header value"));
    headers.insert(AGE, computed.age(now).into());
    headers.insert(ETAG, HeaderValue::from_str(&tag).expect("hex is a header value"));
    response
}
