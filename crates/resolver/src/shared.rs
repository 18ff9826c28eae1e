//! The shared cache (Redis or Valkey): several daemons share the evidence of their resolutions.
//!
//! The server never supplies a verdict. Daemons share the [`SharedEvidence`] of a resolution, protected by a MAC, and
//! the receiving daemon judges it itself. The server is not trusted: values that it changes, withholds or invents are
//! ignored and counted, and each daemon keeps working without it.
//!
//! The server may replay an earlier value while its verdict is still fresh, at most 300 seconds (`TRUSTED_FRESH`) after
//! it was read. Within that time a report may describe records that have changed since. The gate and decisions never
//! rest on them: a verdict from shared evidence enters the cache unconfirmed, and the daemon first confirms it by its
//! own reading of the chain. If that reading differs, the daemon evicts the name and rejects all evidence from before
//! the eviction, so a replay costs one resolution. A replayed denial keeps the gate closed until its freshness ends.

pub mod circuit;
pub mod link;
pub mod mac;
pub mod value;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::hex;
use futures_util::future::{BoxFuture, FutureExt as _};
use jiff::SignedDuration;
use redis::Pipeline;
use tokio::sync::mpsc;

use self::circuit::CircuitBreaker;
use self::link::{AbortOnDrop, RedisClient, RedisConnector, RedisUnavailableError, VALUE_ANSWER_BYTES};
use self::mac::{MacKeyError, MacKeys};
use self::value::{MAX_VALUE_BYTES, SharedEvidence, SharedEvidenceBinding};
use crate::cache::{VerdictCache, VerdictCacheKey};
use crate::clock::Clock;
use crate::config::{Config, RedisConfig};
use crate::fetch::Egress;
use crate::telemetry::{self, SharedRead, SharedWrite};

/// The program version to which values are bound.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Maximum clock difference between daemons. Synchronized machines differ by milliseconds.
const MAX_SKEW: SignedDuration = SignedDuration::from_secs(2);

/// Maximum number of queued writes. Each contains the evidence of one resolution.
const MAX_WAITING: usize = 64;

/// Deletes a lease if it still belongs to the caller.
const RELEASE: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

/// One daemon's connection to the shared cache.
pub struct SharedCacheClient {
    link: Arc<RedisClient>,
    keys: MacKeys,
    clock: Arc<dyn Clock>,
    cache: Arc<VerdictCache>,
    config: RedisConfig,
    /// Decides whether waiting for other daemons is worthwhile.
    waits: CircuitBreaker,
    later: mpsc::Sender<BoxFuture<'static, ()>>,
    _writing: AbortOnDrop,
}

/// The right to resolve a question, which other daemons respect until it is released or expires.
#[derive(Debug)]
pub struct ResolutionLease {
    place: String,
    token: String,
}

/// Which daemon is resolving a question.
#[derive(Debug)]
pub enum LeaseHolder {
    /// This daemon.
    Ours(ResolutionLease),
    /// Another daemon, according to the server.
    Others,
    /// Unknown: the server did not answer.
    Unknown,
}

impl SharedCacheClient {
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
        let (Some(reach), Some(path)) = (RedisConnector::new(redis, egress.clone()), &redis.mac_key) else {
            return Ok(None);
        };
        let keys = MacKeys::from_key_file(path)?;
        let link = Arc::new(RedisClient::new(reach, redis.write_timeout, Arc::clone(clock)));
        let (later, waiting) = mpsc::channel(MAX_WAITING);
        let writing = AbortOnDrop(tokio::spawn(run_queued_work(waiting)).abort_handle());
        // Ends within the connection's time limit, whatever the server does.
        link.connect().await;
        Ok(Some(Self {
            link,
            keys,
            clock: Arc::clone(clock),
            cache: Arc::clone(cache),
            config: redis.clone(),
            waits: CircuitBreaker::default(),
            later,
            _writing: writing,
        }))
    }

    /// How long a resolution waits for that of another daemon.
    pub const fn wait_limit(&self) -> Duration {
        self.config.wait
    }

    /// Reads the shared value for a question, if this daemon may use it. The value must have a valid MAC, be fresh, and
    /// come from a resolution that began after the last eviction of the name here. A missing value is counted with its
    /// cause; a returned one is counted by the caller.
    pub async fn find_usable_evidence(&self, key: &VerdictCacheKey) -> Option<SharedEvidence> {
        let taken = self.read_evidence(key).await;
        match &taken {
            Ok(_) => self.waits.record_success(),
            Err(why) => telemetry::count_shared_read(*why),
        }
        taken.ok()
    }

    async fn read_evidence(&self, key: &VerdictCacheKey) -> Result<SharedEvidence, SharedRead> {
        let binding = SharedEvidenceBinding { version: VERSION, key };
        let mut asked = Pipeline::new();
        asked.cmd("GETRANGE").arg(self.redis_key("evidence", binding)).arg(0).arg(MAX_VALUE_BYTES);
        let answered = self
            .link
            .send_commands_with_limit::<(Vec<u8>,)>(&asked, self.config.read_timeout, VALUE_ANSWER_BYTES)
            .await;
        let (stored,) = answered.map_err(|RedisUnavailableError| SharedRead::Gone)?;
        if stored.is_empty() {
            return Err(SharedRead::Missing);
        }
        let value = SharedEvidence::decode_verified(&stored, &self.keys, binding).map_err(|_| SharedRead::Refused)?;
        self.check_evidence_usable(&value, key)?;
        Ok(value)
    }

    fn check_evidence_usable(&self, value: &SharedEvidence, key: &VerdictCacheKey) -> Result<(), SharedRead> {
        let now = self.clock.now();
        if (value.fresh_until <= now || value.began > now + MAX_SKEW)
            && !clresolve_core::mutant!("aged-evidence-is-taken")
        {
            return Err(SharedRead::Aged);
        }
        // Earlier evidence may predate the change that evicted the name.
        if self.cache.last_eviction_time(&key.name).is_some_and(|at| value.began < at + MAX_SKEW)
            && !clresolve_core::mutant!("evicted-evidence-is-taken")
        {
            return Err(SharedRead::Evicted);
        }
        Ok(())
    }

    /// Requests the right to resolve a question for at most `time`. After several fruitless waits in a row, each daemon
    /// resolves by itself for a while: the server may have invented the other daemons.
    pub async fn request_lease(&self, key: &VerdictCacheKey, time: Duration) -> LeaseHolder {
        if self.waits.is_open(self.clock.now()) {
            return LeaseHolder::Unknown;
        }
        let place = self.redis_key("lease", SharedEvidenceBinding { version: VERSION, key });
        let token = hex::encode(random_token());
        let mut asked = Pipeline::new();
        asked.cmd("SET").arg(&place).arg(&token).arg("NX").arg("PX").arg(whole_milliseconds(time));
        match self.link.send_commands::<(bool,)>(&asked, self.config.read_timeout).await {
            Ok((true,)) => LeaseHolder::Ours(ResolutionLease { place, token }),
            Ok((false,)) => LeaseHolder::Others,
            Err(RedisUnavailableError) => LeaseHolder::Unknown,
        }
    }

    /// Counts a wait for another daemon that produced no evidence.
    pub fn count_failed_wait(&self) {
        telemetry::count_shared_read(SharedRead::InVain);
        self.waits.record_failure(self.clock.now());
    }

    /// Writes a value for the rest of its freshness, unless its name has been evicted since.
    pub async fn put_evidence(&self, key: &VerdictCacheKey, value: &SharedEvidence) {
        let written = self.write_evidence(key, value).await;
        telemetry::count_shared_write(written.err().unwrap_or(SharedWrite::Written));
    }

    async fn write_evidence(&self, key: &VerdictCacheKey, value: &SharedEvidence) -> Result<(), SharedWrite> {
        let left = value.fresh_until.duration_since(self.clock.now());
        let left = Duration::try_from(left).ok().filter(|left| !left.is_zero()).ok_or(SharedWrite::Aged)?;
        if self.cache.last_eviction_time(&key.name).is_some_and(|at| value.began < at) {
            return Err(SharedWrite::Evicted);
        }
        let binding = SharedEvidenceBinding { version: VERSION, key };
        let stored = value.encode_with_mac(&self.keys, binding).ok_or(SharedWrite::Long)?;
        let mut asked = Pipeline::new();
        let place = self.redis_key("evidence", binding);
        asked.cmd("SET").arg(place).arg(stored).arg("PX").arg(whole_milliseconds(left)).ignore();
        self.link
            .send_commands::<()>(&asked, self.config.write_timeout)
            .await
            .map_err(|RedisUnavailableError| SharedWrite::Gone)
    }

    /// Releases a lease if it still belongs to this daemon.
    pub async fn release_lease(&self, lease: ResolutionLease) {
        let mut asked = Pipeline::new();
        asked.cmd("EVAL").arg(RELEASE).arg(1).arg(lease.place).arg(lease.token).ignore();
        // A lease that is not released expires.
        let _ = self.link.send_commands::<()>(&asked, self.config.write_timeout).await;
    }

    /// Queues `work` behind earlier work. If the queue is full, `work` is dropped.
    pub fn queue_work(&self, work: impl Future<Output = ()> + Send + 'static) {
        if self.later.try_send(work.boxed()).is_err() {
            telemetry::count_shared_write(SharedWrite::Dropped);
        }
    }

    /// Waits until all queued work is done.
    #[cfg(feature = "unstable")]
    pub async fn wait_for_queue(&self) {
        let (done, waiting) = tokio::sync::oneshot::channel::<()>();
        self.queue_work(async move { drop(done) });
        // Work that was dropped for lack of room counts as done.
        let _ = waiting.await;
    }

    fn redis_key(&self, kind: &str, binding: SharedEvidenceBinding<'_>) -> String {
        format!("{}:{kind}:{}", self.config.prefix, binding.storage_key())
    }
}

/// Performs queued work in order, so that an earlier value never replaces a later one. Ends when the shared cache is
/// dropped.
async fn run_queued_work(mut waiting: mpsc::Receiver<BoxFuture<'static, ()>>) {
    while let Some(work) = waiting.recv().await {
        work.await;
    }
}

fn whole_milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}

fn random_token() -> [u8; 16] {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("a system without randomness runs nothing that needs a key");
    bytes
}
