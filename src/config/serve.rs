//! `[http]` and `[gate]`: where the daemon listens, and how much it lets anybody ask.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{GateConfig, Grade, parse_duration};
use crate::reason::{Code, Effect};
use crate::text::Foreign;

/// Most headers of a request that can be configured. No proxy sends as many.
pub const MAX_HEADERS: usize = 256;

/// The daemon's listener and its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpConfig {
    /// Where it listens. Loopback by default: who may ask is for whoever opens it further to decide.
    pub listen: SocketAddr,
    /// Most connections at once. The default leaves room below the usual limit of 1,024 files for the outbound side.
    pub connections: usize,
    /// Most connections of one client (an address, or the first 64 bits of one of IPv6); more are closed at once. Above
    /// what a proxy in front keeps open, and so far below `connections` that one client leaves room for others.
    pub connections_per_client: usize,
    /// Most requests in work at once; more are refused rather than queued.
    pub requests: usize,
    /// Most runs under way at once for names that are not in the cache. Each holds a few upstream connections.
    pub cold_runs: usize,
    /// Most such runs of one client at once: a client that knows slow names does not take all runs.
    pub cold_runs_per_client: usize,
    /// Most such runs that one client may cause per minute: a client with a list of names does not use up the quota
    /// of the RPC endpoints for all others.
    pub cold_runs_per_minute: u32,
    /// Longest head of a request, in bytes.
    pub head_bytes: usize,
    /// Most headers of a request.
    pub headers: usize,
    /// Longest body that is read, in bytes.
    pub body_bytes: usize,
    /// How long a connection may idle before a request. A proxy in front must give up idle connections sooner, or it
    /// meets one that is being closed.
    pub idle_timeout: Duration,
    /// Longest time from the first byte of a request's head to its last.
    pub head_timeout: Duration,
    /// Longest time that the body of a request may take to arrive, and how long a reader may take nothing.
    pub read_timeout: Duration,
    /// How long the daemon, asked to end, still answers new connections, with `readyz` saying 503: the time for a load
    /// balancer to see it.
    pub drain_notice: Duration,
    /// Longest time after that for requests in work.
    pub drain: Duration,
    /// Whether hosts that a client names are asked for their cards. Off by default: the daemon then opens no connection
    /// that a client alone chose.
    pub discover: bool,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8402)),
            connections: 768,
            connections_per_client: 256,
            requests: 512,
            cold_runs: 32,
            cold_runs_per_client: 16,
            cold_runs_per_minute: 600,
            head_bytes: 16 * 1024,
            headers: 64,
            body_bytes: 64 * 1024,
            idle_timeout: Duration::from_secs(75),
            head_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(30),
            drain_notice: Duration::from_secs(1),
            drain: Duration::from_secs(20),
            discover: false,
        }
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
    /// Most connections of one client.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "positive")]
    pub connections_per_client: Option<usize>,
    /// Most requests at once.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "positive")]
    pub requests: Option<usize>,
    /// Most runs at once.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "positive")]
    pub cold_runs: Option<usize>,
    /// Most runs of one client at once.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "positive")]
    pub cold_runs_per_client: Option<usize>,
    /// Most runs of one client per minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cold_runs_per_minute: Option<u32>,
    /// Longest head of a request.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "head_bytes")]
    pub head_bytes: Option<usize>,
    /// Most headers of a request.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "headers")]
    pub headers: Option<usize>,
    /// Longest body.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "positive")]
    pub body_bytes: Option<usize>,
    /// How long a connection may idle.
    #[serde(skip_serializing_if = "Option::is_none", with = "duration")]
    pub idle_timeout: Option<Duration>,
    /// Longest time for a head to arrive.
    #[serde(skip_serializing_if = "Option::is_none", with = "duration")]
    pub head_timeout: Option<Duration>,
    /// Longest time for a body to arrive.
    #[serde(skip_serializing_if = "Option::is_none", with = "duration")]
    pub read_timeout: Option<Duration>,
    /// How long an end is announced.
    #[serde(skip_serializing_if = "Option::is_none", with = "duration")]
    pub drain_notice: Option<Duration>,
    /// How long an end is put off for requests in work.
    #[serde(skip_serializing_if = "Option::is_none", with = "duration")]
    pub drain: Option<Duration>,
    /// Whether hosts that a client names are asked for their cards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discover: Option<bool>,
}

/// `[gate]`, as far as a layer names its keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
#[non_exhaustive]
pub struct GateLayer {
    /// Longest time to an answer.
    #[serde(skip_serializing_if = "Option::is_none", with = "duration")]
    pub deadline: Option<Duration>,
    /// Warnings on which it refuses.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "warnings")]
    pub deny: Option<Vec<Code>>,
    /// The weakest grade of proof with which it lets pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_proof: Option<Grade>,
}

impl HttpLayer {
    pub(super) fn over(self, below: HttpConfig) -> HttpConfig {
        HttpConfig {
            listen: self.listen.unwrap_or(below.listen),
            connections: self.connections.unwrap_or(below.connections),
            connections_per_client: self.connections_per_client.unwrap_or(below.connections_per_client),
            requests: self.requests.unwrap_or(below.requests),
            cold_runs: self.cold_runs.unwrap_or(below.cold_runs),
            cold_runs_per_client: self.cold_runs_per_client.unwrap_or(below.cold_runs_per_client),
            cold_runs_per_minute: self.cold_runs_per_minute.unwrap_or(below.cold_runs_per_minute),
            head_bytes: self.head_bytes.unwrap_or(below.head_bytes),
            headers: self.headers.unwrap_or(below.headers),
            body_bytes: self.body_bytes.unwrap_or(below.body_bytes),
            idle_timeout: self.idle_timeout.unwrap_or(below.idle_timeout),
            head_timeout: self.head_timeout.unwrap_or(below.head_timeout),
            read_timeout: self.read_timeout.unwrap_or(below.read_timeout),
            drain_notice: self.drain_notice.unwrap_or(below.drain_notice),
            drain: self.drain.unwrap_or(below.drain),
            discover: self.discover.unwrap_or(below.discover),
        }
    }

    /// The layer that makes `config` out of any other.
    pub(super) const fn of(config: HttpConfig) -> Self {
        Self {
            listen: Some(config.listen),
            connections: Some(config.connections),
            connections_per_client: Some(config.connections_per_client),
            requests: Some(config.requests),
            cold_runs: Some(config.cold_runs),
            cold_runs_per_client: Some(config.cold_runs_per_client),
            cold_runs_per_minute: Some(config.cold_runs_per_minute),
            head_bytes: Some(config.head_bytes),
            headers: Some(config.headers),
            body_bytes: Some(config.body_bytes),
            idle_timeout: Some(config.idle_timeout),
            head_timeout: Some(config.head_timeout),
            read_timeout: Some(config.read_timeout),
            drain_notice: Some(config.drain_notice),
            drain: Some(config.drain),
            discover: Some(config.discover),
        }
    }
}

impl GateLayer {
    pub(super) fn lay(self, over: &mut GateConfig) {
        over.deadline = self.deadline.unwrap_or(over.deadline);
        over.policy.min_proof = self.min_proof.or(over.policy.min_proof);
        if let Some(deny) = self.deny {
            over.policy.deny = deny;
        }
    }

    /// The layer that makes `config` out of any other.
    pub(super) fn of(config: &GateConfig) -> Self {
        let GateConfig { deadline, policy } = config;
        Self { deadline: Some(*deadline), deny: Some(policy.deny.clone()), min_proof: policy.min_proof }
    }
}

/// Codes of warnings: whatever fails or cannot be decided is refused without being named.
fn warnings<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Vec<Code>>, D::Error> {
    let refused = |slug: &str, why: &str| serde::de::Error::custom(format!("{} {why}", Foreign::new(slug)));
    let code = |slug: &String| match Code::from_slug(slug) {
        None => Err(refused(slug, "is no reason code; `clresolve explain` lists all")),
        Some(code) if !code.is_of_verdicts() => {
            Err(refused(slug, "never stands in a verdict, so the gate never sees it"))
        }
        Some(code) if code.entry().effect != Effect::Warn => {
            Err(refused(slug, "is no warning; the gate refuses on it anyway"))
        }
        Some(code) => Ok(code),
    };
    Vec::<String>::deserialize(d)?.iter().map(code).collect::<Result<_, _>>().map(Some)
}

/// Bytes of a head: a proxy's own headers and a name fit in the least, and no server in front passes on the most.
const HEAD_BYTES: RangeInclusive<usize> = 1024..=64 * 1024;

/// Headers of a request; the daemon's parser has room for the most.
const HEADERS: RangeInclusive<usize> = 1..=MAX_HEADERS;

fn head_bytes<'de, D: Deserializer<'de>>(d: D) -> Result<Option<usize>, D::Error> {
    within(HEAD_BYTES, d)
}

fn headers<'de, D: Deserializer<'de>>(d: D) -> Result<Option<usize>, D::Error> {
    within(HEADERS, d)
}

fn within<'de, D: Deserializer<'de>>(range: RangeInclusive<usize>, d: D) -> Result<Option<usize>, D::Error> {
    let number = usize::deserialize(d)?;
    if range.contains(&number) {
        return Ok(Some(number));
    }
    let (least, most) = range.into_inner();
    Err(serde::de::Error::custom(format!("expected a number from {least} to {most}")))
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
    use super::Code;
    use crate::config::{Config, Layer};

    const FULL: &str = r#"
[http]
listen = "127.0.0.1:9000"
connections = 1
connections-per-client = 7
requests = 2
cold-runs = 3
cold-runs-per-client = 8
cold-runs-per-minute = 0
head-bytes = 2048
headers = 9
body-bytes = 10
idle-timeout = "11s"
head-timeout = "12s"
read-timeout = "4s"
drain-notice = "5ms"
drain = "6s"
discover = true

[gate]
deadline = "100ms"
deny = ["record-recent"]

[memory]
path = "memory"
"#;

    #[test]
    fn every_key_is_read_and_written() {
        let config = Config::default().with([Layer::from_toml(FULL, "f.toml").unwrap()]).unwrap();
        assert_eq!(config.http.listen.port(), 9000);
        assert_eq!((config.http.connections, config.http.requests, config.http.cold_runs), (1, 2, 3));
        assert_eq!(config.http.cold_runs_per_minute, 0);
        assert_eq!((config.http.connections_per_client, config.http.cold_runs_per_client), (7, 8));
        assert_eq!((config.http.head_bytes, config.http.headers, config.http.body_bytes), (2048, 9, 10));
        assert_eq!((config.http.idle_timeout.as_secs(), config.http.head_timeout.as_secs()), (11, 12));
        assert!(config.http.discover && !Config::default().http.discover);
        assert_eq!(config.gate.deadline.as_millis(), 100);
        assert_eq!(config.gate.policy.deny, [Code::RecordRecent]);
        let layer = Layer::of(&config);
        assert_eq!(Config::default().with([layer]).unwrap(), config);
    }

    #[test]
    fn what_only_a_memory_tells_is_denied_with_a_memory_alone() {
        let without = Layer::from_toml("[gate]\ndeny = [\"version-rollback\"]", "f.toml").unwrap();
        let error = Config::default().with([without]).unwrap().check_gate().unwrap_err();
        assert!(error.to_string().contains("set memory.path"), "{error}");
        let other = Layer::from_toml("[gate]\ndeny = [\"status-deprecated\"]", "f.toml").unwrap();
        assert!(Config::default().with([other]).unwrap().check_gate().is_ok());
    }

    #[test]
    fn unknown_keys_and_limits_of_nothing_are_refused() {
        for text in [
            "[http]\nlisen = 1",
            "[http]\nrequests = 0",
            "[http]\nconnections-per-client = 0",
            "[http]\nhead-bytes = 1023",
            "[http]\nhead-bytes = 65537",
            "[http]\nheaders = 257",
            "[gate]\ndeny = [\"record-old\"]",
            "[gate]\ndeny = [\"cid-mismatch\"]",
            "[gate]\ndeny = [\"ae-unknown-member\"]",
            "[gate]\ndeadline = \"0s\"",
            "[http]\nlisten = \"x\"",
        ] {
            assert!(Layer::from_toml(text, "f.toml").is_err(), "{text}");
        }
    }
}
