//! What one block of the chain says about a name, and the proof of it.
//!
//! Absence that is proven at the block ([`Answer::Unregistered`], [`Answer::NoResolver`],
//! [`Record::Absent`](crate::records::Record::Absent)) and "could not ask" ([`ChainError`]) are different types.

use std::fmt;
use std::str::FromStr;

use alloy_primitives::{Address, B256};
use jiff::Timestamp;

pub use crate::cause::{CcipFault, GatewayStatus, LocalLimit, ResolverFault};
pub use crate::chain_error::ChainError;
use crate::name::EnsName;
use crate::payment::PaymentRecords;
use crate::records::RecordSet;

/// Which block to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockSelector {
    /// The newest block that cannot be reverted. The default.
    Finalized,
    /// The newest block that is unlikely to be reverted.
    Safe,
    /// The newest block.
    Latest,
    /// A block of the past, by number. Neither its age nor later changes are judged.
    Number(u64),
    /// A finalized block that was chosen for many questions, by number. Its age is not judged, later changes are.
    Pinned(u64),
}

impl BlockSelector {
    /// The height, where the block is chosen by it.
    pub const fn number(self) -> Option<u64> {
        match self {
            Self::Number(number) | Self::Pinned(number) => Some(number),
            Self::Finalized | Self::Safe | Self::Latest => None,
        }
    }

    /// Whether what the block says is compared with the newest one.
    pub const fn is_compared_with_latest(self) -> bool {
        matches!(self, Self::Finalized | Self::Safe | Self::Pinned(_))
    }
}

impl fmt::Display for BlockSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finalized => f.write_str("finalized"),
            Self::Safe => f.write_str("safe"),
            Self::Latest => f.write_str("latest"),
            Self::Number(number) | Self::Pinned(number) => write!(f, "{number}"),
        }
    }
}

impl FromStr for BlockSelector {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "finalized" => Ok(Self::Finalized),
            "safe" => Ok(Self::Safe),
            "latest" => Ok(Self::Latest),
            number => number
                .parse()
                .map(Self::Number)
                .map_err(|_| "expected finalized, safe, latest or a block number in decimal".to_owned()),
        }
    }
}

/// The block that was read: what the walk needs of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Block {
    /// Height.
    pub number: u64,
    /// Hash of the header.
    pub hash: B256,
    /// The header's time.
    pub timestamp: Timestamp,
}

/// What one block says about a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The block.
    pub block: Block,
    /// What the name's resolver says there.
    pub answer: Answer,
    /// What the newest block says of the name. `None` where the block was chosen by number or is itself the newest.
    pub latest: Option<Result<Latest, ChainError>>,
    /// Height up to which the endpoints that count had read the chain for it: what was changed in a later block is not in
    /// this reading. `None` where the block was chosen by number, and in what was read from a bundle.
    pub newest: Option<u64>,
    /// The address that holds the name: the registry's owner, or the NameWrapper's when the registry names that.
    /// `None` for a name without a holder, such as a wildcard or off-chain subname.
    pub holder: Option<Address>,
    /// Expiry of the registration, where it can be read (second-level `.eth` and wrapped names).
    pub expiry: Option<Timestamp>,
    /// The proof of the answer.
    pub proof: Proof,
    /// Labels of the endpoints that gave the reading.
    pub endpoints: Vec<String>,
    /// Labels of those that had contradicted them by then, with their answers. An endpoint that is slower than the
    /// agreement is missing here, so nothing is concluded from this list.
    pub contradicted_by: Vec<(String, String)>,
    /// Labels (never URLs) of the endpoints that were asked and gave nothing usable, with the cause.
    pub failed_endpoints: Vec<(String, String)>,
}

/// What the newest block says of a name. It may only downgrade what another block says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latest {
    /// What the name's resolver says there.
    pub answer: Answer,
    /// The address that holds the name there.
    pub holder: Option<Address>,
}

impl Latest {
    /// Whether resolver, records and holder are those of the reading, whatever is said about payments.
    pub fn agrees_with(&self, reading: &Reading) -> bool {
        let is_held_alike = self.holder == reading.holder || crate::mutant!("sold-names-are-settled");
        is_held_alike && self.answer.same_records(&reading.answer)
    }
}

/// What a resolver says about a name at one block.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Proven: the name has no owner, and no ancestor's resolver answers for it.
    Unregistered,
    /// Proven: the name is owned, but has no resolver, or one without code (its address).
    NoResolver(Option<Address>),
    /// The resolver answered.
    Records(Found),
}

/// The records of a name and where they came from.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Found {
    /// The resolver that answered.
    pub resolver: Address,
    /// The ancestor whose resolver it is (ENSIP-10); `None` when it is the name's own.
    pub wildcard: Option<EnsName>,
    /// Whether any of the records came through CCIP-Read (EIP-3668).
    pub offchain: bool,
    /// The records.
    pub records: RecordSet,
    /// What it says about payments; empty where that was not asked for, and in what an older version recorded.
    #[serde(default, skip_serializing_if = "PaymentRecords::is_empty")]
    pub payment: PaymentRecords,
}

impl Answer {
    /// Whether both say the same of the resolver and the records, whatever they say about payments.
    pub fn same_records(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Records(one), Self::Records(other)) => {
                (one.resolver, &one.wildcard, one.offchain, &one.records)
                    == (other.resolver, &other.wildcard, other.offchain, &other.records)
            }
            (one, other) => one == other,
        }
    }
}

/// Address and holder of the name in `cl.owner`.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Holding {
    /// `addr(owner)`, when set.
    pub address: Option<Address>,
    /// The holder of the owner's name, when there is one.
    pub holder: Option<Address>,
}

/// The proof behind the chain's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Proof {
    /// The grade.
    pub grade: Grade,
    /// Operators asked.
    pub asked: u32,
    /// Operators that agreed: on the answer or, where it is computed from proven state, on the header.
    pub agreed: u32,
    /// Whether the endpoint is the operator's own (`own = true`).
    #[serde(skip)]
    pub own: bool,
}

impl Proof {
    /// Whether a single endpoint that is not the operator's own stands behind the reading: behind the answer or, where
    /// the answer is computed, behind the header that it is proven against. A forged header comes with a forged state.
    pub fn is_one_strangers_word(&self) -> bool {
        let alone = match self.grade {
            Grade::SingleRpc => true,
            Grade::Quorum => false,
            Grade::StateProof => self.agreed < 2,
        };
        alone && !self.own
    }
}

/// Grades of proof, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Grade {
    /// One endpoint's word.
    SingleRpc,
    /// Endpoints of several operators say the same.
    Quorum,
    /// Computed in this process over state that is proven against a header of a quorum.
    StateProof,
}

/// The proof that the chain's answer must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GradeDemand {
    /// One endpoint's word is enough.
    SingleRpc,
    /// This many endpoints of different operators must give the same answer.
    Quorum(usize),
    /// The answer is computed here from proven state, under a header that this many endpoints of different operators
    /// have.
    StateProof(usize),
}
