//! Why a request or a payment was not sent.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Maximum length of a code.
const MAX_CODE_LENGTH: usize = 64;

/// The guard refused, and nothing was paid. `source` is the local error that caused it, if any; no message contains its
/// text. Refusals are equal if they have the same reasons.
#[derive(Clone, Debug)]
pub struct Refusal {
    why: Why,
    codes: Vec<String>,
    /// Continues the message: the daemon's URL, and what happened.
    detail: String,
    cause: Option<Arc<dyn Error + Send + Sync>>,
}

impl PartialEq for Refusal {
    fn eq(&self, other: &Self) -> bool {
        (self.why, &self.codes) == (other.why, &other.codes)
    }
}

impl Eq for Refusal {}

/// The kind of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// clresolve denies the agent, or every entry of its terms.
    Denied,
    /// clresolve did not answer in time, or its answer is not usable.
    Unavailable,
    /// The seller redirects to another URL.
    Redirected,
    /// The 402 response is larger than 64 KiB, takes longer than 10 s, is truncated, or cannot be decoded.
    Unreadable,
    /// No pending decision allows a payment at this URL: none was made, it has expired, or it was used.
    NoDecision,
    /// The request contains more than one payment.
    TwoPayments,
    /// The signed payment differs from what was allowed.
    PaymentDenied,
    /// The request carries a credential of another payment protocol: Payment, L402 or LSAT.
    OtherProtocol,
}

impl Refusal {
    /// A refusal of this kind, with the codes of the reasons that decide. Texts that do not have the form of a code are
    /// dropped, so that messages contain no other foreign text.
    pub fn new(why: Why, codes: impl IntoIterator<Item = String>) -> Self {
        Self { codes: codes.into_iter().filter(|code| is_reason_code(code)).collect(), ..Self::from_kind(why) }
    }

    pub(crate) const fn from_kind(why: Why) -> Self {
        Self { why, codes: Vec::new(), detail: String::new(), cause: None }
    }

    /// A refusal without a usable answer of the daemon at this URL. `what` happened, in fixed words: the cause may
    /// quote the answer.
    pub(crate) fn daemon_unavailable(url: &str, what: &str) -> Self {
        Self { detail: format!(" at {url}: {what}"), ..Self::from_kind(Why::Unavailable) }
    }

    pub(crate) fn with_cause(self, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { cause: Some(Arc::from(error.into())), ..self }
    }

    /// Extracts the refusal from an error of a client with a guard.
    pub fn of(error: &reqwest_middleware::Error) -> Option<&Self> {
        match error {
            reqwest_middleware::Error::Middleware(error) => error.downcast_ref(),
            reqwest_middleware::Error::Reqwest(_) => None,
        }
    }

    /// The kind of the refusal.
    pub const fn why(&self) -> Why {
        self.why
    }

    /// The codes of the reasons that decide, without warnings. `clresolve explain CODE` explains them.
    pub fn codes(&self) -> &[String] {
        &self.codes
    }
}

fn is_reason_code(text: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    text.len() <= MAX_CODE_LENGTH && text.split('-').all(is_word)
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not paying: {}{}", self.why, self.detail)?;
        if self.codes.is_empty() {
            return Ok(());
        }
        write!(f, " ({})", self.codes.join(", "))
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Denied => "clresolve denies this agent or its terms",
            Self::Unavailable => "no usable answer from clresolve",
            Self::Redirected => "the seller redirects to another URL",
            Self::Unreadable => {
                "the seller's 402 is larger than 64 KiB, takes longer than 10 s, is truncated, or cannot be decoded"
            }
            Self::NoDecision => {
                "no decision allows a payment to this URL: none was made, it has expired, or it was used"
            }
            Self::TwoPayments => "the request contains more than one payment",
            Self::PaymentDenied => "the signed payment differs from what was allowed",
            Self::OtherProtocol => "the request contains a payment of another protocol than x402",
        })
    }
}

impl Error for Refusal {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as &(dyn Error + 'static))
    }
}

impl From<Refusal> for reqwest_middleware::Error {
    fn from(refusal: Refusal) -> Self {
        Self::middleware(refusal)
    }
}
