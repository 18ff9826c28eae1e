//! Recorded proofs: nodes of tries and code, as a bundle holds them. No I/O.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, B256, Bytes};

/// What was proven in a block, and the trie nodes and code that prove it. Its member names are part of the bundle format.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ProofNodes {
    /// The proven accounts, with their slots.
    pub(crate) accounts: BTreeMap<Address, BTreeSet<B256>>,
    /// The nodes of their paths in the state trie and the storage tries, each once.
    pub(crate) nodes: BTreeSet<Bytes>,
    /// The code of those accounts, each once.
    pub(crate) codes: BTreeSet<Bytes>,
}

impl ProofNodes {
    /// Adds the proofs of another session of the same block.
    pub fn extend(&mut self, other: Self) {
        for (address, slots) in other.accounts {
            self.accounts.entry(address).or_default().extend(slots);
        }
        self.nodes.extend(other.nodes);
        self.codes.extend(other.codes);
    }
}
