//! The signed part of a payment header. It has only the members that the SDKs write, since any other member might
//! permit something too.

use alloy_primitives::{Address, B256, U256};
use serde::Deserialize;

use crate::forms::{deserialize_address, deserialize_amount, deserialize_bytes32};
use crate::typed_data;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Eip3009Payload {
    pub(super) signature: String,
    pub(super) authorization: Eip3009Authorization,
}

/// `transferWithAuthorization`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Eip3009Authorization {
    #[serde(deserialize_with = "deserialize_address")]
    pub(super) from: Address,
    #[serde(deserialize_with = "deserialize_address")]
    pub(super) to: Address,
    #[serde(deserialize_with = "deserialize_amount")]
    pub(super) value: U256,
    #[serde(deserialize_with = "deserialize_amount")]
    pub(super) valid_after: U256,
    #[serde(deserialize_with = "deserialize_amount")]
    pub(super) valid_before: U256,
    #[serde(deserialize_with = "deserialize_bytes32")]
    pub(super) nonce: B256,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Permit2Payload {
    pub(super) signature: String,
    pub(super) permit2_authorization: Permit2Authorization,
}

/// `permitWitnessTransferFrom`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Permit2Authorization {
    #[serde(deserialize_with = "deserialize_address")]
    pub(super) from: Address,
    pub(super) permitted: PermittedTokenAmount,
    #[serde(deserialize_with = "deserialize_address")]
    pub(super) spender: Address,
    #[serde(deserialize_with = "deserialize_amount")]
    pub(super) nonce: U256,
    #[serde(deserialize_with = "deserialize_amount")]
    pub(super) deadline: U256,
    pub(super) witness: Permit2Witness,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PermittedTokenAmount {
    #[serde(deserialize_with = "deserialize_address")]
    pub(super) token: Address,
    #[serde(deserialize_with = "deserialize_amount")]
    pub(super) amount: U256,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Permit2Witness {
    #[serde(deserialize_with = "deserialize_address")]
    pub(super) to: Address,
    #[serde(deserialize_with = "deserialize_amount")]
    pub(super) valid_after: U256,
}

impl Eip3009Authorization {
    /// The message to sign.
    pub(super) const fn message_to_sign(&self) -> typed_data::TransferWithAuthorization {
        typed_data::TransferWithAuthorization {
            from: self.from,
            to: self.to,
            value: self.value,
            validAfter: self.valid_after,
            validBefore: self.valid_before,
            nonce: self.nonce,
        }
    }
}

impl Permit2Authorization {
    /// The message to sign.
    pub(super) const fn message_to_sign(&self) -> typed_data::PermitWitnessTransferFrom {
        let PermittedTokenAmount { token, amount } = self.permitted;
        typed_data::PermitWitnessTransferFrom {
            permitted: typed_data::TokenPermissions { token, amount },
            spender: self.spender,
            nonce: self.nonce,
            deadline: self.deadline,
            witness: typed_data::Witness { to: self.witness.to, validAfter: self.witness.valid_after },
        }
    }
}
