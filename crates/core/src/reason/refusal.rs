//! Codes for refused requests, as opposed to findings about a name. They never appear in a verdict.

use std::fmt;

use serde::Serialize;

use super::{ReasonCode, URI_PREFIX};

/// Why a request got no verdict, or was refused. Codes are as stable as [`ReasonCode`], and no code is in both enums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusalCode {
    /// The request does not have the form that its route requires.
    RequestMalformed,
    /// The next hop could read the path of a request to the gate as that of another agent.
    RequestAmbiguous,
    /// The request did not arrive completely in time.
    RequestTimeout,
    /// The body is too long.
    BodyTooLarge,
    /// The route does not accept the media type of the body.
    MediaTypeUnsupported,
    /// The request accepts none of the media types in which the response is available.
    NotAcceptable,
    /// The header `Host`, `Origin` or `Sec-Fetch-Site` does not name an allowed origin for this route.
    HostUnexpected,
    /// No route has this path.
    RouteUnknown,
    /// The route does not support this method.
    MethodUnsupported,
    /// The profile does not exist.
    ProfileUnknown,
    /// The client has too many concurrent requests, or has requested too many new names.
    ClientOverQuota,
    /// The daemon has too many concurrent requests.
    Overloaded,
    /// The daemon is shutting down.
    Draining,
    /// The daemon has not read a block of its chain yet.
    NotReady,
    /// The gate's deadline passed. The resolution continues.
    DeadlinePassed,
    /// The verdict is trusted, but the newest block has not confirmed it.
    Unconfirmed,
    /// The chain's newest block is too old to confirm anything.
    HeadStalled,
    /// The resolution did not finish in time.
    RunOverdue,
    /// The verdict is trusted, but the configuration requires a stronger proof.
    ProofTooWeak,
    /// The verdict is trusted, but the agent does not implement the verb.
    VerbNotImplemented,
    /// The agent implements the verb, but its entry is for another one.
    VerbWithoutEntry,
    /// The verdict is trusted, but the card does not list the network.
    NetworkNotListed,
    /// No card has this path.
    CardAbsent,
    /// The resources that cards are generated from cannot be read.
    ResourcesUnreadable,
    /// The requested configuration cannot be applied.
    ConfigurationRefused,
    /// A bug in the daemon.
    InternalError,
}

impl RefusalCode {
    /// Every code.
    pub const ALL: [Self; 26] = [
        Self::RequestMalformed,
        Self::RequestAmbiguous,
        Self::RequestTimeout,
        Self::BodyTooLarge,
        Self::MediaTypeUnsupported,
        Self::NotAcceptable,
        Self::HostUnexpected,
        Self::RouteUnknown,
        Self::MethodUnsupported,
        Self::ProfileUnknown,
        Self::ClientOverQuota,
        Self::Overloaded,
        Self::Draining,
        Self::NotReady,
        Self::DeadlinePassed,
        Self::Unconfirmed,
        Self::HeadStalled,
        Self::RunOverdue,
        Self::ProofTooWeak,
        Self::VerbNotImplemented,
        Self::VerbWithoutEntry,
        Self::NetworkNotListed,
        Self::CardAbsent,
        Self::ResourcesUnreadable,
        Self::ConfigurationRefused,
        Self::InternalError,
    ];

    /// The stable kebab-case slug.
    pub const fn slug(self) -> &'static str {
        self.slug_and_title().0
    }

    /// One short sentence.
    pub const fn title(self) -> &'static str {
        self.slug_and_title().1
    }

    /// The code's stable URI, as the `type` of a problem (RFC 9457).
    pub fn uri(self) -> String {
        format!("{URI_PREFIX}{}", self.slug())
    }

    const fn slug_and_title(self) -> (&'static str, &'static str) {
        match self {
            Self::RequestMalformed => {
                ("request-malformed", "The request does not have the form that the route expects.")
            }
            Self::RequestAmbiguous => {
                ("request-ambiguous", "The next hop could interpret the request's path as that of another agent.")
            }
            Self::RequestTimeout => ("request-timeout", "The request did not arrive in time."),
            Self::BodyTooLarge => ("body-too-large", "The body is too long."),
            Self::MediaTypeUnsupported => ("media-type-unsupported", "The route accepts only application/json."),
            Self::NotAcceptable => {
                ("not-acceptable", "The response is not available in a media type that the request accepts.")
            }
            Self::HostUnexpected => (
                "host-unexpected",
                "The header Host, Origin or Sec-Fetch-Site does not name an allowed origin for this route.",
            ),
            Self::RouteUnknown => ("route-unknown", "No route has this path."),
            Self::MethodUnsupported => ("method-unsupported", "The route does not support this method."),
            Self::ProfileUnknown => ("profile-unknown", "No profile has this identifier."),
            Self::ClientOverQuota => (
                "client-over-quota",
                "The client has too many concurrent requests, or has requested too many new names.",
            ),
            Self::Overloaded => ("overloaded", "The daemon has too many concurrent requests."),
            Self::Draining => ("draining", "The daemon is shutting down."),
            Self::NotReady => ("not-ready", "The daemon has not read a block of its chain yet."),
            Self::DeadlinePassed => {
                ("deadline-passed", "The gate's deadline passed; the resolution continues, so ask again.")
            }
            Self::Unconfirmed => ("unconfirmed", "The newest block has not confirmed the verdict yet; ask again."),
            Self::HeadStalled => ("head-stalled", "The chain's newest block is too old, so it confirms no verdict."),
            Self::RunOverdue => ("run-overdue", "The resolution did not finish in time."),
            Self::ProofTooWeak => ("proof-too-weak", "The gate demands a stronger proof of the records."),
            Self::VerbNotImplemented => ("verb-not-implemented", "The agent does not implement the verb."),
            Self::VerbWithoutEntry => {
                ("verb-without-entry", "The agent's entry serves its primary verb, which is another one.")
            }
            Self::NetworkNotListed => ("network-not-listed", "The card does not list the network."),
            Self::CardAbsent => ("card-absent", "No card has this path."),
            Self::ResourcesUnreadable => {
                ("resources-unreadable", "The resources that cards are generated from cannot be read.")
            }
            Self::ConfigurationRefused => {
                ("configuration-refused", "The configuration was rejected; nothing has changed.")
            }
            Self::InternalError => ("internal-error", "A bug in the daemon."),
        }
    }
}

impl fmt::Display for RefusalCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.slug())
    }
}

impl Serialize for RefusalCode {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.slug())
    }
}

/// The title of the reason or refusal with this slug.
pub fn title_for_slug(slug: &str) -> Option<&'static str> {
    let refusal = || RefusalCode::ALL.into_iter().find(|refusal| refusal.slug() == slug).map(RefusalCode::title);
    ReasonCode::from_slug(slug).map(|code| code.entry().title).or_else(refusal)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::reason::ReasonCode;

    #[test]
    fn no_slug_occurs_twice_or_is_that_of_a_reason() {
        let slugs: BTreeSet<_> = RefusalCode::ALL.iter().map(|refusal| refusal.slug()).collect();
        assert_eq!(slugs.len(), RefusalCode::ALL.len());
        assert!(ReasonCode::ALL.iter().all(|code| !slugs.contains(code.slug())));
    }
}
