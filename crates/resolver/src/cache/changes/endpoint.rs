//! What is known of an endpoint that is followed.

use std::collections::HashMap;

use alloy_primitives::B256;
use clresolve_chain::{Endpoint, Source};
use jiff::{SignedDuration, Timestamp};

use super::budget::Budget;

/// How long an endpoint is doubted that announced a block which did not come in time. Its hints still have names read
/// again, but no run waits for their blocks. So it withholds no name for more than a small part of the time.
const DOUBT: SignedDuration = SignedDuration::from_mins(10);

/// By which an endpoint is known, for as long as it is configured in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EndpointId(pub(super) u64);

/// How an endpoint is followed.
pub(crate) struct Followed {
    pub(super) endpoint: Endpoint,
    /// Whether it alone is enough, so that no other says what blocks it can have: the operator's own, or the only one.
    is_authority: bool,
    budget: Budget,
    /// Whether it answered the last time.
    pub(super) is_up: bool,
    /// The lowest block from which its logs were read without a gap.
    pub(super) since: Option<u64>,
    /// The newest block up to which its logs were read.
    pub(super) head: Option<u64>,
    /// What it said the last time: places, with the newest block of each. A run that was under way then may have missed it.
    pub(super) said: HashMap<(Source, B256), u64>,
    /// Until when runs wait for no block of its hints.
    doubted_until: Option<Timestamp>,
}

impl Followed {
    /// An endpoint that was not followed before.
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            is_authority: false,
            budget: Budget::of_hints(),
            is_up: false,
            since: None,
            head: None,
            said: HashMap::new(),
            doubted_until: None,
        }
    }

    /// The same endpoint under another configuration. What it has spent is spent; its logs begin anew.
    pub(super) fn resumed(self, is_alone: bool) -> Self {
        Self { is_authority: self.endpoint.own || is_alone, is_up: false, since: None, head: None, ..self }
    }

    pub(super) const fn is_authority(&self) -> bool {
        self.is_authority
    }

    /// Takes one hint from the budget, if there is one left. The operator's own endpoint has no budget: it makes nothing
    /// up, and a publisher who changes many names at once would spend it.
    pub(super) fn may_hint(&mut self, now: Timestamp) -> bool {
        let is_free = self.endpoint.own && !clresolve_core::mutant!("own-endpoints-have-a-budget");
        is_free || self.budget.take(now)
    }

    /// Doubts it from now on. The word of an authority stands.
    pub(super) fn doubt(&mut self, now: Timestamp) {
        if !self.is_authority {
            self.doubted_until = Some(now + DOUBT);
        }
    }

    pub(super) fn is_doubted(&self, now: Timestamp) -> bool {
        self.doubted_until.is_some_and(|until| now < until)
    }

    /// Whether it reads all blocks from this one on.
    pub(super) fn reads_from(&self, block: u64) -> bool {
        self.is_up && self.since.is_some_and(|since| since <= block)
    }

    /// Whether it has come up to this block.
    pub(super) fn has_reached(&self, block: u64) -> bool {
        self.head.is_some_and(|head| head >= block) || clresolve_core::mutant!("who-stands-still-covers-gaps")
    }
}
