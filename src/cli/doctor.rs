//! `doctor`: whether endpoints and gateways are well, and what to change.

use std::fmt::Write as _;

use clresolve_core::state::State;
use clresolve_core::text::Foreign;
use clresolve_resolver::clock::SystemClock;
use clresolve_resolver::resolve::doctor::{
    BlockSeen, ChainHealth, EndpointHealth, Examination, GatewayHealth, GatewayState, examine,
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

/// A line for each endpoint and gateway.
fn short(found: &Examination) -> String {
    let well = |is_well: bool| if is_well { "well" } else { "unwell" };
    let of_registries = found.registry_chains.iter().flat_map(|chain| &chain.endpoints);
    let endpoints = found.endpoints.iter().chain(of_registries).map(|health| (well(is_well(health)), &health.label));
    let gateways = found.gateways.iter().map(|health| (well(health.error.is_none() || answers(health)), &health.label));
    endpoints.chain(gateways).map(|(word, label)| format!("{word}  {}\n", Foreign::new(label))).collect()
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

fn write_gateway(text: &mut String, health: &GatewayHealth, palette: &Palette) {
    let answers = answers(health);
    let style = palette.state(if answers { State::Trusted } else { State::Untrusted });
    let mark = if answers { '✓' } else { '✗' };
    let said = match health.state {
        GatewayState::Proven => "sends proven blocks".to_owned(),
        GatewayState::WithoutBlock => "answers, without the block that was asked for".to_owned(),
        _ => Foreign::new(health.error.as_deref().unwrap_or("sends wrong blocks")).to_string(),
    };
    let label = Foreign::new(&health.label).to_string();
    let _ = writeln!(text, "  {style}{mark}{style:#} {label:<28}  {} ms, {said}", health.latency_ms);
}
