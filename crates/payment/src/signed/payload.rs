//! The signed part of a payment header. It has only the members that the SDKs write, since any other member might
//! permit something too.

use alloy_primitives::{Address, B256, U256};
use serde::Deserialize;

use crate::forms::{read_address, read_amount, read_word};
use crate::typed_data;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Eip3009 {
    pub(super) signature: String,
    pub(super) authorization: Authorization,
}

/// `transferWithAuthorization`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Authorization {
    #[serde(deserialize_with = "read_address")]
    pub(super) from: Address,
    #[serde(deserialize_with = "read_address")]
    pub(super) to: Address,
    #[serde(deserialize_with = "read_amount")]
    pub(super) value: U256,
    #[serde(deserialize_with = "read_amount")]
    pub(super) valid_after: U256,
    #[serde(deserialize_with = "read_amount")]
    pub(super) valid_before: U256,
    #[serde(deserialize_with = "read_word")]
    pub(super) nonce: B256,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Permit2 {
    pub(super) signature: String,
    pub(super) permit2_authorization: Permit,
}

/// `permitWitnessTransferFrom`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Permit {
    #[serde(deserialize_with = "read_address")]
    pub(super) from: Address,
    pub(super) permitted: Permitted,
    #[serde(deserialize_with = "read_address")]
    pub(super) spender: Address,
    #[serde(deserialize_with = "read_amount")]
    pub(super) nonce: U256,
    #[serde(deserialize_with = "read_amount")]
    pub(super) deadline: U256,
    pub(super) witness: Witness,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Permitted {
    #[serde(deserialize_with = "read_address")]
    pub(super) token: Address,
    #[serde(deserialize_with = "read_amount")]
    pub(super) amount: U256,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Witness {
    #[serde(deserialize_with = "read_address")]
    pub(super) to: Address,
    #[serde(deserialize_with = "read_amount")]
    pub(super) valid_after: U256,
}

impl Authorization {
    /// The message to sign.
    pub(super) const fn message(&self) -> typed_data::TransferWithAuthorization {
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

impl Permit {
    /// The message to sign.
    pub(super) const fn message(&self) -> typed_data::PermitWitnessTransferFrom {
        let Permitted { token, amount } = self.permitted;
        typed_data::PermitWitnessTransferFrom {
            permitted: typed_data::TokenPermissions { token, amount },
            spender: self.spender,
            nonce: self.nonce,
            deadline: self.deadline,
            witness: typed_data::Witness { to: self.witness.to, validAfter: self.witness.valid_after },
        }
    }
}
