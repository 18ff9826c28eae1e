//! `doctor`: checks endpoints and gateways, and suggests changes.

use std::fmt::Write as _;

use clresolve_core::state::State;
use clresolve_core::text::Foreign;
use clresolve_resolver::clock::SystemClock;
use clresolve_resolver::resolve::doctor::{
    BeaconHealth, BlockSeen, ChainHealth, EndpointHealth, Examination, GatewayHealth, GatewayState, HeadersSeen,
    LightClientHealth, examine,
};
use clresolve_verdict::verdict::Depth;

use super::args::{DoctorArgs, Format};
use super::exit::Exit;
use super::output::{Output, Results};
use super::progress::Progress;
use super::render::Palette;
use super::world::{self, Reader};

pub(super) fn run(args: DoctorArgs) -> anyhow::Result<Exit> {
    super::runtime::run_async(async move {
        let output = Output::new(&args.output.out)?;
        let palette = output.palette();
        let (config, _sandbox) = world::settings(&args.world, Reader::Others, Depth::default()).await?;
        let progress = Progress::start("asking endpoints and gateways".to_owned());
        let found = examine(&config, &SystemClock).await?;
        drop(progress);
        let mut results = Results::one(output, args.output.form()).with_short_digests();
        results.push(&found, |format| match format {
            Format::Short => short(&found),
            _ => people(&found, &palette),
        })?;
        results.finish()?;
        Ok(if found.advice.is_empty() { Exit::Trusted } else { Exit::Untrusted })
    })
}

/// One line per endpoint, beacon endpoint and gateway.
fn short(found: &Examination) -> String {
    let well = |is_well: bool| if is_well { "well" } else { "unwell" };
    let of_registries = found.registry_chains.iter().flat_map(|chain| &chain.endpoints);
    let endpoints = found.endpoints.iter().chain(of_registries).map(|health| (well(is_well(health)), &health.label));
    let beacon = found.light_client.iter().flat_map(|client| &client.endpoints);
    let beacon = beacon.map(|health| (well(is_valid(health)), &health.label));
    let gateways = found.gateways.iter().map(|health| (well(health.error.is_none() || answers(health)), &health.label));
    endpoints.chain(beacon).chain(gateways).map(|(word, label)| format!("{word}  {}\n", Foreign::new(label))).collect()
}

fn people(found: &Examination, palette: &Palette) -> String {
    let mut text = format!("Endpoints of {}\n", found.chain);
    for health in &found.endpoints {
        write_endpoint(&mut text, health, palette);
    }
    if let Some(agreement) = &found.agreement {
        let _ = writeln!(text, "\nFinalized block {}", agreement.number);
        for group in &agreement.groups {
            let _ = writeln!(text, "  {}  {}", group.hash, Foreign::new(&group.endpoints.join(", ")));
        }
    }
    for ChainHealth { chain, endpoints, .. } in &found.registry_chains {
        let _ = writeln!(text, "\nEndpoints of {chain} (registry of agents)");
        for health in endpoints {
            write_endpoint(&mut text, health, palette);
        }
    }
    if let Some(light_client) = &found.light_client {
        write_light_client(&mut text, light_client, palette);
    }
    text.push_str("\nGateways\n");
    for health in &found.gateways {
        write_gateway(&mut text, health, palette);
    }
    if let Some(why) = found.network {
        let style = palette.state(State::Indeterminate);
        let _ = writeln!(text, "\n{style}This machine seems to have no network: {}.{style:#}", why.everywhere());
        return text;
    }
    let state = if found.advice.is_empty() { State::Trusted } else { State::Untrusted };
    let style = palette.state(state);
    if found.advice.is_empty() {
        let _ = writeln!(text, "\n{style}Nothing has to be changed.{style:#}");
        return text;
    }
    let _ = writeln!(text, "\n{style}What to change{style:#}");
    for advice in &found.advice {
        let _ = writeln!(text, "  - {}", Foreign::new(advice).at_most(500));
    }
    text
}

const fn is_well(health: &EndpointHealth) -> bool {
    health.reachable && health.error.is_none() && health.resolution_error.is_none()
}

const fn is_valid(health: &BeaconHealth) -> bool {
    health.error.is_none() && health.violated_rule.is_none()
}

const fn answers(health: &GatewayHealth) -> bool {
    matches!(health.state, GatewayState::Proven | GatewayState::WithoutBlock)
}

fn write_endpoint(text: &mut String, health: &EndpointHealth, palette: &Palette) {
    let is_well = is_well(health);
    let style = palette.state(if is_well { State::Trusted } else { State::Untrusted });
    let mark = if is_well { '✓' } else { '✗' };
    let mut seen = Vec::new();
    seen.extend(health.latency_ms.map(|ms| format!("{ms} ms")));
    seen.extend(health.chain.map(|id| format!("chain {id}")));
    seen.extend(health.latest.as_ref().map(|block| aged("newest", block)));
    seen.extend(health.finalized.as_ref().map(|block| aged("finalized", block)));
    seen.extend(health.clock_ahead_s.map(|seconds| format!("clock {seconds:+} s")));
    seen.extend(health.error.as_ref().map(|error| Foreign::new(error).to_string()));
    let fails = |error: &String| format!("a resolution fails: {}", Foreign::new(error));
    seen.extend(health.resolution_error.as_ref().map(fails));
    if !health.lacks.is_empty() {
        let lacks: Vec<&str> = health.lacks.iter().map(|lack| lack.as_str()).collect();
        seen.push(format!("without {}", lacks.join(", ")));
    }
    let label = Foreign::new(&health.label).to_string();
    let _ = writeln!(text, "  {style}{mark}{style:#} {label:<28}  {}", seen.join(", "));
}

fn aged(what: &str, block: &BlockSeen) -> String {
    format!("{what} {} ({} s old)", block.number, block.age_s)
}

fn write_light_client(text: &mut String, health: &LightClientHealth, palette: &Palette) {
    let age = health.checkpoint_age_s.map_or_else(|| "not proven".to_owned(), |age| format!("{} old", duration(age)));
    let _ = writeln!(text, "\nLight client of the beacon chain\n  checkpoint {}, {age}", health.checkpoint);
    if let Some(headers) = &health.headers {
        let _ = writeln!(text, "  {}", headers_text(headers));
    }
    for endpoint in &health.endpoints {
        write_beacon_endpoint(text, endpoint, palette);
    }
}

fn headers_text(headers: &HeadersSeen) -> String {
    let HeadersSeen { head_slot, current_slot, finalized_slot, finalized_age_s, .. } = headers;
    let signed = match (headers.participants, headers.committee) {
        (Some(participants), Some(committee)) => format!(", {participants} of {committee} signed"),
        _ => String::new(),
    };
    let behind = current_slot.saturating_sub(*head_slot);
    let finalized = format!("finalized {finalized_slot} ({finalized_age_s} s old)");
    format!("head slot {head_slot} ({behind} behind), {finalized}{signed}")
}

fn write_beacon_endpoint(text: &mut String, health: &BeaconHealth, palette: &Palette) {
    let is_valid = is_valid(health);
    let style = palette.state(if is_valid { State::Trusted } else { State::Untrusted });
    let mark = if is_valid { '✓' } else { '✗' };
    let seen = match (&health.violated_rule, &health.error, &health.headers) {
        (Some(rule), _, _) => format!("false data: {}", Foreign::new(rule)),
        (None, Some(error), _) => Foreign::new(error).to_string(),
        (None, None, Some(headers)) => headers_text(headers),
        (None, None, None) => String::new(),
    };
    let label = Foreign::new(&health.label).to_string();
    let _ = writeln!(text, "  {style}{mark}{style:#} {label:<28}  {seen}");
}

/// Whole days or hours, or minutes.
fn duration(seconds: u64) -> String {
    let (amount, unit) = match seconds {
        172_800.. => (seconds / 86_400, "days"),
        7_200.. => (seconds / 3_600, "hours"),
        _ => (seconds / 60, "minutes"),
    };
    format!("{amount} {unit}")
}

fn write_gateway(text: &mut String, health: &GatewayHealth, palette: &Palette) {
    let answers = answers(health);
    let style = palette.state(if answers { State::Trusted } else { State::Untrusted });
    let mark = if answers { '✓' } else { '✗' };
    let said = match health.state {
        GatewayState::Proven => "sends proven blocks".to_owned(),
        GatewayState::WithoutBlock => "responds, but without the requested block".to_owned(),
        _ => Foreign::new(health.error.as_deref().unwrap_or("sends wrong blocks")).to_string(),
    };
    let label = Foreign::new(&health.label).to_string();
    let _ = writeln!(text, "  {style}{mark}{style:#} {label:<28}  {} ms, {said}", health.latency_ms);
}
