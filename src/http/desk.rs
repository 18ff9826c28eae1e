//! Where both faces ask: known answers at once, runs within limits.

use std::collections::HashMap;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::shares::{Client, Share, Shares};
use crate::config::Config;
use crate::reason::Refusal;
use crate::resolve::{Question, Resolution, Resolver, SetupError, Standing};

/// Shortest time between two runs of one question, where a client forces them (`Cache-Control: no-cache`): one client
/// that reloads a page is not to become load on every upstream.
pub(super) const BETWEEN_FORCED_RUNS: Duration = Duration::from_secs(10);

/// What an answer may take beyond the time limit of a run, which ends by itself: past it something is broken.
const RUN_SLACK: Duration = Duration::from_secs(5);

/// The window in which the runs of a client are counted.
const QUOTA_WINDOW: Duration = Duration::from_secs(60);

/// Most clients counted one by one in a window (about 2 MiB); further ones share one count.
const MAX_CLIENTS: usize = 65_536;

/// Under which the clients beyond [`MAX_CLIENTS`] are counted.
const EVERYBODY_ELSE: Client = Client(IpAddr::V4(Ipv4Addr::UNSPECIFIED));

/// Answers questions within the limits.
pub(super) struct Desk {
    resolver: Resolver,
    runs: Arc<Semaphore>,
    shares: Shares,
    quota: Mutex<Quota>,
    quota_limit: u32,
    run_limit: Duration,
}

/// An answer, and how it came about.
#[derive(Clone, Debug)]
pub(super) struct Served {
    pub(super) resolution: Resolution,
    pub(super) how: How,
}

/// How an answer came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// It was known.
    Known,
    /// It was not known, so there was a run.
    Run,
    /// The client demanded a run.
    Forced,
    /// The client demanded a run, which it did not get: this answer was known.
    ForceRefused,
}

impl Desk {
    pub(super) fn new(resolver: Resolver, config: &Config) -> Self {
        Self {
            resolver,
            runs: Arc::new(Semaphore::new(config.http.cold_runs)),
            shares: Shares::new(config.http.cold_runs_per_client),
            quota: Mutex::new(Quota { since: Instant::now(), spent: HashMap::new() }),
            quota_limit: config.http.cold_runs_per_minute,
            run_limit: config.timeout + RUN_SLACK,
        }
    }

    /// The answer that is known, else that of a run. A caller that gives up does not end the run.
    pub(super) async fn ask(&self, client: Client, question: Question) -> Result<Served, Refusal> {
        let permit = match self.standing(&question).await? {
            Standing::Known(resolution) => return Ok(Served { resolution, how: How::Known }),
            Standing::UnderWay => None,
            Standing::Unknown => Some(self.admit(client)?),
        };
        let resolution = self.run(permit, question).await?;
        Ok(Served { resolution, how: How::Run })
    }

    /// As [`Desk::ask`], but where all runs are taken it waits for one.
    pub(super) async fn ask_patiently(&self, client: Client, question: Question) -> Result<Served, Refusal> {
        let permit = match self.standing(&question).await? {
            Standing::Known(resolution) => return Ok(Served { resolution, how: How::Known }),
            Standing::UnderWay => None,
            Standing::Unknown => {
                self.spend(client)?;
                let share = self.shares.wait(client).await;
                let permit = Arc::clone(&self.runs).acquire_owned().await.map_err(|_| Refusal::Overloaded)?;
                Some(Place { _permit: permit, _share: share })
            }
        };
        let resolution = self.run(permit, question).await?;
        Ok(Served { resolution, how: How::Run })
    }

    /// The answer of a new run, or the known one where the limits forbid it.
    pub(super) async fn ask_anew(&self, client: Client, question: Question) -> Result<Served, Refusal> {
        let permit = match self.standing(&question).await? {
            Standing::Known(resolution) => match self.admit_forced(client, &question).await {
                Ok(permit) => Some(permit),
                Err(_) => return Ok(Served { resolution, how: How::ForceRefused }),
            },
            Standing::UnderWay => None,
            Standing::Unknown => Some(self.admit(client)?),
        };
        let resolver = self.resolver.clone();
        let run = async move { resolver.ask_anew(&question).await };
        Ok(Served { resolution: self.finish(permit, run).await?, how: How::Forced })
    }

    /// What `work` gives, which takes the place of a run and counts as one. A caller that gives up does not end it.
    pub(super) async fn admitted<T: Send + 'static>(
        &self,
        client: Client,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Refusal> {
        let place = self.admit(client)?;
        self.held(Some(place), work).await
    }

    async fn standing(&self, question: &Question) -> Result<Standing, Refusal> {
        self.resolver.standing(question).await.map_err(|SetupError::Invalid { .. }| Refusal::ProfileUnknown)
    }

    async fn run(&self, place: Option<Place>, question: Question) -> Result<Resolution, Refusal> {
        let resolver = self.resolver.clone();
        self.finish(place, async move { resolver.ask(&question).await }).await
    }

    async fn finish(
        &self,
        place: Option<Place>,
        run: impl Future<Output = Result<Resolution, SetupError>> + Send + 'static,
    ) -> Result<Resolution, Refusal> {
        self.held(place, run).await?.map_err(|SetupError::Invalid { .. }| Refusal::ProfileUnknown)
    }

    /// Lets the work go on in a task of its own, which holds its place to its end.
    async fn held<T: Send + 'static>(
        &self,
        place: Option<Place>,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Refusal> {
        let task = tokio::spawn(async move {
            let _place = place;
            work.await
        });
        match timeout(self.run_limit, task).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_panicked)) => Err(Refusal::InternalError),
            Err(_) => Err(Refusal::RunOverdue),
        }
    }

    async fn admit_forced(&self, client: Client, question: &Question) -> Result<Place, Refusal> {
        let since_run = self.resolver.since_run(question).await;
        if since_run.map_err(|SetupError::Invalid { .. }| Refusal::ProfileUnknown)? < BETWEEN_FORCED_RUNS {
            return Err(Refusal::ClientOverQuota);
        }
        self.admit(client)
    }

    fn admit(&self, client: Client) -> Result<Place, Refusal> {
        let share = self.shares.take(client).ok_or(Refusal::ClientOverQuota)?;
        let permit = Arc::clone(&self.runs).try_acquire_owned().map_err(|_| Refusal::Overloaded)?;
        self.spend(client)?;
        Ok(Place { _permit: permit, _share: share })
    }

    fn spend(&self, client: Client) -> Result<(), Refusal> {
        let mut quota = self.quota.lock().unwrap_or_else(PoisonError::into_inner);
        if quota.spend(client, self.quota_limit, Instant::now()) { Ok(()) } else { Err(Refusal::ClientOverQuota) }
    }
}

/// A place for a run.
struct Place {
    _permit: OwnedSemaphorePermit,
    _share: Share,
}

/// Runs that clients caused in the window.
struct Quota {
    since: Instant,
    spent: HashMap<Client, u32>,
}

impl Quota {
    /// Counts one run of `client`; whether it is within `limit`.
    fn spend(&mut self, client: Client, limit: u32, now: Instant) -> bool {
        if now.saturating_duration_since(self.since) >= QUOTA_WINDOW {
            self.since = now;
            self.spent.clear();
        }
        let full = self.spent.len() >= MAX_CLIENTS && !self.spent.contains_key(&client);
        let spent = self.spent.entry(if full { EVERYBODY_ELSE } else { client }).or_default();
        if *spent >= limit {
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
        let client = |last: u8| Client(Ipv4Addr::new(192, 0, 2, last).into());
        let start = Instant::now();
        let mut quota = Quota { since: start, spent: HashMap::new() };
        assert!(quota.spend(client(1), 2, start) && quota.spend(client(1), 2, start));
        assert!(!quota.spend(client(1), 2, start));
        assert!(quota.spend(client(2), 2, start));
        assert!(!quota.spend(client(2), 0, start));
        assert!(quota.spend(client(1), 2, start + QUOTA_WINDOW));
    }

    #[tokio::test]
    async fn a_run_that_does_not_end_is_overdue_and_one_that_panics_is_a_bug() {
        let config = Config::default();
        let resolver = Resolver::new(&config).await.expect("a resolver");
        let desk = Desk { run_limit: Duration::from_millis(1), ..Desk::new(resolver, &config) };
        let endless = std::future::pending();
        assert_eq!(desk.finish(None, endless).await.unwrap_err(), Refusal::RunOverdue);
        let desk = Desk { run_limit: Duration::from_secs(120), ..desk };
        assert_eq!(desk.finish(None, async { panic!("a bug") }).await.unwrap_err(), Refusal::InternalError);
    }

    #[test]
    fn clients_without_number_share_one_quota() {
        let start = Instant::now();
        let mut quota = Quota { since: start, spent: HashMap::new() };
        for number in 0..u32::try_from(MAX_CLIENTS).unwrap() {
            assert!(quota.spend(Client(Ipv4Addr::from_bits(0x0a00_0000 + number).into()), 1, start));
        }
        assert!(quota.spend(Client(Ipv4Addr::new(192, 0, 2, 1).into()), 1, start));
        assert!(!quota.spend(Client(Ipv4Addr::new(192, 0, 2, 2).into()), 1, start));
        assert_eq!(quota.spent.len(), MAX_CLIENTS + 1);
    }
}
