//! `cards convert`: converts a card from one system to another.

use anyhow::bail;
use clresolve_cards::convert::{CardConversion, convert_card};
use clresolve_cards::lint::{self, MAX_BYTES};
use clresolve_cards::system::{CardLintContext, CardSystem, CardSystemDetection, detect_card_system};
use clresolve_core::reason::ReasonEffect;
use clresolve_core::text::UntrustedText;
use clresolve_verdict::card::AgentCard;
use serde_json::Value;

use super::args::{ConversionOutputFormat, ConvertCardArguments};
use super::exit::ExitStatus;
use super::input::read_file_or_stdin;
use super::notice;
use super::output::{self, OutputSink};
use super::world::OfflineRules;

pub(super) fn run(args: ConvertCardArguments) -> anyhow::Result<ExitStatus> {
    let output = OutputSink::new(&args.output.out)?;
    let name = args.document.display().to_string();
    let OfflineRules { profile, .. } = OfflineRules::read(&args.offline)?;
    let card = match AgentCard::parse(&read_file_or_stdin(&args.document, MAX_BYTES)?) {
        Ok(card) => card,
        Err(error) => {
            anstream::eprintln!("clresolve: {}: {}", UntrustedText::new(&name), UntrustedText::new(&error.to_string()));
            return Ok(ExitStatus::Untrusted);
        }
    };
    let from = source_card_system(&card, args.from)?;
    let rules = CardLintContext::from_profile(&profile);
    let conversion = convert_card(&card, from, args.to, &rules);
    match args.output.output_format() {
        ConversionOutputFormat::Json => {
            output.write_all_and_finish((output::pretty_json(&conversion)? + "\n").as_bytes())?
        }
        ConversionOutputFormat::Card => {
            output.write_all_and_finish(serialize_card(&conversion.card, args.to)?.as_bytes())?;
            report_conversion_losses(&conversion);
        }
    }
    Ok(if conversion.report.valid { ExitStatus::Trusted } else { ExitStatus::Untrusted })
}

fn source_card_system(card: &AgentCard, named: Option<CardSystem>) -> anyhow::Result<CardSystem> {
    match named.map_or_else(|| detect_card_system(card), CardSystemDetection::One) {
        CardSystemDetection::One(system) => Ok(system),
        CardSystemDetection::Several(systems) => {
            let slugs: Vec<&str> = systems.iter().map(|system| system.slug()).collect();
            bail!("the card has members of {}: name one with --from", slugs.join(" and "))
        }
        CardSystemDetection::None => bail!("the card's system cannot be detected: name it with --from"),
    }
}

/// Serializes the card with its members in the order of the specification.
fn serialize_card(card: &Value, to: CardSystem) -> anyhow::Result<String> {
    let text = output::pretty_json(card)? + "\n";
    Ok(lint::reorder_members(&text, to).unwrap_or(text))
}

/// Reports losses and missing members on standard error, since standard output contains the card.
fn report_conversion_losses(conversion: &CardConversion) {
    for lost in &conversion.lost {
        notice::print_notice(format_args!(
            "lost     {} {}",
            UntrustedText::new(&lost.pointer),
            UntrustedText::new(&lost.value)
        ));
    }
    if conversion.lost_further > 0 {
        notice::print_notice(format_args!("lost     {} more", conversion.lost_further));
    }
    for finding in conversion.report.findings.iter().filter(|finding| finding.effect == ReasonEffect::Fail) {
        let place = finding.pointer.as_deref().unwrap_or_default();
        notice::print_notice(format_args!(
            "needed   {} {}: {}",
            UntrustedText::new(place),
            finding.code,
            UntrustedText::new(&finding.message)
        ));
    }
    if conversion.loses_security_requirements() {
        notice::print_notice(format_args!(
            "The old card's requirements on callers were lost: add them again before you publish."
        ));
    }
    let title = conversion.to.title();
    if conversion.report.valid {
        notice::print_notice(format_args!("The new card is a valid {title}; review the losses before you publish it."));
    } else {
        notice::print_notice(format_args!(
            "The new card is not yet a valid {title}: add what is needed, then `clresolve lint` it."
        ));
    }
}
