//! Requests that audits make in addition to verdicts.

use std::time::Duration;

use clresolve_chain::EventLogNameFinder;
use clresolve_verdict::evidence::SchemaFetchResult;
use clresolve_verdict::manifest::BoundSchemaEntry;

use super::Resolver;

impl Resolver {
    /// Fetches a layer's schema from its canonical location and from each mirror.
    pub async fn fetch_published_schema(
        &self,
        entry: &BoundSchemaEntry,
    ) -> (SchemaFetchResult, Vec<SchemaFetchResult>) {
        self.0.walker.fetch_published_schema(entry).await
    }

    /// The rest still due of the server that will answer again last, among those that asked for a pause within the last
    /// `past`. For a resolver that serves lists. Zero if all rests are over.
    pub fn longest_remaining_server_pause(&self, past: Duration) -> Option<Duration> {
        self.0.walker.upstream.as_ref()?.egress.remaining_pause(past)
    }

    /// How long until the first gateway may be asked again, among those that asked for a pause within the last `past`.
    pub fn time_until_gateway_available(&self, past: Duration) -> Option<Duration> {
        self.0.walker.sources.content.time_until_gateway_available(past)
    }

    /// A finder of names through the endpoints. `None` if the chain is not read through endpoints.
    pub fn name_finder(&self) -> Option<EventLogNameFinder> {
        self.0.walker.upstream.as_ref().map(|upstream| EventLogNameFinder::new(&upstream.settings, &upstream.http))
    }
}
