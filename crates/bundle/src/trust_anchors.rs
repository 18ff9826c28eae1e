//! [`BundleTrustAnchors`]: what a replay starts from.

use alloy_primitives::B256;
use clresolve_verdict::profile::ConformanceProfiles;

/// What the reader of a bundle trusts.
#[derive(Clone, Copy, Debug)]
pub struct BundleTrustAnchors<'a> {
    /// The rules, of which the bundle names those it was judged by.
    pub profiles: &'a ConformanceProfiles,
    /// A block root of the beacon chain. Without it, no bundle of grade `consensus-proof` verifies.
    pub checkpoint: Option<B256>,
}

impl<'a> From<&'a ConformanceProfiles> for BundleTrustAnchors<'a> {
    fn from(profiles: &'a ConformanceProfiles) -> Self {
        Self { profiles, checkpoint: None }
    }
}
