//! The command line: arguments in, results on stdout, all else on stderr, an exit code out.

use std::ffi::OsString;
use std::future::Future;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;

mod aevum;
mod args;
mod audit;
mod bundle;
mod card;
mod cards;
mod cat;
mod color;
mod completions;
mod config;
mod convert;
mod decide;
mod discover;
mod doctor;
mod exit;
mod expect;
mod explain;
mod gate;
mod generate;
mod help;
mod hint;
mod key;
mod layout;
mod ledger;
mod lint;
mod log_queue;
mod man;
mod memory;
mod name;
mod names;
mod notice;
mod output;
mod own;
mod plan;
mod probe;
mod progress;
mod project;
mod receipt;
mod records;
mod render;
mod route;
mod sandbox;
mod serve;
mod signature;
mod stop;
mod trace;
mod verdict;
mod verify;
mod version;
mod world;

use args::{Command, GlobalArgs, Parsed};
use clap::error::ErrorKind;
use exit::Exit;
use log_queue::LastLines;
use output::Unwritable;

/// Runs one command line, the program's own name first, and gives the code to end with.
///
/// 0 trusted, 1 untrusted, 2 usage or configuration, 3 indeterminate, 4 an expectation unmet, 70 a bug, 74 output that
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

/// Prints help and version to standard output, anything wrong to standard error. A closed stream does not change the code.
fn explain_usage(error: clap::Error) -> Exit {
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
    let Parsed { command, global, moved } = parsed;
    // What a daemon's log still holds at the end is written then.
    let _log = start_log(global, matches!(command, Command::Serve(_)));
    if global.quiet {
        notice::be_quiet();
    }
    if let Some(moved) = moved {
        notice::note(format_args!(
            "clresolve: `{}` is now `{}`; the old spelling goes with the next release",
            moved.old, moved.new
        ));
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
        Command::Decide(args) => decide::run(args),
        Command::Route(args) => route::run(args),
        Command::Probe(args) => probe::run(args),
        Command::Receipt(args) => receipt::run(args.command),
        Command::Explain(args) => explain::run(args),
        Command::Name(args) => name::run(args),
        Command::Cat(args) => cat::run(args),
        Command::Bundle(args) => bundle::run(args.command),
        Command::Audit(args) => audit::run(args),
        Command::Lint(args) => lint::run(args),
        Command::Discover(args) => discover::run(args),
        Command::Cards(args) => cards::run(args.command),
        Command::Plan(args) => plan::run(args),
        Command::Memory(args) => memory::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Sandbox(args) => sandbox::run(args),
        Command::Verdict(args) => verdict::run(args),
        Command::Signature(args) => signature::run(args.command),
        Command::Completions(args) => completions::run(args),
        Command::Config(args) => config::run(args.command),
        Command::Doctor(args) => doctor::run(args),
        Command::Man(args) => man::run(&args),
        Command::Help(args) => help::run(&args),
    }
}

/// The code of what was done; an error is reported.
fn finish(done: anyhow::Result<Exit>) -> Exit {
    done.unwrap_or_else(|error| {
        anstream::eprintln!("clresolve: {error:#}");
        Exit::from(&error)
    })
}

/// Logs go to standard error: warnings, more with `-v`, or what `RUST_LOG` says. A daemon logs runs and refusals too, by
/// way of a queue, so that no answer waits for a reader of the log.
fn start_log(global: GlobalArgs, is_daemon: bool) -> Option<LastLines> {
    let level = match global.verbose.saturating_add(u8::from(is_daemon)) {
        _ if global.quiet => "error",
        0 => "warn",
        1 => "clresolve=info,warn",
        2 => "clresolve=debug,info",
        _ => "clresolve=trace,info",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| level.into());
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(output::colour(&std::io::stderr()));
    // Only a second call in one process fails, and then the first log stays.
    if is_daemon {
        let (writer, last_lines) = log_queue::start();
        let _ = log.with_writer(writer).try_init();
        return Some(last_lines);
    }
    let _ = log.with_writer(std::io::stderr).try_init();
    None
}

/// Runs `work` to its end or to Ctrl-C.
fn run_async(work: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
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
fn run_to_end(work: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("the runtime does not start")?;
    let done = runtime.block_on(work);
    // A look-up in the system's resolver cannot be called back; do not wait for it.
    runtime.shutdown_background();
    done
}
