//! Replaces traces in a build that sends none: nothing is recorded.

use std::future::Future;

use clresolve_core::reason::Step;
use clresolve_verdict::verdict::Verdict;

use crate::clock::Clock;

#[derive(Clone)]
pub(super) struct TraceQueue;

pub(super) struct RunSpans;

impl TraceQueue {
    pub(super) const fn new() -> Self {
        Self
    }

    pub(super) const fn begin(&self, _: &dyn Clock) -> RunSpans {
        RunSpans
    }
}

impl RunSpans {
    pub(super) const fn none() -> Self {
        Self
    }

    pub(super) async fn during<T>(&self, _: Step, work: impl Future<Output = T>) -> T {
        work.await
    }

    pub(super) const fn end(self, _: &Verdict) {}
}
