//! Why a request, or a payment, did not leave.

use std::fmt;

/// Longest code of the daemon.
const MAX_CODE_LENGTH: usize = 64;

/// The guard refused: nothing was paid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    why: Why,
    codes: Vec<String>,
}

/// What it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// clresolve denies the agent, or every entry of its terms.
    Denied,
    /// clresolve did not answer, not in time, or not with what can be relied on.
    Unavailable,
    /// The seller sends us to another URL.
    Redirected,
    /// The 402 is longer than 64 KiB, or breaks off.
    Unreadable,
    /// A payment for which no decision waits at this URL: none was made, it is over, or it was used.
    NoDecision,
    /// More than one payment in one request.
    TwoPayments,
    /// What is signed is not what was allowed.
    PaymentDenied,
}

impl Refusal {
    /// A refusal for this reason, with the codes of who decided. What is not written as a code is left out: nothing else
    /// that came from elsewhere gets into a message.
    pub fn new(why: Why, codes: impl IntoIterator<Item = String>) -> Self {
        Self { why, codes: codes.into_iter().filter(|code| is_code(code)).collect() }
    }

    pub(crate) const fn of_kind(why: Why) -> Self {
        Self { why, codes: Vec::new() }
    }

    /// The refusal in an error of a client with a guard.
    pub fn of(error: &reqwest_middleware::Error) -> Option<&Self> {
        match error {
            reqwest_middleware::Error::Middleware(error) => error.downcast_ref(),
            reqwest_middleware::Error::Reqwest(_) => None,
        }
    }

    /// What it was.
    pub const fn why(&self) -> Why {
        self.why
    }

    /// The reasons of who decided; `clresolve explain CODE` explains them.
    pub fn codes(&self) -> &[String] {
        &self.codes
    }
}

fn is_code(text: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    text.len() <= MAX_CODE_LENGTH && text.split('-').all(is_word)
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "do not pay: {}", self.why)?;
        if self.codes.is_empty() {
            return Ok(());
        }
        write!(f, " ({})", self.codes.join(", "))
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Denied => "clresolve denies it",
            Self::Unavailable => "clresolve gave no answer that can be relied on",
            Self::Redirected => "the seller sends us to another URL",
            Self::Unreadable => "the seller's 402 is longer than 64 KiB, or breaks off",
            Self::NoDecision => "a payment without a decision for this URL: none was made, it is over, or it was used",
            Self::TwoPayments => "more than one payment in one request",
            Self::PaymentDenied => "what is signed is not what was allowed",
        })
    }
}

impl std::error::Error for Refusal {}

impl From<Refusal> for reqwest_middleware::Error {
    fn from(refusal: Refusal) -> Self {
        Self::middleware(refusal)
    }
}
