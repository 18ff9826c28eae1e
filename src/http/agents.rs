//! `GET /v1/agents/{name}/.well-known/agent-card.json`: a trusted agent as an A2A card, for clients that look for one there.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::header::{CONTENT_TYPE, ETAG};
use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::response::Response;

use super::answer::Noted;
use super::shares::Client;
use super::verdicts::{Lease, is_known_to_client, not_modified};
use super::{Shared, problem, segment};
use crate::digest::Digest;
use crate::project::signed_a2a_card;
use crate::resolve::Question;

pub(super) async fn card(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Client>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let served = match shared.desk.ask(client, Question::new(segment(&uri, 0))).await {
        Ok(served) => served,
        Err(refusal) => return problem::refused(refusal, None),
    };
    let verdict = served.resolution.verdict();
    let signer = shared.signatures.as_ref().map(|signatures| signatures.signer().key());
    let card = match signed_a2a_card(&served.resolution, &shared.gate.policy, signer) {
        Ok(card) => card,
        Err(code) => return problem::objected(verdict, code),
    };
    let body = card.to_string();
    let tag = format!("\"{}\"", Digest::of(body.as_bytes()).hex());
    let mut response = if is_known_to_client(&headers, &tag) {
        not_modified()
    } else {
        let mut response = Response::new(Body::from(body));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    };
    Lease::of(&verdict.freshness).declare(response.headers_mut(), served.how, shared.resolver.now());
    response.headers_mut().insert(ETAG, HeaderValue::from_str(&tag).expect("hex is a header value"));
    response.extensions_mut().insert(Noted::verdict(verdict));
    response
}
