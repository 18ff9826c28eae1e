//! The key of a cached verdict: everything that the verdict depends on.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use clresolve_core::digest::Digest;
use clresolve_core::name::EnsName;
use clresolve_core::reading::BlockSelector;
use clresolve_verdict::verdict::ResolutionDepth;

/// Everything that a verdict depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerdictCacheKey {
    /// The name in normal form.
    pub name: EnsName,
    /// The requested block.
    pub block: BlockSelector,
    /// How deep the resolution goes.
    pub depth: ResolutionDepth,
    /// Digest of the profile in force, which includes its manifests.
    pub rules: Digest,
    /// Digest of the sources: chain, Universal Resolver, endpoints, proof requirement, gateways, source flags.
    pub world: Arc<str>,
}

impl Hash for VerdictCacheKey {
    /// Hashes only name and depth. Few keys differ only in the other fields, and `Eq` distinguishes those.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.depth.hash(state);
    }
}
