//! Judges the receipts that cost most (`src/worst.rs`).

#[path = "../../linked/messages/tests/worst_receipts/documents.rs"]
mod documents;

use std::hint::black_box;
use std::process::ExitCode;

use clresolve_traffic::worst::{self, WorstCaseDocument};
use documents::kinds::Kind;
use documents::{NAME, World};

fn main() -> ExitCode {
    worst::main::<Kind>("worst-receipts")
}

impl WorstCaseDocument for Kind {
    const KNOWN: &'static [Self] = &Self::ALL;

    fn judge(self) -> usize {
        let (world, question) = (World::new(), self.question(NAME));
        black_box(world.judge(br#"{"name":"a.eth","receipt":{}}"#));
        black_box(world.judge_measured(&question));
        question.len()
    }

    fn prepare_judge(self) -> impl Fn() {
        let (world, question) = (World::new(), self.question(NAME));
        move || {
            black_box(world.judge(&question));
        }
    }
}
