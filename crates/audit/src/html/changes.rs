//! The changes since the previous report: first the names whose state changed, with reason and actor, then the others.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use super::markup::{code, html, line, markup, name_link, table, write_omitted};
use crate::difference::{Change, Kind};
use crate::duty::{ACTORS, is_due};
use crate::page::{Piece, Quota};
use crate::words::role_in_words;
use crate::{Report, Row, Rows};
use clresolve_core::reason::Effect;

/// Maximum number of changes of states, and of other changes, on the page. With more, it is a new registry. The JSON
/// form has all.
const MAX_CHANGES_SHOWN: usize = 500;

/// Writes the section, if there is a previous report.
pub(super) fn write(
    report: &Report,
    rows: &dyn Rows,
    table_has: &BTreeSet<u64>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(difference) = &report.since else { return Ok(()) };
    writeln!(out, "<section id=\"changes\">\n<h2>Since the previous report</h2>")?;
    for warning in difference.warnings() {
        writeln!(out, "<p class=\"soft\">{}</p>", markup(&warning))?;
    }
    if difference.changes.is_empty() {
        return writeln!(out, "<p>Nothing changed.</p>\n</section>");
    }
    writeln!(out, "<ul class=\"chips\">")?;
    for kind in Kind::ALL {
        let count = difference.changes.iter().filter(|change| change.kind == kind).count();
        if count > 0 {
            writeln!(out, "<li><b>{count}</b> {kind}</li>")?;
        }
    }
    writeln!(out, "</ul>")?;
    let of_state = |change: &&Change| {
        matches!(change.kind, Kind::NewlyBroken | Kind::NewlyTrusted | Kind::State | Kind::Added | Kind::Removed)
    };
    let (mut states, others): (Vec<&Change>, Vec<&Change>) = difference.changes.iter().partition(of_state);
    states.sort_by_key(|change| change.kind != Kind::NewlyBroken);
    let known = ChangedNames::of([&states, &others], rows, table_has)?;
    state_table(&states, &known, out)?;
    if !others.is_empty() {
        writeln!(out, "<details><summary>Other changes ({})</summary>", others.len())?;
        change_table(&others, &known, out)?;
        writeln!(out, "</details>")?;
    }
    writeln!(out, "</section>")
}

/// The names that changed, each with what its row reports.
struct ChangedNames(BTreeMap<String, Facts>);

/// The facts in the row of a changed name.
struct Facts {
    link: String,
    codes: String,
    actors: String,
}

impl ChangedNames {
    fn of(shown: [&[&Change]; 2], rows: &dyn Rows, table_has: &BTreeSet<u64>) -> io::Result<Self> {
        let shown = shown.into_iter().flat_map(|changes| changes.iter().take(MAX_CHANGES_SHOWN));
        let names: BTreeSet<&str> = shown.map(|change| change.name.as_str()).collect();
        let mut known = BTreeMap::new();
        rows.each(&mut |row| {
            if names.contains(row.name()) {
                let link = name_link(row, table_has);
                let actors = ACTORS
                    .into_iter()
                    .filter(|actor| is_due(*actor, row))
                    .map(role_in_words)
                    .collect::<Vec<_>>()
                    .join(", ");
                known.insert(row.name().to_owned(), Facts { link, codes: decisive_codes(row), actors });
            }
            Ok(())
        })?;
        Ok(Self(known))
    }

    /// The name as a link to its row.
    fn link(&self, change: &Change) -> String {
        self.0.get(&change.name).map_or_else(|| code(&change.name), |facts| facts.link.clone())
    }

    /// Why the name is not trusted, and who must act.
    fn why(&self, change: &Change) -> [&str; 2] {
        self.0.get(&change.name).map_or(["", ""], |facts| [&facts.codes, &facts.actors])
    }
}

/// The codes that decide a row's state.
fn decisive_codes(row: &Row) -> String {
    let of = |effect| row.codes(effect).into_iter().map(move |code| line(&[Piece::Code(code, effect)]));
    [Effect::Fail, Effect::Unknown].into_iter().flat_map(of).collect::<Vec<_>>().join(" ")
}

/// The names whose state changed, with the reason and who must act.
fn state_table(changes: &[&Change], known: &ChangedNames, out: &mut dyn Write) -> io::Result<()> {
    if changes.is_empty() {
        return writeln!(out, "<p>No name changed its state.</p>");
    }
    let heads = ["name", "change", "before", "now", "because of", "must act"];
    writeln!(out, "{}", table("states-changed", "changes", &heads))?;
    let mut quota = Quota::of(MAX_CHANGES_SHOWN);
    for change in changes.iter().filter(|_| quota.take()) {
        let [why, actors] = known.why(change);
        writeln!(
            out,
            "<tr><td class=\"subject\" data-label=\"name\">{}</td><td data-label=\"change\">{}</td>\
             <td data-label=\"before\">{}</td><td data-label=\"now\">{}</td>\
             <td class=\"wide\" data-label=\"because of\">{why}</td><td data-label=\"must act\">{actors}</td></tr>",
            known.link(change),
            change.kind,
            state(change.before.as_deref()),
            state(change.after.as_deref())
        )?;
    }
    writeln!(out, "</tbody></table></div>")?;
    write_omitted(quota.over, "changes", out)
}

fn state(state: Option<&str>) -> String {
    state.map_or_else(|| "–".to_owned(), |state| html(state).to_string())
}

fn change_table(changes: &[&Change], known: &ChangedNames, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", table("others-changed", "changes", &["name", "change", "before", "now"]))?;
    let mut quota = Quota::of(MAX_CHANGES_SHOWN);
    let value = |value: &Option<String>| value.as_deref().map_or_else(|| "–".to_owned(), code);
    for change in changes.iter().filter(|_| quota.take()) {
        writeln!(
            out,
            "<tr><td class=\"subject\" data-label=\"name\">{}</td><td data-label=\"change\">{}</td>\
             <td data-label=\"before\">{}</td><td data-label=\"now\">{}</td></tr>",
            known.link(change),
            change.kind,
            value(&change.before),
            value(&change.after)
        )?;
    }
    writeln!(out, "</tbody></table></div>")?;
    write_omitted(quota.over, "changes", out)
}
