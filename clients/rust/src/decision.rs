//! Reads a signed or unsigned decision. Every member that the guard relies on must have its only valid form; otherwise
//! the whole decision is rejected.

use std::time::SystemTime;

use clresolve_core::digest::Digest;
use clresolve_core::json::{Limits, parse};
use clresolve_jose::{Kind, TrustedKeys, verify_compact};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::reply::Payable;

/// Maximum size of a response, in bytes. A decision on 32 entries has about 10 KiB.
pub(crate) const MAX_ANSWER_BYTES: usize = 256 * 1024;

const SCHEMA: &str = "clresolve.decision/1";

/// The JWS type of a signed decision.
const KIND: Kind = Kind { typ: "clresolve-decision+jwt", max_bytes: MAX_ANSWER_BYTES };

/// Maximum clock difference between signer and guard, in seconds.
const SKEW: i64 = 30;

/// Maximum time from `iat` to `exp`, in seconds.
const MAX_LIFETIME: i64 = 3600;

/// Maximum number of entries of a 402 response, as in the daemon.
const MAX_ENTRIES: usize = 32;

/// The parts of a decision that the guard relies on.
#[derive(Debug)]
pub(crate) struct Decision {
    pub(crate) abort: bool,
    pub(crate) codes: Vec<String>,
    /// The entries that may be paid.
    pub(crate) passing: Vec<Payable>,
    pub(crate) until: Option<SystemTime>,
    /// The original document.
    pub(crate) document: Value,
}

/// A decision in its JSON form.
#[derive(Deserialize)]
pub(crate) struct Written {
    schema: String,
    name: String,
    verb: String,
    decision: Outcome,
    abort: bool,
    codes: Vec<String>,
    entries: Vec<Entry>,
    valid_until: Option<String>,
    /// The original document.
    #[serde(skip)]
    document: Value,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Allow,
    Deny,
    Undecided,
}

#[derive(Deserialize)]
struct Entry {
    index: usize,
    abort: bool,
    #[serde(default, deserialize_with = "given")]
    valid_until: Option<String>,
}

impl Entry {
    /// The entry with its own expiry or, without one, that of the decision.
    fn payable(self, shared: Option<SystemTime>) -> Option<Payable> {
        let until = match self.valid_until {
            Some(own) => time(&own)?,
            None => shared?,
        };
        Some(Payable { entry: self.index, until })
    }
}

/// Reads a member that may be missing but not null.
fn given<'de, D: Deserializer<'de>>(d: D) -> Result<Option<String>, D::Error> {
    String::deserialize(d).map(Some)
}

/// Parses a time in the daemon's format.
fn time(text: &str) -> Option<SystemTime> {
    let time: Timestamp = text.ends_with('Z').then(|| text.parse().ok()).flatten()?;
    Some(time.into())
}

impl Written {
    /// Reads the decision in an unsigned response.
    pub(crate) fn plain(text: &[u8]) -> Option<Self> {
        Self::of(read(text)?)
    }

    fn of(document: Value) -> Option<Self> {
        let written = Self::deserialize(&document).ok()?;
        Some(Self { document, ..written })
    }

    /// Reads the decision in a JWS, if the signer made it for the request body `asked` and it has not expired.
    pub(crate) fn signed(text: &[u8], issuer: &str, keys: &TrustedKeys, asked: &[u8], now: Timestamp) -> Option<Self> {
        let (payload, _) = verify_compact(std::str::from_utf8(text).ok()?, keys, &KIND).ok()?;
        let Claims { iss, iat, exp, request, decision } = read(&payload)?;
        // Without the digest, the answer to another request, about other terms, would be accepted.
        let is_answer = iss == issuer && request == Digest::of(asked).to_string();
        let lives = exp.checked_sub(iat).is_some_and(|seconds| (1..=MAX_LIFETIME).contains(&seconds));
        let now = now.as_second();
        let holds = now < exp.saturating_add(SKEW) && iat <= now.saturating_add(SKEW);
        (is_answer && lives && holds).then(|| Self::of(decision)).flatten()
    }

    /// The decision, if it is about this agent and verb.
    pub(crate) fn about(self, name: &str, verb: &str) -> Option<Decision> {
        // `abort` must be set exactly if the decision is not `allow`.
        let is_sound = self.schema == SCHEMA && self.abort == (self.decision != Outcome::Allow);
        if !is_sound || self.name != name || self.verb != verb {
            return None;
        }
        let mut places: Vec<_> = self.entries.iter().map(|entry| entry.index).collect();
        places.sort_unstable();
        if places.windows(2).any(|pair| pair[0] == pair[1]) || places.last().is_some_and(|last| *last >= MAX_ENTRIES) {
            return None;
        }
        let until = match self.valid_until {
            None => None,
            Some(text) => Some(time(&text)?),
        };
        let passing = self.entries.into_iter().filter(|entry| !entry.abort).map(|entry| entry.payable(until));
        let passing = passing.collect::<Option<_>>()?;
        Some(Decision { abort: self.abort, codes: self.codes, passing, until, document: self.document })
    }
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    iat: i64,
    exp: i64,
    request: String,
    decision: Value,
}

/// Parses strict JSON: duplicate members are rejected.
fn read<T: DeserializeOwned>(text: &[u8]) -> Option<T> {
    let limits = Limits { bytes: MAX_ANSWER_BYTES, ..Limits::DOCUMENT };
    serde_json::from_value(parse(text, limits).ok()?).ok()
}
