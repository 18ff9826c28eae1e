//! Signals that stop a command, or reload a daemon's configuration.

/// Completes at Ctrl-C, and on Unix also at SIGTERM. Signals are handled from the call on, not from the first poll.
pub(super) fn wait_for_stop_signal() -> impl Future<Output = ()> {
    let mut asks = StopSignals::listen_for_signals();
    async move { asks.next().await }
}

/// Requests to stop this process, from [`listen_for_signals`](Self::listen_for_signals) on.
///
/// A command must use a single listener: signals that arrive before a listener wakes are merged, so two listeners could
/// count different numbers.
pub(super) struct StopSignals {
    #[cfg(unix)]
    signals: std::io::Result<(tokio::signal::unix::Signal, tokio::signal::unix::Signal)>,
}

#[cfg(unix)]
impl StopSignals {
    pub(super) fn listen_for_signals() -> Self {
        use tokio::signal::unix::{SignalKind, signal};

        let both = || Ok((signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?));
        Self { signals: both() }
    }

    pub(super) async fn next(&mut self) {
        // Without a handler, the signal ends the process, which is acceptable.
        let Ok((interrupt, terminate)) = &mut self.signals else { return std::future::pending().await };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}

/// Requests to reload the configuration (SIGHUP), from [`listen_for_signals`](Self::listen_for_signals) on.
pub(super) struct ReloadSignals {
    #[cfg(unix)]
    signal: std::io::Result<tokio::signal::unix::Signal>,
}

impl ReloadSignals {
    pub(super) fn listen_for_signals() -> Self {
        Self {
            #[cfg(unix)]
            signal: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()),
        }
    }

    pub(super) async fn next(&mut self) {
        #[cfg(unix)]
        if let Ok(signal) = &mut self.signal
            && signal.recv().await.is_some()
        {
            return;
        }
        std::future::pending().await
    }
}

#[cfg(not(unix))]
impl StopSignals {
    pub(super) fn listen_for_signals() -> Self {
        Self {}
    }

    pub(super) async fn next(&mut self) {
        // Without a handler, the signal ends the process, which is acceptable.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
