//! `probe`: fetches an agent's terms for a verb without paying, and decides on them.

use clresolve_core::text::Foreign;
use clresolve_payment::Decision;
use clresolve_payment::asset::{AssetId, AssetProperties};
use clresolve_payment::limits::Limits;
use clresolve_payment::terms::{Entry, Terms};
use clresolve_resolver::resolve::{EMPTY, Probe, ProbeAnswer, Sellers};

use super::args::{Format, ProbeArgs, ProbeMethod};
use super::decide::{conclusion, exit, further, short};
use super::exit::Exit;
use super::output::{Output, Results};
use super::progress::Progress;
use super::render;
use super::verify::waiting_for;
use super::world::World;

pub(super) fn run(args: ProbeArgs) -> anyhow::Result<Exit> {
    super::runtime::run_async(probe(args))
}

async fn probe(args: ProbeArgs) -> anyhow::Result<Exit> {
    let output = Output::new(&args.output.out)?;
    let palette = output.palette();
    let mut results = Results::one(output, args.output.form());
    let progress = Progress::start(waiting_for(std::slice::from_ref(&args.name)));
    let world = World::open_for_payers(&args.world).await?;
    world.check_now()?;
    let resolution = world.resolver.resolve_confirmed(&args.name).await;
    let request = world.resolver.probe(&resolution, &asked(&args)).await;
    let decision = world.resolver.decide(&request).await;
    drop(progress);
    let terms = request.terms();
    let limits = world.config.limits.limits();
    let answer = ProbeAnswer::new(terms.as_ref().ok(), &decision);
    results.push(&answer, |format| match format {
        Format::Text => render::steps(resolution.verdict(), &palette) + &text(terms.as_ref().ok(), &limits, &decision),
        _ => short(&decision),
    })?;
    results.finish()?;
    Ok(exit(decision.decision))
}

fn asked(args: &ProbeArgs) -> Probe {
    Probe {
        name: args.name.clone(),
        verb: args.verb.clone(),
        body: (args.method == ProbeMethod::Post).then_some(EMPTY),
        sellers: if args.untrusted { Sellers::OfAllAgents } else { Sellers::OfAllowedAgents },
    }
}

/// The route, the terms, and the decision, for people.
fn text(terms: Option<&Terms>, limits: &Limits, decision: &Decision) -> String {
    let mut lines = Vec::new();
    if let Some(route) = &decision.route {
        lines.push(format!("  route  {} ({})", Foreign::new(route.url().as_str()), route.source()));
    }
    lines.extend(demanded(terms, limits));
    for reason in further(decision) {
        lines.push(format!("  {}: {}", reason.code, Foreign::new(&reason.message)));
    }
    lines.push(conclusion(decision));
    lines.join("\n") + "\n"
}

/// The demand of each entry: amount, network and payee, or why it has no price.
pub(super) fn demanded(terms: Option<&Terms>, limits: &Limits) -> Vec<String> {
    let entries = terms.into_iter().flat_map(|terms| terms.entries.iter().enumerate());
    let line = |(index, entry): (usize, &Entry)| {
        let demand = match &entry.price {
            Ok(price) => {
                let id = AssetId { network: price.network.clone(), address: price.asset };
                let listed = limits.assets.get(&id).map(|limit| limit.asset.clone());
                let amount = match listed.or_else(|| AssetProperties::known(&id)) {
                    Some(asset) => format!("{} {}", asset.units(price.amount), asset.symbol),
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
