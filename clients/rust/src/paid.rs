//! The record of each payment that was sent.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use http::HeaderMap;
use reqwest::Url;
use serde_json::Value;

/// The response headers that name the settlement, in x402 versions 2 and 1.
const SETTLEMENT_HEADERS: [&str; 2] = ["payment-response", "x-payment-response"];

/// The record of a payment that was sent, for `clresolve receipt verify`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Paid {
    /// The URL that was paid for.
    pub url: Url,
    /// The decision that allowed the payment, in its original form: `--decision`.
    pub decision: Value,
    /// The payment header: `--payment`.
    pub payment: String,
    /// `PAYMENT-RESPONSE` or `X-PAYMENT-RESPONSE` of the response: `--settlement`. `None` if there was no such header
    /// or no response.
    pub settlement: Option<String>,
}

/// The caller's function that receives the record.
pub(crate) struct OnPaid(pub(crate) Box<dyn Fn(&Paid) + Send + Sync>);

impl fmt::Debug for OnPaid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnPaid")
    }
}

/// A payment in progress. On drop, it passes its record to the hook, even if no response came or nobody waits for it
/// any more, since the seller may have received the payment.
pub(crate) struct InFlightPayment<'a> {
    pub(crate) hook: Option<&'a OnPaid>,
    pub(crate) paid: Paid,
}

impl InFlightPayment<'_> {
    /// Records the headers of the response. Duplicate headers are joined.
    pub(crate) fn record_settlement(mut self, headers: &HeaderMap) {
        let values = |name| {
            let values: Vec<_> = headers.get_all(name).iter().map(|value| latin1_to_string(value.as_bytes())).collect();
            (!values.is_empty()).then(|| values.join(", "))
        };
        self.paid.settlement = SETTLEMENT_HEADERS.into_iter().find_map(values);
    }
}

impl Drop for InFlightPayment<'_> {
    fn drop(&mut self) {
        let Some(OnPaid(hook)) = self.hook else { return };
        // A panic of the hook must not lose a paid response.
        let _ = catch_unwind(AssertUnwindSafe(|| hook(&self.paid)));
    }
}

/// Each byte as one character, as in every HTTP header.
pub(crate) fn latin1_to_string(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}
