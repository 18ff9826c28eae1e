//! `[follow]`: how the daemon keeps its cache in step with the chain.

use std::time::Duration;

use super::keys::{One, table};
use super::value::Time;

table! {
    /// How the daemon follows the chain. The library and the other commands do not follow it: they ask once.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    config FollowConfig;
    /// `[follow]` in one source.
    layer FollowLayer;

    /// Whether the daemon polls the endpoints for new blocks and evicts names whose records changed.
    enabled: bool = true;
    /// Poll interval of the operator's own endpoints. The daemon learns of a change within about this time. The default
    /// closes the gate within a second of the block.
    poll: Duration = Duration::from_millis(500), [with = "One::<Time>"];
    /// Poll interval of all other endpoints. The default polls a public endpoint three times per mainnet block.
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
