//! The types of a seller's demand.

use std::collections::BTreeSet;

use alloy_primitives::{Address, U256};
use serde_json::{Map, Value};

use clresolve_core::reason::Reason;

use crate::network::Caip2Network;

/// Maximum number of entries. A seller that accepts every asset of the built-in table stays below it.
pub const MAX_ENTRIES: usize = 32;

/// A version of x402.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum X402Version {
    /// Terms in the body, payment in `X-PAYMENT`.
    V1,
    /// Terms in `PAYMENT-REQUIRED`, payment in `PAYMENT-SIGNATURE`.
    V2,
}

impl X402Version {
    /// The value of `x402Version`.
    pub const fn version_number(self) -> u64 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }
}

/// The terms that a seller demands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentTerms {
    /// The x402 version of the terms.
    pub version: X402Version,
    /// Whether the reply contains version 2 terms and equal version 1 terms in its body, so that clients of either
    /// version can pay.
    pub also_v1: bool,
    /// Indices of `entries` where another place of the reply has a different one of these entries. A client that reads
    /// the other place uses the index for that entry.
    pub moved: BTreeSet<usize>,
    /// The unmodified `resource`. `None` in version 1, where each entry has its own.
    pub resource: Option<Value>,
    /// The payment options, of which the client chooses one; between one and [`MAX_ENTRIES`].
    pub entries: Vec<PaymentOption>,
    /// The unmodified `extensions`. Empty in version 1.
    pub extensions: Map<String, Value>,
    /// The unmodified contents of `extensions["offer-receipt"].info.offers`.
    pub offers: Vec<Value>,
}

/// One payment option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentOption {
    /// The unmodified entry.
    pub json: Value,
    /// What is paid for: `resource.url` of the terms, or in version 1 `resource` of the entry.
    pub resource: Option<String>,
    /// The price, or why the entry has no price that can be checked: `payment-terms-malformed`,
    /// `payment-scheme-unchecked`, or `payment-network-mismatch` for a network that is not an EVM chain.
    pub price: Result<ExactPrice, Box<Reason>>,
}

/// A price on an EVM chain, in the scheme `exact`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactPrice {
    /// The network.
    pub network: Caip2Network,
    /// Its EIP-155 chain id.
    pub chain_id: u64,
    /// Atomic units of the asset.
    pub amount: U256,
    /// The asset's contract.
    pub asset: Address,
    /// The payee.
    pub pay_to: Address,
    /// How many seconds an authorisation must be valid.
    pub max_timeout_seconds: u64,
    /// The transfer method.
    pub transfer: TransferMethod,
    /// The asset's EIP-712 domain, if the seller states it.
    pub domain: StatedEip712Domain,
}

/// The parts of the asset's EIP-712 domain that a seller states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatedEip712Domain {
    /// The value of `extra.name`.
    pub name: Option<String>,
    /// The value of `extra.version`.
    pub version: Option<String>,
}

/// The transfer method of an asset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferMethod {
    /// `transferWithAuthorization` of the asset itself (EIP-3009).
    Eip3009,
    /// The canonical x402 proxy for Permit2.
    Permit2,
}
