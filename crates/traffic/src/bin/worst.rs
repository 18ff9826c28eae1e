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
        ("search", Some(seconds), _) => search_worst_documents(Duration::from_secs(seconds), &known),
        ("count", None, None) => println!("{}", known.len()),
        ("judge", _, Some(seed)) => judge_document(&seed),
        ("time", None, None) => known.iter().for_each(|seed| println!("{:10} ns", judge_cpu_nanoseconds(seed))),
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("worst search SECONDS | count | judge NUMBER|SEED | time");
    ExitCode::from(2)
}

/// Judges a document twice, because the first time also builds schemas and tables.
fn judge_document(seed: &Seed) {
    let small = Seed { items: 1, repeat: 0, ..seed.clone() };
    std::hint::black_box(judge_unmeasured(&small));
    let prepared = seed.prepared();
    println!("{} bytes: {}", prepared.document.len(), seed_json(seed));
    std::hint::black_box(prepared.judge_measured());
}

/// A seed in the format of the corpus.
fn seed_json(seed: &Seed) -> String {
    serde_json::to_string(seed).expect("numbers and flags have a JSON form")
}

/// Like [`documents::Prepared::judge_measured`], under a name that no counter looks for.
fn judge_unmeasured(seed: &Seed) -> usize {
    seed.prepared().judge()
}

/// CPU nanoseconds of one judgement. The kernel counts in milliseconds, so this is an average.
fn judge_cpu_nanoseconds(seed: &Seed) -> u64 {
    const TIMES: u64 = 100;
    let prepared = seed.prepared();
    let before = thread_cpu_nanoseconds();
    for _ in 0..TIMES {
        std::hint::black_box(prepared.judge());
    }
    (thread_cpu_nanoseconds() - before) / TIMES
}

/// What a document costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum DocumentCostMetric {
    /// Peak memory in bytes.
    Bytes,
    /// Number of allocations, which is the same in each run.
    Allocations,
    Time,
}

impl DocumentCostMetric {
    fn measure(self, seed: &Seed) -> u64 {
        let prepared = seed.prepared();
        let measure = || allocation_counter::measure(|| _ = std::hint::black_box(prepared.judge()));
        match self {
            Self::Bytes => measure().bytes_max,
            Self::Allocations => measure().count_total,
            Self::Time => {
                let once = || {
                    let before = thread_cpu_nanoseconds();
                    std::hint::black_box(prepared.judge());
                    thread_cpu_nanoseconds() - before
                };
                // The minimum of several measurements is the least disturbed one.
                (0..3).map(|_| once()).min().unwrap_or(0)
            }
        }
    }
}

/// CPU nanoseconds of this thread, excluding time spent waiting.
fn thread_cpu_nanoseconds() -> u64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts them");
    statistics.split(' ').next().and_then(|time| time.parse().ok()).expect("the first number")
}

/// Climbs until the time is up. Each judge, system and cost gets the same share of it.
fn search_worst_documents(time: Duration, known: &[Seed]) {
    let goals: Vec<(Judge, usize, DocumentCostMetric)> = Judge::ALL
        .into_iter()
        .flat_map(|judge| good_document_range(judge).map(move |card| (judge, card)))
        .flat_map(|(judge, card)| {
            [DocumentCostMetric::Bytes, DocumentCostMetric::Allocations, DocumentCostMetric::Time]
                .map(|cost| (judge, card, cost))
        })
        .collect();
    let share = time.div_f64(goals.len() as f64);
    let mut random = SplitMix64Rng(0x9e37_79b9_7f4a_7c15);
    for (judge, card, cost) in goals {
        let starts = known.iter().filter(|seed| seed.judge == judge && seed.card == card).cloned();
        let (reward, seed) = hill_climb(judge, card, cost, share, starts.collect(), &mut random);
        eprintln!("{judge:?} of system {card}, {cost:?}: {reward}");
        println!("{}", seed_json(&seed));
    }
}

/// The indices of the good documents that this judge accepts.
const fn good_document_range(judge: Judge) -> Range<usize> {
    match judge {
        Judge::Verdict | Judge::Schemas | Judge::Projection => 0..1,
        Judge::Served => 6..7,
        Judge::Lint | Judge::Discovery | Judge::Signatures | Judge::Conversion => 0..6,
    }
}

/// The best document for one goal, starting from known and random ones.
fn hill_climb(
    judge: Judge,
    card: usize,
    cost: DocumentCostMetric,
    time: Duration,
    starts: Vec<Seed>,
    random: &mut SplitMix64Rng,
) -> (u64, Seed) {
    let started = Instant::now();
    let mut starts = starts.into_iter();
    let mut best = (0, random.random_seed(judge, card));
    while started.elapsed() < time {
        let mut at = starts.next().unwrap_or_else(|| random.random_seed(judge, card));
        let mut reward = cost.measure(&at);
        let mut tired = 0;
        while tired < PATIENCE && started.elapsed() < time {
            let next = random.mutate_seed(&at);
            let found = cost.measure(&next);
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
struct SplitMix64Rng(u64);

impl SplitMix64Rng {
    fn random_below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }

    fn random_seed(&mut self, judge: Judge, card: usize) -> Seed {
        Seed {
            judge,
            card,
            place: self.random_below(100),
            leaf: self.random_below(LEAVES.len()),
            repeat: self.random_below(6),
            levels: self.random_below(13),
            name: [0, 1, 8, 64, 512, 1000][self.random_below(6)],
            outer_object: self.random_below(2) == 0,
            inner_object: self.random_below(2) == 0,
            around: self.random_below(5),
            items: [16, 256, 4096, 16_000, 200_000][self.random_below(5)],
            to: self.random_below(5),
        }
    }

    /// A document that differs in one parameter.
    fn mutate_seed(&mut self, seed: &Seed) -> Seed {
        let other = self.random_seed(seed.judge, seed.card);
        let mut near = seed.clone();
        match self.random_below(11) {
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
