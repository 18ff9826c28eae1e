//! Judges the most expensive receipts of 256 KiB and checks their memory budget by counting allocations.
//!
//! `.ci/worst` checks their time budget by counting instructions.

#[path = "worst_receipts/documents.rs"]
mod documents;

use allocation_counter::measure;
use clresolve_messages::receipt::judge::{ReceiptCheckKind, StepStatus};

use documents::kinds::Kind;
use documents::{NAME, World};

/// Maximum number of bytes allocated at once while one question is parsed, judged and answered, not counting its own
/// text.
const MOST_BYTES: u64 = 16 << 20;

#[test]
fn every_worst_receipt_stays_within_16_mib() {
    let world = World::new();
    for kind in Kind::ALL {
        let question = kind.question(NAME);
        let mut found = None;
        let peak = measure(|| found = Some(world.judge_measured(&question))).bytes_max;
        println!("{peak} bytes: {kind:?}, {} bytes", question.len());
        assert!(peak <= MOST_BYTES, "{kind:?}: {peak} bytes");
        let found = found.expect("it was judged");
        let is_read =
            found.checks.iter().any(|row| row.check == ReceiptCheckKind::Family && row.status == StepStatus::Pass);
        let shapes = found.reasons.first().and_then(|reason| reason.observed.as_deref());
        let is_tried = kind == Kind::Shapes && shapes.is_some_and(|shapes| shapes.split(", ").count() == 7);
        let is_counted = kind == Kind::Nested && shapes.is_some_and(|cause| cause.contains("values"));
        assert!(is_read || is_tried || is_counted, "{kind:?} is refused before the dear part: {:?}", found.reasons);
    }
}
