//! JSON-RPC over the chain: maps requests to responses, without I/O.

use std::ops::RangeInclusive;
use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, TxKind, U64, U256, hex};
use alloy_rpc_types_eth::{
    Block, BlockId, BlockNumberOrTag, BlockTransactions, Filter, Header, Log, TransactionRequest,
};
use alloy_sol_types::{Revert, SolError};
use clresolve_core::reading;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::fault::SandboxRpcFault;
use crate::chain::evm::{SandboxEvmCall, SandboxEvmOutcome};
use crate::chain::mined::MinedTransaction;
use crate::chain::{CHAIN_ID, DOLLAR, GAS_LIMIT, SandboxBlock, SandboxChain};

/// Maximum number of requests in a batch, as commonly allowed by public endpoints.
const MAX_BATCH: usize = 100;

/// Maximum number of storage keys of one `eth_getProof`: go-ethereum's limit.
const MAX_PROOF_KEYS: usize = 1024;

/// A chain that answers, and a fault.
#[derive(Clone)]
pub(super) struct SandboxRpcNode {
    pub(super) chain: Arc<SandboxChain>,
    pub(super) fault: SandboxRpcFault,
}

struct SandboxRpcError {
    code: i32,
    message: String,
    data: Option<Bytes>,
}

impl SandboxRpcError {
    fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    fn unknown_method() -> Self {
        Self::new(-32601, "the method does not exist or is not available")
    }

    fn unknown_block() -> Self {
        Self::new(-32000, "header not found")
    }

    /// Like go-ethereum: code 3 with the revert data.
    fn reverted(data: Bytes) -> Self {
        let message = match Revert::abi_decode(&data) {
            Ok(revert) => format!("execution reverted: {}", revert.reason()),
            Err(_) => "execution reverted".to_owned(),
        };
        Self { code: 3, message, data: Some(data) }
    }
}

impl SandboxRpcNode {
    /// The response to a request body: an object for an object, an array for an array.
    pub(super) fn answer_json_rpc(&self, body: &[u8]) -> String {
        let reply = match serde_json::from_slice(body) {
            Ok(Value::Array(requests)) if requests.is_empty() || requests.len() > MAX_BATCH => {
                error_reply(&Value::Null, &SandboxRpcError::new(-32600, "a batch has 1 to 100 requests"))
            }
            Ok(Value::Array(requests)) => requests.iter().map(|request| self.answer_single_request(request)).collect(),
            Ok(request) => self.answer_single_request(&request),
            Err(_) => error_reply(&Value::Null, &SandboxRpcError::new(-32700, "parse error")),
        };
        reply.to_string()
    }

    fn answer_single_request(&self, request: &Value) -> Value {
        let id = request.get("id").unwrap_or(&Value::Null);
        let Some(method) = request.get("method").and_then(Value::as_str) else {
            return error_reply(id, &SandboxRpcError::new(-32600, "the request has no method"));
        };
        if self.fault == SandboxRpcFault::ErrorReply {
            return error_reply(id, &SandboxRpcError::new(-32005, "limit exceeded"));
        }
        match self.run_method(method, request.get("params").unwrap_or(&Value::Null)) {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(error) => error_reply(id, &error),
        }
    }

    fn run_method(&self, method: &str, params: &Value) -> Result<Value, SandboxRpcError> {
        match method {
            "eth_getBlockReceipts" if self.fault == SandboxRpcFault::NoBlockReceipts => {
                Err(SandboxRpcError::unknown_method())
            }
            "web3_clientVersion" => Ok(json!(concat!("clresolve-sandbox/", env!("CARGO_PKG_VERSION")))),
            "eth_chainId" => Ok(json!(U64::from(self.chain_id()))),
            "net_version" => Ok(json!(self.chain_id().to_string())),
            "eth_blockNumber" => Ok(json!(U64::from(self.chain.newest_block().header.number))),
            "eth_getBlockByNumber" => self.block_by_number(parse_parameter(params, 0)?),
            "eth_getBlockByHash" => {
                let block = self.find_block(&BlockId::hash(parse_parameter(params, 0)?));
                Ok(self.header_json(block.map(|block| self.fault.apply_to_header(&block.header))))
            }
            "eth_call" => self.answer_eth_call(parse_parameter(params, 0)?, params),
            "eth_createAccessList" => {
                self.create_access_list(parse_parameter(params, 0)?, self.block_from_parameter(params, 1)?)
            }
            "eth_getProof" => self.answer_get_proof(params),
            "eth_getCode" => Ok(json!(
                self.fault.apply_to_code(self.block_from_parameter(params, 1)?.state.code(parse_parameter(params, 0)?))
            )),
            "eth_getStorageAt" => {
                let value = self
                    .block_from_parameter(params, 2)?
                    .state
                    .storage(parse_parameter(params, 0)?, parse_parameter(params, 1)?);
                Ok(json!(B256::from(value)))
            }
            "eth_getBalance" => {
                Ok(json!(self.block_from_parameter(params, 1)?.state.account(parse_parameter(params, 0)?).balance))
            }
            "eth_getTransactionCount" => Ok(json!(U64::from(
                self.block_from_parameter(params, 1)?.state.account(parse_parameter(params, 0)?).nonce
            ))),
            "eth_getLogs" => self.filtered_logs(&parse_parameter(params, 0)?),
            "eth_getTransactionReceipt" => {
                Ok(self.find_transaction_json(parse_parameter(params, 0)?, MinedTransaction::receipt_json))
            }
            "eth_getTransactionByHash" if self.fault == SandboxRpcFault::ReceiptsAlone => Ok(Value::Null),
            "eth_getTransactionByHash" => {
                Ok(self.find_transaction_json(parse_parameter(params, 0)?, MinedTransaction::json))
            }
            "eth_getBlockReceipts" => Ok(json!(self.find_block(&block_id_parameter(params, 0)?).map(block_receipts))),
            _ => Err(SandboxRpcError::unknown_method()),
        }
    }

    /// Data about a transaction. Null if no block contains it.
    fn find_transaction_json(
        &self,
        hash: B256,
        said: impl Fn(&MinedTransaction, &reading::ChainBlock, usize) -> Value,
    ) -> Value {
        let said =
            |(block, index): (&SandboxBlock, usize)| said(&block.transactions[index], &block.to_chain_block(), index);
        let (newest, finalized) = (self.chain.latest().number, self.chain.finalized());
        let sound = self.chain.find_transaction(newest, |mined| mined.hash == hash).map(said);
        let decoy = || self.chain.find_transaction(finalized.number, |mined| mined.to == Some(DOLLAR)).map(said);
        self.fault.apply_to_transaction(hash, sound, decoy, &finalized)
    }

    /// The logs of a range of blocks, selected like go-ethereum: a block that does not exist yet has none.
    fn filtered_logs(&self, filter: &Filter) -> Result<Value, SandboxRpcError> {
        let range = match filter.get_block_hash() {
            Some(hash) => {
                let number =
                    self.find_block(&BlockId::hash(hash)).ok_or_else(SandboxRpcError::unknown_block)?.header.number;
                number..=number
            }
            None => self.block_range(filter)?,
        };
        let is_wanted = |log: &Log| self.fault.ignores_the_filter() || filter.matches(&log.inner);
        let is_within =
            |block: &&Arc<SandboxBlock>| self.fault.ignores_the_filter() || range.contains(&block.header.number);
        let blocks = self.chain.blocks.iter().filter(|block| self.fault.restamps_logs() || is_within(block));
        let logs = blocks.flat_map(|block| self.block_logs(block)).filter(is_wanted);
        let stamp = |log: Log| match self.fault.restamps_logs() {
            true => Log { block_number: Some(*range.end()), ..log },
            false => log,
        };
        Ok(json!(self.fault.apply_to_logs(logs.map(stamp).collect())))
    }

    fn block_logs(&self, block: &SandboxBlock) -> Vec<Log> {
        let hash = self.fault.apply_to_header(&block.header).hash_slow();
        let numbered = |(index, log): (usize, &alloy_primitives::Log)| Log {
            inner: log.clone(),
            block_hash: Some(hash),
            block_number: Some(block.header.number),
            block_timestamp: Some(block.header.timestamp),
            transaction_hash: Some(B256::ZERO),
            transaction_index: Some(0),
            log_index: u64::try_from(index).ok(),
            removed: false,
        };
        block.logs().enumerate().map(numbered).collect()
    }

    fn block_range(&self, filter: &Filter) -> Result<RangeInclusive<u64>, SandboxRpcError> {
        let number = |block: Option<&BlockNumberOrTag>| match block.copied().unwrap_or_default() {
            BlockNumberOrTag::Number(number) => Ok(number),
            tag => {
                let block = self.chain.find_block(BlockId::Number(tag)).ok_or_else(SandboxRpcError::unknown_block)?;
                Ok(block.header.number)
            }
        };
        let first = number(filter.block_option.get_from_block())?;
        let last = number(filter.block_option.get_to_block())?;
        if first > last {
            return Err(SandboxRpcError::new(-32000, "invalid block range params"));
        }
        Ok(first..=last)
    }

    fn chain_id(&self) -> u64 {
        match self.fault {
            SandboxRpcFault::WrongChainId(id) => id,
            _ => CHAIN_ID,
        }
    }

    fn block_by_number(&self, number: BlockNumberOrTag) -> Result<Value, SandboxRpcError> {
        let Some(block) = self.chain.find_block(BlockId::Number(number)) else {
            return Ok(Value::Null);
        };
        let lags = self.fault == SandboxRpcFault::LaggingHeader && !number.is_number();
        let parent = lags.then(|| self.chain.find_block(BlockId::hash(block.header.parent_hash))).flatten();
        let header = &parent.unwrap_or(block).header;
        let is_newest = number == BlockNumberOrTag::Latest;
        Ok(self.header_json(Some(if is_newest {
            self.fault.apply_to_newest_header(header)
        } else {
            self.fault.apply_to_header(header)
        })))
    }

    /// The block as JSON, without transactions. Null if the block does not exist.
    fn header_json(&self, header: Option<alloy_consensus::Header>) -> Value {
        let block = header.map(|mut inner| {
            let hash = inner.hash_slow();
            self.fault.apply_to_header_fields(&mut inner);
            let header = Header { hash, inner, total_difficulty: None, size: None };
            Block::<B256>::new(header, BlockTransactions::Hashes(Vec::new()))
        });
        json!(block)
    }

    /// The block selected by `id`. Also finds a block by the hash that a fault gave it.
    fn find_block(&self, id: &BlockId) -> Option<&SandboxBlock> {
        let shown =
            |hash: B256| self.chain.blocks.iter().find(|b| self.fault.apply_to_header(&b.header).hash_slow() == hash);
        match id {
            BlockId::Hash(hash) => shown(hash.block_hash).map(AsRef::as_ref),
            BlockId::Number(_) => self.chain.find_block(*id),
        }
    }

    /// The block selected by the parameter at `index`.
    fn block_from_parameter(&self, params: &Value, index: usize) -> Result<&SandboxBlock, SandboxRpcError> {
        self.find_block(&block_id_parameter(params, index)?).ok_or_else(SandboxRpcError::unknown_block)
    }

    fn answer_get_proof(&self, params: &Value) -> Result<Value, SandboxRpcError> {
        let keys: Vec<B256> = parse_parameter(params, 1)?;
        if keys.len() > MAX_PROOF_KEYS {
            return Err(SandboxRpcError::new(-32602, "too many storage keys"));
        }
        let slots: Vec<U256> = keys.iter().map(|key| U256::from_be_bytes(key.0)).collect();
        if self.fault == SandboxRpcFault::NoProofs {
            return Err(SandboxRpcError::new(-32000, "distance to target block exceeds maximum proof window"));
        }
        let mut proof = self.block_from_parameter(params, 2)?.prove_account(parse_parameter(params, 0)?, &slots);
        self.fault.apply_to_proof(&mut proof);
        Ok(json!(proof))
    }

    /// Like go-ethereum: a failed call has an access list too.
    fn create_access_list(&self, request: TransactionRequest, block: &SandboxBlock) -> Result<Value, SandboxRpcError> {
        let touched = block.create_access_list(evm_call_from_request(request)?);
        Ok(json!(touched.map_err(|rejected| SandboxRpcError::new(-32000, rejected.0))?))
    }

    fn answer_eth_call(&self, request: TransactionRequest, params: &Value) -> Result<Value, SandboxRpcError> {
        let (id, block) = (block_id_parameter(params, 1)?, self.block_from_parameter(params, 1)?);
        if matches!(self.fault, SandboxRpcFault::PrunedBelow(first) if block.header.number < first) {
            return Err(SandboxRpcError::new(-32000, "missing trie node: state is not available"));
        }
        match block
            .execute_call(evm_call_from_request(request)?)
            .map_err(|rejected| SandboxRpcError::new(-32000, rejected.0))?
        {
            SandboxEvmOutcome::Returned(output) => {
                Ok(json!(self.fault.apply_to_call_result(block.header.number, &id, output.into_data())))
            }
            SandboxEvmOutcome::Reverted(data) => Err(SandboxRpcError::reverted(data)),
            SandboxEvmOutcome::Halted(cause) => Err(SandboxRpcError::new(-32000, cause)),
        }
    }
}

fn block_receipts(block: &SandboxBlock) -> Vec<Value> {
    let summary = block.to_chain_block();
    block.transactions.iter().enumerate().map(|(index, mined)| mined.receipt_json(&summary, index)).collect()
}

fn evm_call_from_request(request: TransactionRequest) -> Result<SandboxEvmCall, SandboxRpcError> {
    let Some(TxKind::Call(to)) = request.to else {
        return Err(SandboxRpcError::new(-32602, "the call names no contract"));
    };
    Ok(SandboxEvmCall {
        from: request.from.unwrap_or(Address::ZERO),
        to,
        gas: request.gas.unwrap_or(GAS_LIMIT).min(GAS_LIMIT),
        data: request.input.into_input().unwrap_or_default(),
    })
}

/// The parameter at `index`. The default is the newest block.
fn block_id_parameter(params: &Value, index: usize) -> Result<BlockId, SandboxRpcError> {
    match params.get(index) {
        None | Some(Value::Null) => Ok(BlockId::latest()),
        Some(_) => parse_parameter(params, index),
    }
}

fn parse_parameter<T: DeserializeOwned>(params: &Value, index: usize) -> Result<T, SandboxRpcError> {
    let value = params.get(index).cloned().unwrap_or(Value::Null);
    serde_json::from_value(value)
        .map_err(|_| SandboxRpcError::new(-32602, format!("parameter {index} is missing or malformed")))
}

fn error_reply(id: &Value, error: &SandboxRpcError) -> Value {
    let mut object = json!({"code": error.code, "message": error.message});
    if let Some(data) = &error.data {
        object["data"] = json!(hex::encode_prefixed(data));
    }
    json!({"jsonrpc": "2.0", "id": id, "error": object})
}
