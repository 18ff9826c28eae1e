//! Responses to requests that match no route.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use clresolve_core::reason::RefusalCode;

use super::api_kind::RequestedApi;
use super::problem;
use super::state::AppState;

/// No route has this path: 404, or 403 below the gate's paths. `OPTIONS *` addresses no route (RFC 9110, 9.3.7).
pub(super) async fn answer_unknown_path(State(state): State<Arc<AppState>>, method: Method, uri: Uri) -> Response {
    if method == Method::OPTIONS && uri.path() == "*" {
        return StatusCode::NO_CONTENT.into_response();
    }
    match route_enabling_config_key(uri.path(), &state) {
        Some(switch) => {
            let detail =
                format!("This daemon has that route switched off; {switch} in its configuration switches it on.");
            problem::refusal_response(RefusalCode::RouteUnknown, Some(detail.into()))
        }
        None => RequestedApi::from_path(uri.path()).refusal_response(RefusalCode::RouteUnknown),
    }
}

/// The configuration key that enables a disabled route.
fn route_enabling_config_key(path: &str, state: &AppState) -> Option<&'static str> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let is_of_systems = path == "/.well-known/agent-card.json" || path.starts_with("/v1/agent-systems/");
    match path {
        "/v1/discover" if !state.http.discover => Some("http.discover"),
        "/v1/probes" if !state.explorer.probe => Some("explorer.probe"),
        "/mcp" if state.mcp.hosts.is_empty() => Some("mcp.hosts"),
        "/.well-known/jwks.json" if state.signatures.is_none() => Some("sign.key"),
        _ if is_of_systems && state.systems.is_none() => Some("[orloj]"),
        _ => None,
    }
}

/// The route exists, but not for this method. `Allow` lists the supported methods, which is all that `OPTIONS` asks
/// for.
pub(super) async fn answer_wrong_method(method: Method) -> Response {
    if method == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    problem::refusal_response(RefusalCode::MethodUnsupported, None)
}
