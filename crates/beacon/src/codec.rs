//! The SSZ and JSON encodings of the containers, as the beacon API serves them.

use alloy_primitives::{B256, Bytes, U256};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use crate::containers::{
    BeaconBlockHeader, ExecutionPayloadHeader, LightClientBootstrap, LightClientFinalityUpdate, LightClientHeader,
    LightClientOptimisticUpdate, LightClientUpdate, SyncAggregate, SyncCommittee,
};
use crate::error::{LightClientError, SszContainerKind};
use crate::fork::ConsensusFork;
use crate::hash::node_depth;
use crate::spec::{BeaconPreset, ChainSpec, require_supported_fork};
use crate::ssz::{SszReader, SszWriter};

/// Longest JSON of one object in bytes. An update of mainnet has about 70,000, most of them keys in hexadecimal.
pub const MAX_JSON_BYTES: usize = 256 * 1024;

/// Most updates of one request (`MAX_REQUEST_LIGHT_CLIENT_UPDATES`).
pub const MAX_UPDATES: usize = 128;

/// Length of a fork digest in bytes.
const FORK_DIGEST_LENGTH: usize = 4;

/// Longest `extra_data` in bytes.
const MAX_EXTRA_DATA: usize = 32;

/// What the beacon API serves to light clients. The fork decides the layout: SSZ comes with the header
/// `Eth-Consensus-Version`, and JSON with the member `version`.
pub trait LightClientCodec: Serialize + DeserializeOwned {
    /// Decodes SSZ, all of it.
    ///
    /// # Errors
    /// [`LightClientError::Ssz`], [`LightClientError::ForkUnsupported`], [`LightClientError::ExtraDataTooLong`].
    fn from_ssz(bytes: &[u8], fork: ConsensusFork, spec: &ChainSpec) -> Result<Self, LightClientError>;

    /// Encodes as SSZ.
    fn to_ssz(&self, fork: ConsensusFork) -> Vec<u8>;

    /// Verifies the lengths that SSZ prescribes and JSON does not.
    ///
    /// # Errors
    /// [`LightClientError::CommitteeSize`], [`LightClientError::BitsLength`], [`LightClientError::BranchLength`],
    /// [`LightClientError::ExtraDataTooLong`].
    fn check_lengths(&self, fork: ConsensusFork, preset: BeaconPreset) -> Result<(), LightClientError>;

    /// Decodes a response of the beacon API: `{"version": …, "data": …}`. Other members are ignored.
    ///
    /// # Errors
    /// [`LightClientError::TooLong`], [`LightClientError::Json`], [`LightClientError::VersionUnknown`],
    /// [`LightClientError::ForkUnsupported`], and those of [`Self::check_lengths`].
    fn from_json(json: &[u8], spec: &ChainSpec) -> Result<Self, LightClientError> {
        check_json_length(json, MAX_JSON_BYTES)?;
        parse_json::<ForkVersionedDocument<IgnoredAny>>(json)?.parse_fork_version()?;
        parse_json::<ForkVersionedDocument<Self>>(json)?.into_checked_data(spec)
    }

    /// Encodes as a response of the beacon API.
    fn to_json(&self, fork: ConsensusFork) -> serde_json::Value {
        serde_json::json!({ "version": fork.name(), "data": self })
    }
}

#[derive(Deserialize)]
struct ForkVersionedDocument<T> {
    version: String,
    data: T,
}

impl<T> ForkVersionedDocument<T> {
    /// The fork that decides the layout of `data`. An honest node serves layouts that this crate does not know, so this
    /// is called before `data` is parsed.
    fn parse_fork_version(&self) -> Result<ConsensusFork, LightClientError> {
        require_supported_fork(ConsensusFork::from_name(&self.version).ok_or(LightClientError::VersionUnknown)?)
    }
}

impl<T: LightClientCodec> ForkVersionedDocument<T> {
    fn into_checked_data(self, spec: &ChainSpec) -> Result<T, LightClientError> {
        let fork = self.parse_fork_version()?;
        self.data.check_lengths(fork, spec.preset)?;
        Ok(self.data)
    }
}

impl LightClientUpdate {
    /// Decodes the response to a request for `count` updates, or fewer: a JSON array. At most [`MAX_UPDATES`] are
    /// accepted.
    ///
    /// # Errors
    /// [`LightClientError::TooManyUpdates`], and those of [`LightClientCodec::from_json`] for each update.
    pub fn list_from_json(json: &[u8], count: usize, spec: &ChainSpec) -> Result<Vec<Self>, LightClientError> {
        let most = count.min(MAX_UPDATES);
        check_json_length(json, most * MAX_JSON_BYTES)?;
        let versions = parse_json::<Vec<ForkVersionedDocument<IgnoredAny>>>(json)?;
        if versions.len() > most {
            return Err(LightClientError::TooManyUpdates { most });
        }
        versions.iter().try_for_each(|response| response.parse_fork_version().map(drop))?;
        let responses = parse_json::<Vec<ForkVersionedDocument<Self>>>(json)?;
        responses.into_iter().map(|response| response.into_checked_data(spec)).collect()
    }

    /// Decodes the SSZ response to a request for `count` updates, or fewer: for each its length, a fork digest, and
    /// the update. Nobody signs the digest, so the slot of the attested header decides the layout instead.
    ///
    /// # Errors
    /// [`LightClientError::TooManyUpdates`], and those of [`LightClientCodec::from_ssz`] for each update.
    pub fn list_from_ssz(mut bytes: &[u8], count: usize, spec: &ChainSpec) -> Result<Vec<Self>, LightClientError> {
        let most = count.min(MAX_UPDATES);
        let mut updates = Vec::new();
        while !bytes.is_empty() {
            if updates.len() == most {
                return Err(LightClientError::TooManyUpdates { most });
            }
            let mut reader = SszReader::new(SszContainerKind::Updates, bytes);
            let length = usize::try_from(reader.read_u64()?).unwrap_or(usize::MAX).saturating_sub(FORK_DIGEST_LENGTH);
            reader.read_bytes(FORK_DIGEST_LENGTH)?;
            let update = reader.read_bytes(length)?;
            updates.push(Self::from_ssz(update, fork_of_first_header(update, spec)?, spec)?);
            bytes = reader.remaining_bytes();
        }
        Ok(updates)
    }
}

/// The fork at the slot of the first header in the SSZ of a bootstrap or an update. The header's offset comes first.
///
/// A Gloas header has a fixed length, so its slot comes first instead. As an offset, it points beyond the data.
pub(crate) fn fork_of_first_header(ssz: &[u8], spec: &ChainSpec) -> Result<ConsensusFork, LightClientError> {
    let mut reader = SszReader::new(SszContainerKind::Header, ssz);
    let offset = u32::from_le_bytes(reader.read_fixed_bytes()?.0);
    let mut header = SszReader::new(SszContainerKind::Header, ssz);
    if let Err(malformed) = header.read_bytes(usize::try_from(offset).unwrap_or(usize::MAX)) {
        // No chain has a slot of more than 32 bits.
        let is_slot = reader.read_fixed_bytes::<4>()?.is_zero();
        return Err(if is_slot { LightClientError::ForkUnsupported { fork: ConsensusFork::Gloas } } else { malformed });
    }
    spec.fork_at_slot(header.read_u64()?)
}

fn check_json_length(json: &[u8], most: usize) -> Result<(), LightClientError> {
    if json.len() > most {
        return Err(LightClientError::TooLong { most, observed: json.len() });
    }
    Ok(())
}

fn parse_json<T: DeserializeOwned>(json: &[u8]) -> Result<T, LightClientError> {
    serde_json::from_slice(json).map_err(|error| LightClientError::Json { line: error.line(), column: error.column() })
}

impl LightClientCodec for LightClientBootstrap {
    fn from_ssz(bytes: &[u8], fork: ConsensusFork, spec: &ChainSpec) -> Result<Self, LightClientError> {
        let branch = node_depth(require_supported_fork(fork)?.generalized_indices().current_sync_committee);
        let mut reader = SszReader::new(SszContainerKind::Bootstrap, bytes);
        reader.read_offset()?;
        let current_sync_committee = SyncCommittee::read_ssz(&mut reader, spec.preset)?;
        let current_sync_committee_branch = reader.read_fixed_bytes_list(branch)?;
        let [header] = reader.into_variable_fields()?;
        let header = LightClientHeader::from_ssz(header, fork)?;
        Ok(Self { header, current_sync_committee, current_sync_committee_branch })
    }

    fn to_ssz(&self, fork: ConsensusFork) -> Vec<u8> {
        let mut writer = SszWriter::default();
        writer.write_variable_field(self.header.to_ssz(fork));
        self.current_sync_committee.write_ssz(&mut writer);
        writer.write_roots(&self.current_sync_committee_branch).finish()
    }

    fn check_lengths(&self, fork: ConsensusFork, preset: BeaconPreset) -> Result<(), LightClientError> {
        self.header.check_lengths()?;
        self.current_sync_committee.check_length(preset)?;
        check_branch_length(&self.current_sync_committee_branch, fork.generalized_indices().current_sync_committee)
    }
}

impl LightClientCodec for LightClientUpdate {
    fn from_ssz(bytes: &[u8], fork: ConsensusFork, spec: &ChainSpec) -> Result<Self, LightClientError> {
        let indices = require_supported_fork(fork)?.generalized_indices();
        let mut reader = SszReader::new(SszContainerKind::Update, bytes);
        reader.read_offset()?;
        let next_sync_committee = SyncCommittee::read_ssz(&mut reader, spec.preset)?;
        let next_sync_committee_branch = reader.read_fixed_bytes_list(node_depth(indices.next_sync_committee))?;
        reader.read_offset()?;
        let finality_branch = reader.read_fixed_bytes_list(node_depth(indices.finalized_root))?;
        let sync_aggregate = SyncAggregate::read_ssz(&mut reader, spec.preset)?;
        let signature_slot = reader.read_u64()?;
        let [attested, finalized] = reader.into_variable_fields()?;
        let attested_header = LightClientHeader::from_ssz(attested, fork)?;
        let finalized_header = LightClientHeader::from_ssz(finalized, fork)?;
        Ok(Self {
            attested_header,
            next_sync_committee,
            next_sync_committee_branch,
            finalized_header,
            finality_branch,
            sync_aggregate,
            signature_slot,
        })
    }

    fn to_ssz(&self, fork: ConsensusFork) -> Vec<u8> {
        let mut writer = SszWriter::default();
        writer.write_variable_field(self.attested_header.to_ssz(fork));
        self.next_sync_committee.write_ssz(&mut writer);
        writer.write_roots(&self.next_sync_committee_branch);
        writer.write_variable_field(self.finalized_header.to_ssz(fork));
        writer.write_roots(&self.finality_branch);
        self.sync_aggregate.write_ssz(&mut writer);
        writer.write_u64(self.signature_slot).finish()
    }

    fn check_lengths(&self, fork: ConsensusFork, preset: BeaconPreset) -> Result<(), LightClientError> {
        self.attested_header.check_lengths()?;
        self.finalized_header.check_lengths()?;
        self.next_sync_committee.check_length(preset)?;
        self.sync_aggregate.check_length(preset)?;
        check_branch_length(&self.next_sync_committee_branch, fork.generalized_indices().next_sync_committee)?;
        check_branch_length(&self.finality_branch, fork.generalized_indices().finalized_root)
    }
}

impl LightClientCodec for LightClientFinalityUpdate {
    fn from_ssz(bytes: &[u8], fork: ConsensusFork, spec: &ChainSpec) -> Result<Self, LightClientError> {
        let branch = node_depth(require_supported_fork(fork)?.generalized_indices().finalized_root);
        let mut reader = SszReader::new(SszContainerKind::FinalityUpdate, bytes);
        reader.read_offset()?;
        reader.read_offset()?;
        let finality_branch = reader.read_fixed_bytes_list(branch)?;
        let sync_aggregate = SyncAggregate::read_ssz(&mut reader, spec.preset)?;
        let signature_slot = reader.read_u64()?;
        let [attested, finalized] = reader.into_variable_fields()?;
        let attested_header = LightClientHeader::from_ssz(attested, fork)?;
        let finalized_header = LightClientHeader::from_ssz(finalized, fork)?;
        Ok(Self { attested_header, finalized_header, finality_branch, sync_aggregate, signature_slot })
    }

    fn to_ssz(&self, fork: ConsensusFork) -> Vec<u8> {
        let mut writer = SszWriter::default();
        writer.write_variable_field(self.attested_header.to_ssz(fork));
        writer.write_variable_field(self.finalized_header.to_ssz(fork));
        writer.write_roots(&self.finality_branch);
        self.sync_aggregate.write_ssz(&mut writer);
        writer.write_u64(self.signature_slot).finish()
    }

    fn check_lengths(&self, fork: ConsensusFork, preset: BeaconPreset) -> Result<(), LightClientError> {
        self.attested_header.check_lengths()?;
        self.finalized_header.check_lengths()?;
        self.sync_aggregate.check_length(preset)?;
        check_branch_length(&self.finality_branch, fork.generalized_indices().finalized_root)
    }
}

impl LightClientCodec for LightClientOptimisticUpdate {
    fn from_ssz(bytes: &[u8], fork: ConsensusFork, spec: &ChainSpec) -> Result<Self, LightClientError> {
        let mut reader = SszReader::new(SszContainerKind::OptimisticUpdate, bytes);
        require_supported_fork(fork)?;
        reader.read_offset()?;
        let sync_aggregate = SyncAggregate::read_ssz(&mut reader, spec.preset)?;
        let signature_slot = reader.read_u64()?;
        let [attested] = reader.into_variable_fields()?;
        let attested_header = LightClientHeader::from_ssz(attested, fork)?;
        Ok(Self { attested_header, sync_aggregate, signature_slot })
    }

    fn to_ssz(&self, fork: ConsensusFork) -> Vec<u8> {
        let mut writer = SszWriter::default();
        writer.write_variable_field(self.attested_header.to_ssz(fork));
        self.sync_aggregate.write_ssz(&mut writer);
        writer.write_u64(self.signature_slot).finish()
    }

    fn check_lengths(&self, _fork: ConsensusFork, preset: BeaconPreset) -> Result<(), LightClientError> {
        self.attested_header.check_lengths()?;
        self.sync_aggregate.check_length(preset)
    }
}

impl LightClientHeader {
    pub(crate) fn from_ssz(bytes: &[u8], fork: ConsensusFork) -> Result<Self, LightClientError> {
        let mut reader = SszReader::new(SszContainerKind::Header, bytes);
        let beacon = BeaconBlockHeader::read_ssz(&mut reader)?;
        reader.read_offset()?;
        let execution_branch = [
            reader.read_fixed_bytes()?,
            reader.read_fixed_bytes()?,
            reader.read_fixed_bytes()?,
            reader.read_fixed_bytes()?,
        ];
        let [execution] = reader.into_variable_fields()?;
        let execution = ExecutionPayloadHeader::from_ssz(execution, fork)?;
        Ok(Self { beacon, execution, execution_branch })
    }

    pub(crate) fn to_ssz(&self, fork: ConsensusFork) -> Vec<u8> {
        let mut writer = SszWriter::default();
        self.beacon.write_ssz(&mut writer);
        writer.write_variable_field(self.execution.to_ssz(fork)).write_roots(&self.execution_branch).finish()
    }

    fn check_lengths(&self) -> Result<(), LightClientError> {
        check_extra_data_length(&self.execution.extra_data)
    }
}

impl BeaconBlockHeader {
    fn read_ssz(reader: &mut SszReader<'_>) -> Result<Self, LightClientError> {
        Ok(Self {
            slot: reader.read_u64()?,
            proposer_index: reader.read_u64()?,
            parent_root: reader.read_fixed_bytes()?,
            state_root: reader.read_fixed_bytes()?,
            body_root: reader.read_fixed_bytes()?,
        })
    }

    fn write_ssz(&self, writer: &mut SszWriter) {
        writer.write_u64(self.slot).write_u64(self.proposer_index);
        writer.write_roots(&[self.parent_root, self.state_root, self.body_root]);
    }
}

impl ExecutionPayloadHeader {
    fn from_ssz(bytes: &[u8], fork: ConsensusFork) -> Result<Self, LightClientError> {
        let mut reader = SszReader::new(SszContainerKind::ExecutionPayloadHeader, bytes);
        let mut header = Self {
            parent_hash: reader.read_fixed_bytes()?,
            fee_recipient: reader.read_fixed_bytes()?.into(),
            state_root: reader.read_fixed_bytes()?,
            receipts_root: reader.read_fixed_bytes()?,
            logs_bloom: reader.read_fixed_bytes()?,
            prev_randao: reader.read_fixed_bytes()?,
            block_number: reader.read_u64()?,
            gas_limit: reader.read_u64()?,
            gas_used: reader.read_u64()?,
            timestamp: reader.read_u64()?,
            ..Self::default()
        };
        reader.read_offset()?;
        header.base_fee_per_gas = U256::from_le_bytes(reader.read_fixed_bytes::<32>()?.0);
        header.block_hash = reader.read_fixed_bytes()?;
        header.transactions_root = reader.read_fixed_bytes()?;
        header.withdrawals_root = reader.read_fixed_bytes()?;
        if fork.has_blob_gas() {
            header.blob_gas_used = reader.read_u64()?;
            header.excess_blob_gas = reader.read_u64()?;
        }
        let [extra_data] = reader.into_variable_fields()?;
        check_extra_data_length(extra_data)?;
        header.extra_data = Bytes::copy_from_slice(extra_data);
        Ok(header)
    }

    fn to_ssz(&self, fork: ConsensusFork) -> Vec<u8> {
        let mut writer = SszWriter::default();
        writer
            .write_bytes(self.parent_hash)
            .write_bytes(self.fee_recipient)
            .write_bytes(self.state_root)
            .write_bytes(self.receipts_root);
        writer.write_bytes(self.logs_bloom).write_bytes(self.prev_randao).write_u64(self.block_number);
        writer.write_u64(self.gas_limit).write_u64(self.gas_used).write_u64(self.timestamp);
        writer.write_variable_field(self.extra_data.to_vec()).write_bytes(self.base_fee_per_gas.to_le_bytes::<32>());
        writer.write_bytes(self.block_hash).write_bytes(self.transactions_root).write_bytes(self.withdrawals_root);
        if fork.has_blob_gas() {
            writer.write_u64(self.blob_gas_used).write_u64(self.excess_blob_gas);
        }
        writer.finish()
    }
}

impl SyncCommittee {
    pub(crate) fn read_ssz(reader: &mut SszReader<'_>, preset: BeaconPreset) -> Result<Self, LightClientError> {
        Ok(Self {
            pubkeys: reader.read_fixed_bytes_list(preset.sync_committee_size)?,
            aggregate_pubkey: reader.read_fixed_bytes()?,
        })
    }

    pub(crate) fn write_ssz(&self, writer: &mut SszWriter) {
        for key in self.pubkeys.iter().chain([&self.aggregate_pubkey]) {
            writer.write_bytes(key);
        }
    }

    pub(crate) fn check_length(&self, preset: BeaconPreset) -> Result<(), LightClientError> {
        let (expected, observed) = (preset.sync_committee_size, self.pubkeys.len());
        if observed != expected {
            return Err(LightClientError::CommitteeSize { expected, observed });
        }
        Ok(())
    }
}

impl SyncAggregate {
    fn read_ssz(reader: &mut SszReader<'_>, preset: BeaconPreset) -> Result<Self, LightClientError> {
        let sync_committee_bits = Bytes::copy_from_slice(reader.read_bytes(preset.participation_bits_length())?);
        Ok(Self { sync_committee_bits, sync_committee_signature: reader.read_fixed_bytes()? })
    }

    fn write_ssz(&self, writer: &mut SszWriter) {
        writer.write_bytes(&self.sync_committee_bits).write_bytes(self.sync_committee_signature);
    }

    pub(crate) fn check_length(&self, preset: BeaconPreset) -> Result<(), LightClientError> {
        let (expected, observed) = (preset.participation_bits_length(), self.sync_committee_bits.len());
        if observed != expected {
            return Err(LightClientError::BitsLength { expected, observed });
        }
        Ok(())
    }
}

fn check_extra_data_length(extra_data: &[u8]) -> Result<(), LightClientError> {
    let observed = extra_data.len();
    if observed > MAX_EXTRA_DATA && !clresolve_core::mutant!("beacon-extra-data") {
        return Err(LightClientError::ExtraDataTooLong { observed });
    }
    Ok(())
}

fn check_branch_length(branch: &[B256], index: u64) -> Result<(), LightClientError> {
    let (expected, observed) = (node_depth(index), branch.len());
    if observed != expected {
        return Err(LightClientError::BranchLength { expected, observed });
    }
    Ok(())
}
