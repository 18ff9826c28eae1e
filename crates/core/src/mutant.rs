//! [`mutant!`](crate::mutant): a defence that can be taken out, to see that a test misses it.
//!
//! The switches are compiled in under `--cfg clresolve_mutants` alone, which `tests/mutants/rustc` sets for the crates of
//! the workspace. The environment variable `MUTANT` then names the one that is on. In every other build a switch is the
//! constant `false`, and nothing reads the variable. `tests/mutants/list` says which test each switch is for.

/// Whether the defence of this name is taken out.
#[cfg(clresolve_mutants)]
#[doc(hidden)]
#[macro_export]
macro_rules! mutant {
    ($name:literal) => {
        ::std::env::var("MUTANT").is_ok_and(|taken_out| taken_out == $name)
    };
}

/// Whether the defence of this name is taken out; never, in a build that is not for mutants.
#[cfg(not(clresolve_mutants))]
#[doc(hidden)]
#[macro_export]
macro_rules! mutant {
    ($name:literal) => {
        false
    };
}
