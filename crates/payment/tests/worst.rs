//! The maximum-size requests that are most expensive to decide. Counts their allocations and compares them with the
//! memory budget.
//!
//! `.ci/worst` counts their instructions and compares them with the time budget.

#[path = "worst/documents.rs"]
mod documents;
#[path = "worst/kinds.rs"]
mod kinds;

use allocation_counter::measure;

use documents::World;
use kinds::Kind;

/// Maximum number of bytes that a decision may use at once, in addition to the request itself.
const MOST_BYTES: u64 = 16 << 20;

#[test]
fn every_worst_question_stays_within_16_mib() {
    let world = World::new();
    for kind in Kind::ALL {
        let question = kind.question();
        let mut decision = None;
        let peak = measure(|| decision = world.judge_measured(&question)).bytes_max;
        let codes = decision.map(|decision| decision.codes);
        println!("{peak} bytes: {kind:?}: {codes:?}");
        assert!(peak <= MOST_BYTES, "{kind:?}: {peak} bytes");
    }
}
