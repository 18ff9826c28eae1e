//! `[http]` and `[gate]`: where the daemon listens, and the limits of what it is asked.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use clresolve_core::reason::{Code, Effect};
use clresolve_core::text::Foreign;
use clresolve_verdict::gate::{DENIED_BY_DEFAULT, GatePolicy, GateVerbs};

use super::keys::{One, OrNone, table};
use super::value::{Listener, ProofGrade, Time};
use super::{Grade, ListenAt};

/// Most headers of a request that can be configured. No proxy sends as many.
pub const MAX_HEADERS: usize = 256;

table! {
    /// The daemon's listener and its limits.
    #[derive(Clone, Debug, PartialEq, Eq)]
    config HttpConfig;
    /// `[http]`, as one source names its keys.
    layer HttpLayer;

    /// Where it listens. Loopback by default: an operator who opens it further decides who may ask.
    listen: ListenAt = ListenAt::loopback(8402), [with = "One::<Listener>"];
    /// Most connections at once. The default leaves room below the usual limit of 1,024 files for the outbound side.
    connections: usize = 768, [deserialize_with = "positive"];
    /// Most connections of one client (an address, the first 64 bits of one of IPv6, or a user behind a Unix socket); more are closed at once. Above
    /// what a proxy in front keeps open, and so far below `connections` that one client leaves room for others.
    connections_per_client: usize = 256, [deserialize_with = "positive"];
    /// Most requests in work at once; more are refused rather than queued.
    requests: usize = 384, [deserialize_with = "positive"];
    /// Most runs under way at once for names that are not in the cache. Each holds a few upstream connections.
    cold_runs: usize = 32, [deserialize_with = "positive"];
    /// Most such runs of one client at once: a client that knows slow names does not take all runs.
    cold_runs_per_client: usize = 16, [deserialize_with = "positive"];
    /// Most such runs that one client may cause per minute: a client with a list of names does not use up the quota
    /// of the RPC endpoints for all others.
    cold_runs_per_minute: u32 = 600;
    /// Longest head of a request, in bytes.
    head_bytes: usize = 16 * 1024, [deserialize_with = "head_bytes"];
    /// Most headers of a request.
    headers: usize = 64, [deserialize_with = "headers"];
    /// Longest body that is read, in bytes.
    body_bytes: usize = 64 * 1024, [deserialize_with = "positive"];
    /// How long a connection may be without a whole request after its last answer. A proxy in front must give up idle connections sooner, or it
    /// meets one that is being closed.
    idle_timeout: Duration = Duration::from_secs(75), [with = "One::<Time>"];
    /// Longest time from the first byte of a request's head to its last.
    head_timeout: Duration = Duration::from_secs(10), [with = "One::<Time>"];
    /// Longest time that the body of a request may take to arrive, and how long a reader may take nothing.
    read_timeout: Duration = Duration::from_secs(30), [with = "One::<Time>"];
    /// How long the daemon, asked to end, still answers new connections, with `readyz` saying 503: the time for a load
    /// balancer to see it.
    drain_notice: Duration = Duration::from_secs(1), [with = "One::<Time>"];
    /// Longest time after that for requests in work.
    drain: Duration = Duration::from_secs(20), [with = "One::<Time>"];
    /// Whether hosts that a client names are asked for their cards. Off by default: the daemon then opens no connection
    /// that a client alone chose.
    discover: bool = false;
}

table! {
    /// The gate.
    #[derive(Clone, Debug, PartialEq, Eq)]
    config GateConfig;
    /// `[gate]`, as one source names its keys.
    layer GateLayer;

    /// A listener for the gate and health alone, with as many connections of its own as the daemon's other one. `None`:
    /// the gate answers on `http.listen` only.
    listen: Option<ListenAt> = None, [with = "OrNone::<Listener>"];
    /// Longest time to an answer; past it the gate refuses. Envoy waits 200 ms for it, hence the default of 150 ms.
    deadline: Duration = Duration::from_millis(150), [with = "One::<Time>"];
    /// Warnings on which it refuses, although the verdict is trusted. A list that is set replaces the default.
    deny: Vec<Code> = DENIED_BY_DEFAULT.to_vec(), [deserialize_with = "warnings"];
    /// The weakest grade of proof with which it lets pass. `None`: any, but one stranger's word.
    min_proof: Option<Grade> = None, [with = "OrNone::<ProofGrade>"];
    /// For which verbs of an agent it lets pass: that of the card's entry, or each one that the card implements.
    verbs: GateVerbs = GateVerbs::Entry;
}

impl GateConfig {
    /// What it demands of a verdict.
    pub fn policy(&self) -> GatePolicy {
        GatePolicy { deny: self.deny.clone(), min_proof: self.min_proof, verbs: self.verbs }
    }
}

/// Codes of warnings: what fails or cannot be decided is refused without being named.
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

/// Headers of a request. No proxy sends as many as the most.
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

/// A number above zero: a limit of nothing would be a daemon that answers no one.
fn positive<'de, D: Deserializer<'de>>(d: D) -> Result<Option<usize>, D::Error> {
    match u32::deserialize(d)? {
        0 => Err(serde::de::Error::custom("expected a number above 0")),
        number => Ok(usize::try_from(number).ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Code, GateVerbs, ListenAt};
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
listen = "127.0.0.1:9001"
deadline = "100ms"
deny = ["record-recent"]
verbs = "implemented"

[memory]
path = "memory"
"#;

    #[test]
    fn every_key_is_read_and_written() {
        let config = Config::default().with([Layer::from_toml(FULL, "f.toml").unwrap()]).unwrap();
        assert_eq!(config.http.listen, ListenAt::loopback(9000));
        assert_eq!((config.http.connections, config.http.requests, config.http.cold_runs), (1, 2, 3));
        assert_eq!(config.http.cold_runs_per_minute, 0);
        assert_eq!((config.http.connections_per_client, config.http.cold_runs_per_client), (7, 8));
        assert_eq!((config.http.head_bytes, config.http.headers, config.http.body_bytes), (2048, 9, 10));
        assert_eq!((config.http.idle_timeout.as_secs(), config.http.head_timeout.as_secs()), (11, 12));
        assert!(config.http.discover && !Config::default().http.discover);
        assert_eq!(config.gate.listen, Some(ListenAt::loopback(9001)));
        assert_eq!(config.gate.deadline.as_millis(), 100);
        assert_eq!(config.gate.deny, [Code::RecordRecent]);
        assert_eq!(config.gate.verbs, GateVerbs::Implemented);
        let layer = Layer::of(&config);
        assert_eq!(Config::default().with([layer]).unwrap(), config);
    }

    #[test]
    fn a_list_of_denied_warnings_replaces_the_default() {
        let denied =
            |text: &str| Config::default().with([Layer::from_toml(text, "f.toml").unwrap()]).unwrap().gate.deny;
        assert_eq!(denied(""), [Code::StatusWithdrawn]);
        assert_eq!(denied("[gate]\ndeny = [\"name-expiring\"]"), [Code::NameExpiring]);
        assert_eq!(denied("[gate]\ndeny = []"), []);
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
            "[gate]\nverbs = \"all\"",
            "[http]\nlisten = \"x\"",
            "[gate]\nlisten = \"unix:x.sock\"",
        ] {
            assert!(Layer::from_toml(text, "f.toml").is_err(), "{text}");
        }
    }
}
