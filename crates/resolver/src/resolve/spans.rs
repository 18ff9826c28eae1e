//! Records when the steps of a resolution started and ended, for the trace collector.
//!
//! A resolution puts its trace into a bounded queue and does not wait. If the queue is full, the trace is dropped and
//! counted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use clresolve_core::reason::{ReasonCode, ResolutionStep};
use clresolve_core::state::TrustState;
use clresolve_core::text::UntrustedText;
use clresolve_verdict::verdict::{StepStatus, Verdict};
use jiff::Timestamp;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::Instant;

use crate::clock::Clock;
use crate::telemetry::{self, SpanDropReason};

/// Maximum number of traces that wait for the collector, of about 2 KiB each: as many as a busy daemon produces while
/// one message is sent.
const MAX_WAITING: usize = 1024;

/// The queue for traces, once a consumer has opened it.
#[derive(Clone)]
pub(super) struct TraceQueue(Arc<OnceLock<Sender<ResolutionTrace>>>);

/// The trace of one resolution. The name is escaped. All other text consists of the program's own words and digests.
#[derive(Clone, Debug)]
pub struct ResolutionTrace {
    /// The normalised name.
    pub name: String,
    /// The identifier of the verdict.
    pub verdict: String,
    /// The identifier of the profile.
    pub profile: String,
    /// The state of the verdict.
    pub state: TrustState,
    /// The codes of the reasons of the verdict.
    pub codes: Vec<ReasonCode>,
    /// When the resolution began.
    pub began: Timestamp,
    /// How long it took.
    pub took: Duration,
    /// The steps, in the order in which they began.
    pub steps: Vec<StepSpan>,
}

/// One step of a resolution.
#[derive(Clone, Debug)]
pub struct StepSpan {
    /// Which step.
    pub step: ResolutionStep,
    /// How it ended.
    pub status: StepStatus,
    /// Time from the start of the resolution to the start of the step.
    pub after: Duration,
    /// How long it took.
    pub took: Duration,
}

impl TraceQueue {
    pub(super) fn new() -> Self {
        Self(Arc::default())
    }

    /// Opens the queue for resolutions that start from now on. `None` if it is already open.
    pub(super) fn open_receiver(&self) -> Option<Receiver<ResolutionTrace>> {
        let (sender, receiver) = channel(MAX_WAITING);
        self.0.set(sender).is_ok().then_some(receiver)
    }

    pub(super) fn begin_recorder(&self, clock: &dyn Clock) -> ResolutionSpanRecorder {
        let open = |queue: &Sender<ResolutionTrace>| OpenResolutionTrace {
            queue: queue.clone(),
            began: clock.now(),
            at: Instant::now(),
            steps: Mutex::default(),
        };
        ResolutionSpanRecorder(self.0.get().map(open))
    }
}

/// The steps of one resolution, recorded as they end. Without a collector nothing is recorded.
pub(super) struct ResolutionSpanRecorder(Option<OpenResolutionTrace>);

struct OpenResolutionTrace {
    queue: Sender<ResolutionTrace>,
    began: Timestamp,
    at: Instant,
    /// Start and duration of each step that takes time.
    steps: Mutex<BTreeMap<ResolutionStep, (Duration, Duration)>>,
}

impl ResolutionSpanRecorder {
    /// For a resolution without a trace.
    pub(super) const fn without_trace() -> Self {
        Self(None)
    }

    pub(super) async fn record_step<T>(&self, step: ResolutionStep, work: impl Future<Output = T>) -> T {
        let began = Instant::now();
        let done = work.await;
        if let Self(Some(open)) = self {
            let times = (began.duration_since(open.at), began.elapsed());
            open.steps.lock().unwrap_or_else(PoisonError::into_inner).insert(step, times);
        }
        done
    }

    pub(super) fn send_trace(self, verdict: &Verdict) {
        let Self(Some(open)) = self else { return };
        let trace = open.to_trace(verdict);
        let spans = trace.span_count();
        if open.queue.try_send(trace).is_err() {
            telemetry::count_dropped_spans(SpanDropReason::Queue, spans);
        }
    }
}

impl OpenResolutionTrace {
    fn to_trace(&self, verdict: &Verdict) -> ResolutionTrace {
        let took = self.at.elapsed();
        let steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        // Steps that only compute run at the end, and are too short to be timed.
        let of_step = |step| steps.get(&step).copied().unwrap_or((took, Duration::ZERO));
        let span = |step, status| {
            let (after, took) = of_step(step);
            StepSpan { step, status, after, took }
        };
        ResolutionTrace {
            name: UntrustedText::new(verdict.name.normalized.as_deref().unwrap_or_default()).to_string(),
            verdict: verdict.id.clone(),
            profile: UntrustedText::new(&verdict.profile.id).to_string(),
            state: verdict.state,
            codes: verdict.reasons.iter().map(|reason| reason.code).collect(),
            began: self.began,
            took,
            steps: verdict.steps.iter().map(|report| span(report.step, report.status)).collect(),
        }
    }
}

impl ResolutionTrace {
    /// Number of spans: one for the resolution and one for each step.
    pub fn span_count(&self) -> usize {
        self.steps.len() + 1
    }
}

#[cfg(all(test, feature = "sandbox"))]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::resolve::Resolver;
    use crate::sandbox::Sandbox;

    #[tokio::test]
    async fn a_collector_that_takes_nothing_holds_up_no_run() {
        let sandbox = Sandbox::start().await.expect("the sandbox starts");
        let resolver = Resolver::new(&sandbox.config()).await.expect("a resolver");
        let resolution = resolver.resolve("summarizeagent.eth").await;
        let queue = TraceQueue::new();
        queue.begin_recorder(&SystemClock).send_trace(resolution.verdict());
        let mut waiting = queue.open_receiver().expect("nobody takes them yet");
        assert!(queue.open_receiver().is_none());
        for _ in 0..MAX_WAITING + 5 {
            queue.begin_recorder(&SystemClock).send_trace(resolution.verdict());
        }
        let mut kept = 0;
        while waiting.try_recv().is_ok() {
            kept += 1;
        }
        assert_eq!(kept, MAX_WAITING, "what found no room was dropped, and what was before nobody's");
    }
}
