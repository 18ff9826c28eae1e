//! `help`: prints the help of a command, or of the network options.

use anyhow::bail;
use clresolve_core::text::{UntrustedText, nearest_word};

use super::args::{self, HelpArguments};
use super::exit::ExitStatus;
use super::output;

/// The topic that is not a command.
const WORLD: &str = "world";

pub(super) fn run(args: &HelpArguments) -> anyhow::Result<ExitStatus> {
    let help = match args.topic.as_slice() {
        [topic] if topic == WORLD => args::network_help_page().render_help(),
        topic => help_of_command(topic)?,
    };
    output::print_styled_text(&help)?;
    Ok(ExitStatus::Trusted)
}

/// What `--help` prints for the command with this path.
fn help_of_command(topic: &[String]) -> anyhow::Result<clap::builder::StyledStr> {
    let mut command = args::clap_command_for_parsing();
    command.build();
    for word in topic {
        let Some(found) = command.find_subcommand(word) else {
            let known = command.get_subcommands().filter(|known| !known.is_hide_set()).map(clap::Command::get_name);
            let known = known.chain((command.get_name() == "clresolve").then_some(WORLD));
            let meant =
                nearest_word(word, known).map_or_else(String::new, |known| format!("; did you mean `{known}`?"));
            bail!("there is no help on `{}`{meant}", UntrustedText::new(word));
        };
        command = found.clone();
    }
    let line = ["clresolve"].into_iter().chain(topic.iter().map(String::as_str)).chain(["--help"]);
    match args::clap_command_for_parsing().try_get_matches_from(line) {
        Err(help) => Ok(help.render()),
        Ok(_) => Ok(command.render_help()),
    }
}
