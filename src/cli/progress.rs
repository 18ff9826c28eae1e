//! An animated progress line, only on a terminal.

use std::fmt::Write;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

use super::notice;

const TICK: Duration = Duration::from_millis(120);

/// The line. Dropping it removes it.
pub(super) struct ProgressLine(ProgressBar);

impl ProgressLine {
    /// Shows `message`. Does nothing if standard error is not a terminal, or with `--quiet`.
    pub(super) fn start(message: String) -> Self {
        if notice::is_quiet() {
            return Self(ProgressBar::hidden());
        }
        let bar = ProgressBar::new_spinner().with_message(message);
        if !bar.is_hidden() {
            bar.enable_steady_tick(TICK);
        }
        Self(bar)
    }

    /// Shows a progress bar with the rate and the remaining time, or only a counter if `total` is unknown. Does nothing
    /// if standard error is not a terminal, or with `--quiet`.
    pub(super) fn start_counter(total: Option<u64>) -> Self {
        if notice::is_quiet() {
            return Self(ProgressBar::hidden());
        }
        let (bar, template) = match total {
            Some(total) => (ProgressBar::new(total), "{wide_bar} {pos}/{len} {pace} {msg}"),
            None => (ProgressBar::new_spinner(), "{spinner} {pos} {pace} {msg}"),
        };
        if !bar.is_hidden() {
            let style = ProgressStyle::with_template(template).expect("the templates are well-formed");
            bar.set_style(style.with_key("pace", |state: &ProgressState, line: &mut dyn Write| {
                let left = state.len().map(|total| (total.saturating_sub(state.pos()), state.eta()));
                // Only the display would be incomplete.
                let _ = line.write_str(&format_rate(state.per_sec(), left));
            }));
            bar.enable_steady_tick(TICK);
        }
        Self(bar)
    }

    /// Increments the counter, and shows `message` next to it.
    pub(super) fn advance(&self, message: impl FnOnce() -> String) {
        if self.0.is_hidden() {
            return;
        }
        self.0.inc(1);
        self.0.set_message(message());
    }

    /// Hides the line while `write` runs.
    pub(super) fn with_line_hidden<T>(&self, write: impl FnOnce() -> T) -> T {
        self.0.suspend(write)
    }
}

/// Below this rate per second, the rate is shown per minute.
const SLOW: f64 = 0.1;

/// The rate, after the number of remaining items and the estimated time, if the total is known.
fn format_rate(per_second: f64, left: Option<(u64, Duration)>) -> String {
    // Before the first item, there is no estimate.
    let is_known = per_second > 0.0;
    let left = match left {
        Some((left, time)) if is_known => format!("{left} left in {:#} ", HumanDuration(time)),
        Some((left, _)) => return format!("{left} left"),
        None if is_known => String::new(),
        None => return String::new(),
    };
    if per_second < SLOW {
        format!("{left}({:.1}/min)", per_second * 60.0)
    } else {
        format!("{left}({per_second:.1}/s)")
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(per_second: f64, left: Option<(u64, u64)>) -> String {
        format_rate(per_second, left.map(|(left, seconds)| (left, Duration::from_secs(seconds))))
    }

    #[test]
    fn a_pace_is_a_rate_with_what_is_left_where_the_length_is_known() {
        assert_eq!(pace(0.0, Some((3, 0))), "3 left");
        assert_eq!(pace(0.04, Some((3, 75))), "3 left in 75s (2.4/min)");
        assert_eq!(pace(633.14, Some((87_655, 138))), "87655 left in 2m (633.1/s)");
        assert_eq!(pace(2.5, Some((0, 0))), "0 left in 0s (2.5/s)");
        assert_eq!(pace(2.5, None), "(2.5/s)");
        assert_eq!(pace(0.0, None), "");
    }
}
