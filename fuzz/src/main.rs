//! libFuzzer's entry: hands each input to the target that the environment names.
//!
//! One program for all targets, since linking is most of what a target costs. `fuzz/run` builds and starts it.

#![no_main]

use std::sync::LazyLock;

mod targets;

use targets::Target;

/// The environment variable that names the target.
const VARIABLE: &str = "FUZZ_TARGET";

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var(VARIABLE).unwrap_or_default();
    Target::named(&name).unwrap_or_else(|| panic!("{VARIABLE} must name one of {:?}", Target::names()))
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| (TARGET.run)(input));
