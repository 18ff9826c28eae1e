//! `request`: checks a request against the agent's schema, or writes a template.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use clresolve_core::state::TrustState;
use clresolve_core::text::UntrustedText;
use clresolve_messages::request::question::MAX_BYTES;
use clresolve_messages::request::{OutgoingAgentRequest, RequestCheckDocument, RequestTemplate};

use super::args::{AgentRequestCommand, OutputFormat, RequestCheckArguments, RequestTemplateArguments};
use super::exit::ExitStatus;
use super::findings;
use super::input::read_file_or_stdin;
use super::notice;
use super::output::{OutputSink, ResultWriter, pretty_json};
use super::progress::ProgressLine;
use super::render::{Palette, gate_denial_text, write_reason};
use super::verify::verify_progress_message;
use super::world::CommandContext;

/// Random bytes of a request's identifier: enough to be unique.
const ID_BYTES: usize = 16;

pub(super) fn run(command: AgentRequestCommand) -> anyhow::Result<ExitStatus> {
    match command {
        AgentRequestCommand::Check(args) => super::runtime::run_async_until_interrupt(check_agent_request(args)),
        AgentRequestCommand::Template(args) => super::runtime::run_async_until_interrupt(write_request_template(args)),
    }
}

async fn check_agent_request(args: RequestCheckArguments) -> anyhow::Result<ExitStatus> {
    let output = OutputSink::new(&args.output.out)?;
    let (palette, width) = (output.palette(), output.terminal_width());
    let request = read_file_or_stdin(&args.request, MAX_BYTES)?;
    let question = OutgoingAgentRequest { name: args.name, verb: args.verb, request };
    let progress = ProgressLine::start(verify_progress_message(std::slice::from_ref(&question.name)));
    let world = CommandContext::open(&args.world).await?;
    let resolution = world.resolver.resolve_confirmed(&question.name).await;
    let denied = world.resolver.gate_denial_reason(&resolution, Some(&question.verb));
    let text = String::from_utf8_lossy(&question.request).into();
    let found = world.resolver.check_request_with_resolution(&resolution, Arc::new(question)).await;
    drop(progress);
    let mut results = ResultWriter::for_single_result(output, args.output.output_format());
    let denied = denied.map(|code| gate_denial_text(code, resolution.verdict()));
    let shown = RequestCheckReport { found: &found, denied, file: &args.request, text };
    results.push(&found, |format| match format {
        OutputFormat::Short => shown.format_short(&palette),
        _ => shown.format_text(&palette, width),
    })?;
    results.finish()?;
    Ok(found.state.into())
}

async fn write_request_template(args: RequestTemplateArguments) -> anyhow::Result<ExitStatus> {
    let output = OutputSink::new(&args.out)?;
    let progress = ProgressLine::start(verify_progress_message(std::slice::from_ref(&args.name)));
    let world = CommandContext::open(&args.world).await?;
    let made = world.resolver.request_template(&args.name, &args.verb, generate_request_id()?).await;
    drop(progress);
    match made {
        Ok(made) => {
            output.write_all_and_finish((pretty_json(&made.request)? + "\n").as_bytes())?;
            report_template_blanks(&made);
            Ok(ExitStatus::Trusted)
        }
        Err(found) => {
            let shown = RequestCheckReport { found: &found, denied: None, file: Path::new("-"), text: String::new() };
            anstream::eprint!("{}", shown.format_text(&Palette::plain(), None));
            Ok(found.state.into())
        }
    }
}

fn generate_request_id() -> anyhow::Result<String> {
    let mut bytes = [0; ID_BYTES];
    getrandom::fill(&mut bytes).context("the system gives no randomness")?;
    Ok(alloy_primitives::hex::encode(bytes))
}

fn report_template_blanks(made: &RequestTemplate) {
    for blank in &made.blanks {
        notice::print_notice(format_args!(
            "fill in {}: {}",
            UntrustedText::new(&blank.pointer),
            UntrustedText::new(&blank.hint)
        ));
    }
    if !made.is_valid {
        notice::print_notice(format_args!("the schema demands more than a template can say; `request check` names it"));
    }
}

/// The result of a check, and the request's text.
struct RequestCheckReport<'a> {
    found: &'a RequestCheckDocument,
    denied: Option<String>,
    file: &'a Path,
    text: String,
}

impl RequestCheckReport<'_> {
    /// One line for the result, and one per finding.
    fn format_short(&self, palette: &Palette) -> String {
        let RequestCheckDocument { state, name, verb, codes, .. } = self.found;
        let style = palette.state_style(*state);
        let codes = if codes.is_empty() { String::new() } else { format!("  {}", codes.join(",")) };
        let mut text =
            format!("{style}{state}{style:#}  {}  {}{codes}\n", UntrustedText::new(name), UntrustedText::new(verb));
        for finding in &self.found.findings {
            text.push_str(&findings::format_finding_line(finding, &self.file.display().to_string(), palette));
        }
        text
    }

    /// Each finding with its line, the other reasons, and what to do.
    fn format_text(&self, palette: &Palette, width: Option<usize>) -> String {
        let RequestCheckDocument { state, name, verb, bound, findings, reasons, .. } = self.found;
        let style = palette.state_style(*state);
        let mut text =
            format!("{style}{state}{style:#}  request to {}, {}\n", UntrustedText::new(name), UntrustedText::new(verb));
        if let Some(bound) = bound {
            let _ = writeln!(text, "  schema  {}\n          {}", UntrustedText::new(&bound.id), bound.sha256);
        }
        text.push('\n');
        text.push_str(&findings::format_findings(
            findings,
            &self.file.display().to_string(),
            &self.text,
            palette,
            width,
        ));
        for reason in reasons {
            write_reason(&mut text, reason, palette);
        }
        let advice = match (state, &self.denied) {
            (TrustState::Trusted, None) => " It may be sent.".to_owned(),
            (TrustState::Trusted, Some(why)) => format!(" Do not send it: {why}"),
            (TrustState::Untrusted, _) => " Do not send it.".to_owned(),
            (TrustState::Indeterminate, _) => " Do not send it yet.".to_owned(),
        };
        let gap = if reasons.is_empty() { "" } else { "\n" };
        let _ = writeln!(text, "{gap}{style}{}{advice}{style:#}", UntrustedText::new(&self.found.summary));
        text
    }
}
