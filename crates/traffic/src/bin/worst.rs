//! Searches for the 256 KiB documents that cost most to judge, and judges the known ones.
//!
//! `worst search SECONDS` hill-climbs from random documents towards more memory, allocations and time. It prints the
//! finalists, one per line, in the format of `crates/cards/tests/worst/corpus.json`; `rank` counts the instructions of
//! each. `worst count` prints the number of known ones. `worst judge NUMBER` judges one of them, and `worst judge SEED`
//! any other: first unmeasured, then in `judge_measured`, for a program that counts instructions. `worst time` prints
//! the time of each.

#[path = "../../linked/cards/tests/worst/documents.rs"]
mod documents;

use std::ops::Range;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use documents::seeds::{self, Judge, LEAVES, Seed};

/// Number of steps without improvement after which a climb restarts.
const PATIENCE: usize = 40;

fn main() -> ExitCode {
    let known = seeds::known();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [command, rest @ ..] = &arguments[..] else { return usage() };
    let number = rest.first().and_then(|number| number.parse::<u64>().ok());
    let seed = match number {
        Some(number) => known.iter().zip(0..).find(|(_, at)| *at == number).map(|(seed, _)| seed.clone()),
        None => rest.first().and_then(|seed| serde_json::from_str(seed).ok()),
    };
    match (command.as_str(), number, seed) {
        ("search", Some(seconds), _) => search(Duration::from_secs(seconds), &known),
        ("count", None, None) => println!("{}", known.len()),
        ("judge", _, Some(seed)) => judge(&seed),
        ("time", None, None) => known.iter().for_each(|seed| println!("{:10} ns", nanoseconds(seed))),
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("worst search SECONDS | count | judge NUMBER|SEED | time");
    ExitCode::from(2)
}

/// Judges a document twice, because the first time also builds schemas and tables.
fn judge(seed: &Seed) {
    let small = Seed { items: 1, repeat: 0, ..seed.clone() };
    std::hint::black_box(warm(&small));
    let prepared = seed.prepared();
    println!("{} bytes: {}", prepared.document.len(), shown(seed));
    std::hint::black_box(prepared.judge_measured());
}

/// A seed in the format of the corpus.
fn shown(seed: &Seed) -> String {
    serde_json::to_string(seed).expect("numbers and flags have a JSON form")
}

/// Like [`documents::Prepared::judge_measured`], under a name that no counter looks for.
fn warm(seed: &Seed) -> usize {
    seed.prepared().judge()
}

/// CPU nanoseconds of one judgement. The kernel counts in milliseconds, so this is an average.
fn nanoseconds(seed: &Seed) -> u64 {
    const TIMES: u64 = 100;
    let prepared = seed.prepared();
    let before = on_processor();
    for _ in 0..TIMES {
        std::hint::black_box(prepared.judge());
    }
    (on_processor() - before) / TIMES
}

/// What a document costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Cost {
    /// Peak memory in bytes.
    Bytes,
    /// Number of allocations, which is the same in each run.
    Allocations,
    Time,
}

impl Cost {
    fn of(self, seed: &Seed) -> u64 {
        let prepared = seed.prepared();
        let measure = || allocation_counter::measure(|| _ = std::hint::black_box(prepared.judge()));
        match self {
            Self::Bytes => measure().bytes_max,
            Self::Allocations => measure().count_total,
            Self::Time => {
                let once = || {
                    let before = on_processor();
                    std::hint::black_box(prepared.judge());
                    on_processor() - before
                };
                // The minimum of several measurements is the least disturbed one.
                (0..3).map(|_| once()).min().unwrap_or(0)
            }
        }
    }
}

/// CPU nanoseconds of this thread, excluding time spent waiting.
fn on_processor() -> u64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts them");
    statistics.split(' ').next().and_then(|time| time.parse().ok()).expect("the first number")
}

/// Climbs until the time is up. Each judge, system and cost gets the same share of it.
fn search(time: Duration, known: &[Seed]) {
    let goals: Vec<(Judge, usize, Cost)> = Judge::ALL
        .into_iter()
        .flat_map(|judge| documents_of(judge).map(move |card| (judge, card)))
        .flat_map(|(judge, card)| [Cost::Bytes, Cost::Allocations, Cost::Time].map(|cost| (judge, card, cost)))
        .collect();
    let share = time.div_f64(goals.len() as f64);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for (judge, card, cost) in goals {
        let starts = known.iter().filter(|seed| seed.judge == judge && seed.card == card).cloned();
        let (reward, seed) = climb(judge, card, cost, share, starts.collect(), &mut random);
        eprintln!("{judge:?} of system {card}, {cost:?}: {reward}");
        println!("{}", shown(&seed));
    }
}

/// The indices of the good documents that this judge accepts.
const fn documents_of(judge: Judge) -> Range<usize> {
    match judge {
        Judge::Verdict | Judge::Schemas | Judge::Projection => 0..1,
        Judge::Served => 6..7,
        Judge::Lint | Judge::Discovery | Judge::Signatures | Judge::Conversion => 0..6,
    }
}

/// The best document for one goal, starting from known and random ones.
fn climb(judge: Judge, card: usize, cost: Cost, time: Duration, starts: Vec<Seed>, random: &mut Random) -> (u64, Seed) {
    let started = Instant::now();
    let mut starts = starts.into_iter();
    let mut best = (0, random.seed(judge, card));
    while started.elapsed() < time {
        let mut at = starts.next().unwrap_or_else(|| random.seed(judge, card));
        let mut reward = cost.of(&at);
        let mut tired = 0;
        while tired < PATIENCE && started.elapsed() < time {
            let next = random.near(&at);
            let found = cost.of(&next);
            if found > reward {
                (at, reward, tired) = (next, found, 0);
            } else {
                tired += 1;
            }
        }
        if reward > best.0 {
            best = (reward, at);
        }
    }
    best
}

/// SplitMix64 with a fixed seed, so that searches are reproducible.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }

    fn seed(&mut self, judge: Judge, card: usize) -> Seed {
        Seed {
            judge,
            card,
            place: self.below(100),
            leaf: self.below(LEAVES.len()),
            repeat: self.below(6),
            levels: self.below(13),
            name: [0, 1, 8, 64, 512, 1000][self.below(6)],
            outer_object: self.below(2) == 0,
            inner_object: self.below(2) == 0,
            around: self.below(5),
            items: [16, 256, 4096, 16_000, 200_000][self.below(5)],
            to: self.below(5),
        }
    }

    /// A document that differs in one parameter.
    fn near(&mut self, seed: &Seed) -> Seed {
        let other = self.seed(seed.judge, seed.card);
        let mut near = seed.clone();
        match self.below(11) {
            0 | 1 => near.place = other.place,
            2 => near.leaf = other.leaf,
            3 => near.repeat = other.repeat,
            4 => near.levels = other.levels,
            5 => near.name = other.name,
            6 => near.outer_object = other.outer_object,
            7 => near.inner_object = other.inner_object,
            8 => near.items = other.items,
            9 => near.around = other.around,
            _ => near.to = other.to,
        }
        near
    }
}
