//! Classifies why an endpoint returned no usable response.

use std::fmt;

use alloy_json_rpc::RpcError;
use alloy_primitives::B256;
use alloy_transport::{TransportError, TransportErrorKind};
use clresolve_core::cause::{HostConnectionError, LocalLimitError, ResolverContractError};
use clresolve_core::reading::ChainError;
use clresolve_core::text::excerpt_text;
use tokio::task::JoinError;

use crate::header::BlockHeaderRejection;
use crate::revert::{EXECUTION_REVERTED, MISSING_BLOCK, revert_data};
use crate::transport::{EndpointTransportError, HttpRequestError};

/// Words with which endpoints refuse the logs of a long block range. Some use the error code of rate limiting.
const LONG_RANGE: [&str; 2] = ["range", "results"];

/// The JSON-RPC error code for an unsupported method.
const NO_SUCH_METHOD: i64 = -32601;

/// Why an endpoint returned no usable response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EndpointFailure {
    /// No connection to the endpoint was opened.
    Unconnected(HostConnectionError),
    /// There was no response, or an unusable one.
    Unusable(String),
    /// The endpoint serves the chain with this id.
    WrongChain(u64),
    /// The endpoint's chain starts with this block.
    WrongGenesis(B256),
    /// The endpoint answered for a block other than the requested one.
    OtherBlock(String),
    /// The endpoint does not have the block.
    NoBlock(String),
    /// The endpoint's newest block is too old: the endpoint has stopped following the chain.
    HeadOld {
        /// Age of the block by the local clock.
        seconds: i64,
        /// Maximum age in seconds.
        most: u64,
    },
    /// The endpoint's block is in the future.
    HeadAhead {
        /// How far, by the local clock.
        seconds: i64,
    },
    /// The endpoint's newest block is below a block that enough operators have finalized.
    HeadBelowFinalized { head: u64, finalized: u64 },
    /// The call ran and failed, for example by running out of gas or time. Usually the resolver contract is at fault.
    CallFailed(ResolverContractError),
    /// A limit of this program was reached.
    LocalLimit(LocalLimitError),
    /// Several endpoints got the same request, and too few responses match. Lists each response by label.
    Divided(Vec<(String, String)>),
    /// No endpoint returned a valid proof. Lists the cause for each label.
    Unproven(Vec<(String, String)>),
}

impl EndpointFailure {
    /// Classifies an error. `redact` removes keys from text that the endpoint sent.
    pub(crate) fn from_transport_error(error: &TransportError, redact: impl Fn(&str) -> String) -> Self {
        match error {
            RpcError::ErrorResp(payload) => {
                let message = redact(&payload.message);
                let lower = payload.message.to_ascii_lowercase();
                if MISSING_BLOCK.iter().any(|phrase| lower.contains(phrase)) {
                    Self::NoBlock(message)
                } else if payload.code == EXECUTION_REVERTED
                    || revert_data(payload).is_some()
                    || FAILED_CALL.iter().any(|phrase| lower.contains(phrase))
                {
                    Self::CallFailed(ResolverContractError::Halted(message))
                } else {
                    Self::Unusable(format!("error {}: {message}", payload.code))
                }
            }
            RpcError::Transport(TransportErrorKind::Custom(cause)) => match cause.downcast_ref() {
                Some(EndpointTransportError::Post(HttpRequestError::Unconnected(why))) => Self::Unconnected(*why),
                Some(EndpointTransportError::LocalLimit(limit)) => Self::LocalLimit(limit.clone()),
                Some(EndpointTransportError::Divided(responses)) => Self::Divided(responses.clone()),
                Some(EndpointTransportError::Unproven(causes)) => Self::Unproven(causes.clone()),
                _ => Self::Unusable(redact(&cause.to_string())),
            },
            RpcError::DeserError { err, .. } => {
                Self::Unusable(format!("the reply is malformed: {}", redact(&err.to_string())))
            }
            other => Self::Unusable(redact(&other.to_string())),
        }
    }

    /// Classifies an error of a request for a block by tag. The code for an unsupported tag, or for a missing block,
    /// depends on the node.
    pub(crate) fn from_block_tag_error(error: &TransportError, redact: impl Fn(&str) -> String) -> Self {
        match (Self::from_transport_error(error, redact), error.as_error_resp()) {
            (Self::Unusable(cause), Some(payload))
                if UNKNOWN_TAG.contains(&payload.code) && !payload.is_retry_err() =>
            {
                Self::NoBlock(cause)
            }
            (failure, _) => failure,
        }
    }

    /// Whether the endpoint may return logs for a smaller range.
    pub(crate) fn may_succeed_with_smaller_range(error: &TransportError) -> bool {
        match error {
            RpcError::ErrorResp(payload) => {
                let names_it = LONG_RANGE.iter().any(|word| payload.message.contains(word));
                payload.code != NO_SUCH_METHOD && (names_it || !payload.is_retry_err())
            }
            RpcError::Transport(TransportErrorKind::Custom(cause)) => {
                matches!(cause.downcast_ref(), Some(EndpointTransportError::LocalLimit(_)))
            }
            _ => false,
        }
    }

    /// Whether the endpoint does not serve such requests at all, rather than failing to serve this one now.
    pub(crate) fn is_permanent_refusal(error: &TransportError) -> bool {
        match error {
            RpcError::ErrorResp(payload) => !payload.is_retry_err(),
            RpcError::Transport(TransportErrorKind::Custom(cause)) => {
                matches!(
                    cause.downcast_ref(),
                    Some(EndpointTransportError::Post(HttpRequestError::Status(400..=428, _)))
                )
            }
            _ => false,
        }
    }

    /// Whether one of several queries may be the cause, so that the others may succeed without it.
    pub(crate) const fn may_be_caused_by_one_query(&self) -> bool {
        matches!(self, Self::Unusable(_) | Self::CallFailed(_) | Self::LocalLimit(_) | Self::Divided(_))
    }

    /// Whether the endpoint may be at fault rather than the request, so that it is asked last for a while. An overlong
    /// reply counts as the endpoint's fault although a name may cause it: an endpoint that floods must not be asked
    /// first.
    pub(crate) const fn may_be_endpoint_fault(&self) -> bool {
        matches!(
            self,
            Self::Unconnected(_)
                | Self::Unusable(_)
                | Self::WrongChain(_)
                | Self::WrongGenesis(_)
                | Self::OtherBlock(_)
                | Self::HeadOld { .. }
                | Self::HeadAhead { .. }
                | Self::HeadBelowFinalized { .. }
                | Self::LocalLimit(LocalLimitError::Reply { .. })
        )
    }

    /// The task of a request ended without a result: it panicked, or the runtime is shutting down.
    pub(crate) fn from_join_error(error: &JoinError) -> Self {
        Self::Unusable(format!("the request ended without a result: {}", excerpt_text(&error.to_string())))
    }

    pub(crate) const fn is_wrong_chain(&self) -> bool {
        matches!(self, Self::WrongChain(_) | Self::WrongGenesis(_))
    }

    /// Why a well-formed answer is refused, as a metric label. `None` for other failures.
    pub(crate) const fn refusal_metric_label(&self) -> Option<&'static str> {
        match self {
            Self::WrongChain(_) | Self::WrongGenesis(_) => Some("wrong-chain"),
            Self::OtherBlock(_) => Some("other-block"),
            _ => None,
        }
    }

    /// Converts the failure of the endpoint `label` at `block` into an error. `expected` is the configured chain id.
    pub(crate) fn into_chain_error(self, label: &str, block: &str, expected: u64) -> ChainError {
        match self {
            Self::Unusable(cause) | Self::OtherBlock(cause) => ChainError::Unreachable(vec![(label.to_owned(), cause)]),
            Self::Unconnected(_) | Self::HeadOld { .. } | Self::HeadAhead { .. } | Self::HeadBelowFinalized { .. } => {
                ChainError::Unreachable(vec![(label.to_owned(), self.to_string())])
            }
            Self::WrongChain(observed) => ChainError::WrongChain { endpoint: label.to_owned(), expected, observed },
            Self::WrongGenesis(observed) => ChainError::WrongGenesis { endpoint: label.to_owned(), observed },
            Self::NoBlock(detail) => ChainError::BlockUnavailable { block: block.to_owned(), detail },
            Self::CallFailed(cause) => ChainError::Resolver(cause),
            Self::LocalLimit(limit) => ChainError::LocalLimit(limit),
            Self::Divided(responses) => ChainError::Disagree(responses),
            Self::Unproven(causes) => ChainError::Unproven(causes),
        }
    }
}

impl From<BlockHeaderRejection> for EndpointFailure {
    fn from(error: BlockHeaderRejection) -> Self {
        match error {
            BlockHeaderRejection::Missing => Self::NoBlock(error.to_string()),
            BlockHeaderRejection::Number => Self::OtherBlock(error.to_string()),
            BlockHeaderRejection::Hash | BlockHeaderRejection::Time => Self::Unusable(error.to_string()),
        }
    }
}

impl fmt::Display for EndpointFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unconnected(why) => why.fmt(f),
            Self::Unusable(cause) | Self::OtherBlock(cause) => f.write_str(cause),
            Self::WrongChain(id) => write!(f, "it serves chain {id}"),
            Self::WrongGenesis(hash) => write!(f, "its chain begins with block {hash}"),
            Self::HeadOld { seconds, most } => {
                write!(f, "its newest block is {seconds} s old by this machine's clock; at most {most} s are allowed")
            }
            Self::HeadAhead { seconds } => write!(f, "its block is {seconds} s ahead of this machine's clock"),
            Self::HeadBelowFinalized { head, finalized } => {
                write!(f, "its newest block {head} is below the finalized block {finalized}")
            }
            Self::NoBlock(detail) => write!(f, "it does not have the block: {detail}"),
            Self::CallFailed(cause) => write!(f, "the call failed: {cause}"),
            Self::LocalLimit(limit) => limit.fmt(f),
            Self::Divided(_) => f.write_str("the endpoints contradict each other"),
            Self::Unproven(_) => f.write_str("no endpoint returned a valid proof"),
        }
    }
}

/// Codes with which nodes refuse a tag: a general error, invalid parameters, an unknown block.
const UNKNOWN_TAG: [i64; 3] = [-32000, -32602, -39001];

/// Phrases, in lower case, with which nodes report that a call failed or exceeded a limit.
const FAILED_CALL: [&str; 6] = [
    "execution reverted",
    "execution aborted",
    "execution timeout",
    "out of gas",
    "response size",
    "vm execution error",
];

#[cfg(test)]
mod tests {
    use alloy_json_rpc::ErrorPayload;

    use super::*;

    #[test]
    fn a_call_that_was_run_and_failed_is_the_resolvers() {
        let of = |code, message: &'static str| {
            let payload = ErrorPayload { code, message: message.into(), data: None };
            EndpointFailure::from_transport_error(&TransportError::ErrorResp(payload), excerpt_text)
                .into_chain_error("a", "7", 1)
        };
        for (code, words) in [(-32000, "out of gas"), (EXECUTION_REVERTED, "execution reverted")] {
            assert_eq!(of(code, words), ChainError::Resolver(ResolverContractError::Halted(words.to_owned())));
        }
        assert!(matches!(of(-32005, "too many requests"), ChainError::Unreachable(_)));
    }
}
