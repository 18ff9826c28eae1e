//! `[http]` and `[gate]`: where the daemon listens, and how much it lets anybody ask.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Grade, parse_duration};

/// The daemon's listener and its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpConfig {
    /// Where it listens. Loopback by default: who may ask is for whoever opens it further to decide.
    pub listen: SocketAddr,
    /// Most connections at once. The default leaves room below the usual limit of 1,024 files for the outbound side.
    pub connections: usize,
    /// Most requests in work at once; more are refused rather than queued.
    pub requests: usize,
    /// Most runs under way at once for names that are not in the cache. Each holds a few upstream connections.
    pub cold_runs: usize,
    /// Most such runs that one client may cause per minute: a client with a list of names does not use up the quota
    /// of the RPC endpoints for all others.
    pub cold_runs_per_minute: u32,
    /// Longest time that the head of a request, or its body, may take to arrive; also how long a connection may idle,
    /// and how long a reader may take nothing. A proxy in front must give up idle connections sooner, or it meets one
    /// that is being closed.
    pub read_timeout: Duration,
    /// How long the daemon, asked to end, still answers new connections, with `readyz` saying 503: the time for a load
    /// balancer to see it.
    pub drain_notice: Duration,
    /// Longest time after that for requests in work.
    pub drain: Duration,
}

/// The gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GateConfig {
    /// Longest time to an answer; past it the gate refuses. Envoy waits 200 ms for it, hence the default of 150 ms.
    pub deadline: Duration,
    /// The weakest grade of proof with which it lets pass. `None`: any, but one stranger's word.
    pub min_proof: Option<Grade>,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8402)),
            connections: 768,
            requests: 512,
            cold_runs: 32,
            cold_runs_per_minute: 600,
            read_timeout: Duration::from_secs(30),
            drain_notice: Duration::from_secs(1),
            drain: Duration::from_secs(20),
        }
    }
}

impl Default for GateConfig {
    fn default() -> Self {
        Self { deadline: Duration::from_millis(150), min_proof: None }
    }
}

/// `[http]`, as far as a layer names its keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
#[non_exhaustive]
pub struct HttpLayer {
    /// Where the daemon listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
    /// Most connections at once.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "positive")]
    pub connections: Option<usize>,
    /// Most requests at once.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "positive")]
    pub requests: Option<usize>,
    /// Most runs at once.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "positive")]
    pub cold_runs: Option<usize>,
    /// Most runs of one client per minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cold_runs_per_minute: Option<u32>,
    /// Longest time for a request to arrive.
    #[serde(skip_serializing_if = "Option::is_none", with = "duration")]
    pub read_timeout: Option<Duration>,
    /// How long an end is announced.
    #[serde(skip_serializing_if = "Option::is_none", with = "duration")]
    pub drain_notice: Option<Duration>,
    /// How long an end is put off for requests in work.
    #[serde(skip_serializing_if = "Option::is_none", with = "duration")]
    pub drain: Option<Duration>,
}

/// `[gate]`, as far as a layer names its keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
#[non_exhaustive]
pub struct GateLayer {
    /// Longest time to an answer.
    #[serde(skip_serializing_if = "Option::is_none", with = "duration")]
    pub deadline: Option<Duration>,
    /// The weakest grade of proof with which it lets pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_proof: Option<Grade>,
}

impl HttpLayer {
    pub(super) fn over(self, below: HttpConfig) -> HttpConfig {
        HttpConfig {
            listen: self.listen.unwrap_or(below.listen),
            connections: self.connections.unwrap_or(below.connections),
            requests: self.requests.unwrap_or(below.requests),
            cold_runs: self.cold_runs.unwrap_or(below.cold_runs),
            cold_runs_per_minute: self.cold_runs_per_minute.unwrap_or(below.cold_runs_per_minute),
            read_timeout: self.read_timeout.unwrap_or(below.read_timeout),
            drain_notice: self.drain_notice.unwrap_or(below.drain_notice),
            drain: self.drain.unwrap_or(below.drain),
        }
    }

    /// The layer that makes `config` out of any other.
    pub(super) const fn of(config: HttpConfig) -> Self {
        Self {
            listen: Some(config.listen),
            connections: Some(config.connections),
            requests: Some(config.requests),
            cold_runs: Some(config.cold_runs),
            cold_runs_per_minute: Some(config.cold_runs_per_minute),
            read_timeout: Some(config.read_timeout),
            drain_notice: Some(config.drain_notice),
            drain: Some(config.drain),
        }
    }
}

impl GateLayer {
    pub(super) fn over(self, below: GateConfig) -> GateConfig {
        GateConfig { deadline: self.deadline.unwrap_or(below.deadline), min_proof: self.min_proof.or(below.min_proof) }
    }

    /// The layer that makes `config` out of any other.
    pub(super) const fn of(config: GateConfig) -> Self {
        Self { deadline: Some(config.deadline), min_proof: config.min_proof }
    }
}

/// A number above zero: a limit of nothing would be a daemon that answers nobody.
fn positive<'de, D: Deserializer<'de>>(d: D) -> Result<Option<usize>, D::Error> {
    match u32::deserialize(d)? {
        0 => Err(serde::de::Error::custom("expected a number above 0")),
        number => Ok(usize::try_from(number).ok()),
    }
}

mod duration {
    use super::*;

    pub(super) fn serialize<S: Serializer>(value: &Option<Duration>, s: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => s.collect_str(&humantime::format_duration(*value)),
            None => s.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Duration>, D::Error> {
        let text = String::deserialize(d)?;
        parse_duration(&text).map(Some).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, Layer};

    const FULL: &str = r#"
[http]
listen = "127.0.0.1:9000"
connections = 1
requests = 2
cold-runs = 3
cold-runs-per-minute = 0
read-timeout = "4s"
drain-notice = "5ms"
drain = "6s"

[gate]
deadline = "100ms"
"#;

    #[test]
    fn every_key_is_read_and_written() {
        let config = Config::default().with([Layer::from_toml(FULL, "f.toml").unwrap()]).unwrap();
        assert_eq!(config.http.listen.port(), 9000);
        assert_eq!((config.http.connections, config.http.requests, config.http.cold_runs), (1, 2, 3));
        assert_eq!(config.http.cold_runs_per_minute, 0);
        assert_eq!(config.gate.deadline.as_millis(), 100);
        let layer = Layer::of(&config);
        assert_eq!(Config::default().with([layer]).unwrap(), config);
    }

    #[test]
    fn unknown_keys_and_limits_of_nothing_are_refused() {
        for text in ["[http]\nlisen = 1", "[http]\nrequests = 0", "[gate]\ndeadline = \"0s\"", "[http]\nlisten = \"x\""]
        {
            assert!(Layer::from_toml(text, "f.toml").is_err(), "{text}");
        }
    }
}
