//! SIGHUP: another configuration holds for the next answer, as a whole or not at all, and the daemon never ends of it.

use std::io::{BufRead as _, BufReader, Lines};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command};
use std::time::{Duration, Instant};

use clresolve_core::reason::ReasonCode;
use clresolve_resolver::config::{Config, RpcEndpointConfig};
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::sandbox::Sandbox;
use clresolve_server::http::HttpDaemon;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

use crate::http::{GOOD, HttpResponse, NO_POLLS, PATIENCE, answer, checks, patient, program};

/// An agent with a warning that a gate may deny.
const DEPRECATED: &str = "deprecated.eth";

/// A daemon in a process of its own, and its configuration file.
struct Daemon {
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
    address: String,
    file: PathBuf,
    client: Client,
}

impl Daemon {
    fn start(folder: &Path, config: &Config) -> Self {
        let file = folder.join("clresolve.toml");
        config.save(&file).expect("the folder can be written");
        let path = file.display().to_string();
        let mut child = program(&["serve", "--config", &path]).spawn().expect("the program starts");
        let mut log = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let mut said = log.by_ref().map(|line| line.expect("UTF-8"));
        let listens = said.find_map(|line| Some(line.rsplit_once("listening on http://")?.1.to_owned()));
        let address = listens.expect("it listens");
        let client = Client::builder().no_proxy().build().expect("a client");
        Self { child, log, address, file, client }
    }

    async fn get(&self, path: &str) -> HttpResponse {
        answer(self.client.get(format!("http://{}{path}", self.address))).await
    }

    async fn decide(&self, question: &str) -> Value {
        let request = self.client.post(format!("http://{}/v1/decisions", self.address));
        answer(request.header("content-type", "application/json").body(question.to_owned())).await.json()
    }

    async fn gate(&self, name: &str) -> HttpResponse {
        self.get(&format!("/v1/gate/{name}")).await
    }

    /// Runs that the cache could not spare.
    async fn runs(&self) -> String {
        let metrics = String::from_utf8(self.get("/metrics").await.body).expect("UTF-8");
        let misses = metrics.lines().find(|line| line.starts_with("clresolve_cache_misses_total{cache=\"verdicts\"}"));
        misses.expect("there were runs").to_owned()
    }

    /// Labels of the endpoints whose newest block the metrics report.
    async fn polled(&self) -> Vec<String> {
        let metrics = String::from_utf8(self.get("/metrics").await.body).expect("UTF-8");
        let of = |line: &str| {
            let labels = line.strip_prefix("clresolve_endpoint_head_timestamp_seconds{endpoint=\"")?;
            Some(labels.split_once('"')?.0.to_owned())
        };
        metrics.lines().filter_map(of).collect()
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().expect("kill runs");
        assert!(sent.success());
    }

    /// Sends the signal, and gives the lines of the log up to the one that says what came of it.
    fn reload(&mut self) -> String {
        self.signal("-HUP");
        let mut said = String::new();
        for line in self.log.by_ref().map_while(Result::ok) {
            said.push_str(&line);
            said.push('\n');
            if line.contains("read again and is in force") || line.contains("stays as it was") {
                return said;
            }
        }
        panic!("the daemon ended: {said}")
    }

    fn reload_with(&mut self, config: &Config) -> String {
        config.save(&self.file).expect("the file can be written");
        self.reload()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tightened_gate_holds_for_the_next_answer_and_the_cache_stays() {
    let (sandbox, folder) = (Sandbox::start().await.expect("a sandbox"), tempfile::tempdir().expect("a folder"));
    let mut config = patient(&sandbox);
    // A reading at a new head could start a resolution, which would be counted.
    (config.chain.head_poll, config.cache.max_unconfirmed) = (NO_POLLS / 2, NO_POLLS);
    let mut daemon = Daemon::start(folder.path(), &config);
    for name in [GOOD, DEPRECATED] {
        assert_eq!(daemon.gate(name).await.status, 200, "{name}");
    }
    let runs = daemon.runs().await;

    config.gate.deny = vec![ReasonCode::StatusDeprecated];
    let said = daemon.reload_with(&config);
    assert!(said.contains("is in force") && !said.contains("restart"), "{said}");
    daemon.gate(DEPRECATED).await.is_closed_gate("status-deprecated");
    assert_eq!(daemon.gate(GOOD).await.status, 200);
    assert_eq!(daemon.runs().await, runs, "the rules are the same, so the cache answers");

    config.rules.profile = "agent-cards/1.0.0+released".to_owned();
    daemon.reload_with(&config);
    let verdict = daemon.get(&format!("/v1/verdicts/{GOOD}")).await.json();
    assert_eq!(verdict["profile"]["id"], "agent-cards/1.0.0+released");
    assert_ne!(daemon.runs().await, runs, "other rules take another run");
}

/// An alert on the state of an endpoint would never end otherwise.
#[tokio::test(flavor = "multi_thread")]
async fn removed_endpoint_leaves_no_gauge_behind() {
    let (sandbox, folder) = (Sandbox::start().await.expect("a sandbox"), tempfile::tempdir().expect("a folder"));
    let mut config = patient(&sandbox);
    let first = config.chain.endpoints[0].clone();
    let second = RpcEndpointConfig { label: "second".to_owned(), ..first.clone() };
    config.chain.endpoints = vec![RpcEndpointConfig { label: "first".to_owned(), ..first }, second];
    let mut daemon = Daemon::start(folder.path(), &config);
    // Endpoints are polled while a name is hot.
    assert_eq!(daemon.gate(GOOD).await.status, 200);
    let deadline = Instant::now() + PATIENCE;
    while daemon.polled().await != ["first", "second"] {
        assert!(Instant::now() < deadline, "{:?}", daemon.polled().await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    config.chain.endpoints.pop();
    daemon.reload_with(&config);
    assert_eq!(daemon.polled().await, ["first"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_put_in_force_changes_nothing_and_is_logged() {
    let (sandbox, folder) = (Sandbox::start().await.expect("a sandbox"), tempfile::tempdir().expect("a folder"));
    let mut config = patient(&sandbox);
    config.gate.deny = vec![ReasonCode::StatusDeprecated];
    let mut daemon = Daemon::start(folder.path(), &config);
    daemon.gate(DEPRECATED).await.is_closed_gate("status-deprecated");
    let good = std::fs::read_to_string(&daemon.file).expect("UTF-8");
    let table = good.find("[gate]").expect("the file says all") + "[gate]".len();

    for (text, why) in [
        (String::new(), "the file is empty"),
        (good[..table].to_owned(), "its last line has no end"),
        (format!("{}deny = [\"status-deprecated\n", &good[..good.find("[gate]").unwrap()]), "clresolve.toml"),
        (format!("{good}[gate]\n"), "clresolve.toml"),
        (format!("{good}[gates]\n"), "unknown field `gates`"),
        (good.replace("deny = [", "deny = 5 # ["), "clresolve.toml"),
        (good.replace("deny = ", "dney = "), "unknown field `dney`, did you mean `deny`?"),
        (good.replace("status-deprecated", "status-deprecate"), "is no reason code"),
        (good.replace("agent-cards/1.0.0", "agent-cards/9"), "no profile agent-cards/9"),
        (good.replace("world = \"sandbox\"", "world = \"other\""), "universal-resolver requires a restart"),
    ] {
        assert_ne!(text, good, "{why}");
        std::fs::write(&daemon.file, text).expect("the file can be written");
        let said = daemon.reload();
        assert!(said.contains("stays as it was") && said.contains(why), "{why}: {said}");
        daemon.gate(DEPRECATED).await.is_closed_gate("status-deprecated");
    }
    std::fs::write(&daemon.file, b"[gate]\ndeny = [\"\xff\"]\n").expect("the file can be written");
    assert!(daemon.reload().contains("stays as it was"), "it is no text");
    daemon.gate(DEPRECATED).await.is_closed_gate("status-deprecated");
    std::fs::remove_file(&daemon.file).expect("the file was there");
    assert!(daemon.reload().contains("stays as it was"));

    config.http.listen = clresolve_resolver::config::ListenAddress::loopback(1);
    config.cache.trusted = 7;
    config.gate.deny.clear();
    let said = daemon.reload_with(&config);
    assert!(said.contains("[cache]: a change requires a restart") && !said.contains("cache=7 trusted"), "{said}");
    assert!(said.contains("http.listen: a change requires a restart") && said.contains("is in force"), "{said}");
    assert_eq!(daemon.gate(DEPRECATED).await.status, 200, "the rest is in force");
}

/// Registries of other chains are those of the configuration in force, and what they said before is forgotten.
#[tokio::test(flavor = "multi_thread")]
async fn registries_are_read_again() {
    const NAME: &str = "registered-payee.eth";
    const URL: &str = "https://api.sandbox.example/summarize/v1";
    let (sandbox, folder) = (Sandbox::start().await.expect("a sandbox"), tempfile::tempdir().expect("a folder"));
    let full = patient(&sandbox);
    let resolver = Resolver::new(&full).await.expect("its configuration is good");
    let reply = resolver.send_unpaid_request(URL, Some("{}")).await.expect("the seller answers");
    let response = json!({"status": 402, "url": URL, "headers": reply.headers, "body": "{}"});
    let question = json!({"name": NAME, "verb": "summarize", "response": response}).to_string();
    let mut without = full.clone();
    without.chains.clear();
    let mut misled = full.clone();
    misled.chains.values_mut().for_each(|registry| registry.registry = [7; 20].into());

    let mut daemon = Daemon::start(folder.path(), &without);
    for (config, paid) in [(&without, false), (&full, true), (&misled, false), (&full, true), (&without, false)] {
        let said = daemon.reload_with(config);
        assert!(said.contains("is in force") && !said.contains("restart"), "{said}");
        let decision = daemon.decide(&question).await;
        assert_eq!(decision["abort"], !paid, "{decision}");
        let codes = if paid { json!([]) } else { json!(["payee-unproven"]) };
        assert_eq!(decision["codes"], codes, "{decision}");
    }
}

/// Puts a node in front of the sandbox's that answers nothing by itself. Only resolutions ask it. Returns it and the
/// sandbox's.
pub(super) async fn held_node(config: &mut Config) -> (TcpListener, SocketAddr) {
    let real = config.chain.endpoints[0].url.socket_addrs(|| None).expect("an address")[0];
    let node = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", node.local_addr().expect("an address"));
    config.chain.endpoints[0].url = url.parse().expect("a URL");
    config.chain.head_poll = NO_POLLS;
    (node, real)
}

/// Passes this connection and all later ones on to the sandbox's node. Never returns.
pub(super) async fn pass_on(node: &TcpListener, mut asked: TcpStream, real: SocketAddr) {
    loop {
        tokio::spawn(async move {
            let mut answers = TcpStream::connect(real).await.expect("the node of the sandbox");
            let _ = copy_bidirectional(&mut asked, &mut answers).await;
        });
        (asked, _) = node.accept().await.expect("a later request");
    }
}

/// A question that is open while the gate is tightened is answered by the new policy.
#[tokio::test(flavor = "multi_thread")]
async fn a_tightened_gate_holds_for_questions_that_are_open() {
    let sandbox = Sandbox::start().await.expect("a sandbox");
    let mut config = patient(&sandbox);
    let (node, answers) = held_node(&mut config).await;
    let server = HttpDaemon::bind(&config).await.expect("the daemon starts");
    let mut reloader = server.reloader();
    let daemon = crate::http::Daemon::run(server, sandbox);
    let path = format!("/v1/gate/{DEPRECATED}");
    let reload_then_answer = async {
        let (asked, _) = node.accept().await.expect("the run asks the node");
        config.gate.deny = vec![ReasonCode::StatusDeprecated];
        assert_eq!(reloader.reload(&config).await.expect("a good configuration"), []);
        pass_on(&node, asked, answers).await;
    };
    tokio::select! {
        answer = daemon.get(&path) => answer.is_closed_gate("status-deprecated"),
        () = reload_then_answer => {}
    }
}

/// A check that is open while the operator withdraws the pin of its origin is answered without that pin.
#[tokio::test(flavor = "multi_thread")]
async fn withdrawn_pin_does_not_count_for_an_open_check() {
    let sandbox = Sandbox::start().await.expect("a sandbox");
    let mut config = patient(&sandbox);
    let seller = Resolver::new(&config).await.expect("a resolver");
    let question = checks::as_json(&checks::asked(&seller, checks::PINNED, None).await);
    let (node, answers) = held_node(&mut config).await;
    let server = HttpDaemon::bind(&config).await.expect("the daemon starts");
    let mut reloader = server.reloader();
    let daemon = crate::http::Daemon::run(server, sandbox);
    let reload_then_answer = async {
        let (asked, _) = node.accept().await.expect("the check asks the node");
        config.check.origins.clear();
        assert_eq!(reloader.reload(&config).await.expect("a good configuration"), []);
        pass_on(&node, asked, answers).await;
    };
    tokio::select! {
        answer = checks::post(&daemon, &question) => assert_eq!(answer.json()["codes"], json!(["payee-unproven"])),
        () = reload_then_answer => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_takes_the_time_that_is_in_force_when_it_begins() {
    let (sandbox, folder) = (Sandbox::start().await.expect("a sandbox"), tempfile::tempdir().expect("a folder"));
    let mut config = patient(&sandbox);
    config.http.drain_notice = PATIENCE * 10;
    let mut daemon = Daemon::start(folder.path(), &config);
    config.http.drain_notice = Duration::from_millis(1);
    let said = daemon.reload_with(&config);
    assert!(said.contains("is in force") && !said.contains("restart"), "{said}");
    daemon.signal("-TERM");
    let began = Instant::now();
    while daemon.child.try_wait().expect("its state can be read").is_none() {
        assert!(began.elapsed() < PATIENCE, "it drains for the time that was in force at the start");
        tokio::task::yield_now().await;
    }
}

#[test]
fn without_a_file_the_signal_is_logged_and_no_more() {
    let mut child = program(&["serve", "--sandbox", "--listen", "127.0.0.1:0"]).spawn().expect("the program starts");
    let mut log = BufReader::new(child.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    assert!(log.any(|line| line.contains("listening")));
    let id = child.id().to_string();
    let signal =
        |signal: &str| assert!(Command::new("kill").args([signal, &id]).status().expect("kill runs").success());
    signal("-HUP");
    assert!(log.any(|line| line.contains("there is no configuration file to reload")));
    signal("-TERM");
    assert!(log.any(|line| line.contains("draining")));
    assert_eq!(child.wait().expect("the program ends").code(), Some(0));
}

/// The daemon itself checks its configuration: what another command checks before it, systemd starts again.
#[test]
fn the_shipped_unit_does_not_start_a_bad_configuration_again() {
    let unit = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/clresolve.service"));
    let unit = unit.expect("the file is there");
    assert!(!unit.lines().any(|line| line.starts_with("ExecStartPre=")));
    let prevents = unit.lines().find_map(|line| line.strip_prefix("RestartPreventExitStatus=")).expect("a status");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("clresolve.toml");
    std::fs::write(&file, "[gate]\ndeny = [\"no-such-code\"]\n").expect("the folder can be written");
    let ended = program(&["serve", "--config", &file.display().to_string()]).output().expect("the program runs");
    assert_eq!(ended.status.code().map(|code| code.to_string()).as_deref(), Some(prevents), "{ended:?}");
}

/// systemd hands the daemon a copy of the file that is made at the start, so that a signal would change nothing.
#[test]
fn the_shipped_unit_offers_no_reload_and_says_why() {
    let unit = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/clresolve.service"));
    let unit = unit.expect("the file is there");
    assert!(unit.lines().any(|line| line.starts_with("LoadCredential=config.toml:")));
    assert!(!unit.lines().any(|line| line.starts_with("ExecReload=")));
    assert!(unit.contains("# No ExecReload: "));
}
