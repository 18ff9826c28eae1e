//! The end of a command that runs until it is asked to stop, and what asks a daemon to read its configuration again.

/// Ends at Ctrl-C, and on Unix at SIGTERM too. They are heeded from the call on, not from the first poll.
pub(super) fn asked_to_stop() -> impl Future<Output = ()> {
    let mut asks = StopAsks::listen();
    async move { asks.next().await }
}

/// What asks this process to stop, from [`listen`](Self::listen) on.
///
/// There is one listener for all that a command does about them: two of them could each see another number, since
/// asks that come before a listener wakes are one to it.
pub(super) struct StopAsks {
    #[cfg(unix)]
    signals: std::io::Result<(tokio::signal::unix::Signal, tokio::signal::unix::Signal)>,
}

#[cfg(unix)]
impl StopAsks {
    pub(super) fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};

        let both = || Ok((signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?));
        Self { signals: both() }
    }

    /// Ends at the next ask.
    pub(super) async fn next(&mut self) {
        // Without a handler the signal ends the process, which serves as well.
        let Ok((interrupt, terminate)) = &mut self.signals else { return std::future::pending().await };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}

/// What asks this process to read its configuration again (SIGHUP), from [`listen`](Self::listen) on.
pub(super) struct ReloadAsks {
    #[cfg(unix)]
    signal: std::io::Result<tokio::signal::unix::Signal>,
}

impl ReloadAsks {
    pub(super) fn listen() -> Self {
        Self {
            #[cfg(unix)]
            signal: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()),
        }
    }

    /// Ends at the next ask.
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
impl StopAsks {
    pub(super) fn listen() -> Self {
        Self {}
    }

    /// Ends at the next ask.
    pub(super) async fn next(&mut self) {
        // Without a handler the signal ends the process, which serves as well.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
