//! Who asks: a client of the daemon, within its limits, or the one program that this process serves.

use async_trait::async_trait;

use crate::reason::Refusal;
use crate::resolve::{Question, Resolver};
use crate::verdict::Resolution;

/// Puts questions for one client.
#[async_trait]
pub(crate) trait Asker: Send + Sync {
    /// The answer to a question, within the client's limits.
    async fn ask(&self, question: Question) -> Result<Asked, Refusal>;

    /// The resolver whose profiles and rules hold.
    fn resolver(&self) -> &Resolver;

    /// The profile of a question that names none.
    fn default_profile(&self) -> &str;
}

/// An answer, and the resolver under whose configuration it was given.
pub(crate) struct Asked {
    pub(crate) resolver: Resolver,
    pub(crate) resolution: Resolution,
}
