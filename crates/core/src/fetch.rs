//! Why a document could not be fetched: the errors of upstream requests.

use std::net::IpAddr;

use crate::address::HostNameError;

/// Why a request gave no bytes. It holds no URL, so that no endpoint's key gets into an error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// A rule of the door forbids it. Nothing was sent, or no byte of the response body was read.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// The body, on the wire or decoded, is larger than the caller's limit.
    #[error("the body has more than {limit} bytes")]
    Oversize {
        /// The limit in bytes.
        limit: usize,
    },
    /// The source gave no usable response.
    #[error(transparent)]
    Unavailable(#[from] Cause),
}

/// A URL or redirect hop that the guard refused.
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
    /// Parsers would read the URL differently from its text: it holds white space, control characters or backslashes,
    /// or lacks the `//` before its host.
    #[error("the URL is written so that parsers read it differently from its text")]
    Disguised,
    /// The operator switched this kind of fetch off.
    #[error("this kind of fetch is switched off")]
    Disabled,
    /// A redirect to another origin, where only one may answer.
    #[error("a redirect may not lead to another origin here")]
    AnotherOrigin,
    /// A name that is private by its form (`localhost`, `.internal`, a single label).
    #[error("the host name is not public")]
    HostNotPublic,
    /// An IP address in place of a name, in any notation.
    #[error("the host is an IP literal")]
    IpLiteral,
    /// The origin is not the one that the operator configured.
    #[error("not the configured origin")]
    OtherOrigin,
    /// A listener of this process.
    #[error("the address is a listener of this process")]
    OwnListener,
    /// The address of the connection's peer is unknown.
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

impl From<HostNameError> for EgressViolation {
    fn from(error: HostNameError) -> Self {
        match error {
            HostNameError::IpLiteral(_) => Self::IpLiteral,
            HostNameError::Malformed => Self::NotUrl,
            HostNameError::NotPublic => Self::HostNotPublic,
        }
    }
}

/// Why a source gave no usable response.
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
    /// The response head is too large or is not HTTP.
    #[error("the response head is too large or broken")]
    Head,
    /// The status is a success, but the body is not what was asked for.
    #[error("the response is not of the form that was asked for")]
    Malformed,
    /// It was not asked: others were, and as many at once as the server bears.
    #[error("no turn in time, the server bears few requests at once")]
    NoTurn,
    /// A redirect leads back to a URL of the same chain.
    #[error("the redirects form a loop")]
    RedirectLoop,
    /// An HTTP status other than success.
    #[error("HTTP status {0}")]
    Status(u16),
    /// A time limit passed.
    #[error("the time limit passed")]
    Timeout,
    /// The TLS handshake failed. Carries the library's reason, cut short.
    #[error("TLS: {0}")]
    Tls(String),
    /// More redirects than the caller follows.
    #[error("too many redirects")]
    TooManyRedirects,
    /// The connection broke before the response was whole.
    #[error("the response was cut off")]
    Truncated,
}

impl FetchError {
    /// The cause, if the source gave no usable response.
    #[must_use]
    pub fn cause(&self) -> Option<&Cause> {
        match self {
            Self::Unavailable(cause) => Some(cause),
            Self::Forbidden(_) | Self::Oversize { .. } => None,
        }
    }
}
