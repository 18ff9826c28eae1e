//! The daemon as a process of its own, while what could hold up its gate is held up: the log, the connections, the
//! workers.

use std::cell::Cell;
use std::io::BufReader;
use std::process::{Child, ChildStderr, Command};
use std::time::Duration;

use clresolve_resolver::config::Config;
use clresolve_resolver::sandbox::CustomSandbox;
use futures_util::future::join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::hostile::judging::{costly, known};
use crate::hostile::started::{self, Started};
use crate::hostile::worst::Judge;
use crate::hostile::{HANGS, spec, worst_questions, worst_receipts, worst_requests};

const GOOD: &str = "/v1/gate/good.eth/summarize";

/// What a request takes at most before it hangs, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Requests in a row before the counts are looked at.
const ROUND: usize = 500;

/// Rounds after which a log of any size is full.
const MOST_ROUNDS: usize = 40;

/// Connections of one client as shipped, and in all.
const OF_ONE: usize = 256;
const IN_ALL: usize = 3 * OF_ONE;

/// Costly messages at once.
const FLOOD: usize = 24;

/// A running daemon whose log nobody reads.
struct Daemon {
    child: Child,
    address: String,
    /// Its memory with a good name in its cache, in KiB.
    idle: u64,
    _log: BufReader<ChildStderr>,
    _folder: tempfile::TempDir,
}

impl Daemon {
    fn start(mut config: Config) -> Self {
        config.timeout = PATIENCE;
        config.http.listen = clresolve_resolver::config::ListenAddress::loopback(0);
        config.http.cold_runs_per_minute = u32::MAX;
        // Every connection from this machine is the same client's. What one client may do is tested elsewhere.
        config.http.connections_per_client = 2 * IN_ALL;
        config.http.cold_runs_per_client = config.http.cold_runs;
        // Nothing is late here: what is asked is who is answered first.
        config.gate.deadline = PATIENCE;
        let Started { child, address, log, folder } = Started::with(&config, []);
        Self { child, address, idle: 0, _log: log, _folder: folder }
    }

    /// That what was done to it has cost little memory.
    #[track_caller]
    fn holds(&self, what: &str) {
        started::holds(what, self.idle, started::peak(&self.child));
    }

    /// A connection from an address of this machine: each is a client.
    async fn connect(&self, from: &str) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(format!("{from}:0").parse().unwrap()).unwrap();
        socket.connect(self.address.parse().unwrap()).await.unwrap()
    }

    async fn ask(&self, from: &str, path: &str) -> String {
        said_on(&mut self.connect(from).await, path).await.unwrap_or_else(|| panic!("{from} gets no answer to {path}"))
    }

    async fn count(&self, name: &str) -> u64 {
        let metrics = self.ask("127.0.0.9", "/metrics").await;
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0, |count| count.parse().unwrap())
    }

    fn ends_in_order(mut self) {
        assert!(Command::new("kill").arg(self.child.id().to_string()).status().unwrap().success());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The whole answer to one request, if there is one. The connection stays open.
async fn said_on(stream: &mut TcpStream, path: &str) -> Option<String> {
    said_to(stream, &format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n")).await
}

async fn said_to(stream: &mut TcpStream, request: &str) -> Option<String> {
    timeout(PATIENCE, stream.write_all(request.as_bytes())).await.ok()?.ok()?;
    let mut said = Vec::new();
    loop {
        if timeout(PATIENCE, stream.read_buf(&mut said)).await.ok()?.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&said);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
        if body.len() >= length {
            return Some(text.into_owned());
        }
    }
}

fn is_open(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 200 ") && answer.contains("clresolve-state: trusted\r\n")
}

/// A good agent, and parents below which every name has one of the worst cards.
async fn world() -> CustomSandbox {
    let good = "[[agent]]\nname = \"good.eth\"\nabout = \"A good agent.\"\n".to_owned();
    let worst = known(Judge::Verdict);
    let costly = (0..).zip(&worst).map(|(number, card): (usize, _)| costly(&format!("a.worst-{number}.eth"), card));
    CustomSandbox::start(&spec(&(good + &costly.collect::<String>()))).await.unwrap()
}

/// The daemon of a world, with a good name in its cache.
async fn warm(world: &CustomSandbox) -> Daemon {
    warmed(world.config()).await
}

async fn warmed(config: Config) -> Daemon {
    let mut daemon = Daemon::start(config);
    let verdict = timeout(HANGS, daemon.ask("127.0.0.9", "/v1/verdicts/good.eth")).await.unwrap();
    assert!(verdict.contains("\"state\":\"trusted\""), "{verdict}");
    daemon.idle = started::peak(&daemon.child);
    daemon
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_nobody_reads_holds_nothing_up() {
    let world = world().await;
    let daemon = warm(&world).await;
    let mut stream = daemon.connect("127.0.0.2").await;
    let path = format!("/{}", "x".repeat(150));
    for round in 0.. {
        for number in 0..ROUND {
            let said = said_on(&mut stream, &path).await.unwrap_or_else(|| panic!("stuck in round {round}, {number}"));
            assert!(said.starts_with("HTTP/1.1 404 "), "{said}");
        }
        if daemon.count("clresolve_log_lines_dropped_total").await > 0 {
            break;
        }
        assert!(round < MOST_ROUNDS, "no line was dropped");
    }
    assert!(is_open(&daemon.ask("127.0.0.3", GOOD).await));
    assert!(daemon.ask("127.0.0.3", "/livez").await.ends_with("live\n"));
    daemon.holds("a log that nobody reads");
    daemon.ends_in_order();
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_hold_all_connections_shut_nobody_out() {
    let world = world().await;
    let daemon = warm(&world).await;
    let mut proxy = daemon.connect("127.0.0.5").await;
    assert!(is_open(&said_on(&mut proxy, GOOD).await.unwrap()));
    let hold = async |from: &'static str, sent: &'static str| {
        let mut held = Vec::new();
        for _ in 0..OF_ONE {
            let mut stream = daemon.connect(from).await;
            // One that makes room for another may be closed already.
            let _ = stream.write_all(sent.as_bytes()).await;
            held.push(stream);
        }
        held
    };
    let nothing = hold("127.0.0.2", "").await;
    let heads = hold("127.0.0.3", "GET /v1/gate/good.eth HTTP/1.1\r\nx: ").await;
    let idle = hold("127.0.0.4", "GET /livez HTTP/1.1\r\n\r\n").await;
    assert_eq!(nothing.len() + heads.len() + idle.len(), IN_ALL);

    let mut newcomers = Vec::new();
    for number in 0..20 {
        let mut stream = daemon.connect("127.0.0.6").await;
        let said = said_on(&mut stream, GOOD).await.unwrap_or_else(|| panic!("newcomer {number} is shut out"));
        assert!(is_open(&said), "{said}");
        newcomers.push(stream);
    }
    assert!(daemon.count("clresolve_http_connections_evicted_total").await >= 20);
    assert!(is_open(&said_on(&mut proxy, GOOD).await.expect("what last asked the gate goes last")));
    for stream in &mut newcomers {
        assert!(is_open(&said_on(stream, GOOD).await.expect("a small client keeps what it has")));
    }
    daemon.holds("held connections");
}

/// What is in work holds its connection as well: bodies of which a half has come, and streams of events.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_do_not_come_and_streams_shut_nobody_out() {
    let world = world().await;
    let mut config = world.config();
    config.http.read_timeout = 2 * PATIENCE;
    let daemon = warmed(config).await;
    let hold = async |site: &str, count: usize, sent: &str| {
        let (mut held, sent) = (Vec::new(), sent.replace("host: x", &format!("host: x\r\nsec-fetch-site: {site}")));
        for _ in 0..count {
            let mut stream = daemon.connect("127.0.0.2").await;
            // One that makes room for another may be closed already.
            let _ = stream.write_all(sent.as_bytes()).await;
            held.push(stream);
        }
        held
    };
    let half =
        "POST /v1/verdicts HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9000\r\n\r\n{";
    let stream = "GET /v1/events?name=good.eth HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\n\r\n";
    let mut held = Vec::new();
    // Two clients: this machine's processes, and the pages of other sites.
    for site in ["none", "cross-site"] {
        let mut streams = hold(site, OF_ONE / 4, stream).await;
        for stream in &mut streams {
            let mut status = [0; 12];
            stream.read_exact(&mut status).await.unwrap();
            assert_eq!(&status, b"HTTP/1.1 200", "each is a stream");
        }
        held.extend(streams);
        held.extend(hold(site, IN_ALL / 2 - OF_ONE / 4, half).await);
    }
    assert_eq!(held.len(), IN_ALL);

    for path in [GOOD, "/livez", "/readyz", "/v1/verdicts/good.eth"].repeat(5) {
        let said = daemon.ask("127.0.0.8", path).await;
        assert!(said.starts_with("HTTP/1.1 200 "), "{path}: {said}");
    }
    assert!(daemon.count("clresolve_http_connections_evicted_total").await > 0);
    daemon.holds("bodies that do not come");
}

/// What costs much to judge: its first line and body, by what it is sent to.
fn costly_messages() -> Vec<(&'static str, String)> {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let posted = |path: &str, body: String| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let lint = known(Judge::Lint).into_iter().map(|card| ("lint", posted("/v1/lint", text(card))));
    let request = text(worst_requests::Kind::Numbers.question("good.eth", "summarize"));
    let receipt = text(worst_receipts::Kind::Numbers.question("good.eth"));
    let decision = text(worst_questions::Kind::Offers.question());
    lint.chain([
        ("requests", posted("/v1/requests/check", request)),
        ("receipts", posted("/v1/receipts/verify", receipt)),
        ("decisions", posted("/v1/decisions", decision)),
    ])
    .collect()
}

/// Floods of costly messages, while the gate is asked for a cached name: each of its
/// answers is the right one, and none waits for a flood to end. How long one takes is measured by the soak.
async fn overtakes(daemon: &Daemon, what: &str, message: impl Fn(usize) -> String) {
    let (answers, floods) = (Cell::new(0), Cell::new(None));
    let judge = async |flood: usize, number: usize| {
        let mut stream = daemon.connect(&format!("127.1.{}.{}", flood % 256, 1 + number)).await;
        let said = said_to(&mut stream, &message(number)).await.expect("it is judged");
        // One client has places for some of them, and is refused the rest.
        let is_answer = ["200", "403", "422", "429"].iter().any(|status| said[9..].starts_with(status));
        assert!(is_answer && !is_open(&said), "{what}: {said}");
    };
    let judged = async {
        let mut flood = 0;
        while answers.get() < FLOOD {
            join_all((0..FLOOD).map(|number| judge(flood, number))).await;
            flood += 1;
        }
        floods.set(Some(flood));
    };
    let gate = async {
        while floods.get().is_none() {
            let said = daemon.ask("127.0.0.3", GOOD).await;
            assert!(is_open(&said), "{what}: {said}");
            answers.set(answers.get() + 1);
        }
    };
    tokio::join!(judged, gate);
    let floods = floods.get().unwrap_or_default();
    println!("{what}: {} answers of the gate while {} messages were judged", answers.get(), floods * FLOOD);
    // An answer that waited for a flood to end would come once a flood.
    assert!(answers.get() > 2 * floods, "{what}: {} answers during {floods} floods", answers.get());
}

/// That judging has threads of its own is shown by the tests of `crates/resolver/src/resolve.rs` and
/// `crates/resolver/src/cpu_pool.rs`.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn the_gate_answers_while_every_worker_judges_the_worst_messages() {
    let world = world().await;
    let daemon = warm(&world).await;
    let cards = known(Judge::Verdict).len();
    for card in 0..cards {
        let verdict = daemon.ask("127.0.0.3", &format!("/v1/verdicts/b.worst-{card}.eth")).await;
        // One of them is what the schema demands, and is of another name.
        let is_judged = ["card-schema-invalid", "card-ens-mismatch"].iter().any(|code| verdict.contains(code));
        assert!(verdict.contains("\"state\":\"untrusted\"") && is_judged, "{verdict}");
    }
    for card in 0..cards {
        let path = |number| format!("GET /v1/gate/n{number}.worst-{card}.eth/summarize HTTP/1.1\r\nhost: x\r\n\r\n");
        overtakes(&daemon, &format!("cards {card}"), path).await;
    }
    for (what, message) in costly_messages() {
        overtakes(&daemon, what, |_| message.clone()).await;
    }
    assert!(daemon.ask("127.0.0.3", "/livez").await.ends_with("live\n"));
    daemon.holds("the worst cards and messages");
}

/// The tables of names beyond ASCII are read at the start: what reads them later holds up the gate.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn the_first_name_beyond_ascii_costs_what_others_cost() {
    /// Hundredths of a second. To read the tables takes about ten, and more without optimisation.
    const MOST: u64 = 5;
    let world = world().await;
    let daemon = warm(&world).await;
    let spent = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", daemon.child.id())).unwrap();
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        fields.split(' ').skip(11).take(2).map(|time| time.parse::<u64>().unwrap()).sum::<u64>()
    };
    let before = spent();
    // Two scripts in one label: there is no run for it.
    let verdict = daemon.ask("127.0.0.3", "/v1/verdicts/%d0%b0b.eth").await;
    assert!(verdict.contains("\"name-invalid\""), "{verdict}");
    let took = spent() - before;
    assert!(took <= MOST, "{took} hundredths of a second");
}
