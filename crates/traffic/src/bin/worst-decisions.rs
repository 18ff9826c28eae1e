//! Decides the payment questions that cost most (`src/worst.rs`).

#[path = "../../linked/payment/tests/worst/documents.rs"]
mod documents;
#[path = "../../linked/payment/tests/worst/kinds.rs"]
mod kinds;

use std::hint::black_box;
use std::process::ExitCode;

use clresolve_traffic::worst::{self, WorstCaseDocument};
use documents::World;
use kinds::Kind;

fn main() -> ExitCode {
    worst::main::<Kind>("worst-decisions")
}

impl WorstCaseDocument for Kind {
    const KNOWN: &'static [Self] = &Self::ALL;

    fn judge(self) -> usize {
        let (world, question) = (World::new(), self.question());
        black_box(world.judge(b"{}"));
        black_box(world.judge_measured(&question));
        question.len()
    }

    fn prepare_judge(self) -> impl Fn() {
        let (world, question) = (World::new(), self.question());
        move || {
            black_box(world.judge(&question));
        }
    }
}
