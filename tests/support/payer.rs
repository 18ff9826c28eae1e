//! A payer, who signs what an entry of x402's terms demands: one transfer of the asset (EIP-3009).

use alloy_primitives::{Address, B256, U256, hex};
use alloy_sol_types::{Eip712Domain, SolStruct as _, sol};
use k256::ecdsa::SigningKey;
use serde_json::{Value, json};

sol! {
    struct TransferWithAuthorization {
        address from;
        address to;
        uint256 value;
        uint256 validAfter;
        uint256 validBefore;
        bytes32 nonce;
    }
}

/// The payment for `accepted`, an entry of version 2, that pays `to`, as clients write it into their header.
pub(crate) fn payment(accepted: &Value, to: Address, valid_before: i64) -> Value {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let key = SigningKey::from_slice(B256::with_last_byte(9).as_slice()).expect("a key");
    let message = TransferWithAuthorization {
        from: Address::from_public_key(key.verifying_key()),
        to,
        value: text(&accepted["amount"]).parse().expect("a number"),
        validAfter: U256::ZERO,
        validBefore: U256::try_from(valid_before).expect("it is later than 1970"),
        nonce: B256::with_last_byte(7),
    };
    let chain_id: u64 =
        text(&accepted["network"]).strip_prefix("eip155:").expect("an EVM chain").parse().expect("a number");
    let domain = Eip712Domain {
        name: Some(text(&accepted["extra"]["name"]).into()),
        version: Some(text(&accepted["extra"]["version"]).into()),
        chain_id: Some(U256::from(chain_id)),
        verifying_contract: Some(text(&accepted["asset"]).parse().expect("an address")),
        salt: None,
    };
    let (signature, parity) =
        key.sign_prehash_recoverable(message.eip712_signing_hash(&domain).as_slice()).expect("32 bytes");
    let authorization = json!({
        "from": message.from,
        "to": to,
        "value": accepted["amount"],
        "validAfter": "0",
        "validBefore": valid_before.to_string(),
        "nonce": message.nonce,
    });
    let signature = format!("0x{}{:02x}", hex::encode(signature.to_bytes()), 27 + parity.to_byte());
    json!({
        "x402Version": 2,
        "accepted": accepted,
        "payload": {"signature": signature, "authorization": authorization},
    })
}
