//! What a seller demands, as a type.

use std::collections::BTreeSet;

use alloy_primitives::{Address, U256};
use serde_json::{Map, Value};

use clresolve_core::reason::Reason;

use crate::network::Network;

/// Most entries of terms: a seller that takes every asset of the built-in table stays below it.
pub const MAX_ENTRIES: usize = 32;

/// A version of x402.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Terms in the body, payment in `X-PAYMENT`.
    V1,
    /// Terms in `PAYMENT-REQUIRED`, payment in `PAYMENT-SIGNATURE`.
    V2,
}

impl Version {
    /// The version as `x402Version` states it.
    pub const fn number(self) -> u64 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }
}

/// What a seller demands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The version of x402 that they are written in.
    pub version: Version,
    /// Whether the body beside terms of version 2 demands the same in version 1, so that clients of either can pay.
    pub also_v1: bool,
    /// Indexes in `entries` at which another place of the reply has another one of the entries. A client that reads the
    /// other place means that one by the index.
    pub moved: BTreeSet<usize>,
    /// `resource`, as it came; none in version 1, where each entry has its own.
    pub resource: Option<Value>,
    /// Ways to pay, of which the client chooses one; at least one, at most [`MAX_ENTRIES`].
    pub entries: Vec<Entry>,
    /// `extensions`, as they came; none in version 1.
    pub extensions: Map<String, Value>,
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
    /// The asset's EIP-712 domain, where the seller states it.
    pub domain: StatedDomain,
}

/// What a seller states of the EIP-712 domain of its asset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatedDomain {
    /// `extra.name`.
    pub name: Option<String>,
    /// `extra.version`.
    pub version: Option<String>,
}

/// How an asset is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// `transferWithAuthorization` of the asset itself (EIP-3009).
    Eip3009,
    /// The canonical Permit2 proxy of x402.
    Permit2,
}
