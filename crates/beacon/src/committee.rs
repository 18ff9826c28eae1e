//! A proven sync committee, and the verification of its signatures.

use std::sync::OnceLock;

use alloy_primitives::B256;
use blst::min_pk::{AggregatePublicKey, PublicKey, Signature};
use blst::{BLST_ERROR, Pairing, blst_p1_affine, blst_p2_affine};

use crate::containers::{BlsPublicKeyBytes, SyncAggregate, SyncCommittee};
use crate::error::LightClientError;
use crate::spec::BeaconPreset;

/// The ciphersuite of Ethereum's signatures.
pub(crate) const CIPHERSUITE: &[u8] = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";

/// A committee that was proven under a state root. Its keys need no subgroup check: the chain accepted each with a
/// proof of possession, which includes that check. The aggregate key is the sum of the keys, which the chain computed.
#[derive(Clone, Debug)]
pub(crate) struct ProvenSyncCommittee {
    committee: SyncCommittee,
    sum: AggregatePublicKey,
    /// The keys that were needed so far. Decompressing one takes about as long as adding a hundred.
    keys: Vec<OnceLock<PublicKey>>,
}

impl ProvenSyncCommittee {
    pub(crate) fn new(committee: SyncCommittee, preset: BeaconPreset) -> Result<Self, LightClientError> {
        committee.check_length(preset)?;
        let sum = decompress_key(&committee.aggregate_pubkey).ok_or(LightClientError::AggregateKey)?;
        let keys = vec![OnceLock::new(); committee.pubkeys.len()];
        Ok(Self { committee, sum: AggregatePublicKey::from_public_key(&sum), keys })
    }

    pub(crate) const fn committee(&self) -> &SyncCommittee {
        &self.committee
    }

    /// Whether the aggregate key is the sum of the keys. This decompresses all of them.
    pub(crate) fn has_valid_aggregate_key(&self) -> Result<bool, LightClientError> {
        let sum = self.sum_keys(0..self.keys.len())?;
        Ok(sum.is_some_and(|sum| sum.to_public_key() == self.sum.to_public_key()))
    }

    /// Verifies the signature of the members whose bits are set (`FastAggregateVerify`).
    pub(crate) fn verify_signature(
        &self,
        aggregate: &SyncAggregate,
        signing_root: B256,
    ) -> Result<(), LightClientError> {
        let signature = Signature::uncompress(aggregate.sync_committee_signature.as_slice())
            .map_err(|_| LightClientError::SignatureMalformed)?;
        let key = self.participants_aggregate_key(aggregate)?.ok_or(LightClientError::Signature)?;
        if !is_valid_signature(&key, &signature, signing_root) && !clresolve_core::mutant!("beacon-signature") {
            return Err(LightClientError::Signature);
        }
        Ok(())
    }

    /// The sum of the participants' keys. For a majority, it subtracts the keys of the others from the aggregate key.
    fn participants_aggregate_key(&self, aggregate: &SyncAggregate) -> Result<Option<PublicKey>, LightClientError> {
        let is_majority = aggregate.participant_count() * 2 > self.keys.len();
        let chosen = (0..self.keys.len()).filter(|member| aggregate.has_signed(*member) != is_majority);
        let chosen = self.sum_keys(chosen)?;
        if !is_majority {
            return Ok(chosen.map(|sum| sum.to_public_key()));
        }
        let mut participants = self.sum;
        if let Some(others) = chosen {
            participants.sub_aggregate(&others);
        }
        Ok(Some(participants.to_public_key()))
    }

    fn sum_keys(&self, members: impl Iterator<Item = usize>) -> Result<Option<AggregatePublicKey>, LightClientError> {
        let keys = members.map(|member| self.member_key(member)).collect::<Result<Vec<_>, _>>()?;
        Ok(AggregatePublicKey::aggregate(&keys, false).ok())
    }

    fn member_key(&self, position: usize) -> Result<&PublicKey, LightClientError> {
        if let Some(key) = self.keys[position].get() {
            return Ok(key);
        }
        let key = decompress_key(&self.committee.pubkeys[position]).ok_or(LightClientError::PublicKey { position })?;
        Ok(self.keys[position].get_or_init(|| key))
    }
}

fn decompress_key(key: &BlsPublicKeyBytes) -> Option<PublicKey> {
    PublicKey::uncompress(key.as_slice()).ok()
}

/// Verifies in this thread: the methods of [`Signature`] start a thread pool.
fn is_valid_signature(key: &PublicKey, signature: &Signature, message: B256) -> bool {
    let mut pairing = Pairing::new(true, CIPHERSUITE);
    let (key, signature) = (blst_p1_affine::from(*key), blst_p2_affine::from(*signature));
    if pairing.aggregate(&key, false, &signature, true, message.as_slice(), &[]) != BLST_ERROR::BLST_SUCCESS {
        return false;
    }
    pairing.commit();
    pairing.finalverify(None)
}
