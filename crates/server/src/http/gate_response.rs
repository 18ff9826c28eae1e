//! The gate's responses: 200 or 403, without a body, with the reason in the headers.

use axum::body::Body;
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use clresolve_core::reason::RefusalCode;
use clresolve_core::state::TrustState;
use clresolve_resolver::config::GateConfig;
use clresolve_verdict::trust::Resolution;

use super::log::ResponseLogFields;

const STATE: HeaderName = HeaderName::from_static("clresolve-state");
const CODE: HeaderName = HeaderName::from_static("clresolve-code");
const VERDICT: HeaderName = HeaderName::from_static("clresolve-verdict");
const CARD_SHA256: HeaderName = HeaderName::from_static("clresolve-card-sha256");

/// What a request requires of the agent. Each requirement can only tighten the decision.
pub(super) struct GateRequestConstraints {
    pub(super) verb: Option<String>,
    /// A network (CAIP-2) that must be among the card's (CL-71).
    pub(super) network: Option<String>,
}

/// The response for a verdict: 200 unless the configuration or the request objects.
pub(super) fn gate_verdict_response(
    gate: &GateConfig,
    resolution: &Resolution,
    wanted: &GateRequestConstraints,
) -> Response {
    let objection = gate.gate_policy().request_objection(resolution, wanted.verb.as_deref(), wanted.network.as_deref());
    let verdict = resolution.verdict();
    let mut response =
        uncacheable_empty_response(if objection.is_none() { StatusCode::OK } else { StatusCode::FORBIDDEN });
    let headers = response.headers_mut();
    headers.insert(STATE, HeaderValue::from_static(verdict.state.as_str()));
    if let Some(code) = objection {
        headers.insert(CODE, HeaderValue::from_static(code));
    }
    if let Ok(id) = HeaderValue::from_str(&verdict.id) {
        headers.insert(VERDICT, id);
    }
    let digest = verdict.identity.as_ref().map(|agent| HeaderValue::from_str(&agent.card.sha256));
    if let (TrustState::Trusted, Some(Ok(digest))) = (verdict.state, digest) {
        headers.insert(CARD_SHA256, digest);
    }
    response.extensions_mut().insert(ResponseLogFields::from_verdict(verdict).with_code(objection));
    response
}

/// The response without a verdict: always 403.
pub(super) fn gate_refusal_response(refusal: RefusalCode) -> Response {
    let mut response = uncacheable_empty_response(StatusCode::FORBIDDEN);
    let headers = response.headers_mut();
    headers.insert(STATE, HeaderValue::from_static(TrustState::Indeterminate.as_str()));
    headers.insert(CODE, HeaderValue::from_static(refusal.slug()));
    response.extensions_mut().insert(ResponseLogFields::from_refusal(refusal));
    response
}

/// A response that must not be cached, since each request is decided separately.
fn uncacheable_empty_response(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = if clresolve_core::mutant!("gate-is-open") { StatusCode::OK } else { status };
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_is_403_with_its_code() {
        for refusal in RefusalCode::ALL {
            let closed = gate_refusal_response(refusal);
            assert_eq!(closed.status(), StatusCode::FORBIDDEN);
            assert_eq!(closed.headers()["clresolve-code"], refusal.slug());
        }
    }
}
