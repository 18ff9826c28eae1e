//! A daemon whose block headers need consensus.

use alloy_primitives::B256;
use clresolve_core::reading::ProofGrade;
use clresolve_core::reason::ReasonCode;
use clresolve_core::state::TrustState;
use clresolve_resolver::config::{ChainProofMode, Config};
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::sandbox::Sandbox;

use super::{Daemon, GOOD, patient};

/// A gate that requires `consensus-proof`, over records with this proof.
fn strict(proof: ChainProofMode) -> impl FnOnce(&mut Config) {
    move |config| {
        config.chain.proof = Some(proof);
        config.gate.min_proof = Some(ProofGrade::ConsensusProof);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gate_that_requires_consensus_opens_for_nothing_less() {
    let daemon = Daemon::start(strict(ChainProofMode::ConsensusProof)).await;
    daemon.ready().await;
    let gate = daemon.get(&format!("/v1/gate/{GOOD}")).await;
    assert_eq!((gate.status, gate.header("clresolve-state")), (200, "trusted"), "{}", gate.header("clresolve-code"));
    let verdict = daemon.get(&format!("/v1/verdicts/{GOOD}")).await.json();
    let proof = &verdict["anchor"]["proof"];
    assert_eq!((&proof["grade"], &proof["asked"], &proof["agreed"]), (&"consensus-proof".into(), &0.into(), &0.into()));
    let metrics = String::from_utf8(daemon.get("/metrics").await.body).expect("UTF-8");
    for family in ["finalized_timestamp_seconds", "optimistic_timestamp_seconds", "participation_ratio"] {
        assert!(metrics.contains(&format!("\nclresolve_beacon_{family} ")), "{family}");
    }

    let daemon = Daemon::start(strict(ChainProofMode::StateProof)).await;
    daemon.get(&format!("/v1/gate/{GOOD}")).await.is_closed_gate("proof-too-weak");
}

#[tokio::test(flavor = "multi_thread")]
async fn reload_with_another_checkpoint_starts_from_there() {
    let sandbox = Sandbox::start().await.expect("the sandbox starts");
    let mut config = patient(&sandbox);
    config.chain.proof = Some(ChainProofMode::ConsensusProof);
    let resolver = Resolver::new(&config).await.expect("the configuration is good");
    assert_eq!(resolver.resolve(GOOD).await.verdict().state, TrustState::Trusted);

    let mut other = config.clone();
    other.beacon.checkpoint = Some(B256::repeat_byte(7));
    let reloaded = resolver.reconfigured(&other).await.expect("the configuration is good");
    let found = reloaded.resolve(GOOD).await;
    let codes: Vec<ReasonCode> = found.verdict().reasons.iter().map(|reason| reason.code).collect();
    assert_eq!((found.verdict().state, codes), (TrustState::Indeterminate, vec![ReasonCode::HeaderUnproven]));

    let back = reloaded.reconfigured(&config).await.expect("the configuration is good");
    assert_eq!(back.resolve(GOOD).await.verdict().state, TrustState::Trusted);
}
