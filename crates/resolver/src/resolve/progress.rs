//! Progress events of resolutions, for subscribers.

use std::future::Future;

use clresolve_core::name::EnsName;
use clresolve_core::reason::Step;
use clresolve_verdict::verdict::Status;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender, channel};

use super::spans::RunSpans;

/// Number of events that a slow subscriber may lag behind: a dozen for each of a busy daemon's 32 resolutions. It
/// misses older events, but the verdict contains their information.
const KEPT: usize = 512;

/// The channel for progress events. Without a subscriber no events are sent.
#[derive(Clone)]
pub(super) struct Progress(Sender<News>);

/// The start or end of a step in the resolution of a name.
#[derive(Clone)]
struct News {
    name: EnsName,
    seen: StepSeen,
}

/// A progress event of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepSeen {
    /// The step.
    pub step: Step,
    /// What happened in the step.
    pub moment: Moment,
}

/// What happened in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The step started.
    Began,
    /// The step ended, with the status that its own evidence implies, if any. The rules may make it worse, but never
    /// better.
    Ended(Option<Status>),
}

impl Progress {
    pub(super) fn new() -> Self {
        Self(channel(KEPT).0)
    }

    /// A handle for the events of one resolution of `name`.
    pub(super) const fn of<'a>(&'a self, name: &'a EnsName, spans: &'a RunSpans) -> NameProgress<'a> {
        NameProgress { progress: self, name, spans }
    }

    /// Subscribes to the resolutions of `name`.
    pub(super) fn watch(&self, name: EnsName) -> Watch {
        Watch { name, news: self.0.subscribe() }
    }
}

/// Sends the events of one resolution of a name.
#[derive(Clone, Copy)]
pub(super) struct NameProgress<'a> {
    progress: &'a Progress,
    name: &'a EnsName,
    spans: &'a RunSpans,
}

impl NameProgress<'_> {
    /// Runs the work of a step. Sends an event when it starts, and one when it ends with the status that `status` derives
    /// from its evidence.
    pub(super) async fn during<T>(
        self,
        step: Step,
        work: impl Future<Output = T>,
        status: impl FnOnce(&T) -> Option<Status>,
    ) -> T {
        self.tell(StepSeen { step, moment: Moment::Began });
        let done = self.spans.during(step, work).await;
        self.tell(StepSeen { step, moment: Moment::Ended(status(&done)) });
        done
    }

    fn tell(self, seen: StepSeen) {
        let Progress(watchers) = self.progress;
        if watchers.receiver_count() > 0 {
            // The last subscriber may have disconnected in the meantime.
            let _ = watchers.send(News { name: self.name.clone(), seen });
        }
    }
}

/// A subscription to the steps of resolutions of one name.
pub struct Watch {
    name: EnsName,
    news: Receiver<News>,
}

impl Watch {
    /// The next event. `None` when no further resolution can start.
    pub async fn next(&mut self) -> Option<StepSeen> {
        loop {
            match self.news.recv().await {
                Ok(news) if news.name == self.name => return Some(news.seen),
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
        let progress = Progress::new();
        let (ours, theirs) = (name("a.eth"), name("b.eth"));
        progress.of(&ours, &RunSpans::none()).during(Step::Name, async {}, |()| None).await;
        let mut watch = progress.watch(ours.clone());
        progress.of(&theirs, &RunSpans::none()).during(Step::Records, async {}, |()| None).await;
        let status = |five: &i32| (*five == 5).then_some(Status::Pass);
        assert_eq!(progress.of(&ours, &RunSpans::none()).during(Step::Records, async { 5 }, status).await, 5);
        drop(progress);
        let seen = |moment| Some(StepSeen { step: Step::Records, moment });
        let (began, ended) = (seen(Moment::Began), seen(Moment::Ended(Some(Status::Pass))));
        assert_eq!([watch.next().await, watch.next().await, watch.next().await], [began, ended, None]);
    }

    #[tokio::test]
    async fn a_watcher_that_does_not_look_misses_the_oldest() {
        let progress = Progress::new();
        let ours = name("a.eth");
        let mut watch = progress.watch(ours.clone());
        for _ in 0..KEPT {
            progress.of(&ours, &RunSpans::none()).during(Step::Records, async {}, |()| None).await;
        }
        drop(progress);
        let mut seen = 0;
        while watch.next().await.is_some() {
            seen += 1;
        }
        assert_eq!(seen, KEPT);
    }
}
