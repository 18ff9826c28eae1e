//! The client and the urgency of a task, which determine its order in the [pool](crate::cpu_pool).
//!
//! Both are properties of the task that does the work, and spawned tasks inherit them. Work of the daemon itself has no
//! client and is as urgent as the gate's, because it keeps verdicts fresh for the gate.

use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::task::JoinHandle;

tokio::task_local! {
    static WORK: CpuTaskContext;
}

/// Who waits for the work. The most urgent variant is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CpuJobUrgency {
    /// The gate, for a verdict.
    Gate,
    /// A client that asks for a decision and sends documents with the request.
    Decision,
    /// A client that sends any other document.
    Document,
}

impl CpuJobUrgency {
    pub const ALL: [Self; 3] = [Self::Gate, Self::Decision, Self::Document];
}

/// The permits of one client.
#[async_trait]
pub trait ClientCpuShare: Send + Sync {
    /// Waits for a free permit of this urgency.
    async fn acquire_permit(&self, urgency: CpuJobUrgency) -> ClientCpuPermit;
}

/// A client's permit, released on drop.
pub struct ClientCpuPermit {
    rank: usize,
    _held: Box<dyn Send>,
}

impl ClientCpuPermit {
    /// The permit `held` of a client that held `rank` permits before.
    pub fn new(rank: usize, held: impl Send + 'static) -> Self {
        Self { rank, _held: Box::new(held) }
    }

    /// How many permits the client held before.
    pub(crate) const fn permits_held_before(&self) -> usize {
        self.rank
    }
}

/// The client and urgency of a task and of the tasks that it spawns.
#[derive(Clone)]
pub struct CpuTaskContext {
    share: Option<Arc<dyn ClientCpuShare>>,
    urgency: watch::Sender<CpuJobUrgency>,
}

impl CpuTaskContext {
    /// Work of the client with this share.
    pub fn new(share: Arc<dyn ClientCpuShare>, urgency: CpuJobUrgency) -> Self {
        Self { share: Some(share), urgency: watch::Sender::new(urgency) }
    }

    /// The work of this task.
    pub(crate) fn current() -> Self {
        WORK.try_with(Self::clone).unwrap_or_else(|_| Self::without_client(CpuJobUrgency::Gate))
    }

    /// Work without a client.
    pub(crate) fn without_client(urgency: CpuJobUrgency) -> Self {
        Self { share: None, urgency: watch::Sender::new(urgency) }
    }

    /// Work of the same client whose urgency changes independently.
    pub(crate) fn with_independent_urgency(&self) -> Self {
        Self { share: self.share.clone(), urgency: watch::Sender::new(self.urgency()) }
    }

    pub(crate) fn urgency(&self) -> CpuJobUrgency {
        *self.urgency.borrow()
    }

    /// Raises the urgency to that of `other`, whose task waits for this one.
    pub(crate) fn raise_urgency_to(&self, other: &Self) {
        let urgency = other.urgency();
        self.urgency.send_if_modified(|own| {
            let is_raised = urgency < *own && !clresolve_core::mutant!("the-gate-waits-as-whoever-began");
            if is_raised {
                *own = urgency;
            }
            is_raised
        });
    }

    /// Waits until the urgency is higher than `before`.
    pub(crate) async fn wait_until_raised(&self, before: CpuJobUrgency) {
        // The sender lives as long as `self`.
        let _ = self.urgency.subscribe().wait_for(|urgency| *urgency < before).await;
    }

    /// Waits for a permit of the client. `None` if there is no client.
    pub(crate) async fn acquire_permit(&self, urgency: CpuJobUrgency) -> Option<ClientCpuPermit> {
        let share = self.share.as_ref().filter(|_| !clresolve_core::mutant!("one-client-takes-the-pool"))?;
        Some(share.acquire_permit(urgency).await)
    }
}

/// Runs `task` as part of `work`.
pub fn run_in_context<F: Future>(work: CpuTaskContext, task: F) -> impl Future<Output = F::Output> {
    WORK.scope(work, task)
}

/// Spawns a task with the client and urgency of the current one.
pub fn spawn_task<F>(task: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    spawn_task_in_context(CpuTaskContext::current(), task)
}

pub(crate) fn spawn_task_in_context<F>(work: CpuTaskContext, task: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    tokio::spawn(run_in_context(work, task))
}
