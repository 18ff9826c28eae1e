//! Settlements: the sandbox's purchases, and endpoints that lie about them.

use std::time::Duration;

use clresolve_core::reason::ReasonCode;
use clresolve_core::state::TrustState;
use clresolve_messages::receipt::judge::{ReceiptCheckKind, ReceiptCheckResult, StepStatus};
use clresolve_messages::receipt::{ReceiptVerificationDocument, ReceiptVerificationRequest};
use clresolve_payment::settlement::{PurchasePaymentDocuments, SettlementAssuranceLevel};
use clresolve_resolver::config::{ChainId, ChainProofMode, Config, ProofGrade, RegistryChainConfig, RpcEndpointConfig};
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::sandbox::{CustomSandbox, Sandbox};
use clresolve_sandbox::ServedChainState;
use clresolve_sandbox::chain::{CHAIN_ID, SandboxRpcFault};
use clresolve_sandbox::purchase::SandboxPurchase;
use clresolve_sandbox::spec::SandboxSpec;
use serde_json::Value;

use super::{question, run, sample, schema};

const NAME: &str = "summarizeagent.eth";

/// What is said where endpoints say that no block holds the transaction.
const UNKNOWN: &str = "the endpoints of eip155:31337 know no such transaction up to finalized block ";

fn bought(settlement: &str) -> ReceiptVerificationRequest {
    paid(&Sandbox::sample_payment().1, settlement)
}

fn paid(payment: &str, settlement: &str) -> ReceiptVerificationRequest {
    let purchase = PurchasePaymentDocuments::from_documents(None, Some(payment), Some(settlement.to_owned()));
    ReceiptVerificationRequest { purchase: purchase.expect("a purchase"), ..question(NAME, sample("agent-sdk.json")) }
}

fn row(found: &ReceiptVerificationDocument) -> &ReceiptCheckResult {
    found.checks.iter().find(|row| row.check == ReceiptCheckKind::Settlement).expect("each document has it")
}

/// A world, and a configuration whose endpoints for the chain that is paid on have these faults.
async fn with_endpoints(faults: &[SandboxRpcFault]) -> (CustomSandbox, Config) {
    let spec = format!("[[agent]]\nname = \"{NAME}\"\nabout = \"Good.\"\n");
    let world = CustomSandbox::start(&SandboxSpec::parse(&spec).expect("it is a world")).await.expect("it starts");
    let mut config = world.config();
    let mut endpoints = Vec::new();
    for fault in faults {
        let endpoint =
            world.start_rpc_endpoint(*fault, ServedChainState::Growing, faults.len() == 1).await.expect("a port");
        endpoints.push(RpcEndpointConfig { operator: endpoint.label.clone(), ..endpoint });
    }
    let mut chain = RegistryChainConfig::new(endpoints);
    chain.proof = Some(if faults.len() == 1 { ChainProofMode::SingleRpc } else { ChainProofMode::Quorum });
    config.chains.insert(ChainId::new(CHAIN_ID).expect("an id"), chain);
    (world, config)
}

async fn seen(faults: &[SandboxRpcFault], settlement: &str) -> ReceiptVerificationDocument {
    let (_world, config) = with_endpoints(faults).await;
    let resolver = Resolver::new(&config).await.expect("its configuration is good");
    resolver.verify_receipt(&bought(settlement)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_reply_gets_its_state() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
    for reply in Sandbox::sample_settlement_headers() {
        let found = resolver.verify_receipt(&bought(&reply.header)).await;
        let codes: Vec<_> = reply.codes.iter().map(|code| code.slug().to_owned()).collect();
        assert_eq!((found.state, &found.codes), (reply.state, &codes), "{}: {found:#?}", reply.file);
        let document = serde_json::to_value(&found).expect("JSON");
        let errors: Vec<_> = schema().iter_errors(&document).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", reply.file);
        let shown_by = found.settlement.as_ref().and_then(|settlement| settlement.shown_by);
        assert_eq!(shown_by, (reply.state == TrustState::Trusted).then_some(SettlementAssuranceLevel::Proven));
    }
    let unpaid = resolver.verify_receipt(&question(NAME, sample("agent-sdk.json"))).await;
    assert_eq!((unpaid.state, row(&unpaid).status), (TrustState::Trusted, StepStatus::Skip));
    assert_eq!((unpaid.settlement, &*unpaid.unchecked), (None, &["bound-schema", "agent", "request_id"][..]));
}

/// Whoever was paid: payment and reply are of the seller's and the client's making.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_decision_the_payee_is_unchecked() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
    let found = resolver.verify_receipt(&bought(&Sandbox::sample_settlement_headers()[0].header)).await;
    assert_eq!(
        (row(&found).status, &*found.unchecked),
        (StepStatus::Pass, &["bound-schema", "agent", "request_id", "payee"][..])
    );
    let observed = row(&found).observed.clone().unwrap_or_default();
    assert!(observed.ends_with(&format!(" of eip155:{CHAIN_ID}")), "{observed}");
}

/// One of x402's own receipts with this transaction in it. Its signature does not hold any more, and is not what is
/// asked.
fn about(transaction: &str) -> String {
    let mut receipt: Value = serde_json::from_str(sample("x402-eip712.json")).expect("JSON");
    receipt["payload"]["transaction"] = transaction.into();
    receipt["payload"]["issuedAt"] = jiff::Timestamp::now().as_second().into();
    receipt.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_of_another_transaction_is_a_mismatch() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
    let own = SandboxPurchase::Settled.settlement_transaction_hash().to_string();
    let other = SandboxPurchase::Earlier.settlement_transaction_hash().to_string();
    for (transaction, status) in
        [("", StepStatus::Pass), (&own, StepStatus::Pass), (&other, StepStatus::Fail), ("0x", StepStatus::Fail)]
    {
        let question = ReceiptVerificationRequest {
            receipt: about(transaction).into(),
            ..bought(&Sandbox::sample_settlement_headers()[0].header)
        };
        let found = resolver.verify_receipt(&question).await;
        assert_eq!(row(&found).status, status, "{transaction}: {found:#?}");
        let says = found.codes.contains(&ReasonCode::SettlementMismatch.slug().to_owned());
        assert_eq!((says, row(&found).place.is_some()), (status == StepStatus::Fail, status == StepStatus::Fail));
    }
}

/// What stands in the newest block alone may yet be gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_in_a_block_that_is_not_final_is_none() {
    let (_world, config) = with_endpoints(&[SandboxRpcFault::None]).await;
    let resolver = Resolver::new(&config).await.expect("its configuration is good");
    let pending = SandboxPurchase::Pending;
    let found = resolver.verify_receipt(&paid(&pending.payment_header(), &pending.settlement_header())).await;
    assert_eq!(row(&found).status, StepStatus::Unknown, "{found:#?}");
    let observed = row(&found).observed.clone().unwrap_or_default();
    assert!(observed.starts_with(UNKNOWN), "{observed}");
}

/// The header alone proves nothing.
#[tokio::test(flavor = "multi_thread")]
async fn without_an_endpoint_for_the_network_nothing_is_decided() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let mut config = sandbox.config();
    config.chains.clear();
    let resolver = Resolver::new(&config).await.expect("its configuration is good");
    let found = resolver.verify_receipt(&bought(&Sandbox::sample_settlement_headers()[0].header)).await;
    assert_eq!((found.state, row(&found).status), (TrustState::Indeterminate, StepStatus::Unknown));
    assert_eq!(found.codes, [ReasonCode::SettlementUnproven.slug()]);
    for (payment, settlement) in
        [(None, Some(SandboxPurchase::Settled.settlement_header())), (Some(Sandbox::sample_payment().1), None)]
    {
        let purchase =
            PurchasePaymentDocuments::from_documents(None, payment.as_deref(), settlement).expect("a purchase");
        let part = ReceiptVerificationRequest { purchase, ..question(NAME, sample("agent-sdk.json")) };
        assert_eq!(resolver.verify_receipt(&part).await.codes, [ReasonCode::SettlementUnproven.slug()]);
    }
}

/// A lie that holds together by itself: the transaction stands in a block that the chain has, with logs that fit.
#[tokio::test(flavor = "multi_thread")]
async fn endpoints_that_lie_are_outvoted() {
    const FORGED: SandboxRpcFault = SandboxRpcFault::ForgedTransactions;
    let none = Sandbox::sample_settlement_headers()[2].header.clone();
    let alone = seen(&[FORGED], &none).await;
    let settlement = alone.settlement.as_ref().expect("it is judged");
    assert_eq!(
        settlement.shown_by,
        Some(SettlementAssuranceLevel::Reported),
        "the word of the operator's own endpoint, and no proof"
    );
    let outvoted = seen(&[FORGED, SandboxRpcFault::None, SandboxRpcFault::None], &none).await;
    assert_eq!(row(&outvoted).status, StepStatus::Unknown, "{outvoted:#?}");
    let divided = seen(&[FORGED, SandboxRpcFault::None], &none).await;
    assert_eq!(row(&divided).status, StepStatus::Unknown, "{divided:#?}");
    assert!(divided.settlement.expect("it is judged").block.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_about_another_transaction_or_block_is_none() {
    let good = Sandbox::sample_settlement_headers()[0].header.clone();
    for fault in [SandboxRpcFault::OtherTransactions, SandboxRpcFault::NoSuchBlock] {
        // The decoy is the transaction of the purchase itself, so another one is asked for.
        let asked = if fault == SandboxRpcFault::OtherTransactions {
            SandboxPurchase::Earlier.settlement_header()
        } else {
            good.clone()
        };
        let alone = seen(&[fault], &asked).await;
        assert_eq!(row(&alone).status, StepStatus::Unknown, "{fault:?}: {alone:#?}");
        let among_honest = seen(&[fault, SandboxRpcFault::None, SandboxRpcFault::None], &good).await;
        assert_eq!(row(&among_honest).status, StepStatus::Pass, "{fault:?}: {among_honest:#?}");
    }
}

/// An endpoint that contradicts itself says nothing, not even that there is no such transaction.
#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_without_its_transaction_is_no_answer() {
    let found = seen(&[SandboxRpcFault::ReceiptsAlone], &Sandbox::sample_settlement_headers()[0].header).await;
    let observed = row(&found).observed.clone().unwrap_or_default();
    assert!(row(&found).status == StepStatus::Unknown && !observed.starts_with(UNKNOWN), "{found:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_receipts_of_the_block_it_is_reported() {
    let good = Sandbox::sample_settlement_headers()[0].header.clone();
    let found = seen(&[SandboxRpcFault::NoBlockReceipts; 2], &good).await;
    let settlement = found.settlement.as_ref().expect("it is judged");
    assert_eq!((row(&found).status, settlement.shown_by), (StepStatus::Pass, Some(SettlementAssuranceLevel::Reported)));
    assert_eq!(settlement.proof.map(|proof| (proof.agreed, proof.asked)), Some((2, 2)));
}

/// Nor is what is known lost where the receipts of the block do not come.
#[tokio::test(flavor = "multi_thread")]
async fn while_the_receipts_of_the_block_stall_it_is_reported() {
    let (_world, mut config) = with_endpoints(&[SandboxRpcFault::StalledBlockReceipts]).await;
    config.timeout = Duration::from_secs(20);
    let resolver = Resolver::new(&config).await.expect("its configuration is good");
    let found = resolver.verify_receipt(&bought(&Sandbox::sample_settlement_headers()[0].header)).await;
    let shown_by = found.settlement.as_ref().and_then(|settlement| settlement.shown_by);
    assert_eq!(
        (row(&found).status, shown_by),
        (StepStatus::Pass, Some(SettlementAssuranceLevel::Reported)),
        "{found:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_of_another_call_is_no_answer() {
    let found = seen(&[SandboxRpcFault::OtherCallees], &Sandbox::sample_settlement_headers()[0].header).await;
    let observed = row(&found).observed.clone().unwrap_or_default();
    assert!(row(&found).status == StepStatus::Unknown && observed.contains("two contracts"), "{found:#?}");
}

/// Whoever sends one receipt over and over makes no request to the chain with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_settlement_is_read_once_beside_a_verdict() {
    let (world, mut config) = with_endpoints(&[SandboxRpcFault::None]).await;
    let own = config.chain.endpoints.clone();
    config.chains.values_mut().for_each(|chain| chain.endpoints.clone_from(&own));
    let resolver = Resolver::new(&config).await.expect("its configuration is good");
    let verify = async || {
        let before = world.request_counts().rpc;
        let found = resolver.verify_receipt(&bought(&Sandbox::sample_settlement_headers()[0].header)).await;
        assert_eq!(row(&found).status, StepStatus::Pass);
        world.request_counts().rpc - before
    };
    assert!(verify().await > 0);
    assert_eq!(verify().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_gate_demands_of_names_settlements_must_have() {
    for (fault, least, status) in [
        (SandboxRpcFault::NoBlockReceipts, ProofGrade::Quorum, StepStatus::Unknown),
        (SandboxRpcFault::NoBlockReceipts, ProofGrade::StateProof, StepStatus::Unknown),
        (SandboxRpcFault::None, ProofGrade::StateProof, StepStatus::Pass),
    ] {
        let (_world, mut config) = with_endpoints(&[fault]).await;
        config.gate.min_proof = Some(least);
        let resolver = Resolver::new(&config).await.expect("its configuration is good");
        let found = resolver.verify_receipt(&bought(&Sandbox::sample_settlement_headers()[0].header)).await;
        assert_eq!(row(&found).status, status, "{fault:?} {least:?}: {found:#?}");
    }
}

#[test]
fn the_command_takes_the_headers_from_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |file: &str| folder.path().join(file).display().to_string();
    assert!(run(&["sandbox", "--receipts", &path("")]).status.success());
    let verified = |settlement: &str, further: &[&str]| {
        let files = [path("agent-sdk.json"), path("payment.txt"), path(settlement)];
        let [receipt, payment, settlement] = &files;
        let arguments = ["receipt", "verify", receipt, "--name", NAME, "--sandbox", "-o", "json"];
        run(&[&arguments[..], &["--payment", payment, "--settlement", settlement], further].concat())
    };
    for (reply, code) in Sandbox::sample_settlement_headers().iter().zip([0, 1, 3]) {
        let output = verified(reply.file, &[]);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(schema().is_valid(&document));
    }
    let no_decision = verified("settlement.txt", &["--decision", &path("request.json")]);
    assert_eq!(no_decision.status.code(), Some(2), "{no_decision:?}");
}
