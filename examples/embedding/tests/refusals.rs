//! What a build without the feature `state-proof` refuses. It never answers at a lower grade in its place.

use clresolve_resolver::config::{ChainProofMode, ConfigLayer};
use clresolve_resolver::{Config, Resolver};

const CAUSE: &str = "this build computes no state proofs: it lacks the feature state-proof";

#[test]
fn a_configuration_that_demands_a_state_proof_is_refused() {
    let layer = ConfigLayer::from_toml("proof = \"state-proof\"\n", "f.toml").expect("the file is well-formed");
    let error = Config::default().with_layers([layer]).expect_err("it is refused");
    assert!(error.to_string().ends_with(CAUSE), "{error}");
}

#[tokio::test]
async fn a_resolver_that_is_to_compute_one_is_not_built() {
    let mut config = Config::default();
    config.chain.proof = Some(ChainProofMode::StateProof);
    let error = Resolver::new(&config).await.err().expect("it is refused");
    assert!(error.to_string().ends_with(CAUSE), "{error}");
}
