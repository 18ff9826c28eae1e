//! What a seller demands: x402 version 1 and 2, read strictly from the raw reply into one type.

use alloy_primitives::{Address, U256};
use serde_json::Value;

use clresolve_core::reason::{Code, Reason};

use crate::network::Network;

/// Most bytes of terms, decoded. Published ones take two kilobytes.
pub const MAX_TERMS_BYTES: usize = 64 * 1024;

/// Most entries of terms: a seller that takes every asset of the built-in table stays below it.
pub const MAX_ENTRIES: usize = 32;

/// A seller's reply, as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The headers, in their order; a header that came twice stands twice.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// A version of x402.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Terms in the body, payment in `X-PAYMENT`.
    V1,
    /// Terms in `PAYMENT-REQUIRED`, payment in `PAYMENT-SIGNATURE`.
    V2,
}

/// What a seller demands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The version of x402 that they are written in.
    pub version: Version,
    /// Ways to pay, of which the client chooses one; at least one, at most [`MAX_ENTRIES`].
    pub entries: Vec<Entry>,
    /// What stands under `extensions["offer-receipt"].info.offers`, as it came.
    pub offers: Vec<Value>,
}

/// One way to pay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The entry, as it came.
    pub json: Value,
    /// What is paid for: `resource.url` of the terms, in version 1 `resource` of the entry.
    pub resource: Option<String>,
    /// The price. Else why the entry states none that is checked: `payment-terms-malformed`,
    /// `payment-scheme-unchecked`, or `payment-network-mismatch` for a network that is no EVM chain.
    pub price: Result<Price, Box<Reason>>,
}

/// A price on an EVM chain, in the scheme `exact`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Price {
    /// The network.
    pub network: Network,
    /// Its EIP-155 chain id.
    pub chain_id: u64,
    /// Atomic units of the asset.
    pub amount: U256,
    /// The asset's contract.
    pub asset: Address,
    /// Who is paid.
    pub pay_to: Address,
    /// For how many seconds an authorisation is to be valid.
    pub max_timeout_seconds: u64,
    /// How the asset is moved.
    pub transfer: Transfer,
    /// `extra.name` and `extra.version`: the asset's EIP-712 domain, as the seller states it.
    pub domain: Option<(String, String)>,
}

/// How an asset is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// `transferWithAuthorization` of the asset itself (EIP-3009).
    Eip3009,
    /// The canonical Permit2 proxy of x402.
    Permit2,
}

impl Terms {
    /// The terms in a reply over HTTP.
    ///
    /// # Errors
    /// `payment-terms-malformed` or `payment-terms-ambiguous`.
    pub fn of_reply(_reply: &Reply) -> Result<Self, Box<Reason>> {
        Err(Box::new(Reason::new(Code::PaymentTermsMalformed)))
    }

    /// The terms in a JSON value of their own: what an SDK hands on, or an MCP result's `structuredContent`.
    ///
    /// # Errors
    /// `payment-terms-malformed`.
    pub fn of_value(_value: &Value) -> Result<Self, Box<Reason>> {
        Err(Box::new(Reason::new(Code::PaymentTermsMalformed)))
    }
}
