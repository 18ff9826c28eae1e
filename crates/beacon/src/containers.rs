//! The containers of the light-client protocol and their `hash_tree_root`.

use alloy_primitives::{Address, B256, Bytes, FixedBytes, U256};
use serde::{Deserialize, Serialize};

use crate::fork::ConsensusFork;
use crate::hash::{bytes_root, hash_pair, merkleize, short_byte_list_root, u64_root};

/// A compressed BLS public key.
pub type BlsPublicKeyBytes = FixedBytes<48>;

/// A compressed BLS signature.
pub type BlsSignatureBytes = FixedBytes<96>;

/// `BeaconBlockHeader`. Its root is the beacon block root.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of the specification")]
pub struct BeaconBlockHeader {
    #[serde(with = "decimal")]
    pub slot: u64,
    #[serde(with = "decimal")]
    pub proposer_index: u64,
    pub parent_root: B256,
    pub state_root: B256,
    pub body_root: B256,
}

/// `ExecutionPayloadHeader`. Before Deneb, `blob_gas_used` and `excess_blob_gas` do not exist, and are zero here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of the specification")]
pub struct ExecutionPayloadHeader {
    pub parent_hash: B256,
    pub fee_recipient: Address,
    pub state_root: B256,
    pub receipts_root: B256,
    pub logs_bloom: FixedBytes<256>,
    pub prev_randao: B256,
    #[serde(with = "decimal")]
    pub block_number: u64,
    #[serde(with = "decimal")]
    pub gas_limit: u64,
    #[serde(with = "decimal")]
    pub gas_used: u64,
    #[serde(with = "decimal")]
    pub timestamp: u64,
    pub extra_data: Bytes,
    #[serde(with = "decimal")]
    pub base_fee_per_gas: U256,
    pub block_hash: B256,
    pub transactions_root: B256,
    pub withdrawals_root: B256,
    #[serde(default, with = "decimal")]
    pub blob_gas_used: u64,
    #[serde(default, with = "decimal")]
    pub excess_blob_gas: u64,
}

/// `LightClientHeader`: a beacon header, and the execution header in its block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of the specification")]
pub struct LightClientHeader {
    pub beacon: BeaconBlockHeader,
    pub execution: ExecutionPayloadHeader,
    pub execution_branch: [B256; 4],
}

/// `SyncCommittee`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncCommittee {
    /// One key per member; a validator may have several memberships.
    pub pubkeys: Vec<BlsPublicKeyBytes>,
    /// The sum of the keys.
    pub aggregate_pubkey: BlsPublicKeyBytes,
}

/// `SyncAggregate`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncAggregate {
    /// One bit per member, lowest bit first: who signed.
    pub sync_committee_bits: Bytes,
    /// The sum of their signatures.
    pub sync_committee_signature: BlsSignatureBytes,
}

/// `LightClientBootstrap`: a header and the committee that signs in its period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of the specification")]
pub struct LightClientBootstrap {
    pub header: LightClientHeader,
    pub current_sync_committee: SyncCommittee,
    pub current_sync_committee_branch: Vec<B256>,
}

/// `LightClientUpdate`: a signed header, what it finalizes, and the committee of the next period. The finalized header
/// or the committee is absent if its branch is zero; the field is then zero as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of the specification")]
pub struct LightClientUpdate {
    pub attested_header: LightClientHeader,
    pub next_sync_committee: SyncCommittee,
    pub next_sync_committee_branch: Vec<B256>,
    pub finalized_header: LightClientHeader,
    pub finality_branch: Vec<B256>,
    pub sync_aggregate: SyncAggregate,
    #[serde(with = "decimal")]
    pub signature_slot: u64,
}

/// `LightClientFinalityUpdate`: a signed header and what it finalizes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of the specification")]
pub struct LightClientFinalityUpdate {
    pub attested_header: LightClientHeader,
    pub finalized_header: LightClientHeader,
    pub finality_branch: Vec<B256>,
    pub sync_aggregate: SyncAggregate,
    #[serde(with = "decimal")]
    pub signature_slot: u64,
}

/// `LightClientOptimisticUpdate`: a signed header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are those of the specification")]
pub struct LightClientOptimisticUpdate {
    pub attested_header: LightClientHeader,
    pub sync_aggregate: SyncAggregate,
    #[serde(with = "decimal")]
    pub signature_slot: u64,
}

impl BeaconBlockHeader {
    /// The beacon block root.
    pub fn hash_tree_root(&self) -> B256 {
        merkleize(vec![
            u64_root(self.slot),
            u64_root(self.proposer_index),
            self.parent_root,
            self.state_root,
            self.body_root,
        ])
    }
}

impl ExecutionPayloadHeader {
    /// The root by the rules of `fork`, which covers blob gas only from Deneb on.
    pub fn hash_tree_root(&self, fork: ConsensusFork) -> B256 {
        let mut fields = vec![
            self.parent_hash,
            B256::right_padding_from(self.fee_recipient.as_slice()),
            self.state_root,
            self.receipts_root,
            bytes_root(self.logs_bloom.as_slice()),
            self.prev_randao,
            u64_root(self.block_number),
            u64_root(self.gas_limit),
            u64_root(self.gas_used),
            u64_root(self.timestamp),
            short_byte_list_root(&self.extra_data),
            B256::new(self.base_fee_per_gas.to_le_bytes()),
            self.block_hash,
            self.transactions_root,
            self.withdrawals_root,
        ];
        if fork.has_blob_gas() {
            fields.extend([u64_root(self.blob_gas_used), u64_root(self.excess_blob_gas)]);
        }
        merkleize(fields)
    }
}

impl LightClientHeader {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl SyncCommittee {
    /// The committee's root in the state.
    pub fn hash_tree_root(&self) -> B256 {
        let keys = self.pubkeys.iter().map(|key| bytes_root(key.as_slice())).collect();
        hash_pair(merkleize(keys), bytes_root(self.aggregate_pubkey.as_slice()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.aggregate_pubkey.is_zero() && self.pubkeys.iter().all(FixedBytes::is_zero)
    }
}

impl SyncAggregate {
    /// Number of members that signed.
    pub fn participant_count(&self) -> usize {
        self.sync_committee_bits.iter().map(|byte| byte.count_ones() as usize).sum()
    }

    /// Whether the member signed.
    pub(crate) fn has_signed(&self, member: usize) -> bool {
        self.sync_committee_bits.get(member / 8).is_some_and(|byte| (byte >> (member % 8)) & 1 == 1)
    }
}

/// Numbers as the beacon API writes them: decimal digits in a string.
mod decimal {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<T: Display, S: Serializer>(number: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(number)
    }

    pub(super) fn deserialize<'de, T: FromStr, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        let text = String::deserialize(deserializer)?;
        let is_decimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = is_decimal.then(|| text.parse().ok()).flatten();
        number.ok_or_else(|| D::Error::custom("not a number in decimal digits"))
    }
}
