//! The command line: results go to standard output, messages to standard error, and the outcome into the exit status.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

mod aevum;
mod args;
mod audit;
mod bundle;
mod card;
mod cards;
mod cat;
mod check;
mod color;
mod completions;
mod config;
mod config_file;
mod convert;
mod ctl;
mod decide;
mod demo;
mod discover;
mod doctor;
mod exit;
mod expect;
mod explain;
mod findings;
mod gate;
mod generate;
mod help;
mod hint;
mod input;
mod key;
mod layout;
mod ledger;
mod lint;
mod log_filter;
mod log_queue;
mod man;
mod mcp;
mod memory;
mod name;
mod names;
mod new_card;
mod new_file;
mod notice;
mod operator;
mod output;
mod plan;
mod probe;
mod progress;
mod project;
mod publish;
mod receipt;
mod records;
mod render;
mod request;
mod route;
mod runtime;
mod sandbox;
mod serve;
#[cfg(unix)]
mod service_manager;
/// Without systemd, there is no service manager to notify.
#[cfg(not(unix))]
mod service_manager {
    pub(super) const fn notify_ready() {}
    pub(super) const fn notify_stopping() {}
    pub(super) const fn notify_reloading() {}
    pub(super) const fn start_watchdog() {}
}
mod signature;
mod stop;
mod trace;
mod uri;
mod verdict;
mod verify;
mod version;
mod world;

use args::{CliCommand, GlobalArguments, LogFormat, ParsedCommandLine};
use clap::error::ErrorKind;
use exit::ExitStatus;
use log_queue::LogFlushGuard;
use output::OutputWriteError;
use tracing::Level;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use clresolve_core::text;

/// Runs one command line, whose first argument is the program's own name. Returns the exit status:
///
/// 0 trusted, 1 untrusted, 2 usage or configuration error, 3 indeterminate, 4 expectation not met, 70 bug, 74 output
/// cannot be written, 130 interrupted.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    exit::install_panic_hook();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    color::set_color_choice(&arguments);
    let exit = exit::run_catching_panics(|| match args::parse_command_line(arguments.clone()) {
        Ok(parsed) => run_parsed_command(parsed),
        Err(error)
            if error.kind() == ErrorKind::DisplayVersion && version::is_verbose_version_requested(&arguments) =>
        {
            exit_status_of_command_result(version::print_verbose_version())
        }
        Err(error) => report_clap_error(error),
    });
    exit.into()
}

/// Prints help and version to standard output, and errors to standard error. A closed stream does not change the
/// status.
fn report_clap_error(error: clap::Error) -> ExitStatus {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand && !args::is_subcommand_help(&error) {
        let _ = std::io::stderr().write_all(args::BARE.as_bytes());
        return ExitStatus::Usage;
    }
    if error.use_stderr() {
        let _ = std::io::stderr().write_all(args::redacted_clap_error_message(error).as_bytes());
        return ExitStatus::Usage;
    }
    match error.print() {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            exit_status_of_command_result(Err(OutputWriteError::new("standard output", error).into()))
        }
        _ => ExitStatus::Trusted,
    }
}

fn run_parsed_command(parsed: ParsedCommandLine) -> ExitStatus {
    let ParsedCommandLine { command, global } = parsed;
    // Flushes the lines that are still in a daemon's log queue.
    let of_daemon = match &command {
        CliCommand::Serve(args) => Some(args.log_format),
        _ => None,
    };
    let _log = start_logging(global, of_daemon);
    if global.quiet {
        notice::silence_notices();
    }
    exit_status_of_command_result(run_command(command))
}

fn run_command(command: CliCommand) -> anyhow::Result<ExitStatus> {
    match command {
        CliCommand::Verify(args) => verify::run(args),
        CliCommand::Trace(args) => trace::run(args),
        CliCommand::Records(args) => records::run(args),
        CliCommand::Card(args) => card::run(args),
        CliCommand::Gate(args) => gate::run(args),
        CliCommand::Check(args) => check::run(args),
        CliCommand::Decide(args) => decide::run(args),
        CliCommand::Route(args) => route::run(args),
        CliCommand::Probe(args) => probe::run(args),
        CliCommand::Request(command) => request::run(command),
        CliCommand::Receipt(command) => receipt::run(command),
        CliCommand::Explain(args) => explain::run(args),
        CliCommand::Name(args) => name::run(args),
        CliCommand::Cat(args) => cat::run(args),
        CliCommand::Bundle(command) => bundle::run(command),
        CliCommand::Audit(args) => audit::run(*args),
        CliCommand::Lint(args) => lint::run(args),
        CliCommand::Discover(args) => discover::run(args),
        CliCommand::Cards(command) => cards::run(command),
        CliCommand::Plan(args) => plan::run(args),
        CliCommand::Memory(command) => memory::run(command),
        CliCommand::Serve(args) => serve::run(args),
        CliCommand::Ctl(command) => ctl::run(command),
        CliCommand::Mcp(args) => mcp::run(args),
        CliCommand::Sandbox(args) => sandbox::run(args),
        CliCommand::Verdict(command) => verdict::run(command),
        CliCommand::Signature(command) => signature::run(command),
        CliCommand::Version => version::print_version(),
        CliCommand::Completions(args) => completions::run(args),
        CliCommand::Config(command) => config::run(command),
        CliCommand::Doctor(args) => doctor::run(args),
        CliCommand::Man(args) => man::run(&args),
        CliCommand::Help(args) => help::run(&args),
    }
}

/// The exit status of a command. An error is reported.
fn exit_status_of_command_result(done: anyhow::Result<ExitStatus>) -> ExitStatus {
    done.unwrap_or_else(|error| {
        log_queue::write_log_line(Level::ERROR, &text::escape_unsafe_lines(&format!("{error:#}")));
        ExitStatus::from(&error)
    })
}

/// Logs to standard error: warnings, more with `-v`, or what `RUST_LOG` selects. A daemon also logs resolutions and
/// refusals, through a queue, so that no response waits for a reader of the log.
fn start_logging(global: GlobalArguments, of_daemon: Option<LogFormat>) -> Option<LogFlushGuard> {
    let level = match global.verbose.saturating_add(u8::from(of_daemon.is_some())) {
        _ if global.quiet => "error",
        0 => "warn",
        1 => "clresolve=info,warn",
        2 => "clresolve=debug,info",
        _ => "clresolve=trace,info",
    };
    let filter = log_filter::initial_log_filter(std::env::var(EnvFilter::DEFAULT_ENV).ok().as_deref(), level);
    let said = filter.to_string();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(output::supports_colour(&std::io::stderr()));
    // This fails only for a second call in one process, which keeps the first log.
    let Some(format) = of_daemon else {
        let _ =
            log.with_writer(std::io::stderr).finish().with(log_filter::client_input_suppressing_filter()).try_init();
        return None;
    };
    let (writer, last_lines) = log_queue::start_log_queue(format);
    let log = log.with_writer(writer);
    let _ = match format {
        LogFormat::Text => {
            let log = log.with_filter_reloading();
            log_filter::store_log_filter_handle(log.reload_handle(), said);
            log.finish().with(log_filter::client_input_suppressing_filter()).try_init()
        }
        LogFormat::Json => {
            let log = log.json().with_current_span(false).with_span_list(false).with_filter_reloading();
            log_filter::store_log_filter_handle(log.reload_handle(), said);
            log.finish().with(log_filter::client_input_suppressing_filter()).try_init()
        }
    };
    Some(last_lines)
}
