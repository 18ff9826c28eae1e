//! The SSZ and JSON encodings of the containers, as the beacon API serves them.

use alloy_primitives::{B256, Bytes, U256};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use crate::containers::{
    BeaconBlockHeader, ExecutionPayloadHeader, LightClientBootstrap, LightClientFinalityUpdate, LightClientHeader,
    LightClientOptimisticUpdate, LightClientUpdate, SyncAggregate, SyncCommittee,
};
use crate::error::{Container, LightClientError};
use crate::fork::Fork;
use crate::hash::depth;
use crate::spec::{ChainSpec, Preset, supported};
use crate::ssz::{Reader, Writer};

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
pub trait LightClientData: Serialize + DeserializeOwned {
    /// Decodes SSZ, all of it.
    ///
    /// # Errors
    /// [`LightClientError::Ssz`], [`LightClientError::ForkUnsupported`], [`LightClientError::ExtraDataTooLong`].
    fn from_ssz(bytes: &[u8], fork: Fork, spec: &ChainSpec) -> Result<Self, LightClientError>;

    /// Encodes as SSZ.
    fn to_ssz(&self, fork: Fork) -> Vec<u8>;

    /// Verifies the lengths that SSZ prescribes and JSON does not.
    ///
    /// # Errors
    /// [`LightClientError::CommitteeSize`], [`LightClientError::BitsLength`], [`LightClientError::BranchLength`],
    /// [`LightClientError::ExtraDataTooLong`].
    fn check_lengths(&self, fork: Fork, preset: Preset) -> Result<(), LightClientError>;

    /// Decodes a response of the beacon API: `{"version": …, "data": …}`. Other members are ignored.
    ///
    /// # Errors
    /// [`LightClientError::TooLong`], [`LightClientError::Json`], [`LightClientError::VersionUnknown`],
    /// [`LightClientError::ForkUnsupported`], and those of [`Self::check_lengths`].
    fn from_json(json: &[u8], spec: &ChainSpec) -> Result<Self, LightClientError> {
        bounded(json, MAX_JSON_BYTES)?;
        parsed::<Response<IgnoredAny>>(json)?.fork()?;
        parsed::<Response<Self>>(json)?.checked(spec)
    }

    /// Encodes as a response of the beacon API.
    fn to_json(&self, fork: Fork) -> serde_json::Value {
        serde_json::json!({ "version": fork.name(), "data": self })
    }
}

#[derive(Deserialize)]
struct Response<T> {
    version: String,
    data: T,
}

impl<T> Response<T> {
    /// The fork that decides the layout of `data`. An honest node serves layouts that this crate does not know, so this
    /// is called before `data` is parsed.
    fn fork(&self) -> Result<Fork, LightClientError> {
        supported(Fork::from_name(&self.version).ok_or(LightClientError::VersionUnknown)?)
    }
}

impl<T: LightClientData> Response<T> {
    fn checked(self, spec: &ChainSpec) -> Result<T, LightClientError> {
        let fork = self.fork()?;
        self.data.check_lengths(fork, spec.preset)?;
        Ok(self.data)
    }
}

impl LightClientUpdate {
    /// Decodes the response to a request for `count` updates, or fewer: a JSON array. At most [`MAX_UPDATES`] are
    /// accepted.
    ///
    /// # Errors
    /// [`LightClientError::TooManyUpdates`], and those of [`LightClientData::from_json`] for each update.
    pub fn list_from_json(json: &[u8], count: usize, spec: &ChainSpec) -> Result<Vec<Self>, LightClientError> {
        let most = count.min(MAX_UPDATES);
        bounded(json, most * MAX_JSON_BYTES)?;
        let versions = parsed::<Vec<Response<IgnoredAny>>>(json)?;
        if versions.len() > most {
            return Err(LightClientError::TooManyUpdates { most });
        }
        versions.iter().try_for_each(|response| response.fork().map(drop))?;
        let responses = parsed::<Vec<Response<Self>>>(json)?;
        responses.into_iter().map(|response| response.checked(spec)).collect()
    }

    /// Decodes the SSZ response to a request for `count` updates, or fewer: for each its length, a fork digest, and
    /// the update. Nobody signs the digest, so the slot of the attested header decides the layout instead.
    ///
    /// # Errors
    /// [`LightClientError::TooManyUpdates`], and those of [`LightClientData::from_ssz`] for each update.
    pub fn list_from_ssz(mut bytes: &[u8], count: usize, spec: &ChainSpec) -> Result<Vec<Self>, LightClientError> {
        let most = count.min(MAX_UPDATES);
        let mut updates = Vec::new();
        while !bytes.is_empty() {
            if updates.len() == most {
                return Err(LightClientError::TooManyUpdates { most });
            }
            let mut reader = Reader::new(Container::Updates, bytes);
            let length = usize::try_from(reader.number()?).unwrap_or(usize::MAX).saturating_sub(FORK_DIGEST_LENGTH);
            reader.bytes(FORK_DIGEST_LENGTH)?;
            let update = reader.bytes(length)?;
            updates.push(Self::from_ssz(update, fork_of_first_header(update, spec)?, spec)?);
            bytes = reader.rest();
        }
        Ok(updates)
    }
}

/// The fork at the slot of the first header in the SSZ of a bootstrap or an update. The header's offset comes first.
///
/// A Gloas header has a fixed length, so its slot comes first instead. As an offset, it points beyond the data.
pub(crate) fn fork_of_first_header(ssz: &[u8], spec: &ChainSpec) -> Result<Fork, LightClientError> {
    let mut reader = Reader::new(Container::Header, ssz);
    let offset = u32::from_le_bytes(reader.fixed()?.0);
    let mut header = Reader::new(Container::Header, ssz);
    if let Err(malformed) = header.bytes(usize::try_from(offset).unwrap_or(usize::MAX)) {
        // No chain has a slot of more than 32 bits.
        let is_slot = reader.fixed::<4>()?.is_zero();
        return Err(if is_slot { LightClientError::ForkUnsupported { fork: Fork::Gloas } } else { malformed });
    }
    spec.fork_at_slot(header.number()?)
}

fn bounded(json: &[u8], most: usize) -> Result<(), LightClientError> {
    if json.len() > most {
        return Err(LightClientError::TooLong { most, observed: json.len() });
    }
    Ok(())
}

fn parsed<T: DeserializeOwned>(json: &[u8]) -> Result<T, LightClientError> {
    serde_json::from_slice(json).map_err(|error| LightClientError::Json { line: error.line(), column: error.column() })
}

impl LightClientData for LightClientBootstrap {
    fn from_ssz(bytes: &[u8], fork: Fork, spec: &ChainSpec) -> Result<Self, LightClientError> {
        let branch = depth(supported(fork)?.indices().current_sync_committee);
        let mut reader = Reader::new(Container::Bootstrap, bytes);
        reader.offset()?;
        let current_sync_committee = SyncCommittee::read(&mut reader, spec.preset)?;
        let current_sync_committee_branch = reader.list(branch)?;
        let [header] = reader.variable()?;
        let header = LightClientHeader::from_ssz(header, fork)?;
        Ok(Self { header, current_sync_committee, current_sync_committee_branch })
    }

    fn to_ssz(&self, fork: Fork) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.variable(self.header.to_ssz(fork));
        self.current_sync_committee.write(&mut writer);
        writer.roots(&self.current_sync_committee_branch).finish()
    }

    fn check_lengths(&self, fork: Fork, preset: Preset) -> Result<(), LightClientError> {
        self.header.check_lengths()?;
        self.current_sync_committee.check_length(preset)?;
        check_branch(&self.current_sync_committee_branch, fork.indices().current_sync_committee)
    }
}

impl LightClientData for LightClientUpdate {
    fn from_ssz(bytes: &[u8], fork: Fork, spec: &ChainSpec) -> Result<Self, LightClientError> {
        let indices = supported(fork)?.indices();
        let mut reader = Reader::new(Container::Update, bytes);
        reader.offset()?;
        let next_sync_committee = SyncCommittee::read(&mut reader, spec.preset)?;
        let next_sync_committee_branch = reader.list(depth(indices.next_sync_committee))?;
        reader.offset()?;
        let finality_branch = reader.list(depth(indices.finalized_root))?;
        let sync_aggregate = SyncAggregate::read(&mut reader, spec.preset)?;
        let signature_slot = reader.number()?;
        let [attested, finalized] = reader.variable()?;
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

    fn to_ssz(&self, fork: Fork) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.variable(self.attested_header.to_ssz(fork));
        self.next_sync_committee.write(&mut writer);
        writer.roots(&self.next_sync_committee_branch);
        writer.variable(self.finalized_header.to_ssz(fork));
        writer.roots(&self.finality_branch);
        self.sync_aggregate.write(&mut writer);
        writer.number(self.signature_slot).finish()
    }

    fn check_lengths(&self, fork: Fork, preset: Preset) -> Result<(), LightClientError> {
        self.attested_header.check_lengths()?;
        self.finalized_header.check_lengths()?;
        self.next_sync_committee.check_length(preset)?;
        self.sync_aggregate.check_length(preset)?;
        check_branch(&self.next_sync_committee_branch, fork.indices().next_sync_committee)?;
        check_branch(&self.finality_branch, fork.indices().finalized_root)
    }
}

impl LightClientData for LightClientFinalityUpdate {
    fn from_ssz(bytes: &[u8], fork: Fork, spec: &ChainSpec) -> Result<Self, LightClientError> {
        let branch = depth(supported(fork)?.indices().finalized_root);
        let mut reader = Reader::new(Container::FinalityUpdate, bytes);
        reader.offset()?;
        reader.offset()?;
        let finality_branch = reader.list(branch)?;
        let sync_aggregate = SyncAggregate::read(&mut reader, spec.preset)?;
        let signature_slot = reader.number()?;
        let [attested, finalized] = reader.variable()?;
        let attested_header = LightClientHeader::from_ssz(attested, fork)?;
        let finalized_header = LightClientHeader::from_ssz(finalized, fork)?;
        Ok(Self { attested_header, finalized_header, finality_branch, sync_aggregate, signature_slot })
    }

    fn to_ssz(&self, fork: Fork) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.variable(self.attested_header.to_ssz(fork));
        writer.variable(self.finalized_header.to_ssz(fork));
        writer.roots(&self.finality_branch);
        self.sync_aggregate.write(&mut writer);
        writer.number(self.signature_slot).finish()
    }

    fn check_lengths(&self, fork: Fork, preset: Preset) -> Result<(), LightClientError> {
        self.attested_header.check_lengths()?;
        self.finalized_header.check_lengths()?;
        self.sync_aggregate.check_length(preset)?;
        check_branch(&self.finality_branch, fork.indices().finalized_root)
    }
}

impl LightClientData for LightClientOptimisticUpdate {
    fn from_ssz(bytes: &[u8], fork: Fork, spec: &ChainSpec) -> Result<Self, LightClientError> {
        let mut reader = Reader::new(Container::OptimisticUpdate, bytes);
        supported(fork)?;
        reader.offset()?;
        let sync_aggregate = SyncAggregate::read(&mut reader, spec.preset)?;
        let signature_slot = reader.number()?;
        let [attested] = reader.variable()?;
        let attested_header = LightClientHeader::from_ssz(attested, fork)?;
        Ok(Self { attested_header, sync_aggregate, signature_slot })
    }

    fn to_ssz(&self, fork: Fork) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.variable(self.attested_header.to_ssz(fork));
        self.sync_aggregate.write(&mut writer);
        writer.number(self.signature_slot).finish()
    }

    fn check_lengths(&self, _fork: Fork, preset: Preset) -> Result<(), LightClientError> {
        self.attested_header.check_lengths()?;
        self.sync_aggregate.check_length(preset)
    }
}

impl LightClientHeader {
    pub(crate) fn from_ssz(bytes: &[u8], fork: Fork) -> Result<Self, LightClientError> {
        let mut reader = Reader::new(Container::Header, bytes);
        let beacon = BeaconBlockHeader::read(&mut reader)?;
        reader.offset()?;
        let execution_branch = [reader.fixed()?, reader.fixed()?, reader.fixed()?, reader.fixed()?];
        let [execution] = reader.variable()?;
        let execution = ExecutionPayloadHeader::from_ssz(execution, fork)?;
        Ok(Self { beacon, execution, execution_branch })
    }

    pub(crate) fn to_ssz(&self, fork: Fork) -> Vec<u8> {
        let mut writer = Writer::default();
        self.beacon.write(&mut writer);
        writer.variable(self.execution.to_ssz(fork)).roots(&self.execution_branch).finish()
    }

    fn check_lengths(&self) -> Result<(), LightClientError> {
        check_extra_data(&self.execution.extra_data)
    }
}

impl BeaconBlockHeader {
    fn read(reader: &mut Reader<'_>) -> Result<Self, LightClientError> {
        Ok(Self {
            slot: reader.number()?,
            proposer_index: reader.number()?,
            parent_root: reader.fixed()?,
            state_root: reader.fixed()?,
            body_root: reader.fixed()?,
        })
    }

    fn write(&self, writer: &mut Writer) {
        writer.number(self.slot).number(self.proposer_index);
        writer.roots(&[self.parent_root, self.state_root, self.body_root]);
    }
}

impl ExecutionPayloadHeader {
    fn from_ssz(bytes: &[u8], fork: Fork) -> Result<Self, LightClientError> {
        let mut reader = Reader::new(Container::ExecutionPayloadHeader, bytes);
        let mut header = Self {
            parent_hash: reader.fixed()?,
            fee_recipient: reader.fixed()?.into(),
            state_root: reader.fixed()?,
            receipts_root: reader.fixed()?,
            logs_bloom: reader.fixed()?,
            prev_randao: reader.fixed()?,
            block_number: reader.number()?,
            gas_limit: reader.number()?,
            gas_used: reader.number()?,
            timestamp: reader.number()?,
            ..Self::default()
        };
        reader.offset()?;
        header.base_fee_per_gas = U256::from_le_bytes(reader.fixed::<32>()?.0);
        header.block_hash = reader.fixed()?;
        header.transactions_root = reader.fixed()?;
        header.withdrawals_root = reader.fixed()?;
        if fork.has_blob_gas() {
            header.blob_gas_used = reader.number()?;
            header.excess_blob_gas = reader.number()?;
        }
        let [extra_data] = reader.variable()?;
        check_extra_data(extra_data)?;
        header.extra_data = Bytes::copy_from_slice(extra_data);
        Ok(header)
    }

    fn to_ssz(&self, fork: Fork) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.bytes(self.parent_hash).bytes(self.fee_recipient).bytes(self.state_root).bytes(self.receipts_root);
        writer.bytes(self.logs_bloom).bytes(self.prev_randao).number(self.block_number);
        writer.number(self.gas_limit).number(self.gas_used).number(self.timestamp);
        writer.variable(self.extra_data.to_vec()).bytes(self.base_fee_per_gas.to_le_bytes::<32>());
        writer.bytes(self.block_hash).bytes(self.transactions_root).bytes(self.withdrawals_root);
        if fork.has_blob_gas() {
            writer.number(self.blob_gas_used).number(self.excess_blob_gas);
        }
        writer.finish()
    }
}

impl SyncCommittee {
    pub(crate) fn read(reader: &mut Reader<'_>, preset: Preset) -> Result<Self, LightClientError> {
        Ok(Self { pubkeys: reader.list(preset.sync_committee_size)?, aggregate_pubkey: reader.fixed()? })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        for key in self.pubkeys.iter().chain([&self.aggregate_pubkey]) {
            writer.bytes(key);
        }
    }

    pub(crate) fn check_length(&self, preset: Preset) -> Result<(), LightClientError> {
        let (expected, observed) = (preset.sync_committee_size, self.pubkeys.len());
        if observed != expected {
            return Err(LightClientError::CommitteeSize { expected, observed });
        }
        Ok(())
    }
}

impl SyncAggregate {
    fn read(reader: &mut Reader<'_>, preset: Preset) -> Result<Self, LightClientError> {
        let sync_committee_bits = Bytes::copy_from_slice(reader.bytes(preset.bits_length())?);
        Ok(Self { sync_committee_bits, sync_committee_signature: reader.fixed()? })
    }

    fn write(&self, writer: &mut Writer) {
        writer.bytes(&self.sync_committee_bits).bytes(self.sync_committee_signature);
    }

    pub(crate) fn check_length(&self, preset: Preset) -> Result<(), LightClientError> {
        let (expected, observed) = (preset.bits_length(), self.sync_committee_bits.len());
        if observed != expected {
            return Err(LightClientError::BitsLength { expected, observed });
        }
        Ok(())
    }
}

fn check_extra_data(extra_data: &[u8]) -> Result<(), LightClientError> {
    let observed = extra_data.len();
    if observed > MAX_EXTRA_DATA && !clresolve_core::mutant!("beacon-extra-data") {
        return Err(LightClientError::ExtraDataTooLong { observed });
    }
    Ok(())
}

fn check_branch(branch: &[B256], index: u64) -> Result<(), LightClientError> {
    let (expected, observed) = (depth(index), branch.len());
    if observed != expected {
        return Err(LightClientError::BranchLength { expected, observed });
    }
    Ok(())
}
