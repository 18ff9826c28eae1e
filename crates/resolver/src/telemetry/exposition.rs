//! The metrics of this process in Prometheus's text format.
//!
//! The crate has its own recorder because the published one requires sixteen more crates, most of them for unused kinds
//! of histograms, and does not limit the number of series.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use metrics::atomics::AtomicU64;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

use clresolve_egress::count::UPSTREAM_UP;

use super::histogram::DurationHistogram;
use super::process;
use super::{FAMILIES, MetricFamily, MetricType};

/// Maximum number of series. There are a few hundred: routes by status class, codes, and a few per configured endpoint.
/// The limit protects the memory if a bug ever puts foreign text into a label.
const MAX_SERIES: usize = 4096;

/// The recorded metrics.
#[derive(Clone, Debug, Default)]
pub struct PrometheusExposition(Arc<MetricSeriesStore>);

#[derive(Debug, Default)]
struct MetricSeriesStore {
    numbers: RwLock<HashMap<Key, Arc<AtomicU64>>>,
    times: RwLock<HashMap<Key, Arc<DurationHistogram>>>,
}

/// The exposition of this process, installed on the first call. `None` if the program has installed its own recorder,
/// which then receives the metrics.
pub fn installed_exposition() -> Option<PrometheusExposition> {
    static INSTALLED: OnceLock<Option<PrometheusExposition>> = OnceLock::new();
    let install = || {
        let exposition = PrometheusExposition::default();
        metrics::set_global_recorder(exposition.clone()).is_ok().then_some(exposition)
    };
    INSTALLED.get_or_init(install).clone()
}

impl PrometheusExposition {
    /// All series, sorted, in Prometheus's text format 0.0.4.
    #[cfg(any(test, feature = "unstable"))]
    pub fn render(&self) -> String {
        self.render_if(|_| true)
    }

    /// All series, sorted, in Prometheus's text format 0.0.4, followed by those of the process. Omits gauges of
    /// endpoints that are not in `configured`: after a reload, the last state of a removed endpoint is obsolete.
    pub fn render_for_endpoints(&self, configured: &BTreeSet<String>) -> String {
        let gauges = || FAMILIES.iter().filter(|family| family.kind == MetricType::Gauge);
        let recorded = self.render_if(|key| {
            let endpoint = key.labels().find(|label| label.key() == "endpoint");
            let is_gone = endpoint.is_some_and(|endpoint| !configured.contains(endpoint.value()));
            !(is_gone && gauges().any(|family| family.name == key.name()))
        });
        recorded + &process::render_process_metrics()
    }

    fn render_if(&self, is_shown: impl Fn(&Key) -> bool) -> String {
        let mut families: BTreeMap<&str, BTreeMap<String, u64>> = BTreeMap::new();
        let numbers = self.0.numbers.read().unwrap_or_else(PoisonError::into_inner);
        for (key, value) in numbers.iter().filter(|(key, _)| is_shown(key)) {
            families
                .entry(known_family_name(key.name()))
                .or_default()
                .insert(format_labels(key), value.load(Ordering::Relaxed));
        }
        let mut text = String::new();
        let times = self.rendered_histograms();
        for MetricFamily { name, kind, help, .. } in &FAMILIES {
            if let Some(series) = times.get(name) {
                let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} histogram\n{series}");
            }
            let Some(series) = families.get(name) else { continue };
            let word = if *kind == MetricType::Gauge { "gauge" } else { "counter" };
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {word}");
            for (labels, value) in series {
                let _ = match kind {
                    MetricType::Gauge => writeln!(text, "{name}{labels} {}", f64::from_bits(*value)),
                    MetricType::Counter | MetricType::Histogram => writeln!(text, "{name}{labels} {value}"),
                };
            }
        }
        text
    }

    /// The upstreams whose latest request failed, as sorted pairs of kind and label.
    pub fn failing_upstreams(&self) -> BTreeSet<(String, String)> {
        let series = self.0.numbers.read().unwrap_or_else(PoisonError::into_inner);
        let is_down = |value: &AtomicU64| f64::from_bits(value.load(Ordering::Relaxed)) == 0.0;
        let down = series.iter().filter(|(key, value)| key.name() == UPSTREAM_UP && is_down(value));
        let of = |key: &Key, name: &str| {
            key.labels().find(|label| label.key() == name).map(|label| label.value().to_owned()).unwrap_or_default()
        };
        down.map(|(key, _)| (of(key, "kind"), of(key, "endpoint"))).collect()
    }

    /// The rendered histograms, by family.
    fn rendered_histograms(&self) -> HashMap<&'static str, String> {
        let mut families: HashMap<&str, BTreeMap<String, String>> = HashMap::new();
        for (key, times) in self.0.times.read().unwrap_or_else(PoisonError::into_inner).iter() {
            let (name, labels) = (known_family_name(key.name()), format_labels(key));
            let text = times.render(name, labels.trim_matches(['{', '}']));
            families.entry(name).or_default().insert(labels, text);
        }
        families.into_iter().map(|(name, series)| (name, series.into_values().collect())).collect()
    }

    /// The series of `key`, if its family is known and the limit permits it.
    fn find_or_add_series(&self, key: &Key, kind: MetricType) -> Option<Arc<AtomicU64>> {
        if let Some(series) = self.0.numbers.read().unwrap_or_else(PoisonError::into_inner).get(key) {
            return Some(Arc::clone(series));
        }
        if !is_known_family(key, kind) {
            return None;
        }
        let mut all = self.0.numbers.write().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_SERIES && !all.contains_key(key) {
            return None;
        }
        Some(Arc::clone(all.entry(key.clone()).or_default()))
    }
}

impl Recorder for PrometheusExposition {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        self.find_or_add_series(key, MetricType::Counter).map_or_else(Counter::noop, Counter::from_arc)
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        self.find_or_add_series(key, MetricType::Gauge).map_or_else(Gauge::noop, Gauge::from_arc)
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        if !is_known_family(key, MetricType::Histogram) {
            return Histogram::noop();
        }
        let mut all = self.0.times.write().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_SERIES && !all.contains_key(key) {
            return Histogram::noop();
        }
        Histogram::from_arc(Arc::clone(all.entry(key.clone()).or_default()))
    }
}

fn is_known_family(key: &Key, kind: MetricType) -> bool {
    FAMILIES.iter().any(|family| family.name == key.name() && family.kind == kind)
}

/// The name in the table of families.
fn known_family_name(name: &str) -> &'static str {
    FAMILIES.iter().find(|family| family.name == name).map_or("", |family| family.name)
}

/// `{a="b",c="d"}`, or an empty text.
fn format_labels(key: &Key) -> String {
    let quoted = |label: &metrics::Label| {
        let value = label.value().replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("{}=\"{value}\"", label.key())
    };
    let labels: Vec<String> = key.labels().map(quoted).collect();
    if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::super::{self as telemetry, CacheLabel, CachePoolLabel, EvictionCause, RequestOutcome, UpstreamKind};
    use super::*;

    #[test]
    fn each_event_is_a_line_and_each_family_has_its_help() {
        let exposition = PrometheusExposition::default();
        metrics::with_local_recorder(&exposition, || {
            telemetry::count_request(UpstreamKind::Rpc, "own-node", RequestOutcome::Ok);
            telemetry::count_request(UpstreamKind::Rpc, "own-node", RequestOutcome::Ok);
            telemetry::count_request(UpstreamKind::Card, telemetry::FOREIGN, RequestOutcome::from_status(503));
            telemetry::count_gateway_wrong_block("a\\\"b\n");
            telemetry::count_verdict("trusted");
            telemetry::count_cache_hit(CachePoolLabel::Trusted);
            telemetry::count_cache_miss(CacheLabel::Content);
            telemetry::count_cache_eviction(CachePoolLabel::Failures, EvictionCause::Size);
            let (_first, second) = (telemetry::track_running_resolution(), telemetry::track_running_resolution());
            drop(second);
            assert_eq!(
                exposition.render(),
                format!(
                    "{}# HELP clresolve_gateway_lies_total Wrong blocks sent by an IPFS gateway.\n\
                     # TYPE clresolve_gateway_lies_total counter\n\
                     clresolve_gateway_lies_total{{gateway=\"a\\\\\\\"b\\n\"}} 1\n",
                    "# HELP clresolve_verdicts_total Verdicts of finished resolutions, by state.\n\
                     # TYPE clresolve_verdicts_total counter\n\
                     clresolve_verdicts_total{state=\"trusted\"} 1\n\
                     # HELP clresolve_runs_in_flight Resolutions in progress.\n\
                     # TYPE clresolve_runs_in_flight gauge\n\
                     clresolve_runs_in_flight 1\n\
                     # HELP clresolve_cache_hits_total Questions answered from the cache; pool stale counts expired verdicts that still described a name.\n\
                     # TYPE clresolve_cache_hits_total counter\n\
                     clresolve_cache_hits_total{pool=\"trusted\"} 1\n\
                     # HELP clresolve_cache_misses_total Questions that the cache could not answer.\n\
                     # TYPE clresolve_cache_misses_total counter\n\
                     clresolve_cache_misses_total{cache=\"content\"} 1\n\
                     # HELP clresolve_cache_evictions_total Cache entries removed: expired, size (pool full) or changed (on chain).\n\
                     # TYPE clresolve_cache_evictions_total counter\n\
                     clresolve_cache_evictions_total{pool=\"failures\",cause=\"size\"} 1\n\
                     # HELP clresolve_upstream_requests_total Outbound requests, by kind, endpoint label (foreign: a host that a name chose) and outcome.\n\
                     # TYPE clresolve_upstream_requests_total counter\n\
                     clresolve_upstream_requests_total{kind=\"card\",endpoint=\"foreign\",outcome=\"throttled\"} 1\n\
                     clresolve_upstream_requests_total{kind=\"rpc\",endpoint=\"own-node\",outcome=\"ok\"} 2\n\
                     # HELP clresolve_upstream_up Whether the configured upstream answered the latest request (1) or not (0).\n\
                     # TYPE clresolve_upstream_up gauge\n\
                     clresolve_upstream_up{kind=\"rpc\",endpoint=\"own-node\"} 1\n",
                )
            );
        });
    }

    #[test]
    fn an_upstream_is_down_until_it_answers_again() {
        let exposition = PrometheusExposition::default();
        let down =
            || exposition.failing_upstreams().into_iter().map(|(kind, label)| kind + " " + &label).collect::<Vec<_>>();
        metrics::with_local_recorder(&exposition, || {
            telemetry::count_request(UpstreamKind::Gateway, "kubo", RequestOutcome::Timeout);
            telemetry::count_request(UpstreamKind::Rpc, "node", RequestOutcome::Failed);
            telemetry::count_request(UpstreamKind::Card, telemetry::FOREIGN, RequestOutcome::Failed);
            assert_eq!(down(), ["gateway kubo", "rpc node"]);
            telemetry::count_request(UpstreamKind::Rpc, "node", RequestOutcome::Ok);
            telemetry::count_request(UpstreamKind::Rpc, "node", RequestOutcome::Forbidden);
            assert_eq!(down(), ["gateway kubo"]);
        });
    }

    #[test]
    fn endpoint_that_was_removed_has_counters_and_no_gauges() {
        let exposition = PrometheusExposition::default();
        metrics::with_local_recorder(&exposition, || {
            for label in ["kept", "removed"] {
                telemetry::set_endpoint_head_time(label, Timestamp::UNIX_EPOCH);
                telemetry::count_request(UpstreamKind::Rpc, label, RequestOutcome::Timeout);
            }
        });
        let text = exposition.render_for_endpoints(&BTreeSet::from(["kept".to_owned()]));
        let of = |label: &str| -> Vec<&str> {
            let named = format!("endpoint=\"{label}\"");
            text.lines().filter(|line| line.contains(&named)).map(|line| line.split('{').next().unwrap()).collect()
        };
        let gauges = ["clresolve_upstream_up", "clresolve_endpoint_head_timestamp_seconds"];
        assert!(gauges.iter().all(|gauge| of("kept").contains(gauge)), "{text}");
        assert_eq!(of("removed"), ["clresolve_upstream_requests_total"]);
    }

    #[test]
    fn times_are_a_histogram() {
        let exposition = PrometheusExposition::default();
        metrics::with_local_recorder(&exposition, || {
            telemetry::request_time_histogram("gate").record(0.14);
            metrics::histogram!("clresolve_upstream_up").record(1.0);
        });
        let text = exposition.render();
        assert!(text.starts_with("# HELP clresolve_http_request_seconds Seconds from"), "{text}");
        assert!(text.contains("clresolve_http_request_seconds_bucket{route=\"gate\",le=\"0.15\"} 1\n"), "{text}");
        assert_eq!(text.lines().count(), 2 + 15 + 2);
    }

    #[test]
    fn the_number_of_series_is_bounded_and_other_crates_add_none() {
        let exposition = PrometheusExposition::default();
        metrics::with_local_recorder(&exposition, || {
            metrics::counter!("another_crates_total").increment(1);
            metrics::gauge!("clresolve_http_requests_total").increment(1);
            assert_eq!(exposition.render(), "");
            for number in 0..MAX_SERIES + 10 {
                telemetry::count_gateway_wrong_block(&number.to_string());
            }
        });
        assert_eq!(exposition.render().lines().count(), MAX_SERIES + 2);
    }
}
