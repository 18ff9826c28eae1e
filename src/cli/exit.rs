//! Exit statuses, and the handling of panics.

use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use clresolve_core::state::TrustState;
use clresolve_core::text::UntrustedText;
use tracing::Level;

use super::log_queue;
use super::output::OutputWriteError;

/// The outcome of a command. Ordered: for several names, the greatest one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ExitStatus {
    /// 0: trusted, or the command succeeded.
    Trusted,
    /// 4: trusted, but an `--expect-*` option is not met.
    Unmet,
    /// 3: undecided.
    Indeterminate,
    /// 1: untrusted, or proven absent or invalid.
    Untrusted,
    /// 2: wrong usage or configuration.
    Usage,
    /// 74: the output cannot be written.
    Unwritable,
    /// 70: a bug in this program.
    Bug,
    /// 130: interrupted by the user.
    Interrupted,
}

impl ExitStatus {
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Trusted => 0,
            Self::Untrusted => 1,
            Self::Usage => 2,
            Self::Indeterminate => 3,
            Self::Unmet => 4,
            Self::Bug => 70,
            Self::Unwritable => 74,
            Self::Interrupted => 130,
        }
    }
}

/// Why content or a bundle is refused or undecided: a stable class, a message and the exit status.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ContentRefusal {
    pub(super) class: &'static str,
    pub(super) message: String,
    pub(super) exit: ExitStatus,
}

impl ContentRefusal {
    pub(super) const fn new(class: &'static str, message: String) -> Self {
        Self { class, message, exit: ExitStatus::Untrusted }
    }

    /// Prints the refusal, and returns its exit status.
    pub(super) fn print_and_get_exit_status(&self) -> ExitStatus {
        anstream::eprintln!("{}: {}", self.class, UntrustedText::new(&self.message));
        self.exit
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(exit: ExitStatus) -> Self {
        Self::from(exit.code())
    }
}

impl From<TrustState> for ExitStatus {
    fn from(state: TrustState) -> Self {
        match state {
            TrustState::Trusted => Self::Trusted,
            TrustState::Untrusted => Self::Untrusted,
            TrustState::Indeterminate => Self::Indeterminate,
        }
    }
}

impl From<&anyhow::Error> for ExitStatus {
    fn from(error: &anyhow::Error) -> Self {
        if error.chain().any(|cause| cause.is::<OutputWriteError>()) { Self::Unwritable } else { Self::Usage }
    }
}

static PANICKED: AtomicBool = AtomicBool::new(false);

/// Installs a panic hook that reports a panic in any thread in one line and remembers it.
pub(super) fn install_panic_hook() {
    panic::set_hook(Box::new(|info| {
        PANICKED.store(true, Ordering::Relaxed);
        let place = info.location().map_or_else(|| "?".to_owned(), ToString::to_string);
        let message = panic_message(info);
        let said = format!("this is a bug, please report it: {} ({place})", UntrustedText::new(&message));
        log_queue::write_log_line(Level::ERROR, &said);
    }));
}

fn panic_message(info: &PanicHookInfo<'_>) -> String {
    info.payload_as_str().unwrap_or("panic").to_owned()
}

/// Runs `work`. Returns [`ExitStatus::Bug`] if it or a thread that it started panics.
pub(super) fn run_catching_panics(work: impl FnOnce() -> ExitStatus) -> ExitStatus {
    let exit = panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or(ExitStatus::Bug);
    if PANICKED.load(Ordering::Relaxed) { exit.max(ExitStatus::Bug) } else { exit }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_several_wins() {
        use ExitStatus::{Bug, Indeterminate, Trusted, Unmet, Untrusted, Unwritable, Usage};
        let order = [Bug, Unwritable, Usage, Untrusted, Indeterminate, Unmet, Trusted];
        assert!(order.is_sorted_by(|a, b| a > b));
        assert_eq!(order.map(ExitStatus::code), [70, 74, 2, 1, 3, 4, 0]);
    }

    #[test]
    fn a_panic_is_a_bug() {
        assert_eq!(run_catching_panics(|| panic!("boom")), ExitStatus::Bug);
    }
}
