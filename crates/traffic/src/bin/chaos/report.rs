//! Checks the responses and counts the results.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;
use tokio::time::Instant;

use crate::fleet::{DaemonApiKind, DaemonRequestOutcome};

/// Every daemon must notice a change within this time under any fault except a stall of all endpoints. It covers an
/// endpoint that was just polled, a stalled next one, and a busy machine.
pub(crate) const KNOWN_WITHIN: Duration = Duration::from_secs(2);

/// Memory samples (one a second) before memory must be stable, and the minimum number after them for a verdict. Ten
/// minutes yield slightly fewer than 600 samples, because the names are warmed up first and sampling takes time.
const SETTLED: usize = 120;
const ENOUGH: usize = 550;

/// Number of samples whose median is compared.
const LOOKS: usize = 20;

/// Maximum growth between the two medians, in percent.
const MOST_PERCENT: u64 = 5;

/// Maximum number of wrong responses that are printed.
const SHOWN: usize = 20;

/// Maximum length of each, in characters.
const SHOWN_CHARS: usize = 300;

pub(crate) struct ParsedGateResponse {
    pub(crate) is_allowed: bool,
    code: String,
}

impl ParsedGateResponse {
    /// `None` if the status is neither 200 nor 403.
    pub(crate) fn parse(answer: &str) -> Option<Self> {
        let is_allowed = match answer.get(9..12)? {
            "200" => true,
            "403" => false,
            _ => return None,
        };
        let code = answer.lines().find_map(|line| line.strip_prefix("clresolve-code: ")).unwrap_or_default();
        Some(Self { is_allowed, code: code.trim().to_owned() })
    }
}

/// A response to `/v1/verdicts/NAME`.
enum ParsedVerdictResponse {
    /// A verdict: its state, and how it was served.
    Verdict { state: String, served: String },
    /// A problem with this code and a retry time.
    Refusal(String),
}

impl ParsedVerdictResponse {
    /// `None` for any other response.
    fn parse(answer: &str) -> Option<Self> {
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let body: Value = serde_json::from_str(body).ok()?;
        let text = |place: &str| body.pointer(place).and_then(Value::as_str).map(str::to_owned);
        match head.get(9..12)? {
            "200" => Some(Self::Verdict { state: text("/state")?, served: text("/freshness/served")? }),
            "429" | "503" if head.contains("\r\nretry-after: ") => text("/code").map(Self::Refusal),
            _ => None,
        }
    }

    /// The label under which it is counted.
    fn count_label(self) -> String {
        match self {
            Self::Verdict { state, served } if served == "stale" => format!("{state}, stale"),
            Self::Verdict { state, .. } => state,
            Self::Refusal(code) => format!("refused with {code}"),
        }
    }
}

#[derive(Default)]
pub(crate) struct ChaosTestReport(Mutex<ChaosTestCounts>);

#[derive(Default)]
struct ChaosTestCounts {
    allowed: u64,
    /// Refusals of good names, by code.
    refused: BTreeMap<String, u64>,
    denied: u64,
    /// Verdicts by state, and problems by code.
    described: BTreeMap<String, u64>,
    down: u64,
    slowest: Duration,
    wrong: Vec<String>,
    /// Names that lost their trust: when, and the send time of the latest request that was allowed.
    turned: BTreeMap<String, (Instant, Instant)>,
    /// The delay from each change to the last allowed request, for names that were allowed before the change.
    known: Vec<Duration>,
    troubles: BTreeMap<&'static str, u64>,
    memory: Vec<u64>,
}

impl ChaosTestCounts {
    /// Records that a request for a name that may have changed, sent at `asked`, was allowed.
    fn allowed_at(&mut self, name: &str, asked: Instant, answer: &str) {
        let Some((since, last)) = self.turned.get_mut(name) else { return };
        *last = (*last).max(asked);
        if asked.saturating_duration_since(*since) > KNOWN_WITHIN {
            let late = asked.saturating_duration_since(*since);
            self.wrong.push(format!("{name} is still allowed after {late:?}: {answer}"));
        }
    }

    fn record_gate_response(&mut self, name: &str, asked: Instant, answer: &str) {
        match ParsedGateResponse::parse(answer) {
            None => self.wrong.push(format!("{name}: {answer}")),
            Some(said) if said.is_allowed && !is_good_name(name) => {
                self.wrong.push(format!("{name} is allowed: {answer}"))
            }
            Some(said) if said.is_allowed => {
                self.allowed += 1;
                self.allowed_at(name, asked, answer);
            }
            Some(said) if is_good_name(name) => *self.refused.entry(said.code).or_default() += 1,
            Some(_) => self.denied += 1,
        }
    }

    fn record_verdict_response(&mut self, name: &str, asked: Instant, answer: &str) {
        let Some(said) = ParsedVerdictResponse::parse(answer) else {
            return self.wrong.push(format!("{name}: neither verdict nor problem: {answer}"));
        };
        let is_trusted = matches!(&said, ParsedVerdictResponse::Verdict { state, .. } if state == "trusted");
        if is_trusted && is_good_name(name) {
            self.allowed_at(name, asked, answer);
        } else if is_trusted {
            self.wrong.push(format!("{name} is trusted: {answer}"));
        }
        *self.described.entry(said.count_label()).or_default() += 1;
    }
}

fn is_good_name(name: &str) -> bool {
    name == "good.eth" || name.starts_with("turning")
}

impl ChaosTestReport {
    fn lock_counts(&self) -> MutexGuard<'_, ChaosTestCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn count_fault(&self, what: &'static str) {
        *self.lock_counts().troubles.entry(what).or_default() += 1;
    }

    /// Records the response of a daemon to a request for `name` that was sent at `asked`.
    pub(crate) fn record_outcome(&self, api: DaemonApiKind, name: &str, asked: Instant, said: &DaemonRequestOutcome) {
        let mut seen = self.lock_counts();
        let answer = match said {
            DaemonRequestOutcome::Down => {
                seen.down += 1;
                return;
            }
            DaemonRequestOutcome::Unanswered(why) => return seen.wrong.push(format!("{name}: {why}")),
            DaemonRequestOutcome::Answer(answer) => answer,
        };
        match api {
            DaemonApiKind::Gate => {
                seen.slowest = seen.slowest.max(asked.elapsed());
                seen.record_gate_response(name, asked, answer);
            }
            DaemonApiKind::Report => seen.record_verdict_response(name, asked, answer),
        }
    }

    /// Records that a name has lost its trust.
    pub(crate) fn record_trust_loss(&self, name: &str) {
        let now = Instant::now();
        self.lock_counts().turned.insert(name.to_owned(), (now, now));
    }

    /// Records that the original record is about to be restored. The change counts only if the name was allowed before
    /// it.
    pub(crate) fn record_restoration(&self, name: &str, was_allowed: bool) {
        let mut seen = self.lock_counts();
        if let Some((since, last)) = seen.turned.remove(name).filter(|_| was_allowed) {
            seen.known.push(last - since);
        }
    }

    /// Records the memory of the daemon that is never killed, in KiB.
    pub(crate) fn record_memory(&self, memory: u64) {
        self.lock_counts().memory.push(memory);
    }

    pub(crate) fn print_and_check(&self, seconds: u64) -> anyhow::Result<()> {
        let mut seen = self.lock_counts();
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
        println!("requests while down    {}", seen.down);
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
        let held = if is_enough { format!("limit {MOST_PERCENT} %") } else { "too short to tell".to_owned() };
        let mib = |kib: u64| kib as f64 / 1024.0;
        println!("memory                 {:.1} MiB, at the end {:.1} MiB ({held})", mib(first), mib(last));
        println!("wrong                  {}", seen.wrong.len());
        for what in seen.wrong.iter().take(SHOWN) {
            eprintln!("wrong: {}", what.chars().take(SHOWN_CHARS).collect::<String>());
        }
        ensure!(seen.wrong.is_empty(), "some answers were wrong");
        let is_described = seen.described.contains_key("trusted") && seen.described.contains_key("untrusted");
        ensure!(seen.allowed > 0 && seen.denied > 0 && is_described, "no request was answered");
        let is_settled = last * 100 <= first * (100 + MOST_PERCENT);
        ensure!(!is_enough || is_settled, "memory grew by more than {MOST_PERCENT} %");
        Ok(())
    }
}
