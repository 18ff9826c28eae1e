//! The sandbox's chain: real EVM execution of ENS contracts, in memory, at mainnet's addresses.
//!
//! [`SandboxChainBuilder`] registers names with real contract calls and seals blocks. [`SandboxChain`] is the immutable
//! result. [`SandboxRpcServer`] serves it over JSON-RPC. The contracts are in `contracts`.

mod abi;
mod artifacts;
mod builder;
mod ensv2;
mod evm;
mod gateway;
mod mined;
mod proofs;
mod resolver_kind;
mod rpc;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use alloy_consensus::Header;
use alloy_primitives::{Address, B256, Bytes, Log, U256, address};
use alloy_rpc_types_eth::{AccessListResult, BlockId, BlockNumberOrTag, EIP1186AccountProofResponse};
use jiff::Timestamp;
use revm::context::BlockEnv;

pub use self::builder::{CustodyContract, SandboxChainBuildError, SandboxChainBuilder, SandboxNameRegistration};
pub use self::ensv2::Ensv1Remnant;
pub use self::gateway::SandboxCcipGatewayError;
pub use self::resolver_kind::{EnsResolverKind, HostileResolverMode};
pub use self::rpc::{SandboxRpcBindError, SandboxRpcFault, SandboxRpcServer};

pub use self::evm::CHAIN_ID;
use self::evm::{GAS_LIMIT, InvalidEvmCallError, SandboxEvmAccounts, SandboxEvmCall, SandboxEvmOutcome};
use self::gateway::SandboxCcipGateway;
use self::mined::MinedTransaction;
pub(crate) use self::mined::transaction_hash;
use self::proofs::StateTries;
use clresolve_core::reading::ChainBlock;

/// The ENS registry.
pub const REGISTRY: Address = address!("00000000000C2E074eC69A0dFb2997BA6C7d2e1e");
/// The Universal Resolver (ENSIP-23).
pub const UNIVERSAL_RESOLVER: Address = address!("eEeEEEeE14D718C2B47D9923Deab1335E144EeEe");
/// Multicall3.
pub const MULTICALL3: Address = address!("cA11bde05977b3631167028862bE2a173976CA11");
/// The registrar of second-level `.eth` names.
pub(crate) const REGISTRAR: Address = address!("57f1887a8BF19b14fC0dF6Fd9B2acc9Af147eA85");
/// The NameWrapper.
pub const NAME_WRAPPER: Address = address!("D4416b13d2b3a9aBae7AcD5D6C2BbDBE25686401");

/// A token that is transferred by signed authorisations (EIP-3009).
pub const DOLLAR: Address = address!("00000000000000000000000000000000d0114400");

/// The registry of agents (ERC-8004), at the address of the official deployments on other chains.
pub const IDENTITY_REGISTRY: Address = address!("8004A169FB4a3325136EB29fA0ceB6D2e539a432");

/// An immutable chain of sealed blocks. [`SandboxChainBuilder::build`] creates the next version.
pub struct SandboxChain {
    /// Oldest first, numbered without gaps, never empty.
    blocks: Vec<Arc<SandboxBlock>>,
    /// Number of the newest block that is `finalized` and `safe`.
    finalized: u64,
    gateway: SandboxCcipGateway,
}

impl SandboxChain {
    /// The block for the tags `finalized` and `safe`.
    pub fn finalized(&self) -> ChainBlock {
        self.block_by_number(self.finalized).expect("the builder finalizes sealed blocks only").to_chain_block()
    }

    /// The block for the tag `latest`.
    pub fn latest(&self) -> ChainBlock {
        self.newest_block().to_chain_block()
    }

    /// Block 0, which identifies a chain.
    pub fn genesis(&self) -> ChainBlock {
        self.block_by_number(0).expect("the builder begins with block 0").to_chain_block()
    }

    /// The response of the CCIP-Read gateway of every [`EnsResolverKind::Offchain`] name to `data` for `sender`
    /// (EIP-3668). The result is signed, and the resolver accepts it until an hour after the latest block.
    ///
    /// # Errors
    /// `data` is not a request that such a resolver sends.
    pub fn answer_ccip_read(&self, sender: Address, data: &[u8]) -> Result<Bytes, SandboxCcipGatewayError> {
        self.gateway.answer_request(sender, data, self.newest_block().header.timestamp)
    }

    /// Whether a call of the contract at `to` succeeds on the newest state at this time. Its effects are discarded.
    pub(crate) fn accepts_call(&self, to: Address, data: Bytes, time: Timestamp) -> bool {
        let newest = self.newest_block();
        let timestamp = U256::from(u64::try_from(time.as_second()).unwrap_or_default());
        let block = BlockEnv { timestamp, ..newest.block_environment() };
        let call = SandboxEvmCall { from: Address::ZERO, to, data, gas: GAS_LIMIT };
        matches!(newest.state.execute_call(block, call), Ok(SandboxEvmOutcome::Returned(_)))
    }

    /// The header and the hash of the block for the tag `latest`.
    pub(crate) fn newest_header(&self) -> (&Header, B256) {
        self.newest_block().header_and_hash()
    }

    /// The header and the hash of the block for the tag `finalized`.
    pub(crate) fn finalized_header(&self) -> (&Header, B256) {
        self.finalized_header_at(u64::MAX)
    }

    /// The header and the hash of the last finalized block up to this time, in seconds since 1970.
    pub(crate) fn finalized_header_at(&self, time: u64) -> (&Header, B256) {
        let is_final = |header: &Header| header.number <= self.finalized && header.timestamp <= time;
        let last = self.blocks.iter().rfind(|block| is_final(&block.header));
        last.expect("block 0 is final, and its time is 0").header_and_hash()
    }

    fn newest_block(&self) -> &SandboxBlock {
        self.blocks.last().expect("ChainBuilder::build refuses a chain without blocks")
    }

    /// The newest block up to `last` that contains a matching transaction, and the transaction's index.
    fn find_transaction(
        &self,
        last: u64,
        is_wanted: impl Fn(&MinedTransaction) -> bool,
    ) -> Option<(&SandboxBlock, usize)> {
        let mut blocks = self.blocks.iter().rev().filter(|block| block.header.number <= last);
        blocks.find_map(|block| Some((&**block, block.transactions.iter().rposition(&is_wanted)?)))
    }

    fn block_by_number(&self, number: u64) -> Option<&SandboxBlock> {
        let first = self.blocks.first()?.header.number;
        let index = usize::try_from(number.checked_sub(first)?).ok()?;
        self.blocks.get(index).map(Arc::as_ref)
    }

    fn find_block(&self, id: BlockId) -> Option<&SandboxBlock> {
        match id {
            BlockId::Hash(hash) => self.blocks.iter().find(|b| b.hash == hash.block_hash).map(Arc::as_ref),
            BlockId::Number(BlockNumberOrTag::Number(number)) => self.block_by_number(number),
            BlockId::Number(BlockNumberOrTag::Finalized | BlockNumberOrTag::Safe) => {
                self.block_by_number(self.finalized)
            }
            BlockId::Number(BlockNumberOrTag::Latest | BlockNumberOrTag::Pending) => Some(self.newest_block()),
            BlockId::Number(BlockNumberOrTag::Earliest) => self.blocks.first().map(Arc::as_ref),
        }
    }
}

/// A block and the state after it.
struct SandboxBlock {
    header: Header,
    hash: B256,
    state: SandboxEvmAccounts,
    transactions: Vec<MinedTransaction>,
    /// Built when the first proof is requested.
    tries: OnceLock<StateTries>,
}

impl SandboxBlock {
    fn new(header: Header, state: SandboxEvmAccounts, transactions: Vec<MinedTransaction>) -> Self {
        Self { hash: header.hash_slow(), header, state, transactions, tries: OnceLock::new() }
    }

    const fn header_and_hash(&self) -> (&Header, B256) {
        (&self.header, self.hash)
    }

    fn logs(&self) -> impl Iterator<Item = &Log> {
        self.transactions.iter().flat_map(|mined| &mined.logs)
    }

    fn to_chain_block(&self) -> ChainBlock {
        let seconds = i64::try_from(self.header.timestamp).unwrap_or(i64::MAX);
        ChainBlock {
            number: self.header.number,
            hash: self.hash,
            timestamp: Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX),
        }
    }

    fn execute_call(&self, call: SandboxEvmCall) -> Result<SandboxEvmOutcome, InvalidEvmCallError> {
        self.state.execute_call(self.block_environment(), call)
    }

    fn create_access_list(&self, call: SandboxEvmCall) -> Result<AccessListResult, InvalidEvmCallError> {
        self.state.create_access_list(self.block_environment(), call)
    }

    fn prove_account(&self, address: Address, slots: &[U256]) -> EIP1186AccountProofResponse {
        self.tries.get_or_init(|| StateTries::new(&self.state)).prove_account(&self.state, address, slots)
    }

    /// The block environment for contracts, from its header.
    fn block_environment(&self) -> BlockEnv {
        BlockEnv {
            number: U256::from(self.header.number),
            timestamp: U256::from(self.header.timestamp),
            gas_limit: GAS_LIMIT,
            prevrandao: Some(self.header.mix_hash),
            ..BlockEnv::default()
        }
    }
}
