//! Computes the `pacr:` metadata of Aevum's AgentCards from a ledger of PACR records. Pure: the caller passes the lines
//! and the time.
//!
//! The specification names the figures but leaves many details open. This module decides them and includes the
//! decisions in the result ([`PacrMetricsMethod`]):
//!
//! | open | decision |
//! |---|---|
//! | layout of a record | the JSON encoding that Aevum publishes for PACR records, a record per line |
//! | whom a record involves | the agent whose `agent_id` is in its payload, which is a card or names one |
//! | the time of a record | the first 48 bits of its identity, milliseconds since 1970; Ω.time is a duration |
//! | counterfactual records | ignored |
//! | λ and its unit | per second; [`PacrDecayRate::default`] halves a weight in 30 days |
//! | a window | none: the weights of old records decay, but no record is cut off; records after the requested time are ignored |
//! | latency and cost | Ω.time and Ω.energy, their points |
//! | the causal interaction graph | an edge from the agent of a record to the agent of each direct predecessor in the ledger, unless both are the same agent; rank therefore flows to causes; each pair counts once |
//! | PageRank's parameters | damping 0.85, until the ranks change by less than 10⁻¹² |
//! | betweenness | directed, all edges of equal length, divided by (n − 1)(n − 2) |
//! | the formula of the reputation | not specified, so it is not computed |

pub(crate) mod card;
mod graph;
mod record;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::Serialize;

pub use self::card::{CardMetricsInsertionError, insert_metrics};
use self::graph::{DAMPING, SimpleDirectedGraph, TOLERANCE};
pub use self::record::{AevumAgentId, AevumAgentIdError, MAX_LINE_BYTES};
use self::record::{PacrRecord, PacrRecordAttribution, PacrRecordId};

/// Identifier of the JSON form of a [`PacrLedgerMetrics`].
pub const SCHEMA: &str = "clresolve.ledger/1";

/// Maximum number of records. One takes some hundred bytes of memory.
pub const MAX_RECORDS: usize = 1_000_000;

/// Maximum number of predecessors of all records together. The published text expects one to four for each record.
pub const MAX_PREDECESSORS: usize = 4_000_000;

/// Maximum number of agents. Each has its figures in the result.
pub const MAX_AGENTS: usize = 10_000;

/// Maximum number of agents times links between them, which is the number of steps for betweenness. This many take
/// seconds.
pub const MAX_STEPS: usize = 100_000_000;

/// Default half-life of a weight in seconds: 30 days.
const HALF_LIFE: f64 = 30.0 * 24.0 * 3600.0;

/// Significant digits of a figure in the result. Machines may differ in the last digits of `exp`.
const DIGITS: usize = 12;

/// λ of the decay `exp(−λ × age)`, per second. At least 0.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
pub struct PacrDecayRate(f64);

impl PacrDecayRate {
    /// λ per second.
    pub const fn per_second(self) -> f64 {
        self.0
    }

    /// Half-life of a weight in seconds. `None` if weights do not decay.
    fn half_life(self) -> Option<f64> {
        (self.0 > 0.0).then(|| std::f64::consts::LN_2 / self.0).filter(|seconds| seconds.is_finite())
    }
}

impl Default for PacrDecayRate {
    /// A half-life of 30 days.
    fn default() -> Self {
        Self(std::f64::consts::LN_2 / HALF_LIFE)
    }
}

impl FromStr for PacrDecayRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lambda = text.parse::<f64>().ok().filter(|lambda| lambda.is_finite() && *lambda >= 0.0);
        lambda.map(Self).ok_or_else(|| "expected a number per second, 0 or more, such as 2.7e-7".to_owned())
    }
}

/// Why a ledger is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PacrLedgerError {
    /// A line is not a record.
    #[error("line {line}: {detail}")]
    Malformed {
        /// The line number, starting at 1.
        line: usize,
        /// What is wrong with the line.
        detail: String,
    },
    /// Two records have the same identity.
    #[error("line {line}: duplicate of the record in line {first}; a ledger contains each record once")]
    Duplicate {
        /// The line number, starting at 1.
        line: usize,
        /// The line number of the first record.
        first: usize,
    },
    /// A limit is exceeded.
    #[error("line {line}: more than {limit} {what}; shorten the ledger, for example by time")]
    TooMany {
        /// The line number, starting at 1.
        line: usize,
        /// What exceeds the limit.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// Too many links between too many agents.
    #[error(
        "the number of agents ({agents}) times the number of links exceeds {MAX_STEPS}; shorten the ledger, for example by time"
    )]
    TooManyLinks {
        /// The number of agents.
        agents: usize,
    },
}

/// A ledger, parsed line by line.
#[derive(Debug, Default)]
pub struct PacrLedger {
    records: HashMap<PacrRecordId, (PacrRecord, usize)>,
    agents: BTreeSet<AevumAgentId>,
    predecessors: usize,
    lines: usize,
}

impl PacrLedger {
    /// Parses a line, with or without its line end. Empty lines are skipped.
    ///
    /// # Errors
    /// The line is not a record, or exceeds a limit.
    pub fn add_line(&mut self, line: &[u8]) -> Result<(), PacrLedgerError> {
        self.lines += 1;
        let number = self.lines;
        let line = line.trim_ascii_end();
        if line.is_empty() {
            return Ok(());
        }
        let record = PacrRecord::parse(line).map_err(|detail| PacrLedgerError::Malformed { line: number, detail })?;
        if let Some((_, first)) = self.records.get(&record.id) {
            return Err(PacrLedgerError::Duplicate { line: number, first: *first });
        }
        self.predecessors += record.predecessors.len();
        if let PacrRecordAttribution::Agent(agent) = record.actor {
            self.agents.insert(agent);
        }
        for (held, limit, what) in [
            (self.records.len() + 1, MAX_RECORDS, "records"),
            (self.predecessors, MAX_PREDECESSORS, "predecessors"),
            (self.agents.len(), MAX_AGENTS, "agents"),
        ] {
            if held > limit {
                return Err(PacrLedgerError::TooMany { line: number, what, limit });
            }
        }
        self.records.insert(record.id, (record, number));
        Ok(())
    }

    /// Computes the metadata of every agent as of `at`.
    ///
    /// # Errors
    /// [`PacrLedgerError::TooManyLinks`] if agents times links exceed [`MAX_STEPS`].
    pub fn compute_metrics(&self, at: Timestamp, lambda: PacrDecayRate) -> Result<PacrLedgerMetrics, PacrLedgerError> {
        let now = u64::try_from(at.as_millisecond()).unwrap_or(0);
        let mut counts = PacrRecordCounts { records: self.records.len(), ..PacrRecordCounts::default() };
        let mut used: BTreeMap<PacrRecordId, (AevumAgentId, &PacrRecord)> = BTreeMap::new();
        for (record, _) in self.records.values() {
            match record.actor {
                _ if record.id.unix_milliseconds() > now => counts.later += 1,
                PacrRecordAttribution::Counterfactual => counts.counterfactual += 1,
                PacrRecordAttribution::Nobody => counts.unattributed += 1,
                PacrRecordAttribution::Agent(agent) => {
                    used.insert(record.id, (agent, record));
                }
            }
        }
        counts.used = used.len();
        counts.agents = used.values().map(|(agent, _)| agent).collect::<BTreeSet<_>>().len();
        // In the order of their identities, so that the order of the lines affects no figure.
        let mut tallies: BTreeMap<AevumAgentId, Vec<&PacrRecord>> = BTreeMap::new();
        let mut pairs: BTreeSet<(AevumAgentId, AevumAgentId)> = BTreeSet::new();
        for (agent, record) in used.values() {
            tallies.entry(*agent).or_default().push(record);
            for predecessor in &record.predecessors {
                match used.get(predecessor) {
                    Some((cause, _)) if cause != agent => drop(pairs.insert((*agent, *cause))),
                    Some(_) => {}
                    None if self.records.contains_key(predecessor) => counts.predecessors_left_out += 1,
                    None => counts.predecessors_unknown += 1,
                }
            }
            if pairs.len() * counts.agents > MAX_STEPS && !clresolve_core::mutant!("links-without-end") {
                return Err(PacrLedgerError::TooManyLinks { agents: counts.agents });
            }
        }
        counts.links = pairs.len();
        let graph = agent_graph(&tallies, &pairs);
        let (ranks, scores) = (graph.page_rank(), graph.betweenness());
        let agents =
            tallies.iter().zip(ranks).zip(scores).map(|(((agent_id, records), rank), score)| PacrAgentMetricsRow {
                agent_id: *agent_id,
                metadata: PacrAgentMetrics::from_records(records, now, lambda, rank, score),
            });
        Ok(PacrLedgerMetrics {
            schema: SCHEMA,
            stated: PacrMetricsMethod::from_parameters(at, lambda),
            ledger: counts,
            agents: agents.collect(),
        })
    }
}

/// Builds the graph. Agents are numbered in the order of their identities.
fn agent_graph(
    tallies: &BTreeMap<AevumAgentId, Vec<&PacrRecord>>,
    pairs: &BTreeSet<(AevumAgentId, AevumAgentId)>,
) -> SimpleDirectedGraph {
    let numbers: HashMap<AevumAgentId, u32> = tallies.keys().copied().zip(0..).collect();
    let links: Vec<(u32, u32)> = pairs.iter().map(|(from, to)| (numbers[from], numbers[to])).collect();
    SimpleDirectedGraph::new(tallies.len(), &links)
}

/// The figures with their input and their method.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PacrLedgerMetrics {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The method.
    pub stated: PacrMetricsMethod,
    /// The input.
    pub ledger: PacrRecordCounts,
    /// Each agent with its figures, ordered by identity.
    pub agents: Vec<PacrAgentMetricsRow>,
}

/// The method and its parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PacrMetricsMethod {
    /// The time from which ages are counted.
    pub at: Timestamp,
    /// λ, per second.
    pub lambda: PacrDecayRate,
    /// Half-life of a weight in seconds. Null if weights do not decay.
    pub half_life_seconds: Option<f64>,
    /// The formula of a record's weight.
    pub weight: &'static str,
    /// How the graph is built.
    pub graph: &'static str,
    /// The method of `pacr:influence_rank`.
    pub influence_rank: String,
    /// The method of `pacr:critical_score`.
    pub critical_score: &'static str,
    /// Figures that are not computed, with the reason.
    pub not_computed: BTreeMap<&'static str, &'static str>,
}

impl PacrMetricsMethod {
    fn from_parameters(at: Timestamp, lambda: PacrDecayRate) -> Self {
        Self {
            at,
            lambda,
            half_life_seconds: lambda.half_life().map(round_significant_digits),
            weight: "exp(-lambda * seconds from the moment of the record's identity to `at`)",
            graph: "an edge from the agent of a record to the agent of each direct predecessor, once, without loops",
            influence_rank: format!("PageRank, damping {DAMPING}, tolerance {TOLERANCE:e}; the ranks sum to 1"),
            critical_score: "betweenness, directed, unweighted, divided by (n - 1)(n - 2)",
            not_computed: BTreeMap::from([("pacr:reputation_score", "the specification gives no formula for it")]),
        }
    }
}

/// Counts of the records, by their use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PacrRecordCounts {
    /// Records in the ledger.
    pub records: usize,
    /// Records that the figures use.
    pub used: usize,
    /// Records after the requested time.
    pub later: usize,
    /// Counterfactual records.
    pub counterfactual: usize,
    /// Records whose payload names no agent.
    pub unattributed: usize,
    /// Predecessors of used records that are in the ledger but not used.
    pub predecessors_left_out: usize,
    /// Predecessors of used records that are not in the ledger.
    pub predecessors_unknown: usize,
    /// Agents with a used record.
    pub agents: usize,
    /// Links between two agents.
    pub links: usize,
}

/// An agent with its figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PacrAgentMetricsRow {
    /// The agent.
    pub agent_id: AevumAgentId,
    /// The members for `metadata` of its card.
    pub metadata: PacrAgentMetrics,
}

/// The members of `metadata` that come from a ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PacrAgentMetrics {
    /// Records that involve the agent.
    #[serde(rename = "pacr:interaction_count")]
    pub interaction_count: usize,
    /// Weighted mean of Ω.time, in milliseconds.
    #[serde(rename = "pacr:avg_latency_ms")]
    pub avg_latency_ms: f64,
    /// Weighted mean of Ω.energy, in joules.
    #[serde(rename = "pacr:avg_cost_joules")]
    pub avg_cost_joules: f64,
    /// PageRank.
    #[serde(rename = "pacr:influence_rank")]
    pub influence_rank: f64,
    /// Betweenness.
    #[serde(rename = "pacr:critical_score")]
    pub critical_score: f64,
}

impl PacrAgentMetrics {
    /// Requires that `records` is not empty, and that no record is after `now`.
    fn from_records(records: &[&PacrRecord], now: u64, lambda: PacrDecayRate, rank: f64, score: f64) -> Self {
        let newest = records.iter().map(|record| record.id.unix_milliseconds()).max().unwrap_or(now);
        let (mut weights, mut seconds, mut joules) = (0.0, 0.0, 0.0);
        for record in records {
            // Relative to the newest record. The means are the same, and the weights of an old agent do not all
            // underflow to 0.
            let age = (newest - record.id.unix_milliseconds()) as f64 / 1000.0;
            let weight = (-lambda.0 * age).exp();
            weights += weight;
            seconds += weight * record.seconds;
            joules += weight * record.joules;
        }
        Self {
            interaction_count: records.len(),
            avg_latency_ms: round_significant_digits(seconds / weights * 1000.0),
            avg_cost_joules: round_significant_digits(joules / weights),
            influence_rank: round_significant_digits(rank),
            critical_score: round_significant_digits(score),
        }
    }
}

impl fmt::Display for PacrDecayRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:e}", self.0)
    }
}

/// The number, rounded to [`DIGITS`] significant digits.
fn round_significant_digits(number: f64) -> f64 {
    format!("{number:.*e}", DIGITS - 1).parse().unwrap_or(number)
}
