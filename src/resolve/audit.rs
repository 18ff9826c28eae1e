//! What audits ask beside verdicts.

use std::time::Duration;

use super::Resolver;
use crate::chain::NameFinder;
use crate::evidence::SchemaAnswer;
use crate::manifest::SchemaEntry;

impl Resolver {
    /// What the locations of a layer's schema serve: the canonical one, and each mirror.
    pub(crate) async fn published_schema(&self, entry: &SchemaEntry) -> (SchemaAnswer, Vec<SchemaAnswer>) {
        self.0.walker.published_schema(entry).await
    }

    /// How long the last server to answer again still rests, of those that have rested within the last `past`, as they asked
    /// for: of a resolver for lists. Zero where their rests are over.
    pub(crate) fn rest(&self, past: Duration) -> Option<Duration> {
        self.0.walker.upstream.as_ref()?.egress.rest(past)
    }

    /// How long until the first gateway may be asked again that has rested within the last `past`, as it asked for.
    pub(crate) fn gateway_rest(&self, past: Duration) -> Option<Duration> {
        self.0.walker.sources.content.rest(past)
    }

    /// What finds names through the endpoints; `None` where the chain is not read through endpoints.
    pub(crate) fn name_finder(&self) -> Option<NameFinder> {
        self.0.walker.upstream.as_ref().map(|upstream| NameFinder::new(&upstream.settings, &upstream.http))
    }
}
