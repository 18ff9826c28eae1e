//! `[memory]`: what is remembered of names, and where.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What is remembered of names. Without a path nothing is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryConfig {
    /// The file.
    pub path: Option<PathBuf>,
    /// Most names remembered. One takes some two kilobytes.
    pub names: u64,
    /// A record that changed within so many blocks is reported; 0 reports none. The default is about a day.
    pub record_rest: u64,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self { path: None, names: 10_000, record_rest: 7200 }
    }
}

/// `[memory]`, as far as a layer names its keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
#[non_exhaustive]
pub struct MemoryLayer {
    /// The file; an empty path is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Most names remembered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<u64>,
    /// For how many blocks a record must not have changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record_rest: Option<u64>,
}

impl MemoryLayer {
    pub(super) fn lay(self, over: &mut MemoryConfig) {
        if let Some(path) = self.path {
            over.path = Some(path).filter(|path| !path.as_os_str().is_empty());
        }
        over.names = self.names.unwrap_or(over.names);
        over.record_rest = self.record_rest.unwrap_or(over.record_rest);
    }

    /// The layer that makes `config` out of the default one.
    pub(super) fn of(config: &MemoryConfig) -> Self {
        Self { path: config.path.clone(), names: Some(config.names), record_rest: Some(config.record_rest) }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use crate::config::{Config, Layer};

    #[test]
    fn every_key_is_read_and_written_and_an_empty_path_is_none() {
        let text = "[memory]\npath = \"m\"\nnames = 5\nrecord-rest = 0\n";
        let config = Config::default().with([Layer::from_toml(text, "f.toml").unwrap()]).unwrap();
        assert_eq!(config.memory.path.as_deref(), Some(Path::new("m")));
        assert_eq!((config.memory.names, config.memory.record_rest), (5, 0));
        assert_eq!(Config::default().with([Layer::of(&config)]).unwrap(), config);
        let none = Layer::from_toml("[memory]\npath = \"\"\n", "f.toml").unwrap();
        assert_eq!(config.with([none]).unwrap().memory.path, None::<PathBuf>);
    }
}
