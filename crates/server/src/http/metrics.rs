//! `GET /metrics` returns the metrics of the process in the Prometheus text format.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use clresolve_core::reason::Refusal;

use super::problem;
use super::state::AppState;

pub(super) async fn all(State(state): State<Arc<AppState>>) -> Response {
    let Some(exposition) = &state.counters.exposition else {
        return problem::refused(Refusal::RouteUnknown, None);
    };
    let mut text = exposition.render_for(&state.upstreams);
    if let Some(bytes) = resident_bytes() {
        text.push_str("# HELP process_resident_memory_bytes Memory of the process.\n");
        text.push_str("# TYPE process_resident_memory_bytes gauge\n");
        text.push_str(&format!("process_resident_memory_bytes {bytes}\n"));
    }
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, HeaderValue::from_static("no-store"))], text).into_response()
}

/// Resident memory of this process in bytes, on Linux.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
