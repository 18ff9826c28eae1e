//! The events about names, in order, for subscribers.
//!
//! All subscribers share one log of bounded length, and each reads it at its own pace. A subscriber that falls behind
//! the log is disconnected, so that it does not mistake a gap for silence.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::watch;

use clresolve_core::name::EnsName;
use clresolve_core::state::TrustState;
use clresolve_verdict::verdict::{ResolutionDepth, Verdict};

/// Maximum number of stored events, about 2 MiB with the longest names. A subscriber that was away for longer starts
/// anew.
const KEPT: usize = 4096;

/// The events of one cache.
pub struct NameEventFeed {
    /// Distinguishes its positions from those of another feed, such as that of an earlier process.
    id: u64,
    log: Mutex<NameEventLog>,
    /// Number of followers of each name.
    followed: Mutex<BTreeMap<EnsName, usize>>,
    grown: watch::Sender<()>,
}

#[derive(Default)]
struct NameEventLog {
    count: u64,
    /// Whether there has been a follower. Until then no follower can resume, so nothing is stored.
    is_followed: bool,
    /// The latest events since then, newest last.
    kept: VecDeque<Arc<NameEvent>>,
}

/// An event about a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum NameEvent {
    /// A resolution had another result than the cached one, or there was none.
    Verdict(VerdictChange),
    /// Earlier answers are no longer used, because the name may have changed.
    Eviction {
        /// The name in normal form.
        name: EnsName,
        /// When it was evicted.
        at: Timestamp,
    },
}

/// A verdict that differs from the previous one, or the first one of a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerdictChange {
    /// The name in normal form.
    name: EnsName,
    /// The profile's identifier.
    profile: String,
    depth: ResolutionDepth,
    /// The previous state.
    before: Option<TrustState>,
    state: TrustState,
    /// The verdict's id.
    verdict: String,
    checked_at: Timestamp,
}

/// A position in a feed, after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameEventId {
    feed: u64,
    count: u64,
}

/// Reads the events of some names.
pub struct NameEventReader {
    feed: Arc<NameEventFeed>,
    names: BTreeSet<EnsName>,
    /// Number of events that were read or skipped.
    read: u64,
    grown: watch::Receiver<()>,
}

impl Default for NameEventFeed {
    fn default() -> Self {
        Self {
            id: RandomState::new().hash_one(()),
            log: Mutex::default(),
            followed: Mutex::default(),
            grown: watch::Sender::default(),
        }
    }
}

impl NameEventFeed {
    pub(super) fn publish_event(&self, event: NameEvent) {
        let mut log = self.lock_log();
        log.count += 1;
        if !log.is_followed {
            return;
        }
        log.kept.push_back(Arc::new(event));
        if log.kept.len() > KEPT && !clresolve_core::mutant!("events-without-end") {
            log.kept.pop_front();
        }
        drop(log);
        self.grown.send_replace(());
    }

    /// Follows names from now on.
    pub fn subscribe(self: &Arc<Self>, names: BTreeSet<EnsName>) -> NameEventReader {
        let read = {
            let mut log = self.lock_log();
            log.is_followed = true;
            log.count
        };
        self.subscribe_from_position(names, read)
    }

    /// Follows names from a position on. `None` if the position belongs to another feed, or if later events are no
    /// longer stored.
    pub fn resume_subscription(self: &Arc<Self>, names: BTreeSet<EnsName>, place: &str) -> Option<NameEventReader> {
        let place = NameEventId::parse(place).filter(|place| place.feed == self.id)?;
        let is_kept = {
            let mut log = self.lock_log();
            log.is_followed = true;
            place.count >= log.dropped_event_count() && place.count <= log.count
        };
        is_kept.then(|| self.subscribe_from_position(names, place.count))
    }

    pub(crate) fn has_subscribers(&self) -> bool {
        !self.lock_subscriber_counts().is_empty()
    }

    /// The names with subscribers, at most `most` of them.
    pub(crate) fn subscribed_names(&self, most: usize) -> Vec<EnsName> {
        self.lock_subscriber_counts().keys().take(most).cloned().collect()
    }

    fn lock_subscriber_counts(&self) -> MutexGuard<'_, BTreeMap<EnsName, usize>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn subscribe_from_position(self: &Arc<Self>, names: BTreeSet<EnsName>, read: u64) -> NameEventReader {
        names.iter().for_each(|name| *self.lock_subscriber_counts().entry(name.clone()).or_default() += 1);
        NameEventReader { feed: Arc::clone(self), names, read, grown: self.grown.subscribe() }
    }

    fn lock_log(&self) -> MutexGuard<'_, NameEventLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NameEventLog {
    /// Number of events that are no longer stored.
    fn dropped_event_count(&self) -> u64 {
        self.count - u64::try_from(self.kept.len()).unwrap_or(self.count)
    }
}

impl Drop for NameEventReader {
    fn drop(&mut self) {
        let mut followers = self.feed.lock_subscriber_counts();
        for name in &self.names {
            let Some(count) = followers.get_mut(name) else { continue };
            *count -= 1;
            if *count == 0 {
                followers.remove(name);
            }
        }
    }
}

impl NameEventReader {
    /// The current position.
    pub fn position(&self) -> NameEventId {
        NameEventId { feed: self.feed.id, count: self.read }
    }

    /// Waits for the next event about its names and advances the position. `None` if it has fallen behind. Cancel safe.
    pub async fn next(&mut self) -> Option<Arc<NameEvent>> {
        loop {
            self.grown.mark_unchanged();
            if let Some(event) = self.next_stored_event()? {
                return Some(event);
            }
            self.grown.changed().await.ok()?;
        }
    }

    /// The next stored event about its names, if there is one. `None` if the next event is no longer stored.
    fn next_stored_event(&mut self) -> Option<Option<Arc<NameEvent>>> {
        let log = self.feed.lock_log();
        let passed = self.read.checked_sub(log.dropped_event_count())?;
        for event in log.kept.iter().skip(usize::try_from(passed).ok()?) {
            self.read += 1;
            if self.names.contains(event.name()) {
                return Some(Some(Arc::clone(event)));
            }
        }
        Some(None)
    }
}

impl NameEvent {
    /// The event for a verdict, compared with the previous one.
    pub(super) fn from_verdicts(name: &EnsName, before: Option<&Verdict>, found: &Verdict) -> Self {
        Self::Verdict(VerdictChange {
            name: name.clone(),
            profile: found.profile.id.clone(),
            depth: found.profile.depth,
            before: before.map(|before| before.state),
            state: found.state,
            verdict: found.id.clone(),
            checked_at: found.freshness.checked_at,
        })
    }

    /// The event's type.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Verdict(_) => "verdict",
            Self::Eviction { .. } => "eviction",
        }
    }

    const fn name(&self) -> &EnsName {
        match self {
            Self::Verdict(VerdictChange { name, .. }) | Self::Eviction { name, .. } => name,
        }
    }
}

impl NameEventId {
    fn parse(text: &str) -> Option<Self> {
        let (feed, count) = text.split_once('-')?;
        Some(Self { feed: u64::from_str_radix(feed, 16).ok()?, count: count.parse().ok()? })
    }
}

impl fmt::Display for NameEventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{}", self.feed, self.count)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn names(names: &[&str]) -> BTreeSet<EnsName> {
        names.iter().map(|name| EnsName::parse(name).expect("a name")).collect()
    }

    fn eviction(name: &str) -> NameEvent {
        NameEvent::Eviction { name: EnsName::parse(name).expect("a name"), at: Timestamp::UNIX_EPOCH }
    }

    /// The available events, and whether the follower has ended.
    fn read(follower: &mut NameEventReader) -> (Vec<NameEvent>, bool) {
        let mut seen = Vec::new();
        loop {
            match follower.next().now_or_never() {
                Some(Some(event)) => seen.push(NameEvent::clone(&event)),
                Some(None) => return (seen, true),
                None => return (seen, false),
            }
        }
    }

    #[tokio::test]
    async fn a_follower_sees_what_happens_to_its_names_from_its_place_on() {
        let feed = Arc::new(NameEventFeed::default());
        feed.publish_event(eviction("a.eth"));
        let mut follower = feed.subscribe(names(&["a.eth", "b.eth"]));
        assert_eq!(read(&mut follower), (vec![], false), "what was before is no news");
        let start = follower.position();
        for name in ["c.eth", "b.eth", "a.eth"] {
            feed.publish_event(eviction(name));
        }
        assert_eq!(read(&mut follower), (vec![eviction("b.eth"), eviction("a.eth")], false));
        let mut again = feed.resume_subscription(names(&["c.eth"]), &start.to_string()).expect("a place of this feed");
        assert_eq!(read(&mut again), (vec![eviction("c.eth")], false));
    }

    #[test]
    fn a_name_is_followed_until_the_last_follower_leaves() {
        let feed = Arc::new(NameEventFeed::default());
        let (first, second) = (feed.subscribe(names(&["a.eth"])), feed.subscribe(names(&["a.eth", "b.eth"])));
        assert_eq!(feed.subscribed_names(2).len(), 2);
        drop(second);
        assert_eq!(feed.subscribed_names(2), [EnsName::parse("a.eth").expect("a name")]);
        drop(first);
        assert_eq!(feed.subscribed_names(2), []);
    }

    #[test]
    fn nothing_is_kept_until_somebody_follows() {
        let feed = Arc::new(NameEventFeed::default());
        feed.publish_event(eviction("a.eth"));
        assert_eq!(feed.lock_log().kept.len(), 0);
        let _follower = feed.subscribe(names(&["a.eth"]));
        feed.publish_event(eviction("a.eth"));
        assert_eq!(feed.lock_log().kept.len(), 1);
    }

    #[tokio::test]
    async fn who_waits_is_woken() {
        let feed = Arc::new(NameEventFeed::default());
        let mut follower = feed.subscribe(names(&["a.eth"]));
        let waiting = tokio::spawn(async move { follower.next().await });
        tokio::task::yield_now().await;
        feed.publish_event(eviction("a.eth"));
        assert_eq!(waiting.await.expect("no panic").as_deref(), Some(&eviction("a.eth")));
    }

    #[test]
    fn who_falls_behind_is_cut_off() {
        let feed = Arc::new(NameEventFeed::default());
        let mut slow = feed.subscribe(names(&["a.eth"]));
        let start = slow.position().to_string();
        for _ in 0..KEPT {
            feed.publish_event(eviction("a.eth"));
        }
        assert!(feed.resume_subscription(names(&["a.eth"]), &start).is_some(), "all is kept");
        feed.publish_event(eviction("b.eth"));
        assert_eq!(read(&mut slow), (vec![], true));
        assert!(feed.resume_subscription(names(&["a.eth"]), &start).is_none());
        assert_eq!(feed.lock_log().kept.len(), KEPT);
    }

    #[test]
    fn a_place_of_another_feed_is_none_of_this() {
        let (feed, other) = (Arc::new(NameEventFeed::default()), Arc::new(NameEventFeed::default()));
        let ours = feed.subscribe(BTreeSet::new()).position();
        let ahead = NameEventId { count: ours.count + 1, ..ours };
        let theirs = other.subscribe(BTreeSet::new()).position();
        for place in [theirs.to_string(), ahead.to_string(), String::new(), "-".to_owned(), format!("{ours}x")] {
            assert!(feed.resume_subscription(BTreeSet::new(), &place).is_none(), "{place}");
        }
        assert!(feed.resume_subscription(BTreeSet::new(), &ours.to_string()).is_some());
    }
}
