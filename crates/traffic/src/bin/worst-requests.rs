//! Judges the requests that cost most (`src/worst.rs`).

#[path = "../../linked/messages/tests/worst_requests/documents.rs"]
mod documents;

use std::hint::black_box;
use std::process::ExitCode;

use clresolve_traffic::worst::{self, WorstCaseDocument};
use documents::World;
use documents::kinds::Kind;

fn main() -> ExitCode {
    worst::main::<Kind>("worst-requests")
}

impl WorstCaseDocument for Kind {
    const KNOWN: &'static [Self] = &Self::ALL;

    fn judge(self) -> usize {
        let (world, question) = (World::new(), self.question("agent.eth", "sum"));
        black_box(world.judge(br#"{"name":"a.eth","verb":"sum","request":{}}"#));
        black_box(world.judge_measured(&question));
        question.len()
    }

    fn prepare_judge(self) -> impl Fn() {
        let (world, question) = (World::new(), self.question("agent.eth", "sum"));
        move || {
            black_box(world.judge(&question));
        }
    }
}
