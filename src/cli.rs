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
mod cat;
mod completions;
mod convert;
mod discover;
mod exit;
mod expect;
mod explain;
mod gate;
mod generate;
mod hint;
mod key;
mod lint;
mod memory;
mod name;
mod output;
mod plan;
mod progress;
mod project;
mod records;
mod render;
mod sandbox;
mod serve;
mod signature;
mod stop;
mod trace;
mod verdict;
mod verify;
mod world;

use args::Command;
use exit::Exit;

/// Runs one command line, the program's own name first, and gives the code to end with.
///
/// 0 trusted, 1 untrusted, 2 usage or configuration, 3 indeterminate, 4 an expectation unmet, 70 a bug, 130 interrupted.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    exit::report_bugs();
    let exit = exit::guarded(|| match args::parse(arguments.into_iter().collect()) {
        Ok(cli) => dispatch(cli.into_command()),
        Err(error) => explain_usage(error),
    });
    exit.into()
}

/// Prints help and version to stdout, anything wrong to stderr. A closed stream does not change the code.
fn explain_usage(error: clap::Error) -> Exit {
    if !error.use_stderr() {
        let _ = error.print();
        return Exit::Trusted;
    }
    let _ = std::io::stderr().write_all(args::plain_message(error).as_bytes());
    Exit::Usage
}

fn dispatch(command: Command) -> Exit {
    start_log(command.verbosity());
    let done = match command {
        Command::Verify(args) => verify::run(args),
        Command::Trace(args) => trace::run(args),
        Command::Records(args) => records::run(args),
        Command::Card(args) => card::run(args),
        Command::Gate(args) => gate::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Name(args) => name::run(args),
        Command::Cat(args) => cat::run(args),
        Command::Bundle(args) => bundle::run(args.command),
        Command::Audit(args) => audit::run(args),
        Command::Lint(args) => lint::run(args),
        Command::Discover(args) => discover::run(args),
        Command::Convert(args) => convert::run(args),
        Command::Project(args) => project::run(args),
        Command::Plan(args) => plan::run(args),
        Command::Memory(args) => memory::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Sandbox(args) => sandbox::run(args),
        Command::Key(args) => key::run(args),
        Command::Verdict(args) => verdict::run(args),
        Command::Sign(args) => signature::sign(args),
        Command::Signature(args) => signature::run(args),
        Command::Generate(args) => generate::run(args),
        Command::Aevum(args) => aevum::run(args.command),
        Command::Completions(args) => completions::run(args),
    };
    done.unwrap_or_else(|error| {
        anstream::eprintln!("clresolve: {error:#}");
        Exit::Usage
    })
}

/// Logs go to stderr: warnings, more with `-v`, or what `RUST_LOG` says.
fn start_log(verbosity: u8) {
    let level = match verbosity {
        0 => "warn",
        1 => "clresolve=info,warn",
        2 => "clresolve=debug,info",
        _ => "clresolve=trace,info",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| level.into());
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Only a second call in one process fails, and then the first log stays.
    let _ = log.with_ansi(output::colour(&std::io::stderr())).try_init();
}

/// Runs `work` to its end or to Ctrl-C.
fn run_async(work: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
    run_to_end(async {
        tokio::select! {
            done = work => done,
            Ok(()) = tokio::signal::ctrl_c() => Ok(Exit::Interrupted),
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
