//! `discover`: lists the cards that a host serves, and the findings of each.

use std::fmt::Write as _;

use anyhow::{Context as _, bail};
use clresolve_core::reason::ReasonEffect;
use clresolve_core::state::TrustState;
use clresolve_core::text::UntrustedText;
use clresolve_discover::{
    CardUrlOutcome, CardUrlReport, DiscoveredCard, DiscoveryReport, DiscoveryRequest, DiscoveryTarget, HostCardValidity,
};
use clresolve_resolver::config::HostPort;

use super::args::{DiscoverArguments, OutputFormat};
use super::exit::ExitStatus;
use super::notice;
use super::output::{OutputSink, ResultWriter};
use super::render::Palette;
use super::world::CommandContext;

/// Maximum number of findings shown per card. `lint` shows all.
const SHOWN_FINDINGS: usize = 20;

pub(super) fn run(args: DiscoverArguments) -> anyhow::Result<ExitStatus> {
    let output = OutputSink::new(&args.output.out)?;
    let target = match args.system {
        Some(name) => args.target.with_agent_system(name).context("--system")?,
        None => args.target,
    };
    let question = DiscoveryRequest { system: args.card_system, bind: args.bind, ..DiscoveryRequest::new(target) };
    super::runtime::run_async_until_interrupt(async move {
        let world = CommandContext::open(&args.world).await?;
        reject_plain_http(&question.target, &world.config.network.allow_hosts)?;
        let profile = world.resolver.profiles().get(&world.config.rules.profile);
        let profile = profile.context("the configured profile does not exist")?;
        let discovery = clresolve_discover::discover_host_cards(&world.resolver, &question, &profile).await;
        if question.target.is_plain_http() {
            notice::print_notice(format_args!(
                "Plain http: nothing authenticated {}.",
                UntrustedText::new(&discovery.origin)
            ));
        }
        let palette = output.palette();
        let mut results = ResultWriter::for_single_result(output, args.output.output_format());
        results.push(&discovery, |format| match format {
            OutputFormat::Short => format_discovery_lines(&discovery, &palette),
            _ => format_discovery_report(&discovery, &palette),
        })?;
        results.finish()?;
        Ok(match discovery.outcome {
            HostCardValidity::Valid => ExitStatus::Trusted,
            HostCardValidity::Invalid => ExitStatus::Untrusted,
            HostCardValidity::Undecided => ExitStatus::Indeterminate,
        })
    })
}

/// Rejects plain `http` unless the operator listed the origin.
fn reject_plain_http(target: &DiscoveryTarget, allowed: &[HostPort]) -> anyhow::Result<()> {
    let origin = target.host_port();
    if target.is_plain_http() && !allowed.iter().any(|named| named.to_string() == origin) {
        bail!(
            "cards are read over https; for plain http to this host, add --allow-host {}",
            UntrustedText::new(&origin)
        );
    }
    Ok(())
}

/// One line per URL.
fn format_discovery_lines(discovery: &DiscoveryReport, palette: &Palette) -> String {
    let mut text = String::new();
    for place in &discovery.places {
        let card = discovery.cards.iter().find(|card| Some(card.sha256) == place.sha256);
        let style = match card {
            Some(card) => palette.state_style(trust_state_of_validity(card.report.valid)),
            None => palette.effect_style(ReasonEffect::Warn),
        };
        let what = card.map_or_else(|| url_outcome_word(place.outcome).to_owned(), discovered_card_title);
        let codes: String = place.codes.iter().map(|code| format!(" {code}")).collect();
        let _ = writeln!(text, "{style}{}{style:#} {what}{codes}", UntrustedText::new(&place.url));
    }
    text
}

/// The cards with their findings, all queried URLs, and a summary.
fn format_discovery_report(discovery: &DiscoveryReport, palette: &Palette) -> String {
    let mut text = String::new();
    for card in &discovery.cards {
        write_discovered_card(&mut text, card, palette);
        text.push('\n');
    }
    for descriptor in &discovery.descriptors {
        let _ = writeln!(text, "descriptor of a registry ({})", descriptor.system.title());
        for url in &descriptor.urls {
            let _ = writeln!(text, "    {}", UntrustedText::new(url));
        }
        text.push('\n');
    }
    for place in discovery.places.iter().filter(|place| place.sha256.is_none() || !place.codes.is_empty()) {
        write_url_report(&mut text, place, palette);
    }
    for reason in &discovery.reasons {
        let style = palette.effect_style(reason.effect);
        let _ = writeln!(text, "{style}! {}{style:#} {}", reason.code, UntrustedText::new(&reason.message));
    }
    let style = match discovery.outcome {
        HostCardValidity::Undecided => palette.state_style(TrustState::Indeterminate),
        outcome => palette.state_style(trust_state_of_validity(outcome == HostCardValidity::Valid)),
    };
    let _ = writeln!(text, "{style}{}{style:#}", discovery_summary(discovery));
    text
}

fn write_discovered_card(text: &mut String, card: &DiscoveredCard, palette: &Palette) {
    let style = palette.state_style(trust_state_of_validity(card.report.valid));
    let sign = if card.report.valid { '✓' } else { '✗' };
    let _ = writeln!(text, "{style}{sign} {}{style:#}", discovered_card_title(card));
    for url in &card.urls {
        let _ = writeln!(text, "    {}", UntrustedText::new(url));
    }
    let _ = writeln!(text, "    {}, {} bytes", card.sha256, card.bytes);
    for finding in card.report.findings.iter().take(SHOWN_FINDINGS) {
        let style = palette.effect_style(finding.effect);
        let pointer = finding.pointer.as_deref().filter(|pointer| !pointer.is_empty());
        let at = pointer.map_or_else(String::new, |pointer| format!(" at {}", UntrustedText::new(pointer)));
        let _ = writeln!(text, "    {style}{}{style:#}{at}: {}", finding.code, UntrustedText::new(&finding.message));
    }
    if let Some(more) = card.report.findings.len().checked_sub(SHOWN_FINDINGS).filter(|more| *more > 0) {
        let _ = writeln!(text, "    and {more} more");
    }
}

fn write_url_report(text: &mut String, place: &CardUrlReport, palette: &Palette) {
    let style = palette.effect_style(ReasonEffect::Warn);
    let codes: String = place.codes.iter().map(|code| format!(" {code}")).collect();
    let detail =
        place.detail.as_deref().map_or_else(String::new, |detail| format!(" ({})", UntrustedText::new(detail)));
    let _ = writeln!(
        text,
        "{} {style}{}{style:#}{codes}{detail}",
        UntrustedText::new(&place.url),
        url_outcome_word(place.outcome)
    );
}

fn discovered_card_title(card: &DiscoveredCard) -> String {
    let version = card.report.version.as_deref().map_or_else(String::new, |v| format!(" {}", UntrustedText::new(v)));
    let what = card.report.system.map_or("card of no known system", |system| system.title());
    format!("{what}{version}: {}", if card.report.valid { "valid" } else { "not valid" })
}

fn discovery_summary(discovery: &DiscoveryReport) -> String {
    let host = UntrustedText::new(&discovery.origin);
    let by_tls = if discovery.origin.starts_with("http:") { " Nothing authenticated that host." } else { "" };
    let found = match (discovery.outcome, discovery.cards.len()) {
        (HostCardValidity::Undecided, _) => return format!("{host} serves no card that could be judged."),
        (HostCardValidity::Valid, 1) => format!("{host} serves a valid card"),
        (HostCardValidity::Valid, n) => format!("{host} serves {n} valid cards"),
        (HostCardValidity::Invalid, 1) => format!("{host} serves a card that is not valid"),
        (HostCardValidity::Invalid, n) => format!("{host} serves {n} cards, of which not all are valid"),
    };
    match &discovery.ens_bound {
        Some(bound) => format!(
            "{found}; {} on ENS is {} and proves the bytes of {}.",
            UntrustedText::new(&bound.name),
            bound.state,
            bound.sha256
        ),
        None => format!("{found}. It is that host's word: no name on ENS vouches for it here.{by_tls}"),
    }
}

const fn trust_state_of_validity(valid: bool) -> TrustState {
    if valid { TrustState::Trusted } else { TrustState::Untrusted }
}

const fn url_outcome_word(outcome: CardUrlOutcome) -> &'static str {
    match outcome {
        CardUrlOutcome::Found => "found",
        CardUrlOutcome::Absent => "absent",
        CardUrlOutcome::Unreachable => "unreachable",
        CardUrlOutcome::Forbidden => "forbidden",
        CardUrlOutcome::WrongContentType => "no JSON",
        CardUrlOutcome::Oversize => "too large",
    }
}
