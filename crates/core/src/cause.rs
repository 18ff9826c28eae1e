//! Why a name's records could not be read, grouped by who can fix it: the publisher's resolver, the publisher's
//! gateway, or this program's own bounds.
//!
//! In JSON each cause is one string, its message. Deserializing yields the variant `Recorded` with that message.

use std::time::Duration;

use alloy_primitives::{Address, U256};

/// Why no connection to a host was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostConnectionError {
    /// Its name does not resolve.
    #[error("the host name does not resolve")]
    Name,
    /// It cannot be reached, or refuses.
    #[error("no connection")]
    Host,
}

impl HostConnectionError {
    /// The symptom if every host fails for this reason.
    pub const fn symptom_of_all_hosts(self) -> &'static str {
        match self {
            Self::Name => "no host name resolves",
            Self::Host => "no connection opens",
        }
    }
}

/// Why a resolver contract returned no records. The publisher can fix it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolverContractError {
    /// The whole call reverted.
    #[error("the call reverted")]
    CallReverted,
    /// The call ended in an EVM exception: its name, or the endpoint's message.
    #[error("{0}")]
    Halted(String),
    /// The resolver reverted without data, for example because it ran out of gas.
    #[error("it reverted without a reason, or ran out of gas")]
    RevertedSilently,
    /// The resolver reverted with this reason.
    #[error("it reverted: {0}")]
    Reverted(String),
    /// The resolver reverted with a custom error, which has this selector.
    #[error("it reverted with the error 0x{}", alloy_primitives::hex::encode(.0))]
    CustomError([u8; 4]),
    /// The resolver's revert data does not match its selector.
    #[error("it reverted with a malformed error")]
    MalformedError,
    /// The resolver reports a gateway failure as its own error.
    #[error(transparent)]
    Gateway(CcipResponseError),
    /// The resolver does not support text records.
    #[error("it does not support text records")]
    NoTextRecords,
    /// The resolver does not support the requested records.
    #[error("it does not support the requested records")]
    UnknownRecords,
    /// Two resolvers answered one query.
    #[error("the Universal Resolver names two resolvers")]
    TwoResolvers,
    /// The resolver is set neither for the name nor for an ancestor.
    #[error("the resolver belongs to no ancestor of the name")]
    OfNoAncestor,
    /// The number of answers differs from the number of questions.
    #[error("{answers} answers to {questions} questions")]
    Count {
        /// Number of answers.
        answers: usize,
        /// Number of questions.
        questions: usize,
    },
    /// An answer of this many bytes is neither an ABI-encoded string nor an error.
    #[error("{0} bytes that are neither a text nor an error")]
    NotText(usize),
    /// The answer is not the expected ABI encoding: what is wrong with it.
    #[error("{0}")]
    Malformed(String),
    /// The message that an earlier resolution recorded.
    #[error("{0}")]
    Recorded(String),
}

/// Why a CCIP-Read lookup (EIP-3668) returned no records. Either the publisher's gateway or the lookup itself has to be
/// fixed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CcipLookupError {
    /// The configuration disables CCIP-Read.
    #[error("off-chain lookups (CCIP-Read) are switched off")]
    SwitchedOff,
    /// The gateways did not answer within this time.
    #[error("the lookup took more than {} s", .0.as_secs_f32())]
    Late(Duration),
    /// The lookup names a sender other than the called contract.
    #[error("the lookup was rejected: its sender is not the called contract")]
    Sender,
    /// The gateway answered with an error.
    #[error(transparent)]
    Gateway(CcipResponseError),
    /// The callback reverted on the gateway's response, with this fault.
    #[error(transparent)]
    Callback(ResolverContractError),
    /// The callback rejected the gateway's response with an unrelated error.
    #[error("the callback rejects the gateway's response")]
    NotTaken,
    /// The client could not follow the lookup: a gateway that cannot be queried, too many redirects, too many bytes.
    ///
    /// These bounds are this program's own, but every client supports lookups within them, and the publisher chooses
    /// where a lookup leads. So this is not a [`LocalLimitError`].
    #[error("{0}")]
    Client(String),
    /// The message that an earlier resolution recorded.
    #[error("{0}")]
    Recorded(String),
}

/// What a gateway returned instead of records.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CcipResponseError {
    /// An HTTP error status with a message.
    #[error("the gateway answered status {status}: {message}")]
    Status {
        /// The HTTP status, as the contract reports it.
        status: U256,
        /// The message, truncated.
        message: String,
    },
    /// A response that cannot be decoded.
    #[error("the gateway failed")]
    Unreadable,
}

/// A bound of this program that was reached while reading a name. The operator can fix it with another endpoint or
/// another proof grade. It does not count against the publisher.
///
/// Bounds that apply to a call on every node (its gas, its ABI return data) are not local limits: a resolver that
/// exceeds them fails everywhere, so that is a [`ResolverContractError`]. The budget for the card's IPFS blocks is not
/// a local limit either: it is many times what the largest card needs, so content beyond it is not a card.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LocalLimitError {
    /// An endpoint's reply is longer than the limit. A malicious endpoint can cause this too, so the error names the
    /// endpoint.
    #[error("the answer of {endpoint} has more than {bytes} bytes")]
    Reply {
        /// Label of the endpoint.
        endpoint: String,
        /// The limit in bytes.
        bytes: usize,
    },
    /// A call computed over proven state still reads unproven state after this many runs.
    #[error("the call still reads unproven state after {0} runs")]
    Runs(u32),
    /// All runs of such a call together use more than this much gas.
    #[error("the call uses more than {0} gas in all its runs")]
    Gas(u64),
    /// Such a call reads more than this many accounts.
    #[error("the call reads more than {0} accounts")]
    Accounts(usize),
    /// Such a call reads more than this many storage slots.
    #[error("the call reads more than {0} storage slots")]
    Slots(usize),
    /// A contract's code is longer than the limit for execution.
    #[error("the code of {address} has {bytes} bytes")]
    Code {
        /// Address of the contract.
        address: Address,
        /// Length of the code in bytes.
        bytes: usize,
    },
    /// No provable state contains the hash of this past block.
    #[error("the hash of block {0} cannot be proven")]
    BlockHash(u64),
    /// The block predates the Merge. Its EVM rules are not implemented.
    #[error("blocks from before the Merge cannot be computed")]
    BeforeTheMerge,
    /// The local EVM stopped early, with this message.
    #[error("the call cannot be run: {0}")]
    Evm(String),
    /// This source can only read the records of a resolution, not further ones.
    #[error("this source reads the records of agents alone")]
    FurtherRecords,
    /// The message that an earlier resolution recorded.
    #[error("{0}")]
    Recorded(String),
}

/// Why the light client has no header that the chain's validators signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LightClientHeaderError {
    /// No beacon endpoint returned data that verifies: the cause for each, by label.
    #[error("no beacon endpoint returned valid data: {}", join_causes(.0))]
    Endpoints(Vec<(String, String)>),
    /// The configured checkpoint is older than the weak-subjectivity bound.
    #[error("the checkpoint is {} days old, and at most {} are safe", whole_days(*.age), whole_days(*.limit))]
    CheckpointTooOld {
        /// Time since the checkpoint's slot.
        age: Duration,
        /// The weak-subjectivity bound.
        limit: Duration,
    },
    /// The newest header that two thirds of the committee signed is too old: too few sign, or the endpoints have
    /// stopped.
    #[error("the newest header that two thirds of the committee signed is {} minutes old", .0.as_secs() / 60)]
    Stalled(Duration),
    /// The light client proves only the finalized and the newest block, not this one.
    #[error("the light client proves only finalized and newest blocks, not block {0}")]
    Block(String),
    /// A rule of the light client was violated: its message.
    #[error("{0}")]
    Refused(String),
    /// The message that an earlier resolution recorded.
    #[error("{0}")]
    Recorded(String),
}

/// The cause of each endpoint, by label.
pub(crate) fn join_causes(causes: &[(String, String)]) -> String {
    causes.iter().map(|(label, cause)| format!("{label}: {cause}")).collect::<Vec<_>>().join("; ")
}

const fn whole_days(time: Duration) -> u64 {
    time.as_secs() / (24 * 60 * 60)
}

/// Serializes the type as one JSON string, its message.
macro_rules! recorded_in_words {
    ($($cause:ty)*) => {$(
        impl serde::Serialize for $cause {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $cause {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(Self::Recorded)
            }
        }
    )*};
}

recorded_in_words!(ResolverContractError CcipLookupError LightClientHeaderError LocalLimitError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_recorded_in_its_words() {
        let cause = CcipLookupError::Callback(ResolverContractError::CustomError([0xde, 0xad, 0xbe, 0xef]));
        let json = serde_json::to_value(&cause).expect("a string");
        assert_eq!(json, "it reverted with the error 0xdeadbeef");
        let read: CcipLookupError = serde_json::from_value(json.clone()).expect("a string");
        assert_eq!(read, CcipLookupError::Recorded("it reverted with the error 0xdeadbeef".to_owned()));
        assert_eq!(serde_json::to_value(&read).expect("a string"), json);
        let json = serde_json::to_value(LocalLimitError::Runs(7)).expect("a string");
        let read: LocalLimitError = serde_json::from_value(json).expect("a string");
        assert_eq!(read, LocalLimitError::Recorded("the call still reads unproven state after 7 runs".to_owned()));
        let json = serde_json::to_value(LightClientHeaderError::Block("7".to_owned())).expect("a string");
        let read: LightClientHeaderError = serde_json::from_value(json).expect("a string");
        let message = "the light client proves only finalized and newest blocks, not block 7";
        assert_eq!(read, LightClientHeaderError::Recorded(message.to_owned()));
    }
}
