//! The ERC-8004 identity registry: its calls, and the strict decoding of their results. No I/O.

use alloy_primitives::{Address, Bytes, U256, address};
use alloy_sol_types::{SolCall, sol};

use crate::abi::{self, AbiError, AbiType};

/// The registry deployed by the authors of ERC-8004, at the same address on every chain where it exists.
pub const IDENTITY_REGISTRY: Address = address!("8004A169FB4a3325136EB29fA0ceB6D2e539a432");

/// Maximum length of an `agentURI`, in bytes: a registration file of 48 KiB as a `data:` URI. Other URIs are far
/// shorter.
pub const MAX_URI_BYTES: usize = 64 * 1024;

sol! {
    function getAgentWallet(uint256 agentId) returns (address);
    function tokenURI(uint256 tokenId) returns (bytes);
    function ownerOf(uint256 tokenId) returns (address);
}

const URI: &[AbiType] = &[AbiType::Bytes];

/// Why a result cannot come from the registry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentRegistryDecodeError {
    /// The address has no code.
    #[error("there is no registry at the configured address")]
    NoCode,
    /// The result is not ABI data of the expected type.
    #[error("the registry's answer is garbage: {0}")]
    Abi(#[from] AbiError),
    /// The URI is longer than [`MAX_URI_BYTES`].
    #[error("the agent's URI has more than {MAX_URI_BYTES} bytes")]
    LongUri,
    /// The URI is not UTF-8.
    #[error("the agent's URI is not UTF-8")]
    NotUtf8,
}

/// Call data for the wallet of an agent: the address at which it is paid.
pub fn agent_wallet_call(agent: U256) -> Bytes {
    getAgentWalletCall { agentId: agent }.abi_encode().into()
}

/// Call data for the URI of an agent's registration file.
pub fn agent_uri_call(agent: U256) -> Bytes {
    tokenURICall { tokenId: agent }.abi_encode().into()
}

/// Call data for the owner of an agent's entry.
pub fn agent_owner_call(agent: U256) -> Bytes {
    ownerOfCall { tokenId: agent }.abi_encode().into()
}

/// Decodes the wallet or the owner from a result; `None` if it is not set.
///
/// # Errors
/// [`AgentRegistryDecodeError`].
pub fn decode_agent_address(data: &[u8]) -> Result<Option<Address>, AgentRegistryDecodeError> {
    if data.is_empty() {
        return Err(AgentRegistryDecodeError::NoCode);
    }
    let wallet = getAgentWalletCall::abi_decode_returns_validate(data).map_err(|_| AbiError::BadValue)?;
    Ok(Some(wallet).filter(|wallet| !wallet.is_zero()))
}

/// Decodes the URI from a result.
///
/// # Errors
/// [`AgentRegistryDecodeError`].
pub fn decode_agent_uri(data: &[u8]) -> Result<String, AgentRegistryDecodeError> {
    if data.is_empty() {
        return Err(AgentRegistryDecodeError::NoCode);
    }
    abi::check_abi_parameters(data, URI)?;
    let uri = tokenURICall::abi_decode_returns_validate(data).map_err(|_| AbiError::BadValue)?;
    if uri.len() > MAX_URI_BYTES {
        return Err(AgentRegistryDecodeError::LongUri);
    }
    String::from_utf8(uri.into()).map_err(|_| AgentRegistryDecodeError::NotUtf8)
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{hex, keccak256};
    use alloy_sol_types::SolValue;

    use super::*;

    #[test]
    fn the_calls_are_those_of_the_published_interface() {
        let agent = U256::from(22);
        let word = format!("{:064x}", 22);
        for (call, signature) in
            [(agent_wallet_call(agent), "getAgentWallet(uint256)"), (agent_uri_call(agent), "tokenURI(uint256)")]
        {
            assert_eq!(hex::encode(&call), format!("{}{word}", hex::encode(&keccak256(signature)[..4])));
        }
    }

    #[test]
    fn a_wallet_is_an_address_or_not_set() {
        let address = Address::repeat_byte(7);
        assert_eq!(decode_agent_address(&address.abi_encode()), Ok(Some(address)));
        assert_eq!(decode_agent_address(&[0; 32]), Ok(None));
        assert_eq!(decode_agent_address(&[]), Err(AgentRegistryDecodeError::NoCode));
        assert_eq!(
            decode_agent_address(&[1; 32]),
            Err(AgentRegistryDecodeError::Abi(AbiError::BadValue)),
            "bytes above an address"
        );
        assert!(decode_agent_address(&[0; 31]).is_err());
    }

    #[test]
    fn a_uri_is_text_of_bounded_length() {
        let encoded = |bytes: &[u8]| Bytes::copy_from_slice(bytes).abi_encode();
        assert_eq!(
            decode_agent_uri(&"https://a.example/1.json".abi_encode()),
            Ok("https://a.example/1.json".to_owned())
        );
        assert_eq!(decode_agent_uri(&encoded(b"")), Ok(String::new()));
        assert_eq!(decode_agent_uri(&[]), Err(AgentRegistryDecodeError::NoCode));
        assert_eq!(decode_agent_uri(&encoded(&[0xff])), Err(AgentRegistryDecodeError::NotUtf8));
        assert!(decode_agent_uri(&encoded(&vec![b'a'; MAX_URI_BYTES])).is_ok());
        assert_eq!(decode_agent_uri(&encoded(&vec![b'a'; MAX_URI_BYTES + 1])), Err(AgentRegistryDecodeError::LongUri));
        let endless = [U256::from(32).to_be_bytes::<32>(), U256::MAX.to_be_bytes()].concat();
        assert!(matches!(decode_agent_uri(&endless), Err(AgentRegistryDecodeError::Abi(_))));
    }
}
