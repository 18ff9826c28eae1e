//! The work to do: the findings of names, grouped by actor, with the record to set or the command to run.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use maud::{Markup, Render as _, html};

use super::markup::{
    HtmlColumn, SLOT, actor_word, code_markup, join_markup, line_markup, link_to, more_items_note, name_link,
    omitted_note, owner_markup, role_sentence, row_markup, section_markup, small_print, table_markup,
    write_framed_content, write_markup_line,
};
use crate::cause::DefectCategory;
use crate::duty::{ACTORS, AWAITED, MAX_LINE_CHARACTERS, is_actor_needed, repair_tasks};
use crate::governance_log::GovernanceTableLayout;
use crate::overview::{AuditOverview, identity_check_status, schema_check_status};
use crate::owners::{OnChainOwner, OwnerSummary};
use crate::page::{
    BulletPoint, ItemQuota, TextRun, comma_separated_runs, finding_points, name_count_text as counted,
    same_findings_note, source_digests_point, truncated_names_text,
};
use crate::words::role_slug;
use crate::{AuditReport, AuditRow, AuditRowSource, LogRowDraft, ReasonSummary, SourceAgreement};
use clresolve_core::reason::{FixerRole, ReasonEffect};
use clresolve_core::text::UntrustedText;

/// Maximum number of articles. Names with the same findings share one, and a registry has a handful of kinds; nobody
/// reads more in one page.
const MAX_ARTICLES: usize = 256;

/// Maximum number of records listed. People set them by hand.
const MAX_RECORDS_SHOWN: usize = 500;

const MAX_DRAFTS_SHOWN: usize = 500;

/// Writes all articles, and returns the lines of the list that have one.
pub(super) fn write_row_articles(
    report: &AuditReport,
    overview: &AuditOverview,
    rows: &dyn AuditRowSource,
    table_has: &BTreeSet<u64>,
    out: &mut dyn Write,
) -> io::Result<BTreeSet<u64>> {
    let mut shown = BTreeSet::new();
    let mut quota = ItemQuota::with_limit(MAX_ARTICLES);
    write_framed_content(section_markup("act", "What to do", &SLOT.render()), out, |out| {
        for (actor, due) in AWAITED.into_iter().zip(overview.due) {
            let warnings = actor_warnings(report, actor);
            if due == 0 && warnings.is_empty() {
                continue;
            }
            let frame = html! {
                section id={ "act-" (role_slug(actor)) } {
                    h3 { (actor_word(actor)) " " span.soft { (counted(due)) ". " (role_sentence(actor)) } }
                    @if actor == FixerRole::Publisher && due > 0 { (owners_table(overview, table_has)) }
                    (SLOT)
                    @if !warnings.is_empty() { (warnings_list(&warnings)) }
                }
            };
            let articles = article_rows(report, actor, rows, &mut quota)?;
            write_framed_content(frame, out, |out| {
                for (cause, names) in overview.causes_of(actor) {
                    write_markup_line(cause_heading(actor, cause, names), out)?;
                    for row in articles.get(&cause).into_iter().flatten() {
                        // If two actors must act on a name, only the first of its articles gets the anchor, because ids
                        // are unique.
                        let is_first = shown.insert(row.line);
                        write_markup_line(row_article(report, actor, row, is_first), out)?;
                    }
                }
                Ok(())
            })?;
        }
        let end = html! {
            @if overview.busiest_actor().is_none() { p { "Nobody has to act on a failure." } }
            (omitted_note(quota.over, "sets of findings"))
        };
        write_markup_line(end, out)
    })?;
    Ok(shown)
}

fn cause_heading(actor: FixerRole, cause: DefectCategory, names: u64) -> Markup {
    html! { h4 id=(cause_anchor(actor, cause)) { (cause.in_words()) " " span.soft { (counted(names)) } } }
}

pub(super) fn cause_anchor(actor: FixerRole, cause: DefectCategory) -> String {
    format!("cause-{}-{}", role_slug(actor), cause.slug())
}

/// The rows for an actor's articles, by cause, up to the remaining quota.
fn article_rows(
    report: &AuditReport,
    actor: FixerRole,
    rows: &dyn AuditRowSource,
    quota: &mut ItemQuota,
) -> io::Result<BTreeMap<DefectCategory, Vec<AuditRow>>> {
    let mut articles: BTreeMap<DefectCategory, Vec<AuditRow>> = BTreeMap::new();
    rows.for_each_row(&mut |row| {
        let Some(cause) = DefectCategory::for_actor(actor, row) else { return Ok(()) };
        let shares = report.counts.same_findings(row).is_some_and(|alike| alike.line != row.line);
        if !shares && quota.try_take() {
            articles.entry(cause).or_default().push(row.clone());
        }
        Ok(())
    })?;
    Ok(articles)
}

/// The owners of the names on which publishers must act.
fn owners_table(overview: &AuditOverview, table_has: &BTreeSet<u64>) -> Markup {
    const COLUMNS: [HtmlColumn; 4] =
        [("number", "names"), ("account", "owner"), ("wide", "because of"), ("wide", "which")];
    let owner_row = |(who, owned): (&OnChainOwner, &OwnerSummary)| {
        let names = owned.first.iter().map(|name| {
            html! { (link_to(name.line, &name.name, &name.anchor, table_has)) (small_print(name.as_of)) }
        });
        let more = owned.names.saturating_sub(owned.first.len() as u64);
        let which = join_markup(names.chain(more_items_note(more)), ", ");
        row_markup(&COLUMNS, &[owned.names.render(), owner_markup(who), owner_causes(owned), which])
    };
    let rows: Vec<Markup> = overview.owners.sorted_by_name_count().into_iter().map(owner_row).collect();
    html! {
        h4 #owners { "By owner" }
        (table_markup("owners-table", "owners", &COLUMNS, &rows))
        (omitted_note(overview.owners.over, "names of other owners"))
    }
}

/// The causes among an owner's names, with their numbers.
fn owner_causes(owned: &OwnerSummary) -> Markup {
    let cause = |(cause, names): (DefectCategory, u64)| {
        html! { (names) ": " a href={ "#" (cause_anchor(FixerRole::Publisher, cause)) } { (cause.in_words()) } }
    };
    join_markup(owned.causes().into_iter().map(cause), html! { br; })
}

fn row_article(report: &AuditReport, actor: FixerRole, row: &AuditRow, is_first: bool) -> Markup {
    let alike = report.counts.same_findings(row);
    let others = alike.map_or(0, |alike| alike.names - 1);
    let with: Vec<_> =
        ACTORS.into_iter().filter(|other| *other != actor && is_actor_needed(*other, row)).map(role_slug).collect();
    let state = row.state;
    html! {
        article id=[is_first.then(|| format!("findings-{}", row.line))] class=(state) {
            h5 {
                (code_markup(row.name()))
                @if others > 0 { " and " (others) " more" }
                " " span class={ (state) " state" } { (state) }
            }
            p.depths { (depth_results_markup(row)) }
            @if let Some(alike) = alike.filter(|_| others > 0) {
                p.soft { (line_markup(&same_findings_note(&alike.others, others))) }
            }
            @if row.normalized.as_deref() != Some(&row.input) {
                p.soft { "Typed as " (code_markup(&row.input)) " in " (row.place_in_words()) "." }
            }
            @for found in finding_points(row, &|reason| reason.code.entry().fixer == actor) { (point_markup(&found)) }
            @if row.more_reasons > 0 { p { "and " (row.more_reasons) " more findings" } }
            @if let Some(digests) = source_digests_point(&row.drift).filter(|_| actor == FixerRole::Publisher) { (point_markup(&digests)) }
            @if !with.is_empty() { p.soft { "Others who must act: " (with.join(", ")) "." } }
            @if !row.near_misses.is_empty() { p { "Trusted by the rules " (line_markup(&comma_separated_runs(&row.near_misses))) "." } }
            (duties_list(report, actor, row, others))
        }
    }
}

/// The results of both depths for a name.
fn depth_results_markup(row: &AuditRow) -> Markup {
    let word = |agreement| match agreement {
        SourceAgreement::Agree => html! { span.agree { "✓ pass" } },
        SourceAgreement::Differ => html! { span.differ { "✗ fail" } },
        SourceAgreement::Open => html! { span.open { "– open" } },
    };
    let (identity, schemas) = (identity_check_status(row).into(), schema_check_status(row).into());
    html! { "identity checks " (word(identity)) " · schema checks " (word(schemas)) }
}

fn duties_list(report: &AuditReport, actor: FixerRole, row: &AuditRow, others: u64) -> Markup {
    html! {
        ul.duties {
            @for duty in repair_tasks(actor, report, row) {
                li {
                    (duty.what)
                    @if let Some(line) = &duty.line {
                        pre tabindex="0" { (UntrustedText::new(line).with_limit(MAX_LINE_CHARACTERS)) }
                    }
                }
            }
            @if others > 0 && !row.txt.is_empty() && actor == FixerRole::Publisher {
                li { "Each of the other names needs its own values: " a href="#records" { "records to set" } "." }
            }
        }
    }
}

fn point_markup(point: &BulletPoint<'_>) -> Markup {
    html! {
        div.point {
            (line_markup(&point.head))
            @if !point.lines.is_empty() { ul { @for below in &point.lines { li { (line_markup(below)) } } } }
        }
    }
}

/// The warnings that an actor can resolve, over all names.
fn actor_warnings(report: &AuditReport, actor: FixerRole) -> Vec<&ReasonSummary> {
    let groups = report.counts.sorted_summaries().into_iter();
    groups.filter(|group| group.effect == ReasonEffect::Warn && group.code.entry().fixer == actor).collect()
}

fn warnings_list(warnings: &[&ReasonSummary]) -> Markup {
    html! {
        h4 { "Warnings" }
        p.soft { "Warnings do not change the state of any name." }
        ul.warnings {
            @for ReasonSummary { code, names, examples, .. } in warnings {
                li {
                    (line_markup(&[TextRun::Code(*code, ReasonEffect::Warn)])) " " (code.entry().title)
                    " (" (counted(*names)) "): " (line_markup(&truncated_names_text(examples, *names)))
                }
            }
        }
    }
}

pub(super) fn records_section(rows: &dyn AuditRowSource, table_has: &BTreeSet<u64>) -> io::Result<Markup> {
    const COLUMNS: [HtmlColumn; 3] = [("subject", "name"), ("", "record"), ("wide", "value")];
    let mut quota = ItemQuota::with_limit(MAX_RECORDS_SHOWN);
    let mut records = Vec::new();
    rows.for_each_row(&mut |of| {
        for record in of.txt.iter().filter(|_| quota.try_take()) {
            records.push(row_markup(
                &COLUMNS,
                &[name_link(of, table_has), code_markup(&record.key), code_markup(&record.value)],
            ));
        }
        Ok(())
    })?;
    let content = html! {
        p.soft {
            "The card under the name's CID proves these values. Values that only a host served are never proposed."
        }
        (table_markup("records-table", "records", &COLUMNS, &records))
        @if records.is_empty() { p { "None." } }
        (omitted_note(quota.over, "records"))
    };
    Ok(section_markup("records", "Text records to set", &content))
}

pub(super) fn drafts_section(report: &AuditReport, rows: &dyn AuditRowSource) -> io::Result<Markup> {
    let mut quota = ItemQuota::with_limit(MAX_DRAFTS_SHOWN);
    let mut drafts = Vec::new();
    rows.for_each_row(&mut |row| {
        drafts.extend(
            LogRowDraft::from_row(report, row)
                .filter(|_| quota.try_take())
                .map(|draft| draft.markdown(GovernanceTableLayout::Published)),
        );
        Ok(())
    })?;
    let content = html! {
        @if drafts.is_empty() {
            p { "None." }
        } @else {
            pre tabindex="0" { (GovernanceTableLayout::Published.table_head_markdown()) @for draft in &drafts { (draft) "\n" } }
        }
        (omitted_note(quota.over, "draft rows"))
    };
    Ok(section_markup("log", "Draft rows for RESOLUTION.md", &content))
}
