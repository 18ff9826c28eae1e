//! `gate`: decides once whether a request to an agent may pass, as the daemon's gate does.

use clresolve_core::reason::{Effect, Refusal, title_of};
use clresolve_core::state::State;
use clresolve_core::text::Foreign;
use clresolve_verdict::verdict::Verdict;
use serde::Serialize;

use super::args::{Format, GateArgs};
use super::exit::Exit;
use super::hint;
use super::output::{Output, Results};
use super::progress::Progress;
use super::render::{Palette, codes, warned};
use super::verify::waiting_for;
use super::world::World;

#[derive(Serialize)]
struct Decision<'v> {
    name: &'v str,
    verb: Option<&'v str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<&'v str>,
    decision: &'static str,
    code: Option<&'static str>,
    state: State,
    /// The entry to call. `None` unless the request may pass and the card has an entry for the verb.
    entry: Option<&'v str>,
    /// Codes of the verdict's warnings, including those because of which the gate denies.
    warnings: Vec<&'static str>,
    verdict: &'v str,
}

pub(super) fn run(args: GateArgs) -> anyhow::Result<Exit> {
    super::runtime::run_async(decide(args))
}

async fn decide(args: GateArgs) -> anyhow::Result<Exit> {
    let mut results = Results::one(Output::new(&args.output.out)?, args.output.form());
    let progress = Progress::start(waiting_for(std::slice::from_ref(&args.name)));
    let world = World::open_for_payers(&args.world).await?;
    world.check_now()?;
    let resolution = world.resolver.resolve_confirmed(&args.name).await;
    drop(progress);
    let verdict = resolution.verdict();
    let code = world.config.gate.policy().objection(&resolution, args.verb.as_deref(), args.network.as_deref());
    let decision = if code.is_none() { "allow" } else { "deny" };
    let (name, verb, network) = (args.name.as_str(), args.verb.as_deref(), args.network.as_deref());
    let entry = verdict.identity.as_ref().and_then(|agent| agent.entry_for(verb)).filter(|_| code.is_none());
    let (state, warnings) = (verdict.state, codes(verdict, Effect::Warn));
    let listed = if warnings.is_empty() { String::new() } else { format!("warnings: {}\n", warnings.join(", ")) };
    let answer = Decision { name, verb, network, decision, code, state, entry, warnings, verdict: &verdict.id };
    results.push(&answer, |format| match (format, code) {
        (Format::Text, Some(code)) => {
            let because = Foreign::new(because(verdict, code));
            let meant = meant(verdict, code, verb).map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("deny: {code}\n{because}{meant}\n{listed}`clresolve explain {code}` says more.\n")
        }
        (_, Some(code)) => {
            format!("{}\tdeny\t{code}{}\n", Foreign::new(name), warned(verdict, "\t", &Palette::plain()))
        }
        (Format::Text, None) => format!("allow\n{}\n{listed}", Foreign::new(&verdict.summary)),
        (_, None) => format!("{}\tallow{}\n", Foreign::new(name), warned(verdict, "\t", &Palette::plain())),
    })?;
    results.finish()?;
    Ok(if code.is_none() { Exit::Trusted } else { Exit::Untrusted })
}

/// One sentence: the verdict's conclusion or, if the verdict is trusted, the gate's objection.
fn because<'v>(verdict: &'v Verdict, code: &str) -> &'v str {
    if verdict.state != State::Trusted {
        return &verdict.summary;
    }
    title_of(code).unwrap_or_default()
}

/// The verb that was probably meant, if the agent does not implement the requested one.
pub(super) fn meant(verdict: &Verdict, code: &str, verb: Option<&str>) -> Option<String> {
    let verb = verb.filter(|_| code == Refusal::VerbNotImplemented.slug())?;
    hint::on_verb(verb, &verdict.identity.as_ref()?.verbs)
}
