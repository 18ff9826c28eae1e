//! `POST /v1/requests/check` checks a request body against the agent's schema. The check counts as a resolution.
//!
//! Any request body is judged, however malformed. Only a malformed question is answered with a problem document.
//! Nothing is sent to the agent.

use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::response::Response;
use clresolve_core::reason::RefusalCode;
use clresolve_messages::request::OutgoingAgentRequest;
use clresolve_messages::request::question::MAX_QUESTION_BYTES;
use clresolve_resolver::cpu_pool::CpuPoolFullError;
use clresolve_resolver::resolve::NameQuestion;

use super::admission::run_while_holding;
use super::body::{self, RequestBodyError};
use super::client_limits::ClientIdentity;
use super::receipts::{JSON, private_verdict_response};
use super::state::AppState;

/// `POST /v1/requests/check`
pub(super) async fn check_agent_request(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientIdentity>,
    request: Request,
) -> Response {
    answer_request_check(&state, client, request).await.unwrap_or_else(RequestBodyError::into_response)
}

async fn answer_request_check(
    state: &Arc<AppState>,
    client: ClientIdentity,
    request: Request,
) -> Result<Response, RequestBodyError> {
    let (question, slot) =
        body::read_document_question(request, state, client, MAX_QUESTION_BYTES, OutgoingAgentRequest::from_json)
            .await?;
    let resolution = state.admission.resolve_with_cache(client, NameQuestion::new(&question.name)).await?.resolution;
    let verdict = Arc::clone(resolution.verdict());
    let resolver = state.resolver.clone();
    let work = async move {
        let found = resolver.check_request_with_resolution(&resolution, question).await;
        resolver.cpu_pool().try_run(move || serde_json::to_vec(&found).unwrap_or_default()).await
    };
    let written = state
        .admission
        .run_as_resolution(client, run_while_holding(slot, work))
        .await?
        .map_err(|CpuPoolFullError| RefusalCode::Overloaded)?;
    Ok(private_verdict_response(written, JSON, &verdict))
}
