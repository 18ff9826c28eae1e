//! Incidents: findings in a verdict that require attention, one event each (CL-68).

use jiff::Timestamp;
use serde::Serialize;

use crate::verdict::Verdict;
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};
use clresolve_core::state::TrustState;
use clresolve_core::text::escape_unsafe_json;

/// The schema identifier of an event.
pub const SCHEMA: &str = "clresolve.incident/1";

/// Category of an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum IncidentKind {
    /// Bytes do not match their CID or checksum, or a card's schemas do not match the manifest.
    ContentMismatch,
    /// A record or a card is designed to mislead, or to reach a forbidden destination.
    Malicious,
    /// A source serves content that differs from what was published, or from what it served before.
    Poisoning,
}

impl IncidentKind {
    /// The category of a finding with this code; `None` for mere mistakes.
    pub const fn from_code(code: ReasonCode) -> Option<Self> {
        match code {
            ReasonCode::CidMismatch
            | ReasonCode::ChecksumMismatch
            | ReasonCode::MirrorCidMismatch
            | ReasonCode::MirrorContentMismatch
            | ReasonCode::SchemaManifestMismatch
            | ReasonCode::SchemaChecksumMismatch => Some(Self::ContentMismatch),
            ReasonCode::TxtUnsafeCharacters
            | ReasonCode::CardUnsafeCharacters
            | ReasonCode::CardDuplicateKey
            | ReasonCode::CardEnsMismatch
            | ReasonCode::TxtEntryMismatch
            | ReasonCode::TxtOwnerMismatch
            | ReasonCode::SourceForbidden
            | ReasonCode::SourceOversize
            | ReasonCode::CidHashForbidden
            | ReasonCode::CidDagInvalid
            | ReasonCode::SecretInCard
            | ReasonCode::PrivateAddressInCard
            | ReasonCode::ScriptInCard => Some(Self::Malicious),
            ReasonCode::GatewayLied
            | ReasonCode::RpcDisagree
            | ReasonCode::ProofRefused
            | ReasonCode::CardChangedSilently
            | ReasonCode::VersionRollback
            | ReasonCode::UpdatedAtNotAdvanced
            | ReasonCode::VersionNotRaised
            | ReasonCode::SchemaIdMismatch
            | ReasonCode::SchemaMirrorMismatch
            | ReasonCode::PublishedVersionMutated => Some(Self::Poisoning),
            _ => None,
        }
    }
}

/// One event. Its texts contain untrusted values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SecurityIncident<'v> {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// The category.
    pub kind: IncidentKind,
    /// The name in normal form.
    pub name: &'v str,
    /// The reason code.
    pub code: ReasonCode,
    /// Effect of the finding on the verdict's state.
    pub effect: ReasonEffect,
    /// What was expected.
    pub expected: Option<&'v str>,
    /// What was found.
    pub observed: Option<&'v str>,
    /// Location: a record's key, a member's JSON Pointer, a source, or an endpoint's label.
    #[serde(rename = "where")]
    pub place: Option<&'v str>,
    /// The network, as in the verdict's `anchor.world`.
    pub world: Option<&'v str>,
    /// Block height; `None` if no block was agreed on.
    pub block: Option<u64>,
    /// Block hash.
    pub block_hash: Option<&'v str>,
    /// The verdict's state.
    pub state: TrustState,
    /// `id` of the verdict, which contains all evidence.
    pub verdict: &'v str,
    /// When the evidence was gathered, RFC 3339.
    pub at: Timestamp,
}

impl<'v> SecurityIncident<'v> {
    /// The incidents in a verdict, in the order of its reasons.
    pub fn from_verdict(verdict: &'v Verdict) -> impl Iterator<Item = Self> {
        verdict.reasons.iter().filter_map(|reason| Self::from_reason(verdict, reason))
    }

    fn from_reason(verdict: &'v Verdict, reason: &'v Reason) -> Option<Self> {
        let anchor = verdict.anchor.as_ref();
        Some(Self {
            schema: SCHEMA,
            kind: IncidentKind::from_code(reason.code)?,
            name: verdict.name.normalized.as_deref().unwrap_or_default(),
            code: reason.code,
            effect: reason.effect,
            expected: reason.expected.as_deref(),
            observed: reason.observed.as_deref(),
            place: reason.place.as_deref(),
            world: anchor.map(|anchor| anchor.world.as_str()),
            block: anchor.map(|anchor| anchor.block.number),
            block_hash: anchor.map(|anchor| anchor.block.hash.as_str()),
            state: verdict.state,
            verdict: &verdict.id,
            at: verdict.freshness.checked_at,
        })
    }

    /// The event as one line of JSON, safe to print to a terminal or a log.
    pub fn to_line(&self) -> String {
        let json = serde_json::to_string(self).expect("texts, numbers and words have a JSON form");
        escape_unsafe_json(&json)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::Value;

    use super::*;
    use crate::sample;

    #[test]
    fn an_event_names_what_a_reader_needs() {
        let mut verdict =
            sample::empty_resolution(TrustState::Untrusted, Timestamp::UNIX_EPOCH, 0).verdict().as_ref().clone();
        let reason = |code| Reason::new(code).expected("a").observed("b\u{202e}\u{9b}\n").at_place("https");
        verdict.reasons = vec![
            reason(ReasonCode::CidMismatch),
            reason(ReasonCode::StatusDeprecated),
            reason(ReasonCode::GatewayLied),
        ];
        let events: Vec<_> = SecurityIncident::from_verdict(&verdict).collect();
        assert_eq!(
            events.iter().map(|event| event.code).collect::<Vec<_>>(),
            [ReasonCode::CidMismatch, ReasonCode::GatewayLied]
        );
        let line = events[0].to_line();
        assert!(line.chars().all(|c| c.is_ascii_graphic() || c == ' '), "{line}");
        let read: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!((&read["schema"], &read["kind"]), (&SCHEMA.into(), &"content-mismatch".into()));
        assert_eq!((&read["code"], &read["observed"]), (&"cid-mismatch".into(), &"b\u{202e}\u{9b}\n".into()));
        assert_eq!((&read["verdict"], &read["block"]), (&verdict.id.as_str().into(), &Value::Null));
    }

    #[test]
    fn slips_and_outages_are_no_incidents() {
        for code in
            [ReasonCode::TxtMissing, ReasonCode::SourceUnavailable, ReasonCode::EntryMalformed, ReasonCode::CidUnproven]
        {
            assert_eq!(IncidentKind::from_code(code), None, "{code}");
        }
    }
}
