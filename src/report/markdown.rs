//! The report in Markdown (GFM). All foreign text stands in code spans.

use std::io::{self, Write};

use super::{Draft, Drift, Report, Row, Rows, effect, fixer};
use crate::reason::{Effect, Reason};
use crate::text::Foreign;

pub(super) fn write(report: &Report, rows: &dyn Rows, out: &mut dyn Write) -> io::Result<()> {
    head(report, out)?;
    reasons(report, out)?;
    drift(rows, out)?;
    findings(rows, out)?;
    drafts(report, rows, out)
}

fn head(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# Audit\n\n{}\n", report.headline(Foreign::new(&report.scope.profile.id).markdown()))?;
    if let Some(warning) = report.ending.warning() {
        writeln!(out, "**Incomplete.** {}\n", Foreign::new(&warning).markdown())?;
    }
    let tally = &report.tally;
    writeln!(out, "| state | names |\n|---|---|")?;
    writeln!(out, "| trusted | {} |", tally.trusted)?;
    writeln!(out, "| untrusted | {} |", tally.untrusted)?;
    writeln!(out, "| indeterminate | {} |", tally.indeterminate)?;
    writeln!(out, "| all | {} |\n", tally.names)?;
    for (profile, names) in &tally.near_misses {
        writeln!(out, "Under {} {names} more would be trusted.\n", Foreign::new(profile).markdown())?;
    }
    writeln!(out, "| | |\n|---|---|")?;
    for (what, value) in report.facts() {
        writeln!(out, "| {what} | {} |", Foreign::new(&value).markdown())?;
    }
    Ok(())
}

fn reasons(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n## Reasons\n")?;
    let groups = report.tally.groups();
    if groups.is_empty() {
        return writeln!(out, "None.");
    }
    writeln!(out, "| names | effect | code | rule | to fix by | means | such as |\n|---|---|---|---|---|---|---|")?;
    for group in groups {
        let entry = group.code.entry();
        let examples: Vec<String> = group.examples.iter().map(|n| Foreign::new(n).markdown().to_string()).collect();
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} |",
            group.names,
            effect(group.effect),
            group.code,
            entry.requirement,
            fixer(group.code),
            entry.title,
            examples.join(", ")
        )?;
    }
    Ok(())
}

fn drift(rows: &dyn Rows, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n## Names\n\n✓ the two agree, ✗ they differ, – one of them was not asked or did not answer.\n")?;
    writeln!(out, "| name | state | {} | codes |", Drift::PAIRS.join(" | "))?;
    writeln!(out, "|---|---|{}---|", ":-:|".repeat(Drift::PAIRS.len()))?;
    rows.each(&mut |row| {
        let marks = row.drift.agreements().map(|agreement| agreement.mark().to_string()).join(" | ");
        let codes = [Effect::Fail, Effect::Unknown].map(|effect| row.codes(effect)).concat();
        let codes: Vec<&str> = codes.iter().map(|code| code.slug()).collect();
        writeln!(out, "| {} | {} | {marks} | {} |", Foreign::new(row.name()).markdown(), row.state, codes.join(", "))
    })
}

fn findings(rows: &dyn Rows, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n## Findings")?;
    let mut any = false;
    rows.each(&mut |row| {
        if !row.has_findings() {
            return Ok(());
        }
        any = true;
        finding(row, out)
    })?;
    if any { Ok(()) } else { writeln!(out, "\nNone.") }
}

fn finding(row: &Row, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n### {}: {}\n", Foreign::new(row.name()).markdown(), row.state)?;
    if row.normalized.as_deref() != Some(&row.input) {
        writeln!(out, "Line {}, typed as {}.\n", row.line, Foreign::new(&row.input).markdown())?;
    }
    for found in row.reasons.iter().filter(|reason| reason.effect != Effect::Warn) {
        reason(found, out)?;
    }
    if row.more_reasons > 0 {
        writeln!(out, "- and {} more", row.more_reasons)?;
    }
    let digests =
        [("TXT claims", row.drift.claimed), ("HTTPS served", row.drift.served), ("IPFS proved", row.drift.proven)];
    if row.drift.differs() {
        for (what, digest) in digests.into_iter().filter_map(|(what, digest)| Some((what, digest?))) {
            writeln!(out, "- {what} `{digest}`")?;
        }
    }
    if !row.txt.is_empty() {
        writeln!(out, "\nText records to set; the CID proves them:\n")?;
        for line in &row.txt {
            writeln!(out, "    {}", Foreign::new(&line.to_string()).at_most(usize::MAX))?;
        }
    }
    for profile in &row.near_misses {
        writeln!(out, "\nTrusted under {}.", Foreign::new(profile).markdown())?;
    }
    Ok(())
}

fn reason(reason: &Reason, out: &mut dyn Write) -> io::Result<()> {
    let entry = reason.code.entry();
    write!(out, "- **{}** ({}", reason.code, effect(reason.effect))?;
    if let Some(requirement) = &reason.requirement {
        write!(out, ", {}", Foreign::new(requirement))?;
    }
    write!(out, ")")?;
    if let Some(place) = &reason.place {
        write!(out, " at {}", Foreign::new(place).markdown())?;
    }
    write!(out, ": {}", entry.title)?;
    for (what, value) in [("Expected", &reason.expected), ("Observed", &reason.observed), ("Fix:", &reason.fix)] {
        if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
            write!(out, " {what} {}.", Foreign::new(value).markdown())?;
        }
    }
    writeln!(out)
}

fn drafts(report: &Report, rows: &dyn Rows, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n## Draft rows for RESOLUTION.md\n")?;
    let mut any = false;
    rows.each(&mut |row| {
        let Some(draft) = Draft::of(report, row) else { return Ok(()) };
        if !std::mem::replace(&mut any, true) {
            write!(out, "{}", Draft::HEAD)?;
        }
        writeln!(out, "{}", draft.markdown())
    })?;
    if any { Ok(()) } else { writeln!(out, "None.") }
}
