//! Traces of resolutions, sent to the operator's collector as OTLP over HTTP: a span for the resolution, and a child
//! span for each step.
//!
//! The message uses OTLP's JSON encoding and the operator's outbound connection. Nothing waits for it: spans that the
//! collector does not accept are dropped and counted.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use clresolve_core::state::TrustState;
use clresolve_resolver::config::Config;
use clresolve_resolver::fetch::{EgressRequest, FetchError, SingleOriginClient, SystemAddressLookup, deadline_in};
use clresolve_resolver::resolve::{self, ExpectedWorkload, ResolutionTrace, Resolver, SetupError, StepSpan};
use clresolve_resolver::telemetry::{self, SpanDropReason};
use clresolve_verdict::verdict::StepStatus;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;
use url::Url;

const PATH: &str = "/v1/traces";

/// Maximum number of traces in one message: a few hundred KiB.
const MAX_TRACES: usize = 64;

const LIMIT: Duration = Duration::from_secs(5);

/// OTLP's span kind "internal".
const INTERNAL: u8 = 1;

/// OTLP's status code "error".
const ERROR: u8 = 2;

pub(crate) struct TraceExporter {
    client: SingleOriginClient,
    url: Url,
    world: String,
    traces: Receiver<ResolutionTrace>,
    /// Whether the collector accepted the latest message. Only changes are logged.
    is_up: bool,
}

impl TraceExporter {
    /// Opens the exporter for the configured collector. `None` if none is configured, or if the resolver already has an
    /// exporter.
    ///
    /// # Errors
    /// [`SetupError`] if the outbound connection cannot be set up.
    pub(crate) fn open(config: &Config, resolver: &Resolver) -> Result<Option<Self>, SetupError> {
        let Some(base) = &config.telemetry.otlp else { return Ok(None) };
        let invalid = |detail: String| SetupError::Invalid { what: "telemetry.otlp".to_owned(), detail };
        let url: Url = format!("{base}{PATH}").parse().map_err(|_| invalid("no URL".to_owned()))?;
        let egress = resolve::configured_egress(config, Arc::new(SystemAddressLookup), ExpectedWorkload::Questions)?;
        let client = egress.single_origin_client(&url).map_err(|error| invalid(error.to_string()))?;
        let world = config.chain.world.clone();
        Ok(resolver.open_trace_queue().map(|traces| Self { client, url, world, traces, is_up: true }))
    }

    /// Exports until dropped. Traces that are still queued are then lost.
    pub(crate) async fn export_traces(mut self) -> Infallible {
        let mut traces = Vec::with_capacity(MAX_TRACES);
        loop {
            if self.traces.recv_many(&mut traces, MAX_TRACES).await == 0 {
                return pending().await;
            }
            let is_up = self.send_traces(&traces).await.is_ok_and(|status| (200..300).contains(&status));
            if !is_up {
                let spans = traces.iter().map(ResolutionTrace::span_count).sum();
                telemetry::count_dropped_spans(SpanDropReason::Collector, spans);
            }
            if self.is_up && !is_up {
                tracing::warn!("the collector in [telemetry] accepts no traces; they are dropped and counted");
            }
            self.is_up = is_up;
            traces.clear();
        }
    }

    async fn send_traces(&self, traces: &[ResolutionTrace]) -> Result<u16, FetchError> {
        let body = export_request(&self.world, traces).to_string();
        let reply = self.client.send(&self.url, EgressRequest::post_json(body.into()), deadline_in(LIMIT)).await?;
        Ok(reply.status())
    }
}

/// An `ExportTraceServiceRequest` in JSON.
fn export_request(world: &str, traces: &[ResolutionTrace]) -> Value {
    let spans: Vec<Value> = traces.iter().flat_map(trace_spans).collect();
    let resource = [
        text_attribute("service.name", "clresolve"),
        text_attribute("service.version", env!("CARGO_PKG_VERSION")),
        text_attribute("clresolve.world", world),
    ];
    json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{"scope": {"name": "clresolve"}, "spans": spans}],
    }]})
}

/// The span of a run, then those of its steps.
fn trace_spans(trace: &ResolutionTrace) -> Vec<Value> {
    let (trace_id, run) = (random_id::<16>(), random_id::<8>());
    let codes: Vec<Value> = trace.codes.iter().map(|code| json!({"stringValue": code.slug()})).collect();
    let mut own = span_json("resolve", &trace_id, &run, trace.began, trace.took);
    if trace.state == TrustState::Indeterminate {
        own["status"] = json!({"code": ERROR});
    }
    own["attributes"] = json!([
        text_attribute("clresolve.name", &trace.name),
        text_attribute("clresolve.state", trace.state.as_str()),
        {"key": "clresolve.codes", "value": {"arrayValue": {"values": codes}}},
        text_attribute("clresolve.profile", &trace.profile),
        text_attribute("clresolve.verdict", &trace.verdict),
    ]);
    let step = |step: &StepSpan| {
        let mut below =
            span_json(&step.step.to_string(), &trace_id, &random_id::<8>(), trace.began + step.after, step.took);
        if step.status == StepStatus::Unknown {
            below["status"] = json!({"code": ERROR});
        }
        below["parentSpanId"] = run.clone().into();
        below["attributes"] = json!([text_attribute("clresolve.step.status", otlp_status(step.status))]);
        below
    };
    std::iter::once(own).chain(trace.steps.iter().map(step)).collect()
}

fn span_json(name: &str, trace: &str, id: &str, began: Timestamp, took: Duration) -> Value {
    json!({
        "traceId": trace,
        "spanId": id,
        "name": name,
        "kind": INTERNAL,
        "startTimeUnixNano": began.as_nanosecond().to_string(),
        "endTimeUnixNano": (began + took).as_nanosecond().to_string(),
    })
}

fn text_attribute(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

const fn otlp_status(status: StepStatus) -> &'static str {
    match status {
        StepStatus::Pass => "pass",
        StepStatus::Fail => "fail",
        StepStatus::Unknown => "unknown",
        StepStatus::Skip => "skip",
    }
}

/// A random identifier of `N` bytes, in hex.
fn random_id<const N: usize>() -> String {
    let mut bytes = [0; N];
    // Without randomness the identifiers are not unique, but no answer depends on them.
    let _ = getrandom::fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
