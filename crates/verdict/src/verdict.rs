//! The verdict: the result of a resolution, with its evidence. Pure data, with one JSON form for CLI, HTTP and library.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use clresolve_core::digest::Digest;
use clresolve_core::reading::ProofStrength;
use clresolve_core::reason;
use clresolve_core::reason::{Reason, ReasonEffect, ResolutionStep};
use clresolve_core::state::{TrustState, TrustStateUnderOtherProfile};

use crate::canonical;

/// The verdict's schema identifier.
pub const SCHEMA: &str = "clresolve.verdict/1";

/// A finished verdict on one name. Its JSON form is `schemas/verdict.schema.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// SHA-256 over the RFC 8785 form of the whole verdict without `id`, `freshness.served` and
    /// `freshness.confirmed`.
    pub id: String,
    /// SHA-256 over the RFC 8785 form of the members on which two honest resolvers agree at the same block.
    pub conclusion: String,
    /// The name, as typed and in normal form.
    pub name: RequestedName,
    /// Whether the agent is trusted.
    pub state: TrustState,
    /// One sentence for a person.
    pub summary: String,
    /// Every finding, sorted by effect, step and code.
    pub reasons: Vec<Reason>,
    /// The agent's identity; absent if no card was read.
    pub identity: Option<AgentIdentity>,
    /// The block and resolver from which the records were read; absent if nothing was read.
    pub anchor: Option<ChainAnchor>,
    /// The rules that were applied.
    pub profile: AppliedProfile,
    /// A report for each step of the resolution.
    pub steps: Vec<StepReport>,
    /// How long the verdict may be relied on.
    pub freshness: Freshness,
    /// The program that made the verdict.
    pub tool: ToolVersion,
}

/// The name that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedName {
    /// The name as the caller typed it.
    pub input: String,
    /// ENSIP-15 normal form; absent when the input has none.
    pub normalized: Option<String>,
    /// EIP-137 namehash, `0x` and 64 hex digits.
    pub node: Option<String>,
}

/// The agent's identity as its card states it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentIdentity {
    /// The card's `ens`.
    pub ens: Option<String>,
    /// The owner and whether it is proven.
    pub owner: Option<AgentOwnerClaim>,
    /// `commons` or `commercial`.
    pub class: Option<String>,
    /// The lifecycle status, such as `active`.
    pub status: Option<String>,
    /// Version of the card.
    pub version: Option<String>,
    /// The verbs in `implements`.
    pub verbs: Vec<String>,
    /// URL of the x402 entry point.
    pub entry: Option<String>,
    /// CAIP-2 identifiers of the networks on which the agent is paid.
    pub networks: Vec<String>,
    /// Digest and location of the card's document.
    pub card: CardReference,
}

impl AgentIdentity {
    /// The URL to call for `verb`, or for the agent in general if `verb` is `None`. The card's entry serves only the
    /// first verb, so any other verb yields `None` (CL-70).
    pub fn entry_url_for_verb(&self, verb: Option<&str>) -> Option<&str> {
        let is_its_own = verb.is_none_or(|verb| self.verbs.first().is_some_and(|first| first == verb));
        self.entry.as_deref().filter(|_| is_its_own)
    }
}

/// The owner of an identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentOwnerClaim {
    /// The value of `cl.owner`.
    pub name: String,
    /// Whether the chain shows, at the pinned block, that this owner controls the name.
    pub proven: bool,
}

/// Digest and location of the card's document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardReference {
    /// SHA-256, 64 hex digits.
    pub sha256: String,
    /// The CID in `cl.cid.agentcard`, if the card's bytes were proven under it.
    pub cid: Option<String>,
    /// The path under that CID.
    pub path: Option<String>,
    /// Length in bytes.
    pub bytes: u64,
}

/// The block and resolver from which the records were read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainAnchor {
    /// The network: `mainnet`, `sandbox`, or the name from the configuration.
    pub world: String,
    /// CAIP-2 identifier of the chain.
    pub chain: String,
    /// The block at which the records were read.
    pub block: AnchorBlock,
    /// Address of the ENS resolver contract that answered.
    pub resolver: Option<String>,
    /// For a wildcard name, the ancestor whose resolver answered.
    pub wildcard: Option<String>,
    /// Whether the records came through CCIP-Read.
    pub offchain: bool,
    /// The proof that backs the records.
    pub proof: ProofStrength,
    /// SHA-256 over the RFC 8785 form of all records that were read.
    pub records_digest: Option<String>,
}

/// The block of a [`ChainAnchor`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnchorBlock {
    /// Block height.
    pub number: u64,
    /// Block hash, `0x` and 64 hex digits.
    pub hash: String,
    /// Timestamp of the header, RFC 3339.
    pub timestamp: String,
    /// The block selector: `finalized`, `safe`, `latest` or the number.
    pub tag: String,
}

impl AnchorBlock {
    /// Whether the caller chose the block by number. Such a verdict describes the past, not the present.
    pub fn is_chosen_by_number(&self) -> bool {
        self.tag.bytes().all(|byte| byte.is_ascii_digit())
    }
}

/// Identifier and digest of a pinned document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedDocument {
    /// Identifier of the document.
    pub id: String,
    /// `sha256:` and 64 hex digits.
    pub digest: String,
}

/// The rules that were applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedProfile {
    /// Identifier of the profile.
    pub id: String,
    /// Depth of the resolution.
    pub depth: ResolutionDepth,
    /// Digest of the profile.
    pub digest: String,
    /// Manifests that the profile pins.
    pub manifests: Vec<PinnedDocument>,
    /// Other profiles under which the same evidence would pass.
    pub near_misses: Vec<TrustStateUnderOtherProfile>,
}

/// Depth of a resolution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResolutionDepth {
    /// Checks name, records, card and schema locations.
    #[default]
    Identity,
    /// Also fetches and checks the bytes of the bound schemas.
    Schemas,
}

impl ResolutionDepth {
    /// Every depth, shallowest first.
    pub const ALL: [Self; 2] = [Self::Identity, Self::Schemas];

    /// The word for this depth in requests and verdicts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Schemas => "schemas",
        }
    }
}

impl fmt::Display for ResolutionDepth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Result of one step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepReport {
    /// The step.
    pub step: ResolutionStep,
    /// How it ended.
    pub status: StepStatus,
    /// What the step observed.
    pub evidence: Value,
    /// Duration in milliseconds.
    pub ms: u64,
}

/// Result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepStatus {
    /// Decided: the step passed.
    Pass,
    /// Decided: the step failed.
    Fail,
    /// Undecided.
    Unknown,
    /// Not run.
    Skip,
}

/// How long a verdict may be relied on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Freshness {
    /// When the evidence was gathered.
    pub checked_at: Timestamp,
    /// End of the period during which the verdict may be served without a new resolution.
    pub fresh_until: Timestamp,
    /// For an indeterminate verdict: seconds to wait before the next request.
    pub retry_after: Option<u64>,
    /// Where the verdict was last confirmed. `None` if the newest block was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<VerdictConfirmationSource>,
    /// How this copy was served.
    pub served: VerdictCopyKind,
}

impl Freshness {
    /// Age of the evidence at `now`; zero if `now` precedes `checked_at` because the clocks disagree.
    pub fn age(&self, now: Timestamp) -> Duration {
        nonnegative_duration_between(self.checked_at, now)
    }

    /// Time from `checked_at` to `fresh_until`.
    pub fn lifetime(&self) -> Duration {
        nonnegative_duration_between(self.checked_at, self.fresh_until)
    }
}

fn nonnegative_duration_between(earlier: Timestamp, later: Timestamp) -> Duration {
    later.duration_since(earlier).try_into().unwrap_or_default()
}

/// Where a verdict was last confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictConfirmationSource {
    /// At this block, the newest that enough endpoints had reached.
    Head(u64),
    /// At the CCIP-Read gateway that holds the records, which is asked once a minute.
    OffChain,
}

/// How a copy of a verdict was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum VerdictCopyKind {
    /// From a new resolution.
    Fresh,
    /// From the cache, still fresh.
    Cached,
    /// From the cache and expired, because the refresh failed. Served only in descriptions of a name.
    Stale,
}

/// The program that made the verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolVersion {
    /// Always `clresolve`.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl Default for ToolVersion {
    fn default() -> Self {
        Self { name: "clresolve".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

impl Verdict {
    /// Sorts the reasons, then computes `conclusion` and `id` from all other members.
    #[must_use]
    pub fn with_computed_digests(mut self) -> Self {
        reason::sort_reasons(&mut self.reasons);
        self.conclusion = self.compute_conclusion();
        self.id = self.compute_id();
        self
    }

    /// The same verdict without its confirmation, of which a bundle has no evidence.
    #[must_use]
    pub fn without_confirmation(&self) -> Self {
        Self { freshness: Freshness { confirmed: None, ..self.freshness.clone() }, ..self.clone() }
    }

    /// The reasons against trust; empty for a trusted verdict.
    pub fn reasons_against(&self) -> impl Iterator<Item = &Reason> {
        let is_not_trusted = self.state != TrustState::Trusted;
        self.reasons.iter().filter(move |reason| is_not_trusted && reason.effect != ReasonEffect::Warn)
    }

    /// Computes [`Verdict::conclusion`].
    fn compute_conclusion(&self) -> String {
        let codes: std::collections::BTreeSet<&str> =
            self.reasons.iter().filter(|r| r.effect != ReasonEffect::Warn).map(|r| r.code.slug()).collect();
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

    fn compute_id(&self) -> String {
        canonical_digest_without(self, &[&["id"], &["freshness", "served"], &["freshness", "confirmed"]])
    }

    /// Whether `id` and `conclusion` match the verdict's content.
    pub fn has_valid_digests(&self) -> bool {
        self.conclusion == self.compute_conclusion() && self.id == self.compute_id()
    }
}

/// The `id` of a document: the [`canonical_digest`] of its other members.
pub fn document_id(document: &impl Serialize) -> String {
    canonical_digest_without(document, &[&["id"]])
}

/// `sha256:` and the SHA-256 of the RFC 8785 form of `value`.
pub fn canonical_digest(value: &impl Serialize) -> String {
    canonical_digest_without(value, &[])
}

fn canonical_digest_without(value: &impl Serialize, omitted: &[&[&str]]) -> String {
    let form = canonical::canonical_json_without(value, omitted).expect("it has a JSON form: its keys are strings");
    Digest::compute(&form).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_covers_all_but_how_a_copy_was_served() {
        let resolution = crate::sample::empty_resolution(TrustState::Trusted, Timestamp::UNIX_EPOCH, 0);
        let mut verdict = resolution.verdict().as_ref().clone().with_computed_digests();
        let mut document = serde_json::to_value(&verdict).expect("it has a JSON form");
        document.as_object_mut().expect("an object").remove("id");
        document["freshness"].as_object_mut().expect("an object").remove("served");
        let form = serde_json_canonicalizer::to_vec(&document).expect("it has one");
        assert_eq!(verdict.id, Digest::compute(&form).to_string());
        verdict.freshness.confirmed = Some(VerdictConfirmationSource::Head(7));
        verdict.freshness.served = VerdictCopyKind::Stale;
        assert!(verdict.has_valid_digests());
        verdict.freshness.retry_after = Some(8);
        assert!(!verdict.has_valid_digests());
    }
}
