//! The official light-client vectors of consensus-specs, step by step.

use std::fs;
use std::path::Path;

use alloy_primitives::B256;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::data;
use super::specification::SpecificationStore;
use crate::codec::LightClientCodec;
use crate::containers::{LightClientHeader, LightClientUpdate};
use crate::fork::ConsensusFork;
use crate::spec::{BeaconPreset, ChainSpec, ForkActivation};
use crate::store::LightClientStore;

#[derive(Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
struct Config {
    preset_base: String,
    seconds_per_slot: u64,
    min_genesis_time: u64,
    capella_fork_epoch: u64,
    capella_fork_version: String,
    deneb_fork_epoch: u64,
    deneb_fork_version: String,
    electra_fork_epoch: Option<u64>,
    electra_fork_version: Option<String>,
}

#[derive(Deserialize)]
struct Meta {
    genesis_validators_root: B256,
    trusted_block_root: B256,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    ProcessUpdate { update: String, current_slot: u64, checks: Checks },
    ForceUpdate { current_slot: u64, checks: Checks },
}

#[derive(Deserialize)]
struct Checks {
    finalized_header: ExpectedHeader,
    optimistic_header: ExpectedHeader,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
struct ExpectedHeader {
    slot: u64,
    beacon_root: B256,
    execution_root: B256,
}

/// A vector, ready to run.
pub(super) struct Vector {
    pub(super) fork: ConsensusFork,
    pub(super) store: LightClientStore,
    steps: Vec<Step>,
    folder: std::path::PathBuf,
}

impl Vector {
    pub(super) fn open(folder: &Path, fork: ConsensusFork) -> Self {
        let meta: Meta = yaml(&folder.join("meta.yaml"));
        let spec = chain_spec(&yaml(&folder.join("config.yaml")), meta.genesis_validators_root);
        let bootstrap = LightClientCodec::from_ssz(&ssz(&folder.join("bootstrap.ssz_snappy")), fork, &spec);
        let store = LightClientStore::from_bootstrap(spec, meta.trusted_block_root, bootstrap.expect("SSZ"));
        Self {
            fork,
            store: store.expect("a valid bootstrap"),
            steps: yaml(&folder.join("steps.yaml")),
            folder: folder.to_owned(),
        }
    }

    /// The SSZ of the first update, and its current slot.
    pub(super) fn first_update(&self) -> (Vec<u8>, u64) {
        let first = self.steps.iter().find_map(|step| match step {
            Step::ProcessUpdate { update, current_slot, .. } => Some((self.update(update), *current_slot)),
            Step::ForceUpdate { .. } => None,
        });
        first.expect("a vector has an update")
    }

    fn update(&self, name: &str) -> Vec<u8> {
        ssz(&self.folder.join(format!("{name}.ssz_snappy")))
    }

    /// Runs all steps, and returns how many these are.
    fn run(&self) -> usize {
        let mut store = SpecificationStore::new(self.store.clone());
        for (number, step) in self.steps.iter().enumerate() {
            let checks = self.run_step(&mut store, step);
            let fork = store.store.spec().fork_at_slot(store.store.finalized.beacon.slot).expect("a supported fork");
            let observed = [&store.store.finalized, &store.store.optimistic].map(|header| observed(header, fork));
            let place = format!("{}, step {number}", self.folder.display());
            assert_eq!(observed[0], checks.finalized_header, "{place}");
            assert_eq!(observed[1], checks.optimistic_header, "{place}");
        }
        self.steps.len()
    }

    fn run_step<'a>(&self, store: &mut SpecificationStore, step: &'a Step) -> &'a Checks {
        match step {
            Step::ProcessUpdate { update, current_slot, checks } => {
                let bytes = self.update(update);
                let decoded = LightClientUpdate::from_ssz(&bytes, self.fork, store.store.spec()).expect("SSZ");
                assert_eq!(decoded.to_ssz(self.fork), bytes);
                store.process_update(&decoded, *current_slot).unwrap_or_else(|error| panic!("{update}: {error}"));
                checks
            }
            Step::ForceUpdate { current_slot, checks } => {
                store.force_update(*current_slot).expect("a valid update");
                checks
            }
        }
    }
}

#[test]
fn official_vectors_hold_step_by_step() {
    let Some(folder) = data::folder() else { return };
    let mut vectors = 0;
    for fork in [ConsensusFork::Deneb, ConsensusFork::Electra] {
        for entry in fs::read_dir(folder.join("spec").join(fork.name())).expect("a folder of vectors") {
            let path = entry.expect("a readable folder").path();
            println!("{}: {} steps hold", path.display(), Vector::open(&path, fork).run());
            vectors += 1;
        }
    }
    assert_eq!(vectors, 5, "the folder has other vectors than this test knows");
}

fn observed(header: &LightClientHeader, fork: ConsensusFork) -> ExpectedHeader {
    ExpectedHeader {
        slot: header.beacon.slot,
        beacon_root: header.beacon.hash_tree_root(),
        execution_root: header.execution.hash_tree_root(fork),
    }
}

fn chain_spec(config: &Config, genesis_validators_root: B256) -> ChainSpec {
    assert_eq!(config.preset_base, "minimal");
    let mut forks = vec![
        activation(ConsensusFork::Capella, config.capella_fork_epoch, &config.capella_fork_version),
        activation(ConsensusFork::Deneb, config.deneb_fork_epoch, &config.deneb_fork_version),
    ];
    if let (Some(epoch), Some(version)) = (config.electra_fork_epoch, &config.electra_fork_version) {
        forks.push(activation(ConsensusFork::Electra, epoch, version));
    }
    ChainSpec {
        preset: BeaconPreset::MINIMAL,
        seconds_per_slot: config.seconds_per_slot,
        genesis_time: config.min_genesis_time,
        genesis_validators_root,
        forks,
    }
}

fn activation(fork: ConsensusFork, epoch: u64, version: &str) -> ForkActivation {
    let version = version.strip_prefix("0x").expect("hexadecimal digits");
    let version = u32::from_str_radix(version, 16).expect("hexadecimal digits").to_be_bytes();
    ForkActivation { fork, epoch, version }
}

fn yaml<T: DeserializeOwned>(path: &Path) -> T {
    let text = fs::read_to_string(path).expect("a readable file");
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn ssz(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).expect("a readable file");
    snap::raw::Decoder::new().decompress_vec(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
