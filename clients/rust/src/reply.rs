//! A seller's 402 response, and its entries that may be paid.

use std::time::SystemTime;

use reqwest::Url;

/// A seller's 402 response, without the payment challenges of other protocols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentRequiredResponse {
    /// The URL that answered.
    pub url: Url,
    /// The headers in their original order, including duplicates. Each byte is one character.
    pub headers: Vec<(String, String)>,
    /// The body, of at most 64 KiB.
    pub body: Vec<u8>,
}

/// An entry that may be paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayableEntry {
    /// The position in the 402 response, counted from 0.
    pub entry: usize,
    /// When the permission expires.
    pub until: SystemTime,
}

impl PayableEntry {
    pub(crate) fn is_unexpired(&self, now: SystemTime) -> bool {
        now < self.until
    }
}

/// The entries of a 402 response that may be paid; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayableEntries(Vec<PayableEntry>);

impl PayableEntries {
    /// Returns `None` for an empty list.
    pub fn new(entries: Vec<PayableEntry>) -> Option<Self> {
        (!entries.is_empty()).then_some(Self(entries))
    }

    /// The entries.
    pub fn entries(&self) -> &[PayableEntry] {
        &self.0
    }
}
