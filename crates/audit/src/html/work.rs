//! The work to do: the findings of names, grouped by actor, with the record to set or the command to run.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use super::markup::{
    actor_word, code, line, link_to, markup, name_link, owner, role_sentence, soft, table, write_omitted,
};
use crate::cause::Cause;
use crate::duty::{ACTORS, AWAITED, MAX_LINE_CHARACTERS, duties, is_due};
use crate::governance_log::Form;
use crate::overview::{Overview, identity_checks, schema_checks};
use crate::owners::Owned;
use crate::page::{Point, Quota, digests, listed, names as counted, points, same_findings, some_names};
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
    writeln!(out, "<section id=\"act\">\n<h2>What to do</h2>")?;
    for (actor, due) in AWAITED.into_iter().zip(overview.due) {
        let word = actor_word(actor);
        let warnings = warnings(report, actor);
        if due == 0 && warnings.is_empty() {
            continue;
        }
        writeln!(
            out,
            "<section id=\"act-{}\">\n<h3>{word} <span class=\"soft\">{}. {}</span></h3>",
            role(actor),
            counted(due),
            role_sentence(actor)
        )?;
        if actor == Fixer::Publisher && due > 0 {
            owners(overview, table_has, out)?;
        }
        let articles = articles(report, actor, rows, &mut quota)?;
        for (cause, names) in overview.causes_of(actor) {
            let (anchor, words) = (cause_anchor(actor, cause), cause.in_words());
            writeln!(out, "<h4 id=\"{anchor}\">{words} <span class=\"soft\">{}</span></h4>", counted(names))?;
            for row in articles.get(&cause).into_iter().flatten() {
                // If two actors must act on a name, the first article has its anchor.
                let is_first = shown.insert(row.line);
                article(report, actor, row, is_first, out)?;
            }
        }
        write_warnings(&warnings, out)?;
        writeln!(out, "</section>")?;
    }
    if overview.most_due().is_none() {
        writeln!(out, "<p>Nobody has to act on a failure.</p>")?;
    }
    write_omitted(quota.over, "sets of findings", out)?;
    writeln!(out, "</section>")?;
    Ok(shown)
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
fn owners(overview: &Overview, table_has: &BTreeSet<u64>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<h4 id=\"owners\">By owner</h4>\n{}",
        table("owners-table", "owners", &["names", "owner", "because of", "which"])
    )?;
    for (who, owned) in overview.owners.most() {
        let names =
            owned.first.iter().map(|name| link_to(name.line, &name.name, &name.anchor, table_has) + &soft(name.as_of));
        let mut names: Vec<String> = names.collect();
        let more = owned.names.saturating_sub(names.len() as u64);
        if more > 0 {
            names.push(format!("and {more} more"));
        }
        writeln!(
            out,
            "<tr><td class=\"number\" data-label=\"names\">{}</td><td class=\"account\" data-label=\"owner\">{}</td>\
             <td class=\"wide\" data-label=\"because of\">{}</td><td class=\"wide\" data-label=\"which\">{}</td></tr>",
            owned.names,
            owner(who),
            reasons_of(owned),
            names.join(", ")
        )?;
    }
    writeln!(out, "</tbody></table></div>")?;
    write_omitted(overview.owners.over, "names, of further owners,", out)
}

/// The causes among an owner's names, with their numbers.
fn reasons_of(owned: &Owned) -> String {
    let cause = |(cause, names): (Cause, u64)| {
        let anchor = cause_anchor(Fixer::Publisher, cause);
        format!("{names}: <a href=\"#{anchor}\">{}</a>", markup(cause.in_words()))
    };
    owned.causes().into_iter().map(cause).collect::<Vec<_>>().join("<br>")
}

fn article(report: &Report, actor: Fixer, row: &Row, is_first: bool, out: &mut dyn Write) -> io::Result<()> {
    let alike = report.counts.alike(row);
    let others = alike.map_or(0, |alike| alike.names - 1);
    let anchor = if is_first { format!(" id=\"findings-{}\"", row.line) } else { String::new() };
    let more = if others > 0 { format!(" and {others} more") } else { String::new() };
    writeln!(
        out,
        "<article{anchor} class=\"{state}\">\n<h5>{}{more} <span class=\"{state} state\">{state}</span></h5>",
        code(row.name()),
        state = row.state
    )?;
    writeln!(out, "<p class=\"depths\">{}</p>", depths(row))?;
    if let Some(alike) = alike.filter(|_| others > 0) {
        writeln!(out, "<p class=\"soft\">{}</p>", line(&same_findings(&alike.others, others)))?;
    }
    if row.normalized.as_deref() != Some(&row.input) {
        writeln!(out, "<p class=\"soft\">Typed as {} in {}.</p>", code(&row.input), row.place())?;
    }
    let found = points(row, &|reason| reason.code.entry().fixer == actor);
    found.iter().try_for_each(|point| write_point(point, out))?;
    if row.more_reasons > 0 {
        writeln!(out, "<p>and {} more findings</p>", row.more_reasons)?;
    }
    if let Some(digests) = digests(&row.drift).filter(|_| actor == Fixer::Publisher) {
        write_point(&digests, out)?;
    }
    let with: Vec<_> = ACTORS.into_iter().filter(|other| *other != actor && is_due(*other, row)).map(role).collect();
    if !with.is_empty() {
        writeln!(out, "<p class=\"soft\">Must act too: {}.</p>", with.join(", "))?;
    }
    if !row.near_misses.is_empty() {
        writeln!(out, "<p>Trusted by the rules {}.</p>", line(&listed(&row.near_misses)))?;
    }
    do_this(report, actor, row, others, out)?;
    writeln!(out, "</article>")
}

/// The results of both depths for a name.
fn depths(row: &Row) -> String {
    let word = |agreement| match agreement {
        Agreement::Agree => "<span class=\"agree\">✓ pass</span>",
        Agreement::Differ => "<span class=\"differ\">✗ fail</span>",
        Agreement::Open => "<span class=\"open\">– open</span>",
    };
    let (identity, schemas) = (identity_checks(row).into(), schema_checks(row).into());
    format!("identity checks {} · schema checks {}", word(identity), word(schemas))
}

fn do_this(report: &Report, actor: Fixer, row: &Row, others: u64, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<ul class=\"duties\">")?;
    for duty in duties(actor, report, row) {
        write!(out, "<li>{}", markup(&duty.what))?;
        if let Some(line) = &duty.line {
            let line = Foreign::new(line).at_most(MAX_LINE_CHARACTERS).html();
            write!(out, "<pre tabindex=\"0\">{line}</pre>")?;
        }
        writeln!(out, "</li>")?;
    }
    if others > 0 && !row.txt.is_empty() && actor == Fixer::Publisher {
        writeln!(out, "<li>The other names have values of their own: <a href=\"#records\">records to set</a>.</li>")?;
    }
    writeln!(out, "</ul>")
}

fn write_point(point: &Point<'_>, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "<div class=\"point\">{}", line(&point.head))?;
    if !point.lines.is_empty() {
        write!(out, "<ul>")?;
        point.lines.iter().try_for_each(|below| write!(out, "<li>{}</li>", line(below)))?;
        write!(out, "</ul>")?;
    }
    writeln!(out, "</div>")
}

/// The warnings that an actor can resolve, over all names.
fn warnings(report: &Report, actor: Fixer) -> Vec<&Group> {
    let groups = report.counts.groups().into_iter();
    groups.filter(|group| group.effect == Effect::Warn && group.code.entry().fixer == actor).collect()
}

fn write_warnings(warnings: &[&Group], out: &mut dyn Write) -> io::Result<()> {
    if warnings.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h4>Warnings</h4>\n<p class=\"soft\">They change no state.</p>\n<ul class=\"warnings\">")?;
    for group in warnings {
        let names = some_names(&group.examples, group.names);
        let (slug, title) = (group.code, group.code.entry().title);
        writeln!(
            out,
            "<li><a class=\"warn\" href=\"#code-{slug}\"><code>{slug}</code></a> {} ({}): {}</li>",
            markup(title),
            counted(group.names),
            line(&names)
        )?;
    }
    writeln!(out, "</ul>")
}

pub(super) fn records(rows: &dyn Rows, table_has: &BTreeSet<u64>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<section id=\"records\">\n<h2>Text records to set</h2>\n<p class=\"soft\">The card under the name's CID proves \
         these values. Values that only a host served are never proposed.</p>"
    )?;
    let mut quota = Quota::of(MAX_RECORDS_SHOWN);
    let mut any = false;
    rows.each(&mut |row| {
        for record in row.txt.iter().filter(|_| quota.take()) {
            if !std::mem::replace(&mut any, true) {
                writeln!(out, "{}", table("records-table", "records", &["name", "record", "value"]))?;
            }
            writeln!(
                out,
                "<tr><td class=\"subject\" data-label=\"name\">{}</td>\
                 <td data-label=\"record\">{}</td><td class=\"wide\" data-label=\"value\">{}</td></tr>",
                name_link(row, table_has),
                code(&record.key),
                code(&record.value)
            )?;
        }
        Ok(())
    })?;
    writeln!(out, "{}", if any { "</tbody></table></div>" } else { "<p>None.</p>" })?;
    write_omitted(quota.over, "records", out)?;
    writeln!(out, "</section>")
}

pub(super) fn drafts(report: &Report, rows: &dyn Rows, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<section id=\"log\">\n<h2>Draft rows for RESOLUTION.md</h2>")?;
    let mut quota = Quota::of(MAX_DRAFTS_SHOWN);
    let mut any = false;
    rows.each(&mut |row| {
        let Some(draft) = Draft::of(report, row).filter(|_| quota.take()) else { return Ok(()) };
        if !std::mem::replace(&mut any, true) {
            write!(out, "<pre tabindex=\"0\">{}", Form::Published.head())?;
        }
        writeln!(out, "{}", markup(&draft.markdown(Form::Published)))
    })?;
    writeln!(out, "{}", if any { "</pre>" } else { "<p>None.</p>" })?;
    write_omitted(quota.over, "draft rows", out)?;
    writeln!(out, "</section>")
}
