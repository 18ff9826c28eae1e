//! Reads a decision, signed or not: every member that the guard relies on has the one form that it can have, or the
//! whole is refused.

use std::time::SystemTime;

use clresolve_core::digest::Digest;
use clresolve_core::json::{Limits, parse};
use clresolve_jose::{Kind, TrustedKeys, verify_compact};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::guard::Payable;

/// Longest answer, in bytes. A decision on 32 entries has some 10 KiB.
pub(crate) const MAX_ANSWER_BYTES: usize = 256 * 1024;

const SCHEMA: &str = "clresolve.decision/1";

/// A signed decision.
const KIND: Kind = Kind { typ: "clresolve-decision+jwt", max_bytes: MAX_ANSWER_BYTES };

/// Seconds by which the clocks of signer and guard may differ.
const SKEW: i64 = 30;

/// Longest time from `iat` to `exp`, in seconds.
const MAX_LIFETIME: i64 = 3600;

/// Most entries of a reply, as the daemon reads them.
const MAX_ENTRIES: usize = 32;

/// What the guard relies on.
#[derive(Debug)]
pub(crate) struct Decision {
    pub(crate) abort: bool,
    pub(crate) codes: Vec<String>,
    /// The entries that pass.
    pub(crate) passing: Vec<Payable>,
    pub(crate) until: Option<SystemTime>,
    /// As it was written.
    pub(crate) document: Value,
}

/// As it is written.
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
    /// The whole of it.
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
    /// The entry with its own end, else that of the decision.
    fn payable(self, shared: Option<SystemTime>) -> Option<Payable> {
        let until = match self.valid_until {
            Some(own) => time(&own)?,
            None => shared?,
        };
        Some(Payable { entry: self.index, until })
    }
}

/// A member that may be missing, and is no null where it is there.
fn given<'de, D: Deserializer<'de>>(d: D) -> Result<Option<String>, D::Error> {
    String::deserialize(d).map(Some)
}

/// A time as the daemon writes it.
fn time(text: &str) -> Option<SystemTime> {
    let time: Timestamp = text.ends_with('Z').then(|| text.parse().ok()).flatten()?;
    Some(time.into())
}

impl Written {
    /// The decision in an answer that is not signed.
    pub(crate) fn plain(text: &[u8]) -> Option<Self> {
        Self::of(read(text)?)
    }

    fn of(document: Value) -> Option<Self> {
        let written = Self::deserialize(&document).ok()?;
        Some(Self { document, ..written })
    }

    /// The decision in a JWS that the signer made for the question with the body `asked`, and that holds now.
    pub(crate) fn signed(text: &[u8], issuer: &str, keys: &TrustedKeys, asked: &[u8], now: Timestamp) -> Option<Self> {
        let (payload, _) = verify_compact(std::str::from_utf8(text).ok()?, keys, &KIND).ok()?;
        let Claims { iss, iat, exp, request, decision } = read(&payload)?;
        // Without the digest an answer to another question, about other terms, would pass.
        let is_answer = iss == issuer && request == Digest::of(asked).to_string();
        let lives = exp.checked_sub(iat).is_some_and(|seconds| (1..=MAX_LIFETIME).contains(&seconds));
        let now = now.as_second();
        let holds = now < exp.saturating_add(SKEW) && iat <= now.saturating_add(SKEW);
        (is_answer && lives && holds).then(|| Self::of(decision)).flatten()
    }

    /// The decision, if it is about this agent and verb.
    pub(crate) fn about(self, name: &str, verb: &str) -> Option<Decision> {
        // What is not allowed aborts, and what does not abort is allowed.
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

/// Reads strict JSON: no member stands there twice.
fn read<T: DeserializeOwned>(text: &[u8]) -> Option<T> {
    let limits = Limits { bytes: MAX_ANSWER_BYTES, ..Limits::DOCUMENT };
    serde_json::from_value(parse(text, limits).ok()?).ok()
}
