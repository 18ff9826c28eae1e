//! `[explorer]`: optional functions of the daemon's web page.

use super::keys::table;

table! {
    /// Optional functions of the daemon's web page.
    #[derive(Clone, Debug, PartialEq, Eq)]
    config ExplorerConfig;
    /// `[explorer]` in one source.
    layer ExplorerLayer;

    /// Whether the daemon requests payment terms from a seller when a client asks for them. Off by default, so that the
    /// daemon does not connect to sellers. If it is on, the page also accepts the URL of any seller, so that its users
    /// choose which hosts the daemon contacts. The sandbox switches it on, since it runs its own sellers.
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
