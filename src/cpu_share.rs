//! Whose work it is, and who waits for it: the [pool](crate::cpu_pool) puts jobs in order by it.
//!
//! Both are properties of the task that does the work. What is spawned for the same client inherits them. Work of the
//! daemon itself has no client, and is as urgent as the gate's: it keeps verdicts fresh for the gate.

use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::task::JoinHandle;

tokio::task_local! {
    static WORK: Work;
}

/// Who waits for work. What comes first is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// The gate, for a verdict.
    Gate,
    /// The client of a decision, which carries documents of that client.
    Decision,
    /// The client of any other document.
    Document,
}

impl Urgency {
    pub(crate) const ALL: [Self; 3] = [Self::Gate, Self::Decision, Self::Document];
}

/// The places of one client.
#[async_trait]
pub(crate) trait CpuShare: Send + Sync {
    /// A place among those for work of this urgency, once one is free.
    async fn place(&self, urgency: Urgency) -> ClientPlace;
}

/// A place of a client. It is given back when this is dropped.
pub(crate) struct ClientPlace {
    /// How many places the client held before.
    pub(crate) rank: usize,
    pub(crate) _held: Box<dyn Send>,
}

/// Work of a task, and of what it spawns.
#[derive(Clone)]
pub(crate) struct Work {
    share: Option<Arc<dyn CpuShare>>,
    urgency: watch::Sender<Urgency>,
}

impl Work {
    /// Work of the client that has this share.
    #[cfg(feature = "daemon")]
    pub(crate) fn new(share: Arc<dyn CpuShare>, urgency: Urgency) -> Self {
        Self { share: Some(share), urgency: watch::Sender::new(urgency) }
    }

    /// The work of this task.
    pub(crate) fn current() -> Self {
        WORK.try_with(Self::clone).unwrap_or_else(|_| Self::of_nobody(Urgency::Gate))
    }

    /// Work of no client.
    pub(crate) fn of_nobody(urgency: Urgency) -> Self {
        Self { share: None, urgency: watch::Sender::new(urgency) }
    }

    /// Work for the same client whose urgency is a value of its own.
    pub(crate) fn apart(&self) -> Self {
        Self { share: self.share.clone(), urgency: watch::Sender::new(self.urgency()) }
    }

    pub(crate) fn urgency(&self) -> Urgency {
        *self.urgency.borrow()
    }

    /// Makes this as urgent as `other`, whose task waits for it, unless it is more urgent.
    pub(crate) fn is_awaited_by(&self, other: &Self) {
        let urgency = other.urgency();
        self.urgency.send_if_modified(|own| {
            let is_raised = urgency < *own && !clresolve_core::mutant!("the-gate-waits-as-whoever-began");
            if is_raised {
                *own = urgency;
            }
            is_raised
        });
    }

    /// Ends once this is more urgent than `before`.
    pub(crate) async fn is_raised(&self, before: Urgency) {
        // The sender lives as long as this.
        let _ = self.urgency.subscribe().wait_for(|urgency| *urgency < before).await;
    }

    /// A place of the client, if there is one.
    pub(crate) async fn place(&self, urgency: Urgency) -> Option<ClientPlace> {
        let share = self.share.as_ref().filter(|_| !clresolve_core::mutant!("one-client-takes-the-pool"))?;
        Some(share.place(urgency).await)
    }
}

/// `task`, which does `work`.
pub(crate) fn within<F: Future>(work: Work, task: F) -> impl Future<Output = F::Output> {
    WORK.scope(work, task)
}

/// Spawns a task that does the same work as the one that spawns it.
pub(crate) fn spawn<F>(task: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    spawn_for(Work::current(), task)
}

/// Spawns a task that does `work`.
pub(crate) fn spawn_for<F>(work: Work, task: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    tokio::spawn(within(work, task))
}
