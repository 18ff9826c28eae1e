//! `cards generate`: generates Orloj's agent cards from AgentSystem resources.

use anyhow::bail;
use clresolve_cards::generate::{GeneratedOrlojCard, GeneratedOrlojCards, MAX_BYTES, OrlojResourceFile};
use clresolve_core::text::UntrustedText;
use serde_json::Value;

use super::args::{CardOutputFormat, GenerateCardsArguments};
use super::exit::ExitStatus;
use super::input::{self, read_file_or_stdin};
use super::notice;
use super::output::{OutputSink, json_line, pretty_json};

pub(super) fn run(args: GenerateCardsArguments) -> anyhow::Result<ExitStatus> {
    let output = OutputSink::new(&args.output.out)?;
    let files = args
        .from
        .iter()
        .map(|file| Ok((input::input_label(file), read_file_or_stdin(file, MAX_BYTES)?)))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let sources: Vec<_> = files.iter().map(|(file, bytes)| OrlojResourceFile { file, bytes }).collect();
    let cards = GeneratedOrlojCards::generate_cards(&sources, args.base_url)?;
    let chosen = select_cards_of_system(&cards, args.system.as_deref())?;
    for note in chosen.iter().flat_map(|card| card.notes()) {
        notice::print_notice(format_args!("clresolve: {note}"));
    }
    output.write_all_and_finish(serialize_cards(&chosen, args.output.output_format())?.as_bytes())?;
    Ok(ExitStatus::Trusted)
}

fn select_cards_of_system<'c>(
    cards: &'c GeneratedOrlojCards,
    system: Option<&str>,
) -> anyhow::Result<Vec<&'c GeneratedOrlojCard>> {
    let Some(system) = system else {
        if cards.is_empty() {
            bail!("no AgentSystem is exposed; set spec.a2a.enabled: true in those that are to have a card");
        }
        return Ok(cards.iter().collect());
    };
    let (namespace, name) = match system.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, system),
    };
    match cards.get(namespace, name) {
        Some(card) => Ok(vec![card]),
        None if cards.has_unexposed_system(name) => {
            bail!("--system {}: it is not exposed; set spec.a2a.enabled: true in it", UntrustedText::new(system))
        }
        None => bail!(
            "--system {}: no AgentSystem has this name; {}",
            UntrustedText::new(system),
            systems_with_card_text(cards)
        ),
    }
}

/// Lists the systems that have a card.
fn systems_with_card_text(cards: &GeneratedOrlojCards) -> String {
    let names: Vec<_> = cards.iter().map(|card| format!("{}/{}", card.namespace(), card.name())).collect();
    format!("those that have a card are {}", UntrustedText::new(&names.join(", ")))
}

fn serialize_cards(cards: &[&GeneratedOrlojCard], format: CardOutputFormat) -> anyhow::Result<String> {
    match (format, cards) {
        (CardOutputFormat::Json, [card]) => Ok(card.text().to_owned()),
        (CardOutputFormat::Json, cards) => {
            let cards: Vec<&Value> = cards.iter().map(|card| card.json()).collect();
            Ok(pretty_json(&cards)? + "\n")
        }
        (CardOutputFormat::Jsonl, cards) => cards.iter().map(|card| Ok(json_line(card.json())? + "\n")).collect(),
    }
}
