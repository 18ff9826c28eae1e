//! Runs the shipped nginx, Caddy and Envoy configurations with the real programs. Requests that the gate refuses never
//! reach the runtime, whatever is requested and however the daemon fails. `tests/proxy/matrix.txt` contains the
//! resulting statuses.
//!
//! Reports proxies that are skipped because they are not installed. `PROXIES=all` requires all of them, and
//! `PROXIES=write` also writes the matrix.

#[path = "proxy/programs.rs"]
mod programs;

use std::time::{Duration, Instant};

use clresolve_resolver::config::Config;
use clresolve_resolver::sandbox::Sandbox;

use programs::{
    Impostor, JUDGED, OpenGate, PATIENCE, Proxy, Runtime, Then, Waits, daemon, headers, status_of, status_with,
};

const MATRIX: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/proxy/matrix.txt");

/// An agent that the gate allows.
const GOOD: &str = "/summarizeagent.eth/summarize";

/// Agents in every state, and the gate's requests for them. Only the first two may pass.
const STATES: [(&str, &str, &str); 8] = [
    ("trusted", "GET", "/summarizeagent.eth/summarize/v1"),
    ("trusted, another method and a body", "POST", "/summarizeagent.eth/summarize/v1?a=/../b"),
    ("untrusted", "GET", "/entry-version.eth/summarize/v1"),
    ("indeterminate", "GET", "/card-unreachable.eth/summarize/v1"),
    ("not registered", "GET", "/no-such-agent.eth/summarize/v1"),
    ("a verb that it has not", "GET", "/summarizeagent.eth/classify/v1"),
    ("no verb", "GET", "/summarizeagent.eth"),
    ("no agent", "GET", "/"),
];

/// Paths that one server could read as the trusted agent's and another server as something else.
const DISGUISES: [&[u8]; 43] = [
    b"/summarizeagent.eth/summarize/../../entry-version.eth/summarize/v1",
    b"/entry-version.eth/summarize/../../summarizeagent.eth/summarize/v1",
    b"/summarizeagent.eth/summarize/..;/..;/entry-version.eth/pay",
    b"/summarizeagent.eth/summarize/%2e%2e/%2E%2e/entry-version.eth/pay",
    b"/entry-version.eth/summarize/%2e%2e/%2E%2e/summarizeagent.eth/summarize/v1",
    b"/summarizeagent.eth/summarize/%252e%252e/%252e%252e/entry-version.eth/pay",
    b"/summarizeagent.eth/summarize/.%2e/.%2e/entry-version.eth/pay",
    b"/summarizeagent.eth/summarize//entry-version.eth/pay",
    b"//summarizeagent.eth/summarize/v1",
    b"/./summarizeagent.eth/summarize/v1",
    b"/summarizeagent.eth//summarize/v1",
    b"/summarizeagent.eth/summarize//",
    b"/summarizeagent.eth/summarize/.",
    b"/summarizeagent.eth/summarize/..",
    b"/summarizeagent.eth/summarize/...",
    b"/summarizeagent.eth/summarize/a.%2e/b",
    b"/summarizeagent.eth/summarize/..\\..\\entry-version.eth",
    b"/summarizeagent.eth/summarize/%5c..%5C..%5centry-version.eth",
    b"/summarizeagent.eth/summarize/%2fentry-version.eth",
    b"/summarizeagent.eth%2fsummarize/x/v1",
    b"/summarizeagent.eth/summarize%2f..%2f..%2fentry-version.eth",
    b"/summarizeagent.eth/summarize/%00",
    b"/summarizeagent.eth/summarize/a%1F",
    b"/summarizeagent.eth/summarize/a%0d%0ax",
    b"/summarizeagent.eth/summarize%23",
    b"/summarizeagent.eth/summarize%3fnetwork=1",
    b"/summarizeagent.eth%3f/summarize/v1",
    b"/summarizeagent.eth/summarize%3b",
    b"/summarizeagent.eth/summarize;v=1/x",
    b"/summarizeagent.eth/summarize/%c0%ae%c0%ae/entry-version.eth",
    b"/summarizeagent.eth/summarize/%",
    b"/summarizeagent.eth/summarize/%2",
    b"/summarizeagent.eth/summarize/%u002e%u002e/entry-version.eth",
    b"/summarizeagent.eth/summarize#/../../entry-version.eth",
    b"/SummarizeAgent.eth/summarize/v1",
    b"/%53ummarizeagent.eth/summarize/v1",
    b"/summarizeagent%2eeth/summarize/v1",
    b"/summarizeagent.eth./summarize/v1",
    b"/summarizeagent.eth%00/summarize/v1",
    b"/summarizeagent.eth/summarize/\xc0\xae\xc0\xae/entry-version.eth",
    b"/summarizeagent.eth/summarize/\xff",
    b"/summarizeagent.eth/summarize/\x80\x81",
    b"/summarizeagent.eth/summarize/\xc3\xa9",
];

/// Prefixes that turn such a path into an absolute URL, as sent to a forward proxy.
const WHOLE: [(&str, &[u8]); 9] = [
    ("http://h", b"/summarizeagent.eth/summarize/v1"),
    ("http://h", b"/entry-version.eth/summarize/v1"),
    ("http://h", b"/summarizeagent.eth/summarize/../../entry-version.eth/summarize/v1"),
    ("http://h", b"/summarizeagent.eth/summarize/%2e%2e/%2E%2e/entry-version.eth/pay"),
    ("http://h", b"/summarizeagent.eth/summarize/\xc0\xae\xc0\xae/entry-version.eth"),
    ("http://h", b"//summarizeagent.eth/summarize/v1"),
    ("http://h?", b"/summarizeagent.eth/summarize/v1"),
    ("http://u@h:80", b"/summarizeagent.eth/summarize/v1"),
    ("http:", b"/summarizeagent.eth/summarize/v1"),
];

/// Responses of an impostor in place of the daemon, and their effect. None is a valid response of the gate.
const GARBAGE: [(&str, &[u8], Then); 15] = [
    ("nothing, and hangs up", b"", Then::Close),
    ("nothing, for ever", b"", Then::Wait),
    ("no HTTP", b"\x00\xff\xfe allow\r\n\r\n", Then::Close),
    ("a bare body (HTTP/0.9)", b"allow\r\n", Then::Close),
    ("half a status line", b"HTTP/1.1 20", Then::Close),
    ("half a head", b"HTTP/1.1 200 OK\r\nclresolve-sta", Then::Close),
    ("a head without an end", b"HTTP/1.1 200 OK\r\nclresolve-state: trusted\r\n", Then::Wait),
    ("status 2000", b"HTTP/1.1 2000 OK\r\ncontent-length: 0\r\n\r\n", Then::Close),
    ("100, and nothing more", b"HTTP/1.1 100 Continue\r\n\r\n", Then::Wait),
    ("302", b"HTTP/1.1 302 Found\r\nlocation: /allow\r\ncontent-length: 0\r\n\r\n", Then::Close),
    ("401", b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n", Then::Close),
    ("404", b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", Then::Close),
    ("429", b"HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\n\r\n", Then::Close),
    ("500", b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n", Then::Close),
    ("503", b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n", Then::Close),
];

/// The request or event, and the resulting status.
type Rows = Vec<(String, String)>;

/// The headings of the tables: each request, and the trusted agent's in each failure.
const HEADS: [&str; 2] = ["asked", "in trouble"];

/// The rows of each table.
type Tables = [Rows; 2];

/// One proxy between the client and the runtime.
struct Stage<'a> {
    proxy: Proxy,
    folder: &'a std::path::Path,
    runtime: &'a Runtime,
    /// The status of each request without any failure.
    rows: Rows,
    /// The status of the trusted agent's request in each failure.
    failures: Rows,
}

/// A request and its row.
struct Request {
    row: String,
    method: &'static str,
    target: Vec<u8>,
}

/// Requests for agents in every state, and for every disguised path.
fn requests(prefix: &str) -> impl Iterator<Item = Request> {
    let request = move |row, method, begin: &str, path: &[u8]| {
        let target = [begin.as_bytes(), prefix.as_bytes(), path].concat();
        Request { row, method, target }
    };
    let of_states = STATES
        .into_iter()
        .map(move |(row, method, path)| request(format!("agent: {row}"), method, "", path.as_bytes()));
    let disguised = disguises().map(move |(begin, path)| {
        let row = format!("`{begin}{}`", path.escape_ascii().to_string().replace("\\\\", "\\"));
        request(row, "GET", begin, path)
    });
    of_states.chain(disguised)
}

impl Stage<'_> {
    fn in_front_of(&self, gate: u16, waits: Waits) -> (programs::Program, u16) {
        self.proxy.start(self.folder, gate, self.runtime.port, waits)
    }

    /// Returns the status of a request. If it reaches the runtime, every server must read it as the trusted agent's.
    async fn ask(&self, port: u16, Request { row, method, target }: &Request) -> String {
        let status = status_of(port, method, target).await;
        let reached = self.runtime.take();
        assert_eq!(status == "200", reached.len() == 1, "{:?}, {row}: {status}, {reached:?}", self.proxy);
        for (path, card) in reached.iter().filter(|_| self.proxy != Proxy::OpenEnvoy) {
            assert!(is_of_good(path, self.proxy.prefix()), "{:?}, {row}: {path}", self.proxy);
            assert!(card.len() == 64 && card.bytes().all(|b| b.is_ascii_hexdigit()), "{card}");
        }
        status
    }

    /// Sends all requests while the daemon cannot allow any. Returns whether one passed.
    async fn ask_in_trouble(&mut self, failure: &str, port: u16) -> bool {
        let mut statuses = Vec::new();
        for request in requests(self.proxy.prefix()) {
            let status = self.ask(port, &request).await;
            let (proxy, row) = (self.proxy, &request.row);
            assert!(status != "200" || proxy == Proxy::OpenEnvoy, "{proxy:?}, {failure}: {row}: {status}");
            statuses.push(status);
        }
        self.failures.push((failure.to_owned(), statuses[0].clone()));
        statuses.iter().any(|status| status == "200")
    }
}

/// Every path that two servers could read as different agents, each with every prefix of a URL.
fn disguises() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    DISGUISES.into_iter().map(|path| ("", path)).chain(WHOLE)
}

/// Whether the path is unambiguous and below the trusted agent's.
fn is_of_good(target: &str, prefix: &str) -> bool {
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    let Some(rest) = path.strip_prefix(prefix).and_then(|path| path.strip_prefix(GOOD)) else { return false };
    let is_step = |segment: &str| matches!(segment, "." | "..");
    let is_plain = |segment: &str| !segment.is_empty() && !is_step(segment) && !segment.contains(['%', '\\', ';', '#']);
    rest.is_empty() || rest == "/" || rest.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_plain))
}

/// A daemon configuration for the sandbox, with a deadline that even a busy machine meets.
fn patient(sandbox: &Sandbox) -> Config {
    let mut config = sandbox.config();
    (config.gate.deadline, config.timeout) = (PATIENCE, PATIENCE);
    config.http.cold_runs_per_minute = u32::MAX;
    // A daemon that is shutting down keeps announcing it for the whole test.
    config.http.drain_notice = PATIENCE;
    config
}

/// Computes the rows of the matrix for one proxy.
async fn matrix(proxy: Proxy, sandbox: &Sandbox, runtime: &Runtime) -> Tables {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut stage = Stage { proxy, folder: folder.path(), runtime, rows: Rows::new(), failures: Rows::new() };
    with_a_daemon(&mut stage, sandbox).await;
    with_a_slow_chain(&mut stage, sandbox).await;
    with_an_impostor(&mut stage).await;
    [stage.rows, stage.failures]
}

async fn with_a_daemon(stage: &mut Stage<'_>, sandbox: &Sandbox) {
    let (daemon, gate) = daemon(stage.folder, &patient(sandbox));
    let (_patient, port) = stage.in_front_of(gate, Waits::Long);
    for (number, request) in requests(stage.proxy.prefix()).enumerate() {
        let status = stage.ask(port, &request).await;
        if number < STATES.len() {
            assert_eq!(status == "200", number < 2, "{:?}: {}: {status}", stage.proxy, request.row);
        }
        stage.rows.push((request.row, status));
    }
    let (_shipped, in_haste) = stage.in_front_of(gate, Waits::AsShipped);
    daemon.stand_still();
    stage.ask_in_trouble("daemon: stands still", in_haste).await;
    daemon.signal("-CONT");
    let good = requests(stage.proxy.prefix()).next().expect("the trusted agent");
    let status = stage.ask(port, &good).await;
    assert_eq!(status, "200");
    stage.rows.push(("agent: trusted, after the daemon stood still".to_owned(), status));
    daemon.signal("-TERM");
    while status_of(gate, "GET", b"/readyz").await != "503" {}
    stage.ask_in_trouble("daemon: drains", port).await;
    assert_eq!(code_of(gate, "summarizeagent.eth").await, "draining");
    daemon.signal("-KILL");
    drop(daemon);
    let passed = stage.ask_in_trouble("daemon: was killed", in_haste).await;
    assert_eq!(passed, stage.proxy == Proxy::OpenEnvoy, "the trap: it opens when the daemon dies");
}

/// A daemon whose endpoint accepts connections and never answers.
async fn with_a_slow_chain(stage: &mut Stage<'_>, sandbox: &Sandbox) {
    let silent = Impostor::start().await;
    silent.say(b"", Then::Wait);
    let mut config = patient(sandbox);
    config.chain.endpoints[0].url = format!("http://127.0.0.1:{}/", silent.port).parse().expect("a URL");
    config.gate.deadline = Duration::from_millis(150);
    {
        let (_daemon, gate) = daemon(stage.folder, &config);
        let (_proxy, port) = stage.in_front_of(gate, Waits::Long);
        assert_eq!(code_of(gate, "summarizeagent.eth").await, "deadline-passed");
        stage.ask_in_trouble("daemon: slow, its deadline passes", port).await;
    }
    (config.gate.deadline, config.http.cold_runs) = (PATIENCE, 1);
    // The resolution that takes the only permit outlasts all of the following requests.
    config.timeout = 10 * PATIENCE;
    let (_daemon, gate) = daemon(stage.folder, &config);
    let (_proxy, port) = stage.in_front_of(gate, Waits::Long);
    let taken = tokio::spawn(async move { code_of(gate, "checkoutagent.eth").await });
    while !is_taken(gate).await {}
    assert_eq!(code_of(gate, "summarizeagent.eth").await, "overloaded");
    stage.ask_in_trouble("daemon: overloaded", port).await;
    assert!(is_taken(gate).await, "it was not overloaded to the end");
    taken.abort();
}

/// The code with which the gate itself denies a name.
async fn code_of(gate: u16, name: &str) -> String {
    let denied = reqwest::get(format!("http://127.0.0.1:{gate}/v1/gate/{name}")).await.expect("an answer");
    assert_eq!(denied.status(), 403);
    denied.headers()["clresolve-code"].to_str().expect("ASCII").to_owned()
}

/// Whether the only permit is taken.
async fn is_taken(gate: u16) -> bool {
    let metrics = reqwest::get(format!("http://127.0.0.1:{gate}/metrics")).await.expect("an answer");
    metrics.text().await.expect("UTF-8").contains("\nclresolve_runs_in_flight 1\n")
}

async fn with_an_impostor(stage: &mut Stage<'_>) {
    let impostor = Impostor::start().await;
    let (_proxy, port) = stage.in_front_of(impostor.port, Waits::AsShipped);
    for (row, bytes, then) in GARBAGE {
        impostor.say(bytes, then);
        stage.ask_in_trouble(&format!("impostor: {row}"), port).await;
    }
}

/// Renders the columns as tables of Markdown.
fn rendered(columns: &[(Proxy, Tables)]) -> String {
    let titles: Vec<&str> = columns.iter().map(|(proxy, _)| proxy.title()).collect();
    let table = |number: usize| {
        let mut table =
            format!("| {} | {} |\n|---|{}\n", HEADS[number], titles.join(" | "), "--:|".repeat(titles.len()));
        for (at, (row, _)) in columns[0].1[number].iter().enumerate() {
            let cells: Vec<&str> = columns.iter().map(|(_, tables)| tables[number][at].1.as_str()).collect();
            table += &format!("| {row} | {} |\n", cells.join(" | "));
        }
        table
    };
    (0..HEADS.len()).map(table).collect::<Vec<_>>().join("\n")
}

/// Parses the cells of one proxy from the tables.
fn recorded(text: &str, proxy: Proxy) -> Tables {
    HEADS.map(|head| {
        let begin = format!("| {head} |");
        let lines = text.lines().skip_while(|line| !line.starts_with(&begin)).take_while(|line| line.starts_with('|'));
        let mut rows = lines
            .map(|line| line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect::<Vec<_>>());
        let titles = rows.next().expect("a table");
        let column = titles.iter().position(|title| title == proxy.title()).expect("a column");
        rows.skip(1).map(|row| (row[0].clone(), row[column].clone())).collect()
    })
}

/// How many seconds a pod keeps running after it stops receiving new connections.
fn pause_of_a_pod() -> Duration {
    let manifest = include_str!("../../deploy/kubernetes/clresolve.yaml");
    let (_, rest) = manifest.split_once("preStop: { sleep: { seconds: ").expect("a pause");
    Duration::from_secs(rest.split(' ').next().and_then(|seconds| seconds.parse().ok()).expect("seconds"))
}

/// A connection that is never idle stays with a terminating pod. It must end before the pod refuses, and the remaining
/// pause must suffice for the change of endpoints to propagate.
#[tokio::test(flavor = "multi_thread")]
async fn no_connection_to_the_gate_outlives_the_pause_of_a_pod() {
    const NEWS: Duration = Duration::from_secs(3);
    let all = std::env::var_os("PROXIES").is_some();
    let (runtime, pause) = (Runtime::start().await, pause_of_a_pod());
    // Caddy does not limit the lifetime of connections.
    for proxy in [Proxy::Nginx, Proxy::Envoy] {
        if !all && (proxy != Proxy::Nginx || !proxy.is_installed()) {
            println!("skipped: {}; `just proxies` runs it", proxy.title());
            continue;
        }
        let (folder, gate) = (tempfile::tempdir().expect("a temporary folder"), OpenGate::start().await);
        let (_proxy, port) = proxy.start(folder.path(), gate.port, runtime.port, Waits::Long);
        let began = Instant::now();
        while began.elapsed() < pause + NEWS {
            let asked = format!("{}{GOOD}", proxy.prefix());
            assert_eq!(status_of(port, "GET", asked.as_bytes()).await, "200", "{proxy:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let lives = gate.lives();
        assert!(lives.iter().any(|life| !life.is_zero()), "{proxy:?} keeps no connection");
        assert!(lives.iter().all(|life| *life + NEWS < pause), "{proxy:?} keeps connections for {lives:?}");
    }
}

/// Forged header lines that imitate the gate, in spellings that a CGI or WSGI server treats as equal.
const FORGED: [&str; 9] = [
    "Clresolve-Card-Sha256: forged",
    "Clresolve_Card_Sha256: forged",
    "clresolve-card_sha256: forged",
    "CLRESOLVE-STATE: trusted",
    "Clresolve_State: trusted",
    "cLreSolve-cOde: none",
    "clresolve_code: none",
    "Clresolve.Code: none",
    "Clresolve-Verdict: sha256:00",
];

/// Headers that a buyer's browser adds. The request to the gate comes from the proxy, not from a browser.
const OF_BROWSERS: [&str; 2] = ["Sec-Fetch-Site: cross-site", "Origin: https://shop.example"];

#[tokio::test(flavor = "multi_thread")]
async fn forged_headers_of_the_gate_reach_nobody() {
    let all = std::env::var_os("PROXIES").is_some();
    let (runtime, gate) = (Runtime::start().await, OpenGate::start().await);
    for proxy in [Proxy::Nginx, Proxy::Caddy, Proxy::Envoy] {
        if !all && (proxy != Proxy::Nginx || !proxy.is_installed()) {
            println!("skipped: {}; `just proxies` runs it", proxy.title());
            continue;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (_proxy, port) = proxy.start(folder.path(), gate.port, runtime.port, Waits::Long);
        let asked = format!("{}{GOOD}/v1", proxy.prefix());
        // Each alone, and all together: proxies join or drop duplicate headers.
        let together = [FORGED.as_slice(), &OF_BROWSERS].concat();
        let each = FORGED.iter().chain(&OF_BROWSERS).map(|line| vec![*line]);
        for lines in each.chain([together]) {
            let lines = lines.iter().map(|line| format!("{line}\r\n")).collect::<Vec<_>>().concat();
            assert_eq!(status_with(port, "GET", asked.as_bytes(), &lines).await, "200", "{proxy:?}: {lines}");
            for head in gate.take_heads() {
                let told = |name: &str| ["clresolve", "sec-fetch-site", "origin"].iter().any(|it| name.starts_with(it));
                assert!(!headers(&head).any(|(name, _)| told(&name)), "{proxy:?}: {lines}: {head}");
            }
            let heads = runtime.take_heads();
            let told: Vec<_> = heads.iter().flat_map(|head| headers(head)).collect();
            let of_gate: Vec<_> = told.iter().filter(|(name, _)| name.starts_with("clresolve")).collect();
            let expected = ("clresolve-card-sha256".to_owned(), JUDGED.to_owned());
            assert_eq!(of_gate, [&expected], "{proxy:?}: {lines}");
            // The runtime may need to know which page sent the request.
            for line in OF_BROWSERS.iter().filter(|line| lines.contains(**line)) {
                let (name, value) = line.split_once(": ").expect("a header");
                let sent = (name.to_ascii_lowercase(), value.to_owned());
                assert!(told.contains(&sent), "{proxy:?}: {heads:?}");
            }
        }
    }
}

/// Requests of a guard to the daemon through `deploy/nginx-tls.conf`.
const OF_GUARDS: [&str; 7] = [
    "/v1/gate/summarizeagent.eth/summarize",
    "/v1/gate/summarizeagent.eth/summarize?network=eip155:1",
    "/v1/gate/%F0%9F%A4%96.eth/summarize",
    "/v1/gate/%24cash.eth/summarize",
    "/v1/decisions",
    "/v1/decisions/signed",
    "http://h/v1/decisions",
];

/// Targets that normalize to one of those but that the daemon would read differently, and routes that are not for
/// guards.
const NOT_OF_GUARDS: [&str; 24] = [
    "/",
    "/metrics",
    "/v1/verdicts/a.eth",
    "/v1/gate/a.eth",
    "/v1/gate/a.eth/x/y",
    "/v1/gate//x",
    "/v1/gate/../decisions",
    "/v1/gate/./decisions",
    "/v1/gate/a.eth/..",
    "/v1/gate/.a.eth/x",
    "/v1/verdicts/../decisions",
    "/v1/verdicts/a.eth/../../decisions",
    "/metrics/../v1/decisions",
    "/v1/%2e%2e/v1/decisions",
    "/v1/verdicts/%2E%2e/decisions",
    "/v1/verdicts/x%2f..%2f..%2fdecisions",
    "//v1/decisions",
    "/v1//decisions",
    "/v1/./decisions",
    "/v1/%64ecisions",
    "/%761/decisions",
    "/v1/gate/a%2eeth/x",
    "/metrics#/../v1/decisions",
    "http://h/metrics/../v1/decisions",
];

#[tokio::test(flavor = "multi_thread")]
async fn nginx_with_tls_hands_on_only_what_guards_ask() {
    let proxy = Proxy::NginxTls;
    if !proxy.is_installed() {
        assert!(std::env::var_os("PROXIES").is_none(), "nginx is not installed");
        println!("skipped: nginx; `just proxies` runs it");
        return;
    }
    // Replaces the daemon, and records each target unchanged.
    let daemon = Runtime::start().await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_proxy, port) = proxy.start(folder.path(), daemon.port, daemon.port, Waits::Long);
    for target in OF_GUARDS {
        assert_eq!(status_of(port, "POST", target.as_bytes()).await, "200", "{target}");
        let reached: Vec<String> = daemon.take().into_iter().map(|(target, _)| target).collect();
        assert_eq!(reached, [target.strip_prefix("http://h").unwrap_or(target)]);
    }
    let gate_paths = DISGUISES.iter().map(|path| [b"/v1/gate", *path].concat());
    for target in NOT_OF_GUARDS.iter().map(|target| target.as_bytes().to_vec()).chain(gate_paths) {
        let status = status_of(port, "POST", &target).await;
        let (target, reached) = (target.escape_ascii().to_string(), daemon.take());
        assert!(matches!(status.as_str(), "400" | "404") && reached.is_empty(), "{target}: {status}, {reached:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_proxy_only_what_the_gate_lets_pass_reaches_the_runtime() {
    let mode = std::env::var("PROXIES").unwrap_or_default();
    let sandbox = Sandbox::start().await.expect("the sandbox starts");
    let runtime = Runtime::start().await;
    let mut columns = Vec::new();
    for proxy in Proxy::ALL {
        if mode.is_empty() && (proxy != Proxy::Nginx || !proxy.is_installed()) {
            println!("skipped: {}; `just proxies` runs it", proxy.title());
            continue;
        }
        assert!(proxy.is_installed(), "{} is not installed", proxy.title());
        columns.push((proxy, matrix(proxy, &sandbox, &runtime).await));
    }
    if columns.is_empty() {
        return;
    }
    let tables = rendered(&columns);
    println!("{tables}");
    if mode == "write" {
        std::fs::write(MATRIX, tables).expect("it can be written");
        return;
    }
    let matrix = std::fs::read_to_string(MATRIX).expect("the matrix is there");
    for (proxy, tables) in columns {
        let recorded = recorded(&matrix, proxy);
        // Other versions of a proxy may use other statuses for refusals, but never let other requests pass.
        let what_passes = |tables: &Tables| {
            tables.clone().map(|rows| rows.into_iter().filter(|(_, status)| status == "200").collect::<Rows>())
        };
        assert_eq!(what_passes(&recorded), what_passes(&tables), "{proxy:?}: run `just proxies write`");
        assert!(mode.is_empty() || recorded == tables, "{proxy:?} says {tables:?}: run `just proxies write`");
    }
}
