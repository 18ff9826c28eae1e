//! `man`: manual pages, for packagers.

use std::path::Path;

use anyhow::bail;
use clap_mangen::Man;

use super::args::{self, ManArgs};
use super::exit::Exit;
use super::output::{Output, Unwritable};

/// Writes a page per command into the folder, or the page of the program to standard output.
pub(super) fn run(args: &ManArgs) -> anyhow::Result<Exit> {
    let Some(folder) = &args.folder else {
        Output::new(&args.out)?.write_whole(&page(args::manual())?)?;
        return Ok(Exit::Trusted);
    };
    if !folder.is_dir() {
        bail!("{}: expected a folder that exists", folder.display());
    }
    let mut command = args::manual();
    command.build();
    write_pages(&command, folder)?;
    Ok(Exit::Trusted)
}

fn write_pages(command: &clap::Command, folder: &Path) -> anyhow::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let file = folder.join(format!("{name}.1"));
    let written = std::fs::write(&file, page(command.clone())?);
    written.map_err(|error| Unwritable::new(file.display().to_string(), error))?;
    command.get_subcommands().filter(|below| !below.is_hide_set()).try_for_each(|below| write_pages(below, folder))
}

fn page(command: clap::Command) -> anyhow::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    Ok(page)
}
