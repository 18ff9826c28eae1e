//! The bus: announces an eviction on one daemon to all others.
//!
//! A message can only evict, so at worst it causes a resolution. Messages without a valid MAC, and replayed, old or
//! overlong ones, are ignored and counted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clresolve_core::name::EnsName;
use futures_util::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use redis::aio::PubSub;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use super::link::{Allowance, Gone, Reach};
use super::mac::{MAC_BYTES, MacKeys};
use crate::cache::VerdictCache;
use crate::clock::Clock;
use crate::telemetry::{self, Heard};

/// Domain separation for the MAC of a message, with the version of its format.
const WHAT: &str = "clresolve.bus/1";

/// Length of a sender's identifier, in bytes.
const SENDER_BYTES: usize = 16;

/// Bytes before the name: MAC, sender, sequence number and time.
const HEAD_BYTES: usize = MAC_BYTES + SENDER_BYTES + 8 + 8;

/// Maximum length of a message, in bytes: the head and more than the longest ENS name in DNS form.
const MAX_MESSAGE_BYTES: usize = HEAD_BYTES + 1024;

/// Maximum difference between a message's time and this clock. Within it, sequence numbers detect replays.
const WINDOW: SignedDuration = SignedDuration::from_secs(10);

/// Maximum number of remembered senders, far more than there are daemons. Senders outside the window are forgotten
/// first.
const MAX_SENDERS: usize = 1024;

/// Maximum bytes of messages that have arrived but are not yet processed.
const MAX_WAITING_BYTES: usize = 1 << 20;

/// Maximum number of messages per second: more than all changes of a chain, yet cheap to process. Above it, the daemon
/// leaves the bus.
const MAX_A_SECOND: u32 = 10_000;

/// Delay before rejoining the bus.
const PAUSE: Duration = Duration::from_secs(1);

/// The announcement of an eviction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The sender: a random identifier of each process.
    pub sender: [u8; SENDER_BYTES],
    /// The sequence number of the message at its sender.
    pub count: u64,
    /// When it was sent.
    pub at: Timestamp,
    /// The name.
    pub name: EnsName,
}

impl Message {
    /// Encodes the message for `channel`, with its MAC.
    pub fn with_mac(&self, keys: &MacKeys, channel: &str) -> Vec<u8> {
        let rest = [
            &self.sender[..],
            &self.count.to_be_bytes(),
            &self.at.as_millisecond().to_be_bytes(),
            self.name.as_str().as_bytes(),
        ]
        .concat();
        let tag = keys.sign(WHAT, &[channel.as_bytes(), &rest]);
        [&tag[..], &rest].concat()
    }

    /// Decodes a message on `channel` and verifies its MAC.
    fn open(bytes: &[u8], keys: &MacKeys, channel: &str) -> Result<Self, Heard> {
        if !(HEAD_BYTES + 1..=MAX_MESSAGE_BYTES).contains(&bytes.len()) {
            return Err(Heard::Length);
        }
        let (tag, rest) = bytes.split_at(MAC_BYTES);
        if !keys.verify(WHAT, &[channel.as_bytes(), rest], tag) && !clresolve_core::mutant!("bus-mac-unchecked") {
            return Err(Heard::Mac);
        }
        let (sender, rest) = rest.split_first_chunk().ok_or(Heard::Length)?;
        let (count, rest) = rest.split_first_chunk().ok_or(Heard::Length)?;
        let (at, name) = rest.split_first_chunk().ok_or(Heard::Length)?;
        let name = std::str::from_utf8(name).ok().and_then(|name| EnsName::parse(name).ok()).ok_or(Heard::Form)?;
        let at = Timestamp::from_millisecond(i64::from_be_bytes(*at)).map_err(|_| Heard::Form)?;
        Ok(Self { sender: *sender, count: u64::from_be_bytes(*count), at, name })
    }
}

/// The subscriber of one daemon.
pub struct Ear {
    own: [u8; SENDER_BYTES],
    keys: Arc<MacKeys>,
    channel: String,
    clock: Arc<dyn Clock>,
    cache: Arc<VerdictCache>,
    /// The latest sequence number of each sender, with its time.
    senders: HashMap<[u8; SENDER_BYTES], (u64, Timestamp)>,
    /// Records until when messages may have been missed.
    pub missed: Arc<Missed>,
}

/// Until when messages may have been missed: the time of the last rejoin.
#[derive(Debug, Default)]
pub struct Missed(Mutex<Option<Timestamp>>);

impl Missed {
    /// `None` if the bus has not broken since it was first joined.
    pub fn until(&self) -> Option<Timestamp> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, until: Timestamp) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
    }
}

impl Ear {
    /// A subscriber that evicts from this daemon's cache and ignores the messages of `own`.
    pub fn new(
        own: [u8; SENDER_BYTES],
        keys: Arc<MacKeys>,
        channel: String,
        clock: Arc<dyn Clock>,
        cache: Arc<VerdictCache>,
    ) -> Self {
        Self { own, keys, channel, clock, cache, senders: HashMap::new(), missed: Arc::default() }
    }

    /// Evicts the name in a message, if the message is valid and new.
    pub fn hear(&mut self, bytes: &[u8]) -> Heard {
        let message = match Message::open(bytes, &self.keys, &self.channel) {
            Ok(message) if message.sender == self.own => return Heard::Own,
            Ok(message) => message,
            Err(fault) => return fault,
        };
        let now = self.clock.now();
        if !is_near(message.at, now) {
            return Heard::Old;
        }
        if !self.is_new(&message, now) && !clresolve_core::mutant!("bus-replays-count") {
            return Heard::Replayed;
        }
        self.cache.evict(&message.name, now);
        Heard::Evicted
    }

    /// Whether the sequence number is higher than the sender's last one. Remembers it.
    fn is_new(&mut self, message: &Message, now: Timestamp) -> bool {
        if self.senders.get(&message.sender).is_some_and(|(latest, _)| message.count <= *latest) {
            return false;
        }
        if self.senders.len() >= MAX_SENDERS {
            self.senders.retain(|_, (_, at)| is_near(*at, now));
        }
        // Only messages with a valid MAC get here. With too many senders, messages are lost; they only cost
        // resolutions.
        let has_room = self.senders.len() < MAX_SENDERS || self.senders.contains_key(&message.sender);
        if has_room {
            self.senders.insert(message.sender, (message.count, message.at));
        }
        has_room
    }

    /// Listens until dropped, and rejoins after each break. `tried` ends after the first attempt to join.
    pub async fn listen(mut self, reach: Reach, limit: Duration, tried: oneshot::Sender<()>) {
        let (mut tried, mut is_first) = (Some(tried), true);
        // Endless: the daemon drops this future. Each iteration pauses.
        loop {
            let joined = self.join(&reach, limit).await;
            drop(tried.take());
            let is_late = !std::mem::take(&mut is_first);
            if let Ok((bus, allowance)) = joined {
                if is_late {
                    self.note_missed();
                }
                self.hear_all(bus, &allowance).await;
            }
            telemetry::bus_heard(Heard::Broken);
            sleep(PAUSE).await;
        }
    }

    /// Records that messages may have been missed until now. Earlier shared values are no longer used, and cached names
    /// are read again, since another daemon may have evicted them. If no endpoint is followed, they are evicted.
    fn note_missed(&self) {
        let now = self.clock.now();
        if !clresolve_core::mutant!("missed-messages-are-forgotten") {
            self.missed.note(now);
        }
        if !clresolve_core::mutant!("missed-evictions-are-forgotten") {
            self.cache.changes.missed_messages().iter().for_each(|name| self.cache.evict(name, now));
        }
    }

    async fn join(&self, reach: &Reach, limit: Duration) -> Result<(PubSub, Allowance), Gone> {
        let allowance = Allowance::of(MAX_WAITING_BYTES, MAX_WAITING_BYTES);
        let joined = async {
            let stream = reach.stream(&allowance).await?;
            let mut bus = PubSub::new(reach.login(), stream).await.map_err(|_| Gone)?;
            bus.subscribe(&self.channel).await.map_err(|_| Gone)?;
            Ok::<_, Gone>(bus)
        };
        let bus = timeout(limit, joined).await.unwrap_or(Err(Gone))?;
        telemetry::bus_heard(Heard::Joined);
        Ok((bus, allowance))
    }

    /// Receives until the bus breaks or exceeds the message limit.
    async fn hear_all(&mut self, bus: PubSub, allowance: &Allowance) {
        let mut messages = bus.into_on_message();
        let (mut second, mut heard) = (Instant::now(), 0);
        while let Some(message) = messages.next().await {
            let bytes = message.get_payload_bytes();
            telemetry::bus_heard(self.hear(bytes));
            allowance.grant(wire_bytes(message.get_channel_name().len(), bytes.len()));
            if second.elapsed() >= Duration::from_secs(1) {
                (second, heard) = (Instant::now(), 0);
            }
            heard += 1;
            if heard > MAX_A_SECOND {
                return;
            }
        }
    }
}

/// Whether a sender's time is within the window around this clock.
fn is_near(at: Timestamp, now: Timestamp) -> bool {
    at.duration_since(now).abs() <= WINDOW
}

/// Bytes of a message on the wire: an array of three length-prefixed strings.
fn wire_bytes(channel: usize, payload: usize) -> usize {
    let string = |bytes: usize| 1 + bytes.to_string().len() + 2 + bytes + 2;
    "*3\r\n".len() + string("message".len()) + string(channel) + string(payload)
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan as _;

    use super::*;
    use crate::config::CacheConfig;

    const START: Timestamp = Timestamp::UNIX_EPOCH;
    const CHANNEL: &str = "clresolve:bus:1";

    struct Set(Mutex<Timestamp>);

    impl Clock for Set {
        fn now(&self) -> Timestamp {
            *self.0.lock().unwrap()
        }
    }

    fn keys(byte: &str) -> Arc<MacKeys> {
        Arc::new(MacKeys::parse(&byte.repeat(32)).expect("a good key"))
    }

    fn ear() -> (Ear, Arc<VerdictCache>, Arc<Set>) {
        let cache = Arc::new(VerdictCache::new(&CacheConfig::default()));
        let clock = Arc::new(Set(Mutex::new(START)));
        let ear = Ear::new([1; 16], keys("11"), CHANNEL.into(), Arc::clone(&clock) as _, Arc::clone(&cache));
        (ear, cache, clock)
    }

    fn message(count: u64, at: Timestamp) -> Message {
        Message { sender: [2; 16], count, at, name: EnsName::parse("a.eth").expect("a good name") }
    }

    #[test]
    fn a_message_of_the_fleet_evicts_once() {
        let (mut ear, cache, _) = ear();
        let sent = message(1, START).with_mac(&keys("11"), CHANNEL);
        assert_eq!(cache.evicted_at(&message(1, START).name), None);
        assert_eq!((ear.hear(&sent), ear.hear(&sent)), (Heard::Evicted, Heard::Replayed));
        assert_eq!(cache.evicted_at(&message(1, START).name), Some(START));
        assert_eq!(ear.hear(&message(3, START).with_mac(&keys("11"), CHANNEL)), Heard::Evicted);
        assert_eq!(ear.hear(&message(2, START).with_mac(&keys("11"), CHANNEL)), Heard::Replayed);
    }

    #[test]
    fn what_is_not_of_the_fleet_evicts_nothing() {
        let (mut ear, cache, clock) = ear();
        let good = message(1, START).with_mac(&keys("11"), CHANNEL);
        let own = Message { sender: [1; 16], ..message(1, START) };
        assert_eq!(ear.hear(&message(1, START).with_mac(&keys("22"), CHANNEL)), Heard::Mac, "a foreign key");
        assert_eq!(ear.hear(&message(1, START).with_mac(&keys("11"), "clresolve:bus:2")), Heard::Mac, "another chain");
        for at in 0..good.len() {
            let mut changed = good.clone();
            changed[at] ^= 1;
            assert_eq!(ear.hear(&changed), Heard::Mac, "byte {at}");
        }
        assert_eq!(ear.hear(&good[..HEAD_BYTES]), Heard::Length);
        assert_eq!(ear.hear(&vec![0; MAX_MESSAGE_BYTES + 1]), Heard::Length);
        assert_eq!(ear.hear(&own.with_mac(&keys("11"), CHANNEL)), Heard::Own);
        let nameless = &good[MAC_BYTES..HEAD_BYTES];
        for no_name in [&b"a..eth"[..], b"no name", b"\xff"] {
            let rest = [nameless, no_name].concat();
            let tag = keys("11").sign(WHAT, &[CHANNEL.as_bytes(), &rest]);
            assert_eq!(ear.hear(&[&tag[..], &rest].concat()), Heard::Form, "{}", no_name.escape_ascii());
        }
        *clock.0.lock().unwrap() = START + 11.seconds();
        assert_eq!(ear.hear(&good), Heard::Old);
        assert_eq!(ear.hear(&message(1, START + 22.seconds()).with_mac(&keys("11"), CHANNEL)), Heard::Old);
        assert_eq!(cache.evicted_at(&message(1, START).name), None);
    }

    #[test]
    fn senders_are_bounded_and_forgotten_after_the_window() {
        let (mut ear, _, clock) = ear();
        let from = |number: usize, at| {
            let mut sender = [0; 16];
            sender[..8].copy_from_slice(&number.to_be_bytes());
            Message { sender, ..message(1, at) }.with_mac(&keys("11"), CHANNEL)
        };
        for number in 0..MAX_SENDERS {
            assert_eq!(ear.hear(&from(number, START)), Heard::Evicted);
        }
        assert_eq!(ear.hear(&from(MAX_SENDERS, START)), Heard::Replayed, "there is no room");
        let later = START + 11.seconds();
        *clock.0.lock().unwrap() = later;
        assert_eq!(ear.hear(&from(MAX_SENDERS, later)), Heard::Evicted);
        assert_eq!(ear.senders.len(), 1);
    }
}
