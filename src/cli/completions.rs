//! `completions`: writes a script that completes commands, options and known values.

use std::fmt::Write as _;

use clap_complete::Shell;

use super::args::{self, CompletionsArguments};
use super::exit::ExitStatus;
use super::output::OutputSink;

pub(super) fn run(args: CompletionsArguments) -> anyhow::Result<ExitStatus> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::clap_command_with_all_options(), "clresolve", &mut script);
    if args.shell == Shell::Fish {
        script.extend(fish_argument_completions(&args::clap_command_with_all_options()).into_bytes());
    }
    OutputSink::new(&args.out)?.write_all_and_finish(&script)?;
    Ok(ExitStatus::Trusted)
}

/// The known values of positional arguments, which the generator omits for fish.
fn fish_argument_completions(command: &clap::Command) -> String {
    let mut script = String::new();
    for below in command.get_subcommands() {
        for value in below.get_positionals().flat_map(clap::Arg::get_possible_values) {
            let (name, value) = (below.get_name(), value.get_name());
            let _ =
                writeln!(script, "complete -c clresolve -n \"__fish_seen_subcommand_from {name}\" -f -a \"{value}\"");
        }
    }
    script
}
