//! `[receipts]`: how the daemon treats receipts.

use super::keys::table;

table! {
    /// How the daemon treats receipts.
    #[derive(Clone, Debug, PartialEq, Eq)]
    config ReceiptsConfig;
    /// `[receipts]` in one source.
    layer ReceiptsLayer;

    /// Whether `POST /v1/receipts/verify` marks receipts as seen. Requires `memory.path`. Any client of this route can
    /// use up a receipt that it possesses, so only the operator's own programs should reach it.
    remember: bool = false;
}

#[cfg(test)]
mod tests {
    use crate::config::testing::read;
    use crate::config::{Config, ConfigError, Layer};

    #[test]
    fn receipts_are_remembered_where_there_is_a_memory() {
        let config = read("[memory]\npath = \"m\"\n[receipts]\nremember = true\n").unwrap();
        assert!(config.receipts.remember && !Config::default().receipts.remember);
        assert_eq!(Config::default().with([Layer::of(&config)]).unwrap(), config);
        let Err(ConfigError::Conflict { key, .. }) = read("[receipts]\nremember = true\n") else {
            panic!("nothing could be remembered");
        };
        assert_eq!(key, "receipts.remember");
    }
}
