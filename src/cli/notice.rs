//! What is said beside the results, on standard error, unless `--quiet` was given.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether only errors are wanted. A process runs one command line, and every part of it must know.
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// From now on only errors are written to standard error.
pub(super) fn be_quiet() {
    IS_QUIET.store(true, Ordering::Relaxed);
}

/// Whether only errors are wanted on standard error.
pub(super) fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}

/// Writes a note that nothing depends on.
pub(super) fn note(text: impl Display) {
    if !is_quiet() {
        anstream::eprintln!("{text}");
    }
}
