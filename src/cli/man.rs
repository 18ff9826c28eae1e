//! `man`: manual pages, for packagers.

mod configuration;
mod keys;
mod sections;

use std::path::Path;

use anyhow::bail;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::args::{self, ManPageArguments};
use super::exit::ExitStatus;
use super::output::{OutputSink, OutputWriteError};

/// The name of the program. Its page also lists the environment.
const PROGRAM: &str = "clresolve";

/// The texts in the footer and the header of each page.
const SOURCE: &str = concat!("clresolve ", env!("CARGO_PKG_VERSION"));
const MANUAL: &str = "clresolve manual";

const CONFIGURATION: &str = "clresolve.toml.5";

/// Writes all pages into the folder, or the page of the program to standard output.
pub(super) fn run(args: &ManPageArguments) -> anyhow::Result<ExitStatus> {
    let mut command = args::clap_command_for_man_pages();
    command.build();
    let Some(folder) = &args.folder else {
        OutputSink::new(&args.out)?.write_all_and_finish(render_command_page(&command)?.as_bytes())?;
        return Ok(ExitStatus::Trusted);
    };
    if !folder.is_dir() {
        bail!("{}: expected a folder that exists", folder.display());
    }
    write_man_pages(&command, folder)?;
    write_man_page(&folder.join(CONFIGURATION), &configuration::render_config_page(SOURCE, MANUAL))?;
    Ok(ExitStatus::Trusted)
}

/// Writes a page for the command, and one for each command below it.
fn write_man_pages(command: &clap::Command, folder: &Path) -> anyhow::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    write_man_page(&folder.join(format!("{name}.1")), &render_command_page(command)?)?;
    command.get_subcommands().filter(|below| !below.is_hide_set()).try_for_each(|below| write_man_pages(below, folder))
}

fn write_man_page(file: &Path, page: &str) -> Result<(), OutputWriteError> {
    std::fs::write(file, page).map_err(|error| OutputWriteError::new(file.display().to_string(), error))
}

/// The page of a command. The text after its help continues the description and contains further sections.
fn render_command_page(command: &clap::Command) -> anyhow::Result<String> {
    // Without its quotes, an empty date would be replaced by the next argument.
    let man = Man::new(command.clone()).date("\"\"").source(SOURCE).manual(MANUAL);
    let is_program = command.get_name() == PROGRAM;
    let mut text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    if is_program {
        text = format!("{text}\n\n{}", configuration::environment_section());
    }
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    sections::render_description_paragraphs(&text).to_writer(&mut page)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut page)?;
    }
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    sections::render_headed_sections(&text).to_writer(&mut page)?;
    see_also_section(is_program).to_writer(&mut page)?;
    if is_program {
        man.render_version_section(&mut page)?;
    }
    // Each part begins with the same definitions.
    let definitions = Roff::new().render();
    let page = String::from_utf8(page)?.replace(&definitions, "");
    Ok(definitions + &page)
}

fn see_also_section(is_program: bool) -> Roff {
    let mut page = Roff::new();
    page.control("SH", ["SEE ALSO"]);
    if is_program {
        page.text([bold("clresolve.toml"), roman("(5)")]);
    } else {
        page.text([bold(PROGRAM), roman("(1), "), bold("clresolve.toml"), roman("(5)")]);
    }
    page
}
