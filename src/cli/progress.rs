//! A line that moves while the answer is awaited; on a terminal only.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::notice;

/// How often the line moves: often enough to look alive.
const TICK: Duration = Duration::from_millis(120);

/// The line. It goes away when dropped.
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// Shows `message`; nothing where standard error is no terminal, or only errors are wanted.
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

    /// Shows a bar that counts to `total`, or only counts where that is not known; nothing where standard error is no terminal, or only errors are wanted.
    pub(super) fn counting(total: Option<u64>) -> Self {
        if notice::is_quiet() {
            return Self(ProgressBar::hidden());
        }
        let (bar, template) = match total {
            Some(total) => (ProgressBar::new(total), "{wide_bar} {pos}/{len} {msg}"),
            None => (ProgressBar::new_spinner(), "{spinner} {pos} {msg}"),
        };
        if !bar.is_hidden() {
            bar.set_style(ProgressStyle::with_template(template).expect("the templates are well-formed"));
            bar.enable_steady_tick(TICK);
        }
        Self(bar)
    }

    /// Counts one more and shows `message` beside the count.
    pub(super) fn advance(&self, message: impl FnOnce() -> String) {
        if !self.0.is_hidden() {
            self.0.set_message(message());
            self.0.inc(1);
        }
    }

    /// Lets `write` write without the line in its way.
    pub(super) fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        self.0.suspend(write)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
