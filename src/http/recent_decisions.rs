//! Decisions that were made a moment ago: the same question about the same verdict has the same answer.

use std::sync::Arc;

use bytes::Bytes;
use clresolve_payment::Decision;
use jiff::{SignedDuration, Timestamp};
use moka::sync::Cache;

use crate::digest::Digest;
use crate::resolve::DecisionEvent;
use crate::verdict::{State, Verdict};

/// How long a decision is given again, unless it ends before.
const KEPT_FOR: SignedDuration = SignedDuration::from_secs(1);

/// Most bytes kept; a decision has one or two thousand.
const KEPT_BYTES: u64 = 8 * 1024 * 1024;

/// A decision as it was sent.
#[derive(Clone)]
pub(super) struct Recent {
    /// The name that was asked for.
    pub(super) name: Arc<str>,
    /// What the log says of it.
    pub(super) event: Arc<DecisionEvent>,
    verdict: Arc<str>,
    valid_until: Option<Timestamp>,
    /// Its JSON.
    pub(super) body: Bytes,
    made: Timestamp,
}

/// Recent decisions by the digest of their request; the least used go first. A configuration has its own.
pub(super) struct RecentDecisions(Cache<Digest, Recent>);

impl RecentDecisions {
    pub(super) fn new() -> Self {
        let weigh = |_: &Digest, recent: &Recent| u32::try_from(2 * recent.body.len()).unwrap_or(u32::MAX);
        Self(Cache::builder().max_capacity(KEPT_BYTES).weigher(weigh).build())
    }

    /// What was decided about this request within the last second.
    pub(super) fn get(&self, request: Digest, now: Timestamp) -> Option<Recent> {
        let is_new = |recent: &Recent| (SignedDuration::ZERO..KEPT_FOR).contains(&now.duration_since(recent.made));
        let holds = |recent: &Recent| recent.valid_until.is_none_or(|until| now < until);
        self.0.get(&request).filter(|recent| is_new(recent) && holds(recent))
    }

    /// Keeps a decision. Only one about a trusted agent is likely to be asked for again at once.
    pub(super) fn keep(
        &self,
        request: Digest,
        name: &str,
        decision: &Decision,
        event: DecisionEvent,
        body: &Bytes,
        now: Timestamp,
    ) {
        if decision.state == State::Trusted {
            let recent = Recent {
                name: name.into(),
                event: Arc::new(event),
                verdict: decision.verdict.as_str().into(),
                valid_until: decision.valid_until,
                body: body.clone(),
                made: now,
            };
            self.0.insert(request, recent);
        }
    }
}

impl Recent {
    /// Whether it is about this very verdict, however that was served.
    pub(super) fn is_about(&self, verdict: &Verdict) -> bool {
        *self.verdict == verdict.id
    }
}
