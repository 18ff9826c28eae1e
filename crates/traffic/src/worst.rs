//! Judges the worst known documents of a crate: `.ci/worst` counts the instructions, a person takes the time.
//!
//! `count` prints how many are known. `judge NUMBER` judges one of them, once unmeasured and once in `judge_measured`.
//! `time` prints how long each of them takes.

use std::process::ExitCode;
use std::time::Instant;

/// A document that costs much.
pub trait Worst: Copy + std::fmt::Debug + 'static {
    /// All that are known.
    const KNOWN: &'static [Self];

    /// Judges it, once unmeasured and once in `judge_measured`; its length in bytes.
    fn judge(self) -> usize;

    /// What judges it, as often as it is called.
    fn prepared(self) -> impl Fn();
}

/// Does what the arguments of the program say.
pub fn main<W: Worst>(program: &str) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let numbered = |number: &str| number.parse::<usize>().ok().and_then(|number| W::KNOWN.get(number));
    match (arguments.as_slice(), arguments.get(1).and_then(|number| numbered(number))) {
        (["count"], _) => println!("{}", W::KNOWN.len()),
        (["judge", _], Some(worst)) => println!("{} bytes: {worst:?}", worst.judge()),
        (["time"], _) => W::KNOWN.iter().for_each(|worst| time(*worst)),
        _ => {
            eprintln!("{program} count | judge NUMBER | time");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// The shortest of some runs.
fn time<W: Worst>(worst: W) {
    let judge = worst.prepared();
    let once = || {
        let started = Instant::now();
        judge();
        started.elapsed()
    };
    let shortest = (0..20).map(|_| once()).min().unwrap_or_default();
    println!("{shortest:?}  {worst:?}");
}
