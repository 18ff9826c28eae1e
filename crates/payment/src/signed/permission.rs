//! What a payment header permits: payer, payee, asset, amount, and transfer method. The signature is not verified here.

use alloy_primitives::{Address, B256, Bytes, U256};
use serde::Serialize;
use serde_json::Value;

use clresolve_core::reason::Reason;

use super::{Eip3009Payload, Permit2Payload, decode_header, difference_reason, display_value, parse_payload};
use crate::forms;
use crate::network::Caip2Network;
use crate::terms::{self, ExactPrice, TransferMethod, X402Version};

/// Maximum length of a permit's signature. The signature of a key has 65 bytes. Contract wallets (EIP-1271) add some
/// for each owner, and their deployment data (EIP-6492) adds about a kilobyte.
const MAX_PERMIT_SIGNATURE_BYTES: usize = 4096;

/// A payment that a header permits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PaymentPermission {
    pub(crate) version: X402Version,
    pub(crate) network: Caip2Network,
    /// The asset's contract. A version 1 header does not contain it.
    pub(crate) asset: Option<Address>,
    pub(crate) payer: Address,
    pub(crate) pay_to: Address,
    pub(crate) amount: U256,
    pub(crate) permit: TransferPermit,
    /// The entry that the header repeats.
    pub(crate) accepted: Option<ExactPrice>,
}

/// The authorisation that moves the asset.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "transfer", rename_all = "lowercase")]
pub enum TransferPermit {
    /// `transferWithAuthorization` of the asset.
    Eip3009 {
        /// The nonce of the authorisation.
        nonce: B256,
    },
    /// A permit for the canonical Permit2 proxy.
    Permit2 {
        /// The nonce of the permit.
        #[serde(serialize_with = "forms::serialize_decimal_amount")]
        nonce: U256,
        /// The payer's signature.
        signature: Bytes,
    },
}

impl PaymentPermission {
    /// Parses a header (`PAYMENT-SIGNATURE`, or `X-PAYMENT` in version 1).
    ///
    /// # Errors
    /// `payment-signature-mismatch` if it is not a payment header of the scheme `exact`.
    pub(crate) fn from_header(header: &str) -> Result<Self, Box<Reason>> {
        let payment = decode_header(header)?;
        let number = payment.get("x402Version");
        match number.and_then(Value::as_u64) {
            Some(1) => Self::from_v1(&payment),
            Some(2) => Self::from_v2(&payment),
            _ => Err(difference_reason("/x402Version", "1 or 2", display_value(number))),
        }
    }

    fn from_v1(payment: &Value) -> Result<Self, Box<Reason>> {
        let text = |member: &str| payment.get(member).and_then(Value::as_str);
        if text("scheme") != Some("exact") {
            return Err(difference_reason("/scheme", "exact", display_value(payment.get("scheme"))));
        }
        let network = text("network").and_then(Caip2Network::from_v1_name);
        let network = network
            .ok_or_else(|| difference_reason("/network", "a known network", display_value(payment.get("network"))))?;
        Self::from_eip3009_payment(payment, X402Version::V1, network, None)
    }

    fn from_v2(payment: &Value) -> Result<Self, Box<Reason>> {
        let accepted = payment.get("accepted").unwrap_or(&Value::Null);
        let price = terms::parse_price(accepted, X402Version::V2, "/accepted".to_owned())?;
        match price.transfer {
            TransferMethod::Eip3009 => {
                Self::from_eip3009_payment(payment, X402Version::V2, price.network.clone(), Some(price))
            }
            TransferMethod::Permit2 => Self::from_permit2_payment(payment, price),
        }
    }

    fn from_eip3009_payment(
        payment: &Value,
        version: X402Version,
        network: Caip2Network,
        accepted: Option<ExactPrice>,
    ) -> Result<Self, Box<Reason>> {
        let Eip3009Payload { authorization, .. } = parse_payload(payment)?;
        Ok(Self {
            version,
            network,
            asset: accepted.as_ref().map(|price| price.asset),
            payer: authorization.from,
            pay_to: authorization.to,
            amount: authorization.value,
            permit: TransferPermit::Eip3009 { nonce: authorization.nonce },
            accepted,
        })
    }

    fn from_permit2_payment(payment: &Value, accepted: ExactPrice) -> Result<Self, Box<Reason>> {
        let Permit2Payload { signature, permit2_authorization: permit } = parse_payload(payment)?;
        let is_signature = |bytes: &Bytes| (1..=MAX_PERMIT_SIGNATURE_BYTES).contains(&bytes.len());
        let signature = signature.parse::<Bytes>().ok().filter(is_signature).ok_or_else(|| {
            let expected = format!("0x and the hex digits of at most {MAX_PERMIT_SIGNATURE_BYTES} bytes");
            difference_reason("/payload/signature", expected, "something else")
        })?;
        Ok(Self {
            version: X402Version::V2,
            network: accepted.network.clone(),
            asset: Some(permit.permitted.token),
            payer: permit.from,
            pay_to: permit.witness.to,
            amount: permit.permitted.amount,
            permit: TransferPermit::Permit2 { nonce: permit.nonce, signature },
            accepted: Some(accepted),
        })
    }
}
