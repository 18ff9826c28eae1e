//! Why a document could not be fetched: the errors of upstream requests.

use std::net::IpAddr;

use crate::address::PublicHostNameError;
use crate::cause::HostConnectionError;

/// Why a request returned no bytes. It contains no URL, so that no endpoint's API key gets into an error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// A rule of the egress guard forbids the request. Nothing was sent, or no byte of the response body was read.
    #[error(transparent)]
    Forbidden(#[from] ForbiddenUrlError),
    /// The body, on the wire or decoded, exceeds the caller's limit.
    #[error("the body has more than {limit} bytes")]
    Oversize {
        /// The limit in bytes.
        limit: usize,
    },
    /// The source returned no usable response.
    #[error(transparent)]
    Unavailable(#[from] SourceUnavailableError),
}

/// A URL or redirect hop that the guard refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{target}: {why}", if *.hop == 0 { String::new() } else { format!("redirect hop {hop}: ", hop = .hop) })]
pub struct ForbiddenUrlError {
    /// 0 for the requested URL, otherwise the number of the redirect.
    pub hop: u8,
    /// Scheme, host and port of the URL, truncated. Never a path, a query or user info.
    pub target: String,
    /// The violated rule.
    pub why: EgressViolation,
}

/// The egress rule that a URL or an address violates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EgressViolation {
    /// A name resolves to an address that is not public.
    #[error("the address {0} is not public")]
    AddressNotPublic(IpAddr),
    /// Parsers would read the URL differently from its text: it contains white space, control characters or
    /// backslashes, or lacks the `//` before its host.
    #[error("the URL is written so that parsers read it differently from its text")]
    Disguised,
    /// The operator disabled this kind of fetch.
    #[error("this kind of fetch is switched off")]
    Disabled,
    /// A redirect to another origin, where only the same origin is allowed.
    #[error("a redirect may not lead to another origin here")]
    AnotherOrigin,
    /// The form of the name is private (`localhost`, `.internal`, a single label).
    #[error("the host name is not public")]
    HostNotPublic,
    /// The host is an IP address, in any notation, instead of a name.
    #[error("the host is an IP literal")]
    IpLiteral,
    /// The origin is not the configured one.
    #[error("not the configured origin")]
    OtherOrigin,
    /// The address is a listener of this process.
    #[error("the address is a listener of this process")]
    OwnListener,
    /// The peer address of the connection is unknown.
    #[error("the peer's address is not known")]
    PeerUnknown,
    /// The port is not on the list of allowed ports.
    #[error("the port {0} is not allowed")]
    Port(u16),
    /// The scheme is not `https` (for the operator's URLs: neither `https` nor `http`).
    #[error("the scheme is not allowed")]
    Scheme,
    /// The URL exceeds this limit, in bytes.
    #[error("the URL is longer than {0} bytes")]
    TooLong(usize),
    /// The URL contains a user name or a password.
    #[error("the URL has user info")]
    UserInfo,
    /// The text is not an absolute URL with a host.
    #[error("not a URL with a host")]
    NotUrl,
}

impl From<PublicHostNameError> for EgressViolation {
    fn from(error: PublicHostNameError) -> Self {
        match error {
            PublicHostNameError::IpLiteral(_) => Self::IpLiteral,
            PublicHostNameError::Malformed => Self::NotUrl,
            PublicHostNameError::NotPublic => Self::HostNotPublic,
        }
    }
}

/// Why a source returned no usable response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SourceUnavailableError {
    /// The connection could not be opened.
    #[error("no connection")]
    Connect,
    /// The name does not resolve.
    #[error("the host name does not resolve")]
    Dns,
    /// The content coding was not requested, or the data does not decode with the announced coding.
    #[error("the content coding is broken or was not asked for")]
    Encoding,
    /// The response head is too large or is not HTTP.
    #[error("the response head is too large or broken")]
    Head,
    /// The status is a success, but the body does not have the expected form.
    #[error("the response is not of the form that was asked for")]
    Malformed,
    /// The request was not sent: it got no slot in time, because the server already had as many requests as it accepts.
    #[error("no turn in time, the server bears few requests at once")]
    NoTurn,
    /// A redirect leads back to an earlier URL of the same chain.
    #[error("the redirects form a loop")]
    RedirectLoop,
    /// An HTTP status other than success.
    #[error("HTTP status {0}")]
    Status(u16),
    /// A time limit passed.
    #[error("the time limit passed")]
    Timeout,
    /// The TLS handshake failed. Contains the library's reason, truncated.
    #[error("TLS: {0}")]
    Tls(String),
    /// More redirects than the caller follows.
    #[error("too many redirects")]
    TooManyRedirects,
    /// The connection closed before the response was complete.
    #[error("the response was cut off")]
    Truncated,
}

impl FetchError {
    /// Why no connection was opened, if that is the cause.
    #[must_use]
    pub fn connection_error(&self) -> Option<HostConnectionError> {
        match self.cause()? {
            SourceUnavailableError::Dns => Some(HostConnectionError::Name),
            SourceUnavailableError::Connect => Some(HostConnectionError::Host),
            _ => None,
        }
    }

    /// The cause, if the source returned no usable response.
    #[must_use]
    pub fn cause(&self) -> Option<&SourceUnavailableError> {
        match self {
            Self::Unavailable(cause) => Some(cause),
            Self::Forbidden(_) | Self::Oversize { .. } => None,
        }
    }
}
