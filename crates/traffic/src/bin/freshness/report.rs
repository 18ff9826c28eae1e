//! The gate's responses for the hot names, and how soon it closed after each change.

use std::collections::BTreeMap;
use std::mem::replace;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clresolve_core::records::TextRecordKey;
use tokio::time::Instant;

use crate::chain::{HotNameRecordKey, NAMES};
use crate::scale::FACTOR;

/// How many blocks after its change a record is restored.
const RESTORED_AFTER: u32 = 3;

/// Minimum share of changes that must close the gate before the next block, in percent.
const LEAST_PERCENT: usize = 99;

/// Codes of refusals that may end without another block: the gate had no time to decide.
const TRANSIENT: [&str; 3] = ["deadline-passed", "overloaded", "unconfirmed"];

/// Maximum number of wrong answers that are printed.
const SHOWN: usize = 20;

/// Maximum length of a printed answer, in characters.
const SHOWN_CHARS: usize = 300;

enum GateResponseDecision {
    Allowed,
    /// With this code.
    Denied(String),
}

impl GateResponseDecision {
    /// `None` unless the status is 200 or 403.
    fn parse(answer: &str) -> Option<Self> {
        match answer.get(9..12)? {
            "200" => Some(Self::Allowed),
            "403" => {
                let code = answer.lines().find_map(|line| line.strip_prefix("clresolve-code: "));
                Some(Self::Denied(code.unwrap_or("no code").trim().to_owned()))
            }
            _ => None,
        }
    }
}

/// The gate's latest response for a hot name.
enum HotNameGateState {
    /// The records are the original ones, and the gate allows the name.
    Open,
    /// The records are the original ones, but the gate refuses the name.
    Refused,
    /// A record is changed.
    Changed(RecordChangeObservation),
    /// The record was restored at this moment. The gate has not allowed the name since.
    Restored(Instant),
}

struct RecordChangeObservation {
    key: TextRecordKey,
    /// When its block was sealed.
    sealed: Instant,
    /// When the next block was sealed.
    next_block: Option<Instant>,
    /// Number of blocks since.
    blocks: u32,
    /// The first refusal that no allowing answer followed: its time and code.
    closed: Option<(Instant, String)>,
    /// The time of the first refusal that is not transient. The gate must not allow the name after it.
    lasting_refusal: Option<Instant>,
}

impl RecordChangeObservation {
    fn new(key: TextRecordKey, sealed: Instant) -> Self {
        Self { key, sealed, next_block: None, blocks: 0, closed: None, lasting_refusal: None }
    }

    /// Records the response to a request sent at `asked`. Returns whether it is right.
    fn record_response(&mut self, asked: Instant, answer: GateResponseDecision) -> bool {
        if asked < self.sealed {
            return true;
        }
        match answer {
            GateResponseDecision::Denied(code) => {
                let now = Instant::now();
                if !TRANSIENT.contains(&code.as_str()) {
                    self.lasting_refusal.get_or_insert(now);
                }
                self.closed.get_or_insert((now, code));
                true
            }
            GateResponseDecision::Allowed => {
                if self.closed.as_ref().is_some_and(|(at, _)| asked >= *at) {
                    self.closed = None;
                }
                self.lasting_refusal.is_none_or(|since| asked < since)
            }
        }
    }
}

pub(crate) struct BlockRecordWrites {
    pub(crate) changed: Option<HotNameRecordKey>,
    pub(crate) restored: Vec<HotNameRecordKey>,
}

pub(crate) struct FreshnessReport(Mutex<FreshnessObservations>);

struct FreshnessObservations {
    names: Vec<HotNameGateState>,
    /// The index of the next name to change.
    next: usize,
    changes: usize,
    /// Time from each change to its refusal.
    delays: Vec<Duration>,
    /// Number of refusals before the next block.
    in_time: usize,
    /// The codes of those refusals.
    closed_with: BTreeMap<String, u64>,
    allowed: u64,
    /// Refusals of names with their original records, by code.
    refused: BTreeMap<String, u64>,
    wrong: Vec<String>,
}

impl FreshnessReport {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(FreshnessObservations {
            names: (0..NAMES).map(|_| HotNameGateState::Refused).collect(),
            next: 0,
            changes: 0,
            delays: Vec::new(),
            in_time: 0,
            closed_with: BTreeMap::new(),
            allowed: 0,
            refused: BTreeMap::new(),
            wrong: Vec::new(),
        }))
    }

    fn lock_observations(&self) -> MutexGuard<'_, FreshnessObservations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the gate's response for the hot name with this index.
    pub(crate) fn record_response(&self, name: usize, asked: Instant, answer: &str) {
        let mut observations = self.lock_observations();
        let FreshnessObservations { names, allowed, refused, wrong, .. } = &mut *observations;
        let Some(gate) = GateResponseDecision::parse(answer) else {
            return wrong.push(format!("hot name {name}: {answer}"));
        };
        *allowed += u64::from(matches!(gate, GateResponseDecision::Allowed));
        match (&mut names[name], gate) {
            (HotNameGateState::Changed(change), gate) => {
                if !change.record_response(asked, gate) {
                    let since = change.sealed.elapsed();
                    wrong.push(format!("hot name {name} is allowed again {since:?} after its change: {answer}"));
                }
            }
            (HotNameGateState::Restored(since), GateResponseDecision::Allowed) if asked < *since => {}
            (state, GateResponseDecision::Allowed) => *state = HotNameGateState::Open,
            (HotNameGateState::Restored(_), GateResponseDecision::Denied(_)) => {}
            (state, GateResponseDecision::Denied(code)) => {
                *refused.entry(code).or_default() += 1;
                *state = HotNameGateState::Refused;
            }
        }
    }

    /// Records a request without a response.
    pub(crate) fn record_missing_response(&self, name: usize, why: &str) {
        self.lock_observations().wrong.push(format!("hot name {name}: no answer: {why}"));
    }

    /// The writes of the next block. With `may_change`, the next name that the gate allows is changed.
    pub(crate) fn plan(&self, may_change: bool) -> BlockRecordWrites {
        let observations = self.lock_observations();
        let names = &observations.names;
        let due = |(name, state): (usize, &HotNameGateState)| match state {
            HotNameGateState::Changed(change) if change.blocks + 1 >= RESTORED_AFTER => {
                Some(HotNameRecordKey { name, key: change.key })
            }
            _ => None,
        };
        let restored = names.iter().enumerate().filter_map(due).collect();
        let mut in_turn = (0..NAMES).map(|offset| (observations.next + offset) % NAMES);
        let open = in_turn.find(|name| matches!(names[*name], HotNameGateState::Open));
        let key = TextRecordKey::CARD[observations.changes % TextRecordKey::CARD.len()];
        BlockRecordWrites { changed: open.filter(|_| may_change).map(|name| HotNameRecordKey { name, key }), restored }
    }

    /// Records that a block with these writes is sealed.
    pub(crate) fn record_sealed_block(&self, plan: &BlockRecordWrites) {
        let now = Instant::now();
        let mut observations = self.lock_observations();
        for state in &mut observations.names {
            if let HotNameGateState::Changed(change) = state {
                change.next_block.get_or_insert(now);
                change.blocks += 1;
            }
        }
        for record in &plan.restored {
            let before = replace(&mut observations.names[record.name], HotNameGateState::Restored(now));
            if let HotNameGateState::Changed(change) = before {
                observations.count_finished_change(change, now);
            }
        }
        if let Some(HotNameRecordKey { name, key }) = plan.changed {
            observations.names[name] = HotNameGateState::Changed(RecordChangeObservation::new(key, now));
            observations.changes += 1;
            observations.next = name + 1;
        }
    }

    /// Number of records that were changed and restored.
    pub(crate) fn restored_change_count(&self) -> usize {
        self.lock_observations().delays.len()
    }

    pub(crate) fn change_count(&self) -> usize {
        self.lock_observations().changes
    }

    /// Prints the results.
    ///
    /// # Errors
    /// If the gate closed too late too often, or gave a wrong response.
    pub(crate) fn print_and_check(&self) -> anyhow::Result<()> {
        let mut observations = self.lock_observations();
        observations.delays.sort_unstable();
        let FreshnessObservations { delays, in_time, closed_with, allowed, refused, wrong, .. } = &*observations;
        let (middle, slowest) = (delays.get(delays.len() / 2), delays.last());
        let (middle, slowest) = (middle.context("nothing was changed")?, slowest.context("nothing was changed")?);
        let percent = *in_time as f64 * 100.0 / delays.len() as f64;
        println!("changes                {}", delays.len());
        println!("closed in time         {percent:.1} %, before the next block (at least {LEAST_PERCENT} %)");
        for (what, delay) in [("median", middle), ("slowest", slowest)] {
            println!("{what:<22} {delay:.0?} after the block, {:.1?} of mainnet", *delay * FACTOR);
        }
        for (code, count) in closed_with {
            println!("  closed               {count} with {code}");
        }
        println!("allowed                {allowed} answers");
        for (code, count) in refused {
            println!("unchanged, refused     {count} answers with {code}");
        }
        println!("wrong                  {}", wrong.len());
        for what in wrong.iter().take(SHOWN) {
            eprintln!("wrong: {}", what.chars().take(SHOWN_CHARS).collect::<String>());
        }
        ensure!(wrong.is_empty(), "some answers were wrong");
        ensure!(*in_time * 100 >= LEAST_PERCENT * delays.len(), "the gate closed too late too often");
        Ok(())
    }
}

impl FreshnessObservations {
    /// Counts a change whose record is restored at `now`. A gate that never closed counts as late.
    fn count_finished_change(&mut self, change: RecordChangeObservation, now: Instant) {
        let (closed_at, code) = change.closed.unwrap_or_else(|| (now, "no refusal".to_owned()));
        self.delays.push(closed_at - change.sealed);
        self.in_time += usize::from(change.next_block.is_some_and(|next| closed_at < next));
        *self.closed_with.entry(code).or_default() += 1;
    }
}
