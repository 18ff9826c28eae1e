//! `cards project`: converts a trusted agent's card to A2A.

use clresolve_bundle::signed::VerdictIssuer;
use clresolve_cards::lint;
use clresolve_cards::project::signed_a2a_card_from_resolution;
use clresolve_cards::system::CardSystem;
use clresolve_core::state::TrustState;
use clresolve_resolver::sign;

use super::args::{ProjectCardArguments, ProjectionTarget};
use super::exit::ExitStatus;
use super::output::{self, OutputSink};
use super::progress::ProgressLine;
use super::render::{self, ObjectionsToAgent};
use super::verify::verify_progress_message;
use super::world::CommandContext;

pub(super) fn run(args: ProjectCardArguments) -> anyhow::Result<ExitStatus> {
    super::runtime::run_async_until_interrupt(write_projected_card(args))
}

async fn write_projected_card(args: ProjectCardArguments) -> anyhow::Result<ExitStatus> {
    let output = OutputSink::new(&args.out)?;
    let progress = ProgressLine::start(verify_progress_message(std::slice::from_ref(&args.name)));
    let world = CommandContext::open_with_layer(&args.world, args.sign.try_into()?).await?;
    world.require_current_judgement()?;
    let signer = sign::open_signer(&world.config.sign)?;
    let resolution = world.resolver.resolve(&args.name).await;
    drop(progress);
    let ProjectionTarget::A2a = args.to;
    match signed_a2a_card_from_resolution(
        &resolution,
        &world.config.gate.gate_policy(),
        signer.as_ref().map(VerdictIssuer::signing_key),
    ) {
        Ok(card) => {
            let text = output::pretty_json(&card)? + "\n";
            output.write_all_and_finish(lint::reorder_members(&text, CardSystem::A2a).unwrap_or(text).as_bytes())?;
            Ok(ExitStatus::Trusted)
        }
        Err(code) if resolution.verdict().state == TrustState::Trusted => {
            anstream::eprintln!("clresolve: no card is written: {code}; `clresolve explain {code}` says more");
            Ok(ExitStatus::Untrusted)
        }
        Err(_) => {
            anstream::eprint!(
                "{}",
                render::format_verdict_walk(
                    resolution.verdict(),
                    ObjectionsToAgent::default(),
                    &render::Palette::plain()
                )
            );
            Ok(if resolution.verdict().state == TrustState::Untrusted {
                ExitStatus::Untrusted
            } else {
                ExitStatus::Indeterminate
            })
        }
    }
}
