//! Verdicts under headers that the sandbox's sync committees signed, and beacon endpoints that serve false data.

use std::collections::BTreeSet;
use std::time::Duration;

use clresolve_core::name::EnsName;
use clresolve_resolver::clock::SystemClock;
use clresolve_resolver::config::{
    BeaconEndpointConfig, BlockHeaderProofMode, ChainProofMode, Config, RpcEndpointConfig,
};
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::resolve::doctor::{BeaconApiEndpointHealth, examine_upstreams};
use clresolve_resolver::sandbox::CustomSandbox;
use clresolve_sandbox::beacon::SandboxBeaconBehaviour;
use clresolve_sandbox::spec::SandboxSpec;
use serde_json::Value;

use crate::support::proxy::{Altered, Proxy};

const NAME: &str = "agent.eth";
const VERB: &str = "summarize";

const AGENTS: &str = r#"
[[name]]
name = "publisher.eth"
holder = "publisher"
addr = "publisher"

[[agent]]
name = "agent.eth"
about = "Good."
state = "trusted"
"#;

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The time limit where no endpoint answers.
const SHORT: Duration = Duration::from_secs(10);

/// The time limit where one endpoint never answers. A fifth of it is longer than an answer about a header can be used.
const LONG: Duration = Duration::from_secs(30);

const HEAD_POLL: Duration = Duration::from_millis(20);

async fn world() -> CustomSandbox {
    CustomSandbox::start(&SandboxSpec::parse(AGENTS).expect("a sandbox")).await.expect("it starts")
}

fn config(world: &CustomSandbox, proof: ChainProofMode) -> Config {
    let mut config = world.config();
    (config.timeout, config.gate.deadline) = (PATIENCE, PATIENCE);
    config.chain.proof = Some(proof);
    config
}

/// The configuration with these beacon endpoints, in this order.
fn consensus(world: &CustomSandbox, endpoints: Vec<BeaconEndpointConfig>) -> Config {
    let mut config = config(world, ChainProofMode::ConsensusProof);
    config.beacon.endpoints = endpoints;
    config
}

async fn resolver(config: &Config) -> Resolver {
    Resolver::new(config).await.unwrap_or_else(|error| panic!("{error}"))
}

async fn verdict(config: &Config) -> Value {
    let resolution = resolver(config).await.resolve(NAME).await;
    serde_json::to_value(&**resolution.verdict()).expect("a verdict has a JSON form")
}

fn codes(verdict: &Value) -> BTreeSet<&str> {
    let reasons = verdict["reasons"].as_array().expect("reasons");
    reasons.iter().filter_map(|reason| reason["code"].as_str()).collect()
}

#[track_caller]
fn expect(what: &str, verdict: &Value, state: &str, expected: &[&str]) {
    let found = (verdict["state"].as_str(), codes(verdict));
    assert_eq!(found, (Some(state), expected.iter().copied().collect()), "{what}: {:#}", verdict["reasons"]);
}

/// The results of `doctor` for each beacon endpoint.
async fn examined(config: &Config) -> Vec<BeaconApiEndpointHealth> {
    let found = examine_upstreams(config, &SystemClock).await.unwrap_or_else(|error| panic!("{error}"));
    found.light_client.expect("headers come from a light client").endpoints
}

#[tokio::test(flavor = "multi_thread")]
async fn verdict_differs_from_one_under_state_proof_in_its_grade_alone() {
    let world = world().await;
    let [mut expected, mut found] = [
        verdict(&config(&world, ChainProofMode::StateProof)).await,
        verdict(&config(&world, ChainProofMode::ConsensusProof)).await,
    ];
    expect("state-proof", &expected, "trusted", &[]);
    let grade = |verdict: &mut Value| verdict["anchor"]["proof"].take();
    let [state, consensus] = [grade(&mut expected), grade(&mut found)];
    assert_eq!(state["grade"], "state-proof");
    assert_eq!(consensus, serde_json::json!({ "grade": "consensus-proof", "asked": 0, "agreed": 0 }));
    for part in ["state", "reasons", "name", "identity", "anchor"] {
        assert_eq!(found[part], expected[part], "{part}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn liar_alone_leaves_the_header_unproven() {
    let world = world().await;
    for behaviour in SandboxBeaconBehaviour::LIARS {
        let mut config = consensus(&world, vec![world.start_beacon_endpoint(behaviour).await.expect("a port")]);
        if behaviour == SandboxBeaconBehaviour::Silent {
            config.timeout = SHORT;
        }
        let found = verdict(&config).await;
        expect(&behaviour.to_string(), &found, "indeterminate", &["header-unproven"]);
        assert_ne!(found["anchor"]["proof"]["grade"], "quorum", "{behaviour}");
        let label = &config.beacon.endpoints[0].label;
        assert!(found["reasons"].to_string().contains(label), "{behaviour}: {:#}", found["reasons"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_honest_endpoint_is_enough_and_the_liar_is_named() {
    let world = world().await;
    for behaviour in SandboxBeaconBehaviour::LIARS {
        let [liar, honest] =
            [behaviour, SandboxBeaconBehaviour::Honest].map(|behaviour| world.start_beacon_endpoint(behaviour));
        let mut config = consensus(&world, vec![liar.await.expect("a port"), honest.await.expect("a port")]);
        if behaviour == SandboxBeaconBehaviour::Silent {
            config.timeout = LONG;
        }
        expect(&behaviour.to_string(), &verdict(&config).await, "trusted", &[]);
        config.timeout = SHORT;
        let [liar, honest] = &examined(&config).await[..] else { panic!("two endpoints") };
        assert!(liar.error.is_some() || liar.violated_rule.is_some(), "{behaviour}: {liar:?}");
        assert_eq!((&honest.error, &honest.violated_rule), (&None, &None), "{behaviour}");
        assert_eq!(liar.violated_rule.is_some(), is_a_lie(behaviour), "{behaviour}: {liar:?}");
    }
}

/// Whether no honest endpoint serves such data. Validators may not sign, and an endpoint may be behind.
fn is_a_lie(behaviour: SandboxBeaconBehaviour) -> bool {
    !matches!(
        behaviour,
        SandboxBeaconBehaviour::Honest
            | SandboxBeaconBehaviour::LowParticipation
            | SandboxBeaconBehaviour::Replayed
            | SandboxBeaconBehaviour::Equivocation
            | SandboxBeaconBehaviour::Silent
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn change_on_chain_closes_the_gate_at_the_next_signed_header() {
    let mut world = world().await;
    let mut config = config(&world, ChainProofMode::ConsensusProof);
    config.chain.head_poll = HEAD_POLL;
    let resolver = resolver(&config).await;
    let _follower = resolver.follow_heads();
    assert_eq!(resolver.check_gate(NAME, VERB).await, Ok(()));
    resolver.wait_for_shared_writes().await;
    let name = EnsName::parse(NAME).expect("a name");
    world.write_text(&name, "cl.owner", "thief.eth").expect("it has a resolver");
    let closed = async {
        while resolver.check_gate(NAME, VERB).await.is_ok() {
            tokio::time::sleep(HEAD_POLL).await;
        }
    };
    tokio::time::timeout(PATIENCE, closed).await.expect("the gate closes");
    let found = serde_json::to_value(&**resolver.resolve(NAME).await.verdict()).expect("JSON");
    expect("after the change", &found, "indeterminate", &["record-pending"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_must_have_the_signed_block_if_both_are_demanded() {
    let world = world().await;
    let mut config = config(&world, ChainProofMode::ConsensusProof);
    config.chain.header = Some(BlockHeaderProofMode::Both);
    let upstream = config.chain.endpoints[0].url.clone();
    for (altered, state, expected) in
        [(Altered::Nothing, "trusted", &[][..]), (Altered::HeaderHashRemade, "indeterminate", &["rpc-disagree"][..])]
    {
        let proxies = [Proxy::before(upstream.clone(), altered).await, Proxy::before(upstream.clone(), altered).await];
        config.chain.endpoints = proxies.iter().enumerate().map(|(place, proxy)| endpoint(place, proxy)).collect();
        let found = verdict(&config).await;
        expect(&format!("{altered:?}"), &found, state, expected);
        if state == "trusted" {
            let proof = serde_json::json!({ "grade": "consensus-proof", "asked": 2, "agreed": 2 });
            assert_eq!(found["anchor"]["proof"], proof);
        }
    }
}

fn endpoint(place: usize, proxy: &Proxy) -> RpcEndpointConfig {
    let label = format!("endpoint-{place}");
    RpcEndpointConfig { operator: label.clone(), label, url: proxy.url(), own: false }
}
