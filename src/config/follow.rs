//! `[follow]`: how the daemon keeps its cache up with the chain.

use std::time::Duration;

use super::keys::{One, table};
use super::value::Time;

table! {
    /// How the daemon follows the chain. A library and the other commands do not: they ask once.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    config FollowConfig;
    /// `[follow]`, as one source names its keys.
    layer FollowLayer;

    /// Whether the endpoints are asked for new blocks, so that a change on chain evicts.
    enabled: bool = true;
    /// Time between two questions to an endpoint of the operator's own. A change is known within about this time: short
    /// enough that the gate is closed within a second of the block.
    poll: Duration = Duration::from_millis(500), [with = "One::<Time>"];
    /// The same for any other endpoint: three times a block of mainnet, so that a public one is not burdened.
    poll_public: Duration = Duration::from_secs(4), [with = "One::<Time>"];
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, Layer};

    #[test]
    fn every_key_is_read_and_written() {
        let text = "[follow]\nenabled = false\npoll = \"250ms\"\npoll-public = \"12s\"";
        let config = Config::default().with([Layer::from_toml(text, "f.toml").unwrap()]).unwrap();
        assert!(!config.follow.enabled && Config::default().follow.enabled);
        assert_eq!((config.follow.poll.as_millis(), config.follow.poll_public.as_secs()), (250, 12));
        assert_eq!(Config::default().with([Layer::of(&config)]).unwrap(), config);
        let text = "[[rpc]]\nurl = \"http://127.0.0.1:8545\"\nws = \"ws://127.0.0.1:8546/SECRET\"";
        let config = Config::default().with([Layer::from_toml(text, "f.toml").unwrap()]).unwrap();
        assert_eq!(config.chain.endpoints[0].ws.as_ref().map(url::Url::as_str), Some("ws://127.0.0.1:8546/SECRET"));
        assert_eq!(Config::default().with([Layer::of(&config)]).unwrap(), config);
        assert!(Layer::from_toml("[follow]\npoll = \"0s\"", "f.toml").is_err());
    }
}
