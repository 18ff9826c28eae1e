//! Counts requests, refusals and gate decisions.

use std::time::Duration;

use axum::response::Response;
use clresolve_resolver::telemetry::{self, PrometheusExposition};
use metrics::{Counter, Histogram};

use super::api_kind::RequestedApi;
use super::log::ResponseLogFields;

/// The label of each route, by the prefix of its path. The first match counts.
const ROUTES: [(&str, &str); 25] = [
    ("/v1/gate", "gate"),
    ("/v1/envoy", "envoy"),
    ("/v1/verdicts/", "verdict"),
    ("/v1/verdicts", "batch"),
    ("/v1/cards/", "card"),
    ("/v1/agents/", "agent"),
    ("/v1/events", "events"),
    ("/v1/probes", "probe"),
    ("/v1/checks", "check"),
    ("/v1/decisions", "decision"),
    ("/v1/requests/check", "request"),
    ("/v1/receipts/verify", "receipt"),
    ("/v1/lint", "lint"),
    ("/mcp", "mcp"),
    ("/v1/agent-systems/", "system-card"),
    ("/.well-known/agent-card.json", "root-card"),
    ("/.well-known/jwks.json", "keys"),
    ("/v1/discover", "discover"),
    ("/v1/reasons", "reasons"),
    ("/v1/profiles", "profiles"),
    ("/openapi.json", "openapi"),
    ("/livez", "livez"),
    ("/readyz", "readyz"),
    ("/metrics", "metrics"),
    ("/explorer.", "explorer"),
];

const NO_ROUTE: &str = "none";

const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Handles of the request counters. They are looked up once, since a lookup costs more than an increment.
pub(super) struct RequestCounters {
    requests: Vec<[Counter; CLASSES.len()]>,
    times: Vec<Histogram>,
    allowed: Counter,
    pub(super) exposition: Option<PrometheusExposition>,
}

impl RequestCounters {
    /// Registers the counters with the recorder of the process: this crate's, unless the program has installed another.
    pub(super) fn new() -> Self {
        let exposition = telemetry::installed_exposition();
        let names = || ROUTES.iter().map(|(_, name)| *name).chain([NO_ROUTE]);
        let requests = names().map(|route| CLASSES.map(|class| telemetry::request_counter(route, class))).collect();
        let times = names().map(telemetry::request_time_histogram).collect();
        Self { requests, times, allowed: telemetry::gate_decision_counter("allow"), exposition }
    }

    /// Counts a response and the time it took to produce.
    pub(super) fn count_response(&self, path: &str, api: RequestedApi, response: &Response, time: Duration) {
        let route = route_index(path).unwrap_or(ROUTES.len());
        let class = usize::from(response.status().as_u16() / 100).saturating_sub(1).min(CLASSES.len() - 1);
        self.requests[route][class].increment(1);
        self.times[route].record(time);
        let entry = response.extensions().get::<ResponseLogFields>();
        if matches!(api, RequestedApi::Health | RequestedApi::Report) {
            if let Some(refusal) = entry.and_then(ResponseLogFields::refusal) {
                telemetry::count_refused_request(refusal);
            }
            return;
        }
        match entry.and_then(ResponseLogFields::code) {
            _ if response.status().is_success() => self.allowed.increment(1),
            Some(code) => telemetry::gate_decision_counter(code).increment(1),
            None => {}
        }
    }
}

/// The index in [`ROUTES`] of the route of a path.
fn route_index(path: &str) -> Option<usize> {
    // The explorer's page and its assets share one label.
    let path = if path == "/" { "/explorer." } else { path };
    ROUTES.iter().position(|(start, _)| path.starts_with(start))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::http::router::{self, tests::with_every_route};
    use clresolve_resolver::sandbox::Sandbox;

    #[tokio::test]
    async fn every_route_is_counted_under_a_name_and_every_name_has_a_route() {
        let sandbox = Sandbox::start().await.expect("it starts");
        let paths = router::enabled_paths(&with_every_route(&sandbox).await);
        let uncounted: Vec<_> = paths.iter().filter(|path| route_index(path).is_none()).collect();
        assert!(uncounted.is_empty(), "counted as {NO_ROUTE}: {uncounted:?}");
        let counted: BTreeSet<usize> = paths.iter().filter_map(|path| route_index(path)).collect();
        assert!((0..ROUTES.len()).eq(counted), "a name without a route");
    }
}
