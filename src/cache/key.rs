//! Everything that an answer depends on.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::chain::BlockSelector;
use crate::digest::Digest;
use crate::name::EnsName;
use crate::verdict::Depth;

/// Everything that an answer depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheKey {
    /// The name in normal form.
    pub name: EnsName,
    /// The block that is asked for.
    pub block: BlockSelector,
    /// How deep the walk goes.
    pub depth: Depth,
    /// Digest of the profile in force, which covers its manifests.
    pub rules: Digest,
    /// Digest of the world: chain, Universal Resolver, endpoints, proof demand, gateways, source flags.
    pub world: Arc<str>,
}

impl Hash for CacheKey {
    /// Hashes name and depth. Keys that differ only in the rest are few, and `Eq` tells them apart.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.depth.hash(state);
    }
}
