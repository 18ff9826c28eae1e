//! Runs the work of a command to its end.

use std::future::Future;

use anyhow::Context as _;

use super::exit::Exit;

/// Runs `work` to its end or to Ctrl-C.
pub(super) fn run_async(work: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
    run_to_end(async {
        tokio::select! {
            // First, so that Ctrl-C is heeded before the work draws a progress line that must be taken away.
            biased;
            Ok(()) = tokio::signal::ctrl_c() => Ok(Exit::Interrupted),
            done = work => done,
        }
    })
}

/// Runs `work`, which looks after Ctrl-C itself, to its end.
pub(super) fn run_to_end(work: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("the runtime does not start")?;
    let done = runtime.block_on(work);
    // A look-up in the system's resolver cannot be called back; do not wait for it.
    runtime.shutdown_background();
    done
}
