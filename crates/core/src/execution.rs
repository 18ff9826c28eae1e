//! What a chain says of one transaction.

use alloy_primitives::{Address, B256, Bytes, Log};
use serde::{Deserialize, Serialize};

use crate::reading::Block;

/// A transaction that was executed in a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Execution {
    /// Hash of the transaction.
    pub transaction: B256,
    /// The block that holds it.
    pub block: Block,
    /// Its place among the transactions of the block.
    pub index: u64,
    /// Whether it had its effects. One that was reverted stands in its block all the same.
    pub has_succeeded: bool,
    /// Whom it called; `None` where it created a contract.
    pub to: Option<Address>,
    /// What it called that with.
    pub input: Bytes,
    /// What contracts logged in it, in their order.
    pub logs: Vec<Log>,
}
