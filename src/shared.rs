//! The second tier, on Redis or Valkey: evidence of runs that many daemons share, and the bus of their evictions.
//!
//! Nothing here is a verdict. What a fleet shares is the [`Value`] of a run under a MAC; it is judged where it arrives.
//! The server itself is believed nothing: what it changes, repeats, holds back or makes up is ignored and counted, and
//! whatever becomes of it, each daemon goes on by itself.

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

/// The version to which values are bound.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How far the clocks of a fleet may be apart. Machines that keep time are within milliseconds of each other.
pub const MAX_SKEW: SignedDuration = SignedDuration::from_secs(2);

/// Most writes that wait. Each holds the evidence of one run.
const MAX_WAITING: usize = 64;

/// Deletes a lease that is still the caller's.
const RELEASE: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

/// The second tier, as one daemon sees it.
pub struct Tier {
    link: Arc<Link>,
    keys: Arc<MacKeys>,
    clock: Arc<dyn Clock>,
    cache: Arc<VerdictCache>,
    config: RedisConfig,
    /// The world in force, and what was first seen of it.
    first_seen: Mutex<Option<(Arc<str>, Seen)>>,
    /// Whether others are worth waiting for.
    waits: Circuit,
    later: mpsc::Sender<BoxFuture<'static, ()>>,
    /// Evictions of which the fleet is to be told.
    untold: Arc<Evictions>,
    /// Until when messages of the bus may have been missed.
    missed: Arc<Missed>,
    /// Held by each eviction that is not done with.
    open: Arc<()>,
    _tasks: [AbortOnDrop; 3],
}

/// How far a run has read the chain.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Height of the block that it read.
    pub block: u64,
    /// Height up to which it knows of changes.
    pub newest: Option<u64>,
}

/// A right to run for a question, which other daemons respect until it is released or its time is over.
#[derive(Debug)]
pub struct Lease {
    place: String,
    token: String,
}

/// Who runs for a question.
#[derive(Debug)]
pub enum Leased {
    /// This daemon.
    Ours(Lease),
    /// Another one, or so the server says.
    Others,
    /// The server does not say.
    Unknown,
}

impl Tier {
    /// Joins the fleet that the configuration names. `None` where it names no server. That the server cannot be reached
    /// is no error.
    ///
    /// # Errors
    /// Where the key of the MAC cannot be used.
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
        // All end within the time limit of a connection, whatever the server does.
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

    /// Longest time that a run waits for that of another daemon.
    pub const fn wait(&self) -> Duration {
        self.config.wait
    }

    /// The value for a question that this daemon may take: of the fleet, fresh, from no block before the first that this
    /// process saw, and of a run that began after the name was evicted here. Who judges it counts what it gave; without
    /// one it is counted why.
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
        // What has changed between the two, this process has not been told of.
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

    /// Remembers how far a run of this process has read, if it is the first of its world.
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

    /// Asks for the right to run for a question, for as long as a run may take. Where waits for others were in vain some
    /// times in a row, each daemon runs by itself for a while: the server may have made those others up.
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

    /// Counts a wait for another daemon that ended without its evidence.
    pub fn waited_in_vain(&self) {
        telemetry::shared_read(SharedRead::InVain);
        self.waits.failed(self.clock.now());
    }

    /// Writes a value, for what is left of its freshness, unless its name was evicted since.
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

    /// Gives a lease back, if it is still ours.
    pub async fn release(&self, lease: Lease) {
        let mut asked = Pipeline::new();
        asked.cmd("EVAL").arg(RELEASE).arg(1).arg(lease.place).arg(lease.token).ignore();
        // What is not released ends by itself.
        let _ = self.link.ask::<()>(&asked, self.config.write_timeout).await;
    }

    /// Tells the fleet that these names were evicted here, each beside the questions about it. Their values are deleted then.
    pub fn tell_evicted(&self, evicted: impl IntoIterator<Item = (EnsName, Vec<CacheKey>)>) {
        let at = Instant::now();
        let open = |(name, keys)| Eviction { name, keys, at, _open: Arc::clone(&self.open) };
        self.untold.add(evicted.into_iter().map(open));
    }

    /// Does this after what waits already. Where too much waits it is not done.
    pub fn later(&self, work: impl Future<Output = ()> + Send + 'static) {
        if self.later.try_send(work.boxed()).is_err() {
            telemetry::shared_write(SharedWrite::Dropped);
        }
    }

    /// Ends once all is done that waits by now, and no eviction is left.
    #[cfg(feature = "unstable")]
    pub async fn settled(&self) {
        let (done, waiting) = oneshot::channel::<()>();
        self.later(async move { drop(done) });
        // What was refused for lack of room is done too.
        let _ = waiting.await;
        // The tier has one itself.
        while Arc::strong_count(&self.open) > 1 {
            tokio::task::yield_now().await;
        }
    }

    /// The time by the tier's clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn place(&self, kind: &str, question: &str) -> String {
        place(&self.config, kind, question)
    }
}

/// What changes values at the server, one thing after the other: what an eviction deletes is not written again by what was
/// under way.
struct Writer {
    link: Arc<Link>,
    config: RedisConfig,
}

impl Writer {
    /// Does what waits, and before the next of it deletes what is `outdated`.
    async fn write(self, mut waiting: mpsc::Receiver<BoxFuture<'static, ()>>, outdated: Arc<Evictions>) {
        // Ends with the tier.
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
