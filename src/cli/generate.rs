//! `cards generate`: generates Orloj's agent cards from AgentSystem resources.

use anyhow::bail;
use clresolve_cards::generate::{Cards, Generated, MAX_BYTES, SourceFile};
use clresolve_core::text::Foreign;
use serde_json::Value;

use super::args::{CardFormat, GenerateArgs};
use super::exit::Exit;
use super::input::{self, read};
use super::notice;
use super::output::{Output, json, json_line};

pub(super) fn run(args: GenerateArgs) -> anyhow::Result<Exit> {
    let output = Output::new(&args.output.out)?;
    let files = args
        .from
        .iter()
        .map(|file| Ok((input::name(file), read(file, MAX_BYTES)?)))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let sources: Vec<_> = files.iter().map(|(file, bytes)| SourceFile { file, bytes }).collect();
    let cards = Cards::read(&sources, args.base_url)?;
    let chosen = chosen(&cards, args.system.as_deref())?;
    for note in chosen.iter().flat_map(|card| card.notes()) {
        notice::note(format_args!("clresolve: {note}"));
    }
    output.write_whole(text(&chosen, args.output.form())?.as_bytes())?;
    Ok(Exit::Trusted)
}

fn chosen<'c>(cards: &'c Cards, system: Option<&str>) -> anyhow::Result<Vec<&'c Generated>> {
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
        None if cards.hides(name) => {
            bail!("--system {}: it is not exposed; set spec.a2a.enabled: true in it", Foreign::new(system))
        }
        None => bail!("--system {}: no AgentSystem has this name; {}", Foreign::new(system), known(cards)),
    }
}

/// Lists the systems that have a card.
fn known(cards: &Cards) -> String {
    let names: Vec<_> = cards.iter().map(|card| format!("{}/{}", card.namespace(), card.name())).collect();
    format!("those that have a card are {}", Foreign::new(&names.join(", ")))
}

fn text(cards: &[&Generated], format: CardFormat) -> anyhow::Result<String> {
    match (format, cards) {
        (CardFormat::Json, [card]) => Ok(card.text().to_owned()),
        (CardFormat::Json, cards) => {
            let cards: Vec<&Value> = cards.iter().map(|card| card.json()).collect();
            Ok(json(&cards)? + "\n")
        }
        (CardFormat::Jsonl, cards) => cards.iter().map(|card| Ok(json_line(card.json())? + "\n")).collect(),
    }
}
