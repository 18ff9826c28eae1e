//! The configuration keys as `deploy/config.prod.toml` documents them, read as the program reads them for its manual.

use std::path::{Path, PathBuf};

#[path = "../../src/cli/man/keys.rs"]
mod keys;

pub(crate) use keys::ConfigKeyDocumentation;

pub(crate) fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(name)
}

/// The keys in the order of the file.
pub(crate) fn documented() -> Vec<ConfigKeyDocumentation> {
    keys::parse_documented_keys(&std::fs::read_to_string(shipped("config.prod.toml")).expect("the file is there"))
}
