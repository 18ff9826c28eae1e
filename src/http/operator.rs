//! The program around a daemon, as its operator asks it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use async_trait::async_trait;
use serde_json::Value;

use super::reload::Restart;

/// A configuration that was read again and is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reread {
    /// The file that was read.
    pub file: PathBuf,
    /// Whether its bytes are the ones already in force. Then the file that was edited is another one.
    pub is_unchanged: bool,
    /// The keys that were changed and take a restart.
    pub restart: Vec<Restart>,
}

/// The program around a daemon, as its operator asks it through the admin socket.
#[async_trait]
pub trait Operator: Send + Sync {
    /// Reads the configuration again and puts it in force.
    ///
    /// # Errors
    /// Says why the configuration stays as it was.
    async fn reload(&self) -> Result<Reread, String>;

    /// The settings in force by their keys, without secrets.
    async fn settings(&self) -> BTreeMap<String, Value>;

    /// The filter of the log in force.
    fn log_filter(&self) -> String;

    /// Puts a filter of the log in force: levels, and levels of targets.
    ///
    /// # Errors
    /// Says what is wrong with it, and then the one before stays.
    fn set_log_filter(&self, filter: &str) -> Result<(), String>;
}
