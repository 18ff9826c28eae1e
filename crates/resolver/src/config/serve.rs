//! `[http]` and `[gate]`: the daemon's listeners and the limits of requests.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use clresolve_core::reason::{ReasonCode, ReasonEffect};
use clresolve_core::text::UntrustedText;
use clresolve_verdict::gate::{DENIED_BY_DEFAULT, GatePolicy, GateVerbs};

use super::{ListenAddress, ProofGrade, text};

/// Largest configurable number of request headers. No proxy sends as many.
pub const MAX_HEADERS: usize = 256;

/// The daemon's listener and its limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct HttpServerConfig {
    /// The address of the listener. Loopback by default: an operator who widens it decides who may ask.
    #[serde(with = "text")]
    pub listen: ListenAddress,
    /// Maximum number of concurrent connections. The default leaves room for outbound connections below the usual limit
    /// of 1,024 open files.
    #[serde(deserialize_with = "deserialize_positive")]
    pub connections: usize,
    /// Maximum number of concurrent connections per client. A client is an IPv4 address, a 64-bit IPv6 prefix, or a
    /// user of a Unix socket. Further connections are closed at once. The default exceeds what a proxy in front keeps
    /// open, and leaves other clients enough of `connections`.
    #[serde(deserialize_with = "deserialize_positive")]
    pub connections_per_client: usize,
    /// Maximum number of concurrent requests. Further ones are rejected rather than queued.
    #[serde(deserialize_with = "deserialize_positive")]
    pub requests: usize,
    /// Maximum number of concurrent resolutions of names that are not in the cache. Each uses a few upstream
    /// connections.
    #[serde(deserialize_with = "deserialize_positive")]
    pub cold_runs: usize,
    /// Maximum number of such resolutions per client, so that a client with slow names does not occupy all of them.
    #[serde(deserialize_with = "deserialize_positive")]
    pub cold_runs_per_client: usize,
    /// Maximum number of such resolutions that one client may start per minute, so that a client with a list of names
    /// does not exhaust the quota of the RPC endpoints.
    pub cold_runs_per_minute: u32,
    /// Maximum size of a request head, in bytes.
    #[serde(deserialize_with = "deserialize_head_bytes")]
    pub head_bytes: usize,
    /// Maximum number of headers of a request.
    #[serde(deserialize_with = "deserialize_header_count")]
    pub headers: usize,
    /// Maximum size of a request body, in bytes.
    #[serde(deserialize_with = "deserialize_positive")]
    pub body_bytes: usize,
    /// How long a connection may stay idle before its first and between two requests. A proxy in front must close idle
    /// connections earlier, or it may send a request on a connection that is just being closed.
    #[serde(with = "text")]
    pub idle_timeout: Duration,
    /// Maximum time from the first to the last byte of a request head.
    #[serde(with = "text")]
    pub head_timeout: Duration,
    /// Maximum time to receive a request body, and maximum time in which a client may read nothing of a response.
    #[serde(with = "text")]
    pub read_timeout: Duration,
    /// After a shutdown request, how long the daemon still accepts connections while `readyz` returns 503, so that load
    /// balancers notice.
    #[serde(with = "text")]
    pub drain_notice: Duration,
    /// After that, maximum time to finish the requests in progress.
    #[serde(with = "text")]
    pub drain: Duration,
    /// Whether clients may have the daemon request the cards of a host. Off by default, so that no client alone can
    /// choose where the daemon connects to.
    pub discover: bool,
}

impl Default for HttpServerConfig {
    fn default() -> Self {
        Self {
            listen: ListenAddress::loopback(8402),
            connections: 768,
            connections_per_client: 256,
            requests: 384,
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

/// The gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct GateConfig {
    /// A separate listener for only the gate and the health routes, with as many connections of its own as the main
    /// listener. `None`: the gate answers only on `http.listen`.
    #[serde(with = "text::or_empty")]
    pub listen: Option<ListenAddress>,
    /// Time limit of a gate decision; after it the gate refuses. The default of 150 ms is below the 200 ms that Envoy
    /// waits.
    #[serde(with = "text")]
    pub deadline: Duration,
    /// Warnings on which the gate refuses although the verdict is trusted. A configured list replaces the default.
    #[serde(deserialize_with = "deserialize_warnings")]
    pub deny: Vec<ReasonCode>,
    /// The weakest grade of proof that the gate accepts. `None`: any except the answer of a single third party.
    #[serde(with = "text::or_empty")]
    pub min_proof: Option<ProofGrade>,
    /// The verbs of an agent that the gate allows: only that of the card's entry, or every verb that the card
    /// implements.
    pub verbs: GateVerbs,
}

impl Default for GateConfig {
    fn default() -> Self {
        Self {
            listen: None,
            deadline: Duration::from_millis(150),
            deny: DENIED_BY_DEFAULT.to_vec(),
            min_proof: None,
            verbs: GateVerbs::Entry,
        }
    }
}

impl GateConfig {
    /// The conditions under which the gate allows a request.
    pub fn gate_policy(&self) -> GatePolicy {
        GatePolicy { deny: self.deny.clone(), min_proof: self.min_proof, verbs: self.verbs }
    }
}

/// Reads codes of warnings. Other codes need no entry: the gate always refuses on failures and undecided checks.
fn deserialize_warnings<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<ReasonCode>, D::Error> {
    let refused = |slug: &str, why: &str| serde::de::Error::custom(format!("{} {why}", UntrustedText::new(slug)));
    let code = |slug: &String| match ReasonCode::from_slug(slug) {
        None => Err(refused(slug, "is no reason code; `clresolve explain` lists all")),
        Some(code) if !code.is_verdict_code() => {
            Err(refused(slug, "never occurs in a verdict, so the gate never sees it"))
        }
        Some(code) if code.entry().effect != ReasonEffect::Warn => {
            Err(refused(slug, "is no warning; the gate refuses on it anyway"))
        }
        Some(code) => Ok(code),
    };
    Vec::<String>::deserialize(d)?.iter().map(code).collect()
}

/// Permitted size of a request head, in bytes. The minimum fits a proxy's headers and a name; no server in front
/// forwards more than the maximum.
const HEAD_BYTES: RangeInclusive<usize> = 1024..=64 * 1024;

/// Permitted number of request headers.
const HEADERS: RangeInclusive<usize> = 1..=MAX_HEADERS;

fn deserialize_head_bytes<'de, D: Deserializer<'de>>(d: D) -> Result<usize, D::Error> {
    deserialize_in_range(HEAD_BYTES, d)
}

fn deserialize_header_count<'de, D: Deserializer<'de>>(d: D) -> Result<usize, D::Error> {
    deserialize_in_range(HEADERS, d)
}

fn deserialize_in_range<'de, D: Deserializer<'de>>(range: RangeInclusive<usize>, d: D) -> Result<usize, D::Error> {
    let number = usize::deserialize(d)?;
    if range.contains(&number) {
        return Ok(number);
    }
    let (least, most) = range.into_inner();
    Err(serde::de::Error::custom(format!("expected a number from {least} to {most}")))
}

/// Reads a number above zero: with a limit of zero, the daemon could answer nobody.
fn deserialize_positive<'de, D: Deserializer<'de>>(d: D) -> Result<usize, D::Error> {
    match u32::deserialize(d)? {
        0 => Err(serde::de::Error::custom("expected a number above 0")),
        number => usize::try_from(number).map_err(serde::de::Error::custom),
    }
}

#[cfg(test)]
mod tests {
    use super::{GateVerbs, ListenAddress, ReasonCode};
    use crate::config::{Config, ConfigLayer};

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
listen = "127.0.0.1:9001"
deadline = "100ms"
deny = ["record-recent"]
verbs = "implemented"

[memory]
path = "memory"
"#;

    #[test]
    fn every_key_is_read_and_written() {
        let config = Config::default().with_layers([ConfigLayer::from_toml(FULL, "f.toml").unwrap()]).unwrap();
        assert_eq!(config.http.listen, ListenAddress::loopback(9000));
        assert_eq!((config.http.connections, config.http.requests, config.http.cold_runs), (1, 2, 3));
        assert_eq!(config.http.cold_runs_per_minute, 0);
        assert_eq!((config.http.connections_per_client, config.http.cold_runs_per_client), (7, 8));
        assert_eq!((config.http.head_bytes, config.http.headers, config.http.body_bytes), (2048, 9, 10));
        assert_eq!((config.http.idle_timeout.as_secs(), config.http.head_timeout.as_secs()), (11, 12));
        assert!(config.http.discover && !Config::default().http.discover);
        assert_eq!(config.gate.listen, Some(ListenAddress::loopback(9001)));
        assert_eq!(config.gate.deadline.as_millis(), 100);
        assert_eq!(config.gate.deny, [ReasonCode::RecordRecent]);
        assert_eq!(config.gate.verbs, GateVerbs::Implemented);
        let layer = ConfigLayer::from_config(&config).unwrap();
        assert_eq!(Config::default().with_layers([layer]).unwrap(), config);
    }

    #[test]
    fn a_list_of_denied_warnings_replaces_the_default() {
        let denied = |text: &str| {
            Config::default().with_layers([ConfigLayer::from_toml(text, "f.toml").unwrap()]).unwrap().gate.deny
        };
        assert_eq!(denied(""), [ReasonCode::StatusWithdrawn, ReasonCode::NameReleased]);
        assert_eq!(denied("[gate]\ndeny = [\"name-expiring\"]"), [ReasonCode::NameExpiring]);
        assert_eq!(denied("[gate]\ndeny = []"), []);
    }

    #[test]
    fn what_only_a_memory_tells_is_denied_with_a_memory_alone() {
        let without = ConfigLayer::from_toml("[gate]\ndeny = [\"version-rollback\"]", "f.toml").unwrap();
        let error = Config::default().with_layers([without]).unwrap().check_gate().unwrap_err();
        assert!(error.to_string().contains("set memory.path"), "{error}");
        let other = ConfigLayer::from_toml("[gate]\ndeny = [\"status-deprecated\"]", "f.toml").unwrap();
        assert!(Config::default().with_layers([other]).unwrap().check_gate().is_ok());
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
            "[gate]\nverbs = \"all\"",
            "[http]\nlisten = \"x\"",
            "[gate]\nlisten = \"unix:x.sock\"",
        ] {
            assert!(ConfigLayer::from_toml(text, "f.toml").is_err(), "{text}");
        }
    }
}
