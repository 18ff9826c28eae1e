//! Why an actor must act, for people: the first defect of a name. Each name has one cause per actor, so that the
//! counts add up.

use super::Row;
use super::duty::is_due;
use clresolve_core::reason::{Code, Effect, Fixer, Reason, Step};

/// The category of a name's first defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
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
    Single(Code),
}

impl Cause {
    /// Why `actor` must act on a row; `None` if the actor need not act.
    pub(super) fn of(actor: Fixer, row: &Row) -> Option<Self> {
        if !is_due(actor, row) {
            return None;
        }
        let of_actor = |reason: &&Reason| reason.effect != Effect::Warn && reason.code.entry().fixer == actor;
        let first = row.reasons.iter().filter(of_actor).min_by_key(|reason| (reason.effect, reason.step));
        Some(match (first, actor) {
            (None, _) => Self::Sources,
            // An unproven CID contradicts nothing.
            (Some(reason), Fixer::Publisher) if reason.code == Code::CidUnproven => Self::Ipfs,
            (Some(reason), Fixer::Publisher) => Self::of_step(reason.step),
            (Some(reason), Fixer::Operator | Fixer::Asker | Fixer::Nobody) => Self::Single(reason.code),
        })
    }

    const fn of_step(step: Step) -> Self {
        match step {
            Step::Name => Self::Name,
            Step::Records => Self::Records,
            Step::FetchHttps | Step::Discovery => Self::Host,
            Step::FetchIpfs => Self::Ipfs,
            Step::Integrity => Self::Bytes,
            Step::Card | Step::Document | Step::Signature => Self::Card,
            Step::Binding => Self::Binding,
            Step::Entry => Self::Entry,
            Step::Verbs => Self::Manifest,
            Step::Schemas => Self::Schemas,
            Step::Continuity | Step::Payment | Step::Request | Step::Receipt => Self::Sources,
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
