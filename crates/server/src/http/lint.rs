//! `POST /v1/lint` judges a card of any system by itself. It counts as a resolution.

use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use clresolve_cards::lint::{LintReportWithPassingProfiles, lint_with_passing_profiles};
use clresolve_cards::system::{CardLintContext, CardSystem};
use clresolve_core::json::JsonLimits;
use clresolve_core::reason::{ReasonCode, RefusalCode};
use clresolve_resolver::cpu_pool::CpuPoolFullError;
use clresolve_verdict::profile::ConformanceProfile;

use super::admission::run_while_holding;
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
    answer_card_lint(&state, client, request).await.unwrap_or_else(RequestBodyError::into_response)
}

async fn answer_card_lint(
    state: &AppState,
    client: ClientIdentity,
    request: Request,
) -> Result<Response, RequestBodyError> {
    let (system, profile) = parse_lint_query(request.uri().query().unwrap_or_default(), state)?;
    let (bytes, slot) = body::read_document_body(request, state, client, JsonLimits::CARD.bytes).await?;
    let resolver = state.resolver.clone();
    let work = async move {
        let judging = resolver.clone();
        let judge = move || {
            serialize_judgement(&lint_with_passing_profiles(
                &bytes,
                system,
                &CardLintContext::from_profile(&profile),
                judging.profiles(),
            ))
        };
        resolver.cpu_pool().try_run(judge).await
    };
    let written = state
        .admission
        .run_as_resolution(client, run_while_holding(slot, work))
        .await?
        .map_err(|CpuPoolFullError| RefusalCode::Overloaded)?;
    Ok(match written {
        Ok(body) => ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response(),
        Err(excess) => problem::too_complex_response(excess.as_deref()),
    })
}

/// Serializes a judgement.
///
/// # Errors
/// The part of the card that exceeds a limit, if the card is too complex to judge.
fn serialize_judgement(judgement: &LintReportWithPassingProfiles) -> Result<Vec<u8>, Option<String>> {
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
    let [system, profile] = query::parse_query_parameters(query, PARAMETERS).map_err(RequestBodyError::malformed)?;
    let id = profile.unwrap_or_else(|| state.default_profile.clone());
    let Some(profile) = state.resolver.profiles().get(&id) else { return Err(RequestBodyError::unknown_profile(id)) };
    let system = system.map(|slug| slug.parse::<CardSystem>()).transpose();
    Ok((system.map_err(|error| RequestBodyError::malformed(error.to_string()))?, profile))
}
