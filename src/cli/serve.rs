//! `serve`: runs the daemon.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clresolve_resolver::config::ListenAt;
use clresolve_resolver::resolve::Resolver;
use clresolve_server::http::{self, Server};
use clresolve_verdict::verdict::Depth;
use tokio::sync::oneshot;
use tracing::Level;

use super::args::ServeArgs;
use super::exit::Exit;
use super::operator::{self, Program, log_settings};
use super::stop::{ReloadAsks, StopAsks};
use super::world::{self, Reader};
use super::{config, log_queue, service_manager};

pub(super) fn run(args: ServeArgs) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Runtime::new().context("the runtime does not start")?;
    let done = runtime.block_on(serve(args));
    // Resolutions for disconnected clients may still be in progress. Their results are not needed.
    runtime.shutdown_background();
    done
}

async fn serve(args: ServeArgs) -> anyhow::Result<Exit> {
    // First, because without a handler the signal would end the process.
    let reloads = ReloadAsks::listen();
    let (file, digest) = (operator::file(&args), operator::digest(&args));
    let (mut config, sandbox) = world::settings(&args.world, Reader::Payers, Depth::default()).await?;
    config.http.listen = args.listen.clone().unwrap_or(config.http.listen);
    if args.check_config {
        http::check(&config)?;
        Resolver::new(&config).await?;
        config::note_good(&config, "the configuration is good");
        return Ok(Exit::Trusted);
    }
    // Otherwise the first non-ASCII name would block a worker thread.
    clresolve_core::name::prepare();
    let mut server = Server::bind(&config).await?;
    let mut asks = StopAsks::listen();
    log_queue::say(Level::INFO, &format!("listening on {}", shown(server.address())));
    if let Some(address) = server.gate_address() {
        log_queue::say(Level::INFO, &format!("the gate listens on {}", shown(address)));
    }
    let program = Arc::new(Program::new(args, server.reloader(), digest));
    #[cfg(unix)]
    if let Some(path) = server.administer(Arc::clone(&program) as Arc<dyn clresolve_server::http::Operator>).await? {
        log_queue::say(Level::INFO, &format!("the admin socket is {path}"));
    }
    log_queue::say(Level::INFO, &read_from(file));
    log_settings(&config, "started");
    service_manager::is_ready();
    service_manager::start_watchdog();
    let sandbox_ends = async {
        match sandbox {
            Some(sandbox) => sandbox.stopped().await,
            None => std::future::pending().await,
        }
    };
    let (ask, asked) = oneshot::channel();
    let asked_twice = async {
        asks.next().await;
        // This fails if the server has already ended. Signalled first, because the gate must close at once.
        let _ = ask.send(());
        service_manager::is_stopping();
        asks.next().await;
    };
    let reloading = program.reload_when_asked(reloads);
    tokio::select! {
        () = server.run(async { _ = asked.await }) => Ok(Exit::Trusted),
        () = sandbox_ends => Ok(Exit::Trusted),
        () = reloading => Ok(Exit::Trusted),
        () = asked_twice => {
            log_queue::say(Level::WARN, "asked twice to stop; aborting the requests in progress");
            Ok(Exit::Interrupted)
        }
    }
}

/// The log message about the configuration file.
fn read_from(file: Option<PathBuf>) -> String {
    match file {
        Some(path) => format!("the configuration file is {}", path.display()),
        None => "no configuration file is read".to_owned(),
    }
}

/// The address of a listener, as clients write it.
fn shown(listener: &ListenAt) -> String {
    match listener {
        ListenAt::Tcp(address) => format!("http://{address}"),
        ListenAt::Unix(_) => listener.to_string(),
    }
}
