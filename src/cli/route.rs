//! `route`: which URL an agent's entry stands for, and who says so.

use clresolve_payment::route::Route;

use super::args::{Format, RouteArgs};
use super::exit::Exit;
use super::output::{Output, Results};
use super::progress::Progress;
use super::verify::waiting_for;
use super::world::World;
use crate::reason::Reason;
use crate::resolve::RouteAnswer;
use crate::text::Foreign;
use crate::verdict::{State, Verdict};

pub(super) fn run(args: RouteArgs) -> anyhow::Result<Exit> {
    super::runtime::run_async(show(args))
}

async fn show(args: RouteArgs) -> anyhow::Result<Exit> {
    let mut results = Results::new(Output::new(&args.output.out)?, args.output.form(), false);
    let progress = Progress::start(waiting_for(std::slice::from_ref(&args.name)));
    let world = World::open(&args.world).await?;
    let resolution = world.resolver.resolve(&args.name).await;
    drop(progress);
    let verdict = resolution.verdict();
    let route = world.resolver.route(&resolution, args.verb.as_deref());
    let answer = RouteAnswer::new(&args.name, args.verb.as_deref(), verdict, &route);
    results.push(&answer, |format| text(&args.name, &route, verdict, format))?;
    results.finish()?;
    Ok(match verdict.state {
        State::Trusted if route.is_err() => Exit::Indeterminate,
        state => state.into(),
    })
}

fn text(name: &str, route: &Result<Route, Box<Reason>>, verdict: &Verdict, format: Format) -> String {
    let name = Foreign::new(name);
    let said = match route {
        Ok(route) => format!("{}\t{}", Foreign::new(route.url.as_str()), route.source),
        Err(reason) => format!("-\t{}", reason.code),
    };
    if format != Format::Text {
        return format!("{name}\t{}\t{said}\n", verdict.state);
    }
    let route = match route {
        Ok(route) => format!("{}\n  says: {}\n", Foreign::new(route.url.as_str()), route.source),
        Err(reason) => format!("{}: {}\n`clresolve explain {0}` says more.\n", reason.code, reason.message),
    };
    match verdict.state {
        State::Trusted => route,
        _ => format!("{route}The agent is not trusted, so do not call it. {}\n", Foreign::new(&verdict.summary)),
    }
}
