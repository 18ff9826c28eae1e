//! [`HeadAge`]: decides, by the local clock, whether a block is recent enough to be the newest one.
//!
//! An endpoint that has stopped following the chain truthfully reports that nothing has changed, so a reading of the
//! newest block counts only while that block is recent. The block's time is the endpoint's claim, but a false claim can
//! only cause a refusal.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use metrics::counter;

use crate::failure::Failure;
use crate::quorum::Vote;

/// How far a block may be ahead of the local clock: more than the clocks of honest machines differ.
pub const MAX_AHEAD: Duration = Duration::from_secs(15);

/// Metric name: newest blocks that were refused (`old` or `ahead`), and newest blocks far below the endpoint's previous
/// one (`backwards`), counted per endpoint and reason.
pub const HEADS_REFUSED: &str = "clresolve_rpc_heads_refused_total";

/// The maximum age of the newest block. `None`: unlimited, because the chain's slot time is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeadAge(pub(crate) Option<Duration>);

impl HeadAge {
    /// Checks a block other than the newest one. Such a block may be old.
    ///
    /// # Errors
    /// [`Failure::HeadAhead`].
    pub(crate) fn check_ahead(self, block: Timestamp, now: Timestamp) -> Result<(), Failure> {
        let ahead = block.duration_since(now);
        let is_ahead = self.0.is_some() && ahead > signed(MAX_AHEAD);
        if is_ahead { Err(Failure::HeadAhead { seconds: ahead.as_secs() }) } else { Ok(()) }
    }

    /// Checks the newest block.
    ///
    /// # Errors
    /// [`Failure::HeadOld`], [`Failure::HeadAhead`].
    pub(crate) fn check(self, head: Timestamp, now: Timestamp) -> Result<(), Failure> {
        let Some(most) = self.0 else { return Ok(()) };
        self.check_ahead(head, now)?;
        let age = now.duration_since(head);
        let is_old = age > signed(most);
        if is_old { Err(Failure::HeadOld { seconds: age.as_secs(), most: most.as_secs() }) } else { Ok(()) }
    }

    /// The vote on the newest block, if that block is recent.
    ///
    /// # Errors
    /// [`Failure`], also if the vote does not contain the time of its block.
    pub(crate) fn checked_vote<V: Vote>(self, vote: V, now: Timestamp) -> Result<V, Failure> {
        if self.0.is_some() {
            let head = vote
                .time()
                .ok_or_else(|| Failure::Unusable("it does not report the time of its newest block".to_owned()))?;
            self.check(head, now)?;
        }
        Ok(vote)
    }
}

/// If `failure` refuses a newest block because of its age, counts it for `label`. Returns whether it was counted.
pub(crate) fn count_refused(label: &str, failure: &Failure) -> bool {
    let why = match failure {
        Failure::HeadOld { .. } => "old",
        Failure::HeadAhead { .. } => "ahead",
        _ => return false,
    };
    count(label, why);
    true
}

/// Counts a newest block of `label` that lies far below its previous one.
pub(crate) fn count_backwards(label: &str) {
    count(label, "backwards");
}

fn count(label: &str, why: &'static str) {
    counter!(HEADS_REFUSED, "endpoint" => label.to_owned(), "why" => why).increment(1);
}

pub(crate) fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_block_counts_within_its_bounds_alone() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let at = |seconds: i64| now + SignedDuration::from_secs(seconds);
        let bound = HeadAge(Some(Duration::from_secs(60)));
        for (seconds, counts) in [(-61, false), (-60, true), (0, true), (15, true), (16, false)] {
            assert_eq!(bound.check(at(seconds), now).is_ok(), counts, "{seconds}");
            assert!(HeadAge(None).check(at(seconds * 1000), now).is_ok(), "{seconds}");
        }
        assert!(bound.check_ahead(at(-100_000), now).is_ok(), "a finalized block may be old");
        assert!(bound.check_ahead(at(16), now).is_err());
    }
}
