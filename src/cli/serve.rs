//! `serve`: runs the daemon.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clresolve_resolver::config::ListenAddress;
use clresolve_resolver::resolve::Resolver;
use clresolve_server::http::{self, HttpDaemon};
use clresolve_verdict::verdict::ResolutionDepth;
use tokio::sync::oneshot;
use tracing::Level;

use super::args::ServeArguments;
use super::exit::ExitStatus;
use super::operator::{self, ServeDaemonOperator, log_effective_settings};
use super::stop::{ReloadSignals, StopSignals};
use super::world::{self, CommandPaymentAuthority};
use super::{config, log_queue, service_manager};

pub(super) fn run(args: ServeArguments) -> anyhow::Result<ExitStatus> {
    let runtime = tokio::runtime::Runtime::new().context("the runtime does not start")?;
    let done = runtime.block_on(serve_daemon(args));
    // Resolutions for disconnected clients may still be in progress. Their results are not needed.
    runtime.shutdown_background();
    done
}

async fn serve_daemon(args: ServeArguments) -> anyhow::Result<ExitStatus> {
    // First, because without a handler the signal would end the process.
    let reloads = ReloadSignals::listen_for_signals();
    let (file, digest) = (operator::config_file_path(&args), operator::config_file_digest(&args));
    let (mut config, sandbox) =
        world::read_config_with_sandbox(&args.world, CommandPaymentAuthority::Payers, ResolutionDepth::default())
            .await?;
    config.http.listen = args.listen.clone().unwrap_or(config.http.listen);
    if args.check_config {
        http::check_serving_config(&config)?;
        Resolver::new(&config).await?;
        config::report_valid_config(&config, "the configuration is good");
        return Ok(ExitStatus::Trusted);
    }
    // Otherwise the first non-ASCII name would block a worker thread.
    clresolve_core::name::load_tables();
    let mut server = HttpDaemon::bind(&config).await?;
    let mut asks = StopSignals::listen_for_signals();
    log_queue::write_log_line(Level::INFO, &format!("listening on {}", listener_address(server.address())));
    if let Some(address) = server.gate_address() {
        log_queue::write_log_line(Level::INFO, &format!("the gate listens on {}", listener_address(address)));
    }
    let program = Arc::new(ServeDaemonOperator::new(args, server.reloader(), digest));
    #[cfg(unix)]
    if let Some(path) =
        server.bind_admin_socket(Arc::clone(&program) as Arc<dyn clresolve_server::http::DaemonOperator>).await?
    {
        log_queue::write_log_line(Level::INFO, &format!("the admin socket is {path}"));
    }
    log_queue::write_log_line(Level::INFO, &config_source_message(file));
    log_effective_settings(&config, "started");
    service_manager::notify_ready();
    service_manager::start_watchdog();
    let sandbox_ends = async {
        match sandbox {
            Some(sandbox) => sandbox.run_until_dropped().await,
            None => std::future::pending().await,
        }
    };
    let (ask, asked) = oneshot::channel();
    let asked_twice = async {
        asks.next().await;
        // This fails if the server has already ended. Signalled first, because the gate must close at once.
        let _ = ask.send(());
        service_manager::notify_stopping();
        asks.next().await;
    };
    let reloading = program.reload_on_signals(reloads);
    tokio::select! {
        () = server.run(async { _ = asked.await }) => Ok(ExitStatus::Trusted),
        () = sandbox_ends => Ok(ExitStatus::Trusted),
        () = reloading => Ok(ExitStatus::Trusted),
        () = asked_twice => {
            log_queue::write_log_line(Level::WARN, "asked twice to stop; aborting the requests in progress");
            Ok(ExitStatus::Interrupted)
        }
    }
}

/// The log message about the configuration file.
fn config_source_message(file: Option<PathBuf>) -> String {
    match file {
        Some(path) => format!("the configuration file is {}", path.display()),
        None => "no configuration file is read".to_owned(),
    }
}

/// The address of a listener, as clients write it.
fn listener_address(listener: &ListenAddress) -> String {
    match listener {
        ListenAddress::Tcp(address) => format!("http://{address}"),
        ListenAddress::Unix(_) => listener.to_string(),
    }
}
