//! Problem documents (RFC 9457), which the report API returns in place of a verdict.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use clresolve_core::reason::{ReasonCode, RefusalCode};
use clresolve_core::text::UntrustedText;
use clresolve_verdict::verdict::Verdict;
use serde_json::{Value, json};

use super::log::ResponseLogFields;

/// Seconds after which a client over its quota may retry: the window of the quota.
const QUOTA_PAUSE: u64 = 60;

/// Seconds after which a client of an overloaded or draining daemon may retry. Resolutions take seconds.
const OVERLOAD_PAUSE: u64 = 1;

/// A problem response with details beyond the title.
pub(super) fn refusal_response(refusal: RefusalCode, detail: Option<Cow<'_, str>>) -> Response {
    let body = problem_document(refusal, detail);
    let mut response = problem_response(refusal_status(refusal), &body);
    response.headers_mut().extend(retry_after_header(retry_seconds(refusal)));
    response.extensions_mut().insert(ResponseLogFields::from_refusal(refusal));
    response
}

/// Seconds after which a client may retry.
pub(super) const fn retry_seconds(refusal: RefusalCode) -> Option<u64> {
    match refusal {
        RefusalCode::ClientOverQuota => Some(QUOTA_PAUSE),
        RefusalCode::Overloaded | RefusalCode::Draining | RefusalCode::NotReady => Some(OVERLOAD_PAUSE),
        _ => None,
    }
}

/// The header that announces when to retry.
pub(super) fn retry_after_header(pause: Option<u64>) -> Option<(HeaderName, HeaderValue)> {
    pause.map(|seconds| (RETRY_AFTER, seconds.into()))
}

/// The problem as JSON. It includes the retry time, since a problem in a batch or among events has no header.
pub(super) fn problem_document(refusal: RefusalCode, detail: Option<Cow<'_, str>>) -> Value {
    let mut body = json!({
        "type": refusal.uri(),
        "title": refusal.title(),
        "status": refusal_status(refusal).as_u16(),
        "code": refusal,
    });
    if let Some(detail) = detail {
        body["detail"] = UntrustedText::new(&detail).to_string().into();
    }
    if let Some(pause) = retry_seconds(refusal) {
        body["retry_after"] = pause.into();
    }
    body
}

/// The document in the request is too complex to judge. `excess` describes the exceeded limit.
pub(super) fn too_complex_response(excess: Option<&str>) -> Response {
    let code = ReasonCode::CardTooComplex;
    let mut body = json!({
        "type": code.uri(),
        "title": code.entry().title,
        "status": StatusCode::UNPROCESSABLE_ENTITY.as_u16(),
        "code": code,
    });
    if let Some(excess) = excess {
        body["detail"] = UntrustedText::new(excess).to_string().into();
    }
    let mut response = problem_response(StatusCode::UNPROCESSABLE_ENTITY, &body);
    response.extensions_mut().insert(ResponseLogFields::default().with_code(Some(code.slug())));
    response
}

/// The name is not trusted, so no card is returned (CL-66).
pub(super) fn not_trusted_response(verdict: &Arc<Verdict>) -> Response {
    let code = verdict.reasons.first().map_or(RefusalCode::InternalError.slug(), |reason| reason.code.slug());
    verdict_objection_response(verdict, code)
}

/// Nothing is returned, because of the reason with this code.
pub(super) fn verdict_objection_response(verdict: &Arc<Verdict>, code: &'static str) -> Response {
    let codes: Vec<ReasonCode> = verdict.reasons.iter().map(|reason| reason.code).collect();
    let (uri, title) = match ReasonCode::from_slug(code) {
        Some(code) => (code.uri(), code.entry().title),
        None => {
            let refusal = RefusalCode::ALL.into_iter().find(|refusal| refusal.slug() == code);
            let refusal = refusal.unwrap_or(RefusalCode::InternalError);
            (refusal.uri(), refusal.title())
        }
    };
    let mut body = json!({
        "type": uri,
        "title": title,
        "status": StatusCode::CONFLICT.as_u16(),
        "code": code,
        "detail": UntrustedText::new(&verdict.summary).to_string(),
        "state": verdict.state,
        "codes": codes,
        "verdict": verdict.id,
    });
    if let Some(pause) = verdict.freshness.retry_after {
        body["retry_after"] = pause.into();
    }
    let mut response = problem_response(StatusCode::CONFLICT, &body);
    response.headers_mut().extend(retry_after_header(verdict.freshness.retry_after));
    response.extensions_mut().insert(ResponseLogFields::from_verdict(verdict).with_code(Some(code)));
    response
}

pub(super) const fn refusal_status(refusal: RefusalCode) -> StatusCode {
    match refusal {
        RefusalCode::RequestMalformed | RefusalCode::ProfileUnknown => StatusCode::BAD_REQUEST,
        RefusalCode::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
        RefusalCode::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        RefusalCode::NotAcceptable => StatusCode::NOT_ACCEPTABLE,
        RefusalCode::MediaTypeUnsupported => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        RefusalCode::RouteUnknown | RefusalCode::CardAbsent => StatusCode::NOT_FOUND,
        RefusalCode::MethodUnsupported => StatusCode::METHOD_NOT_ALLOWED,
        RefusalCode::ConfigurationRefused => StatusCode::CONFLICT,
        RefusalCode::ClientOverQuota => StatusCode::TOO_MANY_REQUESTS,
        RefusalCode::Overloaded | RefusalCode::Draining | RefusalCode::NotReady | RefusalCode::ResourcesUnreadable => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        RefusalCode::RunOverdue => StatusCode::GATEWAY_TIMEOUT,
        RefusalCode::DeadlinePassed
        | RefusalCode::Unconfirmed
        | RefusalCode::HeadStalled
        | RefusalCode::ProofTooWeak
        | RefusalCode::VerbNotImplemented
        | RefusalCode::VerbWithoutEntry
        | RefusalCode::NetworkNotListed
        | RefusalCode::HostUnexpected
        | RefusalCode::RequestAmbiguous => StatusCode::FORBIDDEN,
        RefusalCode::InternalError => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn problem_response(status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_broken_or_overloaded_is_a_server_error() {
        for refusal in RefusalCode::ALL {
            let problem = refusal_response(refusal, None);
            assert_eq!(problem.headers()[CONTENT_TYPE], "application/problem+json");
            let broken = matches!(
                refusal,
                RefusalCode::InternalError | RefusalCode::RunOverdue | RefusalCode::ResourcesUnreadable
            );
            let busy = matches!(refusal, RefusalCode::Overloaded | RefusalCode::Draining | RefusalCode::NotReady);
            assert_eq!(problem.status().is_server_error(), broken || busy, "{refusal}");
        }
    }
}
