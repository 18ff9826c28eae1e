//! A line that moves while the answer is awaited; on a terminal only.

use std::time::Duration;

use indicatif::ProgressBar;

/// How often the line moves: often enough to look alive.
const TICK: Duration = Duration::from_millis(120);

/// The line. It goes away when dropped.
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// Shows `message`; nothing where stderr is no terminal.
    pub(super) fn start(message: String) -> Self {
        let bar = ProgressBar::new_spinner().with_message(message);
        if !bar.is_hidden() {
            bar.enable_steady_tick(TICK);
        }
        Self(bar)
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
