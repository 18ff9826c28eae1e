//! The end of a command that runs until it is told to stop.

use std::future::Future;

/// Ends at Ctrl-C, and on Unix at SIGTERM too. They are heeded from the call on, not from the first poll.
pub(super) fn asked_to_stop() -> impl Future<Output = ()> {
    asked_to_stop_times(1)
}

/// Ends when it was asked so often, the second time by somebody who does not want to wait.
#[cfg(unix)]
pub(super) fn asked_to_stop_times(times: usize) -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};

    let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    async move {
        // Without a handler the signal ends the process, which serves as well.
        let (Ok(mut interrupt), Ok(mut terminate)) = signals else { return std::future::pending().await };
        for _ in 0..times {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        }
    }
}

/// Ends when it was asked so often, the second time by somebody who does not want to wait.
#[cfg(not(unix))]
pub(super) async fn asked_to_stop_times(times: usize) {
    for _ in 0..times {
        // Without a handler the signal ends the process, which serves as well.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
