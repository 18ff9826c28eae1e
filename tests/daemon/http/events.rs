//! Streams of what happens to the answers about names: whoever follows learns of each eviction and each other verdict,
//! goes on from where it was, and is told where it cannot.

use std::time::Duration;

use clresolve_core::name::EnsName;
use clresolve_core::reading::BlockSelector;
use clresolve_resolver::config::Config;
use clresolve_resolver::resolve::{NameQuestion, Resolver};
use clresolve_resolver::sandbox::{CustomSandbox, Sandbox};
use clresolve_sandbox::spec::SandboxSpec;
use clresolve_server::http::HttpDaemon;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use reqwest::header::HeaderValue;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{BAD, Daemon, GOOD, HttpResponse, NO_POLLS, PATIENCE, answer, patient};

/// The header by which a client goes on from where it was.
const LAST: &str = "last-event-id";

/// Evictions at once: fewer than the daemon keeps, so that a reader that reads never falls behind.
const AT_ONCE: usize = 1_600;

/// How often. With a long name all of them take some 11 MB: more than the daemon keeps and both ends of a connection
/// hold.
const TURNS: usize = 20;

/// A stream, as a client reads it.
pub(super) struct Events {
    chunks: BoxStream<'static, Vec<u8>>,
    text: String,
}

/// An event.
#[derive(Debug, PartialEq)]
pub(super) struct Event {
    id: String,
    kind: Option<String>,
    pub(super) data: Value,
}

/// What a stream is to send about a name.
fn decided(before: Value, state: &str, verdict: &Value) -> Value {
    json!({
        "name": verdict["name"]["normalized"], "profile": verdict["profile"]["id"], "depth": verdict["profile"]["depth"],
        "before": before, "state": state, "verdict": verdict["id"], "checked_at": verdict["freshness"]["checked_at"],
    })
}

/// Holds the data of an event to the schema of all, and to that of its kind.
#[track_caller]
fn has_form(kind: &str, data: &Value) {
    let schema: Value = serde_json::from_str(include_str!("../../../schemas/event.schema.json")).expect("JSON");
    let of_kind = json!({"$ref": format!("#/$defs/{kind}"), "$defs": schema["$defs"]});
    for schema in [&schema, &of_kind] {
        let validator = jsonschema::validator_for(schema).expect("a schema");
        assert_eq!(validator.validate(data).map_err(|error| error.to_string()), Ok(()), "{data}");
    }
}

impl Events {
    pub(super) fn of(response: Response) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-store");
        let chunks = response.bytes_stream().map(|chunk| chunk.map(|bytes| bytes.to_vec()).unwrap_or_default());
        Self { chunks: chunks.boxed(), text: String::new() }
    }

    /// The next event; `None` at the end. A comment is none.
    pub(super) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                if block == ":" {
                    continue;
                }
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
                return Some(Event {
                    id: field("id").expect("a place").to_owned(),
                    kind: field("event").map(str::to_owned),
                    data: field("data").map_or(Value::Null, |data| serde_json::from_str(data).expect("JSON")),
                });
            }
            let chunk = timeout(PATIENCE, self.chunks.next()).await.expect("an event, or the end")?;
            self.text += std::str::from_utf8(&chunk).expect("UTF-8");
        }
    }

    /// The next event, which is of this kind and has the form that is published for it.
    pub(super) async fn expect(&mut self, kind: &str) -> Event {
        let event = self.next().await.expect("an event");
        assert_eq!(event.kind.as_deref(), Some(kind), "{event:?}");
        has_form(kind, &event.data);
        event
    }
}

impl Daemon {
    /// A stream about names, from a place on, and where it stands first.
    async fn follow(&self, names: &[&str], last: Option<&str>) -> (Events, Event) {
        let query: Vec<String> = names.iter().map(|name| format!("name={name}")).collect();
        let mut request = self.request(Method::GET, &format!("/v1/events?{}", query.join("&")));
        if let Some(last) = last {
            request = request.header(LAST, last);
        }
        let mut events = Events::of(request.send().await.expect("an answer"));
        let first = events.next().await.expect("where it stands");
        (events, first)
    }

    async fn verdict(&self, name: &str) -> Value {
        self.get(&format!("/v1/verdicts/{name}")).await.json()
    }
}

/// A daemon, and the resolver behind it.
async fn daemon() -> (Daemon, Resolver) {
    let sandbox = Sandbox::start().await.expect("the sandbox starts");
    let mut config = patient(&sandbox);
    // A reader that takes nothing is cut off by what it falls behind, and not by the time.
    config.http.read_timeout = PATIENCE;
    let resolver = Resolver::new(&config).await.expect("a resolver");
    (Daemon::run(server(&config, &resolver).await, sandbox), resolver)
}

/// A daemon over a world that can be written to, with one agent.
async fn of_world(change: impl FnOnce(&mut Config)) -> (Daemon, Resolver, CustomSandbox) {
    let spec =
        SandboxSpec::parse("[[agent]]\nname = \"good.eth\"\nabout = \"A good agent.\"\n").expect("it is a world");
    let world = CustomSandbox::start(&spec).await.expect("it starts");
    let mut config = world.config();
    (config.timeout, config.http.listen) = (PATIENCE, clresolve_resolver::config::ListenAddress::loopback(0));
    change(&mut config);
    let resolver = Resolver::new(&config).await.expect("a resolver");
    (Daemon::run(server(&config, &resolver).await, ()), resolver, world)
}

async fn server(config: &Config, resolver: &Resolver) -> HttpDaemon {
    HttpDaemon::bind_with_resolver(config, resolver.clone()).await.expect("the daemon starts")
}

fn name(text: &str) -> EnsName {
    EnsName::parse(text).expect("a name")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_learns_of_each_other_verdict_and_each_eviction() {
    let (daemon, resolver) = daemon().await;
    let (mut events, first) = daemon.follow(&[GOOD, "Entry-Version.eth"], None).await;
    assert_eq!((first.kind, first.data), (None, Value::Null), "nothing has happened");
    let good = daemon.verdict(GOOD).await;
    let told = events.expect("verdict").await;
    assert_eq!(told.data, decided(Value::Null, "trusted", &good));
    daemon.verdict("checksum-mismatch.eth").await;
    resolver.resolve_question_anew(&NameQuestion::new(GOOD)).await.expect("a good question");
    let bad = daemon.verdict(BAD).await;
    let found = events.expect("verdict").await;
    assert_eq!(found.data, decided(Value::Null, "untrusted", &bad), "neither others nor what is the same is told");
    resolver.evict_name(&name(GOOD));
    let eviction = events.expect("eviction").await;
    assert_eq!(eviction.data["name"], GOOD);
    assert!(eviction.data["at"].as_str().expect("a time").ends_with('Z'), "{eviction:?}");
    let again = daemon.verdict(GOOD).await;
    assert_eq!(events.expect("verdict").await.data, decided(Value::Null, "trusted", &again));

    // Another client that left after the first event.
    let (mut later, place) = daemon.follow(&[GOOD], Some(&told.id)).await;
    assert_eq!((place.id, place.kind), (told.id, None));
    assert_eq!(later.expect("eviction").await, eviction);
    assert_eq!(later.expect("verdict").await.data["verdict"], again["id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_says_what_was_held_before() {
    let (daemon, resolver, mut world) = of_world(|config| {
        // A write counts at once, and no new head evicts the cached verdict first.
        (config.chain.block, config.chain.head_poll) = (BlockSelector::Latest, NO_POLLS);
    })
    .await;
    let (mut events, _) = daemon.follow(&["good.eth"], None).await;
    let good = daemon.verdict("good.eth").await;
    assert_eq!(events.expect("verdict").await.data, decided(Value::Null, "trusted", &good));
    for (entry, before) in [("x403://good.eth/summarize/v1", "trusted"), ("x404://good.eth/summarize/v1", "untrusted")]
    {
        world.write_text(&name("good.eth"), "cl.entry", entry).expect("it has a resolver");
        resolver.resolve_question_anew(&NameQuestion::new("good.eth")).await.expect("a good question");
        let bad = daemon.verdict("good.eth").await;
        assert_eq!(events.expect("verdict").await.data, decided(json!(before), "untrusted", &bad));
    }
}

/// Nobody asks anew: the daemon reads the name again at the new head.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_on_chain_is_told_as_an_eviction() {
    let (daemon, _, mut world) = of_world(|config| config.chain.head_poll = Duration::from_millis(5)).await;
    let (mut events, _) = daemon.follow(&["good.eth"], None).await;
    let good = daemon.verdict("good.eth").await;
    assert_eq!(events.expect("verdict").await.data, decided(Value::Null, "trusted", &good));
    world.write_text(&name("good.eth"), "cl.owner", "thief.eth").expect("it has a resolver");
    assert_eq!(events.expect("eviction").await.data["name"], "good.eth");
}

#[test]
fn the_event_in_the_document_has_the_form_that_is_published() {
    let (_, section) = include_str!("../../../docs/run.md").split_once("\n## Follow names\n").expect("the section");
    let shown = section.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an event");
    has_form("verdict", &serde_json::from_str(shown).expect("JSON"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_is_unknown_is_reset() {
    let (daemon, resolver) = daemon().await;
    for last in ["0000000000000000-0", "5", "%20"] {
        let (mut events, first) = daemon.follow(&[GOOD], Some(last)).await;
        assert_eq!((first.kind.as_deref(), &first.data), (Some("reset"), &json!({})), "{last}");
        resolver.evict_name(&name(GOOD));
        assert_ne!(events.expect("eviction").await.id, first.id);
    }
    let unreadable = HeaderValue::from_bytes(b"\xff").expect("a header");
    let request = daemon.request(Method::GET, &format!("/v1/events?name={GOOD}")).header(LAST, unreadable);
    let mut events = Events::of(request.send().await.expect("an answer"));
    events.expect("reset").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_followed_is_refused() {
    let (daemon, _) = daemon().await;
    let many = vec![format!("name={GOOD}"); 101].join("&");
    for query in ["", "?name=", "?name=no%20name", "?name=a.eth&depth=schemas", &format!("?{many}")] {
        daemon.get(&format!("/v1/events{query}")).await.is_problem(400, "request-malformed");
    }
    answer(daemon.request(Method::POST, "/v1/events?name=a.eth")).await.is_problem(405, "method-unsupported");
    let head = answer(daemon.request(Method::HEAD, "/v1/events?name=a.eth")).await;
    assert_eq!((head.status, head.header("content-type")), (200, "text/event-stream"));
    // Those that have ended count no more.
    let mut streams = Vec::new();
    let refused = loop {
        let response = daemon.request(Method::GET, "/v1/events?name=a.eth").send().await.expect("an answer");
        if response.status() != 200 {
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            break HttpResponse { status, headers, body: response.bytes().await.expect("a problem").to_vec() };
        }
        streams.push(response);
    };
    refused.is_problem(429, "client-over-quota");
    assert_eq!(streams.len(), 64);
    assert_eq!(daemon.verdict(GOOD).await["state"], "trusted", "streams take no request's place");
    drop(streams);
    let opens = async {
        while daemon.request(Method::GET, "/v1/events?name=a.eth").send().await.expect("an answer").status() != 200 {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, opens).await.expect("a place is free again");
}

/// It gets what was sent before, and an end. Others get every event meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_falls_behind_is_cut() {
    let (daemon, resolver) = daemon().await;
    let evicted = name(&format!("{}.eth", "a".repeat(240)));
    let (mut slow, place) = daemon.follow(&[evicted.as_str()], None).await;
    let (mut quick, _) = daemon.follow(&[evicted.as_str()], None).await;
    let mut last_told = String::new();
    for turn in 0..TURNS {
        (0..AT_ONCE).for_each(|_| resolver.evict_name(&evicted));
        for _ in 0..AT_ONCE {
            last_told = quick.next().await.unwrap_or_else(|| panic!("it is cut in turn {turn}")).id;
        }
    }
    let (mut read, mut last_read) = (0, place.id);
    while read < TURNS * AT_ONCE
        && let Some(event) = slow.next().await
    {
        (read, last_read) = (read + 1, event.id);
    }
    assert!(read < TURNS * AT_ONCE, "all of it fits in between");
    let (_, back) = daemon.follow(&[evicted.as_str()], Some(&last_read)).await;
    assert_eq!(back.kind.as_deref(), Some("reset"), "{read} were read");
    let (_, back) = daemon.follow(&[evicted.as_str()], Some(&last_told)).await;
    assert_eq!((back.kind, back.id), (None, last_told));
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_end_when_the_daemon_does() {
    let (daemon, _) = daemon().await;
    let (mut events, _) = daemon.follow(&[GOOD], None).await;
    let Daemon { stop, ended, .. } = daemon;
    stop.send(()).expect("the daemon runs");
    assert_eq!(events.next().await, None);
    timeout(PATIENCE, ended).await.expect("it ends").expect("no panic");
}

/// Two servers may share one resolver.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_one_server_ends_no_stream_of_another() {
    let sandbox = Sandbox::start().await.expect("the sandbox starts");
    let config = patient(&sandbox);
    let resolver = Resolver::new(&config).await.expect("a resolver");
    let ending = Daemon::run(server(&config, &resolver).await, ());
    let staying = Daemon::run(server(&config, &resolver).await, sandbox);
    let (mut events, _) = staying.follow(&[GOOD], None).await;
    ending.stop.send(()).expect("the daemon runs");
    timeout(PATIENCE, ending.ended).await.expect("it ends").expect("no panic");
    resolver.evict_name(&name(GOOD));
    events.expect("eviction").await;
}
