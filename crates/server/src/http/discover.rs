//! `GET /v1/discover` returns the cards of a host that the client names. The route exists only if `http.discover` is
//! on.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, Uri};
use axum::response::{IntoResponse as _, Response};
use clresolve_cards::system::CardSystem;
use clresolve_core::reason::RefusalCode;
use clresolve_discover::{DiscoveryRequest, DiscoveryTarget, HostedAgentSystemName, discover_host_cards};

use super::client_limits::ClientIdentity;
use super::problem;
use super::query;
use super::state::AppState;

/// The query parameters: the host, the card's system, the system on a host that has several, and whether names are
/// resolved.
pub(super) const PARAMETERS: [&str; 4] = ["url", "as", "system", "bind"];

pub(super) async fn discover_host(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientIdentity>,
    uri: Uri,
) -> Response {
    let question = match parse_discovery_query(uri.query().unwrap_or_default()) {
        Ok(question) => question,
        Err(detail) => {
            return problem::refusal_response(RefusalCode::RequestMalformed, Some(Cow::Owned(detail)));
        }
    };
    let Some(profile) = state.resolver.profiles().get(&state.default_profile) else {
        return problem::refusal_response(RefusalCode::ProfileUnknown, None);
    };
    let resolver = state.resolver.clone();
    let work = async move {
        let found = discover_host_cards(&resolver, &question, &profile).await;
        // A host may have several large documents, so the findings are serialized on the pool.
        resolver.cpu_pool().run(move || serde_json::to_vec(&found).unwrap_or_default()).await
    };
    match state.admission.run_as_resolution(client, work).await {
        Ok(written) => discovery_response(written),
        Err(refusal) => problem::refusal_response(refusal, None),
    }
}

/// Hosts may generate cards on request, so caches must not reuse an old response.
fn discovery_response(found: Vec<u8>) -> Response {
    let head = [
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
    ];
    (head, found).into_response()
}

fn parse_discovery_query(query: &str) -> Result<DiscoveryRequest, String> {
    let [url, card_system, system, bind] = query::parse_query_parameters(query, PARAMETERS)?;
    let wrong = |key: &str, error: &dyn std::fmt::Display| format!("{key}: {error}");
    let url = url.ok_or_else(|| "expected the parameter url".to_owned())?;
    let mut target = DiscoveryTarget::parse(&url).map_err(|error| wrong("url", &error))?;
    if let Some(name) = system {
        let name = HostedAgentSystemName::parse(&name).map_err(|error| wrong("system", &error))?;
        target = target.with_agent_system(name).map_err(|error| wrong("system", &error))?;
    }
    let card_system =
        card_system.map(|slug| slug.parse::<CardSystem>()).transpose().map_err(|error| wrong("as", &error))?;
    let bind = match bind.as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err("bind: expected true or false".to_owned()),
    };
    Ok(DiscoveryRequest { system: card_system, bind, ..DiscoveryRequest::new(target) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_names_a_host_and_what_is_wanted_of_it() {
        let question = parse_discovery_query("url=https%3A%2F%2Fa.example&as=orloj&system=b&bind=true").unwrap();
        assert_eq!((question.system, question.bind), (Some(CardSystem::Orloj), true));
        assert_eq!(question.target.to_string(), "https://a.example/v1/agent-systems/b");
        for bad in [
            "",
            "as=a2a",
            "url=a.example&url=b.example",
            "url=a.example&x=1",
            "url=a.example&bind=yes",
            "url=http%3A%2F%2Fa.example",
        ] {
            assert!(parse_discovery_query(bad).is_err(), "{bad}");
        }
    }
}
