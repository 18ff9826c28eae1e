//! What runs tell of themselves while they go on, for those who watch.

use std::future::Future;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender, channel};

use super::spans::RunSpans;
use crate::name::EnsName;
use crate::reason::Step;

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
    /// Whether it has ended.
    pub(crate) has_ended: bool,
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
    /// Does the work of a step, and tells when it begins and ends.
    pub(super) async fn during<T>(self, step: Step, work: impl Future<Output = T>) -> T {
        self.tell(StepSeen { step, has_ended: false });
        let done = self.spans.during(step, work).await;
        self.tell(StepSeen { step, has_ended: true });
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
        progress.of(&ours, &RunSpans::none()).during(Step::Name, async {}).await;
        let mut watch = progress.watch(ours.clone());
        progress.of(&theirs, &RunSpans::none()).during(Step::Records, async {}).await;
        assert_eq!(progress.of(&ours, &RunSpans::none()).during(Step::Records, async { 5 }).await, 5);
        drop(progress);
        let seen = |has_ended| Some(StepSeen { step: Step::Records, has_ended });
        assert_eq!([watch.next().await, watch.next().await, watch.next().await], [seen(false), seen(true), None]);
    }

    #[tokio::test]
    async fn a_watcher_that_does_not_look_misses_the_oldest() {
        let progress = Progress::new();
        let ours = name("a.eth");
        let mut watch = progress.watch(ours.clone());
        for _ in 0..KEPT {
            progress.of(&ours, &RunSpans::none()).during(Step::Records, async {}).await;
        }
        drop(progress);
        let mut seen = 0;
        while watch.next().await.is_some() {
            seen += 1;
        }
        assert_eq!(seen, KEPT);
    }
}
