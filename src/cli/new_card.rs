//! `cards new`: writes a card that the publisher then edits.

use anyhow::{Context as _, bail};
use clresolve_cards::new_card::NewCard;
use clresolve_core::name::EnsName;
use clresolve_core::text::Foreign;
use clresolve_resolver::clock::{Clock as _, SystemClock};

use super::args::NewCardArgs;
use super::exit::Exit;
use super::notice;
use super::output::Output;
use super::world::LocalRules;

pub(super) fn run(args: NewCardArgs) -> anyhow::Result<Exit> {
    let output = Output::new(&args.out)?;
    let name = normal("NAME", &args.name)?;
    let owner = normal("--owner", &args.owner)?;
    let LocalRules { profile, .. } = LocalRules::read(&args.offline)?;
    let card = NewCard {
        name: &name,
        verb: &args.verb,
        owner: &owner,
        base_url: args.base_url.as_ref(),
        created: SystemClock.now(),
    };
    // An existing card may have been edited.
    output.write_new(card.text(&profile)?.as_bytes())?;
    notice::note("clresolve: before you publish the card, edit display_name, description, networks and license");
    if args.base_url.is_none() {
        notice::note("clresolve: the card has no $id; `clresolve plan` needs its URL with --url");
    }
    Ok(Exit::Trusted)
}

/// Parses the name in an argument, which must be in normal form.
fn normal(argument: &str, given: &str) -> anyhow::Result<EnsName> {
    let shown = Foreign::new(given);
    let name = EnsName::parse(given).with_context(|| format!("{argument} {shown}"))?;
    if name.as_str() != given {
        bail!("{argument} {shown}: the name is not in normal form; write {}", Foreign::new(name.as_str()));
    }
    if !given.contains('.') {
        bail!("{argument} {shown}: an ENS name has a dot, as in {shown}.eth");
    }
    Ok(name)
}
