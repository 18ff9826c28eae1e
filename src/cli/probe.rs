//! `probe`: what an agent demands for a verb, asked without paying, and whether that may be paid.

use clresolve_payment::Decision;
use clresolve_payment::asset::{Asset, AssetId};
use clresolve_payment::limits::Limits;
use clresolve_payment::request::{DecisionRequest, Demand};
use clresolve_payment::terms::{Reply, Terms, Version};
use serde::Serialize;
use serde_json::{Value, json};

use super::args::{Format, ProbeArgs, ProbeMethod};
use super::decide::{check_block, exit, short};
use super::exit::Exit;
use super::output::{Output, Results};
use super::progress::Progress;
use super::verify::waiting_for;
use super::world::World;
use crate::reason::{Code, Reason};
use crate::text::Foreign;
use crate::verdict::{Resolution, Verdict};

/// The answer, for programs.
#[derive(Serialize)]
struct Answer<'a> {
    /// The terms as they were read; `None` where there are none.
    terms: Option<Value>,
    decision: &'a Decision,
}

pub(super) fn run(args: ProbeArgs) -> anyhow::Result<Exit> {
    super::run_async(probe(args))
}

async fn probe(args: ProbeArgs) -> anyhow::Result<Exit> {
    let mut results = Results::new(Output::new(&args.output.out)?, args.output.form(), false);
    let progress = Progress::start(waiting_for(std::slice::from_ref(&args.name)));
    let world = World::open(&args.world).await?;
    check_block(&world)?;
    let resolution = world.resolver.resolve(&args.name).await;
    let request = asked(&world, &resolution, &args).await;
    let decision = world.resolver.decide(&request).await;
    drop(progress);
    let terms = request.terms();
    let limits = world.config.limits.limits();
    let answer = Answer { terms: terms.as_ref().ok().map(written), decision: &decision };
    results.push(&answer, |format| match format {
        Format::Text => text(resolution.verdict(), terms.as_ref().ok(), &limits, &decision),
        _ => short(&decision),
    })?;
    results.finish()?;
    Ok(exit(decision.decision))
}

/// What the route answers, as a question about it. A seller that must not be asked, or of which nobody knows where it is,
/// is not asked.
async fn asked(world: &World, resolution: &Resolution, args: &ProbeArgs) -> DecisionRequest {
    let unasked = |reason: Box<Reason>| {
        let question = DecisionRequest::about_reply(&args.name, &args.verb, "", Reply::default());
        DecisionRequest { url: None, demand: Demand::Unasked(reason), ..question }
    };
    let policy = world.config.gate.policy();
    if !args.untrusted && policy.objection(resolution, Some(&args.verb), None).is_some() {
        return unasked(Box::new(Reason::new(Code::InvokeRefusedUntrusted)));
    }
    let route = match world.resolver.route(resolution, Some(&args.verb)) {
        Ok(route) => route,
        Err(reason) => return unasked(reason),
    };
    let url = route.url.as_str();
    let body = (args.method == ProbeMethod::Post).then_some("{}");
    match world.resolver.unpaid(url, body).await {
        Ok(reply) => DecisionRequest::about_reply(&args.name, &args.verb, url, reply),
        Err(error) => {
            let reason = Reason::new(Code::InvokeNoRoute).message("The seller cannot be asked.");
            unasked(Box::new(reason.observed(error.to_string())))
        }
    }
}

fn written(terms: &Terms) -> Value {
    let entries: Vec<_> = terms.entries.iter().map(|entry| &entry.json).collect();
    let version = match terms.version {
        Version::V1 => 1,
        Version::V2 => 2,
    };
    json!({"x402Version": version, "accepts": entries})
}

/// The walk for people, down to the sentence on what is paid to whom.
fn text(verdict: &Verdict, terms: Option<&Terms>, limits: &Limits, decision: &Decision) -> String {
    let mut lines = vec![format!("{} {}", Foreign::new(&decision.name), verdict.state)];
    lines.push(format!("  {}", Foreign::new(&verdict.summary)));
    if let Some(route) = &decision.route {
        lines.push(format!("  route  {} ({})", Foreign::new(route.url.as_str()), route.source));
    }
    for (index, entry) in terms.into_iter().flat_map(|terms| terms.entries.iter().enumerate()) {
        let said = match &entry.price {
            Ok(price) => {
                let id = AssetId { network: price.network.clone(), address: price.asset };
                let amount = match limits.assets.get(&id).map(|limit| limit.asset.clone()).or_else(|| Asset::known(&id))
                {
                    Some(asset) => format!("{} {}", asset.units(price.amount), asset.symbol),
                    None => format!("{} of {}", price.amount, price.asset),
                };
                format!("{amount} on {} to {}", price.network, price.pay_to)
            }
            Err(reason) => format!("{}: {}", reason.code, reason.message),
        };
        lines.push(format!("  terms  {index}: {said}"));
    }
    for reason in &decision.reasons {
        lines.push(format!("  {}: {}", reason.code, Foreign::new(&reason.message)));
    }
    lines.push(Foreign::new(&decision.reason).to_string());
    if let (true, Some(code)) = (decision.abort, decision.codes.first()) {
        lines.push(format!("Do not pay. `clresolve explain {code}` says more."));
    }
    lines.join("\n") + "\n"
}
