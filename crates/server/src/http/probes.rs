//! `POST /v1/probes` returns an agent's payment terms for a verb, and whether they may be paid. It counts as a
//! resolution.
//!
//! The route exists only if `explorer.probe` is on. The daemon sends one request without a payment to the agent's
//! seller, through the fetcher for untrusted URLs. It does not contact an agent that the gate denies.

use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::response::Response;
use clresolve_core::json::object::from_object;
use clresolve_core::text::inert_json;
use clresolve_resolver::resolve::{DecisionEvent, EMPTY, Probe, ProbeAnswer, Question, Sellers};
use schemars::JsonSchema;
use serde::Deserialize;

use super::body::{self, RequestError};
use super::client_limits::Client;
use super::in_force::InForce;
use super::receipts::{JSON, sent};
use super::state::AppState;

pub(super) const PATH: &str = "/v1/probes";

/// The agent whose seller is queried, and the verb.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ProbeQuestion {
    /// The agent's ENS name.
    name: String,
    /// The verb to invoke.
    verb: String,
}

/// `POST /v1/probes`
pub(super) async fn probe(
    State(state): State<Arc<AppState>>,
    Extension(in_force): Extension<Arc<InForce>>,
    Extension(client): Extension<Client>,
    request: Request,
) -> Response {
    answered(&state, &in_force, client, request).await.unwrap_or_else(RequestError::into_response)
}

async fn answered(
    state: &Arc<AppState>,
    in_force: &InForce,
    client: Client,
    request: Request,
) -> Result<Response, RequestError> {
    let (bytes, slot) = body::document(request, state, client, state.http.body_bytes).await?;
    let ProbeQuestion { name, verb } =
        from_object(&bytes).map_err(|error| RequestError::malformed(error.to_string()))?;
    drop(slot);
    let question = Question::new(&name);
    let resolution = state.admission.ask(client, question.clone()).await?.resolution;
    let resolver = state.resolver.clone();
    let probe = Probe { name, verb, body: Some(EMPTY), sellers: Sellers::OfAllowedAgents };
    let asked = state.admission.admitted(client, async move { resolver.probe(&resolution, &probe).await }).await?;
    let asked = Arc::new(asked);
    let (state, answered) = in_force.ask(state, client, question).await?;
    let (decision, resolution) = state.resolver.decide_on(answered.resolution, &asked).await;
    DecisionEvent::of(&decision).report();
    let answer = ProbeAnswer::new(asked.terms().as_ref().ok(), &decision);
    let answer = serde_json::to_string(&answer).expect("an answer has a JSON form: its keys are strings");
    Ok(sent(inert_json(&answer).into_bytes(), JSON, resolution.verdict()))
}
