//! Who asks: a client of the daemon, within its limits, or the one program that this process serves.

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use clresolve_core::reason::Refusal;
use clresolve_verdict::trust::Resolution;
use futures_util::future::BoxFuture;

use super::answer::{Answer, Failure};
use crate::cpu_pool::PoolFull;
use crate::cpu_share::{Urgency, Work};
use crate::resolve::{Question, Resolver};

/// Puts questions for one client.
#[async_trait]
pub(crate) trait Asker: Send + Sync {
    /// The answer to a question, within the client's limits.
    async fn ask(&self, question: Question) -> Result<AgentAnswer, Refusal>;

    /// The answer that `work` gives, which counts as a run of the client's. A client that gives up does not end it.
    async fn admitted(&self, work: BoxFuture<'static, Result<Answer, Failure>>) -> Result<Answer, Failure>;

    /// The place of the client's message. Work on it keeps this to its end.
    fn place(&self) -> Arc<dyn Any + Send + Sync>;

    /// Work for the client within its share of the pool; `None` where it shares the pool with nobody.
    fn work(&self, urgency: Urgency) -> Option<Work>;

    /// The resolver whose profiles and rules hold.
    fn resolver(&self) -> &Resolver;

    /// The profile of a question that names none.
    fn default_profile(&self) -> &str;
}

/// An answer, and the resolver under whose configuration it was given.
pub(crate) struct AgentAnswer {
    pub(crate) resolver: Resolver,
    pub(crate) resolution: Resolution,
}

/// What `read` reads in a message, apart from the threads that answer. A call that is cancelled frees no place before that.
pub(super) async fn read_apart<T: Send + 'static>(
    asker: &dyn Asker,
    read: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    let place = asker.place();
    let read = move || {
        let read = read();
        drop(place);
        read
    };
    asker.resolver().pool().try_run(read).await.map_err(|PoolFull| Refusal::Overloaded)
}
