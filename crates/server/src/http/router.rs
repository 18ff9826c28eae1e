//! The route table: the handler and the description of each path.

use std::sync::Arc;

use axum::Router;
use axum::routing::{MethodRouter, any, get, post};

use super::openapi::{DESCRIPTION, OpenApiOperation, RenderedOpenApiDocument, operations};
use super::state::AppState;
use super::{
    agent_requests, agents, cards, checks, decisions, discover, events, explorer, fallback, gate, health, keys, lint,
    metrics, probes, receipts, registries, system_cards, verdicts,
};

/// A path with its handler and its description.
struct HttpRoute {
    path: &'static str,
    methods: MethodRouter<Arc<AppState>>,
    operations: Vec<OpenApiOperation>,
}

impl HttpRoute {
    fn new(
        path: &'static str,
        methods: MethodRouter<Arc<AppState>>,
        operations: impl IntoIterator<Item = OpenApiOperation>,
    ) -> Self {
        Self { path, methods, operations: operations.into_iter().collect() }
    }
}

/// All routes that the configuration enables.
pub(super) fn build_router(state: Arc<AppState>) -> Router {
    let (gate, report, tools) = (gate_routes(), report_routes(&state), mcp_route(&state));
    let described =
        |route: &HttpRoute| (route.path, route.operations.iter().map(OpenApiOperation::method_and_object).collect());
    let description = RenderedOpenApiDocument::from_routes(gate.iter().chain(&report).chain(&tools).map(described));
    let describe = get(move || async move { description.openapi_response() });
    let tools =
        tools.into_iter().fold(Router::new(), add_route).method_not_allowed_fallback(fallback::answer_wrong_method);
    let report = report
        .into_iter()
        .fold(Router::new(), add_route)
        .route("/v1/verdicts/", get(verdicts::serve_verdict))
        .route("/v1/cards/", get(cards::serve_card))
        .route(DESCRIPTION, describe.clone())
        .route(&format!("{DESCRIPTION}/"), describe)
        .method_not_allowed_fallback(fallback::answer_wrong_method);
    report
        .merge(tools)
        .merge(gate.into_iter().fold(Router::new(), add_route).route("/v1/gate/", any(gate::serve_gate_for_name)))
        .fallback(fallback::answer_unknown_path)
        .with_state(state)
}

/// Adds a route, also with a trailing slash.
fn add_route(router: Router<Arc<AppState>>, route: HttpRoute) -> Router<Arc<AppState>> {
    let HttpRoute { path, methods, .. } = route;
    let ends_openly = path.ends_with("{*ignored}") || path.ends_with('/');
    let router = router.route(path, methods.clone());
    if ends_openly { router } else { router.route(&format!("{path}/"), methods) }
}

/// The paths of all routes that the configuration enables.
#[cfg(test)]
pub(super) fn enabled_paths(state: &AppState) -> Vec<&'static str> {
    enabled_routes(state).map(|route| route.path).chain([DESCRIPTION]).collect()
}

#[cfg(test)]
fn enabled_routes(state: &AppState) -> impl Iterator<Item = HttpRoute> {
    gate_routes().into_iter().chain(report_routes(state)).chain(mcp_route(state))
}

/// The gate routes, which treat all methods alike.
fn gate_routes() -> Vec<HttpRoute> {
    vec![
        HttpRoute::new("/v1/gate/{name}", any(gate::serve_gate_for_name), operations::gate_for_name_operations()),
        HttpRoute::new(
            "/v1/gate/{name}/{verb}",
            any(gate::serve_gate_for_verb),
            operations::gate_for_verb_operations(),
        ),
        HttpRoute::new("/v1/envoy/{name}/{verb}", any(gate::serve_gate_for_envoy), operations::envoy_operations()),
        HttpRoute::new(
            "/v1/envoy/{name}/{verb}/{*ignored}",
            any(gate::serve_gate_for_envoy),
            operations::envoy_for_path_operations(),
        ),
    ]
}

fn report_routes(state: &AppState) -> Vec<HttpRoute> {
    let profiles = state.resolver.profiles();
    let mut routes = vec![
        HttpRoute::new("/", get(explorer::serve_page), [operations::explorer_operation(profiles)]),
        HttpRoute::new("/explorer.css", get(explorer::serve_style), [operations::explorer_style_operation()]),
        HttpRoute::new("/explorer.js", get(explorer::serve_script), [operations::explorer_script_operation()]),
        HttpRoute::new("/v1/verdicts", post(verdicts::serve_batch), [operations::batch_operation(profiles)]),
        HttpRoute::new("/v1/verdicts/{name}", get(verdicts::serve_verdict), [operations::verdict_operation(profiles)]),
        HttpRoute::new("/v1/events", get(events::serve_events), [operations::events_operation()]),
        HttpRoute::new("/v1/cards/{name}", get(cards::serve_card), [operations::card_operation()]),
        HttpRoute::new(
            "/v1/agents/{name}/.well-known/agent-card.json",
            get(agents::serve_agent_card),
            [operations::agent_card_operation()],
        ),
        HttpRoute::new("/v1/checks", post(checks::check_payment), [operations::check_operation()]),
        HttpRoute::new("/v1/decisions", post(decisions::serve_decision), [operations::decide_operation()]),
        HttpRoute::new(
            "/v1/decisions/signed",
            post(decisions::serve_signed_decision),
            [operations::decide_signed_operation()],
        ),
        HttpRoute::new(
            "/v1/requests/check",
            post(agent_requests::check_agent_request),
            [operations::check_request_operation()],
        ),
        HttpRoute::new(
            "/v1/receipts/verify",
            post(receipts::serve_verification),
            [operations::verify_receipt_operation()],
        ),
        HttpRoute::new("/v1/lint", post(lint::lint_card), [operations::lint_operation(profiles)]),
        HttpRoute::new("/v1/reasons", get(registries::serve_reasons), [operations::reasons_operation()]),
        HttpRoute::new("/v1/reasons/{code}", get(registries::serve_reason), [operations::reason_operation()]),
        HttpRoute::new("/v1/profiles", get(registries::serve_profiles), [operations::profiles_operation()]),
        HttpRoute::new("/livez", get(health::serve_livez), [operations::livez_operation()]),
        HttpRoute::new("/readyz", get(health::serve_readyz), [operations::readyz_operation()]),
        HttpRoute::new("/metrics", get(metrics::serve_metrics), [operations::metrics_operation()]),
    ];
    if state.signatures.is_some() {
        routes.push(HttpRoute::new("/.well-known/jwks.json", get(keys::serve_key_set), [operations::keys_operation()]));
    }
    if state.systems.is_some() {
        let one = "/v1/agent-systems/{name}/.well-known/agent-card.json";
        routes.push(HttpRoute::new(
            "/.well-known/agent-card.json",
            get(system_cards::serve_root_card),
            [operations::root_card_operation()],
        ));
        routes.push(HttpRoute::new(one, get(system_cards::serve_system_card), [operations::system_card_operation()]));
    }
    if state.http.discover || clresolve_core::mutant!("discovery-for-everybody") {
        routes.push(HttpRoute::new("/v1/discover", get(discover::discover_host), [operations::discover_operation()]));
    }
    if state.explorer.probe || clresolve_core::mutant!("sellers-are-asked-for-everybody") {
        routes.push(HttpRoute::new(probes::PATH, post(probes::serve_seller_probe), [operations::probe_operation()]));
    }
    routes
}

fn mcp_route(state: &AppState) -> Option<HttpRoute> {
    (!state.mcp.hosts.is_empty())
        .then(|| HttpRoute::new("/mcp", post(super::mcp::serve_mcp), [operations::mcp_operation()]))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::http::signatures::CachingVerdictSigner;
    use crate::http::systems::OrlojCardGenerator;
    use clresolve_bundle::signed::VerdictIssuer;
    use clresolve_jose::Ed25519SigningKey;
    use clresolve_resolver::config::Config;
    use clresolve_resolver::resolve::Resolver;
    use clresolve_resolver::sandbox::Sandbox;

    /// Resources that define a card.
    const SYSTEM: &str = "\
apiVersion: orloj.dev/v1
kind: AgentSystem
metadata: {name: research, labels: {orloj.dev/version: 2.0.0}, annotations: {orloj.dev/description: Reads papers.}}
spec: {agents: [], a2a: {enabled: true}}
---
a2a: {protocolVersion: '1.0'}
";

    /// A daemon whose configuration enables every route.
    pub(in crate::http) async fn with_every_route(sandbox: &Sandbox) -> AppState {
        let resources = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(resources.path(), SYSTEM).expect("written");
        let mut config: Config = sandbox.config();
        (config.http.discover, config.explorer.probe) = (true, true);
        config.mcp.hosts = vec!["127.0.0.1".to_owned()];
        config.orloj.base_url = Some("https://orloj.example".parse().expect("a URL"));
        config.orloj.resources = vec![resources.path().to_owned()];
        let resolver = Resolver::new(&config).await.expect("its configuration is good");
        let systems = OrlojCardGenerator::open(&config.orloj, resolver.now()).expect("resources");
        let signer =
            VerdictIssuer::new(Ed25519SigningKey::generate().expect("a key"), "https://clresolve.example".to_owned());
        AppState::new(resolver, &config, Some(Arc::new(CachingVerdictSigner::new(signer))), systems)
    }

    /// Otherwise a route without an operation would be served but missing from the description.
    #[tokio::test]
    async fn each_route_is_described() {
        let sandbox = Sandbox::start().await.expect("it starts");
        let state = with_every_route(&sandbox).await;
        for HttpRoute { path, operations, .. } in enabled_routes(&state) {
            assert!(!operations.is_empty(), "{path} is not described");
            for (method, described) in operations.iter().map(OpenApiOperation::method_and_object) {
                let answers = described["responses"].as_object();
                assert!(answers.is_some_and(|answers| !answers.is_empty()), "{method} {path} answers nothing");
            }
        }
    }
}
