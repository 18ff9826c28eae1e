//! The shared cache (Redis or Valkey): evidence of resolutions that several daemons share, and the bus that announces
//! evictions.
//!
//! The server never supplies a verdict. Daemons share the [`Value`] of a resolution, protected by a MAC, and the
//! receiving daemon judges it itself. The server is not trusted: values that it changes, replays, withholds or invents
//! are ignored and counted, and each daemon keeps working without it.

pub mod bus;
pub mod circuit;
pub mod evictions;
pub mod link;
pub mod mac;
pub mod value;

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use alloy_primitives::hex;
use clresolve_core::name::EnsName;
use futures_util::future::{BoxFuture, FutureExt as _};
use jiff::{SignedDuration, Timestamp};
use redis::Pipeline;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use self::bus::{Ear, Missed};
use self::circuit::Circuit;
use self::evictions::{Announcer, Eviction, Evictions, MAX_AT_ONCE};
use self::link::{AbortOnDrop, Gone, Link, Reach, VALUE_ANSWER_BYTES};
use self::mac::{MacKeyError, MacKeys};
use self::value::{Binding, MAX_VALUE_BYTES, Value};
use crate::cache::{CacheKey, VerdictCache};
use crate::clock::Clock;
use crate::config::{Config, RedisConfig};
use crate::fetch::Egress;
use crate::telemetry::{self, SharedRead, SharedWrite};

/// The program version to which values are bound.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Maximum clock difference between daemons. Synchronized machines differ by milliseconds.
pub const MAX_SKEW: SignedDuration = SignedDuration::from_secs(2);

/// Maximum number of queued writes. Each contains the evidence of one resolution.
const MAX_WAITING: usize = 64;

/// Deletes a lease if it still belongs to the caller.
const RELEASE: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

/// One daemon's connection to the shared cache.
pub struct Tier {
    link: Arc<Link>,
    keys: Arc<MacKeys>,
    clock: Arc<dyn Clock>,
    cache: Arc<VerdictCache>,
    config: RedisConfig,
    /// The network in force, and how far this process had read the chain when it first read it.
    first_seen: Mutex<Option<(Arc<str>, Seen)>>,
    /// Decides whether waiting for other daemons is worthwhile.
    waits: Circuit,
    later: mpsc::Sender<BoxFuture<'static, ()>>,
    /// Evictions to announce to the other daemons.
    untold: Arc<Evictions>,
    /// Until when bus messages may have been missed.
    missed: Arc<Missed>,
    /// Each unfinished eviction holds a clone.
    open: Arc<()>,
    _tasks: [AbortOnDrop; 3],
}

/// How far a resolution has read the chain.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Height of the block that it read.
    pub block: u64,
    /// Height up to which it knows about changes.
    pub newest: Option<u64>,
}

/// The right to resolve a question, which other daemons respect until it is released or expires.
#[derive(Debug)]
pub struct Lease {
    place: String,
    token: String,
}

/// Which daemon is resolving a question.
#[derive(Debug)]
pub enum Leased {
    /// This daemon.
    Ours(Lease),
    /// Another daemon, according to the server.
    Others,
    /// Unknown: the server did not answer.
    Unknown,
}

impl Tier {
    /// Connects to the configured server. Returns `None` if none is configured. An unreachable server is not an error.
    ///
    /// # Errors
    /// If the MAC key cannot be used.
    pub async fn join(
        config: &Config,
        egress: &Egress,
        clock: &Arc<dyn Clock>,
        cache: &Arc<VerdictCache>,
    ) -> Result<Option<Self>, MacKeyError> {
        let redis = &config.redis;
        let (Some(reach), Some(path)) = (Reach::new(redis, egress.clone()), &redis.mac_key) else { return Ok(None) };
        let keys = Arc::new(MacKeys::read(path)?);
        let channel = format!("{}:bus:{}", redis.prefix, config.chain.id);
        let sender = random();
        let ear = Ear::new(sender, Arc::clone(&keys), channel.clone(), Arc::clone(clock), Arc::clone(cache));
        let missed = Arc::clone(&ear.missed);
        let (tried, first_try) = oneshot::channel();
        let listening = tokio::spawn(ear.listen(reach.clone(), redis.write_timeout, tried));
        let link = || Arc::new(Link::new(reach.clone(), redis.write_timeout, Arc::clone(clock)));
        let (link, of_evictions) = (link(), link());
        let (untold, outdated) = (Arc::<Evictions>::default(), Arc::<Evictions>::default());
        let announcer = Announcer {
            link: Arc::clone(&of_evictions),
            keys: Arc::clone(&keys),
            clock: Arc::clone(clock),
            channel,
            limit: redis.write_timeout,
            sender,
        };
        let telling = tokio::spawn(announcer.tell(Arc::clone(&untold), Arc::clone(&outdated)));
        let (later, waiting) = mpsc::channel(MAX_WAITING);
        let writer = Writer { link: Arc::clone(&link), config: redis.clone() };
        let writing = tokio::spawn(writer.write(waiting, outdated));
        // All of them end within the connection's time limit, whatever the server does.
        let _ = tokio::join!(link.connect(), of_evictions.connect(), first_try);
        Ok(Some(Self {
            link,
            keys,
            clock: Arc::clone(clock),
            cache: Arc::clone(cache),
            config: redis.clone(),
            first_seen: Mutex::default(),
            waits: Circuit::default(),
            later,
            untold,
            missed,
            open: Arc::default(),
            _tasks: [listening, telling, writing].map(|task| AbortOnDrop(task.abort_handle())),
        }))
    }

    /// How long a resolution waits for that of another daemon.
    pub const fn wait(&self) -> Duration {
        self.config.wait
    }

    /// Reads the shared value for a question, if this daemon may use it. The value must have a valid MAC, be fresh, be
    /// no older than the first block that this process read, and come from a resolution that began after the last
    /// eviction of the name here. A missing value is counted with its cause; a returned one is counted by the caller.
    pub async fn take(&self, key: &CacheKey) -> Option<Value> {
        let taken = self.read(key).await;
        match &taken {
            Ok(_) => self.waits.succeeded(),
            Err(why) => telemetry::shared_read(*why),
        }
        taken.ok()
    }

    async fn read(&self, key: &CacheKey) -> Result<Value, SharedRead> {
        let Some(first) = self.first_seen(&key.world) else { return Err(SharedRead::Early) };
        let binding = Binding { version: VERSION, key };
        let mut asked = Pipeline::new();
        asked.cmd("GETRANGE").arg(self.place("evidence", &binding.place())).arg(0).arg(MAX_VALUE_BYTES);
        let answered =
            self.link.ask_at_length::<(Vec<u8>,)>(&asked, self.config.read_timeout, VALUE_ANSWER_BYTES).await;
        let (stored,) = answered.map_err(|Gone| SharedRead::Gone)?;
        if stored.is_empty() {
            return Err(SharedRead::Missing);
        }
        let value = Value::open(&stored, &self.keys, binding).map_err(|_| SharedRead::Refused)?;
        self.is_usable(&value, key, first)?;
        Ok(value)
    }

    fn is_usable(&self, value: &Value, key: &CacheKey, first: Seen) -> Result<(), SharedRead> {
        let now = self.clock.now();
        if (value.fresh_until <= now || value.began > now + MAX_SKEW)
            && !clresolve_core::mutant!("aged-evidence-is-taken")
        {
            return Err(SharedRead::Aged);
        }
        // This process has not been notified of changes between the two blocks.
        let is_older = value.block.0 < first.block || value.newest < first.newest;
        if is_older && !clresolve_core::mutant!("older-blocks-are-taken") {
            return Err(SharedRead::OldBlock);
        }
        let evicted = self.cache.evicted_at(&key.name).max(self.missed.until());
        if evicted.is_some_and(|at| value.began < at + MAX_SKEW)
            && !clresolve_core::mutant!("evicted-evidence-is-taken")
        {
            return Err(SharedRead::Evicted);
        }
        Ok(())
    }

    /// Remembers how far a resolution has read the chain, if it is the first of its network.
    pub fn saw(&self, world: &Arc<str>, seen: Seen) {
        let mut first = self.first_seen.lock().unwrap_or_else(PoisonError::into_inner);
        if first.as_ref().is_none_or(|(known, _)| known != world) {
            *first = Some((Arc::clone(world), seen));
        }
    }

    fn first_seen(&self, world: &Arc<str>) -> Option<Seen> {
        let first = self.first_seen.lock().unwrap_or_else(PoisonError::into_inner);
        first.as_ref().filter(|(known, _)| known == world).map(|(_, seen)| *seen)
    }

    /// Requests the right to resolve a question for at most `time`. After several fruitless waits in a row, each daemon
    /// resolves by itself for a while: the server may have invented the other daemons.
    pub async fn lease(&self, key: &CacheKey, time: Duration) -> Leased {
        if self.waits.rests(self.clock.now()) {
            return Leased::Unknown;
        }
        let place = self.place("lease", &Binding { version: VERSION, key }.place());
        let token = hex::encode(random());
        let mut asked = Pipeline::new();
        asked.cmd("SET").arg(&place).arg(&token).arg("NX").arg("PX").arg(milliseconds(time));
        match self.link.ask::<(bool,)>(&asked, self.config.read_timeout).await {
            Ok((true,)) => Leased::Ours(Lease { place, token }),
            Ok((false,)) => Leased::Others,
            Err(Gone) => Leased::Unknown,
        }
    }

    /// Counts a wait for another daemon that produced no evidence.
    pub fn waited_in_vain(&self) {
        telemetry::shared_read(SharedRead::InVain);
        self.waits.failed(self.clock.now());
    }

    /// Writes a value for the rest of its freshness, unless its name has been evicted since.
    pub async fn put(&self, key: &CacheKey, value: &Value) {
        let written = self.write(key, value).await;
        telemetry::shared_write(written.err().unwrap_or(SharedWrite::Written));
    }

    async fn write(&self, key: &CacheKey, value: &Value) -> Result<(), SharedWrite> {
        let left = value.fresh_until.duration_since(self.clock.now());
        let left = Duration::try_from(left).ok().filter(|left| !left.is_zero()).ok_or(SharedWrite::Aged)?;
        if self.cache.evicted_at(&key.name).is_some_and(|at| value.began < at) {
            return Err(SharedWrite::Evicted);
        }
        let binding = Binding { version: VERSION, key };
        let stored = value.with_mac(&self.keys, binding).ok_or(SharedWrite::Long)?;
        let mut asked = Pipeline::new();
        let place = self.place("evidence", &binding.place());
        asked.cmd("SET").arg(place).arg(stored).arg("PX").arg(milliseconds(left)).ignore();
        self.link.ask::<()>(&asked, self.config.write_timeout).await.map_err(|Gone| SharedWrite::Gone)
    }

    /// Releases a lease if it still belongs to this daemon.
    pub async fn release(&self, lease: Lease) {
        let mut asked = Pipeline::new();
        asked.cmd("EVAL").arg(RELEASE).arg(1).arg(lease.place).arg(lease.token).ignore();
        // A lease that is not released expires.
        let _ = self.link.ask::<()>(&asked, self.config.write_timeout).await;
    }

    /// Announces evictions of names, each with the cached questions about it, and deletes their shared values.
    pub fn tell_evicted(&self, evicted: impl IntoIterator<Item = (EnsName, Vec<CacheKey>)>) {
        let at = Instant::now();
        let open = |(name, keys)| Eviction { name, keys, at, _open: Arc::clone(&self.open) };
        self.untold.add(evicted.into_iter().map(open));
    }

    /// Queues `work` behind earlier work. If the queue is full, `work` is dropped.
    pub fn later(&self, work: impl Future<Output = ()> + Send + 'static) {
        if self.later.try_send(work.boxed()).is_err() {
            telemetry::shared_write(SharedWrite::Dropped);
        }
    }

    /// Waits until all queued work is done and no eviction is pending.
    #[cfg(feature = "unstable")]
    pub async fn settled(&self) {
        let (done, waiting) = oneshot::channel::<()>();
        self.later(async move { drop(done) });
        // Work that was dropped for lack of room counts as done.
        let _ = waiting.await;
        // One clone belongs to this struct.
        while Arc::strong_count(&self.open) > 1 {
            tokio::task::yield_now().await;
        }
    }

    /// The time of this daemon's clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn place(&self, kind: &str, question: &str) -> String {
        place(&self.config, kind, question)
    }
}

/// Performs all writes to the server one after the other, so that a pending write cannot restore a value that an
/// eviction deletes.
struct Writer {
    link: Arc<Link>,
    config: RedisConfig,
}

impl Writer {
    /// Performs queued work; before each item, deletes the values that are `outdated`.
    async fn write(self, mut waiting: mpsc::Receiver<BoxFuture<'static, ()>>, outdated: Arc<Evictions>) {
        // Runs until the shared cache is dropped.
        loop {
            tokio::select! {
                biased;
                evictions = outdated.take() => self.delete(&evictions, &outdated).await,
                work = waiting.recv() => match work {
                    Some(work) => work.await,
                    None => return,
                },
            }
        }
    }

    async fn delete(&self, evictions: &[Eviction], outdated: &Evictions) {
        for evictions in evictions.chunks(MAX_AT_ONCE) {
            let keys = evictions.iter().flat_map(|eviction| &eviction.keys);
            let place = |key| place(&self.config, "evidence", &Binding { version: VERSION, key }.place());
            let mut asked = Pipeline::new();
            asked.cmd("DEL").arg(keys.map(place).collect::<Vec<_>>()).ignore();
            match self.link.ask::<()>(&asked, self.config.write_timeout).await {
                Ok(()) => outdated.taken(),
                Err(Gone) => outdated.try_again(evictions),
            }
        }
    }
}

fn place(config: &RedisConfig, kind: &str, question: &str) -> String {
    format!("{}:{kind}:{question}", config.prefix)
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}

fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("a system without randomness runs nothing that needs a key");
    bytes
}
