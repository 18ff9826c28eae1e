//! What was said, and whether it was right.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::time::Instant;

use crate::fleet::Asked;

/// From when on memory must stay as it is, in looks of a second; and the least number of them that tells.
const SETTLED: usize = 120;
const ENOUGH: usize = 600;

/// How many looks make one figure: their median.
const LOOKS: usize = 20;

/// By how much it may differ then, in percent.
const MOST_PERCENT: u64 = 5;

/// Wrong answers that are printed.
const SHOWN: usize = 20;

/// The longest of them, in characters.
const SHOWN_CHARS: usize = 300;

/// An answer of the gate.
pub(crate) struct Said {
    pub(crate) is_allowed: bool,
    code: String,
}

impl Said {
    /// `None` where it is neither 200 nor 403.
    pub(crate) fn of(answer: &str) -> Option<Self> {
        let is_allowed = match answer.get(9..12)? {
            "200" => true,
            "403" => false,
            _ => return None,
        };
        let code = answer.lines().find_map(|line| line.strip_prefix("clresolve-code: ")).unwrap_or_default();
        Some(Self { is_allowed, code: code.trim().to_owned() })
    }
}

#[derive(Default)]
pub(crate) struct Report(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    allowed: u64,
    /// Refusals of good names, by code.
    refused: BTreeMap<String, u64>,
    denied: u64,
    down: u64,
    slowest: Duration,
    wrong: Vec<String>,
    /// Since when every daemon has known that a name is trusted no more.
    turned: BTreeMap<String, Instant>,
    /// How long it took until all knew of a change that some did not know before.
    known: Vec<Duration>,
    troubles: BTreeMap<&'static str, u64>,
    memory: Vec<u64>,
}

impl Report {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn trouble(&self, what: &'static str) {
        *self.seen().troubles.entry(what).or_default() += 1;
    }

    /// What a daemon said about `name` when it was asked at `asked`.
    pub(crate) fn heard(&self, name: &str, asked: Instant, said: &Asked) {
        let mut seen = self.seen();
        let answer = match said {
            Asked::Down => {
                seen.down += 1;
                return;
            }
            Asked::Unanswered(why) => return seen.wrong.push(format!("{name}: {why}")),
            Asked::Answer(answer) => answer,
        };
        seen.slowest = seen.slowest.max(asked.elapsed());
        let is_good = name == "good.eth" || name.starts_with("turning");
        let has_turned = seen.turned.get(name).is_some_and(|since| *since < asked);
        match Said::of(answer) {
            None => seen.wrong.push(format!("{name}: {answer}")),
            Some(said) if said.is_allowed && (!is_good || has_turned) => {
                seen.wrong.push(format!("{name} is allowed: {answer}"));
            }
            Some(said) if said.is_allowed => seen.allowed += 1,
            Some(said) if is_good => *seen.refused.entry(said.code).or_default() += 1,
            Some(_) => seen.denied += 1,
        }
    }

    /// After this time no daemon allowed a name that had changed. `before` of them had allowed it.
    pub(crate) fn known(&self, name: &str, before: usize, after: Duration) {
        let mut seen = self.seen();
        if before > 0 {
            seen.known.push(after);
        }
        seen.turned.insert(name.to_owned(), Instant::now());
    }

    /// The old record of a name is about to be written.
    pub(crate) fn returns(&self, name: &str) {
        self.seen().turned.remove(name);
    }

    /// The memory of the daemon that is never killed, in KiB.
    pub(crate) fn took(&self, memory: u64) {
        self.seen().memory.push(memory);
    }

    pub(crate) fn print(&self, seconds: u64) -> anyhow::Result<()> {
        let mut seen = self.seen();
        seen.known.sort();
        println!("chaos of {seconds} s");
        println!("good names             {} answers of 200", seen.allowed);
        for (code, count) in &seen.refused {
            println!("  refused              {count} with {code}");
        }
        println!("bad names              {} answers of 403", seen.denied);
        println!("slowest answer         {:?}", seen.slowest);
        println!("asked while down       {}", seen.down);
        for (what, count) in &seen.troubles {
            println!("{what:<22} {count} times");
        }
        let (middle, worst) = (seen.known.get(seen.known.len() / 2), seen.known.last());
        let (middle, worst) = (middle.context("no change was seen")?, worst.context("no change was seen")?);
        println!("changes                {}, known to all after {middle:?}, at worst {worst:?}", seen.known.len());
        let median = |looks: &[u64]| {
            let mut looks = looks.to_vec();
            looks.sort_unstable();
            looks.get(looks.len() / 2).copied().unwrap_or_default()
        };
        let settled = &seen.memory[SETTLED.min(seen.memory.len() / 2)..];
        let first = median(&settled[..LOOKS.min(settled.len())]);
        let last = median(&settled[settled.len().saturating_sub(LOOKS)..]);
        println!("memory                 {:.1} MiB, at the end {:.1} MiB", first as f64 / 1024.0, last as f64 / 1024.0);
        println!("wrong                  {}", seen.wrong.len());
        for what in seen.wrong.iter().take(SHOWN) {
            eprintln!("wrong: {}", what.chars().take(SHOWN_CHARS).collect::<String>());
        }
        ensure!(seen.wrong.is_empty(), "some answers were wrong");
        ensure!(seen.allowed > 0 && seen.denied > 0, "nobody was answered");
        ensure!(*worst < crate::KNOWN_WITHIN, "a change was not known in time");
        let is_settled = last * 100 <= first * (100 + MOST_PERCENT);
        ensure!(seen.memory.len() < ENOUGH || is_settled, "memory grew by more than {MOST_PERCENT} %");
        Ok(())
    }
}
