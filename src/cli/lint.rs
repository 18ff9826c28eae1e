//! `lint`: a card judged by itself, before it is published.

use std::fmt::Write as _;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;

use super::args::{Format, LintArgs};
use super::exit::Exit;
use super::output::{Output, Results};
use super::render::Palette;
use super::world::World;
use crate::lint::{self, Finding, MAX_BYTES, Report};
use crate::reason::{Code, Effect};
use crate::text::Foreign;
use crate::verdict::State;

/// Characters of the line that are shown before a finding, and at most of it; a card may be a single line.
const SHOWN_CHARACTERS: usize = 60;

/// What `-o json` gives.
#[derive(Debug, Serialize)]
struct Answer {
    #[serde(flatten)]
    report: Report,
    /// Other profiles under which the card is valid; none are named where it is valid.
    near_misses: Vec<String>,
}

pub(super) fn run(args: LintArgs) -> anyhow::Result<Exit> {
    let output = Output::new(args.output.out.clone())?;
    let name = args.document.display().to_string();
    let bytes = read(&args.document)?;
    super::run_async(async move {
        let world = World::open(&args.world).await?;
        let profiles = world.resolver.profiles();
        let profile = profiles.get(&world.config.rules.profile).context("the profile in force is not there")?;
        let report = lint::lint(&bytes, &profile);
        let near_misses = if report.valid { Vec::new() } else { lint::near_misses(&bytes, &profile, profiles) };
        let answer = Answer { report, near_misses };
        let palette = output.palette();
        let mut results = Results::new(output, args.output.format, false);
        results.push(&answer, |format| match format {
            Format::Short => short(&answer.report, &name, &palette),
            _ => people(&answer, &name, &String::from_utf8_lossy(&bytes), &palette),
        })?;
        results.finish()?;
        Ok(if answer.report.valid { Exit::Trusted } else { Exit::Untrusted })
    })
}

/// The bytes of the file or of standard input, as far as the rules look.
pub(super) fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = MAX_BYTES as u64;
    if file == Path::new("-") {
        io::stdin().lock().take(most).read_to_end(&mut bytes).context("cannot read standard input")?;
        return Ok(bytes);
    }
    let cannot = || format!("cannot read {}", Foreign::new(&file.display().to_string()));
    let opened = std::fs::File::open(file).with_context(cannot)?;
    opened.take(most).read_to_end(&mut bytes).with_context(cannot)?;
    Ok(bytes)
}

/// A line for each finding, as compilers write them.
fn short(report: &Report, name: &str, palette: &Palette) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        let style = palette.effect(finding.effect);
        let (place, effect) = (place(finding, name), word(finding.effect));
        let _ =
            writeln!(text, "{place}: {style}{effect}{style:#} {}: {}", finding.code, Foreign::new(&finding.message));
    }
    text
}

/// Each finding with its line of the card, and what to do.
fn people(answer: &Answer, name: &str, card: &str, palette: &Palette) -> String {
    let mut text = String::new();
    for finding in &answer.report.findings {
        write_finding(&mut text, finding, name, card, palette);
        text.push('\n');
    }
    let style = palette.state(if answer.report.valid { State::Trusted } else { State::Untrusted });
    let _ = writeln!(text, "{style}{}{style:#}", advice(answer, name));
    text
}

fn write_finding(text: &mut String, finding: &Finding, name: &str, card: &str, palette: &Palette) {
    let style = palette.effect(finding.effect);
    let sign = if finding.effect == Effect::Fail { '✗' } else { '!' };
    let requirement = finding.requirement.as_deref().map_or_else(String::new, |r| format!(", {}", Foreign::new(r)));
    let pointer = finding.pointer.as_deref().map_or_else(String::new, |p| format!(" {}", Foreign::new(p)));
    let (effect, place) = (word(finding.effect), place(finding, name));
    let _ = writeln!(text, "{style}{sign} {}{style:#} ({effect}{requirement}) at {place}{pointer}", finding.code);
    let _ = writeln!(text, "    {}", Foreign::new(&finding.message));
    write_excerpt(text, finding, card, palette);
    for (label, value) in [("expected", &finding.expected), ("observed", &finding.observed)] {
        if let Some(value) = value {
            let _ = writeln!(text, "    {label} {}", Foreign::new(value));
        }
    }
}

/// The line of the card with a caret under what is meant. A credential is not shown: reports are kept.
fn write_excerpt(text: &mut String, finding: &Finding, card: &str, palette: &Palette) {
    let (Some(line), Some(span)) = (finding.line, &finding.span) else { return };
    if finding.code == Code::SecretInCard {
        return;
    }
    let (Some(before), Some(rest)) = (card.get(..span.start), card.get(span.start..)) else { return };
    let before = before.rsplit('\n').next().unwrap_or_default().trim_start();
    let rest = rest.lines().next().unwrap_or_default();
    let meant = rest.get(..span.len().min(rest.len())).unwrap_or(rest);
    let after = &rest[meant.len()..];

    let skipped = before.chars().count().saturating_sub(SHOWN_CHARACTERS);
    let before: String = before.chars().skip(skipped).collect();
    let ellipsis = if skipped > 0 { "…" } else { "" };
    let before = format!("{ellipsis}{}", Foreign::new(&before));
    let meant = Foreign::new(meant).at_most(SHOWN_CHARACTERS).to_string();
    let after = if meant.ends_with('…') { String::new() } else { Foreign::new(after).at_most(20).to_string() };

    let number = line.to_string();
    let style = palette.effect(finding.effect);
    let (margin, pad) = (" ".repeat(number.len()), " ".repeat(before.chars().count()));
    let caret = "^".repeat(meant.chars().count().max(1));
    let _ = writeln!(text, "    {number} | {before}{meant}{after}");
    let _ = writeln!(text, "    {margin} | {pad}{style}{caret}{style:#}");
}

fn place(finding: &Finding, name: &str) -> String {
    let name = Foreign::new(name);
    match (finding.line, finding.column) {
        (Some(line), Some(column)) => format!("{name}:{line}:{column}"),
        _ => name.to_string(),
    }
}

/// One sentence that says what to do.
fn advice(answer: &Answer, name: &str) -> String {
    let (name, report) = (Foreign::new(name), &answer.report);
    let profile = Foreign::new(&report.profile);
    let count = |effect| report.findings.iter().filter(|finding| finding.effect == effect).count();
    let warnings = match count(Effect::Warn) {
        0 => String::new(),
        1 => " (1 warning)".to_owned(),
        n => format!(" ({n} warnings)"),
    };
    if report.valid {
        return format!(
            "{name} is a valid card under {profile}{warnings}; `clresolve plan` says which records to set for it."
        );
    }
    let defects = match count(Effect::Fail) {
        1 => "1 defect".to_owned(),
        n => format!("{n} defects"),
    };
    let near = match answer.near_misses.first() {
        Some(near) => format!(", or judge by --profile {}, under which it is valid", Foreign::new(near)),
        None => String::new(),
    };
    format!("{name} is not a valid card under {profile}: mend {defects}{warnings} before you publish it{near}.")
}

const fn word(effect: Effect) -> &'static str {
    match effect {
        Effect::Fail => "fail",
        Effect::Unknown => "unknown",
        Effect::Warn => "warn",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{DEFAULT, Profiles};

    fn shown(card: &str) -> String {
        let profiles = Profiles::builtin();
        let report = lint::lint(card.as_bytes(), &profiles.get(DEFAULT).expect("built in"));
        people(&Answer { report, near_misses: Vec::new() }, "card.json", card, &Palette::plain())
    }

    #[test]
    fn a_finding_shows_its_line_with_a_caret() {
        let text = shown("{\n  \"id\": \"a\",,\n}\n");
        assert!(text.contains("    2 | \"id\": \"a\",,\n      |           ^\n"), "{text}");
        assert!(text.ends_with(
            "card.json is not a valid card under agent-cards/1.0.0: mend 1 defect before you publish it.\n"
        ));
    }

    #[test]
    fn long_lines_are_cut_and_nothing_is_raw() {
        let card = format!("{{\"a\": \"{}\u{202e}\", \"status\": \"{}\"}}", "x".repeat(500), "y\u{7f}".repeat(100));
        let text = shown(&card);
        assert!(text.lines().all(|line| line.chars().count() < 900), "{text}");
        assert!(!text.contains(['\u{202e}', '\u{7f}']) && text.contains("…"), "{text}");
    }

    #[test]
    fn a_credential_is_not_shown() {
        let text = shown("{\"meta\": {\"api_key\": \"sk_live_4eC39HqLyjWDarjtT1zdp7dc\"}}");
        assert!(text.contains("secret-in-card") && !text.contains("4eC39"), "{text}");
    }
}
