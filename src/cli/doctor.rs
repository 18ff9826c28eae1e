//! `doctor`: checks endpoints and gateways, and suggests changes.

use std::fmt::Write as _;

use clresolve_core::state::TrustState;
use clresolve_core::text::UntrustedText;
use clresolve_resolver::clock::SystemClock;
use clresolve_resolver::resolve::doctor::{
    BeaconApiEndpointHealth, DoctorReport, IpfsGatewayHealth, IpfsGatewayProbeOutcome, LightClientHealth, ProbedBlock,
    RegistryChainHealth, RpcEndpointHealth, VerifiedHeaderHealth, examine_upstreams,
};
use clresolve_verdict::verdict::ResolutionDepth;

use super::args::{DoctorArguments, OutputFormat};
use super::exit::ExitStatus;
use super::output::{OutputSink, ResultWriter};
use super::progress::ProgressLine;
use super::render::Palette;
use super::world::{self, CommandPaymentAuthority};

pub(super) fn run(args: DoctorArguments) -> anyhow::Result<ExitStatus> {
    super::runtime::run_async_until_interrupt(async move {
        let output = OutputSink::new(&args.output.out)?;
        let palette = output.palette();
        let (config, _sandbox) =
            world::read_config_with_sandbox(&args.world, CommandPaymentAuthority::Others, ResolutionDepth::default())
                .await?;
        let progress = ProgressLine::start("asking endpoints and gateways".to_owned());
        let found = examine_upstreams(&config, &SystemClock).await?;
        drop(progress);
        let mut results = ResultWriter::for_single_result(output, args.output.output_format()).with_short_digests();
        results.push(&found, |format| match format {
            OutputFormat::Short => format_health_lines(&found),
            _ => format_health_report(&found, &palette),
        })?;
        results.finish()?;
        Ok(if found.advice.is_empty() { ExitStatus::Trusted } else { ExitStatus::Untrusted })
    })
}

/// One line per endpoint, beacon endpoint and gateway.
fn format_health_lines(found: &DoctorReport) -> String {
    let well = |is_well: bool| if is_well { "well" } else { "unwell" };
    let of_registries = found.registry_chains.iter().flat_map(|chain| &chain.endpoints);
    let endpoints = found
        .endpoints
        .iter()
        .chain(of_registries)
        .map(|health| (well(is_rpc_endpoint_healthy(health)), &health.label));
    let beacon = found.light_client.iter().flat_map(|client| &client.endpoints);
    let beacon = beacon.map(|health| (well(is_beacon_healthy(health)), &health.label));
    let gateways =
        found.gateways.iter().map(|health| (well(health.error.is_none() || is_gateway_healthy(health)), &health.label));
    endpoints
        .chain(beacon)
        .chain(gateways)
        .map(|(word, label)| format!("{word}  {}\n", UntrustedText::new(label)))
        .collect()
}

fn format_health_report(found: &DoctorReport, palette: &Palette) -> String {
    let mut text = format!("Endpoints of {}\n", found.chain);
    for health in &found.endpoints {
        write_rpc_endpoint_health(&mut text, health, palette);
    }
    if let Some(agreement) = &found.agreement {
        let _ = writeln!(text, "\nFinalized block {}", agreement.number);
        for group in &agreement.groups {
            let _ = writeln!(text, "  {}  {}", group.hash, UntrustedText::new(&group.endpoints.join(", ")));
        }
    }
    for RegistryChainHealth { chain, endpoints, .. } in &found.registry_chains {
        let _ = writeln!(text, "\nEndpoints of {chain} (registry of agents)");
        for health in endpoints {
            write_rpc_endpoint_health(&mut text, health, palette);
        }
    }
    if let Some(light_client) = &found.light_client {
        write_light_client_health(&mut text, light_client, palette);
    }
    text.push_str("\nGateways\n");
    for health in &found.gateways {
        write_ipfs_gateway_health(&mut text, health, palette);
    }
    if let Some(why) = found.network {
        let style = palette.state_style(TrustState::Indeterminate);
        let _ =
            writeln!(text, "\n{style}This machine seems to have no network: {}.{style:#}", why.symptom_of_all_hosts());
        return text;
    }
    let state = if found.advice.is_empty() { TrustState::Trusted } else { TrustState::Untrusted };
    let style = palette.state_style(state);
    if found.advice.is_empty() {
        let _ = writeln!(text, "\n{style}Nothing has to be changed.{style:#}");
        return text;
    }
    let _ = writeln!(text, "\n{style}What to change{style:#}");
    for advice in &found.advice {
        let _ = writeln!(text, "  - {}", UntrustedText::new(advice).with_limit(500));
    }
    text
}

const fn is_rpc_endpoint_healthy(health: &RpcEndpointHealth) -> bool {
    health.reachable && health.error.is_none() && health.resolution_error.is_none()
}

const fn is_beacon_healthy(health: &BeaconApiEndpointHealth) -> bool {
    health.error.is_none() && health.violated_rule.is_none()
}

const fn is_gateway_healthy(health: &IpfsGatewayHealth) -> bool {
    matches!(health.state, IpfsGatewayProbeOutcome::Proven | IpfsGatewayProbeOutcome::WithoutBlock)
}

fn write_rpc_endpoint_health(text: &mut String, health: &RpcEndpointHealth, palette: &Palette) {
    let is_well = is_rpc_endpoint_healthy(health);
    let style = palette.state_style(if is_well { TrustState::Trusted } else { TrustState::Untrusted });
    let mark = if is_well { '✓' } else { '✗' };
    let mut seen = Vec::new();
    seen.extend(health.latency_ms.map(|ms| format!("{ms} ms")));
    seen.extend(health.chain.map(|id| format!("chain {id}")));
    seen.extend(health.latest.as_ref().map(|block| block_age_text("newest", block)));
    seen.extend(health.finalized.as_ref().map(|block| block_age_text("finalized", block)));
    seen.extend(health.clock_ahead_s.map(|seconds| format!("clock {seconds:+} s")));
    seen.extend(health.error.as_ref().map(|error| UntrustedText::new(error).to_string()));
    let fails = |error: &String| format!("a resolution fails: {}", UntrustedText::new(error));
    seen.extend(health.resolution_error.as_ref().map(fails));
    if !health.lacks.is_empty() {
        let lacks: Vec<&str> = health.lacks.iter().map(|lack| lack.as_str()).collect();
        seen.push(format!("without {}", lacks.join(", ")));
    }
    let label = UntrustedText::new(&health.label).to_string();
    let _ = writeln!(text, "  {style}{mark}{style:#} {label:<28}  {}", seen.join(", "));
}

fn block_age_text(what: &str, block: &ProbedBlock) -> String {
    format!("{what} {} ({} s old)", block.number, block.age_s)
}

fn write_light_client_health(text: &mut String, health: &LightClientHealth, palette: &Palette) {
    let age = health
        .checkpoint_age_s
        .map_or_else(|| "not proven".to_owned(), |age| format!("{} old", coarse_duration_text(age)));
    let _ = writeln!(text, "\nLight client of the beacon chain\n  checkpoint {}, {age}", health.checkpoint);
    if let Some(headers) = &health.headers {
        let _ = writeln!(text, "  {}", block_headers_text(headers));
    }
    for endpoint in &health.endpoints {
        write_beacon_health(text, endpoint, palette);
    }
}

fn block_headers_text(headers: &VerifiedHeaderHealth) -> String {
    let VerifiedHeaderHealth { head_slot, current_slot, finalized_slot, finalized_age_s, .. } = headers;
    let signed = match (headers.participants, headers.committee) {
        (Some(participants), Some(committee)) => format!(", {participants} of {committee} signed"),
        _ => String::new(),
    };
    let behind = current_slot.saturating_sub(*head_slot);
    let finalized = format!("finalized {finalized_slot} ({finalized_age_s} s old)");
    format!("head slot {head_slot} ({behind} behind), {finalized}{signed}")
}

fn write_beacon_health(text: &mut String, health: &BeaconApiEndpointHealth, palette: &Palette) {
    let is_valid = is_beacon_healthy(health);
    let style = palette.state_style(if is_valid { TrustState::Trusted } else { TrustState::Untrusted });
    let mark = if is_valid { '✓' } else { '✗' };
    let seen = match (&health.violated_rule, &health.error, &health.headers) {
        (Some(rule), _, _) => format!("false data: {}", UntrustedText::new(rule)),
        (None, Some(error), _) => UntrustedText::new(error).to_string(),
        (None, None, Some(headers)) => block_headers_text(headers),
        (None, None, None) => String::new(),
    };
    let label = UntrustedText::new(&health.label).to_string();
    let _ = writeln!(text, "  {style}{mark}{style:#} {label:<28}  {seen}");
}

/// Whole days or hours, or minutes.
fn coarse_duration_text(seconds: u64) -> String {
    let (amount, unit) = match seconds {
        172_800.. => (seconds / 86_400, "days"),
        7_200.. => (seconds / 3_600, "hours"),
        _ => (seconds / 60, "minutes"),
    };
    format!("{amount} {unit}")
}

fn write_ipfs_gateway_health(text: &mut String, health: &IpfsGatewayHealth, palette: &Palette) {
    let answers = is_gateway_healthy(health);
    let style = palette.state_style(if answers { TrustState::Trusted } else { TrustState::Untrusted });
    let mark = if answers { '✓' } else { '✗' };
    let said = match health.state {
        IpfsGatewayProbeOutcome::Proven => "sends proven blocks".to_owned(),
        IpfsGatewayProbeOutcome::WithoutBlock => "responds, but without the requested block".to_owned(),
        _ => UntrustedText::new(health.error.as_deref().unwrap_or("sends wrong blocks")).to_string(),
    };
    let label = UntrustedText::new(&health.label).to_string();
    let _ = writeln!(text, "  {style}{mark}{style:#} {label:<28}  {} ms, {said}", health.latency_ms);
}
