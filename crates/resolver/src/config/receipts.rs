//! `[receipts]`: how the daemon treats receipts.

use serde::{Deserialize, Serialize};

/// How the daemon treats receipts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReceiptReplayConfig {
    /// Whether `POST /v1/receipts/verify` marks receipts as seen. Requires `memory.path`. Any client of this route can
    /// use up a receipt that it possesses, so only the operator's own programs should reach it.
    pub remember: bool,
}

#[cfg(test)]
mod tests {
    use crate::config::testing::parse_over_defaults;
    use crate::config::{Config, ConfigError, ConfigLayer};

    #[test]
    fn receipts_are_remembered_where_there_is_a_memory() {
        let config = parse_over_defaults("[memory]\npath = \"m\"\n[receipts]\nremember = true\n").unwrap();
        assert!(config.receipts.remember && !Config::default().receipts.remember);
        assert_eq!(Config::default().with_layers([ConfigLayer::from_config(&config).unwrap()]).unwrap(), config);
        let Err(ConfigError::Conflict { key, .. }) = parse_over_defaults("[receipts]\nremember = true\n") else {
            panic!("nothing could be remembered");
        };
        assert_eq!(key, "receipts.remember");
    }
}
