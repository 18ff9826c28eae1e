//! The program around a daemon, as its operator asks it.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde_json::Value;

use super::reload::Restart;

/// The program around a daemon, as its operator asks it through the admin socket.
#[async_trait]
pub trait Operator: Send + Sync {
    /// Reads the configuration again and puts it in force. Gives the keys that take a restart.
    ///
    /// # Errors
    /// Says why the configuration stays as it was.
    async fn reload(&self) -> Result<Vec<Restart>, String>;

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
