//! ENSv2 in the builder, which deploys the contracts of ENSv2 when the first name migrates.

use alloy_primitives::{Address, B256, U256, address};
use serde::Deserialize;

use super::abi::RecordResolver;

/// The address of the contract that migrates names from ENSv1. The sandbox deploys no code there, because that contract
/// sends no transaction in it.
pub(super) const MIGRATION_CONTROLLER: Address = address!("00000000000000000000000000000000005a4d82");

/// What the registry of ENSv1 still contains of a name that has migrated to ENSv2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ensv1Remnant {
    /// Its previous owner and resolver, as for names below a migrated name.
    Kept,
    /// The migration controller as its owner, and no resolver.
    Taken,
    /// Nothing.
    Cleared,
}

#[derive(Clone, Copy)]
pub(super) struct Ensv2Deployment {
    /// The resolver that keys records by id.
    pub(super) resolver: Address,
    /// Number of record ids in use, which are counted from 1.
    records: u64,
}

impl Ensv2Deployment {
    pub(super) const fn new(resolver: Address) -> Self {
        Self { resolver, records: 0 }
    }

    pub(super) const fn allocate_record_id(&mut self) -> u64 {
        self.records += 1;
        self.records
    }
}

/// The call that links a name to a record.
pub(super) fn record_link_call(node: B256, dns_encoded: Vec<u8>, record: u64) -> RecordResolver::linkCall {
    RecordResolver::linkCall { node, name: dns_encoded.into(), recordId: U256::from(record) }
}
