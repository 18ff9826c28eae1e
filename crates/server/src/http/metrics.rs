//! `GET /metrics` returns the metrics of the process in the Prometheus text format.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use clresolve_core::reason::RefusalCode;

use super::problem;
use super::state::AppState;

pub(super) async fn serve_metrics(State(state): State<Arc<AppState>>) -> Response {
    let Some(exposition) = &state.counters.exposition else {
        return problem::refusal_response(RefusalCode::RouteUnknown, None);
    };
    let text = exposition.render_for_endpoints(&state.upstreams);
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, HeaderValue::from_static("no-store"))], text).into_response()
}
