//! Formats verdicts for people. All foreign text goes through [`UntrustedText`].

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use serde_json::Value;

use clresolve_core::reason::{FixerRole, Reason, ReasonEffect, ResolutionStep, title_for_slug};
use clresolve_core::state::TrustState;
use clresolve_core::text::UntrustedText;
use clresolve_verdict::build::IN_PARALLEL_WITH;
use clresolve_verdict::check::records::NO_NETWORK;
use clresolve_verdict::verdict::{AgentIdentity, CardReference, ChainAnchor, StepReport, StepStatus, Verdict};

/// Maximum number of evidence lines per step. Only repeated foreign lists exceed it.
const MAX_EVIDENCE_LINES: usize = 100;

/// Maximum depth of formatted evidence. Deeper values are shown as JSON.
const MAX_EVIDENCE_DEPTH: usize = 4;

/// Maximum number of characters of evidence per step in the short form.
const BRIEF_CHARACTERS: usize = 100;

/// The command that decides whom to pay, since no verdict does.
const WHOM_TO_PAY: &str = "`clresolve check URL` does";

/// Maximum line length of running text, in characters.
pub(super) const LINE_WIDTH: usize = 92;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Palette {
    good: Style,
    bad: Style,
    unsure: Style,
    dim: Style,
    bold: Style,
}

impl Palette {
    /// No styles: for files, pipes and `NO_COLOR`.
    pub(super) fn plain() -> Self {
        Self::default()
    }

    pub(super) fn is_plain(&self) -> bool {
        *self == Self::plain()
    }

    pub(super) const fn with_colours() -> Self {
        Self {
            good: AnsiColor::Green.on_default(),
            bad: AnsiColor::Red.on_default().bold(),
            unsure: AnsiColor::Yellow.on_default(),
            dim: Style::new().dimmed(),
            bold: Style::new().bold(),
        }
    }

    pub(super) const fn effect_style(&self, effect: ReasonEffect) -> Style {
        match effect {
            ReasonEffect::Fail => self.bad,
            ReasonEffect::Unknown => self.unsure,
            ReasonEffect::Warn => self.dim,
        }
    }

    pub(super) const fn state_style(&self, state: TrustState) -> Style {
        match state {
            TrustState::Trusted => self.good,
            TrustState::Untrusted => self.bad,
            TrustState::Indeterminate => self.unsure,
        }
    }

    const fn status_style(&self, status: StepStatus) -> Style {
        match status {
            StepStatus::Pass => self.good,
            StepStatus::Fail => self.bad,
            StepStatus::Unknown => self.unsure,
            StepStatus::Skip => self.dim,
        }
    }
}

/// One line: state, name, the entry or the codes that decided, and the codes of warnings.
pub(super) fn format_verdict_line(verdict: &Verdict, palette: &Palette) -> String {
    let style = palette.state_style(verdict.state);
    let rest = match verdict.state {
        TrustState::Trusted => x402_entry(verdict).map_or_else(String::new, |e| UntrustedText::new(e).to_string()),
        TrustState::Untrusted => reason_codes(verdict, ReasonEffect::Fail).join(","),
        TrustState::Indeterminate => reason_codes(verdict, ReasonEffect::Unknown).join(","),
    };
    let warnings = warning_suffix(verdict, "  ", palette);
    format!("{style}{}{style:#}  {}  {rest}{warnings}\n", verdict.state, escaped_verdict_name(verdict))
}

/// The codes of warnings at the end of a short line, after `separator`. Empty without warnings.
pub(super) fn warning_suffix(verdict: &Verdict, separator: &str, palette: &Palette) -> String {
    match reason_codes(verdict, ReasonEffect::Warn).join(",") {
        none if none.is_empty() => none,
        codes => format!("{separator}{0}warn: {codes}{0:#}", palette.effect_style(ReasonEffect::Warn)),
    }
}

/// Objections to an agent with a trusted verdict.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ObjectionsToAgent<'a> {
    /// A clause for each `--expect-*` that the verdict does not meet.
    pub(super) unmet: &'a [String],
    /// The code with which the gate under the same configuration denies the agent. Also `None` if the verdict is not
    /// from a live resolution, since the gate accepts no other.
    pub(super) denied: Option<&'static str>,
}

impl<'a> ObjectionsToAgent<'a> {
    /// Only the objections of the command line.
    pub(super) const fn from_unmet_expectations(unmet: &'a [String]) -> Self {
        Self { unmet, denied: None }
    }

    fn is_none(self) -> bool {
        self.unmet.is_empty() && self.denied.is_none()
    }

    /// All objections as the end of a sentence, with the meaning of the gate's code.
    fn objection_clauses(self) -> String {
        let denied = self.denied.map(|code| format!("the gate would deny it ({code})"));
        let clauses: Vec<String> = self.unmet.iter().cloned().chain(denied).collect();
        let meaning = self.denied.and_then(title_for_slug).map_or_else(String::new, |title| format!(" {title}"));
        format!("{}.{meaning}", clauses.join(", and "))
    }
}

/// Each step with its mark and result, the reasons, and what to do.
pub(super) fn format_verdict_walk(verdict: &Verdict, against: ObjectionsToAgent<'_>, palette: &Palette) -> String {
    let mut text = format_verdict_steps(verdict, palette);
    write_verdict_ending(&mut text, verdict, against, palette);
    text
}

/// The name with its state, and each step with its mark and result.
pub(super) fn format_verdict_steps(verdict: &Verdict, palette: &Palette) -> String {
    let mut text = verdict_heading(verdict, palette);
    for step in &verdict.steps {
        let style = palette.status_style(step.status);
        let line = format!(
            "  {style}{}{style:#} {:<12} {}",
            step_mark(step.status),
            step.step.slug(),
            step_result_text(verdict, step)
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// Like [`format_verdict_walk`], with all evidence and the time of each step.
pub(super) fn format_verdict_trace(verdict: &Verdict, against: ObjectionsToAgent<'_>, palette: &Palette) -> String {
    let mut text = verdict_heading(verdict, palette);
    for step in &verdict.steps {
        let style = palette.status_style(step.status);
        let _ = writeln!(
            text,
            "  {style}{}{style:#} {:<12} {:>6} ms  {}{}",
            step_mark(step.status),
            step.step.slug(),
            step.ms,
            step_status_word(step.status),
            parallel_steps_text(step)
        );
        let mut evidence = step.evidence.clone();
        evidence.as_object_mut().map(|members| members.remove(IN_PARALLEL_WITH));
        let mut lines = Vec::new();
        push_evidence_lines(&mut lines, "", &evidence, 0);
        for line in lines.iter().take(MAX_EVIDENCE_LINES) {
            let _ = writeln!(text, "      {line}");
        }
        if lines.len() > MAX_EVIDENCE_LINES {
            let _ = writeln!(text, "      … and {} more; -o json has all", lines.len() - MAX_EVIDENCE_LINES);
        }
    }
    let dim = palette.dim;
    let _ = writeln!(
        text,
        "  {dim}{}; verdict {}{dim:#}",
        total_time_text(&verdict.steps),
        UntrustedText::new(&verdict.id)
    );
    write_verdict_ending(&mut text, verdict, against, palette);
    text
}

/// The steps that ran in parallel with this one.
fn parallel_steps_text(step: &StepReport) -> String {
    let others: Vec<_> =
        step.evidence[IN_PARALLEL_WITH].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if others.is_empty() {
        String::new()
    } else {
        format!(", in parallel with {}", UntrustedText::new(&others.join(", ")))
    }
}

/// The total time, and which steps ran in parallel: of these, only the longest counts.
fn total_time_text(steps: &[StepReport]) -> String {
    let of = |step: ResolutionStep| steps.iter().find(|report| report.step == step);
    let asked = |step: &ResolutionStep| of(*step).is_some_and(|report| report.evidence[IN_PARALLEL_WITH].is_array());
    let parallel: Vec<ResolutionStep> = ResolutionStep::WALK.into_iter().filter(asked).collect();
    let longest = parallel.iter().filter_map(|step| of(*step)).map(|report| report.ms).max().unwrap_or_default();
    let others = steps.iter().filter(|report| !parallel.contains(&report.step));
    let total = others.map(|report| report.ms).sum::<u64>() + longest;
    let names: Vec<_> = parallel.iter().map(|step| step.slug()).collect();
    match names.as_slice() {
        [] => format!("{total} ms in all"),
        [first @ .., last] => format!("{total} ms in all; {} and {last} ran in parallel", first.join(", ")),
    }
}

/// What to do. A trusted verdict is about identity, not payments.
pub(super) fn verdict_advice(verdict: &Verdict, against: ObjectionsToAgent<'_>) -> String {
    let name = escaped_verdict_name(verdict);
    match verdict.state {
        TrustState::Trusted if !against.is_none() => {
            format!("Do not call or pay {name}: it is trusted, but {}", against.objection_clauses())
        }
        TrustState::Trusted => {
            let bound = if x402_entry(verdict).is_some() { "this card and entry" } else { "this card" };
            if let Some(block) = explicit_block_number(verdict) {
                return format!(
                    "At block {block}, {name} was bound to {bound}. Ask without --block before you call or pay it."
                );
            }
            format!("{name} is bound to {bound}. This does not cover whom to pay: {WHOM_TO_PAY}.")
        }
        TrustState::Untrusted => untrusted_advice(verdict, &name),
        TrustState::Indeterminate => indeterminate_advice(verdict, &name),
    }
}

/// The block number, if the verdict is about a chosen block. Such a verdict does not apply to the present.
fn explicit_block_number(verdict: &Verdict) -> Option<u64> {
    verdict.anchor.as_ref().map(|anchor| &anchor.block).filter(|block| block.is_chosen_by_number()).map(|b| b.number)
}

/// Why the gate denies the agent of a trusted verdict.
pub(super) fn gate_denial_text(code: &str, verdict: &Verdict) -> String {
    match explicit_block_number(verdict) {
        Some(block) => {
            format!("block {block} was chosen, and the gate decides at the newest one. Ask without --block.")
        }
        None => format!("the gate would deny the agent ({code}). {}", title_for_slug(code).unwrap_or_default()),
    }
}

pub(super) fn wrap_words(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines
}

fn untrusted_advice(verdict: &Verdict, name: &str) -> String {
    let mut fails = verdict.reasons.iter().filter(|r| r.effect == ReasonEffect::Fail);
    let Some(reason) = fails.next() else { return format!("Do not call or pay {name}.") };
    let more = match fails.count() {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let code = reason.code;
    let mut text = match code.entry().fixer {
        FixerRole::Asker => format!("Check the spelling of {name}, and do not call or pay it ({code}{more})"),
        FixerRole::Publisher => format!("Do not call or pay {name}; its publisher has to fix {code}{more}"),
        FixerRole::Operator => {
            format!("Do not call or pay {name}: the configuration in force does not admit it ({code}{more})")
        }
        FixerRole::Nobody => format!("Do not call or pay {name} yet ({code}{more})"),
    };
    let near = verdict.profile.near_misses.iter().find(|n| n.would_be == TrustState::Trusted);
    if let Some(near) = near {
        let _ = write!(text, "; if you accept {0}, ask again with --profile {0}", UntrustedText::new(&near.profile));
    } else {
        let _ = write!(text, "; `clresolve explain {code}` says more");
    }
    text + "."
}

fn indeterminate_advice(verdict: &Verdict, name: &str) -> String {
    let mut unknowns = verdict.reasons.iter().filter(|r| r.effect == ReasonEffect::Unknown);
    let reason =
        unknowns.find(|r| r.retryable).or_else(|| verdict.reasons.iter().find(|r| r.effect == ReasonEffect::Unknown));
    let Some(reason) = reason else { return format!("Do not rely on {name}: not every step could be decided.") };
    let code = reason.code;
    if !reason.retryable {
        return format!("Do not rely on {name} yet: `clresolve explain {code}` says what to change first.");
    }
    if reason.place.as_deref() == Some(NO_NETWORK) {
        return format!("{} Nothing is known about {name}; ask again once the network is back.", reason.message);
    }
    let when = verdict.freshness.retry_after.map_or_else(|| "later".to_owned(), |s| format!("in {s} s"));
    let also = if code.entry().fixer == FixerRole::Operator { ", or elsewhere (--rpc, --gateway)" } else { "" };
    format!("Do not rely on {name} yet ({code}); ask again {when}{also}.")
}

fn verdict_heading(verdict: &Verdict, palette: &Palette) -> String {
    let (bold, style) = (palette.bold, palette.state_style(verdict.state));
    let mut text = format!("{bold}{}{bold:#}  {style}{}{style:#}\n", escaped_verdict_name(verdict), verdict.state);
    if verdict.name.normalized.as_ref().is_some_and(|normal| *normal != verdict.name.input) {
        let _ = writeln!(text, "  typed as {}", UntrustedText::new(&verdict.name.input));
    }
    text
}

fn write_verdict_ending(text: &mut String, verdict: &Verdict, against: ObjectionsToAgent<'_>, palette: &Palette) {
    for reason in &verdict.reasons {
        text.push('\n');
        write_reason(text, reason, palette);
    }
    let near: Vec<String> = verdict
        .profile
        .near_misses
        .iter()
        .map(|n| format!("{} under {}", n.would_be, UntrustedText::new(&n.profile)))
        .collect();
    if !near.is_empty() {
        let _ = writeln!(
            text,
            "\n  The same evidence is {}; judged here by {}.",
            near.join(", "),
            UntrustedText::new(&verdict.profile.id)
        );
    }
    let is_denied = verdict.state == TrustState::Trusted && !against.is_none();
    let style = if is_denied { palette.bad } else { palette.state_style(verdict.state) };
    let _ = writeln!(text, "\n{style}{}{style:#}", verdict_advice(verdict, against));
}

pub(super) fn write_reason(text: &mut String, reason: &Reason, palette: &Palette) {
    let style = palette.effect_style(reason.effect);
    let (sign, word) = match reason.effect {
        ReasonEffect::Fail => ('✗', "fail"),
        ReasonEffect::Unknown => ('?', "unknown"),
        ReasonEffect::Warn => ('!', "warn"),
    };
    let requirement =
        reason.requirement.as_deref().map_or_else(String::new, |r| format!(", {}", UntrustedText::new(r)));
    let place = reason.place.as_deref().map_or_else(String::new, |p| format!(" at {}", UntrustedText::new(p)));
    let _ = writeln!(text, "  {style}{sign} {}{style:#} ({word}{requirement}){place}", reason.code);
    let _ = writeln!(text, "      {}", UntrustedText::new(&reason.message));
    let values = [("expected", &reason.expected), ("observed", &reason.observed), ("fix", &reason.fix)];
    for (label, value) in values {
        if let Some(value) = value {
            let _ = writeln!(text, "      {label:<8} {}", UntrustedText::new(value));
        }
    }
}

/// The result of a step on one line.
fn step_result_text(verdict: &Verdict, step: &StepReport) -> String {
    let identity = verdict.identity.as_ref();
    let from_verdict = match step.step {
        ResolutionStep::Name => verdict.name.normalized.as_deref().map(|n| UntrustedText::new(n).to_string()),
        ResolutionStep::Records => verdict.anchor.as_ref().map(chain_anchor_text),
        ResolutionStep::Integrity => identity.and_then(|i| card_digest_text(&i.card)),
        ResolutionStep::Card => identity.map(agent_identity_text),
        ResolutionStep::Entry => identity.and_then(|i| i.entry.as_deref()).map(|e| UntrustedText::new(e).to_string()),
        ResolutionStep::Verbs => identity.map(|i| join_escaped_values(&i.verbs)),
        ResolutionStep::FetchHttps => served_url_text(&step.evidence),
        ResolutionStep::FetchIpfs => cid_verification_text(&step.evidence),
        ResolutionStep::Schemas if step.evidence["asked"] == false => Some("not asked for".to_owned()),
        ResolutionStep::Binding => external_link_counts_text(&step.evidence["links"]),
        ResolutionStep::Schemas | ResolutionStep::Continuity => None,
        ResolutionStep::Document
        | ResolutionStep::Discovery
        | ResolutionStep::Signature
        | ResolutionStep::Payment
        | ResolutionStep::Request
        | ResolutionStep::Receipt => None,
    };
    from_verdict.filter(|s| !s.is_empty()).unwrap_or_else(|| match step.status {
        StepStatus::Skip => String::new(),
        StepStatus::Pass | StepStatus::Fail | StepStatus::Unknown => brief_evidence_text(&step.evidence),
    })
}

/// Number of external statements that confirm or contradict the card, and so on.
fn external_link_counts_text(links: &Value) -> Option<String> {
    let links = links.as_array()?;
    let count = |relation: &str| links.iter().filter(|link| link["relation"] == relation).count();
    let counts = ["agrees", "contradicts", "unmentioned", "unread"].map(|relation| (count(relation), relation));
    let parts: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, relation)| format!("{count} {relation}")).collect();
    Some(if parts.is_empty() { "links: none".to_owned() } else { format!("links: {}", parts.join(", ")) })
}

fn served_url_text(evidence: &Value) -> Option<String> {
    let url = evidence["url"].as_str()?;
    Some(format!("{}, {} bytes", UntrustedText::new(url), evidence["bytes"]))
}

/// How the card was verified by its CID.
fn cid_verification_text(evidence: &Value) -> Option<String> {
    let by = evidence["proven_by"].as_str()?;
    Some(format!("{} bytes, proven by {}", evidence["bytes"], UntrustedText::new(by)))
}

fn chain_anchor_text(anchor: &ChainAnchor) -> String {
    let block = &anchor.block;
    let mut text = format!(
        "{} {}, block {} ({}), {}",
        UntrustedText::new(&anchor.world),
        UntrustedText::new(&anchor.chain),
        block.number,
        UntrustedText::new(&block.tag),
        UntrustedText::new(&block.timestamp),
    );
    if let Some(resolver) = &anchor.resolver {
        let _ = write!(text, ", resolver {}", UntrustedText::new(resolver));
    }
    if let Some(ancestor) = &anchor.wildcard {
        let _ = write!(text, " of {}", UntrustedText::new(ancestor));
    }
    if anchor.offchain {
        text.push_str(", off chain");
    }
    let proof = &anchor.proof;
    let grade = serde_json::to_value(proof.grade).ok();
    let grade = grade.as_ref().and_then(Value::as_str).unwrap_or("?");
    let _ = write!(text, "; {grade}");
    // Without operators, the light client alone gave the header.
    if proof.asked > 0 {
        let _ = write!(text, " {}/{}", proof.agreed, proof.asked);
    }
    text
}

fn card_digest_text(card: &CardReference) -> Option<String> {
    if card.sha256.is_empty() {
        return None;
    }
    let mut text = format!("{} bytes, sha256:{}", card.bytes, UntrustedText::new(&card.sha256));
    if let Some(cid) = &card.cid {
        let _ = write!(text, ", {}", UntrustedText::new(cid));
        if let Some(path) = &card.path {
            let _ = write!(text, "/{}", UntrustedText::new(path));
        }
    }
    Some(text)
}

fn agent_identity_text(identity: &AgentIdentity) -> String {
    let words = [&identity.class, &identity.version, &identity.status];
    let mut parts: Vec<String> =
        words.into_iter().flatten().map(|w| UntrustedText::new(w).with_limit(40).to_string()).collect();
    if let Some(owner) = &identity.owner {
        let proven = if owner.proven { "proven" } else { "unproven" };
        parts.push(format!("owner {} ({proven})", UntrustedText::new(&owner.name)));
    }
    parts.join(", ")
}

fn join_escaped_values(values: &[String]) -> String {
    UntrustedText::new(&values.join(", ")).with_limit(BRIEF_CHARACTERS).to_string()
}

/// The scalar members of evidence, on one line.
fn brief_evidence_text(evidence: &Value) -> String {
    let Some(members) = evidence.as_object() else { return String::new() };
    let plain = |(key, value): (&String, &Value)| match value {
        Value::String(s) => Some(format!("{key} {s}")),
        Value::Bool(_) | Value::Number(_) => Some(format!("{key} {value}")),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    let parts: Vec<String> = members.iter().filter_map(plain).collect();
    UntrustedText::new(&parts.join(", ")).with_limit(BRIEF_CHARACTERS).to_string()
}

/// Formats evidence as lines of `path  value`.
fn push_evidence_lines(lines: &mut Vec<String>, path: &str, value: &Value, depth: usize) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Object(members) if depth < MAX_EVIDENCE_DEPTH && !members.is_empty() => {
            for (key, value) in members {
                push_evidence_lines(lines, &below(key), value, depth + 1);
            }
        }
        Value::Array(items) if depth < MAX_EVIDENCE_DEPTH && !items.is_empty() => {
            for (i, value) in items.iter().enumerate() {
                push_evidence_lines(lines, &below(&i.to_string()), value, depth + 1);
            }
        }
        Value::Null if path.is_empty() => {}
        Value::Object(members) if path.is_empty() && members.is_empty() => {}
        Value::String(text) => lines.push(format!("{}  {}", UntrustedText::new(path), UntrustedText::new(text))),
        other => lines.push(format!("{}  {}", UntrustedText::new(path), UntrustedText::new(&other.to_string()))),
    }
}

fn escaped_verdict_name(verdict: &Verdict) -> String {
    UntrustedText::new(verdict.name.normalized.as_deref().unwrap_or(&verdict.name.input)).to_string()
}

fn x402_entry(verdict: &Verdict) -> Option<&str> {
    verdict.identity.as_ref()?.entry.as_deref()
}

/// The codes of the reasons with this effect, without duplicates.
pub(super) fn reason_codes(verdict: &Verdict, effect: ReasonEffect) -> Vec<&'static str> {
    let reasons = verdict.reasons.iter().filter(|reason| reason.effect == effect);
    let mut codes: Vec<&str> = reasons.map(|reason| reason.code.slug()).collect();
    codes.dedup();
    codes
}

const fn step_mark(status: StepStatus) -> char {
    match status {
        StepStatus::Pass => '✓',
        StepStatus::Fail => '✗',
        StepStatus::Unknown => '?',
        StepStatus::Skip => '–',
    }
}

const fn step_status_word(status: StepStatus) -> &'static str {
    match status {
        StepStatus::Pass => "pass",
        StepStatus::Fail => "fail",
        StepStatus::Unknown => "unknown",
        StepStatus::Skip => "not run",
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use clresolve_core::reading::{ProofGrade, ProofStrength};
    use clresolve_core::reason::ReasonCode;
    use clresolve_core::state::TrustStateUnderOtherProfile;
    use clresolve_verdict::verdict::{
        AgentOwnerClaim, AnchorBlock, AppliedProfile, Freshness, PinnedDocument, RequestedName, ResolutionDepth,
        SCHEMA, ToolVersion, VerdictCopyKind,
    };

    fn step(step: ResolutionStep, status: StepStatus, evidence: Value) -> StepReport {
        StepReport { step, status, evidence, ms: 12 }
    }

    pub(in crate::cli) fn trusted() -> Verdict {
        let digest = format!("sha256:{}", "cd".repeat(32));
        Verdict {
            schema: SCHEMA.to_owned(),
            id: String::new(),
            conclusion: String::new(),
            name: RequestedName {
                input: "SummarizeAgent.eth".to_owned(),
                normalized: Some("summarizeagent.eth".to_owned()),
                node: Some(format!("0x{}", "11".repeat(32))),
            },
            state: TrustState::Trusted,
            summary: "Every required step passed.".to_owned(),
            reasons: vec![Reason::new(ReasonCode::SingleRpc)],
            identity: Some(AgentIdentity {
                ens: Some("summarizeagent.eth".to_owned()),
                owner: Some(AgentOwnerClaim { name: "commandlayer.eth".to_owned(), proven: true }),
                class: Some("commons".to_owned()),
                status: Some("active".to_owned()),
                version: Some("1.0.0".to_owned()),
                verbs: vec!["summarize".to_owned()],
                entry: Some("x402://summarizeagent.eth/summarize/v1".to_owned()),
                networks: vec!["eip155:1".to_owned()],
                card: CardReference {
                    sha256: "ab".repeat(32),
                    cid: Some("bafkreia".to_owned()),
                    path: Some("agents/card.json".to_owned()),
                    bytes: 2113,
                },
            }),
            anchor: Some(ChainAnchor {
                world: "mainnet".to_owned(),
                chain: "eip155:1".to_owned(),
                block: AnchorBlock {
                    number: 21_000_000,
                    hash: format!("0x{}", "22".repeat(32)),
                    timestamp: "2026-11-20T10:00:00Z".to_owned(),
                    tag: "finalized".to_owned(),
                },
                resolver: Some("0x231b0Ee14048e9dCcD1d247744d114a4EB5E8E63".to_owned()),
                wildcard: None,
                offchain: false,
                proof: ProofStrength { grade: ProofGrade::SingleRpc, asked: 1, agreed: 1, own: false },
                records_digest: Some(digest.clone()),
            }),
            profile: AppliedProfile {
                id: "agent-cards/1.0.0".to_owned(),
                depth: ResolutionDepth::Identity,
                digest: digest.clone(),
                manifests: vec![PinnedDocument { id: "protocol-commons/1.0.0".to_owned(), digest }],
                near_misses: Vec::new(),
            },
            steps: vec![
                step(ResolutionStep::Name, StepStatus::Pass, serde_json::json!({})),
                step(
                    ResolutionStep::Records,
                    StepStatus::Pass,
                    serde_json::json!({"records": {"cl.entry": "x402://\u{202e}"}}),
                ),
                step(
                    ResolutionStep::FetchHttps,
                    StepStatus::Pass,
                    serde_json::json!({"status": 200, "host": "commandlayer.org"}),
                ),
                step(ResolutionStep::Integrity, StepStatus::Pass, serde_json::json!({})),
                step(ResolutionStep::Card, StepStatus::Pass, serde_json::json!({})),
                step(ResolutionStep::Entry, StepStatus::Pass, serde_json::json!({})),
                step(ResolutionStep::Verbs, StepStatus::Pass, serde_json::json!({})),
                step(ResolutionStep::Schemas, StepStatus::Skip, serde_json::json!({})),
            ],
            freshness: Freshness {
                checked_at: "2026-11-20T10:10:00Z".parse().expect("a time"),
                fresh_until: "2026-11-20T10:15:00Z".parse().expect("a time"),
                retry_after: None,
                confirmed: None,
                served: VerdictCopyKind::Fresh,
            },
            tool: ToolVersion::default(),
        }
        .with_computed_digests()
    }

    pub(in crate::cli) fn untrusted() -> Verdict {
        let mut verdict = trusted();
        verdict.state = TrustState::Untrusted;
        verdict.reasons = vec![
            Reason::new(ReasonCode::ChecksumMismatch)
                .expected("sha256:aa")
                .observed("sha256:bb\u{1b}[31m")
                .at_place("https"),
            Reason::new(ReasonCode::EntryVersionNoncompliant).at_place("/entry"),
        ];
        verdict.steps[3].status = StepStatus::Fail;
        verdict.with_computed_digests()
    }

    #[test]
    fn a_trusted_walk_reads_from_name_to_entry() {
        let expected = "\
summarizeagent.eth  trusted
  typed as SummarizeAgent.eth
  ✓ name         summarizeagent.eth
  ✓ records      mainnet eip155:1, block 21000000 (finalized), 2026-11-20T10:00:00Z, resolver 0x231b0Ee14048e9dCcD1d247744d114a4EB5E8E63; single-rpc 1/1
  ✓ fetch-https  host commandlayer.org, status 200
  ✓ integrity    2113 bytes, sha256:abababababababababababababababababababababababababababababababab, bafkreia/agents/card.json
  ✓ card         commons, 1.0.0, active, owner commandlayer.eth (proven)
  ✓ entry        x402://summarizeagent.eth/summarize/v1
  ✓ verbs        summarize
  – schemas

  ! single-rpc (warn, X-7)
      One RPC operator alone vouches for the records.

summarizeagent.eth is bound to this card and entry. This does not cover whom to pay: `clresolve check URL` does.
";
        assert_eq!(format_verdict_walk(&trusted(), ObjectionsToAgent::default(), &Palette::plain()), expected);
        let line = format_verdict_line(&trusted(), &Palette::plain());
        assert_eq!(line, "trusted  summarizeagent.eth  x402://summarizeagent.eth/summarize/v1  warn: single-rpc\n");
    }

    #[test]
    fn a_refusal_says_what_where_and_who() {
        let text = format_verdict_walk(&untrusted(), ObjectionsToAgent::default(), &Palette::plain());
        let reasons = "
  ✗ checksum-mismatch (fail, CL-50) at https
      The SHA-256 of the card is not the one in cl.checksum.agentcard.
      expected sha256:aa
      observed sha256:bb\\u{1b}[31m

  ✗ entry-version-noncompliant (fail, CL-22) at /entry
      The route version of the entry is not an accepted one.

Do not call or pay summarizeagent.eth; its publisher has to fix checksum-mismatch and 1 more; `clresolve explain checksum-mismatch` says more.
";
        assert!(text.ends_with(reasons), "{text}");
        let line = format_verdict_line(&untrusted(), &Palette::plain());
        assert_eq!(line, "untrusted  summarizeagent.eth  checksum-mismatch,entry-version-noncompliant\n");
        let mut warned = untrusted();
        warned.reasons.extend([Reason::new(ReasonCode::NameExpiring), Reason::new(ReasonCode::SingleRpc)]);
        let line = format_verdict_line(&warned, &Palette::plain());
        assert!(line.ends_with("  checksum-mismatch,entry-version-noncompliant  warn: name-expiring,single-rpc\n"));
    }

    #[test]
    fn near_misses_are_offered() {
        let mut verdict = untrusted();
        verdict.profile.near_misses = vec![TrustStateUnderOtherProfile {
            profile: "agent-cards/1.0.0+released".to_owned(),
            would_be: TrustState::Trusted,
        }];
        let text = format_verdict_walk(&verdict, ObjectionsToAgent::default(), &Palette::plain());
        assert!(text.contains(
            "The same evidence is trusted under agent-cards/1.0.0+released; judged here by agent-cards/1.0.0."
        ));
        assert!(text.ends_with("ask again with --profile agent-cards/1.0.0+released.\n"), "{text}");
    }

    #[test]
    fn an_unmet_expectation_has_the_last_word() {
        let unmet = ["its verb is summarize, not translate".to_owned()];
        let text =
            format_verdict_walk(&trusted(), ObjectionsToAgent::from_unmet_expectations(&unmet), &Palette::plain());
        assert!(text.ends_with(
            "\nDo not call or pay summarizeagent.eth: it is trusted, but its verb is summarize, not translate.\n"
        ));
    }

    #[test]
    fn trusted_verdict_promises_no_payment_and_names_the_gates_denial() {
        let denied = ObjectionsToAgent { unmet: &[], denied: Some("status-withdrawn") };
        let because = "the gate would deny it (status-withdrawn). The publisher has withdrawn the agent.";
        let said = verdict_advice(&trusted(), denied);
        assert_eq!(said, format!("Do not call or pay summarizeagent.eth: it is trusted, but {because}"));
        for text in [
            format_verdict_walk(&trusted(), denied, &Palette::plain()),
            format_verdict_trace(&trusted(), denied, &Palette::plain()),
        ] {
            assert!(text.ends_with(&format!("\n{said}\n")), "{text}");
        }
        let coloured = format_verdict_walk(&trusted(), denied, &Palette::with_colours());
        assert!(coloured.contains(&format!("{0}{said}{0:#}", Palette::with_colours().bad)), "{coloured}");
        let unmet = ["its verb is summarize, not translate".to_owned()];
        let both = verdict_advice(&trusted(), ObjectionsToAgent { unmet: &unmet, ..denied });
        assert!(both.ends_with(&format!("but its verb is summarize, not translate, and {because}")), "{both}");
        let mut without_entry = trusted();
        without_entry.identity.as_mut().expect("a card").entry = None;
        let said = verdict_advice(&without_entry, ObjectionsToAgent::default());
        assert!(
            said.starts_with("summarizeagent.eth is bound to this card. This does not cover whom to pay:"),
            "{said}"
        );
        let mut past = trusted();
        past.anchor.as_mut().expect("an anchor").block.tag = "7".to_owned();
        let said = verdict_advice(&past, ObjectionsToAgent::default());
        assert!(
            said.ends_with("was bound to this card and entry. Ask without --block before you call or pay it."),
            "{said}"
        );
        // An untrusted verdict has its own reasons.
        assert_eq!(verdict_advice(&untrusted(), denied), verdict_advice(&untrusted(), ObjectionsToAgent::default()));
    }

    #[test]
    fn what_is_not_decided_says_when_to_ask_again() {
        let mut verdict = trusted();
        verdict.state = TrustState::Indeterminate;
        verdict.reasons = vec![Reason::new(ReasonCode::RpcUnreachable)];
        verdict.freshness.retry_after = Some(8);
        assert_eq!(
            verdict_advice(&verdict, ObjectionsToAgent::default()),
            "Do not rely on summarizeagent.eth yet (rpc-unreachable); ask again in 8 s, or elsewhere (--rpc, --gateway)."
        );
        verdict.reasons = vec![Reason::new(ReasonCode::RpcWrongChain)];
        assert!(
            verdict_advice(&verdict, ObjectionsToAgent::default())
                .contains("`clresolve explain rpc-wrong-chain` says what to change")
        );
    }

    #[test]
    fn a_trace_shows_evidence_and_time_and_nothing_raw() {
        let text = format_verdict_trace(&trusted(), ObjectionsToAgent::default(), &Palette::plain());
        assert!(
            text.contains("  ✓ fetch-https      12 ms  pass\n      host  commandlayer.org\n      status  200\n"),
            "{text}"
        );
        assert!(text.contains("      records.cl.entry  x402://\\u{202e}\n"), "{text}");
        assert!(text.contains("  96 ms in all; verdict "), "{text}");
    }

    #[test]
    fn a_trace_says_what_ran_in_parallel() {
        let mut verdict = trusted();
        let at = verdict.steps.iter().position(|step| step.step == ResolutionStep::FetchHttps).expect("a step");
        verdict.steps[at].evidence = serde_json::json!({"url": "https://a.example/", IN_PARALLEL_WITH: ["binding"]});
        verdict.steps.insert(
            at + 1,
            step(ResolutionStep::Binding, StepStatus::Pass, serde_json::json!({IN_PARALLEL_WITH: ["fetch-https"]})),
        );
        verdict.steps[at + 1].ms = 30;
        let text = format_verdict_trace(&verdict, ObjectionsToAgent::default(), &Palette::plain());
        let step = "  ✓ fetch-https      12 ms  pass, in parallel with binding\n      url  https://a.example/\n";
        assert!(text.contains(step), "{text}");
        assert!(text.contains("  114 ms in all; fetch-https and binding ran in parallel; verdict "), "{text}");
    }

    #[test]
    fn a_name_that_is_none_is_shown_escaped() {
        let mut verdict = untrusted();
        verdict.name = RequestedName { input: "a\u{200b}b.eth\n".to_owned(), normalized: None, node: None };
        verdict.reasons = vec![Reason::new(ReasonCode::NameInvalid)];
        (verdict.identity, verdict.anchor) = (None, None);
        assert_eq!(
            format_verdict_line(&verdict, &Palette::plain()),
            "untrusted  a\\u{200b}b.eth\\u{a}  name-invalid\n"
        );
        assert!(
            verdict_advice(&verdict, ObjectionsToAgent::default())
                .starts_with("Check the spelling of a\\u{200b}b.eth\\u{a}")
        );
    }

    #[test]
    fn colour_is_only_in_the_palette() {
        assert!(!format_verdict_walk(&untrusted(), ObjectionsToAgent::default(), &Palette::plain()).contains('\u{1b}'));
        assert!(
            format_verdict_walk(&untrusted(), ObjectionsToAgent::default(), &Palette::with_colours())
                .contains("\u{1b}[31m")
        );
    }

    #[test]
    fn running_text_is_wrapped() {
        let text = "word ".repeat(60);
        assert!(wrap_words(&text, LINE_WIDTH).iter().all(|line| line.len() <= LINE_WIDTH));
        assert_eq!(wrap_words(&text, LINE_WIDTH).join(" "), text.trim());
    }
}
