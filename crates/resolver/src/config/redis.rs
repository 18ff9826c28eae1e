//! `[redis]`: the Redis server through which daemons share evidence.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::Url;

use super::text::{self, TextConfigValue};
use crate::fetch::{HostPort, TcpTlsOrUnixAddress};

/// The port if the URL contains none.
const DEFAULT_PORT: u16 = 6379;

/// Maximum length of the key prefix, in bytes.
const MAX_PREFIX_BYTES: usize = 64;

/// Largest database number: Redis stores it in 31 bits.
const MAX_DATABASE: u32 = i32::MAX as u32;

/// The Redis server through which daemons share evidence. By default there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RedisConfig {
    /// The server: `redis://`, `rediss://` (TLS) or `unix://`.
    #[serde(with = "text::or_empty")]
    pub url: Option<RedisUrl>,
    /// File with the MAC key that the daemons share: 64 to 128 hex digits. An older key on the second line still
    /// verifies.
    #[serde(with = "text::or_empty")]
    pub mac_key: Option<PathBuf>,
    /// Prefix of the keys and the channel. Daemons with different prefixes share nothing.
    #[serde(deserialize_with = "deserialize_redis_key_prefix")]
    pub prefix: String,
    /// How long a resolution waits for an answer of the server before it continues without it.
    #[serde(with = "text")]
    pub read_timeout: Duration,
    /// Time limit of a write and of connecting; no answer waits for either.
    #[serde(with = "text")]
    pub write_timeout: Duration,
    /// How long a resolution waits for the evidence of another daemon that is resolving the same question.
    #[serde(with = "text")]
    pub wait: Duration,
}

impl Default for RedisConfig {
    fn default() -> Self {
        Self {
            url: None,
            mac_key: None,
            prefix: "clresolve".to_owned(),
            read_timeout: Duration::from_millis(50),
            write_timeout: Duration::from_millis(500),
            wait: Duration::from_secs(1),
        }
    }
}

/// Address and credentials of the server.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl(Url);

impl RedisUrl {
    /// The address.
    pub fn stream_address(&self) -> TcpTlsOrUnixAddress {
        parse_stream_address(&self.0).expect("checked when the URL was read")
    }

    /// The user to log in as, if the URL contains one.
    pub fn user(&self) -> Option<String> {
        Some(self.0.username()).filter(|user| !user.is_empty()).map(percent_decoded_text)
    }

    /// The password, if the URL contains one.
    pub fn password(&self) -> Option<String> {
        self.0.password().map(percent_decoded_text)
    }

    /// The number of the database.
    pub fn database(&self) -> u32 {
        parse_database_number(&self.0).expect("checked when the URL was read")
    }
}

impl FromStr for RedisUrl {
    type Err = String;

    /// The error message never repeats the URL, which may contain a password.
    fn from_str(s: &str) -> Result<Self, String> {
        let expected = || "expected redis://HOST:PORT/DB, rediss://HOST:PORT/DB or unix:///PATH?db=DB".to_owned();
        let url = Url::parse(s).map_err(|_| expected())?;
        let is_plain = url.fragment().is_none() && (url.scheme() == "unix" || url.query().is_none());
        if !is_plain || parse_stream_address(&url).is_none() || parse_database_number(&url).is_none() {
            return Err(expected());
        }
        Ok(Self(url))
    }
}

impl TextConfigValue for RedisUrl {
    fn parse_text(text: &str) -> Result<Self, String> {
        text.parse()
    }

    fn serialize_text<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&self.0)
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisUrl({}://…)", self.0.scheme())
    }
}

fn parse_stream_address(url: &Url) -> Option<TcpTlsOrUnixAddress> {
    if url.scheme() == "unix" {
        let path = PathBuf::from(percent_decoded_text(url.path()));
        let is_local = url.host_str().is_none_or(str::is_empty);
        return (is_local && path.is_absolute() && path.file_name().is_some())
            .then_some(TcpTlsOrUnixAddress::Unix(path));
    }
    let origin: HostPort = format!("{}:{}", url.host_str()?, url.port().unwrap_or(DEFAULT_PORT)).parse().ok()?;
    match url.scheme() {
        "redis" => Some(TcpTlsOrUnixAddress::Plain(origin)),
        "rediss" => Some(TcpTlsOrUnixAddress::Tls(origin)),
        _ => None,
    }
}

fn parse_database_number(url: &Url) -> Option<u32> {
    let number = match (url.scheme(), url.query()) {
        ("unix", None) => "",
        ("unix", Some(query)) => query.strip_prefix("db=")?,
        _ => url.path().trim_start_matches('/'),
    };
    if number.is_empty() {
        return Some(0);
    }
    number.parse().ok().filter(|database| *database <= MAX_DATABASE)
}

fn percent_decoded_text(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn deserialize_redis_key_prefix<'de, D: Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    text::deserialize_checked(d, parse_redis_key_prefix)
}

fn parse_redis_key_prefix(s: &str) -> Result<String, String> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':');
    if (1..=MAX_PREFIX_BYTES).contains(&s.len()) && s.bytes().all(is_plain) {
        return Ok(s.to_owned());
    }
    Err(format!("expected at most {MAX_PREFIX_BYTES} letters, digits and -_.:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_where_the_server_is_and_how_one_logs_in() {
        let read = |text: &str| text.parse::<RedisUrl>().expect(text);
        let plain = read("redis://user:p%40ss@cache.internal/3");
        assert_eq!(plain.stream_address(), TcpTlsOrUnixAddress::Plain("cache.internal:6379".parse().unwrap()));
        assert_eq!((plain.user(), plain.password(), plain.database()), (Some("user".into()), Some("p@ss".into()), 3));
        assert_eq!(
            read("rediss://[::1]:6380").stream_address(),
            TcpTlsOrUnixAddress::Tls("[::1]:6380".parse().unwrap())
        );
        let socket = read("unix:///run/redis/redis.sock?db=2");
        assert_eq!(
            (socket.stream_address(), socket.database()),
            (TcpTlsOrUnixAddress::Unix("/run/redis/redis.sock".into()), 2)
        );
        assert_eq!(format!("{:?}", read("redis://:SECRET@a.example")), "RedisUrl(redis://…)");
    }

    #[test]
    fn what_is_no_such_url_is_refused_without_being_repeated() {
        for bad in [
            "SECRET",
            "http://:SECRET@a.example",
            "redis:///SECRET",
            "redis://a.example/SECRET",
            "redis://a.example/-1",
            "redis://a.example/4294967296",
            "redis://a.example?SECRET",
            "redis://a.example#SECRET",
            "unix://SECRET/run/redis.sock",
            "unix:///run/redis.sock?SECRET=1",
            "unix:///",
        ] {
            let error = bad.parse::<RedisUrl>().expect_err(bad);
            assert!(error.starts_with("expected redis://HOST") && !error.contains("SECRET"), "{error}");
        }
        for bad in ["", "a b", "a*", &"a".repeat(65)] {
            assert!(parse_redis_key_prefix(bad).is_err(), "{bad}");
        }
    }
}
