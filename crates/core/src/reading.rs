//! A name's state at one block of the chain, and the proof of it.
//!
//! Two cases have different types: absence that is proven at the block ([`EnsAnswer::Unregistered`],
//! [`EnsAnswer::NoResolver`], [`TextRecord::Absent`](crate::records::TextRecord::Absent)), and a
//! failed read ([`ChainError`]).

use std::fmt;
use std::str::FromStr;

use alloy_primitives::{Address, B256};
use jiff::{SignedDuration, Timestamp};

pub use crate::cause::{
    CcipLookupError, CcipResponseError, LightClientHeaderError, LocalLimitError, ResolverContractError,
};
pub use crate::chain_error::ChainError;
pub use crate::holder::{Ensv2MigrationSign, NameHolder};
use crate::name::EnsName;
use crate::payment::PaymentRecords;
use crate::records::TextRecordSet;
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
pub const fn max_finalized_header_age(chain_id: u64) -> SignedDuration {
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
pub struct ChainBlock {
    /// Block number.
    pub number: u64,
    /// Hash of the header.
    pub hash: B256,
    /// Timestamp of the header.
    pub timestamp: Timestamp,
}

/// A name's state at one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameReading {
    /// The block.
    pub block: ChainBlock,
    /// The answer of the name's resolver at that block.
    pub answer: EnsAnswer,
    /// The name's state at the newest block. `None` if the block was selected by number or is itself the newest.
    pub latest: Option<Result<LatestNameState, ChainError>>,
    /// The block number up to which the endpoints in agreement had read the chain. This reading cannot contain changes
    /// in later blocks. `None` if the block was selected by number, and in a reading from a bundle.
    pub newest: Option<u64>,
    /// Who holds the name.
    pub holder: NameHolder,
    /// Expiry of the registration, if it can be read: the registrar's for a second-level `.eth` name, even if it is
    /// wrapped, and the NameWrapper's for any other wrapped name. `None` if the holder is unreadable.
    pub expiry: Option<Timestamp>,
    /// The proof of the answer.
    pub proof: ProofStrength,
    /// Labels of the endpoints that the reading came from.
    pub endpoints: Vec<String>,
    /// Labels of the endpoints that contradicted them, with their answers. An endpoint that answered after agreement
    /// was reached is missing, so this list supports no conclusion.
    pub contradicted_by: Vec<(String, String)>,
    /// Labels (never URLs) of the endpoints that were queried and returned nothing usable, with the cause.
    pub failed_endpoints: Vec<(String, String)>,
}

impl NameReading {
    /// The name's state at the newest block: the reading's own state if it compared no newer block. `None` if the
    /// newest block could not be read.
    pub fn newest_state(&self) -> Option<LatestNameState> {
        match &self.latest {
            Some(latest) => latest.as_ref().ok().cloned(),
            None => Some(LatestNameState { answer: self.answer.clone(), holder: self.holder }),
        }
    }
}

/// A name's state at the newest block. It can only downgrade the result of another block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatestNameState {
    /// The answer of the name's resolver at that block.
    pub answer: EnsAnswer,
    /// Who holds the name at that block.
    pub holder: NameHolder,
}

/// What a CCIP-Read gateway (EIP-3668) serves of a name's published data. The chain does not show whether that has
/// changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffchainScope {
    /// Everything is on chain.
    Nothing,
    /// The payment records, but not the records of the resolution.
    Payments,
    /// The records of the resolution.
    Records,
}

impl LatestNameState {
    /// Whether resolver, records and holder equal those of the reading. Payment records are not compared.
    pub fn agrees_with_reading(&self, reading: &NameReading) -> bool {
        let is_held_alike = self.holder == reading.holder || crate::mutant!("sold-names-are-settled");
        is_held_alike && self.answer.has_same_records(&reading.answer)
    }

    /// What a CCIP-Read gateway (EIP-3668) serves of the name's published data.
    pub const fn offchain_scope(&self) -> OffchainScope {
        match &self.answer {
            EnsAnswer::Records(found) if found.offchain => OffchainScope::Records,
            EnsAnswer::Records(found) if found.payment.offchain => OffchainScope::Payments,
            _ => OffchainScope::Nothing,
        }
    }

    /// Whether a later reading of the newest block has the same resolver, records, holder and payment records.
    pub fn is_confirmed_by(&self, later: &Self) -> bool {
        let is_paid_alike = match (&self.answer, &later.answer) {
            (EnsAnswer::Records(before), EnsAnswer::Records(later)) => before.payment.is_confirmed_by(&later.payment),
            _ => true,
        };
        is_paid_alike && self.is_confirmed_but_for_payments_by(later)
    }

    /// Like [`LatestNameState::is_confirmed_by`], without the payments.
    pub fn is_confirmed_but_for_payments_by(&self, later: &Self) -> bool {
        let is_alike = self.holder == later.holder && self.answer.has_same_records(&later.answer);
        is_alike || crate::mutant!("changes-are-confirmed")
    }
}

/// A resolver's answer about a name at one block.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnsAnswer {
    /// Proven: the name has no owner, and no ancestor's resolver answers for it.
    Unregistered,
    /// Proven: the name is owned, but has no resolver, or its resolver (this address) has no code.
    NoResolver(Option<Address>),
    /// The resolver answered.
    Records(ResolvedRecords),
}

/// The records of a name and their origin.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ResolvedRecords {
    /// The resolver that answered.
    pub resolver: Address,
    /// The ancestor that the resolver is set for (ENSIP-10); `None` if it is set for the name itself.
    pub wildcard: Option<EnsName>,
    /// Whether any of the records came through CCIP-Read (EIP-3668).
    pub offchain: bool,
    /// The records.
    pub records: TextRecordSet,
    /// The payment records; empty if they were not requested, and in older recordings.
    #[serde(default, skip_serializing_if = "PaymentRecords::is_empty")]
    pub payment: PaymentRecords,
}

impl EnsAnswer {
    /// Whether both have the same resolver and the same records. Payment records are not compared.
    pub fn has_same_records(&self, other: &Self) -> bool {
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
pub struct ClOwnerReading {
    /// `addr(owner)`, if set.
    pub address: Option<Address>,
    /// The holder of the owner's name.
    pub holder: NameHolder,
}

/// How strongly the chain's answer is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct ProofStrength {
    /// The proof grade.
    pub grade: ProofGrade,
    /// Number of RPC operators queried. 0 if the light client alone gave the header.
    pub asked: u32,
    /// Number of RPC operators that agreed: on the answer or, if it is computed from proven state, on the header.
    pub agreed: u32,
    /// Whether the endpoint is the operator's own (`own = true`).
    #[serde(skip)]
    pub own: bool,
}

impl ProofStrength {
    /// Whether the reading relies on a single endpoint that is not the operator's own: for the answer or, if the answer
    /// is computed, for the header that it is proven against. Whoever forges the header can forge the state too.
    pub fn relies_on_single_third_party(&self) -> bool {
        let alone = match self.grade {
            ProofGrade::SingleRpc => true,
            ProofGrade::Quorum => false,
            ProofGrade::StateProof => self.agreed < 2,
            ProofGrade::ConsensusProof => false,
        };
        alone && !self.own
    }
}

/// Proof grades, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ProofGrade {
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
pub enum ProofGradeDemand {
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

impl ProofGradeDemand {
    /// The weakest grade that meets the demand.
    pub const fn minimum_grade(self) -> ProofGrade {
        match self {
            Self::SingleRpc => ProofGrade::SingleRpc,
            Self::Quorum(_) => ProofGrade::Quorum,
            Self::StateProof(_) => ProofGrade::StateProof,
            Self::ConsensusProof(_) => ProofGrade::ConsensusProof,
        }
    }

    /// Whether the answer is computed in this process from proven state.
    pub const fn requires_state_proof(self) -> bool {
        matches!(self, Self::StateProof(_) | Self::ConsensusProof(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payment::{AddressRecord, CoinType, RequestedCoinTypes};
    use crate::records::{TextRecord, TextRecordKey};

    fn found() -> ResolvedRecords {
        let paid = (CoinType::ETHER, AddressRecord::Address(Address::repeat_byte(2)));
        ResolvedRecords {
            resolver: Address::repeat_byte(1),
            wildcard: None,
            offchain: false,
            records: [(TextRecordKey::Owner, TextRecord::Text("owner.eth".to_owned()))].into_iter().collect(),
            payment: PaymentRecords { addresses: [paid].into(), ..PaymentRecords::default() },
        }
    }

    fn latest(answer: EnsAnswer) -> LatestNameState {
        LatestNameState { answer, holder: NameHolder::Address(Address::repeat_byte(3)) }
    }

    fn failure() -> ChainError {
        ChainError::Resolver(ResolverContractError::CallReverted)
    }

    #[test]
    fn header_by_consensus_is_no_strangers_word() {
        let proof = |grade, agreed| ProofStrength { grade, asked: agreed, agreed, own: false };
        assert!(!proof(ProofGrade::ConsensusProof, 0).relies_on_single_third_party());
        assert!(proof(ProofGrade::StateProof, 1).relies_on_single_third_party());
        assert!(ProofGrade::ConsensusProof > ProofGrade::StateProof && ProofGrade::StateProof > ProofGrade::Quorum);
    }

    #[test]
    fn state_at_the_newest_block_is_that_of_the_latest_reading() {
        let newest = latest(EnsAnswer::Unregistered);
        let reading = |latest| NameReading {
            block: ChainBlock { number: 1, hash: B256::ZERO, timestamp: Timestamp::UNIX_EPOCH },
            answer: EnsAnswer::Records(found()),
            latest,
            newest: None,
            holder: NameHolder::Nobody,
            expiry: None,
            proof: ProofStrength { grade: ProofGrade::Quorum, asked: 2, agreed: 2, own: false },
            endpoints: Vec::new(),
            contradicted_by: Vec::new(),
            failed_endpoints: Vec::new(),
        };
        assert_eq!(reading(Some(Ok(newest.clone()))).newest_state(), Some(newest));
        assert_eq!(reading(Some(Err(failure()))).newest_state(), None);
        let own = LatestNameState { answer: EnsAnswer::Records(found()), holder: NameHolder::Nobody };
        assert_eq!(reading(None).newest_state(), Some(own), "no other block was read");
    }

    #[test]
    fn later_reading_confirms_what_it_equals_in_every_part() {
        let before = latest(EnsAnswer::Records(found()));
        assert!(before.is_confirmed_by(&before.clone()));
        let other = Address::repeat_byte(9);
        let paid = [(CoinType::ETHER, AddressRecord::Address(other))].into();
        let changed = [
            ResolvedRecords { resolver: other, ..found() },
            ResolvedRecords { wildcard: Some(EnsName::parse("example.eth").unwrap()), ..found() },
            ResolvedRecords { offchain: true, ..found() },
            ResolvedRecords { records: [(TextRecordKey::Owner, TextRecord::Absent)].into_iter().collect(), ..found() },
            ResolvedRecords { payment: PaymentRecords { addresses: paid, ..found().payment }, ..found() },
            ResolvedRecords { payment: PaymentRecords::default(), ..found() },
            ResolvedRecords {
                payment: PaymentRecords::from_read_failure(&RequestedCoinTypes::default(), &failure()),
                ..found()
            },
        ];
        let changed =
            changed.map(EnsAnswer::Records).into_iter().chain([EnsAnswer::Unregistered, EnsAnswer::NoResolver(None)]);
        for later in changed.map(latest) {
            assert!(!before.is_confirmed_by(&later), "{later:?}");
            assert!(later.is_confirmed_by(&later), "{later:?}");
        }
        for holder in [
            NameHolder::Nobody,
            NameHolder::Address(other),
            NameHolder::Unreadable { unreadable: Ensv2MigrationSign::Superseded },
        ] {
            assert!(!before.is_confirmed_by(&LatestNameState { holder, ..before.clone() }), "{holder:?}");
        }
    }

    #[test]
    fn different_kinds_of_absence_do_not_confirm_each_other() {
        let kinds = [EnsAnswer::Unregistered, EnsAnswer::NoResolver(None), EnsAnswer::NoResolver(Some(Address::ZERO))];
        for (index, before) in kinds.iter().enumerate() {
            for (other, later) in kinds.iter().enumerate() {
                let is_confirmed = latest(before.clone()).is_confirmed_by(&latest(later.clone()));
                assert_eq!(is_confirmed, index == other, "{before:?}, {later:?}");
            }
        }
    }

    #[test]
    fn payment_record_that_failed_before_confirms_with_any_value() {
        let failed = PaymentRecords::from_read_failure(&RequestedCoinTypes::default(), &failure());
        let before = latest(EnsAnswer::Records(ResolvedRecords { payment: failed, ..found() }));
        let later = latest(EnsAnswer::Records(found()));
        assert!(before.is_confirmed_by(&later) && !later.is_confirmed_by(&before));
    }
}
