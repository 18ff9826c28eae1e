//! Routes for the registries of reasons and profiles.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse as _, Response};
use clresolve_core::reason::RefusalCode;
use serde_json::Value;

use super::path::decoded_segment;
use super::problem;
use super::state::AppState;
use crate::registries::{self, ConformanceProfileList};

/// All codes, of verdicts and of refusals.
pub(super) async fn serve_reasons() -> Json<Value> {
    Json(registries::all_codes_document())
}

/// One code, which is the last segment of a problem's `type`.
pub(super) async fn serve_reason(uri: Uri) -> Response {
    let slug = decoded_segment(&uri, 0);
    match registries::reason_document(&slug) {
        Some(entry) => Json(entry).into_response(),
        None => {
            let detail = format!("no reason code is called {slug}; /v1/reasons lists all");
            problem::refusal_response(RefusalCode::RouteUnknown, Some(detail.into()))
        }
    }
}

/// All profiles that a question may select.
pub(super) async fn serve_profiles(State(state): State<Arc<AppState>>) -> Response {
    Json(ConformanceProfileList::new(state.resolver.profiles(), &state.default_profile)).into_response()
}
