//! Notices on standard error, which `--quiet` suppresses.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether `--quiet` was given. Global, because a process runs one command line.
static IS_QUIET: AtomicBool = AtomicBool::new(false);

pub(super) fn silence_notices() {
    IS_QUIET.store(true, Ordering::Relaxed);
}

pub(super) fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}

pub(super) fn print_notice(text: impl Display) {
    if !is_quiet() {
        anstream::eprintln!("{text}");
    }
}
