//! The source of questions: a client of the daemon, within its limits, or the one program that this process serves.

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use clresolve_core::reason::RefusalCode;
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
    async fn resolve_question(&self, question: NameQuestion) -> Result<ResolutionWithResolver, RefusalCode>;

    /// Runs `work` as a resolution of the client. It continues if the client gives up.
    async fn run_as_resolution(
        &self,
        work: BoxFuture<'static, Result<McpToolAnswer, McpToolFailure>>,
    ) -> Result<McpToolAnswer, McpToolFailure>;

    /// The permit of the client's message. Work on the message holds it until it ends.
    fn message_permit(&self) -> Arc<dyn Any + Send + Sync>;

    /// Work of the client within its share of the CPU pool; `None` if the pool is not shared.
    fn cpu_task_context(&self, urgency: CpuJobUrgency) -> Option<CpuTaskContext>;

    /// The resolver whose profiles and rules apply.
    fn resolver(&self) -> &Resolver;

    /// The profile of a question that does not select one.
    fn default_profile(&self) -> &str;
}

/// An answer, and the resolver whose configuration produced it.
pub(crate) struct ResolutionWithResolver {
    pub(crate) resolver: Resolver,
    pub(crate) resolution: Resolution,
}

/// Runs `read` on a message outside the threads that answer. A cancelled call keeps its permit until `read` ends.
pub(super) async fn parse_message_on_cpu_pool<T: Send + 'static>(
    asker: &dyn McpBackend,
    read: impl FnOnce() -> T + Send + 'static,
) -> Result<T, RefusalCode> {
    let permit = asker.message_permit();
    let read = move || {
        let read = read();
        drop(permit);
        read
    };
    asker.resolver().cpu_pool().try_run(read).await.map_err(|CpuPoolFullError| RefusalCode::Overloaded)
}
