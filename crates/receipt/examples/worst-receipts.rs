//! Judges the receipts that cost most (`tests/support/worst.rs` of the workspace).

#[path = "../tests/worst/documents.rs"]
mod documents;
#[path = "../../../tests/support/worst.rs"]
mod worst;

use std::hint::black_box;
use std::process::ExitCode;

use documents::kinds::Kind;
use documents::{NAME, World};
use worst::Worst;

fn main() -> ExitCode {
    worst::main::<Kind>("worst-receipts")
}

impl Worst for Kind {
    const KNOWN: &'static [Self] = &Self::ALL;

    fn judge(self) -> usize {
        let (world, question) = (World::new(), self.question(NAME));
        black_box(world.judge(br#"{"name":"a.eth","receipt":{}}"#));
        black_box(world.judge_measured(&question));
        question.len()
    }

    fn prepared(self) -> impl Fn() {
        let (world, question) = (World::new(), self.question(NAME));
        move || {
            black_box(world.judge(&question));
        }
    }
}
