//! `cards new`: writes a card that the publisher then edits.

use anyhow::{Context as _, bail};
use clresolve_cards::new_card::NewCardInput;
use clresolve_core::name::EnsName;
use clresolve_core::text::UntrustedText;
use clresolve_resolver::clock::{Clock as _, SystemClock};

use super::args::NewCardArguments;
use super::exit::ExitStatus;
use super::notice;
use super::output::OutputSink;
use super::world::OfflineRules;

pub(super) fn run(args: NewCardArguments) -> anyhow::Result<ExitStatus> {
    let output = OutputSink::new(&args.out)?;
    let name = parse_normalized_name("NAME", &args.name)?;
    let owner = parse_normalized_name("--owner", &args.owner)?;
    let OfflineRules { profile, .. } = OfflineRules::read(&args.offline)?;
    let card = NewCardInput {
        name: &name,
        verb: &args.verb,
        owner: &owner,
        base_url: args.base_url.as_ref(),
        created: SystemClock.now(),
    };
    // An existing card may have been edited.
    output.write_new_file(card.to_card_json(&profile)?.as_bytes())?;
    notice::print_notice(
        "clresolve: before you publish the card, edit display_name, description, networks and license",
    );
    if args.base_url.is_none() {
        notice::print_notice("clresolve: the card has no $id; `clresolve plan` needs its URL with --url");
    }
    Ok(ExitStatus::Trusted)
}

/// Parses the name in an argument, which must be in normal form.
fn parse_normalized_name(argument: &str, given: &str) -> anyhow::Result<EnsName> {
    let shown = UntrustedText::new(given);
    let name = EnsName::parse(given).with_context(|| format!("{argument} {shown}"))?;
    if name.as_str() != given {
        bail!("{argument} {shown}: the name is not in normal form; write {}", UntrustedText::new(name.as_str()));
    }
    if !given.contains('.') {
        bail!("{argument} {shown}: an ENS name has a dot, as in {shown}.eth");
    }
    Ok(name)
}
