//! The report for boards: one HTML page, which works without its script, loads nothing, prints, and fits a phone.

mod changes;
mod layers;
mod markup;
mod names;
mod picture;
mod waivers;
mod work;

use std::collections::BTreeSet;
use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use maud::{DOCTYPE, Markup, PreEscaped, Render as _, html};

use self::markup::{
    HtmlColumn, SLOT, actor_word, cells_markup, code_markup, join_markup, line_markup, more_items_note, name_link,
    omitted_note, role_sentence, row_markup, section_markup, small_print, table_markup, text_runs_plain_text,
    write_framed_content, write_markup_line,
};
use self::picture::STATES;
use super::cause::DefectCategory;
use super::duty::ACTORS;
use super::history::ReportStateCounts;
use super::overview::{AuditOverview, CHECKS, NOTICE_DAYS, days_between};
use super::owners::OnChainOwner;
use super::page::{
    self, ItemQuota, audit_subject, headline, name_count_text as counted, rules_network_and_time, utc_day,
};
use super::words::{self, actor_noun, effect_word, plural_duty_phrase, role_in_words, role_slug};
use super::{AuditReport, AuditRowSource, ReasonSummary, opening};
use clresolve_core::digest::Digest;
use clresolve_core::reason::FixerRole;
use clresolve_core::text::{UntrustedText, capitalize_first};

const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");

/// Maximum number of causes shown per actor at the top. The others are counted together.
const CAUSES_AT_THE_TOP: usize = 4;

/// The meaning of each state, for readers who do not know them.
const MEANINGS: [&str; 3] =
    ["the name is bound to its card and entry", "a check fails: do not call or pay", "a check could not be made"];

/// Maximum number of names shown on which registry and chain disagree. With more, they are different registries. The
/// JSON form has all.
const MAX_REGISTRY_FINDINGS_SHOWN: usize = 500;

const REASON_COLUMNS: [HtmlColumn; 7] = [
    ("subject", "code"),
    ("number", "names"),
    ("", "effect"),
    ("short", "rule"),
    ("short", "fixed by"),
    ("wide", "meaning"),
    ("wide", "examples"),
];

pub(super) fn write_html_report(
    report: &AuditReport,
    rows: &dyn AuditRowSource,
    out: &mut dyn Write,
) -> io::Result<()> {
    let overview = AuditOverview::from_rows(report, rows)?;
    let table = overview.shown_list_lines();
    write_framed_content(page_frame(report, &overview), out, |out| {
        write_markup_line(summary_section(report, &overview), out)?;
        write_markup_line(actors_section(&overview), out)?;
        write_markup_line(table_of_contents(report, &overview), out)?;
        write_markup_line(changes::changes_section(report, rows, &table)?, out)?;
        write_markup_line(waivers::waivers_section(report), out)?;
        let shown = work::write_row_articles(report, &overview, rows, &table, out)?;
        write_markup_line(registry_section(report, rows, &table)?, out)?;
        write_markup_line(layers::layers_section(report), out)?;
        write_markup_line(checks_section(&overview), out)?;
        write_markup_line(state_history_section(report), out)?;
        write_markup_line(expiries_section(report, &overview), out)?;
        write_markup_line(reasons_section(report), out)?;
        names::write_names_table(report, rows, &table, &shown, out)?;
        write_markup_line(work::records_section(rows, &table)?, out)?;
        write_markup_line(work::drafts_section(report, rows)?, out)?;
        write_markup_line(scope_section(report), out)
    })
}

/// Forbids everything that the page does not contain, in case a bug lets markup through.
fn content_security_policy() -> String {
    let hash = |text: &str| STANDARD.encode(Digest::compute(text.as_bytes()).as_bytes());
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
}

/// The page around its sections.
fn page_frame(report: &AuditReport, overview: &AuditOverview) -> Markup {
    let title = headline(report, overview);
    let circumstances: Vec<String> =
        rules_network_and_time(report).iter().map(|fact| text_runs_plain_text(fact)).collect();
    // Only style and script are `PreEscaped`: they are files of this crate, without foreign text.
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(content_security_policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Audit of " (text_runs_plain_text(&audit_subject(report))) ", " (circumstances.join(", ")) ": " (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    header {
                        p.kicker { "Audit of " (line_markup(&audit_subject(report))) ": " (words::depth_phrase(report.scope.depth)) }
                        h1 { (title) "." }
                        ul.opening {
                            @for opening in opening::summary_lines(report, overview) {
                                li { strong { (opening.label) } (line_markup(&opening.pieces)) }
                            }
                        }
                    }
                    @if let Some(warning) = &report.warning {
                        p.warning { strong { "Incomplete." } " " (UntrustedText::new(warning)) }
                    }
                    (SLOT)
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

/// The states now and in the previous report, as a chart and as numbers.
fn summary_section(report: &AuditReport, overview: &AuditOverview) -> Markup {
    let now = report_state_counts(report);
    let before = report.before.as_ref();
    let besides = other_actor_sentences(overview);
    html! {
        section #states aria-label="States" {
            div.lane.now { span { "now" } (picture::states_bar("now", "States now", now)) }
            @if let Some(before) = before {
                div.lane {
                    span { (report_date(before)) }
                    (picture::states_bar("before", "States in the previous report", before.state_counts()))
                }
            }
            ul.tiles {
                @for (number, ((class, word, sign), meaning)) in STATES.iter().zip(MEANINGS).enumerate() {
                    li class=(class) {
                        b { i aria-hidden="true" { (sign) } " " (now[number]) }
                        (word)
                        @if let Some(before) = before {
                            " " span.step { (count_change(before.state_counts()[number], now[number])) }
                        }
                        small { (meaning) }
                    }
                }
            }
            @if !besides.is_empty() { p.besides { (besides.join(" ")) } }
        }
    }
}

const fn report_state_counts(report: &AuditReport) -> [u64; 3] {
    [report.counts.trusted, report.counts.untrusted, report.counts.indeterminate]
}

fn report_date(report: &ReportStateCounts) -> String {
    report.checked.map_or_else(|| "before".to_owned(), utc_day)
}

fn count_change(before: u64, now: u64) -> String {
    match now.cmp(&before) {
        std::cmp::Ordering::Equal => "as before".to_owned(),
        std::cmp::Ordering::Greater => format!("+{} since then", now - before),
        std::cmp::Ordering::Less => format!("−{} since then", before - now),
    }
}

/// The actors other than the first: their roles, and on how many names they must act.
fn other_actor_sentences(overview: &AuditOverview) -> Vec<String> {
    let most = overview.busiest_actor().map(|(actor, _)| actor);
    let due = ACTORS.into_iter().zip(overview.due).filter(|(actor, due)| *due > 0 && Some(*actor) != most);
    let mut sentences: Vec<String> = due
        .map(|(actor, due)| {
            let (who, are) = (capitalize_first(actor_noun(actor)), plural_duty_phrase(actor));
            format!("{who}, who {are}, must act on {}.", counted(due))
        })
        .collect();
    match overview.waiting_names() {
        0 => {}
        waiting => sentences.push(format!("Waiting alone resolves findings of {}.", counted(waiting))),
    }
    match overview.shared {
        0 => {}
        1 => sentences.push("1 name needs several of them and is counted for each.".to_owned()),
        shared => {
            sentences.push(format!("{shared} names need several of them and are counted for each."));
        }
    }
    sentences
}

/// Who must act, on how many names, and why.
fn actors_section(overview: &AuditOverview) -> Markup {
    let longest = max_bar_count(overview);
    let content = html! {
        ul.actors {
            @for (actor, due) in ACTORS.into_iter().zip(overview.due) {
                li class=[(due == 0).then_some("idle")] {
                    h3 { (actor_word(actor)) b { (counted(due)) } }
                    p.soft { (role_sentence(actor)) }
                    @if due == 0 {
                        p { "Nothing to do." }
                    } @else {
                        (causes_markup(overview, actor, longest))
                        @if actor == FixerRole::Publisher { (owners_markup(overview, due)) }
                        p { a href={ "#act-" (role_slug(actor)) } { "What to do" } }
                    }
                }
            }
        }
    };
    section_markup("who", "Who must act, and why", &content)
}

/// Number of names for a bar of full width. All actors share one scale.
fn max_bar_count(overview: &AuditOverview) -> u64 {
    let of_actor = |actor| {
        let [most, others] = split_top_causes(overview, actor);
        most.iter().map(|(_, names)| *names).chain([total_names(&others)]).max()
    };
    ACTORS.into_iter().filter_map(of_actor).max().unwrap_or(0)
}

/// The most frequent causes, and the others, with their numbers of names.
fn split_top_causes(overview: &AuditOverview, actor: FixerRole) -> [Vec<(DefectCategory, u64)>; 2] {
    let mut most = overview.causes_of(actor);
    let others = most.split_off(most.len().min(CAUSES_AT_THE_TOP));
    [most, others]
}

fn total_names(causes: &[(DefectCategory, u64)]) -> u64 {
    causes.iter().map(|(_, names)| names).sum()
}

/// Why an actor must act. The numbers add up to the names on which the actor must act.
fn causes_markup(overview: &AuditOverview, actor: FixerRole, longest: u64) -> Markup {
    let [most, others] = split_top_causes(overview, actor);
    let item = |cause, words, class, names| {
        html! {
            li {
                a href={ "#" (work::cause_anchor(actor, cause)) } { (words) }
                (picture::proportional_bar(class, names, longest))
                b { (names) }
            }
        }
    };
    html! {
        ul.lengths {
            @for (cause, names) in most { (item(cause, cause.in_words(), "bad", names)) }
            @if let Some((first, _)) = others.first() {
                (item(*first, "Other causes", "plain", total_names(&others)))
            }
        }
    }
}

/// The owners of the names on which publishers must act: the owner of the most, and the others.
fn owners_markup(overview: &AuditOverview, due: u64) -> Markup {
    let most = overview.owners.sorted_by_name_count();
    let Some(((owner, owned), others)) = most.split_first() else { return html! {} };
    let mut rows = vec![(owner_in_words(owner), owned.names)];
    match (others, due - owned.names) {
        (_, 0) => {}
        ([(other, owned)], names) if owned.names == names => rows.push((owner_in_words(other), names)),
        (_, names) => rows.push((other_owners(overview), names)),
    }
    html! {
        ul.lengths.whose { @for (words, names) in rows { li { a href="#owners" { (words) } b { (names) } } } }
    }
}

fn owner_in_words(owner: &OnChainOwner) -> Markup {
    match owner {
        OnChainOwner::Account(account) => html! { "Owned by " (code_markup(account)) },
        OnChainOwner::Nobody | OnChainOwner::Unread => capitalize_first(owner.in_words()).render(),
    }
}

fn other_owners(overview: &AuditOverview) -> Markup {
    html! {
        @match overview.owners.account_count() {
            Some(owners) => { "Owned by " (owners - 1) " others" }
            None => "Other owners, or none known",
        }
    }
}

fn table_of_contents(report: &AuditReport, overview: &AuditOverview) -> Markup {
    let has_expiries = overview.expiries.as_ref().is_some_and(|expiries| expiries.known_expiries() > 0);
    let sections = [
        ("changes", "Changes", report.since.is_some()),
        ("waivers", "Waivers", !report.waivers.as_slice().is_empty()),
        ("act", "What to do", true),
        ("registry", "Registry", report.scope.registry.is_some()),
        ("layers", "Schema layers", report.schema_layers.is_some()),
        ("checks", "Checks", true),
        ("over-time", "Over time", report.earlier.len() > 1),
        ("expiries", "Expiries", has_expiries),
        ("reasons", "Reasons", true),
        ("names", "Names", true),
        ("records", "Records to set", true),
        ("log", "Draft log", true),
        ("about", "About", true),
    ];
    html! {
        nav aria-label="Sections" {
            @for (id, word, _) in sections.iter().filter(|(_, _, there)| *there) { a href={ "#" (id) } { (word) } " " }
        }
    }
}

/// The names on which registry and chain disagree.
fn registry_section(report: &AuditReport, rows: &dyn AuditRowSource, table_has: &BTreeSet<u64>) -> io::Result<Markup> {
    const COLUMNS: [HtmlColumn; 2] = [("subject", "name"), ("", "is")];
    let Some(counts) = report.registry_sentence() else { return Ok(html! {}) };
    let mut quota = ItemQuota::with_limit(MAX_REGISTRY_FINDINGS_SHOWN);
    let mut findings = Vec::new();
    page::for_each_registry_mismatch(rows, &mut |finding, of| {
        if quota.try_take() {
            findings.push(row_markup(&COLUMNS, &[name_link(of, table_has), finding.in_words().render()]));
        }
        Ok(())
    })?;
    let content = html! {
        p { (counts) }
        (table_markup("registry-table", "registry", &COLUMNS, &findings))
        (omitted_note(quota.over, "names"))
    };
    Ok(section_markup("registry", "Registry", &content))
}

/// The results of both depths and of the pairs of sources, over all names.
fn checks_section(overview: &AuditOverview) -> Markup {
    const COLUMNS: [HtmlColumn; 5] =
        [("subject", "check"), ("number", "passes"), ("number", "fails"), ("number", "open"), ("wide", "share")];
    let row = |(check, counts): (&str, [u64; 3])| {
        let [passes, fails, open] = counts.map(|count| count.render());
        let share = html! { td.wide { (picture::small_states_bar(counts)) } };
        html! { tr { (cells_markup(&COLUMNS, &[check.render(), passes, fails, open])) (share) } }
    };
    let rows: Vec<Markup> = CHECKS.into_iter().zip(overview.checks).map(row).collect();
    let content = html! {
        p.soft { "Both depths, then the pairs of sources. Open: not requested, no response, or not reached." }
        (table_markup("checks-table", "checks", &COLUMNS, &rows))
    };
    section_markup("checks", "Checks", &content)
}

/// The states in earlier reports and this one, if there are enough for a chart.
fn state_history_section(report: &AuditReport) -> Markup {
    if report.earlier.len() < 2 {
        return html! {};
    }
    let reports = report.counts_over_time();
    let legend = STATES.iter().map(|(class, word, _)| html! { span class={ "key " (class) } {} (word) });
    let content = html! {
        (picture::states_chart(&reports))
        @if reports.len() > picture::MAX_LABELLED {
            p.ends { span { (report_date(&reports[0])) } span { (report_date(&reports[reports.len() - 1])) } }
        }
        p.legend { "Names, from the base: " (join_markup(legend, ", ")) "." }
        details {
            summary { "The numbers" }
            ul {
                @for report in &reports { li { (report_date(report)) ": " (picture::states_in_words(report.state_counts())) } }
            }
        }
    };
    section_markup("over-time", "States over time", &content)
}

fn expiries_section(report: &AuditReport, overview: &AuditOverview) -> Markup {
    const COLUMNS: [HtmlColumn; 3] = [("subject", "name"), ("", "expiry"), ("", "in")];
    let Some(expiries) = overview.expiries.as_ref().filter(|expiries| expiries.known_expiries() > 0) else {
        return html! {};
    };
    let unknown = report.counts.names.saturating_sub(expiries.known_expiries());
    let expiry_row = |(expiry, _, name, as_of): &(Timestamp, u64, String, &str)| {
        let left = if *expiry <= expiries.from {
            "has expired".to_owned()
        } else {
            format!("{} days", days_between(expiries.from, *expiry))
        };
        row_markup(&COLUMNS, &[code_markup(name), html! { (utc_day(*expiry)) (small_print(as_of)) }, left.render()])
    };
    let rows: Vec<Markup> = expiries.soonest.iter().map(expiry_row).collect();
    let content = html! {
        p.soft {
            "As of " (utc_day(expiries.from)) ". The expiry of " (counted(unknown))
            " does not exist or could not be read."
        }
        (picture::expiries_chart(expiries))
        @if rows.is_empty() { p { "No name expires within " (NOTICE_DAYS) " days." } }
        (table_markup("expiries-table", "expiries", &COLUMNS, &rows))
        (omitted_note(expiries.over, &format!("names that have expired, or will within {NOTICE_DAYS} days,")))
    };
    section_markup("expiries", "Expiries", &content)
}

fn reasons_section(report: &AuditReport) -> Markup {
    let rows: Vec<Markup> =
        report.counts.sorted_summaries().into_iter().map(|group| reason_row(report, group)).collect();
    let content = html! {
        @if rows.is_empty() { p { "None." } }
        (table_markup("reasons-table", "reasons", &REASON_COLUMNS, &rows))
    };
    section_markup("reasons", "Reasons", &content)
}

fn reason_row(report: &AuditReport, group: &ReasonSummary) -> Markup {
    let (entry, effect) = (group.code.entry(), effect_word(group.effect));
    let more = group.names.saturating_sub(u64::try_from(group.examples.len()).unwrap_or(u64::MAX));
    let contents = [
        html! { code class=(effect) { (group.code) } },
        group.names.render(),
        html! { span class=(effect) { (effect) } },
        entry.requirement.render(),
        role_in_words(entry.fixer).render(),
        html! { (entry.title) details.explanation { summary { "More" } (entry.explanation) } },
        join_markup(group.examples.iter().map(|name| code_markup(name)).chain(more_items_note(more)), ", "),
    ];
    html! { tr id=[reason_anchor(report, group)] { (cells_markup(&REASON_COLUMNS, &contents)) } }
}

/// The anchor of a code, which exists once: at its gravest effect.
fn reason_anchor(report: &AuditReport, group: &ReasonSummary) -> Option<String> {
    let gravest = report.counts.sorted_summaries().into_iter().find(|other| other.code == group.code)?;
    (gravest.effect == group.effect).then(|| format!("code-{}", group.code))
}

/// The scope and rules of the audit, in full.
fn scope_section(report: &AuditReport) -> Markup {
    let content = html! { dl { @for (what, value) in report.labelled_facts() { dt { (what) } dd { (UntrustedText::new(&value)) } } } };
    section_markup("about", "About this report", &content)
}
