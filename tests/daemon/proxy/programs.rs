//! The programs of the tests of proxies: each proxy under its shipped file, the daemon, what is broken in its place,
//! and the runtime behind the proxy.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clresolve_resolver::config::Config;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::support::serve::serve;

/// Ports that a proxy is tried on: between the choice of a free one and its use another program may take it.
const PORTS: usize = 5;

/// A busy machine is no defect.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Longest head of a request that the runtime reads.
const HEAD: usize = 16 * 1024;

/// The heads of the requests that reached a server, with what is no printable ASCII escaped.
type Heads = Arc<Mutex<Vec<String>>>;

/// The digest of the card in each answer of [`OpenGate`].
pub(crate) const JUDGED: &str = "the-gate-judged-this-card";

/// A client's own header, which must not pass for the gate's.
const FORGED: &str = "clresolve-card-sha256: forged\r\n";

/// A program that ends with the test.
pub(crate) struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Program {
    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.0.id().to_string()]).status().expect("kill runs");
        assert!(sent.success(), "it has ended");
    }

    /// Stops it, and waits until each of its threads stands: one that was awake may answer once more.
    pub(crate) fn stand_still(&self) {
        self.signal("-STOP");
        let threads = format!("/proc/{}/task", self.0.id());
        let stands = |thread: std::io::Result<std::fs::DirEntry>| {
            let status = std::fs::read_to_string(thread.expect("a thread").path().join("stat")).expect("its state");
            status.rsplit(')').next().is_some_and(|state| state.starts_with(" T"))
        };
        while !std::fs::read_dir(&threads).expect("its threads").all(stands) {}
    }
}

/// A proxy, and what becomes of a gate that does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proxy {
    Nginx,
    Caddy,
    Envoy,
    /// The trap: `failure_mode_allow`.
    OpenEnvoy,
    /// nginx in front of the daemon's API, without its TLS: `deploy/check` has nginx read that.
    NginxTls,
}

/// How long a proxy waits for the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    AsShipped,
    /// For answers that a busy machine gives late.
    Long,
}

impl Proxy {
    pub(crate) const ALL: [Self; 4] = [Self::Nginx, Self::Caddy, Self::Envoy, Self::OpenEnvoy];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Caddy => "Caddy",
            Self::Envoy => "Envoy",
            Self::OpenEnvoy => "Envoy that fails open",
            Self::NginxTls => "nginx with TLS",
        }
    }

    /// Where the paths of agents begin.
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Self::Nginx | Self::Caddy => "/agents",
            Self::Envoy | Self::OpenEnvoy | Self::NginxTls => "",
        }
    }

    const fn program(self) -> &'static str {
        match self {
            Self::Nginx | Self::NginxTls => "nginx",
            Self::Caddy => "caddy",
            Self::Envoy | Self::OpenEnvoy => "envoy",
        }
    }

    pub(crate) fn is_installed(self) -> bool {
        let question = match self {
            Self::Nginx | Self::NginxTls => "-v",
            Self::Caddy => "version",
            Self::Envoy | Self::OpenEnvoy => "--version",
        };
        let mut command = Command::new(self.program());
        command.arg(question).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    /// The shipped file, its place of the port that it listens on, and what it says about waiting.
    const fn shipped(self) -> (&'static str, &'static str, (&'static str, &'static str)) {
        match self {
            Self::Nginx => {
                ("deploy/nginx.conf", "127.0.0.1:8083", ("proxy_read_timeout 500ms", "proxy_read_timeout 60s"))
            }
            Self::Caddy => {
                ("deploy/Caddyfile", "http://:8082", ("response_header_timeout 500ms", "response_header_timeout 60s"))
            }
            Self::Envoy | Self::OpenEnvoy => {
                ("deploy/envoy.yaml", "port_value: 8081", ("timeout: 0.2s", "timeout: 60s"))
            }
            Self::NginxTls => {
                ("deploy/nginx-tls.conf", "listen 127.0.0.1:8443", ("proxy_read_timeout 30s", "proxy_read_timeout 60s"))
            }
        }
    }

    /// Starts it in front of a gate and a runtime on these ports, and says on which one it listens.
    pub(crate) fn start(self, folder: &Path, gate: u16, runtime: u16, waits: Waits) -> (Program, u16) {
        let mut started = (0..PORTS).map(|_| self.try_start(folder, gate, runtime, waits));
        started.find_map(|started| started).unwrap_or_else(|| panic!("{self:?} does not listen"))
    }

    /// The same on one free port; `None` where it has ended.
    fn try_start(self, folder: &Path, gate: u16, runtime: u16, waits: Waits) -> Option<(Program, u16)> {
        let port = free_port();
        let text = self.configuration(folder, port, gate, runtime, waits);
        let file = folder.join(format!("{}-{port}", self.program()));
        let file = if self == Self::Envoy || self == Self::OpenEnvoy { file.with_extension("yaml") } else { file };
        std::fs::write(&file, text).expect("the folder can be written");
        let mut command = Command::new(self.program());
        match self {
            Self::Nginx | Self::NginxTls => command.arg("-p").arg(folder).args(["-e", "stderr", "-c"]).arg(&file),
            Self::Caddy => command.args(["run", "--adapter", "caddyfile", "--config"]).arg(&file),
            Self::Envoy | Self::OpenEnvoy => {
                command.args(["--disable-hot-restart", "--concurrency", "1", "-l", "off", "-c"]).arg(&file)
            }
        };
        command.env("HOME", folder).stdout(Stdio::null()).stderr(Stdio::null());
        let mut program = Program(command.spawn().expect("it is installed"));
        let began = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            if program.0.try_wait().expect("a process of ours").is_some() {
                return None;
            }
            assert!(began.elapsed() < PATIENCE, "{self:?} does not listen");
            std::thread::yield_now();
        }
        Some((program, port))
    }

    /// The shipped file, with other ports.
    fn configuration(self, folder: &Path, port: u16, gate: u16, runtime: u16, waits: Waits) -> String {
        let (file, listens, (waits_short, waits_long)) = self.shipped();
        let read = |file| {
            std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect("the file is there")
        };
        let mut text = read(file);
        let mut changes = vec![
            (listens.to_owned(), listens_at(listens, port)),
            (waits_short.to_owned(), if waits == Waits::Long { waits_long } else { waits_short }.to_owned()),
        ];
        for (from, to) in [(8402, gate), (4021, runtime)] {
            let place = if file.ends_with(".yaml") { "port_value: " } else { "127.0.0.1:" };
            changes.push((format!("{place}{from}"), format!("{place}{to}")));
        }
        if self == Self::OpenEnvoy {
            changes.push(("failure_mode_allow: false".to_owned(), "failure_mode_allow: true".to_owned()));
        }
        if self == Self::NginxTls {
            let without_tls: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("ssl_")).collect();
            let plain = without_tls.join("\n").replace("listen 8443 ssl;", "listen 127.0.0.1:8443;");
            // The upstream is in the file beside it.
            text = read(Self::Nginx.shipped().0) + &plain;
            changes.push(("allow 192.0.2.0/24;".to_owned(), "allow 127.0.0.1;".to_owned()));
            changes.push(("127.0.0.1:8083".to_owned(), format!("127.0.0.1:{}", free_port())));
        }
        let changed = changes.into_iter().fold(text, |text, (from, to)| {
            assert!(text.contains(&from), "{file}: {from}");
            text.replace(&from, &to)
        });
        if self.program() == "nginx" { whole_nginx(folder, port, &changed) } else { changed }
    }
}

/// A port that no program listens on. It is below the ephemeral ports, which the system gives to clients.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let of_process = u16::try_from(std::process::id() % 1000).expect("below 1000") * 10;
    loop {
        let port = 20_000 + of_process + NEXT.fetch_add(1, Ordering::Relaxed) % 2000;
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// The same address with another port.
fn listens_at(listens: &str, port: u16) -> String {
    let digits = listens.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    format!("{}{port}", &listens[..digits])
}

/// The shipped file in what stands around it.
fn whole_nginx(folder: &Path, port: u16, gate: &str) -> String {
    let folder = folder.display();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {folder}/{name};\n"))
        .concat();
    format!(
        "daemon off; master_process off; pid {folder}/pid-{port}; error_log stderr;\nevents {{}}\n\
         http {{ access_log off; {temporary}{gate} }}"
    )
}

/// The runtime behind the proxy: it notes what reaches it and answers 200, whatever that is.
pub(crate) struct Runtime {
    pub(crate) port: u16,
    reached: Heads,
}

impl Runtime {
    pub(crate) async fn start() -> Self {
        let reached = Heads::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let noted = Arc::clone(&reached);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(note(stream, Arc::clone(&noted)));
            }
        });
        Self { port, reached }
    }

    /// The targets that reached it since the last look, and the card's digest in the header.
    pub(crate) fn take(&self) -> Vec<(String, String)> {
        self.take_heads().iter().map(|head| noted(head)).collect()
    }

    /// The heads that reached it since the last look.
    pub(crate) fn take_heads(&self) -> Vec<String> {
        std::mem::take(&mut *self.reached.lock().expect("no handler panics"))
    }
}

/// Notes one request by its bytes: a server that refuses some targets would hide that they came through.
async fn note(mut stream: TcpStream, reached: Heads) {
    let mut head = Vec::new();
    while head.len() < HEAD && !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read_buf(&mut head).await {
            // A connection that is opened ahead of its request.
            Ok(0) | Err(_) if head.is_empty() => return,
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    reached.lock().expect("no test panics with it").push(head.escape_ascii().to_string());
    // The proxy takes its answer, or has gone.
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\npaid").await;
    let _ = stream.shutdown().await;
    // A connection that is closed before all is read is reset, and its answer lost.
    let mut rest = [0; 4096];
    while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
}

/// Target and digest of a head.
fn noted(head: &str) -> (String, String) {
    let mut lines = head.split("\\r\\n");
    let target = lines.next().and_then(|line| line.split_once(' ')).map_or("", |(_, rest)| rest);
    let target = target.rsplit_once(' ').map_or(target, |(target, _)| target);
    let card = headers(head).find(|(name, _)| name == "clresolve-card-sha256").map(|(_, card)| card);
    (target.to_owned(), card.unwrap_or_default())
}

/// The headers of a head, their names in lower case.
pub(crate) fn headers(head: &str) -> impl Iterator<Item = (String, String)> {
    let lines = head.split("\\r\\n").skip(1).filter_map(|line| line.split_once(": "));
    lines.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
}

/// The daemon under a configuration, and the port of its gate.
pub(crate) fn daemon(folder: &Path, config: &Config) -> (Program, u16) {
    let file = folder.join("clresolve.toml");
    config.save(&file).expect("the folder can be written");
    let (child, address) = serve(&["--listen", "127.0.0.1:0", "--config", &file.display().to_string()], []).unheard();
    (Program(child), address.port())
}

/// What stands in the place of the daemon, allows everything and keeps its connections.
pub(crate) struct OpenGate {
    pub(crate) port: u16,
    /// Of each connection the times of the first and the last request.
    asked: Arc<Mutex<Vec<(Instant, Instant)>>>,
    heads: Heads,
}

impl OpenGate {
    pub(crate) async fn start() -> Self {
        let asked = Arc::<Mutex<Vec<(Instant, Instant)>>>::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let heads = Heads::default();
        let (noted, noted_heads) = (Arc::clone(&asked), Arc::clone(&heads));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(allow(stream, Arc::clone(&noted), Arc::clone(&noted_heads)));
            }
        });
        Self { port, asked, heads }
    }

    /// The heads of the requests since the last look.
    pub(crate) fn take_heads(&self) -> Vec<String> {
        std::mem::take(&mut *self.heads.lock().expect("no task panics with it"))
    }

    /// How long each connection was asked on.
    pub(crate) fn lives(&self) -> Vec<Duration> {
        self.asked.lock().expect("no task panics with it").iter().map(|(first, last)| *last - *first).collect()
    }
}

async fn allow(mut stream: TcpStream, asked: Arc<Mutex<Vec<(Instant, Instant)>>>, heads: Heads) {
    let mut place = None;
    let mut head = Vec::new();
    while stream.read_buf(&mut head).await.is_ok_and(|read| read > 0) {
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        heads.lock().expect("no test panics with it").push(head.escape_ascii().to_string());
        head.clear();
        {
            let (now, mut asked) = (Instant::now(), asked.lock().expect("no test panics with it"));
            let place = *place.get_or_insert(asked.len());
            if place == asked.len() { asked.push((now, now)) } else { asked[place].1 = now }
        }
        let allowed = format!("HTTP/1.1 200 OK\r\nclresolve-card-sha256: {JUDGED}\r\ncontent-length: 0\r\n\r\n");
        // Whoever is gone needs no answer.
        let _ = stream.write_all(allowed.as_bytes()).await;
    }
}

/// What stands in the place of the daemon and sends these bytes to whoever asks, whatever is asked.
pub(crate) struct Impostor {
    pub(crate) port: u16,
    says: Arc<Mutex<(Vec<u8>, Then)>>,
}

/// What follows the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Close,
    /// Nothing, until the other side gives up.
    Wait,
}

impl Impostor {
    pub(crate) async fn start() -> Self {
        let says = Arc::new(Mutex::new((Vec::new(), Then::Close)));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let said = Arc::clone(&says);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (bytes, then) = said.lock().expect("no test panics with it").clone();
                tokio::spawn(answer(stream, bytes, then));
            }
        });
        Self { port, says }
    }

    pub(crate) fn say(&self, bytes: &[u8], then: Then) {
        *self.says.lock().expect("no task panics with it") = (bytes.to_vec(), then);
    }
}

async fn answer(mut stream: TcpStream, bytes: Vec<u8>, then: Then) {
    let mut head = [0; 4096];
    // Whoever is gone needs no answer.
    let _ = stream.read(&mut head).await;
    let _ = stream.write_all(&bytes).await;
    if then == Then::Wait {
        while stream.read(&mut head).await.is_ok_and(|read| read > 0) {}
    }
}

/// The status for a request whose target is sent as it stands here; `closed` where there is no answer.
pub(crate) async fn status_of(port: u16, method: &str, target: &[u8]) -> String {
    status_with(port, method, target, FORGED).await
}

/// The same for a request with these header lines.
pub(crate) async fn status_with(port: u16, method: &str, target: &[u8], lines: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("the proxy listens");
    let mut request = format!("{method} ").into_bytes();
    request.extend_from_slice(target);
    let body = if method == "POST" { "content-length: 2\r\n\r\n{}" } else { "\r\n" };
    let head = format!(" HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{lines}{body}");
    request.extend_from_slice(head.as_bytes());
    stream.write_all(&request).await.expect("the proxy reads");
    let mut said = Vec::new();
    // Whoever has answered may keep the connection for a while. One that resets it behind its answer has answered.
    let answered =
        async { while !has_answered(&said) && stream.read_buf(&mut said).await.is_ok_and(|read| read > 0) {} };
    tokio::time::timeout(PATIENCE, answered).await.expect("an answer in time");
    status_in(&said).unwrap_or_else(|| "closed".to_owned())
}

const END_OF_HEAD: &str = "\r\n\r\n";

/// Whether the head of the answer is whole.
fn has_answered(said: &[u8]) -> bool {
    let end = said.windows(END_OF_HEAD.len()).rposition(|end| end == END_OF_HEAD.as_bytes());
    end.is_some_and(|end| status_in(&said[..end]).is_some())
}

/// The status of the answer among what was said. `100 Continue` may come before it, and is no answer.
fn status_in(said: &[u8]) -> Option<String> {
    let said = String::from_utf8_lossy(said);
    let mut heads = said.split(END_OF_HEAD).map_while(|head| head.strip_prefix("HTTP/1.1 "));
    heads.find(|head| !head.starts_with('1')).and_then(|head| head.split(' ').next()).map(str::to_owned)
}
