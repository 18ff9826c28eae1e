//! Compares strict parsing and schema validation of 10,000 cards of all five systems with `JSON.parse` and the same
//! schemas in Ajv 8. Both process the same texts on one thread, alternately in one run.
//!
//! Also prints the rate of the whole lint, from bytes to findings. It has no budget, because Ajv has no counterpart to
//! the other rules.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clresolve_cards::lint::lint_document;
use clresolve_cards::system::{CardLintContext, CardSystem};
use clresolve_core::state::TrustState;
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::profile::{ConformanceProfile, DEFAULT};
use clresolve_verdict::schema::StrictSchema;
use serde_json::{Value, json};

use support::{GOOD, Good, Row, median, median_ratio, print_row};

const CARDS: usize = 10_000;

/// Few rounds, because each takes a good part of a second.
const ROUNDS: usize = 15;

/// Minimum rate, as a multiple of Ajv's. Ajv compiles schemas to code.
const BUDGET: f64 = 1.2;

/// The folder in which Ajv is installed.
const AJV: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/lint");

/// The good cards of the sandbox that are served as files, with the schemas by which Ajv judges them.
const FILES: [(CardSystem, &str, &str); 4] = [
    (CardSystem::A2a, include_str!("../crates/sandbox/src/discovery/a2a.json"), "a2a.agent-card-1.0"),
    (CardSystem::Aevum, include_str!("../crates/sandbox/src/discovery/aevum.json"), "aevum.agent-card-1.0"),
    (CardSystem::Anypoint, include_str!("../crates/sandbox/src/discovery/anypoint.json"), "anypoint.agent-card-1.0"),
    (CardSystem::Orloj, include_str!("../crates/sandbox/src/discovery/orloj.json"), "orloj.agent-card"),
];

fn main() {
    if !support::asked_to_measure() {
        return;
    }
    let (of_commandlayer, profile) = commandlayer();
    let cards = cards(&of_commandlayer);
    for (system, card, _) in &cards {
        let report = lint_document(card.as_bytes(), None, &CardLintContext::from_profile(&profile));
        assert_eq!((report.system, report.valid), (Some(*system), true), "{:?}", report.findings);
    }
    let Some(mut ajv) = Ajv::start(&cards) else {
        eprintln!("not measured: lint beside Ajv needs Node with npm");
        return;
    };
    let schemas = schemas(&cards);
    let (mut ours, mut whole, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(validated(&cards, &schemas).as_secs_f64());
        theirs.push(ajv.round().as_secs_f64());
        whole.push(linted(&cards, &profile).as_secs_f64());
    }
    let per_second = |seconds: &[f64]| format!("{:.0} cards/s", CARDS as f64 / median(seconds));
    let beside = format!("JSON.parse and schema in Ajv 8: {}", per_second(&theirs));
    let ratio = median_ratio(&theirs, &whole);
    print_row("lint of 10,000 cards of five systems", &per_second(&whole), &beside, ratio, "none", "bench-lint");
    Row {
        what: "strict parse and schema of 10,000 cards of five systems",
        measured: per_second(&ours),
        beside,
        ratio: median_ratio(&theirs, &ours),
        budget: BUDGET,
        good: Good::AtLeast,
    }
    .end("bench-lint");
}

/// Distinct cards, each with its system and schema.
fn cards(of_commandlayer: &str) -> Vec<(CardSystem, String, String)> {
    let schema = |name: &str| format!("{}/schemas/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    let document = |text: &str| serde_json::from_str::<Value>(text).expect("a good card is JSON");
    let mut good: Vec<(CardSystem, Value, String)> =
        FILES.iter().map(|(system, text, name)| (*system, document(text), schema(name))).collect();
    good.push((CardSystem::CommandLayer, document(of_commandlayer), schema("agent.card.base")));
    let numbered = |at: usize| {
        let (system, card, schema) = &good[at % good.len()];
        let mut card = card.clone();
        let member = ["description", "name"].into_iter().find(|member| card[member].is_string());
        let member = &mut card[member.expect("every card has a text for people")];
        *member = format!("{} {at}", member.as_str().unwrap_or_default()).into();
        (*system, format!("{card:#}"), schema.clone())
    };
    (0..CARDS).map(numbered).collect()
}

/// A good card of the sandbox, and the profile with its rules.
fn commandlayer() -> (String, Arc<ConformanceProfile>) {
    let (runtime, _sandbox, resolver) = support::sandbox();
    let resolution = runtime.block_on(resolver.resolve(GOOD));
    assert_eq!(resolution.verdict().state, TrustState::Trusted);
    let card = resolution.card_bytes().expect("a trusted name has a card").to_vec();
    let profile = resolver.profiles().get(DEFAULT).expect("it is built in");
    (String::from_utf8(card).expect("a card is UTF-8"), profile)
}

/// The schemas of `cards`, keyed by path.
fn schemas(cards: &[(CardSystem, String, String)]) -> BTreeMap<&str, StrictSchema> {
    let paths: BTreeSet<&str> = cards.iter().map(|(_, _, path)| path.as_str()).collect();
    let load =
        |path: &str| StrictSchema::compile(&std::fs::read(path).expect("a schema"), &[]).expect("a strict schema");
    paths.into_iter().map(|path| (path, load(path))).collect()
}

fn validated(cards: &[(CardSystem, String, String)], schemas: &BTreeMap<&str, StrictSchema>) -> Duration {
    let cards: Vec<_> = cards.iter().map(|(_, card, path)| (card.as_bytes(), &schemas[path.as_str()])).collect();
    let started = Instant::now();
    let accepts =
        |card: &[u8], schema: &StrictSchema| AgentCard::parse(card).is_ok_and(|card| schema.accepts(card.document()));
    let valid = cards.iter().filter(|(card, schema)| accepts(card, schema)).count();
    let took = started.elapsed();
    assert_eq!(valid, CARDS);
    took
}

fn linted(cards: &[(CardSystem, String, String)], profile: &ConformanceProfile) -> Duration {
    let rules = CardLintContext::from_profile(profile);
    let started = Instant::now();
    let valid = cards.iter().filter(|(_, card, _)| lint_document(card.as_bytes(), None, &rules).valid).count();
    let took = started.elapsed();
    assert_eq!(valid, CARDS);
    took
}

/// A Node process with the cards in memory. It ends when its standard input closes.
struct Ajv {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    _cards: tempfile::NamedTempFile,
}

impl Ajv {
    fn start(cards: &[(CardSystem, String, String)]) -> Option<Self> {
        if !Path::new(AJV).join("node_modules").is_dir() {
            let npm = Command::new("npm")
                .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
                .current_dir(AJV)
                .stdout(Stdio::null())
                .status();
            npm.ok().filter(|status| status.success())?;
        }
        let mut file = BufWriter::new(tempfile::NamedTempFile::new().expect("a scratch file"));
        for (_, card, schema) in cards {
            writeln!(file, "{}", json!({"schema": schema, "card": card})).expect("the scratch file can be written");
        }
        let file = file.into_inner().expect("the scratch file can be written");
        let mut child = Command::new("node")
            .arg("ajv.mjs")
            .arg(file.path())
            .current_dir(AJV)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        Some(Self { child, lines, _cards: file })
    }

    fn round(&mut self) -> Duration {
        writeln!(self.child.stdin.as_mut().expect("it is piped"), "go").expect("Node reads");
        let line = self.lines.next().expect("Node answers").expect("a line");
        let (valid, nanos) = line.split_once(' ').expect("two numbers");
        assert_eq!(valid, CARDS.to_string(), "Ajv finds cards invalid");
        Duration::from_nanos(nanos.parse().expect("nanoseconds"))
    }
}

impl Drop for Ajv {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        drop(self.child.wait());
    }
}
