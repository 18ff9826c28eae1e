//! Why a card is not generated.

use clresolve_core::reason::Reason;
use clresolve_core::text::{UntrustedText, excerpt_text};

use super::source::OrlojResourcePosition;

/// Why a card is not generated. Each message includes a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CardGenerationError {
    /// The resources are larger than the limit.
    #[error("more than {limit} bytes of resources; name fewer files")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The bytes are not UTF-8.
    #[error("{}: not UTF-8 at byte {offset}; save it as UTF-8", UntrustedText::new(file))]
    NotUtf8 {
        /// The source's name in messages.
        file: String,
        /// Offset of the first invalid byte.
        offset: usize,
    },
    /// The text is not YAML, or exceeds a limit of the reader.
    #[error("{place}: {detail}")]
    Yaml {
        /// The location.
        place: OrlojResourcePosition,
        /// The reader's message.
        detail: String,
    },
    /// A member has an invalid value.
    #[error("{place}: {detail}")]
    Invalid {
        /// The location.
        place: OrlojResourcePosition,
        /// The member, and what was expected.
        detail: String,
    },
    /// A system names an unknown agent.
    #[error(
        "{place}: the AgentSystem {system} names the Agent {agent}, which is in none of the documents; add its file"
    )]
    AgentMissing {
        /// The location of the reference.
        place: OrlojResourcePosition,
        /// The system that refers to the agent.
        system: String,
        /// The name of the missing agent.
        agent: String,
    },
    /// The public base URL of the server is unknown.
    #[error(
        "the public base URL is unknown; name it with --base-url (the daemon: orloj.base-url), or write \
         a2a.publicBaseURL in a document without kind"
    )]
    BaseUrlMissing,
    /// The card would expose a credential.
    #[error("{place}: the card of {system} would expose {what} at {pointer}; remove it from the resource")]
    Secret {
        /// The system's resource.
        place: OrlojResourcePosition,
        /// The system.
        system: String,
        /// The kind of credential. Never the credential itself.
        what: String,
        /// JSON Pointer into the card.
        pointer: String,
    },
    /// The card would violate a rule for such cards.
    #[error(
        "{place}: the card of {system} would not be valid: {} Found {} at {}; `clresolve explain {}` says more",
        reason.message,
        escaped_name_excerpt(reason.observed.as_deref().unwrap_or_default()),
        escaped_name_excerpt(reason.place.as_deref().unwrap_or_default()),
        reason.code
    )]
    Invalidated {
        /// The system's resource.
        place: OrlojResourcePosition,
        /// The system.
        system: String,
        /// The rule, and the violation.
        reason: Box<Reason>,
    },
    /// The card would be too large or too deep.
    #[error("{place}: the card of {system} exceeds a limit: {detail}; shorten its resources")]
    Unreadable {
        /// The system's resource.
        place: OrlojResourcePosition,
        /// The system.
        system: String,
        /// The limit that it exceeds.
        detail: String,
    },
}

/// A name, quoted for a message.
pub(super) fn escaped_name_excerpt(name: &str) -> String {
    UntrustedText::new(&excerpt_text(name)).to_string()
}
