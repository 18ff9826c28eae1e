//! The cached entries by what they were read from: nodes and resolvers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

use alloy_primitives::{Address, B256, keccak256};

use crate::cache::CacheKey;
use crate::chain::{Change, Source};
use crate::name::EnsName;
use crate::verdict::Verdict;

/// Most labels of a name that is followed, so that the index has a bounded number of nodes for each entry. Longer names
/// keep their time.
pub(super) const MAX_LABELS: usize = 10;

/// What is followed.
#[derive(Default)]
pub(super) struct Index {
    entries: HashMap<u64, Followed>,
    /// By the nodes of the name and its ancestors.
    by_node: HashMap<B256, BTreeSet<u64>>,
    /// By the node whose records the resolver holds for the name: its own, or that of the ancestor that answers.
    by_records: HashMap<B256, BTreeSet<u64>>,
    /// Of how many entries each is the resolver.
    resolvers: BTreeMap<Address, usize>,
}

/// An entry of the cache.
struct Followed {
    key: CacheKey,
    /// The nodes of the name and its ancestors, the name's own first.
    nodes: Vec<B256>,
    records: B256,
    resolver: Option<Address>,
    /// Height up to which the chain was read.
    newest: Option<u64>,
}

impl Index {
    pub(super) fn add(&mut self, entry: u64, key: &CacheKey, verdict: &Verdict, newest: Option<u64>) {
        let nodes = lineage(&key.name);
        let Some(own) = nodes.first().copied().filter(|_| nodes.len() <= MAX_LABELS) else { return };
        let anchor = verdict.anchor.as_ref();
        let resolver = anchor.and_then(|anchor| anchor.resolver.as_deref()?.parse().ok());
        let ancestor = anchor.and_then(|anchor| EnsName::parse(anchor.wildcard.as_deref()?).ok());
        let records = ancestor.map_or(own, |ancestor| ancestor.node());
        for node in &nodes {
            self.by_node.entry(*node).or_default().insert(entry);
        }
        self.by_records.entry(records).or_default().insert(entry);
        if let Some(resolver) = resolver {
            *self.resolvers.entry(resolver).or_default() += 1;
        }
        self.entries.insert(entry, Followed { key: key.clone(), nodes, records, resolver, newest });
    }

    pub(super) fn remove(&mut self, entry: u64) {
        let Some(followed) = self.entries.remove(&entry) else { return };
        for node in &followed.nodes {
            remove_from(&mut self.by_node, node, entry);
        }
        remove_from(&mut self.by_records, &followed.records, entry);
        let Some(resolver) = followed.resolver else { return };
        let count = self.resolvers.get(&resolver).map_or(0, |count| count - 1);
        if count == 0 {
            self.resolvers.remove(&resolver);
        } else {
            self.resolvers.insert(resolver, count);
        }
    }

    /// The names that a change concerns: those that were read before its block, or on a chain that is no more
    /// (`is_new_chain`).
    pub(super) fn concerned(&self, change: &Change, is_new_chain: bool) -> BTreeSet<EnsName> {
        let (entries, resolver) = match change.source {
            Source::Registration => (self.by_node.get(&change.node), None),
            Source::Resolver(resolver) => (self.by_records.get(&change.node), Some(resolver)),
        };
        let followed = entries.into_iter().flatten().filter_map(|entry| self.entries.get(entry));
        let is_its = |followed: &&Followed| {
            resolver.is_none() || followed.resolver == resolver || clresolve_core::mutant!("any-address-hints")
        };
        let is_news = |followed: &&Followed| is_new_chain || followed.newest.is_none_or(|newest| newest < change.block);
        followed.filter(is_its).filter(is_news).map(|followed| followed.key.name.clone()).collect()
    }

    /// The places whose changes concern an entry.
    pub(super) fn places(&self, entry: u64) -> Vec<(Source, B256)> {
        let Some(followed) = self.entries.get(&entry) else { return Vec::new() };
        let registrations = followed.nodes.iter().map(|node| (Source::Registration, *node));
        let records = followed.resolver.map(|resolver| (Source::Resolver(resolver), followed.records));
        registrations.chain(records).collect()
    }

    /// The keys under which verdicts on a name are cached.
    pub(super) fn keys_of(&self, name: &EnsName) -> Vec<CacheKey> {
        self.of(name).map(|(_, followed)| followed.key.clone()).collect()
    }

    /// Whether a verdict on the name is cached that is older than `ticket`.
    pub(super) fn has_before(&self, name: &EnsName, ticket: u64) -> bool {
        self.of(name).any(|(entry, _)| entry < ticket)
    }

    pub(super) fn names(&self) -> BTreeSet<EnsName> {
        self.entries.values().map(|followed| followed.key.name.clone()).collect()
    }

    pub(super) fn resolvers(&self) -> BTreeSet<Address> {
        self.resolvers.keys().copied().collect()
    }

    fn of<'i>(&'i self, name: &'i EnsName) -> impl Iterator<Item = (u64, &'i Followed)> + 'i {
        let entries = self.by_node.get(&name.node()).into_iter().flatten();
        let followed = entries.filter_map(|entry| Some((*entry, self.entries.get(entry)?)));
        followed.filter(move |(_, followed)| followed.key.name == *name)
    }
}

fn remove_from<K: Eq + Hash>(map: &mut HashMap<K, BTreeSet<u64>>, key: &K, entry: u64) {
    let Some(entries) = map.get_mut(key) else { return };
    entries.remove(&entry);
    if entries.is_empty() {
        map.remove(key);
    }
}

/// The nodes of a name and its ancestors, its own first. The root is not among them.
fn lineage(name: &EnsName) -> Vec<B256> {
    let below = |parent: &mut B256, label: &str| {
        *parent = keccak256([*parent, keccak256(label)].concat());
        Some(*parent)
    };
    let mut nodes: Vec<B256> = name.labels().rev().scan(B256::ZERO, below).collect();
    nodes.reverse();
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lineage_of_a_name_is_that_of_its_ancestors() {
        let node = |name: &str| EnsName::parse(name).expect("a name").node();
        let name = EnsName::parse("a.b.eth").expect("a name");
        assert_eq!(lineage(&name), ["a.b.eth", "b.eth", "eth"].map(node));
    }
}
