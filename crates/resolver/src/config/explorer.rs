//! `[explorer]`: optional functions of the daemon's web page.

use serde::{Deserialize, Serialize};

/// Optional functions of the daemon's web page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExplorerPageConfig {
    /// Whether the daemon requests payment terms from a seller when a client asks for them. Off by default, so that the
    /// daemon does not connect to sellers. If it is on, the page also accepts the URL of any seller, so that its users
    /// choose which hosts the daemon contacts. The sandbox switches it on, since it runs its own sellers.
    pub probe: bool,
}

#[cfg(test)]
mod tests {
    use crate::config::testing::parse_over_defaults;

    #[test]
    fn no_seller_is_asked_by_default() {
        assert!(!parse_over_defaults("").expect("defaults").explorer.probe);
        assert!(parse_over_defaults("[explorer]\nprobe = true").expect("a switch").explorer.probe);
        assert!(parse_over_defaults("[explorer]\nprobes = true").is_err());
    }
}
