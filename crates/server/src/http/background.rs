//! Background work of the daemon. It reads a first block of the chain, refreshes trusted verdicts before they expire,
//! and resolves the names that were hot before the restart. Client resolutions take precedence until a verdict is about
//! to expire.

use std::convert::Infallible;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use tokio::time::sleep;

use super::hot_names::SavedHotNames;
use super::in_force::CurrentService;

/// Time between two checks for due refreshes. The refresh period, the last tenth of a verdict's lifetime (30 s), spans
/// many checks. Each check visits every trusted verdict.
const PAUSE: Duration = Duration::from_secs(2);

/// Pause after the first failed read of the chain. It doubles with each further failure, so that endpoints with a rate
/// limit recover.
const READING_PAUSE: Duration = Duration::from_secs(1);

const MAX_READING_PAUSE: Duration = Duration::from_secs(10);

/// Time before expiry from which a verdict is refreshed even if client resolutions have to wait. Otherwise clients that
/// use every permit could close the gate for names that others rely on. Twenty seconds leave room for one slow refresh
/// ahead of it in the queue.
const LAST_MOMENT: SignedDuration = SignedDuration::from_secs(20);

/// Maximum number of hot names resolved in one round, so that refreshes do not wait for all of them.
const NAMES_A_ROUND: usize = 32;

/// Runs until the future is dropped.
pub(super) async fn run_background_refreshes(
    in_force: &CurrentService,
    hot_names: Option<&SavedHotNames>,
) -> Infallible {
    loop {
        refresh_round(in_force, hot_names).await;
        sleep(PAUSE).await;
    }
}

/// Reads a block of the chain with the configuration in force, and retries until it succeeds. Runs until the future is
/// dropped.
pub(super) async fn read_chain_until_ready(in_force: &CurrentService) -> Infallible {
    let mut pause = READING_PAUSE;
    loop {
        let state = in_force.state();
        state.readiness.read_chain(&state.resolver).await;
        sleep(pause).await;
        let is_missing = state.readiness.unready_reason().is_some();
        pause = if is_missing { (2 * pause).min(MAX_READING_PAUSE) } else { READING_PAUSE };
    }
}

/// Refreshes the verdicts that are due, then resolves names that were hot before the restart. Starts nothing once the
/// daemon is draining or another configuration is in force. While a client resolution would have to wait, it refreshes
/// only verdicts that are about to expire.
async fn refresh_round(in_force: &CurrentService, hot_names: Option<&SavedHotNames>) {
    let state = in_force.state();
    let has_room = || state.admission.has_room_for_client() || clresolve_core::mutant!("refreshes-jump-the-queue");
    let may_work = || !state.is_draining() && Arc::ptr_eq(&state, &in_force.state());
    let is_last_moment = |left| left <= LAST_MOMENT && !clresolve_core::mutant!("taken-runs-end-verdicts");
    state.resolver.refresh_expiring_verdicts(|left| may_work() && (has_room() || is_last_moment(left))).await;
    if let Some(hot_names) = hot_names {
        let next = || if may_work() && has_room() { hot_names.next_unresolved_name() } else { None };
        let names = iter::from_fn(next).take(NAMES_A_ROUND);
        state.resolver.warm_cache(names, |name| hot_names.remove_decided(name)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicI64, Ordering};

    use clresolve_core::state::TrustState;
    use jiff::Timestamp;

    use super::*;
    use crate::http::client_limits::ClientIdentity;
    use crate::http::serving::build_service;
    use crate::http::state::AppState;
    use clresolve_resolver::clock::Clock;
    use clresolve_resolver::resolve::{NameQuestion, Resolver, VerdictCacheKeyStatus};
    use clresolve_resolver::sandbox::Sandbox;

    const NAME: &str = "summarizeagent.eth";
    const CLIENT: ClientIdentity = ClientIdentity::Address(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST));

    /// The machine's clock, shifted by this many seconds.
    #[derive(Default)]
    struct Shifted(AtomicI64);

    impl Clock for Shifted {
        fn now(&self) -> Timestamp {
            Timestamp::now() + SignedDuration::from_secs(self.0.load(Ordering::Relaxed))
        }
    }

    #[tokio::test]
    async fn refreshes_stand_behind_the_runs_of_clients() {
        let sandbox = Sandbox::start().await.expect("the sandbox starts");
        let mut config = sandbox.config();
        (config.timeout, config.http.cold_runs) = (Duration::from_secs(120), 1);
        let clock = Arc::new(Shifted::default());
        let resolver = Resolver::with_clock(&config, Arc::clone(&clock) as Arc<dyn Clock>).await.expect("a resolver");
        let in_force = CurrentService::new(build_service(AppState::new(resolver.clone(), &config, None, None)));
        let checked_at = async || resolver.resolve(NAME).await.verdict().freshness.checked_at;
        resolver.resolve(NAME).await;
        let first = checked_at().await;
        clock.0.store(275, Ordering::Relaxed);

        let state = in_force.state();
        let (end, ends) = tokio::sync::oneshot::channel::<()>();
        let mut of_client = Box::pin(state.admission.run_as_resolution(CLIENT, ends));
        assert!(futures_util::poll!(&mut of_client).is_pending());
        refresh_round(&in_force, None).await;
        assert_eq!(checked_at().await, first, "every run is taken, so that a client's would wait");
        end.send(()).expect("the run goes on");
        of_client.await.expect("it is admitted").expect("it ends");
        while !state.admission.has_room_for_client() {
            tokio::task::yield_now().await;
        }
        refresh_round(&in_force, None).await;
        assert_ne!(checked_at().await, first);

        clock.0.store(555, Ordering::Relaxed);
        let second = checked_at().await;
        state.announce_drain();
        refresh_round(&in_force, None).await;
        assert_eq!(checked_at().await, second, "what is about to end begins nothing");
    }

    #[tokio::test]
    async fn clients_that_keep_every_run_taken_end_no_trusted_verdict() {
        let sandbox = Sandbox::start().await.expect("the sandbox starts");
        let mut config = sandbox.config();
        (config.timeout, config.http.cold_runs) = (Duration::from_secs(120), 1);
        let clock = Arc::new(Shifted::default());
        let resolver = Resolver::with_clock(&config, Arc::clone(&clock) as Arc<dyn Clock>).await.expect("a resolver");
        let in_force = CurrentService::new(build_service(AppState::new(resolver.clone(), &config, None, None)));
        let state = in_force.state();
        let mut of_client = Box::pin(state.admission.run_as_resolution(CLIENT, std::future::pending::<()>()));
        assert!(futures_util::poll!(&mut of_client).is_pending() && !state.admission.has_room_for_client());

        for _ in 0..2 {
            assert_eq!(resolver.resolve(NAME).await.verdict().state, TrustState::Trusted);
        }
        clock.0.store(295, Ordering::Relaxed);
        refresh_round(&in_force, None).await;
        clock.0.store(310, Ordering::Relaxed);
        let status = resolver.cache_status(&NameQuestion::new(NAME)).await.expect("the profile exists");
        assert!(matches!(status, VerdictCacheKeyStatus::Fresh(_)), "it ends after 300 s unless it is refreshed");
    }

    #[tokio::test]
    async fn hot_names_stand_behind_the_runs_of_clients() {
        let sandbox = Sandbox::start().await.expect("the sandbox starts");
        let mut config = sandbox.config();
        (config.timeout, config.http.cold_runs) = (Duration::from_secs(120), 1);
        let resolver = Resolver::new(&config).await.expect("a resolver");
        let in_force = CurrentService::new(build_service(AppState::new(resolver.clone(), &config, None, None)));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("names");
        std::fs::write(&path, format!("{NAME}\n")).expect("the file is written");
        let hot_names = SavedHotNames::open(&path);
        let is_known = async || {
            let status = resolver.cache_status(&NameQuestion::new(NAME)).await.expect("the profile exists");
            matches!(status, VerdictCacheKeyStatus::Fresh(_))
        };

        let state = in_force.state();
        let (end, ends) = tokio::sync::oneshot::channel::<()>();
        let mut of_client = Box::pin(state.admission.run_as_resolution(CLIENT, ends));
        assert!(futures_util::poll!(&mut of_client).is_pending());
        refresh_round(&in_force, Some(&hot_names)).await;
        assert!(!is_known().await, "every run is taken, so that a client's would wait");
        end.send(()).expect("the run goes on");
        of_client.await.expect("it is admitted").expect("it ends");
        while !state.admission.has_room_for_client() {
            tokio::task::yield_now().await;
        }
        refresh_round(&in_force, Some(&hot_names)).await;
        assert!(is_known().await, "it was left on the list");
    }
}
