//! The names and their checks, those that need attention first.

use std::collections::BTreeSet;
use std::io::{self, Write};

use maud::{Markup, html};

use super::markup::{
    SLOT, agreement_symbol, code_markup, join_markup, line_markup, omitted_note, section_markup, small_print,
    write_framed_content, write_markup_line,
};
use crate::duty::{AWAITED, is_actor_needed};
use crate::overview::{ORDER, identity_check_status, schema_check_status};
use crate::owners::OnChainOwner;
use crate::page::TextRun;
use crate::row::AS_OF_BEFORE;
use crate::words::role_slug;
use crate::{AuditReport, AuditRow, AuditRowSource, CardSourceComparison, DecidedTrustState};
use clresolve_core::reason::ReasonEffect;
use clresolve_core::text::UntrustedText;

/// Writes the table with the list's lines in `shown`. `findings` are the lines that have an article.
pub(super) fn write_names_table(
    report: &AuditReport,
    rows: &dyn AuditRowSource,
    shown: &BTreeSet<u64>,
    findings: &BTreeSet<u64>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let over = report.counts.names.saturating_sub(shown.len() as u64);
    let content = html! {
        p.soft { "✓ passes or agrees, ✗ fails or differs, – open: not requested, no response, or not reached." }
        (filter_controls())
        div.scroll {
            table #names-table.matrix {
                thead {
                    tr {
                        @for head in ["name", "state"] { th scope="col" { (head) } }
                        @for head in ["identity", "schemas"].into_iter().chain(CardSourceComparison::PAIRS) {
                            th.mark scope="col" { (head) }
                        }
                        th scope="col" { "codes" }
                    }
                }
                tbody { (SLOT) }
            }
        }
        (omitted_note(over, "names"))
    };
    write_framed_content(section_markup("names", "Names", &content), out, |out| {
        for state in ORDER {
            rows.for_each_row(&mut |row| {
                if row.state != state || !shown.contains(&row.line) {
                    return Ok(());
                }
                write_markup_line(table_row(report, row, findings), out)
            })?;
        }
        Ok(())
    })
}

/// The filter controls, hidden until the script runs.
fn filter_controls() -> Markup {
    html! {
        div #tools role="search" hidden {
            label { "Name, code or owner " input #find type="search" autocomplete="off"; }
            label {
                "State "
                select #state { option value="" { "all" } @for state in ORDER { option { (state) } } }
            }
            label {
                "Must act "
                select #actor {
                    option value="" { "all" }
                    option { "publisher" }
                    option { "operator" }
                    option value="asker" { "registry maintainer" }
                    option value="nobody" { "nobody: wait" }
                }
            }
            output #count {}
        }
    }
}

fn table_row(report: &AuditReport, row: &AuditRow, findings: &BTreeSet<u64>) -> Markup {
    let actors: Vec<_> = AWAITED.into_iter().filter(|actor| is_actor_needed(*actor, row)).map(role_slug).collect();
    let depths = [("identity", identity_check_status(row).into()), ("schemas", schema_check_status(row).into())];
    let pairs = CardSourceComparison::PAIRS.into_iter().zip(row.drift.agreements());
    let codes = [ReasonEffect::Fail, ReasonEffect::Unknown, ReasonEffect::Warn]
        .into_iter()
        .flat_map(|effect| row.codes(effect).into_iter().map(move |code| line_markup(&[TextRun::Code(code, effect)])));
    let state = row.state;
    html! {
        tr id=(row.anchor()) data-state=(state) data-actor=(actors.join(" ")) data-owner=(owner_text(row)) {
            td.subject data-label="name" { (linked_name_markup(report, row, findings)) }
            td data-label="state" {
                span class={ (state) " state" } { (state) }
                (unchanged_note(row))
                (carried_facts_note(row))
            }
            @for (label, agreement) in depths.into_iter().chain(pairs) {
                td.mark data-label=(label) { (agreement_symbol(agreement)) }
            }
            td.wide data-label="codes" { (join_markup(codes, " ")) }
        }
    }
}

/// The name, linked to its findings if the page contains them.
fn linked_name_markup(report: &AuditReport, row: &AuditRow, findings: &BTreeSet<u64>) -> Markup {
    let article = report.counts.same_findings(row).map_or(row.line, |alike| alike.line);
    let name = code_markup(row.name());
    html! { @if findings.contains(&article) { a href={ "#findings-" (article) } { (name) } } @else { (name) } }
}

/// Since when earlier reports contain the same facts about a name.
fn unchanged_note(row: &AuditRow) -> Markup {
    let since = row.unchanged_since.as_deref().map(|since| since.split_once('T').map_or(since, |(day, _)| day));
    html! { @if let Some(day) = since { " " small.soft { "unchanged since " (UntrustedText::new(day)) } } }
}

/// The facts copied from the previous report because this audit could not read or decide them.
fn carried_facts_note(row: &AuditRow) -> Markup {
    let Some(carried) = &row.carried else { return html! {} };
    let state = carried.state.map(|state| match state {
        DecidedTrustState::Trusted => "trusted",
        DecidedTrustState::Untrusted => "untrusted",
    });
    let members =
        carried.members.iter().map(|member| UntrustedText::new(member).to_string()).collect::<Vec<_>>().join(", ");
    let what = state.into_iter().map(str::to_owned).chain(Some(members).filter(|members| !members.is_empty()));
    small_print(&format!("{AS_OF_BEFORE}: {}", what.collect::<Vec<_>>().join("; ")))
}

fn owner_text(row: &AuditRow) -> String {
    match OnChainOwner::from_row(row) {
        OnChainOwner::Account(account) => UntrustedText::new(&account).to_string(),
        OnChainOwner::Nobody | OnChainOwner::Unread => String::new(),
    }
}
