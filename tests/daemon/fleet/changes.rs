//! What becomes of shared evidence when the chain changes: each daemon notices the change by its own reading.

use std::time::Duration;

use clresolve_core::reason::ResolutionStep;
use clresolve_core::state::TrustState;
use clresolve_resolver::cache::VerdictCacheKeyStatus;
use clresolve_resolver::resolve::{NameQuestion, Resolver};
use clresolve_verdict::trust::Resolution;
use jiff::Timestamp;

use super::{AGENT, Stage, name};

/// The verb of the agent's one entry.
const VERB: &str = "summarize";

/// Pause between two requests for an endpoint's newest block.
const POLL: Duration = Duration::from_millis(10);

/// Longest wait for a daemon to notice a change, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn codes(resolution: &Resolution) -> Vec<&'static str> {
    resolution.verdict().reasons.iter().map(|reason| reason.code.slug()).collect()
}

/// Waits until the daemon's cache has no trusted verdict about the agent. Asks neither the chain nor the gate.
async fn notices(daemon: &Resolver) {
    let question = NameQuestion::new(AGENT);
    let noticed = async {
        while let VerdictCacheKeyStatus::Fresh(found) = daemon.cache_status(&question).await.expect("a good question")
            && found.verdict().state == TrustState::Trusted
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, noticed).await.expect("the daemon notices the change");
}

#[tokio::test]
async fn gate_confirms_shared_evidence_and_fetches_no_content() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let (_one, other) = (stage.sharer().await, stage.daemon().await);
    let before = stage.world.request_counts();
    assert_eq!(other.check_gate(AGENT, VERB).await, Ok(()));
    let after = stage.world.request_counts();
    assert_eq!((after.https, after.gateway), (before.https, before.gateway));
    assert!(after.rpc > before.rpc, "the daemon reads the records itself");
}

#[tokio::test]
async fn shared_evidence_from_before_a_change_opens_no_gate() {
    let Some(mut stage) = Stage::new(&[]).await else { return };
    let (_one, other) = (stage.sharer().await, stage.daemon().await);
    stage.world.write_text(&name(AGENT), "cl.owner", "thief.eth").expect("it has a resolver");
    let (taken, requests) = stage.requests(other.resolve(AGENT)).await;
    assert_eq!((taken.verdict().state, requests), (TrustState::Trusted, 0), "a report describes the evidence");

    assert!(other.check_gate(AGENT, VERB).await.is_err());
    let found = other.resolve(AGENT).await;
    assert_eq!((found.verdict().state, codes(&found)), (TrustState::Indeterminate, vec!["record-pending"]));
}

/// The evidence can be minutes old, and no cached verdict is there to be evicted.
#[tokio::test(flavor = "multi_thread")]
async fn shared_evidence_that_the_newest_head_contradicts_is_not_served() {
    let Some(mut stage) = Stage::new(&[]).await else { return };
    let (_one, other) = (stage.sharer().await, stage.daemon().await);
    stage.world.write_text(&name(AGENT), "cl.owner", "thief.eth").expect("it has a resolver");
    let _following = other.follow_heads();
    let found = other.resolve(AGENT).await;
    assert_eq!((found.verdict().state, codes(&found)), (TrustState::Indeterminate, vec!["record-pending"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_daemon_notices_a_change_while_redis_is_down() {
    let Some(mut stage) = Stage::new(&[]).await else { return };
    stage.config.chain.head_poll = POLL;
    let daemons = [stage.daemon().await, stage.daemon().await];
    let _followers = daemons.each_ref().map(Resolver::follow_heads);
    for daemon in &daemons {
        assert_eq!(daemon.check_gate(AGENT, VERB).await, Ok(()));
        daemon.wait_for_shared_writes().await;
    }
    stage.redis.kill();
    stage.world.write_text(&name(AGENT), "cl.owner", "thief.eth").expect("it has a resolver");
    for daemon in &daemons {
        notices(daemon).await;
        let found = daemon.resolve(AGENT).await;
        assert_eq!((found.verdict().state, codes(&found)), (TrustState::Indeterminate, vec!["record-pending"]));
    }
}

/// It reuses the content of an earlier resolution. A daemon that takes its evidence reports the same age of the
/// content.
#[tokio::test]
async fn a_refresh_is_shared_with_the_age_of_its_content() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let one = stage.sharer().await;
    one.resolve(AGENT).await;
    stage.clock.advance(280);
    one.refresh_expiring_verdicts(|_| true).await;
    one.wait_for_shared_writes().await;
    let other = stage.daemon().await;
    let (found, requests) = stage.requests(other.resolve(AGENT)).await;
    assert_eq!((found.verdict().state, requests), (TrustState::Trusted, 0));
    let fetched_at = |resolution: &Resolution| {
        let step = resolution.verdict().steps.iter().find(|step| step.step == ResolutionStep::FetchHttps);
        let time = step.and_then(|step| step.evidence["fetched_at"].as_str()).expect("it was not fetched now");
        time.parse::<Timestamp>().expect("a time").as_millisecond()
    };
    let own = one.resolve(AGENT).await;
    assert_eq!(fetched_at(&found), fetched_at(&own));
    assert_eq!(found.verdict().freshness.fresh_until, own.verdict().freshness.fresh_until);
}
