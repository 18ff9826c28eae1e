//! The route table: the handler and the description of each path.

use std::sync::Arc;

use axum::Router;
use axum::routing::{MethodRouter, any, get, post};

use super::openapi::{DESCRIPTION, Description, Operation, operations};
use super::state::AppState;
use super::{
    agent_requests, agents, cards, checks, decisions, discover, events, explorer, fallback, gate, health, keys, lint,
    metrics, probes, receipts, registries, system_cards, verdicts,
};

/// A path with its handler and its description.
struct Route {
    path: &'static str,
    methods: MethodRouter<Arc<AppState>>,
    operations: Vec<Operation>,
}

impl Route {
    fn new(
        path: &'static str,
        methods: MethodRouter<Arc<AppState>>,
        operations: impl IntoIterator<Item = Operation>,
    ) -> Self {
        Self { path, methods, operations: operations.into_iter().collect() }
    }
}

/// All routes that the configuration enables.
pub(super) fn router(state: Arc<AppState>) -> Router {
    let (gate, report, tools) = (gate_routes(), report_routes(&state), tool_routes(&state));
    let described = |route: &Route| (route.path, route.operations.iter().map(Operation::document).collect());
    let description = Description::of(gate.iter().chain(&report).chain(&tools).map(described));
    let describe = get(move || async move { description.answer() });
    let tools = tools.into_iter().fold(Router::new(), add).method_not_allowed_fallback(fallback::no_method);
    let report = report
        .into_iter()
        .fold(Router::new(), add)
        .route("/v1/verdicts/", get(verdicts::one))
        .route("/v1/cards/", get(cards::one))
        .route(DESCRIPTION, describe.clone())
        .route(&format!("{DESCRIPTION}/"), describe)
        .method_not_allowed_fallback(fallback::no_method);
    report
        .merge(tools)
        .merge(gate.into_iter().fold(Router::new(), add).route("/v1/gate/", any(gate::of_name)))
        .fallback(fallback::no_route)
        .with_state(state)
}

/// Adds a route, also with a trailing slash.
fn add(router: Router<Arc<AppState>>, route: Route) -> Router<Arc<AppState>> {
    let Route { path, methods, .. } = route;
    let ends_openly = path.ends_with("{*ignored}") || path.ends_with('/');
    let router = router.route(path, methods.clone());
    if ends_openly { router } else { router.route(&format!("{path}/"), methods) }
}

/// The paths of all routes that the configuration enables.
#[cfg(test)]
pub(super) fn paths(state: &AppState) -> Vec<&'static str> {
    routes(state).map(|route| route.path).chain([DESCRIPTION]).collect()
}

#[cfg(test)]
fn routes(state: &AppState) -> impl Iterator<Item = Route> {
    gate_routes().into_iter().chain(report_routes(state)).chain(tool_routes(state))
}

/// The gate routes, which treat all methods alike.
fn gate_routes() -> Vec<Route> {
    vec![
        Route::new("/v1/gate/{name}", any(gate::of_name), operations::gate_for_name()),
        Route::new("/v1/gate/{name}/{verb}", any(gate::of_verb), operations::gate_for_verb()),
        Route::new("/v1/envoy/{name}/{verb}", any(gate::of_envoy), operations::envoy()),
        Route::new("/v1/envoy/{name}/{verb}/{*ignored}", any(gate::of_envoy), operations::envoy_for_path()),
    ]
}

fn report_routes(state: &AppState) -> Vec<Route> {
    let profiles = state.resolver.profiles();
    let mut routes = vec![
        Route::new("/", get(explorer::page), [operations::explorer(profiles)]),
        Route::new("/explorer.css", get(explorer::style), [operations::explorer_style()]),
        Route::new("/explorer.js", get(explorer::script), [operations::explorer_script()]),
        Route::new("/v1/verdicts", post(verdicts::batch), [operations::batch(profiles)]),
        Route::new("/v1/verdicts/{name}", get(verdicts::one), [operations::verdict(profiles)]),
        Route::new("/v1/events", get(events::follow), [operations::events()]),
        Route::new("/v1/cards/{name}", get(cards::one), [operations::card()]),
        Route::new("/v1/agents/{name}/.well-known/agent-card.json", get(agents::card), [operations::agent_card()]),
        Route::new("/v1/checks", post(checks::check), [operations::check()]),
        Route::new("/v1/decisions", post(decisions::decide), [operations::decide()]),
        Route::new("/v1/decisions/signed", post(decisions::signed), [operations::decide_signed()]),
        Route::new("/v1/requests/check", post(agent_requests::check), [operations::check_request()]),
        Route::new("/v1/receipts/verify", post(receipts::verify), [operations::verify_receipt()]),
        Route::new("/v1/lint", post(lint::card), [operations::lint(profiles)]),
        Route::new("/v1/reasons", get(registries::reasons), [operations::reasons()]),
        Route::new("/v1/reasons/{code}", get(registries::reason), [operations::reason()]),
        Route::new("/v1/profiles", get(registries::profiles), [operations::profiles()]),
        Route::new("/livez", get(health::livez), [operations::livez()]),
        Route::new("/readyz", get(health::readyz), [operations::readyz()]),
        Route::new("/metrics", get(metrics::all), [operations::metrics()]),
    ];
    if state.signatures.is_some() {
        routes.push(Route::new("/.well-known/jwks.json", get(keys::key_set), [operations::keys()]));
    }
    if state.systems.is_some() {
        let one = "/v1/agent-systems/{name}/.well-known/agent-card.json";
        routes.push(Route::new("/.well-known/agent-card.json", get(system_cards::root), [operations::root_card()]));
        routes.push(Route::new(one, get(system_cards::one), [operations::system_card()]));
    }
    if state.http.discover || clresolve_core::mutant!("discovery-for-everybody") {
        routes.push(Route::new("/v1/discover", get(discover::host), [operations::discover()]));
    }
    if state.explorer.probe || clresolve_core::mutant!("sellers-are-asked-for-everybody") {
        routes.push(Route::new(probes::PATH, post(probes::probe), [operations::probe()]));
    }
    routes
}

fn tool_routes(state: &AppState) -> Option<Route> {
    (!state.mcp.hosts.is_empty()).then(|| Route::new("/mcp", post(super::mcp::answer), [operations::mcp()]))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::http::signatures::VerdictSigner;
    use crate::http::systems::Systems;
    use clresolve_bundle::signed::Signer;
    use clresolve_jose::SigningKey;
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
        let systems = Systems::open(&config.orloj, resolver.now()).expect("resources");
        let signer = Signer::new(SigningKey::generate().expect("a key"), "https://clresolve.example".to_owned());
        AppState::new(resolver, &config, Some(Arc::new(VerdictSigner::new(signer))), systems)
    }

    /// Otherwise a route without an operation would be served but missing from the description.
    #[tokio::test]
    async fn each_route_is_described() {
        let sandbox = Sandbox::start().await.expect("it starts");
        let state = with_every_route(&sandbox).await;
        for Route { path, operations, .. } in routes(&state) {
            assert!(!operations.is_empty(), "{path} is not described");
            for (method, described) in operations.iter().map(Operation::document) {
                let answers = described["responses"].as_object();
                assert!(answers.is_some_and(|answers| !answers.is_empty()), "{method} {path} answers nothing");
            }
        }
    }
}
