//! The sync committees and their signatures.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use clresolve_beacon::testing::{BeaconBlock, SigningSyncCommittee};
use clresolve_beacon::{BeaconPreset, ChainSpec, SyncAggregate, SyncCommittee};

use super::behaviour::SandboxBeaconBehaviour;

const MEMBERS: usize = BeaconPreset::MINIMAL.sync_committee_size;

/// One member less than two thirds.
const TOO_FEW: usize = (MEMBERS * 2).div_ceil(3) - 1;

/// The public keys of [`COMMITTEES`]. The checkpoint needs no others, so that most sandboxes derive no key.
static PUBLIC_KEYS: LazyLock<[SyncCommittee; 2]> =
    LazyLock::new(|| serde_json::from_str(include_str!("committees.json")).expect("the keys of two committees"));

/// The committees, which take turns: each signs for every second period.
static COMMITTEES: LazyLock<[SigningSyncCommittee; 2]> = LazyLock::new(|| [0, 1].map(signing_committee));

/// A committee that signs for no period.
static OTHER_COMMITTEE: LazyLock<SigningSyncCommittee> = LazyLock::new(|| signing_committee(2));

fn signing_committee(seed: u64) -> SigningSyncCommittee {
    SigningSyncCommittee::new(seed, MEMBERS)
}

const fn item_for_period<T>([even, odd]: &[T; 2], period: u64) -> &T {
    if period.is_multiple_of(2) { even } else { odd }
}

/// The committee that signs in a period.
pub(super) fn period_committee(period: u64) -> SyncCommittee {
    item_for_period(&PUBLIC_KEYS, period).clone()
}

/// Signs blocks, and keeps honest signatures.
#[derive(Default)]
pub(super) struct SandboxBeaconSigner {
    signatures: BTreeMap<u64, SyncAggregate>,
}

impl SandboxBeaconSigner {
    /// The signature for a block of the chain, in the slot after it.
    pub(super) fn sign_block(
        &mut self,
        block: &BeaconBlock,
        behaviour: SandboxBeaconBehaviour,
        spec: &ChainSpec,
    ) -> SyncAggregate {
        match behaviour {
            SandboxBeaconBehaviour::LowParticipation
            | SandboxBeaconBehaviour::OtherCommittee
            | SandboxBeaconBehaviour::OtherFork => block_signature(block, behaviour, spec),
            _ => {
                let signatures = self.signatures.entry(block.header.beacon.slot);
                signatures.or_insert_with(|| block_signature(block, behaviour, spec)).clone()
            }
        }
    }
}

/// The signature for a block, in the slot after it.
pub(super) fn block_signature(
    block: &BeaconBlock,
    behaviour: SandboxBeaconBehaviour,
    spec: &ChainSpec,
) -> SyncAggregate {
    let signature_slot = block.header.beacon.slot + 1;
    let committee = match behaviour {
        SandboxBeaconBehaviour::OtherCommittee => &OTHER_COMMITTEE,
        _ => item_for_period(&COMMITTEES, spec.period_at_slot(signature_slot)),
    };
    let participants = if behaviour == SandboxBeaconBehaviour::LowParticipation { TOO_FEW } else { MEMBERS };
    let mut spec = spec.clone();
    if behaviour == SandboxBeaconBehaviour::OtherFork {
        spec.forks.iter_mut().for_each(|fork| fork.version = *b"fork");
    }
    let signed = committee.sign_header(&block.header.beacon, signature_slot, participants, &spec);
    signed.expect("the chain begins with Electra")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_keys_are_those_of_the_committees() {
        let derived = COMMITTEES.each_ref().map(|committee| committee.committee().clone());
        assert_eq!(*PUBLIC_KEYS, derived, "expected: {}", serde_json::to_string_pretty(&derived).unwrap());
    }
}
