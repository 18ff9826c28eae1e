//! Dishonest endpoints beside an honest one.

use std::sync::Arc;
use std::time::Duration;

use clresolve_core::reading::{BlockSelector, ChainError, LightClientHeaderError};

use super::beacon_chain::{BeaconChain, finalized_at};
use super::client::{LoopbackGet, TestClock, client, config};
use super::server::{BeaconServer, Lie};
use crate::light_client::endpoint::BeaconEndpointError;
use crate::light_client::{LightClient, LightClientConfig};

const NOW: u64 = 300;

/// Longer than a busy machine delays an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A liar, asked first, and an honest endpoint. Returns the cause for which the liar is set aside, and its failure.
async fn beside_honest(lie: Lie) -> (Option<String>, Option<String>) {
    let chain = BeaconChain::new();
    let liar = BeaconServer::start(&chain, NOW, lie).await;
    let honest = BeaconServer::start(&chain, NOW, Lie::Nothing).await;
    let client = client(&chain, &[&liar, &honest], &TestClock::at(&chain, NOW), None);
    let finalized =
        client.fetch_verified_header(BlockSelector::Finalized).await.unwrap_or_else(|error| panic!("{lie:?}: {error}"));
    let optimistic =
        client.fetch_verified_header(BlockSelector::Latest).await.unwrap_or_else(|error| panic!("{lie:?}: {error}"));
    assert_eq!(finalized.beacon_root(), chain.block(finalized_at(NOW - 1).unwrap()).block_root(), "{lie:?}");
    assert_eq!(optimistic.beacon_root(), chain.block(NOW - 1).block_root(), "{lie:?}");
    let status = client.status();
    assert_eq!((&status.endpoints[1].set_aside, &status.endpoints[1].failure), (&None, &None), "{lie:?}");
    let liar = &status.endpoints[0];
    (liar.set_aside.clone().map(|aside| aside.cause), liar.failure.clone().map(|(_, cause)| cause))
}

#[tokio::test]
async fn data_that_violates_a_rule_sets_the_endpoint_aside() {
    let lies = [
        (Lie::WrongCommittee, "the aggregate signature of the sync committee is invalid"),
        (Lie::WrongFork, "the aggregate signature of the sync committee is invalid"),
        (Lie::ForgedBranch, "does not lead to"),
        (Lie::OtherBootstrap, "the bootstrap is for block"),
        (Lie::EndlessUpdates, "the list has more than"),
        (Lie::EndlessBody, "the reply has more than"),
    ];
    for (lie, words) in lies {
        let (set_aside, _) = beside_honest(lie).await;
        assert!(set_aside.as_ref().is_some_and(|cause| cause.contains(words)), "{lie:?}: {set_aside:?}");
    }
}

#[tokio::test]
async fn low_participation_is_no_lie() {
    let (set_aside, failure) = beside_honest(Lie::Participation).await;
    assert_eq!(set_aside, None);
    assert!(failure.as_ref().is_some_and(|cause| cause.contains("21 of 32 members")), "{failure:?}");
}

#[tokio::test]
async fn page_instead_of_data_is_no_lie() {
    let (set_aside, failure) = beside_honest(Lie::NoJson).await;
    assert_eq!(set_aside, None);
    assert!(failure.as_ref().is_some_and(|cause| cause.contains("not light-client data")), "{failure:?}");
}

#[tokio::test]
async fn silent_endpoint_is_not_waited_for() {
    beside_honest(Lie::Silence).await;
}

#[tokio::test]
async fn too_few_signatures_give_no_header() {
    let chain = BeaconChain::new();
    let server = BeaconServer::start(&chain, NOW, Lie::Participation).await;
    let client = client(&chain, &[&server], &TestClock::at(&chain, NOW), None);
    for selector in [BlockSelector::Finalized, BlockSelector::Latest] {
        let error = client.fetch_verified_header(selector).await.unwrap_err();
        assert!(error.to_string().contains("two thirds are required"), "{error}");
    }
}

#[tokio::test]
async fn liar_is_asked_again_after_a_while() {
    let chain = BeaconChain::new();
    let (liar, clock) = (BeaconServer::start(&chain, NOW, Lie::WrongCommittee).await, TestClock::at(&chain, NOW));
    let honest = BeaconServer::start(&chain, NOW, Lie::Nothing).await;
    let client = client(&chain, &[&liar, &honest], &clock, None);
    client.fetch_newest_header().await.unwrap();
    liar.set_lie(Lie::Nothing);
    liar.take_requests();
    for (slot, is_asked) in [(NOW + 20, false), (NOW + 60, true)] {
        clock.set(&chain, slot);
        liar.set_slot(slot);
        honest.set_slot(slot);
        client.fetch_newest_header().await.unwrap();
        assert_eq!(!liar.take_requests().is_empty(), is_asked, "{slot}");
    }
    assert_eq!(client.status().endpoints[0].set_aside, None);
}

#[tokio::test]
async fn endpoint_set_aside_is_asked_if_all_others_fail() {
    let chain = BeaconChain::new();
    let repaired = BeaconServer::start(&chain, NOW, Lie::WrongCommittee).await;
    let down = BeaconServer::start(&chain, NOW, Lie::NotFound).await;
    let client = client(&chain, &[&repaired, &down], &TestClock::at(&chain, NOW), None);
    assert!(client.fetch_newest_header().await.is_err());
    assert!(client.status().endpoints[0].set_aside.is_some());
    repaired.set_lie(Lie::Nothing);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(client.fetch_newest_header().await.unwrap().0.slot(), NOW - 1);
}

#[tokio::test]
async fn replayed_update_is_no_report_of_the_newest_header() {
    let chain = BeaconChain::new();
    let (server, clock) = (BeaconServer::start(&chain, NOW, Lie::Nothing).await, TestClock::at(&chain, NOW));
    let client = client(&chain, &[&server], &clock, None);
    client.fetch_newest_header().await.unwrap();
    server.set_lie(Lie::Replay(NOW - 6));
    clock.set(&chain, NOW + 5);
    let behind = BeaconEndpointError::Behind { observed: NOW - 6, known: NOW - 1 };
    let causes = vec![("beacon-0".to_owned(), behind.to_string())];
    assert_eq!(
        client.fetch_newest_header().await,
        Err(ChainError::HeaderUnproven(LightClientHeaderError::Endpoints(causes)))
    );
    assert!(client.fetch_verified_header(BlockSelector::Latest).await.is_err());
}

#[tokio::test]
async fn lagging_endpoint_does_not_hold_back_a_newer_header() {
    for newest in [NOW - 1, NOW + 20] {
        let chain = BeaconChain::new();
        let laggard = BeaconServer::start(&chain, NOW, Lie::Nothing).await;
        let honest = BeaconServer::start(&chain, NOW, Lie::Nothing).await;
        let clock = TestClock::at(&chain, NOW);
        let patient = LightClientConfig { hedge_after: PATIENCE, ..config(&chain, &[&laggard, &honest], None) };
        let client = LightClient::new(patient, Arc::new(LoopbackGet::new()), clock.clock());
        client.fetch_newest_header().await.unwrap();
        laggard.set_lie(Lie::Replay(newest));
        honest.set_slot(NOW + 30);
        honest.set_delay(Duration::from_millis(100));
        clock.set(&chain, NOW + 30);
        assert_eq!(client.fetch_newest_header().await.unwrap().0.slot(), NOW + 29);
        assert_eq!(
            client.fetch_verified_header(BlockSelector::Finalized).await.unwrap().slot(),
            finalized_at(NOW + 29).unwrap()
        );
    }
}

/// A laggard that repeats the known header, and a client whose hedging delay is shorter than the delay of the honest
/// endpoint.
#[tokio::test]
async fn newer_header_of_a_slow_endpoint_arrives() {
    let chain = BeaconChain::new();
    let laggard = BeaconServer::start(&chain, NOW, Lie::Nothing).await;
    let honest = BeaconServer::start(&chain, NOW, Lie::Nothing).await;
    let clock = TestClock::at(&chain, NOW);
    let client = client(&chain, &[&laggard, &honest], &clock, None);
    client.fetch_newest_header().await.unwrap();
    // Within the wait for a newer header, then above it.
    for (slot, delay) in [(NOW + 2, Duration::from_secs(1)), (NOW + 4, Duration::from_secs(4))] {
        laggard.set_lie(Lie::Replay(slot - 3));
        honest.set_slot(slot);
        honest.set_delay(delay);
        honest.take_requests();
        clock.set(&chain, slot);
        let first = client.fetch_newest_header().await.unwrap().0.slot();
        assert_eq!(first == slot - 1, delay < Duration::from_secs(3), "{slot}");
        let arrival = async {
            while client.fetch_newest_header().await.unwrap().0.slot() < slot - 1 {
                clock.advance(1);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(PATIENCE, arrival).await.unwrap();
        let asked = honest.take_requests().iter().filter(|request| *request == "optimistic_update").count();
        assert!(asked <= 2, "{slot}: at most one request is pending");
    }
}

#[tokio::test]
async fn second_header_of_a_slot_changes_nothing() {
    let chain = BeaconChain::new();
    let (server, clock) = (BeaconServer::start(&chain, NOW, Lie::Nothing).await, TestClock::at(&chain, NOW));
    let client = client(&chain, &[&server], &clock, None);
    let known = client.fetch_newest_header().await.unwrap().0;
    server.set_lie(Lie::Equivocation);
    clock.set(&chain, NOW + 2);
    let error = client.fetch_newest_header().await.unwrap_err();
    assert!(error.to_string().contains("signed two headers for slot"), "{error}");
    let status = client.status();
    assert_eq!((status.headers.unwrap().optimistic_slot, &status.endpoints[0].set_aside), (known.slot(), &None));
}
