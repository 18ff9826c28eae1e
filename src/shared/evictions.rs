//! Evictions on their way to the fleet: none waits behind a value that is written, and none is refused.

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

/// Most names in one question to the server: the answer to it is a short one.
pub const MAX_AT_ONCE: usize = 64;

/// Pause between two messages with so many names. Three daemons that see the same changes then tell of fewer names in a
/// second than a listener takes.
const PAUSE: Duration = Duration::from_millis(20);

/// Pause before what the server did not take is tried again. It doubles while that goes on: the server may have taken it,
/// and be slow to say so.
const RETRY: Duration = Duration::from_secs(1);

/// Longest such pause.
const MAX_RETRY: Duration = Duration::from_secs(30);

/// A name that was evicted here.
#[derive(Clone)]
pub struct Eviction {
    /// The name.
    pub name: EnsName,
    /// The questions about it.
    pub keys: Vec<CacheKey>,
    /// When it was evicted. What the fleet had of it then has come to its end after [`TRUSTED_FRESH`].
    pub at: Instant,
    /// Held until all was tried that there is to do.
    pub _open: Arc<()>,
}

impl Eviction {
    /// Adds another eviction of the name. The questions of the earlier one have left the cache, and their values wait still.
    fn join(&mut self, other: Self) {
        let new: Vec<_> = other.keys.into_iter().filter(|key| !self.keys.contains(key)).collect();
        self.keys.extend(new);
        self.at = self.at.max(other.at);
    }
}

/// The evictions that wait for one task. A name waits once, however often it was evicted, and [`TRUSTED_FRESH`] at most:
/// no more wait than the names that this daemon evicts in that time.
#[derive(Default)]
pub struct Evictions {
    waiting: Mutex<Waiting>,
    bell: Notify,
}

#[derive(Default)]
struct Waiting {
    now: HashMap<EnsName, Eviction>,
    /// What the server did not take, and when it is tried again.
    later: HashMap<EnsName, Eviction>,
    retry_at: Option<Instant>,
    /// Failures since it last took anything.
    failures: u32,
}

impl Waiting {
    /// What is to be done by now.
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
    /// Adds some.
    pub fn add(&self, evictions: impl IntoIterator<Item = Eviction>) {
        evictions.into_iter().for_each(|eviction| add_to(&mut self.waiting().now, eviction));
        self.bell.notify_one();
    }

    /// Adds some again that the server did not take: they are given after a pause, which grows, for as long as the fleet may
    /// have what they are about.
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

    /// The server has taken some.
    pub fn taken(&self) {
        self.waiting().failures = 0;
    }

    /// Takes all that are to be done by now, as soon as there are any.
    pub async fn take(&self) -> Vec<Eviction> {
        // Ends with the first that is added, or is tried again.
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

/// What one daemon says on the bus.
pub struct Announcer {
    /// A connection of its own: no value is before a message.
    pub link: Arc<Link>,
    /// Sign the messages.
    pub keys: Arc<MacKeys>,
    /// Tells when each was sent.
    pub clock: Arc<dyn Clock>,
    /// Where they go.
    pub channel: String,
    /// Longest time for one question.
    pub limit: Duration,
    /// Who this daemon is on the bus.
    pub sender: [u8; 16],
}

impl Announcer {
    /// Tells the fleet of what is `untold`, for as long as it is awaited. The values about it are `outdated` then. What the
    /// server does not take is told again: where nothing is heard of a change on chain, this alone tells of it.
    pub async fn tell(self, untold: Arc<Evictions>, outdated: Arc<Evictions>) {
        let mut sent = 0;
        // Without end: the daemon drops it.
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

    /// Else the value of a question that has left the cache would stay at the server.
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
