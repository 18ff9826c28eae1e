//! Evictions on their way to the fleet: none waits behind a value that is written, and none is refused.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::Pipeline;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::bus::Message;
use super::link::{Gone, Link};
use super::mac::MacKeys;
use crate::cache::CacheKey;
use crate::clock::Clock;
use crate::name::EnsName;
use crate::telemetry::{self, SharedWrite};

/// Most names in one question to the server: the answer to it is a short one.
pub const MAX_AT_ONCE: usize = 64;

/// Pause between two messages with so many names. Three daemons that see the same changes then tell of fewer names in a
/// second than a listener takes.
const PAUSE: Duration = Duration::from_millis(20);

/// A name that was evicted here.
#[derive(Clone)]
pub struct Eviction {
    /// The name.
    pub name: EnsName,
    /// The questions about it.
    pub keys: Vec<CacheKey>,
    /// Held until all is done that there is to do.
    pub _open: Arc<()>,
}

impl Eviction {
    /// Adds the questions of a later eviction of the name. The earlier ones have left the cache, and their values wait still.
    fn join(&mut self, later: Vec<CacheKey>) {
        let new: Vec<_> = later.into_iter().filter(|key| !self.keys.contains(key)).collect();
        self.keys.extend(new);
    }
}

/// The evictions that wait for one task. A name waits once, however often it was evicted: there are no more than the
/// cache has names.
#[derive(Default)]
pub struct Evictions {
    waiting: Mutex<HashMap<EnsName, Eviction>>,
    bell: Notify,
}

impl Evictions {
    /// Adds some.
    pub fn add(&self, evictions: impl IntoIterator<Item = Eviction>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        for eviction in evictions {
            match waiting.entry(eviction.name.clone()) {
                Entry::Vacant(place) => _ = place.insert(eviction),
                Entry::Occupied(mut earlier) => earlier.get_mut().join(eviction.keys),
            }
        }
        drop(waiting);
        self.bell.notify_one();
    }

    /// Takes all, as soon as there are any.
    pub async fn take(&self) -> Vec<Eviction> {
        // Ends with the first that is added.
        loop {
            let taken = mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
            if !taken.is_empty() {
                return taken.into_values().collect();
            }
            self.bell.notified().await;
        }
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
    /// Tells the fleet of what is `untold`, for as long as it is awaited. The values about it are `outdated` then.
    pub async fn tell(self, untold: Arc<Evictions>, outdated: Arc<Evictions>) {
        let mut sent = 0;
        // Without end: the daemon drops it.
        loop {
            let evictions = untold.take().await;
            for evictions in evictions.chunks(MAX_AT_ONCE) {
                self.publish(evictions, &mut sent).await;
                sleep(PAUSE).await;
            }
            outdated.add(evictions);
        }
    }

    async fn publish(&self, evictions: &[Eviction], sent: &mut u64) {
        let mut asked = Pipeline::new();
        for Eviction { name, .. } in evictions {
            *sent += 1;
            let message = Message { sender: self.sender, count: *sent, at: self.clock.now(), name: name.clone() };
            asked.cmd("PUBLISH").arg(&self.channel).arg(message.with_mac(&self.keys, &self.channel)).ignore();
        }
        let told = self.link.ask::<()>(&asked, self.limit).await;
        let outcome = told.map_or_else(|Gone| SharedWrite::Untold, |()| SharedWrite::Told);
        evictions.iter().for_each(|_| telemetry::shared_write(outcome));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::chain::BlockSelector;
    use crate::digest::Digest;
    use crate::verdict::Depth;

    fn eviction(name: &str) -> Eviction {
        let name = EnsName::parse(name).expect("a good name");
        Eviction { name, keys: Vec::new(), _open: Arc::default() }
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
