//! Health endpoints: whether the process responds, and whether it accepts requests.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use clresolve_core::reason::RefusalCode;
use clresolve_resolver::telemetry::PrometheusExposition;

use super::problem;
use super::state::AppState;

/// The body of [`serve_livez`].
pub(super) const LIVE: &str = "live\n";

pub(super) async fn serve_livez() -> &'static str {
    LIVE
}

/// Whether the daemon has read a block of its chain and accepts requests. The body has a line for each configured
/// upstream whose latest request failed. Those failures do not change the status, because the cache still answers.
pub(super) async fn serve_readyz(State(state): State<Arc<AppState>>) -> Response {
    if state.is_draining() {
        return problem::refusal_response(RefusalCode::Draining, None);
    }
    if let Some(missing) = state.readiness.unready_reason() {
        return problem::refusal_response(RefusalCode::NotReady, Some(missing.into()));
    }
    let mut text = String::from("ready\n");
    let down = state.counters.exposition.as_ref().map(PrometheusExposition::failing_upstreams).unwrap_or_default();
    for (kind, label) in down.iter().filter(|(_, label)| state.upstreams.contains(label)) {
        text.push_str(&format!("down: {kind} {label}\n"));
    }
    (StatusCode::OK, text).into_response()
}
