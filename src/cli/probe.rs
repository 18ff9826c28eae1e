//! `probe`: fetches an agent's terms for a verb without paying, and decides on them.

use clresolve_core::text::UntrustedText;
use clresolve_payment::PaymentDecision;
use clresolve_payment::asset::{AssetId, AssetProperties};
use clresolve_payment::limits::PaymentLimits;
use clresolve_payment::terms::{PaymentOption, PaymentTerms};
use clresolve_resolver::resolve::{EMPTY, SellerProbeRequest, SellerProbeResultDocument};

use super::args::{OutputFormat, ProbeArguments, ProbeMethod};
use super::decide::{decision_conclusion, decision_exit_status, format_decision_line, further_decision_reasons};
use super::exit::ExitStatus;
use super::output::{OutputSink, ResultWriter};
use super::progress::ProgressLine;
use super::render;
use super::verify::verify_progress_message;
use super::world::CommandContext;

pub(super) fn run(args: ProbeArguments) -> anyhow::Result<ExitStatus> {
    super::runtime::run_async_until_interrupt(write_probe_decision(args))
}

async fn write_probe_decision(args: ProbeArguments) -> anyhow::Result<ExitStatus> {
    let output = OutputSink::new(&args.output.out)?;
    let palette = output.palette();
    let mut results = ResultWriter::for_single_result(output, args.output.output_format());
    let progress = ProgressLine::start(verify_progress_message(std::slice::from_ref(&args.name)));
    let world = CommandContext::open_for_payment_command(&args.world).await?;
    world.require_current_judgement()?;
    let resolution = world.resolver.resolve_confirmed(&args.name).await;
    let request = world.resolver.probe_seller(&resolution, &build_seller_probe(&args)).await;
    let decision = world.resolver.decide_payment(&request).await;
    drop(progress);
    let terms = request.parse_terms();
    let limits = world.config.limits.payment_limits();
    let answer = SellerProbeResultDocument::new(terms.as_ref().ok(), &decision);
    results.push(&answer, |format| match format {
        OutputFormat::Text => {
            render::format_verdict_steps(resolution.verdict(), &palette)
                + &format_probe_result(terms.as_ref().ok(), &limits, &decision)
        }
        _ => format_decision_line(&decision),
    })?;
    results.finish()?;
    Ok(decision_exit_status(decision.decision))
}

fn build_seller_probe(args: &ProbeArguments) -> SellerProbeRequest {
    SellerProbeRequest {
        name: args.name.clone(),
        verb: args.verb.clone(),
        body: (args.method == ProbeMethod::Post).then_some(EMPTY),
        ignores_gate: args.untrusted,
    }
}

/// The route, the terms, and the decision, for people.
fn format_probe_result(terms: Option<&PaymentTerms>, limits: &PaymentLimits, decision: &PaymentDecision) -> String {
    let mut lines = Vec::new();
    if let Some(route) = &decision.route {
        lines.push(format!("  route  {} ({})", UntrustedText::new(route.url().as_str()), route.source()));
    }
    lines.extend(payment_demand_lines(terms, limits));
    for reason in further_decision_reasons(decision) {
        lines.push(format!("  {}: {}", reason.code, UntrustedText::new(&reason.message)));
    }
    lines.push(decision_conclusion(decision));
    lines.join("\n") + "\n"
}

/// The demand of each entry: amount, network and payee, or why it has no price.
pub(super) fn payment_demand_lines(terms: Option<&PaymentTerms>, limits: &PaymentLimits) -> Vec<String> {
    let entries = terms.into_iter().flat_map(|terms| terms.entries.iter().enumerate());
    let line = |(index, entry): (usize, &PaymentOption)| {
        let demand = match &entry.price {
            Ok(price) => {
                let id = AssetId { network: price.network.clone(), address: price.asset };
                let listed = limits.assets.get(&id).map(|limit| limit.asset.clone());
                let amount = match listed.or_else(|| AssetProperties::find_known(&id)) {
                    Some(asset) => format!("{} {}", asset.format_units(price.amount), asset.symbol),
                    None => format!("{} of {}", price.amount, price.asset),
                };
                format!("{amount} on {} to {}", price.network, price.pay_to)
            }
            Err(reason) => format!("{}: {}", reason.code, reason.message),
        };
        format!("  terms  {index}: {demand}")
    };
    entries.map(line).collect()
}
