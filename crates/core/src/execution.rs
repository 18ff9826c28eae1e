//! The result of one executed transaction.

use alloy_primitives::{Address, B256, Bytes, Log};
use serde::{Deserialize, Serialize};

use crate::reading::ChainBlock;

/// A transaction that was executed in a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutedTransaction {
    /// Hash of the transaction.
    pub transaction: B256,
    /// The block that contains it.
    pub block: ChainBlock,
    /// Its index within the block.
    pub index: u64,
    /// Whether it succeeded. A reverted transaction is included in its block too.
    pub has_succeeded: bool,
    /// The called address; `None` for a contract creation.
    pub to: Option<Address>,
    /// The call data.
    pub input: Bytes,
    /// The logs that contracts emitted, in order.
    pub logs: Vec<Log>,
}
