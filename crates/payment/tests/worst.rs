//! The questions of full size that cost most to decide, held to the budget of memory by counting what they allocate.
//!
//! `.ci/worst` counts their instructions against the budget of time.

#[path = "worst/documents.rs"]
mod documents;
#[path = "worst/kinds.rs"]
mod kinds;

use allocation_counter::measure;

use documents::World;
use kinds::Kind;

/// Most bytes that a decision may have in use at once, beyond the question itself.
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
