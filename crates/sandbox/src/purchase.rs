//! Purchases from the sandbox's sellers that were settled on its chain: the payer's payment and the seller's response.
//! Both are made with the payer's public test key.

use std::borrow::Cow;

use alloy_primitives::{Address, B256, FixedBytes, U256};
use alloy_sol_types::{SolCall as _, SolStruct as _, eip712_domain, sol};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clresolve_core::reason::ReasonCode;
use clresolve_core::state::TrustState;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::chain::{CHAIN_ID, DOLLAR, SandboxChainBuildError, SandboxChainBuilder, transaction_hash};
use crate::keys::{payee_address, payer_address, payer_key};
use crate::seller::{PRICE, sign_hash, terms_entry};

/// When the authorisations expire: in the year 2100, so that they can be settled whenever a sandbox starts.
const VALID_BEFORE: u64 = 4_102_444_800;

sol! {
    /// EIP-3009.
    struct TransferWithAuthorization {
        address from;
        address to;
        uint256 value;
        uint256 validAfter;
        uint256 validBefore;
        bytes32 nonce;
    }

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    );
}

/// A purchase that was settled on the chain of every sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxPurchase {
    /// An earlier one with the same payer, payee and amount.
    Earlier,
    /// The purchase whose receipts are in [`receipts`](crate::receipts).
    Settled,
    /// A purchase that is settled in the newest block, which is not final.
    Pending,
}

impl SandboxPurchase {
    /// Settlement time of the purchases in final blocks, 2026-02-11T09:00:02Z: a second after their receipts were
    /// signed.
    pub(crate) const SETTLED_AT: Timestamp = Timestamp::constant(1_770_800_402, 0);

    /// The purchases in final blocks, in their order.
    pub(crate) const FINAL: [Self; 2] = [Self::Earlier, Self::Settled];

    /// The payment header (`PAYMENT-SIGNATURE`) that the payer sent.
    pub fn payment_header(self) -> String {
        let message = self.authorization_message();
        let payload = json!({
            "signature": alloy_primitives::hex::encode_prefixed(self.authorization_signature()),
            "authorization": {
                "from": message.from, "to": message.to, "value": message.value.to_string(),
                "validAfter": message.validAfter.to_string(), "validBefore": message.validBefore.to_string(),
                "nonce": message.nonce,
            },
        });
        STANDARD
            .encode(json!({"x402Version": 2, "accepted": terms_entry(payee_address()), "payload": payload}).to_string())
    }

    /// The response header (`PAYMENT-RESPONSE`).
    pub fn settlement_header(self) -> String {
        settlement_response(self.settlement_transaction_hash())
    }

    /// Hash of the settlement transaction.
    pub fn settlement_transaction_hash(self) -> B256 {
        transaction_hash(Self::SENDER, Some(DOLLAR), &self.settlement_calldata())
    }

    /// Settles the purchase with the token.
    ///
    /// # Errors
    /// [`SandboxChainBuildError::Transaction`] if it is already settled.
    pub(crate) fn settle_on_chain(self, chain: &mut SandboxChainBuilder) -> Result<(), SandboxChainBuildError> {
        chain.send_call(Self::SENDER, DOLLAR, self.settlement_calldata().into())
    }

    const SENDER: Address = alloy_primitives::address!("000000000000000000000000000000000000fac1");

    /// The call of the token that settles the purchase.
    fn settlement_calldata(self) -> Vec<u8> {
        encode_settlement(self.authorization_message(), self.authorization_signature())
    }

    fn authorization_message(self) -> TransferWithAuthorization {
        TransferWithAuthorization {
            from: payer_address(),
            to: payee_address(),
            value: U256::from(PRICE),
            validAfter: U256::ZERO,
            validBefore: U256::from(VALID_BEFORE),
            nonce: B256::with_last_byte(self as u8 + 1),
        }
    }

    fn authorization_signature(self) -> FixedBytes<65> {
        let domain = eip712_domain! {
            name: Cow::Borrowed("Sandbox Dollar"),
            version: Cow::Borrowed("1"),
            chain_id: CHAIN_ID,
            verifying_contract: DOLLAR,
        };
        sign_hash(&payer_key(), self.authorization_message().eip712_signing_hash(&domain))
    }
}

/// The call of the token that settles this authorization.
fn encode_settlement(message: TransferWithAuthorization, signature: FixedBytes<65>) -> Vec<u8> {
    let TransferWithAuthorization { from, to, value, validAfter, validBefore, nonce } = message;
    let (r, s) = (B256::from_slice(&signature[..32]), B256::from_slice(&signature[32..64]));
    let v = signature[64];
    transferWithAuthorizationCall { from, to, value, validAfter, validBefore, nonce, v, r, s }.abi_encode()
}

/// A payment header of x402 version 2 with an EIP-3009 authorization.
#[derive(Deserialize)]
struct Eip3009PaymentDocument {
    payload: Eip3009PayloadDocument,
}

#[derive(Deserialize)]
struct Eip3009PayloadDocument {
    signature: FixedBytes<65>,
    authorization: Eip3009AuthorizationDocument,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Eip3009AuthorizationDocument {
    from: Address,
    to: Address,
    value: U256,
    valid_after: U256,
    valid_before: U256,
    nonce: B256,
}

/// The call of the token that settles the payment in this header (`PAYMENT-SIGNATURE`). `None` if the header is
/// malformed, or does not pay an honest seller's price to `pay_to`.
pub(crate) fn settlement_calldata_from_header(header: &[u8], pay_to: Address) -> Option<Vec<u8>> {
    let Eip3009PaymentDocument { payload: Eip3009PayloadDocument { signature, authorization } } =
        serde_json::from_slice(&STANDARD.decode(header).ok()?).ok()?;
    let Eip3009AuthorizationDocument { from, to, value, valid_after, valid_before, nonce } = authorization;
    if to != pay_to || value != U256::from(PRICE) {
        return None;
    }
    let message =
        TransferWithAuthorization { from, to, value, validAfter: valid_after, validBefore: valid_before, nonce };
    Some(encode_settlement(message, signature))
}

/// A seller's response header, with the expected result of verifying it with the payment of
/// [`SandboxPurchase::Settled`].
#[derive(Clone, Debug, Serialize)]
pub struct SettlementHeaderSample {
    /// Name of its file.
    pub file: &'static str,
    /// The state.
    pub state: TrustState,
    /// The code of every reason.
    pub codes: &'static [ReasonCode],
    /// Its text.
    #[serde(skip)]
    pub header: String,
}

/// Response headers, the good one first. The others name an earlier transfer of the same amount, and a transaction that
/// is not on the chain.
pub fn settlement_samples() -> [SettlementHeaderSample; 3] {
    let reply = |file, state, codes, header| SettlementHeaderSample { file, state, codes, header };
    [
        reply("settlement.txt", TrustState::Trusted, &[], SandboxPurchase::Settled.settlement_header()),
        reply(
            "settlement-mismatch.txt",
            TrustState::Untrusted,
            &[ReasonCode::SettlementMismatch],
            SandboxPurchase::Earlier.settlement_header(),
        ),
        reply(
            "settlement-unproven.txt",
            TrustState::Indeterminate,
            &[ReasonCode::SettlementUnproven],
            settlement_response(B256::repeat_byte(0x5a)),
        ),
    ]
}

/// The response header that names this transaction.
pub fn settlement_response(transaction: B256) -> String {
    let network = format!("eip155:{CHAIN_ID}");
    STANDARD.encode(
        json!({"success": true, "transaction": transaction, "network": network, "payer": payer_address()}).to_string(),
    )
}
