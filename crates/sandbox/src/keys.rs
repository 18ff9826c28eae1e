//! The accounts of payers and payees in the sandbox: the well-known ones of development chains. Their keys are public
//! and worthless.

use alloy_primitives::{Address, B256, b256};
use k256::ecdsa::SigningKey;

/// The key of the account that owns all of the sandbox's dollars.
pub const PAYER: B256 = b256!("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80");

/// The key of the payee: the address that honest names publish.
const PAYEE: B256 = b256!("59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d");

/// The key of an address that no name publishes.
const STRANGER: B256 = b256!("5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a");

/// The address that owns all of the sandbox's dollars.
pub fn payer_address() -> Address {
    address_of(&payer_key())
}

/// The address that honest names publish.
pub fn payee_address() -> Address {
    address_of(&payee_key())
}

/// An address that no name publishes.
pub fn stranger_address() -> Address {
    address_of(&stranger_key())
}

pub(crate) fn payer_key() -> SigningKey {
    signing_key(PAYER)
}

pub(crate) fn payee_key() -> SigningKey {
    signing_key(PAYEE)
}

pub(crate) fn stranger_key() -> SigningKey {
    signing_key(STRANGER)
}

fn signing_key(secret: B256) -> SigningKey {
    SigningKey::from_slice(secret.as_slice()).expect("it is below the order")
}

fn address_of(key: &SigningKey) -> Address {
    Address::from_public_key(key.verifying_key())
}
