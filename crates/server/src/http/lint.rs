//! `POST /v1/lint` judges a card of any system by itself. It counts as a resolution.

use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use clresolve_cards::lint::{CardJudgement, judge};
use clresolve_cards::system::{CardSystem, Rules};
use clresolve_core::json::Limits;
use clresolve_core::reason::{Code, Refusal};
use clresolve_resolver::cpu_pool::PoolFull;
use clresolve_verdict::profile::Profile;

use super::admission::keeping;
use super::body::{self, RequestError};
use super::client_limits::Client;
use super::problem;
use super::query;
use super::state::AppState;

/// The query parameters: the card's system, and the rules.
pub(super) const PARAMETERS: [&str; 2] = ["as", "profile"];

pub(super) async fn card(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<Client>,
    request: Request,
) -> Response {
    judged(&state, client, request).await.unwrap_or_else(RequestError::into_response)
}

async fn judged(state: &AppState, client: Client, request: Request) -> Result<Response, RequestError> {
    let (system, profile) = chosen(request.uri().query().unwrap_or_default(), state)?;
    let (bytes, slot) = body::document(request, state, client, Limits::CARD.bytes).await?;
    let resolver = state.resolver.clone();
    let work = async move {
        let judging = resolver.clone();
        let judge = move || written(&judge(&bytes, system, &Rules::of(&profile), judging.profiles()));
        resolver.pool().try_run(judge).await
    };
    let written =
        state.admission.admitted(client, keeping(slot, work)).await?.map_err(|PoolFull| Refusal::Overloaded)?;
    Ok(match written {
        Ok(body) => ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response(),
        Err(excess) => problem::too_complex(excess.as_deref()),
    })
}

/// Serializes a judgement.
///
/// # Errors
/// The part of the card that exceeds a limit, if the card is too complex to judge.
fn written(judgement: &CardJudgement) -> Result<Vec<u8>, Option<String>> {
    match judgement.report.findings.iter().find(|finding| finding.code == Code::CardTooComplex) {
        Some(excess) => Err(excess.observed.clone()),
        None => Ok(serde_json::to_vec(judgement).expect("a judgement has a JSON form: its keys are strings")),
    }
}

/// The card's system, if the query names it, and the rules.
fn chosen(query: &str, state: &AppState) -> Result<(Option<CardSystem>, Arc<Profile>), RequestError> {
    let [system, profile] = query::read(query, PARAMETERS).map_err(RequestError::malformed)?;
    let id = profile.unwrap_or_else(|| state.default_profile.clone());
    let Some(profile) = state.resolver.profiles().get(&id) else { return Err(RequestError::unknown_profile(id)) };
    let system = system.map(|slug| slug.parse::<CardSystem>()).transpose();
    Ok((system.map_err(|error| RequestError::malformed(error.to_string()))?, profile))
}
