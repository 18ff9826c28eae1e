//! The written forms of single values, identical in files, environment variables and flags.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use alloy_primitives::{Address, B256};
use clresolve_payment::ADDRESS_FORM;
use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer};

use super::{HedgeDelay, ProofGrade};

/// Longest permitted time limit of a question.
const MAX_TIMEOUT: Duration = Duration::from_secs(3600);

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
pub enum ChainProofMode {
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

impl ChainProofMode {
    /// The grade of answers that meet the demand.
    pub const fn proof_grade(self) -> ProofGrade {
        match self {
            Self::SingleRpc => ProofGrade::SingleRpc,
            Self::Quorum => ProofGrade::Quorum,
            Self::StateProof => ProofGrade::StateProof,
            Self::ConsensusProof => ProofGrade::ConsensusProof,
        }
    }
}

impl FromStr for ChainProofMode {
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

impl fmt::Display for ChainProofMode {
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
pub enum BlockHeaderProofMode {
    /// RPC operators, as many as `quorum` says.
    Quorum,
    /// The chain's validators, verified by the light client.
    Consensus,
    /// Both.
    Both,
}

impl BlockHeaderProofMode {
    /// Whether the light client must verify the header.
    pub const fn requires_consensus(self) -> bool {
        matches!(self, Self::Consensus | Self::Both)
    }
}

impl FromStr for BlockHeaderProofMode {
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

impl fmt::Display for BlockHeaderProofMode {
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
    s.parse().map_err(|_| QUORUM_EXPECTED.to_owned()).and_then(check_quorum)
}

/// Checks that the number can be a quorum.
fn check_quorum(agree: usize) -> Result<usize, String> {
    if (2..=MAX_QUORUM).contains(&agree) { Ok(agree) } else { Err(QUORUM_EXPECTED.to_owned()) }
}

/// For serde: a number of operators that must agree.
pub(super) fn deserialize_quorum<'de, D: Deserializer<'de>>(d: D) -> Result<Option<usize>, D::Error> {
    check_quorum(usize::deserialize(d)?).map(Some).map_err(D::Error::custom)
}

/// Parses the hash of a block: `0x` and 64 hex digits.
pub(super) fn parse_block_hash(s: &str) -> Result<B256, String> {
    let expected = || "expected a hash: 0x and 64 hex digits".to_owned();
    s.strip_prefix("0x").ok_or_else(expected)?.parse().map_err(|_| expected())
}

/// Largest chain id: TOML has no larger integer, and EIP-2294 permits none.
const MAX_CHAIN_ID: u64 = i64::MAX as u64;

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
    let id = s.parse().ok().filter(|id| *id <= MAX_CHAIN_ID);
    id.ok_or_else(|| match named() {
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

impl FromStr for HedgeDelay {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        if s == "learnt" {
            return Ok(Self::Learnt);
        }
        parse_duration(s).map(Self::After).map_err(|error| format!("{error}, or learnt"))
    }
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

/// Parses the digest of a manifest: `sha256:` and 64 hex digits.
pub(super) fn parse_digest(s: &str) -> Result<String, String> {
    let digits = s.strip_prefix("sha256:").unwrap_or_default();
    if digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(s.to_ascii_lowercase());
    }
    Err("expected sha256: and 64 hex digits".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hedging_is_learnt_or_a_time() {
        for text in ["learnt", "800ms", "1h"] {
            assert_eq!(text.parse().map(|hedging: HedgeDelay| hedging.to_string()).as_deref(), Ok(text));
        }
        let expected = "expected a duration such as 15s, 500ms or 1m 30s, or learnt";
        assert_eq!("never".parse::<HedgeDelay>().unwrap_err(), expected);
        assert!("2h".parse::<HedgeDelay>().is_err());
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
        assert_eq!("quorum".parse(), Ok(ChainProofMode::Quorum));
        assert_eq!("state-proof".parse(), Ok(ChainProofMode::StateProof));
        assert!("proof".parse::<ChainProofMode>().is_err());
        assert_eq!(parse_quorum("2"), Ok(2));
        for bad in ["", "0", "1", "33", "-2", "two"] {
            assert!(parse_quorum(bad).is_err(), "{bad}");
        }
        assert!(parse_profile("agent-cards/1.0.0+released").is_ok());
        assert!(parse_profile("a b").is_err());
    }
}
