//! What a service manager, such as systemd, is told: that the daemon listens, reads its configuration again, ends, and
//! lives. Where none asks to be told (`NOTIFY_SOCKET`), nothing is sent.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::sleep;

/// Signs of life within the time after which the daemon counts as hung: one may be late.
const SIGNS: u32 = 3;

/// The daemon listens, under the configuration in force.
pub(super) fn is_ready() {
    tell(&[NotifyState::Ready]);
}

/// The daemon ends once it has drained.
pub(super) fn is_stopping() {
    tell(&[NotifyState::Stopping]);
}

/// The daemon reads its configuration again. [`is_ready`] must follow, whatever becomes of it.
pub(super) fn is_reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        // Without the time systemd takes the reload for failed, and ends the service.
        Err(error) => tracing::warn!(%error, "the service manager was not notified of the reload"),
    }
}

/// Gives signs of life where the service manager expects them (`WATCHDOG_USEC`), for as long as the runtime lives.
///
/// They come from a task of the runtime, so that they end when every worker that answers requests hangs. What clients do
/// does not end them: they need neither a connection nor a run.
pub(super) fn start_watchdog() {
    if let Some(limit) = sd_notify::watchdog_enabled() {
        tokio::spawn(give_signs(limit / SIGNS, || tell(&[NotifyState::Watchdog])));
    }
}

async fn give_signs(pause: Duration, sign: impl Fn()) {
    loop {
        sign();
        sleep(pause).await;
    }
}

fn tell(states: &[NotifyState<'_>]) {
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
        runtime.spawn(give_signs(PAUSE, move || _ = send.send(())));
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
