//! The parameters of a network: preset, fork schedule, genesis.

use std::time::Duration;

use alloy_primitives::{B256, b256};

use crate::error::LightClientError;
use crate::fork::ConsensusFork;
use crate::hash;

/// `DOMAIN_SYNC_COMMITTEE`.
const DOMAIN_SYNC_COMMITTEE: [u8; 4] = [7, 0, 0, 0];

/// Sizes that are fixed when a network is compiled. None is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeaconPreset {
    /// `SYNC_COMMITTEE_SIZE`; a multiple of 8.
    pub sync_committee_size: usize,
    /// `SLOTS_PER_EPOCH`.
    pub slots_per_epoch: u64,
    /// `EPOCHS_PER_SYNC_COMMITTEE_PERIOD`.
    pub epochs_per_sync_committee_period: u64,
}

impl BeaconPreset {
    /// The preset of mainnet and its public test networks.
    pub const MAINNET: Self =
        Self { sync_committee_size: 512, slots_per_epoch: 32, epochs_per_sync_committee_period: 256 };

    /// The preset of small test networks.
    pub const MINIMAL: Self = Self { sync_committee_size: 32, slots_per_epoch: 8, epochs_per_sync_committee_period: 8 };

    /// Length of the participation bits in bytes.
    pub(crate) const fn participation_bits_length(self) -> usize {
        self.sync_committee_size / 8
    }
}

/// When a fork begins, and the version that signatures are bound to from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForkActivation {
    /// The fork.
    pub fork: ConsensusFork,
    /// Its first epoch.
    pub epoch: u64,
    /// Its fork version.
    pub version: [u8; 4],
}

/// The constants of a network that a light client needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainSpec {
    /// Sizes.
    pub preset: BeaconPreset,
    /// `SECONDS_PER_SLOT`; not 0.
    pub seconds_per_slot: u64,
    /// Start of slot 0 in seconds since 1970.
    pub genesis_time: u64,
    /// Root of the validators at genesis. Signatures are bound to it.
    pub genesis_validators_root: B256,
    /// The forks from Capella on, in any order. A fork that is not listed never begins.
    pub forks: Vec<ForkActivation>,
}

impl ChainSpec {
    /// Ethereum mainnet.
    pub fn mainnet() -> Self {
        let fork = |fork, epoch, version| ForkActivation { fork, epoch, version: [version, 0, 0, 0] };
        Self {
            preset: BeaconPreset::MAINNET,
            seconds_per_slot: 12,
            genesis_time: 1_606_824_023,
            genesis_validators_root: b256!("0x4b363db94e286120d76eb905340fdd4e54bfe9f06bf33ff6cf5ad27f511bfe95"),
            forks: vec![
                fork(ConsensusFork::Capella, 194_048, 3),
                fork(ConsensusFork::Deneb, 269_568, 4),
                fork(ConsensusFork::Electra, 364_032, 5),
                fork(ConsensusFork::Fulu, 411_392, 6),
            ],
        }
    }

    /// The network of the embedded sandbox. Its keys are public.
    ///
    /// A slot is the time in seconds since 1970, so that blocks with any two timestamps have different slots. A
    /// committee is as small as in [`BeaconPreset::MINIMAL`]. A period has 34 minutes: the sandbox finalizes a block
    /// after 13 minutes, and a light client accepts only headers of the finalized period and the next one.
    pub fn sandbox() -> Self {
        Self {
            preset: BeaconPreset { slots_per_epoch: 32, epochs_per_sync_committee_period: 64, ..BeaconPreset::MINIMAL },
            seconds_per_slot: 1,
            genesis_time: 0,
            genesis_validators_root: B256::repeat_byte(0x5a),
            forks: vec![ForkActivation { fork: ConsensusFork::Electra, epoch: 0, version: *b"sbox" }],
        }
    }

    /// The slot at a time in seconds since 1970; 0 before genesis.
    pub const fn slot_at_time(&self, unix_seconds: u64) -> u64 {
        unix_seconds.saturating_sub(self.genesis_time) / self.seconds_per_slot
    }

    /// Start of a slot in seconds since 1970.
    pub const fn slot_start_time(&self, slot: u64) -> u64 {
        self.genesis_time.saturating_add(slot.saturating_mul(self.seconds_per_slot))
    }

    /// How long ago a slot began; zero if it is in the future.
    pub const fn slot_age(&self, slot: u64, unix_seconds: u64) -> Duration {
        Duration::from_secs(unix_seconds.saturating_sub(self.slot_start_time(slot)))
    }

    /// The sync committee period that a slot is in.
    pub const fn period_at_slot(&self, slot: u64) -> u64 {
        slot / self.preset.slots_per_epoch / self.preset.epochs_per_sync_committee_period
    }

    /// The fork at a slot. It is one that this crate verifies.
    ///
    /// # Errors
    /// [`LightClientError::BeforeCapella`], [`LightClientError::ForkUnsupported`].
    pub fn fork_at_slot(&self, slot: u64) -> Result<ConsensusFork, LightClientError> {
        let activation = self.activation_at_slot(slot).ok_or(LightClientError::BeforeCapella { slot })?;
        require_supported_fork(activation.fork)
    }

    /// The fork version at a slot; `None` before Capella.
    pub(crate) fn fork_version_at_slot(&self, slot: u64) -> Option<[u8; 4]> {
        self.activation_at_slot(slot).map(|activation| activation.version)
    }

    fn activation_at_slot(&self, slot: u64) -> Option<&ForkActivation> {
        let epoch = slot / self.preset.slots_per_epoch;
        self.forks.iter().filter(|activation| activation.epoch <= epoch).max_by_key(|activation| activation.fork)
    }

    /// What a sync committee signs for a header with this root at `signature_slot`. It attests the slot before, whose
    /// fork counts.
    pub(crate) fn signing_root(&self, header_root: B256, signature_slot: u64) -> Result<B256, LightClientError> {
        let slot = signature_slot.saturating_sub(1);
        let version = self.fork_version_at_slot(slot).ok_or(LightClientError::BeforeCapella { slot })?;
        let fork_data_root = hash::hash_pair(B256::right_padding_from(&version), self.genesis_validators_root);
        let mut domain = [0; 32];
        domain[..4].copy_from_slice(&DOMAIN_SYNC_COMMITTEE);
        domain[4..].copy_from_slice(&fork_data_root[..28]);
        Ok(hash::hash_pair(header_root, B256::new(domain)))
    }
}

/// The fork, unless its specification is a draft.
pub(crate) fn require_supported_fork(fork: ConsensusFork) -> Result<ConsensusFork, LightClientError> {
    if fork >= ConsensusFork::Gloas && !clresolve_core::mutant!("beacon-draft-forks") {
        return Err(LightClientError::ForkUnsupported { fork });
    }
    Ok(fork)
}
