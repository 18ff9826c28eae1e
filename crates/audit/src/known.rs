//! What an audit keeps of a name besides its verdict, to detect changes in a later audit.

use serde::{Deserialize, Serialize};

use super::CardSourceComparison;
use super::on_chain::{OnChainFactKind, OnChainSnapshot, copy_missing_value};
use clresolve_core::digest::Digest;
use clresolve_core::state::TrustState;
use clresolve_core::text::excerpt_text;
use clresolve_verdict::evidence::edition::CardSuccessionFacts;
use clresolve_verdict::verdict::Verdict;

/// What a later audit compares of a name: cards, records and chain data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NameSnapshot {
    /// The reference for the card in a later audit; only for a trusted name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edition: Option<CardSuccessionFacts>,
    /// The card that the CID proves, trusted or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proven: Option<CardSnapshot>,
    /// The card that its URL served, trusted or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub served: Option<CardSnapshot>,
    /// The digest of all records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<String>,
    /// The name's state on the chain; `None` if it was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_chain: Option<OnChainSnapshot>,
}

/// A card as read by an audit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardSnapshot {
    /// SHA-256 of its bytes.
    pub sha256: Digest,
    /// Its `version`, if the verdict is on these bytes.
    pub version: Option<String>,
}

/// What a row carries over from an earlier audit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedOverFacts {
    /// The last decided state, if any.
    pub state: Option<DecidedTrustState>,
    /// The copied members of the row, such as `proven`, or `on_chain.holder` if only a part of `on_chain` was copied.
    pub members: Vec<String>,
}

impl CarriedOverFacts {
    /// Whether a fact about the name on the chain was copied.
    pub(super) fn contains_fact(&self, fact: OnChainFactKind) -> bool {
        let member = match fact {
            OnChainFactKind::Holder => "on_chain.holder",
            OnChainFactKind::Expiry => "on_chain.expiry",
            OnChainFactKind::Records => "records",
        };
        self.members.iter().any(|taken| taken == "on_chain" || taken == member)
    }
}

/// A decided state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DecidedTrustState {
    /// [`TrustState::Trusted`]
    Trusted,
    /// [`TrustState::Untrusted`]
    Untrusted,
}

impl DecidedTrustState {
    /// The state, if it is decided.
    pub const fn from_state(state: TrustState) -> Option<Self> {
        match state {
            TrustState::Trusted => Some(Self::Trusted),
            TrustState::Untrusted => Some(Self::Untrusted),
            TrustState::Indeterminate => None,
        }
    }
}

impl NameSnapshot {
    /// The facts in a verdict with this drift, except the edition, which requires the card itself.
    pub fn from_verdict(verdict: &Verdict, drift: &CardSourceComparison) -> Self {
        let judged = verdict.identity.as_ref();
        let seen = |sha256: Digest| {
            let judged = judged.filter(|identity| identity.card.sha256 == sha256.to_hex());
            CardSnapshot { sha256, version: judged.and_then(|identity| identity.version.as_deref()).map(excerpt_text) }
        };
        Self {
            edition: None,
            proven: drift.proven.map(seen),
            served: drift.served.map(seen),
            records: verdict.anchor.as_ref().and_then(|anchor| anchor.records_digest.clone()),
            on_chain: OnChainSnapshot::from_verdict(verdict),
        }
    }

    /// Copies missing members from an earlier audit, and returns their names. If the chain proves that the name has no
    /// records, it has no card and nothing is missing. The edition is copied anyway: the next trusted card is compared
    /// with it.
    pub fn copy_missing_from(&mut self, earlier: &Self) -> Vec<String> {
        let may_have_card = !self.on_chain.as_ref().is_some_and(OnChainSnapshot::has_no_records);
        let taken = [
            ("edition", copy_missing_value(&mut self.edition, &earlier.edition)),
            ("proven", may_have_card && copy_missing_value(&mut self.proven, &earlier.proven)),
            ("served", may_have_card && copy_missing_value(&mut self.served, &earlier.served)),
            ("records", may_have_card && copy_missing_value(&mut self.records, &earlier.records)),
        ];
        let taken = taken.into_iter().filter(|(_, taken)| *taken).map(|(member, _)| member);
        taken.chain(self.copy_chain_state_from(earlier)).map(str::to_owned).collect()
    }

    /// The digest of the records, if they were read. The inner `None` means that the name has no records.
    pub(super) fn records_digest(&self) -> Option<Option<&str>> {
        let absent = || self.on_chain.as_ref().is_some_and(OnChainSnapshot::has_no_records).then_some(None);
        self.records.as_deref().map(Some).or_else(absent)
    }

    /// Copies the state on the chain, or its unread parts, and returns the copied members.
    fn copy_chain_state_from(&mut self, earlier: &Self) -> Vec<&'static str> {
        match (&mut self.on_chain, &earlier.on_chain) {
            (Some(now), Some(earlier)) => now.copy_missing_from(earlier),
            (now, earlier) => {
                if copy_missing_value(now, earlier) {
                    vec!["on_chain"]
                } else {
                    Vec::new()
                }
            }
        }
    }
}
