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
    Column, SLOT, actor_word, and_more, cells, code, joined, line, name_link, omitted, role_sentence, row, section,
    soft, table, text, write_around, write_part,
};
use self::picture::STATES;
use super::cause::Cause;
use super::duty::ACTORS;
use super::history::PastCounts;
use super::overview::{CHECKS, NOTICE_DAYS, Overview, days_between};
use super::owners::Owner;
use super::page::{self, Quota, circumstances, day, headline, names as counted, subject};
use super::words::{self, do_together, effect, people, role, role_in_words};
use super::{Group, Report, Rows, opening};
use clresolve_core::digest::Digest;
use clresolve_core::reason::Fixer;
use clresolve_core::text::{Foreign, capitalized};

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

const REASON_COLUMNS: [Column; 7] = [
    ("subject", "code"),
    ("number", "names"),
    ("", "effect"),
    ("short", "rule"),
    ("short", "fixed by"),
    ("wide", "meaning"),
    ("wide", "examples"),
];

pub(super) fn write(report: &Report, rows: &dyn Rows, out: &mut dyn Write) -> io::Result<()> {
    let overview = Overview::of(report, rows)?;
    let table = overview.lines_shown();
    write_around(frame(report, &overview), out, |out| {
        write_part(summary(report, &overview), out)?;
        write_part(actors(&overview), out)?;
        write_part(contents(report, &overview), out)?;
        write_part(changes::of(report, rows, &table)?, out)?;
        write_part(waivers::of(report), out)?;
        let shown = work::write(report, &overview, rows, &table, out)?;
        write_part(completeness(report, rows, &table)?, out)?;
        write_part(layers::of(report), out)?;
        write_part(checks(&overview), out)?;
        write_part(states_over_time(report), out)?;
        write_part(expiries(report, &overview), out)?;
        write_part(reasons(report), out)?;
        names::write(report, rows, &table, &shown, out)?;
        write_part(work::records(rows, &table)?, out)?;
        write_part(work::drafts(report, rows)?, out)?;
        write_part(about(report), out)
    })
}

/// Forbids everything that the page does not contain, in case a bug lets markup through.
fn policy() -> String {
    let hash = |text: &str| STANDARD.encode(Digest::of(text.as_bytes()).as_bytes());
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
}

/// The page around its sections.
fn frame(report: &Report, overview: &Overview) -> Markup {
    let title = headline(report, overview);
    let circumstances: Vec<String> = circumstances(report).iter().map(|fact| text(fact)).collect();
    // Only style and script are `PreEscaped`: they are files of this crate, without foreign text.
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Audit of " (text(&subject(report))) ", " (circumstances.join(", ")) ": " (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    header {
                        p.kicker { "Audit of " (line(&subject(report))) ": " (words::depth(report.scope.depth)) }
                        h1 { (title) "." }
                        ul.opening {
                            @for opening in opening::lines(report, overview) {
                                li { strong { (opening.label) } (line(&opening.pieces)) }
                            }
                        }
                    }
                    @if let Some(warning) = &report.warning {
                        p.warning { strong { "Incomplete." } " " (Foreign::new(warning)) }
                    }
                    (SLOT)
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

/// The states now and in the previous report, as a chart and as numbers.
fn summary(report: &Report, overview: &Overview) -> Markup {
    let now = states(report);
    let before = report.before.as_ref();
    let besides = others_must_act(overview);
    html! {
        section #states aria-label="States" {
            div.lane.now { span { "now" } (picture::states_bar("now", "States now", now)) }
            @if let Some(before) = before {
                div.lane {
                    span { (when(before)) }
                    (picture::states_bar("before", "States in the previous report", before.state_counts()))
                }
            }
            ul.tiles {
                @for (number, ((class, word, sign), meaning)) in STATES.iter().zip(MEANINGS).enumerate() {
                    li class=(class) {
                        b { i aria-hidden="true" { (sign) } " " (now[number]) }
                        (word)
                        @if let Some(before) = before {
                            " " span.step { (step(before.state_counts()[number], now[number])) }
                        }
                        small { (meaning) }
                    }
                }
            }
            @if !besides.is_empty() { p.besides { (besides.join(" ")) } }
        }
    }
}

const fn states(report: &Report) -> [u64; 3] {
    [report.counts.trusted, report.counts.untrusted, report.counts.indeterminate]
}

fn when(report: &PastCounts) -> String {
    report.checked.map_or_else(|| "before".to_owned(), day)
}

fn step(before: u64, now: u64) -> String {
    match now.cmp(&before) {
        std::cmp::Ordering::Equal => "as before".to_owned(),
        std::cmp::Ordering::Greater => format!("+{} since then", now - before),
        std::cmp::Ordering::Less => format!("−{} since then", before - now),
    }
}

/// The actors other than the first: their roles, and on how many names they must act.
fn others_must_act(overview: &Overview) -> Vec<String> {
    let most = overview.most_due().map(|(actor, _)| actor);
    let due = ACTORS.into_iter().zip(overview.due).filter(|(actor, due)| *due > 0 && Some(*actor) != most);
    let mut sentences: Vec<String> = due
        .map(|(actor, due)| {
            let (who, are) = (capitalized(people(actor)), do_together(actor));
            format!("{who}, who {are}, must act on {}.", counted(due))
        })
        .collect();
    match overview.waiting() {
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
fn actors(overview: &Overview) -> Markup {
    let longest = longest_bar(overview);
    let content = html! {
        ul.actors {
            @for (actor, due) in ACTORS.into_iter().zip(overview.due) {
                li class=[(due == 0).then_some("idle")] {
                    h3 { (actor_word(actor)) b { (counted(due)) } }
                    p.soft { (role_sentence(actor)) }
                    @if due == 0 {
                        p { "Nothing to do." }
                    } @else {
                        (causes(overview, actor, longest))
                        @if actor == Fixer::Publisher { (owners(overview, due)) }
                        p { a href={ "#act-" (role(actor)) } { "What to do" } }
                    }
                }
            }
        }
    };
    section("who", "Who must act, and why", &content)
}

/// Number of names for a bar of full width. All actors share one scale.
fn longest_bar(overview: &Overview) -> u64 {
    let of_actor = |actor| {
        let (most, others) = causes_at_the_top(overview, actor);
        most.iter().map(|(_, names)| *names).chain([names_of(&others)]).max()
    };
    ACTORS.into_iter().filter_map(of_actor).max().unwrap_or(0)
}

/// Causes with their numbers of names.
type Causes = Vec<(Cause, u64)>;

/// The most frequent causes, and the others.
fn causes_at_the_top(overview: &Overview, actor: Fixer) -> (Causes, Causes) {
    let mut most = overview.causes_of(actor);
    let others = most.split_off(most.len().min(CAUSES_AT_THE_TOP));
    (most, others)
}

fn names_of(causes: &[(Cause, u64)]) -> u64 {
    causes.iter().map(|(_, names)| names).sum()
}

/// Why an actor must act. The numbers add up to the names on which the actor must act.
fn causes(overview: &Overview, actor: Fixer, longest: u64) -> Markup {
    let (most, others) = causes_at_the_top(overview, actor);
    let item = |cause, words, class, names| {
        html! {
            li {
                a href={ "#" (work::cause_anchor(actor, cause)) } { (words) }
                (picture::length(class, names, longest))
                b { (names) }
            }
        }
    };
    html! {
        ul.lengths {
            @for (cause, names) in most { (item(cause, cause.in_words(), "bad", names)) }
            @if let Some((first, _)) = others.first() {
                (item(*first, "Other causes", "plain", names_of(&others)))
            }
        }
    }
}

/// The owners of the names on which publishers must act: the owner of the most, and the others.
fn owners(overview: &Overview, due: u64) -> Markup {
    let most = overview.owners.most();
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

fn owner_in_words(owner: &Owner) -> Markup {
    match owner {
        Owner::Account(account) => html! { "Owned by " (code(account)) },
        Owner::Nobody | Owner::Unread => capitalized(owner.in_words()).render(),
    }
}

fn other_owners(overview: &Overview) -> Markup {
    html! {
        @match overview.owners.accounts() {
            Some(owners) => { "Owned by " (owners - 1) " others" }
            None => "Other owners, or none known",
        }
    }
}

fn contents(report: &Report, overview: &Overview) -> Markup {
    let has_expiries = overview.expiries.as_ref().is_some_and(|expiries| expiries.known() > 0);
    let sections = [
        ("changes", "Changes", report.since.is_some()),
        ("waivers", "Waivers", !report.waivers.all().is_empty()),
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
fn completeness(report: &Report, rows: &dyn Rows, table_has: &BTreeSet<u64>) -> io::Result<Markup> {
    const COLUMNS: [Column; 2] = [("subject", "name"), ("", "is")];
    let Some(counts) = report.completeness() else { return Ok(html! {}) };
    let mut quota = Quota::of(MAX_REGISTRY_FINDINGS_SHOWN);
    let mut findings = Vec::new();
    page::each_finding(rows, &mut |finding, of| {
        if quota.take() {
            findings.push(row(&COLUMNS, &[name_link(of, table_has), finding.in_words().render()]));
        }
        Ok(())
    })?;
    let content = html! {
        p { (counts) }
        (table("registry-table", "registry", &COLUMNS, &findings))
        (omitted(quota.over, "names"))
    };
    Ok(section("registry", "Registry", &content))
}

/// The results of both depths and of the pairs of sources, over all names.
fn checks(overview: &Overview) -> Markup {
    const COLUMNS: [Column; 5] =
        [("subject", "check"), ("number", "passes"), ("number", "fails"), ("number", "open"), ("wide", "share")];
    let row = |(check, counts): (&str, [u64; 3])| {
        let [passes, fails, open] = counts.map(|count| count.render());
        let share = html! { td.wide { (picture::small_bar(counts)) } };
        html! { tr { (cells(&COLUMNS, &[check.render(), passes, fails, open])) (share) } }
    };
    let rows: Vec<Markup> = CHECKS.into_iter().zip(overview.checks).map(row).collect();
    let content = html! {
        p.soft { "Both depths, then the pairs of sources. Open: not requested, no response, or not reached." }
        (table("checks-table", "checks", &COLUMNS, &rows))
    };
    section("checks", "Checks", &content)
}

/// The states in earlier reports and this one, if there are enough for a chart.
fn states_over_time(report: &Report) -> Markup {
    if report.earlier.len() < 2 {
        return html! {};
    }
    let reports = report.over_time();
    let legend = STATES.iter().map(|(class, word, _)| html! { span class={ "key " (class) } {} (word) });
    let content = html! {
        (picture::states_over_time(&reports))
        @if reports.len() > picture::MAX_LABELLED {
            p.ends { span { (when(&reports[0])) } span { (when(&reports[reports.len() - 1])) } }
        }
        p.legend { "Names, from the base: " (joined(legend, ", ")) "." }
        details {
            summary { "The numbers" }
            ul {
                @for report in &reports { li { (when(report)) ": " (picture::states_in_words(report.state_counts())) } }
            }
        }
    };
    section("over-time", "States over time", &content)
}

fn expiries(report: &Report, overview: &Overview) -> Markup {
    const COLUMNS: [Column; 3] = [("subject", "name"), ("", "expiry"), ("", "in")];
    let Some(expiries) = overview.expiries.as_ref().filter(|expiries| expiries.known() > 0) else { return html! {} };
    let unknown = report.counts.names.saturating_sub(expiries.known());
    let expiry_row = |(expiry, _, name, as_of): &(Timestamp, u64, String, &str)| {
        let left = if *expiry <= expiries.from {
            "has expired".to_owned()
        } else {
            format!("{} days", days_between(expiries.from, *expiry))
        };
        row(&COLUMNS, &[code(name), html! { (day(*expiry)) (soft(as_of)) }, left.render()])
    };
    let rows: Vec<Markup> = expiries.soonest.iter().map(expiry_row).collect();
    let content = html! {
        p.soft {
            "As of " (day(expiries.from)) ". The expiry of " (counted(unknown))
            " does not exist or could not be read."
        }
        (picture::expiries(expiries))
        @if rows.is_empty() { p { "No name expires within " (NOTICE_DAYS) " days." } }
        (table("expiries-table", "expiries", &COLUMNS, &rows))
        (omitted(expiries.over, &format!("names that have expired, or will within {NOTICE_DAYS} days,")))
    };
    section("expiries", "Expiries", &content)
}

fn reasons(report: &Report) -> Markup {
    let rows: Vec<Markup> = report.counts.groups().into_iter().map(|group| reason_row(report, group)).collect();
    let content = html! {
        @if rows.is_empty() { p { "None." } }
        (table("reasons-table", "reasons", &REASON_COLUMNS, &rows))
    };
    section("reasons", "Reasons", &content)
}

fn reason_row(report: &Report, group: &Group) -> Markup {
    let (entry, effect) = (group.code.entry(), effect(group.effect));
    let more = group.names.saturating_sub(u64::try_from(group.examples.len()).unwrap_or(u64::MAX));
    let contents = [
        html! { code class=(effect) { (group.code) } },
        group.names.render(),
        html! { span class=(effect) { (effect) } },
        entry.requirement.render(),
        role_in_words(entry.fixer).render(),
        html! { (entry.title) details.explanation { summary { "More" } (entry.explanation) } },
        joined(group.examples.iter().map(|name| code(name)).chain(and_more(more)), ", "),
    ];
    html! { tr id=[reason_anchor(report, group)] { (cells(&REASON_COLUMNS, &contents)) } }
}

/// The anchor of a code, which exists once: at its gravest effect.
fn reason_anchor(report: &Report, group: &Group) -> Option<String> {
    let gravest = report.counts.groups().into_iter().find(|other| other.code == group.code)?;
    (gravest.effect == group.effect).then(|| format!("code-{}", group.code))
}

/// The scope and rules of the audit, in full.
fn about(report: &Report) -> Markup {
    let content = html! { dl { @for (what, value) in report.facts() { dt { (what) } dd { (Foreign::new(&value)) } } } };
    section("about", "About this report", &content)
}
