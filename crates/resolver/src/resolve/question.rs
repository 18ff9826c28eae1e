//! Questions, and the rules under which they are answered.

use std::sync::Arc;

use clresolve_verdict::check::JudgementPolicy;
use clresolve_verdict::profile::ConformanceProfile;
use clresolve_verdict::verdict::ResolutionDepth;

/// A question about one name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NameQuestion {
    /// The name, as typed.
    pub input: String,
    /// Identifier of the profile, if not the configured one.
    pub profile: Option<String>,
    /// How deep the resolution goes, if not to the configured depth.
    pub depth: Option<ResolutionDepth>,
}

impl NameQuestion {
    /// A question under the configured profile and depth.
    pub fn new(input: impl Into<String>) -> Self {
        Self { input: input.into(), profile: None, depth: None }
    }
}

#[derive(Clone)]
pub(super) struct VerdictRules {
    pub(super) profile: Arc<ConformanceProfile>,
    pub(super) policy: JudgementPolicy,
}
