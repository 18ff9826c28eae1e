//! Keeps verdicts up to date: asks endpoints for the head of the chain, and rereads hot names at each new head.
//!
//! Each endpoint has its own task, so that a stalled one delays no other. Another task reads the hot names at each new
//! head, and the unconfirmed ones at each poll.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use clresolve_chain::ChainHeadReader;
use clresolve_core::name::EnsName;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::Resolver;
use super::confirm::NameReadingBlock;
use crate::cache::RequiredConfirmationMethod;
use crate::telemetry;

/// Maximum number of names that are read concurrently: five calls to each endpoint.
const MAX_AT_ONCE: usize = 100;

/// Maximum number of names that are reread for event streams, besides those of the gate and decisions.
const MAX_STREAMED: usize = 1_000;

/// Maximum number of resolutions of off-chain names at the same time, so that stalling gateways cost few of them.
const MAX_RUNS: usize = 4;

/// The tasks that follow the heads of the chain. They end when this is dropped.
pub struct HeadFollower(Vec<AbortHandle>);

impl HeadFollower {
    /// Ends the tasks.
    pub fn stop(&self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

impl Drop for HeadFollower {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Resolver {
    /// Follows the head of the chain. Names that [`Resolver::check_gate`] or [`Resolver::decide_payment`] received in
    /// the last five minutes are reread at each new head, and a change evicts their verdicts. Without a follower, each
    /// of these calls reads the head itself.
    pub fn follow_heads(&self) -> HeadFollower {
        let Some(reader) = &self.0.walker.heads else { return HeadFollower(Vec::new()) };
        self.0.cached.cache.heads.mark_as_followed();
        let polls = (0..reader.source_labels().len())
            .map(|endpoint| tokio::spawn(poll_endpoint_head(self.clone(), Arc::clone(reader), endpoint)));
        let mut tasks: Vec<_> = polls.map(|task| task.abort_handle()).collect();
        tasks.push(tokio::spawn(keep_confirming_hot_names(self.clone(), Arc::clone(reader))).abort_handle());
        tasks.push(tokio::spawn(keep_resolving_off_chain_names(self.clone())).abort_handle());
        HeadFollower(tasks)
    }

    /// Reads the hot names that the newest head has not confirmed.
    async fn confirm_hot_names(&self, reader: &Arc<dyn ChainHeadReader>) {
        let (cached, rules, now) = (&self.0.cached, &self.0.configured, self.now());
        let Some(seen) = cached.cache.heads.newest_head() else { return };
        let (mut confirmed, mut unconfirmed) = (0, Vec::new());
        for name in self.names_to_reread() {
            let key = cached.cache_key(name, rules);
            match cached.cache.required_confirmation(&key, now).await {
                Some(Some(RequiredConfirmationMethod::Reading)) => unconfirmed.push(key),
                Some(_) => confirmed += 1,
                None => {}
            }
        }
        telemetry::set_hot_name_counts(confirmed, unconfirmed.len());
        let at = NameReadingBlock { block: seen.head.block, id: Some(seen.id) };
        let read = |key| async move { drop(cached.join_or_start_reading(reader, &key, rules, at).await) };
        stream::iter(unconfirmed).for_each_concurrent(MAX_AT_ONCE, read).await;
    }

    /// Resolves the hot names again that rest on a CCIP-Read gateway and are due.
    async fn resolve_off_chain_names(&self) {
        let (cached, rules, now) = (&self.0.cached, &self.0.configured, self.now());
        let resolve = |name| async move {
            let key = cached.cache_key(name, rules);
            let is_due =
                cached.cache.required_confirmation(&key, now).await == Some(Some(RequiredConfirmationMethod::Run));
            if is_due && !cached.cache.is_backed_off(&key, now).await {
                // A panic caused by one name must not end the readings of the others.
                let _ = AssertUnwindSafe(cached.resolve_changed_name(&key.name, rules)).catch_unwind().await;
            }
        };
        stream::iter(self.names_to_reread()).for_each_concurrent(MAX_RUNS, resolve).await;
    }

    /// Whether there is no name to reread.
    fn has_no_names_to_reread(&self) -> bool {
        let cache = &self.0.cached.cache;
        cache.hot_names.is_empty(self.now()) && !cache.feed.has_subscribers()
    }

    /// The names to reread: those of the gate and decisions before those of event streams.
    fn names_to_reread(&self) -> Vec<EnsName> {
        let cache = &self.0.cached.cache;
        let mut names = cache.hot_names.names(self.now());
        let hot: BTreeSet<EnsName> = names.iter().cloned().collect();
        names.extend(cache.feed.subscribed_names(MAX_STREAMED).into_iter().filter(|name| !hot.contains(name)));
        names
    }
}

/// Polls one endpoint for its newest block while there are names to reread. After a failure, such as a rate limit,
/// polling pauses. Never returns.
async fn poll_endpoint_head(resolver: Resolver, reader: Arc<dyn ChainHeadReader>, endpoint: usize) {
    let label = reader.source_labels().into_iter().nth(endpoint).unwrap_or_default();
    let heads = &resolver.0.cached.cache.heads;
    let pause = resolver.0.walker.config.chain.head_poll;
    let mut ticks = interval(pause);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut was_up = true;
    loop {
        ticks.tick().await;
        if resolver.has_no_names_to_reread() || !reader.is_poll_due(endpoint, pause) {
            continue;
        }
        let answer = reader.poll_head(endpoint).await;
        match &answer {
            Ok((block, head)) => {
                telemetry::set_endpoint_head_time(&label, block.timestamp);
                head.iter().for_each(|head| heads.record_head(*head));
            }
            Err(error) if was_up => {
                tracing::warn!(endpoint = label, %error, "endpoint does not report its newest block")
            }
            Err(_) => {}
        }
        was_up = answer.is_ok();
    }
}

/// Reads the hot names at each new head. Never ends.
async fn keep_confirming_hot_names(resolver: Resolver, reader: Arc<dyn ChainHeadReader>) {
    let (heads, pause) = (&resolver.0.cached.cache.heads, resolver.0.walker.config.chain.head_poll);
    loop {
        tokio::select! {
            () = resolver.confirm_hot_names(&reader) => {}
            // Readings in flight continue, and their results count.
            () = heads.wait_for_head() => continue,
        }
        tokio::select! {
            () = heads.wait_for_head() => {}
            () = sleep(pause) => {}
        }
    }
}

/// Resolves hot names that rest on CCIP-Read gateways again and again. Never ends.
async fn keep_resolving_off_chain_names(resolver: Resolver) {
    loop {
        sleep(resolver.0.walker.config.chain.head_poll).await;
        resolver.resolve_off_chain_names().await;
    }
}
