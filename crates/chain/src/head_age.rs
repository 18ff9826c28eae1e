//! [`HeadAgeLimit`]: decides, by the local clock, whether a block is recent enough to be the newest one.
//!
//! An endpoint that has stopped following the chain truthfully reports that nothing has changed, so a reading of the
//! newest block counts only while that block is recent. The block's time is the endpoint's claim, but a false claim can
//! only cause a refusal.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use metrics::counter;

use crate::failure::EndpointFailure;
use crate::quorum::QuorumVote;

/// How far a block may be ahead of the local clock: more than the clocks of honest machines differ.
pub const MAX_AHEAD: Duration = Duration::from_secs(15);

/// Metric name: newest blocks that were refused (`old` or `ahead`), and newest blocks far below the endpoint's previous
/// one (`backwards`), counted per endpoint and reason.
pub const HEADS_REFUSED: &str = "clresolve_rpc_heads_refused_total";

/// The maximum age of the newest block. `None`: unlimited, because the chain's slot time is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeadAgeLimit(pub(crate) Option<Duration>);

impl HeadAgeLimit {
    /// Checks a block other than the newest one. Such a block may be old.
    ///
    /// # Errors
    /// [`EndpointFailure::HeadAhead`].
    pub(crate) fn check_not_in_future(self, block: Timestamp, now: Timestamp) -> Result<(), EndpointFailure> {
        let ahead = block.duration_since(now);
        let is_ahead = self.0.is_some() && ahead > to_signed_duration(MAX_AHEAD);
        if is_ahead { Err(EndpointFailure::HeadAhead { seconds: ahead.as_secs() }) } else { Ok(()) }
    }

    /// Checks the newest block.
    ///
    /// # Errors
    /// [`EndpointFailure::HeadOld`], [`EndpointFailure::HeadAhead`].
    pub(crate) fn check_newest_block_age(self, head: Timestamp, now: Timestamp) -> Result<(), EndpointFailure> {
        let Some(most) = self.0 else { return Ok(()) };
        self.check_not_in_future(head, now)?;
        let age = now.duration_since(head);
        let is_old = age > to_signed_duration(most);
        if is_old { Err(EndpointFailure::HeadOld { seconds: age.as_secs(), most: most.as_secs() }) } else { Ok(()) }
    }

    /// The vote on the newest block, if that block is recent.
    ///
    /// # Errors
    /// [`EndpointFailure`], also if the vote does not contain the time of its block.
    pub(crate) fn require_recent_vote<V: QuorumVote>(self, vote: V, now: Timestamp) -> Result<V, EndpointFailure> {
        if self.0.is_some() {
            let head = vote.block_time().ok_or_else(|| {
                EndpointFailure::Unusable("it does not report the time of its newest block".to_owned())
            })?;
            self.check_newest_block_age(head, now)?;
        }
        Ok(vote)
    }
}

/// If `failure` refuses a newest block because of its age, counts it for `label`. Returns whether it was counted.
pub(crate) fn count_refused_head(label: &str, failure: &EndpointFailure) -> bool {
    let why = match failure {
        EndpointFailure::HeadOld { .. } => "old",
        EndpointFailure::HeadAhead { .. } => "ahead",
        _ => return false,
    };
    count_head_failure(label, why);
    true
}

/// Counts a newest block of `label` that lies far below its previous one.
pub(crate) fn count_head_regression(label: &str) {
    count_head_failure(label, "backwards");
}

fn count_head_failure(label: &str, why: &'static str) {
    counter!(HEADS_REFUSED, "endpoint" => label.to_owned(), "why" => why).increment(1);
}

pub(crate) fn to_signed_duration(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_block_counts_within_its_bounds_alone() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let at = |seconds: i64| now + SignedDuration::from_secs(seconds);
        let bound = HeadAgeLimit(Some(Duration::from_secs(60)));
        for (seconds, counts) in [(-61, false), (-60, true), (0, true), (15, true), (16, false)] {
            assert_eq!(bound.check_newest_block_age(at(seconds), now).is_ok(), counts, "{seconds}");
            assert!(HeadAgeLimit(None).check_newest_block_age(at(seconds * 1000), now).is_ok(), "{seconds}");
        }
        assert!(bound.check_not_in_future(at(-100_000), now).is_ok(), "a finalized block may be old");
        assert!(bound.check_not_in_future(at(16), now).is_err());
    }
}
