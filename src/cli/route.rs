//! `route`: shows the URL behind an agent's entry, and its source.

use clresolve_core::reason::{Code, Reason};
use clresolve_core::state::State;
use clresolve_core::text::Foreign;
use clresolve_payment::route::Route;
use clresolve_resolver::resolve::RouteAnswer;
use clresolve_verdict::verdict::Verdict;

use super::args::{Format, RouteArgs};
use super::exit::Exit;
use super::gate::meant;
use super::output::{Output, Results};
use super::progress::Progress;
use super::render::denial;
use super::verify::waiting_for;
use super::world::World;

pub(super) fn run(args: RouteArgs) -> anyhow::Result<Exit> {
    super::runtime::run_async(show(args))
}

async fn show(args: RouteArgs) -> anyhow::Result<Exit> {
    let mut results = Results::one(Output::new(&args.output.out)?, args.output.form());
    let progress = Progress::start(waiting_for(std::slice::from_ref(&args.name)));
    let world = World::open(&args.world).await?;
    let resolution = world.resolver.resolve_confirmed(&args.name).await;
    drop(progress);
    let verdict = resolution.verdict();
    let route = world.resolver.route(&resolution, args.verb.as_deref());
    let answer = RouteAnswer::new(&world.resolver, &args.name, args.verb.as_deref(), &resolution, &route);
    let denied = answer.denied();
    results.push(&answer, |format| match format {
        Format::Text => text(&route, denied, verdict, args.verb.as_deref()),
        _ => short(&args.name, &route, denied, verdict),
    })?;
    results.finish()?;
    Ok(match verdict.state {
        State::Trusted if denied.is_some() => Exit::Untrusted,
        State::Trusted if route.is_err() => Exit::Indeterminate,
        state => state.into(),
    })
}

fn text(
    route: &Result<Route, Box<Reason>>,
    denied: Option<&'static str>,
    verdict: &Verdict,
    verb: Option<&str>,
) -> String {
    let route = match route {
        Ok(route) => format!("{}\n  says: {}\n", Foreign::new(route.url().as_str()), route.source()),
        Err(reason) => format!("{}: {}\n`clresolve explain {0}` says more.\n", reason.code, reason.message),
    };
    match denied {
        None => route,
        Some(_) if verdict.state != State::Trusted => {
            format!("{route}The agent is not trusted, so do not call it. {}\n", Foreign::new(&verdict.summary))
        }
        Some(code) if code == Code::ChainBehind.slug() => format!("{route}Do not call it: {}\n", denial(code, verdict)),
        Some(code) => {
            let meant = meant(verdict, code, verb).map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!(
                "{route}The gate denies it, so do not call it: {code}{meant}\n`clresolve explain {code}` says more.\n"
            )
        }
    }
}

/// The route on one line. Without permission to call, it contains no URL, since scripts extract and call it.
fn short(name: &str, route: &Result<Route, Box<Reason>>, denied: Option<&'static str>, verdict: &Verdict) -> String {
    let said = match (denied, route) {
        (Some(code), _) => format!("-\t{code}"),
        (None, Err(reason)) => format!("-\t{}", reason.code),
        (None, Ok(route)) => format!("{}\t{}", Foreign::new(route.url().as_str()), route.source()),
    };
    format!("{}\t{}\t{said}\n", Foreign::new(name), verdict.state)
}
