//! The source of questions: a client of the daemon, within its limits, or the one program that this process serves.

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use clresolve_core::reason::Refusal;
use clresolve_resolver::cpu_pool::PoolFull;
use clresolve_resolver::cpu_share::{Urgency, Work};
use clresolve_resolver::resolve::{Question, Resolver};
use clresolve_verdict::trust::Resolution;
use futures_util::future::BoxFuture;

use super::answer::{Answer, Failure};

/// Asks questions on behalf of one client.
#[async_trait]
pub(crate) trait Asker: Send + Sync {
    /// Resolves a question within the client's limits.
    async fn ask(&self, question: Question) -> Result<AgentAnswer, Refusal>;

    /// Runs `work` as a resolution of the client. It continues if the client gives up.
    async fn admitted(&self, work: BoxFuture<'static, Result<Answer, Failure>>) -> Result<Answer, Failure>;

    /// The permit of the client's message. Work on the message holds it until it ends.
    fn permit(&self) -> Arc<dyn Any + Send + Sync>;

    /// Work of the client within its share of the CPU pool; `None` if the pool is not shared.
    fn work(&self, urgency: Urgency) -> Option<Work>;

    /// The resolver whose profiles and rules apply.
    fn resolver(&self) -> &Resolver;

    /// The profile of a question that does not select one.
    fn default_profile(&self) -> &str;
}

/// An answer, and the resolver whose configuration produced it.
pub(crate) struct AgentAnswer {
    pub(crate) resolver: Resolver,
    pub(crate) resolution: Resolution,
}

/// Runs `read` on a message outside the threads that answer. A cancelled call keeps its permit until `read` ends.
pub(super) async fn read_apart<T: Send + 'static>(
    asker: &dyn Asker,
    read: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    let permit = asker.permit();
    let read = move || {
        let read = read();
        drop(permit);
        read
    };
    asker.resolver().pool().try_run(read).await.map_err(|PoolFull| Refusal::Overloaded)
}
