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
use clresolve_core::reason::Refusal;
use clresolve_core::text::inert_json;
use clresolve_payment::request::MAX_REQUEST_BYTES;
use clresolve_payment::{Decision, DecisionRequest};
use clresolve_resolver::resolve::{DecisionEvent, Question};
use clresolve_resolver::sign;
use clresolve_verdict::trust::Resolution;

use super::admission::{keeping, to_its_end};
use super::body::{self, RequestError};
use super::client_limits::Client;
use super::in_force::InForce;
use super::negotiate::Form;
use super::recent_decisions::{QuestionKey, Recent};
use super::state::AppState;
use super::{problem, receipts};

/// `POST /v1/decisions`
pub(super) async fn decide(
    State(state): State<Arc<AppState>>,
    Extension(in_force): Extension<Arc<InForce>>,
    Extension(client): Extension<Client>,
    request: Request,
) -> Response {
    answered(&state, &in_force, client, request, Moment::BeforeSigning)
        .await
        .unwrap_or_else(RequestError::into_response)
}

/// `POST /v1/decisions/signed`
pub(super) async fn signed(
    State(state): State<Arc<AppState>>,
    Extension(in_force): Extension<Arc<InForce>>,
    Extension(client): Extension<Client>,
    request: Request,
) -> Response {
    answered(&state, &in_force, client, request, Moment::BeforeSending)
        .await
        .unwrap_or_else(RequestError::into_response)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    BeforeSigning,
    /// Before the client sends the signed payment. The request contains the payment header.
    BeforeSending,
}

async fn answered(
    state: &AppState,
    in_force: &InForce,
    client: Client,
    request: Request,
    moment: Moment,
) -> Result<Response, RequestError> {
    let form = Form::asked(request.headers());
    let document = body::document(request, state, client, MAX_REQUEST_BYTES).await?;
    let digest = Digest::of(&document.0);
    let as_sent = QuestionKey::Sent(digest);
    let may_be_known = moment == Moment::BeforeSigning && form == Form::Plain;
    if may_be_known && let Some((_, response)) = given_again(state, in_force, client, as_sent).await? {
        return Ok(response);
    }
    let (question, slot) = body::read_apart(state, document, read).await?;
    let (request, as_read) = (&question.0, QuestionKey::Read(question.1));
    match (moment, &request.header) {
        (Moment::BeforeSigning, Some(_)) => return Err(RequestError::malformed("header is for /v1/decisions/signed")),
        (Moment::BeforeSending, None) => return Err(RequestError::malformed("expected header: the payment header")),
        _ => {}
    }
    if may_be_known && let Some((recent, response)) = given_again(state, in_force, client, as_read).await? {
        state.recent_decisions.add(as_sent, recent);
        return Ok(response);
    }
    let (state, answered) = in_force.ask(state, client, Question::new(&*request.name)).await?;
    let (resolver, asked) = (state.resolver.clone(), Arc::clone(request));
    let work = async move { resolver.decide_on(answered.resolution, &asked).await };
    let (decision, resolution) = to_its_end(keeping(slot, work)).await?;
    let event = DecisionEvent::of(&decision);
    event.report();
    let body = Bytes::from(inert_json(&serde_json::to_string(&decision).unwrap_or_default()));
    if moment == Moment::BeforeSigning && resolution.standing().is_ok() {
        state.recent_decisions.keep([as_sent, as_read], &request.name, &decision, event, &body, state.resolver.now());
    }
    let signed = || signature(&state, &decision, &resolution, digest);
    Ok(match (form, (form != Form::Plain).then(signed)) {
        (_, Some(Ok(jws))) => sent(jws.into(), MEDIA_TYPE, &resolution),
        (Form::Signed, Some(Err(detail))) => problem::refused(Refusal::NotAcceptable, Some(detail.into())),
        _ => sent(body, "application/json", &resolution),
    })
}

/// Parses a question. Also returns the digest of everything in it that the decision depends on.
fn read(bytes: &[u8]) -> Result<(Arc<DecisionRequest>, Digest), String> {
    let (request, digest) = DecisionRequest::with_digest(bytes).map_err(|error| error.to_string())?;
    Ok((Arc::new(request), digest))
}

/// The recent decision on the same question, if its verdict and configuration are still current.
async fn given_again(
    state: &AppState,
    in_force: &InForce,
    client: Client,
    question: QuestionKey,
) -> Result<Option<(Recent, Response)>, RequestError> {
    let Some(recent) = state.recent_decisions.get(question, state.resolver.now()) else { return Ok(None) };
    let answered = state.admission.ask(client, Question::new(&*recent.name)).await?;
    let resolution = state.resolver.confirmed(answered.resolution).await;
    let stands = recent.is_about(resolution.verdict()) && resolution.standing().is_ok();
    if !stands || !std::ptr::eq(&*in_force.state(), state) {
        return Ok(None);
    }
    recent.event.report();
    let response = sent(recent.body.clone(), "application/json", &resolution);
    Ok(Some((recent, response)))
}

fn sent(body: Bytes, media: &'static str, resolution: &Resolution) -> Response {
    let mut response = receipts::sent(body, media, resolution.verdict());
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    response
}

fn signature(state: &AppState, decision: &Decision, resolution: &Resolution, asked: Digest) -> Result<String, String> {
    let signatures = state.signatures.as_ref().ok_or("this daemon has no key to sign with")?;
    let signer = signatures.signer();
    sign::sign_decision(signer, decision, resolution, asked, state.resolver.now()).map_err(|error| error.to_string())
}
