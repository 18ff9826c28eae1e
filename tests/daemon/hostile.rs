//! The whole resolver in hostile worlds: no lie is believed, no question hangs, no forbidden address is reached.
//!
//! Each case asks a real question through [`Resolver`](clresolve_resolver::resolve::Resolver) or the program, and
//! states the exact verdict. Tests of single parts are in `tests/scenarios/fetch.rs`, in `tests/scenarios/chain.rs` and
//! in the crates.

#[path = "hostile/bad_input.rs"]
mod bad_input;
#[path = "hostile/base.rs"]
mod base;
#[path = "hostile/chain.rs"]
mod chain;
#[path = "hostile/content.rs"]
mod content;
#[path = "hostile/egress.rs"]
mod egress;
#[path = "hostile/ensv2.rs"]
mod ensv2;
#[path = "hostile/gate.rs"]
mod gate;
#[path = "hostile/gateways.rs"]
mod gateways;
#[path = "hostile/heads.rs"]
mod heads;
#[path = "hostile/judging.rs"]
mod judging;
#[path = "hostile/memory.rs"]
mod memory;
#[path = "hostile/museum.rs"]
mod museum;
#[path = "hostile/started.rs"]
mod started;
#[path = "../../crates/cards/tests/worst/seeds.rs"]
#[allow(dead_code, reason = "what the search and the judges need of it")]
mod worst;
#[path = "../../crates/payment/tests/worst/kinds.rs"]
#[allow(dead_code, reason = "what the other tests need of it")]
mod worst_questions;
#[path = "../../crates/messages/tests/worst_receipts/kinds.rs"]
mod worst_receipts;
#[path = "../../crates/messages/tests/worst_requests/kinds.rs"]
mod worst_requests;

use std::collections::BTreeSet;
use std::time::Duration;

use clresolve_core::state::TrustState;
use clresolve_resolver::config::Config;
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::sandbox::CustomSandbox;
use clresolve_sandbox::spec::SandboxSpec;
use clresolve_verdict::trust::Resolution;
use serde_json::Value;

/// Time limit of a question that is not about time, long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long a question may take, independent of its own limit. A longer one hangs.
const HANGS: Duration = Duration::from_secs(240);

/// A world with two publishers and the given agents.
fn spec(agents: &str) -> SandboxSpec {
    let names = "[[name]]\nname = \"publisher.eth\"\nholder = \"publisher\"\naddr = \"publisher\"\n";
    SandboxSpec::parse(&format!("{names}{agents}")).unwrap_or_else(|error| panic!("{error}"))
}

/// The world's configuration, with a time limit that a busy machine does not meet.
fn patient(world: &CustomSandbox) -> Config {
    let mut config = world.config();
    config.timeout = PATIENCE;
    config
}

/// The result of a run, which must end.
async fn resolved(resolver: &Resolver, name: &str) -> Resolution {
    let ends = tokio::time::timeout(HANGS, resolver.resolve(name)).await;
    let resolution = ends.unwrap_or_else(|_| panic!("{name}: no end after {HANGS:?}"));
    let trusted = resolution.verdict().state == TrustState::Trusted;
    assert_eq!(
        resolution.card_bytes().is_some(),
        trusted,
        "{name}: a card is handed out when it is trusted, and only then"
    );
    assert!(resolution.verdict().has_valid_digests(), "{name}");
    resolution
}

async fn judged(config: &Config, name: &str) -> Value {
    let resolver = Resolver::new(config).await.unwrap_or_else(|error| panic!("{error}"));
    json(&resolved(&resolver, name).await)
}

fn json(resolution: &Resolution) -> Value {
    serde_json::to_value(&**resolution.verdict()).expect("a verdict has a JSON form")
}

/// Compares a verdict with its expected state and its exact codes, including warnings.
#[track_caller]
fn expect(what: &str, verdict: &Value, state: &str, codes: &[&str]) {
    let expected: BTreeSet<&str> = codes.iter().copied().collect();
    let found = (verdict["state"].as_str(), self::codes(verdict));
    assert_eq!(found, (Some(state), expected), "{what}: {:#}", verdict["reasons"]);
}

/// The codes of a verdict, each once.
fn codes(verdict: &Value) -> BTreeSet<&str> {
    let reasons = verdict["reasons"].as_array().expect("reasons");
    reasons.iter().filter_map(|reason| reason["code"].as_str()).collect()
}
