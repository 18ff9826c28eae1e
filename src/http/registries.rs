//! The registries of reasons and profiles, and health.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use super::problem;
use super::state::AppState;
use crate::reason::{Code, Refusal};
use crate::telemetry::Exposition;

/// Every code: those of verdicts, and those of refusals.
pub(super) async fn reasons() -> Json<Value> {
    let reason = |code: &Code| {
        let mut entry = serde_json::to_value(code.entry()).unwrap_or_default();
        entry["type"] = code.uri().into();
        entry
    };
    let refusal = |refusal: &Refusal| json!({"code": refusal, "title": refusal.title(), "type": refusal.uri()});
    Json(json!({
        "reasons": Code::ALL.iter().map(reason).collect::<Vec<_>>(),
        "refusals": Refusal::ALL.iter().map(refusal).collect::<Vec<_>>(),
    }))
}

/// Every profile that a question may name.
pub(super) async fn profiles(State(state): State<Arc<AppState>>) -> Json<Value> {
    let profiles: Vec<Value> = state
        .resolver
        .profiles()
        .iter()
        .map(|profile| {
            let manifests = profile.manifests().map(|m| json!({"id": m.id(), "digest": m.digest().to_string()}));
            json!({
                "id": profile.id(),
                "title": profile.title(),
                "digest": profile.digest().to_string(),
                "default": profile.id() == state.default_profile,
                "manifests": manifests.collect::<Vec<_>>(),
            })
        })
        .collect();
    Json(json!({ "profiles": profiles }))
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
