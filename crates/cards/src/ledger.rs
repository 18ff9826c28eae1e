//! The `pacr:` metadata of Aevum's AgentCards, computed from a ledger of PACR records. Pure: the caller
//! passes the lines and the time.
//!
//! The specification names the figures and leaves much open. This module decides the open points and states them in the
//! result ([`Stated`]):
//!
//! | open | decided |
//! |---|---|
//! | layout of a record | the JSON encoding that Aevum publishes for PACR records, a record per line |
//! | whom a record involves | the agent whose `agent_id` stands in its payload, which is a card or names one |
//! | the moment of a record | the first 48 bits of its identity, milliseconds since 1970; Ω.time is a duration there |
//! | records of what did not happen (counterfactual) | left out of everything |
//! | λ and its unit | per second; [`Lambda::default`] halves a weight in 30 days |
//! | a window | none: old records fade, none is cut off; records later than the moment asked for are left out |
//! | latency and cost | Ω.time and Ω.energy, their points |
//! | the causal interaction graph | an edge from the agent of a record to the agent of each direct predecessor in the ledger, unless it is the same one; so rank flows to those who caused something; each pair counts once |
//! | PageRank's parameters | damping 0.85, until the ranks change by less than 10⁻¹² |
//! | betweenness | directed, all edges of equal length, divided by (n − 1)(n − 2) |
//! | the formula of the reputation | not given, so it is not computed |

pub(crate) mod card;
mod graph;
mod record;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::Serialize;

pub use self::card::{IntoCardError, into_card};
use self::graph::{DAMPING, Graph, TOLERANCE};
use self::record::{Actor, Record, RecordId};
pub use self::record::{AgentId, AgentIdMalformed, MAX_LINE_BYTES};

/// Identifier of the JSON form of a [`Projection`].
pub const SCHEMA: &str = "clresolve.ledger/1";

/// Most records. One takes some hundred bytes of memory.
pub const MAX_RECORDS: usize = 1_000_000;

/// Most predecessors of all records together; the published text expects one to four for each.
pub const MAX_PREDECESSORS: usize = 4_000_000;

/// Most agents. Each has its figures in the result.
pub const MAX_AGENTS: usize = 10_000;

/// Most agents times links between them: the steps of betweenness. This many take seconds.
pub const MAX_STEPS: usize = 100_000_000;

/// Seconds in which a weight is halved by default: 30 days.
const HALF_LIFE: f64 = 30.0 * 24.0 * 3600.0;

/// Digits of a figure in the result. Machines may differ in the last digits of `exp`.
const DIGITS: usize = 12;

/// λ of the decay `exp(−λ × age)`, per second: 0 or more.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
pub struct Lambda(f64);

impl Lambda {
    /// Per second.
    pub const fn per_second(self) -> f64 {
        self.0
    }

    /// Seconds in which a weight is halved; nothing where weights do not fade.
    fn half_life(self) -> Option<f64> {
        (self.0 > 0.0).then(|| std::f64::consts::LN_2 / self.0).filter(|seconds| seconds.is_finite())
    }
}

impl Default for Lambda {
    /// A weight is halved in 30 days.
    fn default() -> Self {
        Self(std::f64::consts::LN_2 / HALF_LIFE)
    }
}

impl FromStr for Lambda {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lambda = text.parse::<f64>().ok().filter(|lambda| lambda.is_finite() && *lambda >= 0.0);
        lambda.map(Self).ok_or_else(|| "expected a number per second, 0 or more, such as 2.7e-7".to_owned())
    }
}

/// Why a ledger is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// A line is not a record.
    #[error("line {line}: {detail}")]
    Malformed {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        detail: String,
    },
    /// Two records have the same identity.
    #[error("line {line}: duplicate of the record in line {first}; a ledger holds each record once")]
    Duplicate {
        /// The line, from 1.
        line: usize,
        /// The line of the first one.
        first: usize,
    },
    /// A limit is exceeded.
    #[error("line {line}: more than {limit} {what}; shorten the ledger, for example by time")]
    TooMany {
        /// The line, from 1.
        line: usize,
        /// What is counted.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// Too many links between too many agents.
    #[error(
        "the number of agents ({agents}) times the number of links exceeds {MAX_STEPS}; shorten the ledger, for example by time"
    )]
    TooManyLinks {
        /// The agents.
        agents: usize,
    },
}

/// A ledger, read line by line.
#[derive(Debug, Default)]
pub struct Ledger {
    records: HashMap<RecordId, (Record, usize)>,
    agents: BTreeSet<AgentId>,
    predecessors: usize,
    lines: usize,
}

impl Ledger {
    /// Takes a line, with or without its end. Empty lines are skipped.
    ///
    /// # Errors
    /// If it is not a record, or exceeds a limit.
    pub fn push(&mut self, line: &[u8]) -> Result<(), LedgerError> {
        self.lines += 1;
        let number = self.lines;
        let line = line.trim_ascii_end();
        if line.is_empty() {
            return Ok(());
        }
        let record = Record::parse(line).map_err(|detail| LedgerError::Malformed { line: number, detail })?;
        if let Some((_, first)) = self.records.get(&record.id) {
            return Err(LedgerError::Duplicate { line: number, first: *first });
        }
        self.predecessors += record.predecessors.len();
        if let Actor::Agent(agent) = record.actor {
            self.agents.insert(agent);
        }
        for (held, limit, what) in [
            (self.records.len() + 1, MAX_RECORDS, "records"),
            (self.predecessors, MAX_PREDECESSORS, "predecessors"),
            (self.agents.len(), MAX_AGENTS, "agents"),
        ] {
            if held > limit {
                return Err(LedgerError::TooMany { line: number, what, limit });
            }
        }
        self.records.insert(record.id, (record, number));
        Ok(())
    }

    /// The metadata of every agent as of `at`.
    ///
    /// # Errors
    /// [`LedgerError::TooManyLinks`] if agents times links exceed [`MAX_STEPS`].
    pub fn project(&self, at: Timestamp, lambda: Lambda) -> Result<Projection, LedgerError> {
        let now = u64::try_from(at.as_millisecond()).unwrap_or(0);
        let mut counts = LedgerCounts { records: self.records.len(), ..LedgerCounts::default() };
        let mut used: BTreeMap<RecordId, (AgentId, &Record)> = BTreeMap::new();
        for (record, _) in self.records.values() {
            match record.actor {
                _ if record.id.milliseconds() > now => counts.later += 1,
                Actor::Counterfactual => counts.counterfactual += 1,
                Actor::Nobody => counts.unattributed += 1,
                Actor::Agent(agent) => {
                    used.insert(record.id, (agent, record));
                }
            }
        }
        counts.used = used.len();
        counts.agents = used.values().map(|(agent, _)| agent).collect::<BTreeSet<_>>().len();
        // In the order of their identities, so that the order of the lines changes no figure.
        let mut tallies: BTreeMap<AgentId, Vec<&Record>> = BTreeMap::new();
        let mut pairs: BTreeSet<(AgentId, AgentId)> = BTreeSet::new();
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
                return Err(LedgerError::TooManyLinks { agents: counts.agents });
            }
        }
        counts.links = pairs.len();
        let graph = graph(&tallies, &pairs);
        let (ranks, scores) = (graph.page_rank(), graph.betweenness());
        let agents = tallies.iter().zip(ranks).zip(scores).map(|(((agent_id, records), rank), score)| AgentMetadata {
            agent_id: *agent_id,
            metadata: Metadata::of(records, now, lambda, rank, score),
        });
        Ok(Projection { schema: SCHEMA, stated: Stated::of(at, lambda), ledger: counts, agents: agents.collect() })
    }
}

/// The agents are numbered in the order of their identities.
fn graph(tallies: &BTreeMap<AgentId, Vec<&Record>>, pairs: &BTreeSet<(AgentId, AgentId)>) -> Graph {
    let numbers: HashMap<AgentId, u32> = tallies.keys().copied().zip(0..).collect();
    let links: Vec<(u32, u32)> = pairs.iter().map(|(from, to)| (numbers[from], numbers[to])).collect();
    Graph::new(tallies.len(), &links)
}

/// The figures, their input and their method.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Projection {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The method.
    pub stated: Stated,
    /// The input.
    pub ledger: LedgerCounts,
    /// Each agent with its figures, by identity.
    pub agents: Vec<AgentMetadata>,
}

/// The method and its parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Stated {
    /// The moment that ages are counted from.
    pub at: Timestamp,
    /// λ, per second.
    pub lambda: Lambda,
    /// Seconds in which a weight is halved; null where weights do not fade.
    pub half_life_seconds: Option<f64>,
    /// How a record is weighed.
    pub weight: &'static str,
    /// The graph.
    pub graph: &'static str,
    /// The method of `pacr:influence_rank`.
    pub influence_rank: String,
    /// The method of `pacr:critical_score`.
    pub critical_score: &'static str,
    /// What is not computed, and why.
    pub not_computed: BTreeMap<&'static str, &'static str>,
}

impl Stated {
    fn of(at: Timestamp, lambda: Lambda) -> Self {
        Self {
            at,
            lambda,
            half_life_seconds: lambda.half_life().map(rounded),
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
pub struct LedgerCounts {
    /// Records in the ledger.
    pub records: usize,
    /// Those that the figures use.
    pub used: usize,
    /// Those after the moment asked for.
    pub later: usize,
    /// Counterfactual ones.
    pub counterfactual: usize,
    /// Those whose payload names no agent.
    pub unattributed: usize,
    /// Predecessors of used records that are in the ledger but not used.
    pub predecessors_left_out: usize,
    /// Predecessors of used records that are not in the ledger.
    pub predecessors_unknown: usize,
    /// Agents with a used record.
    pub agents: usize,
    /// Links between two of them.
    pub links: usize,
}

/// An agent with its figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AgentMetadata {
    /// The agent.
    pub agent_id: AgentId,
    /// The members for `metadata` of its card.
    pub metadata: Metadata,
}

/// The members of `metadata` that come from a ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Metadata {
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

impl Metadata {
    /// `records` is not empty, and none of them is after `now`.
    fn of(records: &[&Record], now: u64, lambda: Lambda, rank: f64, score: f64) -> Self {
        let newest = records.iter().map(|record| record.id.milliseconds()).max().unwrap_or(now);
        let (mut weights, mut seconds, mut joules) = (0.0, 0.0, 0.0);
        for record in records {
            // Relative to the newest record: the means are the same, and not all weights of an old agent become 0.
            let age = (newest - record.id.milliseconds()) as f64 / 1000.0;
            let weight = (-lambda.0 * age).exp();
            weights += weight;
            seconds += weight * record.seconds;
            joules += weight * record.joules;
        }
        Self {
            interaction_count: records.len(),
            avg_latency_ms: rounded(seconds / weights * 1000.0),
            avg_cost_joules: rounded(joules / weights),
            influence_rank: rounded(rank),
            critical_score: rounded(score),
        }
    }
}

impl fmt::Display for Lambda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:e}", self.0)
    }
}

/// The number to [`DIGITS`] digits.
fn rounded(number: f64) -> f64 {
    format!("{number:.*e}", DIGITS - 1).parse().unwrap_or(number)
}
