//! The daemon as a process of its own.

use std::io::BufReader;
use std::process::{Child, ChildStderr};

use clresolve_resolver::config::Config;

use crate::support::serve::{Served, serve};

/// Most memory that attacks may add to the idle daemon's.
const MOST_ABOVE_IDLE_KIB: u64 = 64 << 10;

/// A daemon that listens. Nothing ends it when this is dropped.
pub(crate) struct Started {
    pub(crate) child: Child,
    /// Host and port that it said.
    pub(crate) address: String,
    /// The rest of its log. A daemon must not wait for its reader.
    pub(crate) log: BufReader<ChildStderr>,
    /// The folder of its configuration.
    pub(crate) folder: tempfile::TempDir,
}

impl Started {
    /// Starts it with a configuration and nothing in its environment but these variables.
    pub(crate) fn with<const N: usize>(config: &Config, variables: [(&str, String); N]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("daemon.toml");
        config.save(&path).unwrap();
        let Served { child, address, log } = serve(&["--config", &path.display().to_string()], variables);
        let address = address.to_string();
        Self { child, address, log, folder }
    }
}

/// Most memory that a process ever had in use, in KiB.
pub(crate) fn peak(child: &Child) -> u64 {
    memory(child, "VmHWM:")
}

/// The memory that a process has in use, in KiB.
pub(crate) fn now(child: &Child) -> u64 {
    memory(child, "VmRSS:")
}

fn memory(child: &Child, row: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(row)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Memory that a daemon may keep after the attacks, above the idle one's: what the allocator has not given back yet.
const MOST_KEPT_KIB: u64 = 32 << 10;

/// That a daemon has given back what was done to it took.
#[track_caller]
pub(crate) fn gives_back(what: &str, idle: u64, now: u64) {
    let kept = now.saturating_sub(idle);
    println!("{what}: {kept} KiB kept");
    assert!(kept <= MOST_KEPT_KIB, "{what}: {kept} KiB are kept");
}

/// That what was done to a daemon has cost at most [`MOST_ABOVE_IDLE_KIB`].
#[track_caller]
pub(crate) fn holds(what: &str, idle: u64, peak: u64) {
    let above = peak - idle;
    println!("{what}: idle {idle} KiB, peak {peak} KiB, {above} KiB more");
    assert!(above <= MOST_ABOVE_IDLE_KIB, "{what}: {above} KiB above idle");
}
