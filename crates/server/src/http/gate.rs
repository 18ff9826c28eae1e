//! The gate endpoint: 200 without a body admits a request, 403 denies it. It returns no other status.
//!
//! Profile, depth and block come from the configuration only. A client cannot choose them.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Extension, State};
use axum::http::Uri;
use axum::response::Response;
use clresolve_core::reason::Refusal;
use clresolve_resolver::resolve::Question;
use clresolve_verdict::trust::Resolution;
use tokio::time::{Instant, timeout_at};

use super::client_limits::Client;
use super::gate_path;
use super::gate_response::{self, Wanted};
use super::in_force::InForce;
use super::log::LogEntry;
use super::path::segment;
use super::state::AppState;

/// `/v1/gate/{name}`
pub(super) async fn of_name(
    State(state): State<Arc<AppState>>,
    Extension(in_force): Extension<Arc<InForce>>,
    Extension(client): Extension<Client>,
    uri: Uri,
) -> Response {
    decide(&state, &in_force, client, &segment(&uri, 0), wanted(&uri, None)).await
}

/// `/v1/gate/{name}/{verb}`
pub(super) async fn of_verb(
    State(state): State<Arc<AppState>>,
    Extension(in_force): Extension<Arc<InForce>>,
    Extension(client): Extension<Client>,
    uri: Uri,
) -> Response {
    decide(&state, &in_force, client, &segment(&uri, 0), wanted(&uri, Some(segment(&uri, 1)))).await
}

/// `/v1/envoy/{name}/{verb}/{*ignored}`. The path and the query are those of the request that Envoy is checking, so the
/// query is ignored.
pub(super) async fn of_envoy(
    State(state): State<Arc<AppState>>,
    Extension(in_force): Extension<Arc<InForce>>,
    Extension(client): Extension<Client>,
    uri: Uri,
) -> Response {
    let wanted = Wanted { verb: Some(segment(&uri, 1)), network: None };
    decide(&state, &in_force, client, &segment(&uri, 0), Ok(wanted)).await
}

fn wanted(uri: &Uri, verb: Option<String>) -> Result<Wanted, Refusal> {
    Ok(Wanted { verb, network: gate_path::network(uri.query().unwrap_or_default())? })
}

/// The response to a gate request with a plain path, which bypasses the router.
pub(super) async fn of_plain(
    state: &AppState,
    in_force: &InForce,
    client: Client,
    (name, verb): (&str, Option<&str>),
) -> Response {
    let wanted = Wanted { verb: verb.map(str::to_owned), network: None };
    decide(state, in_force, client, name, Ok(wanted)).await
}

async fn decide(
    state: &AppState,
    in_force: &InForce,
    client: Client,
    name: &str,
    wanted: Result<Wanted, Refusal>,
) -> Response {
    if state.is_draining() {
        return refused(Refusal::Draining, name);
    }
    let wanted = match wanted {
        Ok(wanted) => wanted,
        Err(refusal) => return refused(refusal, name),
    };
    match resolved(state, client, name).await {
        // If a reload tightened the policy while the question was open, the new policy applies.
        Ok(resolution) => gate_response::by_verdict(&in_force.state().gate, &resolution, &wanted),
        Err(refusal) => refused(refusal, name),
    }
}

/// The verdict on `name`, confirmed at the newest block, within the deadline.
async fn resolved(state: &AppState, client: Client, name: &str) -> Result<Resolution, Refusal> {
    let limit =
        if clresolve_core::mutant!("deadline-unkept") { Duration::from_secs(86_400) } else { state.gate.deadline };
    let deadline = Instant::now() + limit;
    let asked = timeout_at(deadline, state.admission.ask(client, Question::new(name))).await;
    let answered = asked.map_err(|_| Refusal::DeadlinePassed)??;
    let confirmed = timeout_at(deadline, state.resolver.confirmed(answered.resolution)).await;
    confirmed.map_err(|_| Refusal::Unconfirmed)
}

/// A refusal that also logs the requested name.
fn refused(refusal: Refusal, name: &str) -> Response {
    let mut response = gate_response::refused(refusal);
    response.extensions_mut().insert(LogEntry::of_refusal(refusal).named(name));
    response
}
