//! What is counted of what daemons share. Each test runs on one thread, and sees what that thread counts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use clresolve_resolver::cache::VerdictCacheKey;
use clresolve_resolver::resolve::{NameQuestion, Resolver};
use clresolve_resolver::shared::VERSION;
use clresolve_resolver::shared::mac::MacKeys;
use clresolve_resolver::shared::value::{SharedEvidence, SharedEvidenceBinding};
use clresolve_resolver::telemetry::PrometheusExposition;
use jiff::Timestamp;
use redis::Commands as _;
use tokio::sync::{Mutex, mpsc};

use super::{AGENT, KEY, OTHER, Stage, name};
use crate::support::redis::command_contains;

/// Longest wait for a count, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);

/// Values that a daemon keeps until they can be written.
const WAITING: u64 = 64;

/// What becomes of what a daemon writes is counted under this name.
const WRITES: &str = "clresolve_shared_writes_total";

/// The counts of a family, by outcome.
fn outcomes(counts: &PrometheusExposition, family: &str) -> BTreeMap<String, u64> {
    let text = counts.render();
    let series =
        text.lines().filter_map(|line| line.strip_prefix(family)?.strip_prefix("{outcome=\"")?.split_once("\"} "));
    series.map(|(outcome, count)| (outcome.to_owned(), count.parse().expect("a number"))).collect()
}

/// What became of the evidence that was asked for by a question, and how often.
async fn reads(counts: &PrometheusExposition, daemon: &Resolver, name: &str) -> Vec<(String, u64)> {
    let family = "clresolve_shared_reads_total";
    let before = outcomes(counts, family);
    daemon.resolve(name).await;
    let reads = since(&before, outcomes(counts, family));
    daemon.wait_for_shared_writes().await;
    reads
}

/// What became of what the daemon writes while something is done, and how often.
async fn writes(
    counts: &PrometheusExposition,
    daemon: &Resolver,
    done: impl Future<Output = ()>,
) -> Vec<(String, u64)> {
    let before = outcomes(counts, WRITES);
    done.await;
    daemon.wait_for_shared_writes().await;
    since(&before, outcomes(counts, WRITES))
}

/// What there is more than before.
fn since(before: &BTreeMap<String, u64>, after: BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let since = |(outcome, count): (String, u64)| {
        let more = count - before.get(&outcome).copied().unwrap_or_default();
        (more > 0).then_some((outcome, more))
    };
    after.into_iter().filter_map(since).collect()
}

fn is(counted: &[(String, u64)], expected: &[(&str, u64)]) {
    let counted: Vec<(&str, u64)> = counted.iter().map(|(outcome, count)| (outcome.as_str(), *count)).collect();
    assert_eq!(counted, expected);
}

/// Has a daemon find out about a name, and share it.
async fn run(daemon: &Resolver, name: &str) {
    daemon.resolve_question_anew(&NameQuestion::new(name)).await.expect("a good question");
}

/// The place of the evidence under a key, at the server.
fn place(key: &VerdictCacheKey) -> String {
    format!("clresolve:evidence:{}", SharedEvidenceBinding { version: VERSION, key }.storage_key())
}

fn stored(stage: &Stage, key: &VerdictCacheKey) -> SharedEvidence {
    let keys = MacKeys::parse(KEY).expect("a good key");
    SharedEvidence::decode_verified(
        &stage.redis.get(&place(key)),
        &keys,
        SharedEvidenceBinding { version: VERSION, key },
    )
    .expect("it is good")
}

/// Writes a value as one of the fleet would.
fn put(stage: &Stage, key: &VerdictCacheKey, value: &SharedEvidence) {
    let keys = MacKeys::parse(KEY).expect("a good key");
    let bytes = value.encode_with_mac(&keys, SharedEvidenceBinding { version: VERSION, key }).expect("it is short");
    stage.redis.set(&place(key), &bytes);
}

/// Where there is nothing to take a daemon looks twice: before it asks for the right to run, and once it has that.
#[tokio::test]
async fn shared_evidence_is_counted_by_what_became_of_it() {
    let counts = PrometheusExposition::default();
    let _counting = metrics::set_default_local_recorder(&counts);
    let Some(mut stage) = Stage::new(&[]).await else { return };
    let one = stage.daemon().await;
    let [agent, other] = [AGENT, OTHER].map(|name| one.cache_key(&NameQuestion::new(name)).expect("a good question"));
    for name in [AGENT, OTHER] {
        is(&reads(&counts, &one, name).await, &[("missing", 2)]);
    }
    is(&reads(&counts, &stage.daemon().await, AGENT).await, &[("taken", 1)]);

    let good = stored(&stage, &agent);
    stage.redis.set(&place(&agent), b"x");
    is(&reads(&counts, &stage.daemon().await, AGENT).await, &[("refused", 2)]);
    put(&stage, &agent, &SharedEvidence { fresh_until: Timestamp::now(), ..good.clone() });
    is(&reads(&counts, &stage.daemon().await, AGENT).await, &[("aged", 2)]);
    let of_other = stored(&stage, &other);
    put(&stage, &agent, &of_other);
    is(&reads(&counts, &stage.daemon().await, AGENT).await, &[("unfit", 2)]);
    one.evict_name(&name(AGENT));
    one.wait_for_shared_writes().await;
    put(&stage, &agent, &good);
    is(&reads(&counts, &one, AGENT).await, &[("evicted", 2)]);

    stage.config.redis.wait = Duration::from_millis(1);
    let waits = stage.daemon().await;
    let mut connection = stage.redis.open();
    connection.del::<_, ()>(place(&agent)).expect("the server answers");
    connection.set::<_, _, ()>(place(&agent).replace(":evidence:", ":lease:"), "somebody").expect("the server answers");
    let seen = reads(&counts, &waits, AGENT).await;
    assert_eq!(seen.first().map(|(outcome, count)| (outcome.as_str(), *count)), Some(("in-vain", 1)), "{seen:?}");

    let without = stage.daemon().await;
    stage.redis.kill();
    is(&reads(&counts, &without, AGENT).await, &[("gone", 1)]);
}

/// Values wait behind one that the server does not take yet, each for its turn.
#[tokio::test]
async fn what_is_written_is_counted_by_what_became_of_it() {
    let counts = PrometheusExposition::default();
    let _counting = metrics::set_default_local_recorder(&counts);
    let Some(mut stage) = Stage::new(&[]).await else { return };
    let direct = stage.daemon().await;
    let memory = |most: &str| {
        let set = redis::cmd("CONFIG").arg(&["SET", "maxmemory", most]).query::<()>(&mut stage.redis.open());
        set.expect("the server answers");
    };
    is(&writes(&counts, &direct, run(&direct, OTHER)).await, &[("written", 1)]);
    memory("1");
    is(&writes(&counts, &direct, run(&direct, OTHER)).await, &[("gone", 1)]);
    memory("0");

    let (sends, mut sent) = mpsc::unbounded_channel();
    let gate = Arc::new(Mutex::new(()));
    let waits = {
        let gate = Arc::clone(&gate);
        move |bytes: Vec<u8>| {
            let (sends, gate) = (sends.clone(), Arc::clone(&gate));
            async move {
                if command_contains(&bytes, &["\nSET\r", ":evidence:"]) {
                    sends.send(()).expect("the test listens");
                    drop(gate.lock().await);
                }
            }
        }
    };
    stage.config.redis.write_timeout = PATIENCE * 2;
    stage.config.redis.url = Some(stage.redis.start_proxy(waits).await);
    let one = stage.daemon().await;

    let evicts = async {
        let closed = gate.lock().await;
        run(&one, OTHER).await;
        sent.recv().await.expect("it is on its way");
        run(&one, AGENT).await;
        one.evict_name(&name(AGENT));
        drop(closed);
    };
    is(&writes(&counts, &one, evicts).await, &[("evicted", 1), ("written", 1)]);
    let ages = async {
        let closed = gate.lock().await;
        run(&one, OTHER).await;
        sent.recv().await.expect("it is on its way");
        run(&one, AGENT).await;
        stage.clock.advance(301);
        drop(closed);
    };
    is(&writes(&counts, &one, ages).await, &[("aged", 1), ("written", 1)]);

    let closed = gate.lock().await;
    let before = outcomes(&counts, WRITES);
    run(&one, OTHER).await;
    sent.recv().await.expect("it is on its way");
    for _ in 0..=WAITING {
        run(&one, OTHER).await;
    }
    is(&since(&before, outcomes(&counts, WRITES)), &[("dropped", 1)]);
    drop(closed);
    let all = before["written"] + 1 + WAITING;
    let written = async {
        while outcomes(&counts, WRITES)["written"] < all {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, written).await.expect("what had room is written");
}

/// A verdict of evidence that is not accepted is neither counted nor reported: the daemon's own run tells what it
/// finds.
#[tokio::test]
async fn a_verdict_of_evidence_that_is_not_accepted_is_not_counted() {
    let counts = PrometheusExposition::default();
    let _counting = metrics::set_default_local_recorder(&counts);
    let Some(stage) = Stage::new(&[]).await else { return };
    let agent = stage.sharer().await.cache_key(&NameQuestion::new(AGENT)).expect("a good question");
    let good = stored(&stage, &agent);
    let verdicts = || {
        let text = counts.render();
        let counted = text.lines().filter(|line| line.starts_with("clresolve_verdicts_total{"));
        counted.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum::<u64>()
    };
    let fresh_until = good.fresh_until - Duration::from_secs(1);
    for (value, became) in [(&SharedEvidence { fresh_until, ..good.clone() }, ("unfit", 2)), (&good, ("taken", 1))] {
        let daemon = stage.daemon().await;
        put(&stage, &agent, value);
        let before = verdicts();
        is(&reads(&counts, &daemon, AGENT).await, &[became]);
        assert_eq!(verdicts(), before + 1, "{became:?}");
    }
}

#[tokio::test]
async fn whether_the_server_answers_is_told() {
    let counts = PrometheusExposition::default();
    let _counting = metrics::set_default_local_recorder(&counts);
    let is_up = || counts.render().contains("\nclresolve_redis_up 1\n");
    let Some(mut stage) = Stage::new(&[]).await else { return };
    let one = stage.sharer().await;
    assert!(is_up(), "{}", counts.render());
    stage.redis.kill();
    let runs = async || {
        one.resolve_question_anew(&NameQuestion::new(OTHER)).await.expect("a good question");
        one.wait_for_shared_writes().await;
    };
    runs().await;
    assert!(counts.render().contains("\nclresolve_redis_up 0\n"), "{}", counts.render());
    stage.redis.restart();
    stage.clock.advance(10);
    let returns = async {
        while !is_up() {
            runs().await
        }
    };
    tokio::time::timeout(PATIENCE, returns).await.expect("it is up again");
}
