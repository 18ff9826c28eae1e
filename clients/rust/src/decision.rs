//! Reads a signed or unsigned decision, or a check. Every member that the guard relies on must have its only valid
//! form; otherwise the whole decision is rejected.

use std::error::Error;
use std::time::SystemTime;

use clresolve_core::digest::Digest;
use clresolve_core::json::{JsonLimits, parse_strict_json};
use clresolve_jose::{Ed25519KeySet, JwsProfile, verify_compact_jws};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::reply::PayableEntry;

/// Maximum size of a response, in bytes. A decision on 32 entries has about 10 KiB.
pub(crate) const MAX_ANSWER_BYTES: usize = 256 * 1024;

/// The JWS type of a signed decision.
const KIND: JwsProfile = JwsProfile { typ: "clresolve-decision+jwt", max_bytes: MAX_ANSWER_BYTES };

/// Maximum clock difference between signer and guard, in seconds.
const SKEW: i64 = 30;

/// Maximum time from `iat` to `exp`, in seconds.
const MAX_LIFETIME: i64 = 3600;

/// Maximum number of entries of a 402 response, as in the daemon.
const MAX_ENTRIES: usize = 32;

/// Why a response contains no decision. The text may quote the response.
pub(crate) type InvalidDecisionError = Box<dyn Error + Send + Sync>;

/// The parts of a decision that the guard relies on.
#[derive(Debug)]
pub(crate) struct CheckedDecision {
    pub(crate) abort: bool,
    /// The codes that decide.
    pub(crate) codes: Vec<String>,
    /// The entries that may be paid.
    pub(crate) passing: Vec<PayableEntry>,
    pub(crate) until: Option<SystemTime>,
    /// The original document.
    pub(crate) document: Value,
}

/// A decision in its JSON form. A check has its members, and may have no name or verb.
#[derive(Deserialize)]
pub(crate) struct DecisionDocument {
    schema: String,
    name: Option<String>,
    verb: Option<String>,
    decision: DaemonDecisionOutcome,
    abort: bool,
    codes: Vec<String>,
    #[serde(default)]
    reasons: Value,
    entries: Vec<DecisionEntryDocument>,
    valid_until: Option<String>,
    /// The original document.
    #[serde(skip)]
    document: Value,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum DaemonDecisionOutcome {
    Allow,
    Deny,
    Undecided,
}

#[derive(Deserialize)]
struct DecisionEntryDocument {
    index: usize,
    abort: bool,
    #[serde(default, deserialize_with = "deserialize_non_null")]
    valid_until: Option<String>,
}

impl DecisionEntryDocument {
    /// The entry with its own expiry or, without one, that of the decision.
    fn into_payable_entry(self, shared: Option<SystemTime>) -> Result<PayableEntry, InvalidDecisionError> {
        let until = match self.valid_until {
            Some(own) => parse_utc_time(&own)?,
            None => shared.ok_or("an allowed entry has no valid_until")?,
        };
        Ok(PayableEntry { entry: self.index, until })
    }
}

/// Reads a member that may be missing but not null.
fn deserialize_non_null<'de, D: Deserializer<'de>>(d: D) -> Result<Option<String>, D::Error> {
    String::deserialize(d).map(Some)
}

/// Parses a time in the daemon's format.
fn parse_utc_time(text: &str) -> Result<SystemTime, InvalidDecisionError> {
    if !text.ends_with('Z') {
        return Err("a time is not in UTC".into());
    }
    Ok(text.parse::<Timestamp>()?.into())
}

impl DecisionDocument {
    /// Reads the decision in an unsigned response.
    pub(crate) fn from_unsigned_json(text: &[u8]) -> Result<Self, InvalidDecisionError> {
        Self::from_document(parse_answer(text)?)
    }

    fn from_document(document: Value) -> Result<Self, InvalidDecisionError> {
        let written = Self::deserialize(&document)?;
        Ok(Self { document, ..written })
    }

    /// Reads the decision in a JWS, if the signer made it for the request body `asked` and it has not expired.
    pub(crate) fn from_jws(
        text: &[u8],
        issuer: &str,
        keys: &Ed25519KeySet,
        asked: &[u8],
        now: Timestamp,
    ) -> Result<Self, InvalidDecisionError> {
        let (payload, _) = verify_compact_jws(std::str::from_utf8(text)?, keys, &KIND)?;
        let SignedDecisionClaims { iss, iat, exp, request, decision } = parse_answer(&payload)?;
        // Without the digest, the answer to another request, about other terms, would be accepted.
        let is_answer = iss == issuer && request == Digest::compute(asked).to_string();
        let lives = exp.checked_sub(iat).is_some_and(|seconds| (1..=MAX_LIFETIME).contains(&seconds));
        let now = now.as_second();
        let holds = now < exp.saturating_add(SKEW) && iat <= now.saturating_add(SKEW);
        if !is_answer {
            return Err("the JWS has another issuer or answers another request".into());
        }
        if !lives || !holds {
            return Err("the JWS is not valid now, or for too long".into());
        }
        Self::from_document(decision)
    }

    /// The decision, if it has this schema, and is about this name and verb. What was not asked about is not compared.
    pub(crate) fn into_checked_decision(
        self,
        schema: &str,
        name: Option<&str>,
        verb: Option<&str>,
    ) -> Result<CheckedDecision, InvalidDecisionError> {
        // `abort` must be set exactly if the decision is not `allow`.
        let is_sound = self.schema == schema && self.abort == (self.decision != DaemonDecisionOutcome::Allow);
        let is_other = |asked: Option<&str>, told: &Option<String>| asked.is_some() && told.as_deref() != asked;
        if !is_sound || is_other(name, &self.name) || is_other(verb, &self.verb) {
            return Err("the decision has another schema, agent or verb, or contradicts itself".into());
        }
        let mut places: Vec<_> = self.entries.iter().map(|entry| entry.index).collect();
        places.sort_unstable();
        if places.windows(2).any(|pair| pair[0] == pair[1]) || places.last().is_some_and(|last| *last >= MAX_ENTRIES) {
            return Err("an index occurs twice or is too large".into());
        }
        let until = self.valid_until.as_deref().map(parse_utc_time).transpose()?;
        let passing =
            self.entries.into_iter().filter(|entry| !entry.abort).map(|entry| entry.into_payable_entry(until));
        let passing = passing.collect::<Result<_, _>>()?;
        let listed = self.reasons.as_array().into_iter().flatten();
        let warnings = listed.filter(|reason| reason["effect"] == "warn").filter_map(|reason| reason["code"].as_str());
        let codes = remove_warning_codes(self.codes, &warnings.collect::<Vec<_>>());
        Ok(CheckedDecision { abort: self.abort, codes, passing, until, document: self.document })
    }
}

/// The codes that are not warnings. The first always remains: if the gate denies a warning, its code is the first one.
pub(crate) fn remove_warning_codes(codes: Vec<String>, warnings: &[&str]) -> Vec<String> {
    let codes = codes.into_iter().enumerate();
    codes.filter(|(at, code)| *at == 0 || !warnings.contains(&code.as_str())).map(|(_, code)| code).collect()
}

#[derive(Deserialize)]
struct SignedDecisionClaims {
    iss: String,
    iat: i64,
    exp: i64,
    request: String,
    decision: Value,
}

/// Parses strict JSON: duplicate members are rejected.
fn parse_answer<T: DeserializeOwned>(text: &[u8]) -> Result<T, InvalidDecisionError> {
    let limits = JsonLimits { bytes: MAX_ANSWER_BYTES, ..JsonLimits::DOCUMENT };
    Ok(serde_json::from_value(parse_strict_json(text, limits)?)?)
}
