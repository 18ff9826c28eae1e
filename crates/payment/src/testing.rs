//! Keys, signatures and prices for tests.

use alloy_primitives::{Address, B256, U256, hex};
use base64::Engine as _;
use clresolve_jose::BASE64URL;
use k256::ecdsa::SigningKey;
use serde_json::{Value, json};

use crate::terms::{ExactPrice, StatedEip712Domain, TransferMethod};

/// Worthless keys: private keys that are small numbers.
pub(crate) const PAYER: u8 = 1;
pub(crate) const PAYEE: u8 = 2;
pub(crate) const THIEF: u8 = 3;

pub(crate) fn test_address(key: u8) -> Address {
    Address::from_public_key(test_signing_key(key).verifying_key())
}

/// The signature of a hash, in its JSON notation.
pub(crate) fn sign_hash(hash: B256, key: u8) -> String {
    let (signature, parity) =
        test_signing_key(key).sign_prehash_recoverable(hash.as_slice()).expect("32 bytes are signed");
    let signature: [u8; 64] = signature.to_bytes().into();
    format!("0x{}{:02x}", hex::encode(signature), 27 + parity.to_byte())
}

/// An offer as a JWS with this header.
pub(crate) fn jws_offer(header: &Value, payload: &Value, key: &clresolve_jose::Ed25519SigningKey) -> Value {
    let signed = format!("{}.{}", BASE64URL.encode(header.to_string()), BASE64URL.encode(payload.to_string()));
    json!({"format": "jws", "signature": format!("{signed}.{}", BASE64URL.encode(key.sign(signed.as_bytes())))})
}

fn test_signing_key(key: u8) -> SigningKey {
    SigningKey::from_slice(B256::with_last_byte(key).as_slice()).expect("a number below the order")
}

/// One hundredth of a USDC on Base Sepolia, to the payee.
pub(crate) fn usdc_price() -> ExactPrice {
    ExactPrice {
        network: "eip155:84532".parse().expect("CAIP-2"),
        chain_id: 84_532,
        amount: U256::from(10_000),
        asset: "0x036CbD53842c5426634e7929541eC2318f3dCF7e".parse().expect("an address"),
        pay_to: test_address(PAYEE),
        max_timeout_seconds: 60,
        transfer: TransferMethod::Eip3009,
        domain: StatedEip712Domain { name: Some("USDC".to_owned()), version: Some("2".to_owned()) },
    }
}
