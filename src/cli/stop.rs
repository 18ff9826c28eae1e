//! The end of a command that runs until it is told to stop.

/// Ends at Ctrl-C, and on Unix at SIGTERM too.
pub(super) async fn asked_to_stop() {
    asked_to_stop_times(1).await;
}

/// Ends when it was asked so often, the second time by somebody who does not want to wait.
pub(super) async fn asked_to_stop_times(times: usize) {
    #[cfg(unix)]
    if let Ok(mut terminate) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        for _ in 0..times {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
        }
        return;
    }
    for _ in 0..times {
        // Without a handler the signal ends the process, which serves as well.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
