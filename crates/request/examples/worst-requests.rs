//! Judges the requests that cost most (`tests/support/worst.rs` of the workspace).

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
    worst::main::<Kind>("worst-requests")
}

impl Worst for Kind {
    const KNOWN: &'static [Self] = &Self::ALL;

    fn judge(self) -> usize {
        let (world, question) = (World::new(), self.question("agent.eth", "sum"));
        black_box(world.judge(br#"{"name":"a.eth","verb":"sum","request":{}}"#));
        black_box(world.judge_measured(&question));
        question.len()
    }

    fn prepared(self) -> impl Fn() {
        let (world, question) = (World::new(), self.question("agent.eth", "sum"));
        move || {
            black_box(world.judge(&question));
        }
    }
}
