//! `[memory]`: what is remembered about names and sellers, and in which file.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::text;

/// What is remembered about names. Without a path, nothing is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ResolverMemoryConfig {
    /// The file. An empty path means no memory.
    #[serde(with = "text::or_empty")]
    pub path: Option<PathBuf>,
    /// Maximum number of names, and of sellers' origins. A name uses about 2 kB, an origin about 500 bytes.
    pub names: u64,
    /// Number of receipts: about five hundred bytes each.
    pub receipts: u64,
    /// A record that changed within this number of blocks is reported; 0 disables the report. The default is about a
    /// day.
    pub record_rest: u64,
}

impl Default for ResolverMemoryConfig {
    fn default() -> Self {
        Self { path: None, names: 10_000, receipts: 65_536, record_rest: 7200 }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use crate::config::{Config, ConfigLayer};

    #[test]
    fn every_key_is_read_and_written_and_an_empty_path_is_none() {
        let text = "[memory]\npath = \"m\"\nnames = 5\nreceipts = 6\nrecord-rest = 0\n";
        let config = Config::default().with_layers([ConfigLayer::from_toml(text, "f.toml").unwrap()]).unwrap();
        assert_eq!(config.memory.path.as_deref(), Some(Path::new("m")));
        assert_eq!((config.memory.names, config.memory.receipts, config.memory.record_rest), (5, 6, 0));
        assert_eq!(Config::default().with_layers([ConfigLayer::from_config(&config).unwrap()]).unwrap(), config);
        let none = ConfigLayer::from_toml("[memory]\npath = \"\"\n", "f.toml").unwrap();
        assert_eq!(config.with_layers([none]).unwrap().memory.path, None::<PathBuf>);
    }
}
