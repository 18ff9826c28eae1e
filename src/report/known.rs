//! What an audit keeps of a name beside its verdict, so that a later audit sees what changed.

use serde::{Deserialize, Serialize};

use super::Drift;
use super::on_chain::{OnChain, take};
use crate::digest::Digest;
use crate::evidence::edition::Edition;
use crate::text::excerpt;
use crate::verdict::{State, Verdict};

/// What is known of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Known {
    /// What a later audit holds the card against; of a trusted name alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edition: Option<Edition>,
    /// The card that the CID proves, trusted or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proven: Option<SeenCard>,
    /// The card that its URL served, trusted or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub served: Option<SeenCard>,
    /// The digest of all records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<String>,
    /// Its place on the chain; absent where that was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_chain: Option<OnChain>,
}

/// A card that was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenCard {
    /// Of its bytes.
    pub sha256: Digest,
    /// Its `version`, where the verdict is on these bytes.
    pub version: Option<String>,
}

/// What a row took over from an earlier audit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// The state that was decided last, if any was.
    pub state: Option<Decided>,
    /// The members of the row that are of then.
    pub members: Vec<String>,
}

/// A state that was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decided {
    /// [`State::Trusted`]
    Trusted,
    /// [`State::Untrusted`]
    Untrusted,
}

impl Decided {
    /// The state, if it was decided.
    pub const fn of(state: State) -> Option<Self> {
        match state {
            State::Trusted => Some(Self::Trusted),
            State::Untrusted => Some(Self::Untrusted),
            State::Indeterminate => None,
        }
    }
}

impl Known {
    /// What a verdict shows, whose sources were compared; all but the edition, which takes the card itself.
    pub fn of(verdict: &Verdict, drift: &Drift) -> Self {
        let judged = verdict.identity.as_ref();
        let seen = |sha256: Digest| {
            let judged = judged.filter(|identity| identity.card.sha256 == sha256.hex());
            SeenCard { sha256, version: judged.and_then(|identity| identity.version.as_deref()).map(excerpt) }
        };
        Self {
            edition: None,
            proven: drift.proven.map(seen),
            served: drift.served.map(seen),
            records: verdict.anchor.as_ref().and_then(|anchor| anchor.records_digest.clone()),
            on_chain: OnChain::of(verdict),
        }
    }

    /// Takes over what is missing; the names of it.
    pub fn complete_from(&mut self, earlier: &Self) -> Vec<String> {
        let taken = [
            ("edition", take(&mut self.edition, &earlier.edition)),
            ("proven", take(&mut self.proven, &earlier.proven)),
            ("served", take(&mut self.served, &earlier.served)),
            ("records", take(&mut self.records, &earlier.records)),
            ("on_chain", self.chain_from(earlier)),
        ];
        taken.into_iter().filter(|(_, taken)| *taken).map(|(member, _)| member.to_owned()).collect()
    }

    /// Takes over the place on the chain, or of it what could not be read.
    fn chain_from(&mut self, earlier: &Self) -> bool {
        match (&mut self.on_chain, &earlier.on_chain) {
            (Some(now), Some(earlier)) => now.complete_from(earlier),
            (now, earlier) => take(now, earlier),
        }
    }
}
