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

use self::markup::{actor_word, code, html, line, markup, name_link, role_sentence, soft, table, text, write_omitted};
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
use clresolve_core::text::capitalized;

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

pub(super) fn write(report: &Report, rows: &dyn Rows, out: &mut dyn Write) -> io::Result<()> {
    let overview = Overview::of(report, rows)?;
    let table = overview.lines_shown();
    head(report, &overview, out)?;
    summary(report, &overview, out)?;
    actors(&overview, out)?;
    contents(report, &overview, out)?;
    changes::write(report, rows, &table, out)?;
    waivers::write(report, out)?;
    let shown = work::write(report, &overview, rows, &table, out)?;
    completeness(report, rows, &table, out)?;
    layers::write(report, out)?;
    checks(&overview, out)?;
    states_over_time(report, out)?;
    expiries(report, &overview, out)?;
    reasons(report, out)?;
    names::write(report, rows, &table, &shown, out)?;
    work::records(rows, &table, out)?;
    work::drafts(report, rows, out)?;
    about(report, out)?;
    writeln!(out, "</main>\n<script>{SCRIPT}</script>\n</body>\n</html>")
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

fn head(report: &Report, overview: &Overview, out: &mut dyn Write) -> io::Result<()> {
    let title = headline(report, overview);
    let circumstances = circumstances(report);
    let in_title: Vec<String> = circumstances.iter().map(|fact| text(fact)).collect();
    writeln!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Audit of {}, {}: {title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<header>",
        policy(),
        text(&subject(report)),
        in_title.join(", ")
    )?;
    let depth = words::depth(report.scope.depth);
    writeln!(out, "<p class=\"kicker\">Audit of {}: {depth}</p>", line(&subject(report)))?;
    writeln!(out, "<h1>{title}.</h1>\n<ul class=\"opening\">")?;
    for opening in opening::lines(report, overview) {
        writeln!(out, "<li><strong>{}</strong>{}</li>", opening.label, line(&opening.pieces))?;
    }
    writeln!(out, "</ul>\n</header>")?;
    match &report.warning {
        Some(warning) => writeln!(out, "<p class=\"warning\"><strong>Incomplete.</strong> {}</p>", html(warning)),
        None => Ok(()),
    }
}

/// The states now and in the previous report, as a chart and as numbers.
fn summary(report: &Report, overview: &Overview, out: &mut dyn Write) -> io::Result<()> {
    let now = states(report);
    let before = report.before.as_ref();
    writeln!(out, "<section id=\"states\" aria-label=\"States\">")?;
    writeln!(out, "<div class=\"lane now\"><span>now</span>{}</div>", picture::states_bar("now", "States now", now))?;
    if let Some(before) = before {
        let bar = picture::states_bar("before", "States in the previous report", before.states());
        writeln!(out, "<div class=\"lane\"><span>{}</span>{bar}</div>", when(before))?;
    }
    writeln!(out, "<ul class=\"tiles\">")?;
    for (number, ((class, word, sign), meaning)) in STATES.iter().zip(MEANINGS).enumerate() {
        let step = before.map_or_else(String::new, |before| step(before.states()[number], now[number]));
        let count = now[number];
        writeln!(
            out,
            "<li class=\"{class}\"><b><i aria-hidden=\"true\">{sign}</i> {count}</b>{word}{step}<small>{meaning}</small></li>"
        )?;
    }
    writeln!(out, "</ul>")?;
    let besides = others_must_act(overview);
    if !besides.is_empty() {
        writeln!(out, "<p class=\"besides\">{}</p>", besides.join(" "))?;
    }
    writeln!(out, "</section>")
}

const fn states(report: &Report) -> [u64; 3] {
    [report.counts.trusted, report.counts.untrusted, report.counts.indeterminate]
}

fn when(report: &PastCounts) -> String {
    report.checked.map_or_else(|| "before".to_owned(), day)
}

fn step(before: u64, now: u64) -> String {
    let text = match now.cmp(&before) {
        std::cmp::Ordering::Equal => "as before".to_owned(),
        std::cmp::Ordering::Greater => format!("+{} since then", now - before),
        std::cmp::Ordering::Less => format!("−{} since then", before - now),
    };
    format!(" <span class=\"step\">{text}</span>")
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
fn actors(overview: &Overview, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<section id=\"who\">\n<h2>Who must act, and why</h2>\n<ul class=\"actors\">")?;
    let longest = longest_bar(overview);
    for (actor, due) in ACTORS.into_iter().zip(overview.due) {
        let word = actor_word(actor);
        let class = if due == 0 { " class=\"idle\"" } else { "" };
        writeln!(
            out,
            "<li{class}><h3>{word}<b>{}</b></h3><p class=\"soft\">{}</p>",
            counted(due),
            role_sentence(actor)
        )?;
        if due == 0 {
            writeln!(out, "<p>Nothing to do.</p></li>")?;
            continue;
        }
        causes(overview, actor, longest, out)?;
        if actor == Fixer::Publisher {
            owners(overview, due, out)?;
        }
        writeln!(out, "<p><a href=\"#act-{}\">What to do</a></p></li>", role(actor))?;
    }
    writeln!(out, "</ul>\n</section>")
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
fn causes(overview: &Overview, actor: Fixer, longest: u64, out: &mut dyn Write) -> io::Result<()> {
    let (most, others) = causes_at_the_top(overview, actor);
    writeln!(out, "<ul class=\"lengths\">")?;
    for (cause, names) in most {
        let bar = picture::length("bad", names, longest);
        let (words, anchor) = (cause.in_words(), work::cause_anchor(actor, cause));
        writeln!(out, "<li><a href=\"#{anchor}\">{words}</a>{bar}<b>{names}</b></li>")?;
    }
    if let Some((first, _)) = others.first() {
        let names = names_of(&others);
        let (bar, anchor) = (picture::length("plain", names, longest), work::cause_anchor(actor, *first));
        writeln!(out, "<li><a href=\"#{anchor}\">Other causes</a>{bar}<b>{names}</b></li>")?;
    }
    writeln!(out, "</ul>")
}

/// The owners of the names on which publishers must act: the owner of the most, and the others.
fn owners(overview: &Overview, due: u64, out: &mut dyn Write) -> io::Result<()> {
    let most = overview.owners.most();
    let Some(((owner, owned), others)) = most.split_first() else { return Ok(()) };
    let mut rows = vec![(owner_in_words(owner), owned.names)];
    match (others, due - owned.names) {
        (_, 0) => {}
        ([(other, owned)], names) if owned.names == names => rows.push((owner_in_words(other), names)),
        (_, names) => rows.push((other_owners(overview), names)),
    }
    writeln!(out, "<ul class=\"lengths whose\">")?;
    for (words, names) in rows {
        writeln!(out, "<li><a href=\"#owners\">{words}</a><b>{names}</b></li>")?;
    }
    writeln!(out, "</ul>")
}

fn owner_in_words(owner: &Owner) -> String {
    match owner {
        Owner::Account(account) => format!("Owned by {}", code(account)),
        Owner::Nobody | Owner::Unread => capitalized(owner.in_words()),
    }
}

fn other_owners(overview: &Overview) -> String {
    overview
        .owners
        .accounts()
        .map_or_else(|| "Other owners, or none known".to_owned(), |owners| format!("Owned by {} others", owners - 1))
}

fn contents(report: &Report, overview: &Overview, out: &mut dyn Write) -> io::Result<()> {
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
    write!(out, "<nav aria-label=\"Sections\">")?;
    for (id, word, _) in sections.iter().filter(|(_, _, there)| *there) {
        write!(out, "<a href=\"#{id}\">{word}</a> ")?;
    }
    writeln!(out, "</nav>")
}

/// The names on which registry and chain disagree.
fn completeness(report: &Report, rows: &dyn Rows, table_has: &BTreeSet<u64>, out: &mut dyn Write) -> io::Result<()> {
    let Some(counts) = report.completeness() else { return Ok(()) };
    writeln!(out, "<section id=\"registry\">\n<h2>Registry</h2>\n<p>{counts}</p>")?;
    let mut quota = Quota::of(MAX_REGISTRY_FINDINGS_SHOWN);
    let mut any = false;
    page::each_finding(rows, &mut |finding, row| {
        if !quota.take() {
            return Ok(());
        }
        if !std::mem::replace(&mut any, true) {
            writeln!(out, "{}", table("registry-table", "registry", &["name", "is"]))?;
        }
        writeln!(
            out,
            "<tr><td class=\"subject\" data-label=\"name\">{}</td><td data-label=\"is\">{}</td></tr>",
            name_link(row, table_has),
            finding.in_words()
        )
    })?;
    writeln!(out, "{}", if any { "</tbody></table></div>" } else { "" })?;
    write_omitted(quota.over, "names", out)?;
    writeln!(out, "</section>")
}

/// The results of both depths and of the pairs of sources, over all names.
fn checks(overview: &Overview, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<section id=\"checks\">\n<h2>Checks</h2>\n<p class=\"soft\">Both depths, then the pairs of sources. Open: not \
         requested, no response, or not reached.</p>\n{}",
        table("checks-table", "checks", &["check", "passes", "fails", "open", "share"])
    )?;
    for (check, counts) in CHECKS.iter().zip(overview.checks) {
        let [passes, fails, open] = counts;
        writeln!(
            out,
            "<tr><td class=\"subject\" data-label=\"check\">{check}</td><td class=\"number\" data-label=\"passes\">{passes}</td>\
             <td class=\"number\" data-label=\"fails\">{fails}</td><td class=\"number\" data-label=\"open\">{open}</td>\
             <td class=\"wide\">{}</td></tr>",
            picture::small_bar(counts)
        )?;
    }
    writeln!(out, "</tbody></table></div>\n</section>")
}

/// The states in earlier reports and this one, if there are enough for a chart.
fn states_over_time(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    if report.earlier.len() < 2 {
        return Ok(());
    }
    let reports = report.over_time();
    writeln!(out, "<section id=\"over-time\">\n<h2>States over time</h2>\n{}", picture::states_over_time(&reports))?;
    if reports.len() > picture::MAX_LABELLED {
        writeln!(
            out,
            "<p class=\"ends\"><span>{}</span><span>{}</span></p>",
            when(&reports[0]),
            when(&reports[reports.len() - 1])
        )?;
    }
    let legend: Vec<_> =
        STATES.iter().map(|(class, word, _)| format!("<span class=\"key {class}\"></span>{word}")).collect();
    writeln!(out, "<p class=\"legend\">Names, from the base: {}.</p>", legend.join(", "))?;
    writeln!(out, "<details><summary>The numbers</summary><ul>")?;
    for report in &reports {
        writeln!(out, "<li>{}: {}</li>", when(report), picture::states_in_words(report.states()))?;
    }
    writeln!(out, "</ul></details>\n</section>")
}

fn expiries(report: &Report, overview: &Overview, out: &mut dyn Write) -> io::Result<()> {
    let Some(expiries) = overview.expiries.as_ref().filter(|expiries| expiries.known() > 0) else { return Ok(()) };
    let unknown = report.counts.names.saturating_sub(expiries.known());
    writeln!(
        out,
        "<section id=\"expiries\">\n<h2>Expiries</h2>\n<p class=\"soft\">Seen from {}. The expiry of {} could not be read, \
         or they have none.</p>\n{}",
        day(expiries.from),
        counted(unknown),
        picture::expiries(expiries)
    )?;
    if expiries.soonest.is_empty() {
        return writeln!(out, "<p>No name expires within {NOTICE_DAYS} days.</p>\n</section>");
    }
    writeln!(out, "{}", table("expiries-table", "expiries", &["name", "expiry", "in"]))?;
    for (expiry, _, name, as_of) in &expiries.soonest {
        let left = if *expiry <= expiries.from {
            "has expired".to_owned()
        } else {
            format!("{} days", days_between(expiries.from, *expiry))
        };
        writeln!(
            out,
            "<tr><td class=\"subject\" data-label=\"name\">{}</td><td data-label=\"expiry\">{}{}</td>\
             <td data-label=\"in\">{left}</td></tr>",
            code(name),
            day(*expiry),
            soft(as_of)
        )?;
    }
    writeln!(out, "</tbody></table></div>")?;
    write_omitted(expiries.over, &format!("names that have expired, or will within {NOTICE_DAYS} days,"), out)?;
    writeln!(out, "</section>")
}

fn reasons(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<section id=\"reasons\">\n<h2>Reasons</h2>")?;
    let groups = report.counts.groups();
    if groups.is_empty() {
        return writeln!(out, "<p>None.</p>\n</section>");
    }
    writeln!(
        out,
        "{}",
        table("reasons-table", "reasons", &["code", "names", "effect", "rule", "fixed by", "meaning", "examples"])
    )?;
    for group in groups {
        let (entry, slug, names, effect) = (group.code.entry(), group.code, group.names, effect(group.effect));
        let mut examples: Vec<String> = group.examples.iter().map(|name| code(name)).collect();
        let more = names.saturating_sub(u64::try_from(examples.len()).unwrap_or(u64::MAX));
        if more > 0 {
            examples.push(format!("and {more} more"));
        }
        writeln!(
            out,
            "<tr{}><td class=\"subject\" data-label=\"code\"><code class=\"{effect}\">{slug}</code></td>\
             <td class=\"number\" data-label=\"names\">{names}</td><td data-label=\"effect\"><span class=\"{effect}\">{effect}\
             </span></td><td class=\"short\" data-label=\"rule\">{}</td><td class=\"short\" data-label=\"fixed by\">{}</td>\
             <td class=\"wide\" data-label=\"meaning\">{}<details class=\"explanation\"><summary>More</summary>{}</details>\
             </td><td class=\"wide\" data-label=\"examples\">{}</td></tr>",
            reason_anchor(report, group),
            entry.requirement,
            role_in_words(entry.fixer),
            markup(entry.title),
            markup(entry.explanation),
            examples.join(", ")
        )?;
    }
    writeln!(out, "</tbody></table></div>\n</section>")
}

/// The anchor of a code, which exists once: at its gravest effect.
fn reason_anchor(report: &Report, group: &Group) -> String {
    let gravest = report.counts.groups().into_iter().find(|other| other.code == group.code);
    match gravest {
        Some(gravest) if gravest.effect == group.effect => format!(" id=\"code-{}\"", group.code),
        _ => String::new(),
    }
}

/// The scope and rules of the audit, in full.
fn about(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<section id=\"about\">\n<h2>About this report</h2>\n<dl>")?;
    for (what, value) in report.facts() {
        writeln!(out, "<dt>{what}</dt><dd>{}</dd>", html(&value))?;
    }
    writeln!(out, "</dl>\n</section>")
}
