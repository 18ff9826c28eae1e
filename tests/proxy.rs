//! The shipped configurations of nginx, Caddy and Envoy under the real programs: what the gate refuses does not reach the
//! runtime, whatever is asked and whatever becomes of the daemon. docs/proxies.md holds the matrix.
//!
//! Says which proxies are skipped because they are not installed. `PROXIES=all` demands all of them, and `PROXIES=write`
//! writes the matrix too.

#[path = "proxy/programs.rs"]
mod programs;
#[path = "support/serve.rs"]
mod serve;

use std::time::Duration;

use clresolve::config::Config;
use clresolve::sandbox::Sandbox;

use programs::{Impostor, PATIENCE, Proxy, Runtime, Then, Waits, daemon, status_of};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/proxies.md");
const MARK: &str = "<!-- the matrix, by `just proxies write` -->";

/// An agent that the gate allows.
const GOOD: &str = "/summarizeagent.eth/summarize";

/// Agents in every state, and how the gate is asked for them. Only the first two may pass.
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

/// Paths in which one server could read the trusted agent, and another one something else.
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

/// What is asked for while the daemon is in trouble: the trusted agent, an untrusted one, and a path that begins as that of
/// the trusted one and leads to the other.
const IN_TROUBLE: [&[u8]; 3] = [
    b"/summarizeagent.eth/summarize/v1",
    b"/entry-version.eth/summarize/v1",
    b"/summarizeagent.eth/summarize/%2e%2e/%2E%2e/entry-version.eth/pay",
];

/// What stands between their answers in a cell.
const BETWEEN: &str = " / ";

/// What stands before such a path where the whole URL is asked for, as of a forward proxy.
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

/// What an impostor in the daemon's place sends, and what follows. None of it is an answer of the gate.
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

/// What was asked or happened, and the status that came out.
type Rows = Vec<(String, String)>;

/// One proxy between the world and the runtime.
struct Stage<'a> {
    proxy: Proxy,
    folder: &'a std::path::Path,
    runtime: &'a Runtime,
    rows: Rows,
}

impl Stage<'_> {
    fn in_front_of(&self, gate: u16, waits: Waits) -> (programs::Program, u16) {
        self.proxy.start(self.folder, gate, self.runtime.port, waits)
    }

    /// Asks for a path below the prefix. What reaches the runtime then is the trusted agent's, as every server reads it.
    async fn ask(&mut self, row: &str, port: u16, method: &str, path: &[u8]) -> String {
        self.ask_for(row, port, method, "", path).await
    }

    /// The same for the path behind what begins a URL.
    async fn ask_for(&mut self, row: &str, port: u16, method: &str, begin: &str, path: &[u8]) -> String {
        let status = self.status(row, port, method, begin, path).await;
        self.rows.push((row.to_owned(), status.clone()));
        status
    }

    /// The same without a row of its own.
    async fn status(&self, row: &str, port: u16, method: &str, begin: &str, path: &[u8]) -> String {
        let target = [begin.as_bytes(), self.proxy.prefix().as_bytes(), path].concat();
        let status = status_of(port, method, &target).await;
        let reached = self.runtime.take();
        assert_eq!(status == "200", reached.len() == 1, "{:?}, {row}: {status}, {reached:?}", self.proxy);
        for (path, card) in reached.iter().filter(|_| self.proxy != Proxy::OpenEnvoy) {
            assert!(is_of_good(path, self.proxy.prefix()), "{:?}, {row}: {path}", self.proxy);
            assert!(card.len() == 64 && card.bytes().all(|b| b.is_ascii_hexdigit()), "{card}");
        }
        status
    }

    /// Asks for each of [`IN_TROUBLE`], while the daemon cannot say that any may pass. Whether one passed.
    async fn ask_in_trouble(&mut self, row: &str, port: u16) -> bool {
        let mut statuses = Vec::new();
        for path in IN_TROUBLE {
            statuses.push(self.refused(row, port, "", path).await);
        }
        let cell = statuses.join(BETWEEN);
        let passed = passes(&cell);
        self.rows.push((row.to_owned(), cell));
        passed
    }

    /// Asks for every path in disguise, while the daemon answers nothing.
    async fn ask_for_all_disguises(&self, row: &str, port: u16) {
        for (begin, path) in disguises() {
            self.refused(row, port, begin, path).await;
        }
    }

    /// The status for a path that only the trap lets pass.
    async fn refused(&self, row: &str, port: u16, begin: &str, path: &[u8]) -> String {
        let status = self.status(row, port, "GET", begin, path).await;
        let (proxy, path) = (self.proxy, path.escape_ascii());
        assert!(status != "200" || proxy == Proxy::OpenEnvoy, "{proxy:?}, {row}: {path}: {status}");
        status
    }
}

/// Every path in which one server could read another agent than the next one, behind what begins a URL.
fn disguises() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    DISGUISES.into_iter().map(|path| ("", path)).chain(WHOLE)
}

/// Whether a request of a cell reached the runtime.
fn passes(cell: &str) -> bool {
    cell.split(BETWEEN).any(|status| status == "200")
}

/// Whether the path is below the trusted agent's, and nothing in it can be read in two ways.
fn is_of_good(target: &str, prefix: &str) -> bool {
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    let Some(rest) = path.strip_prefix(prefix).and_then(|path| path.strip_prefix(GOOD)) else { return false };
    let is_step = |segment: &str| matches!(segment, "." | "..");
    let is_plain = |segment: &str| !segment.is_empty() && !is_step(segment) && !segment.contains(['%', '\\', ';', '#']);
    rest.is_empty() || rest == "/" || rest.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_plain))
}

/// A configuration of the daemon on the embedded world, with a deadline that a busy machine keeps.
fn patient(sandbox: &Sandbox) -> Config {
    let mut config = sandbox.config();
    (config.gate.deadline, config.timeout) = (PATIENCE, PATIENCE);
    config.http.cold_runs_per_minute = u32::MAX;
    // Whoever is told to end says so for as long as the test asks.
    config.http.drain_notice = PATIENCE;
    config
}

/// Every row of the matrix for one proxy.
async fn matrix(proxy: Proxy, sandbox: &Sandbox, runtime: &Runtime) -> Rows {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut stage = Stage { proxy, folder: folder.path(), runtime, rows: Rows::new() };
    with_a_daemon(&mut stage, sandbox).await;
    with_a_slow_chain(&mut stage, sandbox).await;
    with_an_impostor(&mut stage).await;
    stage.rows
}

async fn with_a_daemon(stage: &mut Stage<'_>, sandbox: &Sandbox) {
    let (daemon, gate) = daemon(stage.folder, &patient(sandbox));
    let (_patient, port) = stage.in_front_of(gate, Waits::Long);
    for (number, (row, method, path)) in STATES.into_iter().enumerate() {
        let status = stage.ask(&format!("agent: {row}"), port, method, path.as_bytes()).await;
        assert_eq!(status == "200", number < 2, "{:?}: {row}: {status}", stage.proxy);
    }
    for (begin, path) in disguises() {
        let row = format!("`{begin}{}`", path.escape_ascii().to_string().replace("\\\\", "\\"));
        stage.ask_for(&row, port, "GET", begin, path).await;
    }
    let (_shipped, in_haste) = stage.in_front_of(gate, Waits::AsShipped);
    daemon.stand_still();
    stage.ask_in_trouble("daemon: stands still", in_haste).await;
    daemon.signal("-CONT");
    assert_eq!(stage.ask("daemon: goes on", port, "GET", b"/summarizeagent.eth/summarize/v1").await, "200");
    daemon.signal("-TERM");
    while status_of(gate, "GET", b"/readyz").await != "503" {}
    assert_eq!(code_of(gate, "summarizeagent.eth").await, "draining");
    stage.ask_in_trouble("daemon: drains", port).await;
    daemon.signal("-KILL");
    drop(daemon);
    let passed = stage.ask_in_trouble("daemon: was killed", in_haste).await;
    assert_eq!(passed, stage.proxy == Proxy::OpenEnvoy, "the trap: it opens when the daemon dies");
    stage.ask_for_all_disguises("daemon: was killed", in_haste).await;
}

/// A daemon whose endpoint takes connections and never answers.
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
    config.gate.deadline = PATIENCE;
    config.http.cold_runs = 1;
    let (_daemon, gate) = daemon(stage.folder, &config);
    let (_proxy, port) = stage.in_front_of(gate, Waits::Long);
    let taken = tokio::spawn(async move { code_of(gate, "checkoutagent.eth").await });
    while !is_taken(gate).await {}
    assert_eq!(code_of(gate, "summarizeagent.eth").await, "overloaded");
    stage.ask_in_trouble("daemon: overloaded", port).await;
    taken.abort();
}

/// Why the gate itself denies a name.
async fn code_of(gate: u16, name: &str) -> String {
    let denied = reqwest::get(format!("http://127.0.0.1:{gate}/v1/gate/{name}")).await.expect("an answer");
    assert_eq!(denied.status(), 403);
    denied.headers()["clresolve-code"].to_str().expect("ASCII").to_owned()
}

/// Whether the only run that may be is under way.
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
    impostor.say(b"", Then::Close);
    stage.ask_for_all_disguises("impostor: nothing, and hangs up", port).await;
}

/// The columns side by side, as Markdown.
fn table(columns: &[(Proxy, Rows)]) -> String {
    let titles: Vec<&str> = columns.iter().map(|(proxy, _)| proxy.title()).collect();
    let mut table = format!("| | {} |\n|---|{}\n", titles.join(" | "), "--:|".repeat(titles.len()));
    for (number, (row, _)) in columns[0].1.iter().enumerate() {
        let cells: Vec<&str> = columns.iter().map(|(_, rows)| rows[number].1.as_str()).collect();
        table += &format!("| {row} | {} |\n", cells.join(" | "));
    }
    table
}

/// The cells of the table in the document, by proxy.
fn documented(document: &str) -> Vec<(String, Rows)> {
    let (_, table) = document.split_once(MARK).expect("the mark");
    let mut lines = table
        .lines()
        .filter(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect::<Vec<_>>());
    let titles = lines.next().unwrap_or_default();
    let rows: Vec<Vec<String>> = lines.skip(1).collect();
    let column = |at: usize| rows.iter().map(|row| (row[0].clone(), row[at].clone())).collect();
    titles.iter().enumerate().skip(1).map(|(at, title)| (title.clone(), column(at))).collect()
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
    let table = table(&columns);
    println!("{table}");
    let document = std::fs::read_to_string(DOCUMENT).expect("the document is there");
    if mode == "write" {
        let (before, _) = document.split_once(MARK).expect("the mark");
        std::fs::write(DOCUMENT, format!("{before}{MARK}\n\n{table}")).expect("it can be written");
        return;
    }
    let documented = documented(&document);
    for (proxy, rows) in columns {
        let column = documented.iter().find(|(title, _)| title == proxy.title()).expect("a column");
        // Other versions of a proxy may refuse in other words, but no version lets other requests pass.
        let what_passes = |rows: &Rows| rows.iter().filter(|(_, cell)| passes(cell)).cloned().collect::<Rows>();
        assert_eq!(what_passes(&column.1), what_passes(&rows), "{proxy:?}: run `just proxies write`");
        assert!(mode.is_empty() || column.1 == rows, "{proxy:?} says {rows:?}: run `just proxies write`");
    }
}
