//! Compares a warm verdict from the daemon over HTTP with a bare axum handler that returns the same head and body with
//! the same connection settings. Servers and load run in separate processes. If `taskset` is available, the servers
//! have one core and the load another, so that only the server is measured.
//!
//! Warm payment decisions are compared with the verdict that they depend on: the same body repeatedly, whose decision
//! is cached for a second, and distinct bodies, which differ either in ignored or in relevant parts.
//!
//! The program runs itself for its parts: `bare FILE` serves a file, `load ADDRESS FILE SECONDS` sends the request in a
//! file repeatedly, each time with another [`MARK`].

mod support;

use std::convert::Infallible;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tower::Service as _;

use support::http::{MAX_ANSWER, answer};
use support::{GOOD, Good, Row, median, median_ratio, print_row, program};

/// Minimum ratio to the bare handler's rate.
const BUDGET: f64 = 0.9;

/// Minimum ratio to the rate of a warm verdict.
const DECISION_BUDGET: f64 = 0.7;

/// Number of rounds. Each server is measured once per round.
const ROUNDS: usize = 9;

/// Duration of one measurement, in seconds.
const SECONDS: u64 = 2;

/// White space in a body that encodes the number of the request, one bit per byte.
const MARK: [u8; 32] = [b' '; 32];

const CONNECTIONS: usize = 32;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["bare", file] => bare(Path::new(file)),
        ["load", address, file, seconds] => load(
            address.parse().expect("an address"),
            std::fs::read(file).expect("the file is there").into(),
            Duration::from_secs(seconds.parse().expect("a number of seconds")),
        ),
        _ if support::asked_to_measure() => measure(),
        _ => {}
    }
}

fn measure() {
    let path = format!("/v1/verdicts/{GOOD}");
    let daemon = Running::start(program(&["serve", "--sandbox", "--listen", "127.0.0.1:0"]));
    fetch(daemon.address, &path);
    let answer = fetch(daemon.address, &path);
    let (_, body) = parts(&answer);
    assert!(String::from_utf8_lossy(body).contains("\"state\":\"trusted\""), "the daemon trusts the good agent");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("answer.http");
    std::fs::write(&file, &answer).expect("the folder can be written");
    let bare = Running::start(itself(&["bare", &file.display().to_string()]));
    let theirs = fetch(bare.address, &path);
    assert_eq!(parts(&theirs).1, body, "both answer with the same body");
    assert_eq!(head_lines(&theirs), head_lines(&answer), "both answer with the same head, but for the time");

    let same = decision_body();
    let mark = String::from_utf8_lossy(&MARK);
    let (alike, other) = (format!("{mark}{same}"), same.replacen('{', &format!("{{\"limits\":{{{mark}}},"), 1));
    let requests = [
        ("verdict.http", request(&path)),
        ("decision.http", posted(&same, "")),
        ("alike.http", posted(&alike, "")),
        ("others.http", posted(&other, "")),
    ];
    let [verdict, decision, alike, others] = requests.map(|(name, request)| {
        let file = folder.path().join(name);
        std::fs::write(&file, request).expect("the folder can be written");
        file
    });
    let decided = send(daemon.address, &posted(&same, "connection: close\r\n"));
    assert!(
        String::from_utf8_lossy(parts(&decided).1).contains("\"abort\":false"),
        "the daemon allows the honest terms"
    );

    let [mut theirs, mut ours, mut decisions, mut alike_decided, mut others_decided] = [const { Figures::NONE }; 5];
    for _ in 0..ROUNDS {
        ours.add(&daemon, &verdict);
        theirs.add(&bare, &verdict);
        decisions.add(&daemon, &decision);
        alike_decided.add(&daemon, &alike);
        others_decided.add(&daemon, &others);
    }
    for (name, figures) in [
        ("clresolve serve", &ours),
        ("bare axum handler", &theirs),
        ("clresolve serve, the same decision", &decisions),
        ("clresolve serve, decisions that read alike", &alike_decided),
        ("clresolve serve, other decisions", &others_decided),
    ] {
        let (rate, cpu) = (median(&figures.rates), median(&figures.micros));
        println!("{name}: {rate:.0} requests/s, {cpu:.2} µs of processor time each; {} bytes of body", body.len());
    }
    println!("by processor time the ratio is {:.2}", median_ratio(&theirs.micros, &ours.micros));
    Row {
        what: "warm verdict over HTTP",
        measured: format!("{:.0} requests/s", median(&ours.rates)),
        beside: format!("bare axum handler, same head and body: {:.0} requests/s", median(&theirs.rates)),
        ratio: median_ratio(&ours.rates, &theirs.rates),
        budget: BUDGET,
        good: Good::AtLeast,
    }
    .end("bench-http");
    Row {
        what: "warm decision over HTTP, a question repeated within a second",
        measured: format!("{:.0} requests/s", median(&decisions.rates)),
        beside: format!("warm verdict over HTTP: {:.0} requests/s", median(&ours.rates)),
        ratio: median_ratio(&decisions.rates, &ours.rates),
        budget: DECISION_BUDGET,
        good: Good::AtLeast,
    }
    .end("bench-http");
    println!("of decisions that read alike, {:.2} of it", median_ratio(&alike_decided.rates, &ours.rates));
    print_row(
        "warm decision over HTTP, questions that differ",
        &format!("{:.0} µs of processor time", median(&others_decided.micros)),
        &format!("warm verdict over HTTP: {:.1} µs", median(&ours.micros)),
        median_ratio(&ours.micros, &others_decided.micros),
        "none",
        "bench-http",
    );
}

/// A question about an honest seller's terms. A guard forwards all headers of the reply, including `Date`, so its
/// questions change every second.
fn decision_body() -> String {
    let url = "https://api.sandbox.example/summarize/v1";
    let terms = json!({
        "x402Version": 2,
        "error": "PAYMENT-SIGNATURE header is required",
        "resource": {"url": url, "description": "summarize", "mimeType": "application/json"},
        "accepts": [{
            "scheme": "exact",
            "network": "eip155:31337",
            "amount": "10000",
            "asset": clresolve_sandbox::chain::DOLLAR,
            "payTo": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
            "maxTimeoutSeconds": 60,
            "extra": {"name": "Sandbox Dollar", "version": "1"},
        }],
        "extensions": {},
    });
    let header = STANDARD.encode(terms.to_string());
    let headers = [["content-type", "application/json"], ["payment-required", &header]];
    let response = json!({"status": 402, "url": url, "headers": headers, "body": "{}"});
    json!({"name": GOOD, "verb": "summarize", "response": response}).to_string()
}

fn posted(body: &str, header: &str) -> Bytes {
    format!(
        "POST /v1/decisions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{header}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into()
}

/// The measurements of a server per round.
struct Figures {
    rates: Vec<f64>,
    /// Processor time per request, in microseconds.
    micros: Vec<f64>,
}

impl Figures {
    const NONE: Self = Self { rates: Vec::new(), micros: Vec::new() };

    fn add(&mut self, server: &Running, request: &Path) {
        let before = server.processor_time();
        let (address, file) = (server.address.to_string(), request.display().to_string());
        let load = itself(&["load", &address, &file, &SECONDS.to_string()]);
        let output = pinned(load, "1").output().expect("the load runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8_lossy(&output.stdout);
        let requests: f64 = said.trim().parse().expect("a number of requests");
        let spent = server.processor_time().saturating_sub(before);
        self.rates.push(requests / Duration::from_secs(SECONDS).as_secs_f64());
        self.micros.push(spent.as_secs_f64() * 1e6 / requests);
    }
}

/// A server process. Dropping this kills it.
struct Running {
    child: Child,
    address: SocketAddr,
}

impl Running {
    /// Starts a server that prints its address on standard error.
    fn start(command: Command) -> Self {
        let mut child = pinned(command, "0").stderr(Stdio::piped()).spawn().expect("the server starts");
        let mut log = BufReader::new(child.stderr.take().expect("it is a pipe"));
        let mut line = String::new();
        log.read_line(&mut line).expect("it says something");
        let address = line.trim().rsplit_once("http://").and_then(|(_, address)| address.parse().ok());
        let address = address.unwrap_or_else(|| panic!("no address in {line:?}"));
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Self { child, address }
    }

    /// CPU time of its threads so far. Zero if the system does not report it.
    fn processor_time(&self) -> Duration {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let nanos = threads.into_iter().flatten().flatten().filter_map(|thread| {
            let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanos.sum())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn itself(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the system knows"));
    command.args(arguments);
    command
}

/// Pins `command` to one core, if possible.
fn pinned(command: Command, core: &str) -> Command {
    let can = Command::new("taskset").args(["-c", core, "true"]).output().is_ok_and(|output| output.status.success());
    if !can {
        return command;
    }
    let mut on_core = Command::new("taskset");
    on_core.args(["-c", core]).arg(command.get_program()).args(command.get_args());
    on_core
}

fn parts(answer: &[u8]) -> (&str, &[u8]) {
    let at = answer.windows(4).position(|end| end == b"\r\n\r\n").expect("a head");
    (std::str::from_utf8(&answer[..at]).expect("a head is ASCII"), &answer[at + 4..])
}

/// The names of the headers, sorted, with values except those that depend on the time.
fn head_lines(answer: &[u8]) -> Vec<String> {
    let timely = ["date", "age", "cache-status", "connection"];
    let lines = parts(answer).0.lines().skip(1).filter_map(|line| line.split_once(": "));
    let mut lines: Vec<String> = lines
        .map(|(name, value)| if timely.contains(&name) { name.to_owned() } else { format!("{name}: {value}") })
        .collect();
    lines.sort();
    lines
}

/// Serves the response in `file` at the path of a verdict. Headers that hyper adds are omitted.
fn bare(file: &Path) {
    let answer = std::fs::read(file).expect("the file is there");
    let (head, body) = parts(&answer);
    let body = Bytes::copy_from_slice(body);
    let mut headers = HeaderMap::new();
    for (name, value) in head.lines().skip(1).filter_map(|line| line.split_once(": ")) {
        if !["date", "content-length", "connection"].contains(&name) {
            headers.insert(HeaderName::from_bytes(name.as_bytes()).expect("a name"), value.parse().expect("a value"));
        }
    }
    let answer = move || {
        let (headers, body) = (headers.clone(), body.clone());
        async move { (headers, body) }
    };
    let router: Router = Router::new().route("/v1/verdicts/{name}", get(answer));
    Runtime::new().expect("threads can be had").block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port can be had");
        eprintln!("http://{}", listener.local_addr().expect("it is bound"));
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            stream.set_nodelay(true).expect("a socket");
            tokio::spawn(serve(stream, router.clone()));
        }
    });
}

/// Serves a connection like the daemon, without limits per client.
async fn serve(stream: TcpStream, router: Router) {
    let service = service_fn(move |request: Request<Incoming>| {
        let mut router = router.clone();
        async move { router.call(request.map(Body::new)).await }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(30)).max_buf_size(16 * 1024).max_headers(64);
    let served: Result<(), hyper::Error> = http.serve_connection(TokioIo::new(stream), service).await;
    let _: Result<(), Infallible> = served.or(Ok(()));
}

/// Sends `request` repeatedly, and prints the number of responses within `time`.
fn load(address: SocketAddr, request: Bytes, time: Duration) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mark = request.windows(MARK.len()).position(|bytes| bytes == MARK);
    let answers = runtime.block_on(async {
        let mut clients = JoinSet::new();
        let end = Instant::now() + time;
        for _ in 0..CONNECTIONS {
            let mut request = request.to_vec();
            clients.spawn(async move {
                let mut stream = TcpStream::connect(address).await.expect("the server listens");
                stream.set_nodelay(true).expect("a socket");
                let (mut buffer, mut answers) = (vec![0; MAX_ANSWER], 0_u64);
                while Instant::now() < end {
                    if let Some(at) = mark {
                        number(&mut request[at..at + MARK.len()]);
                    }
                    stream.write_all(&request).await.expect("the server reads");
                    let length = answer(&mut stream, &mut buffer).await;
                    assert!(
                        buffer[..length].starts_with(b"HTTP/1.1 200 "),
                        "only 200 counts: {}",
                        String::from_utf8_lossy(&buffer[..length])
                    );
                    answers += 1;
                }
                answers
            });
        }
        clients.join_all().await.into_iter().sum::<u64>()
    });
    println!("{answers}");
}

/// Writes the number of a request into its mark.
fn number(mark: &mut [u8]) {
    static SENT: AtomicU64 = AtomicU64::new(0);
    let number = SENT.fetch_add(1, Ordering::Relaxed);
    for (bit, byte) in mark.iter_mut().enumerate() {
        *byte = if number >> bit & 1 == 1 { b'\t' } else { b' ' };
    }
}

fn request(path: &str) -> Bytes {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: application/json\r\n\r\n").into()
}

/// The response to one request, head and body.
fn fetch(address: SocketAddr, path: &str) -> Vec<u8> {
    let request = request(path);
    send(address, &[&request[..request.len() - 2], b"connection: close\r\n\r\n"].concat())
}

/// The response to a request that closes the connection.
fn send(address: SocketAddr, closing: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut stream = std::net::TcpStream::connect(address).expect("the server listens");
    stream.write_all(closing).expect("the server reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the server answers");
    answer
}
