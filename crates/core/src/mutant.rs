//! [`mutant!`](crate::mutant): a switch that disables one defence, to verify that a test detects its absence.
//!
//! The switches are compiled in only under `--cfg clresolve_mutants`, which `tests/mutants/rustc` sets for the crates
//! of the workspace. The environment variable `MUTANT` then names the active switch. In every other build a switch is
//! the constant `false`, and nothing reads the variable. `tests/mutants/list` maps each switch to its test.

/// Whether the defence with this name is disabled.
#[cfg(clresolve_mutants)]
#[doc(hidden)]
#[macro_export]
macro_rules! mutant {
    ($name:literal) => {
        ::std::env::var("MUTANT").is_ok_and(|taken_out| taken_out == $name)
    };
}

/// Whether the defence with this name is disabled. Always `false` in a build without mutants.
#[cfg(not(clresolve_mutants))]
#[doc(hidden)]
#[macro_export]
macro_rules! mutant {
    ($name:literal) => {
        false
    };
}
