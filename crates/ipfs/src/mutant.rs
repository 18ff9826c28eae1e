//! `mutant!`, like that of `clresolve-core`, on which this crate does not depend.

/// Whether the defence with this name is disabled.
#[cfg(clresolve_mutants)]
macro_rules! mutant {
    ($name:literal) => {
        ::std::env::var("MUTANT").is_ok_and(|taken_out| taken_out == $name)
    };
}

/// Whether the defence with this name is disabled. Always `false` in a build without mutants.
#[cfg(not(clresolve_mutants))]
macro_rules! mutant {
    ($name:literal) => {
        false
    };
}
