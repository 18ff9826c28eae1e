//! The registries of reasons and profiles, and health.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;

use super::path::segment;
use super::problem;
use super::state::AppState;
use crate::reason::Refusal;
use crate::registries;
use crate::telemetry::Exposition;

/// Every code: those of verdicts, and those of refusals.
pub(super) async fn reasons() -> Json<Value> {
    Json(registries::reasons())
}

/// One code: the end of the `type` of a problem.
pub(super) async fn reason(uri: Uri) -> Response {
    let slug = segment(&uri, 0);
    match registries::reason(&slug) {
        Some(entry) => Json(entry).into_response(),
        None => {
            let detail = format!("no reason code is called {slug}; /v1/reasons lists all");
            problem::refused(Refusal::RouteUnknown, Some(detail.into()))
        }
    }
}

/// Every profile that a question may name.
pub(super) async fn profiles(State(state): State<Arc<AppState>>) -> Json<Value> {
    Json(registries::profiles(state.resolver.profiles(), &state.default_profile))
}

/// The process answers.
pub(super) async fn livez() -> &'static str {
    "live\n"
}

/// The daemon takes requests. A line for each upstream of the configuration whose latest request was not answered: the
/// cache still answers then, so the status stays.
pub(super) async fn readyz(State(state): State<Arc<AppState>>) -> Response {
    if state.is_draining() {
        return problem::refused(Refusal::Draining, None);
    }
    let mut text = String::from("ready\n");
    let down = state.counters.exposition.as_ref().map(Exposition::down).unwrap_or_default();
    for (kind, label) in down.iter().filter(|(_, label)| state.upstreams.contains(label)) {
        text.push_str(&format!("down: {kind} {label}\n"));
    }
    (StatusCode::OK, text).into_response()
}
