//! A name's state at one block of the chain, and the proof of it.
//!
//! Two cases have different types: absence that is proven at the block ([`Answer::Unregistered`],
//! [`Answer::NoResolver`], [`Record::Absent`](crate::records::Record::Absent)), and a failed read ([`ChainError`]).

use std::fmt;
use std::str::FromStr;

use alloy_primitives::{Address, B256};
use jiff::{SignedDuration, Timestamp};

pub use crate::cause::{CcipFault, GatewayStatus, HeaderFault, LocalLimit, ResolverFault};
pub use crate::chain_error::ChainError;
pub use crate::holder::{Holder, MigrationSign};
use crate::name::EnsName;
use crate::payment::PaymentRecords;
use crate::records::RecordSet;
use crate::world::MAINNET_ID;

/// Which block to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockSelector {
    /// The newest finalized block. The default.
    Finalized,
    /// The newest block that is unlikely to be reverted.
    Safe,
    /// The newest block.
    Latest,
    /// A past block, by number. Neither its age nor later changes are judged.
    Number(u64),
    /// A finalized block that was chosen for many resolutions, by number. Later changes are judged, its age is not.
    Pinned(u64),
}

impl BlockSelector {
    /// The block number, if the block is selected by number.
    pub const fn number(self) -> Option<u64> {
        match self {
            Self::Number(number) | Self::Pinned(number) => Some(number),
            Self::Finalized | Self::Safe | Self::Latest => None,
        }
    }

    /// Whether the state at the block is compared with the newest block.
    pub const fn is_compared_with_latest(self) -> bool {
        matches!(self, Self::Finalized | Self::Safe | Self::Pinned(_))
    }
}

/// The age beyond which a finalized header means that the chain or the endpoint has stopped. Mainnet finalizes a
/// block within 13 to 15 minutes; 25 leave room for a missed epoch. Other chains may take longer.
pub const fn max_header_age(chain_id: u64) -> SignedDuration {
    SignedDuration::from_mins(if chain_id == MAINNET_ID { 25 } else { 45 })
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

/// The block that was read: the header fields that a resolution needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Block {
    /// Block number.
    pub number: u64,
    /// Hash of the header.
    pub hash: B256,
    /// Timestamp of the header.
    pub timestamp: Timestamp,
}

/// A name's state at one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The block.
    pub block: Block,
    /// The answer of the name's resolver at that block.
    pub answer: Answer,
    /// The name's state at the newest block. `None` if the block was selected by number or is itself the newest.
    pub latest: Option<Result<Latest, ChainError>>,
    /// The block number up to which the endpoints in agreement had read the chain. This reading cannot contain changes
    /// in later blocks. `None` if the block was selected by number, and in a reading from a bundle.
    pub newest: Option<u64>,
    /// Who holds the name.
    pub holder: Holder,
    /// Expiry of the registration, if it can be read: the registrar's for a second-level `.eth` name, even if it is
    /// wrapped, and the NameWrapper's for any other wrapped name. `None` if the holder is unreadable.
    pub expiry: Option<Timestamp>,
    /// The proof of the answer.
    pub proof: Proof,
    /// Labels of the endpoints that the reading came from.
    pub endpoints: Vec<String>,
    /// Labels of the endpoints that contradicted them, with their answers. An endpoint that answered after agreement
    /// was reached is missing, so this list supports no conclusion.
    pub contradicted_by: Vec<(String, String)>,
    /// Labels (never URLs) of the endpoints that were queried and returned nothing usable, with the cause.
    pub failed_endpoints: Vec<(String, String)>,
}

impl Reading {
    /// The name's state at the newest block: the reading's own state if it compared no newer block. `None` if the
    /// newest block could not be read.
    pub fn at_newest(&self) -> Option<Latest> {
        match &self.latest {
            Some(latest) => latest.as_ref().ok().cloned(),
            None => Some(Latest { answer: self.answer.clone(), holder: self.holder }),
        }
    }
}

/// A name's state at the newest block. It can only downgrade the result of another block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latest {
    /// The answer of the name's resolver at that block.
    pub answer: Answer,
    /// Who holds the name at that block.
    pub holder: Holder,
}

/// What a CCIP-Read gateway (EIP-3668) serves of a name's published data. The chain does not show whether that has
/// changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gateway {
    /// Everything is on chain.
    Nothing,
    /// The payment records, but not the records of the resolution.
    Payments,
    /// The records of the resolution.
    Records,
}

impl Latest {
    /// Whether resolver, records and holder equal those of the reading. Payment records are not compared.
    pub fn agrees_with(&self, reading: &Reading) -> bool {
        let is_held_alike = self.holder == reading.holder || crate::mutant!("sold-names-are-settled");
        is_held_alike && self.answer.same_records(&reading.answer)
    }

    /// What a CCIP-Read gateway (EIP-3668) serves of the name's published data.
    pub const fn gateway(&self) -> Gateway {
        match &self.answer {
            Answer::Records(found) if found.offchain => Gateway::Records,
            Answer::Records(found) if found.payment.offchain => Gateway::Payments,
            _ => Gateway::Nothing,
        }
    }

    /// Whether a later reading of the newest block has the same resolver, records, holder and payment records.
    pub fn is_confirmed_by(&self, later: &Self) -> bool {
        let is_paid_alike = match (&self.answer, &later.answer) {
            (Answer::Records(before), Answer::Records(later)) => before.payment.is_confirmed_by(&later.payment),
            _ => true,
        };
        is_paid_alike && self.is_confirmed_but_for_payments_by(later)
    }

    /// Like [`Latest::is_confirmed_by`], without the payments.
    pub fn is_confirmed_but_for_payments_by(&self, later: &Self) -> bool {
        let is_alike = self.holder == later.holder && self.answer.same_records(&later.answer);
        is_alike || crate::mutant!("changes-are-confirmed")
    }
}

/// A resolver's answer about a name at one block.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Proven: the name has no owner, and no ancestor's resolver answers for it.
    Unregistered,
    /// Proven: the name is owned, but has no resolver, or its resolver (this address) has no code.
    NoResolver(Option<Address>),
    /// The resolver answered.
    Records(Found),
}

/// The records of a name and their origin.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Found {
    /// The resolver that answered.
    pub resolver: Address,
    /// The ancestor that the resolver is set for (ENSIP-10); `None` if it is set for the name itself.
    pub wildcard: Option<EnsName>,
    /// Whether any of the records came through CCIP-Read (EIP-3668).
    pub offchain: bool,
    /// The records.
    pub records: RecordSet,
    /// The payment records; empty if they were not requested, and in older recordings.
    #[serde(default, skip_serializing_if = "PaymentRecords::is_empty")]
    pub payment: PaymentRecords,
}

impl Answer {
    /// Whether both have the same resolver and the same records. Payment records are not compared.
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
    /// `addr(owner)`, if set.
    pub address: Option<Address>,
    /// The holder of the owner's name.
    pub holder: Holder,
}

/// How strongly the chain's answer is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Proof {
    /// The proof grade.
    pub grade: Grade,
    /// Number of RPC operators queried. 0 if the light client alone gave the header.
    pub asked: u32,
    /// Number of RPC operators that agreed: on the answer or, if it is computed from proven state, on the header.
    pub agreed: u32,
    /// Whether the endpoint is the operator's own (`own = true`).
    #[serde(skip)]
    pub own: bool,
}

impl Proof {
    /// Whether the reading relies on a single endpoint that is not the operator's own: for the answer or, if the answer
    /// is computed, for the header that it is proven against. Whoever forges the header can forge the state too.
    pub fn is_one_strangers_word(&self) -> bool {
        let alone = match self.grade {
            Grade::SingleRpc => true,
            Grade::Quorum => false,
            Grade::StateProof => self.agreed < 2,
            Grade::ConsensusProof => false,
        };
        alone && !self.own
    }
}

/// Proof grades, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Grade {
    /// The answer of a single endpoint.
    SingleRpc,
    /// Endpoints of several operators gave the same answer.
    Quorum,
    /// Computed in this process over state that is proven against a header that a quorum agreed on.
    StateProof,
    /// Computed in this process over state that is proven against a header that the chain's validators signed.
    ConsensusProof,
}

/// The proof that is required of the chain's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GradeDemand {
    /// The answer of a single endpoint is enough.
    SingleRpc,
    /// This many endpoints of different operators must give the same answer.
    Quorum(usize),
    /// The answer is computed in this process from proven state, under a header that this many endpoints of different
    /// operators agree on.
    StateProof(usize),
    /// The answer is computed in this process from proven state, under a header that the light client verified. This
    /// many endpoints of different operators must agree on the header too; 0: none is asked.
    ConsensusProof(usize),
}

impl GradeDemand {
    /// The weakest grade that meets the demand.
    pub const fn grade(self) -> Grade {
        match self {
            Self::SingleRpc => Grade::SingleRpc,
            Self::Quorum(_) => Grade::Quorum,
            Self::StateProof(_) => Grade::StateProof,
            Self::ConsensusProof(_) => Grade::ConsensusProof,
        }
    }

    /// Whether the answer is computed in this process from proven state.
    pub const fn is_computed(self) -> bool {
        matches!(self, Self::StateProof(_) | Self::ConsensusProof(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payment::{AddressRecord, CoinType, Coins};
    use crate::records::{Key, Record};

    fn found() -> Found {
        let paid = (CoinType::ETHER, AddressRecord::Address(Address::repeat_byte(2)));
        Found {
            resolver: Address::repeat_byte(1),
            wildcard: None,
            offchain: false,
            records: [(Key::Owner, Record::Text("owner.eth".to_owned()))].into_iter().collect(),
            payment: PaymentRecords { addresses: [paid].into(), ..PaymentRecords::default() },
        }
    }

    fn latest(answer: Answer) -> Latest {
        Latest { answer, holder: Holder::Address(Address::repeat_byte(3)) }
    }

    fn failure() -> ChainError {
        ChainError::Resolver(ResolverFault::CallReverted)
    }

    #[test]
    fn header_by_consensus_is_no_strangers_word() {
        let proof = |grade, agreed| Proof { grade, asked: agreed, agreed, own: false };
        assert!(!proof(Grade::ConsensusProof, 0).is_one_strangers_word());
        assert!(proof(Grade::StateProof, 1).is_one_strangers_word());
        assert!(Grade::ConsensusProof > Grade::StateProof && Grade::StateProof > Grade::Quorum);
    }

    #[test]
    fn state_at_the_newest_block_is_that_of_the_latest_reading() {
        let newest = latest(Answer::Unregistered);
        let reading = |latest| Reading {
            block: Block { number: 1, hash: B256::ZERO, timestamp: Timestamp::UNIX_EPOCH },
            answer: Answer::Records(found()),
            latest,
            newest: None,
            holder: Holder::Nobody,
            expiry: None,
            proof: Proof { grade: Grade::Quorum, asked: 2, agreed: 2, own: false },
            endpoints: Vec::new(),
            contradicted_by: Vec::new(),
            failed_endpoints: Vec::new(),
        };
        assert_eq!(reading(Some(Ok(newest.clone()))).at_newest(), Some(newest));
        assert_eq!(reading(Some(Err(failure()))).at_newest(), None);
        let own = Latest { answer: Answer::Records(found()), holder: Holder::Nobody };
        assert_eq!(reading(None).at_newest(), Some(own), "no other block was read");
    }

    #[test]
    fn later_reading_confirms_what_it_equals_in_every_part() {
        let before = latest(Answer::Records(found()));
        assert!(before.is_confirmed_by(&before.clone()));
        let other = Address::repeat_byte(9);
        let paid = [(CoinType::ETHER, AddressRecord::Address(other))].into();
        let changed = [
            Found { resolver: other, ..found() },
            Found { wildcard: Some(EnsName::parse("example.eth").unwrap()), ..found() },
            Found { offchain: true, ..found() },
            Found { records: [(Key::Owner, Record::Absent)].into_iter().collect(), ..found() },
            Found { payment: PaymentRecords { addresses: paid, ..found().payment }, ..found() },
            Found { payment: PaymentRecords::default(), ..found() },
            Found { payment: PaymentRecords::failed(&Coins::default(), &failure()), ..found() },
        ];
        let changed = changed.map(Answer::Records).into_iter().chain([Answer::Unregistered, Answer::NoResolver(None)]);
        for later in changed.map(latest) {
            assert!(!before.is_confirmed_by(&later), "{later:?}");
            assert!(later.is_confirmed_by(&later), "{later:?}");
        }
        for holder in
            [Holder::Nobody, Holder::Address(other), Holder::Unreadable { unreadable: MigrationSign::Superseded }]
        {
            assert!(!before.is_confirmed_by(&Latest { holder, ..before.clone() }), "{holder:?}");
        }
    }

    #[test]
    fn different_kinds_of_absence_do_not_confirm_each_other() {
        let kinds = [Answer::Unregistered, Answer::NoResolver(None), Answer::NoResolver(Some(Address::ZERO))];
        for (index, before) in kinds.iter().enumerate() {
            for (other, later) in kinds.iter().enumerate() {
                let is_confirmed = latest(before.clone()).is_confirmed_by(&latest(later.clone()));
                assert_eq!(is_confirmed, index == other, "{before:?}, {later:?}");
            }
        }
    }

    #[test]
    fn payment_record_that_failed_before_confirms_with_any_value() {
        let failed = PaymentRecords::failed(&Coins::default(), &failure());
        let before = latest(Answer::Records(Found { payment: failed, ..found() }));
        let later = latest(Answer::Records(found()));
        assert!(before.is_confirmed_by(&later) && !later.is_confirmed_by(&before));
    }
}
