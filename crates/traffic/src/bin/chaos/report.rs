//! What was said, and whether it was right.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;
use tokio::time::Instant;

use crate::fleet::{DaemonReply, Face};

/// When every daemon must know of a change, whatever goes on but silence of all endpoints: one of them was asked just
/// before, the next one is silent, and the daemon is as busy as the machine.
pub(crate) const KNOWN_WITHIN: Duration = Duration::from_secs(2);

/// From when on memory must stay as it is, in looks of a second; and the least number of them that tells. A run of ten
/// minutes has some fewer than 600, since its names are asked first and a look takes its time.
const SETTLED: usize = 120;
const ENOUGH: usize = 550;

/// How many looks make one figure: their median.
const LOOKS: usize = 20;

/// By how much it may differ then, in percent.
const MOST_PERCENT: u64 = 5;

/// Wrong answers that are printed.
const SHOWN: usize = 20;

/// The longest of them, in characters.
const SHOWN_CHARS: usize = 300;

/// An answer of the gate.
pub(crate) struct GateAnswer {
    pub(crate) is_allowed: bool,
    code: String,
}

impl GateAnswer {
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

/// An answer of the report face.
enum Description {
    /// A verdict: its state, and how it was served.
    Verdict { state: String, served: String },
    /// A problem with this code, and the time to ask again.
    Refusal(String),
}

impl Description {
    /// `None` where it is neither.
    fn of(answer: &str) -> Option<Self> {
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let body: Value = serde_json::from_str(body).ok()?;
        let text = |place: &str| body.pointer(place).and_then(Value::as_str).map(str::to_owned);
        match head.get(9..12)? {
            "200" => Some(Self::Verdict { state: text("/state")?, served: text("/freshness/served")? }),
            "429" | "503" if head.contains("\r\nretry-after: ") => text("/code").map(Self::Refusal),
            _ => None,
        }
    }

    /// How it is counted.
    fn row(self) -> String {
        match self {
            Self::Verdict { state, served } if served == "stale" => format!("{state}, stale"),
            Self::Verdict { state, .. } => state,
            Self::Refusal(code) => format!("refused with {code}"),
        }
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
    /// Verdicts, by state, and refusals to give one, by code.
    described: BTreeMap<String, u64>,
    down: u64,
    slowest: Duration,
    wrong: Vec<String>,
    /// Names that are trusted no more: since when, and when one of them was last asked for and allowed.
    turned: BTreeMap<String, (Instant, Instant)>,
    /// How long after its change a name was allowed last, where it was allowed before.
    known: Vec<Duration>,
    troubles: BTreeMap<&'static str, u64>,
    memory: Vec<u64>,
}

impl Seen {
    /// A name that may have changed was asked for then, and allowed.
    fn allowed_at(&mut self, name: &str, asked: Instant, answer: &str) {
        let Some((since, last)) = self.turned.get_mut(name) else { return };
        *last = (*last).max(asked);
        if asked.saturating_duration_since(*since) > KNOWN_WITHIN {
            self.wrong.push(format!("{name} still has its trust: {answer}"));
        }
    }

    fn gate_said(&mut self, name: &str, asked: Instant, answer: &str) {
        match GateAnswer::of(answer) {
            None => self.wrong.push(format!("{name}: {answer}")),
            Some(said) if said.is_allowed && !is_good(name) => self.wrong.push(format!("{name} is allowed: {answer}")),
            Some(said) if said.is_allowed => {
                self.allowed += 1;
                self.allowed_at(name, asked, answer);
            }
            Some(said) if is_good(name) => *self.refused.entry(said.code).or_default() += 1,
            Some(_) => self.denied += 1,
        }
    }

    fn report_said(&mut self, name: &str, asked: Instant, answer: &str) {
        let Some(said) = Description::of(answer) else {
            return self.wrong.push(format!("{name}: neither verdict nor problem: {answer}"));
        };
        let is_trusted = matches!(&said, Description::Verdict { state, .. } if state == "trusted");
        if is_trusted && is_good(name) {
            self.allowed_at(name, asked, answer);
        } else if is_trusted {
            self.wrong.push(format!("{name} is trusted: {answer}"));
        }
        *self.described.entry(said.row()).or_default() += 1;
    }
}

/// Whether a name may be trusted.
fn is_good(name: &str) -> bool {
    name == "good.eth" || name.starts_with("turning")
}

impl Report {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn trouble(&self, what: &'static str) {
        *self.seen().troubles.entry(what).or_default() += 1;
    }

    /// What a daemon said about `name` when it was asked at `asked`.
    pub(crate) fn heard(&self, face: Face, name: &str, asked: Instant, said: &DaemonReply) {
        let mut seen = self.seen();
        let answer = match said {
            DaemonReply::Down => {
                seen.down += 1;
                return;
            }
            DaemonReply::Unanswered(why) => return seen.wrong.push(format!("{name}: {why}")),
            DaemonReply::Answer(answer) => answer,
        };
        match face {
            Face::Gate => {
                seen.slowest = seen.slowest.max(asked.elapsed());
                seen.gate_said(name, asked, answer);
            }
            Face::Report => seen.report_said(name, asked, answer),
        }
    }

    /// A record of a name was written that takes its trust away.
    pub(crate) fn turns(&self, name: &str) {
        let now = Instant::now();
        self.seen().turned.insert(name.to_owned(), (now, now));
    }

    /// The old record of a name is about to be written. Whether it was allowed before says whether the change counts.
    pub(crate) fn returns(&self, name: &str, was_allowed: bool) {
        let mut seen = self.seen();
        if let Some((since, last)) = seen.turned.remove(name).filter(|_| was_allowed) {
            seen.known.push(last - since);
        }
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
        println!("slowest of the gate    {:?}", seen.slowest);
        println!("verdicts               {}", seen.described.values().sum::<u64>());
        for (what, count) in &seen.described {
            println!("  {what:<20} {count}");
        }
        println!("asked while down       {}", seen.down);
        for (what, count) in &seen.troubles {
            println!("{what:<22} {count} times");
        }
        let (middle, worst) = (seen.known.get(seen.known.len() / 2), seen.known.last());
        let (middle, worst) = (middle.context("no change was seen")?, worst.context("no change was seen")?);
        println!("changes                {}, last allowed after {middle:?}, at worst {worst:?}", seen.known.len());
        let median = |looks: &[u64]| {
            let mut looks = looks.to_vec();
            looks.sort_unstable();
            looks.get(looks.len() / 2).copied().unwrap_or_default()
        };
        let settled = &seen.memory[SETTLED.min(seen.memory.len() / 2)..];
        let first = median(&settled[..LOOKS.min(settled.len())]);
        let last = median(&settled[settled.len().saturating_sub(LOOKS)..]);
        let is_enough = seen.memory.len() >= ENOUGH;
        let held = if is_enough { format!("held to {MOST_PERCENT} %") } else { "too short to tell".to_owned() };
        let mib = |kib: u64| kib as f64 / 1024.0;
        println!("memory                 {:.1} MiB, at the end {:.1} MiB ({held})", mib(first), mib(last));
        println!("wrong                  {}", seen.wrong.len());
        for what in seen.wrong.iter().take(SHOWN) {
            eprintln!("wrong: {}", what.chars().take(SHOWN_CHARS).collect::<String>());
        }
        ensure!(seen.wrong.is_empty(), "some answers were wrong");
        let is_described = seen.described.contains_key("trusted") && seen.described.contains_key("untrusted");
        ensure!(seen.allowed > 0 && seen.denied > 0 && is_described, "nobody was answered");
        let is_settled = last * 100 <= first * (100 + MOST_PERCENT);
        ensure!(!is_enough || is_settled, "memory grew by more than {MOST_PERCENT} %");
        Ok(())
    }
}
