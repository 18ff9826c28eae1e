//! `discover`: lists the cards that a host serves, and the findings of each.

use std::fmt::Write as _;

use anyhow::{Context as _, bail};
use clresolve_core::reason::Effect;
use clresolve_core::state::State;
use clresolve_core::text::Foreign;
use clresolve_discover::{DiscoveredCard, Discovery, DiscoveryOutcome, Question, Target, UrlOutcome, UrlResult};
use clresolve_resolver::config::OriginSpec;

use super::args::{DiscoverArgs, Format};
use super::exit::Exit;
use super::notice;
use super::output::{Output, Results};
use super::render::Palette;
use super::world::World;

/// Maximum number of findings shown per card. `lint` shows all.
const SHOWN_FINDINGS: usize = 20;

pub(super) fn run(args: DiscoverArgs) -> anyhow::Result<Exit> {
    let output = Output::new(&args.output.out)?;
    let target = match args.system {
        Some(name) => args.target.with_system(name).context("--system")?,
        None => args.target,
    };
    let question = Question { system: args.card_system, bind: args.bind, ..Question::new(target) };
    super::runtime::run_async(async move {
        let world = World::open(&args.world).await?;
        named(&question.target, &world.config.network.allow_hosts)?;
        let profile = world.resolver.profiles().get(&world.config.rules.profile);
        let profile = profile.context("the configured profile does not exist")?;
        let discovery = clresolve_discover::discover(&world.resolver, &question, &profile).await;
        if question.target.is_plain() {
            notice::note(format_args!("Plain http: nothing authenticated {}.", Foreign::new(&discovery.origin)));
        }
        let palette = output.palette();
        let mut results = Results::one(output, args.output.form());
        results.push(&discovery, |format| match format {
            Format::Short => short(&discovery, &palette),
            _ => people(&discovery, &palette),
        })?;
        results.finish()?;
        Ok(match discovery.outcome {
            DiscoveryOutcome::Valid => Exit::Trusted,
            DiscoveryOutcome::Invalid => Exit::Untrusted,
            DiscoveryOutcome::Undecided => Exit::Indeterminate,
        })
    })
}

/// Rejects plain `http` unless the operator listed the origin.
fn named(target: &Target, allowed: &[OriginSpec]) -> anyhow::Result<()> {
    let origin = target.host_port();
    if target.is_plain() && !allowed.iter().any(|named| named.to_string() == origin) {
        bail!("cards are read over https; for plain http to this host, add --allow-host {}", Foreign::new(&origin));
    }
    Ok(())
}

/// One line per URL.
fn short(discovery: &Discovery, palette: &Palette) -> String {
    let mut text = String::new();
    for place in &discovery.places {
        let card = discovery.cards.iter().find(|card| Some(card.sha256) == place.sha256);
        let style = match card {
            Some(card) => palette.state(state(card.report.valid)),
            None => palette.effect(Effect::Warn),
        };
        let what = card.map_or_else(|| word(place.outcome).to_owned(), title);
        let codes: String = place.codes.iter().map(|code| format!(" {code}")).collect();
        let _ = writeln!(text, "{style}{}{style:#} {what}{codes}", Foreign::new(&place.url));
    }
    text
}

/// The cards with their findings, all queried URLs, and a summary.
fn people(discovery: &Discovery, palette: &Palette) -> String {
    let mut text = String::new();
    for card in &discovery.cards {
        write_card(&mut text, card, palette);
        text.push('\n');
    }
    for descriptor in &discovery.descriptors {
        let _ = writeln!(text, "descriptor of a registry ({})", descriptor.system.title());
        for url in &descriptor.urls {
            let _ = writeln!(text, "    {}", Foreign::new(url));
        }
        text.push('\n');
    }
    for place in discovery.places.iter().filter(|place| place.sha256.is_none() || !place.codes.is_empty()) {
        write_place(&mut text, place, palette);
    }
    for reason in &discovery.reasons {
        let style = palette.effect(reason.effect);
        let _ = writeln!(text, "{style}! {}{style:#} {}", reason.code, Foreign::new(&reason.message));
    }
    let style = match discovery.outcome {
        DiscoveryOutcome::Undecided => palette.state(State::Indeterminate),
        outcome => palette.state(state(outcome == DiscoveryOutcome::Valid)),
    };
    let _ = writeln!(text, "{style}{}{style:#}", summary(discovery));
    text
}

fn write_card(text: &mut String, card: &DiscoveredCard, palette: &Palette) {
    let style = palette.state(state(card.report.valid));
    let sign = if card.report.valid { '✓' } else { '✗' };
    let _ = writeln!(text, "{style}{sign} {}{style:#}", title(card));
    for url in &card.urls {
        let _ = writeln!(text, "    {}", Foreign::new(url));
    }
    let _ = writeln!(text, "    {}, {} bytes", card.sha256, card.bytes);
    for finding in card.report.findings.iter().take(SHOWN_FINDINGS) {
        let style = palette.effect(finding.effect);
        let pointer = finding.pointer.as_deref().filter(|pointer| !pointer.is_empty());
        let at = pointer.map_or_else(String::new, |pointer| format!(" at {}", Foreign::new(pointer)));
        let _ = writeln!(text, "    {style}{}{style:#}{at}: {}", finding.code, Foreign::new(&finding.message));
    }
    if let Some(more) = card.report.findings.len().checked_sub(SHOWN_FINDINGS).filter(|more| *more > 0) {
        let _ = writeln!(text, "    and {more} more");
    }
}

fn write_place(text: &mut String, place: &UrlResult, palette: &Palette) {
    let style = palette.effect(Effect::Warn);
    let codes: String = place.codes.iter().map(|code| format!(" {code}")).collect();
    let detail = place.detail.as_deref().map_or_else(String::new, |detail| format!(" ({})", Foreign::new(detail)));
    let _ = writeln!(text, "{} {style}{}{style:#}{codes}{detail}", Foreign::new(&place.url), word(place.outcome));
}

fn title(card: &DiscoveredCard) -> String {
    let version = card.report.version.as_deref().map_or_else(String::new, |v| format!(" {}", Foreign::new(v)));
    let what = card.report.system.map_or("card of no known system", |system| system.title());
    format!("{what}{version}: {}", if card.report.valid { "valid" } else { "not valid" })
}

fn summary(discovery: &Discovery) -> String {
    let host = Foreign::new(&discovery.origin);
    let by_tls = if discovery.origin.starts_with("http:") { " Nothing authenticated that host." } else { "" };
    let found = match (discovery.outcome, discovery.cards.len()) {
        (DiscoveryOutcome::Undecided, _) => return format!("{host} serves no card that could be judged."),
        (DiscoveryOutcome::Valid, 1) => format!("{host} serves a valid card"),
        (DiscoveryOutcome::Valid, n) => format!("{host} serves {n} valid cards"),
        (DiscoveryOutcome::Invalid, 1) => format!("{host} serves a card that is not valid"),
        (DiscoveryOutcome::Invalid, n) => format!("{host} serves {n} cards, of which not all are valid"),
    };
    match &discovery.ens_bound {
        Some(bound) => format!(
            "{found}; {} on ENS is {} and proves the bytes of {}.",
            Foreign::new(&bound.name),
            bound.state,
            bound.sha256
        ),
        None => format!("{found}. It is that host's word: no name on ENS vouches for it here.{by_tls}"),
    }
}

const fn state(valid: bool) -> State {
    if valid { State::Trusted } else { State::Untrusted }
}

const fn word(outcome: UrlOutcome) -> &'static str {
    match outcome {
        UrlOutcome::Found => "found",
        UrlOutcome::Absent => "absent",
        UrlOutcome::Unreachable => "unreachable",
        UrlOutcome::Forbidden => "forbidden",
        UrlOutcome::WrongContentType => "no JSON",
        UrlOutcome::Oversize => "too large",
    }
}
