//! `mutant!`: as in `clresolve-core`, of which this crate knows nothing.

/// Whether the defence of this name is taken out.
#[cfg(clresolve_mutants)]
macro_rules! mutant {
    ($name:literal) => {
        ::std::env::var("MUTANT").is_ok_and(|taken_out| taken_out == $name)
    };
}

/// Whether the defence of this name is taken out; never, in a build that is not for mutants.
#[cfg(not(clresolve_mutants))]
macro_rules! mutant {
    ($name:literal) => {
        false
    };
}
