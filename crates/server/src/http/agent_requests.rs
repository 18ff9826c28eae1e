//! `POST /v1/requests/check` checks a request body against the agent's schema. The check counts as a resolution.
//!
//! Any request body is judged, however malformed. Only a malformed question is answered with a problem document.
//! Nothing is sent to the agent.

use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::response::Response;
use clresolve_core::reason::Refusal;
use clresolve_messages::request::RequestQuestion;
use clresolve_messages::request::question::MAX_QUESTION_BYTES;
use clresolve_resolver::cpu_pool::PoolFull;
use clresolve_resolver::resolve::Question;

use super::admission::keeping;
use super::body::{self, RequestError};
use super::client_limits::Client;
use super::receipts::{JSON, sent};
use super::state::AppState;

/// `POST /v1/requests/check`
pub(super) async fn check(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<Client>,
    request: Request,
) -> Response {
    answered(&state, client, request).await.unwrap_or_else(RequestError::into_response)
}

async fn answered(state: &Arc<AppState>, client: Client, request: Request) -> Result<Response, RequestError> {
    let (question, slot) =
        body::question(request, state, client, MAX_QUESTION_BYTES, RequestQuestion::from_json).await?;
    let resolution = state.admission.ask(client, Question::new(&question.name)).await?.resolution;
    let verdict = Arc::clone(resolution.verdict());
    let resolver = state.resolver.clone();
    let work = async move {
        let found = resolver.check_request_of(&resolution, question).await;
        resolver.pool().try_run(move || serde_json::to_vec(&found).unwrap_or_default()).await
    };
    let written =
        state.admission.admitted(client, keeping(slot, work)).await?.map_err(|PoolFull| Refusal::Overloaded)?;
    Ok(sent(written, JSON, &verdict))
}
