//! Payees by ERC-8004: a wallet counts where the name vouches for the agent, the registry of that chain says so by the
//! word of enough operators, and the agent's registration names the name back.

use clresolve_payment::decision::{DecisionOutcome, PaymentDecision};
use clresolve_resolver::config::{
    BlockSelector, ChainId, ChainProofMode, Config, RegistryChainConfig, RpcEndpointConfig,
};
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::sandbox::CustomSandbox;
use clresolve_sandbox::chain::SandboxRpcFault;
use clresolve_sandbox::{IpfsGatewayBehaviour, ServedChainState};

use super::{NAME, URL, asked, confirmed, neighbours, with_entry, world_with_seller};

/// The name's record that vouches for an agent of the sandbox's registry (ENSIP-25).
fn record(agent: u64) -> String {
    format!(
        "records.\"agent-registration[0x00010000027a69148004a169fb4a3325136eb29fa0ceb6d2e539a432][{agent}]\" = \"1\"\n"
    )
}

/// A world with one agent that sells and publishes no address, and its entry in the registry.
async fn world(records: &str, entry: &str) -> CustomSandbox {
    world_among(records, entry, "").await
}

/// The same with other agents.
async fn world_among(records: &str, entry: &str, others: &str) -> CustomSandbox {
    let rest = format!(
        r#"
addresses = {{ 31337 = "0x", 84532 = "0x" }}
{records}
erc8004 = {{ {entry} }}
{others}
"#
    );
    world_with_seller(&rest).await
}

fn chain() -> ChainId {
    ChainId::new(31_337).expect("it has a coin type")
}

async fn decided_by(config: &Config) -> PaymentDecision {
    let resolver = Resolver::new(config).await.expect("its configuration is good");
    resolver.decide_payment(&asked(&resolver, NAME, URL).await).await
}

/// What is decided in that world under a changed configuration.
async fn decided(world: &CustomSandbox, change: impl FnOnce(&mut Config)) -> PaymentDecision {
    let mut config = world.config();
    change(&mut config);
    decided_by(&config).await
}

fn cause(decision: &PaymentDecision) -> String {
    decision.reasons.iter().filter_map(|reason| reason.observed.clone()).collect::<Vec<_>>().join("; ")
}

/// The registry under these endpoints, all of different operators.
fn under(endpoints: Vec<RpcEndpointConfig>, own: &RegistryChainConfig) -> RegistryChainConfig {
    let mut registry = own.clone();
    registry.endpoints = endpoints;
    registry.proof = Some(ChainProofMode::Quorum);
    registry
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wallet_of_a_registration_is_paid() {
    let world = world(&record(1), "").await;
    let decision = decided(&world, |_| {}).await;
    assert_eq!((decision.decision, decision.abort), (DecisionOutcome::Allow, false), "{decision:#?}");
    let said = "proven by agent 1 of the ERC-8004 registry on eip155:31337 at its block ";
    assert!(decision.reason.contains(said), "{}", decision.reason);
    assert!(decision.valid_until.is_some());
}

/// Sellers take several networks, and a client pays one entry.
#[tokio::test(flavor = "multi_thread")]
async fn an_entry_is_proven_whatever_stands_beside_it() {
    let world = world(&record(1), "").await;
    let resolver = Resolver::new(&world.config()).await.expect("its configuration is good");
    let alone = asked(&resolver, NAME, URL).await;
    for neighbour in neighbours() {
        let decision = resolver.decide_payment(&with_entry(&alone, neighbour.clone())).await;
        let rows: Vec<_> = decision.entries.iter().map(|row| row.abort).collect();
        assert_eq!((rows, decision.abort), (vec![false, true], true), "{neighbour}: {decision:#?}");
    }
}

/// The host of the card's URL may name the agent: it proves nothing by that.
#[tokio::test(flavor = "multi_thread")]
async fn the_registration_file_of_the_host_may_name_the_agent() {
    let world = world(&record(1), "").await;
    let decision = decided(&world, |config| registry(config).agents.clear()).await;
    assert_eq!(decision.decision, DecisionOutcome::Allow, "{decision:#?}");
}

/// The file of the host names two agents, one of them twice. Which of two is paid is not guessed.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_vouches_for_two_agents_proves_no_wallet() {
    let two = "[[agent]]\nname = \"two-agents.eth\"\nabout = \"In its world the file names two.\"\nstate = \"trusted\"";
    let both = world_among(&format!("{}{}", record(1), record(2)), "", two).await;
    let decision = decided(&both, |config| registry(config).agents.clear()).await;
    assert_eq!(decision.codes, ["payee-unproven"], "{decision:#?}");
    assert!(cause(&decision).contains("vouches for more than one agent"), "{}", cause(&decision));
    let named = decided(&both, |_| {}).await;
    assert_eq!(named.decision, DecisionOutcome::Allow, "the operator says which: {named:#?}");
}

/// The agent's own registration may lie on a web host.
#[tokio::test(flavor = "multi_thread")]
async fn a_registration_may_lie_on_a_host() {
    let uri = "uri = \"https://cards.sandbox.example/.well-known/agent-registration.json\"";
    let decision = decided(&world(&record(1), uri).await, |_| {}).await;
    assert_eq!(decision.decision, DecisionOutcome::Allow, "{decision:#?}");
}

/// Or in IPFS, where it is proven by its CID. One that no gateway has is not known.
#[tokio::test(flavor = "multi_thread")]
async fn a_registration_may_lie_in_ipfs() {
    let stored = world(&record(1), "ipfs = true").await;
    let decision = decided(&stored, |_| {}).await;
    assert_eq!(decision.decision, DecisionOutcome::Allow, "{decision:#?}");
    let other = decided(&world(&record(1), "ipfs = true, ens = \"other.eth\"").await, |_| {}).await;
    assert!(cause(&other).contains("the agent's registration names other.eth"), "{}", cause(&other));
    for behaviour in [IpfsGatewayBehaviour::Missing, IpfsGatewayBehaviour::Lie] {
        let gateway = stored.ipfs_gateway(behaviour);
        let decision = decided(&stored, |config| config.gateways = vec![gateway]).await;
        assert!(decision.abort, "{behaviour:?}: {decision:#?}");
    }
}

/// The card names its name, so it may be the registration that the name vouches for. Only a CID binds its bytes.
#[tokio::test(flavor = "multi_thread")]
async fn registration_may_be_the_card_itself_under_its_cid() {
    let plain = world(&record(1), "").await;
    let resolver = Resolver::new(&plain.config()).await.expect("its configuration is good");
    let card = resolver.resolve(NAME).await.verdict().identity.clone().expect("it is trusted").card;
    let path = card.path.map(|path| format!("/{path}")).unwrap_or_default();
    let by_cid = format!("uri = \"ipfs://{}{path}\"", card.cid.expect("its bytes are proven"));
    let by_url = "uri = \"https://cards.sandbox.example/agents/v1.0.0/commons/summarizeagent.eth.json\"";
    for (records, uri, is_paid) in [
        (record(1), &*by_cid, true),
        (record(2), &*by_cid, false),
        (String::new(), &*by_cid, false),
        (record(1), by_url, false),
    ] {
        let decision = decided(&world(&records, uri).await, |_| {}).await;
        let codes = if is_paid { vec![] } else { vec!["payee-unproven"] };
        assert_eq!(decision.codes, codes, "{records}{uri}: {decision:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_that_names_another_name_proves_nothing() {
    let world = world(&record(1), "ens = \"other.eth\"").await;
    let decision = decided(&world, |_| {}).await;
    assert_eq!(decision.codes, ["payee-unproven"], "{decision:#?}");
    assert!(cause(&decision).contains("the agent's registration names other.eth"), "{}", cause(&decision));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_the_name_does_not_vouch_for_proves_nothing() {
    for records in [String::new(), record(2)] {
        let world = world(&records, "").await;
        let decision = decided(&world, |_| {}).await;
        assert_eq!(decision.codes, ["payee-unproven"], "{records}: {decision:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_about_to_change_is_pending() {
    let pending = record(1).replacen("records", "latest", 1).replace("\"1\"", "\"\"");
    let decision = decided(&world(&format!("{}{pending}", record(1)), "").await, |_| {}).await;
    assert_eq!(decision.codes, ["record-pending"], "{decision:#?}");
}

/// An address that is about to be set leaves the wallet what it is.
#[tokio::test(flavor = "multi_thread")]
async fn the_wallet_of_a_registration_is_paid_while_an_address_is_pending() {
    let pending = "latest_addresses = { 31337 = \"0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc\" }\n";
    let decision = decided(&world(&format!("{pending}{}", record(1)), "").await, |_| {}).await;
    assert_eq!(decision.decision, DecisionOutcome::Allow, "{decision:#?}");
    let unregistered = decided(&world(pending, "").await, |_| {}).await;
    assert_eq!(unregistered.codes, ["record-pending"], "{unregistered:#?}");
}

/// The wallet may be the payee; that could not be asked. Another address in the name's records does not contradict it.
#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_cannot_be_asked_contradicts_nobody() {
    let stranger = "addresses = { 31337 = \"0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc\", 84532 = \"0x\" }";
    let world = world_with_seller(&format!("{stranger}\n{}erc8004 = {{ }}\n", record(1))).await;
    let asked = decided(&world, |_| {}).await;
    assert_eq!(asked.decision, DecisionOutcome::Allow, "{asked:#?}");
    let stopped =
        world.start_rpc_endpoint(SandboxRpcFault::None, ServedChainState::Stopped, true).await.expect("a port");
    let decision = decided(&world, |config| registry(config).endpoints = vec![stopped]).await;
    assert_eq!(decision.codes, ["payee-unproven"], "{decision:#?}");
    assert_eq!((decision.decision, decision.abort), (DecisionOutcome::Undecided, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_without_a_wallet_is_paid_nowhere() {
    let decision = decided(&world(&record(1), "wallet = \"unset\"").await, |_| {}).await;
    assert_eq!(decision.codes, ["payee-unproven"], "{decision:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wallet_that_is_about_to_change_is_pending() {
    let decision = decided(&world(&record(1), "wallet = \"leaving\"").await, |_| {}).await;
    assert_eq!(decision.codes, ["record-pending"], "{decision:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wallet_of_somebody_else_is_a_mismatch() {
    let decision = decided(&world(&record(1), "wallet = \"stranger\"").await, |_| {}).await;
    assert_eq!(
        (decision.decision, decision.codes.as_slice()),
        (DecisionOutcome::Deny, &["payee-mismatch".to_owned()][..])
    );
}

/// What is not configured, or not a registry, is not believed.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_registry_on_that_chain_nothing_is_proven() {
    let world = world(&record(1), "").await;
    let decision = decided(&world, |config| config.chains.clear()).await;
    assert_eq!(decision.codes, ["payee-unproven"], "{decision:#?}");
    let elsewhere = decided(&world, |config| registry(config).registry = [7; 20].into()).await;
    assert_eq!(elsewhere.codes, ["payee-unproven"], "{elsewhere:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_that_disagree_about_a_wallet_prove_nothing() {
    let world = world(&record(1), "").await;
    let honest = || world.start_rpc_endpoint(SandboxRpcFault::None, ServedChainState::Growing, false);
    let liar = || world.start_rpc_endpoint(SandboxRpcFault::OtherWallets, ServedChainState::Growing, false);
    let of =
        |endpoint: RpcEndpointConfig, operator: &str| RpcEndpointConfig { operator: operator.to_owned(), ..endpoint };
    let (first, second) = (of(liar().await.expect("a port"), "one"), of(honest().await.expect("a port"), "two"));
    let config = world.config();
    let known = &config.chains[&chain()];
    let divided = under(vec![first.clone(), second.clone()], known);
    let decision = decided(&world, |config| *registry(config) = divided).await;
    assert_eq!(decision.codes, ["payee-unproven"], "{decision:#?}");
    assert!(cause(&decision).contains("contradict"), "{}", cause(&decision));
    let third = of(honest().await.expect("a port"), "three");
    let outvoted = under(vec![first, second, third], known);
    let decision = decided(&world, |config| *registry(config) = outvoted).await;
    assert_eq!(decision.decision, DecisionOutcome::Allow, "{decision:#?}");
}

/// A chain that has stopped, one stranger's word and less than the gate demands are not relied on.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_gate_would_not_rely_on_proves_no_payee() {
    let world = world(&record(1), "").await;
    let stopped =
        world.start_rpc_endpoint(SandboxRpcFault::None, ServedChainState::Stopped, true).await.expect("a port");
    let decision = decided(&world, |config| registry(config).endpoints = vec![stopped]).await;
    assert_eq!(decision.codes, ["payee-unproven"], "{decision:#?}");
    assert!(cause(&decision).contains("chain-behind"), "{}", cause(&decision));
    let stranger =
        world.start_rpc_endpoint(SandboxRpcFault::None, ServedChainState::Growing, false).await.expect("a port");
    let decision = decided(&world, |config| registry(config).endpoints = vec![stranger]).await;
    assert_eq!(decision.codes, ["payee-unproven"], "{decision:#?}");
    assert!(cause(&decision).contains("single-rpc"), "{}", cause(&decision));
}

#[tokio::test(flavor = "multi_thread")]
async fn where_state_proofs_are_demanded_a_registration_proves_nothing() {
    let world = world(&record(1), "").await;
    for (proof, grade) in
        [(ChainProofMode::StateProof, "state-proof"), (ChainProofMode::ConsensusProof, "consensus-proof")]
    {
        let decision = decided(&world, |config| config.chain.proof = Some(proof)).await;
        assert_eq!(decision.codes, ["payee-unproven"], "{decision:#?}");
        assert!(cause(&decision).contains(&format!("the configured grade is {grade}, ")), "{}", cause(&decision));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_numbered_block_proves_no_wallet() {
    let world = world(&record(1), "").await;
    let decision = decided(&world, |config| config.chain.block = BlockSelector::Number(2)).await;
    assert!(decision.abort && decision.codes.contains(&"chain-behind".to_owned()), "{decision:#?}");
}

/// The head confirms the verdict, but not the registration, which is on another chain.
#[tokio::test(flavor = "multi_thread")]
async fn a_registration_is_read_for_each_decision() {
    let world = world(&record(1), "").await;
    let (resolver, _following) = confirmed(world.config()).await;
    let request = asked(&resolver, NAME, URL).await;
    for _ in 0..2 {
        let before = world.request_counts().rpc;
        assert!(!resolver.decide_payment(&request).await.abort);
        // One request for the name's record. For the registry, one for the finalized block, one for the newest, and
        // three for calls in these blocks.
        assert!(world.request_counts().rpc - before >= 6);
    }
}

fn registry(config: &mut Config) -> &mut RegistryChainConfig {
    config.chains.get_mut(&chain()).expect("the world has one")
}
