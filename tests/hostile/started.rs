//! The daemon as a process of its own.

use std::io::BufReader;
use std::process::{Child, ChildStderr};

use clresolve::config::Config;

use crate::serve::{Served, serve};

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
