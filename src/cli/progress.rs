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

    /// Shows a bar that counts to `total`, or only counts where that is not known; nothing where standard error is no
    /// terminal, or only errors are wanted.
    pub(super) fn counting(total: Option<u64>) -> Self {
        if notice::is_quiet() {
            return Self(ProgressBar::hidden());
        }
        let (bar, template) = match total {
            Some(total) => (ProgressBar::new(total), "{wide_bar} {pos}/{len} {msg}"),
            None => (ProgressBar::new_spinner(), "{spinner} {pos} {msg}"),
        };
        bar.set_message(with_left(total, 0, String::new()));
        if !bar.is_hidden() {
            bar.set_style(ProgressStyle::with_template(template).expect("the templates are well-formed"));
            bar.enable_steady_tick(TICK);
        }
        Self(bar)
    }

    /// Counts one more, and shows `message` beside the counts of what is done and of what is left.
    pub(super) fn advance(&self, message: impl FnOnce() -> String) {
        if self.0.is_hidden() {
            return;
        }
        self.0.inc(1);
        self.0.set_message(with_left(self.0.length(), self.0.position(), message()));
    }

    /// Lets `write` write without the line in its way.
    pub(super) fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        self.0.suspend(write)
    }
}

/// The message with how many are left, where that is known.
fn with_left(total: Option<u64>, done: u64, message: String) -> String {
    match total.map(|total| total.saturating_sub(done)) {
        Some(left) if message.is_empty() => format!("{left} left"),
        Some(left) => format!("{left} left: {message}"),
        None => message,
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_counted_where_the_length_is_known() {
        assert_eq!(with_left(Some(3), 0, String::new()), "3 left");
        assert_eq!(with_left(Some(3), 1, "1 trusted".to_owned()), "2 left: 1 trusted");
        assert_eq!(with_left(Some(3), 4, "4 trusted".to_owned()), "0 left: 4 trusted");
        assert_eq!(with_left(None, 1, "1 trusted".to_owned()), "1 trusted");
    }
}
