//! `card`: writes the verified bytes of a trusted name's card.

use clresolve_core::state::TrustState;

use super::args::CardArguments;
use super::exit::ExitStatus;
use super::output::OutputSink;
use super::progress::ProgressLine;
use super::render::{self, AgentObjections};
use super::verify;
use super::verify::{exit_status, progress_message};
use super::world::CommandContext;

pub(super) fn run(args: CardArguments) -> anyhow::Result<ExitStatus> {
    super::runtime::run_async(write_card(args))
}

async fn write_card(args: CardArguments) -> anyhow::Result<ExitStatus> {
    let output = OutputSink::new(&args.out)?;
    let progress = ProgressLine::start(progress_message(std::slice::from_ref(&args.name)));
    let world = CommandContext::open(&args.world).await?;
    let resolution = world.resolver.resolve(&args.name).await;
    drop(progress);
    let verdict = resolution.verdict();
    let unmet = args.expect.unmet_expectations(verdict);
    let exit = exit_status(verdict, &unmet);
    match resolution.card() {
        Some(card) if exit == ExitStatus::Trusted => output.write_whole(card)?,
        _ if verdict.state == TrustState::Trusted => verify::report_unmet(verdict, &unmet),
        _ => anstream::eprint!(
            "{}",
            render::format_walk(verdict, AgentObjections::from_unmet(&unmet), &render::Palette::plain())
        ),
    }
    Ok(exit)
}
