//! `gate`: decides once whether a request to an agent may pass, as the daemon's gate does.

use clresolve_core::reason::{ReasonEffect, RefusalCode, title_for_slug};
use clresolve_core::state::TrustState;
use clresolve_core::text::UntrustedText;
use clresolve_verdict::verdict::Verdict;
use serde::Serialize;

use super::args::{GateArguments, OutputFormat};
use super::exit::ExitStatus;
use super::hint;
use super::output::{OutputSink, ResultWriter};
use super::progress::ProgressLine;
use super::render::{Palette, reason_codes, warning_suffix};
use super::verify::verify_progress_message;
use super::world::CommandContext;

#[derive(Serialize)]
struct GateDecision<'v> {
    name: &'v str,
    verb: Option<&'v str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<&'v str>,
    decision: &'static str,
    code: Option<&'static str>,
    state: TrustState,
    /// The entry to call. `None` unless the request may pass and the card has an entry for the verb.
    entry: Option<&'v str>,
    /// Codes of the verdict's warnings, including those because of which the gate denies.
    warnings: Vec<&'static str>,
    verdict: &'v str,
}

pub(super) fn run(args: GateArguments) -> anyhow::Result<ExitStatus> {
    super::runtime::run_async_until_interrupt(write_gate_decision(args))
}

async fn write_gate_decision(args: GateArguments) -> anyhow::Result<ExitStatus> {
    let mut results = ResultWriter::for_single_result(OutputSink::new(&args.output.out)?, args.output.output_format());
    let progress = ProgressLine::start(verify_progress_message(std::slice::from_ref(&args.name)));
    let world = CommandContext::open_for_payment_command(&args.world).await?;
    world.require_current_judgement()?;
    let resolution = world.resolver.resolve_confirmed(&args.name).await;
    drop(progress);
    let verdict = resolution.verdict();
    let code =
        world.config.gate.gate_policy().request_objection(&resolution, args.verb.as_deref(), args.network.as_deref());
    let decision = if code.is_none() { "allow" } else { "deny" };
    let (name, verb, network) = (args.name.as_str(), args.verb.as_deref(), args.network.as_deref());
    let entry = verdict.identity.as_ref().and_then(|agent| agent.entry_url_for_verb(verb)).filter(|_| code.is_none());
    let (state, warnings) = (verdict.state, reason_codes(verdict, ReasonEffect::Warn));
    let listed = if warnings.is_empty() { String::new() } else { format!("warnings: {}\n", warnings.join(", ")) };
    let answer = GateDecision { name, verb, network, decision, code, state, entry, warnings, verdict: &verdict.id };
    results.push(&answer, |format| match (format, code) {
        (OutputFormat::Text, Some(code)) => {
            let because = UntrustedText::new(denial_sentence(verdict, code));
            let meant =
                suggest_implemented_verb(verdict, code, verb).map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("deny: {code}\n{because}{meant}\n{listed}`clresolve explain {code}` says more.\n")
        }
        (_, Some(code)) => {
            format!("{}\tdeny\t{code}{}\n", UntrustedText::new(name), warning_suffix(verdict, "\t", &Palette::plain()))
        }
        (OutputFormat::Text, None) => format!("allow\n{}\n{listed}", UntrustedText::new(&verdict.summary)),
        (_, None) => {
            format!("{}\tallow{}\n", UntrustedText::new(name), warning_suffix(verdict, "\t", &Palette::plain()))
        }
    })?;
    results.finish()?;
    Ok(if code.is_none() { ExitStatus::Trusted } else { ExitStatus::Untrusted })
}

/// One sentence: the verdict's conclusion or, if the verdict is trusted, the gate's objection.
fn denial_sentence<'v>(verdict: &'v Verdict, code: &str) -> &'v str {
    if verdict.state != TrustState::Trusted {
        return &verdict.summary;
    }
    title_for_slug(code).unwrap_or_default()
}

/// The verb that was probably meant, if the agent does not implement the requested one.
pub(super) fn suggest_implemented_verb(verdict: &Verdict, code: &str, verb: Option<&str>) -> Option<String> {
    let verb = verb.filter(|_| code == RefusalCode::VerbNotImplemented.slug())?;
    hint::hint_on_unknown_verb(verb, &verdict.identity.as_ref()?.verbs)
}
