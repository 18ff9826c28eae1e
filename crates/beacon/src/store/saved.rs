//! The store as bytes, for a file. With it, a restart needs no new checkpoint.
//!
//! The digest at the end detects damage, not forgery: anyone who can write the file can replace the trusted headers.

use alloy_primitives::B256;
use sha2::{Digest as _, Sha256};

use super::LightClientStore;
use crate::committee::ProvenSyncCommittee;
use crate::containers::{LightClientHeader, SyncCommittee};
use crate::error::{LightClientError, SszContainerKind, UpdateHeaderRole};
use crate::fork::ConsensusFork;
use crate::header::check_execution_header;
use crate::spec::ChainSpec;
use crate::ssz::{SszReader, SszWriter};

/// Magic number and version of the format.
const FORMAT: &[u8; 8] = b"clbeacn\x01";

/// The layout in which headers are written; those of other forks fit into it.
const LAYOUT: ConsensusFork = ConsensusFork::Fulu;

const DIGEST_LENGTH: usize = 32;

impl LightClientStore {
    /// Encodes the verified state. Whoever can change these bytes decides what is trusted.
    pub fn to_bytes(&self) -> Vec<u8> {
        let fork_version = self.spec.fork_version_at_slot(self.finalized.beacon.slot).unwrap_or_default();
        let mut writer = SszWriter::default();
        writer
            .write_bytes(FORMAT)
            .write_bytes(self.spec.genesis_validators_root)
            .write_bytes(fork_version)
            .write_bytes(self.checkpoint);
        writer.write_variable_field(self.finalized.to_ssz(LAYOUT)).write_variable_field(self.optimistic.to_ssz(LAYOUT));
        writer.write_bytes([u8::from(self.next_committee.is_some())]);
        self.current_committee.committee().write_ssz(&mut writer);
        if let Some(next) = &self.next_committee {
            next.committee().write_ssz(&mut writer);
        }
        let mut bytes = writer.finish();
        bytes.extend(Sha256::digest(&bytes));
        bytes
    }

    /// Reads a state that [`Self::to_bytes`] wrote for the same network, forks and checkpoint. For live sync, call
    /// [`Self::check_finalized_header_age`] next.
    ///
    /// # Errors
    /// [`LightClientError::SavedVersion`], [`LightClientError::SavedDamaged`], [`LightClientError::SavedNetwork`],
    /// [`LightClientError::SavedFork`], [`LightClientError::SavedCheckpoint`], [`LightClientError::SavedCommittee`],
    /// [`LightClientError::SavedOrder`] and others.
    pub fn from_bytes(bytes: &[u8], spec: ChainSpec, checkpoint: B256) -> Result<Self, LightClientError> {
        let mut reader = SszReader::new(SszContainerKind::SavedState, content_with_valid_digest(bytes)?);
        reader.read_bytes(FORMAT.len())?;
        let (genesis_validators_root, fork_version): (B256, [u8; 4]) =
            (reader.read_fixed_bytes()?, reader.read_fixed_bytes()?.0);
        check_saved_network(genesis_validators_root, &spec)?;
        check_saved_checkpoint(reader.read_fixed_bytes()?, checkpoint)?;
        reader.read_offset()?;
        reader.read_offset()?;
        let [has_next] = reader.read_fixed_bytes()?.0;
        let current_committee = read_saved_committee(&mut reader, &spec)?;
        let next_committee = if has_next == 1 { Some(read_saved_committee(&mut reader, &spec)?) } else { None };
        let [finalized, optimistic] = reader.into_variable_fields()?;
        let finalized = read_saved_header(finalized, UpdateHeaderRole::Finalized, &spec)?;
        let optimistic = read_saved_header(optimistic, UpdateHeaderRole::Attested, &spec)?;
        if Some(fork_version) != spec.fork_version_at_slot(finalized.beacon.slot)
            && !clresolve_core::mutant!("beacon-saved-fork")
        {
            return Err(LightClientError::SavedFork);
        }
        if optimistic.beacon.slot < finalized.beacon.slot && !clresolve_core::mutant!("beacon-saved-order") {
            return Err(LightClientError::SavedOrder);
        }
        Ok(Self { spec, checkpoint, finalized, optimistic, current_committee, next_committee })
    }
}

/// The bytes before the digest.
fn content_with_valid_digest(bytes: &[u8]) -> Result<&[u8], LightClientError> {
    if !bytes.starts_with(FORMAT) {
        return Err(LightClientError::SavedVersion);
    }
    let length = bytes.len().saturating_sub(DIGEST_LENGTH).max(FORMAT.len());
    let (content, digest) = bytes.split_at(length);
    if digest != Sha256::digest(content).as_slice() && !clresolve_core::mutant!("beacon-saved-digest") {
        return Err(LightClientError::SavedDamaged);
    }
    Ok(content)
}

fn check_saved_network(observed: B256, spec: &ChainSpec) -> Result<(), LightClientError> {
    let expected = spec.genesis_validators_root;
    if observed != expected && !clresolve_core::mutant!("beacon-saved-network") {
        return Err(LightClientError::SavedNetwork { expected, observed });
    }
    Ok(())
}

fn check_saved_checkpoint(observed: B256, expected: B256) -> Result<(), LightClientError> {
    if observed != expected && !clresolve_core::mutant!("beacon-saved-checkpoint") {
        return Err(LightClientError::SavedCheckpoint { expected, observed });
    }
    Ok(())
}

fn read_saved_committee(reader: &mut SszReader<'_>, spec: &ChainSpec) -> Result<ProvenSyncCommittee, LightClientError> {
    let committee = ProvenSyncCommittee::new(SyncCommittee::read_ssz(reader, spec.preset)?, spec.preset)?;
    if !committee.has_valid_aggregate_key()? && !clresolve_core::mutant!("beacon-saved-committee") {
        return Err(LightClientError::SavedCommittee);
    }
    Ok(committee)
}

fn read_saved_header(
    bytes: &[u8],
    role: UpdateHeaderRole,
    spec: &ChainSpec,
) -> Result<LightClientHeader, LightClientError> {
    let header = LightClientHeader::from_ssz(bytes, LAYOUT)?;
    check_execution_header(&header, role, spec)?;
    Ok(header)
}
