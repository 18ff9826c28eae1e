//! The changes since the previous report: first the names whose state changed, with reason and actor, then the others.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use maud::{Markup, Render as _, display, html};

use super::markup::{
    HtmlColumn, code_markup, code_or_dash, join_markup, line_markup, name_link, omitted_note, row_markup,
    section_markup, table_markup,
};
use crate::difference::{AuditChange, AuditChangeKind};
use crate::duty::{ACTORS, is_actor_needed};
use crate::page::{ItemQuota, TextRun};
use crate::words::role_in_words;
use crate::{AuditReport, AuditRow, AuditRowSource};
use clresolve_core::reason::ReasonEffect;
use clresolve_core::text::UntrustedText;

/// Maximum number of changes of states, and of other changes, on the page. With more, it is a new registry. The JSON
/// form has all.
const MAX_CHANGES_SHOWN: usize = 500;

/// The section, if there is a previous report.
pub(super) fn changes_section(
    report: &AuditReport,
    rows: &dyn AuditRowSource,
    table_has: &BTreeSet<u64>,
) -> io::Result<Markup> {
    let Some(difference) = &report.since else { return Ok(html! {}) };
    let changes = changes_markup(&difference.changes, rows, table_has)?;
    let content = html! {
        @for warning in difference.warnings() { p.soft { (warning) } }
        (changes)
    };
    Ok(section_markup("changes", "Since the previous report", &content))
}

fn changes_markup(changes: &[AuditChange], rows: &dyn AuditRowSource, table_has: &BTreeSet<u64>) -> io::Result<Markup> {
    if changes.is_empty() {
        return Ok(html! { p { "Nothing changed." } });
    }
    let counts = AuditChangeKind::ALL.map(|kind| (kind, changes.iter().filter(|change| change.kind == kind).count()));
    let of_state = |change: &&AuditChange| {
        matches!(
            change.kind,
            AuditChangeKind::NewlyBroken
                | AuditChangeKind::NewlyTrusted
                | AuditChangeKind::State
                | AuditChangeKind::Added
                | AuditChangeKind::Removed
        )
    };
    let (mut states, others): (Vec<&AuditChange>, Vec<&AuditChange>) = changes.iter().partition(of_state);
    states.sort_by_key(|change| change.kind != AuditChangeKind::NewlyBroken);
    let known = ChangedNames::from_rows([&states, &others], rows, table_has)?;
    Ok(html! {
        ul.chips {
            @for (kind, count) in counts.iter().filter(|(_, count)| *count > 0) { li { b { (count) } " " (kind) } }
        }
        (state_table(&states, &known))
        @if !others.is_empty() {
            details {
                summary { "Other changes (" (others.len()) ")" }
                (change_table(&others, &known))
            }
        }
    })
}

/// The names that changed, each with what its row reports.
struct ChangedNames(BTreeMap<String, ChangedNameFacts>);

/// The facts in the row of a changed name.
struct ChangedNameFacts {
    link: Markup,
    codes: Markup,
    actors: String,
}

impl ChangedNames {
    fn from_rows(
        shown: [&[&AuditChange]; 2],
        rows: &dyn AuditRowSource,
        table_has: &BTreeSet<u64>,
    ) -> io::Result<Self> {
        let shown = shown.into_iter().flat_map(|changes| changes.iter().take(MAX_CHANGES_SHOWN));
        let names: BTreeSet<&str> = shown.map(|change| change.name.as_str()).collect();
        let mut known = BTreeMap::new();
        rows.for_each_row(&mut |row| {
            if names.contains(row.name()) {
                let link = name_link(row, table_has);
                let actors = ACTORS
                    .into_iter()
                    .filter(|actor| is_actor_needed(*actor, row))
                    .map(role_in_words)
                    .collect::<Vec<_>>()
                    .join(", ");
                known.insert(row.name().to_owned(), ChangedNameFacts { link, codes: decisive_codes(row), actors });
            }
            Ok(())
        })?;
        Ok(Self(known))
    }

    /// The name as a link to its row.
    fn row_link(&self, change: &AuditChange) -> Markup {
        self.0.get(&change.name).map_or_else(|| code_markup(&change.name), |facts| facts.link.clone())
    }

    /// Why the name is not trusted, and who must act.
    fn codes_and_actors(&self, change: &AuditChange) -> (Markup, &str) {
        self.0.get(&change.name).map_or_else(|| (html! {}, ""), |facts| (facts.codes.clone(), &facts.actors))
    }
}

/// The codes that decide a row's state.
fn decisive_codes(row: &AuditRow) -> Markup {
    let of = |effect| row.codes(effect).into_iter().map(move |code| line_markup(&[TextRun::Code(code, effect)]));
    join_markup([ReasonEffect::Fail, ReasonEffect::Unknown].into_iter().flat_map(of), " ")
}

/// The names whose state changed, with the reason and who must act.
fn state_table(changes: &[&AuditChange], known: &ChangedNames) -> Markup {
    const COLUMNS: [HtmlColumn; 6] =
        [("subject", "name"), ("", "change"), ("", "before"), ("", "now"), ("wide", "because of"), ("", "must act")];
    if changes.is_empty() {
        return html! { p { "No name changed its state." } };
    }
    let state = |state: Option<&str>| display(UntrustedText::new(state.unwrap_or("–"))).render();
    truncated_table("states-changed", &COLUMNS, changes, |change| {
        let [before, after] = [&change.before, &change.after].map(|value| state(value.as_deref()));
        let (why, actors) = known.codes_and_actors(change);
        row_markup(
            &COLUMNS,
            &[known.row_link(change), display(change.kind).render(), before, after, why, actors.render()],
        )
    })
}

fn change_table(changes: &[&AuditChange], known: &ChangedNames) -> Markup {
    const COLUMNS: [HtmlColumn; 4] = [("subject", "name"), ("", "change"), ("", "before"), ("", "now")];
    truncated_table("others-changed", &COLUMNS, changes, |change| {
        let [before, after] = [&change.before, &change.after].map(|value| code_or_dash(value.as_deref()));
        row_markup(&COLUMNS, &[known.row_link(change), display(change.kind).render(), before, after])
    })
}

/// A table of the first changes, and how many were omitted.
fn truncated_table(
    id: &str,
    columns: &[HtmlColumn],
    changes: &[&AuditChange],
    row: impl Fn(&AuditChange) -> Markup,
) -> Markup {
    let mut quota = ItemQuota::with_limit(MAX_CHANGES_SHOWN);
    let rows: Vec<Markup> = changes.iter().filter(|_| quota.try_take()).map(|change| row(change)).collect();
    html! {
        (table_markup(id, "changes", columns, &rows))
        (omitted_note(quota.over, "changes"))
    }
}
