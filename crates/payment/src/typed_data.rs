//! EIP-712 signatures: the signed types, their domains, and the recovery of the signer. Also the calls that carry such
//! types.

use alloy_primitives::{Address, B256, U256, address, hex};
use alloy_sol_types::{Eip712Domain, eip712_domain, sol};

use crate::asset::AssetProperties;
use crate::terms::ExactPrice;

/// The Permit2 contract, which has the same address on every chain.
const PERMIT2: Address = address!("000000000022D473030F116dDEE9F6B43aC78BA3");

/// Length of a key's signature, in bytes. Contract wallets use other lengths (EIP-1271, EIP-6492).
const SIGNATURE_BYTES: usize = 65;

sol! {
    // EIP-3009, in the domain of the asset.
    struct TransferWithAuthorization {
        address from;
        address to;
        uint256 value;
        uint256 validAfter;
        uint256 validBefore;
        bytes32 nonce;
    }

    // Permit2 with the witness of the x402 scheme `exact`, in the domain of Permit2.
    struct PermitWitnessTransferFrom {
        TokenPermissions permitted;
        address spender;
        uint256 nonce;
        uint256 deadline;
        Witness witness;
    }

    struct TokenPermissions {
        address token;
        uint256 amount;
    }

    struct Witness {
        address to;
        uint256 validAfter;
    }

    // Calls of the x402 proxy for Permit2 (`x402ExactPermit2Proxy`).
    struct PermitTransferFrom {
        TokenPermissions permitted;
        uint256 nonce;
        uint256 deadline;
    }

    struct EIP2612Permit {
        uint256 value;
        uint256 deadline;
        bytes32 r;
        bytes32 s;
        uint8 v;
    }

    function settle(PermitTransferFrom permit, address owner, Witness witness, bytes signature);

    function settleWithPermit(
        EIP2612Permit permit2612, PermitTransferFrom permit, address owner, Witness witness, bytes signature
    );

    // x402 extension offer-receipt 0.6, sections 4.3 and 5.3.
    struct Offer {
        uint256 version;
        string resourceUrl;
        string scheme;
        string network;
        string asset;
        string payTo;
        string amount;
        uint256 validUntil;
    }

    struct Receipt {
        uint256 version;
        string network;
        string resourceUrl;
        string payer;
        uint256 issuedAt;
        string transaction;
    }
}

/// The domain of offers. Its chain id is unrelated to the network of the payment.
pub(crate) const OFFERS: Eip712Domain = eip712_domain! { name: "x402 offer", version: "1", chain_id: 1, };

pub(crate) const RECEIPTS: Eip712Domain = eip712_domain! { name: "x402 receipt", version: "1", chain_id: 1, };

/// The domain of the asset of a price.
pub(crate) fn asset_domain(asset: &AssetProperties, price: &ExactPrice) -> Eip712Domain {
    Eip712Domain {
        name: Some(asset.name.to_string().into()),
        version: Some(asset.version.to_string().into()),
        chain_id: Some(U256::from(price.chain_id)),
        verifying_contract: Some(price.asset),
        salt: None,
    }
}

/// The domain of Permit2 on a chain.
pub(crate) fn permit2_domain(chain_id: u64) -> Eip712Domain {
    Eip712Domain {
        name: Some("Permit2".into()),
        version: None,
        chain_id: Some(U256::from(chain_id)),
        verifying_contract: Some(PERMIT2),
        salt: None,
    }
}

/// Recovers the address that signed a hash. `signature` is `0x` and hexadecimal digits.
pub(crate) fn recover_signer(hash: B256, signature: &str) -> Result<Address, SignerRecoveryError> {
    let bytes = signature
        .strip_prefix("0x")
        .and_then(|digits| hex::decode(digits).ok())
        .ok_or(SignerRecoveryError::Malformed)?;
    let bytes = <[u8; SIGNATURE_BYTES]>::try_from(bytes).map_err(|_| SignerRecoveryError::Contract)?;
    recover_signer_from_bytes(hash, &bytes)
}

/// Accepts only the signature form that the contracts of the listed assets accept: `v` is 27 or 28, and `s` is the
/// lower of its two values.
#[cfg(feature = "signatures")]
fn recover_signer_from_bytes(hash: B256, bytes: &[u8; SIGNATURE_BYTES]) -> Result<Address, SignerRecoveryError> {
    let signature = alloy_primitives::Signature::from_raw_array(bytes).map_err(|_| SignerRecoveryError::Malformed)?;
    if ![27, 28].contains(&bytes[SIGNATURE_BYTES - 1]) || signature.normalize_s().is_some() {
        return Err(SignerRecoveryError::Malformed);
    }
    signature.recover_address_from_prehash(&hash).map_err(|_| SignerRecoveryError::Malformed)
}

/// The two addresses of which one signed a hash with ES256K (RFC 8812). Such a signature does not determine which.
#[cfg(feature = "signatures")]
pub(crate) fn es256k_signers(hash: B256, signature: &[u8]) -> Result<Vec<Address>, SignerRecoveryError> {
    let bytes = <[u8; SIGNATURE_BYTES - 1]>::try_from(signature).map_err(|_| SignerRecoveryError::Malformed)?;
    let of_parity = |is_odd| {
        let signature = alloy_primitives::Signature::from_bytes_and_parity(&bytes, is_odd);
        signature.recover_address_from_prehash(&hash).ok()
    };
    let signers: Vec<_> = [false, true].into_iter().filter_map(of_parity).collect();
    if signers.is_empty() { Err(SignerRecoveryError::Malformed) } else { Ok(signers) }
}

#[cfg(not(feature = "signatures"))]
pub(crate) fn es256k_signers(_: B256, _: &[u8]) -> Result<Vec<Address>, SignerRecoveryError> {
    Err(SignerRecoveryError::NotBuilt)
}

#[cfg(not(feature = "signatures"))]
fn recover_signer_from_bytes(_: B256, _: &[u8; SIGNATURE_BYTES]) -> Result<Address, SignerRecoveryError> {
    Err(SignerRecoveryError::NotBuilt)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SignerRecoveryError {
    #[error("no key can have made the signature")]
    Malformed,
    #[error("the signature does not have 65 bytes, and only the chain can check that of a contract wallet")]
    Contract,
    #[cfg_attr(feature = "signatures", allow(dead_code, reason = "for builds that cannot check"))]
    #[error("this build does not check signatures")]
    NotBuilt,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_key_makes_has_no_signer() {
        let of = |bytes: &[u8]| recover_signer(B256::ZERO, &hex::encode_prefixed(bytes));
        assert_eq!(of(&[1; SIGNATURE_BYTES - 1]), Err(SignerRecoveryError::Contract));
        assert_eq!(of(&[1; SIGNATURE_BYTES + 1]), Err(SignerRecoveryError::Contract));
        assert_eq!(of(&[0; SIGNATURE_BYTES]), Err(SignerRecoveryError::Malformed));
        let digits = hex::encode([1; SIGNATURE_BYTES]);
        for text in [digits.as_str(), "0x1", "0xzz", ""] {
            assert_eq!(recover_signer(B256::ZERO, text), Err(SignerRecoveryError::Malformed), "{text}");
        }
    }
}
