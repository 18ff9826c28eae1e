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
    pub(super) const fn is_ready() {}
    pub(super) const fn is_stopping() {}
    pub(super) const fn is_reloading() {}
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

use args::{Command, GlobalArgs, LogFormat, Parsed};
use clap::error::ErrorKind;
use exit::Exit;
use log_queue::LastLines;
use output::Unwritable;
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
    exit::report_bugs();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    color::choose(&arguments);
    let exit = exit::guarded(|| match args::parse(arguments.clone()) {
        Ok(parsed) => dispatch(parsed),
        Err(error) if error.kind() == ErrorKind::DisplayVersion && version::is_whole_asked_for(&arguments) => {
            finish(version::write_whole())
        }
        Err(error) => explain_usage(error),
    });
    exit.into()
}

/// Prints help and version to standard output, and errors to standard error. A closed stream does not change the
/// status.
fn explain_usage(error: clap::Error) -> Exit {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand && !args::names_command(&error) {
        let _ = std::io::stderr().write_all(args::BARE.as_bytes());
        return Exit::Usage;
    }
    if error.use_stderr() {
        let _ = std::io::stderr().write_all(args::plain_message(error).as_bytes());
        return Exit::Usage;
    }
    match error.print() {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            finish(Err(Unwritable::new("standard output", error).into()))
        }
        _ => Exit::Trusted,
    }
}

fn dispatch(parsed: Parsed) -> Exit {
    let Parsed { command, global } = parsed;
    // Flushes the lines that are still in a daemon's log queue.
    let of_daemon = match &command {
        Command::Serve(args) => Some(args.log_format),
        _ => None,
    };
    let _log = start_log(global, of_daemon);
    if global.quiet {
        notice::be_quiet();
    }
    finish(run_command(command))
}

fn run_command(command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Verify(args) => verify::run(args),
        Command::Trace(args) => trace::run(args),
        Command::Records(args) => records::run(args),
        Command::Card(args) => card::run(args),
        Command::Gate(args) => gate::run(args),
        Command::Check(args) => check::run(args),
        Command::Decide(args) => decide::run(args),
        Command::Route(args) => route::run(args),
        Command::Probe(args) => probe::run(args),
        Command::Request(command) => request::run(command),
        Command::Receipt(command) => receipt::run(command),
        Command::Explain(args) => explain::run(args),
        Command::Name(args) => name::run(args),
        Command::Cat(args) => cat::run(args),
        Command::Bundle(command) => bundle::run(command),
        Command::Audit(args) => audit::run(*args),
        Command::Lint(args) => lint::run(args),
        Command::Discover(args) => discover::run(args),
        Command::Cards(command) => cards::run(command),
        Command::Plan(args) => plan::run(args),
        Command::Memory(command) => memory::run(command),
        Command::Serve(args) => serve::run(args),
        Command::Ctl(command) => ctl::run(command),
        Command::Mcp(args) => mcp::run(args),
        Command::Sandbox(args) => sandbox::run(args),
        Command::Verdict(command) => verdict::run(command),
        Command::Signature(command) => signature::run(command),
        Command::Version => version::run(),
        Command::Completions(args) => completions::run(args),
        Command::Config(command) => config::run(command),
        Command::Doctor(args) => doctor::run(args),
        Command::Man(args) => man::run(&args),
        Command::Help(args) => help::run(&args),
    }
}

/// The exit status of a command. An error is reported.
fn finish(done: anyhow::Result<Exit>) -> Exit {
    done.unwrap_or_else(|error| {
        log_queue::say(Level::ERROR, &text::inert_lines(&format!("{error:#}")));
        Exit::from(&error)
    })
}

/// Logs to standard error: warnings, more with `-v`, or what `RUST_LOG` selects. A daemon also logs resolutions and
/// refusals, through a queue, so that no response waits for a reader of the log.
fn start_log(global: GlobalArgs, of_daemon: Option<LogFormat>) -> Option<LastLines> {
    let level = match global.verbose.saturating_add(u8::from(of_daemon.is_some())) {
        _ if global.quiet => "error",
        0 => "warn",
        1 => "clresolve=info,warn",
        2 => "clresolve=debug,info",
        _ => "clresolve=trace,info",
    };
    let filter = log_filter::at_start(std::env::var(EnvFilter::DEFAULT_ENV).ok().as_deref(), level);
    let said = filter.to_string();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(output::colour(&std::io::stderr()));
    // This fails only for a second call in one process, which keeps the first log.
    let Some(format) = of_daemon else {
        let _ = log.with_writer(std::io::stderr).finish().with(log_filter::without_clients()).try_init();
        return None;
    };
    let (writer, last_lines) = log_queue::start(format);
    let log = log.with_writer(writer);
    let _ = match format {
        LogFormat::Text => {
            let log = log.with_filter_reloading();
            log_filter::keep(log.reload_handle(), said);
            log.finish().with(log_filter::without_clients()).try_init()
        }
        LogFormat::Json => {
            let log = log.json().with_current_span(false).with_span_list(false).with_filter_reloading();
            log_filter::keep(log.reload_handle(), said);
            log.finish().with(log_filter::without_clients()).try_init()
        }
    };
    Some(last_lines)
}
