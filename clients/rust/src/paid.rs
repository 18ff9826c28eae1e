//! What is handed out of each payment that left.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use http::HeaderMap;
use reqwest::Url;
use serde_json::Value;

/// The headers of a reply that name the settlement, in x402 versions 2 and 1.
const SETTLEMENT_HEADERS: [&str; 2] = ["payment-response", "x-payment-response"];

/// What is to be kept of a payment that left, for `clresolve receipt verify`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Paid {
    /// The URL that was paid for.
    pub url: Url,
    /// The decision that let the payment leave, as it was written: `--decision`.
    pub decision: Value,
    /// The payment header: `--payment`.
    pub payment: String,
    /// The reply's `PAYMENT-RESPONSE` or `X-PAYMENT-RESPONSE`: `--settlement`. `None`: there was none, or no reply.
    pub settlement: Option<String>,
}

/// The program's function that takes it.
pub(crate) struct Hook(pub(crate) Box<dyn Fn(&Paid) + Send + Sync>);

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}

/// A payment that leaves. Its end hands out what is to be kept of it: with the reply, or without one where none came or
/// nobody waits for it any longer, since the seller may have the payment all the same.
pub(crate) struct Leaving<'a> {
    pub(crate) hook: Option<&'a Hook>,
    pub(crate) paid: Paid,
}

impl Leaving<'_> {
    /// The reply came, with these headers. The values of one that is there twice are joined.
    pub(crate) fn answered(mut self, headers: &HeaderMap) {
        let values = |name| {
            let values: Vec<_> = headers.get_all(name).iter().map(|value| latin1(value.as_bytes())).collect();
            (!values.is_empty()).then(|| values.join(", "))
        };
        self.paid.settlement = SETTLEMENT_HEADERS.into_iter().find_map(values);
    }
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        let Some(Hook(hook)) = self.hook else { return };
        // Whatever the program does with it: a reply that was paid for is not lost.
        let _ = catch_unwind(AssertUnwindSafe(|| hook(&self.paid)));
    }
}

/// Each byte as a character, as in all of HTTP's headers.
pub(crate) fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}
