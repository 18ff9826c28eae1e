//! What the benches share: things measured in turn, a row of the table, and the line that ends a run.

#![allow(dead_code, reason = "each bench takes what it needs")]

pub(crate) mod delay;
pub(crate) mod http;

use std::process::Command;
use std::time::{Duration, Instant};

use clresolve::Resolver;
use clresolve::sandbox::Sandbox;
use tokio::runtime::Runtime;

/// A good agent of the sandbox.
pub(crate) const GOOD: &str = "summarizeagent.eth";

/// How long one measurement of a round takes at least: far above the grain of the clock, and so short that most rounds
/// are done before a busy machine gives the processor to somebody else.
const SLICE: Duration = Duration::from_micros(500);

/// Rounds, unless a bench knows better.
pub(crate) const ROUNDS: usize = 501;

/// Which side of the budget is the good one.
#[derive(Clone, Copy)]
pub(crate) enum Good {
    /// Less is better.
    AtMost,
    /// More is better.
    AtLeast,
}

/// One row of the table of results.
pub(crate) struct Row<'r> {
    /// What was measured.
    pub(crate) what: &'r str,
    /// What it took.
    pub(crate) measured: String,
    /// What the thing beside it took, in the same run.
    pub(crate) beside: String,
    /// One over the other, or over its budget.
    pub(crate) ratio: f64,
    /// Where the ratio should be.
    pub(crate) budget: f64,
    /// On which side of it.
    pub(crate) good: Good,
}

impl Row<'_> {
    /// As [`print_row`], with its budget.
    pub(crate) fn print(&self, bench: &str) {
        let Self { what, measured, beside, ratio, budget, .. } = self;
        let (side, _) = self.side();
        print_row(what, measured, beside, *ratio, &format!("{side} {budget:.2}"), bench);
    }

    /// Prints the row and ends the run with its ratio.
    pub(crate) fn end(&self, bench: &str) {
        self.print(bench);
        self.verdict();
    }

    /// Ends the run with the ratio.
    pub(crate) fn verdict(&self) {
        let (side, met) = self.side();
        println!("the ratio should be {side} the budget; it is {}", if met { "within" } else { "OUTSIDE" });
        println!("ratio {:.2} budget {:.2}", self.ratio, self.budget);
    }

    fn side(&self) -> (&'static str, bool) {
        match self.good {
            Good::AtMost => ("at most", self.ratio <= self.budget),
            Good::AtLeast => ("at least", self.ratio >= self.budget),
        }
    }
}

/// Prints a row in the form of the table of docs/performance.md. `bench` is the recipe that prints it.
pub(crate) fn print_row(what: &str, measured: &str, beside: &str, ratio: f64, budget: &str, bench: &str) {
    println!("| {what} | {measured} | {beside} | {ratio:.2} | {budget} | `just {bench}` |");
}

/// Whether `cargo bench` runs this, and not `cargo test --all-targets`, which has no business with figures.
pub(crate) fn asked_to_measure() -> bool {
    let asked = std::env::args().any(|argument| argument == "--bench");
    if !asked {
        println!("nothing is measured without --bench");
    }
    asked
}

/// Nanoseconds per call of each of `works`, round by round. A work is told how often to run and says how long it took.
/// They take turns, so that a busy machine is unfair to none.
pub(crate) fn in_turn<const N: usize>(rounds: usize, mut works: [&mut dyn FnMut(u32) -> Duration; N]) -> [Vec<f64>; N] {
    let times: [u32; N] = std::array::from_fn(|at| enough(works[at]));
    let mut rows: [Vec<f64>; N] = std::array::from_fn(|_| Vec::with_capacity(rounds));
    for _ in 0..rounds {
        for at in 0..N {
            let took = works[at](times[at]);
            rows[at].push(took.as_secs_f64() * 1e9 / f64::from(times[at]));
        }
    }
    rows
}

/// How often `work` has to run to fill a slice.
fn enough(work: &mut dyn FnMut(u32) -> Duration) -> u32 {
    let mut times = 1;
    while work(times) < SLICE {
        times *= 2;
    }
    times
}

/// The sandbox, and a resolver of its names in a runtime.
pub(crate) fn sandbox() -> (Runtime, Sandbox, Resolver) {
    let runtime = Runtime::new().expect("threads can be had");
    let (sandbox, resolver) = runtime.block_on(async {
        let sandbox = Sandbox::start().await.expect("ports can be had");
        let resolver = Resolver::new(&sandbox.config()).await.expect("the sandbox's configuration is good");
        (sandbox, resolver)
    });
    (runtime, sandbox, resolver)
}

/// How long it takes to do `work` a number of times, one after the other in one task. Starting tasks is not measured.
pub(crate) fn timed_in<T>(runtime: &Runtime, work: impl AsyncFn() -> T) -> impl FnMut(u32) -> Duration {
    move |times| {
        runtime.block_on(async {
            let started = Instant::now();
            for _ in 0..times {
                std::hint::black_box(work().await);
            }
            started.elapsed()
        })
    }
}

/// How long `work` takes, so many times.
pub(crate) fn timed<T>(mut work: impl FnMut() -> T) -> impl FnMut(u32) -> Duration {
    move |times| {
        let started = Instant::now();
        for _ in 0..times {
            std::hint::black_box(work());
        }
        started.elapsed()
    }
}

/// The middle one.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// What nine of ten rounds are above: whatever disturbs pure computation only ever adds to its time.
pub(crate) fn undisturbed(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 10]
}

/// The middle one of the ratios of each round: what disturbs a round disturbs both of its measurements.
pub(crate) fn median_ratio(of: &[f64], to: &[f64]) -> f64 {
    let ratios: Vec<f64> = of.iter().zip(to).map(|(of, to)| of / to).collect();
    median(&ratios)
}

/// Nanoseconds as microseconds.
pub(crate) fn micros(nanos: f64) -> String {
    format!("{:.2} µs", nanos / 1e3)
}

/// The program that is measured.
pub(crate) fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clresolve"));
    command.args(arguments).env_clear();
    command
}
