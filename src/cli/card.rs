//! `card`: writes the verified bytes of a trusted name's card.

use clresolve_core::state::TrustState;

use super::args::CardArguments;
use super::exit::ExitStatus;
use super::output::OutputSink;
use super::progress::ProgressLine;
use super::render::{self, ObjectionsToAgent};
use super::verify;
use super::verify::{verdict_exit_status, verify_progress_message};
use super::world::CommandContext;

pub(super) fn run(args: CardArguments) -> anyhow::Result<ExitStatus> {
    super::runtime::run_async_until_interrupt(write_proven_card(args))
}

async fn write_proven_card(args: CardArguments) -> anyhow::Result<ExitStatus> {
    let output = OutputSink::new(&args.out)?;
    let progress = ProgressLine::start(verify_progress_message(std::slice::from_ref(&args.name)));
    let world = CommandContext::open(&args.world).await?;
    let resolution = world.resolver.resolve(&args.name).await;
    drop(progress);
    let verdict = resolution.verdict();
    let unmet = args.expect.unmet_expectations(verdict);
    let exit = verdict_exit_status(verdict, &unmet);
    match resolution.card_bytes() {
        Some(card) if exit == ExitStatus::Trusted => output.write_all_and_finish(card)?,
        _ if verdict.state == TrustState::Trusted => verify::report_unmet_expectations(verdict, &unmet),
        _ => anstream::eprint!(
            "{}",
            render::format_verdict_walk(
                verdict,
                ObjectionsToAgent::from_unmet_expectations(&unmet),
                &render::Palette::plain()
            )
        ),
    }
    Ok(exit)
}
