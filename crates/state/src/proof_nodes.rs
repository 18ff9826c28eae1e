//! Recorded proofs: trie nodes and contract code, in the form used in bundles. No I/O.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, B256, Bytes};

/// The state proven at one block, and the trie nodes and code that prove it. The field names are part of the bundle
/// format.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct StateWitness {
    /// The proven accounts, with their proven slots.
    pub(crate) accounts: BTreeMap<Address, BTreeSet<B256>>,
    /// The nodes on their paths in the state trie and the storage tries, without duplicates.
    pub(crate) nodes: BTreeSet<Bytes>,
    /// The code of those accounts, without duplicates.
    pub(crate) codes: BTreeSet<Bytes>,
}

impl StateWitness {
    /// Adds the proofs of another session at the same block.
    pub fn extend(&mut self, other: Self) {
        for (address, slots) in other.accounts {
            self.accounts.entry(address).or_default().extend(slots);
        }
        self.nodes.extend(other.nodes);
        self.codes.extend(other.codes);
    }
}
