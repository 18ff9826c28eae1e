//! What one daemon sees of a change on chain, or only hears of, and what becomes of it in the fleet.

use std::time::{Duration, Instant};

use clresolve_core::reason::Step;
use clresolve_core::state::State;
use clresolve_resolver::cache::CacheStatus;
use clresolve_resolver::config::ProofDemand;
use clresolve_resolver::resolve::{Question, Resolver};
use clresolve_resolver::sandbox::{ChainState, chain::RpcFault};
use clresolve_verdict::trust::Resolution;
use clresolve_verdict::verdict::Served;
use jiff::Timestamp;

use super::{AGENT, FIRST, OTHER, Stage, is_evicted_within_a_second, name};

/// How often endpoints are asked here: at once.
const POLL: Duration = Duration::from_millis(10);

/// Longer than any of these waits takes.
const HANGS: Duration = Duration::from_secs(60);

fn codes(resolution: &Resolution) -> Vec<&'static str> {
    resolution.verdict().reasons.iter().map(|reason| reason.code.slug()).collect()
}

impl Stage {
    /// A daemon that follows the chain, and has seen a block.
    async fn follower(&self) -> Resolver {
        let daemon = self.newcomer().await;
        self.serve(&daemon).await;
        daemon.resolve(FIRST).await;
        daemon
    }

    /// A record that no verdict depends on changes, and a follower that has cached the name reads it again.
    async fn change(&mut self, follower: &Resolver, changed: &str, value: &str) {
        let before = checked_at(follower, changed, |_| true).await;
        self.world.write_text(&name(changed), "note", value).expect("it has a resolver");
        checked_at(follower, changed, |checked_at| checked_at > before).await;
    }
}

/// When a name was read that is trusted and cached. Waits until it is cached with such a time.
async fn checked_at(daemon: &Resolver, cached: &str, is_due: impl Fn(Timestamp) -> bool) -> Timestamp {
    let question = Question::new(cached);
    loop {
        if let CacheStatus::Fresh(found) = daemon.cache_status(&question).await.expect("a good question")
            && found.verdict().state == State::Trusted
            && is_due(found.verdict().freshness.checked_at)
        {
            return found.verdict().freshness.checked_at;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_one_daemon_sees_reaches_all_in_under_a_second() {
    let Some(mut stage) = Stage::new(&[]).await else { return };
    stage.config.follow.poll = POLL;
    let follower = stage.follower().await;
    assert_eq!(follower.resolve(AGENT).await.verdict().state, State::Trusted);
    follower.settled().await;
    stage.config.follow.enabled = false;
    let other = stage.daemon().await;
    stage.serve(&other).await;
    assert_eq!(other.resolve(AGENT).await.verdict().state, State::Trusted);

    stage.world.write_text(&name(AGENT), "cl.owner", "thief.eth").expect("it has a resolver");
    assert!(is_evicted_within_a_second(&other).await);
    let found = other.resolve(AGENT).await;
    assert_eq!((found.verdict().state, codes(&found)), (State::Indeterminate, vec!["record-pending"]));
}

/// Nobody follows the chain, and nobody looks again: a question under other rules finds it out.
#[tokio::test]
async fn a_change_that_the_run_of_a_question_sees_reaches_all_in_under_a_second() {
    let Some(mut stage) = Stage::new(&[]).await else { return };
    let (one, other) = (stage.sharer().await, stage.daemon().await);
    assert_eq!(other.resolve(AGENT).await.verdict().state, State::Trusted);
    stage.world.write_text(&name(AGENT), "cl.owner", "thief.eth").expect("it has a resolver");
    let mut question = Question::new(AGENT);
    question.profile = Some("agent-cards/1.0.0+released".to_owned());
    let found = one.ask(&question).await.expect("a good question");
    assert_eq!((found.verdict().state, codes(&found)), (State::Indeterminate, vec!["record-pending"]));
    assert!(is_evicted_within_a_second(&one).await && is_evicted_within_a_second(&other).await);
}

/// One that follows nothing has not heard of the change, and says that all is well.
#[tokio::test(flavor = "multi_thread")]
async fn evidence_that_does_not_know_of_a_change_is_not_taken() {
    let Some(mut stage) = Stage::new(&[]).await else { return };
    stage.config.chain.proof = Some(ProofDemand::SingleRpc);
    (stage.config.follow.poll, stage.config.follow.poll_public) = (POLL, POLL);
    let ahead = stage.world.endpoint(RpcFault::BlocksToCome(8), ChainState::Growing, false).await;
    stage.config.chain.endpoints.push(ahead.expect("an endpoint"));
    let (follower, one) = (stage.follower().await, stage.daemon().await);
    let began = Instant::now();
    while !codes(&follower.resolve(AGENT).await).contains(&"block-unavailable") {
        assert!(began.elapsed() < HANGS, "it never hears of the change");
    }

    // Long enough after the eviction, and not so long that the block is waited for no more.
    stage.clock.advance(3);
    let mut question = Question::new(AGENT);
    question.profile = Some("agent-cards/1.0.0+released".to_owned());
    assert_eq!(one.ask(&question).await.expect("a good question").verdict().state, State::Trusted);
    one.settled().await;
    let found = follower.ask(&question).await.expect("a good question");
    assert_eq!((found.verdict().state, codes(&found)), (State::Indeterminate, vec!["block-unavailable"]));
}

/// Its content is that of an earlier run, and whoever takes its evidence says so too.
#[tokio::test]
async fn a_refresh_is_shared_with_the_age_of_its_content() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let one = stage.sharer().await;
    one.resolve(AGENT).await;
    stage.clock.advance(280);
    one.refresh_ahead(|_| true).await;
    one.settled().await;
    let other = stage.daemon().await;
    let (found, requests) = stage.requests(other.resolve(AGENT)).await;
    assert_eq!((found.verdict().state, requests), (State::Trusted, 0));
    let fetched_at = |resolution: &Resolution| {
        let step = resolution.verdict().steps.iter().find(|step| step.step == Step::FetchHttps);
        let time = step.and_then(|step| step.evidence["fetched_at"].as_str()).expect("it was not fetched now");
        time.parse::<Timestamp>().expect("a time").as_millisecond()
    };
    let own = one.resolve(AGENT).await;
    assert_eq!(fetched_at(&found), fetched_at(&own));
    assert_eq!(found.verdict().freshness.fresh_until, own.verdict().freshness.fresh_until);
}

/// Longer ago than endpoints repeat what they said, so that nobody would have told of the change.
async fn pass_blocks(stage: &mut Stage, follower: &Resolver) {
    for round in 0..3 {
        for number in 0..4 {
            stage.world.write_text(&name(OTHER), "note", &format!("{round}.{number}")).expect("it has a resolver");
        }
        stage.change(follower, FIRST, &round.to_string()).await;
    }
}

/// It follows what it has cached, and has cached nothing of the agent.
#[tokio::test(flavor = "multi_thread")]
async fn evidence_from_before_a_change_of_long_ago_is_not_taken() {
    let Some(mut stage) = Stage::new(&[]).await else { return };
    (stage.config.follow.poll, stage.config.follow.poll_public) = (POLL, POLL);
    let follower = stage.follower().await;
    drop(stage.sharer().await);
    stage.world.write_text(&name(AGENT), "cl.owner", "thief.eth").expect("it has a resolver");
    pass_blocks(&mut stage, &follower).await;
    let found = follower.resolve(AGENT).await;
    assert_eq!((found.verdict().state, codes(&found)), (State::Indeterminate, vec!["record-pending"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_evidence_that_is_too_old_to_be_followed_the_content_is_taken() {
    let Some(mut stage) = Stage::new(&[]).await else { return };
    (stage.config.follow.poll, stage.config.follow.poll_public) = (POLL, POLL);
    let follower = stage.follower().await;
    drop(stage.sharer().await);
    pass_blocks(&mut stage, &follower).await;
    let before = stage.world.counts();
    let found = follower.resolve(AGENT).await;
    let after = stage.world.counts();
    assert_eq!(found.verdict().state, State::Trusted);
    assert_eq!((after.https, after.gateway), (before.https, before.gateway));
    assert!(after.rpc > before.rpc, "the records were read here");
}

/// Both were told of every change. So the one that is asked later reads nothing that the other has read.
#[tokio::test(flavor = "multi_thread")]
async fn a_follower_takes_the_run_of_another_follower() {
    let Some(mut stage) = Stage::new(&[]).await else { return };
    stage.config.follow.poll = POLL;
    let one = stage.follower().await;
    stage.change(&one, FIRST, "one follows").await;
    let other = stage.follower().await;
    // What one of them evicts, it evicts on the other: so each knows by a name of its own that it follows.
    assert_eq!(other.resolve(OTHER).await.verdict().state, State::Trusted);
    stage.change(&other, OTHER, "the other follows").await;

    let own = one.resolve(AGENT).await;
    one.settled().await;
    let before = stage.world.counts();
    let found = other.resolve(AGENT).await;
    let after = stage.world.counts();
    assert_eq!((own.verdict().state, found.verdict().state), (State::Trusted, State::Trusted));
    assert_eq!((after.https, after.gateway), (before.https, before.gateway), "content is fetched once in the fleet");
    let (found, own) = (&found.verdict().freshness, &own.verdict().freshness);
    assert_eq!((found.served, found.fresh_until), (Served::Cached, own.fresh_until), "its records are not read again");
}
