//! The daemon as a process of its own.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};

use clresolve::config::Config;

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
        let mut command = Command::new(env!("CARGO_BIN_EXE_clresolve"));
        command.args(["serve", "--config"]).arg(&path).env_clear().envs(variables);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        // What its endpoints are worth, it may say before.
        let address = loop {
            line.clear();
            assert_ne!(log.read_line(&mut line).unwrap(), 0, "it ended before it listened");
            if let Some((_, address)) = line.split_once("listening on http://") {
                break address.trim().to_owned();
            }
        };
        Self { child, address, log, folder }
    }
}
