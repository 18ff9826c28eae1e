//! `POST /v1/receipts/verify`: does what an agent sent as a receipt hold?
//!
//! What an agent sent, however broken, is judged. A problem is the answer to what is no question. Nothing is remembered.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::Response;
use clresolve_receipt::Question as ReceiptQuestion;
use clresolve_receipt::question::MAX_QUESTION_BYTES;

use super::body::{self, RequestError};
use super::client_limits::Client;
use super::log::LogEntry;
use super::state::AppState;
use crate::reason::Refusal;
use crate::resolve::Question;

/// `POST /v1/receipts/verify`
pub(super) async fn verify(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<Client>,
    request: Request,
) -> Response {
    answered(&state, client, request).await.unwrap_or_else(RequestError::into_response)
}

async fn answered(state: &AppState, client: Client, request: Request) -> Result<Response, RequestError> {
    let permit = state.documents.take(client)?;
    let bytes = body::json(request, MAX_QUESTION_BYTES, state.http.read_timeout).await?;
    if state.is_draining() {
        return Err(Refusal::Draining.into());
    }
    let question = ReceiptQuestion::from_json(&bytes).map_err(RequestError::malformed)?;
    let resolution = state.admission.ask(client, Question::new(&question.name)).await?.resolution;
    let found = state.resolver.verify_receipt_of(&resolution, &question).await;
    drop(permit);
    let mut response = Response::new(Body::from(serde_json::to_vec(&found).unwrap_or_default()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.extensions_mut().insert(LogEntry::of_verdict(resolution.verdict()));
    Ok(response)
}
