//! The daemon as a process of its own, while what could hold up its gate is held up: the log, the connections, the
//! workers.

use std::io::BufReader;
use std::pin::pin;
use std::process::{Child, ChildStderr, Command};
use std::time::Duration;

use clresolve::config::Config;
use clresolve::sandbox::World;
use futures_util::future::join_all;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, timeout};

use crate::judging::{costly, known};
use crate::started::{self, Started};
use crate::worst::Judge;
use crate::{HANGS, spec};

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

/// New names that each line asks for, one after the other.
const NAMES_EACH: usize = 12;

/// How often the gate is asked.
const PACE: Duration = Duration::from_millis(50);

/// What is late: the deadline, and as much again for a busy machine.
const LATE: Duration = Duration::from_millis(300);

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
        config.http.listen = clresolve::config::ListenAt::loopback(0);
        config.http.cold_runs_per_minute = u32::MAX;
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
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
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
async fn world() -> World {
    let good = "[[agent]]\nname = \"good.eth\"\nabout = \"A good agent.\"\n".to_owned();
    let worst = known(Judge::Verdict);
    let costly = (0..).zip(&worst).map(|(number, card): (usize, _)| costly(&format!("a.worst-{number}.eth"), card));
    World::start(&spec(&(good + &costly.collect::<String>()))).await.unwrap()
}

/// The daemon of a world, with a good name in its cache.
async fn warm(world: &World) -> Daemon {
    let mut daemon = Daemon::start(world.config());
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

/// What the gate takes for a cached name, asked for at a fixed pace, so that a daemon that hangs is asked on.
async fn times_of_the_gate(daemon: &Daemon, busy: impl Future<Output = ()>) -> Vec<Duration> {
    let mut pace = tokio::time::interval(PACE);
    let mut asked = FuturesUnordered::new();
    let mut times = Vec::new();
    let mut busy = pin!(busy);
    let ask = async || {
        let began = Instant::now();
        let said = daemon.ask("127.0.0.3", GOOD).await;
        assert!(is_open(&said), "{said}");
        began.elapsed()
    };
    loop {
        tokio::select! {
            () = &mut busy => break,
            _ = pace.tick() => asked.push(ask()),
            Some(time) = asked.next() => times.push(time),
        }
    }
    times.extend(asked.collect::<Vec<_>>().await);
    times.sort();
    times
}

/// Where workers judge, most of these questions wait for the end of a judgement. A busy machine delays some for less.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn the_gate_answers_while_every_worker_judges_the_worst_card() {
    let world = world().await;
    let daemon = warm(&world).await;
    let cards = known(Judge::Verdict).len();
    let worst = async |line: usize| {
        for number in 0..NAMES_EACH {
            let card = (line + number) % cards;
            let path = format!("/v1/gate/n{line}-{number}.worst-{card}.eth/summarize");
            let said = daemon.ask(&format!("127.0.1.{}", 1 + line), &path).await;
            assert!(said.starts_with("HTTP/1.1 403 "), "{said}");
        }
    };
    for card in 0..cards {
        let verdict = daemon.ask("127.0.0.3", &format!("/v1/verdicts/b.worst-{card}.eth")).await;
        assert!(
            verdict.contains("\"state\":\"untrusted\"") && verdict.contains("\"card-schema-invalid\""),
            "{verdict}"
        );
    }
    let runs = async {
        join_all((0..4).map(worst)).await;
        // The gate does not wait for a run; its end shows in the count.
        while daemon.count("clresolve_runs_in_flight").await > 0 {
            tokio::task::yield_now().await;
        }
    };
    let times = times_of_the_gate(&daemon, runs).await;
    let late = times.iter().filter(|time| **time > LATE).count();
    println!("the gate: {} answers, {late} late, {:?} at most", times.len(), times[times.len() - 1]);
    assert!(late * 3 <= times.len(), "{late} of {} are late: {times:?}", times.len());
    assert!(daemon.ask("127.0.0.3", "/livez").await.ends_with("live\n"));
    daemon.holds("the worst cards");
}
