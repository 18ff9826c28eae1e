//! Several daemons with one Redis server: what they share, what they reject, and how they behave when the server is
//! down, slow, full or faulty. Needs Debian's `redis-server`; without it the tests report that they are skipped.

#[path = "fleet/changes.rs"]
mod changes;
#[path = "fleet/counts.rs"]
mod counts;
#[path = "fleet/faults.rs"]
mod faults;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use clresolve_core::name::EnsName;
use clresolve_core::reason::ResolutionStep;
use clresolve_core::state::TrustState;
use clresolve_resolver::cache::VerdictCacheKey;
use clresolve_resolver::clock::Clock;
use clresolve_resolver::config::{ChainProofMode, Config, ConfigLayer, ProofGrade, RedisConfig};
use clresolve_resolver::resolve::{NameQuestion, Resolver};
use clresolve_resolver::sandbox::CustomSandbox;
use clresolve_resolver::shared::VERSION;
use clresolve_resolver::shared::mac::{MAC_BYTES, MacKeys};
use clresolve_resolver::shared::value::{SharedEvidence, SharedEvidenceBinding};
use clresolve_sandbox::spec::SandboxSpec;
use clresolve_server::http::HttpDaemon;
use clresolve_verdict::trust::{Resolution, TrustOrigin};
use clresolve_verdict::verdict::VerdictCopyKind;
use jiff::{SignedDuration, Timestamp};
use redis::Commands as _;

use crate::support::redis::{RedisServerProcess, command_contains};

const KEY: &str = "1111111111111111111111111111111111111111111111111111111111111111";
const NEXT_KEY: &str = "2222222222222222222222222222222222222222222222222222222222222222";

const AGENT: &str = "agent.eth";
const OTHER: &str = "other.eth";
/// A name whose records differ in the newest block.
const PENDING: &str = "pending.eth";

/// The system time, shifted forward.
#[derive(Default)]
struct Shifted(AtomicI64);

impl Shifted {
    fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for Shifted {
    fn now(&self) -> Timestamp {
        Timestamp::now() + SignedDuration::from_secs(self.0.load(Ordering::SeqCst))
    }
}

/// A network, a Redis server, and the configuration of daemons that use both.
struct Stage {
    redis: RedisServerProcess,
    world: CustomSandbox,
    config: Config,
    clock: Arc<Shifted>,
}

impl Stage {
    async fn new(arguments: &[&str]) -> Option<Self> {
        let redis = RedisServerProcess::start(arguments)?;
        let mut text = "[[name]]\nname = \"publisher.eth\"\nholder = \"publisher\"\naddr = \"publisher\"\n".to_owned();
        for (name, layout) in [(AGENT, "directory-of-blocks"), (OTHER, "raw")] {
            let about = format!("about = \"An agent called {name}.\"\nlayout = \"{layout}\"\n");
            text += &format!("[[agent]]\nname = \"{name}\"\n{about}");
        }
        text += &format!("[[agent]]\nname = \"{PENDING}\"\nabout = \"A change is near.\"\n");
        text += "[agent.latest]\n\"cl.entry\" = \"x402://other.eth/summarize/v1\"\n";
        let world = CustomSandbox::start(&SandboxSpec::parse(&text).expect("a good specification"))
            .await
            .expect("the world starts");
        let mut config = world.config();
        // The sandbox shares nothing, so this network has another name.
        config.chain.world = "lab".to_owned();
        config.timeout = Duration::from_secs(60);
        config.gate.deadline = Duration::from_secs(60);
        config.redis.url = Some(redis.url());
        config.redis.mac_key = Some(redis.write_mac_key_file(&[KEY]));
        config.redis.read_timeout = Duration::from_secs(5);
        config.redis.write_timeout = Duration::from_secs(5);
        Some(Self { redis, world, config, clock: Arc::default() })
    }

    async fn daemon(&self) -> Resolver {
        resolver(&self.config, &self.clock).await
    }

    /// A daemon that has shared its evidence about the agent.
    async fn sharer(&self) -> Resolver {
        let daemon = self.daemon().await;
        assert_eq!(daemon.resolve(AGENT).await.verdict().state, TrustState::Trusted);
        daemon.wait_for_shared_writes().await;
        daemon
    }

    /// Serves a daemon over HTTP. Returns the address.
    async fn serve(&self, daemon: &Resolver) -> SocketAddr {
        let mut config = self.config.clone();
        config.http.listen = "127.0.0.1:0".parse().expect("an address");
        let server = HttpDaemon::bind_with_resolver(&config, daemon.clone()).await.expect("it starts");
        let address = server.address().tcp_address().expect("an address and a port");
        tokio::spawn(server.run(std::future::pending()));
        address
    }

    /// Counts the requests to chain, host and gateways during `asked`.
    async fn requests<T>(&self, asked: impl Future<Output = T>) -> (T, u64) {
        let count = || {
            let counts = self.world.request_counts();
            counts.rpc + counts.https + counts.gateway
        };
        let before = count();
        let found = asked.await;
        (found, count() - before)
    }

    /// Asserts that `daemon` reaches a trusted verdict through its own resolution.
    async fn runs_by_itself(&self, daemon: &Resolver, name: &str) {
        let (found, requests) = self.requests(daemon.resolve(name)).await;
        let normalized = found.verdict().name.normalized.clone();
        assert_eq!((found.verdict().state, normalized.as_deref()), (TrustState::Trusted, Some(name)));
        assert!(requests > 0, "the evidence of the server was taken");
    }

    /// The key of the only evidence.
    fn place(&self) -> String {
        let mut places = self.redis.keys_of_kind("evidence");
        assert_eq!(places.len(), 1, "{places:?}");
        places.remove(0)
    }
}

async fn resolver(config: &Config, clock: &Arc<Shifted>) -> Resolver {
    Resolver::with_clock(config, Arc::clone(clock) as Arc<dyn Clock>).await.expect("a good configuration")
}

fn name(text: &str) -> EnsName {
    EnsName::parse(text).expect("a good name")
}

fn conclusion(resolution: &Resolution) -> (String, Option<String>) {
    let verdict = resolution.verdict();
    (verdict.conclusion.clone(), verdict.anchor.as_ref().map(|anchor| anchor.block.hash.clone()))
}

#[tokio::test]
async fn evidence_of_one_daemon_gives_the_live_verdict_of_another() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let (one, other) = (stage.sharer().await, stage.daemon().await);
    let (found, requests) = stage.requests(other.resolve(AGENT)).await;
    assert_eq!(requests, 0, "one run in the fleet");
    let own = one.resolve(AGENT).await;
    assert_eq!(conclusion(&found), conclusion(&own));
    assert_eq!(found.verdict().freshness.fresh_until, own.verdict().freshness.fresh_until);
    assert_eq!(found.verdict().freshness.served, VerdictCopyKind::Cached);
    assert_eq!(found.trusted_verdict().map(|trusted| trusted.origin()), Ok(TrustOrigin::Live));
    assert_eq!(found.card_bytes(), own.card_bytes());
    assert_eq!(found.payment_records(), own.payment_records());
}

#[tokio::test]
async fn what_an_earlier_run_proved_is_proven_again_where_it_arrives() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let one = stage.sharer().await;
    for place in stage.redis.keys_of_kind("evidence") {
        stage.redis.open().del::<_, ()>(place).expect("the server answers");
    }
    // The second resolution reuses the card of the first, without asking a gateway.
    one.resolve_question_anew(&NameQuestion::new(AGENT)).await.expect("a good question");
    one.wait_for_shared_writes().await;
    let other = stage.daemon().await;
    assert_eq!(stage.requests(other.resolve(AGENT)).await.1, 0);
}

#[tokio::test]
async fn proofs_of_state_travel_with_the_evidence() {
    let Some(mut stage) = Stage::new(&[]).await else { return };
    stage.config.chain.proof = Some(ChainProofMode::StateProof);
    let (one, other) = (stage.sharer().await, stage.daemon().await);
    let (found, requests) = stage.requests(other.resolve(AGENT)).await;
    assert_eq!(requests, 0);
    assert_eq!(found.verdict().anchor.as_ref().expect("it was read").proof.grade, ProofGrade::StateProof);
    assert_eq!(conclusion(&found), conclusion(&one.resolve(AGENT).await));
}

/// A replica that demands less writes under the key of one that demands more.
#[tokio::test]
async fn evidence_of_a_weaker_grade_is_refused() {
    let Some(mut stage) = Stage::new(&[]).await else { return };
    let keys = MacKeys::parse(KEY).expect("a good key");
    let key = |daemon: &Resolver| daemon.cache_key(&NameQuestion::new(AGENT)).expect("a good question");
    let weak = key(&stage.sharer().await);
    let stored = stage.redis.get(&stage.place());
    let value = SharedEvidence::decode_verified(&stored, &keys, SharedEvidenceBinding { version: VERSION, key: &weak })
        .expect("it is good");
    stage.config.chain.proof = Some(ChainProofMode::StateProof);
    let strict = stage.daemon().await;
    let key = key(&strict);
    let binding = SharedEvidenceBinding { version: VERSION, key: &key };
    let place = format!("clresolve:evidence:{}", binding.storage_key());
    stage.redis.set(&place, &value.encode_with_mac(&keys, binding).expect("it is short"));
    stage.runs_by_itself(&strict, AGENT).await;
}

#[tokio::test]
async fn links_are_read_by_each_daemon_itself() {
    let Some(mut stage) = Stage::new(&[]).await else { return };
    stage.config.rules.links = true;
    let (one, other) = (stage.sharer().await, stage.daemon().await);
    let (found, requests) = stage.requests(other.resolve(AGENT)).await;
    assert!(requests > 0, "bundles hold none of them");
    let own = one.resolve(AGENT).await;
    let (freshness, of_own) = (&found.verdict().freshness, &own.verdict().freshness);
    assert_eq!(freshness.fresh_until, of_own.fresh_until, "the rest is of the fleet");
    assert_eq!(links(&found), links(&own));
}

/// The links in the verdict.
fn links(resolution: &Resolution) -> serde_json::Value {
    let binding =
        resolution.verdict().steps.iter().find(|step| step.step == ResolutionStep::Binding).expect("it is a step");
    binding.evidence.clone()
}

#[tokio::test]
async fn a_value_that_was_swapped_for_another_is_never_served() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let (one, other) = (stage.sharer().await, stage.daemon().await);
    let of_agent = stage.place();
    one.resolve(OTHER).await;
    one.wait_for_shared_writes().await;
    let mut places = stage.redis.keys_of_kind("evidence");
    places.retain(|place| *place != of_agent);
    let of_other = places.pop().expect("it was shared");
    let (agent, others) = (stage.redis.get(&of_agent), stage.redis.get(&of_other));
    stage.redis.set(&of_agent, &others);
    stage.redis.set(&of_other, &agent);
    stage.runs_by_itself(&other, AGENT).await;
    stage.runs_by_itself(&other, OTHER).await;
}

/// A daemon rejects the evidence about the agent after `change`, which it would otherwise accept.
async fn is_refused(change: impl FnOnce(&Stage, &VerdictCacheKey, &str)) {
    let Some(stage) = Stage::new(&[]).await else { return };
    let (one, other) = (stage.sharer().await, stage.daemon().await);
    let key = one.cache_key(&NameQuestion::new(AGENT)).expect("a good question");
    change(&stage, &key, &stage.place());
    stage.runs_by_itself(&other, AGENT).await;
}

#[tokio::test]
async fn a_value_that_was_truncated_is_never_served() {
    is_refused(|stage, _, place| {
        let stored = stage.redis.get(place);
        stage.redis.set(place, &stored[..stored.len() - 1]);
    })
    .await;
    is_refused(|stage, _, place| stage.redis.set(place, b"x")).await;
}

#[tokio::test]
async fn a_value_of_a_stranger_is_never_served() {
    is_refused(|stage, key, place| {
        let [ours, theirs] = [KEY, NEXT_KEY].map(|key| MacKeys::parse(key).expect("a good key"));
        let binding = SharedEvidenceBinding { version: VERSION, key };
        let value = SharedEvidence::decode_verified(&stage.redis.get(place), &ours, binding).expect("it is good");
        stage.redis.set(place, &value.encode_with_mac(&theirs, binding).expect("it is short"));
    })
    .await;
    is_refused(|stage, _, place| {
        let mut stored = stage.redis.get(place);
        stored[MAC_BYTES] ^= 1;
        stage.redis.set(place, &stored);
    })
    .await;
}

#[tokio::test]
async fn a_value_of_another_program_version_is_never_served() {
    is_refused(|stage, key, place| {
        let keys = MacKeys::parse(KEY).expect("a good key");
        let stored = stage.redis.get(place);
        let value = SharedEvidence::decode_verified(&stored, &keys, SharedEvidenceBinding { version: VERSION, key })
            .expect("it is good");
        let by_another =
            value.encode_with_mac(&keys, SharedEvidenceBinding { version: "0.0.1", key }).expect("it is short");
        stage.redis.set(place, &by_another);
    })
    .await;
}

#[tokio::test]
async fn a_value_that_aged_is_never_served() {
    is_refused(|stage, _, place| {
        let stored = stage.redis.get(place);
        let left: i64 = redis::cmd("PTTL").arg(place).query(&mut stage.redis.open()).expect("the server answers");
        assert!((1..=300_000).contains(&left), "it ends with its freshness: {left}");
        stage.redis.set(place, &stored);
        stage.clock.advance(301);
    })
    .await;
}

/// An eviction does not delete the value, so the server still returns it.
#[tokio::test]
async fn a_value_that_is_replayed_after_an_eviction_is_never_served() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let (_one, other) = (stage.sharer().await, stage.daemon().await);
    assert_eq!(stage.requests(other.resolve(AGENT)).await.1, 0);
    other.evict_name(&name(AGENT));
    stage.runs_by_itself(&other, AGENT).await;
}

#[tokio::test]
async fn one_daemon_runs_for_all() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let (one, two, three) = (stage.daemon().await, stage.daemon().await, stage.daemon().await);
    let mut by_itself = stage.config.clone();
    by_itself.redis = RedisConfig::default();
    let by_itself = resolver(&by_itself, &stage.clock).await;
    // A daemon's first resolution also verifies the endpoints.
    for daemon in [&one, &two, &three, &by_itself] {
        daemon.resolve_question_anew(&NameQuestion::new(OTHER)).await.expect("a good question");
        daemon.wait_for_shared_writes().await;
    }
    let (_, alone) = stage.requests(by_itself.resolve(AGENT)).await;
    let asked = async { tokio::join!(one.resolve(AGENT), two.resolve(AGENT), three.resolve(AGENT)) };
    let (found, requests) = stage.requests(asked).await;
    for resolution in [&found.0, &found.1, &found.2] {
        assert_eq!(resolution.verdict().state, TrustState::Trusted);
        assert_eq!(conclusion(resolution), conclusion(&found.0));
    }
    assert_eq!(requests, alone, "the others took its evidence");
    for daemon in [&one, &two, &three] {
        daemon.wait_for_shared_writes().await;
    }
    assert_eq!(stage.redis.keys_of_kind("lease"), [""; 0], "it was given back");
}

/// The daemon looked before the other one had written, and gets the lease once the other one has released it.
#[tokio::test]
async fn a_lease_that_was_given_back_meanwhile_starts_no_second_run() {
    let Some(mut stage) = Stage::new(&[]).await else { return };
    let one = stage.daemon().await;
    let (asks, mut asked) = tokio::sync::mpsc::unbounded_channel();
    let written = Arc::new(tokio::sync::Notify::new());
    let waits = {
        let written = Arc::clone(&written);
        move |sent: Vec<u8>| {
            let (asks, written) = (asks.clone(), Arc::clone(&written));
            async move {
                if command_contains(&sent, &["\nSET\r", ":lease:"]) {
                    asks.send(()).expect("the test listens");
                    written.notified().await;
                }
            }
        }
    };
    stage.config.redis.read_timeout = Duration::from_secs(60);
    stage.config.redis.url = Some(stage.redis.start_proxy(waits).await);
    let other = stage.daemon().await;
    let runs = async {
        asked.recv().await.expect("it asks for the lease");
        let (_, alone) = stage.requests(one.resolve(AGENT)).await;
        one.wait_for_shared_writes().await;
        written.notify_one();
        alone
    };
    let ((found, alone), requests) = stage.requests(async { tokio::join!(other.resolve(AGENT), runs) }).await;
    assert_eq!((found.verdict().state, requests), (TrustState::Trusted, alone));
    other.wait_for_shared_writes().await;
    assert_eq!(stage.redis.keys_of_kind("lease"), [""; 0], "it was given back");
}

#[tokio::test]
async fn a_lease_that_nobody_works_for_costs_no_more_than_the_wait() {
    let Some(mut stage) = Stage::new(&[]).await else { return };
    stage.config.redis.wait = Duration::from_millis(100);
    let (one, two) = (stage.sharer().await, stage.daemon().await);
    let of_agent = stage.redis.keys_of_kind("evidence");
    let mut connection = stage.redis.open();
    for place in &of_agent {
        let lease = place.replace(":evidence:", ":lease:");
        connection.set::<_, _, ()>(lease, "somebody").expect("the server answers");
        connection.del::<_, ()>(place).expect("the server answers");
    }
    let asked = tokio::time::timeout(Duration::from_secs(30), stage.runs_by_itself(&two, AGENT));
    asked.await.expect("it does not wait for ever");
    two.wait_for_shared_writes().await;
    let leases = stage.redis.keys_of_kind("lease");
    assert_eq!(leases.len(), of_agent.len(), "another one's lease is not given back");
    drop(one);
}

/// The three steps of the documentation. During a rolling restart, daemons before and after a step work together.
#[tokio::test]
async fn keys_rotate_without_a_gap() {
    let Some(mut stage) = Stage::new(&[]).await else { return };
    let steps: [&[&str]; 4] = [&[KEY], &[KEY, NEXT_KEY], &[NEXT_KEY, KEY], &[NEXT_KEY]];
    for step in steps.windows(2) {
        for [from, to] in [[0, 1], [1, 0]] {
            stage.config.redis.mac_key = Some(stage.redis.write_mac_key_file(step[from]));
            let sharer = stage.daemon().await;
            sharer.resolve_question_anew(&NameQuestion::new(AGENT)).await.expect("a good question");
            sharer.wait_for_shared_writes().await;
            stage.config.redis.mac_key = Some(stage.redis.write_mac_key_file(step[to]));
            let (found, requests) = stage.requests(stage.daemon().await.resolve(AGENT)).await;
            assert_eq!((found.verdict().state, requests), (TrustState::Trusted, 0), "{step:?}, from {from} to {to}");
        }
    }
}

#[tokio::test]
async fn a_key_on_the_second_line_verifies_and_does_not_sign() {
    let Some(mut stage) = Stage::new(&[]).await else { return };
    let old = stage.sharer().await;
    stage.config.redis.mac_key = Some(stage.redis.write_mac_key_file(&[NEXT_KEY, KEY]));
    let rotated = stage.daemon().await;
    assert_eq!(stage.requests(rotated.resolve(AGENT)).await.1, 0, "the old key still verifies");
    rotated.resolve(OTHER).await;
    rotated.wait_for_shared_writes().await;
    stage.runs_by_itself(&old, OTHER).await;
    let again = stage.daemon().await;
    assert_eq!(stage.requests(again.resolve(OTHER)).await.1, 0, "the new one signs");
}

#[tokio::test]
async fn what_could_not_be_decided_is_not_shared() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let daemon = stage.daemon().await;
    let found = daemon.resolve(PENDING).await;
    assert_eq!(found.verdict().state, TrustState::Indeterminate, "{}", found.verdict().summary);
    assert!(found.verdict().anchor.is_some(), "the chain was read");
    daemon.wait_for_shared_writes().await;
    assert_eq!(stage.redis.keys_of_kind("evidence"), [""; 0]);
}

#[tokio::test]
async fn the_sandbox_and_a_server_without_a_key_are_refused() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let mut sandbox = stage.config.clone();
    sandbox.chain.world = "sandbox".to_owned();
    let why = Resolver::new(&sandbox).await.err().expect("it is refused").to_string();
    assert_eq!(why, "redis.url: the sandbox shares nothing: its verdicts prove nothing");
    let mut without = stage.config.clone();
    without.redis.mac_key = None;
    let why = Resolver::new(&without).await.err().expect("it is refused").to_string();
    assert_eq!(why, "redis.url: nothing is shared without a MAC; set redis.mac-key");
    for (text, expected) in
        [("url = \"redis://a.example\"", "set redis.mac-key"), ("mac-key = \"file\"", "set redis.url")]
    {
        let layer = ConfigLayer::from_toml(&format!("[redis]\n{text}\n"), "f.toml").expect("its keys are known");
        let error = Config::default().with_layers([layer]).expect_err("it is refused").to_string();
        assert!(error.contains(expected), "{error}");
    }
    let mut short = stage.config.clone();
    short.redis.mac_key = Some(stage.redis.write_mac_key_file(&["abcd", "", ""]));
    let why = Resolver::new(&short).await.err().expect("it is refused").to_string();
    assert!(why.starts_with("redis.mac-key: expected one line with a key of 64 to 128 hex digits"), "{why}");
}

#[tokio::test]
async fn daemons_answer_over_http_from_the_evidence_of_each_other() {
    let Some(stage) = Stage::new(&[]).await else { return };
    let (one, other) = (stage.daemon().await, stage.daemon().await);
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let addresses = [stage.serve(&one).await, stage.serve(&other).await];
    let get = async |at: usize, path: &str| {
        let answer = client.get(format!("http://{}{path}", addresses[at])).send().await.expect("an answer");
        answer.status().as_u16()
    };
    assert_eq!(get(0, &format!("/v1/verdicts/{AGENT}")).await, 200);
    one.wait_for_shared_writes().await;
    let before = stage.world.request_counts();
    assert_eq!(get(1, &format!("/v1/verdicts/{AGENT}")).await, 200);
    assert_eq!(get(1, &format!("/v1/gate/{AGENT}")).await, 200);
    let after = stage.world.request_counts();
    assert_eq!((after.https, after.gateway), (before.https, before.gateway), "content is fetched once in the fleet");
}
