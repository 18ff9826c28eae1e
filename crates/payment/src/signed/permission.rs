//! What a payment header permits: payer, payee, asset, amount, and transfer method. The signature is not verified here.

use alloy_primitives::{Address, B256, Bytes, U256};
use serde::Serialize;
use serde_json::Value;

use clresolve_core::reason::Reason;

use super::{Eip3009, Permit2, decode_header, differs, payload, shown};
use crate::forms;
use crate::network::Network;
use crate::terms::{self, Price, Transfer, Version};

/// Maximum length of a permit's signature. The signature of a key has 65 bytes. Contract wallets (EIP-1271) add some
/// for each owner, and their deployment data (EIP-6492) adds about a kilobyte.
const MAX_PERMIT_SIGNATURE_BYTES: usize = 4096;

/// A payment that a header permits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Permission {
    pub(crate) version: Version,
    pub(crate) network: Network,
    /// The asset's contract. A version 1 header does not contain it.
    pub(crate) asset: Option<Address>,
    pub(crate) payer: Address,
    pub(crate) pay_to: Address,
    pub(crate) amount: U256,
    pub(crate) permit: Permit,
    /// The entry that the header repeats.
    pub(crate) accepted: Option<Price>,
}

/// The authorisation that moves the asset.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "transfer", rename_all = "lowercase")]
pub enum Permit {
    /// `transferWithAuthorization` of the asset.
    Eip3009 {
        /// The nonce of the authorisation.
        nonce: B256,
    },
    /// A permit for the canonical Permit2 proxy.
    Permit2 {
        /// The nonce of the permit.
        #[serde(serialize_with = "forms::in_decimal")]
        nonce: U256,
        /// The payer's signature.
        signature: Bytes,
    },
}

impl Permission {
    /// Parses a header (`PAYMENT-SIGNATURE`, or `X-PAYMENT` in version 1).
    ///
    /// # Errors
    /// `payment-signature-mismatch` if it is not a payment header of the scheme `exact`.
    pub(crate) fn of_header(header: &str) -> Result<Self, Box<Reason>> {
        let payment = decode_header(header)?;
        let number = payment.get("x402Version");
        match number.and_then(Value::as_u64) {
            Some(1) => Self::of_v1(&payment),
            Some(2) => Self::of_v2(&payment),
            _ => Err(differs("/x402Version", "1 or 2", shown(number))),
        }
    }

    fn of_v1(payment: &Value) -> Result<Self, Box<Reason>> {
        let text = |member: &str| payment.get(member).and_then(Value::as_str);
        if text("scheme") != Some("exact") {
            return Err(differs("/scheme", "exact", shown(payment.get("scheme"))));
        }
        let network = text("network").and_then(Network::of_v1);
        let network = network.ok_or_else(|| differs("/network", "a known network", shown(payment.get("network"))))?;
        Self::by_authorization(payment, Version::V1, network, None)
    }

    fn of_v2(payment: &Value) -> Result<Self, Box<Reason>> {
        let accepted = payment.get("accepted").unwrap_or(&Value::Null);
        let price = terms::price(accepted, Version::V2, "/accepted".to_owned())?;
        match price.transfer {
            Transfer::Eip3009 => Self::by_authorization(payment, Version::V2, price.network.clone(), Some(price)),
            Transfer::Permit2 => Self::by_permit(payment, price),
        }
    }

    fn by_authorization(
        payment: &Value,
        version: Version,
        network: Network,
        accepted: Option<Price>,
    ) -> Result<Self, Box<Reason>> {
        let Eip3009 { authorization, .. } = payload(payment)?;
        Ok(Self {
            version,
            network,
            asset: accepted.as_ref().map(|price| price.asset),
            payer: authorization.from,
            pay_to: authorization.to,
            amount: authorization.value,
            permit: Permit::Eip3009 { nonce: authorization.nonce },
            accepted,
        })
    }

    fn by_permit(payment: &Value, accepted: Price) -> Result<Self, Box<Reason>> {
        let Permit2 { signature, permit2_authorization: permit } = payload(payment)?;
        let is_signature = |bytes: &Bytes| (1..=MAX_PERMIT_SIGNATURE_BYTES).contains(&bytes.len());
        let signature = signature.parse::<Bytes>().ok().filter(is_signature).ok_or_else(|| {
            let expected = format!("0x and the hex digits of at most {MAX_PERMIT_SIGNATURE_BYTES} bytes");
            differs("/payload/signature", expected, "something else")
        })?;
        Ok(Self {
            version: Version::V2,
            network: accepted.network.clone(),
            asset: Some(permit.permitted.token),
            payer: permit.from,
            pay_to: permit.witness.to,
            amount: permit.permitted.amount,
            permit: Permit::Permit2 { nonce: permit.nonce, signature },
            accepted: Some(accepted),
        })
    }
}
