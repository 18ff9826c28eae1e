//! The interface through which the admin socket calls the program that embeds the daemon.

use std::collections::BTreeMap;
use std::path::PathBuf;

use async_trait::async_trait;
use serde_json::Value;

use super::reload::StartupSetting;

/// The result of reloading the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReloadOutcome {
    /// The file that was read.
    pub file: PathBuf,
    /// Whether the file is identical to the configuration already in force. If so, the operator has probably edited
    /// another file.
    pub is_unchanged: bool,
    /// The changed keys that require a restart.
    pub restart: Vec<StartupSetting>,
}

/// The program that embeds the daemon, as the admin socket calls it.
#[async_trait]
pub trait DaemonOperator: Send + Sync {
    /// Reads the configuration again and puts it in force.
    ///
    /// # Errors
    /// Describes why the previous configuration stays in force.
    async fn reload_config(&self) -> Result<ReloadOutcome, String>;

    /// The settings in force by key, without secrets.
    async fn settings_in_force(&self) -> BTreeMap<String, Value>;

    /// The current log filter.
    fn log_filter(&self) -> String;

    /// Installs a log filter: levels, and levels per target.
    ///
    /// # Errors
    /// Describes what is wrong with the filter. The previous filter stays in force.
    fn set_log_filter(&self, filter: &str) -> Result<(), String>;
}
