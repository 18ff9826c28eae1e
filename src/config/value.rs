//! The written forms of single values, the same in the file, in the environment and as flags.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use alloy_primitives::Address;
use url::{Host, Url};

use super::{ConnectTo, Endpoint, Gateway};

/// Longest time limit accepted: a question that takes longer than this is not being answered.
const MAX_TIMEOUT: Duration = Duration::from_secs(3600);

/// Longest label of an endpoint or gateway, in bytes; labels stand in every verdict.
const MAX_LABEL_BYTES: usize = 64;

/// Longest profile identifier, in bytes; it stands in every verdict.
const MAX_PROFILE_BYTES: usize = 64;

/// How far the chain's answer must be vouched for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProofDemand {
    /// One endpoint's word is enough.
    #[default]
    SingleRpc,
}

impl FromStr for ProofDemand {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "single-rpc" => Ok(Self::SingleRpc),
            "quorum" | "state-proof" => Err(format!("{s} is not available in this version; it reads with single-rpc")),
            _ => Err("expected single-rpc".to_owned()),
        }
    }
}

impl fmt::Display for ProofDemand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SingleRpc => f.write_str("single-rpc"),
        }
    }
}

/// Refuses every quorum size: this version asks one endpoint at a time.
///
/// # Errors
/// Always.
pub fn parse_quorum(_: &str) -> Result<u32, String> {
    Err("a quorum is not available in this version; it reads with --proof single-rpc".to_owned())
}

/// An address: `0x` and 40 hex digits, in any case.
///
/// # Errors
/// Says what was expected.
pub fn parse_address(s: &str) -> Result<Address, String> {
    let expected = || "expected an address: 0x and 40 hex digits".to_owned();
    let digits = s.strip_prefix("0x").ok_or_else(expected)?;
    digits.parse().map_err(|_| expected())
}

/// A time limit as people write it: `15s`, `1m 30s`, `500ms`.
///
/// # Errors
/// Says what was expected.
pub fn parse_duration(s: &str) -> Result<Duration, String> {
    let duration =
        humantime::parse_duration(s).map_err(|_| "expected a duration such as 15s, 500ms or 1m 30s".to_owned())?;
    if duration.is_zero() || duration > MAX_TIMEOUT {
        return Err(format!(
            "expected a duration of more than 0 and at most {}",
            humantime::format_duration(MAX_TIMEOUT)
        ));
    }
    Ok(duration)
}

/// The identifier of a profile, such as `agent-cards/1.0.0`. Whether it exists is known once the profiles are loaded.
///
/// # Errors
/// Says what was expected.
pub fn parse_profile(s: &str) -> Result<String, String> {
    let good = !s.is_empty()
        && s.len() <= MAX_PROFILE_BYTES
        && s.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'/' | b'+' | b'_'));
    if good { Ok(s.to_owned()) } else { Err("expected a profile such as agent-cards/1.0.0".to_owned()) }
}

/// The name of a world: at most 32 lower-case letters, digits and dashes.
pub(super) fn parse_world(s: &str) -> Result<String, String> {
    let good =
        (1..=32).contains(&s.len()) && s.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if good { Ok(s.to_owned()) } else { Err("expected at most 32 lower-case letters, digits and dashes".to_owned()) }
}

/// The digest of a manifest: `sha256:` and 64 hex digits.
pub(super) fn parse_digest(s: &str) -> Result<String, String> {
    let digits = s.strip_prefix("sha256:").unwrap_or_default();
    if digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(s.to_ascii_lowercase());
    }
    Err("expected sha256: and 64 hex digits".to_owned())
}

/// `HOST:PORT`, the host as it stands in an URL.
///
/// # Errors
/// Says what was expected.
pub fn parse_host_port(s: &str) -> Result<(String, u16), String> {
    let expected = || "expected HOST:PORT, such as localhost:8080 or [::1]:8080".to_owned();
    match split_host_port(s) {
        Some((host, port, None)) => Ok((host, port)),
        _ => Err(expected()),
    }
}

/// Host (in the form that an URL has it), port, and what follows after a colon.
fn split_host_port(s: &str) -> Option<(String, u16, Option<&str>)> {
    let host_end = if s.starts_with('[') { s.find(']')? + 1 } else { s.find(':')? };
    let host = Host::parse(&s[..host_end]).ok()?.to_string();
    let after = s[host_end..].strip_prefix(':')?;
    let (port, rest) = after.split_once(':').map_or((after, None), |(port, rest)| (port, Some(rest)));
    let port = port.parse().ok().filter(|p| *p != 0)?;
    Some((host, port, rest))
}

impl FromStr for ConnectTo {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let expected = || "expected HOST:PORT:ADDR:PORT, such as agent.example:443:127.0.0.1:8443".to_owned();
        let Some((host, port, Some(target))) = split_host_port(s) else { return Err(expected()) };
        let Some((target, target_port, None)) = split_host_port(target) else { return Err(expected()) };
        let target_host = target.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { host, port, target_host, target_port })
    }
}

impl fmt::Display for ConnectTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let brackets = if self.target_host.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "{}:{}:{}{}{}:{}", self.host, self.port, brackets.0, self.target_host, brackets.1, self.target_port)
    }
}

/// An endpoint or gateway as it is written: an URL, or a table with an URL.
#[derive(Clone, Debug, Default)]
pub(super) struct Origin {
    pub(super) url: String,
    pub(super) label: Option<String>,
    pub(super) own: Option<bool>,
}

impl From<&str> for Origin {
    fn from(url: &str) -> Self {
        Self { url: url.to_owned(), ..Self::default() }
    }
}

impl TryFrom<Origin> for Endpoint {
    type Error = String;

    fn try_from(origin: Origin) -> Result<Self, String> {
        let url = http_url(&origin.url)?;
        let label = label(origin.label, &url)?;
        Ok(Self { label, url, own: origin.own.unwrap_or(false) })
    }
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        Origin::from(s).try_into()
    }
}

impl TryFrom<Origin> for Gateway {
    type Error = String;

    fn try_from(origin: Origin) -> Result<Self, String> {
        let mut url = http_url(&origin.url)?;
        if url.query().is_some() || !url.username().is_empty() || url.password().is_some() {
            return Err("expected the base URL of a gateway, without user info and query".to_owned());
        }
        if let Some(base) = url.path().strip_suffix("/ipfs/").or_else(|| url.path().strip_suffix("/ipfs")) {
            let base = format!("{base}/");
            url.set_path(&base);
        }
        let label = label(origin.label, &url)?;
        let own = origin.own.unwrap_or_else(|| url.scheme() == "http" || is_loopback(&url));
        Ok(Self { label, url, own })
    }
}

impl FromStr for Gateway {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        Origin::from(s).try_into()
    }
}

/// An http or https URL with a host. The message never repeats the URL: it may hold a key.
fn http_url(s: &str) -> Result<Url, String> {
    let url = Url::parse(s).map_err(|e| format!("expected an http or https URL ({e})"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err("expected an http or https URL".to_owned());
    }
    if url.fragment().is_some() {
        return Err("expected an URL without a fragment".to_owned());
    }
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.to_canonical().is_loopback(),
        None => false,
    }
}

/// The label that was given, or host and port of the URL.
fn label(given: Option<String>, url: &Url) -> Result<String, String> {
    let Some(label) = given else {
        let host = url.host_str().unwrap_or_default();
        return Ok(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")));
    };
    let good = (1..=MAX_LABEL_BYTES).contains(&label.len())
        && label
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b':' | b'[' | b']' | b'#'));
    if good {
        Ok(label)
    } else {
        Err(format!("expected a label of at most {MAX_LABEL_BYTES} letters, digits and -._:"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connect_to_is_read_as_curl_reads_it() {
        let rule: ConnectTo = "Agent.Example:443:127.0.0.1:8443".parse().unwrap();
        assert_eq!((rule.host.as_str(), rule.port), ("agent.example", 443));
        assert_eq!((rule.target_host.as_str(), rule.target_port), ("127.0.0.1", 8443));
        let six: ConnectTo = "a.example:443:[::1]:8443".parse().unwrap();
        assert_eq!(six.target_host, "::1");
        assert_eq!(six.to_string(), "a.example:443:[::1]:8443");
        for bad in ["", "a", "a:1", "a:1:b", "a:1:b:", "a:1:b:2:", "a:1:b:2:c", "a:0:b:2", "a:1:b:65536", "::1:1:a:2"] {
            assert!(bad.parse::<ConnectTo>().is_err(), "{bad}");
        }
    }

    #[test]
    fn loopback_and_plain_gateways_are_the_operators_own() {
        let own = |s: &str| s.parse::<Gateway>().unwrap().own;
        assert!(own("http://127.0.0.1:8080"));
        assert!(own("https://[::1]:8080"));
        assert!(own("https://localhost"));
        assert!(own("http://kubo.internal:8080"));
        assert!(!own("https://gateway.example"));
    }

    #[test]
    fn a_gateway_is_named_by_its_base() {
        for (given, url) in [
            ("https://g.example", "https://g.example/"),
            ("https://g.example/ipfs/", "https://g.example/"),
            ("https://g.example/base/ipfs", "https://g.example/base/"),
        ] {
            assert_eq!(given.parse::<Gateway>().unwrap().url.as_str(), url);
        }
        for bad in
            ["ftp://g.example", "g.example", "https://u:p@g.example", "https://g.example/?k=1", "https://g.example/#a"]
        {
            assert!(bad.parse::<Gateway>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_endpoint_shows_no_key() {
        let endpoint: Endpoint = "https://rpc.example:8443/v3/SECRET".parse().unwrap();
        assert_eq!(endpoint.label, "rpc.example:8443");
        assert!(!endpoint.own);
        let error = "htt ps://rpc.example/SECRET".parse::<Endpoint>().unwrap_err();
        assert!(!error.contains("SECRET"), "{error}");
    }

    #[test]
    fn single_values_say_what_they_expect() {
        assert!(parse_address("0x00000000000C2E074eC69A0dFb2997BA6C7d2e1e").is_ok());
        assert!(parse_address("00000000000C2E074eC69A0dFb2997BA6C7d2e1e").is_err());
        assert_eq!(parse_duration("1m 30s"), Ok(Duration::from_secs(90)));
        assert!(parse_duration("0s").is_err());
        assert!(parse_duration("2h").is_err());
        assert!(parse_duration("15").is_err());
        assert!("quorum".parse::<ProofDemand>().unwrap_err().contains("not available"));
        assert!("state-proof".parse::<ProofDemand>().unwrap_err().contains("not available"));
        assert!(parse_quorum("2").is_err());
        assert!(parse_profile("agent-cards/1.0.0+released").is_ok());
        assert!(parse_profile("a b").is_err());
        assert_eq!(parse_host_port("[::1]:80"), Ok(("[::1]".to_owned(), 80)));
    }
}
