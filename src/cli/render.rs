//! Formats verdicts for people. All foreign text goes through [`Foreign`].

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use serde_json::Value;

use clresolve_core::reason::{Effect, Fixer, Reason, Step, title_of};
use clresolve_core::state::State;
use clresolve_core::text::Foreign;
use clresolve_verdict::build::IN_PARALLEL_WITH;
use clresolve_verdict::check::records::NO_NETWORK;
use clresolve_verdict::verdict::{Anchor, CardDigest, Identity, Status, StepReport, Verdict};

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

    pub(super) const fn colours() -> Self {
        Self {
            good: AnsiColor::Green.on_default(),
            bad: AnsiColor::Red.on_default().bold(),
            unsure: AnsiColor::Yellow.on_default(),
            dim: Style::new().dimmed(),
            bold: Style::new().bold(),
        }
    }

    pub(super) const fn effect(&self, effect: Effect) -> Style {
        match effect {
            Effect::Fail => self.bad,
            Effect::Unknown => self.unsure,
            Effect::Warn => self.dim,
        }
    }

    pub(super) const fn state(&self, state: State) -> Style {
        match state {
            State::Trusted => self.good,
            State::Untrusted => self.bad,
            State::Indeterminate => self.unsure,
        }
    }

    const fn status(&self, status: Status) -> Style {
        match status {
            Status::Pass => self.good,
            Status::Fail => self.bad,
            Status::Unknown => self.unsure,
            Status::Skip => self.dim,
        }
    }
}

/// One line: state, name, the entry or the codes that decided, and the codes of warnings.
pub(super) fn short(verdict: &Verdict, palette: &Palette) -> String {
    let style = palette.state(verdict.state);
    let rest = match verdict.state {
        State::Trusted => entry(verdict).map_or_else(String::new, |e| Foreign::new(e).to_string()),
        State::Untrusted => codes(verdict, Effect::Fail).join(","),
        State::Indeterminate => codes(verdict, Effect::Unknown).join(","),
    };
    let warnings = warned(verdict, "  ", palette);
    format!("{style}{}{style:#}  {}  {rest}{warnings}\n", verdict.state, name(verdict))
}

/// The codes of warnings at the end of a short line, after `separator`. Empty without warnings.
pub(super) fn warned(verdict: &Verdict, separator: &str, palette: &Palette) -> String {
    match codes(verdict, Effect::Warn).join(",") {
        none if none.is_empty() => none,
        codes => format!("{separator}{0}warn: {codes}{0:#}", palette.effect(Effect::Warn)),
    }
}

/// Objections to an agent with a trusted verdict.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Objections<'a> {
    /// A clause for each `--expect-*` that the verdict does not meet.
    pub(super) unmet: &'a [String],
    /// The code with which the gate under the same configuration denies the agent. Also `None` if the verdict is not
    /// from a live resolution, since the gate accepts no other.
    pub(super) denied: Option<&'static str>,
}

impl<'a> Objections<'a> {
    /// Only the objections of the command line.
    pub(super) const fn of_expectations(unmet: &'a [String]) -> Self {
        Self { unmet, denied: None }
    }

    fn is_none(self) -> bool {
        self.unmet.is_empty() && self.denied.is_none()
    }

    /// All objections as the end of a sentence, with the meaning of the gate's code.
    fn clauses(self) -> String {
        let denied = self.denied.map(|code| format!("the gate would deny it ({code})"));
        let clauses: Vec<String> = self.unmet.iter().cloned().chain(denied).collect();
        let meaning = self.denied.and_then(title_of).map_or_else(String::new, |title| format!(" {title}"));
        format!("{}.{meaning}", clauses.join(", and "))
    }
}

/// Each step with its mark and result, the reasons, and what to do.
pub(super) fn walk(verdict: &Verdict, against: Objections<'_>, palette: &Palette) -> String {
    let mut text = steps(verdict, palette);
    ending(&mut text, verdict, against, palette);
    text
}

/// The name with its state, and each step with its mark and result.
pub(super) fn steps(verdict: &Verdict, palette: &Palette) -> String {
    let mut text = heading(verdict, palette);
    for step in &verdict.steps {
        let style = palette.status(step.status);
        let line = format!("  {style}{}{style:#} {:<12} {}", mark(step.status), step.step.slug(), seen(verdict, step));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// Like [`walk`], with all evidence and the time of each step.
pub(super) fn trace(verdict: &Verdict, against: Objections<'_>, palette: &Palette) -> String {
    let mut text = heading(verdict, palette);
    for step in &verdict.steps {
        let style = palette.status(step.status);
        let _ = writeln!(
            text,
            "  {style}{}{style:#} {:<12} {:>6} ms  {}{}",
            mark(step.status),
            step.step.slug(),
            step.ms,
            status(step.status),
            beside(step)
        );
        let mut evidence = step.evidence.clone();
        evidence.as_object_mut().map(|members| members.remove(IN_PARALLEL_WITH));
        let mut lines = Vec::new();
        lay_out(&mut lines, "", &evidence, 0);
        for line in lines.iter().take(MAX_EVIDENCE_LINES) {
            let _ = writeln!(text, "      {line}");
        }
        if lines.len() > MAX_EVIDENCE_LINES {
            let _ = writeln!(text, "      … and {} more; -o json has all", lines.len() - MAX_EVIDENCE_LINES);
        }
    }
    let dim = palette.dim;
    let _ = writeln!(text, "  {dim}{}; verdict {}{dim:#}", took(&verdict.steps), Foreign::new(&verdict.id));
    ending(&mut text, verdict, against, palette);
    text
}

/// The steps that ran in parallel with this one.
fn beside(step: &StepReport) -> String {
    let others: Vec<_> =
        step.evidence[IN_PARALLEL_WITH].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if others.is_empty() { String::new() } else { format!(", in parallel with {}", Foreign::new(&others.join(", "))) }
}

/// The total time, and which steps ran in parallel: of these, only the longest counts.
fn took(steps: &[StepReport]) -> String {
    let of = |step: Step| steps.iter().find(|report| report.step == step);
    let asked = |step: &Step| of(*step).is_some_and(|report| report.evidence[IN_PARALLEL_WITH].is_array());
    let parallel: Vec<Step> = Step::WALK.into_iter().filter(asked).collect();
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
pub(super) fn advice(verdict: &Verdict, against: Objections<'_>) -> String {
    let name = name(verdict);
    match verdict.state {
        State::Trusted if !against.is_none() => {
            format!("Do not call or pay {name}: it is trusted, but {}", against.clauses())
        }
        State::Trusted => {
            let bound = if entry(verdict).is_some() { "this card and entry" } else { "this card" };
            if let Some(block) = chosen_block(verdict) {
                return format!(
                    "At block {block}, {name} was bound to {bound}. Ask without --block before you call or pay it."
                );
            }
            format!("{name} is bound to {bound}. This does not cover whom to pay: {WHOM_TO_PAY}.")
        }
        State::Untrusted => refuse(verdict, &name),
        State::Indeterminate => wait(verdict, &name),
    }
}

/// The block number, if the verdict is about a chosen block. Such a verdict does not apply to the present.
fn chosen_block(verdict: &Verdict) -> Option<u64> {
    verdict.anchor.as_ref().map(|anchor| &anchor.block).filter(|block| block.is_chosen_by_number()).map(|b| b.number)
}

/// Why the gate denies the agent of a trusted verdict.
pub(super) fn denial(code: &str, verdict: &Verdict) -> String {
    match chosen_block(verdict) {
        Some(block) => {
            format!("block {block} was chosen, and the gate decides at the newest one. Ask without --block.")
        }
        None => format!("the gate would deny the agent ({code}). {}", title_of(code).unwrap_or_default()),
    }
}

pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
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

fn refuse(verdict: &Verdict, name: &str) -> String {
    let mut fails = verdict.reasons.iter().filter(|r| r.effect == Effect::Fail);
    let Some(reason) = fails.next() else { return format!("Do not call or pay {name}.") };
    let more = match fails.count() {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let code = reason.code;
    let mut text = match code.entry().fixer {
        Fixer::Asker => format!("Check the spelling of {name}, and do not call or pay it ({code}{more})"),
        Fixer::Publisher => format!("Do not call or pay {name}; its publisher has to fix {code}{more}"),
        Fixer::Operator => {
            format!("Do not call or pay {name}: the configuration in force does not admit it ({code}{more})")
        }
        Fixer::Nobody => format!("Do not call or pay {name} yet ({code}{more})"),
    };
    let near = verdict.profile.near_misses.iter().find(|n| n.would_be == State::Trusted);
    if let Some(near) = near {
        let _ = write!(text, "; if you accept {0}, ask again with --profile {0}", Foreign::new(&near.profile));
    } else {
        let _ = write!(text, "; `clresolve explain {code}` says more");
    }
    text + "."
}

fn wait(verdict: &Verdict, name: &str) -> String {
    let mut unknowns = verdict.reasons.iter().filter(|r| r.effect == Effect::Unknown);
    let reason =
        unknowns.find(|r| r.retryable).or_else(|| verdict.reasons.iter().find(|r| r.effect == Effect::Unknown));
    let Some(reason) = reason else { return format!("Do not rely on {name}: not every step could be decided.") };
    let code = reason.code;
    if !reason.retryable {
        return format!("Do not rely on {name} yet: `clresolve explain {code}` says what to change first.");
    }
    if reason.place.as_deref() == Some(NO_NETWORK) {
        return format!("{} Nothing is known about {name}; ask again once the network is back.", reason.message);
    }
    let when = verdict.freshness.retry_after.map_or_else(|| "later".to_owned(), |s| format!("in {s} s"));
    let also = if code.entry().fixer == Fixer::Operator { ", or elsewhere (--rpc, --gateway)" } else { "" };
    format!("Do not rely on {name} yet ({code}); ask again {when}{also}.")
}

fn heading(verdict: &Verdict, palette: &Palette) -> String {
    let (bold, style) = (palette.bold, palette.state(verdict.state));
    let mut text = format!("{bold}{}{bold:#}  {style}{}{style:#}\n", name(verdict), verdict.state);
    if verdict.name.normalized.as_ref().is_some_and(|normal| *normal != verdict.name.input) {
        let _ = writeln!(text, "  typed as {}", Foreign::new(&verdict.name.input));
    }
    text
}

fn ending(text: &mut String, verdict: &Verdict, against: Objections<'_>, palette: &Palette) {
    for reason in &verdict.reasons {
        text.push('\n');
        write_reason(text, reason, palette);
    }
    let near: Vec<String> = verdict
        .profile
        .near_misses
        .iter()
        .map(|n| format!("{} under {}", n.would_be, Foreign::new(&n.profile)))
        .collect();
    if !near.is_empty() {
        let _ = writeln!(
            text,
            "\n  The same evidence is {}; judged here by {}.",
            near.join(", "),
            Foreign::new(&verdict.profile.id)
        );
    }
    let is_denied = verdict.state == State::Trusted && !against.is_none();
    let style = if is_denied { palette.bad } else { palette.state(verdict.state) };
    let _ = writeln!(text, "\n{style}{}{style:#}", advice(verdict, against));
}

pub(super) fn write_reason(text: &mut String, reason: &Reason, palette: &Palette) {
    let style = palette.effect(reason.effect);
    let (sign, word) = match reason.effect {
        Effect::Fail => ('✗', "fail"),
        Effect::Unknown => ('?', "unknown"),
        Effect::Warn => ('!', "warn"),
    };
    let requirement = reason.requirement.as_deref().map_or_else(String::new, |r| format!(", {}", Foreign::new(r)));
    let place = reason.place.as_deref().map_or_else(String::new, |p| format!(" at {}", Foreign::new(p)));
    let _ = writeln!(text, "  {style}{sign} {}{style:#} ({word}{requirement}){place}", reason.code);
    let _ = writeln!(text, "      {}", Foreign::new(&reason.message));
    let values = [("expected", &reason.expected), ("observed", &reason.observed), ("fix", &reason.fix)];
    for (label, value) in values {
        if let Some(value) = value {
            let _ = writeln!(text, "      {label:<8} {}", Foreign::new(value));
        }
    }
}

/// The result of a step on one line.
fn seen(verdict: &Verdict, step: &StepReport) -> String {
    let identity = verdict.identity.as_ref();
    let from_verdict = match step.step {
        Step::Name => verdict.name.normalized.as_deref().map(|n| Foreign::new(n).to_string()),
        Step::Records => verdict.anchor.as_ref().map(anchored),
        Step::Integrity => identity.and_then(|i| document(&i.card)),
        Step::Card => identity.map(described),
        Step::Entry => identity.and_then(|i| i.entry.as_deref()).map(|e| Foreign::new(e).to_string()),
        Step::Verbs => identity.map(|i| list(&i.verbs)),
        Step::FetchHttps => served(&step.evidence),
        Step::FetchIpfs => walked(&step.evidence),
        Step::Schemas if step.evidence["asked"] == false => Some("not asked for".to_owned()),
        Step::Binding => linked(&step.evidence["links"]),
        Step::Schemas | Step::Continuity => None,
        Step::Document | Step::Discovery | Step::Signature | Step::Payment | Step::Request | Step::Receipt => None,
    };
    from_verdict.filter(|s| !s.is_empty()).unwrap_or_else(|| match step.status {
        Status::Skip => String::new(),
        Status::Pass | Status::Fail | Status::Unknown => brief(&step.evidence),
    })
}

/// Number of external statements that confirm or contradict the card, and so on.
fn linked(links: &Value) -> Option<String> {
    let links = links.as_array()?;
    let count = |relation: &str| links.iter().filter(|link| link["relation"] == relation).count();
    let counts = ["agrees", "contradicts", "unmentioned", "unread"].map(|relation| (count(relation), relation));
    let parts: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, relation)| format!("{count} {relation}")).collect();
    Some(if parts.is_empty() { "links: none".to_owned() } else { format!("links: {}", parts.join(", ")) })
}

fn served(evidence: &Value) -> Option<String> {
    let url = evidence["url"].as_str()?;
    Some(format!("{}, {} bytes", Foreign::new(url), evidence["bytes"]))
}

/// How the card was verified by its CID.
fn walked(evidence: &Value) -> Option<String> {
    let by = evidence["proven_by"].as_str()?;
    Some(format!("{} bytes, proven by {}", evidence["bytes"], Foreign::new(by)))
}

fn anchored(anchor: &Anchor) -> String {
    let block = &anchor.block;
    let mut text = format!(
        "{} {}, block {} ({}), {}",
        Foreign::new(&anchor.world),
        Foreign::new(&anchor.chain),
        block.number,
        Foreign::new(&block.tag),
        Foreign::new(&block.timestamp),
    );
    if let Some(resolver) = &anchor.resolver {
        let _ = write!(text, ", resolver {}", Foreign::new(resolver));
    }
    if let Some(ancestor) = &anchor.wildcard {
        let _ = write!(text, " of {}", Foreign::new(ancestor));
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

fn document(card: &CardDigest) -> Option<String> {
    if card.sha256.is_empty() {
        return None;
    }
    let mut text = format!("{} bytes, sha256:{}", card.bytes, Foreign::new(&card.sha256));
    if let Some(cid) = &card.cid {
        let _ = write!(text, ", {}", Foreign::new(cid));
        if let Some(path) = &card.path {
            let _ = write!(text, "/{}", Foreign::new(path));
        }
    }
    Some(text)
}

fn described(identity: &Identity) -> String {
    let words = [&identity.class, &identity.version, &identity.status];
    let mut parts: Vec<String> = words.into_iter().flatten().map(|w| Foreign::new(w).at_most(40).to_string()).collect();
    if let Some(owner) = &identity.owner {
        let proven = if owner.proven { "proven" } else { "unproven" };
        parts.push(format!("owner {} ({proven})", Foreign::new(&owner.name)));
    }
    parts.join(", ")
}

fn list(values: &[String]) -> String {
    Foreign::new(&values.join(", ")).at_most(BRIEF_CHARACTERS).to_string()
}

/// The scalar members of evidence, on one line.
fn brief(evidence: &Value) -> String {
    let Some(members) = evidence.as_object() else { return String::new() };
    let plain = |(key, value): (&String, &Value)| match value {
        Value::String(s) => Some(format!("{key} {s}")),
        Value::Bool(_) | Value::Number(_) => Some(format!("{key} {value}")),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    let parts: Vec<String> = members.iter().filter_map(plain).collect();
    Foreign::new(&parts.join(", ")).at_most(BRIEF_CHARACTERS).to_string()
}

/// Formats evidence as lines of `path  value`.
fn lay_out(lines: &mut Vec<String>, path: &str, value: &Value, depth: usize) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Object(members) if depth < MAX_EVIDENCE_DEPTH && !members.is_empty() => {
            for (key, value) in members {
                lay_out(lines, &below(key), value, depth + 1);
            }
        }
        Value::Array(items) if depth < MAX_EVIDENCE_DEPTH && !items.is_empty() => {
            for (i, value) in items.iter().enumerate() {
                lay_out(lines, &below(&i.to_string()), value, depth + 1);
            }
        }
        Value::Null if path.is_empty() => {}
        Value::Object(members) if path.is_empty() && members.is_empty() => {}
        Value::String(text) => lines.push(format!("{}  {}", Foreign::new(path), Foreign::new(text))),
        other => lines.push(format!("{}  {}", Foreign::new(path), Foreign::new(&other.to_string()))),
    }
}

fn name(verdict: &Verdict) -> String {
    Foreign::new(verdict.name.normalized.as_deref().unwrap_or(&verdict.name.input)).to_string()
}

fn entry(verdict: &Verdict) -> Option<&str> {
    verdict.identity.as_ref()?.entry.as_deref()
}

/// The codes of the reasons with this effect, without duplicates.
pub(super) fn codes(verdict: &Verdict, effect: Effect) -> Vec<&'static str> {
    let reasons = verdict.reasons.iter().filter(|reason| reason.effect == effect);
    let mut codes: Vec<&str> = reasons.map(|reason| reason.code.slug()).collect();
    codes.dedup();
    codes
}

const fn mark(status: Status) -> char {
    match status {
        Status::Pass => '✓',
        Status::Fail => '✗',
        Status::Unknown => '?',
        Status::Skip => '–',
    }
}

const fn status(status: Status) -> &'static str {
    match status {
        Status::Pass => "pass",
        Status::Fail => "fail",
        Status::Unknown => "unknown",
        Status::Skip => "not run",
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use clresolve_core::reading::{Grade, Proof};
    use clresolve_core::reason::Code;
    use clresolve_core::state::NearMiss;
    use clresolve_verdict::verdict::{
        AnchorBlock, Depth, Freshness, Name, Owner, Pinned, ProfileUsed, SCHEMA, Served, Tool,
    };

    fn step(step: Step, status: Status, evidence: Value) -> StepReport {
        StepReport { step, status, evidence, ms: 12 }
    }

    pub(in crate::cli) fn trusted() -> Verdict {
        let digest = format!("sha256:{}", "cd".repeat(32));
        Verdict {
            schema: SCHEMA.to_owned(),
            id: String::new(),
            conclusion: String::new(),
            name: Name {
                input: "SummarizeAgent.eth".to_owned(),
                normalized: Some("summarizeagent.eth".to_owned()),
                node: Some(format!("0x{}", "11".repeat(32))),
            },
            state: State::Trusted,
            summary: "Every required step passed.".to_owned(),
            reasons: vec![Reason::new(Code::SingleRpc)],
            identity: Some(Identity {
                ens: Some("summarizeagent.eth".to_owned()),
                owner: Some(Owner { name: "commandlayer.eth".to_owned(), proven: true }),
                class: Some("commons".to_owned()),
                status: Some("active".to_owned()),
                version: Some("1.0.0".to_owned()),
                verbs: vec!["summarize".to_owned()],
                entry: Some("x402://summarizeagent.eth/summarize/v1".to_owned()),
                networks: vec!["eip155:1".to_owned()],
                card: CardDigest {
                    sha256: "ab".repeat(32),
                    cid: Some("bafkreia".to_owned()),
                    path: Some("agents/card.json".to_owned()),
                    bytes: 2113,
                },
            }),
            anchor: Some(Anchor {
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
                proof: Proof { grade: Grade::SingleRpc, asked: 1, agreed: 1, own: false },
                records_digest: Some(digest.clone()),
            }),
            profile: ProfileUsed {
                id: "agent-cards/1.0.0".to_owned(),
                depth: Depth::Identity,
                digest: digest.clone(),
                manifests: vec![Pinned { id: "protocol-commons/1.0.0".to_owned(), digest }],
                near_misses: Vec::new(),
            },
            steps: vec![
                step(Step::Name, Status::Pass, serde_json::json!({})),
                step(Step::Records, Status::Pass, serde_json::json!({"records": {"cl.entry": "x402://\u{202e}"}})),
                step(Step::FetchHttps, Status::Pass, serde_json::json!({"status": 200, "host": "commandlayer.org"})),
                step(Step::Integrity, Status::Pass, serde_json::json!({})),
                step(Step::Card, Status::Pass, serde_json::json!({})),
                step(Step::Entry, Status::Pass, serde_json::json!({})),
                step(Step::Verbs, Status::Pass, serde_json::json!({})),
                step(Step::Schemas, Status::Skip, serde_json::json!({})),
            ],
            freshness: Freshness {
                checked_at: "2026-11-20T10:10:00Z".parse().expect("a time"),
                fresh_until: "2026-11-20T10:15:00Z".parse().expect("a time"),
                retry_after: None,
                confirmed: None,
                served: Served::Fresh,
            },
            tool: Tool::default(),
        }
        .with_digests()
    }

    pub(in crate::cli) fn untrusted() -> Verdict {
        let mut verdict = trusted();
        verdict.state = State::Untrusted;
        verdict.reasons = vec![
            Reason::new(Code::ChecksumMismatch).expected("sha256:aa").observed("sha256:bb\u{1b}[31m").at("https"),
            Reason::new(Code::EntryVersionNoncompliant).at("/entry"),
        ];
        verdict.steps[3].status = Status::Fail;
        verdict.with_digests()
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
        assert_eq!(walk(&trusted(), Objections::default(), &Palette::plain()), expected);
        let line = short(&trusted(), &Palette::plain());
        assert_eq!(line, "trusted  summarizeagent.eth  x402://summarizeagent.eth/summarize/v1  warn: single-rpc\n");
    }

    #[test]
    fn a_refusal_says_what_where_and_who() {
        let text = walk(&untrusted(), Objections::default(), &Palette::plain());
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
        let line = short(&untrusted(), &Palette::plain());
        assert_eq!(line, "untrusted  summarizeagent.eth  checksum-mismatch,entry-version-noncompliant\n");
        let mut warned = untrusted();
        warned.reasons.extend([Reason::new(Code::NameExpiring), Reason::new(Code::SingleRpc)]);
        let line = short(&warned, &Palette::plain());
        assert!(line.ends_with("  checksum-mismatch,entry-version-noncompliant  warn: name-expiring,single-rpc\n"));
    }

    #[test]
    fn near_misses_are_offered() {
        let mut verdict = untrusted();
        verdict.profile.near_misses =
            vec![NearMiss { profile: "agent-cards/1.0.0+released".to_owned(), would_be: State::Trusted }];
        let text = walk(&verdict, Objections::default(), &Palette::plain());
        assert!(text.contains(
            "The same evidence is trusted under agent-cards/1.0.0+released; judged here by agent-cards/1.0.0."
        ));
        assert!(text.ends_with("ask again with --profile agent-cards/1.0.0+released.\n"), "{text}");
    }

    #[test]
    fn an_unmet_expectation_has_the_last_word() {
        let unmet = ["its verb is summarize, not translate".to_owned()];
        let text = walk(&trusted(), Objections::of_expectations(&unmet), &Palette::plain());
        assert!(text.ends_with(
            "\nDo not call or pay summarizeagent.eth: it is trusted, but its verb is summarize, not translate.\n"
        ));
    }

    #[test]
    fn trusted_verdict_promises_no_payment_and_names_the_gates_denial() {
        let denied = Objections { unmet: &[], denied: Some("status-withdrawn") };
        let because = "the gate would deny it (status-withdrawn). The publisher has withdrawn the agent.";
        let said = advice(&trusted(), denied);
        assert_eq!(said, format!("Do not call or pay summarizeagent.eth: it is trusted, but {because}"));
        for text in [walk(&trusted(), denied, &Palette::plain()), trace(&trusted(), denied, &Palette::plain())] {
            assert!(text.ends_with(&format!("\n{said}\n")), "{text}");
        }
        let coloured = walk(&trusted(), denied, &Palette::colours());
        assert!(coloured.contains(&format!("{0}{said}{0:#}", Palette::colours().bad)), "{coloured}");
        let unmet = ["its verb is summarize, not translate".to_owned()];
        let both = advice(&trusted(), Objections { unmet: &unmet, ..denied });
        assert!(both.ends_with(&format!("but its verb is summarize, not translate, and {because}")), "{both}");
        let mut without_entry = trusted();
        without_entry.identity.as_mut().expect("a card").entry = None;
        let said = advice(&without_entry, Objections::default());
        assert!(
            said.starts_with("summarizeagent.eth is bound to this card. This does not cover whom to pay:"),
            "{said}"
        );
        let mut past = trusted();
        past.anchor.as_mut().expect("an anchor").block.tag = "7".to_owned();
        let said = advice(&past, Objections::default());
        assert!(
            said.ends_with("was bound to this card and entry. Ask without --block before you call or pay it."),
            "{said}"
        );
        // An untrusted verdict has its own reasons.
        assert_eq!(advice(&untrusted(), denied), advice(&untrusted(), Objections::default()));
    }

    #[test]
    fn what_is_not_decided_says_when_to_ask_again() {
        let mut verdict = trusted();
        verdict.state = State::Indeterminate;
        verdict.reasons = vec![Reason::new(Code::RpcUnreachable)];
        verdict.freshness.retry_after = Some(8);
        assert_eq!(
            advice(&verdict, Objections::default()),
            "Do not rely on summarizeagent.eth yet (rpc-unreachable); ask again in 8 s, or elsewhere (--rpc, --gateway)."
        );
        verdict.reasons = vec![Reason::new(Code::RpcWrongChain)];
        assert!(
            advice(&verdict, Objections::default()).contains("`clresolve explain rpc-wrong-chain` says what to change")
        );
    }

    #[test]
    fn a_trace_shows_evidence_and_time_and_nothing_raw() {
        let text = trace(&trusted(), Objections::default(), &Palette::plain());
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
        let at = verdict.steps.iter().position(|step| step.step == Step::FetchHttps).expect("a step");
        verdict.steps[at].evidence = serde_json::json!({"url": "https://a.example/", IN_PARALLEL_WITH: ["binding"]});
        verdict
            .steps
            .insert(at + 1, step(Step::Binding, Status::Pass, serde_json::json!({IN_PARALLEL_WITH: ["fetch-https"]})));
        verdict.steps[at + 1].ms = 30;
        let text = trace(&verdict, Objections::default(), &Palette::plain());
        let step = "  ✓ fetch-https      12 ms  pass, in parallel with binding\n      url  https://a.example/\n";
        assert!(text.contains(step), "{text}");
        assert!(text.contains("  114 ms in all; fetch-https and binding ran in parallel; verdict "), "{text}");
    }

    #[test]
    fn a_name_that_is_none_is_shown_escaped() {
        let mut verdict = untrusted();
        verdict.name = Name { input: "a\u{200b}b.eth\n".to_owned(), normalized: None, node: None };
        verdict.reasons = vec![Reason::new(Code::NameInvalid)];
        (verdict.identity, verdict.anchor) = (None, None);
        assert_eq!(short(&verdict, &Palette::plain()), "untrusted  a\\u{200b}b.eth\\u{a}  name-invalid\n");
        assert!(advice(&verdict, Objections::default()).starts_with("Check the spelling of a\\u{200b}b.eth\\u{a}"));
    }

    #[test]
    fn colour_is_only_in_the_palette() {
        assert!(!walk(&untrusted(), Objections::default(), &Palette::plain()).contains('\u{1b}'));
        assert!(walk(&untrusted(), Objections::default(), &Palette::colours()).contains("\u{1b}[31m"));
    }

    #[test]
    fn running_text_is_wrapped() {
        let text = "word ".repeat(60);
        assert!(wrapped(&text, LINE_WIDTH).iter().all(|line| line.len() <= LINE_WIDTH));
        assert_eq!(wrapped(&text, LINE_WIDTH).join(" "), text.trim());
    }
}
