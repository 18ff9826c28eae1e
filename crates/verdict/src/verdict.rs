//! The verdict: what clresolve answers, with all its evidence. Pure data; one JSON form for CLI, HTTP and library.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use clresolve_core::digest::Digest;
use clresolve_core::reading::Proof;
use clresolve_core::reason;
use clresolve_core::reason::{Effect, Reason, Step};
use clresolve_core::state::{NearMiss, State};

/// The verdict's schema identifier.
pub const SCHEMA: &str = "clresolve.verdict/1";

/// A finished verdict on one name. Its JSON form is `schemas/verdict.schema.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// SHA-256 over the RFC 8785 form of the whole verdict less `id` and `freshness.served`.
    pub id: String,
    /// SHA-256 over the RFC 8785 form of what two honest resolvers agree on at the same block.
    pub conclusion: String,
    /// The name, as typed and in normal form.
    pub name: Name,
    /// The state.
    pub state: State,
    /// One plain sentence.
    pub summary: String,
    /// Everything found, sorted by effect, step and code.
    pub reasons: Vec<Reason>,
    /// Who the agent is; absent when no card was read.
    pub identity: Option<Identity>,
    /// Where on which chain it was read; absent when nothing was.
    pub anchor: Option<Anchor>,
    /// The rules in force.
    pub profile: ProfileUsed,
    /// Each step of the walk.
    pub steps: Vec<StepReport>,
    /// How long the verdict may be relied on.
    pub freshness: Freshness,
    /// The program that made it.
    pub tool: Tool,
}

/// The name that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name {
    /// As typed.
    pub input: String,
    /// ENSIP-15 normal form; absent when the input has none.
    pub normalized: Option<String>,
    /// EIP-137 namehash, `0x` and 64 hex digits.
    pub node: Option<String>,
}

/// The agent, by its card.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// The card's `ens`.
    pub ens: Option<String>,
    /// The owner.
    pub owner: Option<Owner>,
    /// `commons` or `commercial`.
    pub class: Option<String>,
    /// Lifecycle word.
    pub status: Option<String>,
    /// Version of the card.
    pub version: Option<String>,
    /// `implements`.
    pub verbs: Vec<String>,
    /// The x402 entry.
    pub entry: Option<String>,
    /// CAIP-2 chains.
    pub networks: Vec<String>,
    /// The document.
    pub card: CardDigest,
}

impl Identity {
    /// What to call for `verb`, or at all where none is named: the entry is that of the first verb (CL-70).
    pub fn entry_for(&self, verb: Option<&str>) -> Option<&str> {
        let is_its_own = verb.is_none_or(|verb| self.verbs.first().is_some_and(|first| first == verb));
        self.entry.as_deref().filter(|_| is_its_own)
    }
}

/// The owner of an identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The value of `cl.owner`.
    pub name: String,
    /// Whether the chain shows, at the pinned block, that this owner controls the name.
    pub proven: bool,
}

/// The card's document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardDigest {
    /// SHA-256, 64 hex digits.
    pub sha256: String,
    /// The CID in `cl.cid.agentcard`, when the bytes were proven under it.
    pub cid: Option<String>,
    /// The path under that CID.
    pub path: Option<String>,
    /// Length in bytes.
    pub bytes: u64,
}

/// Where on which chain the records were read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// `mainnet`, `sandbox`, or what the configuration names.
    pub world: String,
    /// CAIP-2 identifier of the chain.
    pub chain: String,
    /// The block.
    pub block: AnchorBlock,
    /// Address of the resolver that answered.
    pub resolver: Option<String>,
    /// The ancestor whose resolver it is, for a wildcard name.
    pub wildcard: Option<String>,
    /// Whether the records came through CCIP-Read.
    pub offchain: bool,
    /// The proof of the reading.
    pub proof: Proof,
    /// SHA-256 over the RFC 8785 form of all records that were read.
    pub records_digest: Option<String>,
}

/// The block of an [`Anchor`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnchorBlock {
    /// Height.
    pub number: u64,
    /// Hash, `0x` and 64 hex digits.
    pub hash: String,
    /// Time of the header, RFC 3339.
    pub timestamp: String,
    /// The selector: `finalized`, `safe`, `latest` or the number.
    pub tag: String,
}

impl AnchorBlock {
    /// Whether the question chose it by its number: it is about the past, and says nothing of now.
    pub fn is_chosen_by_number(&self) -> bool {
        self.tag.bytes().all(|byte| byte.is_ascii_digit())
    }
}

/// Identifier and digest of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pinned {
    /// Identifier.
    pub id: String,
    /// `sha256:` and 64 hex digits.
    pub digest: String,
}

/// The rules that were applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileUsed {
    /// Identifier of the profile.
    pub id: String,
    /// How deep the walk went.
    pub depth: Depth,
    /// Digest of the profile.
    pub digest: String,
    /// The manifests of the profile.
    pub manifests: Vec<Pinned>,
    /// Other profiles under which the same evidence would pass.
    pub near_misses: Vec<NearMiss>,
}

/// How deep the walk goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Depth {
    /// Name, records, card and schema locations.
    #[default]
    Identity,
    /// The bytes of the bound schemas too.
    Schemas,
}

impl Depth {
    /// Every depth.
    pub const ALL: [Self; 2] = [Self::Identity, Self::Schemas];

    /// The word for it in questions and verdicts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Schemas => "schemas",
        }
    }
}

impl fmt::Display for Depth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What happened in one step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepReport {
    /// The step.
    pub step: Step,
    /// How it ended.
    pub status: Status,
    /// What was seen.
    pub evidence: Value,
    /// Duration in milliseconds.
    pub ms: u64,
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Decided, and right.
    Pass,
    /// Decided, and wrong.
    Fail,
    /// Not decided.
    Unknown,
    /// Not run.
    Skip,
}

/// How long a verdict may be relied on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Freshness {
    /// When the evidence was gathered.
    pub checked_at: Timestamp,
    /// Until when the verdict may be served without a new run.
    pub fresh_until: Timestamp,
    /// For an indeterminate verdict: seconds to wait before asking again.
    pub retry_after: Option<u64>,
    /// How this copy was served.
    pub served: Served,
}

impl Freshness {
    /// How old the evidence is at `now`; zero where the clocks disagree.
    pub fn age(&self, now: Timestamp) -> Duration {
        between(self.checked_at, now)
    }

    /// For how long, from the moment when the evidence was gathered, the verdict may be relied on.
    pub fn lifetime(&self) -> Duration {
        between(self.checked_at, self.fresh_until)
    }
}

fn between(earlier: Timestamp, later: Timestamp) -> Duration {
    later.duration_since(earlier).try_into().unwrap_or_default()
}

/// How a copy of a verdict was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Served {
    /// From a run of its own.
    Fresh,
    /// From the cache, still fresh.
    Cached,
    /// From the cache, no longer fresh: the run that should have replaced it failed. Only a description says so.
    Stale,
}

/// The program that made the verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// Always `clresolve`.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl Default for Tool {
    fn default() -> Self {
        Self { name: "clresolve".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

impl Verdict {
    /// Sorts the reasons, and sets `conclusion` and `id`, which are digests of everything else.
    #[must_use]
    pub fn with_digests(mut self) -> Self {
        reason::sort(&mut self.reasons);
        self.conclusion = self.conclude();
        self.id = self.identify();
        self
    }

    /// The reasons why it is not trusted; none where it is.
    pub fn against(&self) -> impl Iterator<Item = &Reason> {
        let is_not_trusted = self.state != State::Trusted;
        self.reasons.iter().filter(move |reason| is_not_trusted && reason.effect != Effect::Warn)
    }

    /// What two honest resolvers agree on at the same block; see [`Verdict::conclusion`].
    fn conclude(&self) -> String {
        let codes: std::collections::BTreeSet<&str> =
            self.reasons.iter().filter(|r| r.effect != Effect::Warn).map(|r| r.code.slug()).collect();
        let anchor = self.anchor.as_ref();
        canonical_digest(&serde_json::json!({
            "schema": self.schema,
            "name": self.name.normalized,
            "state": self.state,
            "codes": codes,
            "identity": self.identity,
            "world": anchor.map(|a| &a.world),
            "chain": anchor.map(|a| &a.chain),
            "block": anchor.map(|a| &a.block.hash),
            "records": anchor.and_then(|a| a.records_digest.as_ref()),
            "profile": {"id": self.profile.id, "digest": self.profile.digest},
            "depth": self.profile.depth,
        }))
    }

    fn identify(&self) -> String {
        let mut value = serde_json::to_value(self).expect("a verdict has a JSON form: its keys are strings");
        if let Some(freshness) = value.get_mut("freshness").and_then(Value::as_object_mut) {
            freshness.remove("served");
        }
        document_id(value)
    }

    /// Whether `id` and `conclusion` are the digests of what the verdict says.
    pub fn has_right_digests(&self) -> bool {
        self.conclusion == self.conclude() && self.id == self.identify()
    }
}

/// What a document carries as its `id`: the [`canonical_digest`] of its other members.
pub fn document_id(mut document: Value) -> String {
    if let Some(members) = document.as_object_mut() {
        members.remove("id");
    }
    canonical_digest(&document)
}

/// `sha256:` and the digest of the RFC 8785 form of `value`.
pub fn canonical_digest(value: &Value) -> String {
    let bytes =
        if prints_canonically(value) { serde_json::to_vec(value) } else { serde_json_canonicalizer::to_vec(value) };
    Digest::of(&bytes.expect("a JSON value has an RFC 8785 form")).to_string()
}

/// Whether a value's RFC 8785 form is what is printed of it as it stands, as of nearly all documents: its members stand in
/// order, under names of ASCII, and its numbers are integers that a double holds. To sort and print the others takes many
/// times as long.
fn prints_canonically(value: &Value) -> bool {
    const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => number.as_i64().is_some_and(|number| number.unsigned_abs() <= MAX_SAFE_INTEGER),
        Value::Array(items) => items.iter().all(prints_canonically),
        Value::Object(members) => {
            // Another crate may have serde_json keep members in the order in which they came.
            let names = members.keys();
            names.clone().is_sorted()
                && names.clone().all(|name| name.is_ascii())
                && members.values().all(prints_canonically)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_is_digested_in_its_rfc_8785_form() {
        let plain = [
            json!({"b": [1, -2, 9_007_199_254_740_991_i64, null, true], "a": {"c": "", "B": {}}}),
            json!("\u{0}\u{8}\t\n\u{c}\r\u{1f}\"\\/\u{7f}\u{2028}ü\u{1f600}"),
        ];
        let others = [
            json!({"\u{e000}": 1, "\u{10000}": 2, "ü": 3}),
            json!([1.0, 1.5, 1e21, 1e-7, -0.0]),
            json!(9_007_199_254_740_993_u64),
            json!(u64::MAX),
        ];
        for (value, is_plain) in
            plain.iter().map(|value| (value, true)).chain(others.iter().map(|value| (value, false)))
        {
            let form = serde_json_canonicalizer::to_vec(value).expect("it has one");
            assert_eq!(canonical_digest(value), Digest::of(&form).to_string(), "{value}");
            assert_eq!(prints_canonically(value), is_plain, "{value}");
        }
    }
}
