//! `request`: checks a request against the agent's schema, or writes a template.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use clresolve_core::state::State;
use clresolve_core::text::Foreign;
use clresolve_messages::request::question::MAX_BYTES;
use clresolve_messages::request::{RequestCheck, RequestQuestion, Template};

use super::args::{Format, RequestCheckArgs, RequestCommand, RequestTemplateArgs};
use super::exit::Exit;
use super::findings;
use super::input::read;
use super::notice;
use super::output::{Output, Results, json};
use super::progress::Progress;
use super::render::{Palette, denial, write_reason};
use super::verify::waiting_for;
use super::world::World;

/// Random bytes of a request's identifier: enough to be unique.
const ID_BYTES: usize = 16;

pub(super) fn run(command: RequestCommand) -> anyhow::Result<Exit> {
    match command {
        RequestCommand::Check(args) => super::runtime::run_async(check(args)),
        RequestCommand::Template(args) => super::runtime::run_async(template(args)),
    }
}

async fn check(args: RequestCheckArgs) -> anyhow::Result<Exit> {
    let output = Output::new(&args.output.out)?;
    let (palette, width) = (output.palette(), output.width());
    let request = read(&args.request, MAX_BYTES)?;
    let question = RequestQuestion { name: args.name, verb: args.verb, request };
    let progress = Progress::start(waiting_for(std::slice::from_ref(&question.name)));
    let world = World::open(&args.world).await?;
    let resolution = world.resolver.resolve_confirmed(&question.name).await;
    let denied = world.resolver.denied(&resolution, Some(&question.verb));
    let text = String::from_utf8_lossy(&question.request).into();
    let found = world.resolver.check_request_of(&resolution, Arc::new(question)).await;
    drop(progress);
    let mut results = Results::one(output, args.output.form());
    let denied = denied.map(|code| denial(code, resolution.verdict()));
    let shown = Shown { found: &found, denied, file: &args.request, text };
    results.push(&found, |format| match format {
        Format::Short => shown.short(&palette),
        _ => shown.people(&palette, width),
    })?;
    results.finish()?;
    Ok(exit(found.state))
}

async fn template(args: RequestTemplateArgs) -> anyhow::Result<Exit> {
    let output = Output::new(&args.out)?;
    let progress = Progress::start(waiting_for(std::slice::from_ref(&args.name)));
    let world = World::open(&args.world).await?;
    let made = world.resolver.request_template(&args.name, &args.verb, fresh_id()?).await;
    drop(progress);
    match made {
        Ok(made) => {
            output.write_whole((json(&made.request)? + "\n").as_bytes())?;
            say_blanks(&made);
            Ok(Exit::Trusted)
        }
        Err(found) => {
            let shown = Shown { found: &found, denied: None, file: Path::new("-"), text: String::new() };
            anstream::eprint!("{}", shown.people(&Palette::plain(), None));
            Ok(exit(found.state))
        }
    }
}

fn fresh_id() -> anyhow::Result<String> {
    let mut bytes = [0; ID_BYTES];
    getrandom::fill(&mut bytes).context("the system gives no randomness")?;
    Ok(alloy_primitives::hex::encode(bytes))
}

fn say_blanks(made: &Template) {
    for blank in &made.blanks {
        notice::note(format_args!("fill in {}: {}", Foreign::new(&blank.pointer), Foreign::new(&blank.hint)));
    }
    if !made.is_valid {
        notice::note(format_args!("the schema demands more than a template can say; `request check` names it"));
    }
}

const fn exit(state: State) -> Exit {
    match state {
        State::Trusted => Exit::Trusted,
        State::Untrusted => Exit::Untrusted,
        State::Indeterminate => Exit::Indeterminate,
    }
}

/// The result of a check, and the request's text.
struct Shown<'a> {
    found: &'a RequestCheck,
    denied: Option<String>,
    file: &'a Path,
    text: String,
}

impl Shown<'_> {
    /// One line for the result, and one per finding.
    fn short(&self, palette: &Palette) -> String {
        let RequestCheck { state, name, verb, codes, .. } = self.found;
        let style = palette.state(*state);
        let codes = if codes.is_empty() { String::new() } else { format!("  {}", codes.join(",")) };
        let mut text = format!("{style}{state}{style:#}  {}  {}{codes}\n", Foreign::new(name), Foreign::new(verb));
        for finding in &self.found.findings {
            text.push_str(&findings::line(finding, &self.file.display().to_string(), palette));
        }
        text
    }

    /// Each finding with its line, the other reasons, and what to do.
    fn people(&self, palette: &Palette, width: Option<usize>) -> String {
        let RequestCheck { state, name, verb, bound, findings, reasons, .. } = self.found;
        let style = palette.state(*state);
        let mut text = format!("{style}{state}{style:#}  request to {}, {}\n", Foreign::new(name), Foreign::new(verb));
        if let Some(bound) = bound {
            let _ = writeln!(text, "  schema  {}\n          {}", Foreign::new(&bound.id), bound.sha256);
        }
        text.push('\n');
        text.push_str(&findings::drawn(findings, &self.file.display().to_string(), &self.text, palette, width));
        for reason in reasons {
            write_reason(&mut text, reason, palette);
        }
        let advice = match (state, &self.denied) {
            (State::Trusted, None) => " It may be sent.".to_owned(),
            (State::Trusted, Some(why)) => format!(" Do not send it: {why}"),
            (State::Untrusted, _) => " Do not send it.".to_owned(),
            (State::Indeterminate, _) => " Do not send it yet.".to_owned(),
        };
        let gap = if reasons.is_empty() { "" } else { "\n" };
        let _ = writeln!(text, "{gap}{style}{}{advice}{style:#}", Foreign::new(&self.found.summary));
        text
    }
}
