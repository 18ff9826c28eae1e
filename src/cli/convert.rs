//! `cards convert`: converts a card from one system to another.

use anyhow::bail;
use clresolve_cards::convert::{Conversion, convert};
use clresolve_cards::lint::{self, MAX_BYTES};
use clresolve_cards::system::{CardSystem, Detection, Rules, detect};
use clresolve_core::reason::Effect;
use clresolve_core::text::Foreign;
use clresolve_verdict::card::Card;
use serde_json::Value;

use super::args::{ConvertArgs, ConvertFormat};
use super::exit::Exit;
use super::input::read;
use super::notice;
use super::output::{self, Output};
use super::world::LocalRules;

pub(super) fn run(args: ConvertArgs) -> anyhow::Result<Exit> {
    let output = Output::new(&args.output.out)?;
    let name = args.document.display().to_string();
    let LocalRules { profile, .. } = LocalRules::read(&args.offline)?;
    let card = match Card::parse(&read(&args.document, MAX_BYTES)?) {
        Ok(card) => card,
        Err(error) => {
            anstream::eprintln!("clresolve: {}: {}", Foreign::new(&name), Foreign::new(&error.to_string()));
            return Ok(Exit::Untrusted);
        }
    };
    let from = system(&card, args.from)?;
    let rules = Rules::of(&profile);
    let conversion = convert(&card, from, args.to, &rules);
    match args.output.form() {
        ConvertFormat::Json => output.write_whole((output::json(&conversion)? + "\n").as_bytes())?,
        ConvertFormat::Card => {
            output.write_whole(printed(&conversion.card, args.to)?.as_bytes())?;
            report(&conversion);
        }
    }
    Ok(if conversion.report.valid { Exit::Trusted } else { Exit::Untrusted })
}

fn system(card: &Card, named: Option<CardSystem>) -> anyhow::Result<CardSystem> {
    match named.map_or_else(|| detect(card), Detection::One) {
        Detection::One(system) => Ok(system),
        Detection::Several(systems) => {
            let slugs: Vec<&str> = systems.iter().map(|system| system.slug()).collect();
            bail!("the card has members of {}: name one with --from", slugs.join(" and "))
        }
        Detection::None => bail!("the card's system cannot be detected: name it with --from"),
    }
}

/// Serializes the card with its members in the order of the specification.
fn printed(card: &Value, to: CardSystem) -> anyhow::Result<String> {
    let text = output::json(card)? + "\n";
    Ok(lint::ordered(&text, to).unwrap_or(text))
}

/// Reports losses and missing members on standard error, since standard output contains the card.
fn report(conversion: &Conversion) {
    for lost in &conversion.lost {
        notice::note(format_args!("lost     {} {}", Foreign::new(&lost.pointer), Foreign::new(&lost.value)));
    }
    if conversion.lost_further > 0 {
        notice::note(format_args!("lost     {} more", conversion.lost_further));
    }
    for finding in conversion.report.findings.iter().filter(|finding| finding.effect == Effect::Fail) {
        let place = finding.pointer.as_deref().unwrap_or_default();
        notice::note(format_args!(
            "needed   {} {}: {}",
            Foreign::new(place),
            finding.code,
            Foreign::new(&finding.message)
        ));
    }
    if conversion.loses_security() {
        notice::note(format_args!(
            "The old card's requirements on callers were lost: add them again before you publish."
        ));
    }
    let title = conversion.to.title();
    if conversion.report.valid {
        notice::note(format_args!("The new card is a valid {title}; review the losses before you publish it."));
    } else {
        notice::note(format_args!(
            "The new card is not yet a valid {title}: add what is needed, then `clresolve lint` it."
        ));
    }
}
