//! What runs tell of themselves while they go on, for those who watch.

use std::future::Future;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender, channel};

use super::spans::RunSpans;
use crate::name::EnsName;
use crate::reason::Step;
use crate::verdict::Status;

/// Most news that a slow watcher is behind: a dozen for each of a busy daemon's 32 runs. What is beyond it, the watcher
/// misses; the verdict says all of it.
const KEPT: usize = 512;

/// Where runs tell what they do. Without a watcher they tell nothing.
#[derive(Clone)]
pub(super) struct Progress(Sender<News>);

/// A step that began or ended, in a run about a name.
#[derive(Clone)]
struct News {
    name: EnsName,
    seen: StepSeen,
}

/// A step of a run, as it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepSeen {
    /// The step.
    pub(crate) step: Step,
    /// What is seen of it.
    pub(crate) moment: Moment,
}

/// What is seen of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// It began.
    Began,
    /// It ended, with what its own evidence says, where that says something. The rules may make it worse, and never better.
    Ended(Option<Status>),
}

impl Progress {
    pub(super) fn new() -> Self {
        Self(channel(KEPT).0)
    }

    /// What is told of a run about a name.
    pub(super) const fn of<'a>(&'a self, name: &'a EnsName, spans: &'a RunSpans) -> NameProgress<'a> {
        NameProgress { progress: self, name, spans }
    }

    /// Watches the runs about a name.
    pub(super) fn watch(&self, name: EnsName) -> Watch {
        Watch { name, news: self.0.subscribe() }
    }
}

/// What is told of a run about a name.
#[derive(Clone, Copy)]
pub(super) struct NameProgress<'a> {
    progress: &'a Progress,
    name: &'a EnsName,
    spans: &'a RunSpans,
}

impl NameProgress<'_> {
    /// Does the work of a step, and tells when it begins, when it ends, and what `says` its evidence says.
    pub(super) async fn during<T>(
        self,
        step: Step,
        work: impl Future<Output = T>,
        says: impl FnOnce(&T) -> Option<Status>,
    ) -> T {
        self.tell(StepSeen { step, moment: Moment::Began });
        let done = self.spans.during(step, work).await;
        self.tell(StepSeen { step, moment: Moment::Ended(says(&done)) });
        done
    }

    fn tell(self, seen: StepSeen) {
        let Progress(watchers) = self.progress;
        if watchers.receiver_count() > 0 {
            // The last watcher may have gone meanwhile.
            let _ = watchers.send(News { name: self.name.clone(), seen });
        }
    }
}

/// The steps of the runs about one name, as they begin and end.
pub(crate) struct Watch {
    name: EnsName,
    news: Receiver<News>,
}

impl Watch {
    /// The next step that is seen; `None` once there are no more runs.
    pub(crate) async fn next(&mut self) -> Option<StepSeen> {
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
        let says = |five: &i32| (*five == 5).then_some(Status::Pass);
        assert_eq!(progress.of(&ours, &RunSpans::none()).during(Step::Records, async { 5 }, says).await, 5);
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
