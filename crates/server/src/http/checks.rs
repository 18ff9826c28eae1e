//! `POST /v1/checks` reports who is paid by these terms and what proves it. A check counts as a resolution.
//!
//! The handler checks a seller's reply however malformed it is. Only a malformed request gets a problem document.

use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::response::Response;
use clresolve_core::reason::Refusal;
use clresolve_core::text::inert_json;
use clresolve_payment::check::{CheckAnswer, CheckRequest};
use clresolve_payment::request::MAX_REQUEST_BYTES;

use super::admission::keeping;
use super::body::{self, RequestError};
use super::client_limits::{Client, HeldSlots};
use super::in_force::InForce;
use super::log::LogEntry;
use super::receipts::{JSON, private};
use super::state::AppState;

/// `POST /v1/checks`
pub(super) async fn check(
    State(state): State<Arc<AppState>>,
    Extension(in_force): Extension<Arc<InForce>>,
    Extension(client): Extension<Client>,
    request: Request,
) -> Response {
    answered(&state, &in_force, client, request).await.unwrap_or_else(RequestError::into_response)
}

async fn answered(
    state: &Arc<AppState>,
    in_force: &Arc<InForce>,
    client: Client,
    request: Request,
) -> Result<Response, RequestError> {
    let (question, slot) = body::question(request, state, client, MAX_REQUEST_BYTES, read).await?;
    let slot = Arc::new(slot);
    let check = match checked(state, in_force, client, &question, &slot).await? {
        Ok(check) => check,
        Err(latest) => {
            let resolver = latest.resolver.clone();
            let work = async move { resolver.check(&question).await };
            latest.admission.admitted(client, keeping(slot, work)).await?
        }
    };
    let body = inert_json(&serde_json::to_string(&check).expect("a check has a JSON form: its keys are strings"));
    Ok(private(body, JSON, LogEntry::of_check(&check)))
}

fn read(bytes: &[u8]) -> Result<CheckRequest, String> {
    CheckRequest::from_json(bytes).map_err(|error| error.to_string())
}

/// Checks a request and stores what was found. Occupies the slot of its document until then. If the configuration was
/// reloaded during the check, it may now be stricter: discards the result and returns the latest state as the error.
async fn checked(
    state: &Arc<AppState>,
    in_force: &Arc<InForce>,
    client: Client,
    request: &Arc<CheckRequest>,
    slot: &Arc<HeldSlots>,
) -> Result<Result<CheckAnswer, Arc<AppState>>, Refusal> {
    let (begun, in_force, request) = (Arc::clone(state), Arc::clone(in_force), Arc::clone(request));
    let work = async move {
        let check = begun.resolver.checked(request).await;
        let latest = in_force.state();
        if !Arc::ptr_eq(&latest, &begun) && !clresolve_core::mutant!("reloads-spare-open-checks") {
            return Err(latest);
        }
        Ok(begun.resolver.remembered(check).await.reported())
    };
    state.admission.admitted(client, keeping(Arc::clone(slot), work)).await
}
