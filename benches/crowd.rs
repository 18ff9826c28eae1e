//! Compares the daemon's memory after a million requests with that after 200,000. The requests are about 100,000 names,
//! of which the daemon may cache 10,000. Most are about a thousand hot names, and one in ten is about another name,
//! whose verdict requires a resolution and evicts another one. The run fails unless every name was requested and the
//! cache was full.

mod support;

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use clresolve_resolver::sandbox::CustomSandbox;
use clresolve_sandbox::spec::SandboxSpec;
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use support::http::{MAX_ANSWER, answer};
use support::{Good, Row, program};

const BUDGET: f64 = 1.05;

/// Number of requests before the first memory sample, and in total.
const FIRST: usize = 200_000;
const ALL: usize = 1_000_000;

/// Maximum number of cached verdicts, which is reached.
const HELD: u64 = 10_000;

/// Cache budget per verdict, in bytes: more than any needs, so that the number of verdicts is the limit.
const ROOM: u64 = 64 * 1024;

/// Number of requested names, and of the hot ones, of which each is resolved once a minute.
const NAMES: usize = 100_000;
const IN_USE: usize = 1000;

/// One request in this many is about a name that is not hot.
const STRANGERS: usize = 10;

/// The allocator settings of the shipped unit and image.
const ALLOCATOR: [(&str, &str); 2] = [("MALLOC_MMAP_THRESHOLD_", "131072"), ("MALLOC_ARENA_MAX", "2")];

const CONNECTIONS: usize = 16;

fn main() {
    if !support::asked_to_measure() {
        return;
    }
    let runtime = Runtime::new().expect("a runtime");
    let world = runtime.block_on(CustomSandbox::start(&spec())).expect("the world starts");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (file, socket) = (folder.path().join("clresolve.toml"), folder.path().join("admin.sock"));
    let mut config = world.config();
    config.admin.socket = Some(socket.display().to_string().parse().expect("a path"));
    (config.cache.untrusted, config.cache.verdict_bytes) = (HELD, HELD * ROOM);
    config.http.listen = clresolve_resolver::config::ListenAddress::loopback(0);
    config.http.cold_runs_per_minute = u32::MAX;
    config.save(&file).expect("the folder can be written");
    let (mut daemon, address) = start(&file.display().to_string());

    let asked = Arc::new(AtomicUsize::new(0));
    assert_eq!((0..ALL).map(name).collect::<HashSet<_>>().len(), NAMES, "names that are asked for");
    let [first, last] = [FIRST, ALL].map(|until| {
        runtime.block_on(ask(address, &asked, until));
        assert_eq!(held(&socket), HELD, "verdicts in the cache after {until} requests");
        resident(&daemon)
    });
    daemon.kill().and_then(|()| daemon.wait()).expect("the daemon ends");
    Row {
        what: "memory after 1,000,000 requests about 100,000 names",
        measured: format!("{last:.1} MiB"),
        beside: format!("after 200,000 of them: {first:.1} MiB"),
        ratio: last / first,
        budget: BUDGET,
        good: Good::AtMost,
    }
    .end("bench-crowd");
}

/// Number of verdicts in the cache, as reported by the daemon.
fn held(socket: &Path) -> u64 {
    let socket = socket.display().to_string();
    let shown = program(&["ctl", "show", "--socket", &socket, "-o", "json"]).output().expect("it runs");
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    shown["cache"]["untrusted"]["entries"].as_u64().expect("a number")
}

/// Every name below the parent resolves to the records of this agent, so it is untrusted.
fn spec() -> SandboxSpec {
    let text = r#"
[[name]]
name = "publisher.eth"
holder = "publisher"
addr = "publisher"

[[agent]]
name = "a.crowd.eth"
about = "One of the crowd."
chain.resolver = "parent-wildcard"
"#;
    SandboxSpec::parse(text).expect("it is as the sandbox reads it")
}

fn start(config: &str) -> (Child, SocketAddr) {
    let mut child = program(&["serve", "--config", config])
        .envs(ALLOCATOR)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the daemon starts");
    let mut log = BufReader::new(child.stderr.take().expect("it is a pipe"));
    let mut line = String::new();
    log.read_line(&mut line).expect("it says something");
    let address = line.trim().rsplit_once("http://").and_then(|(_, address)| address.parse().ok());
    std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
    (child, address.unwrap_or_else(|| panic!("no address in {line:?}")))
}

/// Sends requests until their total number is `until`.
async fn ask(address: SocketAddr, asked: &Arc<AtomicUsize>, until: usize) {
    let mut clients = JoinSet::new();
    for _ in 0..CONNECTIONS {
        clients.spawn(client(address, Arc::clone(asked), until));
    }
    clients.join_all().await;
}

async fn client(address: SocketAddr, asked: Arc<AtomicUsize>, until: usize) {
    let mut stream = TcpStream::connect(address).await.expect("the daemon listens");
    stream.set_nodelay(true).expect("a socket");
    let mut buffer = vec![0; MAX_ANSWER];
    while let Some(number) = next(&asked, until) {
        let path = format!("/v1/verdicts/n{}.crowd.eth", name(number));
        stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: crowd\r\n\r\n").as_bytes()).await.expect("it reads");
        let length = answer(&mut stream, &mut buffer).await;
        assert!(buffer[..length].starts_with(b"HTTP/1.1 200 "), "{path}: {}", buffer[..length].escape_ascii());
    }
}

fn next(asked: &AtomicUsize, until: usize) -> Option<usize> {
    asked.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |number| (number < until).then_some(number + 1)).ok()
}

/// The name that a request is about.
const fn name(request: usize) -> usize {
    let turn = request / STRANGERS;
    if request.is_multiple_of(STRANGERS) { IN_USE + turn % (NAMES - IN_USE) } else { (request - turn) % IN_USE }
}

/// Resident memory of the process, in MiB.
fn resident(process: &Child) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux tells");
    let kibibytes: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kibibytes / 1024.0
}
