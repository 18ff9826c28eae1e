//! `POST /v1/decisions` decides whether a payment may be made, and `POST /v1/decisions/signed` whether a signed one
//! matches.
//!
//! Any reply of a seller, however malformed, gets a decision that aborts, with foreign text escaped. Only a malformed
//! request gets a problem document.

use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::http::HeaderValue;
use axum::http::header::VARY;
use axum::response::Response;
use bytes::Bytes;
use clresolve_bundle::signed::MEDIA_TYPE;
use clresolve_core::digest::Digest;
use clresolve_core::reason::RefusalCode;
use clresolve_core::text::escape_unsafe_json;
use clresolve_payment::request::MAX_REQUEST_BYTES;
use clresolve_payment::{PaymentDecision, PaymentDecisionRequest};
use clresolve_resolver::resolve::{DecisionLogEvent, NameQuestion};
use clresolve_resolver::sign;
use clresolve_verdict::trust::Resolution;

use super::admission::{run_to_completion, run_while_holding};
use super::body::{self, RequestBodyError};
use super::client_limits::ClientIdentity;
use super::in_force::CurrentService;
use super::negotiate::RequestedVerdictForm;
use super::recent_decisions::{DecisionQuestionKey, RecentDecision};
use super::state::AppState;
use super::{problem, receipts};

/// `POST /v1/decisions`
pub(super) async fn serve_decision(
    State(state): State<Arc<AppState>>,
    Extension(in_force): Extension<Arc<CurrentService>>,
    Extension(client): Extension<ClientIdentity>,
    request: Request,
) -> Response {
    answer_decision(&state, &in_force, client, request, PaymentSigningStage::BeforeSigning)
        .await
        .unwrap_or_else(RequestBodyError::into_response)
}

/// `POST /v1/decisions/signed`
pub(super) async fn serve_signed_decision(
    State(state): State<Arc<AppState>>,
    Extension(in_force): Extension<Arc<CurrentService>>,
    Extension(client): Extension<ClientIdentity>,
    request: Request,
) -> Response {
    answer_decision(&state, &in_force, client, request, PaymentSigningStage::BeforeSending)
        .await
        .unwrap_or_else(RequestBodyError::into_response)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PaymentSigningStage {
    BeforeSigning,
    /// Before the client sends the signed payment. The request contains the payment header.
    BeforeSending,
}

async fn answer_decision(
    state: &AppState,
    in_force: &CurrentService,
    client: ClientIdentity,
    request: Request,
    moment: PaymentSigningStage,
) -> Result<Response, RequestBodyError> {
    let form = RequestedVerdictForm::from_accept(request.headers());
    let document = body::read_document_body(request, state, client, MAX_REQUEST_BYTES).await?;
    let digest = Digest::compute(&document.0);
    let as_sent = DecisionQuestionKey::Sent(digest);
    let may_be_known = moment == PaymentSigningStage::BeforeSigning && form == RequestedVerdictForm::Plain;
    if may_be_known && let Some((_, response)) = repeat_recent_decision(state, in_force, client, as_sent).await? {
        return Ok(response);
    }
    let (question, slot) = body::parse_body_on_cpu_pool(state, document, parse_decision_request).await?;
    let (request, as_read) = (&question.0, DecisionQuestionKey::Read(question.1));
    match (moment, &request.header) {
        (PaymentSigningStage::BeforeSigning, Some(_)) => {
            return Err(RequestBodyError::malformed("header is for /v1/decisions/signed"));
        }
        (PaymentSigningStage::BeforeSending, None) => {
            return Err(RequestBodyError::malformed("expected header: the payment header"));
        }
        _ => {}
    }
    if may_be_known && let Some((recent, response)) = repeat_recent_decision(state, in_force, client, as_read).await? {
        state.recent_decisions.add_key(as_sent, recent);
        return Ok(response);
    }
    let (state, answered) =
        in_force.resolve_under_current_config(state, client, NameQuestion::new(&*request.name)).await?;
    let (resolver, asked) = (state.resolver.clone(), Arc::clone(request));
    let work = async move { resolver.decide_payment_unreported(answered.resolution, &asked).await };
    let (decision, resolution) = run_to_completion(run_while_holding(slot, work)).await?;
    let event = DecisionLogEvent::from_decision(&decision);
    event.count_and_log();
    let body = Bytes::from(escape_unsafe_json(&serde_json::to_string(&decision).unwrap_or_default()));
    if moment == PaymentSigningStage::BeforeSigning && resolution.newest_block_confirmation().is_ok() {
        state.recent_decisions.store_if_trusted(
            [as_sent, as_read],
            &request.name,
            &decision,
            event,
            &body,
            state.resolver.now(),
        );
    }
    let signed = || sign_decision(&state, &decision, &resolution, digest);
    Ok(match (form, (form != RequestedVerdictForm::Plain).then(signed)) {
        (_, Some(Ok(jws))) => decision_response(jws.into(), MEDIA_TYPE, &resolution),
        (RequestedVerdictForm::Signed, Some(Err(detail))) => {
            problem::refusal_response(RefusalCode::NotAcceptable, Some(detail.into()))
        }
        _ => decision_response(body, "application/json", &resolution),
    })
}

/// Parses a question. Also returns the digest of everything in it that the decision depends on.
fn parse_decision_request(bytes: &[u8]) -> Result<(Arc<PaymentDecisionRequest>, Digest), String> {
    let (request, digest) = PaymentDecisionRequest::from_json_with_digest(bytes).map_err(|error| error.to_string())?;
    Ok((Arc::new(request), digest))
}

/// The recent decision on the same question, if its verdict and configuration are still current.
async fn repeat_recent_decision(
    state: &AppState,
    in_force: &CurrentService,
    client: ClientIdentity,
    question: DecisionQuestionKey,
) -> Result<Option<(RecentDecision, Response)>, RequestBodyError> {
    let Some(recent) = state.recent_decisions.get(question, state.resolver.now()) else { return Ok(None) };
    let answered = state.admission.resolve_with_cache(client, NameQuestion::new(&*recent.name)).await?;
    let resolution = state.resolver.confirm_for_gate(answered.resolution).await;
    let stands = recent.is_based_on(resolution.verdict()) && resolution.newest_block_confirmation().is_ok();
    if !stands || !std::ptr::eq(&*in_force.state(), state) {
        return Ok(None);
    }
    recent.event.count_and_log();
    let response = decision_response(recent.body.clone(), "application/json", &resolution);
    Ok(Some((recent, response)))
}

fn decision_response(body: Bytes, media: &'static str, resolution: &Resolution) -> Response {
    let mut response = receipts::private_verdict_response(body, media, resolution.verdict());
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    response
}

fn sign_decision(
    state: &AppState,
    decision: &PaymentDecision,
    resolution: &Resolution,
    asked: Digest,
) -> Result<String, String> {
    let signatures = state.signatures.as_ref().ok_or("this daemon has no key to sign with")?;
    let signer = signatures.signer();
    sign::sign_decision(signer, decision, resolution, asked, state.resolver.now()).map_err(|error| error.to_string())
}
