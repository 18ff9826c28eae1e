//! The Node scripts beside this file: installing what they need, starting them, and stopping them.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// A service that is not ready by then never will be; a slow machine needs about ten seconds.
const READY_WITHIN: Duration = Duration::from_secs(120);

/// A running script. It ends when its standard input closes: with this value or with the process.
pub(crate) struct Service {
    _stdin: ChildStdin,
    /// What it printed when it was ready.
    pub(crate) ready: Value,
}

impl Service {
    /// Starts `script` with `arguments` and waits until it is ready.
    pub(crate) fn start(script: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new(node())
            .arg(folder().join(script))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("{script} does not start: {e}"));
        let stdin = child.stdin.take().expect("stdin is piped");
        let line = first_line(child).unwrap_or_else(|| panic!("{script} {arguments:?} did not get ready"));
        let ready = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{script} printed {line:?}: {e}"));
        Self { _stdin: stdin, ready }
    }
}

/// Installs the packages of the scripts where they are missing. The error says why that cannot be.
pub(crate) fn install() -> Result<(), String> {
    let lock = File::open(folder().join("package-lock.json")).map_err(|e| format!("package-lock.json: {e}"))?;
    // Several test processes may come here at once.
    lock.lock().map_err(|e| format!("package-lock.json: {e}"))?;
    let output = Command::new("sh").arg(folder().join("install.sh")).output().map_err(|e| format!("sh: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("tests/e2e/install.sh failed: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// The first line that `child` prints. A thread of its own reads on, so that the child never blocks on a full pipe.
fn first_line(mut child: Child) -> Option<String> {
    let stdout = child.stdout.take().expect("stdout is piped");
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            // Only the first line has a reader.
            let _ = sender.send(line);
        }
        // Takes the ended process off the system's table.
        let _ = child.wait();
    });
    receiver.recv_timeout(READY_WITHIN).ok()
}

/// Node 22 from npm where it could be installed, else the one on the `PATH`.
fn node() -> PathBuf {
    let installed = folder().join("node_modules/.bin/node");
    if installed.exists() { installed } else { "node".into() }
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e"))
}
