//! A `redis-server` process on a Unix socket in a temporary folder.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use clresolve_resolver::config::RedisUrl;
use redis::Commands as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixStream};

/// A running server. Dropping this stops it.
pub(crate) struct RedisServerProcess {
    child: Child,
    folder: tempfile::TempDir,
    arguments: Vec<String>,
}

impl RedisServerProcess {
    /// Starts it with further arguments. Prints a notice and returns `None` if `redis-server` is not installed.
    pub(crate) fn start(arguments: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let Some(child) = spawn_redis_server(&folder, &arguments) else {
            eprintln!("skipped: redis-server is not installed");
            return None;
        };
        Some(Self { child, folder, arguments })
    }

    /// Writes these lines to a file that only its owner can read.
    pub(crate) fn write_mac_key_file(&self, lines: &[&str]) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.folder.path().join(format!("mac-{}.key", lines.len()));
        std::fs::write(&path, lines.join("\n")).expect("the folder is writable");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("the file is ours");
        path
    }

    pub(crate) fn url(&self) -> RedisUrl {
        format!("unix://{}", self.socket_path()).parse().expect("a URL")
    }

    pub(crate) fn socket_path(&self) -> String {
        socket_path(&self.folder)
    }

    /// Opens a connection that is separate from those of the daemons.
    pub(crate) fn open(&self) -> redis::Connection {
        let url = format!("redis+unix://{}", self.socket_path());
        redis::Client::open(url).and_then(|client| client.get_connection()).expect("the server answers")
    }

    /// The keys of this kind.
    pub(crate) fn keys_of_kind(&self, kind: &str) -> Vec<String> {
        self.open().keys(format!("clresolve:{kind}:*")).expect("the server answers")
    }

    pub(crate) fn get(&self, key: &str) -> Vec<u8> {
        self.open().get(key).expect("the server answers")
    }

    pub(crate) fn set(&self, key: &str, value: &[u8]) {
        self.open().set(key, value).expect("the server answers")
    }

    /// Starts a proxy to the server. It forwards what a client sent once the future that `passes` returns completes.
    pub(crate) async fn start_proxy<Pass>(
        &self,
        passes: impl Fn(Vec<u8>) -> Pass + Clone + Send + Sync + 'static,
    ) -> RedisUrl
    where
        Pass: Future<Output = ()> + Send,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("redis://{}", listener.local_addr().expect("it is bound"));
        let socket = self.socket_path();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = UnixStream::connect(&socket).await.expect("it listens");
                let ((mut asks, mut hears), (mut answers, mut listens)) = (client.into_split(), server.into_split());
                tokio::spawn(async move { tokio::io::copy(&mut answers, &mut hears).await });
                let passes = passes.clone();
                tokio::spawn(async move {
                    let mut bytes = vec![0; 1 << 16];
                    while let Ok(read @ 1..) = asks.read(&mut bytes).await {
                        passes(bytes[..read].to_vec()).await;
                        listens.write_all(&bytes[..read]).await.expect("it reads");
                    }
                });
            }
        });
        url.parse().expect("a URL")
    }

    /// Kills the process.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Restarts it with an empty database.
    pub(crate) fn restart(&mut self) {
        self.child = spawn_redis_server(&self.folder, &self.arguments).expect("it was there before");
    }

    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().expect("kill runs");
        assert!(sent.success());
    }
}

impl Drop for RedisServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a sent command has these parts.
pub(crate) fn command_contains(sent: &[u8], parts: &[&str]) -> bool {
    let sent = String::from_utf8_lossy(sent);
    parts.iter().all(|part| sent.contains(part))
}

fn socket_path(folder: &tempfile::TempDir) -> String {
    folder.path().join("redis.sock").display().to_string()
}

/// Starts the process and waits until it reports that it is ready.
fn spawn_redis_server(folder: &tempfile::TempDir, arguments: &[String]) -> Option<Child> {
    let mut child = Command::new("redis-server")
        .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket", &socket_path(folder)])
        .args(arguments)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let log = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut lines = log.lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("eady to accept connections")), "it does not start");
    // Drained, so that the server never blocks on a full pipe.
    std::thread::spawn(move || lines.for_each(drop));
    Some(child)
}
