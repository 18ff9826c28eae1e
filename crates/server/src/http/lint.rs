//! `POST /v1/lint` judges a card of any system by itself. It counts as a resolution.

use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use clresolve_cards::lint::{NearMissLintReport, lint_with_near_misses};
use clresolve_cards::system::{CardRules, CardSystem};
use clresolve_core::json::JsonLimits;
use clresolve_core::reason::{ReasonCode, Refusal};
use clresolve_resolver::cpu_pool::CpuPoolFullError;
use clresolve_verdict::profile::ConformanceProfile;

use super::admission::hold_while;
use super::body::{self, RequestBodyError};
use super::client_limits::ClientIdentity;
use super::problem;
use super::query;
use super::state::AppState;

/// The query parameters: the card's system, and the rules.
pub(super) const PARAMETERS: [&str; 2] = ["as", "profile"];

pub(super) async fn lint_card(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientIdentity>,
    request: Request,
) -> Response {
    judge_card(&state, client, request).await.unwrap_or_else(RequestBodyError::into_response)
}

async fn judge_card(state: &AppState, client: ClientIdentity, request: Request) -> Result<Response, RequestBodyError> {
    let (system, profile) = parse_lint_query(request.uri().query().unwrap_or_default(), state)?;
    let (bytes, slot) = body::read_document(request, state, client, JsonLimits::CARD.bytes).await?;
    let resolver = state.resolver.clone();
    let work = async move {
        let judging = resolver.clone();
        let judge = move || {
            serialize_judgement(&lint_with_near_misses(
                &bytes,
                system,
                &CardRules::from_profile(&profile),
                judging.profiles(),
            ))
        };
        resolver.pool().try_run(judge).await
    };
    let written = state
        .admission
        .run_admitted(client, hold_while(slot, work))
        .await?
        .map_err(|CpuPoolFullError| Refusal::Overloaded)?;
    Ok(match written {
        Ok(body) => ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response(),
        Err(excess) => problem::too_complex_response(excess.as_deref()),
    })
}

/// Serializes a judgement.
///
/// # Errors
/// The part of the card that exceeds a limit, if the card is too complex to judge.
fn serialize_judgement(judgement: &NearMissLintReport) -> Result<Vec<u8>, Option<String>> {
    match judgement.report.findings.iter().find(|finding| finding.code == ReasonCode::CardTooComplex) {
        Some(excess) => Err(excess.observed.clone()),
        None => Ok(serde_json::to_vec(judgement).expect("a judgement has a JSON form: its keys are strings")),
    }
}

/// The card's system, if the query names it, and the rules.
fn parse_lint_query(
    query: &str,
    state: &AppState,
) -> Result<(Option<CardSystem>, Arc<ConformanceProfile>), RequestBodyError> {
    let [system, profile] = query::read_parameters(query, PARAMETERS).map_err(RequestBodyError::malformed)?;
    let id = profile.unwrap_or_else(|| state.default_profile.clone());
    let Some(profile) = state.resolver.profiles().get(&id) else { return Err(RequestBodyError::unknown_profile(id)) };
    let system = system.map(|slug| slug.parse::<CardSystem>()).transpose();
    Ok((system.map_err(|error| RequestBodyError::malformed(error.to_string()))?, profile))
}
