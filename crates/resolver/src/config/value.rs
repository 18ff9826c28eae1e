//! The written forms of single values, identical in files, environment variables and flags.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use alloy_primitives::{Address, B256};
use clresolve_payment::ADDRESS_FORM;
use serde::{Deserialize as _, Deserializer};
use url::Url;

use super::keys::forms;
use super::paths::without_paths;
use super::public::PUBLIC_RPC;
use super::{BaseUrl, BeaconEndpoint, ConnectTo, Endpoint, Gateway, Grade, Hedging, ListenAt, OriginSpec};

forms! {
    World(String) = parse_world, String::clone;
    Profile(String) = parse_profile, String::clone;
    Issuer(String) = parse_issuer, String::clone;
    Contract(Address) = parse_address, ToString::to_string;
    Hash(B256) = parse_hash, ToString::to_string;
    ProofForm(ProofDemand) = str::parse, ToString::to_string;
    HeaderForm(HeaderDemand) = str::parse, ToString::to_string;
    ProofGrade(Grade) = parse_grade, grade_text;
    Time(Duration) = parse_duration, |value: &Duration| humantime::format_duration(*value).to_string();
    HedgeAfter(Hedging) = parse_hedging, ToString::to_string;
    Rule(ConnectTo) = |text: &str| text.parse().map_err(|error| format!("{error}")), ToString::to_string;
    HostPort(OriginSpec) = |text: &str| text.parse().map_err(|error| format!("{error}")), ToString::to_string;
    FilePath(PathBuf) = |text: &str| Ok(PathBuf::from(text)), |value: &PathBuf| value.display().to_string();
    Listener(ListenAt) = str::parse, ToString::to_string;
    Base(BaseUrl) = str::parse, ToString::to_string;
}

without_paths!(ProofDemand);

/// Longest permitted time limit of a question.
const MAX_TIMEOUT: Duration = Duration::from_secs(3600);

/// Maximum length of a label of an endpoint or gateway, in bytes. Verdicts contain labels.
const MAX_LABEL_BYTES: usize = 64;

/// Largest quorum: more than there are public operators.
const MAX_QUORUM: usize = 32;

const QUORUM_EXPECTED: &str = "expected a number from 2 to 32; for a single endpoint, set proof to single-rpc";

/// Maximum length of an issuer, in bytes: it is a host name or a URL.
const MAX_ISSUER_BYTES: usize = 255;

/// Maximum length of a profile identifier, in bytes. Verdicts contain it.
const MAX_PROFILE_BYTES: usize = 64;

/// How answers about the chain must be proven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProofDemand {
    /// The answer of one endpoint suffices.
    #[default]
    SingleRpc,
    /// Endpoints of several operators must give the same answer.
    Quorum,
    /// The answer is computed locally, from state that is proven against a block header on which several operators
    /// agree.
    StateProof,
    /// Like `StateProof`, and the light client verifies the block header.
    ConsensusProof,
}

impl ProofDemand {
    /// The grade of answers that meet the demand.
    pub const fn grade(self) -> Grade {
        match self {
            Self::SingleRpc => Grade::SingleRpc,
            Self::Quorum => Grade::Quorum,
            Self::StateProof => Grade::StateProof,
            Self::ConsensusProof => Grade::ConsensusProof,
        }
    }
}

impl FromStr for ProofDemand {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "single-rpc" => Ok(Self::SingleRpc),
            "quorum" => Ok(Self::Quorum),
            "state-proof" => Ok(Self::StateProof),
            "consensus-proof" => Ok(Self::ConsensusProof),
            _ => Err("expected single-rpc, quorum, state-proof or consensus-proof".to_owned()),
        }
    }
}

impl fmt::Display for ProofDemand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SingleRpc => f.write_str("single-rpc"),
            Self::Quorum => f.write_str("quorum"),
            Self::StateProof => f.write_str("state-proof"),
            Self::ConsensusProof => f.write_str("consensus-proof"),
        }
    }
}

/// Who must vouch for a block header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderDemand {
    /// RPC operators, as many as `quorum` says.
    Quorum,
    /// The chain's validators, verified by the light client.
    Consensus,
    /// Both.
    Both,
}

impl HeaderDemand {
    /// Whether the light client must verify the header.
    pub const fn is_by_consensus(self) -> bool {
        matches!(self, Self::Consensus | Self::Both)
    }
}

impl FromStr for HeaderDemand {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "quorum" => Ok(Self::Quorum),
            "consensus" => Ok(Self::Consensus),
            "both" => Ok(Self::Both),
            _ => Err("expected quorum, consensus or both".to_owned()),
        }
    }
}

impl fmt::Display for HeaderDemand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Quorum => "quorum",
            Self::Consensus => "consensus",
            Self::Both => "both",
        })
    }
}

/// Parses an issuer: at most 255 visible ASCII characters, such as a URL.
///
/// # Errors
/// What was expected.
pub fn parse_issuer(s: &str) -> Result<String, String> {
    let good = (1..=MAX_ISSUER_BYTES).contains(&s.len()) && s.bytes().all(|byte| byte.is_ascii_graphic());
    if good {
        return Ok(s.to_owned());
    }
    Err(format!("expected an issuer such as https://clresolve.example: at most {MAX_ISSUER_BYTES} visible characters"))
}

/// Parses a number of operators that must agree: 2 to `MAX_QUORUM`.
///
/// # Errors
/// What was expected.
pub fn parse_quorum(s: &str) -> Result<usize, String> {
    s.parse().map_err(|_| QUORUM_EXPECTED.to_owned()).and_then(quorum)
}

/// Checks that the number can be a quorum.
pub(super) fn quorum(agree: usize) -> Result<usize, String> {
    if (2..=MAX_QUORUM).contains(&agree) { Ok(agree) } else { Err(QUORUM_EXPECTED.to_owned()) }
}

pub(super) fn quorum_number<'de, D: Deserializer<'de>>(d: D) -> Result<Option<usize>, D::Error> {
    quorum(usize::deserialize(d)?).map(Some).map_err(serde::de::Error::custom)
}

/// Parses the hash of a block: `0x` and 64 hex digits.
pub(super) fn parse_hash(s: &str) -> Result<B256, String> {
    let expected = || "expected a hash: 0x and 64 hex digits".to_owned();
    s.strip_prefix("0x").ok_or_else(expected)?.parse().map_err(|_| expected())
}

/// Chains that people call by a name.
const NAMED_CHAINS: [(&str, u64); 8] = [
    ("mainnet", 1),
    ("ethereum", 1),
    ("sepolia", 11_155_111),
    ("optimism", 10),
    ("polygon", 137),
    ("base", 8453),
    ("arbitrum", 42_161),
    ("linea", 59_144),
];

/// Parses a chain id.
///
/// # Errors
/// What was expected; for the name of a chain, its id.
pub fn parse_chain_id(s: &str) -> Result<u64, String> {
    let named = || NAMED_CHAINS.iter().find(|(name, _)| s.eq_ignore_ascii_case(name));
    s.parse().map_err(|_| match named() {
        Some((name, id)) => format!("expected a number; {name} is {id}"),
        None => "expected a number; Ethereum mainnet is 1".to_owned(),
    })
}

/// Parses an address in the form that [`ADDRESS_FORM`] describes.
///
/// # Errors
/// What was expected.
pub fn parse_address(s: &str) -> Result<Address, String> {
    clresolve_payment::parse_address(s).ok_or_else(|| format!("expected an address: {ADDRESS_FORM}"))
}

/// For serde: an address, as [`parse_address`] reads it.
pub(super) fn read_address<'de, D: Deserializer<'de>>(d: D) -> Result<Address, D::Error> {
    parse_address(&String::deserialize(d)?).map_err(serde::de::Error::custom)
}

/// Parses a duration such as `15s`, `1m 30s` or `500ms`.
///
/// # Errors
/// What was expected.
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

/// Parses when a second IPFS gateway is asked in parallel with the first: `learnt`, or a duration.
///
/// # Errors
/// What was expected.
pub(super) fn parse_hedging(s: &str) -> Result<Hedging, String> {
    if s == "learnt" {
        return Ok(Hedging::Learnt);
    }
    parse_duration(s).map(Hedging::After).map_err(|error| format!("{error}, or learnt"))
}

/// Parses the identifier of a profile, such as `agent-cards/1.0.0`. Whether the profile exists is checked when the
/// profiles are loaded.
///
/// # Errors
/// What was expected.
pub fn parse_profile(s: &str) -> Result<String, String> {
    let good = !s.is_empty()
        && s.len() <= MAX_PROFILE_BYTES
        && s.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'/' | b'+' | b'_'));
    if good { Ok(s.to_owned()) } else { Err("expected a profile such as agent-cards/1.0.0".to_owned()) }
}

/// Parses the name of a network (`anchor.world`): at most 32 lower-case letters, digits and dashes.
pub(super) fn parse_world(s: &str) -> Result<String, String> {
    let good =
        (1..=32).contains(&s.len()) && s.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if good { Ok(s.to_owned()) } else { Err("expected at most 32 lower-case letters, digits and dashes".to_owned()) }
}

/// Parses a grade of proof as written in verdicts.
fn parse_grade(s: &str) -> Result<Grade, String> {
    let grade = serde::de::value::StrDeserializer::<serde::de::value::Error>::new(s);
    Grade::deserialize(grade).map_err(|error| error.to_string())
}

fn grade_text(grade: &Grade) -> String {
    let text = serde_json::to_value(grade).ok();
    text.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
}

/// Parses the digest of a manifest: `sha256:` and 64 hex digits.
pub(super) fn parse_digest(s: &str) -> Result<String, String> {
    let digits = s.strip_prefix("sha256:").unwrap_or_default();
    if digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(s.to_ascii_lowercase());
    }
    Err("expected sha256: and 64 hex digits".to_owned())
}

/// An endpoint or gateway as written: a URL, or a table with a URL.
#[derive(Clone, Debug, Default)]
pub(super) struct Origin {
    pub(super) url: String,
    pub(super) label: Option<String>,
    pub(super) own: Option<bool>,
    pub(super) operator: Option<String>,
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
        let operator = match origin.operator {
            Some(operator) => named(operator, "operator")?,
            None => Self::operator_of(&url),
        };
        let label = match origin.label {
            Some(label) => named(label, "label")?,
            // The host name of a built-in endpoint contains no API key.
            None if PUBLIC_RPC.contains(&origin.url.as_str()) => host_and_port(&url),
            None => Self::UNNAMED.to_owned(),
        };
        Ok(Self { label, url, own: origin.own.unwrap_or(false), operator })
    }
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        Origin::from(s).try_into()
    }
}

impl TryFrom<Origin> for BeaconEndpoint {
    type Error = String;

    fn try_from(origin: Origin) -> Result<Self, String> {
        let url = http_url(&origin.url)?;
        let label = origin.label.map_or_else(|| Ok(Self::UNNAMED.to_owned()), |label| named(label, "label"))?;
        Ok(Self { label, url })
    }
}

impl FromStr for BeaconEndpoint {
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
        let label = origin.label.map_or_else(|| Ok(host_and_port(&url)), |label| named(label, "label"))?;
        Ok(Self { label, url, own: origin.own.unwrap_or(false) })
    }
}

impl FromStr for Gateway {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        Origin::from(s).try_into()
    }
}

/// Parses an http or https URL with a host. The error never repeats the URL, which may contain an API key.
fn http_url(s: &str) -> Result<Url, String> {
    if !s.contains("://") {
        return Err(without_scheme(s));
    }
    let url = Url::parse(s).map_err(|e| format!("expected an http or https URL ({e})"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err("expected an http or https URL".to_owned());
    }
    if url.fragment().is_some() {
        return Err("expected an URL without a fragment".to_owned());
    }
    Ok(url)
}

/// The error for a URL without a scheme. It repeats only a host with a port: any other text may be an API key.
fn without_scheme(s: &str) -> String {
    let (authority, rest) = s.split_at(s.find(['/', '?', '#']).unwrap_or(s.len()));
    let is_port = |port: &str| port.parse::<u16>().is_ok();
    let Some((host, _)) = authority.rsplit_once(':').filter(|(host, port)| is_port(port) && !host.contains('@')) else {
        return "expected an http or https URL: the scheme is missing; write https:// before it".to_owned();
    };
    let is_local = host == "localhost" || host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok();
    let scheme = if is_local { "http" } else { "https" };
    let rest = if rest.len() > 1 { "/…" } else { "" };
    format!("expected an http or https URL: the scheme is missing; did you mean {scheme}://{authority}{rest}?")
}

/// Host and port of the URL: the label of a gateway or built-in endpoint that has none configured.
fn host_and_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Checks that a name is short and contains only plain characters.
fn named(name: String, what: &str) -> Result<String, String> {
    let good = (1..=MAX_LABEL_BYTES).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b':' | b'[' | b']' | b'#'));
    if good {
        Ok(name)
    } else {
        Err(format!("expected the {what} to be at most {MAX_LABEL_BYTES} letters, digits and -._:"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hedging_is_learnt_or_a_time() {
        for text in ["learnt", "800ms", "1h"] {
            assert_eq!(parse_hedging(text).map(|hedging| hedging.to_string()).as_deref(), Ok(text));
        }
        let expected = "expected a duration such as 15s, 500ms or 1m 30s, or learnt";
        assert_eq!(parse_hedging("never").unwrap_err(), expected);
        assert!(parse_hedging("2h").is_err());
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
    fn a_missing_scheme_is_named() {
        for (given, meant) in [
            ("127.0.0.1:8545", "did you mean http://127.0.0.1:8545?"),
            ("localhost:8545/", "did you mean http://localhost:8545?"),
            ("[::1]:8545", "did you mean http://[::1]:8545?"),
            ("rpc.example:443/v3/SECRET", "did you mean https://rpc.example:443/…?"),
            ("rpc.example/SECRET", "write https:// before it"),
            ("SECRET", "write https:// before it"),
            ("user:SECRET@rpc.example:443", "write https:// before it"),
        ] {
            for error in [given.parse::<Endpoint>().unwrap_err(), given.parse::<Gateway>().unwrap_err()] {
                assert!(error.starts_with("expected an http or https URL: the scheme is missing; "), "{error}");
                assert!(error.ends_with(meant) && !error.contains("SECRET"), "{error}");
            }
        }
    }

    #[test]
    fn an_endpoint_shows_no_key() {
        let endpoint: Endpoint = "https://rpc.example:8443/v3/SECRET".parse().unwrap();
        assert_eq!(endpoint.label, Endpoint::UNNAMED);
        assert!(!endpoint.own);
        let error = "htt ps://rpc.example/SECRET".parse::<Endpoint>().unwrap_err();
        assert!(!error.contains("SECRET"), "{error}");
    }

    #[test]
    fn endpoints_of_one_operator_are_told_by_their_hosts() {
        for (url, operator) in [
            ("https://eth.drpc.org/key", "drpc.org"),
            ("https://a.b.rpc.example./", "rpc.example"),
            ("https://rpc.example:8443", "rpc.example"),
            ("http://one.co.uk", "co.uk"),
            ("http://node:8545", "localhost"),
            ("http://other-node.:8545", "localhost"),
            ("http://localhost", "localhost"),
            ("http://localhost.:8545", "localhost"),
            ("http://node.localhost:8545", "localhost"),
            ("http://127.0.0.1:8545", "localhost"),
            ("http://127.1.2.3:8546", "localhost"),
            ("http://0.0.0.0:8545", "localhost"),
            ("http://[::1]:8545", "localhost"),
            ("http://[::]:8545", "localhost"),
            ("http://[::ffff:127.0.0.1]:8545", "localhost"),
            ("http://[::ffff:0.0.0.0]:8545", "localhost"),
            ("http://node.localdomain:8545", "localhost"),
            ("http://a.node.local:8545", "localhost"),
            ("http://node.internal.:8545", "localhost"),
            ("http://node.lan:8545", "localhost"),
            ("https://node.lan.example", "lan.example"),
            ("http://[::ffff:192.0.2.1]:8545", "192.0.2.1"),
            ("http://192.0.2.1:8545", "192.0.2.1"),
            ("http://192.0.2.1:8546", "192.0.2.1"),
            ("http://[2001:db8::1]:8545", "[2001:db8::1]"),
            ("http://[2001:db8::1]:8546", "[2001:db8::1]"),
        ] {
            assert_eq!(url.parse::<Endpoint>().unwrap().operator, operator);
        }
    }

    #[test]
    fn single_values_say_what_they_expect() {
        assert!(parse_address("0x00000000000C2E074eC69A0dFb2997BA6C7d2e1e").is_ok());
        assert!(parse_address("00000000000C2E074eC69A0dFb2997BA6C7d2e1e").is_err());
        assert!(parse_address("0x00000000000C2E074eC69A0dFb2997BA6C7d2e1d").is_err(), "its checksum is another's");
        assert!(parse_address("0x00000000000c2e074ec69a0dfb2997ba6c7d2e1d").is_ok(), "it has no checksum");
        assert_eq!(parse_duration("1m 30s"), Ok(Duration::from_secs(90)));
        assert!(parse_duration("0s").is_err());
        assert!(parse_duration("2h").is_err());
        assert!(parse_duration("15").is_err());
        assert_eq!("quorum".parse(), Ok(ProofDemand::Quorum));
        assert_eq!("state-proof".parse(), Ok(ProofDemand::StateProof));
        assert!("proof".parse::<ProofDemand>().is_err());
        assert_eq!(parse_quorum("2"), Ok(2));
        for bad in ["", "0", "1", "33", "-2", "two"] {
            assert!(parse_quorum(bad).is_err(), "{bad}");
        }
        assert!(parse_profile("agent-cards/1.0.0+released").is_ok());
        assert!(parse_profile("a b").is_err());
    }
}
