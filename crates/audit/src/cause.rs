//! Why an actor must act, for people: the first defect of a name. Each name has one cause per actor, so that the
//! counts add up.

use super::AuditRow;
use super::duty::is_actor_needed;
use clresolve_core::reason::{FixerRole, Reason, ReasonCode, ReasonEffect, ResolutionStep};

/// The category of a name's first defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DefectCategory {
    Name,
    Records,
    Host,
    Ipfs,
    Bytes,
    Card,
    Binding,
    Entry,
    Manifest,
    Schemas,
    Sources,
    /// One reason. Operator, asker and time have few.
    Single(ReasonCode),
}

impl DefectCategory {
    /// Why `actor` must act on a row; `None` if the actor need not act.
    pub(super) fn for_actor(actor: FixerRole, row: &AuditRow) -> Option<Self> {
        if !is_actor_needed(actor, row) {
            return None;
        }
        let of_actor = |reason: &&Reason| reason.effect != ReasonEffect::Warn && reason.code.entry().fixer == actor;
        let first = row.reasons.iter().filter(of_actor).min_by_key(|reason| (reason.effect, reason.step));
        Some(match (first, actor) {
            (None, _) => Self::Sources,
            // An unproven CID contradicts nothing.
            (Some(reason), FixerRole::Publisher) if reason.code == ReasonCode::CidUnproven => Self::Ipfs,
            (Some(reason), FixerRole::Publisher) => Self::from_step(reason.step),
            (Some(reason), FixerRole::Operator | FixerRole::Asker | FixerRole::Nobody) => Self::Single(reason.code),
        })
    }

    const fn from_step(step: ResolutionStep) -> Self {
        match step {
            ResolutionStep::Name => Self::Name,
            ResolutionStep::Records => Self::Records,
            ResolutionStep::FetchHttps | ResolutionStep::Discovery => Self::Host,
            ResolutionStep::FetchIpfs => Self::Ipfs,
            ResolutionStep::Integrity => Self::Bytes,
            ResolutionStep::Card | ResolutionStep::Document | ResolutionStep::Signature => Self::Card,
            ResolutionStep::Binding => Self::Binding,
            ResolutionStep::Entry => Self::Entry,
            ResolutionStep::Verbs => Self::Manifest,
            ResolutionStep::Schemas => Self::Schemas,
            ResolutionStep::Continuity
            | ResolutionStep::Payment
            | ResolutionStep::Request
            | ResolutionStep::Receipt => Self::Sources,
        }
    }

    /// The last part of the cause's anchor.
    pub(super) const fn slug(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Records => "records",
            Self::Host => "host",
            Self::Ipfs => "ipfs",
            Self::Bytes => "bytes",
            Self::Card => "card",
            Self::Binding => "binding",
            Self::Entry => "entry",
            Self::Manifest => "manifest",
            Self::Schemas => "schemas",
            Self::Sources => "sources",
            Self::Single(code) => code.slug(),
        }
    }

    /// The defect in plain words.
    pub(super) const fn in_words(self) -> &'static str {
        match self {
            Self::Name => "The name cannot be used",
            Self::Records => "Records on the chain are missing or wrong",
            Self::Host => "The host does not serve the card",
            Self::Ipfs => "IPFS does not return the card",
            Self::Bytes => "The card is not the one that the records name",
            Self::Card => "The card breaks the rules",
            Self::Binding => "Records and card contradict each other",
            Self::Entry => "The card's x402 entry breaks the rules",
            Self::Manifest => "The card contradicts the manifest",
            Self::Schemas => "The card's schemas are invalid",
            Self::Sources => "Sources differ, or differ from before",
            Self::Single(code) => code.entry().title,
        }
    }
}
