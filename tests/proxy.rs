//! `deploy/nginx.conf` under a real nginx: what the gate refuses does not reach the runtime, whatever becomes of the
//! daemon. Says that it is skipped where no nginx is installed.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use clresolve::sandbox::Sandbox;
use reqwest::Client;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Times that a connection to a program that is starting is tried: it starts within some hundred of them.
const TRIES: usize = 1_000_000;

/// What reached the runtime: path, and the card's digest in the header.
type Reached = Arc<Mutex<Vec<(String, String)>>>;

/// A program that ends with the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn nginx_is_installed() -> bool {
    let there = Command::new("nginx").arg("-v").stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !there {
        println!("skipped: nginx is not installed");
    }
    there
}

/// The runtime behind the proxy: it notes what reaches it.
async fn runtime() -> (u16, Reached) {
    let reached = Reached::default();
    let note = async |State(reached): State<Reached>, headers: HeaderMap, uri: Uri| {
        let card = headers.get("clresolve-card-sha256").map_or("", |value| value.to_str().unwrap_or("?"));
        reached.lock().expect("no test panics with it").push((uri.path().to_owned(), card.to_owned()));
        "paid"
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let app = Router::new().fallback(note).with_state(Arc::clone(&reached));
    tokio::spawn(async move { axum::serve(listener, app).await });
    (port, reached)
}

/// The daemon on the embedded world, with a deadline that a busy machine keeps.
fn daemon(folder: &Path, sandbox: &Sandbox) -> (Program, u16) {
    let file = folder.join("clresolve.toml");
    let mut config = sandbox.config();
    config.gate.deadline = std::time::Duration::from_secs(60);
    config.timeout = std::time::Duration::from_secs(60);
    config.save(&file).expect("the folder can be written");
    let mut child = Command::new(env!("CARGO_BIN_EXE_clresolve"))
        .args(["serve", "--listen", "127.0.0.1:0", "--config"])
        .arg(&file)
        .env_clear()
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut log = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    log.read_line(&mut line).expect("a line");
    // Nobody reads on: the rest must not fill the pipe.
    std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
    let port = line.trim().rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    (Program(child), port.unwrap_or_else(|| panic!("{line}")))
}

/// nginx under the shipped file, on other ports and with more patience for the gate.
fn nginx(folder: &Path, daemon: u16, runtime: u16) -> (Program, u16) {
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/nginx.conf");
    let mut gate = std::fs::read_to_string(shipped).expect("the file is there");
    for (from, to) in [
        ("server 127.0.0.1:8402;", format!("server 127.0.0.1:{daemon};")),
        ("server 127.0.0.1:4021;", format!("server 127.0.0.1:{runtime};")),
        ("listen 127.0.0.1:8080;", format!("listen 127.0.0.1:{port};")),
        ("proxy_read_timeout 500ms;", "proxy_read_timeout 60s;".to_owned()),
    ] {
        assert!(gate.contains(from), "{from}");
        gate = gate.replace(from, &to);
    }
    let folder = folder.display();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {folder}/{name};\n"))
        .concat();
    let whole = format!(
        "daemon off; master_process off; pid {folder}/pid; error_log stderr;\nevents {{}}\n\
         http {{ access_log off; {temporary}{gate} }}"
    );
    let file = format!("{folder}/nginx.conf");
    std::fs::write(&file, whole).expect("the folder can be written");
    let arguments = ["-p", &folder.to_string(), "-e", "stderr", "-c", &file];
    let checked = Command::new("nginx").arg("-t").args(arguments).output().expect("nginx runs");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let child = Command::new("nginx").args(arguments).stderr(Stdio::null()).spawn().expect("nginx runs");
    let child = Program(child);
    let up = (0..TRIES).any(|_| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    assert!(up, "nginx does not listen");
    (child, port)
}

/// The status for a path that is sent as it stands here.
async fn status_of(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("nginx listens");
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("nginx reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("UTF-8");
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_nginx_only_what_the_gate_lets_pass_reaches_the_runtime() {
    if !nginx_is_installed() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sandbox = Sandbox::start().await.expect("the sandbox starts");
    let (runtime, reached) = runtime().await;
    let (daemon, daemon_port) = daemon(folder.path(), &sandbox);
    let (_nginx, port) = nginx(folder.path(), daemon_port, runtime);
    let client = Client::builder().no_proxy().build().expect("a client");
    let call = async |path: &str| {
        let request = client.post(format!("http://127.0.0.1:{port}{path}")).header("clresolve-card-sha256", "forged");
        request.body("{}").send().await.expect("an answer").status().as_u16()
    };

    assert_eq!(call("/agents/summarizeagent.eth/summarize/v1").await, 200);
    let passed = std::mem::take(&mut *reached.lock().expect("no handler panics"));
    let [(path, card)] = passed.as_slice() else { panic!("{passed:?}") };
    assert_eq!(path, "/agents/summarizeagent.eth/summarize/v1");
    assert!(card.len() == 64 && card.bytes().all(|b| b.is_ascii_hexdigit()), "{card}");

    for (path, status) in [
        ("/agents/entry-version.eth/summarize/v1", 403),
        ("/agents/card-unreachable.eth/summarize/v1", 403),
        ("/agents/no-such-agent.eth/summarize/v1", 403),
        ("/agents/summarizeagent.eth/classify/v1", 403),
        ("/agents/summarizeagent.eth%2fsummarize/x/v1", 400),
        ("/agents/summarizeagent.eth%3f/summarize/v1", 404),
        ("/agents/SummarizeAgent.eth/summarize/v1", 404),
        ("/gate", 404),
        ("/", 404),
    ] {
        assert_eq!(call(path).await, status, "{path}");
    }
    for path in [
        "/agents/summarizeagent.eth/summarize/../../entry-version.eth/summarize/v1",
        "/agents/entry-version.eth/summarize/../../summarizeagent.eth/summarize/v1",
        "/agents/entry-version.eth/summarize/%2e%2e/%2E%2e/summarizeagent.eth/summarize/v1",
        "/agents//summarizeagent.eth/summarize/v1",
        "/agents/x/..\\summarizeagent.eth/summarize/v1",
    ] {
        assert_eq!(status_of(port, path).await, "400", "{path}");
    }
    drop(daemon);
    assert_eq!(call("/agents/summarizeagent.eth/summarize/v1").await, 500, "without a daemon the gate is shut");
    assert_eq!(reached.lock().expect("no handler panics").as_slice(), []);
}
