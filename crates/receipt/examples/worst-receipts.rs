//! Judges the receipts that cost most (`tests/support/worst.rs` of the workspace).

#[path = "../tests/worst/documents.rs"]
mod documents;
#[path = "../../../tests/support/worst.rs"]
mod worst;

use std::hint::black_box;
use std::process::ExitCode;

use documents::World;
use documents::kinds::Kind;
use worst::Worst;

fn main() -> ExitCode {
    worst::main::<Kind>("worst-receipts")
}

impl Worst for Kind {
    const KNOWN: &'static [Self] = &Self::ALL;

    fn judge(self) -> usize {
        let (world, receipt, request) = (World::new(), self.receipt(), self.request());
        black_box(world.judge(b"{}", b"{}"));
        black_box(world.judge_measured(&receipt, &request));
        receipt.len()
    }

    fn prepared(self) -> impl Fn() {
        let (world, receipt, request) = (World::new(), self.receipt(), self.request());
        move || {
            black_box(world.judge(&receipt, &request));
        }
    }
}
