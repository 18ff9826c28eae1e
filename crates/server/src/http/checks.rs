//! `POST /v1/checks` reports who is paid by these terms and what proves it. A check counts as a resolution.
//!
//! The handler checks a seller's reply however malformed it is. Only a malformed request gets a problem document.

use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::response::Response;
use clresolve_core::reason::RefusalCode;
use clresolve_core::text::escape_unsafe_json;
use clresolve_payment::check::{SellerCheckDocument, SellerCheckRequest};
use clresolve_payment::request::MAX_REQUEST_BYTES;

use super::admission::run_while_holding;
use super::body::{self, RequestBodyError};
use super::client_limits::{ClientIdentity, SlotReservation};
use super::in_force::CurrentService;
use super::log::ResponseLogFields;
use super::receipts::{JSON, private_response};
use super::state::AppState;

/// `POST /v1/checks`
pub(super) async fn check_payment(
    State(state): State<Arc<AppState>>,
    Extension(in_force): Extension<Arc<CurrentService>>,
    Extension(client): Extension<ClientIdentity>,
    request: Request,
) -> Response {
    answer_payment_check(&state, &in_force, client, request).await.unwrap_or_else(RequestBodyError::into_response)
}

async fn answer_payment_check(
    state: &Arc<AppState>,
    in_force: &Arc<CurrentService>,
    client: ClientIdentity,
    request: Request,
) -> Result<Response, RequestBodyError> {
    let (question, slot) =
        body::read_document_question(request, state, client, MAX_REQUEST_BYTES, parse_check_request).await?;
    let slot = Arc::new(slot);
    let check = match check_and_store_seller(state, in_force, client, &question, &slot).await? {
        Ok(check) => check,
        Err(latest) => {
            let resolver = latest.resolver.clone();
            let work = async move { resolver.check_seller(&question).await };
            latest.admission.run_as_resolution(client, run_while_holding(slot, work)).await?
        }
    };
    let body =
        escape_unsafe_json(&serde_json::to_string(&check).expect("a check has a JSON form: its keys are strings"));
    Ok(private_response(body, JSON, ResponseLogFields::from_check(&check)))
}

fn parse_check_request(bytes: &[u8]) -> Result<SellerCheckRequest, String> {
    SellerCheckRequest::from_json(bytes).map_err(|error| error.to_string())
}

/// Checks a request and stores what was found. Occupies the slot of its document until then. If the configuration was
/// reloaded during the check, it may now be stricter: discards the result and returns the latest state as the error.
async fn check_and_store_seller(
    state: &Arc<AppState>,
    in_force: &Arc<CurrentService>,
    client: ClientIdentity,
    request: &Arc<SellerCheckRequest>,
    slot: &Arc<SlotReservation>,
) -> Result<Result<SellerCheckDocument, Arc<AppState>>, RefusalCode> {
    let (begun, in_force, request) = (Arc::clone(state), Arc::clone(in_force), Arc::clone(request));
    let work = async move {
        let check = begun.resolver.check_seller_unreported(request).await;
        let latest = in_force.state();
        if !Arc::ptr_eq(&latest, &begun) && !clresolve_core::mutant!("reloads-spare-open-checks") {
            return Err(latest);
        }
        Ok(begun.resolver.remember_seller_check(check).await.report_and_into_document())
    };
    state.admission.run_as_resolution(client, run_while_holding(Arc::clone(slot), work)).await
}
