//! A histogram of durations, with buckets around the deadlines of the gate and of the proxies in front of it.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics::HistogramFn;

/// Upper bounds of the buckets, in seconds. The gate's default deadline is 0.15, and Envoy waits 0.2.
const ENDS: [f64; 14] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.125, 0.15, 0.175, 0.2, 0.5, 1.0, 5.0, 15.0];

/// The number of durations in each bucket, and their sum.
#[derive(Debug, Default)]
pub(super) struct DurationHistogram {
    buckets: [AtomicU64; ENDS.len() + 1],
    microseconds: AtomicU64,
}

impl HistogramFn for DurationHistogram {
    fn record(&self, seconds: f64) {
        let bucket = ENDS.iter().position(|end| seconds <= *end).unwrap_or(ENDS.len());
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.microseconds.fetch_add((seconds * 1e6) as u64, Ordering::Relaxed);
    }
}

impl DurationHistogram {
    /// Renders the series in Prometheus's text format. `labels` are the histogram's labels without braces.
    pub(super) fn render(&self, name: &str, labels: &str) -> String {
        let (mut text, mut total) = (String::new(), 0);
        let ends = ENDS.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
        let comma = if labels.is_empty() { "" } else { "," };
        for (bucket, end) in self.buckets.iter().zip(ends) {
            total += bucket.load(Ordering::Relaxed);
            let _ = writeln!(text, "{name}_bucket{{{labels}{comma}le=\"{end}\"}} {total}");
        }
        let seconds = self.microseconds.load(Ordering::Relaxed) as f64 / 1e6;
        let _ = writeln!(text, "{name}_sum{{{labels}}} {seconds}\n{name}_count{{{labels}}} {total}");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_counts_all_that_took_at_most_its_time() {
        let times = DurationHistogram::default();
        for seconds in [0.0005, 0.15, 0.150_001, 20.0] {
            times.record(seconds);
        }
        let text = times.render("t", "route=\"gate\"");
        for line in [
            "t_bucket{route=\"gate\",le=\"0.001\"} 1",
            "t_bucket{route=\"gate\",le=\"0.125\"} 1",
            "t_bucket{route=\"gate\",le=\"0.15\"} 2",
            "t_bucket{route=\"gate\",le=\"0.175\"} 3",
            "t_bucket{route=\"gate\",le=\"15\"} 3",
            "t_bucket{route=\"gate\",le=\"+Inf\"} 4",
            "t_sum{route=\"gate\"} 20.300501",
            "t_count{route=\"gate\"} 4",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }
}
