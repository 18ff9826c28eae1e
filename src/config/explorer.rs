//! `[explorer]`: what the daemon does for its page.

use super::keys::table;

table! {
    /// What the daemon does for its page.
    #[derive(Clone, Debug, PartialEq, Eq)]
    config ExplorerConfig;
    /// `[explorer]`, as one source names its keys.
    layer ExplorerLayer;

    /// Whether sellers are asked for their payment terms when a client wants it. Off by default: the daemon then opens no
    /// connection to a seller. The sandbox, which has its sellers itself, switches it on.
    probe: bool = false;
}

#[cfg(test)]
mod tests {
    use crate::config::testing::read;

    #[test]
    fn no_seller_is_asked_by_default() {
        assert!(!read("").expect("defaults").explorer.probe);
        assert!(read("[explorer]\nprobe = true").expect("a switch").explorer.probe);
        assert!(read("[explorer]\nprobes = true").is_err());
    }
}
