//! Reads the JSON body of a request within a size limit and a time limit.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use clresolve_core::reason::RefusalCode;
use clresolve_resolver::cpu_pool::CpuPoolFullError;
use futures_util::StreamExt as _;
use tokio::time::timeout;

use super::client_limits::{ClientIdentity, SlotReservation};
use super::problem;
use super::request_slot::RequestSlot;
use super::state::AppState;

/// Why a request with a body is rejected.
#[derive(Debug)]
pub(super) struct RequestBodyError {
    refusal: RefusalCode,
    /// Details beyond the refusal's title.
    detail: Option<String>,
}

impl RequestBodyError {
    /// The request does not have the form that its route expects.
    pub(super) fn malformed(detail: impl Into<String>) -> Self {
        Self { refusal: RefusalCode::RequestMalformed, detail: Some(detail.into()) }
    }

    /// The request names a profile that does not exist.
    pub(super) fn unknown_profile(id: String) -> Self {
        Self { refusal: RefusalCode::ProfileUnknown, detail: Some(id) }
    }

    /// The request's `Accept` matches no available media type.
    pub(super) fn not_acceptable(detail: &str) -> Self {
        Self { refusal: RefusalCode::NotAcceptable, detail: Some(detail.to_owned()) }
    }

    fn too_large(limit: usize) -> Self {
        Self { refusal: RefusalCode::BodyTooLarge, detail: Some(format!("a body has at most {limit} bytes")) }
    }

    /// The error response. Part of the body may be unread, so the response announces that the connection closes.
    /// Otherwise a client could send its next request into a connection that is being closed.
    pub(super) fn into_response(self) -> Response {
        let mut response = problem::refusal_response(self.refusal, self.detail.map(Cow::Owned));
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        response
    }
}

impl From<RefusalCode> for RequestBodyError {
    fn from(refusal: RefusalCode) -> Self {
        Self { refusal, detail: None }
    }
}

/// Reads the whole body as sent. The caller validates its content.
pub(super) async fn read_body(request: Request, limit: usize, time: Duration) -> Result<Vec<u8>, RequestBodyError> {
    timeout(time, read_body_up_to_limit(request, limit))
        .await
        .unwrap_or_else(|_| Err(RefusalCode::RequestTimeout.into()))
}

/// Like [`read_body`], but reserves memory for the body and a slot for the request.
pub(super) async fn read_reserved_body(
    request: Request,
    state: &AppState,
    client: ClientIdentity,
    limit: usize,
) -> Result<(Vec<u8>, SlotReservation), RequestBodyError> {
    let most = declared_content_length(request.headers()).map_or(limit, |length| length.min(limit));
    let slot = state.documents.reserve_body(client, most)?;
    let in_work = request.extensions().get::<RequestSlot>().cloned();
    let bytes = read_body(request, limit, state.http.read_timeout).await?;
    in_work.map_or(Ok(()), |in_work| in_work.take_slot())?;
    Ok((bytes, slot))
}

/// Like [`read_reserved_body`], for a document to judge. A draining daemon rejects it.
pub(super) async fn read_document_body(
    request: Request,
    state: &AppState,
    client: ClientIdentity,
    limit: usize,
) -> Result<(Vec<u8>, SlotReservation), RequestBodyError> {
    let held = read_reserved_body(request, state, client, limit).await?;
    if state.is_draining() {
        return Err(RefusalCode::Draining.into());
    }
    Ok(held)
}

/// Reads and parses a question about such a document. The document keeps its slots.
pub(super) async fn read_document_question<Q: Send + 'static>(
    request: Request,
    state: &AppState,
    client: ClientIdentity,
    limit: usize,
    read: fn(&[u8]) -> Result<Q, String>,
) -> Result<(Arc<Q>, SlotReservation), RequestBodyError> {
    let document = read_document_body(request, state, client, limit).await?;
    parse_body_on_cpu_pool(state, document, read).await
}

/// Parses a body with `read` on the CPU pool, off the threads that answer requests. The job holds the slots of the
/// body, so a client that disconnects frees none before parsing ends.
pub(super) async fn parse_body_on_cpu_pool<Q: Send + 'static>(
    state: &AppState,
    (bytes, slot): (Vec<u8>, SlotReservation),
    read: fn(&[u8]) -> Result<Q, String>,
) -> Result<(Arc<Q>, SlotReservation), RequestBodyError> {
    let reading = state.resolver.cpu_pool().try_run(move || (read(&bytes), slot));
    let (question, slot) = reading.await.map_err(|CpuPoolFullError| RefusalCode::Overloaded)?;
    Ok((question.map(Arc::new).map_err(RequestBodyError::malformed)?, slot))
}

async fn read_body_up_to_limit(request: Request, limit: usize) -> Result<Vec<u8>, RequestBodyError> {
    let (head, body) = request.into_parts();
    if !has_json_content_type(&head.headers) {
        return Err(RefusalCode::MediaTypeUnsupported.into());
    }
    if declared_content_length(&head.headers).is_some_and(|length| length > limit) {
        return Err(RequestBodyError::too_large(limit));
    }
    // The announced length is already accounted for. A growing buffer would use up to twice as much.
    let mut bytes = Vec::with_capacity(declared_content_length(&head.headers).unwrap_or_default());
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk =
            chunk.map_err(|_| RequestBodyError::malformed("the body is cut off, or its chunks are malformed"))?;
        if bytes.len() + chunk.len() > limit {
            return Err(RequestBodyError::too_large(limit));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// The length that `Content-Length` announces. The server reads no byte beyond it.
fn declared_content_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn has_json_content_type(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().is_some_and(|media| media.trim().eq_ignore_ascii_case("application/json"))
}
