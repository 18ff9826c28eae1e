//! The section that lists the waivers, with and without effect.

use maud::{Markup, Render as _, display, html};

use super::markup::{HtmlColumn, code_markup, code_or_dash, row_markup, section_markup, table_markup};
use crate::AuditReport;
use crate::waiver::{AppliedWaiver, Waiver};

const COLUMNS: [HtmlColumn; 7] = [
    ("subject", "name"),
    ("", "code"),
    ("wide", "where"),
    ("wide", "observed value"),
    ("", "until"),
    ("", "status"),
    ("wide", "reason"),
];

/// The section, if the audit has waivers.
pub(super) fn waivers_section(report: &AuditReport) -> Markup {
    let rows: Vec<Markup> = report.waivers.as_slice().iter().map(waiver_row).collect();
    if rows.is_empty() {
        return html! {};
    }
    let content = html! {
        p.soft { "Until its waiver expires, an accepted finding does not affect the exit code. States do not change." }
        (table_markup("waivers-table", "waivers", &COLUMNS, &rows))
    };
    section_markup("waivers", "Waivers", &content)
}

fn waiver_row(AppliedWaiver { waiver, status, .. }: &AppliedWaiver) -> Markup {
    let Waiver { name, code: slug, place, observed, reason, until } = waiver;
    let cells = [
        code_markup(name.as_str()),
        code_markup(slug.slug()),
        code_or_dash(place.as_deref()),
        code_or_dash(observed.as_deref()),
        display(until).render(),
        status.in_words().render(),
        code_markup(reason),
    ];
    row_markup(&COLUMNS, &cells)
}
