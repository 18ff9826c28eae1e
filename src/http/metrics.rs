//! `/metrics`: the counts of the process as Prometheus text, and the counting of requests.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, Uri};
use axum::response::{IntoResponse as _, Response};
use metrics::Counter;

use super::answer::Noted;
use super::{Shared, gate, problem};
use crate::reason::Refusal;
use crate::telemetry::{self, Exposition};

/// The routes as they are counted, by what their paths begin with; the first that fits.
const ROUTES: [(&str, &str); 13] = [
    ("/v1/gate", "gate"),
    ("/v1/envoy", "envoy"),
    ("/v1/verdicts/", "verdict"),
    ("/v1/verdicts", "batch"),
    ("/v1/cards/", "card"),
    ("/v1/agent-systems/", "system-card"),
    ("/.well-known/agent-card.json", "root-card"),
    ("/v1/discover", "discover"),
    ("/v1/reasons", "reasons"),
    ("/v1/profiles", "profiles"),
    ("/livez", "livez"),
    ("/readyz", "readyz"),
    ("/metrics", "metrics"),
];

/// How all other paths are counted.
const NO_ROUTE: &str = "none";

/// Classes of status.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// The counters of requests, at hand: to look one up costs more than to count.
pub(super) struct Counters {
    requests: Vec<[Counter; CLASSES.len()]>,
    allowed: Counter,
    exposition: Option<Exposition>,
}

impl Counters {
    /// Counts into the recorder of the process, which is our own unless the program has another.
    pub(super) fn new() -> Self {
        let exposition = telemetry::exposition();
        let names = ROUTES.iter().map(|(_, name)| *name).chain([NO_ROUTE]);
        let requests = names.map(|route| CLASSES.map(|class| telemetry::requests(route, class))).collect();
        Self { requests, allowed: telemetry::gate_decisions("allow"), exposition }
    }

    /// Counts an answer.
    pub(super) fn count(&self, uri: &Uri, response: &Response) {
        let path = uri.path();
        let route = ROUTES.iter().position(|(start, _)| path.starts_with(start)).unwrap_or(ROUTES.len());
        let class = usize::from(response.status().as_u16() / 100).saturating_sub(1).min(CLASSES.len() - 1);
        self.requests[route][class].increment(1);
        if !gate::is_gate(path) {
            return;
        }
        match response.extensions().get::<Noted>().and_then(Noted::code) {
            _ if response.status().is_success() => self.allowed.increment(1),
            Some(code) => telemetry::gate_decisions(code).increment(1),
            None => {}
        }
    }
}

/// `GET /metrics`
pub(super) async fn all(State(shared): State<Arc<Shared>>) -> Response {
    let Some(exposition) = &shared.counters.exposition else {
        return problem::refused(Refusal::RouteUnknown, None);
    };
    let mut text = exposition.render();
    if let Some(bytes) = resident_bytes() {
        text.push_str("# HELP process_resident_memory_bytes Memory of the process.\n");
        text.push_str("# TYPE process_resident_memory_bytes gauge\n");
        text.push_str(&format!("process_resident_memory_bytes {bytes}\n"));
    }
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, HeaderValue::from_static("no-store"))], text).into_response()
}

/// Memory of this process, where the system says it as Linux does.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
