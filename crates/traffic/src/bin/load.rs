//! Load test: sends a daemon good, bad and hostile HTTP, checks every response, and prints the gate's latency.
//!
//! ```text
//! just load                      10,000 requests a second for a minute
//! just load 2000 10              2,000 a second for 10 seconds
//! ```
//!
//! The sandbox network runs in this process, the daemon in its own (the `clresolve` next to this program). The expected
//! result for each name is that of `clresolve sandbox --list -o json`. Good and bad requests come from one address,
//! floods of unknown names from a second, and hostile connections from others (`own-network`), because one client must
//! not affect the responses to another.
//!
//! Meanwhile a new head arrives every twelve seconds, the first RPC endpoint never answers, and clients post the worst
//! cards to `/v1/lint`. The latency of a gate request counts from when it was due, even if the client sent it late. It
//! includes the resolution of the client's timer, about 1 ms.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clresolve_core::state::TrustState;
use clresolve_resolver::config::{Config, RpcEndpointConfig};
use clresolve_resolver::sandbox::Sandbox;
use clresolve_sandbox::agents::ExpectedAgentVerdict;
use clresolve_traffic::documents::{self, DocumentResponseClass, WorstCaseDocumentRequest};
use clresolve_traffic::{DaemonProcess, client_address, ensure_client_addresses};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use url::Url;

/// Number of persistent connections of all kinds, and of those that are opened for each hostile request.
const GATE: u32 = 32;
const STEADY: u32 = 32;
const FLOOD: u32 = 16;
const HOSTILE: u32 = 32;
/// Number of deliberately slow connections. Their requests take seconds and do not count towards the rate.
const SLOW: u32 = 8;

/// Number of clients that post the worst cards, and the pause of each client between two cards.
const SENDERS: u8 = 4;
const SENDER_PAUSE: Duration = Duration::from_millis(100);

/// Shares of the rate in percent: gate requests for trusted names, requests for all names, and floods of unknown ones.
/// The rest is hostile.
const GATE_SHARE: u32 = 40;
const STEADY_SHARE: u32 = 40;
const FLOOD_SHARE: u32 = 12;

/// Time limit of a request. The daemon's own limits end every request sooner.
const PATIENCE: Duration = Duration::from_secs(30);

/// Time between two blocks, as on Ethereum.
const BLOCK_INTERVAL: Duration = Duration::from_secs(12);

/// Minimum rate. At a lower one, the daemon would close persistent connections as idle.
const MIN_RATE: u32 = 100;

/// The pause between two gate requests for a name that is not confirmed yet.
const WARM_UP_PAUSE: Duration = Duration::from_millis(100);

/// The daemon's timeout for a head and for a body.
const DAEMON_WAITS: Duration = Duration::from_secs(2);

/// Maximum number of bytes sent to a daemon that should close the connection.
const ENDLESS: usize = 64 << 20;

/// Maximum number of wrong responses that are printed.
const SHOWN: usize = 20;

const GOOD: &str = "summarizeagent.eth";

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u32| arguments.next().map_or(Ok(default), |text| text.parse());
    let (rate, seconds) = (number(10_000)?, number(60)?);
    ensure!(rate >= MIN_RATE && seconds > 0, "expected: load [REQUESTS A SECOND, AT LEAST {MIN_RATE}] [SECONDS]");
    ensure_client_addresses()?;

    // The network has its own threads, so that building a block never delays a client.
    let network = Runtime::new()?;
    let sandbox = network.block_on(Sandbox::start())?;
    let config = sandbox.config();
    network.spawn(sandbox.run_with_block_interval(BLOCK_INTERVAL));
    Runtime::new()?.block_on(run_load_test(config, rate, seconds))
}

async fn run_load_test(mut config: Config, rate: u32, seconds: u32) -> anyhow::Result<()> {
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let folder = tempfile::tempdir()?;
    config.chain.endpoints.insert(0, silent_endpoint(silent.local_addr()?)?);
    tokio::spawn(hold_connections(silent));
    config.http.listen = clresolve_resolver::config::ListenAddress::loopback(0);
    (config.http.read_timeout, config.http.head_timeout) = (DAEMON_WAITS, DAEMON_WAITS);
    config.http.idle_timeout = DAEMON_WAITS;
    let path = folder.path().join("clresolve.toml");
    config.save(&path)?;

    let mut daemon = DaemonProcess::start(&path).await?;
    let run = Arc::new(LoadTestRun {
        to: daemon.address,
        names: Sandbox::expected_verdicts(),
        worst_cards: documents::document_requests()
            .into_iter()
            .filter(|question| question.to.starts_with("lint"))
            .collect(),
        counts: LoadTestCounts::default(),
    });
    run.warm_up().await?;
    let memory = run.run_clients(rate, Duration::from_secs(seconds.into()), &mut daemon).await?;
    daemon.stop().await?;

    let counts = &run.counts;
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let paced = [&counts.gate, &counts.steady, &counts.flood, &counts.hostile].into_iter().map(count).sum::<u64>();
    println!(
        "requests {} in {seconds} s, {}/s: {} good and bad, {} of unknown names, {} hostile; and {} slow ones",
        paced,
        paced / u64::from(seconds),
        count(&counts.gate) + count(&counts.steady),
        count(&counts.flood),
        count(&counts.hostile),
        count(&counts.slow),
    );
    counts.print_gate_times()?;
    println!("worst cards {}", count(&counts.documents));
    let (first, last, most) = memory;
    println!(
        "wrong {} refused {} crashes 0 rss-MiB first {first:.1} last {last:.1} most {most:.1}",
        count(&counts.wrong),
        count(&counts.refused),
    );
    for wrong in counts.shown.lock().expect("no panic").iter() {
        eprintln!("wrong: {wrong}");
    }
    ensure!(count(&counts.wrong) == 0, "some answers were wrong");
    ensure!(count(&counts.documents) > 0, "no worst card was judged");
    ensure!(paced >= u64::from(rate) * u64::from(seconds) * 98 / 100, "the rate was not reached");
    Ok(())
}

struct LoadTestRun {
    to: SocketAddr,
    names: Vec<ExpectedAgentVerdict>,
    worst_cards: Vec<WorstCaseDocumentRequest>,
    counts: LoadTestCounts,
}

#[derive(Default)]
struct LoadTestCounts {
    gate: AtomicU64,
    steady: AtomicU64,
    flood: AtomicU64,
    hostile: AtomicU64,
    slow: AtomicU64,
    /// Worst cards that the daemon judged.
    documents: AtomicU64,
    /// Latency of each gate request for a trusted name.
    gate_times: Mutex<Vec<Duration>>,
    /// Refusals because too many resolutions are running, where permitted: never for names that should be cached.
    refused: AtomicU64,
    wrong: AtomicU64,
    shown: Mutex<Vec<String>>,
}

impl LoadTestCounts {
    fn print_gate_times(&self) -> anyhow::Result<()> {
        let mut times = self.gate_times.lock().expect("no panic").clone();
        times.sort_unstable();
        let worst = times.last().context("the gate was never asked")?;
        let [median, p99, p999] = [500, 990, 999].map(|thousandth| times[times.len() * thousandth / 1000]);
        println!(
            "gate {} answers, median {median:.1?}, p99 {p99:.1?}, p99.9 {p999:.1?}, worst {worst:.1?}",
            times.len()
        );
        Ok(())
    }

    fn record_result(&self, counter: &AtomicU64, what: &str, judged: Result<(), String>) {
        counter.fetch_add(1, Ordering::Relaxed);
        let Err(why) = judged else { return };
        self.wrong.fetch_add(1, Ordering::Relaxed);
        let mut shown = self.shown.lock().expect("no panic");
        let wrong = format!("{what}: {why}");
        if shown.len() < SHOWN && !shown.contains(&wrong) {
            shown.push(wrong);
        }
    }
}

impl LoadTestRun {
    /// Requests each name until trusted ones are cached and confirmed. The first requests wait for the silent endpoint.
    async fn warm_up(&self) -> anyhow::Result<()> {
        let mut line = KeepAliveConnection::open(Ipv4Addr::LOCALHOST, self.to).await?;
        let end = Instant::now() + PATIENCE;
        for expected in &self.names {
            let name = encode_path_segment(&expected.name);
            let answer = line.send_request(&get_request_text(&format!("/v1/verdicts/{name}"))).await?;
            check_verdict(&answer, expected).map_err(|why| anyhow::anyhow!("{name}: {why}"))?;
            while expected.state == TrustState::Trusted
                && line.send_request(&get_request_text(&format!("/v1/gate/{name}"))).await?.status != 200
            {
                ensure!(Instant::now() < end, "{name} is not confirmed");
                sleep(WARM_UP_PAUSE).await;
            }
        }
        Ok(())
    }

    /// Runs all connections. Returns the daemon's memory in MiB: after a tenth of the time, at the end, and the peak.
    async fn run_clients(
        self: &Arc<Self>,
        rate: u32,
        time: Duration,
        daemon: &mut DaemonProcess,
    ) -> anyhow::Result<(f64, f64, f64)> {
        let start = Instant::now();
        let end = start + time;
        // The requests of a kind are spread evenly over time.
        let pace = |percent: u32, workers: u32, number: u32| {
            let step = Duration::from_secs(100) * workers / rate / percent;
            RequestPacer { due: start + step * number / workers, end, step }
        };
        let rest = 100 - GATE_SHARE - STEADY_SHARE - FLOOD_SHARE;
        let mut work = JoinSet::new();
        for number in 0..GATE {
            work.spawn(Arc::clone(self).send_gate_requests(number, pace(GATE_SHARE, GATE, number)));
        }
        for number in 0..STEADY {
            work.spawn(Arc::clone(self).send_mixed_requests(number, pace(STEADY_SHARE, STEADY, number)));
        }
        for number in 0..FLOOD {
            work.spawn(Arc::clone(self).flood_unknown_names(number, pace(FLOOD_SHARE, FLOOD, number)));
        }
        for number in 0..HOSTILE {
            work.spawn(Arc::clone(self).send_hostile_requests(number, pace(rest, HOSTILE, number)));
        }
        for number in 0..SLOW {
            work.spawn(Arc::clone(self).send_slow_requests(number, end));
        }
        for number in 0..SENDERS {
            work.spawn(Arc::clone(self).post_worst_cards(number, end));
        }
        let mut samples = Vec::new();
        let step = time / 60;
        for number in 1..=60 {
            sleep_until(start + step * number).await;
            daemon.ensure_alive()?;
            samples.push(daemon.memory_kib("VmRSS:")? as f64 / 1024.0);
        }
        while let Some(done) = work.join_next().await {
            done?;
        }
        daemon.ensure_alive()?;
        let most = samples.iter().copied().fold(0.0, f64::max);
        Ok((samples[5], samples[samples.len() - 1], most))
    }

    /// Requests decisions for the trusted names of the sandbox, which are cached.
    async fn send_gate_requests(self: Arc<Self>, number: u32, mut pace: RequestPacer) {
        let trusted = self.names.iter().filter(|expected| expected.state == TrustState::Trusted);
        let mut names = trusted.cycle().skip(number as usize);
        let mut line = None;
        while let (Some(due), Some(expected)) = (pace.wait_for_next().await, names.next()) {
            let path = format!("/v1/gate/{}", encode_path_segment(&expected.name));
            let answer = get_on_connection(&mut line, Ipv4Addr::LOCALHOST, self.to, &path).await;
            let latency = due.elapsed();
            self.counts.gate_times.lock().expect("no panic").push(latency);
            let judged =
                answer.map_err(|error| error.to_string()).and_then(|answer| check_gate_decision(&answer, true));
            self.counts.record_result(&self.counts.gate, &path, judged);
        }
    }

    /// Requests reports and decisions for all names of the sandbox.
    async fn send_mixed_requests(self: Arc<Self>, number: u32, mut pace: RequestPacer) {
        let mut line = None;
        let mut turn = number as usize * 7;
        while pace.wait_for_next().await.is_some() {
            turn += 1;
            let expected = &self.names[turn / 2 % self.names.len()];
            let is_gate = turn.is_multiple_of(2);
            let path =
                format!("/v1/{}/{}", if is_gate { "gate" } else { "verdicts" }, encode_path_segment(&expected.name));
            let judged = match get_on_connection(&mut line, Ipv4Addr::LOCALHOST, self.to, &path).await {
                Ok(answer) if is_gate => check_gate_decision(&answer, expected.state == TrustState::Trusted),
                Ok(answer) if expected.state != TrustState::Trusted && is_overload_refusal(&answer) => {
                    self.counts.refused.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                }
                Ok(answer) => check_verdict(&answer, expected),
                Err(error) => Err(error.to_string()),
            };
            self.counts.record_result(&self.counts.steady, &path, judged);
        }
    }

    /// Requests names that do not exist, each once. They may be refused, but never pass.
    async fn flood_unknown_names(self: Arc<Self>, number: u32, mut pace: RequestPacer) {
        let mut line = None;
        let mut turn = 0_u64;
        while pace.wait_for_next().await.is_some() {
            turn += 1;
            let is_gate = turn.is_multiple_of(2);
            let path = format!("/v1/{}/none-{number}-{turn}.eth", if is_gate { "gate" } else { "verdicts" });
            let judged = match get_on_connection(&mut line, client_address(0, 2), self.to, &path).await {
                Ok(answer) if is_gate => check_gate_decision(&answer, false),
                Ok(answer) if is_overload_refusal(&answer) => {
                    self.counts.refused.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                }
                Ok(answer) if answer.status == 200 && answer.verdict_state() != Some("trusted") => Ok(()),
                Ok(answer) => Err(answer.excerpt()),
                Err(error) => Err(error.to_string()),
            };
            self.counts.record_result(&self.counts.flood, &path, judged);
        }
    }

    /// Sends malformed, oversized, smuggling, endless, half-closed, truncated and pipelined requests, one connection
    /// each.
    async fn send_hostile_requests(self: Arc<Self>, number: u32, mut pace: RequestPacer) {
        let attacks = hostile_requests();
        let mut turn = number as usize * 5;
        while pace.wait_for_next().await.is_some() {
            turn += 1;
            let attack = &attacks[turn % attacks.len()];
            let from = client_address(1, u8::try_from(1 + turn % 200).unwrap_or(1));
            let judged = timeout(PATIENCE, attack.run(from, self.to)).await;
            let judged = judged.unwrap_or_else(|_| Err("no end".to_owned()));
            self.counts.record_result(&self.counts.hostile, attack.what, judged);
        }
    }

    /// Posts the worst cards to `/v1/lint`.
    async fn post_worst_cards(self: Arc<Self>, number: u8, end: Instant) {
        let from = client_address(3, 1 + number);
        let mut line = None;
        let first = usize::from(number) * self.worst_cards.len() / usize::from(SENDERS);
        for card in self.worst_cards.iter().cycle().skip(first) {
            if Instant::now() > end {
                return;
            }
            let answer = send_on_connection(&mut line, from, self.to, &card.request).await;
            let judged = match answer.map(|answer| card.classify(&answer.to_text())) {
                Ok(DocumentResponseClass::Judged) => Ok(()),
                Ok(DocumentResponseClass::Full) => {
                    self.counts.refused.fetch_add(1, Ordering::Relaxed);
                    sleep(SENDER_PAUSE).await;
                    continue;
                }
                other => Err(format!("{other:?}")),
            };
            self.counts.record_result(&self.counts.documents, card.to, judged);
            sleep(SENDER_PAUSE).await;
        }
    }

    /// Sends heads and bodies slowly or reads slowly, until the daemon's timeout.
    async fn send_slow_requests(self: Arc<Self>, number: u32, end: Instant) {
        let batch = "POST /v1/verdicts HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{";
        let kinds = [
            ("a slow head", "GET /v1/gate/summarizeagent.eth HTTP/1.1\r\nhost: "),
            ("a slow head of a report", "GET /v1/verdicts/summarizeagent.eth HTTP/1.1\r\nhost: "),
            ("a slow body", batch),
            ("a slow line", "GET"),
        ];
        let from = client_address(2, u8::try_from(1 + number).unwrap_or(1));
        for (what, sent) in kinds.into_iter().cycle().skip(number as usize) {
            if Instant::now() + 3 * DAEMON_WAITS > end {
                return;
            }
            let attack = HostileRequest { what, sent: sent.to_owned(), then: AfterSend::Wait, wants: vec!["408"] };
            let judged = timeout(PATIENCE, attack.run(from, self.to)).await;
            self.counts.record_result(&self.counts.slow, what, judged.unwrap_or_else(|_| Err("no end".to_owned())));
        }
    }
}

fn silent_endpoint(address: SocketAddr) -> anyhow::Result<RpcEndpointConfig> {
    let url: Url = format!("http://{address}").parse()?;
    Ok(RpcEndpointConfig {
        label: "silent".to_owned(),
        operator: RpcEndpointConfig::operator_from_url(&url),
        url,
        own: true,
    })
}

/// Accepts connections and never answers.
async fn hold_connections(listener: TcpListener) {
    let mut held = Vec::new();
    while let Ok((stream, _)) = listener.accept().await {
        held.push(stream);
    }
}

/// Schedules the next request. A late client sends at once.
struct RequestPacer {
    due: Instant,
    end: Instant,
    step: Duration,
}

impl RequestPacer {
    /// When the next request is due, after waiting for it. `None` at the end of the run.
    async fn wait_for_next(&mut self) -> Option<Instant> {
        let due = self.due;
        if due >= self.end || Instant::now() >= self.end + PATIENCE {
            return None;
        }
        self.due += self.step;
        sleep_until(due).await;
        Some(due)
    }
}

struct HostileRequest {
    what: &'static str,
    sent: String,
    then: AfterSend,
    /// The expected statuses, in order.
    wants: Vec<&'static str>,
}

/// What the client does after it has sent the request.
#[derive(Clone, Copy)]
enum AfterSend {
    /// Closes its sending side, and reads.
    HalfClose,
    Wait,
    /// Sends without end, and reads.
    Endless,
    Leave,
}

fn hostile_requests() -> Vec<HostileRequest> {
    use AfterSend::{Endless, HalfClose, Leave, Wait};

    let gate = format!("/v1/gate/{GOOD}");
    let post = "POST /v1/verdicts HTTP/1.1\r\ncontent-type: application/json\r\n";
    let long = "y".repeat(20_000);
    let attack =
        |what, sent: String, then, wants: &[&'static str]| HostileRequest { what, sent, then, wants: wants.to_vec() };
    let shut = |what, sent: String| attack(what, sent, Wait, &["403"]);
    let malformed = |what, sent: String| attack(what, sent, Wait, &["400"]);
    let too_large = |what, sent: String| attack(what, sent, Wait, &["431"]);
    vec![
        malformed("a malformed header", format!("GET {gate} HTTP/1.1\r\nno header\r\n\r\n")),
        too_large("a huge head", format!("GET {gate} HTTP/1.1\r\nx: {long}\r\n\r\n")),
        too_large("many headers", format!("GET {gate} HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(65))),
        malformed("a greeting of TLS", "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}".to_owned()),
        attack("HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), Wait, &[]),
        malformed("an unknown version", format!("GET {gate} HTTP/7.1\r\n\r\n")),
        shut("a tunnel", format!("CONNECT {gate} HTTP/1.1\r\nconnection: close\r\n\r\n")),
        shut("a double slash", format!("GET /{gate} HTTP/1.1\r\nconnection: close\r\n\r\n")),
        shut("an encoded path", format!("GET /v1/%67ate/{GOOD} HTTP/1.1\r\nconnection: close\r\n\r\n")),
        shut(
            "an encoded step up",
            format!("GET /v1/verdicts/..%2fgate%2f{GOOD} HTTP/1.1\r\nconnection: close\r\n\r\n"),
        ),
        shut("a step up", "GET /v1/gate/../../livez HTTP/1.1\r\nconnection: close\r\n\r\n".to_owned()),
        attack(
            "smuggling past the gate",
            format!(
                "POST {gate} HTTP/1.1\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET {gate} HTTP/1.1\r\n\r\n"
            ),
            Wait,
            &["403"],
        ),
        attack("smuggling", format!("{post}content-length: 5\r\ncontent-length: 6\r\n\r\n{{}}"), Wait, &["400"]),
        attack("a huge head of a report", format!("GET /v1/verdicts/a HTTP/1.1\r\nx: {long}\r\n\r\n"), Wait, &["431"]),
        attack("a huge body, announced", format!("{post}content-length: 9999999999\r\n\r\n"), Endless, &["413"]),
        attack(
            "a huge body in chunks",
            format!("{post}transfer-encoding: chunked\r\n\r\nfffffff\r\n"),
            Endless,
            &["413"],
        ),
        attack("malformed chunks", format!("{post}transfer-encoding: chunked\r\n\r\nwhat\r\n"), Wait, &["400"]),
        attack("a body cut off", format!("{post}content-length: 99\r\n\r\n{{"), HalfClose, &["400"]),
        attack(
            "an endless body for the gate",
            format!("POST {gate} HTTP/1.1\r\ncontent-length: 9999999999\r\n\r\n"),
            Endless,
            &["200"],
        ),
        attack(
            "endless chunks for the gate",
            format!("POST {gate} HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nfffffff\r\n"),
            Endless,
            &["200"],
        ),
        attack("half-closed", format!("GET {gate} HTTP/1.1\r\n\r\n"), HalfClose, &["200"]),
        attack("half-closed in its head", format!("GET {gate} HTTP/1.1\r\nhost:"), HalfClose, &[]),
        attack("silence", String::new(), HalfClose, &[]),
        attack("gone in its head", format!("GET {gate} HTTP/1.1\r\nhost:"), Leave, &[]),
        attack("gone in its body", format!("{post}content-length: 99\r\n\r\n{{"), Leave, &[]),
        attack("gone before its answers", format!("GET {gate} HTTP/1.1\r\n\r\n").repeat(50), Leave, &[]),
        attack(
            "pipelined",
            format!("GET {gate} HTTP/1.1\r\n\r\nGET /v1/gate/no%20name HTTP/1.1\r\n\r\n").repeat(10),
            HalfClose,
            &["200", "403"].repeat(10),
        ),
    ]
}

impl HostileRequest {
    async fn run(&self, from: Ipv4Addr, to: SocketAddr) -> Result<(), String> {
        let text = |error: io::Error| error.to_string();
        let mut stream = connect_from(from, to).await.map_err(text)?;
        // The daemon may close the connection before everything is sent.
        let _ = stream.write_all(self.sent.as_bytes()).await;
        let mut said = Vec::new();
        match self.then {
            AfterSend::Leave => return Ok(()),
            AfterSend::HalfClose => {
                let _ = stream.shutdown().await;
                let _ = stream.read_to_end(&mut said).await;
            }
            AfterSend::Wait => drop(stream.read_to_end(&mut said).await),
            AfterSend::Endless => {
                let (mut reader, mut writer) = stream.split();
                let send = async {
                    let mut sent = 0;
                    while sent < ENDLESS && writer.write_all(&[b'x'; 16 << 10]).await.is_ok() {
                        sent += 16 << 10;
                    }
                    sent
                };
                let (sent, _) = tokio::join!(send, reader.read_to_end(&mut said));
                if sent >= ENDLESS {
                    return Err("the daemon accepts an endless body".to_owned());
                }
            }
        }
        let said = String::from_utf8_lossy(&said);
        let statuses: Vec<&str> =
            said.split("HTTP/1.1 ").skip(1).map(|answer| answer.get(..3).unwrap_or_default()).collect();
        if statuses == self.wants { Ok(()) } else { Err(format!("{statuses:?}, expected {:?}", self.wants)) }
    }
}

/// A persistent connection.
struct KeepAliveConnection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

struct HttpResponse {
    status: u16,
    head: String,
    body: Vec<u8>,
}

async fn connect_from(from: Ipv4Addr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    if from != Ipv4Addr::LOCALHOST {
        socket.bind((from, 0).into())?;
    }
    let stream = socket.connect(to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Sends a GET request for `path`, see [`send_on_connection`].
async fn get_on_connection(
    line: &mut Option<KeepAliveConnection>,
    from: Ipv4Addr,
    to: SocketAddr,
    path: &str,
) -> io::Result<HttpResponse> {
    send_on_connection(line, from, to, &get_request_text(path)).await
}

/// Sends a request on the open connection, or else on a new one.
async fn send_on_connection(
    line: &mut Option<KeepAliveConnection>,
    from: Ipv4Addr,
    to: SocketAddr,
    request: &str,
) -> io::Result<HttpResponse> {
    let mut open = match line.take() {
        Some(open) => open,
        None => KeepAliveConnection::open(from, to).await?,
    };
    let answer =
        timeout(PATIENCE, open.send_request(request)).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    if !answer.head.contains("connection: close\r\n") {
        *line = Some(open);
    }
    Ok(answer)
}

fn get_request_text(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: load\r\n\r\n")
}

/// A name as a path segment.
fn encode_path_segment(name: &str) -> String {
    let encoded = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    name.bytes().map(encoded).collect()
}

impl KeepAliveConnection {
    async fn open(from: Ipv4Addr, to: SocketAddr) -> io::Result<Self> {
        Ok(Self { stream: connect_from(from, to).await?, buffer: Vec::new() })
    }

    async fn send_request(&mut self, request: &str) -> io::Result<HttpResponse> {
        self.stream.write_all(request.as_bytes()).await?;
        let end = loop {
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            self.read_more().await?;
        };
        let head = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
        let length: usize =
            head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
        while self.buffer.len() < end + length {
            self.read_more().await?;
        }
        let body = self.buffer[end..end + length].to_vec();
        self.buffer.drain(..end + length);
        let status = head.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0);
        Ok(HttpResponse { status, head, body })
    }

    async fn read_more(&mut self) -> io::Result<()> {
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }
}

impl HttpResponse {
    fn verdict_state(&self) -> Option<&str> {
        let body = std::str::from_utf8(&self.body).ok()?;
        let (_, rest) = body.split_once("\"state\":\"")?;
        rest.split('"').next()
    }

    fn to_text(&self) -> String {
        format!("{}{}", self.head, String::from_utf8_lossy(&self.body))
    }

    fn excerpt(&self) -> String {
        let body: String = String::from_utf8_lossy(&self.body).chars().take(300).collect();
        format!("{} {body}", self.head.lines().next().unwrap_or_default())
    }
}

fn is_overload_refusal(answer: &HttpResponse) -> bool {
    matches!(answer.status, 429 | 503) && answer.head.contains("application/problem+json")
}

fn check_gate_decision(answer: &HttpResponse, allow: bool) -> Result<(), String> {
    let opens = answer.status == 200 && answer.head.contains("clresolve-state: trusted\r\n");
    let closes = answer.status == 403 && answer.head.contains("clresolve-code: ");
    if answer.body.is_empty() && opens == allow && closes != allow { Ok(()) } else { Err(answer.head.clone()) }
}

fn check_verdict(answer: &HttpResponse, expected: &ExpectedAgentVerdict) -> Result<(), String> {
    let verdict: Value =
        serde_json::from_slice(&answer.body).map_err(|error| format!("{error}: {}", answer.excerpt()))?;
    let reasons = verdict["reasons"].as_array().map(Vec::as_slice).unwrap_or_default();
    let codes: BTreeSet<&str> = reasons.iter().filter_map(|reason| reason["code"].as_str()).collect();
    let wanted: BTreeSet<&str> = expected.codes.iter().map(|code| code.slug()).collect();
    if answer.status == 200 && verdict["state"] == expected.state.as_str() && codes == wanted {
        return Ok(());
    }
    Err(format!("{} {} {codes:?}, expected {} {wanted:?}", answer.status, verdict["state"], expected.state))
}
