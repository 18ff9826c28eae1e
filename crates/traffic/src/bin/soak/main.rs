//! Soak test: sends honest, hostile and worst-case traffic to one daemon, and checks that the gate is never late.
//!
//! ```text
//! just soak        a minute
//! just soak 600    ten minutes
//! ```
//!
//! The sandbox network runs in this process, the daemon in its own (the `clresolve` next to this program). The daemon
//! has the default limits, except that resolutions are unlimited and the verdict caches are small, so that the cache
//! does not count as memory growth. Nobody reads its log. A gate response for a cached name is late if it takes longer
//! than the gate's deadline plus the slowest `livez` of the run. Each client has its own address (`own-network`).

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::ensure;
use clresolve_resolver::sandbox::CustomSandbox;
use clresolve_sandbox::spec::SandboxSpec;
use clresolve_traffic::documents::{self, DocumentResponseClass, WorstCaseDocumentRequest};
use clresolve_traffic::{DaemonProcess, announce_to_prometheus, client_address, ensure_client_addresses};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// Number of clients that query the gate for cached names, and the pause of each between two requests.
const HONEST: u8 = 4;
const HONEST_PAUSE: Duration = Duration::from_millis(50);

const LIVEZ_PAUSE: Duration = Duration::from_millis(100);

/// Number of clients that make the daemon judge the worst cards, each time under a new name.
const WORST: u8 = 4;

/// Number of clients that request such names at depth `schemas`, where the schemas are the worst ones.
const DEEP: u8 = 2;

/// Number of clients that send the worst documents themselves, and the pause of each between two.
const SENDERS: u8 = 4;
const SENDER_PAUSE: Duration = Duration::from_millis(20);

/// Number of clients that open as many connections as they can, and that number.
const HOLDERS: u8 = 3;
const HELD: usize = 256;

/// Length of the large agent's description, in bytes.
const LARGE_BYTES: usize = 200_000;

/// The pause before a client replaces the connections that it has lost.
const HOLD_PAUSE: Duration = Duration::from_millis(200);

/// Number of clients that send malformed and ambiguous requests, and paths that appear in the log.
const HOSTILE: u8 = 4;

/// Maximum size of each verdict cache.
const CACHE_BYTES: u64 = 4 << 20;

const MOST_ABOVE_IDLE_KIB: u64 = 64 << 10;

/// At most one gate response in this many may be a refusal at the deadline: the verdict on the untrusted name has
/// expired and must be resolved again.
const ANSWERS_TO_A_REFUSAL: usize = 100;

const TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of wrong responses that are printed.
const SHOWN: usize = 20;

/// Maximum length of each, in characters.
const SHOWN_CHARS: usize = 200;

/// Agents whose hosts or contracts are hostile. They are requested repeatedly.
const ATTACKERS: [(&str, &str); 6] = [
    ("endless", "web = \"endless\"\nipfs = \"endless\""),
    ("bomb", "web = \"gzip-bomb\""),
    ("stall", "web = \"stall\"\nipfs = \"missing\""),
    ("huge", "chain.resolver.hostile = { mode = \"huge\", arg = \"cl.owner\" }"),
    ("aliased", "chain.resolver.hostile = { mode = \"aliased\" }"),
    ("burn", "chain.resolver.hostile = { mode = \"burn\", arg = \"cl.entry\" }"),
];

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let seconds = std::env::args().nth(1).map_or(Ok(60), |text| text.parse::<u64>())?;
    ensure!(seconds > 0, "expected: soak [SECONDS]");
    ensure_client_addresses()?;
    let world = CustomSandbox::start(&soak_sandbox_spec().map_err(anyhow::Error::msg)?).await?;
    let folder = tempfile::tempdir()?;
    let mut config = world.config();
    config.http.listen = clresolve_resolver::config::ListenAddress::loopback(0);
    config.http.cold_runs_per_minute = u32::MAX;
    // A full cache is no memory growth.
    config.cache.verdict_bytes = CACHE_BYTES;
    config.mcp.hosts = vec![documents::HOST.to_owned()];
    config.http.discover = true;
    let file = folder.path().join("clresolve.toml");
    config.save(&file)?;
    let mut daemon = DaemonProcess::start(&file).await?;
    announce_to_prometheus("alone", daemon.address)?;
    let run = Arc::new(SoakTestRun::new(daemon.address, Instant::now() + Duration::from_secs(seconds)));
    for name in ["good.eth", "bad.eth"] {
        run.send_request(Ipv4Addr::LOCALHOST, &get_request_text(&format!("/v1/verdicts/{name}"))).await?;
    }
    let idle = daemon.memory_kib("VmRSS:")?;
    run.run_clients().await?;
    daemon.ensure_alive()?;
    let metrics = run.send_request(Ipv4Addr::LOCALHOST, &get_request_text("/metrics")).await?;
    let above_idle = daemon.memory_kib("VmHWM:")?.saturating_sub(idle);
    daemon.stop().await?;
    run.print_and_check(seconds, config.gate.deadline, above_idle, &metrics)
}

/// A good, a large and a bad agent, the worst cards and the worst schemas under wildcards, and the attackers.
fn soak_sandbox_spec() -> Result<SandboxSpec, String> {
    let agent = |name: &str, rest: &str| format!("[[agent]]\nname = \"{name}\"\nabout = \"In the soak.\"\n{rest}\n");
    let mut agents = [
        "[[name]]\nname = \"publisher.eth\"\nholder = \"publisher\"\naddr = \"publisher\"\n".to_owned(),
        agent("good.eth", ""),
        agent("bad.eth", "route = \"v1.0.0\""),
        agent(documents::LARGE, &format!("card.patch = {{ description = \"{}\" }}", "x".repeat(LARGE_BYTES))),
    ]
    .concat();
    for (number, card) in documents::worst_cards().iter().enumerate() {
        // A JSON string is also a TOML string, except for an escaped slash, which does not occur here.
        let card = format!("chain.resolver = \"parent-wildcard\"\ncard.text = {}", serde_json::Value::from(&**card));
        agents.push_str(&agent(&format!("a.worst-{number}.eth"), &card));
    }
    let schemas = documents::worst_schemas();
    for (number, schema) in schemas.iter().enumerate() {
        agents.push_str(&agent(&schema_host(number), &format!("card.text = {}", serde_json::Value::from(&**schema))));
    }
    let at = |number: usize| documents::card_url(&schema_host(number % schemas.len()));
    let bound = |first: usize| format!("{{ request = \"{}\", receipt = \"{}\" }}", at(first), at(first + 1));
    let card = format!("card.patch = {{ schemas = {}, schemas_mirror = {} }}", bound(0), bound(2));
    agents.push_str(&agent("a.deep.eth", &format!("chain.resolver = \"parent-wildcard\"\n{card}")));
    for (name, attack) in ATTACKERS {
        agents.push_str(&agent(&format!("{name}.eth"), attack));
    }
    SandboxSpec::parse(&agents)
}

/// The requests to all routes and tools.
fn document_requests() -> Vec<WorstCaseDocumentRequest> {
    let agents = (0..documents::worst_cards().len()).map(|number| format!("a.worst-{number}.eth"));
    documents::document_requests().into_iter().chain(documents::discovery_requests(agents)).collect()
}

/// The agent whose card's URL serves a worst schema.
fn schema_host(number: usize) -> String {
    format!("schema-{number}.eth")
}

struct SoakTestRun {
    to: SocketAddr,
    end: Instant,
    gate: Mutex<Vec<Duration>>,
    refused_at_the_deadline: AtomicU64,
    livez: Mutex<Vec<Duration>>,
    judged: AtomicU64,
    deep: AtomicU64,
    documents: Vec<WorstCaseDocumentRequest>,
    cards: usize,
    sent: Mutex<BTreeMap<&'static str, u64>>,
    overloaded: AtomicU64,
    attacks: AtomicU64,
    hostile: AtomicU64,
    reopened: AtomicU64,
    wrong: Mutex<Vec<String>>,
}

impl SoakTestRun {
    fn new(to: SocketAddr, end: Instant) -> Self {
        Self {
            to,
            end,
            gate: Mutex::default(),
            refused_at_the_deadline: AtomicU64::new(0),
            livez: Mutex::default(),
            judged: AtomicU64::new(0),
            deep: AtomicU64::new(0),
            documents: document_requests(),
            cards: documents::worst_cards().len(),
            sent: Mutex::default(),
            overloaded: AtomicU64::new(0),
            attacks: AtomicU64::new(0),
            hostile: AtomicU64::new(0),
            reopened: AtomicU64::new(0),
            wrong: Mutex::default(),
        }
    }

    fn is_running(&self) -> bool {
        Instant::now() < self.end
    }

    fn record_wrong(&self, what: String) {
        self.wrong.lock().expect("no panic").push(what);
    }

    async fn run_clients(self: &Arc<Self>) -> anyhow::Result<()> {
        let mut work = JoinSet::new();
        work.spawn(Arc::clone(self).poll_liveness());
        for number in 0..HONEST {
            work.spawn(Arc::clone(self).query_cached_names(number));
        }
        for number in 0..WORST {
            work.spawn(Arc::clone(self).request_worst_cards(number));
        }
        for number in 0..DEEP {
            work.spawn(Arc::clone(self).request_worst_schemas(number));
        }
        for number in 0..SENDERS {
            work.spawn(Arc::clone(self).send_worst_documents(number));
        }
        for number in 0..HOLDERS {
            work.spawn(Arc::clone(self).hold_connections(number));
        }
        for number in 0..HOSTILE {
            work.spawn(Arc::clone(self).send_hostile_requests(number));
        }
        for (number, (name, _)) in (0_u8..).zip(ATTACKERS) {
            work.spawn(Arc::clone(self).query_hostile_agent(number, name));
        }
        while let Some(done) = work.join_next().await {
            done?;
        }
        Ok(())
    }

    /// Sends one request on its own connection.
    async fn send_request(&self, from: Ipv4Addr, request: &str) -> io::Result<String> {
        let mut stream = connect_from(from, self.to).await?;
        send_on_connection(&mut stream, request).await
    }

    async fn poll_liveness(self: Arc<Self>) {
        while self.is_running() {
            let asked = Instant::now();
            match self.send_request(client_address(0, 1), &get_request_text("/livez")).await {
                Ok(response) if response.starts_with("HTTP/1.1 200 ") => {
                    self.livez.lock().expect("no panic").push(asked.elapsed());
                }
                other => self.record_wrong(format!("livez: {other:?}")),
            }
            sleep(LIVEZ_PAUSE).await;
        }
    }

    /// Requests cached names. A good name is refreshed before its verdict expires, so it is never refused.
    async fn query_cached_names(self: Arc<Self>, number: u8) {
        let from = client_address(1, 1 + number);
        let mut line = None;
        for (path, wanted) in
            [("/v1/gate/good.eth/summarize", "200"), ("/v1/gate/bad.eth/summarize", "403")].into_iter().cycle()
        {
            if !self.is_running() {
                return;
            }
            let asked = Instant::now();
            match self.get_on_kept_connection(&mut line, from, path).await {
                Ok(response) if response[9..].starts_with(wanted) => {
                    self.gate.lock().expect("no panic").push(asked.elapsed());
                    // The verdict on an untrusted name expires after a minute, and is not refreshed early.
                    if response.contains("clresolve-code: deadline-passed\r\n") {
                        self.refused_at_the_deadline.fetch_add(1, Ordering::Relaxed);
                    }
                }
                other => self.record_wrong(format!("{path}: {other:?}")),
            }
            sleep(HONEST_PAUSE).await;
        }
    }

    async fn get_on_kept_connection(
        &self,
        line: &mut Option<TcpStream>,
        from: Ipv4Addr,
        path: &str,
    ) -> io::Result<String> {
        let mut stream = match line.take() {
            Some(stream) => stream,
            None => connect_from(from, self.to).await?,
        };
        let response = send_on_connection(&mut stream, &get_request_text(path)).await?;
        *line = Some(stream);
        Ok(response)
    }

    async fn request_worst_cards(self: Arc<Self>, number: u8) {
        let from = client_address(2, 1 + number);
        for turn in 0_u64.. {
            if !self.is_running() {
                return;
            }
            let card = turn as usize % self.cards;
            let path = format!("/v1/gate/n{number}-{turn}.worst-{card}.eth/summarize");
            self.check_gate_refuses(from, &path).await;
            self.judged.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn request_worst_schemas(self: Arc<Self>, number: u8) {
        let from = client_address(7, 1 + number);
        for turn in 0_u64.. {
            if !self.is_running() {
                return;
            }
            let path = format!("/v1/verdicts/n{number}-{turn}.deep.eth?depth=schemas");
            match self.send_request(from, &get_request_text(&path)).await {
                Ok(response)
                    if response.contains("\"state\":\"untrusted\"")
                        && response.contains("\"step\":\"schemas\",\"status\":\"fail\"") =>
                {
                    self.deep.fetch_add(1, Ordering::Relaxed);
                }
                Ok(response) if response.contains("\"overloaded\"") => {
                    _ = self.overloaded.fetch_add(1, Ordering::Relaxed)
                }
                other => self.record_wrong(format!("{path}: {other:?}")),
            }
        }
    }

    /// Sends all documents in a loop. Each client starts at a different one.
    async fn send_worst_documents(self: Arc<Self>, number: u8) {
        let from = client_address(6, 1 + number);
        let first = usize::from(number) * self.documents.len() / usize::from(SENDERS);
        for question in self.documents.iter().cycle().skip(first) {
            if !self.is_running() {
                return;
            }
            let answer = self.send_request(from, &question.request).await;
            match answer.as_deref().map(|response| question.classify(response)) {
                Ok(DocumentResponseClass::Judged) => {
                    *self.sent.lock().expect("no panic").entry(question.to).or_default() += 1
                }
                Ok(DocumentResponseClass::Full) => _ = self.overloaded.fetch_add(1, Ordering::Relaxed),
                _ => self.record_wrong(format!("{}: {answer:?}", question.to)),
            }
            sleep(SENDER_PAUSE).await;
        }
    }

    async fn query_hostile_agent(self: Arc<Self>, number: u8, name: &str) {
        let from = client_address(3, 1 + number);
        let path = format!("/v1/gate/{name}.eth/summarize");
        while self.is_running() {
            self.check_gate_refuses(from, &path).await;
            self.attacks.fetch_add(1, Ordering::Relaxed);
            sleep(HONEST_PAUSE).await;
        }
    }

    async fn check_gate_refuses(&self, from: Ipv4Addr, path: &str) {
        match self.send_request(from, &get_request_text(path)).await {
            Ok(response) if response.starts_with("HTTP/1.1 403 ") => {}
            other => self.record_wrong(format!("{path}: {other:?}")),
        }
    }

    /// Opens all connections that one client may have, and replaces those that it loses.
    async fn hold_connections(self: Arc<Self>, number: u8) {
        let from = client_address(4, 1 + number);
        let sent = ["", "GET /v1/gate/good.eth HTTP/1.1\r\nx: ", "GET /livez HTTP/1.1\r\n\r\n"];
        let mut held: Vec<TcpStream> = Vec::new();
        while self.is_running() {
            held.retain(|stream| !is_closed(stream));
            while held.len() < HELD && self.is_running() {
                let Ok(Ok(mut stream)) = timeout(TIMEOUT, connect_from(from, self.to)).await else { break };
                // The daemon may evict it at once.
                let _ = stream.write_all(sent[held.len() % sent.len()].as_bytes()).await;
                held.push(stream);
                self.reopened.fetch_add(1, Ordering::Relaxed);
            }
            sleep(HOLD_PAUSE).await;
        }
    }

    async fn send_hostile_requests(self: Arc<Self>, number: u8) {
        let from = client_address(5, 1 + number);
        let long = "x".repeat(150);
        let gate = "/v1/envoy/good.eth/summarize";
        let attacks = [
            (get_request_text(&format!("{gate}/../../bad.eth/pay")), "403"),
            (get_request_text(&format!("{gate}/%252e%252e/bad.eth")), "403"),
            (get_request_text(&format!("{gate}//bad.eth")), "403"),
            (get_request_text("/v1/gate/Good.eth"), "403"),
            (format!("GET {gate} HTTP/1.1\r\nno header\r\n\r\n"), "400"),
            (format!("PUT {gate} HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n"), "403"),
            (get_request_text(&format!("/{long}")), "404"),
        ];
        for (request, wanted) in attacks.iter().cycle() {
            if !self.is_running() {
                return;
            }
            match self.send_request(from, request).await {
                Ok(response) if response[9..].starts_with(wanted) => {}
                other => self.record_wrong(format!("{request:?}: {other:?}")),
            }
            self.hostile.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn print_and_check(&self, seconds: u64, deadline: Duration, above_idle: u64, metrics: &str) -> anyhow::Result<()> {
        let sorted = |times: &Mutex<Vec<Duration>>| {
            let mut times = times.lock().expect("no panic").clone();
            times.sort();
            times
        };
        let (gate, livez) = (sorted(&self.gate), sorted(&self.livez));
        let (Some(worst), Some(worst_livez)) = (gate.last(), livez.last()) else {
            anyhow::bail!("no request was answered")
        };
        let allowed = deadline + *worst_livez;
        let late = gate.iter().filter(|time| **time > allowed).count();
        let of_deadline = gate.iter().filter(|time| **time > deadline).count();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let metric = |name: &str| metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap_or(" 0").trim();
        let wrong = self.wrong.lock().expect("no panic");
        println!("soak of {seconds} s");
        println!("gate, cached names     {} answers, median {:?}, worst {worst:?}", gate.len(), gate[gate.len() / 2]);
        println!("livez                  {} answers, worst {worst_livez:?}", livez.len());
        println!("late                   {late} (over {allowed:?}); {of_deadline} over the deadline alone");
        let refused = count(&self.refused_at_the_deadline);
        println!("refused at the deadline {refused}");
        println!("worst cards            {} requests", count(&self.judged));
        println!("worst schemas          {} requests", count(&self.deep));
        let sent = self.sent.lock().expect("no panic");
        for (to, count) in sent.iter() {
            println!("{:<22} {count} documents", format!("worst, {to}"));
        }
        println!("overloaded             {}", count(&self.overloaded));
        println!("hostile hosts, chains  {} requests", count(&self.attacks));
        println!("hostile requests       {}", count(&self.hostile));
        println!("held connections       {} opened", count(&self.reopened));
        println!("connections evicted    {}", metric("clresolve_http_connections_evicted_total"));
        println!("log lines dropped      {}", metric("clresolve_log_lines_dropped_total"));
        println!("memory above idle      {:.1} MiB at most", above_idle as f64 / 1024.0);
        println!("wrong                  {}", wrong.len());
        for what in wrong.iter().take(SHOWN) {
            eprintln!("wrong: {}", what.chars().take(SHOWN_CHARS).collect::<String>());
        }
        ensure!(wrong.is_empty(), "some answers were wrong");
        let unjudged = self.documents.iter().find(|question| !sent.contains_key(question.to));
        ensure!(count(&self.deep) > 0, "nothing was judged at depth schemas");
        ensure!(unjudged.is_none(), "no document was judged by {}", unjudged.map_or("", |question| question.to));
        ensure!(late == 0, "some answers were late");
        ensure!(refused as usize * ANSWERS_TO_A_REFUSAL <= gate.len(), "too many answers were refused at the deadline");
        ensure!(above_idle <= MOST_ABOVE_IDLE_KIB, "the daemon used more than 64 MiB above idle");
        Ok(())
    }
}

fn get_request_text(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: soak\r\n\r\n")
}

async fn connect_from(from: Ipv4Addr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((from, 0).into())?;
    socket.connect(to).await
}

async fn send_on_connection(stream: &mut TcpStream, request: &str) -> io::Result<String> {
    let ask = async {
        stream.write_all(request.as_bytes()).await?;
        let (mut response, mut length) = (Vec::new(), None);
        loop {
            if stream.read_buf(&mut response).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            length = length.or_else(|| response_length(&response));
            if length.is_some_and(|length| response.len() >= length) {
                return Ok(String::from_utf8_lossy(&response).into_owned());
            }
        }
    };
    timeout(TIMEOUT, ask).await?
}

/// The total length of a response, once its head is complete.
fn response_length(response: &[u8]) -> Option<usize> {
    let end = response.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&response[..end]);
    let body = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    Some(end + 4 + body.unwrap_or(0))
}

/// Whether the peer has closed the connection. Discards received data.
fn is_closed(stream: &TcpStream) -> bool {
    match stream.try_read(&mut [0; 1024]) {
        Ok(0) => true,
        Ok(_) => false,
        Err(error) => error.kind() != io::ErrorKind::WouldBlock,
    }
}
