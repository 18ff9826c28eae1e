//! Who asks: a client of the daemon, within its limits, or the one program that this process serves.

use async_trait::async_trait;
use futures_util::future::BoxFuture;

use super::answer::{Answer, Failure};
use crate::reason::Refusal;
use crate::resolve::{Question, Resolver};
use crate::verdict::Resolution;

/// Puts questions for one client.
#[async_trait]
pub(crate) trait Asker: Send + Sync {
    /// The answer to a question, within the client's limits.
    async fn ask(&self, question: Question) -> Result<AgentAnswer, Refusal>;

    /// The answer that `work` gives, which counts as a run of the client's. A client that gives up does not end it.
    async fn admitted(&self, work: BoxFuture<'static, Result<Answer, Failure>>) -> Result<Answer, Failure>;

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
