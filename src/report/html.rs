//! The report as one HTML page: no script, no outside resource, printable, and readable on a phone.

use std::io::{self, Write};

use super::{Agreement, Draft, Drift, Report, Row, Rows, effect, fixer};
use crate::reason::{Code, Effect, Reason};
use crate::text::{Foreign, Html};

const STYLE: &str = include_str!("page.css");

/// Forbids every resource that the page does not hold itself, should a defect of ours ever let markup through.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

pub(super) fn write(report: &Report, rows: &dyn Rows, out: &mut dyn Write) -> io::Result<()> {
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Audit: {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n",
        report.headline(html(&report.scope.profile.id))
    )?;
    head(report, out)?;
    reasons(report, out)?;
    drift(rows, out)?;
    findings(rows, out)?;
    drafts(report, rows, out)?;
    writeln!(out, "</main>\n</body>\n</html>")
}

fn head(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let tally = &report.tally;
    writeln!(out, "<h1>Audit</h1>\n<p>{}</p>", report.headline(html(&report.scope.profile.id)))?;
    if let Some(warning) = report.ending.warning() {
        writeln!(out, "<p class=\"warning\"><strong>Incomplete.</strong> {}</p>", html(&warning))?;
    }
    writeln!(out, "<ul class=\"tiles\">")?;
    let counts = [
        ("", "names", tally.names),
        ("trusted", "trusted", tally.trusted),
        ("untrusted", "untrusted", tally.untrusted),
        ("indeterminate", "indeterminate", tally.indeterminate),
    ];
    for (class, what, names) in counts {
        writeln!(out, "<li class=\"{class}\"><b>{names}</b>{what}</li>")?;
    }
    writeln!(out, "</ul>")?;
    for (profile, names) in &tally.near_misses {
        writeln!(out, "<p>Under <code>{}</code> {names} more would be trusted.</p>", html(profile))?;
    }
    writeln!(out, "<dl>")?;
    for (what, value) in report.facts() {
        writeln!(out, "<dt>{what}</dt><dd class=\"mono\">{}</dd>", html(&value))?;
    }
    writeln!(out, "</dl>")
}

fn reasons(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<h2>Reasons</h2>")?;
    let groups = report.tally.groups();
    if groups.is_empty() {
        return writeln!(out, "<p>None.</p>");
    }
    writeln!(
        out,
        "<table class=\"reasons\">\n<thead><tr><th>code</th><th>names</th><th>effect</th><th>rule</th><th>to fix by</th>\
         <th>means</th><th>such as</th></tr></thead>\n<tbody>"
    )?;
    for group in groups {
        let entry = group.code.entry();
        let effect = effect(group.effect);
        let examples: Vec<String> = group.examples.iter().map(|name| format!("<code>{}</code>", html(name))).collect();
        writeln!(
            out,
            "<tr><td class=\"wide word\"><code>{}</code></td><td class=\"names\" data-label=\"names\">{}</td>\
             <td class=\"word {effect}\" data-label=\"effect\">{effect}</td><td class=\"word\" data-label=\"rule\">{}</td>\
             <td class=\"word\" data-label=\"to fix by\">{}</td><td class=\"wide\">{}</td><td class=\"wide\" data-label=\"such as\">{}</td></tr>",
            group.code,
            group.names,
            html(entry.requirement),
            fixer(group.code),
            html(entry.title),
            examples.join(", ")
        )?;
    }
    writeln!(out, "</tbody>\n</table>")
}

fn drift(rows: &dyn Rows, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<h2>Names</h2>\n<p class=\"soft\">✓ the two agree, ✗ they differ, – one of them was not asked or did not \
         answer.</p>\n<table>\n<thead><tr><th>name</th><th>state</th>"
    )?;
    for pair in Drift::PAIRS {
        write!(out, "<th class=\"mark\">{pair}</th>")?;
    }
    writeln!(out, "<th>codes</th></tr></thead>\n<tbody>")?;
    rows.each(&mut |row| {
        let state = row.state;
        write!(out, "<tr><td class=\"wide\"><code>{}</code></td>", html(row.name()))?;
        write!(out, "<td class=\"wide word {state}\">{state}</td>")?;
        for (pair, agreement) in Drift::PAIRS.into_iter().zip(row.drift.agreements()) {
            mark(pair, agreement, out)?;
        }
        let codes = [Effect::Fail, Effect::Unknown].map(|effect| row.codes(effect)).concat();
        writeln!(out, "<td class=\"wide codes\">{}</td></tr>", slugs(&codes))
    })?;
    writeln!(out, "</tbody>\n</table>")
}

fn mark(pair: &str, agreement: Agreement, out: &mut dyn Write) -> io::Result<()> {
    let (word, mark) = (agreement.as_str(), agreement.mark());
    write!(out, "<td class=\"mark {word}\" data-label=\"{pair}\" title=\"{word}\">{mark}</td>")
}

fn findings(rows: &dyn Rows, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<h2>Findings</h2>")?;
    let mut any = false;
    rows.each(&mut |row| {
        if !row.has_findings() {
            return Ok(());
        }
        any = true;
        finding(row, out)
    })?;
    if any { Ok(()) } else { writeln!(out, "<p>None.</p>") }
}

fn finding(row: &Row, out: &mut dyn Write) -> io::Result<()> {
    let state = row.state;
    writeln!(
        out,
        "<article class=\"{state}\">\n<h3><code>{}</code> <span class=\"{state}\">{state}</span></h3>\n<p>{}</p>",
        html(row.name()),
        html(&row.summary)
    )?;
    if row.normalized.as_deref() != Some(&row.input) {
        writeln!(out, "<p class=\"soft\">Line {}, typed as <code>{}</code>.</p>", row.line, html(&row.input))?;
    }
    writeln!(out, "<ul>")?;
    for found in row.reasons.iter().filter(|reason| reason.effect != Effect::Warn) {
        reason(found, out)?;
    }
    if row.more_reasons > 0 {
        writeln!(out, "<li>and {} more</li>", row.more_reasons)?;
    }
    writeln!(out, "</ul>")?;
    if row.drift.differs() {
        digests(&row.drift, out)?;
    }
    if !row.txt.is_empty() {
        write!(out, "<p>Text records to set; the CID proves them:</p>\n<pre>")?;
        for line in &row.txt {
            writeln!(out, "{}", Foreign::new(&line.to_string()).at_most(usize::MAX).html())?;
        }
        writeln!(out, "</pre>")?;
    }
    for profile in &row.near_misses {
        writeln!(out, "<p>Trusted under <code>{}</code>.</p>", html(profile))?;
    }
    writeln!(out, "</article>")
}

fn reason(reason: &Reason, out: &mut dyn Write) -> io::Result<()> {
    let effect = effect(reason.effect);
    write!(out, "<li><code class=\"{effect}\">{}</code> <span class=\"soft\">{effect}", reason.code)?;
    if let Some(requirement) = &reason.requirement {
        write!(out, ", {}", html(requirement))?;
    }
    if let Some(place) = &reason.place {
        write!(out, ", at <code>{}</code>", html(place))?;
    }
    write!(out, "</span> {}", html(&reason.message))?;
    for (what, value) in [("expected", &reason.expected), ("observed", &reason.observed), ("fix", &reason.fix)] {
        if let Some(value) = value {
            write!(
                out,
                "<span class=\"values\"><span class=\"soft\">{what}</span> <code>{}</code></span>",
                html(value)
            )?;
        }
    }
    writeln!(out, "</li>")
}

fn digests(drift: &Drift, out: &mut dyn Write) -> io::Result<()> {
    let digests = [("TXT claims", drift.claimed), ("HTTPS served", drift.served), ("IPFS proved", drift.proven)];
    writeln!(out, "<dl>")?;
    for (what, digest) in digests {
        let digest = digest.map_or_else(|| "–".to_owned(), |digest| digest.to_string());
        writeln!(out, "<dt>{what}</dt><dd class=\"mono\">{digest}</dd>")?;
    }
    writeln!(out, "</dl>")
}

fn drafts(report: &Report, rows: &dyn Rows, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<h2>Draft rows for RESOLUTION.md</h2>")?;
    let mut any = false;
    rows.each(&mut |row| {
        let Some(draft) = Draft::of(report, row) else { return Ok(()) };
        if !std::mem::replace(&mut any, true) {
            write!(out, "<pre>{}", Draft::HEAD)?;
        }
        writeln!(out, "{}", markup(&draft.markdown()))
    })?;
    writeln!(out, "{}", if any { "</pre>" } else { "<p>None.</p>" })
}

/// Text of ours, in which foreign text is escaped already: what HTML itself reads is left to escape.
fn markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn html(text: &str) -> Html<'_> {
    Foreign::new(text).html()
}

fn slugs(codes: &[Code]) -> String {
    codes.iter().map(|code| code.slug()).collect::<Vec<_>>().join(", ")
}
