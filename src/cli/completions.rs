//! `completions`: a script that completes commands and flags.

use super::args::{self, CompletionsArgs};
use super::exit::Exit;
use super::output::Output;

pub(super) fn run(args: CompletionsArgs) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "clresolve", &mut script);
    Output::new(args.out)?.write(&script)?;
    Ok(Exit::Trusted)
}
