//! `cards`: creates cards, and converts cards and other documents between systems.

use super::args::CardsCommand;
use super::exit::ExitStatus;
use super::{aevum, convert, generate, new_card, project};

pub(super) fn run(command: CardsCommand) -> anyhow::Result<ExitStatus> {
    match command {
        CardsCommand::New(args) => new_card::run(args),
        CardsCommand::Convert(args) => convert::run(args),
        CardsCommand::Generate(args) => generate::run(args),
        CardsCommand::Project(args) => project::run(*args),
        CardsCommand::Aevum(command) => aevum::run(command),
    }
}
