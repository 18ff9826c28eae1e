//! The receipts of 256 KiB that cost most to judge, held to the budget of memory by counting what they allocate.
//!
//! `.ci/worst` counts their instructions against the budget of time.

#[path = "worst/documents.rs"]
mod documents;

use allocation_counter::measure;
use clresolve_receipt::judge::{ReceiptCheck, Status};

use documents::World;
use documents::kinds::Kind;

/// Most bytes that a judgement may have in use at once, beyond receipt and request themselves.
const MOST_BYTES: u64 = 16 << 20;

#[test]
fn every_worst_receipt_stays_within_16_mib() {
    let world = World::new();
    for kind in Kind::ALL {
        let (receipt, request) = (kind.receipt(), kind.request());
        let mut found = None;
        let peak = measure(|| found = Some(world.judge_measured(&receipt, &request))).bytes_max;
        println!("{peak} bytes: {kind:?}, {} bytes", receipt.len());
        assert!(peak <= MOST_BYTES, "{kind:?}: {peak} bytes");
        let found = found.expect("it was judged");
        let is_read = found.row(ReceiptCheck::Family).is_some_and(|row| row.status == Status::Pass);
        assert!(is_read, "{kind:?} is refused before the dear part: {:?}", found.reasons);
    }
}
