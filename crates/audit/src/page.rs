//! The texts of the report for people, in pieces, which Markdown and HTML render in their own way.

use std::borrow::Cow;
use std::io;

use super::cause::Cause;
use super::document::Report;
use super::drift::Drift;
use super::overview::Overview;
use super::registry::Finding;
use super::row::{Row, Rows};
use super::words::{effect, in_sentence, people, rules};
use clresolve_core::reason::{Code, Effect, Fixer, Reason};
use clresolve_core::text::capitalized;

/// A run of text. The renderer escapes [`Piece::Foreign`], which may be any text.
#[derive(Clone, Debug)]
pub(super) enum Piece<'a> {
    /// The report's own words.
    Plain(Cow<'a, str>),
    /// Untrusted text.
    Foreign(Cow<'a, str>),
    /// A reason's code.
    Code(Code, Effect),
}

/// A point, and the lines below it.
pub(super) struct Point<'a> {
    /// What it is about.
    pub(super) head: Vec<Piece<'a>>,
    /// Its places and values.
    pub(super) lines: Vec<Vec<Piece<'a>>>,
}

/// Passes each row to `see` on which registry and chain disagree.
pub(super) fn each_finding(rows: &dyn Rows, see: &mut dyn FnMut(Finding, &Row) -> io::Result<()>) -> io::Result<()> {
    rows.each(&mut |row| row.registry.and_then(Finding::of).map_or(Ok(()), |finding| see(finding, row)))
}

pub(super) fn plain<'a>(text: impl Into<Cow<'a, str>>) -> Piece<'a> {
    Piece::Plain(text.into())
}

pub(super) fn foreign<'a>(text: impl Into<Cow<'a, str>>) -> Piece<'a> {
    Piece::Foreign(text.into())
}

/// A number of names, with the noun.
pub(super) fn names(count: u64) -> String {
    if count == 1 { "1 name".to_owned() } else { format!("{count} names") }
}

/// How many names are not trusted, who must act on most of them, and the most frequent cause.
pub(super) fn headline(report: &Report, overview: &Overview) -> String {
    let must_act = must_act(report, overview).map_or_else(String::new, |act| format!(". {act}"));
    states(report) + &must_act
}

/// The number of names that are not trusted, or were not when an incomplete audit ended.
fn states(report: &Report) -> String {
    let counts = &report.counts;
    let (before, after) = if report.is_complete() { ("", "") } else { ("Incomplete: ", " so far") };
    let (count, what) = match counts.names - counts.trusted {
        0 => (counts.trusted, "trusted"),
        wrong => (wrong, "not trusted"),
    };
    let are = if count == 1 { "is" } else { "are" };
    format!("{before}{count} of {} {are} {what}{after}", names(counts.names))
}

fn must_act(report: &Report, overview: &Overview) -> Option<String> {
    let Some((actor, due)) = overview.most_due() else {
        return report.is_complete().then(|| "Nobody has to act".to_owned());
    };
    let owners = overview.owners.accounts().filter(|_| actor == Fixer::Publisher);
    let who = owners.map_or_else(|| capitalized(people(actor)), counted_owners);
    let most_often = overview.causes_of(actor).into_iter().next();
    let why = most_often.map_or_else(String::new, |(cause, on)| because(cause, on, due));
    Some(format!("{who} must act on {}{why}", names(due)))
}

fn because(cause: Cause, on: u64, due: u64) -> String {
    let of_these = if on == due { String::new() } else { format!(" on {on}") };
    format!(",{of_these} because {}", in_sentence(cause.in_words()))
}

fn counted_owners(count: usize) -> String {
    if count == 1 { "1 owner".to_owned() } else { format!("{count} owners") }
}

/// The subject of the audit: the list, the registry, or both.
pub(super) fn subject(report: &Report) -> Vec<Piece<'_>> {
    let list = report.list.file.as_deref();
    let registry = report.scope.registry.as_ref().map(|registry| registry.manifest.as_str());
    match (list, registry) {
        (Some(list), None) => vec![foreign(list)],
        (None, Some(registry)) => vec![plain("the registry "), foreign(registry)],
        (Some(list), Some(registry)) => vec![foreign(list), plain(" and the registry "), foreign(registry)],
        (None, None) => vec![plain("a list of names")],
    }
}

/// The rules, network and time of the audit.
pub(super) fn circumstances(report: &Report) -> Vec<Vec<Piece<'_>>> {
    let scope = &report.scope;
    let mut facts = vec![vec![plain("by the rules "), foreign(&scope.profile.id)]];
    facts.extend(report.blocks().map(|blocks| vec![plain(blocks)]));
    facts.extend(report.counts.checked.map(|(first, _)| vec![plain(day(first))]));
    facts
}

/// The day of a time, in UTC.
pub(super) fn day(at: jiff::Timestamp) -> String {
    at.to_zoned(jiff::tz::TimeZone::UTC).date().to_string()
}

pub(super) fn listed(items: &[String]) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    for item in items {
        if !pieces.is_empty() {
            pieces.push(plain(", "));
        }
        pieces.push(foreign(item));
    }
    pieces
}

/// `shown`, the first of `all` names.
pub(super) fn some_names(shown: &[String], all: u64) -> Vec<Piece<'_>> {
    let mut pieces = listed(shown);
    let more = all.saturating_sub(u64::try_from(shown.len()).unwrap_or(u64::MAX));
    if more > 0 {
        pieces.push(plain(format!(" and {more} more")));
    }
    pieces
}

/// The other names with the same findings as the article.
pub(super) fn same_findings(shown: &[String], others: u64) -> Vec<Piece<'_>> {
    let mut pieces = vec![plain("Same findings: ")];
    pieces.extend(some_names(shown, others));
    pieces.push(plain(". The values below are those of the first name; the JSON form has all values."));
    pieces
}

/// The findings of a row selected by `picked`: a point for each code, failures first.
pub(super) fn points<'a>(row: &'a Row, picked: &dyn Fn(&Reason) -> bool) -> Vec<Point<'a>> {
    let mut points = Vec::new();
    for effect in [Effect::Fail, Effect::Unknown, Effect::Warn] {
        for code in row.codes(effect) {
            let having = |reason: &&Reason| reason.code == code && reason.effect == effect && picked(reason);
            let reasons: Vec<&Reason> = row.reasons.iter().filter(having).collect();
            if !reasons.is_empty() {
                points.push(point(code, effect, &reasons));
            }
        }
    }
    points
}

/// All `reasons` with one code: its meaning once, then the locations.
fn point<'a>(code: Code, effect_: Effect, reasons: &[&'a Reason]) -> Point<'a> {
    let mut head = vec![Piece::Code(code, effect_), plain(format!(" ({}", effect(effect_)))];
    for rule in rules(reasons.iter().copied()) {
        head.extend([plain(", "), foreign(rule)]);
    }
    head.push(plain(format!("): {}", code.entry().title)));
    let (bare, detailed): (Vec<&Reason>, Vec<&Reason>) = reasons.iter().partition(|reason| values(reason).is_empty());
    let mut lines = Vec::new();
    let mut places = vec![plain("at ")];
    for place in bare.iter().filter_map(|reason| reason.place.as_deref()) {
        if places.len() > 1 {
            places.push(plain(", "));
        }
        places.push(foreign(place));
    }
    if places.len() > 1 {
        lines.push(places);
    }
    lines.extend(detailed.into_iter().map(detail));
    Point { head, lines }
}

/// The location and the values of a reason.
fn detail(reason: &Reason) -> Vec<Piece<'_>> {
    let mut line = Vec::new();
    if let Some(place) = &reason.place {
        line.extend([plain("at "), foreign(place), plain(": ")]);
    }
    for (number, (what, value)) in values(reason).into_iter().enumerate() {
        let comma = if number == 0 { "" } else { ", " };
        line.extend([plain(format!("{comma}{what} ")), foreign(value)]);
    }
    line
}

/// The non-empty values of a reason, with labels.
fn values(reason: &Reason) -> Vec<(&'static str, &str)> {
    let values = [("expected", &reason.expected), ("observed", &reason.observed), ("fix:", &reason.fix)];
    let given = values.into_iter().filter_map(|(what, value)| Some((what, value.as_deref()?)));
    given.filter(|(_, value)| !value.is_empty()).collect()
}

/// The digests of the card's bytes by source, if the sources differ.
pub(super) fn digests(drift: &Drift) -> Option<Point<'static>> {
    if !drift.content_differs() {
        return None;
    }
    let digests = [("TXT claims", drift.claimed), ("HTTPS served", drift.served), ("IPFS proved", drift.proven)];
    let known = digests.into_iter().filter_map(|(what, digest)| Some((what, digest?)));
    let lines = known.map(|(what, digest)| vec![plain(format!("{what} ")), foreign(digest.to_string())]).collect();
    Some(Point { head: vec![plain("The card's bytes, by source:")], lines })
}

/// Counts the items that fit within a bound, and those that do not.
pub(super) struct Quota {
    left: usize,
    /// The items beyond the bound.
    pub(super) over: u64,
}

impl Quota {
    pub(super) const fn of(most: usize) -> Self {
        Self { left: most, over: 0 }
    }

    /// Whether the next item is within the bound.
    pub(super) const fn take(&mut self) -> bool {
        if self.left > 0 {
            self.left -= 1;
            return true;
        }
        self.over += 1;
        false
    }
}
