//! `POST /v1/receipts/verify` verifies a receipt that an agent sent. It counts as a resolution.
//!
//! Any receipt is judged, however malformed. Only a malformed question is answered with a problem document. Nothing is
//! stored unless `receipts.remember` is on.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, VARY};
use axum::response::Response;
use clresolve_bundle::signed::MEDIA_TYPE;
use clresolve_core::reason::RefusalCode;
use clresolve_messages::receipt::question::MAX_QUESTION_BYTES;
use clresolve_messages::receipt::{ReceiptVerificationDocument, ReceiptVerificationRequest};
use clresolve_resolver::cpu_pool::CpuPoolFullError;
use clresolve_resolver::resolve::NameQuestion;
use clresolve_resolver::sign;
use clresolve_verdict::trust::Resolution;
use clresolve_verdict::verdict::Verdict;

use super::admission::run_while_holding;
use super::body::{self, RequestBodyError};
use super::client_limits::ClientIdentity;
use super::log::ResponseLogFields;
use super::negotiate::RequestedVerdictForm;
use super::problem;
use super::state::AppState;

/// The media type of an unsigned verification.
pub(super) const JSON: &str = "application/json";

/// `POST /v1/receipts/verify`
pub(super) async fn serve_verification(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientIdentity>,
    request: Request,
) -> Response {
    answer_receipt_verification(&state, client, request).await.unwrap_or_else(RequestBodyError::into_response)
}

async fn answer_receipt_verification(
    state: &Arc<AppState>,
    client: ClientIdentity,
    request: Request,
) -> Result<Response, RequestBodyError> {
    let form = RequestedVerdictForm::from_accept(request.headers());
    let (question, slot) =
        body::read_document_question(request, state, client, MAX_QUESTION_BYTES, ReceiptVerificationRequest::from_json)
            .await?;
    let resolution = state.admission.resolve_with_cache(client, NameQuestion::new(&question.name)).await?.resolution;
    let verdict = Arc::clone(resolution.verdict());
    let judging = Arc::clone(state);
    let work = async move {
        let resolver = judging.resolver.clone();
        let found = if judging.remembers_receipts {
            resolver.verify_and_remember_receipt_with_resolution(&resolution, question).await
        } else {
            resolver.verify_receipt_with_resolution(&resolution, question).await
        };
        resolver.cpu_pool().try_run(move || render_verification(&judging, form, &found, &resolution)).await
    };
    let work = run_while_holding(slot, work);
    let mut response = match state
        .admission
        .run_as_resolution(client, work)
        .await?
        .map_err(|CpuPoolFullError| RefusalCode::Overloaded)?
    {
        Ok((body, media)) => private_verdict_response(body, media, &verdict),
        Err(detail) => {
            return Ok(problem::refusal_response(RefusalCode::NotAcceptable, Some(detail.into())));
        }
    };
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    Ok(response)
}

/// Serializes a verification in the requested form, and returns it with its media type.
///
/// # Errors
/// Why the verification cannot be signed, if the client accepts only the signed form.
fn render_verification(
    state: &AppState,
    form: RequestedVerdictForm,
    found: &ReceiptVerificationDocument,
    resolution: &Resolution,
) -> Result<(Vec<u8>, &'static str), String> {
    let plain = || (serde_json::to_vec(found).unwrap_or_default(), JSON);
    if form == RequestedVerdictForm::Plain {
        return Ok(plain());
    }
    match sign_verification(state, found, resolution) {
        Ok(jws) => Ok((jws.into_bytes(), MEDIA_TYPE)),
        Err(detail) if form == RequestedVerdictForm::Signed => Err(detail),
        Err(_) => Ok(plain()),
    }
}

/// A response with a document about a message to or from the agent of a verdict, as serialized. It is private to the
/// client and must not be cached.
pub(super) fn private_verdict_response(body: impl Into<Body>, media: &'static str, verdict: &Arc<Verdict>) -> Response {
    private_response(body, media, ResponseLogFields::from_verdict(verdict))
}

/// A response with a document that is private to the client and must not be cached, with its log entry.
pub(super) fn private_response(body: impl Into<Body>, media: &'static str, entry: ResponseLogFields) -> Response {
    let mut response = Response::new(body.into());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.extensions_mut().insert(entry);
    response
}

fn sign_verification(
    state: &AppState,
    found: &ReceiptVerificationDocument,
    resolution: &Resolution,
) -> Result<String, String> {
    let signatures = state.signatures.as_ref().ok_or("this daemon has no key to sign with")?;
    let signed = sign::sign_receipt_result(signatures.signer(), found, resolution, state.resolver.now());
    signed.map_err(|error| error.to_string())
}
