//! The signer's key under each grade of proof, and endpoints that lie about it.

use clresolve_core::state::TrustState;
use clresolve_messages::receipt::ReceiptVerificationDocument;
use clresolve_resolver::config::{ChainProofMode, ProofGrade, RpcEndpointConfig};
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::sandbox::CustomSandbox;
use clresolve_sandbox::ServedChainState;
use clresolve_sandbox::chain::SandboxRpcFault;

use super::{as_strings, question, sample, world_with_its_signer};

/// What is said of a receipt where endpoints with these faults are asked: one's own alone, or several of strangers.
async fn judged(
    world: &CustomSandbox,
    faults: &[SandboxRpcFault],
    least: Option<ProofGrade>,
    receipt: &str,
) -> ReceiptVerificationDocument {
    let mut config = world.config();
    let is_alone = faults.len() == 1;
    config.chain.endpoints.clear();
    for fault in faults {
        let endpoint = world.start_rpc_endpoint(*fault, ServedChainState::Growing, is_alone).await.expect("a port");
        config.chain.endpoints.push(RpcEndpointConfig { operator: endpoint.label.clone(), ..endpoint });
    }
    config.chain.proof = Some(if is_alone { ChainProofMode::SingleRpc } else { ChainProofMode::Quorum });
    config.gate.min_proof = least;
    let resolver = Resolver::new(&config).await.expect("its configuration is good");
    resolver.verify_receipt(&question("agent.eth", receipt)).await
}

/// A liar says that the key is a stranger's, so that the stranger's forgery holds.
#[tokio::test(flavor = "multi_thread")]
async fn who_lies_about_the_signer_s_key_alone_is_not_believed() {
    const LIAR: SandboxRpcFault = SandboxRpcFault::OtherKeys;
    let world = world_with_its_signer().await;
    for (faults, state, codes) in [
        (&[LIAR][..], TrustState::Trusted, &[] as &[&str]),
        (&[LIAR, SandboxRpcFault::None], TrustState::Indeterminate, &["receipt-key-unpublished"]),
        (&[LIAR, SandboxRpcFault::None, SandboxRpcFault::None], TrustState::Untrusted, &["receipt-signature-invalid"]),
    ] {
        let found = judged(&world, faults, None, sample("receipt-signature-invalid.json")).await;
        assert_eq!((found.state, &found.codes), (state, &as_strings(codes)), "{faults:?}: {found:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_vouched_for_by_less_than_the_gate_demands_is_not_relied_on() {
    const HONEST: SandboxRpcFault = SandboxRpcFault::None;
    let world = world_with_its_signer().await;
    for (faults, least, state, codes) in [
        (&[HONEST][..], ProofGrade::SingleRpc, TrustState::Trusted, &[] as &[&str]),
        (&[HONEST], ProofGrade::Quorum, TrustState::Indeterminate, &["receipt-key-unpublished"]),
        (&[HONEST, HONEST], ProofGrade::Quorum, TrustState::Trusted, &[]),
        (&[HONEST, HONEST], ProofGrade::StateProof, TrustState::Indeterminate, &["receipt-key-unpublished"]),
    ] {
        let found = judged(&world, faults, Some(least), sample("agent-sdk.json")).await;
        assert_eq!((found.state, &found.codes), (state, &as_strings(codes)), "{faults:?} {least:?}: {found:#?}");
    }
}
