//! `POST /v1/probes` returns an agent's payment terms for a verb, and whether they may be paid. It counts as a
//! resolution.
//!
//! The route exists only if `explorer.probe` is on. The daemon sends one request without a payment to the agent's
//! seller, through the fetcher for untrusted URLs. It does not contact an agent that the gate denies.

use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::response::Response;
use clresolve_core::json::object::deserialize_object;
use clresolve_core::text::escape_unsafe_json;
use clresolve_resolver::resolve::{
    DecisionLogEvent, EMPTY, NameQuestion, SellerProbeRequest, SellerProbeResultDocument,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::body::{self, RequestBodyError};
use super::client_limits::ClientIdentity;
use super::in_force::CurrentService;
use super::receipts::{JSON, private_verdict_response};
use super::state::AppState;

pub(super) const PATH: &str = "/v1/probes";

/// The agent whose seller is queried, and the verb.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentSellerProbeRequest {
    /// The agent's ENS name.
    name: String,
    /// The verb to invoke.
    verb: String,
}

/// `POST /v1/probes`
pub(super) async fn serve_seller_probe(
    State(state): State<Arc<AppState>>,
    Extension(in_force): Extension<Arc<CurrentService>>,
    Extension(client): Extension<ClientIdentity>,
    request: Request,
) -> Response {
    answer_probe(&state, &in_force, client, request).await.unwrap_or_else(RequestBodyError::into_response)
}

async fn answer_probe(
    state: &Arc<AppState>,
    in_force: &CurrentService,
    client: ClientIdentity,
    request: Request,
) -> Result<Response, RequestBodyError> {
    let (bytes, slot) = body::read_document_body(request, state, client, state.http.body_bytes).await?;
    let AgentSellerProbeRequest { name, verb } =
        deserialize_object(&bytes).map_err(|error| RequestBodyError::malformed(error.to_string()))?;
    drop(slot);
    let question = NameQuestion::new(&name);
    let resolution = state.admission.resolve_with_cache(client, question.clone()).await?.resolution;
    let resolver = state.resolver.clone();
    let probe = SellerProbeRequest { name, verb, body: Some(EMPTY), ignores_gate: false };
    let asked = state
        .admission
        .run_as_resolution(client, async move { resolver.probe_seller(&resolution, &probe).await })
        .await?;
    let asked = Arc::new(asked);
    let (state, answered) = in_force.resolve_under_current_config(state, client, question).await?;
    let (decision, resolution) = state.resolver.decide_payment_unreported(answered.resolution, &asked).await;
    DecisionLogEvent::from_decision(&decision).count_and_log();
    let answer = SellerProbeResultDocument::new(asked.parse_terms().as_ref().ok(), &decision);
    let answer = serde_json::to_string(&answer).expect("an answer has a JSON form: its keys are strings");
    Ok(private_verdict_response(escape_unsafe_json(&answer).into_bytes(), JSON, resolution.verdict()))
}
