//! Metrics of the process. Each function below records one event.
//!
//! They use the `metrics` facade, so that a program that embeds the crate may install its own recorder. The daemon
//! installs [`installed_exposition()`], which `/metrics` renders. Without a recorder, a call costs next to nothing.
//!
//! Labels never contain foreign text: endpoints and gateways have the labels of the configuration, and all other values
//! are constants of this file.

mod exposition;
mod histogram;
mod process;
#[cfg(feature = "redis")]
mod shared;

use jiff::{SignedDuration, Timestamp};
use metrics::{Counter, Histogram, counter, gauge, histogram};

use clresolve_chain::{
    ANSWERS_REFUSED, BEACON_FINALIZED_TIME, BEACON_LIES, BEACON_OPTIMISTIC_TIME, BEACON_PARTICIPATION, BEACON_REFUSED,
    HEADS_REFUSED, RPC_LIES,
};
use clresolve_core::reason::RefusalCode;
use clresolve_core::text::UntrustedText;
use clresolve_egress::count::{UPSTREAM_REQUESTS, UPSTREAM_UP};

pub use clresolve_egress::count::{FOREIGN, RequestOutcome, UpstreamKind, count_request};
pub use exposition::{PrometheusExposition, installed_exposition};
#[cfg(feature = "redis")]
pub use shared::{SharedRead, SharedWrite, count_shared_read, count_shared_write, set_redis_up};

/// The type of a metric family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricType {
    /// A number that only increases.
    Counter,
    /// A number that increases and decreases.
    Gauge,
    /// The distribution of durations over fixed buckets.
    Histogram,
}

/// The log target of incidents, one event each (CL-68).
pub const INCIDENTS: &str = "clresolve::incident";

/// The log target of payment decisions, one event each.
pub const DECISIONS: &str = "clresolve::decision";

/// A metric family: one name, and one series for each set of labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricFamily {
    /// The name in the exposition.
    pub name: &'static str,
    /// Counter, gauge or histogram.
    pub kind: MetricType,
    /// The label names.
    pub labels: &'static [&'static str],
    /// The help text, with the label values that need an explanation.
    pub help: &'static str,
}

const HTTP_REQUESTS: &str = "clresolve_http_requests_total";
const HTTP_REFUSALS: &str = "clresolve_http_refusals_total";
const HTTP_HEADS_REFUSED: &str = "clresolve_http_heads_refused_total";
const HTTP_CONNECTIONS_REFUSED: &str = "clresolve_http_connections_refused_total";
const HTTP_SECONDS: &str = "clresolve_http_request_seconds";
const HTTP_CONNECTIONS_EVICTED: &str = "clresolve_http_connections_evicted_total";
const LOG_LINES_DROPPED: &str = "clresolve_log_lines_dropped_total";
const LOG_EVENTS_DROPPED: &str = "clresolve_log_events_dropped_total";
const HTTP_CONNECTIONS: &str = "clresolve_http_connections";
const GATE_DECISIONS: &str = "clresolve_gate_decisions_total";
const PAYMENT_DECISIONS: &str = "clresolve_payment_decisions_total";
const VERDICTS: &str = "clresolve_verdicts_total";
const RUNS_IN_FLIGHT: &str = "clresolve_runs_in_flight";
const CACHE_HITS: &str = "clresolve_cache_hits_total";
const CACHE_MISSES: &str = "clresolve_cache_misses_total";
const CACHE_EVICTIONS: &str = "clresolve_cache_evictions_total";
const CACHE_REFRESHES: &str = "clresolve_cache_refreshes_total";
const NOT_CACHED: &str = "clresolve_cache_not_stored_total";
const HOT_NAMES_IGNORED: &str = "clresolve_hot_names_ignored_total";
const REDIS_UP: &str = "clresolve_redis_up";
const SHARED_READS: &str = "clresolve_shared_reads_total";
const SHARED_WRITES: &str = "clresolve_shared_writes_total";
const GATEWAY_LIES: &str = "clresolve_gateway_lies_total";
const HEAD_TIME: &str = "clresolve_head_timestamp_seconds";
const ENDPOINT_HEAD_TIME: &str = "clresolve_endpoint_head_timestamp_seconds";
const HOT_NAMES: &str = "clresolve_hot_names";
const CONFIRMATIONS: &str = "clresolve_confirmations_total";
const EVICTION_DELAY: &str = "clresolve_eviction_delay_seconds";
const SPANS_DROPPED: &str = "clresolve_trace_spans_dropped_total";
const BUILD_INFO: &str = "clresolve_build_info";
const START_TIME: &str = "process_start_time_seconds";
const CPU_SECONDS: &str = "process_cpu_seconds_total";
const RESIDENT_MEMORY: &str = "process_resident_memory_bytes";
const VIRTUAL_MEMORY: &str = "process_virtual_memory_bytes";
const OPEN_FDS: &str = "process_open_fds";
const MAX_FDS: &str = "process_max_fds";

/// The commit of the build, if the build was given one. A packaged source has no repository to ask.
pub const COMMIT: Option<&str> = option_env!("CLRESOLVE_COMMIT");

/// Every family.
pub const FAMILIES: [MetricFamily; 46] = [
    MetricFamily {
        name: BUILD_INFO,
        kind: MetricType::Gauge,
        labels: &["version", "commit"],
        help: "The running program; always 1.",
    },
    MetricFamily {
        name: START_TIME,
        kind: MetricType::Gauge,
        labels: &[],
        help: "Start time of the daemon, in seconds of Unix time.",
    },
    MetricFamily {
        name: CPU_SECONDS,
        kind: MetricType::Counter,
        labels: &[],
        help: "User and system CPU time of the process, in seconds (Linux).",
    },
    MetricFamily {
        name: RESIDENT_MEMORY,
        kind: MetricType::Gauge,
        labels: &[],
        help: "Resident memory of the process, in bytes (Linux).",
    },
    MetricFamily {
        name: VIRTUAL_MEMORY,
        kind: MetricType::Gauge,
        labels: &[],
        help: "Virtual memory of the process, in bytes (Linux).",
    },
    MetricFamily {
        name: OPEN_FDS,
        kind: MetricType::Gauge,
        labels: &[],
        help: "Open file descriptors of the process (Linux).",
    },
    MetricFamily {
        name: MAX_FDS,
        kind: MetricType::Gauge,
        labels: &[],
        help: "Maximum number of open file descriptors, the soft limit (Linux).",
    },
    MetricFamily {
        name: HTTP_REQUESTS,
        kind: MetricType::Counter,
        labels: &["route", "class"],
        help: "Requests answered, by route and status class (2xx).",
    },
    MetricFamily {
        name: HTTP_SECONDS,
        kind: MetricType::Histogram,
        labels: &["route"],
        help: "Seconds from the head of a request to the head of its response.",
    },
    MetricFamily {
        name: HTTP_REFUSALS,
        kind: MetricType::Counter,
        labels: &["code"],
        help: "Refused requests outside the gate, and refused names of batches, by reason code.",
    },
    MetricFamily {
        name: HTTP_HEADS_REFUSED,
        kind: MetricType::Counter,
        labels: &[],
        help: "Requests refused before routing because their head was malformed or too large.",
    },
    MetricFamily {
        name: HTTP_CONNECTIONS_REFUSED,
        kind: MetricType::Counter,
        labels: &[],
        help: "Connections closed at once because their client had too many.",
    },
    MetricFamily {
        name: HTTP_CONNECTIONS_EVICTED,
        kind: MetricType::Counter,
        labels: &[],
        help: "Connections closed while they waited for their client, to make room for new ones.",
    },
    MetricFamily {
        name: LOG_LINES_DROPPED,
        kind: MetricType::Counter,
        labels: &[],
        help: "Log lines dropped because standard error was blocked.",
    },
    MetricFamily {
        name: LOG_EVENTS_DROPPED,
        kind: MetricType::Counter,
        labels: &["target"],
        help: "Incidents and payment decisions missing from the log because standard error was blocked.",
    },
    MetricFamily {
        name: SPANS_DROPPED,
        kind: MetricType::Counter,
        labels: &["why"],
        help: "Trace spans dropped: queue (full) or collector (not accepted).",
    },
    MetricFamily { name: HTTP_CONNECTIONS, kind: MetricType::Gauge, labels: &[], help: "Open connections." },
    MetricFamily {
        name: GATE_DECISIONS,
        kind: MetricType::Counter,
        labels: &["code"],
        help: "Decisions of the gate: allow, or the reason code of the denial.",
    },
    MetricFamily {
        name: PAYMENT_DECISIONS,
        kind: MetricType::Counter,
        labels: &["decision"],
        help: "Decisions about payments: allow, deny or undecided.",
    },
    MetricFamily {
        name: VERDICTS,
        kind: MetricType::Counter,
        labels: &["state"],
        help: "Verdicts of finished resolutions, by state.",
    },
    MetricFamily { name: RUNS_IN_FLIGHT, kind: MetricType::Gauge, labels: &[], help: "Resolutions in progress." },
    MetricFamily {
        name: CACHE_HITS,
        kind: MetricType::Counter,
        labels: &["pool"],
        help: "Questions answered from the cache; pool stale counts expired verdicts that still described a name.",
    },
    MetricFamily {
        name: CACHE_MISSES,
        kind: MetricType::Counter,
        labels: &["cache"],
        help: "Questions that the cache could not answer.",
    },
    MetricFamily {
        name: CACHE_EVICTIONS,
        kind: MetricType::Counter,
        labels: &["pool", "cause"],
        help: "Cache entries removed: expired, size (pool full) or changed (on chain).",
    },
    MetricFamily {
        name: CACHE_REFRESHES,
        kind: MetricType::Counter,
        labels: &["state"],
        help: "Refreshes of trusted verdicts before they expired, by resulting state.",
    },
    MetricFamily {
        name: NOT_CACHED,
        kind: MetricType::Counter,
        labels: &["why"],
        help: "Verdicts not cached: undecided (only the failure is kept), changed (undecided, and the records changed, so the trusted verdict was removed), too-large, overtaken (evicted during the resolution), invalid-name.",
    },
    MetricFamily {
        name: HOT_NAMES_IGNORED,
        kind: MetricType::Counter,
        labels: &[],
        help: "Invalid lines in the file of hot names.",
    },
    MetricFamily {
        name: UPSTREAM_REQUESTS,
        kind: MetricType::Counter,
        labels: &["kind", "endpoint", "outcome"],
        help: "Outbound requests, by kind, endpoint label (foreign: a host that a name chose) and outcome.",
    },
    MetricFamily {
        name: UPSTREAM_UP,
        kind: MetricType::Gauge,
        labels: &["kind", "endpoint"],
        help: "Whether the configured upstream answered the latest request (1) or not (0).",
    },
    MetricFamily {
        name: REDIS_UP,
        kind: MetricType::Gauge,
        labels: &[],
        help: "Whether Redis answered the latest command (1) or not (0).",
    },
    MetricFamily {
        name: SHARED_READS,
        kind: MetricType::Counter,
        labels: &["outcome"],
        help: "Reads of shared evidence, by outcome.",
    },
    MetricFamily {
        name: SHARED_WRITES,
        kind: MetricType::Counter,
        labels: &["outcome"],
        help: "Writes of shared evidence, by outcome.",
    },
    MetricFamily {
        name: GATEWAY_LIES,
        kind: MetricType::Counter,
        labels: &["gateway"],
        help: "Wrong blocks sent by an IPFS gateway.",
    },
    MetricFamily {
        name: HEAD_TIME,
        kind: MetricType::Gauge,
        labels: &[],
        help: "Timestamp of the head, the newest block that enough operators report, in seconds of Unix time. It does not advance while no name is hot.",
    },
    MetricFamily {
        name: ENDPOINT_HEAD_TIME,
        kind: MetricType::Gauge,
        labels: &["endpoint"],
        help: "Timestamp of the newest block that the endpoint reported, in seconds of Unix time.",
    },
    MetricFamily {
        name: HOT_NAMES,
        kind: MetricType::Gauge,
        labels: &["state"],
        help: "Hot names with a trusted verdict, by its state at the newest head (confirmed or unconfirmed).",
    },
    MetricFamily {
        name: CONFIRMATIONS,
        kind: MetricType::Counter,
        labels: &["outcome"],
        help: "Readings of names at a head: same, changed, or failed (too few endpoints agreed in time).",
    },
    MetricFamily {
        name: EVICTION_DELAY,
        kind: MetricType::Histogram,
        labels: &[],
        help: "Seconds from the timestamp of a block to the eviction of a name that it changed.",
    },
    MetricFamily {
        name: HEADS_REFUSED,
        kind: MetricType::Counter,
        labels: &["endpoint", "why"],
        help: "Newest blocks rejected because they were too old or ahead of the clock, and those far below the endpoint's previous one (backwards).",
    },
    MetricFamily {
        name: ANSWERS_REFUSED,
        kind: MetricType::Counter,
        labels: &["endpoint", "why"],
        help: "Answers rejected because they were about another chain or another block than the requested one (wrong-chain or other-block).",
    },
    MetricFamily {
        name: RPC_LIES,
        kind: MetricType::Counter,
        labels: &["endpoint"],
        help: "Answers contradicted by a proof or by other endpoints.",
    },
    MetricFamily {
        name: BEACON_FINALIZED_TIME,
        kind: MetricType::Gauge,
        labels: &[],
        help: "Slot time of the finalized header that the light client verified, in seconds of Unix time.",
    },
    MetricFamily {
        name: BEACON_OPTIMISTIC_TIME,
        kind: MetricType::Gauge,
        labels: &[],
        help: "Slot time of the newest header that the light client verified, in seconds of Unix time.",
    },
    MetricFamily {
        name: BEACON_PARTICIPATION,
        kind: MetricType::Gauge,
        labels: &[],
        help: "Share of the sync committee that signed the last verified update, from 0 to 1.",
    },
    MetricFamily {
        name: BEACON_REFUSED,
        kind: MetricType::Counter,
        labels: &["endpoint", "why"],
        help: "Light-client data that was not used: malformed, branch or signature (false data), participation (less than two thirds signed), slot (too old, too new or nothing new), fork (unknown to this version).",
    },
    MetricFamily {
        name: BEACON_LIES,
        kind: MetricType::Counter,
        labels: &["endpoint"],
        help: "Times a beacon endpoint sent false data. For five minutes, it is then asked only if all others failed lately.",
    },
];

/// What a reading of a name at a head showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRereadOutcome {
    /// The cached verdicts still hold.
    Same,
    /// A verdict was evicted.
    Changed,
    /// Too few endpoints agreed in time.
    Failed,
}

impl NameRereadOutcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Changed => "changed",
            Self::Failed => "failed",
        }
    }
}

/// A pool of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachePoolLabel {
    /// Trusted verdicts.
    Trusted,
    /// Untrusted verdicts.
    Untrusted,
    /// Failures.
    Failures,
    /// Trusted verdicts that are no longer fresh.
    Stale,
    /// Content that was proven by its CID.
    Content,
}

/// A cache with all of its pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheLabel {
    /// The verdict cache, which has three pools.
    Verdicts,
    /// The content cache.
    Content,
}

/// Why the cache dropped an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictionCause {
    /// The entry expired.
    Expired,
    /// The pool was full.
    Size,
    /// A log from an endpoint announced a change on chain.
    Changed,
}

/// Why a verdict is not cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotCachedReason {
    /// It is undecided. The failure is cached, and an earlier verdict stays.
    Undecided,
    /// It is undecided, and the resolution saw that the records have changed. An earlier trusted verdict was dropped.
    Changed,
    /// It is larger than the whole pool.
    TooLarge,
    /// Its name was evicted during the resolution, which may have read the earlier records.
    Overtaken,
    /// It is about an invalid name, which is judged each time.
    InvalidName,
}

/// Why trace spans are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanDropReason {
    /// The queue is full.
    Queue,
    /// The collector did not accept them.
    Collector,
}

/// Records the start of the daemon.
pub fn record_daemon_start(at: Timestamp) {
    gauge!(BUILD_INFO, "version" => env!("CARGO_PKG_VERSION"), "commit" => COMMIT.unwrap_or("unknown")).set(1.0);
    gauge!(START_TIME).set(at.as_duration().as_secs_f64());
}

/// Counts responses on a route by status class (`2xx`).
pub fn request_counter(route: &'static str, class: &'static str) -> Counter {
    counter!(HTTP_REQUESTS, "route" => route, "class" => class)
}

/// The histogram of response times on a route.
pub fn request_time_histogram(route: &'static str) -> Histogram {
    histogram!(HTTP_SECONDS, "route" => route)
}

/// The API rejected a request, or a name in a batch.
pub fn count_refused_request(refusal: RefusalCode) {
    counter!(HTTP_REFUSALS, "code" => refusal.slug()).increment(1);
}

/// A request head was rejected before routing.
pub fn count_refused_request_head() {
    counter!(HTTP_HEADS_REFUSED).increment(1);
}

/// A connection was closed at once because its client had too many.
pub fn count_refused_connection() {
    counter!(HTTP_CONNECTIONS_REFUSED).increment(1);
}

/// An idle connection was closed to make room for another.
pub fn count_displaced_connection() {
    counter!(HTTP_CONNECTIONS_EVICTED).increment(1);
}

/// A log line was dropped.
pub fn count_dropped_log_line() {
    counter!(LOG_LINES_DROPPED).increment(1);
}

/// The log dropped an event of this target: [`INCIDENTS`] or [`DECISIONS`].
pub fn count_dropped_log_event(target: &'static str) {
    counter!(LOG_EVENTS_DROPPED, "target" => target).increment(1);
}

/// Spans were dropped.
pub fn count_dropped_spans(why: SpanDropReason, spans: usize) {
    let why = match why {
        SpanDropReason::Queue => "queue",
        SpanDropReason::Collector => "collector",
    };
    counter!(SPANS_DROPPED, "why" => why).increment(u64::try_from(spans).unwrap_or(u64::MAX));
}

/// Counts gate decisions by `allow` or the code of the objection.
pub fn gate_decision_counter(code: &'static str) -> Counter {
    counter!(GATE_DECISIONS, "code" => code)
}

/// A payment decision was made.
pub fn count_payment_decision(outcome: &'static str) {
    counter!(PAYMENT_DECISIONS, "decision" => outcome).increment(1);
}

/// A gateway sent a wrong block.
pub fn count_gateway_wrong_block(label: &str) {
    counter!(GATEWAY_LIES, "gateway" => label.to_owned()).increment(1);
}

/// Time of the head's block. Unlike an age, it stops when the chain stops.
pub fn set_head_block_time(time: Timestamp) {
    gauge!(HEAD_TIME).set(time.as_second() as f64);
}

/// Time of the newest block that an endpoint reported.
pub fn set_endpoint_head_time(label: &str, time: Timestamp) {
    gauge!(ENDPOINT_HEAD_TIME, "endpoint" => label.to_owned()).set(time.as_second() as f64);
}

/// Numbers of hot names that are confirmed at the newest head, and of those that are not.
pub fn set_hot_name_counts(confirmed: usize, unconfirmed: usize) {
    gauge!(HOT_NAMES, "state" => "confirmed").set(confirmed as f64);
    gauge!(HOT_NAMES, "state" => "unconfirmed").set(unconfirmed as f64);
}

/// A name was read at a head.
pub fn count_name_reread(outcome: NameRereadOutcome) {
    counter!(CONFIRMATIONS, "outcome" => outcome.as_str()).increment(1);
}

/// A name was evicted this long after the timestamp of the block that changed it.
pub fn record_eviction_delay(delay: SignedDuration) {
    histogram!(EVICTION_DELAY).record(delay.as_secs_f64().max(0.0));
}

/// A resolution ended in a verdict with this state.
pub fn count_verdict(state: &'static str) {
    counter!(VERDICTS, "state" => state).increment(1);
}

/// A cache hit.
pub fn count_cache_hit(pool: CachePoolLabel) {
    cache_hit_counter(pool).increment(1);
}

/// Counts hits of a pool. For callers to which looking up the counter would cost more than the hit itself.
pub fn cache_hit_counter(pool: CachePoolLabel) -> Counter {
    counter!(CACHE_HITS, "pool" => pool.as_str())
}

/// A cache miss.
pub fn count_cache_miss(cache: CacheLabel) {
    counter!(CACHE_MISSES, "cache" => cache.as_str()).increment(1);
}

/// The cache dropped an entry on its own.
pub fn count_cache_eviction(pool: CachePoolLabel, cause: EvictionCause) {
    counter!(CACHE_EVICTIONS, "pool" => pool.as_str(), "cause" => cause.as_str()).increment(1);
}

/// A trusted verdict was refreshed, with this state as the result.
pub fn count_cache_refresh(state: &'static str) {
    counter!(CACHE_REFRESHES, "state" => state).increment(1);
}

/// A verdict on `name` was not cached.
pub fn count_uncached_verdict(name: &str, why: NotCachedReason) {
    tracing::debug!(name = %UntrustedText::new(name), why = why.as_str(), "not cached");
    counter!(NOT_CACHED, "why" => why.as_str()).increment(1);
}

/// Invalid lines of the hot-names file were skipped.
pub fn count_ignored_hot_names(lines: usize) {
    counter!(HOT_NAMES_IGNORED).increment(u64::try_from(lines).unwrap_or(u64::MAX));
}

/// A resolution is in progress until the returned guard is dropped.
pub fn track_running_resolution() -> GaugeGuard {
    GaugeGuard::new(gauge!(RUNS_IN_FLIGHT))
}

/// A connection is open until the returned guard is dropped.
pub fn track_open_connection() -> GaugeGuard {
    GaugeGuard::new(gauge!(HTTP_CONNECTIONS))
}

/// A guard that keeps a gauge one higher until it is dropped.
#[must_use]
pub struct GaugeGuard(metrics::Gauge);

impl GaugeGuard {
    fn new(gauge: metrics::Gauge) -> Self {
        gauge.increment(1);
        Self(gauge)
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}

impl CachePoolLabel {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Untrusted => "untrusted",
            Self::Failures => "failures",
            Self::Stale => "stale",
            Self::Content => "content",
        }
    }
}

impl NotCachedReason {
    /// All variants, in the order of the family's help text.
    #[cfg(test)]
    pub const ALL: [Self; 5] = [Self::Undecided, Self::Changed, Self::TooLarge, Self::Overtaken, Self::InvalidName];

    /// The label value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Undecided => "undecided",
            Self::Changed => "changed",
            Self::TooLarge => "too-large",
            Self::Overtaken => "overtaken",
            Self::InvalidName => "invalid-name",
        }
    }
}

impl CacheLabel {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Verdicts => "verdicts",
            Self::Content => "content",
        }
    }
}

impl EvictionCause {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Size => "size",
            Self::Changed => "changed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the help text, parentheses explain the cause before them.
    #[test]
    fn the_help_names_each_cause_for_which_nothing_is_cached() {
        let help = FAMILIES.iter().find(|family| family.name == NOT_CACHED).expect("it is a family").help;
        let (_, causes) = help.strip_suffix('.').and_then(|help| help.split_once(": ")).expect("causes");
        let outside = causes.split('(').enumerate().map(|(number, part)| match part.split_once(')') {
            Some((_, rest)) if number > 0 => rest,
            _ => part,
        });
        let named = outside.collect::<String>();
        let named: Vec<&str> = named.split(',').map(str::trim).collect();
        assert_eq!(named, NotCachedReason::ALL.map(NotCachedReason::as_str));
    }
}
