//! The faults of an RPC endpoint, by name.

use std::sync::atomic::{AtomicU64, Ordering};

use alloy_consensus::Header;
use alloy_primitives::{B256, Bytes, U64, U256};
use alloy_rpc_types_eth::{BlockId, EIP1186AccountProofResponse, Log};
use alloy_sol_types::SolValue;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use clresolve_core::reading::ChainBlock;
use futures_util::stream;
use serde::Deserialize;
use serde_json::{Value, json};

use super::response::{json_http_response as json_response, response_with_type, status_response};
use crate::keys::stranger_address;
use crate::web::DroppedConnectionError;

/// Number of body chunks under [`SandboxRpcFault::HugeBody`]: 64 MiB in total, far beyond any client's limit.
const HUGE_CHUNKS: usize = 1024;
/// One chunk: 64 KiB of a hex string.
const HUGE_CHUNK: &[u8] = &[b'0'; 64 << 10];
/// Number of array elements under [`SandboxRpcFault::AliasedOffsets`], all of which are the same [`ALIASED_BYTES`]
/// bytes.
const ALIASED_ELEMENTS: usize = 4096;
/// A client that copies each element needs 64 MiB for a response of 150 KB.
const ALIASED_BYTES: usize = 16 << 10;
/// How often each log is repeated under [`SandboxRpcFault::FloodOfLogs`].
const FLOOD: usize = 1000;
/// Number of logs per response under [`SandboxRpcFault::InventedBlocks`]: about half of a client's maximum.
const FILL: usize = 500;
/// The key that signs the sandbox's receipts, and the third party's key (`receipts.rs`).
const RECEIPT_KEY: &[u8; 44] = b"6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw=";
const STRANGERS_KEY: &[u8; 44] = b"E5j2LG0aRXxRumpLXz29L2n8qTIWIY3ImX5Ba9F9k8o=";
/// Number of invented blocks. Each one is different.
static INVENTED: AtomicU64 = AtomicU64::new(0);

/// The fault of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxRpcFault {
    /// Nothing.
    #[default]
    None,
    /// Every response has this HTTP status and no body.
    Status(u16),
    /// Every response is an HTML page with status 200.
    Html,
    /// Every response claims to be JSON but is not.
    NotJson,
    /// Every response is a JSON string of 64 MiB.
    HugeBody,
    /// Requests are read but never answered.
    Stall,
    /// The connection is closed without a response.
    DropConnection,
    /// Every request gets the JSON-RPC error `-32005 limit exceeded`.
    ErrorReply,
    /// Every `eth_call` returns four bytes that cannot be decoded.
    Garbage,
    /// Every `eth_call` returns a Multicall3 result in which thousands of elements share one offset.
    AliasedOffsets,
    /// The endpoint claims this chain ID.
    WrongChainId(u64),
    /// A header requested by tag is that of the block before the one in which calls with that tag run.
    LaggingHeader,
    /// Every header except that of block 0 is replaced by another one with its correct hash. Calls by that hash are
    /// answered.
    OtherBlocks,
    /// Block 0 is replaced by another one.
    OtherGenesis,
    /// In every record, the scheme `x402` is replaced by `x403`.
    OtherRecords,
    /// Like [`SandboxRpcFault::OtherRecords`], at the newest block only.
    OtherLatest,
    /// In every record, the key of the sandbox's receipts is replaced by a third party's.
    OtherKeys,
    /// Every `eth_call` that returns one address returns another one.
    OtherWallets,
    /// No `eth_getProof`: the block is outside the proof window, as reported by nodes that prune their tries.
    NoProofs,
    /// Every `eth_getProof` has another balance for the account.
    OtherAccounts,
    /// Every `eth_getProof` has another value for a slot, if one was requested.
    OtherSlots,
    /// Every `eth_getProof` has another last byte in the last node.
    OtherNodes,
    /// Every `eth_getCode` has another last byte.
    OtherCode,
    /// Every header except that of block 0 has a state root that does not match its hash.
    OtherRoots,
    /// No state below this block, as if it were pruned.
    PrunedBelow(u64),
    /// Every `eth_getLogs` returns no logs.
    NoLogs,
    /// Every `eth_getLogs` returns every log of the chain and ignores the filter.
    EveryLog,
    /// Every `eth_getLogs` returns the matching logs of the whole chain, attributed to the last block of the range.
    RestampedLogs,
    /// Like [`SandboxRpcFault::RestampedLogs`], with each log repeated a thousand times.
    FloodOfLogs,
    /// Logs as with [`SandboxRpcFault::RestampedLogs`]. The number of the newest block is increased by this value.
    BlocksToCome(u64),
    /// Each request for the newest block returns another block with the same number, and each response has 500 logs
    /// that announce changes to all names in it.
    InventedBlocks,
    /// Every query for a transaction returns another one.
    OtherTransactions,
    /// Every transaction is reported in a block that is not in the chain.
    NoSuchBlock,
    /// Every unknown transaction is reported in the finalized block, with the logs of a settlement.
    ForgedTransactions,
    /// `eth_getBlockReceipts` does not exist.
    NoBlockReceipts,
    /// Requests for the receipts of a block are read but never answered.
    StalledBlockReceipts,
    /// Returns receipts of transactions that it claims not to know.
    ReceiptsAlone,
    /// Receipts name another called contract than their transactions.
    OtherCallees,
}

impl SandboxRpcFault {
    /// Applies the fault below JSON-RPC. Returns the response, if the fault spoils it.
    pub(super) async fn apply_to_transport(
        self,
        request: &[u8],
    ) -> Result<Option<Response<Body>>, DroppedConnectionError> {
        match self {
            Self::Status(code) => {
                Ok(Some(status_response(StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))))
            }
            Self::Html => {
                let page = "<!doctype html><title>Sign in</title><p>Please sign in to this network.";
                Ok(Some(response_with_type(Body::from(page), "text/html")))
            }
            Self::NotJson => Ok(Some(json_response("this is not JSON".to_owned()))),
            Self::HugeBody => Ok(Some(response_with_type(huge_body(), "application/json"))),
            Self::Stall => std::future::pending().await,
            Self::StalledBlockReceipts if contains_method_name(request, "eth_getBlockReceipts") => {
                std::future::pending().await
            }
            Self::DropConnection => Err(DroppedConnectionError),
            Self::None
            | Self::ErrorReply
            | Self::Garbage
            | Self::AliasedOffsets
            | Self::WrongChainId(_)
            | Self::LaggingHeader
            | Self::OtherBlocks
            | Self::OtherGenesis
            | Self::OtherRecords
            | Self::OtherLatest
            | Self::OtherKeys
            | Self::OtherWallets
            | Self::NoProofs
            | Self::OtherAccounts
            | Self::OtherSlots
            | Self::OtherNodes
            | Self::OtherCode
            | Self::OtherRoots
            | Self::PrunedBelow(_)
            | Self::NoLogs
            | Self::EveryLog
            | Self::RestampedLogs
            | Self::FloodOfLogs
            | Self::BlocksToCome(_)
            | Self::InventedBlocks
            | Self::OtherTransactions
            | Self::NoSuchBlock
            | Self::ForgedTransactions
            | Self::NoBlockReceipts
            | Self::StalledBlockReceipts
            | Self::ReceiptsAlone
            | Self::OtherCallees => Ok(None),
        }
    }

    /// Applies the fault to the result of an `eth_call` in block `number`, selected by `id`.
    pub(super) fn apply_to_call_result(self, number: u64, id: &BlockId, sound: Bytes) -> Bytes {
        match self {
            Self::Garbage => Bytes::from_static(&[0xde, 0xad, 0xbe, 0xef]),
            Self::AliasedOffsets => aliased_multicall_result(number),
            Self::OtherRecords => forge_records(&sound),
            Self::OtherLatest if *id == BlockId::latest() => forge_records(&sound),
            Self::OtherKeys => replace_bytes(&sound, RECEIPT_KEY, STRANGERS_KEY),
            Self::OtherWallets if sound.len() == 32 => stranger_address().into_word().into(),
            _ => sound,
        }
    }

    pub(super) fn apply_to_proof(self, proof: &mut EIP1186AccountProofResponse) {
        match self {
            Self::OtherAccounts => proof.balance += U256::ONE,
            Self::OtherSlots => proof.storage_proof.iter_mut().for_each(|slot| slot.value ^= U256::ONE),
            Self::OtherNodes => proof.account_proof.iter_mut().next_back().into_iter().for_each(flip_last_bit),
            _ => {}
        }
    }

    /// Applies the fault to the data about a transaction.
    pub(super) fn apply_to_transaction(
        self,
        hash: B256,
        sound: Option<Value>,
        decoy: impl Fn() -> Option<Value>,
        finalized: &ChainBlock,
    ) -> Value {
        let mut said = match (self, sound) {
            (Self::OtherTransactions, _) => return decoy().unwrap_or_default(),
            (Self::ForgedTransactions, None) => decoy().unwrap_or_default(),
            (_, sound) => return self.apply_to_transaction_fields(sound),
        };
        for (member, value) in [
            ("hash", json!(hash)),
            ("transactionHash", json!(hash)),
            ("blockHash", json!(finalized.hash)),
            ("blockNumber", json!(U64::from(finalized.number))),
        ] {
            if said.get(member).is_some() {
                said[member] = value;
            }
        }
        said
    }

    fn apply_to_transaction_fields(self, sound: Option<Value>) -> Value {
        let mut said = sound.unwrap_or_default();
        if self == Self::NoSuchBlock && said.is_object() {
            said["blockHash"] = json!(B256::repeat_byte(0x5a));
        }
        if self == Self::OtherCallees && said.get("logs").is_some() {
            said["to"] = json!(stranger_address());
        }
        said
    }

    /// Applies the fault to a contract's code.
    pub(super) fn apply_to_code(self, mut code: Bytes) -> Bytes {
        if self == Self::OtherCode {
            flip_last_bit(&mut code);
        }
        code
    }

    /// Applies the fault to the fields of a header whose hash was already sent.
    pub(super) fn apply_to_header_fields(self, header: &mut Header) {
        if self == Self::OtherRoots && header.number > 0 {
            header.state_root = B256::repeat_byte(0x5a);
        }
    }

    /// Whether every log of the chain is returned, regardless of the filter.
    pub(super) fn ignores_the_filter(self) -> bool {
        self == Self::EveryLog
    }

    /// Whether logs are attributed to the last block of the range.
    pub(super) const fn restamps_logs(self) -> bool {
        matches!(self, Self::RestampedLogs | Self::FloodOfLogs | Self::BlocksToCome(_) | Self::InventedBlocks)
    }

    /// Applies the fault to the matching logs.
    pub(super) fn apply_to_logs(self, matching: Vec<Log>) -> Vec<Log> {
        match self {
            Self::NoLogs => Vec::new(),
            Self::FloodOfLogs => matching.into_iter().flat_map(|log| std::iter::repeat_n(log, FLOOD)).collect(),
            Self::InventedBlocks => matching.into_iter().cycle().take(FILL).collect(),
            _ => matching,
        }
    }

    /// Applies the fault to the header of the newest block.
    pub(super) fn apply_to_newest_header(self, header: &Header) -> Header {
        let ahead = match self {
            Self::BlocksToCome(ahead) => ahead,
            _ => 0,
        };
        let mut newest = Header { number: header.number.saturating_add(ahead), ..self.apply_to_header(header) };
        if self == Self::InventedBlocks {
            newest.extra_data = INVENTED.fetch_add(1, Ordering::Relaxed).to_be_bytes().into();
        }
        newest
    }

    pub(super) fn apply_to_header(self, header: &Header) -> Header {
        let mut header = header.clone();
        if matches!((self, header.number), (Self::OtherBlocks, 1..) | (Self::OtherGenesis, 0)) {
            header.extra_data = Bytes::from_static(b"another block");
        }
        header
    }
}

fn contains_method_name(request: &[u8], method: &str) -> bool {
    request.windows(method.len()).any(|part| part == method.as_bytes())
}

fn flip_last_bit(bytes: &mut Bytes) {
    let mut changed = bytes.to_vec();
    changed.last_mut().into_iter().for_each(|last| *last ^= 1);
    *bytes = changed.into();
}

fn forge_records(sound: &[u8]) -> Bytes {
    replace_bytes(sound, b"x402://", b"x403://")
}

/// The same response with a string replaced by another one of the same length.
fn replace_bytes<const N: usize>(sound: &[u8], honest: &[u8; N], lie: &[u8; N]) -> Bytes {
    let mut bytes = sound.to_vec();
    let places: Vec<usize> = sound.windows(N).enumerate().filter(|(_, w)| *w == honest).map(|(at, _)| at).collect();
    for at in places {
        bytes[at..at + N].copy_from_slice(lie);
    }
    bytes.into()
}

fn huge_body() -> Body {
    let head = Bytes::from_static(br#"{"jsonrpc":"2.0","id":0,"result":"0x"#);
    let chunks = std::iter::once(head).chain(std::iter::repeat_n(Bytes::from_static(HUGE_CHUNK), HUGE_CHUNKS));
    Body::from_stream(stream::iter(chunks.map(|chunk| Ok::<_, std::convert::Infallible>(chunk.0))))
}

/// `(uint256 blockNumber, bytes32 blockHash, (bool, bytes)[])` whose elements all have the same offset.
fn aliased_multicall_result(number: u64) -> Bytes {
    let element = (true, Bytes::from(vec![0; ALIASED_BYTES])).abi_encode_params();
    let head = (U256::from(number), B256::ZERO, U256::from(96), U256::from(ALIASED_ELEMENTS)).abi_encode();
    let offset = U256::from(32 * ALIASED_ELEMENTS).to_be_bytes::<32>();
    [head, offset.repeat(ALIASED_ELEMENTS), element].concat().into()
}
