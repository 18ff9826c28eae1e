//! `GET /` serves the explorer, a page on which a person types a name and sees what is proven about it.
//!
//! The daemon renders the page from the verdict, and the page works without its script. For text that is not an ENS
//! name, the page shows a hint instead of a verdict. maud escapes all markup; [`html::foreign_text`] makes the unsafe
//! characters of foreign text visible. If the configuration permits it, the page also accepts the URL of a seller, and
//! the daemon queries that seller through [`probes`].

mod html;
mod page;
mod samples;
mod seller;
mod walk;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, REFERRER_POLICY};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::Response;
use clresolve_core::digest::Digest;
use clresolve_core::reason::RefusalCode;
use clresolve_resolver::resolve::{NameQuestion, SellerUrl};
use clresolve_verdict::trust::Resolution;
use clresolve_verdict::verdict::Verdict;
use maud::Markup;

use self::page::{ExplorerGateView, ExplorerPageContent, ExplorerPageQuery, InvalidNameExplanation};
use super::caching::{matches_if_none_match, not_modified};
use super::client_limits::ClientIdentity;
use super::in_force::CurrentService;
use super::log::ResponseLogFields;
use super::state::AppState;
use super::{probes, problem, query, verdicts};

/// What a browser may do with the page: load its style and script from here, and send requests here. Markup injected
/// through a bug could not execute anything.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";

/// The query parameters: the agent's name, and the same choices as in the query of a verdict.
pub(super) const PARAMETERS: [&str; 3] = ["name", "profile", "depth"];

const STYLE: &str = include_str!("explorer/page.css");
const SCRIPT: &str = include_str!("explorer/page.js");

/// `GET /` and `GET /?name=`. It starts a resolution, which is admitted and counted like one of `GET
/// /v1/verdicts/{name}`. If the query chooses rules, the gate's own rules are a second question.
pub(super) async fn serve_page(
    State(state): State<Arc<AppState>>,
    Extension(in_force): Extension<Arc<CurrentService>>,
    Extension(client): Extension<ClientIdentity>,
    uri: Uri,
) -> Response {
    let (name, question) = match parse_query(uri.query().unwrap_or_default()) {
        Ok(query) => query,
        Err(detail) => {
            return explorer_refusal_response(RefusalCode::RequestMalformed, ExplorerPageQuery::default(), &detail);
        }
    };
    let accepts_urls = state.explorer.probe;
    let Some(question) = question else {
        let query = ExplorerPageQuery { accepts_urls, ..ExplorerPageQuery::default() };
        return page_response(StatusCode::OK, page::start_page(query, &state.default_profile, &state.chain));
    };
    let query =
        ExplorerPageQuery { name: &name, profile: question.profile.as_deref(), depth: question.depth, accepts_urls };
    if let Some(url) = name.parse().ok().filter(|_| accepts_urls && client != ClientIdentity::Pages) {
        return serve_seller_page(&state, client, query, url).await;
    }
    if let Some(no_name) = InvalidNameExplanation::from_typed_text(&name) {
        return page_response(StatusCode::OK, page::result_page(query, &ExplorerPageContent::NoName(no_name)));
    }
    match state.admission.resolve_with_cache(client, question.clone()).await {
        Ok(answered) => {
            let verdict = answered.resolution.verdict();
            if let Some(no_name) = InvalidNameExplanation::from_verdict(verdict) {
                return explorer_verdict_response(
                    verdict,
                    page::result_page(query, &ExplorerPageContent::NoName(no_name)),
                );
            }
            let judged = resolve_by_gate_rules(&state, client, &question, &answered.resolution).await;
            let gate = in_force.state().gate.gate_policy();
            let gate = judged.as_ref().map_err(|refusal| *refusal).map(|judged| ExplorerGateView {
                verdict: judged.verdict(),
                objection: gate.request_objection(judged, None, None),
            });
            let sellers = state.explorer.probe.then_some(probes::PATH);
            let shown = ExplorerPageContent::Verdict { verdict, gate, sellers, chain: &state.chain };
            explorer_verdict_response(verdict, page::result_page(query, &shown))
        }
        Err(refusal) => explorer_refusal_response(refusal, query, ""),
    }
}

/// Queries the seller at `url` without paying, and checks its response. A page view stores nothing in the memory.
async fn serve_seller_page(
    state: &AppState,
    client: ClientIdentity,
    query: ExplorerPageQuery<'_>,
    url: SellerUrl,
) -> Response {
    let resolver = state.resolver.clone();
    let work = async move {
        let request = resolver.request_seller_terms(&url, None).await;
        resolver.check_seller_unreported(Arc::new(request)).await.report_and_into_document()
    };
    match state.admission.run_as_resolution(client, work).await {
        Ok(check) => {
            let mut response =
                page_response(StatusCode::OK, page::result_page(query, &ExplorerPageContent::Seller(&check)));
            response.extensions_mut().insert(ResponseLogFields::from_check(&check));
            response
        }
        Err(refusal) => explorer_refusal_response(refusal, query, ""),
    }
}

fn explorer_verdict_response(verdict: &Arc<Verdict>, page: Markup) -> Response {
    let mut response = page_response(StatusCode::OK, page);
    response.extensions_mut().insert(ResponseLogFields::from_verdict(verdict));
    response
}

/// The answer under the gate's rules, since the gate accepts no rules from a client.
async fn resolve_by_gate_rules(
    state: &AppState,
    client: ClientIdentity,
    asked: &NameQuestion,
    answer: &Resolution,
) -> Result<Resolution, RefusalCode> {
    let of_gate = NameQuestion::new(&*asked.input);
    let judged = match *asked == of_gate {
        true => answer.clone(),
        false => state.admission.resolve_with_cache(client, of_gate).await?.resolution,
    };
    Ok(state.resolver.confirm_for_gate(judged).await)
}

/// `GET /explorer.css`
pub(super) async fn serve_style(headers: HeaderMap) -> Response {
    asset_response(STYLE, "text/css; charset=utf-8", &headers)
}

/// `GET /explorer.js`
pub(super) async fn serve_script(headers: HeaderMap) -> Response {
    asset_response(SCRIPT, "text/javascript; charset=utf-8", &headers)
}

/// The name in a query as typed, and the question. The question is `None` if the query is empty.
fn parse_query(query: &str) -> Result<(String, Option<NameQuestion>), String> {
    let [name, profile, depth] = query::parse_query_parameters(query, PARAMETERS)?;
    let name = name.unwrap_or_default().trim().to_owned();
    let question = verdicts::apply_parameters(NameQuestion::new(&name), [profile, depth])?;
    let question = (!name.is_empty()).then_some(question);
    Ok((name, question))
}

fn explorer_refusal_response(refusal: RefusalCode, query: ExplorerPageQuery<'_>, detail: &str) -> Response {
    let mut response = page_response(
        problem::refusal_status(refusal),
        page::result_page(query, &ExplorerPageContent::Refusal(refusal, detail)),
    );
    response.headers_mut().extend(problem::retry_after_header(problem::retry_seconds(refusal)));
    response.extensions_mut().insert(ResponseLogFields::from_refusal(refusal).with_name(query.name));
    response
}

fn page_response(status: StatusCode, page: Markup) -> Response {
    let mut response = Response::new(Body::from(page.into_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    // Other sites must not learn which name someone looks up.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// A static file of the page. Browsers cache it and revalidate it.
fn asset_response(text: &'static str, media: &'static str, request: &HeaderMap) -> Response {
    let tag = format!("\"{}\"", Digest::compute(text.as_bytes()).to_hex());
    let mut response =
        if matches_if_none_match(request, &tag) { not_modified() } else { Response::new(Body::from(text)) };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.extend(HeaderValue::from_str(&tag).ok().map(|tag| (ETAG, tag)));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_has_one_name_and_what_a_verdict_may_choose() {
        let (name, question) =
            parse_query("profile=agent-cards%2F1.0.0%2Breleased&name=+A.eth&depth=").expect("a question");
        let question = question.expect("a name is asked about");
        assert_eq!((name.as_str(), &*question.input), ("A.eth", "A.eth"));
        assert_eq!(question.profile.as_deref(), Some("agent-cards/1.0.0+released"));
        assert_eq!(parse_query("").map(|(_, question)| question), Ok(None));
        assert_eq!(parse_query("name=+").map(|(_, question)| question), Ok(None));
        for bad in ["name=a.eth&name=b.eth", "nmae=a.eth", "name=a.eth&depth=deep"] {
            assert!(parse_query(bad).is_err(), "{bad}");
        }
    }
}
