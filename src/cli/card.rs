//! `card`: writes the verified bytes of a trusted name's card.

use clresolve_core::state::State;

use super::args::CardArgs;
use super::exit::Exit;
use super::output::Output;
use super::progress::Progress;
use super::render::{self, Objections};
use super::verify;
use super::verify::{exit_of, waiting_for};
use super::world::World;

pub(super) fn run(args: CardArgs) -> anyhow::Result<Exit> {
    super::runtime::run_async(write_card(args))
}

async fn write_card(args: CardArgs) -> anyhow::Result<Exit> {
    let output = Output::new(&args.out)?;
    let progress = Progress::start(waiting_for(std::slice::from_ref(&args.name)));
    let world = World::open(&args.world).await?;
    let resolution = world.resolver.resolve(&args.name).await;
    drop(progress);
    let verdict = resolution.verdict();
    let unmet = args.expect.unmet(verdict);
    let exit = exit_of(verdict, &unmet);
    match resolution.card() {
        Some(card) if exit == Exit::Trusted => output.write_whole(card)?,
        _ if verdict.state == State::Trusted => verify::report_unmet(verdict, &unmet),
        _ => anstream::eprint!(
            "{}",
            render::walk(verdict, Objections::of_expectations(&unmet), &render::Palette::plain())
        ),
    }
    Ok(exit)
}
