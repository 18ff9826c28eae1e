//! Verdicts: of one name, and of many as they complete.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::header::{AGE, CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, RETRY_AFTER, VARY};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;
use serde::Deserialize;
use url::form_urlencoded;

use super::answer::{InWork, Noted};
use super::body::{self, Refused};
use super::desk::{How, Served};
use super::negotiate::Form;
use super::shares::Client;
use super::{Shared, problem, segment};
use crate::reason::Refusal;
use crate::resolve::{Question, Resolution};
use crate::sign;
use crate::text::Foreign;
use crate::verdict::{self, Depth, Freshness, Verdict};

/// RFC 9211.
const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// Most names in one request: what a runtime needs to know before it starts, not an audit.
const MAX_NAMES: usize = 100;

/// Names of one request that are asked at the same time, so that one request does not take every run.
const AT_ONCE: usize = 8;

/// Headers of a verdict's answer, those that every answer has among them.
const HEADERS: usize = 11;

/// Longest query, in parameters; there are two.
const MAX_PARAMETERS: usize = 8;

/// `GET /v1/verdicts/{name}`
pub(super) async fn one(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Client>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let question = match asked(segment(&uri, 0), uri.query().unwrap_or_default()) {
        Ok(question) => question,
        Err(detail) => return problem::refused(Refusal::RequestMalformed, Some(detail.into())),
    };
    let profile = question.profile.clone();
    let answer = if demands_run(&headers) {
        shared.desk.ask_anew(client, question).await
    } else {
        shared.desk.ask(client, question).await
    };
    let mut response = match answer {
        Ok(served) => described(&shared, &served, &headers).await,
        Err(refusal) => {
            problem::refused(refusal, profile.filter(|_| refusal == Refusal::ProfileUnknown).map(Cow::Owned))
        }
    };
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    response
}

/// `POST /v1/verdicts`
pub(super) async fn batch(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Client>,
    Extension(in_work): Extension<InWork>,
    request: Request,
) -> Response {
    let batch = match Batch::read(request, &shared).await {
        Ok(batch) => batch,
        Err(refused) => return body::refused(refused),
    };
    let Batch { names, profile, depth } = batch;
    if let Some(unknown) = profile.as_ref().filter(|id| shared.resolver.profiles().get(id).is_none()) {
        return problem::refused(Refusal::ProfileUnknown, Some(Cow::Borrowed(unknown)));
    }
    let lines = stream::iter(names)
        .map(move |name| {
            let shared = Arc::clone(&shared);
            let mut question = Question::new(name);
            question.profile.clone_from(&profile);
            question.depth = depth;
            async move { line(&shared, client, question).await }
        })
        .buffer_unordered(AT_ONCE)
        .map(move |line| {
            let _held = &in_work;
            Ok::<Bytes, Infallible>(line)
        });
    let mut response = Response::new(Body::from_stream(lines));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A verdict in one line; for a name that was refused a problem, with the name in a member of its own.
async fn line(shared: &Shared, client: Client, question: Question) -> Bytes {
    let name = question.input.clone();
    let mut line = match shared.desk.ask_patiently(client, question).await {
        Ok(served) => serde_json::to_vec(&**served.resolution.verdict()).unwrap_or_default(),
        Err(refusal) => {
            tracing::info!(name = %Foreign::new(&name), code = refusal.slug(), "a name of a batch was refused");
            let mut problem = problem::document(refusal, None);
            problem["name"] = name.into();
            problem.to_string().into_bytes()
        }
    };
    line.push(b'\n');
    line.into()
}

/// The body of a batch.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Batch {
    names: Vec<String>,
    profile: Option<String>,
    depth: Option<Depth>,
}

impl Batch {
    async fn read(request: Request, shared: &Shared) -> Result<Self, Refused> {
        let bytes = body::json(request, shared.http.body_bytes, shared).await?;
        let malformed = |detail: String| (Refusal::RequestMalformed, Some(detail));
        let batch: Self = serde_json::from_slice(&bytes).map_err(|error| malformed(error.to_string()))?;
        if batch.names.is_empty() || batch.names.len() > MAX_NAMES {
            return Err(malformed(format!("expected 1 to {MAX_NAMES} names, found {}", batch.names.len())));
        }
        Ok(batch)
    }
}

/// The question of a name and a query. Only `profile` and `depth` may be chosen; an empty one is none.
fn asked(name: String, query: &str) -> Result<Question, String> {
    let mut question = Question::new(name);
    for (number, (key, value)) in form_urlencoded::parse(query.as_bytes()).enumerate() {
        if number == MAX_PARAMETERS {
            return Err(format!("expected at most {MAX_PARAMETERS} parameters"));
        }
        let value = Some(value).filter(|value| !value.is_empty());
        match &*key {
            "profile" if question.profile.is_none() => question.profile = value.map(Cow::into_owned),
            "depth" if question.depth.is_none() => question.depth = value.as_deref().map(depth).transpose()?,
            "profile" | "depth" => return Err(format!("{key} is given twice")),
            _ => return Err(format!("expected profile or depth, found the parameter {key}")),
        }
    }
    Ok(question)
}

fn depth(text: &str) -> Result<Depth, String> {
    match text {
        "identity" => Ok(Depth::Identity),
        "schemas" => Ok(Depth::Schemas),
        _ => Err("expected the depth identity or schemas".to_owned()),
    }
}

/// Whether the request says `Cache-Control: no-cache`.
fn demands_run(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|directive| directive.trim().eq_ignore_ascii_case("no-cache"))
}

/// A verdict as it is sent.
#[derive(Clone)]
pub(super) struct Rendered {
    pub(super) body: Bytes,
    pub(super) tag: HeaderValue,
    pub(super) lease: Lease,
}

impl Rendered {
    fn of(verdict: &Verdict) -> Self {
        // Weak: the same verdict says `served: fresh` to the first and `cached` to the next.
        let tag = format!("W/\"{}\"", verdict.id);
        let tag = HeaderValue::from_str(&tag).expect("an id is hex digits after a word");
        let body = serde_json::to_vec(verdict).unwrap_or_default().into();
        Self { body, tag, lease: Lease::of(&verdict.freshness) }
    }
}

/// From when and for how long an answer may be relied on, as the headers of a cache say it.
#[derive(Clone)]
pub(super) struct Lease {
    checked_at: Option<Timestamp>,
    /// In seconds.
    lifetime: u64,
    control: HeaderValue,
}

impl Lease {
    pub(super) fn of(freshness: &Freshness) -> Self {
        let lifetime = freshness.lifetime().as_secs();
        let control = header(&format!("private, max-age={lifetime}"));
        Self { checked_at: freshness.checked_at.parse().ok(), lifetime, control }
    }

    /// Sets `Cache-Control`, `Age` and `Cache-Status` of an answer that came about in this way.
    pub(super) fn declare(&self, headers: &mut HeaderMap, how: How, now: Timestamp) {
        let age = self.checked_at.map_or(0, |checked_at| now.as_second().saturating_sub(checked_at.as_second()));
        let age = u64::try_from(age).unwrap_or(0);
        let ttl = self.lifetime.saturating_sub(age);
        let status = match how {
            // A name that is none is judged each time and never kept.
            How::Known | How::ForceRefused if self.lifetime == 0 => HeaderValue::from_static("clresolve; fwd=bypass"),
            How::Known => header(&format!("clresolve; hit; ttl={ttl}")),
            How::Run => HeaderValue::from_static("clresolve; fwd=miss; stored"),
            How::Forced => HeaderValue::from_static("clresolve; fwd=request; stored"),
            How::ForceRefused => header(&format!("clresolve; hit; ttl={ttl}; detail=forced-run-refused")),
        };
        headers.insert(CACHE_CONTROL, self.control.clone());
        headers.insert(AGE, age.into());
        headers.insert(CACHE_STATUS, status);
    }
}

fn header(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("digits and tokens are a header value")
}

/// The verdict, with all that a cache needs to know.
async fn described(shared: &Shared, served: &Served, request: &HeaderMap) -> Response {
    let verdict = served.resolution.verdict();
    let form = Form::asked(request);
    let (Rendered { body, tag, lease }, media) = match signed_if_asked(shared, &served.resolution, form).await {
        Ok(Some(signed)) => (signed, sign::MEDIA_TYPE),
        Ok(None) => (rendered(shared, verdict).await, "application/json"),
        Err(detail) => return problem::refused(Refusal::NotAcceptable, Some(detail.into())),
    };
    let mut response = if is_known_to_client(request, tag.to_str().unwrap_or_default()) {
        not_modified()
    } else {
        let mut response = Response::new(Body::from(body));
        response.headers_mut().reserve(HEADERS);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
        response
    };
    lease.declare(response.headers_mut(), served.how, shared.resolver.now());
    response.headers_mut().insert(ETAG, tag);
    if let Some(pause) = verdict.freshness.retry_after {
        response.headers_mut().insert(RETRY_AFTER, pause.into());
    }
    response.extensions_mut().insert(Noted::verdict(verdict));
    response
}

/// The signed form, where the request asks for it. `Ok(None)` where the verdict itself will do.
async fn signed_if_asked(shared: &Shared, resolution: &Resolution, form: Form) -> Result<Option<Rendered>, String> {
    if form == Form::Plain {
        return Ok(None);
    }
    let signed = match &shared.signatures {
        Some(signatures) => signatures.of(resolution, shared.resolver.now()).await.map_err(|error| error.to_string()),
        None => Err("this daemon has no key to sign with".to_owned()),
    };
    match signed {
        Err(_) if form == Form::SignedOrPlain => Ok(None),
        signed => signed.map(Some),
    }
}

/// The verdict as it is sent. What is served from the cache is likely to be asked for again.
async fn rendered(shared: &Shared, verdict: &Verdict) -> Rendered {
    if verdict.freshness.served != verdict::Served::Cached {
        return Rendered::of(verdict);
    }
    if let Some(rendered) = shared.rendered.get(&verdict.id).await {
        return rendered;
    }
    let rendered = Rendered::of(verdict);
    shared.rendered.insert(verdict.id.clone(), rendered.clone()).await;
    rendered
}

/// Whether `If-None-Match` names the tag; compared weakly (RFC 9110, 13.1.2).
pub(super) fn is_known_to_client(headers: &HeaderMap, tag: &str) -> bool {
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let values = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|known| known.trim() == "*" || opaque(known) == opaque(tag))
}

/// An answer without a body: the client has it.
pub(super) fn not_modified() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profile_and_depth_may_be_chosen_and_nothing_else() {
        let question = asked("a.eth".to_owned(), "profile=agent-cards%2F1.0.0%2Breleased&depth=schemas").unwrap();
        assert_eq!(question.profile.as_deref(), Some("agent-cards/1.0.0+released"));
        assert_eq!(question.depth, Some(Depth::Schemas));
        assert_eq!(asked("a.eth".to_owned(), "profile=&depth=").unwrap(), Question::new("a.eth"));
        for bad in ["block=5", "depth=deep", "depth=identity&depth=schemas", "profile=a&profile=b", "&&x"] {
            assert!(asked("a.eth".to_owned(), bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn tags_are_compared_weakly() {
        let mut headers = HeaderMap::new();
        assert!(!is_known_to_client(&headers, "\"a\""));
        headers.append(IF_NONE_MATCH, HeaderValue::from_static("\"b\", W/\"a\""));
        assert!(is_known_to_client(&headers, "\"a\"") && is_known_to_client(&headers, "W/\"b\""));
        assert!(!is_known_to_client(&headers, "\"c\""));
        headers.append(IF_NONE_MATCH, HeaderValue::from_static("*"));
        assert!(is_known_to_client(&headers, "\"c\""));
    }
}
