//! The published payment client over the same sellers, plain and guarded: what leaves in each attack.
//!
//! tests/purchases has most of them settled on a chain.

use std::sync::Arc;

use alloy_signer_local::PrivateKeySigner;
use clresolve_guard::{Refusal, Why};
use reqwest::StatusCode;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use x402_chain_eip155::{V1Eip155ExactClient, V2Eip155ExactClient};
use x402_reqwest::X402Client;
use x402_types::scheme::client::{PaymentCandidate, PaymentSelector};

use crate::world::{By, PAYER_KEY, World};

const TEN_YEARS: f64 = 315_360_000.0;

struct Cheapest;

impl PaymentSelector for Cheapest {
    fn select<'a>(&self, candidates: &'a [PaymentCandidate]) -> Option<&'a PaymentCandidate> {
        candidates.iter().min_by_key(|candidate| candidate.amount)
    }
}

fn payments() -> X402Client<Cheapest> {
    let signer: Arc<PrivateKeySigner> = Arc::new(PAYER_KEY.parse().expect("a key"));
    let (v1, v2) = (V1Eip155ExactClient::new(Arc::clone(&signer)), V2Eip155ExactClient::new(signer));
    X402Client::new().register(v2).register(v1).with_selector(Cheapest)
}

fn plain() -> ClientWithMiddleware {
    ClientBuilder::new(reqwest::Client::new()).with(payments()).build()
}

/// Attack, seller, for whom the payments are that the plain client sends (a redirected one passes by both hosts), and
/// why the guard refuses.
const ROWS: [(&str, &str, &[bool], Option<Why>); 17] = [
    ("none", "honest", &[HONEST], None),
    ("none, version 1", "v1-honest", &[HONEST], None),
    ("other payTo", "other-payto", &[THIEF], Some(Why::Denied)),
    ("other payTo, version 1", "v1-other-payto", &[THIEF], Some(Why::Denied)),
    ("second entry poisoned", "second-poisoned", &[THIEF], Some(Why::PaymentDenied)),
    ("second entry poisoned, version 1", "v1-second-poisoned", &[THIEF], Some(Why::PaymentDenied)),
    ("cross-host redirect", "redirect-307", &[THIEF, THIEF], Some(Why::Redirected)),
    ("cross-host redirect, version 1", "redirect-307-v1", &[THIEF, THIEF], Some(Why::Redirected)),
    ("header against body", "header-against-body", &[HONEST], Some(Why::Denied)),
    ("broken header", "broken-header", &[THIEF], Some(Why::Denied)),
    ("ten-year timeout", "ten-years", &[HONEST], Some(Why::Denied)),
    ("ten-year timeout, version 1", "v1-ten-years", &[HONEST], Some(Why::Denied)),
    ("fake USDC", "fake-usdc", &[HONEST], Some(Why::Denied)),
    ("fake USDC, version 1", "v1-fake-usdc", &[HONEST], Some(Why::Denied)),
    ("wrong chain", "wrong-chain", &[HONEST], Some(Why::Denied)),
    ("a thief's challenge beside honest terms", "mpp-thief-beside", &[HONEST], None),
    ("an honest challenge beside a thief's terms", "mpp-honest-beside-a-thief", &[THIEF], Some(Why::Denied)),
];

const HONEST: bool = true;
const THIEF: bool = false;

#[tokio::test]
async fn what_the_plain_client_pays() {
    let world = World::start().await;
    for (attack, which, paid, _) in ROWS {
        let purchase = world.purchase(which, attack);
        let _ = plain().get(&purchase.url).send().await;
        let whom = |honest: &bool| if *honest { world.at.honest.clone() } else { world.at.stranger.clone() };
        assert_eq!(purchase.paid().await, paid.iter().map(whom).collect::<Vec<_>>(), "{attack}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_client_pays_when_a_daemon_decides() {
    assert_guarded(World::started(By::Daemon).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_client_pays_when_a_resolver_decides() {
    assert_guarded(World::started(By::Resolver).await).await;
}

async fn assert_guarded(world: World) {
    for (attack, which, _, refused) in ROWS {
        let purchase = world.purchase(which, attack);
        let guard = world.guard_for(&world.at.name, &purchase.url).await;
        let client = ClientBuilder::new(reqwest::Client::new()).with(payments()).with_arc(guard).build();
        let end = client.get(&purchase.url).send().await;
        let why = end.as_ref().err().map(|error| Refusal::of(error).expect("a refusal").why());
        assert_eq!(why, refused, "{attack}");
        let paid = if refused.is_none() { vec![world.at.honest.clone()] } else { vec![] };
        assert_eq!(purchase.paid().await, paid, "{attack}");
        assert_eq!(end.ok().map(|response| response.status()), refused.is_none().then_some(StatusCode::OK), "{attack}");
    }
}

/// The example without a daemon buys from the agent, and from nobody where the terms pay another.
#[tokio::test(flavor = "multi_thread")]
async fn the_example_without_a_daemon_pays_the_agent_alone() {
    let world = World::started(By::Resolver).await;
    let folder = tempfile::tempdir().expect("a folder");
    let tests = std::env::current_exe().expect("this program");
    let example = tests.ancestors().nth(2).expect("the folder of the build").join("examples/buy_in_process");
    for (which, paid) in [("honest", true), ("other-payto", false)] {
        let purchase = world.purchase(which, which);
        let file = folder.path().join(which);
        world.config_for(&world.at.name, &purchase.url).save(&file).expect("it is written");
        let mut buys = tokio::process::Command::new(&example);
        let buys = buys.arg(&file).arg(&purchase.url).env("PAYER_KEY", PAYER_KEY).output().await.expect("it runs");
        let said = String::from_utf8_lossy(&buys.stderr);
        assert_eq!((buys.status.success(), said.contains("payee-mismatch")), (paid, !paid), "{which}: {said}");
        assert_eq!(purchase.paid().await.len(), usize::from(paid), "{which}");
    }
}

#[tokio::test]
async fn the_plain_client_signs_for_as_long_as_the_seller_asks() {
    let world = World::start().await;
    let purchase = world.purchase("ten-years", "1");
    plain().get(&purchase.url).send().await.expect("it is paid");
    let now = std::time::UNIX_EPOCH.elapsed().expect("it is later").as_secs_f64();
    assert!(purchase.arrived().await.payments[0].valid_before > now + TEN_YEARS - 60.0);
}

#[tokio::test]
async fn the_daemon_dies_between_check_and_signature() {
    let world = World::start().await;
    for which in ["honest", "v1-honest"] {
        let purchase = world.purchase(which, which);
        let end = world.guard("signed.drops").beneath(payments()).get(&purchase.url).send().await;
        assert_eq!(Refusal::of(&end.expect_err("a refusal")).map(Refusal::why), Some(Why::Unavailable));
        assert!(purchase.paid().await.is_empty());
    }
}
