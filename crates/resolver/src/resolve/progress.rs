//! Progress events of resolutions, for subscribers.

use std::future::Future;

use clresolve_core::name::EnsName;
use clresolve_core::reason::ResolutionStep;
use clresolve_verdict::verdict::StepStatus;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender, channel};

use super::spans::ResolutionSpanRecorder;

/// Number of events that a slow subscriber may lag behind: a dozen for each of a busy daemon's 32 resolutions. It
/// misses older events, but the verdict contains their information.
const KEPT: usize = 512;

/// The channel for progress events. Without a subscriber no events are sent.
#[derive(Clone)]
pub(super) struct StepEventChannel(Sender<(EnsName, StepEvent)>);

/// A progress event of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepEvent {
    /// The step.
    pub step: ResolutionStep,
    /// What happened in the step.
    pub moment: StepTransition,
}

/// What happened in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepTransition {
    /// The step started.
    Began,
    /// The step ended, with the status that its own evidence implies, if any. The rules may make it worse, but never
    /// better.
    Ended(Option<StepStatus>),
}

impl StepEventChannel {
    pub(super) fn new() -> Self {
        Self(channel(KEPT).0)
    }

    /// A handle for the events of one resolution of `name`.
    pub(super) const fn sender_for_name<'a>(
        &'a self,
        name: &'a EnsName,
        spans: &'a ResolutionSpanRecorder,
    ) -> NameStepEventSender<'a> {
        NameStepEventSender { progress: self, name, spans }
    }

    /// Subscribes to the resolutions of `name`.
    pub(super) fn subscribe(&self, name: EnsName) -> StepEventSubscription {
        StepEventSubscription { name, news: self.0.subscribe() }
    }
}

/// Sends the events of one resolution of a name.
#[derive(Clone, Copy)]
pub(super) struct NameStepEventSender<'a> {
    progress: &'a StepEventChannel,
    name: &'a EnsName,
    spans: &'a ResolutionSpanRecorder,
}

impl NameStepEventSender<'_> {
    /// Runs the work of a step. Sends an event when it starts, and one when it ends with the status that `status`
    /// derives from its evidence.
    pub(super) async fn run_step<T>(
        self,
        step: ResolutionStep,
        work: impl Future<Output = T>,
        status: impl FnOnce(&T) -> Option<StepStatus>,
    ) -> T {
        self.send_event(StepEvent { step, moment: StepTransition::Began });
        let done = self.spans.record_step(step, work).await;
        self.send_event(StepEvent { step, moment: StepTransition::Ended(status(&done)) });
        done
    }

    fn send_event(self, seen: StepEvent) {
        let StepEventChannel(watchers) = self.progress;
        if watchers.receiver_count() > 0 {
            // The last subscriber may have disconnected in the meantime.
            let _ = watchers.send((self.name.clone(), seen));
        }
    }
}

/// A subscription to the steps of resolutions of one name.
pub struct StepEventSubscription {
    name: EnsName,
    news: Receiver<(EnsName, StepEvent)>,
}

impl StepEventSubscription {
    /// The next event. `None` when no further resolution can start.
    pub async fn next(&mut self) -> Option<StepEvent> {
        loop {
            match self.news.recv().await {
                Ok((name, seen)) if name == self.name => return Some(seen),
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> EnsName {
        EnsName::parse(text).expect("a name")
    }

    #[tokio::test]
    async fn a_watcher_sees_the_steps_of_its_name_alone() {
        let progress = StepEventChannel::new();
        let (ours, theirs) = (name("a.eth"), name("b.eth"));
        progress
            .sender_for_name(&ours, &ResolutionSpanRecorder::without_trace())
            .run_step(ResolutionStep::Name, async {}, |()| None)
            .await;
        let mut watch = progress.subscribe(ours.clone());
        progress
            .sender_for_name(&theirs, &ResolutionSpanRecorder::without_trace())
            .run_step(ResolutionStep::Records, async {}, |()| None)
            .await;
        let status = |five: &i32| (*five == 5).then_some(StepStatus::Pass);
        assert_eq!(
            progress
                .sender_for_name(&ours, &ResolutionSpanRecorder::without_trace())
                .run_step(ResolutionStep::Records, async { 5 }, status)
                .await,
            5
        );
        drop(progress);
        let seen = |moment| Some(StepEvent { step: ResolutionStep::Records, moment });
        let (began, ended) = (seen(StepTransition::Began), seen(StepTransition::Ended(Some(StepStatus::Pass))));
        assert_eq!([watch.next().await, watch.next().await, watch.next().await], [began, ended, None]);
    }

    #[tokio::test]
    async fn a_watcher_that_does_not_look_misses_the_oldest() {
        let progress = StepEventChannel::new();
        let ours = name("a.eth");
        let mut watch = progress.subscribe(ours.clone());
        for _ in 0..KEPT {
            progress
                .sender_for_name(&ours, &ResolutionSpanRecorder::without_trace())
                .run_step(ResolutionStep::Records, async {}, |()| None)
                .await;
        }
        drop(progress);
        let mut seen = 0;
        while watch.next().await.is_some() {
            seen += 1;
        }
        assert_eq!(seen, KEPT);
    }
}
