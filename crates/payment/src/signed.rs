//! What a payment header permits: compared by what its signature covers, never by what it says it accepted.

use clresolve_core::reason::{Code, Reason};
use jiff::Timestamp;

use crate::asset::Asset;
use crate::terms::{Price, Version};

/// Longest payment header, in bytes. Those of the SDKs take two kilobytes.
pub const MAX_HEADER_BYTES: usize = 16 * 1024;

/// Checks that what a payment header (`PAYMENT-SIGNATURE`, or `X-PAYMENT` in version 1) permits is this price of the
/// asset with this EIP-712 domain, and no longer than the price's time.
///
/// # Errors
/// `payment-signature-mismatch`, saying what differs.
pub fn check(
    _header: &str,
    _version: Version,
    _price: &Price,
    _asset: &Asset,
    _now: Timestamp,
) -> Result<(), Box<Reason>> {
    Err(Box::new(Reason::new(Code::PaymentSignatureMismatch)))
}
