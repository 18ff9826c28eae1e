//! The collected reasons of a check.

use clresolve_core::json::pointer;
use clresolve_core::reason::{Reason, ReasonCode};

use crate::profile::ConformanceProfile;

/// Maximum number of reasons with the same code from one rule function.
///
/// A hostile card can break a rule a hundred thousand times, but one violation decides the verdict.
pub const MAX_REASONS_PER_CODE: usize = 16;

/// Collects reasons, at most [`MAX_REASONS_PER_CODE`] of each code.
#[derive(Debug, Default)]
pub struct ReasonCollector(pub(super) Vec<Reason>);

impl ReasonCollector {
    /// Adds a reason, unless the limit for its code is reached.
    pub fn add(&mut self, reason: Reason) {
        if self.count(reason.code) < MAX_REASONS_PER_CODE {
            self.0.push(reason);
        }
    }

    /// Adds a reason, unless one with the same code and location exists.
    pub fn add_once(&mut self, reason: Reason) {
        if !self.0.iter().any(|other| (other.code, &other.place) == (reason.code, &reason.place)) {
            self.add(reason);
        }
    }

    /// Whether a reason with a code other than `general` concerns `place` or one of its parents.
    pub fn has_specific_reason(&self, place: &str, general: ReasonCode) -> bool {
        let others = self.0.iter().filter(|reason| reason.code != general);
        others.filter_map(|reason| reason.place.as_deref()).any(|objected| pointer::is_pointer_within(place, objected))
    }

    /// Whether the limit for this code is reached.
    pub fn is_full(&self, code: ReasonCode) -> bool {
        self.count(code) >= MAX_REASONS_PER_CODE
    }

    /// The reasons, each with the effect that `profile` gives it.
    pub fn with_effects(self, profile: &ConformanceProfile) -> Vec<Reason> {
        self.0.into_iter().map(|reason| profile.assign_effect(reason)).collect()
    }

    fn count(&self, code: ReasonCode) -> usize {
        self.0.iter().filter(|reason| reason.code == code).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_code_is_not_repeated_without_end() {
        let mut findings = ReasonCollector::default();
        for at in 0..100 {
            findings.add(Reason::new(ReasonCode::VerbUnknown).at_place(format!("/implements/{at}")));
        }
        assert!(findings.is_full(ReasonCode::VerbUnknown));
        assert_eq!(findings.0.len(), MAX_REASONS_PER_CODE);
    }
}
