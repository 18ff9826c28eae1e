//! Problems (RFC 9457): what the report face says where it has no verdict to give.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::response::Response;
use serde_json::{Value, json};

use super::Shared;
use super::answer::{self, Noted};
use crate::reason::{Code, Refusal};
use crate::text::Foreign;
use crate::verdict::Verdict;

/// Seconds after which a client that was refused for its number of requests may ask again: the quota's window.
const QUOTA_PAUSE: &str = "60";

/// The same for a daemon that has too much to do; runs take seconds.
const OVERLOAD_PAUSE: &str = "1";

/// No route, or none of the gate's: 404, or 403 below the gate's paths.
pub(super) async fn no_route(State(shared): State<Arc<Shared>>, uri: Uri) -> Response {
    match switch(uri.path(), &shared) {
        Some(switch) => {
            let detail =
                format!("This daemon has that route switched off; {switch} in its configuration switches it on.");
            refused(Refusal::RouteUnknown, Some(detail.into()))
        }
        None => answer::refused(&uri, Refusal::RouteUnknown),
    }
}

/// What of the configuration switches on a route that is not there.
fn switch(path: &str, shared: &Shared) -> Option<&'static str> {
    let is_of_systems = path == "/.well-known/agent-card.json" || path.starts_with("/v1/agent-systems/");
    match path {
        "/v1/discover" if !shared.http.discover => Some("http.discover"),
        "/.well-known/jwks.json" if shared.signatures.is_none() => Some("sign.key"),
        _ if is_of_systems && shared.systems.is_none() => Some("[orloj]"),
        _ => None,
    }
}

/// The route exists, but not for this method.
pub(super) async fn no_method() -> Response {
    refused(Refusal::MethodUnsupported, None)
}

/// A problem, with what exactly is wrong where that is more than the title says.
pub(super) fn refused(refusal: Refusal, detail: Option<Cow<'_, str>>) -> Response {
    let body = document(refusal, detail);
    let mut response = response(status(refusal), &body);
    let pause = match refusal {
        Refusal::ClientOverQuota => Some(QUOTA_PAUSE),
        Refusal::Overloaded | Refusal::Draining => Some(OVERLOAD_PAUSE),
        _ => None,
    };
    if let Some(pause) = pause {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static(pause));
    }
    response.extensions_mut().insert(Noted::refusal(refusal));
    response
}

/// The problem as JSON.
pub(super) fn document(refusal: Refusal, detail: Option<Cow<'_, str>>) -> Value {
    let mut body = json!({
        "type": refusal.uri(),
        "title": refusal.title(),
        "status": status(refusal).as_u16(),
        "code": refusal,
    });
    if let Some(detail) = detail {
        body["detail"] = Foreign::new(&detail).to_string().into();
    }
    body
}

/// There is no card to hand out, since the name is not trusted (CL-66).
pub(super) fn not_trusted(verdict: &Arc<Verdict>) -> Response {
    let code = verdict.reasons.first().map_or(Refusal::InternalError.slug(), |reason| reason.code.slug());
    objected(verdict, code)
}

/// There is nothing to hand out, for this reason.
pub(super) fn objected(verdict: &Arc<Verdict>, code: &'static str) -> Response {
    let codes: Vec<Code> = verdict.reasons.iter().map(|reason| reason.code).collect();
    let (uri, title) = match Code::from_slug(code) {
        Some(code) => (code.uri(), code.entry().title),
        None => {
            let refusal = Refusal::ALL.into_iter().find(|refusal| refusal.slug() == code);
            let refusal = refusal.unwrap_or(Refusal::InternalError);
            (refusal.uri(), refusal.title())
        }
    };
    let body = json!({
        "type": uri,
        "title": title,
        "status": StatusCode::CONFLICT.as_u16(),
        "code": code,
        "detail": Foreign::new(&verdict.summary).to_string(),
        "state": verdict.state,
        "codes": codes,
        "verdict": verdict.id,
    });
    let mut response = response(StatusCode::CONFLICT, &body);
    if let Some(pause) = verdict.freshness.retry_after {
        response.headers_mut().insert(RETRY_AFTER, pause.into());
    }
    response.extensions_mut().insert(Noted::verdict(verdict).because(Some(code)));
    response
}

const fn status(refusal: Refusal) -> StatusCode {
    match refusal {
        Refusal::RequestMalformed | Refusal::ProfileUnknown => StatusCode::BAD_REQUEST,
        Refusal::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
        Refusal::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        Refusal::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Refusal::NotAcceptable => StatusCode::NOT_ACCEPTABLE,
        Refusal::MediaTypeUnsupported => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Refusal::RouteUnknown | Refusal::CardAbsent => StatusCode::NOT_FOUND,
        Refusal::MethodUnsupported => StatusCode::METHOD_NOT_ALLOWED,
        Refusal::ClientOverQuota => StatusCode::TOO_MANY_REQUESTS,
        Refusal::Overloaded | Refusal::Draining | Refusal::ResourcesUnreadable => StatusCode::SERVICE_UNAVAILABLE,
        Refusal::RunOverdue => StatusCode::GATEWAY_TIMEOUT,
        Refusal::DeadlinePassed | Refusal::ProofTooWeak | Refusal::VerbNotImplemented => StatusCode::FORBIDDEN,
        Refusal::InternalError => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn response(status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::super::gate;
    use super::*;

    #[test]
    fn the_gate_says_403_to_everything_and_the_report_face_says_what_it_is() {
        for refusal in Refusal::ALL {
            let closed = gate::refused(refusal);
            assert_eq!(closed.status(), StatusCode::FORBIDDEN);
            assert_eq!(closed.headers()["clresolve-code"], refusal.slug());
            let problem = refused(refusal, None);
            assert_eq!(problem.headers()[CONTENT_TYPE], "application/problem+json");
            let broken = matches!(refusal, Refusal::InternalError | Refusal::RunOverdue | Refusal::ResourcesUnreadable);
            let busy = matches!(refusal, Refusal::Overloaded | Refusal::Draining);
            assert_eq!(problem.status().is_server_error(), broken || busy, "{refusal}");
        }
    }
}
