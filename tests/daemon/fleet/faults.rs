//! The server gone, slow, full, wrong and back again, under load: answers go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clresolve_core::state::TrustState;
use clresolve_resolver::config::Config;
use clresolve_resolver::resolve::{NameQuestion, Resolver};
use clresolve_resolver::telemetry::PrometheusExposition;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixStream};

use crate::fleet::{AGENT, Stage, name};

/// Rounds of a load: enough to go through every state of a connection.
const ROUNDS: usize = 6;

/// Longest time for a load, on a machine that does much else. Without an end to each wait it would not suffice.
const PATIENCE: Duration = Duration::from_secs(60);

/// Evicts and asks, so that each answer takes a run.
async fn load(daemons: &[&Resolver]) {
    let rounds = async {
        for _ in 0..ROUNDS {
            for daemon in daemons {
                daemon.evict_name(&name(AGENT));
            }
            for found in futures_util::future::join_all(daemons.iter().map(|daemon| daemon.resolve(AGENT))).await {
                assert_eq!(found.verdict().state, TrustState::Trusted, "{:#?}", found.verdict());
            }
        }
    };
    tokio::time::timeout(PATIENCE, rounds).await.expect("answers go on");
}

/// Asks until a daemon shares again.
async fn recovers(stage: &Stage, daemon: &Resolver) {
    // What rests is tried again.
    stage.clock.advance(10);
    let shares = async {
        while stage.redis.keys_of_kind("evidence").is_empty() {
            daemon.resolve_question_anew(&NameQuestion::new(AGENT)).await.expect("a good question");
            daemon.wait_for_shared_writes().await;
        }
    };
    tokio::time::timeout(PATIENCE, shares).await.expect("it shares again");
}

/// As it is configured by default.
async fn stage(arguments: &[&str]) -> Option<Stage> {
    let mut stage = Stage::new(arguments).await?;
    let default = Config::default().redis;
    (stage.config.redis.read_timeout, stage.config.redis.write_timeout) = (default.read_timeout, default.write_timeout);
    stage.config.redis.wait = Duration::from_millis(100);
    Some(stage)
}

#[tokio::test]
async fn answers_go_on_while_the_server_is_killed_and_restarted() {
    let Some(mut stage) = stage(&[]).await else { return };
    let (one, two) = (stage.daemon().await, stage.daemon().await);
    load(&[&one, &two]).await;
    stage.redis.kill();
    load(&[&one, &two]).await;
    stage.redis.restart();
    load(&[&one, &two]).await;
    recovers(&stage, &one).await;
}

#[tokio::test]
async fn answers_go_on_while_the_server_is_paused() {
    let Some(stage) = stage(&[]).await else { return };
    let (one, two) = (stage.daemon().await, stage.daemon().await);
    stage.redis.signal("-STOP");
    load(&[&one, &two]).await;
    let third = stage.daemon().await;
    load(&[&third]).await;
    stage.redis.signal("-CONT");
    load(&[&one, &two]).await;
    recovers(&stage, &one).await;
}

#[tokio::test]
async fn answers_go_on_while_the_server_is_full() {
    let Some(stage) = stage(&["--maxmemory", "1", "--maxmemory-policy", "noeviction"]).await else { return };
    let (one, two) = (stage.daemon().await, stage.daemon().await);
    load(&[&one, &two]).await;
    assert_eq!(stage.redis.keys_of_kind("evidence"), [""; 0], "nothing was taken");
    let set = redis::cmd("CONFIG").arg(&["SET", "maxmemory", "0"]).query::<()>(&mut stage.redis.open());
    set.expect("the server answers");
    recovers(&stage, &one).await;
}

/// How long a slow way takes, each way: an answer comes after the default time limit of a read, and well within
/// [`SLOW_WRITE`].
const SLOW_MILLIS: u64 = 40;

/// Time limit of a write on a slow way. The default one may end on a machine that does much else.
const SLOW_WRITE: Duration = Duration::from_secs(5);

/// A proxy in front of Redis. It delays each message by `millis` milliseconds.
async fn slow_way(stage: &Stage, millis: &Arc<AtomicU64>) -> clresolve_resolver::config::RedisUrl {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("redis://{}", listener.local_addr().expect("it is bound"));
    let (socket, millis) = (stage.redis.socket_path(), Arc::clone(millis));
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = UnixStream::connect(&socket).await.expect("it listens");
            let ((asks, hears), (answers, listens)) = (client.into_split(), server.into_split());
            tokio::spawn(pass_late(asks, listens, Arc::clone(&millis)));
            tokio::spawn(pass_late(answers, hears, Arc::clone(&millis)));
        }
    });
    url.parse().expect("a URL")
}

async fn pass_late(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, millis: Arc<AtomicU64>) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        tokio::time::sleep(Duration::from_millis(millis.load(Ordering::Relaxed))).await;
        if to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}

/// Its answers come too late for any resolution.
#[tokio::test]
async fn answers_go_on_while_the_server_is_slow() {
    let counts = PrometheusExposition::default();
    let _counting = metrics::set_default_local_recorder(&counts);
    let Some(mut stage) = stage(&[]).await else { return };
    let millis = Arc::new(AtomicU64::new(SLOW_MILLIS));
    stage.config.redis.url = Some(slow_way(&stage, &millis).await);
    stage.config.redis.write_timeout = SLOW_WRITE;
    let (one, two) = (stage.daemon().await, stage.daemon().await);
    load(&[&one, &two]).await;
    let reads = |outcome: &str| format!("clresolve_shared_reads_total{{outcome=\"{outcome}\"}} ");
    let counted = counts.render();
    assert!(counted.contains(&reads("gone")), "{counted}");
    assert!(!counted.contains(&reads("taken")), "each daemon works by itself: {counted}");

    millis.store(0, Ordering::Relaxed);
    stage.clock.advance(10);
    // What rests is tried again. A third daemon has evicted nothing.
    let takes = async {
        while !counts.render().contains(&reads("taken")) {
            one.resolve_question_anew(&NameQuestion::new(AGENT)).await.expect("a good question");
            one.wait_for_shared_writes().await;
            stage.daemon().await.resolve(AGENT).await;
            stage.clock.advance(10);
        }
    };
    tokio::time::timeout(PATIENCE, takes).await.expect("they share again");
}

#[tokio::test]
async fn an_answer_from_the_cache_never_asks_the_server() {
    let Some(mut stage) = stage(&[]).await else { return };
    (stage.config.redis.read_timeout, stage.config.redis.write_timeout) = (PATIENCE, PATIENCE);
    let one = stage.sharer().await;
    stage.redis.signal("-STOP");
    let cached = tokio::time::timeout(Duration::from_secs(10), one.resolve(AGENT)).await;
    assert_eq!(cached.expect("it does not wait for the server").verdict().state, TrustState::Trusted);
}

/// Says that a value without end comes, and sends it for as long as somebody reads.
#[tokio::test]
async fn an_answer_without_end_is_given_up() {
    const TOO_MUCH: usize = 32 << 20;
    let Some(mut stage) = stage(&[]).await else { return };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    stage.config.redis.url = Some(format!("redis://{}", listener.local_addr().unwrap()).parse().expect("a URL"));
    stage.config.redis.read_timeout = PATIENCE;
    let (sent, mut most) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let sent = sent.clone();
            tokio::spawn(async move {
                let mut bytes = 0;
                if stream.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {
                    let _ = stream.write_all(b"$2147483647\r\n").await;
                    while bytes < TOO_MUCH && stream.write_all(&[b'x'; 1 << 16]).await.is_ok() {
                        bytes += 1 << 16;
                    }
                }
                let _ = sent.send(bytes);
            });
        }
    });
    let daemon = stage.daemon().await;
    let asked = tokio::time::timeout(PATIENCE / 2, daemon.resolve(AGENT)).await;
    assert_eq!(asked.expect("it is given up").verdict().state, TrustState::Trusted);
    let bytes = most.recv().await.expect("it ends");
    assert!(bytes < TOO_MUCH, "{bytes} bytes were read");
}
