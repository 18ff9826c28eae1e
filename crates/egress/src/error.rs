//! Why a request to the outside gave no bytes: comparable, and free of URLs, so that no key of an endpoint gets into an
//! error.

use std::net::IpAddr;

use crate::count::RequestOutcome;

/// Why a fetch gave no bytes. Comparable, and free of URLs: an endpoint's key never gets into an error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// Refused by a rule of the door: nothing was sent, or no byte of the answer's body was read.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// The body, on the wire or decoded, is larger than the caller's limit.
    #[error("the body has more than {limit} bytes")]
    Oversize {
        /// The limit in bytes.
        limit: usize,
    },
    /// The source gave no usable answer.
    #[error(transparent)]
    Unavailable(#[from] Cause),
}

/// A URL or redirect hop that must not be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{target}: {why}", if *.hop == 0 { String::new() } else { format!("redirect hop {hop}: ", hop = .hop) })]
pub struct Forbidden {
    /// 0 for the URL that was asked for, else the number of the redirect.
    pub hop: u8,
    /// Scheme, host and port of the URL, cut short. Never a path, a query or user info.
    pub target: String,
    /// The rule.
    pub why: EgressViolation,
}

/// The rule of the door that a URL or an address breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EgressViolation {
    /// A name leads to an address that is not public.
    #[error("the address {0} is not public")]
    AddressNotPublic(IpAddr),
    /// The text of the URL does not mean what it shows: it holds white space, control characters or backslashes, or
    /// lacks the `//` before its host. URL parsers mend that in silence.
    #[error("the URL is written so that it is read differently from what it shows")]
    Disguised,
    /// The operator switched this kind of fetch off.
    #[error("this kind of fetch is switched off")]
    Disabled,
    /// A redirect away from the origin that alone may answer.
    #[error("a redirect may not lead to another origin here")]
    AnotherOrigin,
    /// A name that is private by its form (`localhost`, `.internal`, a single label).
    #[error("the host name is not public")]
    HostNotPublic,
    /// An IP address in place of a name, in whatever notation.
    #[error("the host is an IP literal")]
    IpLiteral,
    /// The origin is not the one that the operator configured.
    #[error("not the configured origin")]
    OtherOrigin,
    /// A listener of this very process.
    #[error("the address is a listener of this process")]
    OwnListener,
    /// The peer of a finished connection cannot be told.
    #[error("the peer's address is not known")]
    PeerUnknown,
    /// A port that is not on the list.
    #[error("the port {0} is not allowed")]
    Port(u16),
    /// Not `https` (for the operator's URLs: neither `https` nor `http`).
    #[error("the scheme is not allowed")]
    Scheme,
    /// The URL is longer than its limit.
    #[error("the URL is longer than {0} bytes")]
    TooLong(usize),
    /// The URL names a user or a password.
    #[error("the URL has user info")]
    UserInfo,
    /// Not an absolute URL with a host.
    #[error("not a URL with a host")]
    NotUrl,
}

/// Why a source gave no usable answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// No connection.
    #[error("no connection")]
    Connect,
    /// The name does not resolve.
    #[error("the host name does not resolve")]
    Dns,
    /// A content coding that was not asked for, or data that is not in the coding announced.
    #[error("the content coding is broken or was not asked for")]
    Encoding,
    /// The head of the answer is larger than [`egress::HEAD_LIMIT`] or is not HTTP.
    #[error("the head of the answer is too large or broken")]
    Head,
    /// The answer has no body that can be used, although the status is a success: not what was asked for.
    #[error("the answer is not of the form that was asked for")]
    Malformed,
    /// A redirect leads back to a URL of the same chain.
    #[error("the redirects form a loop")]
    RedirectLoop,
    /// An HTTP status other than success with a whole body.
    #[error("HTTP status {0}")]
    Status(u16),
    /// A time limit passed.
    #[error("the time limit passed")]
    Timeout,
    /// The TLS handshake failed. Carries the library's reason, cut short.
    #[error("TLS: {0}")]
    Tls(String),
    /// More redirects than [`https::MAX_HOPS`].
    #[error("too many redirects")]
    TooManyRedirects,
    /// The connection broke before the answer was whole.
    #[error("the answer was cut off")]
    Truncated,
}

impl FetchError {
    /// What the source did, where it gave no usable answer.
    #[must_use]
    pub fn cause(&self) -> Option<&Cause> {
        match self {
            Self::Unavailable(cause) => Some(cause),
            Self::Forbidden(_) | Self::Oversize { .. } => None,
        }
    }

    /// How the request is counted.
    pub const fn outcome(&self) -> RequestOutcome {
        match self {
            Self::Forbidden(_) => RequestOutcome::Forbidden,
            Self::Unavailable(Cause::Timeout) => RequestOutcome::Timeout,
            Self::Unavailable(Cause::Status(status)) => RequestOutcome::of_status(*status),
            Self::Oversize { .. } | Self::Unavailable(_) => RequestOutcome::Failed,
        }
    }
}
