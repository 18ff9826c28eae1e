//! [`ChainError`]: why a name could not be read.

use alloy_primitives::B256;

use crate::cause::{
    CcipLookupError, HostConnectionError, LightClientHeaderError, LocalLimitError, ResolverContractError, join_causes,
};

/// Why a name could not be read. None of these errors means that a record or name is absent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChainError {
    /// No endpoint gave a usable answer: the cause for each, by label.
    #[error("no RPC endpoint answered: {}", join_causes(.0))]
    Unreachable(Vec<(String, String)>),
    /// No connection to any endpoint could be opened, although several hosts were tried: this machine has no network.
    #[error("this machine seems to have no network: {}", .0.symptom_of_all_hosts())]
    NoNetwork(HostConnectionError),
    /// The deadline passed before the endpoints, or the CCIP-Read gateways, had answered.
    #[error("the chain was not read within {milliseconds} ms")]
    Late {
        /// The time limit in milliseconds.
        milliseconds: u64,
    },
    /// Too few endpoints answered to reach agreement.
    #[error("{} must agree, but {}", endpoint_count_text(*.agree), answered_endpoints_text(.answered, .failed))]
    TooFew {
        /// How many operators must agree.
        agree: usize,
        /// Labels of the endpoints that answered.
        answered: Vec<String>,
        /// Labels of the other endpoints, each with its cause.
        failed: Vec<(String, String)>,
    },
    /// The endpoints contradict each other, and no answer reached the required agreement: the answer of each, by label.
    #[error("the RPC endpoints contradict each other: {}", join_causes(.0))]
    Disagree(Vec<(String, String)>),
    /// No endpoint gave a valid proof of the state, and at least one proof was false: the result of each, by label.
    #[error("no RPC endpoint returned a valid proof: {}", join_causes(.0))]
    Unproven(Vec<(String, String)>),
    /// The light client has no header that the chain's validators signed.
    #[error("no block header is proven: {0}")]
    HeaderUnproven(LightClientHeaderError),
    /// The endpoint serves another chain than the configured one.
    #[error("the endpoint {endpoint} serves chain {observed}, not {expected}")]
    WrongChain {
        /// Label of the endpoint.
        endpoint: String,
        /// The chain id that was configured.
        expected: u64,
        /// The chain id that the endpoint reports.
        observed: u64,
    },
    /// The endpoint serves a chain with another genesis block.
    #[error("the endpoint {endpoint} serves a chain that begins with block {observed}")]
    WrongGenesis {
        /// Label of the endpoint.
        endpoint: String,
        /// Hash of the endpoint's block 0.
        observed: B256,
    },
    /// The endpoint does not have the block.
    #[error("block {block} is not available: {detail}")]
    BlockUnavailable {
        /// The block selector, as text.
        block: String,
        /// The endpoint's message, truncated.
        detail: String,
    },
    /// The resolver contract reverted, ran out of gas, or returned malformed data.
    #[error("the resolver failed: {0}")]
    Resolver(ResolverContractError),
    /// A CCIP-Read gateway could not be queried, or its answer was refused.
    #[error("CCIP-Read failed: {0}")]
    Ccip(CcipLookupError),
    /// Reading the name reached a bound of this program.
    #[error("a bound of this resolver was reached: {0}")]
    LocalLimit(LocalLimitError),
}

fn endpoint_count_text(count: usize) -> String {
    format!("{count} endpoints of different operators")
}

fn answered_endpoints_text(answered: &[String], failed: &[(String, String)]) -> String {
    let answered = if answered.is_empty() { "none".to_owned() } else { format!("only {}", answered.join(", ")) };
    if failed.is_empty() {
        format!("{answered} answered")
    } else {
        format!("{answered} answered; {}", join_causes(failed))
    }
}
