//! Notifies a service manager such as systemd that the daemon is ready, reloads, stops, and is alive. Does nothing
//! unless `NOTIFY_SOCKET` is set.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::sleep;

/// Watchdog notifications per timeout: one may be late.
const SIGNS: u32 = 3;

/// Notifies that the daemon serves the configuration in force.
pub(super) fn notify_ready() {
    notify_service_manager(&[NotifyState::Ready]);
}

/// Notifies that the daemon drains and then ends.
pub(super) fn notify_stopping() {
    notify_service_manager(&[NotifyState::Stopping]);
}

/// Notifies that the daemon reloads its configuration. [`notify_ready`] must follow, even if the reload fails.
pub(super) fn notify_reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify_service_manager(&[NotifyState::Reloading, now]),
        // Without the time, systemd considers the reload failed and stops the service.
        Err(error) => tracing::warn!(%error, "the service manager was not notified of the reload"),
    }
}

/// Sends watchdog notifications, if the service manager expects them (`WATCHDOG_USEC`), as long as the runtime lives.
///
/// A task of the runtime sends them, so they stop if all request workers hang. Clients cannot stop them, because the
/// task needs neither a connection nor a permit.
pub(super) fn start_watchdog() {
    if let Some(limit) = sd_notify::watchdog_enabled() {
        tokio::spawn(send_heartbeats(limit / SIGNS, || notify_service_manager(&[NotifyState::Watchdog])));
    }
}

async fn send_heartbeats(pause: Duration, sign: impl Fn()) {
    loop {
        sign();
        sleep(pause).await;
    }
}

fn notify_service_manager(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager could not be notified");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Instant;

    use super::*;

    const PAUSE: Duration = Duration::from_millis(1);

    #[test]
    fn signs_of_life_end_while_no_worker_answers() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
        let (send, signs) = mpsc::channel();
        runtime.spawn(send_heartbeats(PAUSE, move || _ = send.send(())));
        signs.recv().expect("a sign of life");
        let (busy, is_busy) = mpsc::channel();
        let (go_on, goes_on) = mpsc::channel::<()>();
        runtime.spawn(async move {
            busy.send(()).unwrap();
            goes_on.recv().unwrap();
        });
        is_busy.recv().expect("the worker hangs");
        while signs.try_recv().is_ok() {}
        let began = Instant::now();
        while began.elapsed() < PAUSE * 20 {
            assert!(signs.try_recv().is_err(), "a sign of life although no worker answers");
        }
        go_on.send(()).unwrap();
        signs.recv().expect("a sign of life once the worker answers again");
    }
}
