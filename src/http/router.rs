//! The table of routes.

use std::sync::Arc;

use axum::Router;
use axum::routing::{any, get, post};

use super::state::AppState;
use super::{
    agents, cards, decisions, discover, fallback, gate, keys, lint, metrics, receipts, registries, system_cards,
    verdicts,
};

/// The routes that the configuration switches on, before those that are always there.
pub(super) fn router(state: Arc<AppState>) -> Router {
    let gate = any(gate::of_name);
    let gate_for_verb = any(gate::of_verb);
    let envoy = any(gate::of_envoy);
    let mut router = Router::new();
    if state.signatures.is_some() {
        router = router.route("/.well-known/jwks.json", get(keys::key_set));
    }
    if state.systems.is_some() {
        router = router
            .route("/.well-known/agent-card.json", get(system_cards::root))
            .route("/v1/agent-systems/{name}/.well-known/agent-card.json", get(system_cards::one));
    }
    if state.http.discover || clresolve_core::mutant!("discovery-for-everybody") {
        router = router.route("/v1/discover", get(discover::host));
    }
    router
        .route("/v1/verdicts", post(verdicts::batch))
        .route("/v1/verdicts/", get(verdicts::one))
        .route("/v1/verdicts/{name}", get(verdicts::one))
        .route("/v1/gate/", gate.clone())
        .route("/v1/gate/{name}", gate.clone())
        .route("/v1/gate/{name}/", gate)
        .route("/v1/gate/{name}/{verb}", gate_for_verb.clone())
        .route("/v1/gate/{name}/{verb}/", gate_for_verb)
        .route("/v1/envoy/{name}/{verb}", envoy.clone())
        .route("/v1/envoy/{name}/{verb}/", envoy.clone())
        .route("/v1/envoy/{name}/{verb}/{*ignored}", envoy)
        .route("/v1/cards/", get(cards::one))
        .route("/v1/cards/{name}", get(cards::one))
        .route("/v1/agents/{name}/.well-known/agent-card.json", get(agents::card))
        .route("/v1/decisions", post(decisions::decide))
        .route("/v1/decisions/signed", post(decisions::signed))
        .route("/v1/receipts/verify", post(receipts::verify))
        .route("/v1/lint", post(lint::card))
        .route("/v1/reasons", get(registries::reasons))
        .route("/v1/profiles", get(registries::profiles))
        .route("/livez", get(registries::livez))
        .route("/readyz", get(registries::readyz))
        .route("/metrics", get(metrics::all))
        .fallback(fallback::no_route)
        .method_not_allowed_fallback(fallback::no_method)
        .with_state(state)
}
