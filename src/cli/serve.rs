//! `serve`: the daemon.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::args::ServeArgs;
use super::exit::Exit;
use super::stop::{ReloadAsks, StopAsks};
use super::world::{self, Reader};
use super::{log_queue, notice};
use crate::config::Config;
use crate::http::{self, Reloader, Server};
use crate::resolve::Resolver;
use crate::verdict::Depth;

/// Time between the two readings of a file that is read again: one that is being written differs.
const SETTLED: Duration = Duration::from_millis(100);

pub(super) fn run(args: ServeArgs) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Runtime::new().context("the runtime does not start")?;
    let done = runtime.block_on(serve(args));
    // Runs for clients that have gone may still be under way; their answers are not needed.
    runtime.shutdown_background();
    done
}

async fn serve(args: ServeArgs) -> anyhow::Result<Exit> {
    // Before all else: without a handler the signal would end the process.
    let reloads = ReloadAsks::listen();
    let (mut config, sandbox) = world::settings(&args.world, Reader::Programs, Depth::default()).await?;
    config.http.listen = args.listen.unwrap_or(config.http.listen);
    if args.check_config {
        http::check(&config)?;
        Resolver::new(&config).await?;
        notice::note(format_args!("clresolve: the configuration is good"));
        return Ok(Exit::Trusted);
    }
    let server = Server::bind(&config).await?;
    let mut asks = StopAsks::listen();
    log_queue::say(&format!("clresolve: listening on http://{}", server.address()));
    if let Some(address) = server.gate_address() {
        log_queue::say(&format!("clresolve: the gate listens on http://{address}"));
    }
    let sandbox_ends = async {
        match sandbox {
            Some(sandbox) => sandbox.stopped().await,
            None => std::future::pending().await,
        }
    };
    let (ask, asked) = oneshot::channel();
    let asked_twice = async {
        asks.next().await;
        // A server that has ended by itself need not be asked.
        let _ = ask.send(());
        asks.next().await;
    };
    let reloading = reload_when_asked(&args, server.reloader(), reloads);
    tokio::select! {
        () = server.run(async { _ = asked.await }) => Ok(Exit::Trusted),
        () = sandbox_ends => Ok(Exit::Trusted),
        () = reloading => Ok(Exit::Trusted),
        () = asked_twice => {
            log_queue::say("clresolve: asked twice to stop; requests in progress are cut");
            Ok(Exit::Interrupted)
        }
    }
}

/// Reads the configuration again at each SIGHUP. Never ends.
async fn reload_when_asked(args: &ServeArgs, mut reloader: Reloader, mut asks: ReloadAsks) {
    loop {
        asks.next().await;
        match reload(args, &mut reloader).await {
            Ok(()) => tracing::info!("the configuration was read again and is in force"),
            Err(error) => tracing::error!("the configuration stays as it was: {error:#}"),
        }
    }
}

async fn reload(args: &ServeArgs, reloader: &mut Reloader) -> anyhow::Result<()> {
    let config = settled(args).await?;
    for keys in reloader.reload(&config).await? {
        tracing::warn!("{keys}: a change takes a restart; the value from the start stays in force");
    }
    Ok(())
}

/// The configuration, from a file that is whole: it ends with a line end, and no one is writing it.
async fn settled(args: &ServeArgs) -> anyhow::Result<Config> {
    let Some(path) = file(args) else {
        bail!("there is no configuration file to read again: start the daemon with --config FILE")
    };
    let read = || std::fs::read(&path).with_context(|| path.display().to_string());
    let before = read()?;
    ensure!(before.ends_with(b"\n"), "{}: the file is empty, or its last line has no end", path.display());
    let mut config = world::configuration(&args.world, Reader::Programs, world::unless_told(Depth::default()))?;
    config.http.listen = args.listen.unwrap_or(config.http.listen);
    sleep(SETTLED).await;
    ensure!(read()? == before, "{}: the file is being written", path.display());
    Ok(config)
}

fn file(args: &ServeArgs) -> Option<PathBuf> {
    if args.world.sandbox { None } else { world::named_file(&args.world) }
}
