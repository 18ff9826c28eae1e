//! The cached entries by what they were read from: nodes and resolvers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

use alloy_primitives::{Address, B256, keccak256};
use clresolve_chain::Source;
use clresolve_core::name::EnsName;
use clresolve_verdict::verdict::Verdict;

use crate::cache::key::CacheKey;

/// Most labels of a name that is followed, so that the index has a bounded number of nodes for each entry. Longer names
/// keep their time.
pub(super) const MAX_LABELS: usize = 10;

/// What is followed.
#[derive(Default)]
pub(super) struct Index {
    entries: HashMap<u64, Followed>,
    by_name: HashMap<EnsName, BTreeSet<u64>>,
    /// By the nodes of the name and its ancestors.
    by_node: HashMap<B256, BTreeSet<u64>>,
    /// By the resolver, and the nodes whose records it may hold for the name: its own, and that of the ancestor that answers.
    by_records: HashMap<(Address, B256), BTreeSet<u64>>,
    /// Of how many entries each is the resolver.
    resolvers: BTreeMap<Address, usize>,
}

/// An entry of the cache.
struct Followed {
    key: CacheKey,
    places: Places,
    read: Read,
}

/// How the chain was read for an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    /// The ticket of the run.
    pub(super) began: u64,
    /// Height up to which it was read.
    pub(super) newest: Option<u64>,
}

/// What a verdict may know of a change, by the height up to which it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Knows {
    /// Nothing: it was read before the block.
    Nothing,
    /// All, if the block at that height was the same one.
    PerhapsAll,
}

/// Where a verdict was read from.
#[derive(Default)]
pub(super) struct Places {
    /// The nodes of the name and its ancestors, the name's own first.
    nodes: Vec<B256>,
    /// The nodes of its records. The resolver of an ancestor may tell of a change under either node.
    records: Vec<B256>,
    resolver: Option<Address>,
}

impl Places {
    /// Those of a verdict. `None` for a name that is too long to be followed.
    pub(super) fn of(name: &EnsName, verdict: &Verdict) -> Option<Self> {
        let nodes = lineage(name);
        let own = nodes.first().copied().filter(|_| nodes.len() <= MAX_LABELS)?;
        let anchor = verdict.anchor.as_ref();
        let resolver = anchor.and_then(|anchor| anchor.resolver.as_deref()?.parse().ok());
        let ancestor = anchor.and_then(|anchor| EnsName::parse(anchor.wildcard.as_deref()?).ok());
        let records = [own].into_iter().chain(ancestor.map(|ancestor| ancestor.node())).collect();
        Some(Self { nodes, records, resolver })
    }

    /// The places whose changes concern the verdict.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Source, B256)> + '_ {
        let registrations = self.nodes.iter().map(|node| (Source::Registration, *node));
        let of = |resolver| self.records.iter().map(move |node| (Source::Resolver(resolver), *node));
        registrations.chain(self.resolver.into_iter().flat_map(of))
    }
}

impl Index {
    /// Adds an entry. One of a name that is too long to be followed stands here by its name alone.
    pub(super) fn add(&mut self, entry: u64, key: &CacheKey, read: Read, verdict: &Verdict) {
        let places = Places::of(&key.name, verdict).unwrap_or_default();
        self.by_name.entry(key.name.clone()).or_default().insert(entry);
        for node in &places.nodes {
            self.by_node.entry(*node).or_default().insert(entry);
        }
        if let Some(resolver) = places.resolver {
            for node in &places.records {
                self.by_records.entry(records_of(resolver, *node)).or_default().insert(entry);
            }
            *self.resolvers.entry(resolver).or_default() += 1;
        }
        self.entries.insert(entry, Followed { key: key.clone(), places, read });
    }

    pub(super) fn remove(&mut self, entry: u64) {
        let Some(Followed { key, places, .. }) = self.entries.remove(&entry) else { return };
        remove_from(&mut self.by_name, &key.name, entry);
        for node in &places.nodes {
            remove_from(&mut self.by_node, node, entry);
        }
        let Some(resolver) = places.resolver else { return };
        for node in &places.records {
            remove_from(&mut self.by_records, &records_of(resolver, *node), entry);
        }
        let count = self.resolvers.get(&resolver).map_or(0, |count| count - 1);
        if count == 0 {
            self.resolvers.remove(&resolver);
        } else {
            self.resolvers.insert(resolver, count);
        }
    }

    /// The names that a change at this place in this block concerns: those that were read before it, or on a chain that is
    /// no more (`is_new_chain`), and those that were read up to its height.
    pub(super) fn concerned(&self, place: &(Source, B256), block: u64, is_new_chain: bool) -> BTreeMap<EnsName, Knows> {
        let knows = |followed: &Followed| match followed.read.newest {
            Some(newest) if newest == block && !is_new_chain => {
                (!clresolve_core::mutant!("a-height-is-a-block")).then_some(Knows::PerhapsAll)
            }
            newest => (is_new_chain || newest.is_none_or(|newest| newest < block)).then_some(Knows::Nothing),
        };
        let mut names = BTreeMap::new();
        let followed = self.at(place).into_iter().flatten().filter_map(|entry| self.entries.get(entry));
        for followed in followed {
            if let Some(knows) = knows(followed) {
                let least = names.entry(followed.key.name.clone()).or_insert(knows);
                *least = knows.min(*least);
            }
        }
        names
    }

    /// Whether an entry was read at this place.
    pub(super) fn is_read_at(&self, place: &(Source, B256)) -> bool {
        self.at(place).is_some()
    }

    fn at(&self, (source, node): &(Source, B256)) -> Option<&BTreeSet<u64>> {
        match source {
            Source::Registration => self.by_node.get(node),
            Source::Resolver(resolver) => self.by_records.get(&records_of(*resolver, *node)),
        }
    }

    /// Takes the entries of a name out. Gives their keys.
    pub(super) fn take(&mut self, name: &EnsName) -> Vec<CacheKey> {
        let keys = self.keys(name);
        let entries = self.by_name.get(name).cloned().unwrap_or_default();
        entries.into_iter().for_each(|entry| self.remove(entry));
        keys
    }

    /// The keys of the entries of a name.
    pub(super) fn keys(&self, name: &EnsName) -> Vec<CacheKey> {
        self.of(name).map(|followed| followed.key.clone()).collect()
    }

    /// Whether a verdict on the name is cached whose run began before `ticket`.
    pub(super) fn has_before(&self, name: &EnsName, ticket: u64) -> bool {
        self.of(name).any(|followed| followed.read.began < ticket)
    }

    pub(super) fn names(&self) -> BTreeSet<EnsName> {
        self.by_name.keys().cloned().collect()
    }

    /// Whether a cached verdict was read from it.
    #[cfg(feature = "redis")]
    pub(super) fn has_resolver(&self, resolver: Address) -> bool {
        self.resolvers.contains_key(&resolver)
    }

    pub(super) fn resolvers(&self) -> BTreeSet<Address> {
        self.resolvers.keys().copied().collect()
    }

    fn of(&self, name: &EnsName) -> impl Iterator<Item = &Followed> {
        self.by_name.get(name).into_iter().flatten().filter_map(|entry| self.entries.get(entry))
    }
}

fn records_of(resolver: Address, node: B256) -> (Address, B256) {
    if clresolve_core::mutant!("any-address-hints") { (Address::ZERO, node) } else { (resolver, node) }
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
