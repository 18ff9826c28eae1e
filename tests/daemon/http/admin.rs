//! The admin socket, asked by the program: what the operator sees and changes, and who gets in.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Output};
use std::sync::mpsc;
use std::time::Duration;

use clresolve_resolver::config::Config;
use clresolve_resolver::sandbox::Sandbox;
use reqwest::Client;
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::http::events::Events;
use crate::http::{GOOD, START, answer, patient, program};

/// Most connections of the socket at once.
const MOST_CONNECTIONS: usize = 4;

/// A daemon in a process of its own, with an admin socket.
struct Daemon {
    child: Child,
    log: mpsc::Receiver<String>,
    address: String,
    file: PathBuf,
    socket: PathBuf,
    config: Config,
    _world: Sandbox,
    _folder: tempfile::TempDir,
}

impl Daemon {
    async fn start() -> Self {
        let (sandbox, folder) = (Sandbox::start().await.expect("a sandbox"), tempfile::tempdir().expect("a folder"));
        let (file, socket) = (folder.path().join("clresolve.toml"), folder.path().join("admin.sock"));
        let mut config = patient(&sandbox);
        config.http.drain_notice = Duration::from_millis(1);
        config.admin.socket = Some(socket.display().to_string().parse().expect("a path"));
        config.save(&file).expect("the folder can be written");
        let mut child = program(&["serve", "--config"]).arg(&file).spawn().expect("the program starts");
        let lines = BufReader::new(child.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
        let (tell, log) = mpsc::channel();
        std::thread::spawn(move || lines.for_each(|line| drop(tell.send(line))));
        let mut daemon =
            Self { child, log, address: String::new(), file, socket, config, _world: sandbox, _folder: folder };
        daemon.address = daemon.said("listening on http://").rsplit_once("http://").expect("an address").1.to_owned();
        daemon.said(&format!("the admin socket is {}", daemon.socket.display()));
        daemon
    }

    /// The next line of the log that holds `part`.
    fn said(&self, part: &str) -> String {
        loop {
            let line = self.log.recv_timeout(START).unwrap_or_else(|_| panic!("the log says nothing of {part}"));
            if line.contains(part) {
                return line;
            }
        }
    }

    async fn ctl(&self, arguments: &[&str]) -> Output {
        let mut command = program(&["ctl"]);
        command.args(arguments).arg("--socket").arg(&self.socket);
        let ended = tokio::process::Command::from(command).kill_on_drop(true).output();
        timeout(START, ended).await.expect("it ends in time").expect("the program runs")
    }

    /// What a command says that does what it is asked to.
    async fn done(&self, arguments: &[&str]) -> String {
        let output = self.ctl(arguments).await;
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    async fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.done(&[arguments, &["--json"]].concat()).await).expect("JSON")
    }

    /// Why a command is refused.
    async fn refused(&self, arguments: &[&str]) -> String {
        let output = self.ctl(arguments).await;
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8(output.stderr).expect("UTF-8")
    }

    /// What the daemon's verdict says of an agent.
    async fn identity(&self, name: &str) -> Value {
        let client = Client::builder().no_proxy().build().expect("a client");
        answer(client.get(format!("http://{}/v1/verdicts/{name}", self.address))).await.json()["identity"].clone()
    }

    /// The status of the gate's answer about an agent.
    async fn gate(&self, name: &str) -> u16 {
        let client = Client::builder().no_proxy().build().expect("a client");
        answer(client.get(format!("http://{}/v1/gate/{name}", self.address))).await.status
    }

    /// How the daemon's cache was used for an answer.
    async fn cache_status(&self, name: &str) -> String {
        let client = Client::builder().no_proxy().build().expect("a client");
        let verdict = answer(client.get(format!("http://{}/v1/verdicts/{name}", self.address))).await;
        assert_eq!(verdict.status, 200);
        verdict.header("cache-status").to_owned()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("a file").permissions().mode() & 0o777
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_sees_what_is_held_and_drops_it() {
    let daemon = Daemon::start().await;
    assert_eq!(mode(&daemon.socket), 0o600);
    for name in [GOOD, "entry-version.eth"] {
        assert!(daemon.cache_status(name).await.contains("fwd=miss"), "{name}");
        assert!(daemon.cache_status(name).await.contains("hit"), "{name}");
    }
    let state = daemon.json(&["show"]).await;
    assert_eq!(state["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(
        (&state["cache"]["trusted"]["entries"], &state["cache"]["untrusted"]["entries"]),
        (&1.into(), &1.into())
    );
    assert_eq!(state["head"], Value::Null, "no question has needed it");
    assert_eq!(state["settings"]["admin.socket"], daemon.socket.display().to_string());
    let text = daemon.done(&["show"]).await;
    assert!(text.contains("cache trusted: 1 entries") && text.contains("gate.deadline = "), "{text}");
    assert_eq!(daemon.gate(GOOD).await, 200);
    let head = daemon.json(&["show"]).await["head"].clone();
    assert!(head["number"].is_u64() && head["reported_at"].is_string(), "{head}");
    let held = daemon.json(&["show", GOOD]).await;
    assert_eq!((&held["held"][0]["state"], &held["held"][0]["answers"]), (&"trusted".into(), &true.into()), "{held}");

    let why = daemon.refused(&["flush", "--all", "--out", "/no/such/folder/said"]).await;
    assert!(why.contains("does not exist"), "{why}");
    assert_eq!(daemon.json(&["show", GOOD]).await, held, "nothing is dropped where that could not be said");
    assert_eq!(daemon.json(&["flush", GOOD]).await["names"], 1);
    assert_eq!(daemon.json(&["show", GOOD]).await["held"], serde_json::json!([]));
    assert!(daemon.cache_status("entry-version.eth").await.contains("hit"), "another name is still held");
    assert!(daemon.cache_status(GOOD).await.contains("fwd=miss"));
    assert_eq!(daemon.json(&["flush", "--state", "untrusted"]).await["names"], 1);
    assert!(daemon.cache_status(GOOD).await.contains("hit"));
    assert!(daemon.cache_status("entry-version.eth").await.contains("fwd=miss"));
    assert_eq!(daemon.json(&["flush", "--owner", "nobody.eth"]).await["names"], 0);
    let card = daemon.identity(GOOD).await;
    let content = async || daemon.json(&["show"]).await["cache"]["content"]["entries"].as_u64();
    let proven = content().await;
    for (what, of) in [("--owner", &card["owner"]["name"]), ("--cid", &card["card"]["cid"])] {
        assert!(daemon.cache_status(GOOD).await.contains("hit"), "{what}");
        let dropped = daemon.json(&["flush", what, of.as_str().expect("a text")]).await["names"].as_u64();
        assert!(dropped.is_some_and(|names| names >= 1), "{what} {of}");
        assert_eq!(content().await < proven, what == "--cid", "{what} drops what is proven of the CID alone");
        assert!(daemon.cache_status(GOOD).await.contains("fwd=miss"), "{what}");
    }
    assert!(daemon.cache_status("entry-version.eth").await.contains("fwd=miss"));
    assert_eq!(daemon.json(&["flush", "--all"]).await["names"], 2);
    assert_eq!(daemon.json(&["show"]).await["cache"]["content"]["entries"], 0);

    assert!(daemon.refused(&["flush", "no name"]).await.contains("request-malformed"));
    assert!(daemon.refused(&["flush", "--cid", "Qm"]).await.contains("request-malformed"));
    assert!(daemon.refused(&["flush"]).await.contains("required"));
}

/// Clients that hold verdicts ask anew for what the operator has dropped.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_operator_drops_is_told_as_an_eviction() {
    let daemon = Daemon::start().await;
    let client = Client::builder().no_proxy().build().expect("a client");
    let followed = client.get(format!("http://{}/v1/events?name={GOOD}", daemon.address)).send().await;
    let mut events = Events::of(followed.expect("an answer"));
    events.next().await.expect("where it stands");
    for what in [GOOD, "--all"] {
        assert!(daemon.cache_status(GOOD).await.contains("fwd=miss"), "{what}");
        events.expect("verdict").await;
        daemon.done(&["flush", what]).await;
        assert_eq!(events.expect("eviction").await.data["name"], GOOD, "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_puts_a_configuration_in_force_and_hears_why_not() {
    let daemon = Daemon::start().await;
    let mut config = daemon.config.clone();
    config.gate.deadline = Duration::from_secs(7);
    config.cache.trusted = 5;
    config.save(&daemon.file).expect("the file can be written");
    let file = daemon.file.display().to_string();
    let said = daemon.json(&["reload"]).await;
    assert_eq!(said, serde_json::json!({"file": file, "unchanged": false, "restart": ["[cache]"]}));
    assert_eq!(daemon.json(&["show"]).await["settings"]["gate.deadline"], "7s");
    let said = daemon.done(&["reload"]).await;
    assert!(said.starts_with(&format!("{file}: unchanged since it was last read\n[cache]: ")), "{said}");
    daemon.said(&format!("{file}: unchanged since it was last read"));
    daemon.said("read again and is in force");

    fs::write(&daemon.file, "[gate]\ndenny = []\n").expect("the file can be written");
    let why = daemon.refused(&["reload"]).await;
    assert!(why.contains("configuration-refused") && why.contains("unknown field `denny`"), "{why}");
    daemon.said("the configuration stays as it was");
    assert_eq!(daemon.json(&["show"]).await["settings"]["gate.deadline"], "7s");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_changes_what_is_logged() {
    let daemon = Daemon::start().await;
    daemon.cache_status(GOOD).await;
    let set = daemon.json(&["log-level", "clresolve=debug,warn"]).await;
    assert_eq!(set["filter"], "clresolve=debug,warn");
    assert_eq!(daemon.json(&["show"]).await["log"], "clresolve=debug,warn");
    daemon.cache_status(GOOD).await;
    // Answers from the cache are logged at this level alone.
    daemon.said("DEBUG");
    for bad in ["debgu", "clresolve=loud", ""] {
        let why = daemon.refused(&["log-level", bad]).await;
        assert!(why.contains("configuration-refused"), "{bad}: {why}");
    }
    assert_eq!(daemon.json(&["show"]).await["log"], "clresolve=debug,warn");
}

/// A file that nobody has changed since the start is unchanged, and a flood of one question that is denied leaves one
/// line.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_so_before_is_said_to_be_so_or_not_said_again() {
    let daemon = Daemon::start().await;
    assert_eq!(daemon.json(&["reload"]).await["unchanged"], true);
    let client = Client::builder().no_proxy().build().expect("a client");
    let denied = ["/v1/gate/entry-version.eth", "/v1/cards/entry-version.eth"];
    for path in [denied[0], denied[0], denied[1], denied[1], "/v1/nothing"] {
        assert!(answer(client.get(format!("http://{}{path}", daemon.address))).await.status >= 400, "{path}");
    }
    let mut lines = Vec::new();
    while !lines.last().is_some_and(|line: &String| line.contains("/v1/nothing")) {
        lines.push(daemon.said(""));
    }
    let of_denied = lines.iter().filter(|line| denied.iter().any(|path| line.contains(path)));
    assert_eq!(of_denied.count(), 1, "{lines:#?}");
}

/// Connections that say nothing end soon, so that they hold up no operator.
#[tokio::test(flavor = "multi_thread")]
async fn connections_that_say_nothing_hold_the_admin_socket_for_a_moment() {
    let daemon = Daemon::start().await;
    let mut idle = Vec::new();
    for _ in 0..2 * MOST_CONNECTIONS {
        idle.push(UnixStream::connect(&daemon.socket).await.expect("the daemon listens"));
    }
    daemon.done(&["show"]).await;

    let client = Client::builder().no_proxy().unix_socket(&*daemon.socket).build().expect("a client");
    let long = client.put("http://clresolve/admin/log-level").header("content-type", "application/json");
    answer(long.body(" ".repeat(5000))).await.is_problem(413, "body-too-large");
    answer(client.get("http://clresolve/admin/other")).await.is_problem(404, "route-unknown");
    answer(client.get("http://clresolve/admin/reload")).await.is_problem(405, "method-unsupported");
    for name in ["%ff", "no%20name"] {
        let held = answer(client.get(format!("http://clresolve/admin/cache/{name}"))).await;
        held.is_problem(400, "request-malformed");
    }
    let over_tcp = Client::builder().no_proxy().build().expect("a client");
    let state = answer(over_tcp.get(format!("http://{}/admin/state", daemon.address))).await;
    state.is_problem(404, "route-unknown");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_daemon_answers_the_operator_hears_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("none.sock");
    let output = program(&["ctl", "show", "--socket"]).arg(&socket).output().expect("the program runs");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no daemon answers there"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ready_ends_with_0_only_while_the_daemon_accepts_requests() {
    let mut daemon = Daemon::start().await;
    let ask = |address: &str| {
        let output = program(&["ctl", "ready", "--json", "--listen", address]).output().expect("the program runs");
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(output.status.success(), answer["ready"] == true, "{answer}");
        (output.status.code(), answer["lines"][0].as_str().unwrap_or_default().to_owned())
    };
    let start = std::time::Instant::now();
    while ask(&daemon.address).0 != Some(0) {
        assert!(start.elapsed() < START, "the daemon does not get ready");
    }
    assert_eq!(ask(&daemon.address), (Some(0), "ready".to_owned()));
    daemon.child.kill().expect("a process of ours");
    daemon.child.wait().expect("a process of ours");
    let (code, line) = ask(&daemon.address);
    assert_eq!(code, Some(1));
    assert!(line.starts_with("not ready: "), "{line}");
}
