//! The gate endpoint: 200 without a body admits a request, 403 denies it. It returns no other status.
//!
//! Profile, depth and block come from the configuration only. A client cannot choose them.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Extension, State};
use axum::http::Uri;
use axum::response::Response;
use clresolve_core::reason::RefusalCode;
use clresolve_resolver::resolve::NameQuestion;
use clresolve_verdict::trust::Resolution;
use tokio::time::{Instant, timeout_at};

use super::client_limits::ClientIdentity;
use super::gate_path;
use super::gate_response::{self, GateRequestConstraints};
use super::in_force::CurrentService;
use super::log::ResponseLogFields;
use super::path::decoded_segment;
use super::state::AppState;

/// `/v1/gate/{name}`
pub(super) async fn serve_gate_for_name(
    State(state): State<Arc<AppState>>,
    Extension(in_force): Extension<Arc<CurrentService>>,
    Extension(client): Extension<ClientIdentity>,
    uri: Uri,
) -> Response {
    answer_gate_request(&state, &in_force, client, &decoded_segment(&uri, 0), parse_gate_constraints(&uri, None)).await
}

/// `/v1/gate/{name}/{verb}`
pub(super) async fn serve_gate_for_verb(
    State(state): State<Arc<AppState>>,
    Extension(in_force): Extension<Arc<CurrentService>>,
    Extension(client): Extension<ClientIdentity>,
    uri: Uri,
) -> Response {
    answer_gate_request(
        &state,
        &in_force,
        client,
        &decoded_segment(&uri, 0),
        parse_gate_constraints(&uri, Some(decoded_segment(&uri, 1))),
    )
    .await
}

/// `/v1/envoy/{name}/{verb}/{*ignored}`. The path and the query are those of the request that Envoy is checking, so the
/// query is ignored.
pub(super) async fn serve_gate_for_envoy(
    State(state): State<Arc<AppState>>,
    Extension(in_force): Extension<Arc<CurrentService>>,
    Extension(client): Extension<ClientIdentity>,
    uri: Uri,
) -> Response {
    let wanted = GateRequestConstraints { verb: Some(decoded_segment(&uri, 1)), network: None };
    answer_gate_request(&state, &in_force, client, &decoded_segment(&uri, 0), Ok(wanted)).await
}

fn parse_gate_constraints(uri: &Uri, verb: Option<String>) -> Result<GateRequestConstraints, RefusalCode> {
    Ok(GateRequestConstraints { verb, network: gate_path::parse_network(uri.query().unwrap_or_default())? })
}

/// The response to a gate request with a plain path, which bypasses the router.
pub(super) async fn answer_plain_path(
    state: &AppState,
    in_force: &CurrentService,
    client: ClientIdentity,
    (name, verb): (&str, Option<&str>),
) -> Response {
    let wanted = GateRequestConstraints { verb: verb.map(str::to_owned), network: None };
    answer_gate_request(state, in_force, client, name, Ok(wanted)).await
}

async fn answer_gate_request(
    state: &AppState,
    in_force: &CurrentService,
    client: ClientIdentity,
    name: &str,
    wanted: Result<GateRequestConstraints, RefusalCode>,
) -> Response {
    if state.is_draining() {
        return named_gate_refusal_response(RefusalCode::Draining, name);
    }
    let wanted = match wanted {
        Ok(wanted) => wanted,
        Err(refusal) => return named_gate_refusal_response(refusal, name),
    };
    match resolve_confirmed_verdict(state, client, name).await {
        // If a reload tightened the policy while the question was open, the new policy applies.
        Ok(resolution) => gate_response::gate_verdict_response(&in_force.state().gate, &resolution, &wanted),
        Err(refusal) => named_gate_refusal_response(refusal, name),
    }
}

/// The verdict on `name`, confirmed at the newest block, within the deadline.
async fn resolve_confirmed_verdict(
    state: &AppState,
    client: ClientIdentity,
    name: &str,
) -> Result<Resolution, RefusalCode> {
    let limit =
        if clresolve_core::mutant!("deadline-unkept") { Duration::from_secs(86_400) } else { state.gate.deadline };
    let deadline = Instant::now() + limit;
    let asked = timeout_at(deadline, state.admission.resolve_with_cache(client, NameQuestion::new(name))).await;
    let answered = asked.map_err(|_| RefusalCode::DeadlinePassed)??;
    let confirmed = timeout_at(deadline, state.resolver.confirm_for_gate(answered.resolution)).await;
    confirmed.map_err(|_| RefusalCode::Unconfirmed)
}

/// A refusal that also logs the requested name.
fn named_gate_refusal_response(refusal: RefusalCode, name: &str) -> Response {
    let mut response = gate_response::gate_refusal_response(refusal);
    response.extensions_mut().insert(ResponseLogFields::from_refusal(refusal).with_name(name));
    response
}
