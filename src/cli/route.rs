//! `route`: shows the URL behind an agent's entry, and its source.

use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::state::TrustState;
use clresolve_core::text::UntrustedText;
use clresolve_payment::route::AgentRoute;
use clresolve_resolver::resolve::AgentRouteDocument;
use clresolve_verdict::verdict::Verdict;

use super::args::{OutputFormat, RouteArguments};
use super::exit::ExitStatus;
use super::gate::suggest_implemented_verb;
use super::output::{OutputSink, ResultWriter};
use super::progress::ProgressLine;
use super::render::gate_denial_text;
use super::verify::verify_progress_message;
use super::world::CommandContext;

pub(super) fn run(args: RouteArguments) -> anyhow::Result<ExitStatus> {
    super::runtime::run_async_until_interrupt(show_route(args))
}

async fn show_route(args: RouteArguments) -> anyhow::Result<ExitStatus> {
    let mut results = ResultWriter::for_single_result(OutputSink::new(&args.output.out)?, args.output.output_format());
    let progress = ProgressLine::start(verify_progress_message(std::slice::from_ref(&args.name)));
    let world = CommandContext::open(&args.world).await?;
    let resolution = world.resolver.resolve_confirmed(&args.name).await;
    drop(progress);
    let verdict = resolution.verdict();
    let route = world.resolver.agent_route(&resolution, args.verb.as_deref());
    let answer = AgentRouteDocument::new(&world.resolver, &args.name, args.verb.as_deref(), &resolution, &route);
    let denied = answer.gate_denial_reason();
    results.push(&answer, |format| match format {
        OutputFormat::Text => format_route(&route, denied, verdict, args.verb.as_deref()),
        _ => format_route_line(&args.name, &route, denied, verdict),
    })?;
    results.finish()?;
    Ok(match verdict.state {
        TrustState::Trusted if denied.is_some() => ExitStatus::Untrusted,
        TrustState::Trusted if route.is_err() => ExitStatus::Indeterminate,
        state => state.into(),
    })
}

fn format_route(
    route: &Result<AgentRoute, Box<Reason>>,
    denied: Option<&'static str>,
    verdict: &Verdict,
    verb: Option<&str>,
) -> String {
    let route = match route {
        Ok(route) => format!("{}\n  says: {}\n", UntrustedText::new(route.url().as_str()), route.source()),
        Err(reason) => format!("{}: {}\n`clresolve explain {0}` says more.\n", reason.code, reason.message),
    };
    match denied {
        None => route,
        Some(_) if verdict.state != TrustState::Trusted => {
            format!("{route}The agent is not trusted, so do not call it. {}\n", UntrustedText::new(&verdict.summary))
        }
        Some(code) if code == ReasonCode::ChainBehind.slug() => {
            format!("{route}Do not call it: {}\n", gate_denial_text(code, verdict))
        }
        Some(code) => {
            let meant =
                suggest_implemented_verb(verdict, code, verb).map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!(
                "{route}The gate denies it, so do not call it: {code}{meant}\n`clresolve explain {code}` says more.\n"
            )
        }
    }
}

/// The route on one line. Without permission to call, it contains no URL, since scripts extract and call it.
fn format_route_line(
    name: &str,
    route: &Result<AgentRoute, Box<Reason>>,
    denied: Option<&'static str>,
    verdict: &Verdict,
) -> String {
    let said = match (denied, route) {
        (Some(code), _) => format!("-\t{code}"),
        (None, Err(reason)) => format!("-\t{}", reason.code),
        (None, Ok(route)) => format!("{}\t{}", UntrustedText::new(route.url().as_str()), route.source()),
    };
    format!("{}\t{}\t{said}\n", UntrustedText::new(name), verdict.state)
}
