//! The daemon follows the chain: what endpoints say about new blocks puts names out of the cache, and they are read
//! again.
//!
//! Each endpoint is asked in a task of its own, so that one that stalls holds up no other. If it has a WebSocket, a
//! further task listens there for when to ask. What endpoints say is a hint, which [`Changes`] takes within a budget. One
//! more task reads the names that may have changed, on the runs that clients' questions take too.

mod hints;

use std::sync::Arc;
use std::time::Duration;

use clresolve_chain::{Endpoint, FollowError, Follower, News};
use clresolve_core::name::EnsName;
use jiff::SignedDuration;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

pub(super) use self::hints::subscribes;
use self::hints::{Hints, Subscriber};
use super::Resolver;
use super::upstream::Upstream;
use crate::cache::{Changes, EndpointId};
use crate::telemetry;

/// Most runs at once for names that may have changed: far fewer than clients may cause, so that these come first.
const MAX_READINGS: usize = 4;

/// How often it is looked whether a name may be read again that waits for its second to pass. It is short beside that.
const TICK: Duration = Duration::from_millis(50);

/// Time between two readings of a name whose change too few endpoints have seen.
const UNTIL_NEXT_READING: SignedDuration = SignedDuration::from_secs(1);

/// The tasks that follow the chain. They end when this is dropped.
pub struct Following(Vec<AbortHandle>);

impl Following {
    /// Ends the tasks.
    pub fn stop(&self) {
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
    pub fn follow(&self) -> Following {
        let walker = &self.0.walker;
        let upstream = walker.upstream.as_ref().filter(|_| walker.config.follow.enabled);
        let followers = upstream.map(Upstream::followers).unwrap_or_default();
        let changes = Arc::clone(&self.0.cached.cache.changes);
        // By which WebSocket it wakes says nothing of who an endpoint is.
        let endpoint = |follower: &Follower| Endpoint { ws: None, ..follower.endpoint().clone() };
        let endpoints: Vec<_> = followers.iter().map(endpoint).collect();
        let ids = changes.follow(&endpoints);
        telemetry::followed(0);
        let Some(upstream) = upstream else { return Following(Vec::new()) };
        let mut tasks = Vec::new();
        for (id, follower) in ids.into_iter().zip(followers) {
            let hints = Arc::new(Hints::default());
            if let Some(subscriber) = subscriber(upstream, follower.endpoint(), &hints) {
                tasks.push(tokio::spawn(subscriber.run()).abort_handle());
            }
            let watch = FollowedEndpoint { resolver: self.clone(), changes: Arc::clone(&changes), id, hints };
            tasks.push(tokio::spawn(watch.run(follower)).abort_handle());
        }
        tasks.push(tokio::spawn(read_again(self.clone(), Arc::clone(&changes))).abort_handle());
        Following(tasks)
    }

    /// Reads a name again under the configured rules. A run that does not know of the change yet is followed by another.
    async fn read_changed(&self, name: EnsName, changes: &Changes) {
        let cache = &self.0.cached.cache;
        let began = cache.begin();
        let found = self.0.cached.read_again(&name, &self.0.configured).await;
        let now = self.now();
        if !cache.judge(&name, began, &found, now) {
            // Where the chain could not be read at all, it is no use to ask again before a client would.
            let retry = found.newest().map_or(found.verdict().freshness.fresh_until, |_| now);
            changes.read_again(name, retry.max(now + UNTIL_NEXT_READING));
        }
    }
}

/// What listens at an endpoint that has a WebSocket.
fn subscriber(upstream: &Upstream, endpoint: &Endpoint, hints: &Arc<Hints>) -> Option<Subscriber> {
    let url = endpoint.ws.clone()?;
    let (streams, label) = (Arc::new(upstream.egress.clone()), endpoint.label.clone());
    Some(Subscriber { streams, url, label, hints: Arc::clone(hints) })
}

/// One endpoint that is followed.
struct FollowedEndpoint {
    resolver: Resolver,
    changes: Arc<Changes>,
    /// By which the changes know it.
    id: EndpointId,
    /// When to ask it.
    hints: Arc<Hints>,
}

impl FollowedEndpoint {
    /// Asks again and again. Never ends.
    async fn run(self, mut follower: Follower) {
        let config = &self.resolver.0.walker.config.follow;
        let pause = if follower.endpoint().own { config.poll } else { config.poll_public };
        let mut was_up = true;
        loop {
            let follows = |source, node| self.changes.follows(source, node);
            let news = follower.next(&self.changes.resolvers(), &follows).await;
            let is_up = news.is_ok();
            if let Err(FollowError::Malformed(_)) = &news {
                telemetry::hints_ignored(&follower.endpoint().label, "malformed", 1);
            }
            match news {
                Ok(Some(news)) => self.take(&follower.endpoint().label, &news),
                Ok(None) => {}
                Err(error) if was_up => {
                    tracing::warn!(endpoint = follower.endpoint().label, %error, "endpoint is not followed");
                }
                Err(_) => {}
            }
            self.changes.answered(self.id, is_up, self.resolver.now());
            telemetry::followed(self.changes.followed());
            was_up = is_up;
            self.hints.wait(pause).await;
        }
    }

    /// Puts what may have changed out of the cache.
    fn take(&self, label: &str, news: &News) {
        let now = self.resolver.now();
        let outcome = self.changes.news(self.id, news, now);
        self.resolver.0.cached.evict_changed(&outcome.evicted);
        telemetry::head_time(label, news.head.timestamp);
        outcome.count(label);
        telemetry::hints_ignored(label, "unasked", news.unasked as u64);
        telemetry::hints_ignored(label, "malformed", news.malformed as u64);
        let Some(missed) = &news.missed else { return };
        telemetry::gap(label);
        let (first, last) = (missed.start(), missed.end());
        tracing::info!(
            endpoint = label,
            first,
            last,
            covered = !outcome.is_stale,
            "logs of these blocks were not read"
        );
    }
}

/// Reads the names that may have changed, a few at a time. Never ends.
async fn read_again(resolver: Resolver, changes: Arc<Changes>) {
    let places = Arc::new(Semaphore::new(MAX_READINGS));
    let mut readings = JoinSet::new();
    loop {
        resolver.0.cached.evict(&changes.recalled());
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
            changes.wait().await;
        } else {
            sleep(TICK).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use clresolve_chain::{Change, Source};
    use clresolve_core::reading::Block;
    use clresolve_core::state::State;
    use clresolve_verdict::sample;

    use super::*;
    use crate::resolve::CacheStatus;
    use crate::resolve::Question;
    use crate::sandbox::World;
    use crate::sandbox::spec::Spec;

    /// Most changes are of what names no content: reading it again would burden hosts and gateways for nothing.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_name_that_may_have_changed_keeps_its_content() {
        let agent = "[[agent]]\nname = \"good.eth\"\nabout = \"Good.\"\nstate = \"trusted\"\n";
        let world = World::start(&Spec::parse(agent).expect("it is a world")).await.expect("it starts");
        let resolver = Resolver::new(&world.config()).await.expect("its configuration is good");
        let name = EnsName::parse("good.eth").expect("a name");
        assert_eq!(resolver.resolve("good.eth").await.verdict().state, State::Trusted);
        let before = world.counts();
        resolver.evict(&name);
        let status = async || resolver.cache_status(&Question::new("good.eth")).await.expect("the profile exists");
        assert!(matches!(status().await, CacheStatus::Missing));
        resolver.read_changed(name, &resolver.0.cached.cache.changes).await;
        let after = world.counts();
        assert!(matches!(status().await, CacheStatus::Fresh(_)));
        assert_eq!((after.https, after.gateway), (before.https, before.gateway));
        assert_eq!(after.rpc - before.rpc, 2, "the records, and the holder of the owner's name");
    }

    /// Else endpoints that are down would be asked about each such name once a second, for ten minutes.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_name_is_read_again_ever_more_seldom_while_no_endpoint_answers() {
        let world = World::start(&Spec::parse("").expect("it is a world")).await.expect("it starts");
        let mut config = world.config();
        config.chain.endpoints[0].url = "http://127.0.0.1:1/".parse().expect("a URL");
        let resolver = Resolver::new(&config).await.expect("its configuration is good");
        let (cached, name) = (&resolver.0.cached, EnsName::parse("good.eth").expect("a name"));
        let changes = &cached.cache.changes;
        let url = "http://127.0.0.1:1/".parse().expect("a URL");
        let own = Endpoint { label: "own".to_owned(), url, own: true, operator: "own".to_owned(), ws: None };
        let ids = changes.follow(&[own]);
        let trusted = sample::empty(State::Trusted, resolver.now(), 0);
        cached.cache.run_anew(cached.key(name.clone(), &resolver.0.configured), |_| async { trusted }).await;
        let change = Change { block: 5, source: Source::Registration, node: name.node() };
        let head = Block { number: 5, hash: [9; 32].into(), timestamp: resolver.now() };
        let changed = vec![change];
        let news = News { head, changes: changed, replaced: None, missed: None, unasked: 0, malformed: 0 };
        assert_eq!(changes.news(ids[0], &news, resolver.now()).hints, 1);

        for _ in 0..3 {
            resolver.read_changed(name.clone(), changes).await;
        }
        let now = resolver.now();
        assert_eq!(changes.due(now + SignedDuration::from_secs(2)), []);
        assert_eq!(changes.due(now + SignedDuration::from_secs(4)), [name]);
    }
}
