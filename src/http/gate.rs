//! The gate: 200 and no body lets a request pass, 403 does not. Nothing else is ever answered.
//!
//! What it goes by (profile, depth, block) is the configuration alone; whoever asks has no say in it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::Response;
use percent_encoding::percent_decode_str;
use tokio::time::timeout;

use super::answer::Noted;
use super::shares::Client;
use super::{Shared, segment};
use crate::reason::Refusal;
use crate::resolve::{Question, Resolution};
use crate::verdict;

const STATE: HeaderName = HeaderName::from_static("clresolve-state");
const CODE: HeaderName = HeaderName::from_static("clresolve-code");
const VERDICT: HeaderName = HeaderName::from_static("clresolve-verdict");
const CARD_SHA256: HeaderName = HeaderName::from_static("clresolve-card-sha256");

/// What the paths of the gate begin with.
const PREFIXES: [&str; 2] = ["/v1/gate", "/v1/envoy"];

/// Whether the path is the gate's, be it one of its routes or not.
pub(super) fn is_gate(path: &str) -> bool {
    let below = |prefix: &str| path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    PREFIXES.iter().any(|prefix| below(prefix))
}

/// Whether a proxy or a framework in front could take the path for one of the gate's, though it is none to the letter:
/// decoded, with backslashes for slashes, in capitals, with empty or dot segments resolved. No route is looked for then.
pub(super) fn is_gate_in_disguise(path: &str) -> bool {
    let is_plain = |(byte, next): (u8, u8)| {
        !matches!(byte, b'%' | b'\\' | b';' | b'A'..=b'Z') && (byte != b'/' || !matches!(next, b'/' | b'.'))
    };
    let bytes = path.bytes();
    if bytes.clone().zip(bytes.skip(1).chain([b' '])).all(is_plain) {
        return false;
    }
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    let mut segments: Vec<&str> = Vec::new();
    for segment in decoded.split(['/', '\\']).map(|segment| segment.split(';').next().unwrap_or_default()) {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            other => segments.push(other),
        }
        if let [first, second] = segments[..]
            && PREFIXES.iter().any(|prefix| {
                prefix[1..]
                    .split_once('/')
                    .is_some_and(|(a, b)| first.eq_ignore_ascii_case(a) && second.eq_ignore_ascii_case(b))
            })
        {
            return true;
        }
    }
    false
}

/// `/v1/gate/{name}`
pub(super) async fn of_name(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Client>,
    uri: Uri,
) -> Response {
    decide(&shared, client, &segment(&uri, 0), None).await
}

/// `/v1/gate/{name}/{verb}` and `/v1/envoy/{name}/{verb}/{*ignored}`
pub(super) async fn of_verb(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Client>,
    uri: Uri,
) -> Response {
    decide(&shared, client, &segment(&uri, 0), Some(&segment(&uri, 1))).await
}

async fn decide(shared: &Shared, client: Client, name: &str, verb: Option<&str>) -> Response {
    let mut response = if shared.is_draining() {
        refused(Refusal::Draining)
    } else {
        match timeout(shared.gate.deadline, shared.desk.ask(client, Question::new(name))).await {
            Ok(Ok(served)) => return by_verdict(shared, &served.resolution, verb),
            Ok(Err(refusal)) => refused(refusal),
            Err(_) => refused(Refusal::DeadlinePassed),
        }
    };
    if let Some(noted) = response.extensions_mut().remove::<Noted>() {
        response.extensions_mut().insert(noted.named(name));
    }
    response
}

/// The answer without a verdict.
pub(super) fn refused(refusal: Refusal) -> Response {
    let mut response = bare(StatusCode::FORBIDDEN);
    let headers = response.headers_mut();
    headers.insert(STATE, HeaderValue::from_static(verdict::State::Indeterminate.as_str()));
    headers.insert(CODE, HeaderValue::from_static(refusal.slug()));
    response.extensions_mut().insert(Noted::refusal(refusal));
    response
}

fn by_verdict(shared: &Shared, resolution: &Resolution, verb: Option<&str>) -> Response {
    let objection = shared.gate.policy.objection(resolution, verb);
    let verdict = resolution.verdict();
    let mut response = bare(if objection.is_none() { StatusCode::OK } else { StatusCode::FORBIDDEN });
    let headers = response.headers_mut();
    headers.insert(STATE, HeaderValue::from_static(verdict.state.as_str()));
    if let Some(code) = objection {
        headers.insert(CODE, HeaderValue::from_static(code));
    }
    if let Ok(id) = HeaderValue::from_str(&verdict.id) {
        headers.insert(VERDICT, id);
    }
    let digest = verdict.identity.as_ref().map(|agent| HeaderValue::from_str(&agent.card.sha256));
    if let (verdict::State::Trusted, Some(Ok(digest))) = (verdict.state, digest) {
        headers.insert(CARD_SHA256, digest);
    }
    response.extensions_mut().insert(Noted::verdict(verdict).because(objection));
    response
}

/// An answer that no cache between keeps: the decision is made anew each time.
fn bare(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_the_gate_are_its_own() {
        for path in ["/v1/gate", "/v1/gate/", "/v1/gate/a/b/c", "/v1/envoy/x"] {
            assert!(is_gate(path), "{path}");
        }
        for path in ["/v1/gates", "/v1", "/v1/verdicts/v1/gate", "/v1/envoyx/a"] {
            assert!(!is_gate(path) && !is_gate_in_disguise(path), "{path}");
        }
    }

    #[test]
    fn a_path_that_could_be_taken_for_the_gates_is_told() {
        for path in [
            "/v1/g%61te/a",
            "//v1/gate/a",
            "/v1//gate",
            "/./v1/envoy/a",
            "/v1/verdicts/../gate/a",
            "/v1/verdicts/..%2fgate%2fa.eth",
            "/v1/verdicts/%2e%2e/gate/a",
            "/V1/GATE/a",
            "/v1;x/gate;y/a",
            "\\v1\\gate",
            "/v1/%67ate/../verdicts/a",
        ] {
            assert!(is_gate_in_disguise(path), "{path}");
        }
        for path in
            ["/v1/verdicts/%67ate", "/v1/verdicts/SummarizeAgent.eth", "/v1/cards/a%2Fv1%2Fgate", "/livez", "*", ""]
        {
            assert!(!is_gate_in_disguise(path), "{path}");
        }
    }
}
