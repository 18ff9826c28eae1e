//! Judges the worst known documents of a crate. `.ci/worst` counts the instructions, and `time` measures durations.
//!
//! `count` prints the number of known documents. `judge NUMBER` judges one of them, first unmeasured and then in
//! `judge_measured`. `time` prints how long each takes.

use std::process::ExitCode;
use std::time::Instant;

/// A document that is expensive to judge.
pub trait WorstCaseDocument: Copy + std::fmt::Debug + 'static {
    /// All known ones.
    const KNOWN: &'static [Self];

    /// Judges it, first unmeasured and then in `judge_measured`. Returns its length in bytes.
    fn judge(self) -> usize;

    /// Returns a function that judges it each time it is called.
    fn prepare_judge(self) -> impl Fn();
}

/// Runs the command in the program's arguments.
pub fn main<W: WorstCaseDocument>(program: &str) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let numbered = |number: &str| number.parse::<usize>().ok().and_then(|number| W::KNOWN.get(number));
    match (arguments.as_slice(), arguments.get(1).and_then(|number| numbered(number))) {
        (["count"], _) => println!("{}", W::KNOWN.len()),
        (["judge", _], Some(worst)) => println!("{} bytes: {worst:?}", worst.judge()),
        (["time"], _) => W::KNOWN.iter().for_each(|worst| print_shortest_time(*worst)),
        _ => {
            eprintln!("{program} count | judge NUMBER | time");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// Prints the shortest of several runs.
fn print_shortest_time<W: WorstCaseDocument>(worst: W) {
    let judge = worst.prepare_judge();
    let once = || {
        let started = Instant::now();
        judge();
        started.elapsed()
    };
    let shortest = (0..20).map(|_| once()).min().unwrap_or_default();
    println!("{shortest:?}  {worst:?}");
}
