//! Why a name's records could not be read, by who can fix it: the publisher's resolver, the publisher's gateway, or this
//! program's own bounds.
//!
//! In JSON each cause is one string, its words. What is read from JSON is the variant `Recorded` with those words.

use std::time::Duration;

use alloy_primitives::{Address, U256};

/// Why a resolver contract gave no records: the publisher can fix it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolverFault {
    /// The whole call reverted.
    #[error("the call reverted")]
    CallReverted,
    /// The call ended in an exception of the EVM: its name, or the endpoint's words for it.
    #[error("{0}")]
    Halted(String),
    /// The resolver reverted without data, as a call does that runs out of gas.
    #[error("it reverted without a reason, or ran out of gas")]
    RevertedSilently,
    /// The resolver reverted with this reason.
    #[error("it reverted: {0}")]
    Reverted(String),
    /// The resolver reverted with a custom error that has this selector.
    #[error("it reverted with the error 0x{}", alloy_primitives::hex::encode(.0))]
    CustomError([u8; 4]),
    /// The data with which the resolver reverted are not what their selector says.
    #[error("it reverted with a malformed error")]
    MalformedError,
    /// The resolver reports the failure of a gateway as its own.
    #[error(transparent)]
    Gateway(GatewayStatus),
    /// The resolver does not support text records.
    #[error("it does not support text records")]
    NoTextRecords,
    /// The resolver does not support the requested records.
    #[error("it does not support the requested records")]
    UnknownRecords,
    /// The answer to one question comes from two resolvers.
    #[error("the Universal Resolver names two resolvers")]
    TwoResolvers,
    /// The resolver belongs to neither the name nor an ancestor.
    #[error("the resolver belongs to no ancestor of the name")]
    OfNoAncestor,
    /// Another number of answers than of questions.
    #[error("{answers} answers to {questions} questions")]
    Count {
        /// Answers given.
        answers: usize,
        /// Questions asked.
        questions: usize,
    },
    /// An answer of this many bytes is neither an ABI string nor an error.
    #[error("{0} bytes that are neither a text nor an error")]
    NotText(usize),
    /// The answer is not the ABI encoding that was asked for: what is wrong with it.
    #[error("{0}")]
    Malformed(String),
    /// What an earlier run recorded.
    #[error("{0}")]
    Recorded(String),
}

/// Why a CCIP-Read look-up (EIP-3668) gave no records: the gateway of the publisher, or the look-up itself, is to be fixed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CcipFault {
    /// The configuration permits none.
    #[error("off-chain look-ups (CCIP-Read) are switched off")]
    SwitchedOff,
    /// The gateways took longer.
    #[error("the look-up took more than {} s", .0.as_secs_f32())]
    Late(Duration),
    /// Another contract than the one that was called asks for the look-up.
    #[error("the look-up was refused: its sender is not the contract that was called")]
    Sender,
    /// The gateway answered with an error.
    #[error(transparent)]
    Gateway(GatewayStatus),
    /// The callback reverted on the gateway's response: how.
    #[error(transparent)]
    Callback(ResolverFault),
    /// The callback rejected the gateway's response with an error about something else.
    #[error("the callback rejects the gateway's response")]
    NotTaken,
    /// The client could not follow the look-up: a gateway that cannot be asked, too many redirects, too many bytes.
    ///
    /// These bounds are this program's too, but a look-up within them is what every client offers, and where it leads is
    /// the publisher's choice: so this is no [`LocalLimit`].
    #[error("{0}")]
    Client(String),
    /// What an earlier run recorded.
    #[error("{0}")]
    Recorded(String),
}

/// What a gateway answered instead of records.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GatewayStatus {
    /// A status, and the words beside it.
    #[error("the gateway answered status {status}: {message}")]
    Status {
        /// The HTTP status, as the contract repeats it.
        status: U256,
        /// The words, cut short.
        message: String,
    },
    /// Something that cannot be read.
    #[error("the gateway failed")]
    Unreadable,
}

/// A bound of this program that the reading of a name met: the operator can fix it, by another endpoint or another grade of
/// proof. Nothing is said against the publisher.
///
/// What a call itself may use on any node (its gas, its return data as ABI) is no such bound: a resolver that exceeds it
/// fails everywhere, so it is a [`ResolverFault`]. Neither is the budget of a walk over the card's blocks: it is many times
/// what a card of the largest size takes, so blocks beyond it are no card.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LocalLimit {
    /// The reply of an endpoint has more bytes than are read. A flood of the endpoint's looks the same, so it is named.
    #[error("the answer of {endpoint} has more than {bytes} bytes")]
    Reply {
        /// Label of the endpoint.
        endpoint: String,
        /// How many are read.
        bytes: usize,
    },
    /// A call computed over proven state still reads unproven state after this many runs.
    #[error("the call still reads unproven state after {0} runs")]
    Runs(u32),
    /// All runs of such a call use more gas together.
    #[error("the call uses more than {0} gas in all its runs")]
    Gas(u64),
    /// Such a call reads more accounts.
    #[error("the call reads more than {0} accounts")]
    Accounts(usize),
    /// Such a call reads more storage slots.
    #[error("the call reads more than {0} storage slots")]
    Slots(usize),
    /// The code of a contract is longer than what is run.
    #[error("the code of {address} has {bytes} bytes")]
    Code {
        /// The contract.
        address: Address,
        /// Its length.
        bytes: usize,
    },
    /// The hash of this past block stands in no state that can be proven.
    #[error("the hash of block {0} cannot be proven")]
    BlockHash(u64),
    /// The rules of blocks from before the Merge are not known here.
    #[error("blocks from before the Merge cannot be computed")]
    BeforeTheMerge,
    /// The EVM of this program broke off: its words.
    #[error("the call cannot be run: {0}")]
    Evm(String),
    /// This source of readings reads the records of the walk only.
    #[error("this source reads the records of agents alone")]
    FurtherRecords,
    /// What an earlier run recorded.
    #[error("{0}")]
    Recorded(String),
}

/// JSON as one string: the words of the cause.
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

recorded_in_words!(ResolverFault CcipFault LocalLimit);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_recorded_in_its_words() {
        let cause = CcipFault::Callback(ResolverFault::CustomError([0xde, 0xad, 0xbe, 0xef]));
        let json = serde_json::to_value(&cause).expect("a string");
        assert_eq!(json, "it reverted with the error 0xdeadbeef");
        let read: CcipFault = serde_json::from_value(json.clone()).expect("a string");
        assert_eq!(read, CcipFault::Recorded("it reverted with the error 0xdeadbeef".to_owned()));
        assert_eq!(serde_json::to_value(&read).expect("a string"), json);
        let json = serde_json::to_value(LocalLimit::Runs(7)).expect("a string");
        let read: LocalLimit = serde_json::from_value(json).expect("a string");
        assert_eq!(read, LocalLimit::Recorded("the call still reads unproven state after 7 runs".to_owned()));
    }
}
