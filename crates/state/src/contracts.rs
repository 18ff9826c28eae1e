//! The contracts: their addresses, their calls, and the strict decoding of results. No I/O.

use std::fmt;

use alloy_primitives::{Address, B256, Bytes, U256, address, keccak256};
use alloy_sol_types::{Revert, SolCall, SolError, SolValue, sol};
use jiff::Timestamp;

use super::abi::{self, AbiError, AbiType, MAX_ELEMENTS};
use clresolve_core::cause::{CcipLookupError, CcipResponseError, ResolverContractError};
use clresolve_core::name::EnsName;
use clresolve_core::payment::{
    AddressRecord, CoinType, EndpointRecord, EndpointRecordKey, PaymentRecords, RequestedCoinTypes,
};
use clresolve_core::reading::{ChainError, Ensv2MigrationSign, NameHolder};
use clresolve_core::records::{TextRecord, TextRecordKey, TextRecordSet};
use clresolve_core::text::excerpt_text;

const REGISTRY: Address = alloy_ens::ENS_ADDRESS;
/// The Universal Resolver's proxy on mainnet. ENSv2 keeps this address.
pub const UNIVERSAL_RESOLVER: Address = alloy_ens::UNIVERSAL_RESOLVER_ADDRESS;
/// Multicall3, at the same address on most chains.
pub const MULTICALL3: Address = address!("cA11bde05977b3631167028862bE2a173976CA11");
/// The NameWrapper on mainnet.
const NAME_WRAPPER: Address = address!("D4416b13d2b3a9aBae7AcD5D6C2BbDBE25686401");
/// The registrar of second-level `.eth` names on mainnet.
const BASE_REGISTRAR: Address = address!("57f1887a8BF19b14fC0dF6Fd9B2acc9Af147eA85");

/// Gas limit of one call. It is below 2^24, the maximum gas of a transaction (EIP-7825), so that no node refuses it.
/// The records of a name use a few hundred thousand gas. The limit bounds the work that a hostile resolver can cause on
/// a node.
pub const CALL_GAS: u64 = 16_000_000;

/// The addresses of the contracts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct EnsContractAddresses {
    /// The Universal Resolver (ENSIP-23).
    pub universal_resolver: Address,
    /// Multicall3, whose result contains the number of the block in which it ran.
    pub multicall3: Address,
    /// The registry (ENSIP-1).
    pub registry: Address,
    /// The NameWrapper.
    pub name_wrapper: Address,
    /// The registrar of second-level `.eth` names.
    pub base_registrar: Address,
}

impl Default for EnsContractAddresses {
    fn default() -> Self {
        Self {
            universal_resolver: UNIVERSAL_RESOLVER,
            multicall3: MULTICALL3,
            registry: REGISTRY,
            name_wrapper: NAME_WRAPPER,
            base_registrar: BASE_REGISTRAR,
        }
    }
}

sol! {
    struct MulticallCall {
        address target;
        bytes callData;
    }

    struct MulticallResult {
        bool success;
        bytes returnData;
    }

    function tryBlockAndAggregate(bool requireSuccess, MulticallCall[] calls)
        returns (uint256 blockNumber, bytes32 blockHash, MulticallResult[] returnData);
    function getCurrentBlockTimestamp() returns (uint256);

    function owner(bytes32 node) returns (address);
    function resolver(bytes32 node) returns (address);
    function ownerOf(uint256 id) returns (address);
    function getData(uint256 id) returns (address holder, uint32 fuses, uint64 expiry);
    function nameExpires(uint256 id) returns (uint256);

    function findResolver(bytes name) returns (address resolver, bytes32 node, uint256 offset);
    function resolve(bytes name, bytes data) returns (bytes result, address resolver);
    function multicall(bytes[] data) returns (bytes[]);
    function text(bytes32 node, string key) returns (string);
    function addr(bytes32 node) returns (address);

    interface Multicoin {
        function addr(bytes32 node, uint256 coinType) returns (bytes);
    }

    error ResolverNotFound(bytes name);
    error ResolverNotContract(bytes name, address resolver);
    error UnsupportedResolverProfile(bytes4 selector);
    error ResolverError(bytes errorData);
    error HttpError(uint16 status, string message);
    error OffchainLookup(address sender, string[] urls, bytes callData, bytes4 callbackFunction, bytes extraData);
}

/// Maximum number of calls of one aggregate: one per label of a name (at most 128), [`FACTS`], and two more.
const MAX_CALLS: usize = 128 + FACTS + 2;

pub(crate) const AGGREGATE: &[AbiType] =
    &[AbiType::Word, AbiType::Word, AbiType::Array(&AbiType::Tuple(&[AbiType::Word, AbiType::Bytes]), MAX_CALLS)];
const RESOLVED: &[AbiType] = &[AbiType::Bytes, AbiType::Word];
const ELEMENTS: &[AbiType] = &[AbiType::Array(&AbiType::Bytes, MAX_ELEMENTS)];
const TEXT: &[AbiType] = &[AbiType::Bytes];
const NOT_CONTRACT: &[AbiType] = &[AbiType::Bytes, AbiType::Word];
const HTTP_ERROR: &[AbiType] = &[AbiType::Word, AbiType::Bytes];

/// Number of calls about a name that precede the calls for the registry's resolvers.
const FACTS: usize = 6;

/// The calls that read a name.
pub struct NameMulticall {
    name: EnsName,
    contracts: EnsContractAddresses,
    coins: Option<RequestedCoinTypes>,
}

impl NameMulticall {
    /// The calls that read `name` from these contracts.
    pub fn new(name: &EnsName, contracts: &EnsContractAddresses) -> Self {
        Self { name: name.clone(), contracts: *contracts, coins: None }
    }

    /// Adds a call about payments: the addresses for these coin types, and the endpoints.
    #[must_use]
    pub fn with_payment(self, coins: Option<RequestedCoinTypes>) -> Self {
        Self { coins, ..self }
    }

    /// The requested coin types; `None` if payments are not requested.
    pub const fn coins(&self) -> Option<&RequestedCoinTypes> {
        self.coins.as_ref()
    }

    /// Call data for Multicall3: the block's time, holder, expiry, resolver, the registry's resolvers of the name and
    /// its ancestors, `resolve` and, last, the call about payments. The trusted contracts come first, because a hostile
    /// resolver may use up all remaining gas. Payments have a separate call, so that a resolver's reaction to it cannot
    /// affect the records.
    pub fn aggregate_call(&self, resolve: Bytes) -> Bytes {
        let node = self.name.namehash();
        let id = U256::from_be_bytes(node.0);
        let at = &self.contracts;
        let mut calls = vec![
            multicall_call(at.multicall3, &getCurrentBlockTimestampCall {}),
            multicall_call(at.registry, &ownerCall { node }),
            multicall_call(at.name_wrapper, &ownerOfCall { id }),
            multicall_call(at.name_wrapper, &getDataCall { id }),
            multicall_call(at.base_registrar, &nameExpiresCall { id: self.registrar_label_id() }),
            multicall_call(at.universal_resolver, &findResolverCall { name: self.name.dns_encoded().into() }),
        ];
        calls.extend(self.name_nodes().into_iter().map(|node| multicall_call(at.registry, &resolverCall { node })));
        let resolves = std::iter::once(resolve).chain(self.resolve_payment_call());
        calls.extend(resolves.map(|resolve| MulticallCall { target: at.universal_resolver, callData: resolve }));
        tryBlockAndAggregateCall { requireSuccess: false, calls }.abi_encode().into()
    }

    /// Call data of the Universal Resolver for the text records of these keys.
    pub fn resolve_texts_call<'k>(&self, keys: impl IntoIterator<Item = &'k str>) -> Bytes {
        let node = self.name.namehash();
        let text = |key: &str| textCall { node, key: key.to_owned() }.abi_encode().into();
        self.universal_resolver_call(multicallCall { data: keys.into_iter().map(text).collect() }.abi_encode())
    }

    /// Call data of the Universal Resolver for the name's payment records; `None` if they are not requested.
    pub fn resolve_payment_call(&self) -> Option<Bytes> {
        let node = self.name.namehash();
        let address =
            |coin: CoinType| Multicoin::addrCall { node, coinType: U256::from(coin.number()) }.abi_encode().into();
        let text = |key: EndpointRecordKey| textCall { node, key: key.as_str().to_owned() }.abi_encode().into();
        let addresses = self.coins.as_ref()?.iter().map(address);
        let data = addresses.chain(EndpointRecordKey::ALL.map(text)).collect();
        Some(self.universal_resolver_call(multicallCall { data }.abi_encode()))
    }

    /// Call data of the Universal Resolver for the address.
    pub fn resolve_address_call(&self) -> Bytes {
        self.universal_resolver_call(addrCall { node: self.name.namehash() }.abi_encode())
    }

    fn universal_resolver_call(&self, data: Vec<u8>) -> Bytes {
        resolveCall { name: self.name.dns_encoded().into(), data: data.into() }.abi_encode().into()
    }

    /// The nodes of the name and its ancestors, without the root.
    fn name_nodes(&self) -> Vec<B256> {
        let mut node = B256::ZERO;
        let below = |label: &str| {
            node = keccak256([node, keccak256(label)].concat());
            node
        };
        let mut nodes: Vec<B256> = self.name.labels().rev().map(below).collect();
        nodes.reverse();
        nodes
    }

    /// The resolver to which the registry leads (ENSIP-10), with the offset of the name that has it. `resolvers` are
    /// the registry's results for [`NameMulticall::name_nodes`].
    fn registry_resolver(&self, resolvers: &[MulticallResult]) -> Result<Option<(Address, U256)>, ContractDecodeError> {
        let mut offset = 0;
        for (label, result) in self.name.labels().zip(resolvers) {
            let resolver = decode_call_value::<resolverCall>(result).ok_or(ContractDecodeError::NoRegistry)?;
            if !resolver.is_zero() {
                return Ok(Some((resolver, U256::from(offset))));
            }
            offset += label.len() + 1;
        }
        Ok(None)
    }

    /// The registrar's id of the name's first label. It is meaningful only for second-level `.eth` names.
    fn registrar_label_id(&self) -> U256 {
        let label = self.name.labels().next().unwrap_or_default();
        U256::from_be_bytes(keccak256(label).0)
    }

    /// Decodes the result of Multicall3 for [`NameMulticall::aggregate_call`].
    ///
    /// # Errors
    /// [`ContractDecodeError`] if the result cannot come from these contracts. The endpoint is at fault, not the
    /// resolver.
    pub fn decode(&self, data: &[u8]) -> Result<NameFindings, ContractDecodeError> {
        if data.is_empty() {
            return Err(ContractDecodeError::NoMulticall);
        }
        abi::check_abi_parameters(data, AGGREGATE)?;
        let answer = tryBlockAndAggregateCall::abi_decode_returns_validate(data).map_err(|_| AbiError::BadValue)?;
        let block = u64::try_from(answer.blockNumber).map_err(|_| AbiError::BadValue)?;
        let mut results = answer.returnData;
        let payment = match self.coins {
            Some(_) => Some(UniversalResolverOutcome::new(results.pop().ok_or(ContractDecodeError::Count)?)),
            None => None,
        };
        let resolved = results.pop().ok_or(ContractDecodeError::Count)?;
        let resolvers = results.split_off(FACTS.min(results.len()));
        if resolvers.len() != self.name.labels().count() {
            return Err(ContractDecodeError::Count);
        }
        let [now, owner, wrapper_owner, wrapped, expires, found] =
            <[MulticallResult; FACTS]>::try_from(results).map_err(|_| ContractDecodeError::Count)?;
        let owner = decode_call_value::<ownerCall>(&owner).ok_or(ContractDecodeError::NoRegistry)?;
        let found = decode_call_value::<findResolverCall>(&found).ok_or(ContractDecodeError::NoUniversalResolver)?;
        let in_wrapper = owner == self.contracts.name_wrapper;
        let holder = if in_wrapper { decode_call_value::<ownerOfCall>(&wrapper_owner) } else { Some(owner) };
        let migrated = detect_migration_sign(owner, self.registry_resolver(&resolvers)?, &found);
        let registered = decode_call_value::<nameExpiresCall>(&expires).filter(|_| self.name.is_second_level_eth());
        let wrapped =
            decode_call_value::<getDataCall>(&wrapped).filter(|_| in_wrapper).map(|data| U256::from(data.expiry));
        Ok(NameFindings {
            block,
            time: decode_call_value::<getCurrentBlockTimestampCall>(&now).and_then(timestamp_from_seconds),
            registered: !owner.is_zero(),
            holder: match (migrated, holder.filter(|holder| !holder.is_zero())) {
                (Some(unreadable), _) => NameHolder::Unreadable { unreadable },
                (None, Some(holder)) => NameHolder::Address(holder),
                (None, None) => NameHolder::Nobody,
            },
            expiry: registered
                .and_then(timestamp_from_seconds)
                .or_else(|| wrapped.and_then(timestamp_from_seconds))
                .filter(|_| migrated.is_none()),
            source: FoundResolver::new(&self.name, &found),
            resolved: UniversalResolverOutcome::new(resolved),
            payment,
        })
    }
}

/// How the ENSv1 registry shows that the name lives in ENSv2. `None` if the registry leads to the resolver that the
/// Universal Resolver found. `owner` and `listed` are the registry's owner and resolver.
fn detect_migration_sign(
    owner: Address,
    listed: Option<(Address, U256)>,
    found: &findResolverReturn,
) -> Option<Ensv2MigrationSign> {
    let found = (!found.resolver.is_zero()).then_some((found.resolver, found.offset));
    if found == listed || clresolve_core::mutant!("stale-registries-are-believed") {
        return None;
    }
    Some(if owner.is_zero() { Ensv2MigrationSign::Unlisted } else { Ensv2MigrationSign::Superseded })
}

/// The results of the contracts about a name at one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameFindings {
    /// Number of the block in which the calls ran.
    pub block: u64,
    /// Timestamp of that block. `None` if Multicall3 does not return one.
    pub time: Option<Timestamp>,
    /// Whether the registry has an owner for the name.
    pub registered: bool,
    /// Who holds the name.
    pub holder: NameHolder,
    /// Expiry of the registration, if it can be read.
    pub expiry: Option<Timestamp>,
    /// The resolver that answers.
    pub source: FoundResolver,
    /// The outcome of the call for the name's records.
    pub resolved: UniversalResolverOutcome,
    /// The outcome of the call about payments; `None` if payments were not requested.
    pub payment: Option<UniversalResolverOutcome>,
}

impl NameFindings {
    /// Whether holder, resolver and response are equal. The blocks and the payment responses are not compared.
    pub fn has_same_records(&self, other: &Self) -> bool {
        (self.registered, self.holder, &self.source, &self.resolved)
            == (other.registered, other.holder, &other.source, &other.resolved)
    }

    /// Whether the resolver and its response about payments are equal. The blocks are not compared. Without a response
    /// about records, no payment records are read.
    pub fn has_same_payment(&self, other: &Self) -> bool {
        let is_agreed = self.payment == other.payment || clresolve_core::mutant!("payments-at-latest-are-alike");
        self.source == other.source && self.has_response() == other.has_response() && is_agreed
    }

    /// Whether the resolver returned records or refers to a gateway.
    pub const fn has_response(&self) -> bool {
        matches!(self.resolved, UniversalResolverOutcome::Returned(_) | UniversalResolverOutcome::Offchain(_))
    }
}

impl fmt::Display for NameFindings {
    /// Writes a short form that distinguishes findings that differ.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.resolved {
            UniversalResolverOutcome::Returned(data) => write!(f, "records {}", short_digest(data))?,
            UniversalResolverOutcome::Offchain(lookup) => write!(f, "off-chain lookup {}", short_digest(lookup))?,
            UniversalResolverOutcome::NoResolver if self.registered => f.write_str("no resolver")?,
            UniversalResolverOutcome::NoResolver => f.write_str("not registered")?,
            UniversalResolverOutcome::NotContract(_) => f.write_str("no code at the resolver")?,
            UniversalResolverOutcome::Unsupported => f.write_str("no text records")?,
            UniversalResolverOutcome::Gateway(_) | UniversalResolverOutcome::Failed(_) => {
                f.write_str("the resolver fails")?
            }
        }
        match &self.payment {
            Some(UniversalResolverOutcome::Returned(data) | UniversalResolverOutcome::Offchain(data)) => {
                write!(f, ", payments {}", short_digest(data))?
            }
            Some(_) => f.write_str(", no payments")?,
            None => {}
        }
        write!(f, " of resolver {}", self.source.resolver)?;
        match self.holder {
            NameHolder::Address(holder) => write!(f, ", holder {holder}")?,
            NameHolder::Nobody => f.write_str(", no holder")?,
            NameHolder::Unreadable { unreadable } => write!(f, ", holder unreadable ({unreadable})")?,
        }
        self.expiry.map_or(Ok(()), |expiry| write!(f, ", expiry {expiry}"))
    }
}

/// The first bytes of the Keccak-256 hash of `data`, as hex.
pub fn short_digest(data: &[u8]) -> String {
    format!("{}…", alloy_primitives::hex::encode_prefixed(&keccak256(data)[..8]))
}

/// The resolver that answers for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundResolver {
    /// The resolver's address.
    pub resolver: Address,
    /// The name for which it is set.
    pub name: ResolverNameOrigin,
}

/// The name for which a resolver is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolverNameOrigin {
    /// The name itself.
    Own,
    /// An ancestor of the name (ENSIP-10).
    Ancestor(EnsName),
    /// The root, or an offset that is not a label boundary.
    Invalid,
}

impl FoundResolver {
    fn new(name: &EnsName, found: &findResolverReturn) -> Self {
        let name = match usize::try_from(found.offset) {
            Ok(0) => ResolverNameOrigin::Own,
            Ok(offset) => {
                name.ancestor_at_dns_offset(offset).map_or(ResolverNameOrigin::Invalid, ResolverNameOrigin::Ancestor)
            }
            Err(_) => ResolverNameOrigin::Invalid,
        };
        Self { resolver: found.resolver, name }
    }
}

/// The outcome of a call of the Universal Resolver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UniversalResolverOutcome {
    /// It returned these bytes.
    Returned(Bytes),
    /// The resolver requires this CCIP-Read lookup (EIP-3668).
    Offchain(Bytes),
    /// Proven: neither the name nor an ancestor has a resolver that answers for it.
    NoResolver,
    /// Proven: the resolver is an address without code.
    NotContract(Address),
    /// Proven: the resolver does not support the requested records.
    Unsupported,
    /// A CCIP-Read gateway failed.
    Gateway(CcipLookupError),
    /// The resolver failed.
    Failed(ResolverContractError),
}

impl UniversalResolverOutcome {
    fn new(result: MulticallResult) -> Self {
        if result.success { Self::Returned(result.returnData) } else { Self::from_revert(&result.returnData) }
    }

    /// Interprets revert data.
    pub fn from_revert(data: &[u8]) -> Self {
        match leading_selector(data) {
            Some(OffchainLookup::SELECTOR) => Self::Offchain(Bytes::copy_from_slice(data)),
            Some(ResolverNotFound::SELECTOR) => Self::NoResolver,
            Some(UnsupportedResolverProfile::SELECTOR) => Self::Unsupported,
            Some(HttpError::SELECTOR) => {
                Self::Gateway(CcipLookupError::Gateway(decode_gateway_status(&data[SELECTOR_BYTES..])))
            }
            Some(ResolverError::SELECTOR) if is_wrong_sender_lookup(&data[SELECTOR_BYTES..]) => {
                Self::Gateway(CcipLookupError::Sender)
            }
            Some(ResolverNotContract::SELECTOR) => decode_not_contract_address(&data[SELECTOR_BYTES..])
                .map_or_else(|| Self::Failed(describe_revert(data)), Self::NotContract),
            _ => Self::Failed(describe_revert(data)),
        }
    }
}

/// Why a result cannot come from the called contracts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContractDecodeError {
    /// The address of Multicall3 has no code.
    #[error("there is no Multicall3 at the configured address")]
    NoMulticall,
    /// The address of the registry has no code.
    #[error("there is no ENS registry at the configured address")]
    NoRegistry,
    /// The address of the Universal Resolver has no code.
    #[error("there is no Universal Resolver at the configured address")]
    NoUniversalResolver,
    /// The number of Multicall3's results differs from the number of calls.
    #[error("Multicall3 returned the wrong number of results")]
    Count,
    /// The result is not ABI data of the expected type.
    #[error("Multicall3's answer is garbage: {0}")]
    Abi(#[from] AbiError),
}

/// Why a resolver's response contains no records.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolverAnswerError {
    /// A gateway failed.
    #[error("{0}")]
    Gateway(CcipLookupError),
    /// The resolver reverted, or the callback that verifies a gateway's response did.
    #[error("{0}")]
    Reverted(ResolverContractError),
    /// The response does not match the request, or is malformed.
    #[error("{0}")]
    Garbage(ResolverContractError),
}

impl From<AbiError> for ResolverAnswerError {
    fn from(error: AbiError) -> Self {
        Self::Garbage(ResolverContractError::Malformed(error.to_string()))
    }
}

/// Decodes the result of the Universal Resolver for [`NameMulticall::resolve_texts_call`]: the address of the resolver,
/// and the records.
///
/// # Errors
/// [`ResolverAnswerError`] for the first of `keys` that was not answered.
pub fn decode_texts(data: &[u8], keys: &[TextRecordKey]) -> Result<(Address, TextRecordSet), ResolverAnswerError> {
    let (resolver, records) = decode_records(data, keys.len())?;
    Ok((resolver, keys.iter().copied().zip(records).collect()))
}

/// As [`decode_texts`], for `count` keys of any kind.
///
/// # Errors
/// [`ResolverAnswerError`] for the first key that was not answered.
pub(crate) fn decode_records(data: &[u8], count: usize) -> Result<(Address, Vec<TextRecord>), ResolverAnswerError> {
    let (resolver, elements) = decode_multicall_elements(data, count)?;
    let records = elements.iter().map(|element| decode_text(element));
    Ok((resolver, records.collect::<Result<_, ResolverAnswerError>>()?))
}

/// Decodes the result of the Universal Resolver for [`NameMulticall::resolve_payment_call`]: the address of the
/// resolver, and the payment records. An element that cannot be read fails alone, with the cause that `explain` returns
/// for it.
///
/// # Errors
/// [`ResolverAnswerError`] if there are no elements.
pub(crate) fn decode_payment(
    data: &[u8],
    coins: &RequestedCoinTypes,
    explain: impl Fn(ResolverAnswerError) -> ChainError,
) -> Result<(Address, PaymentRecords), ResolverAnswerError> {
    let (resolver, elements) = decode_multicall_elements(data, coins.count() + EndpointRecordKey::ALL.len())?;
    let (addresses, endpoints) = elements.split_at(coins.count());
    let address = |element: &Bytes| match decode_bytes(element) {
        Ok(address) => AddressRecord::from_bytes(&address),
        Err(_) if clresolve_core::mutant!("failed-address-is-absent") => AddressRecord::Absent,
        Err(bad) => AddressRecord::Failed(explain(bad)),
    };
    let endpoint = |element: &Bytes| match decode_text(element) {
        Ok(record) => EndpointRecord::Read(record),
        Err(_) if clresolve_core::mutant!("failed-endpoint-is-absent") => EndpointRecord::Read(TextRecord::Absent),
        Err(bad) => EndpointRecord::Failed(explain(bad)),
    };
    let records = PaymentRecords {
        addresses: coins.iter().zip(addresses.iter().map(address)).collect(),
        endpoints: EndpointRecordKey::ALL.into_iter().zip(endpoints.iter().map(endpoint)).collect(),
        offchain: false,
    };
    Ok((resolver, records))
}

/// The address of the resolver, and its answers to a multicall of `count` requests.
fn decode_multicall_elements(data: &[u8], count: usize) -> Result<(Address, Vec<Bytes>), ResolverAnswerError> {
    let (result, resolver) = decode_resolve_result(data)?;
    abi::check_abi_parameters(&result, ELEMENTS)?;
    let elements = Vec::<Bytes>::abi_decode_validate(&result).map_err(|_| AbiError::BadValue)?;
    if elements.len() != count {
        return Err(ResolverAnswerError::Garbage(ResolverContractError::Count {
            answers: elements.len(),
            questions: count,
        }));
    }
    Ok((resolver, elements))
}

/// Decodes the result of the Universal Resolver for [`NameMulticall::resolve_address_call`]: the address; `None` if it
/// is not set.
///
/// # Errors
/// [`ResolverAnswerError::Garbage`].
pub(crate) fn decode_address(data: &[u8]) -> Result<Option<Address>, ResolverAnswerError> {
    let (result, _) = decode_resolve_result(data)?;
    let address = Address::abi_decode_validate(&result).map_err(|_| AbiError::BadValue)?;
    Ok(Some(address).filter(|address| !address.is_zero()))
}

fn decode_resolve_result(data: &[u8]) -> Result<(Bytes, Address), ResolverAnswerError> {
    abi::check_abi_parameters(data, RESOLVED)?;
    let answer = resolveCall::abi_decode_returns_validate(data).map_err(|_| AbiError::BadValue)?;
    Ok((answer.result, answer.resolver))
}

/// The `bytes` of an element. Under ENSIP-23, a response whose length is not a multiple of 32 is an error.
fn decode_bytes(element: &[u8]) -> Result<Bytes, ResolverAnswerError> {
    if element.is_empty() {
        return Err(ResolverAnswerError::Reverted(describe_revert(element)));
    }
    if !element.len().is_multiple_of(WORD) {
        return Err(element_error(element));
    }
    abi::check_abi_parameters(element, TEXT)?;
    Ok(Bytes::abi_decode_validate(element).map_err(|_| AbiError::BadValue)?)
}

/// Decodes the text as `bytes`, which has the same layout, because a decoder of `string` may replace invalid UTF-8.
fn decode_text(element: &[u8]) -> Result<TextRecord, ResolverAnswerError> {
    let text = decode_bytes(element)?;
    if text.is_empty() {
        return Ok(TextRecord::Absent);
    }
    Ok(match String::from_utf8(text.to_vec()) {
        Ok(text) => TextRecord::Text(text),
        Err(error) => TextRecord::NotUtf8(error.into_bytes()),
    })
}

fn element_error(element: &[u8]) -> ResolverAnswerError {
    let is_error = element.len() % WORD == SELECTOR_BYTES;
    match leading_selector(element) {
        Some(HttpError::SELECTOR) => {
            ResolverAnswerError::Gateway(CcipLookupError::Gateway(decode_gateway_status(&element[SELECTOR_BYTES..])))
        }
        Some(OffchainLookup::SELECTOR) => ResolverAnswerError::Gateway(CcipLookupError::Sender),
        Some(UnsupportedResolverProfile::SELECTOR) => ResolverAnswerError::Garbage(describe_revert(element)),
        Some(_) if is_error => ResolverAnswerError::Reverted(describe_revert(element)),
        _ => ResolverAnswerError::Garbage(ResolverContractError::NotText(element.len())),
    }
}

const WORD: usize = 32;
const SELECTOR_BYTES: usize = 4;

fn leading_selector(data: &[u8]) -> Option<[u8; SELECTOR_BYTES]> {
    data.first_chunk().copied()
}

/// Describes revert data. Foreign text in it is truncated.
fn describe_revert(data: &[u8]) -> ResolverContractError {
    let arguments = data.get(SELECTOR_BYTES..).unwrap_or_default();
    match leading_selector(data) {
        None => ResolverContractError::RevertedSilently,
        Some(UnsupportedResolverProfile::SELECTOR) => ResolverContractError::UnknownRecords,
        Some(Revert::SELECTOR) => {
            let reason = decode_bytes_argument(arguments).unwrap_or_default();
            ResolverContractError::Reverted(excerpt_text(&String::from_utf8_lossy(&reason)))
        }
        Some(ResolverError::SELECTOR) => match decode_bytes_argument(arguments).as_deref() {
            Some(inner) if leading_selector(inner) != Some(ResolverError::SELECTOR) => describe_revert(inner),
            _ => ResolverContractError::MalformedError,
        },
        Some(HttpError::SELECTOR) => ResolverContractError::Gateway(decode_gateway_status(arguments)),
        Some(other) => ResolverContractError::CustomError(other),
    }
}

/// Whether a `ResolverError` contains a lookup with a wrong sender, which EIP-3668 forbids. Universal Resolvers put
/// either the lookup itself or a message into the error.
fn is_wrong_sender_lookup(arguments: &[u8]) -> bool {
    decode_bytes_argument(arguments).is_some_and(|inner| {
        leading_selector(&inner) == Some(OffchainLookup::SELECTOR) || inner.as_ref() == b"sender mismatch"
    })
}

fn decode_bytes_argument(arguments: &[u8]) -> Option<Bytes> {
    abi::check_abi_parameters(arguments, TEXT).ok()?;
    Bytes::abi_decode_validate(arguments).ok()
}

fn decode_gateway_status(arguments: &[u8]) -> CcipResponseError {
    let decoded = abi::check_abi_parameters(arguments, HTTP_ERROR)
        .ok()
        .and_then(|()| <(U256, Bytes)>::abi_decode_params_validate(arguments).ok());
    match decoded {
        Some((status, message)) => {
            CcipResponseError::Status { status, message: excerpt_text(&String::from_utf8_lossy(&message)) }
        }
        None => CcipResponseError::Unreadable,
    }
}

fn decode_not_contract_address(arguments: &[u8]) -> Option<Address> {
    abi::check_abi_parameters(arguments, NOT_CONTRACT).ok()?;
    <(Bytes, Address)>::abi_decode_params_validate(arguments).ok().map(|(_, resolver)| resolver)
}

fn multicall_call(target: Address, data: &impl SolCall) -> MulticallCall {
    MulticallCall { target, callData: data.abi_encode().into() }
}

/// The result of a call with a static return type; `None` if it failed or the contract does not exist.
fn decode_call_value<C: SolCall>(result: &MulticallResult) -> Option<C::Return> {
    Some(&result.returnData).filter(|_| result.success).and_then(|data| C::abi_decode_returns_validate(data).ok())
}

/// Converts seconds since 1970 to a timestamp; `None` for zero (not set) and for a value out of range (never expires).
fn timestamp_from_seconds(seconds: U256) -> Option<Timestamp> {
    let seconds = i64::try_from(seconds).ok().filter(|seconds| *seconds != 0)?;
    Timestamp::from_second(seconds).ok()
}

#[cfg(test)]
mod tests {
    use clresolve_core::reading::EnsAnswer;

    use super::*;
    use crate::answer::{EnsAnswerStage, decode_returned_records, payment_answer_stage, records_answer_stage};

    const RESOLVER: Address = address!("00000000000000000000000000000000000a11ce");

    fn resolved(elements: Vec<Bytes>) -> Vec<u8> {
        (Bytes::from(elements.abi_encode()), RESOLVER).abi_encode_params()
    }

    /// A result in which only the first record is set, to this element.
    fn first(element: impl Into<Bytes>) -> Vec<u8> {
        let mut elements = vec![Bytes::from(String::new().abi_encode()); TextRecordKey::ALL.len()];
        elements[0] = element.into();
        resolved(elements)
    }

    fn error(element: impl Into<Bytes>) -> ResolverAnswerError {
        decode_texts(&first(element), &TextRecordKey::ALL).unwrap_err()
    }

    /// Otherwise a single endpoint could hide or fake the sale of a name.
    #[test]
    fn another_holder_is_another_vote() {
        let source = FoundResolver { resolver: RESOLVER, name: ResolverNameOrigin::Own };
        let (registered, resolved) = (true, UniversalResolverOutcome::Unsupported);
        let (holder, expiry, payment) = (NameHolder::Nobody, None, None);
        let one = NameFindings { block: 1, time: None, registered, holder, expiry, source, resolved, payment };
        assert!(one.has_same_records(&NameFindings { block: 2, ..one.clone() }));
        for holder in
            [NameHolder::Address(RESOLVER), NameHolder::Unreadable { unreadable: Ensv2MigrationSign::Superseded }]
        {
            assert!(!one.has_same_records(&NameFindings { holder, ..one.clone() }));
        }
    }

    /// Otherwise a single endpoint could keep payments pending forever, because without a response no payment record is
    /// read.
    #[test]
    fn payments_without_a_response_are_another_vote() {
        let source = FoundResolver { resolver: RESOLVER, name: ResolverNameOrigin::Own };
        let payment = Some(UniversalResolverOutcome::Returned(Bytes::new()));
        let (registered, resolved) = (true, UniversalResolverOutcome::Returned(Bytes::new()));
        let (holder, expiry) = (NameHolder::Nobody, None);
        let one = NameFindings { block: 1, time: None, registered, holder, expiry, source, resolved, payment };
        assert!(one.has_same_payment(&NameFindings {
            resolved: UniversalResolverOutcome::Returned(vec![1].into()),
            ..one.clone()
        }));
        assert!(!one.has_same_payment(&NameFindings { resolved: UniversalResolverOutcome::NoResolver, ..one.clone() }));
    }

    #[test]
    fn a_record_of_a_mebibyte_is_read_once() {
        let text = "a".repeat(1 << 20);
        let (resolver, records) = decode_texts(&first(text.abi_encode()), &TextRecordKey::ALL).unwrap();
        assert_eq!(resolver, RESOLVER);
        assert_eq!(records.text(TextRecordKey::ALL[0]), Some(text.as_str()));
        assert_eq!(records.get(TextRecordKey::ALL[1]), &TextRecord::Absent);
    }

    #[test]
    fn another_number_of_answers_is_refused() {
        let one = resolved(vec![String::new().abi_encode().into()]);
        assert_eq!(
            decode_texts(&one, &TextRecordKey::ALL),
            Err(ResolverAnswerError::Garbage(ResolverContractError::Count { answers: 1, questions: 16 }))
        );
    }

    #[test]
    fn errors_in_place_of_texts_are_told_apart() {
        let http = HttpError { status: 502, message: "bad gateway".to_owned() }.abi_encode();
        let status = CcipResponseError::Status { status: U256::from(502), message: "bad gateway".to_owned() };
        assert_eq!(error(http), ResolverAnswerError::Gateway(CcipLookupError::Gateway(status)));
        let unsupported = UnsupportedResolverProfile { selector: textCall::SELECTOR.into() }.abi_encode();
        assert!(matches!(error(unsupported), ResolverAnswerError::Garbage(_)));
        let revert = Revert::from("no".repeat(500)).abi_encode();
        assert!(matches!(error(revert), ResolverAnswerError::Reverted(cause) if cause.to_string().len() < 300));
        assert!(matches!(error(Bytes::new()), ResolverAnswerError::Reverted(_)));
        assert_eq!(error(vec![0; 33]), ResolverAnswerError::Garbage(ResolverContractError::NotText(33)));
        assert!(matches!(error(vec![0; 36]), ResolverAnswerError::Reverted(_)));
    }

    const OWNER: Address = Address::repeat_byte(7);

    /// The contracts' results about `a.eth`, with payments: the offset at which the resolver's name begins, and the
    /// outcomes of the two `resolve` calls.
    fn findings(offset: u64, resolved: (bool, Vec<u8>), payment: (bool, Vec<u8>)) -> NameFindings {
        let of_contracts = registered(OWNER, [RESOLVER, Address::ZERO], (RESOLVER, offset));
        let subject = NameMulticall::new(&EnsName::parse("a.eth").unwrap(), &EnsContractAddresses::default())
            .with_payment(Some(coins()));
        subject.decode(&aggregated(of_contracts.into_iter().chain([resolved, payment]))).unwrap()
    }

    /// What the contracts return about `a.eth`: the registry's owner, its resolvers of `a.eth` and `eth`, and what the
    /// Universal Resolver finds. The registrar knows an expiry.
    fn registered(owner: Address, listed: [Address; 2], found: (Address, u64)) -> Vec<(bool, Vec<u8>)> {
        let found = findResolverReturn { resolver: found.0, node: [0; 32].into(), offset: U256::from(found.1) };
        let time = || (true, U256::from(1_700_000_000).abi_encode());
        let facts = [time(), (true, owner.abi_encode()), (false, vec![]), (false, vec![]), time()];
        let found = (true, findResolverCall::abi_encode_returns(&found));
        facts.into_iter().chain([found]).chain(listed.map(|resolver| (true, resolver.abi_encode()))).collect()
    }

    fn aggregated(results: impl IntoIterator<Item = (bool, Vec<u8>)>) -> Vec<u8> {
        let result = |(success, data): (bool, Vec<u8>)| MulticallResult { success, returnData: data.into() };
        tryBlockAndAggregateCall::abi_encode_returns(&tryBlockAndAggregateReturn {
            blockNumber: U256::ONE,
            blockHash: [0; 32].into(),
            returnData: results.into_iter().map(result).collect(),
        })
    }

    /// Otherwise a previous owner would count as the holder of a name that has migrated to ENSv2.
    #[test]
    fn registry_counts_while_it_leads_to_the_resolver_that_answers() {
        let (nobody, none, other) = (Address::ZERO, Address::ZERO, Address::repeat_byte(9));
        let unreadable = |unreadable| NameHolder::Unreadable { unreadable };
        let (unlisted, superseded) =
            (unreadable(Ensv2MigrationSign::Unlisted), unreadable(Ensv2MigrationSign::Superseded));
        // "a.eth" is 8 bytes in DNS encoding, `eth` begins at its third, and the root at its last.
        for (owner, listed, found, expected) in [
            (OWNER, [RESOLVER, none], (RESOLVER, 0), NameHolder::Address(OWNER)),
            (OWNER, [RESOLVER, other], (RESOLVER, 0), NameHolder::Address(OWNER)),
            (OWNER, [none, none], (none, 6), NameHolder::Address(OWNER)),
            (OWNER, [none, RESOLVER], (RESOLVER, 2), NameHolder::Address(OWNER)),
            (nobody, [none, RESOLVER], (RESOLVER, 2), NameHolder::Nobody),
            (nobody, [none, none], (none, 6), NameHolder::Nobody),
            (nobody, [RESOLVER, none], (RESOLVER, 0), NameHolder::Nobody),
            (nobody, [none, none], (RESOLVER, 0), unlisted),
            (nobody, [none, other], (RESOLVER, 2), unlisted),
            (OWNER, [none, none], (RESOLVER, 0), superseded),
            (OWNER, [other, none], (RESOLVER, 0), superseded),
            (OWNER, [RESOLVER, none], (RESOLVER, 2), superseded),
            (OWNER, [none, RESOLVER], (RESOLVER, 0), superseded),
            (OWNER, [RESOLVER, none], (none, 6), superseded),
        ] {
            let subject = NameMulticall::new(&EnsName::parse("a.eth").unwrap(), &EnsContractAddresses::default());
            let results = registered(owner, listed, found).into_iter().chain([(false, vec![])]);
            let findings = subject.decode(&aggregated(results)).unwrap();
            let case = format!("{owner} {listed:?} {found:?}");
            assert_eq!(findings.holder, expected, "{case}");
            assert_eq!(findings.expiry.is_none(), expected.ensv2_migration_sign().is_some(), "{case}");
        }
    }

    fn answered(findings: &NameFindings) -> Result<EnsAnswer, ChainError> {
        match records_answer_stage(findings)? {
            EnsAnswerStage::Returned(returned) => decode_returned_records(findings, &TextRecordKey::ALL, &returned),
            EnsAnswerStage::Complete(answer) => Ok(answer),
            EnsAnswerStage::OffChain => panic!("no lookup is required"),
        }
    }

    #[test]
    fn what_no_resolver_of_the_name_said_is_refused_by_name() {
        let fault = |findings: &NameFindings| match answered(findings) {
            Err(ChainError::Resolver(fault)) => fault,
            other => panic!("{other:?}"),
        };
        let (good, failed) = ((true, first(String::new().abi_encode())), || (false, vec![]));
        assert!(
            matches!(answered(&findings(0, good.clone(), failed())), Ok(EnsAnswer::Records(found)) if found.wildcard.is_none())
        );
        for offset in [1, 6, 7, 300] {
            assert_eq!(
                fault(&findings(offset, good.clone(), failed())),
                ResolverContractError::OfNoAncestor,
                "{offset}"
            );
        }
        let unsupported = UnsupportedResolverProfile { selector: textCall::SELECTOR.into() }.abi_encode();
        assert_eq!(fault(&findings(0, (false, unsupported), failed())), ResolverContractError::NoTextRecords);

        let absent = vec![Bytes::from(Bytes::new().abi_encode()); coins().count() + EndpointRecordKey::ALL.len()];
        let of_another = |elements: Vec<Bytes>| {
            (true, (Bytes::from(elements.abi_encode()), Address::repeat_byte(8)).abi_encode_params())
        };
        let texts = vec![Bytes::from(String::new().abi_encode()); TextRecordKey::ALL.len()];
        assert_eq!(fault(&findings(0, of_another(texts), failed())), ResolverContractError::TwoResolvers);
        let beside = findings(0, good, of_another(absent));
        let Ok(EnsAnswerStage::Returned(returned)) = payment_answer_stage(&beside) else {
            panic!("there are payments")
        };
        let refused = crate::answer::decode_returned_payment(&beside, &coins(), &returned);
        assert_eq!(refused, Err(ChainError::Resolver(ResolverContractError::TwoResolvers)));
    }

    fn told(bad: ResolverAnswerError) -> ChainError {
        match bad {
            ResolverAnswerError::Gateway(cause) => ChainError::Ccip(cause),
            ResolverAnswerError::Reverted(cause) | ResolverAnswerError::Garbage(cause) => ChainError::Resolver(cause),
        }
    }

    fn coins() -> RequestedCoinTypes {
        RequestedCoinTypes::new(CoinType::from_chain_id(8453)).unwrap()
    }

    /// The payment records for these elements, with every other record unset.
    fn payment(elements: impl IntoIterator<Item = (usize, Vec<u8>)>) -> PaymentRecords {
        let count = coins().count() + EndpointRecordKey::ALL.len();
        let mut all = vec![Bytes::from(Bytes::new().abi_encode()); count];
        for (index, element) in elements {
            all[index] = element.into();
        }
        decode_payment(&resolved(all), &coins(), told).unwrap().1
    }

    fn addresses(records: &PaymentRecords) -> Vec<AddressRecord> {
        records.addresses.values().cloned().collect()
    }

    #[test]
    fn addresses_and_endpoints_are_asked_for_beside_the_records() {
        let name = EnsName::parse("a.eth").unwrap();
        let bare = NameMulticall::new(&name, &EnsContractAddresses::default());
        assert_eq!((bare.coins(), bare.resolve_payment_call()), (None, None));
        let resolve = bare.resolve_texts_call(TextRecordKey::ALL.map(TextRecordKey::as_str));
        let call = |subject: &NameMulticall| {
            let data = subject.aggregate_call(resolve.clone());
            tryBlockAndAggregateCall::abi_decode(&data).unwrap().calls
        };
        let asking = NameMulticall::new(&name, &EnsContractAddresses::default()).with_payment(Some(coins()));
        let (fewer, calls) = (call(&bare), call(&asking));
        assert_eq!(calls.len(), fewer.len() + 1);
        let data = |call: &MulticallCall| (call.target, call.callData.clone());
        assert!(
            fewer.iter().map(data).eq(calls[..fewer.len()].iter().map(data)),
            "the records are asked for as before"
        );

        let payment = asking.resolve_payment_call().unwrap();
        assert_eq!(calls.last().map(data), Some((UNIVERSAL_RESOLVER, payment.clone())));
        let resolve = resolveCall::abi_decode(&payment).unwrap();
        let asked = multicallCall::abi_decode(&resolve.data).unwrap().data;
        let node = name.namehash();
        let address = |coin: u64| Multicoin::addrCall { node, coinType: U256::from(coin) }.abi_encode();
        let text = |key: EndpointRecordKey| textCall { node, key: key.as_str().to_owned() }.abi_encode();
        let expected =
            [60, 0x8000_0000, 0x8000_0000 | 8453].map(address).into_iter().chain(EndpointRecordKey::ALL.map(text));
        assert!(asked.iter().map(|call| call.to_vec()).eq(expected));
    }

    #[test]
    fn an_answer_with_more_or_fewer_calls_than_asked_is_refused() {
        let name = EnsName::parse("a.eth").unwrap();
        let returned = |calls: usize| {
            let result = || MulticallResult { success: true, returnData: vec![0; 96].into() };
            let answer = tryBlockAndAggregateReturn {
                blockNumber: U256::ONE,
                blockHash: [0; 32].into(),
                returnData: (0..calls).map(|_| result()).collect(),
            };
            tryBlockAndAggregateCall::abi_encode_returns(&answer)
        };
        let bare = NameMulticall::new(&name, &EnsContractAddresses::default());
        let asking = NameMulticall::new(&name, &EnsContractAddresses::default())
            .with_payment(Some(RequestedCoinTypes::default()));
        // `a.eth` has two labels.
        for (subject, count) in [(bare, 9), (asking, 10)] {
            assert!(!matches!(subject.decode(&returned(count)), Err(ContractDecodeError::Count)), "{count}");
            for other in [0, 1, count - 1, count + 1] {
                assert_eq!(subject.decode(&returned(other)), Err(ContractDecodeError::Count), "{other} for {count}");
            }
        }
    }

    #[test]
    fn name_with_the_most_labels_is_read() {
        let name = EnsName::parse(&["a"; 128].join(".")).unwrap();
        let subject = NameMulticall::new(&name, &EnsContractAddresses::default()).with_payment(Some(coins()));
        let none = [Address::ZERO; 128].map(|resolver| (true, resolver.abi_encode()));
        let facts = registered(OWNER, [Address::ZERO; 2], (Address::ZERO, 256)).into_iter().take(FACTS);
        let results = facts.chain(none).chain([(false, vec![]), (false, vec![])]);
        assert_eq!(subject.decode(&aggregated(results)).unwrap().holder, NameHolder::Address(OWNER));
    }

    /// A call to an address without code succeeds and returns nothing.
    #[test]
    fn a_chain_without_a_contract_gives_no_answer() {
        let subject = NameMulticall::new(&EnsName::parse("a.eth").unwrap(), &EnsContractAddresses::default());
        let decoded = |owner: Vec<u8>, found: Vec<u8>| {
            let resolvers = [RESOLVER, Address::ZERO].map(|resolver| resolver.abi_encode());
            let facts = [vec![], owner, vec![], vec![], vec![], found].into_iter().chain(resolvers).chain([vec![]]);
            subject.decode(&aggregated(facts.map(|data| (true, data)))).map(|_| ())
        };
        let owner = || RESOLVER.abi_encode();
        let found = findResolverReturn { resolver: RESOLVER, node: [0; 32].into(), offset: U256::ZERO };
        let found = || findResolverCall::abi_encode_returns(&found);
        assert_eq!(decoded(owner(), found()), Ok(()));
        assert_eq!(decoded(vec![], found()), Err(ContractDecodeError::NoRegistry));
        assert_eq!(decoded(owner(), vec![]), Err(ContractDecodeError::NoUniversalResolver));
        assert_eq!(subject.decode(&[]).map(|_| ()), Err(ContractDecodeError::NoMulticall));
    }

    #[test]
    fn an_address_is_absent_or_set_or_malformed() {
        let set = Address::repeat_byte(7);
        let of = |bytes: &[u8]| Bytes::copy_from_slice(bytes).abi_encode();
        let records = payment([(0, of(set.as_slice())), (1, of(&[0; 20])), (2, of(&[9; 32]))]);
        let malformed = AddressRecord::Malformed(vec![9; 32].into());
        let zero = AddressRecord::Address(Address::ZERO);
        assert_eq!(addresses(&records), [AddressRecord::Address(set), zero, malformed]);
        assert_eq!(records.addresses.keys().copied().collect::<Vec<_>>(), coins().iter().collect::<Vec<_>>());
        assert_eq!(addresses(&payment([])), vec![AddressRecord::Absent; 3]);
    }

    #[test]
    fn an_address_that_cannot_be_read_is_neither_absent_nor_anything_else() {
        let http = HttpError { status: 404, message: "no".to_owned() }.abi_encode();
        let unsupported = UnsupportedResolverProfile { selector: Multicoin::addrCall::SELECTOR.into() }.abi_encode();
        let absurd = [U256::from(32).to_be_bytes::<32>(), U256::MAX.to_be_bytes()].concat();
        let into_head = [U256::ZERO.to_be_bytes::<32>(), U256::from(20).to_be_bytes()].concat();
        let elements: [Vec<u8>; 8] = [
            Vec::new(),
            vec![0; 20],
            vec![0; 32],
            absurd,
            into_head,
            Revert::from("why").abi_encode(),
            unsupported,
            http,
        ];
        for element in elements {
            for index in 0..coins().count() {
                let records = addresses(&payment([(index, element.clone())]));
                for (place, record) in records.iter().enumerate() {
                    let failed = matches!(record, AddressRecord::Failed(_));
                    assert_eq!(failed, place == index, "{element:?}: {records:?}");
                    assert!(failed || *record == AddressRecord::Absent, "{records:?}");
                }
            }
        }
    }

    #[test]
    fn an_endpoint_that_cannot_be_read_leaves_the_others() {
        let (first, last) = (coins().count(), coins().count() + EndpointRecordKey::ALL.len() - 1);
        let records =
            payment([(first, "https://a.example".to_owned().abi_encode()), (last, Revert::from("why").abi_encode())]);
        let failed = EndpointRecord::Failed(ChainError::Resolver(ResolverContractError::Reverted("why".to_owned())));
        let read = |record| EndpointRecord::Read(record);
        let absent = vec![read(TextRecord::Absent); EndpointRecordKey::ALL.len() - 2];
        let expected = [vec![read(TextRecord::Text("https://a.example".to_owned()))], absent, vec![failed]].concat();
        assert!(records.endpoints.into_iter().eq(EndpointRecordKey::ALL.into_iter().zip(expected)));
        let garbled = payment([(first, Bytes::from_static(&[0xff, 0xfe]).abi_encode())]);
        assert_eq!(garbled.endpoints[&EndpointRecordKey::Runtime], read(TextRecord::NotUtf8(vec![0xff, 0xfe])));
    }

    #[test]
    fn another_number_of_addresses_is_refused_whole() {
        let elements = |count| resolved(vec![Bytes::new().abi_encode().into(); count]);
        let asked = coins().count() + EndpointRecordKey::ALL.len();
        for count in [0, asked - 1, asked + 1] {
            let expected = ResolverContractError::Count { answers: count, questions: asked };
            let decoded = decode_payment(&elements(count), &coins(), told);
            assert_eq!(decoded, Err(ResolverAnswerError::Garbage(expected)));
        }
        let offsets = vec![U256::from(asked * 32); asked];
        let aliased = [U256::from(32), U256::from(asked)].into_iter().chain(offsets).chain([U256::ZERO]);
        let aliased: Vec<u8> = aliased.flat_map(|word| word.to_be_bytes::<32>()).collect();
        let data = (Bytes::from(aliased), RESOLVER).abi_encode_params();
        assert!(matches!(decode_payment(&data, &coins(), told), Err(ResolverAnswerError::Garbage(_))));
    }

    #[test]
    fn errors_within_errors_are_opened_once() {
        let inner = Revert::from("why").abi_encode();
        let once = ResolverError { errorData: inner.clone().into() }.abi_encode();
        let twice = ResolverError { errorData: once.clone().into() }.abi_encode();
        assert_eq!(
            UniversalResolverOutcome::from_revert(&once),
            UniversalResolverOutcome::Failed(ResolverContractError::Reverted("why".to_owned()))
        );
        assert_eq!(
            UniversalResolverOutcome::from_revert(&twice),
            UniversalResolverOutcome::Failed(ResolverContractError::MalformedError)
        );
    }

    #[test]
    fn malformed_errors_are_failures_not_absence() {
        let error = ResolverNotContract { name: Bytes::new(), resolver: RESOLVER }.abi_encode();
        assert_eq!(UniversalResolverOutcome::from_revert(&error), UniversalResolverOutcome::NotContract(RESOLVER));
        assert!(matches!(UniversalResolverOutcome::from_revert(&error[..40]), UniversalResolverOutcome::Failed(_)));
        assert!(matches!(UniversalResolverOutcome::from_revert(&[]), UniversalResolverOutcome::Failed(_)));
        assert!(matches!(UniversalResolverOutcome::from_revert(&[1, 2]), UniversalResolverOutcome::Failed(_)));
        let http = HttpError { status: 404, message: "no".to_owned() }.abi_encode();
        let unreadable = UniversalResolverOutcome::Gateway(CcipLookupError::Gateway(CcipResponseError::Unreadable));
        assert_eq!(UniversalResolverOutcome::from_revert(&http[..SELECTOR_BYTES + 32]), unreadable);
        let garbage = decode_texts(&http[SELECTOR_BYTES..], &TextRecordKey::ALL);
        assert!(
            matches!(garbage, Err(ResolverAnswerError::Garbage(ResolverContractError::Malformed(_)))),
            "{garbage:?}"
        );
    }

    #[test]
    fn an_address_with_dirty_high_bytes_is_refused() {
        let answer = |word: [u8; 32]| (Bytes::from(word.to_vec()), RESOLVER).abi_encode_params();
        assert_eq!(decode_address(&answer([0; 32])), Ok(None));
        assert_eq!(decode_address(&answer(RESOLVER.into_word().0)), Ok(Some(RESOLVER)));
        assert!(decode_address(&answer([0xff; 32])).is_err());
    }

    #[test]
    fn times_that_mean_never_are_none() {
        assert_eq!(timestamp_from_seconds(U256::ZERO), None);
        assert_eq!(timestamp_from_seconds(U256::from(u64::MAX)), None);
        assert_eq!(timestamp_from_seconds(U256::MAX), None);
        assert_eq!(timestamp_from_seconds(U256::from(1)), Some(Timestamp::from_second(1).unwrap()));
    }
}
