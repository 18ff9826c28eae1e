//! Runs the future of a command.

use std::future::Future;

use anyhow::Context as _;

use super::exit::ExitStatus;

/// Runs `work` until it completes or Ctrl-C is pressed.
pub(super) fn run_async_until_interrupt(
    work: impl Future<Output = anyhow::Result<ExitStatus>>,
) -> anyhow::Result<ExitStatus> {
    run_async_to_completion(async {
        tokio::select! {
            // Polled first, so that Ctrl-C is handled before the work draws a progress line.
            biased;
            Ok(()) = tokio::signal::ctrl_c() => Ok(ExitStatus::Interrupted),
            done = work => done,
        }
    })
}

/// Runs `work`, which handles Ctrl-C itself.
pub(super) fn run_async_to_completion(
    work: impl Future<Output = anyhow::Result<ExitStatus>>,
) -> anyhow::Result<ExitStatus> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("the runtime does not start")?;
    let done = runtime.block_on(work);
    // A lookup by the system's resolver cannot be cancelled, so do not wait for it.
    runtime.shutdown_background();
    done
}
