//! Why a card is not generated.

use clresolve_core::reason::Reason;
use clresolve_core::text::{Foreign, excerpt};

use super::source::SourceLine;

/// Why a card is not generated. Each message says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// The resources are larger than the limit.
    #[error("more than {limit} bytes of resources; name fewer files")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The bytes are not UTF-8.
    #[error("{}: not UTF-8 at byte {offset}; save it as UTF-8", Foreign::new(file))]
    NotUtf8 {
        /// What the source is called.
        file: String,
        /// Offset of the first bad byte.
        offset: usize,
    },
    /// The text is not YAML, or exceeds a limit of the reader.
    #[error("{place}: {detail}")]
    Yaml {
        /// Where.
        place: SourceLine,
        /// The reader's message.
        detail: String,
    },
    /// A member has an invalid value.
    #[error("{place}: {detail}")]
    Invalid {
        /// Where.
        place: SourceLine,
        /// The member, and what was expected.
        detail: String,
    },
    /// A system names an unknown agent.
    #[error("{place}: the AgentSystem {system} names the Agent {agent}, which is in no document; add its file")]
    AgentMissing {
        /// Where it is named.
        place: SourceLine,
        /// The system.
        system: String,
        /// The agent.
        agent: String,
    },
    /// The public base URL of the server is unknown.
    #[error(
        "the public base URL is unknown; name it with --base-url (the daemon: orloj.base-url), or write \
         a2a.publicBaseURL in a document without kind"
    )]
    BaseUrlMissing,
    /// The card would show a credential.
    #[error("{place}: the card of {system} would show {what} at {pointer}; take it out of the resource")]
    Secret {
        /// The system's resource.
        place: SourceLine,
        /// The system.
        system: String,
        /// Which kind of credential; never the credential.
        what: String,
        /// JSON Pointer into the card.
        pointer: String,
    },
    /// The card would break a rule of such cards.
    #[error(
        "{place}: the card of {system} would not be valid: {} Found {} at {}; `clresolve explain {}` says more",
        reason.message,
        shown(reason.observed.as_deref().unwrap_or_default()),
        shown(reason.place.as_deref().unwrap_or_default()),
        reason.code
    )]
    Invalidated {
        /// The system's resource.
        place: SourceLine,
        /// The system.
        system: String,
        /// The rule, and what would break it.
        reason: Box<Reason>,
    },
    /// The card would be too large or too deep.
    #[error("{place}: the card of {system} exceeds a limit: {detail}; shorten its resources")]
    Unreadable {
        /// The system's resource.
        place: SourceLine,
        /// The system.
        system: String,
        /// Which limit it breaks.
        detail: String,
    },
}

/// A name for a message.
pub(super) fn shown(name: &str) -> String {
    Foreign::new(&excerpt(name)).to_string()
}
