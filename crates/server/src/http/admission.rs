//! Admission control: a cached answer is returned at once, a new resolution is subject to limits.

use std::collections::HashMap;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clresolve_core::reason::RefusalCode;
use clresolve_resolver::config::Config;
use clresolve_resolver::cpu_share;
use clresolve_resolver::resolve::{NameQuestion, Resolver, SetupError, VerdictCacheKeyStatus};
use clresolve_verdict::trust::Resolution;
use futures_util::FutureExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::client_limits::{ClientIdentity, ClientPermit, ClientPermitTable};

/// Minimum time between two forced resolutions (`Cache-Control: no-cache`) of one question, so that a client that
/// reloads a page does not put load on every upstream.
const BETWEEN_FORCED_RUNS: Duration = Duration::from_secs(10);

/// How long an answer may take beyond the time limit of a resolution. A resolution ends by itself, so exceeding this
/// indicates a bug.
const RUN_SLACK: Duration = Duration::from_secs(5);

/// The window in which the resolutions of a client are counted.
const QUOTA_WINDOW: Duration = Duration::from_secs(60);

/// Maximum number of clients counted individually in a window (about 2 MiB). Further clients share one count.
const MAX_CLIENTS: usize = 65_536;

/// The key under which clients beyond [`MAX_CLIENTS`] are counted together.
const EVERYBODY_ELSE: ClientIdentity = ClientIdentity::Address(IpAddr::V4(Ipv4Addr::UNSPECIFIED));

/// Answers questions within the configured limits.
pub(super) struct AdmissionControl {
    resolver: Resolver,
    runs: Arc<Semaphore>,
    per_client: ClientPermitTable,
    quota: Mutex<ClientResolutionCounts>,
    quota_limit: u32,
    run_limit: Duration,
}

/// An answer, with how the cache contributed to it.
#[derive(Clone, Debug)]
pub(super) struct ResolutionAndCacheUse {
    pub(super) resolution: Resolution,
    pub(super) cache_use: CacheUseOutcome,
}

/// How the cache contributed to an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CacheUseOutcome {
    /// The answer was in the cache.
    Hit,
    /// The cache had no answer, so the daemon resolved the name.
    Miss,
    Forced,
    /// The cached answer was no longer fresh, and the resolution that should have replaced it failed.
    Stale,
    /// The client forced a resolution, but the limits did not allow it. The cached answer was returned.
    ForceRefused,
}

impl AdmissionControl {
    pub(super) fn new(resolver: Resolver, config: &Config) -> Self {
        Self {
            resolver,
            runs: Arc::new(Semaphore::new(config.http.cold_runs)),
            per_client: ClientPermitTable::new(config.http.cold_runs_per_client),
            quota: Mutex::new(ClientResolutionCounts { since: Instant::now(), spent: HashMap::new() }),
            quota_limit: config.http.cold_runs_per_minute,
            run_limit: config.timeout + RUN_SLACK,
        }
    }

    /// Returns the cached answer, or else the result of a new resolution. If the caller gives up, the resolution
    /// continues.
    pub(super) async fn resolve_with_cache(
        &self,
        client: ClientIdentity,
        question: NameQuestion,
    ) -> Result<ResolutionAndCacheUse, RefusalCode> {
        let permit = match self.cache_status(&question).await? {
            VerdictCacheKeyStatus::Fresh(resolution) => {
                return Ok(ResolutionAndCacheUse { resolution, cache_use: CacheUseOutcome::Hit });
            }
            VerdictCacheKeyStatus::UnderWay => None,
            VerdictCacheKeyStatus::Missing => Some(self.admit_resolution(client)?),
        };
        // Boxed, so that the future of a hit is small.
        let resolution = Box::pin(self.run_resolution(permit, question)).await?;
        Ok(ResolutionAndCacheUse { resolution, cache_use: CacheUseOutcome::Miss })
    }

    /// Returns the cached answer, if there is one.
    pub(super) async fn cached_answer(&self, question: &NameQuestion) -> Result<Option<Resolution>, RefusalCode> {
        match self.cache_status(question).await? {
            VerdictCacheKeyStatus::Fresh(resolution) => Ok(Some(resolution)),
            VerdictCacheKeyStatus::UnderWay | VerdictCacheKeyStatus::Missing => Ok(None),
        }
    }

    /// Like [`AdmissionControl::resolve_with_cache`], but waits for a permit if none is free.
    pub(super) async fn resolve_waiting_for_permit(
        &self,
        client: ClientIdentity,
        question: NameQuestion,
    ) -> Result<ResolutionAndCacheUse, RefusalCode> {
        let permit = match self.cache_status(&question).await? {
            VerdictCacheKeyStatus::Fresh(resolution) => {
                return Ok(ResolutionAndCacheUse { resolution, cache_use: CacheUseOutcome::Hit });
            }
            VerdictCacheKeyStatus::UnderWay => None,
            VerdictCacheKeyStatus::Missing => {
                client.check_may_start_work()?;
                self.spend_quota(client)?;
                let of_client = self.per_client.acquire(client).await;
                let run = Arc::clone(&self.runs).acquire_owned().await.map_err(|_| RefusalCode::Overloaded)?;
                Some(ResolutionPermit { _run: run, _of_client: of_client })
            }
        };
        let resolution = self.run_resolution(permit, question).await?;
        Ok(ResolutionAndCacheUse { resolution, cache_use: CacheUseOutcome::Miss })
    }

    /// Forces a resolution. If the limits do not allow one, returns the cached answer.
    pub(super) async fn force_resolution(
        &self,
        client: ClientIdentity,
        question: NameQuestion,
    ) -> Result<ResolutionAndCacheUse, RefusalCode> {
        if client.check_may_start_work().is_err() {
            let answered = self.resolve_with_cache(client, question).await?;
            return Ok(ResolutionAndCacheUse { cache_use: CacheUseOutcome::ForceRefused, ..answered });
        }
        let permit = match self.cache_status(&question).await? {
            VerdictCacheKeyStatus::Fresh(resolution) => match self.admit_forced(client, &question).await {
                Ok(permit) => Some(permit),
                Err(_) => return Ok(ResolutionAndCacheUse { resolution, cache_use: CacheUseOutcome::ForceRefused }),
            },
            VerdictCacheKeyStatus::UnderWay => None,
            VerdictCacheKeyStatus::Missing => Some(self.admit_resolution(client)?),
        };
        let resolver = self.resolver.clone();
        let run = async move { resolver.resolve_question_anew(&question).await };
        Ok(ResolutionAndCacheUse {
            resolution: self.finish_resolution(permit, run).await?,
            cache_use: CacheUseOutcome::Forced,
        })
    }

    /// Whether a resolution for one more client could start, that is, no client would have to wait.
    pub(super) fn has_room_for_client(&self) -> bool {
        self.runs.available_permits() > 0
    }

    #[cfg(test)]
    pub(super) fn is_idle(&self, config: &Config) -> bool {
        self.runs.available_permits() == config.http.cold_runs
    }

    /// Runs `work`, which needs a permit and counts as a resolution. If the caller gives up, the work continues.
    pub(super) async fn run_as_resolution<T: Send + 'static>(
        &self,
        client: ClientIdentity,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, RefusalCode> {
        let permit =
            if clresolve_core::mutant!("judging-is-no-run") { None } else { Some(self.admit_resolution(client)?) };
        self.run_holding_permit(permit, work).await
    }

    async fn cache_status(&self, question: &NameQuestion) -> Result<VerdictCacheKeyStatus, RefusalCode> {
        self.resolver.cache_status(question).await.map_err(|_: SetupError| RefusalCode::ProfileUnknown)
    }

    async fn run_resolution(
        &self,
        permit: Option<ResolutionPermit>,
        question: NameQuestion,
    ) -> Result<Resolution, RefusalCode> {
        let resolver = self.resolver.clone();
        self.finish_resolution(permit, async move { resolver.resolve_question(&question).await }).await
    }

    async fn finish_resolution(
        &self,
        permit: Option<ResolutionPermit>,
        run: impl Future<Output = Result<Resolution, SetupError>> + Send + 'static,
    ) -> Result<Resolution, RefusalCode> {
        self.run_holding_permit(permit, run).await?.map_err(|_: SetupError| RefusalCode::ProfileUnknown)
    }

    /// Runs `work` to its end and holds its permit until then. Work without a permit of its own waits for another
    /// caller's resolution. It ends when its caller does, so callers that give up leave nothing behind.
    async fn run_holding_permit<T: Send + 'static>(
        &self,
        permit: Option<ResolutionPermit>,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, RefusalCode> {
        let ended = match permit {
            None => {
                let work = AssertUnwindSafe(work).catch_unwind();
                timeout(self.run_limit, work.map(|ended| ended.map_err(|_panicked| RefusalCode::InternalError))).await
            }
            Some(permit) => timeout(self.run_limit, run_to_completion(run_while_holding(permit, work))).await,
        };
        ended.unwrap_or(Err(RefusalCode::RunOverdue))
    }

    async fn admit_forced(
        &self,
        client: ClientIdentity,
        question: &NameQuestion,
    ) -> Result<ResolutionPermit, RefusalCode> {
        let since_run = self.resolver.time_since_resolution(question).await;
        if since_run.map_err(|_: SetupError| RefusalCode::ProfileUnknown)? < BETWEEN_FORCED_RUNS {
            return Err(RefusalCode::ClientOverQuota);
        }
        self.admit_resolution(client)
    }

    fn admit_resolution(&self, client: ClientIdentity) -> Result<ResolutionPermit, RefusalCode> {
        client.check_may_start_work()?;
        let of_client = self.per_client.try_acquire(client).ok_or(RefusalCode::ClientOverQuota)?;
        let run = Arc::clone(&self.runs).try_acquire_owned().map_err(|_| RefusalCode::Overloaded)?;
        self.spend_quota(client)?;
        Ok(ResolutionPermit { _run: run, _of_client: of_client })
    }

    fn spend_quota(&self, client: ClientIdentity) -> Result<(), RefusalCode> {
        let mut quota = self.quota.lock().unwrap_or_else(PoisonError::into_inner);
        if quota.count_resolution(client, self.quota_limit, Instant::now()) {
            Ok(())
        } else {
            Err(RefusalCode::ClientOverQuota)
        }
    }
}

/// Runs `work` in its own task. If the caller gives up, the work continues and still holds its resources.
pub(super) async fn run_to_completion<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, RefusalCode> {
    cpu_share::spawn_task(work).await.map_err(|_panicked| RefusalCode::InternalError)
}

/// Runs `work` and drops `held` once it has ended.
pub(super) async fn run_while_holding<T>(held: impl Send, work: impl Future<Output = T>) -> T {
    let held = (!clresolve_core::mutant!("permits-freed-early")).then_some(held);
    let ended = work.await;
    drop(held);
    ended
}

/// Permission for a resolution: one of all permits, and one of the client's.
struct ResolutionPermit {
    _run: OwnedSemaphorePermit,
    _of_client: ClientPermit,
}

/// Number of resolutions per client in the current window.
struct ClientResolutionCounts {
    since: Instant,
    spent: HashMap<ClientIdentity, u32>,
}

impl ClientResolutionCounts {
    /// Counts one resolution of `client`. Returns false if it would exceed `limit`.
    fn count_resolution(&mut self, client: ClientIdentity, limit: u32, now: Instant) -> bool {
        if now.saturating_duration_since(self.since) >= QUOTA_WINDOW {
            self.since = now;
            self.spent.clear();
        }
        let full = self.spent.len() >= MAX_CLIENTS && !self.spent.contains_key(&client);
        let spent = self.spent.entry(if full { EVERYBODY_ELSE } else { client }).or_default();
        if *spent >= limit && !clresolve_core::mutant!("quota-unlimited") {
            return false;
        }
        *spent += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_its_own_quota_and_the_next_window_a_new_one() {
        let client = |last: u8| ClientIdentity::Address(Ipv4Addr::new(192, 0, 2, last).into());
        let start = Instant::now();
        let mut quota = ClientResolutionCounts { since: start, spent: HashMap::new() };
        assert!(quota.count_resolution(client(1), 2, start) && quota.count_resolution(client(1), 2, start));
        assert!(!quota.count_resolution(client(1), 2, start));
        assert!(quota.count_resolution(client(2), 2, start));
        assert!(!quota.count_resolution(client(2), 0, start));
        assert!(quota.count_resolution(client(1), 2, start + QUOTA_WINDOW));
    }

    #[tokio::test]
    async fn a_run_that_does_not_end_is_overdue_and_one_that_panics_is_a_bug() {
        let config = Config::default();
        let resolver = Resolver::new(&config).await.expect("a resolver");
        let admission =
            AdmissionControl { run_limit: Duration::from_millis(1), ..AdmissionControl::new(resolver, &config) };
        let endless = std::future::pending();
        assert_eq!(admission.finish_resolution(None, endless).await.unwrap_err(), RefusalCode::RunOverdue);
        let admission = AdmissionControl { run_limit: Duration::from_secs(120), ..admission };
        assert_eq!(
            admission.finish_resolution(None, async { panic!("a bug") }).await.unwrap_err(),
            RefusalCode::InternalError
        );
    }

    /// Otherwise each question that joins a slow resolution would leave a task behind.
    #[tokio::test]
    async fn a_caller_that_joins_a_run_leaves_nothing_behind() {
        let config = Config::default();
        let admission = AdmissionControl::new(Resolver::new(&config).await.expect("a resolver"), &config);
        let witness = Arc::new(());
        let held = Arc::clone(&witness);
        let mut joined = Box::pin(admission.run_holding_permit(None, async move {
            let _held = held;
            std::future::pending::<()>().await
        }));
        assert!(futures_util::poll!(&mut joined).is_pending());
        drop(joined);
        assert_eq!(Arc::strong_count(&witness), 1);
    }

    #[tokio::test]
    async fn a_client_that_hangs_up_frees_no_run_before_its_work_ends() {
        let mut config = Config::default();
        config.http.cold_runs = 1;
        let resolver = Resolver::new(&config).await.expect("a resolver");
        let admission = AdmissionControl::new(resolver, &config);
        let client = ClientIdentity::Address(Ipv4Addr::new(192, 0, 2, 1).into());
        let (go, wait) = tokio::sync::oneshot::channel::<()>();
        let (begin, begun) = tokio::sync::oneshot::channel();
        let work = async move {
            begin.send(()).expect("it is waited for");
            wait.await
        };
        let mut hung_up = Box::pin(admission.run_as_resolution(client, work));
        assert!(futures_util::poll!(&mut hung_up).is_pending());
        drop(hung_up);
        begun.await.expect("the work begins");
        assert_eq!(admission.run_as_resolution(client, async {}).await, Err(RefusalCode::Overloaded));
        go.send(()).expect("the work goes on");
        let freed = Arc::clone(&admission.runs).acquire_owned().await.expect("the work ends");
        drop(freed);
        assert_eq!(admission.run_as_resolution(client, async {}).await, Ok(()));
    }

    #[test]
    fn clients_without_number_share_one_quota() {
        let start = Instant::now();
        let mut quota = ClientResolutionCounts { since: start, spent: HashMap::new() };
        for number in 0..u32::try_from(MAX_CLIENTS).unwrap() {
            assert!(quota.count_resolution(
                ClientIdentity::Address(Ipv4Addr::from_bits(0x0a00_0000 + number).into()),
                1,
                start
            ));
        }
        assert!(quota.count_resolution(ClientIdentity::Address(Ipv4Addr::new(192, 0, 2, 1).into()), 1, start));
        assert!(!quota.count_resolution(ClientIdentity::Address(Ipv4Addr::new(192, 0, 2, 2).into()), 1, start));
        assert_eq!(quota.spent.len(), MAX_CLIENTS + 1);
    }
}
