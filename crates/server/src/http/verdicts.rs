//! Verdict routes: one name, and a batch whose verdicts are sent as they complete.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, RETRY_AFTER, VARY};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Uri};
use axum::response::Response;
use bytes::Bytes;
use clresolve_bundle::signed::MEDIA_TYPE;
use clresolve_core::json::object::deserialize_object;
use clresolve_core::name::EnsName;
use clresolve_core::reason::RefusalCode;
use clresolve_core::state;
use clresolve_core::text::UntrustedText;
use clresolve_resolver::cpu_share::{self, CpuJobUrgency};
use clresolve_resolver::resolve::NameQuestion;
use clresolve_resolver::telemetry;
use clresolve_verdict::trust::{Resolution, StaleVerdict};
use clresolve_verdict::verdict::{ResolutionDepth, Verdict};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use schemars::JsonSchema;
use serde::Deserialize;

use super::admission::{CacheUseOutcome, ResolutionAndCacheUse};
use super::body::{self, RequestBodyError};
use super::caching::{matches_if_none_match, not_modified};
use super::client_limits::ClientIdentity;
use super::log::ResponseLogFields;
use super::negotiate::{RequestedVerdictForm, prefers_events};
use super::path::decoded_segment;
use super::rendered::RenderedVerdict;
use super::request_slot::RequestSlot;
use super::state::AppState;
use super::{problem, query, steps};

/// Maximum number of names in one request: enough for an agent runtime at startup, too few for an audit.
const MAX_NAMES: usize = 100;

/// Number of names of one request that are resolved concurrently, so that one request does not use every permit.
const AT_ONCE: usize = 8;

/// Capacity for the headers of a verdict response, including those of every response.
const HEADERS: usize = 11;

/// The query parameters: the rules of a release line, and how much is proven.
pub(super) const PARAMETERS: [&str; 2] = ["profile", "depth"];

/// `GET /v1/verdicts/{name}`
pub(super) async fn serve_verdict(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientIdentity>,
    Extension(permit): Extension<RequestSlot>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let question = match parse_verdict_question(decoded_segment(&uri, 0), uri.query().unwrap_or_default()) {
        Ok(question) => question,
        Err(detail) => {
            return problem::refusal_response(RefusalCode::RequestMalformed, Some(detail.into()));
        }
    };
    if prefers_events(&headers) {
        return add_vary_accept(stream_resolution(state, client, permit, question).await);
    }
    let answer = if demands_fresh_resolution(&headers) {
        state.admission.force_resolution(client, question.clone()).await
    } else {
        state.admission.resolve_with_cache(client, question.clone()).await
    };
    let response = match answer {
        Ok(answered) => verdict_response(&state, &question, &answered, &headers).await,
        Err(refusal) => problem::refusal_response(
            refusal,
            question.profile.filter(|_| refusal == RefusalCode::ProfileUnknown).map(Cow::Owned),
        ),
    };
    add_vary_accept(response)
}

/// The response to `GET /v1/verdicts/{name}`, if the cached verdict suffices. Otherwise `None`: the request needs its
/// route. A cached verdict that is not stale needs no request slot, so even an overloaded daemon returns it: nothing is
/// resolved or signed, and all responses share its bytes. They contain only the name in normal form, so other spellings
/// need the route.
pub(super) async fn cached_verdict_response(
    state: &AppState,
    client: ClientIdentity,
    head: &Parts,
) -> Option<Response> {
    let Parts { method, uri, headers, .. } = head;
    let name = uri.path().strip_prefix("/v1/verdicts/")?;
    let is_one = !name.strip_suffix('/').unwrap_or(name).contains('/');
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    if !is_one
        || !is_read
        || RequestedVerdictForm::from_accept(headers) != RequestedVerdictForm::Plain
        || prefers_events(headers)
    {
        return None;
    }
    let question = parse_verdict_question(decoded_segment(uri, 0), uri.query().unwrap_or_default()).ok()?;
    let is_normal = EnsName::parse(&question.input).is_ok_and(|name| name.as_str() == question.input);
    let is_forced = demands_fresh_resolution(headers);
    if !is_normal || is_forced && state.requests.reserve_slots(client, 1).is_ok() {
        return None;
    }
    let resolution = state.admission.cached_answer(&question).await.ok()??;
    let cache_use = if is_forced { CacheUseOutcome::ForceRefused } else { CacheUseOutcome::Hit };
    if resolution.verdict().state != state::TrustState::Indeterminate {
        return Some(add_vary_accept(json_response(state, &resolution, cache_use, headers)));
    }
    // A stale verdict is serialized anew for each response, so it needs a slot.
    let slot = state.requests.reserve_slots(client, 1);
    let answered = ResolutionAndCacheUse { resolution, cache_use };
    Some(add_vary_accept(match slot {
        Ok(_held) => Box::pin(verdict_response(state, &question, &answered, headers)).await,
        Err(refusal) => problem::refusal_response(refusal, None),
    }))
}

/// Streams the steps as they happen, and then the verdict.
async fn stream_resolution(
    state: Arc<AppState>,
    client: ClientIdentity,
    permit: RequestSlot,
    question: NameQuestion,
) -> Response {
    if state.is_draining() {
        return problem::refusal_response(RefusalCode::Draining, None);
    }
    let watch = state.resolver.subscribe_to_steps(&question);
    let work = state.cpu_task_context(client, CpuJobUrgency::Document);
    let verdict = async move {
        let answered = state.admission.resolve_with_cache(client, question.clone()).await?;
        Ok(current_verdict(&state, &question, &answered).await)
    };
    steps::stream_steps(watch, cpu_share::run_in_context(work, verdict).boxed(), permit).await
}

/// Marks a response as dependent on `Accept`.
fn add_vary_accept(mut response: Response) -> Response {
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    response
}

/// `POST /v1/verdicts`
pub(super) async fn serve_batch(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientIdentity>,
    Extension(permit): Extension<RequestSlot>,
    request: Request,
) -> Response {
    let batch = match VerdictBatchRequest::from_request(request, &state, client).await {
        Ok(batch) => batch,
        Err(error) => return error.into_response(),
    };
    let VerdictBatchRequest { names, profile, depth } = batch;
    if let Some(unknown) = profile.as_ref().filter(|id| state.resolver.profiles().get(id).is_none()) {
        return problem::refusal_response(RefusalCode::ProfileUnknown, Some(Cow::Borrowed(unknown)));
    }
    let lines = stream::iter(names)
        .map(move |name| {
            let state = Arc::clone(&state);
            let mut question = NameQuestion::new(name);
            question.profile.clone_from(&profile);
            question.depth = depth;
            // The lines are produced after this handler has returned.
            let work = state.cpu_task_context(client, CpuJobUrgency::Document);
            async move { cpu_share::run_in_context(work, verdict_json_line(&state, client, question)).await }
        })
        .buffer_unordered(AT_ONCE)
        .map(move |line| {
            let _held = &permit;
            Ok::<Bytes, Infallible>(line)
        });
    let mut response = Response::new(Body::from_stream(lines));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A verdict on one line. A refused name gets a problem with the additional member `name`.
async fn verdict_json_line(state: &AppState, client: ClientIdentity, question: NameQuestion) -> Bytes {
    let name = question.input.clone();
    let mut line = match state.admission.resolve_waiting_for_permit(client, question.clone()).await {
        Ok(answered) => serde_json::to_vec(&*current_verdict(state, &question, &answered).await).unwrap_or_default(),
        Err(refusal) => {
            tracing::info!(name = %UntrustedText::new(&name), code = refusal.slug(), "a name of a batch was refused");
            telemetry::count_refused_request(refusal);
            let mut problem = problem::problem_document(refusal, None);
            problem["name"] = name.into();
            problem.to_string().into_bytes()
        }
    };
    line.push(b'\n');
    line.into()
}

/// The verdict to describe: the last known one if the resolution failed.
async fn current_verdict(state: &AppState, question: &NameQuestion, answered: &ResolutionAndCacheUse) -> Arc<Verdict> {
    let stale = stale_verdict(state, question, answered).await;
    Arc::clone(stale.as_ref().map_or_else(|| answered.resolution.verdict(), StaleVerdict::verdict))
}

/// The body of a batch.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct VerdictBatchRequest {
    /// The agents' ENS names.
    #[schemars(length(min = 1, max = MAX_NAMES))]
    names: Vec<String>,
    /// The rules of a release line; the configured ones by default.
    profile: Option<String>,
    /// How much is proven; the configured depth by default.
    #[schemars(with = "Option<String>")]
    depth: Option<ResolutionDepth>,
}

impl VerdictBatchRequest {
    async fn from_request(
        request: Request,
        state: &AppState,
        client: ClientIdentity,
    ) -> Result<Self, RequestBodyError> {
        let (bytes, _slot) = body::read_reserved_body(request, state, client, state.http.body_bytes).await?;
        let batch: Self = deserialize_object(&bytes).map_err(|error| RequestBodyError::malformed(error.to_string()))?;
        if batch.names.is_empty() || batch.names.len() > MAX_NAMES {
            return Err(RequestBodyError::malformed(format!(
                "expected 1 to {MAX_NAMES} names, found {}",
                batch.names.len()
            )));
        }
        Ok(batch)
    }
}

/// The question in a name and a query.
fn parse_verdict_question(name: String, query: &str) -> Result<NameQuestion, String> {
    apply_parameters(NameQuestion::new(name), query::parse_query_parameters(query, PARAMETERS)?)
}

/// Applies the parameters to a question. An empty value chooses nothing.
pub(super) fn apply_parameters(
    mut question: NameQuestion,
    parameters: [Option<String>; 2],
) -> Result<NameQuestion, String> {
    let [profile, depth] = parameters.map(|value| value.filter(|value| !value.is_empty()));
    question.depth = depth.as_deref().map(parse_resolution_depth).transpose()?;
    question.profile = profile;
    Ok(question)
}

fn parse_resolution_depth(text: &str) -> Result<ResolutionDepth, String> {
    let depth = ResolutionDepth::ALL.into_iter().find(|depth| depth.as_str() == text);
    depth.ok_or_else(|| "expected the depth identity or schemas".to_owned())
}

fn demands_fresh_resolution(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|directive| directive.trim().eq_ignore_ascii_case("no-cache"))
}

/// The last known verdict, if the resolution failed. A client that forced a resolution gets the result of that
/// resolution.
async fn stale_verdict(
    state: &AppState,
    question: &NameQuestion,
    answered: &ResolutionAndCacheUse,
) -> Option<StaleVerdict> {
    let failed = answered.resolution.verdict().state == state::TrustState::Indeterminate;
    if !failed || !matches!(answered.cache_use, CacheUseOutcome::Hit | CacheUseOutcome::Miss) {
        return None;
    }
    state.resolver.stale_verdict(question).await.ok().flatten()
}

/// A response with the last known verdict, marked as stale. It has no entity tag, so that no client mistakes it for the
/// copy that it has cached.
fn stale_response(state: &AppState, stale: &StaleVerdict, failure: &Verdict) -> Response {
    let body = serde_json::to_vec(stale.verdict()).unwrap_or_default().into();
    let RenderedVerdict { body, lease, .. } = RenderedVerdict::from_json_body(stale.verdict(), body);
    let mut response = Response::new(Body::from(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    lease.set_cache_headers(headers, CacheUseOutcome::Stale, state.resolver.now());
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.extend(failure.freshness.retry_after.map(|pause| (RETRY_AFTER, HeaderValue::from(pause))));
    response.extensions_mut().insert(ResponseLogFields::from_verdict(stale.verdict()));
    response
}

/// A response with the verdict, and with all headers that a cache needs.
async fn verdict_response(
    state: &AppState,
    question: &NameQuestion,
    answered: &ResolutionAndCacheUse,
    request: &HeaderMap,
) -> Response {
    let form = RequestedVerdictForm::from_accept(request);
    // Only verdicts of the current resolution are signed.
    if let (RequestedVerdictForm::Plain, Some(stale)) = (form, stale_verdict(state, question, answered).await) {
        return stale_response(state, &stale, answered.resolution.verdict());
    }
    let ResolutionAndCacheUse { resolution, cache_use } = answered;
    match sign_if_requested(state, resolution, form).await {
        Ok(Some(signed)) => cacheable_response(state, resolution.verdict(), signed, MEDIA_TYPE, *cache_use, request),
        Ok(None) => json_response(state, resolution, *cache_use, request),
        Err(detail) => problem::refusal_response(RefusalCode::NotAcceptable, Some(detail.into())),
    }
}

/// A response with the verdict as JSON.
fn json_response(
    state: &AppState,
    resolution: &Resolution,
    cache_use: CacheUseOutcome,
    request: &HeaderMap,
) -> Response {
    let verdict = resolution.verdict();
    let rendered = RenderedVerdict::from_json_body(verdict, resolution.json().clone());
    cacheable_response(state, verdict, rendered, "application/json", cache_use, request)
}

fn cacheable_response(
    state: &AppState,
    verdict: &Arc<Verdict>,
    RenderedVerdict { body, tag, lease }: RenderedVerdict,
    media: &'static str,
    cache_use: CacheUseOutcome,
    request: &HeaderMap,
) -> Response {
    let mut response = if matches_if_none_match(request, tag.to_str().unwrap_or_default()) {
        not_modified()
    } else {
        let mut response = Response::new(Body::from(body));
        response.headers_mut().reserve(HEADERS);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
        response
    };
    lease.set_cache_headers(response.headers_mut(), cache_use, state.resolver.now());
    response.headers_mut().insert(ETAG, tag);
    if let Some(pause) = verdict.freshness.retry_after {
        response.headers_mut().insert(RETRY_AFTER, pause.into());
    }
    response.extensions_mut().insert(ResponseLogFields::from_verdict(verdict));
    response
}

/// The signed form, if the request asks for it. Returns `Ok(None)` if plain JSON is acceptable.
async fn sign_if_requested(
    state: &AppState,
    resolution: &Resolution,
    form: RequestedVerdictForm,
) -> Result<Option<RenderedVerdict>, String> {
    if form == RequestedVerdictForm::Plain {
        return Ok(None);
    }
    let signed = match &state.signatures {
        Some(signatures) => {
            signatures.signed_verdict(resolution, state.resolver.now()).await.map_err(|error| error.to_string())
        }
        None => Err("this daemon has no key to sign with".to_owned()),
    };
    match signed {
        Err(_) if form == RequestedVerdictForm::SignedOrPlain => Ok(None),
        signed => signed.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use clresolve_resolver::resolve::VerdictCacheKeyStatus;
    use clresolve_resolver::sandbox::Sandbox;

    /// A slow or disconnected reader causes no resolutions for lines that it does not read.
    #[tokio::test]
    async fn a_batch_runs_no_further_ahead_than_its_reader() {
        let sandbox = Sandbox::start().await.expect("the sandbox starts");
        let mut config = sandbox.config();
        (config.timeout, config.http.cold_runs_per_minute) = (std::time::Duration::from_secs(120), u32::MAX);
        let resolver = clresolve_resolver::resolve::Resolver::new(&config).await.expect("a resolver");
        let state = Arc::new(AppState::new(resolver.clone(), &config, None, None));
        let client = ClientIdentity::Address(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let names: Vec<String> = (0..MAX_NAMES).map(|number| format!("n{number}.eth")).collect();
        let request = Request::post("/v1/verdicts").header(CONTENT_TYPE, "application/json");
        let request = request.body(Body::from(serde_json::json!({ "names": names }).to_string())).expect("a request");
        let slot = RequestSlot::new(Arc::clone(&state), client);
        let response = serve_batch(State(Arc::clone(&state)), Extension(client), Extension(slot), request).await;
        let known = async || {
            let mut known = 0;
            for name in &names {
                let status = resolver.cache_status(&NameQuestion::new(name)).await.expect("the profile exists");
                known += usize::from(matches!(status, VerdictCacheKeyStatus::Fresh(_)));
            }
            known
        };
        assert_eq!(known().await, 0, "nobody reads yet");
        let mut lines = response.into_body().into_data_stream();
        lines.next().await.expect("a line").expect("no error");
        let idle = async {
            while !state.admission.is_idle(&config) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(config.timeout, idle).await.expect("the runs end");
        assert_eq!(known().await, AT_ONCE);
        assert_eq!(lines.count().await, MAX_NAMES - 1);
    }

    #[test]
    fn profile_and_depth_may_be_chosen_and_nothing_else() {
        let question =
            parse_verdict_question("a.eth".to_owned(), "profile=agent-cards%2F1.0.0%2Breleased&depth=schemas").unwrap();
        assert_eq!(question.profile.as_deref(), Some("agent-cards/1.0.0+released"));
        assert_eq!(question.depth, Some(ResolutionDepth::Schemas));
        assert_eq!(parse_verdict_question("a.eth".to_owned(), "profile=&depth=").unwrap(), NameQuestion::new("a.eth"));
        for bad in ["block=5", "depth=deep", "depth=identity&depth=schemas", "profile=a&profile=b", "&&x"] {
            assert!(parse_verdict_question("a.eth".to_owned(), bad).is_err(), "{bad}");
        }
    }
}
