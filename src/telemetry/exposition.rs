//! The counts of this process as Prometheus text.
//!
//! The crate has its own recorder because the published one needs sixteen more crates, most of them for histograms that
//! are not used here, and does not bound the number of series.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use metrics::atomics::AtomicU64;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

use super::{FAMILIES, Family, Kind};

/// Most series. There are some hundred: routes by class, codes, and a few for each configured endpoint. A defect that
/// makes a label of foreign text must not fill the memory.
const MAX_SERIES: usize = 4096;

/// The counts, as they are printed.
#[derive(Clone, Debug, Default)]
pub struct Exposition(Arc<Series>);

type Series = RwLock<HashMap<Key, Arc<AtomicU64>>>;

/// The exposition of this process, installed at the first call; `None` where the program has a recorder of its own,
/// which then has the counts.
pub fn exposition() -> Option<Exposition> {
    static INSTALLED: OnceLock<Option<Exposition>> = OnceLock::new();
    let install = || {
        let exposition = Exposition::default();
        metrics::set_global_recorder(exposition.clone()).is_ok().then_some(exposition)
    };
    INSTALLED.get_or_init(install).clone()
}

impl Exposition {
    /// All series, sorted, in the text format 0.0.4 of Prometheus.
    pub fn render(&self) -> String {
        let mut families: BTreeMap<&str, BTreeMap<String, u64>> = BTreeMap::new();
        for (key, value) in self.0.read().unwrap_or_else(PoisonError::into_inner).iter() {
            families.entry(family(key.name())).or_default().insert(labels(key), value.load(Ordering::Relaxed));
        }
        let mut text = String::new();
        for Family { name, kind, help } in &FAMILIES {
            let Some(series) = families.get(name) else { continue };
            let word = match kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
            };
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {word}");
            for (labels, value) in series {
                let _ = match kind {
                    Kind::Counter => writeln!(text, "{name}{labels} {value}"),
                    Kind::Gauge => writeln!(text, "{name}{labels} {}", f64::from_bits(*value)),
                };
            }
        }
        text
    }

    /// The series of `key`, where it is one of ours and there is room.
    fn series(&self, key: &Key, kind: Kind) -> Option<Arc<AtomicU64>> {
        if let Some(series) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(key) {
            return Some(Arc::clone(series));
        }
        if !FAMILIES.iter().any(|family| family.name == key.name() && family.kind == kind) {
            return None;
        }
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_SERIES && !all.contains_key(key) {
            return None;
        }
        Some(Arc::clone(all.entry(key.clone()).or_default()))
    }
}

impl Recorder for Exposition {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        self.series(key, Kind::Counter).map_or_else(Counter::noop, Counter::from_arc)
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        self.series(key, Kind::Gauge).map_or_else(Gauge::noop, Gauge::from_arc)
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

/// The name in the table of families.
fn family(name: &str) -> &'static str {
    FAMILIES.iter().find(|family| family.name == name).map_or("", |family| family.name)
}

/// `{a="b",c="d"}`, or nothing.
fn labels(key: &Key) -> String {
    let quoted = |label: &metrics::Label| {
        let value = label.value().replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("{}=\"{value}\"", label.key())
    };
    let labels: Vec<String> = key.labels().map(quoted).collect();
    if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) }
}

#[cfg(test)]
mod tests {
    use super::super::{self as telemetry, Cache, Eviction, Pool, RequestOutcome, Upstream};
    use super::*;

    #[test]
    fn each_event_is_a_line_and_each_family_has_its_help() {
        let exposition = Exposition::default();
        metrics::with_local_recorder(&exposition, || {
            telemetry::upstream(Upstream::Rpc, "own-node", RequestOutcome::Ok);
            telemetry::upstream(Upstream::Rpc, "own-node", RequestOutcome::Ok);
            telemetry::upstream(Upstream::Card, telemetry::FOREIGN, RequestOutcome::of_status(503));
            telemetry::gateway_lied("a\\\"b\n");
            telemetry::verdict("trusted");
            telemetry::cache_hit(Pool::Trusted);
            telemetry::cache_miss(Cache::Content);
            telemetry::cache_evicted(Pool::Failures, Eviction::Size);
            let (_first, second) = (telemetry::run_begins(), telemetry::run_begins());
            drop(second);
            assert_eq!(
                exposition.render(),
                format!(
                    "{}# HELP clresolve_gateway_lies_total Wrong blocks, by the gateway that sent them.\n\
                     # TYPE clresolve_gateway_lies_total counter\n\
                     clresolve_gateway_lies_total{{gateway=\"a\\\\\\\"b\\n\"}} 1\n",
                    "# HELP clresolve_verdicts_total Verdicts of runs, by state.\n\
                     # TYPE clresolve_verdicts_total counter\n\
                     clresolve_verdicts_total{state=\"trusted\"} 1\n\
                     # HELP clresolve_runs_in_flight Runs under way.\n\
                     # TYPE clresolve_runs_in_flight gauge\n\
                     clresolve_runs_in_flight 1\n\
                     # HELP clresolve_cache_hits_total Answers from the cache, by pool.\n\
                     # TYPE clresolve_cache_hits_total counter\n\
                     clresolve_cache_hits_total{pool=\"trusted\"} 1\n\
                     # HELP clresolve_cache_misses_total Questions that the cache could not answer, by cache.\n\
                     # TYPE clresolve_cache_misses_total counter\n\
                     clresolve_cache_misses_total{cache=\"content\"} 1\n\
                     # HELP clresolve_cache_evictions_total Entries that the cache dropped, by pool and cause: expired, or size (no room left).\n\
                     # TYPE clresolve_cache_evictions_total counter\n\
                     clresolve_cache_evictions_total{pool=\"failures\",cause=\"size\"} 1\n\
                     # HELP clresolve_upstream_requests_total Outbound requests, by kind, label of the endpoint (foreign: chosen by a name) and outcome.\n\
                     # TYPE clresolve_upstream_requests_total counter\n\
                     clresolve_upstream_requests_total{kind=\"card\",endpoint=\"foreign\",outcome=\"throttled\"} 1\n\
                     clresolve_upstream_requests_total{kind=\"rpc\",endpoint=\"own-node\",outcome=\"ok\"} 2\n",
                )
            );
        });
    }

    #[test]
    fn the_number_of_series_is_bounded_and_other_crates_add_none() {
        let exposition = Exposition::default();
        metrics::with_local_recorder(&exposition, || {
            metrics::counter!("another_crates_total").increment(1);
            metrics::gauge!("clresolve_http_requests_total").increment(1);
            assert_eq!(exposition.render(), "");
            for number in 0..MAX_SERIES + 10 {
                telemetry::gateway_lied(&number.to_string());
            }
        });
        assert_eq!(exposition.render().lines().count(), MAX_SERIES + 2);
    }
}
