//! The CCIP-Read gateway of the off-chain names: their records and the key that signs its responses.

use std::collections::{BTreeMap, HashMap};

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_sol_types::{SolCall, SolInterface};
use clresolve_core::payment::CoinType;
use k256::ecdsa::SigningKey;
use k256::elliptic_curve::rand_core::OsRng;

use super::abi;

/// How long after the latest block a response stays valid, in seconds.
const VALIDITY: u64 = 3600;

/// Records by node, and the signer. The key is generated for each chain and never leaves this type.
#[derive(Clone)]
pub(super) struct SandboxCcipGateway {
    key: SigningKey,
    records: HashMap<B256, OffchainRecords>,
}

#[derive(Clone, Default)]
struct OffchainRecords {
    addr: Address,
    addresses: BTreeMap<CoinType, Bytes>,
    texts: BTreeMap<String, String>,
}

/// Why the gateway cannot answer a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxCcipGatewayError {
    /// The request is not the `resolve(bytes,bytes)` call of an off-chain resolver around a resolver call.
    #[error("the request is not one that an off-chain resolver of the sandbox makes")]
    Malformed,
}

impl SandboxCcipGateway {
    pub(super) fn new() -> Self {
        Self { key: SigningKey::random(&mut OsRng), records: HashMap::new() }
    }

    pub(super) fn set_text(&mut self, node: B256, key: &str, value: &str) {
        self.records.entry(node).or_default().texts.insert(key.to_owned(), value.to_owned());
    }

    pub(super) fn set_addr(&mut self, node: B256, value: Address) {
        self.records.entry(node).or_default().addr = value;
    }

    pub(super) fn set_address(&mut self, node: B256, coin: CoinType, value: &Bytes) {
        self.records.entry(node).or_default().addresses.insert(coin, value.clone());
    }

    pub(super) fn signer(&self) -> Address {
        let point = self.key.verifying_key().to_encoded_point(false);
        // SEC 1: a tag byte, then the 64 bytes whose hash is the address.
        Address::from_raw_public_key(&point.as_bytes()[1..])
    }

    pub(super) fn answer_request(
        &self,
        sender: Address,
        request: &[u8],
        now: u64,
    ) -> Result<Bytes, SandboxCcipGatewayError> {
        let call = abi::Gateway::resolveCall::abi_decode(request).map_err(|_| SandboxCcipGatewayError::Malformed)?;
        let result = self.encode_requested_record(&call.data)?;
        let expires = now.saturating_add(VALIDITY);
        let signature = self.sign_digest(response_digest(sender, expires, request, &result));
        let answer = abi::Gateway::resolveReturn { result: result.into(), expires, signature };
        Ok(abi::Gateway::resolveCall::abi_encode_returns(&answer).into())
    }

    /// The ABI-encoded record that `call` requests. Empty if it is not set.
    fn encode_requested_record(&self, call: &[u8]) -> Result<Vec<u8>, SandboxCcipGatewayError> {
        use abi::Profiles::{ProfilesCalls, addrCall, textCall};
        if let Ok(asked) = abi::Multicoin::addrCall::abi_decode(call) {
            let addresses = self.records.get(&asked.node).map(|records| &records.addresses);
            let mut set = addresses.into_iter().flatten();
            let address = set.find(|(coin, _)| U256::from(coin.number()) == asked.coinType).map(|(_, address)| address);
            return Ok(abi::Multicoin::addrCall::abi_encode_returns(address.unwrap_or(&Bytes::new())));
        }
        match ProfilesCalls::abi_decode(call).map_err(|_| SandboxCcipGatewayError::Malformed)? {
            ProfilesCalls::addr(asked) => {
                let addr = self.records.get(&asked.node).map(|r| r.addr).unwrap_or_default();
                Ok(addrCall::abi_encode_returns(&addr))
            }
            ProfilesCalls::text(asked) => {
                let text = self.records.get(&asked.node).and_then(|r| r.texts.get(&asked.key));
                Ok(textCall::abi_encode_returns(text.unwrap_or(&String::new())))
            }
        }
    }

    /// `r`, `s` and `v` (27 or 28), as expected by `ecrecover`.
    fn sign_digest(&self, digest: B256) -> Bytes {
        let (signature, recovery) =
            self.key.sign_prehash_recoverable(digest.as_slice()).expect("a 32-byte digest is what secp256k1 signs");
        let mut bytes = signature.to_vec();
        bytes.push(27 + u8::from(recovery.is_y_odd()));
        bytes.into()
    }
}

/// The digest to sign, as computed by `OffchainResolver.resolveCallback`.
fn response_digest(resolver: Address, expires: u64, request: &[u8], result: &[u8]) -> B256 {
    let mut message = vec![0x19, 0x00];
    message.extend_from_slice(resolver.as_slice());
    message.extend_from_slice(&expires.to_be_bytes());
    message.extend_from_slice(keccak256(request).as_slice());
    message.extend_from_slice(keccak256(result).as_slice());
    keccak256(message)
}
