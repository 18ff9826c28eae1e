//! Whose work it is: each client has a share of the places of the [pool](crate::cpu_pool), so that nobody waits behind all
//! that one client asks for.
//!
//! The share is a property of the task that does the work. What is spawned for the same client inherits it. Work of the
//! daemon itself has none.

use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::task::JoinHandle;

tokio::task_local! {
    static SHARE: Arc<dyn CpuShare>;
}

/// The places of one client.
#[async_trait]
pub(crate) trait CpuShare: Send + Sync {
    /// A place, once one is free. It is given back when it is dropped.
    async fn place(&self) -> Box<dyn Send>;
}

/// `work`, whose jobs take places of `share`.
#[cfg(feature = "daemon")]
pub(crate) fn within<F: Future>(share: Arc<dyn CpuShare>, work: F) -> impl Future<Output = F::Output> {
    SHARE.scope(share, work)
}

/// Spawns `work`, whose jobs take places of the same share as those of who spawns it.
pub(crate) fn spawn<F>(work: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    match SHARE.try_with(Arc::clone) {
        Ok(share) => tokio::spawn(SHARE.scope(share, work)),
        Err(_) => tokio::spawn(work),
    }
}

/// A place of the share that this task has, if it has one.
pub(crate) async fn place() -> Option<Box<dyn Send>> {
    let share = SHARE.try_with(Arc::clone).ok().filter(|_| !clresolve_core::mutant!("one-client-takes-the-pool"))?;
    Some(share.place().await)
}
