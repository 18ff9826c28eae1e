//! The names and their checks, those that need attention first.

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::markup::{html, line, mark, soft, write_omitted};
use crate::duty::{AWAITED, is_due};
use crate::overview::{ORDER, identity_checks, schema_checks};
use crate::owners::Owner;
use crate::page::Piece;
use crate::row::AS_OF_BEFORE;
use crate::words::role;
use crate::{DecidedState, Drift, Report, Row, Rows};
use clresolve_core::reason::Effect;

/// The controls of the filter. The script reveals them.
const TOOLS: &str = "<div id=\"tools\" role=\"search\" hidden><label>Name, code or owner <input id=\"find\" type=\"search\" autocomplete=\"off\"></label>\
    <label>State <select id=\"state\"><option value=\"\">all</option><option>untrusted</option>\
    <option>indeterminate</option><option>trusted</option></select></label>\
    <label>Must act <select id=\"actor\"><option value=\"\">all</option><option>publisher</option>\
    <option>operator</option><option value=\"asker\">registry maintainer</option><option value=\"nobody\">nobody: wait</option></select></label><output id=\"count\"></output></div>";

/// Writes the table with the list's lines in `shown`. `findings` are the lines that have an article.
pub(super) fn write(
    report: &Report,
    rows: &dyn Rows,
    shown: &BTreeSet<u64>,
    findings: &BTreeSet<u64>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(
        out,
        "<section id=\"names\">\n<h2>Names</h2>\n<p class=\"soft\">✓ passes or agrees, ✗ fails or differs, – open: not \
         requested, no response, or not reached.</p>\n{TOOLS}"
    )?;
    write!(out, "<div class=\"scroll\"><table id=\"names-table\" class=\"matrix\"><thead><tr>")?;
    for head in ["name", "state"] {
        write!(out, "<th scope=\"col\">{head}</th>")?;
    }
    for head in ["identity", "schemas"].into_iter().chain(Drift::PAIRS) {
        write!(out, "<th scope=\"col\" class=\"mark\">{head}</th>")?;
    }
    writeln!(out, "<th scope=\"col\">codes</th></tr></thead><tbody>")?;
    for state in ORDER {
        rows.each(&mut |row| {
            if row.state != state || !shown.contains(&row.line) {
                return Ok(());
            }
            write_row(report, row, findings, out)
        })?;
    }
    writeln!(out, "</tbody></table></div>")?;
    let over = report.counts.names.saturating_sub(shown.len() as u64);
    write_omitted(over, "names", out)?;
    writeln!(out, "</section>")
}

fn write_row(report: &Report, row: &Row, findings: &BTreeSet<u64>, out: &mut dyn Write) -> io::Result<()> {
    let actors: Vec<_> = AWAITED.into_iter().filter(|actor| is_due(*actor, row)).map(role).collect();
    let state = row.state;
    write!(
        out,
        "<tr id=\"{}\" data-state=\"{state}\" data-actor=\"{}\" data-owner=\"{}\"><td class=\"subject\" data-label=\"name\">{}</td>\
         <td data-label=\"state\"><span class=\"{state} state\">{state}</span>{}</td>",
        row.anchor(),
        actors.join(" "),
        owner(row),
        name(report, row, findings),
        unchanged(row) + &carried(row)
    )?;
    let depths = [("identity", identity_checks(row).into()), ("schemas", schema_checks(row).into())];
    let pairs = Drift::PAIRS.into_iter().zip(row.drift.agreements());
    for (label, agreement) in depths.into_iter().chain(pairs) {
        write!(out, "<td class=\"mark\" data-label=\"{label}\">{}</td>", mark(agreement))?;
    }
    let codes = [Effect::Fail, Effect::Unknown, Effect::Warn]
        .into_iter()
        .flat_map(|effect| row.codes(effect).into_iter().map(move |code| line(&[Piece::Code(code, effect)])));
    let codes: Vec<String> = codes.collect();
    writeln!(out, "<td class=\"wide\" data-label=\"codes\">{}</td></tr>", codes.join(" "))
}

/// The name, linked to its findings if the page contains them.
fn name(report: &Report, row: &Row, findings: &BTreeSet<u64>) -> String {
    let article = report.counts.alike(row).map_or(row.line, |alike| alike.line);
    let name = html(row.name());
    if findings.contains(&article) {
        format!("<a href=\"#findings-{article}\"><code>{name}</code></a>")
    } else {
        format!("<code>{name}</code>")
    }
}

/// Since when earlier reports contain the same facts about a name.
fn unchanged(row: &Row) -> String {
    let Some(since) = row.unchanged_since.as_deref() else { return String::new() };
    let day = since.split_once('T').map_or(since, |(day, _)| day);
    format!(" <small class=\"soft\">unchanged since {}</small>", html(day))
}

/// The facts copied from the previous report because this audit could not read or decide them.
fn carried(row: &Row) -> String {
    let Some(carried) = &row.carried else { return String::new() };
    let state = carried.state.map(|state| match state {
        DecidedState::Trusted => "trusted",
        DecidedState::Untrusted => "untrusted",
    });
    let members = carried.members.iter().map(|member| html(member).to_string()).collect::<Vec<_>>().join(", ");
    let what = state.into_iter().map(str::to_owned).chain(Some(members).filter(|members| !members.is_empty()));
    soft(&format!("{AS_OF_BEFORE}: {}", what.collect::<Vec<_>>().join("; ")))
}

fn owner(row: &Row) -> String {
    match Owner::of(row) {
        Owner::Account(account) => html(&account).to_string(),
        Owner::Nobody | Owner::Unread => String::new(),
    }
}
