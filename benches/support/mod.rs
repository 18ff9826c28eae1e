//! Shared by the benchmarks: interleaved measurements, result rows, and the last line of output.

#![allow(dead_code, reason = "each bench takes what it needs")]

pub(crate) mod delay;
pub(crate) mod http;

use std::process::Command;
use std::time::{Duration, Instant};

use clresolve_resolver::resolve::{HeadFollower, Resolver};
use clresolve_resolver::sandbox::Sandbox;
use tokio::runtime::Runtime;

pub(crate) const GOOD: &str = "summarizeagent.eth";

/// Minimum duration of one measurement: far above the clock's resolution, and short enough that a busy machine rarely
/// interrupts one.
const SLICE: Duration = Duration::from_micros(500);

pub(crate) const ROUNDS: usize = 501;

/// The direction of a budget.
#[derive(Clone, Copy)]
pub(crate) enum Good {
    AtMost,
    AtLeast,
}

/// One row of the table of results.
pub(crate) struct Row<'r> {
    pub(crate) what: &'r str,
    pub(crate) measured: String,
    /// The result of the reference in the same run.
    pub(crate) beside: String,
    /// The ratio of the result to the reference or to its budget.
    pub(crate) ratio: f64,
    pub(crate) budget: f64,
    pub(crate) good: Good,
}

impl Row<'_> {
    /// Like [`print_row`], with the row's budget.
    pub(crate) fn print(&self, bench: &str) {
        let Self { what, measured, beside, ratio, budget, .. } = self;
        let (side, _) = self.side();
        print_row(what, measured, beside, *ratio, &format!("{side} {budget:.2}"), bench);
    }

    /// Prints the row, and its ratio as the last line.
    pub(crate) fn end(&self, bench: &str) {
        self.print(bench);
        self.verdict();
    }

    /// Prints whether the ratio is within the budget, and the ratio as the last line.
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

/// Prints a row of a table. `bench` is the recipe that prints it.
pub(crate) fn print_row(what: &str, measured: &str, beside: &str, ratio: f64, budget: &str, bench: &str) {
    println!("| {what} | {measured} | {beside} | {ratio:.2} | {budget} | `just {bench}` |");
}

/// Whether `cargo bench` runs this program, as opposed to `cargo test --all-targets`, which should not measure.
pub(crate) fn asked_to_measure() -> bool {
    let asked = std::env::args().any(|argument| argument == "--bench");
    if !asked {
        println!("nothing is measured without --bench");
    }
    asked
}

/// Nanoseconds per call of each of `works` in each round. A work receives the number of iterations and returns their
/// duration. The works alternate, so that a busy machine affects them all equally.
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

/// How many iterations of `work` fill a slice.
fn enough(work: &mut dyn FnMut(u32) -> Duration) -> u32 {
    let mut times = 1;
    while work(times) < SLICE {
        times *= 2;
    }
    times
}

/// The sandbox, and a resolver for its names in a runtime.
pub(crate) fn sandbox() -> (Runtime, Sandbox, Resolver) {
    let runtime = Runtime::new().expect("threads can be had");
    let (sandbox, resolver) = runtime.block_on(async {
        let sandbox = Sandbox::start().await.expect("ports can be had");
        let resolver = Resolver::new(&sandbox.config()).await.expect("the sandbox's configuration is good");
        (sandbox, resolver)
    });
    (runtime, sandbox, resolver)
}

/// A resolver that follows heads. The first head that a question obtains confirms verdicts for an hour.
pub(crate) fn following(runtime: &Runtime, sandbox: &Sandbox) -> (Resolver, HeadFollower) {
    const HOUR: Duration = Duration::from_secs(3600);
    let mut config = sandbox.config();
    (config.chain.head_poll, config.cache.max_unconfirmed) = (HOUR, HOUR);
    runtime.block_on(async {
        let resolver = Resolver::new(&config).await.expect("the sandbox's configuration is good");
        let follower = resolver.follow_heads();
        (resolver, follower)
    })
}

/// Measures sequential runs of `work` in one task. Starting the task is not measured.
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

/// Measures sequential runs of `work`.
pub(crate) fn timed<T>(mut work: impl FnMut() -> T) -> impl FnMut(u32) -> Duration {
    move |times| {
        let started = Instant::now();
        for _ in 0..times {
            std::hint::black_box(work());
        }
        started.elapsed()
    }
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// The lower decile: disturbances only ever add to the time of pure computation.
pub(crate) fn undisturbed(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 10]
}

/// The median of the ratios of each round: a disturbance affects both measurements of its round.
pub(crate) fn median_ratio(of: &[f64], to: &[f64]) -> f64 {
    let ratios: Vec<f64> = of.iter().zip(to).map(|(of, to)| of / to).collect();
    median(&ratios)
}

pub(crate) fn micros(nanos: f64) -> String {
    format!("{:.2} µs", nanos / 1e3)
}

pub(crate) fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clresolve"));
    command.args(arguments).env_clear();
    command
}
