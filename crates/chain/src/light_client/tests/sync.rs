//! Synchronization from the checkpoint to the newest header.

use std::sync::Arc;
use std::time::Duration;

use clresolve_beacon::{
    ConsensusFork, LightClientBootstrap, LightClientCodec as _, LightClientError, LightClientFinalityUpdate,
    LightClientStore, LightClientUpdate,
};
use clresolve_core::reading::{BlockSelector, ChainError, LightClientHeaderError};
use futures_util::future::{join, join_all};

use super::beacon_chain::{BeaconChain, CHECKPOINT, finalized_at};
use super::client::{LoopbackGet, TestClock, client, config};
use super::server::{BeaconServer, Lie};
use crate::light_client::LightClient;
use crate::light_client::endpoint::BeaconEndpointError;
use crate::light_client::follower::run_on_blocking_thread;
use crate::light_client::saved::SavedStateError;

/// A slot in period 4, in the middle of an epoch.
const NOW: u64 = 300;

async fn slots(client: &LightClient) -> (u64, u64) {
    let finalized = client.fetch_verified_header(BlockSelector::Finalized).await.unwrap();
    let optimistic = client.fetch_verified_header(BlockSelector::Latest).await.unwrap();
    (finalized.slot(), optimistic.slot())
}

#[tokio::test]
async fn header_of_a_later_period_follows_from_the_checkpoint() {
    let chain = BeaconChain::new();
    for is_ssz in [false, true] {
        let server = BeaconServer::start(&chain, NOW, Lie::Nothing).await;
        if is_ssz {
            server.use_ssz();
        }
        let client = client(&chain, &[&server], &TestClock::at(&chain, NOW), None);
        assert_eq!(slots(&client).await, (finalized_at(NOW - 1).unwrap(), NOW - 1));
        let header = client.fetch_verified_header(BlockSelector::Finalized).await.unwrap();
        assert_eq!(header.beacon_root(), chain.block(header.slot()).block_root());
    }
}

#[tokio::test]
async fn callers_share_one_synchronization() {
    let chain = BeaconChain::new();
    let server = BeaconServer::start(&chain, NOW, Lie::Nothing).await;
    let client = client(&chain, &[&server], &TestClock::at(&chain, NOW), None);
    let headers = join_all((0..10).map(|_| client.fetch_verified_header(BlockSelector::Finalized))).await;
    assert!(headers.iter().all(Result::is_ok));
    let requests = server.take_requests();
    assert_eq!(requests.iter().filter(|request| request.starts_with("bootstrap")).count(), 1, "{requests:?}");
}

#[tokio::test]
async fn warm_client_sends_no_request() {
    let chain = BeaconChain::new();
    let (server, clock) = (BeaconServer::start(&chain, NOW, Lie::Nothing).await, TestClock::at(&chain, NOW));
    let client = client(&chain, &[&server], &clock, None);
    slots(&client).await;
    server.take_requests();
    clock.advance(5);
    assert_eq!(slots(&client).await.1, NOW - 1);
    assert_eq!(server.take_requests(), Vec::<String>::new(), "no later header can be signed in this slot");
}

#[tokio::test]
async fn headers_advance_with_the_chain() {
    let chain = BeaconChain::new();
    let (server, clock) = (BeaconServer::start(&chain, NOW, Lie::Nothing).await, TestClock::at(&chain, NOW));
    let client = client(&chain, &[&server], &clock, None);
    slots(&client).await;
    // The last ones are in the next two periods.
    for slot in [NOW + 2, NOW + 20, NOW + 60, NOW + 100] {
        server.set_slot(slot);
        clock.set(&chain, slot);
        let (head, reported_at) = client.fetch_newest_header().await.unwrap();
        assert_eq!((head.slot(), reported_at), (slot - 1, clock.clock()()));
        assert_eq!(slots(&client).await, (finalized_at(slot - 1).unwrap(), slot - 1));
    }
}

#[tokio::test]
async fn failed_endpoints_give_header_unproven() {
    let chain = BeaconChain::new();
    let servers = [Lie::NotFound, Lie::NoJson].map(|lie| BeaconServer::start(&chain, NOW, lie));
    let silent = join_all(servers).await;
    let clock = TestClock::at(&chain, NOW);
    let client = client(&chain, &[&silent[0], &silent[1]], &clock, None);
    for selector in [BlockSelector::Finalized, BlockSelector::Latest] {
        let error = client.fetch_verified_header(selector).await.unwrap_err();
        let ChainError::HeaderUnproven(LightClientHeaderError::Endpoints(causes)) = error else { panic!("{error:?}") };
        assert_eq!(causes.iter().map(|(label, _)| label.as_str()).collect::<Vec<_>>(), ["beacon-0", "beacon-1"]);
    }
}

#[tokio::test]
async fn endpoint_without_the_next_update_is_reported() {
    let chain = BeaconChain::new();
    let server = BeaconServer::start(&chain, NOW, Lie::Replay(CHECKPOINT)).await;
    let client = client(&chain, &[&server], &TestClock::at(&chain, NOW), None);
    let causes = vec![("beacon-0".to_owned(), BeaconEndpointError::NoUpdate(1).to_string())];
    let unproven = ChainError::HeaderUnproven(LightClientHeaderError::Endpoints(causes));
    assert_eq!(client.fetch_verified_header(BlockSelector::Finalized).await, Err(unproven));
    assert_eq!(client.status().endpoints[0].set_aside, None, "to lag is no lie");
}

/// A panicking task is a bug in this program, not a lie of the endpoint.
#[tokio::test]
async fn panic_during_verification_blames_no_endpoint() {
    let chain = BeaconChain::new();
    let server = BeaconServer::start(&chain, NOW, Lie::Nothing).await;
    let client = client(&chain, &[&server], &TestClock::at(&chain, NOW), None);
    let verify = |_, _| run_on_blocking_thread(|| -> Result<(), BeaconEndpointError> { panic!("a bug") });
    let endpoint = &client.follower.endpoints[0];
    let fault = client.follower.run_and_record_outcome(Arc::clone(endpoint), verify).await.unwrap_err();
    assert!(matches!(&fault, BeaconEndpointError::BrokenOff(cause) if cause.contains("a bug")), "{fault}");
    let status = client.status();
    assert_eq!(status.endpoints[0].set_aside, None);
    assert_eq!(status.endpoints[0].failure.as_ref().map(|(_, cause)| cause), Some(&fault.to_string()));
    let fault = run_on_blocking_thread(|| -> Result<(), SavedStateError> { panic!("a bug") }).await.unwrap_err();
    assert!(matches!(&fault, SavedStateError::BrokenOff(cause) if cause.is_panic()), "reading the file: {fault}");
}

/// Each request owns the HTTP client until it ends. The endpoint never answers within the request timeout.
#[tokio::test]
async fn dropped_client_ends_its_requests() {
    let chain = BeaconChain::new();
    for lie in [Lie::Silence, Lie::SilentUpdates] {
        let (server, clock) = (BeaconServer::start(&chain, NOW, Lie::Nothing).await, TestClock::at(&chain, NOW));
        let http = Arc::new(LoopbackGet::new());
        let client = LightClient::new(config(&chain, &[&server], None), Arc::clone(&http) as _, clock.clock());
        client.fetch_newest_header().await.unwrap();
        server.set_lie(lie);
        server.set_slot(NOW + 40);
        server.take_requests();
        clock.set(&chain, NOW + 40);
        let stalled = async {
            let awaited = if lie == Lie::Silence { "optimistic_update" } else { "updates" };
            while !server.take_requests().iter().any(|request| request.starts_with(awaited)) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let _ = join(stalled, tokio::time::timeout(Duration::from_millis(500), client.fetch_newest_header())).await;
        drop(client);
        let ended = async {
            while Arc::strong_count(&http) > 1 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let ended = tokio::time::timeout(Duration::from_secs(10), ended).await;
        assert!(ended.is_ok(), "{lie:?}: a request outlives the client");
    }
}

#[tokio::test]
async fn late_report_is_as_old_as_its_request() {
    let chain = BeaconChain::new();
    let (server, clock) = (BeaconServer::start(&chain, NOW, Lie::Nothing).await, TestClock::at(&chain, NOW));
    let client = client(&chain, &[&server], &clock, None);
    client.fetch_newest_header().await.unwrap();
    server.set_lie(Lie::Replay(NOW - 1));
    server.set_delay(Duration::from_millis(300));
    server.take_requests();
    clock.set(&chain, NOW + 3);
    let asked_at = clock.clock()();
    let arrived = async {
        while server.take_requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        clock.advance(8);
    };
    let (head, ()) = join(client.fetch_newest_header(), arrived).await;
    assert_eq!(head.map(|(header, at)| (header.slot(), at)), Ok((NOW - 1, asked_at)));

    let follower = &client.follower;
    let ask = || {
        Arc::clone(follower).fetch_newest_headers_from(
            Arc::clone(&follower.endpoints[0]),
            follower.verified_headers().unwrap(),
            true,
        )
    };
    let late = tokio::spawn(ask());
    let mut requests = 0;
    while requests < 2 {
        requests += server.take_requests().len();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.set_delay(Duration::ZERO);
    clock.advance(30);
    let later = Some(clock.clock()());
    ask().await;
    clock.advance(30);
    late.await.unwrap();
    let verified = follower.verified_headers().unwrap();
    assert_eq!((verified.optimistic_at, verified.finality_at), (later, later), "the later request counts");
}

#[tokio::test]
async fn report_time_never_decreases() {
    let chain = BeaconChain::new();
    let (server, clock) = (BeaconServer::start(&chain, NOW, Lie::Nothing).await, TestClock::at(&chain, NOW));
    let client = client(&chain, &[&server], &clock, None);
    clock.advance(4);
    client.fetch_newest_header().await.unwrap();
    server.set_lie(Lie::NotFound);
    clock.advance(1);
    let (known, at) = client.fetch_newest_header().await.unwrap();
    assert_eq!(at, clock.clock()(), "no later header can be signed yet");
    clock.advance(2);
    let (same, later) = client.fetch_newest_header().await.unwrap();
    assert!(same == known && later >= at, "{later} is before {at}");
}

#[tokio::test]
async fn clock_set_back_leaves_the_header_unproven() {
    let chain = BeaconChain::new();
    let (server, clock) = (BeaconServer::start(&chain, NOW, Lie::Nothing).await, TestClock::at(&chain, NOW));
    let client = client(&chain, &[&server], &clock, None);
    slots(&client).await;
    clock.set(&chain, NOW - 10);
    assert!(client.fetch_newest_header().await.is_err());
    for selector in [BlockSelector::Finalized, BlockSelector::Latest] {
        assert!(client.fetch_verified_header(selector).await.is_err(), "{selector}");
    }
    assert_eq!(client.status().endpoints[0].set_aside, None);
}

#[tokio::test]
async fn endpoints_that_fail_later_give_header_unproven() {
    let chain = BeaconChain::new();
    let (server, clock) = (BeaconServer::start(&chain, NOW, Lie::Nothing).await, TestClock::at(&chain, NOW));
    let client = client(&chain, &[&server], &clock, None);
    slots(&client).await;
    server.set_lie(Lie::NotFound);
    clock.set(&chain, NOW + 10);
    for selector in [BlockSelector::Finalized, BlockSelector::Latest] {
        assert!(
            matches!(client.fetch_verified_header(selector).await, Err(ChainError::HeaderUnproven(_))),
            "{selector}"
        );
    }
    assert!(client.fetch_newest_header().await.is_err());
}

#[tokio::test]
async fn endpoint_that_fails_is_asked_once_a_second() {
    let chain = BeaconChain::new();
    let (server, clock) = (BeaconServer::start(&chain, NOW, Lie::Nothing).await, TestClock::at(&chain, NOW));
    let client = client(&chain, &[&server], &clock, None);
    slots(&client).await;
    server.set_lie(Lie::NotFound);
    clock.set(&chain, NOW + 10);
    server.take_requests();
    let (began, mut calls) = (tokio::time::Instant::now(), 0);
    while calls < 10 {
        assert!(client.fetch_newest_header().await.is_err());
        calls += 1;
    }
    let asked = server.take_requests().iter().filter(|request| *request == "optimistic_update").count();
    assert!(asked as u64 <= 1 + began.elapsed().as_secs(), "{asked} requests");
}

#[tokio::test]
async fn committee_of_the_next_period_does_not_delay_the_head() {
    let chain = BeaconChain::new();
    let (server, clock) = (BeaconServer::start(&chain, NOW, Lie::Nothing).await, TestClock::at(&chain, NOW));
    let client = client(&chain, &[&server], &clock, None);
    slots(&client).await;
    server.set_lie(Lie::SilentUpdates);
    server.take_requests();
    for slot in [NOW + 40, NOW + 50] {
        server.set_slot(slot);
        clock.set(&chain, slot);
        let head = tokio::time::timeout(Duration::from_secs(10), client.fetch_newest_header()).await;
        assert_eq!(head.expect("it does not wait for the committee").unwrap().0.slot(), slot - 1);
    }
    while !server.take_requests().iter().any(|request| request.starts_with("updates")) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn old_checkpoint_is_refused() {
    const TWO_WEEKS: u64 = 14 * 24 * 60 * 60 / 6;
    let chain = BeaconChain::new();
    let late = CHECKPOINT + TWO_WEEKS + 1;
    let server = BeaconServer::start(&chain, late, Lie::Nothing).await;
    let client = client(&chain, &[&server], &TestClock::at(&chain, late), None);
    let error = client.fetch_verified_header(BlockSelector::Finalized).await.unwrap_err();
    assert!(matches!(error, ChainError::HeaderUnproven(LightClientHeaderError::CheckpointTooOld { .. })), "{error:?}");
}

#[tokio::test]
async fn block_by_number_is_not_proven() {
    let chain = BeaconChain::new();
    let server = BeaconServer::start(&chain, NOW, Lie::Nothing).await;
    let client = client(&chain, &[&server], &TestClock::at(&chain, NOW), None);
    let error = client.fetch_verified_header(BlockSelector::Number(7)).await.unwrap_err();
    assert_eq!(error, ChainError::HeaderUnproven(LightClientHeaderError::Block("7".to_owned())));
}

#[tokio::test]
async fn status_shows_headers_and_endpoints() {
    let chain = BeaconChain::new();
    let (server, clock) = (BeaconServer::start(&chain, NOW, Lie::Nothing).await, TestClock::at(&chain, NOW));
    let client = client(&chain, &[&server], &clock, None);
    assert_eq!(client.status().headers, None);
    slots(&client).await;
    let status = client.status();
    let headers = status.headers.unwrap();
    assert_eq!((headers.optimistic_slot, headers.current_slot), (NOW - 1, NOW));
    assert_eq!(headers.participation.map(|signed| (signed.participants, signed.size)), Some((32, 32)));
    assert_eq!(status.checkpoint_age.map(|age| age.as_secs()), Some((NOW - CHECKPOINT) * 6));
    assert_eq!(status.endpoints[0].answered_at, Some(clock.clock()()));
    assert_eq!((&status.endpoints[0].failure, &status.endpoints[0].set_aside), (&None, &None));
}

#[tokio::test]
async fn proof_of_a_finalized_block_replays() {
    let chain = BeaconChain::new();
    let (server, clock) = (BeaconServer::start(&chain, NOW, Lie::Nothing).await, TestClock::at(&chain, NOW));
    let client = client(&chain, &[&server], &clock, None);
    let header = client.fetch_verified_header(BlockSelector::Finalized).await.unwrap();
    let proof = client.prove_finality(header.block_hash()).await.unwrap();
    let spec = &chain.spec;
    let bootstrap = LightClientBootstrap::from_ssz(&proof.bootstrap, ConsensusFork::Electra, spec).unwrap();
    let mut store = LightClientStore::from_bootstrap(spec.clone(), proof.checkpoint, bootstrap).unwrap();
    for update in &proof.updates {
        let update = LightClientUpdate::from_ssz(update, ConsensusFork::Electra, spec).unwrap();
        store.process_update(&update, NOW).unwrap();
    }
    let update = LightClientFinalityUpdate::from_ssz(&proof.finality_update, ConsensusFork::Electra, spec).unwrap();
    store.process_finality_update(&update, NOW).unwrap();
    assert_eq!(store.finalized_header(), header);
    assert!(client.prove_finality(alloy_primitives::B256::ZERO).await.is_err());

    clock.set(&chain, NOW - 1);
    let rule = LightClientError::SignatureInFuture { signature_slot: NOW, current_slot: NOW - 1 };
    let refused = ChainError::HeaderUnproven(LightClientHeaderError::Refused(rule.to_string()));
    assert_eq!(client.prove_finality(header.block_hash()).await, Err(refused), "the clock was set back");
}

#[tokio::test]
async fn proof_has_the_first_finality_update_of_its_block() {
    let chain = BeaconChain::new();
    let (server, clock) = (BeaconServer::start(&chain, NOW, Lie::Nothing).await, TestClock::at(&chain, NOW));
    let client = client(&chain, &[&server], &clock, None);
    let header = client.fetch_verified_header(BlockSelector::Finalized).await.unwrap();
    server.set_slot(NOW + 3);
    clock.set(&chain, NOW + 3);
    client.fetch_newest_header().await.unwrap();
    assert_eq!(client.fetch_verified_header(BlockSelector::Finalized).await.unwrap(), header, "the epoch is the same");
    let proof = client.prove_finality(header.block_hash()).await.unwrap();
    let update =
        LightClientFinalityUpdate::from_ssz(&proof.finality_update, ConsensusFork::Electra, &chain.spec).unwrap();
    assert_eq!(update.signature_slot, NOW);
}

#[tokio::test]
async fn proof_of_a_block_before_the_known_history_is_an_error() {
    // The update of period 5 finalizes slot 360.
    let (earlier, later) = (366, 390);
    let chain = BeaconChain::new();
    let (server, clock) = (BeaconServer::start(&chain, earlier, Lie::Nothing).await, TestClock::at(&chain, earlier));
    let client = client(&chain, &[&server], &clock, None);
    let first = client.fetch_verified_header(BlockSelector::Finalized).await.unwrap();
    server.set_slot(later);
    clock.set(&chain, later);
    client.fetch_newest_header().await.unwrap();
    let second = client.fetch_verified_header(BlockSelector::Finalized).await.unwrap();
    assert!(first.slot() < 360 && 360 < second.slot());
    client.prove_finality(second.block_hash()).await.unwrap();
    let error = client.prove_finality(first.block_hash()).await.unwrap_err();
    assert_eq!(error, ChainError::HeaderUnproven(LightClientHeaderError::Block(first.block_hash().to_string())));
}
