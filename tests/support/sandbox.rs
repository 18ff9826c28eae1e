//! The embedded world in a process of its own, for programs that ask it more than once, and reports as `audit` writes
//! them.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};

use clresolve_core::digest::Digest;
use serde_json::Value;
use tempfile::TempDir;

use super::program::{BINARY, program};

/// The embedded world in a process of its own, and its configuration.
pub(crate) struct Served {
    child: std::process::Child,
    folder: TempDir,
}

impl Served {
    pub(crate) fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let mut command = Command::new(BINARY);
        command.args(["sandbox", "--write-config"]).arg(folder.path().join("clresolve.toml"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the binary runs");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let is_there = lines.any(|line| line.is_ok_and(|line| line.contains("Ask it")));
        assert!(is_there, "it says how it is asked");
        Self { child, folder }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program();
        command.args(["--config", &self.path("clresolve.toml")]).args(arguments);
        command
    }

    pub(crate) fn clresolve(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the binary runs")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A report as `audit` seals it: the digest of the lines above it.
pub(crate) fn sealed(report: &Value) -> String {
    let mut report = report.clone();
    report.as_object_mut().expect("an object").remove("digest");
    let lines = report.to_string();
    let lines = format!("{},\n", lines.strip_suffix('}').expect("an object"));
    format!("{lines}\"digest\": \"{}\"\n}}\n", Digest::compute(lines.as_bytes()))
}

pub(crate) fn json_of(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(bytes)))
}
