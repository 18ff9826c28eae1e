//! Evictions on their way to the other daemons. No eviction waits for a value to be written, and none is rejected.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clresolve_core::freshness::TRUSTED_FRESH;
use clresolve_core::name::EnsName;
use redis::Pipeline;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

use super::bus::Message;
use super::link::{Gone, Link};
use super::mac::MacKeys;
use crate::cache::CacheKey;
use crate::clock::Clock;
use crate::telemetry::{self, SharedWrite};

/// Maximum number of names in one request to the server, which keeps its answer short.
pub const MAX_AT_ONCE: usize = 64;

/// Delay between two full messages. Even three daemons that see the same changes then send fewer names per second than
/// a subscriber accepts.
const PAUSE: Duration = Duration::from_millis(20);

/// Delay before a failed request is retried. It doubles with each failure: the server may have accepted the request and
/// be slow to confirm.
const RETRY: Duration = Duration::from_secs(1);

/// Maximum retry delay.
const MAX_RETRY: Duration = Duration::from_secs(30);

/// A name that was evicted on this daemon.
#[derive(Clone)]
pub struct Eviction {
    /// The name.
    pub name: EnsName,
    /// The cached questions about it.
    pub keys: Vec<CacheKey>,
    /// When it was evicted. Values that were shared before then expire after [`TRUSTED_FRESH`].
    pub at: Instant,
    /// Held until everything for this eviction has been tried.
    pub _open: Arc<()>,
}

impl Eviction {
    /// Merges a later eviction of the name. Keeps the questions of the earlier one: they have left the cache, but their
    /// shared values still exist.
    fn join(&mut self, other: Self) {
        let new: Vec<_> = other.keys.into_iter().filter(|key| !self.keys.contains(key)).collect();
        self.keys.extend(new);
        self.at = self.at.max(other.at);
    }
}

/// Pending evictions for one task. A name is queued at most once, and at most for [`TRUSTED_FRESH`]. So the queue never
/// exceeds the names that this daemon evicts in that time.
#[derive(Default)]
pub struct Evictions {
    waiting: Mutex<Waiting>,
    bell: Notify,
}

#[derive(Default)]
struct Waiting {
    now: HashMap<EnsName, Eviction>,
    /// Evictions to retry, and when.
    later: HashMap<EnsName, Eviction>,
    retry_at: Option<Instant>,
    /// Consecutive failures.
    failures: u32,
}

impl Waiting {
    /// Takes the evictions that are due now.
    fn due(&mut self) -> HashMap<EnsName, Eviction> {
        let mut due = mem::take(&mut self.now);
        if self.retry_at.is_some_and(|at| at <= Instant::now()) {
            self.retry_at = None;
            mem::take(&mut self.later).into_values().for_each(|eviction| add_to(&mut due, eviction));
        }
        due
    }
}

fn add_to(evictions: &mut HashMap<EnsName, Eviction>, eviction: Eviction) {
    match evictions.entry(eviction.name.clone()) {
        Entry::Vacant(place) => _ = place.insert(eviction),
        Entry::Occupied(mut earlier) => earlier.get_mut().join(eviction),
    }
}

impl Evictions {
    /// Adds evictions.
    pub fn add(&self, evictions: impl IntoIterator<Item = Eviction>) {
        evictions.into_iter().for_each(|eviction| add_to(&mut self.waiting().now, eviction));
        self.bell.notify_one();
    }

    /// Queues failed evictions again. They become due after a growing delay, for as long as the shared cache may have
    /// values about them.
    pub fn try_again(&self, evictions: &[Eviction]) {
        let mut waiting = self.waiting();
        let open = evictions.iter().filter(|eviction| eviction.at.elapsed() < TRUSTED_FRESH);
        let open = open.filter(|_| !clresolve_core::mutant!("evictions-are-told-once"));
        for eviction in open {
            add_to(&mut waiting.later, Eviction { _open: Arc::default(), ..eviction.clone() });
        }
        if !waiting.later.is_empty() && waiting.retry_at.is_none() {
            let pause = RETRY.saturating_mul(2_u32.saturating_pow(waiting.failures)).min(MAX_RETRY);
            waiting.retry_at = Some(Instant::now() + pause);
            waiting.failures = waiting.failures.saturating_add(1);
        }
    }

    /// Records that the server accepted some.
    pub fn taken(&self) {
        self.waiting().failures = 0;
    }

    /// Waits until evictions are due, and takes them all.
    pub async fn take(&self) -> Vec<Eviction> {
        // Ends when the first eviction is added or due again.
        loop {
            let (due, retry_at) = {
                let mut waiting = self.waiting();
                (waiting.due(), waiting.retry_at)
            };
            if !due.is_empty() {
                return due.into_values().collect();
            }
            match retry_at {
                Some(at) => tokio::select! { () = sleep_until(at) => {}, () = self.bell.notified() => {} },
                None => self.bell.notified().await,
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Publishes the evictions of one daemon on the bus.
pub struct Announcer {
    /// A connection of its own, so that no message waits behind a value.
    pub link: Arc<Link>,
    /// The keys that sign the messages.
    pub keys: Arc<MacKeys>,
    /// The source of the time in each message.
    pub clock: Arc<dyn Clock>,
    /// The channel.
    pub channel: String,
    /// Time limit of one request.
    pub limit: Duration,
    /// This daemon's identifier on the bus.
    pub sender: [u8; 16],
}

impl Announcer {
    /// Publishes pending evictions until dropped, then marks the shared values about them as `outdated`. A failed
    /// publication is retried: for daemons that do not notice the change on chain, it is the only notification.
    pub async fn tell(self, untold: Arc<Evictions>, outdated: Arc<Evictions>) {
        let mut sent = 0;
        // Endless: the daemon drops this future.
        loop {
            let evictions = untold.take().await;
            for evictions in evictions.chunks(MAX_AT_ONCE) {
                match self.publish(evictions, &mut sent).await {
                    Ok(()) => untold.taken(),
                    Err(Gone) => {
                        untold.try_again(evictions);
                        self.link.connect().await;
                    }
                }
                sleep(PAUSE).await;
            }
            outdated.add(evictions);
        }
    }

    async fn publish(&self, evictions: &[Eviction], sent: &mut u64) -> Result<(), Gone> {
        let mut asked = Pipeline::new();
        for Eviction { name, .. } in evictions {
            *sent += 1;
            let message = Message { sender: self.sender, count: *sent, at: self.clock.now(), name: name.clone() };
            asked.cmd("PUBLISH").arg(&self.channel).arg(message.with_mac(&self.keys, &self.channel)).ignore();
        }
        let told = self.link.ask::<()>(&asked, self.limit).await;
        let outcome = told.map_or_else(|Gone| SharedWrite::Untold, |()| SharedWrite::Told);
        evictions.iter().for_each(|_| telemetry::shared_write(outcome));
        told
    }
}

#[cfg(test)]
mod tests {
    use clresolve_core::digest::Digest;
    use clresolve_core::reading::BlockSelector;
    use clresolve_verdict::verdict::Depth;
    use futures_util::FutureExt as _;

    use super::*;

    fn eviction(name: &str) -> Eviction {
        let name = EnsName::parse(name).expect("a good name");
        Eviction { name, keys: Vec::new(), at: Instant::now(), _open: Arc::default() }
    }

    /// Otherwise the shared value of a question that has left the cache would remain.
    #[test]
    fn a_name_that_is_evicted_again_keeps_the_questions_of_before() {
        let evictions = Evictions::default();
        let about = |depths: &[Depth]| {
            let eviction = eviction("a.eth");
            let key = |depth| CacheKey {
                name: eviction.name.clone(),
                block: BlockSelector::Finalized,
                depth,
                rules: Digest::of(b"rules"),
                world: "here".into(),
            };
            Eviction { keys: depths.iter().copied().map(key).collect(), ..eviction.clone() }
        };
        for depths in [&[Depth::Identity][..], &[], &[Depth::Schemas, Depth::Identity]] {
            evictions.add([about(depths)]);
        }
        let taken = evictions.take().now_or_never().expect("some wait");
        assert_eq!(taken[0].keys, about(&[Depth::Identity, Depth::Schemas]).keys);
    }

    #[test]
    fn a_name_waits_once_and_none_is_refused() {
        let evictions = Evictions::default();
        for number in 0..10_000 {
            evictions.add([eviction(&format!("a{number}.eth")), eviction("again.eth")]);
        }
        assert_eq!(evictions.take().now_or_never().map(|taken| taken.len()), Some(10_001));
        assert!(evictions.take().now_or_never().is_none());
        evictions.add([eviction("again.eth")]);
        assert_eq!(evictions.take().now_or_never().map(|taken| taken.len()), Some(1), "it was evicted anew");
    }
}
