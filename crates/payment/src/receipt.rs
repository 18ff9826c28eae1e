//! Receipts that a seller has signed (x402's extension offer-receipt, version 0.6): that it was paid and has delivered.
//! A receipt names no amount, asset or payee.

use alloy_primitives::{B256, U256};
use alloy_sol_types::SolStruct as _;
use serde::Deserialize;

use crate::artifact::{Artifact, Payload};
use crate::typed_data;

/// A receipt and its signature.
pub type SignedReceipt = Artifact<Receipt>;

/// What a receipt states.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Receipt {
    version: u64,
    /// The network that was paid on, as CAIP-2 names it.
    pub network: String,
    /// The URL that was paid for.
    pub resource_url: String,
    /// Who paid, commonly an address.
    pub payer: String,
    /// When it was issued, in seconds since 1970.
    pub issued_at: u64,
    /// The hash of the transaction; empty where it is not told.
    #[serde(default)]
    pub transaction: String,
}

impl Payload for Receipt {
    fn version(&self) -> u64 {
        self.version
    }

    fn signing_hash(&self) -> B256 {
        let message = typed_data::Receipt {
            version: U256::from(self.version),
            network: self.network.clone(),
            resourceUrl: self.resource_url.clone(),
            payer: self.payer.clone(),
            issuedAt: U256::from(self.issued_at),
            transaction: self.transaction.clone(),
        };
        message.eip712_signing_hash(&typed_data::RECEIPTS)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::artifact::{SignedBy, SignerKeys};
    use crate::testing::{PAYEE, PAYER, address_of, sign};

    fn payload() -> Value {
        json!({
            "version": 1, "network": "eip155:84532", "resourceUrl": "https://api.example.org/summarize/v1",
            "payer": address_of(PAYER).to_string(), "issuedAt": 1_767_225_600, "transaction": "",
        })
    }

    fn signed(payload: &Value, hash: B256) -> Value {
        json!({"format": "eip712", "payload": payload, "signature": sign(hash, PAYEE)})
    }

    fn hash(payload: &Value) -> B256 {
        serde_json::from_value::<Receipt>(payload.clone()).unwrap().signing_hash()
    }

    #[test]
    fn a_receipt_is_signed_by_whom_the_name_publishes() {
        let signed_by = |receipt: &Value, address| {
            let keys = SignerKeys { addresses: vec![address], ed25519: Vec::new() };
            SignedReceipt::read(receipt).unwrap().signed_by(&keys)
        };
        let receipt = signed(&payload(), hash(&payload()));
        assert_eq!(signed_by(&receipt, address_of(PAYEE)), SignedBy::Published);
        assert_eq!(signed_by(&receipt, address_of(PAYER)), SignedBy::Stranger);
        let mut changed = receipt.clone();
        changed["payload"]["transaction"] = "0xab".into();
        assert_eq!(signed_by(&changed, address_of(PAYEE)), SignedBy::Stranger);
        let mut short = payload();
        short.as_object_mut().unwrap().remove("transaction");
        let receipt = signed(&short, hash(&payload()));
        assert_eq!(signed_by(&receipt, address_of(PAYEE)), SignedBy::Published, "absent is empty");
    }

    #[test]
    fn the_domain_of_offers_is_another() {
        let payload = payload();
        let text = |member: &str| payload[member].as_str().unwrap().to_owned();
        let message = typed_data::Receipt {
            version: U256::from(1),
            network: text("network"),
            resourceUrl: text("resourceUrl"),
            payer: text("payer"),
            issuedAt: U256::from(1_767_225_600),
            transaction: String::new(),
        };
        assert_eq!(message.eip712_signing_hash(&typed_data::RECEIPTS), hash(&payload));
        let elsewhere = signed(&payload, message.eip712_signing_hash(&typed_data::OFFERS));
        let keys = SignerKeys { addresses: vec![address_of(PAYEE)], ed25519: Vec::new() };
        assert_eq!(SignedReceipt::read(&elsewhere).unwrap().signed_by(&keys), SignedBy::Stranger);
    }
}
