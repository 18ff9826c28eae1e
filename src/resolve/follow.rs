//! The daemon follows the chain: what endpoints say about new blocks puts names out of the cache, and they are read
//! again.
//!
//! Each endpoint is asked in a task of its own, so that one that stalls holds up no other. What they say is a hint, which
//! [`Changes`] takes within a budget. One more task reads the names that may have changed, on the runs that clients'
//! questions take too.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use tokio::sync::{Notify, Semaphore};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

use super::upstream::Upstream;
use super::{Question, Resolver};
use crate::cache::Changes;
use crate::chain::{Follower, News};
use crate::name::EnsName;
use crate::reason::Code;
use crate::telemetry;

/// Most runs at once for names that may have changed: far fewer than clients may cause, so that these come first.
const MAX_READINGS: usize = 4;

/// How often it is looked whether a name may be read again that waits for its second to pass. It is short beside that.
const TICK: Duration = Duration::from_millis(50);

/// Time between two readings of a name whose change too few endpoints have seen.
const UNTIL_NEXT_READING: SignedDuration = SignedDuration::from_secs(1);

/// The tasks that follow the chain. They end when this is dropped.
pub(crate) struct Following(Vec<AbortHandle>);

impl Following {
    /// Ends the tasks.
    pub(crate) fn stop(&self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Resolver {
    /// Follows the configured endpoints, if the configuration says so.
    pub(crate) fn follow(&self) -> Following {
        let walker = &self.0.walker;
        let upstream = walker.upstream.as_ref().filter(|_| walker.config.follow.enabled);
        let followers = upstream.map(Upstream::followers).unwrap_or_default();
        let changes = Arc::clone(&self.0.cached.cache.changes);
        let own: Vec<bool> = followers.iter().map(Follower::is_own).collect();
        changes.follow(&own);
        telemetry::followed(0);
        if followers.is_empty() {
            return Following(Vec::new());
        }
        let wake = Arc::new(Notify::new());
        let watch = |(index, follower): (usize, Follower)| {
            let watch = Watch { resolver: self.clone(), changes: Arc::clone(&changes), wake: Arc::clone(&wake), index };
            tokio::spawn(watch.run(follower)).abort_handle()
        };
        let mut tasks: Vec<AbortHandle> = followers.into_iter().enumerate().map(watch).collect();
        tasks.push(tokio::spawn(read_again(self.clone(), Arc::clone(&changes), wake)).abort_handle());
        Following(tasks)
    }

    /// Reads a name again under the configured rules. A run that does not know of the change yet is followed by another.
    async fn read_changed(&self, name: EnsName, changes: &Changes) {
        let began = changes.begin();
        let Ok(resolution) = self.ask_anew(&Question::new(name.as_str())).await else { return };
        let now = self.now();
        if changes.unread(&name, began, resolution.newest(), now).is_some() {
            return changes.read_again(name, now + UNTIL_NEXT_READING);
        }
        let is_changed = resolution.verdict().reasons.iter().any(|reason| reason.code == Code::RecordPending);
        changes.judge(&name, resolution.newest(), is_changed, now);
    }
}

/// One endpoint that is followed.
struct Watch {
    resolver: Resolver,
    changes: Arc<Changes>,
    wake: Arc<Notify>,
    /// By which the changes know it.
    index: usize,
}

impl Watch {
    /// Asks again and again. Never ends.
    async fn run(self, mut follower: Follower) {
        let config = &self.resolver.0.walker.config.follow;
        let pause = if follower.is_own() { config.poll } else { config.poll_public };
        let mut was_up = true;
        loop {
            let news = follower.next(&self.changes.resolvers()).await;
            let is_up = news.is_ok();
            match news {
                Ok(Some(news)) => self.take(follower.label(), &news).await,
                Ok(None) => {}
                Err(error) if was_up => tracing::warn!(endpoint = follower.label(), %error, "endpoint is not followed"),
                Err(_) => {}
            }
            self.changes.answered(self.index, is_up);
            telemetry::followed(self.changes.followed());
            was_up = is_up;
            self.wake.notify_one();
            sleep(pause).await;
        }
    }

    /// Puts what may have changed out of the cache.
    async fn take(&self, label: &str, news: &News) {
        let now = self.resolver.now();
        let outcome = self.changes.news(self.index, news, now);
        self.resolver.0.cached.evict_changed(&outcome.evicted).await;
        self.wake.notify_one();
        telemetry::head_age(label, now.duration_since(news.head.timestamp));
        telemetry::hints(label, outcome.hints);
        telemetry::hints_ignored(label, "budget", outcome.over_budget);
        telemetry::hints_ignored(label, "too-far", outcome.too_far);
        telemetry::hints_ignored(label, "unasked", news.unasked as u64);
        let Some(missed) = &news.missed else { return };
        telemetry::gap(label);
        let (first, last) = (missed.start(), missed.end());
        tracing::info!(endpoint = label, first, last, covered = !outcome.is_stale, "logs of these blocks were not read");
    }
}

/// Reads the names that may have changed, a few at a time. Never ends.
async fn read_again(resolver: Resolver, changes: Arc<Changes>, wake: Arc<Notify>) {
    let places = Arc::new(Semaphore::new(MAX_READINGS));
    let mut readings = JoinSet::new();
    loop {
        for name in changes.due(resolver.now()) {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            while readings.try_join_next().is_some() {}
            let (resolver, changes) = (resolver.clone(), Arc::clone(&changes));
            readings.spawn(async move {
                let _place = place;
                resolver.read_changed(name, &changes).await;
            });
        }
        if changes.is_idle() {
            wake.notified().await;
        } else {
            sleep(TICK).await;
        }
    }
}
