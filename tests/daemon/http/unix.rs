//! The daemon on Unix sockets: who gets in, what it replaces, and what it leaves.

use std::fs::{self, File, Permissions};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use clresolve_resolver::config::{Config, ListenAddress};
use clresolve_resolver::sandbox::Sandbox;
use clresolve_server::http::{DaemonStartError, HttpDaemon};
use reqwest::Client;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::http::{GOOD, PATIENCE, START, answer, patient, program};

fn listener(path: &Path) -> ListenAddress {
    format!("unix:{}", path.display()).parse().expect("a path")
}

fn client(path: &Path) -> Client {
    Client::builder().no_proxy().unix_socket(path).build().expect("a client")
}

/// Binds the daemon's socket as `path`, or says why not.
async fn bound(path: &Path) -> Result<HttpDaemon, String> {
    let mut config = Config::default();
    config.http.listen = listener(path);
    HttpDaemon::bind(&config).await.map_err(|error| match error {
        DaemonStartError::Listen { key: "http.listen", detail, .. } => detail,
        other => panic!("{other}"),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_listens_on_a_socket_of_its_user_and_group_and_removes_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("clresolve.sock");
    let at = listener(&path).to_string();
    let arguments = ["serve", "--sandbox", "--timeout", "2m", "--listen", &at];
    let mut child = program(&arguments).spawn().expect("the program starts");
    let mut log = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    log.read_line(&mut line).expect("a line");
    assert!(line.ends_with(&format!("listening on {at}\n")), "{line}");
    let found = fs::symlink_metadata(&path).expect("a file");
    assert!(found.file_type().is_socket());
    assert_eq!(found.permissions().mode() & 0o777, 0o660);

    let client = client(&path);
    for (name, expected) in [(GOOD, 200), ("entry-version.eth", 403)] {
        // The first answer may take longer than the gate waits.
        let verdict = answer(client.get(format!("http://clresolve/v1/verdicts/{name}"))).await;
        assert_eq!(verdict.status, 200, "{name}");
        let gate = answer(client.get(format!("http://clresolve/v1/gate/{name}"))).await;
        assert_eq!(gate.status, expected, "{name}");
    }
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill runs");
    assert!(killed.success());
    let mut rest = String::new();
    log.read_to_string(&mut rest).expect("UTF-8");
    assert_eq!(child.wait().expect("the program ends").code(), Some(0), "{rest}");
    assert!(rest.contains("client=user "), "{rest}");
    assert!(!path.exists());
}

/// The user behind a socket is the client that the limits hold for.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_behind_a_socket_has_the_limits_of_a_client() {
    let (sandbox, folder) = (Sandbox::start().await.expect("a sandbox"), tempfile::tempdir().expect("a folder"));
    let [all, gate] = ["all.sock", "gate.sock"].map(|name| folder.path().join(name));
    let mut config = patient(&sandbox);
    (config.http.listen, config.gate.listen) = (listener(&all), Some(listener(&gate)));
    // A client of HTTP may open its second connection before it has back the first.
    config.http.connections_per_client = 2;
    let server = HttpDaemon::bind(&config).await.expect("the daemon starts");
    let (stop, stopped) = oneshot::channel();
    let ended = tokio::spawn(server.run(async { stopped.await.unwrap_or_default() }));

    let connect = || UnixStream::connect(&all);
    let held = [connect().await, connect().await].map(|stream| stream.expect("the daemon listens"));
    let mut third = connect().await.expect("the daemon listens");
    let closed = timeout(START, third.read(&mut [0])).await.expect("an end");
    assert!(matches!(closed, Ok(0) | Err(_)), "a third connection of one user was kept");
    drop(held);
    let of_gate = client(&gate);
    assert_eq!(answer(of_gate.get(format!("http://gate/v1/gate/{GOOD}"))).await.status, 200);
    assert_eq!(answer(of_gate.get(format!("http://gate/v1/verdicts/{GOOD}"))).await.status, 403);

    stop.send(()).expect("the daemon runs");
    ended.await.expect("it ends by itself");
    assert!(!all.exists() && !gate.exists());
}

/// A Unix socket holds few bytes of its own, so what is not read stays with the daemon.
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_a_user_does_not_read_leave_room_for_small_ones_and_for_the_gate() {
    /// Requests of one connection: their answers are more than its socket takes.
    const AHEAD: usize = 32;
    /// More silent connections than fill 4 MiB.
    const MOST: usize = 250;
    let (sandbox, folder) = (Sandbox::start().await.expect("a sandbox"), tempfile::tempdir().expect("a folder"));
    let path = folder.path().join("clresolve.sock");
    let mut config = patient(&sandbox);
    config.http.listen = listener(&path);
    config.http.connections_per_client = 2 * MOST;
    (config.http.idle_timeout, config.http.read_timeout) = (PATIENCE, PATIENCE);
    let server = HttpDaemon::bind(&config).await.expect("the daemon starts");
    let (stop, stopped) = oneshot::channel();
    let ended = tokio::spawn(server.run(async { stopped.await.unwrap_or_default() }));
    let client = client(&path);
    let ask = async |path: &str| answer(client.get(format!("http://clresolve{path}"))).await;

    let mut silent = Vec::new();
    let refused = loop {
        assert!(silent.len() < MOST, "nothing bounds answers that are not read");
        let mut stream = UnixStream::connect(&path).await.expect("the daemon listens");
        let requests = "GET /openapi.json HTTP/1.1\r\n\r\n".repeat(AHEAD);
        stream.write_all(requests.as_bytes()).await.expect("the daemon reads");
        silent.push(stream);
        let said = ask("/openapi.json").await;
        if said.status != 200 {
            break said;
        }
    };
    refused.is_problem(429, "client-over-quota");
    for path in ["/livez", "/metrics"] {
        assert_eq!(ask(path).await.status, 200, "{path}");
    }
    assert_eq!(ask(&format!("/v1/gate/{GOOD}")).await.status, 200);

    drop(silent);
    let served = async {
        while ask("/openapi.json").await.status != 200 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, served).await.expect("what was held for them is free");
    stop.send(()).expect("the daemon runs");
    ended.await.expect("it ends by itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_was_left_behind_is_replaced_and_nothing_else_is() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("clresolve.sock");
    drop(UnixListener::bind(&path).expect("a socket"));
    assert!(path.exists(), "a listener leaves its file");
    let server = bound(&path).await.expect("nobody answers there");
    assert_eq!(bound(&path).await.err().as_deref(), Some("another program answers there"));
    assert!(path.exists());
    // Whoever bound the path after it was freed keeps it.
    fs::remove_file(&path).expect("a file");
    let other = UnixListener::bind(&path).expect("the path is free");
    drop(server);
    assert!(path.exists(), "the file is another's");
    drop(other);

    fs::remove_file(&path).expect("a file");
    fs::write(&path, "kept").expect("a file");
    let why = "the file exists and is not a socket of this user; it is left unchanged";
    assert_eq!(bound(&path).await.err().as_deref(), Some(why));
    assert_eq!(fs::read_to_string(&path).expect("a file"), "kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_where_others_could_put_their_own_socket_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("clresolve.sock");
    for (mode, is_good) in [(0o775, false), (0o707, false), (0o1777, true), (0o755, true)] {
        fs::set_permissions(folder.path(), Permissions::from_mode(mode)).expect("a mode");
        let said = bound(&path).await.map(drop);
        assert_eq!(said.is_ok(), is_good, "{mode:o}: {said:?}");
        assert!(!path.exists(), "{mode:o}");
    }
    // A folder above could be renamed, and another one take its place.
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).expect("a folder");
    fs::set_permissions(&inner, Permissions::from_mode(0o755)).expect("a mode");
    for (mode, is_good) in [(0o777, false), (0o1777, true), (0o755, true)] {
        fs::set_permissions(folder.path(), Permissions::from_mode(mode)).expect("a mode");
        let said = bound(&inner.join("clresolve.sock")).await.map(drop);
        assert_eq!(said.is_ok(), is_good, "{mode:o} above: {said:?}");
    }
}

/// What others may open they may lock, so that must hold nobody up.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_else_keeps_a_daemon_from_its_socket_and_two_of_one_user_wait_for_each_other() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (path, lock) = (folder.path().join("clresolve.sock"), folder.path().join("clresolve.sock.lock"));
    let others = File::open(folder.path()).expect("a folder");
    others.lock().expect("a lock");
    bound(&path).await.map(drop).expect("the folder's lock is nobody's business");
    assert_eq!(fs::metadata(&lock).expect("a file").permissions().mode() & 0o777, 0o600);

    let first = File::open(&lock).expect("a file");
    first.lock().expect("a lock");
    let (bound_soon, ()) = tokio::join!(bound(&path), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        drop(first);
    });
    bound_soon.map(drop).expect("it waits for the first");

    let endless = File::open(&lock).expect("a file");
    endless.lock().expect("a lock");
    assert!(bound(&path).await.map(drop).expect_err("it ends").contains("another daemon of this user"));
    drop(endless);

    let target = folder.path().join("target");
    fs::remove_file(&lock).expect("a file");
    std::os::unix::fs::symlink(&target, &lock).expect("a link");
    assert!(bound(&path).await.is_err(), "a link is not followed");
    assert!(!target.exists());
}
