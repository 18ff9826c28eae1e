//! A CCIP-Read lookup (EIP-3668): the request that a contract makes, and the callback that passes it the response. No
//! I/O.

use alloy_primitives::{Address, Bytes, FixedBytes};
use alloy_sol_types::{Revert, SolCall, SolError, SolValue, sol};

use crate::abi::{self, AbiError, AbiType, MAX_ELEMENTS};
use crate::contracts::{HttpError, OffchainLookup};

/// Maximum length of a gateway response and of revert data, in bytes. The records of a name have about 20 KB.
pub const MAX_LOOK_UP_BYTES: usize = 256 << 10;

/// Maximum number of consecutive lookups. An honest resolver needs one; a resolver behind another one needs two.
pub const MAX_LOOK_UPS: usize = 4;

/// A lookup that a contract requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CcipReadLookup {
    /// The request to the gateway.
    pub request: CcipReadRequest,
    callback: FixedBytes<SELECTOR_BYTES>,
    extra_data: Bytes,
}

/// Why a lookup is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CcipReadLookupError {
    /// Its data is longer than [`MAX_LOOK_UP_BYTES`].
    #[error("the lookup has more than {MAX_LOOK_UP_BYTES} bytes")]
    TooLong,
    /// It is not ABI data of the expected type.
    #[error("the lookup is malformed: {0}")]
    Malformed(#[from] AbiError),
    /// Its sender is not the called contract.
    #[error("the sender of the lookup is not the contract that was called")]
    Sender,
}

impl CcipReadLookup {
    /// Whether this revert data requires a lookup.
    pub fn is_lookup_demanded(revert: &[u8]) -> bool {
        revert.starts_with(&OffchainLookup::SELECTOR)
    }

    /// Decodes the revert data of the contract `called`.
    ///
    /// # Errors
    /// [`CcipReadLookupError`].
    pub fn decode(revert: &[u8], called: Address) -> Result<Self, CcipReadLookupError> {
        let parameters = parameters_after_selector(revert, OffchainLookup::SELECTOR)?;
        abi::check_abi_parameters(parameters, LOOK_UP)?;
        let OffchainLookup { sender, urls, callData: data, callbackFunction: callback, extraData: extra_data } =
            OffchainLookup::abi_decode_validate(revert).map_err(|_| AbiError::BadValue)?;
        if sender != called && !clresolve_core::mutant!("look-up-sender-unchecked") {
            return Err(CcipReadLookupError::Sender);
        }
        Ok(Self { request: CcipReadRequest { sender, urls, data }, callback, extra_data })
    }

    /// Call data that passes the gateway's response to the contract.
    pub fn callback_call(self, response: Bytes) -> Bytes {
        let arguments = (response, self.extra_data).abi_encode_params();
        [self.callback.as_slice(), &arguments].concat().into()
    }
}

/// Extracts the gateway's response from the call data of a callback.
pub fn response_in_callback(callback: &[u8]) -> Option<Bytes> {
    let parameters = callback.get(SELECTOR_BYTES..)?;
    <(Bytes, Bytes)>::abi_decode_params(parameters).ok().map(|(response, _)| response)
}

impl CcipReadRequest {
    /// Whether the client itself has to handle the request as a batch (ENSIP-21). The other URLs of the request are
    /// then ignored.
    pub fn is_batch(&self) -> bool {
        self.urls.iter().any(|url| url == BATCH_GATEWAY)
    }

    /// The requests of a batch, at most as many as one ABI array may contain.
    ///
    /// # Errors
    /// [`CcipReadLookupError`].
    pub fn batch_requests(&self) -> Result<Vec<Self>, CcipReadLookupError> {
        let parameters = parameters_after_selector(&self.data, queryCall::SELECTOR)?;
        abi::check_abi_parameters(parameters, BATCH)?;
        Ok(queryCall::abi_decode_validate(&self.data).map_err(|_| AbiError::BadValue)?.requests)
    }
}

/// The response to a batch. A request without a response contains the error of [`encode_batch_failure`] instead.
pub fn encode_batch_response(answers: Vec<Result<Bytes, Bytes>>) -> Bytes {
    let failures = answers.iter().map(Result::is_err).collect();
    let responses = answers.into_iter().map(|answer| answer.unwrap_or_else(|failure| failure)).collect();
    queryCall::abi_encode_returns(&queryReturn { failures, responses }).into()
}

/// Encodes why a request of a batch has no response, in a form that the contract can decode. `status` is the HTTP
/// status, if there is one.
pub fn encode_batch_failure(status: Option<u16>, message: &str) -> Bytes {
    match status {
        Some(status) => HttpError { status, message: message.to_owned() }.abi_encode().into(),
        None => Revert::from(message).abi_encode().into(),
    }
}

/// The URL with which a contract requests a batch (ENSIP-21).
const BATCH_GATEWAY: &str = "x-batch-gateway:true";

const SELECTOR_BYTES: usize = 4;

const LOOK_UP: &[AbiType] =
    &[AbiType::Word, AbiType::Array(&AbiType::Bytes, MAX_ELEMENTS), AbiType::Bytes, AbiType::Word, AbiType::Bytes];
const BATCH: &[AbiType] = &[AbiType::Array(
    &AbiType::Tuple(&[AbiType::Word, AbiType::Array(&AbiType::Bytes, MAX_ELEMENTS), AbiType::Bytes]),
    MAX_ELEMENTS,
)];

sol! {
    /// A request to a gateway.
    #[derive(Debug, PartialEq, Eq)]
    struct CcipReadRequest {
        /// The contract that makes the request.
        address sender;
        /// Templates of gateway URLs, in the order in which to try them.
        string[] urls;
        /// The data to send to the gateway.
        bytes data;
    }

    function query(CcipReadRequest[] requests) returns (bool[] failures, bytes[] responses);
}

/// The data after the selector, which must be `selector`.
fn parameters_after_selector(data: &[u8], selector: [u8; SELECTOR_BYTES]) -> Result<&[u8], CcipReadLookupError> {
    if data.len() > MAX_LOOK_UP_BYTES {
        return Err(CcipReadLookupError::TooLong);
    }
    Ok(data.strip_prefix(&selector).ok_or(AbiError::BadValue)?)
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{U256, address};

    use super::*;

    const CALLED: Address = address!("00000000000000000000000000000000000000aa");

    fn demand(urls: &[&str], data: Vec<u8>) -> OffchainLookup {
        OffchainLookup {
            sender: CALLED,
            urls: urls.iter().map(|url| (*url).to_owned()).collect(),
            callData: data.into(),
            callbackFunction: [1, 2, 3, 4].into(),
            extraData: vec![9; 40].into(),
        }
    }

    fn query(requests: Vec<CcipReadRequest>) -> Vec<u8> {
        queryCall { requests }.abi_encode()
    }

    #[test]
    fn a_look_up_leads_to_its_callback() {
        let revert = demand(&["https://a.example/{sender}/{data}"], vec![7; 3]).abi_encode();
        assert!(CcipReadLookup::is_lookup_demanded(&revert) && !CcipReadLookup::is_lookup_demanded(&revert[1..]));
        let look_up = CcipReadLookup::decode(&revert, CALLED).unwrap();
        let urls = vec!["https://a.example/{sender}/{data}".to_owned()];
        assert_eq!(look_up.request, CcipReadRequest { sender: CALLED, urls, data: vec![7; 3].into() });
        let callback = look_up.callback_call(vec![5; 33].into());
        let expected = (Bytes::from(vec![5; 33]), Bytes::from(vec![9; 40])).abi_encode_params();
        assert_eq!(callback, Bytes::from([&[1, 2, 3, 4], &expected[..]].concat()));
        assert_eq!(response_in_callback(&callback), Some(vec![5; 33].into()));
    }

    #[test]
    fn a_hostile_look_up_is_refused_by_name() {
        let good = demand(&["https://a.example/"], Vec::new()).abi_encode();
        assert_eq!(CcipReadLookup::decode(&good, Address::ZERO), Err(CcipReadLookupError::Sender));
        assert_eq!(CcipReadLookup::decode(&[], CALLED), Err(AbiError::BadValue.into()));
        assert_eq!(CcipReadLookup::decode(&good[..4], CALLED), Err(AbiError::Aliased.into()));
        assert_eq!(CcipReadLookup::decode(&good[..good.len() - 33], CALLED), Err(AbiError::Overrun.into()));
        let long = demand(&[], vec![0; MAX_LOOK_UP_BYTES]).abi_encode();
        assert_eq!(CcipReadLookup::decode(&long, CALLED), Err(CcipReadLookupError::TooLong));
        let many = demand(&["https://a.example/"; 65], Vec::new()).abi_encode();
        assert_eq!(CcipReadLookup::decode(&many, CALLED), Err(AbiError::TooMany.into()));
        // The URL is not UTF-8.
        let at = good.windows(8).position(|part| part == b"https://").unwrap();
        let mut garbled = good.clone();
        garbled[at] = 0xff;
        assert_eq!(CcipReadLookup::decode(&garbled, CALLED), Err(AbiError::BadValue.into()));
        // The offsets of the data and the extra data point to the same place.
        let mut shared = demand(&[], vec![7; 40]).abi_encode();
        let word = |at: usize| 4 + at * 32..4 + (at + 1) * 32;
        let place = U256::try_from_be_slice(&shared[word(2)]).unwrap().to_be_bytes::<32>();
        shared[word(4)].copy_from_slice(&place);
        let end = shared.len() - 96;
        assert_eq!(CcipReadLookup::decode(&shared[..end], CALLED), Err(AbiError::Aliased.into()));
    }

    #[test]
    fn a_batch_is_read_and_answered() {
        let request = |data: u8| CcipReadRequest { sender: CALLED, urls: Vec::new(), data: vec![data].into() };
        let batch = |data: Vec<u8>| {
            let urls = vec!["https://a.example/".to_owned(), BATCH_GATEWAY.to_owned()];
            CcipReadRequest { sender: CALLED, urls, data: data.into() }
        };
        let two = batch(query(vec![request(1), request(2)]));
        assert!(two.is_batch());
        assert_eq!(two.batch_requests().unwrap().iter().map(|request| request.data[0]).collect::<Vec<_>>(), [1, 2]);
        assert!(!two.batch_requests().unwrap()[0].is_batch());
        assert_eq!(batch(vec![0; 64]).batch_requests(), Err(AbiError::BadValue.into()));
        assert_eq!(batch(query(vec![request(1); 65])).batch_requests(), Err(AbiError::TooMany.into()));

        let answers = vec![
            Ok(vec![7].into()),
            Err(encode_batch_failure(Some(404), "no")),
            Err(encode_batch_failure(None, "off")),
        ];
        let answers = queryCall::abi_decode_returns_validate(&encode_batch_response(answers)).unwrap();
        assert_eq!(answers.failures, [false, true, true]);
        assert_eq!(answers.responses[0], Bytes::from(vec![7]));
        let refusal = HttpError::abi_decode(&answers.responses[1]).unwrap();
        assert_eq!((refusal.status, refusal.message.as_str()), (404, "no"));
        assert_eq!(Revert::abi_decode(&answers.responses[2]).unwrap().reason, "off");
    }
}
