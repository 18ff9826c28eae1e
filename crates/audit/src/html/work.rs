//! The work to do: the findings of names, grouped by actor, with the record to set or the command to run.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use maud::{Markup, Render as _, html};

use super::markup::{
    Column, SLOT, actor_word, and_more, code, joined, line, link_to, name_link, omitted, owner, role_sentence, row,
    section, soft, table, write_around, write_part,
};
use crate::cause::Cause;
use crate::duty::{ACTORS, AWAITED, MAX_LINE_CHARACTERS, duties, is_due};
use crate::governance_log::Form;
use crate::overview::{Overview, identity_checks, schema_checks};
use crate::owners::{Owned, Owner};
use crate::page::{Piece, Point, Quota, digests, listed, names as counted, points, same_findings, some_names};
use crate::words::role;
use crate::{Agreement, Draft, Group, Report, Row, Rows};
use clresolve_core::reason::{Effect, Fixer};
use clresolve_core::text::Foreign;

/// Maximum number of articles. Names with the same findings share one, and a registry has a handful of kinds; nobody
/// reads more in one page.
const MAX_ARTICLES: usize = 256;

/// Maximum number of records listed. People set them by hand.
const MAX_RECORDS_SHOWN: usize = 500;

const MAX_DRAFTS_SHOWN: usize = 500;

/// Writes all articles, and returns the lines of the list that have one.
pub(super) fn write(
    report: &Report,
    overview: &Overview,
    rows: &dyn Rows,
    table_has: &BTreeSet<u64>,
    out: &mut dyn Write,
) -> io::Result<BTreeSet<u64>> {
    let mut shown = BTreeSet::new();
    let mut quota = Quota::of(MAX_ARTICLES);
    write_around(section("act", "What to do", &SLOT.render()), out, |out| {
        for (actor, due) in AWAITED.into_iter().zip(overview.due) {
            let warnings = warnings(report, actor);
            if due == 0 && warnings.is_empty() {
                continue;
            }
            let frame = html! {
                section id={ "act-" (role(actor)) } {
                    h3 { (actor_word(actor)) " " span.soft { (counted(due)) ". " (role_sentence(actor)) } }
                    @if actor == Fixer::Publisher && due > 0 { (owners(overview, table_has)) }
                    (SLOT)
                    @if !warnings.is_empty() { (warnings_list(&warnings)) }
                }
            };
            let articles = articles(report, actor, rows, &mut quota)?;
            write_around(frame, out, |out| {
                for (cause, names) in overview.causes_of(actor) {
                    write_part(cause_heading(actor, cause, names), out)?;
                    for row in articles.get(&cause).into_iter().flatten() {
                        // If two actors must act on a name, only the first of its articles gets the anchor, because ids
                        // are unique.
                        let is_first = shown.insert(row.line);
                        write_part(article(report, actor, row, is_first), out)?;
                    }
                }
                Ok(())
            })?;
        }
        let end = html! {
            @if overview.most_due().is_none() { p { "Nobody has to act on a failure." } }
            (omitted(quota.over, "sets of findings"))
        };
        write_part(end, out)
    })?;
    Ok(shown)
}

fn cause_heading(actor: Fixer, cause: Cause, names: u64) -> Markup {
    html! { h4 id=(cause_anchor(actor, cause)) { (cause.in_words()) " " span.soft { (counted(names)) } } }
}

pub(super) fn cause_anchor(actor: Fixer, cause: Cause) -> String {
    format!("cause-{}-{}", role(actor), cause.slug())
}

/// The rows for an actor's articles, by cause, up to the remaining quota.
fn articles(
    report: &Report,
    actor: Fixer,
    rows: &dyn Rows,
    quota: &mut Quota,
) -> io::Result<BTreeMap<Cause, Vec<Row>>> {
    let mut articles: BTreeMap<Cause, Vec<Row>> = BTreeMap::new();
    rows.each(&mut |row| {
        let Some(cause) = Cause::of(actor, row) else { return Ok(()) };
        let shares = report.counts.alike(row).is_some_and(|alike| alike.line != row.line);
        if !shares && quota.take() {
            articles.entry(cause).or_default().push(row.clone());
        }
        Ok(())
    })?;
    Ok(articles)
}

/// The owners of the names on which publishers must act.
fn owners(overview: &Overview, table_has: &BTreeSet<u64>) -> Markup {
    const COLUMNS: [Column; 4] = [("number", "names"), ("account", "owner"), ("wide", "because of"), ("wide", "which")];
    let owner_row = |(who, owned): (&Owner, &Owned)| {
        let names = owned.first.iter().map(|name| {
            html! { (link_to(name.line, &name.name, &name.anchor, table_has)) (soft(name.as_of)) }
        });
        let more = owned.names.saturating_sub(owned.first.len() as u64);
        let which = joined(names.chain(and_more(more)), ", ");
        row(&COLUMNS, &[owned.names.render(), owner(who), reasons_of(owned), which])
    };
    let rows: Vec<Markup> = overview.owners.most().into_iter().map(owner_row).collect();
    html! {
        h4 #owners { "By owner" }
        (table("owners-table", "owners", &COLUMNS, &rows))
        (omitted(overview.owners.over, "names of other owners"))
    }
}

/// The causes among an owner's names, with their numbers.
fn reasons_of(owned: &Owned) -> Markup {
    let cause = |(cause, names): (Cause, u64)| {
        html! { (names) ": " a href={ "#" (cause_anchor(Fixer::Publisher, cause)) } { (cause.in_words()) } }
    };
    joined(owned.causes().into_iter().map(cause), html! { br; })
}

fn article(report: &Report, actor: Fixer, row: &Row, is_first: bool) -> Markup {
    let alike = report.counts.alike(row);
    let others = alike.map_or(0, |alike| alike.names - 1);
    let with: Vec<_> = ACTORS.into_iter().filter(|other| *other != actor && is_due(*other, row)).map(role).collect();
    let state = row.state;
    html! {
        article id=[is_first.then(|| format!("findings-{}", row.line))] class=(state) {
            h5 {
                (code(row.name()))
                @if others > 0 { " and " (others) " more" }
                " " span class={ (state) " state" } { (state) }
            }
            p.depths { (depths(row)) }
            @if let Some(alike) = alike.filter(|_| others > 0) {
                p.soft { (line(&same_findings(&alike.others, others))) }
            }
            @if row.normalized.as_deref() != Some(&row.input) {
                p.soft { "Typed as " (code(&row.input)) " in " (row.place()) "." }
            }
            @for found in points(row, &|reason| reason.code.entry().fixer == actor) { (point(&found)) }
            @if row.more_reasons > 0 { p { "and " (row.more_reasons) " more findings" } }
            @if let Some(digests) = digests(&row.drift).filter(|_| actor == Fixer::Publisher) { (point(&digests)) }
            @if !with.is_empty() { p.soft { "Others who must act: " (with.join(", ")) "." } }
            @if !row.near_misses.is_empty() { p { "Trusted by the rules " (line(&listed(&row.near_misses))) "." } }
            (duties_list(report, actor, row, others))
        }
    }
}

/// The results of both depths for a name.
fn depths(row: &Row) -> Markup {
    let word = |agreement| match agreement {
        Agreement::Agree => html! { span.agree { "✓ pass" } },
        Agreement::Differ => html! { span.differ { "✗ fail" } },
        Agreement::Open => html! { span.open { "– open" } },
    };
    let (identity, schemas) = (identity_checks(row).into(), schema_checks(row).into());
    html! { "identity checks " (word(identity)) " · schema checks " (word(schemas)) }
}

fn duties_list(report: &Report, actor: Fixer, row: &Row, others: u64) -> Markup {
    html! {
        ul.duties {
            @for duty in duties(actor, report, row) {
                li {
                    (duty.what)
                    @if let Some(line) = &duty.line {
                        pre tabindex="0" { (Foreign::new(line).at_most(MAX_LINE_CHARACTERS)) }
                    }
                }
            }
            @if others > 0 && !row.txt.is_empty() && actor == Fixer::Publisher {
                li { "Each of the other names needs its own values: " a href="#records" { "records to set" } "." }
            }
        }
    }
}

fn point(point: &Point<'_>) -> Markup {
    html! {
        div.point {
            (line(&point.head))
            @if !point.lines.is_empty() { ul { @for below in &point.lines { li { (line(below)) } } } }
        }
    }
}

/// The warnings that an actor can resolve, over all names.
fn warnings(report: &Report, actor: Fixer) -> Vec<&Group> {
    let groups = report.counts.groups().into_iter();
    groups.filter(|group| group.effect == Effect::Warn && group.code.entry().fixer == actor).collect()
}

fn warnings_list(warnings: &[&Group]) -> Markup {
    html! {
        h4 { "Warnings" }
        p.soft { "Warnings do not change the state of any name." }
        ul.warnings {
            @for Group { code, names, examples, .. } in warnings {
                li {
                    (line(&[Piece::Code(*code, Effect::Warn)])) " " (code.entry().title)
                    " (" (counted(*names)) "): " (line(&some_names(examples, *names)))
                }
            }
        }
    }
}

pub(super) fn records(rows: &dyn Rows, table_has: &BTreeSet<u64>) -> io::Result<Markup> {
    const COLUMNS: [Column; 3] = [("subject", "name"), ("", "record"), ("wide", "value")];
    let mut quota = Quota::of(MAX_RECORDS_SHOWN);
    let mut records = Vec::new();
    rows.each(&mut |of| {
        for record in of.txt.iter().filter(|_| quota.take()) {
            records.push(row(&COLUMNS, &[name_link(of, table_has), code(&record.key), code(&record.value)]));
        }
        Ok(())
    })?;
    let content = html! {
        p.soft {
            "The card under the name's CID proves these values. Values that only a host served are never proposed."
        }
        (table("records-table", "records", &COLUMNS, &records))
        @if records.is_empty() { p { "None." } }
        (omitted(quota.over, "records"))
    };
    Ok(section("records", "Text records to set", &content))
}

pub(super) fn drafts(report: &Report, rows: &dyn Rows) -> io::Result<Markup> {
    let mut quota = Quota::of(MAX_DRAFTS_SHOWN);
    let mut drafts = Vec::new();
    rows.each(&mut |row| {
        drafts.extend(Draft::of(report, row).filter(|_| quota.take()).map(|draft| draft.markdown(Form::Published)));
        Ok(())
    })?;
    let content = html! {
        @if drafts.is_empty() {
            p { "None." }
        } @else {
            pre tabindex="0" { (Form::Published.head()) @for draft in &drafts { (draft) "\n" } }
        }
        (omitted(quota.over, "draft rows"))
    };
    Ok(section("log", "Draft rows for RESOLUTION.md", &content))
}
