//! The gate: 200 and no body lets a request pass, 403 does not. It answers nothing else.
//!
//! Profile, depth and block come from the configuration alone; a client cannot choose them.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Extension, State};
use axum::http::Uri;
use axum::response::Response;
use tokio::time::timeout;

use super::client_limits::Client;
use super::gate_response;
use super::log::LogEntry;
use super::path::segment;
use super::state::AppState;
use crate::reason::Refusal;
use crate::resolve::Question;

/// `/v1/gate/{name}`
pub(super) async fn of_name(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<Client>,
    uri: Uri,
) -> Response {
    decide(&state, client, &segment(&uri, 0), None).await
}

/// `/v1/gate/{name}/{verb}` and `/v1/envoy/{name}/{verb}/{*ignored}`
pub(super) async fn of_verb(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<Client>,
    uri: Uri,
) -> Response {
    decide(&state, client, &segment(&uri, 0), Some(&segment(&uri, 1))).await
}

async fn decide(state: &AppState, client: Client, name: &str, verb: Option<&str>) -> Response {
    if state.is_draining() {
        return refused(Refusal::Draining, name);
    }
    let deadline = if clresolve_core::mutant!("deadline-unkept") { Duration::MAX } else { state.gate.deadline };
    match timeout(deadline, state.admission.ask(client, Question::new(name))).await {
        Ok(Ok(answered)) => gate_response::by_verdict(&state.gate, &answered.resolution, verb),
        Ok(Err(refusal)) => refused(refusal, name),
        Err(_) => refused(Refusal::DeadlinePassed, name),
    }
}

/// A refusal whose log line names the name that was asked for.
fn refused(refusal: Refusal, name: &str) -> Response {
    let mut response = gate_response::refused(refusal);
    response.extensions_mut().insert(LogEntry::of_refusal(refusal).named(name));
    response
}
