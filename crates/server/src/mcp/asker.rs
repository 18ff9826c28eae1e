//! The source of questions: a client of the daemon, within its limits, or the one program that this process serves.

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use clresolve_core::reason::Refusal;
use clresolve_resolver::cpu_pool::CpuPoolFullError;
use clresolve_resolver::cpu_share::{CpuJobUrgency, CpuTaskContext};
use clresolve_resolver::resolve::{NameQuestion, Resolver};
use clresolve_verdict::trust::Resolution;
use futures_util::future::BoxFuture;

use super::answer::{McpToolAnswer, McpToolFailure};

/// Asks questions on behalf of one client.
#[async_trait]
pub(crate) trait McpBackend: Send + Sync {
    /// Resolves a question within the client's limits.
    async fn ask(&self, question: NameQuestion) -> Result<ResolverAnswer, Refusal>;

    /// Runs `work` as a resolution of the client. It continues if the client gives up.
    async fn run_admitted(
        &self,
        work: BoxFuture<'static, Result<McpToolAnswer, McpToolFailure>>,
    ) -> Result<McpToolAnswer, McpToolFailure>;

    /// The permit of the client's message. Work on the message holds it until it ends.
    fn message_permit(&self) -> Arc<dyn Any + Send + Sync>;

    /// Work of the client within its share of the CPU pool; `None` if the pool is not shared.
    fn pool_work(&self, urgency: CpuJobUrgency) -> Option<CpuTaskContext>;

    /// The resolver whose profiles and rules apply.
    fn resolver(&self) -> &Resolver;

    /// The profile of a question that does not select one.
    fn default_profile(&self) -> &str;
}

/// An answer, and the resolver whose configuration produced it.
pub(crate) struct ResolverAnswer {
    pub(crate) resolver: Resolver,
    pub(crate) resolution: Resolution,
}

/// Runs `read` on a message outside the threads that answer. A cancelled call keeps its permit until `read` ends.
pub(super) async fn parse_on_pool<T: Send + 'static>(
    asker: &dyn McpBackend,
    read: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    let permit = asker.message_permit();
    let read = move || {
        let read = read();
        drop(permit);
        read
    };
    asker.resolver().pool().try_run(read).await.map_err(|CpuPoolFullError| Refusal::Overloaded)
}
