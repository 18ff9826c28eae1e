//! `cards project`: converts a trusted agent's card to A2A.

use clresolve_bundle::signed::Signer;
use clresolve_cards::lint;
use clresolve_cards::project::signed_a2a_card;
use clresolve_cards::system::CardSystem;
use clresolve_core::state::State;
use clresolve_resolver::sign;

use super::args::{ProjectArgs, Projection};
use super::exit::Exit;
use super::output::{self, Output};
use super::progress::Progress;
use super::render::{self, Objections};
use super::verify::waiting_for;
use super::world::World;

pub(super) fn run(args: ProjectArgs) -> anyhow::Result<Exit> {
    super::runtime::run_async(write_card(args))
}

async fn write_card(args: ProjectArgs) -> anyhow::Result<Exit> {
    let output = Output::new(&args.out)?;
    let progress = Progress::start(waiting_for(std::slice::from_ref(&args.name)));
    let world = World::open_with(&args.world, args.sign.try_into()?).await?;
    world.check_now()?;
    let signer = sign::open(&world.config.sign)?;
    let resolution = world.resolver.resolve(&args.name).await;
    drop(progress);
    let Projection::A2a = args.to;
    match signed_a2a_card(&resolution, &world.config.gate.policy(), signer.as_ref().map(Signer::key)) {
        Ok(card) => {
            let text = output::json(&card)? + "\n";
            output.write_whole(lint::ordered(&text, CardSystem::A2a).unwrap_or(text).as_bytes())?;
            Ok(Exit::Trusted)
        }
        Err(code) if resolution.verdict().state == State::Trusted => {
            anstream::eprintln!("clresolve: no card is written: {code}; `clresolve explain {code}` says more");
            Ok(Exit::Untrusted)
        }
        Err(_) => {
            anstream::eprint!(
                "{}",
                render::walk(resolution.verdict(), Objections::default(), &render::Palette::plain())
            );
            Ok(if resolution.verdict().state == State::Untrusted { Exit::Untrusted } else { Exit::Indeterminate })
        }
    }
}
