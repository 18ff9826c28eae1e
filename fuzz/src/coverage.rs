//! Which edges of the program the inputs reached: their addresses, for `fuzz/run` to tell by crate.
//!
//! A wrapper before the compiler instruments the crates of the workspace. Were one of them left out, its target would go
//! on green and blind; so the script asks for edges of the crate that the target is for.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::{LazyLock, Mutex, PoisonError};

/// The environment variable that names the file for the addresses. Without it nothing is noted.
const VARIABLE: &str = "FUZZ_COVERED";

static FILE: LazyLock<Option<String>> = LazyLock::new(|| std::env::var(VARIABLE).ok());

static KNOWN: LazyLock<Mutex<HashSet<usize>>> = LazyLock::new(Mutex::default);

// The sections that `-sanitizer-coverage-inline-8bit-counters` and `-sanitizer-coverage-pc-table` fill, and the image's
// first byte, all set by the linker.
unsafe extern "C" {
    #[link_name = "__start___sancov_cntrs"]
    static COUNTERS: u8;
    #[link_name = "__stop___sancov_cntrs"]
    static COUNTERS_END: u8;
    #[link_name = "__start___sancov_pcs"]
    static EDGES: [usize; 2];
    #[link_name = "__ehdr_start"]
    static IMAGE: u8;
}

/// Appends the edges that the last input was the first to reach.
pub(crate) fn note() {
    let Some(file) = FILE.as_deref() else { return };
    let (start, end) = (&raw const COUNTERS, &raw const COUNTERS_END);
    let count = end as usize - start as usize;
    // SAFETY: the linker puts one counter and one edge (address, flags) for each instrumented edge into these sections.
    let (counters, edges) =
        unsafe { (std::slice::from_raw_parts(start, count), std::slice::from_raw_parts(&raw const EDGES, count)) };
    let image = &raw const IMAGE as usize;
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let reached = counters.iter().zip(edges).filter(|(hits, _)| **hits > 0).map(|(_, edge)| edge[0] - image);
    let new: String = reached.filter(|edge| known.insert(*edge)).map(|edge| format!("{edge:016x}\n")).collect();
    let mut file = OpenOptions::new().create(true).append(true).open(file).expect("the file can be written");
    file.write_all(new.as_bytes()).expect("the file can be written");
}
