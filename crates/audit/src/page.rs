//! The texts of the report for people, in pieces, which Markdown and HTML render in their own way.

use std::borrow::Cow;
use std::io;

use super::cause::DefectCategory;
use super::document::AuditReport;
use super::drift::CardSourceComparison;
use super::overview::AuditOverview;
use super::registry::RegistryChainMismatch;
use super::row::{AuditRow, AuditRowSource};
use super::words::{actor_noun, distinct_requirements, effect_word, embed_sentence};
use clresolve_core::reason::{FixerRole, Reason, ReasonCode, ReasonEffect};
use clresolve_core::text::capitalize_first;

/// A run of text. The renderer escapes [`TextRun::Foreign`], which may be any text.
#[derive(Clone, Debug)]
pub(super) enum TextRun<'a> {
    /// The report's own words.
    Plain(Cow<'a, str>),
    /// Untrusted text.
    Foreign(Cow<'a, str>),
    /// A reason's code.
    Code(ReasonCode, ReasonEffect),
}

/// A point, and the lines below it.
pub(super) struct BulletPoint<'a> {
    /// What it is about.
    pub(super) head: Vec<TextRun<'a>>,
    /// Its places and values.
    pub(super) lines: Vec<Vec<TextRun<'a>>>,
}

/// Passes each row to `see` on which registry and chain disagree.
pub(super) fn for_each_registry_mismatch(
    rows: &dyn AuditRowSource,
    see: &mut dyn FnMut(RegistryChainMismatch, &AuditRow) -> io::Result<()>,
) -> io::Result<()> {
    rows.for_each_row(&mut |row| {
        row.registry.and_then(RegistryChainMismatch::from_listing).map_or(Ok(()), |finding| see(finding, row))
    })
}

pub(super) fn plain_run<'a>(text: impl Into<Cow<'a, str>>) -> TextRun<'a> {
    TextRun::Plain(text.into())
}

pub(super) fn untrusted_run<'a>(text: impl Into<Cow<'a, str>>) -> TextRun<'a> {
    TextRun::Foreign(text.into())
}

/// A number of names, with the noun.
pub(super) fn name_count_text(count: u64) -> String {
    if count == 1 { "1 name".to_owned() } else { format!("{count} names") }
}

/// How many names are not trusted, who must act on most of them, and the most frequent cause.
pub(super) fn headline(report: &AuditReport, overview: &AuditOverview) -> String {
    let must_act = required_action_text(report, overview).map_or_else(String::new, |act| format!(". {act}"));
    untrusted_names_text(report) + &must_act
}

/// The number of names that are not trusted, or were not when an incomplete audit ended.
fn untrusted_names_text(report: &AuditReport) -> String {
    let counts = &report.counts;
    let (before, after) = if report.is_complete() { ("", "") } else { ("Incomplete: ", " so far") };
    let (count, what) = match counts.names - counts.trusted {
        0 => (counts.trusted, "trusted"),
        wrong => (wrong, "not trusted"),
    };
    let are = if count == 1 { "is" } else { "are" };
    format!("{before}{count} of {} {are} {what}{after}", name_count_text(counts.names))
}

fn required_action_text(report: &AuditReport, overview: &AuditOverview) -> Option<String> {
    let Some((actor, due)) = overview.busiest_actor() else {
        return report.is_complete().then(|| "Nobody has to act".to_owned());
    };
    let owners = overview.owners.account_count().filter(|_| actor == FixerRole::Publisher);
    let who = owners.map_or_else(|| capitalize_first(actor_noun(actor)), owner_count_text);
    let most_often = overview.causes_of(actor).into_iter().next();
    let why = most_often.map_or_else(String::new, |(cause, on)| cause_text(cause, on, due));
    Some(format!("{who} must act on {}{why}", name_count_text(due)))
}

fn cause_text(cause: DefectCategory, on: u64, due: u64) -> String {
    let of_these = if on == due { String::new() } else { format!(" on {on}") };
    format!(",{of_these} because {}", embed_sentence(cause.in_words()))
}

fn owner_count_text(count: usize) -> String {
    if count == 1 { "1 owner".to_owned() } else { format!("{count} owners") }
}

/// The subject of the audit: the list, the registry, or both.
pub(super) fn audit_subject(report: &AuditReport) -> Vec<TextRun<'_>> {
    let list = report.list.file.as_deref();
    let registry = report.scope.registry.as_ref().map(|registry| registry.manifest.as_str());
    match (list, registry) {
        (Some(list), None) => vec![untrusted_run(list)],
        (None, Some(registry)) => vec![plain_run("the registry "), untrusted_run(registry)],
        (Some(list), Some(registry)) => {
            vec![untrusted_run(list), plain_run(" and the registry "), untrusted_run(registry)]
        }
        (None, None) => vec![plain_run("a list of names")],
    }
}

/// The rules, network and time of the audit.
pub(super) fn rules_network_and_time(report: &AuditReport) -> Vec<Vec<TextRun<'_>>> {
    let scope = &report.scope;
    let mut facts = vec![vec![plain_run("by the rules "), untrusted_run(&scope.profile.id)]];
    facts.extend(report.block_range_text().map(|blocks| vec![plain_run(blocks)]));
    facts.extend(report.counts.checked.map(|(first, _)| vec![plain_run(utc_day(first))]));
    facts
}

/// The day of a time, in UTC.
pub(super) fn utc_day(at: jiff::Timestamp) -> String {
    at.to_zoned(jiff::tz::TimeZone::UTC).date().to_string()
}

pub(super) fn comma_separated_runs(items: &[String]) -> Vec<TextRun<'_>> {
    let mut pieces = Vec::new();
    for item in items {
        if !pieces.is_empty() {
            pieces.push(plain_run(", "));
        }
        pieces.push(untrusted_run(item));
    }
    pieces
}

/// `shown`, the first of `all` names.
pub(super) fn truncated_names_text(shown: &[String], all: u64) -> Vec<TextRun<'_>> {
    let mut pieces = comma_separated_runs(shown);
    let more = all.saturating_sub(u64::try_from(shown.len()).unwrap_or(u64::MAX));
    if more > 0 {
        pieces.push(plain_run(format!(" and {more} more")));
    }
    pieces
}

/// The other names with the same findings as the article.
pub(super) fn same_findings_note(shown: &[String], others: u64) -> Vec<TextRun<'_>> {
    let mut pieces = vec![plain_run("Same findings: ")];
    pieces.extend(truncated_names_text(shown, others));
    pieces.push(plain_run(". The values below are those of the first name; the JSON form has all values."));
    pieces
}

/// The findings of a row selected by `picked`: a point for each code, failures first.
pub(super) fn finding_points<'a>(row: &'a AuditRow, picked: &dyn Fn(&Reason) -> bool) -> Vec<BulletPoint<'a>> {
    let mut points = Vec::new();
    for effect in [ReasonEffect::Fail, ReasonEffect::Unknown, ReasonEffect::Warn] {
        for code in row.codes(effect) {
            let having = |reason: &&Reason| reason.code == code && reason.effect == effect && picked(reason);
            let reasons: Vec<&Reason> = row.reasons.iter().filter(having).collect();
            if !reasons.is_empty() {
                points.push(finding_point(code, effect, &reasons));
            }
        }
    }
    points
}

/// All `reasons` with one code: its meaning once, then the locations.
fn finding_point<'a>(code: ReasonCode, effect_: ReasonEffect, reasons: &[&'a Reason]) -> BulletPoint<'a> {
    let mut head = vec![TextRun::Code(code, effect_), plain_run(format!(" ({}", effect_word(effect_)))];
    for rule in distinct_requirements(reasons.iter().copied()) {
        head.extend([plain_run(", "), untrusted_run(rule)]);
    }
    head.push(plain_run(format!("): {}", code.entry().title)));
    let (bare, detailed): (Vec<&Reason>, Vec<&Reason>) =
        reasons.iter().partition(|reason| labelled_values(reason).is_empty());
    let mut lines = Vec::new();
    let mut places = vec![plain_run("at ")];
    for place in bare.iter().filter_map(|reason| reason.place.as_deref()) {
        if places.len() > 1 {
            places.push(plain_run(", "));
        }
        places.push(untrusted_run(place));
    }
    if places.len() > 1 {
        lines.push(places);
    }
    lines.extend(detailed.into_iter().map(reason_detail));
    BulletPoint { head, lines }
}

/// The location and the values of a reason.
fn reason_detail(reason: &Reason) -> Vec<TextRun<'_>> {
    let mut line = Vec::new();
    if let Some(place) = &reason.place {
        line.extend([plain_run("at "), untrusted_run(place), plain_run(": ")]);
    }
    for (number, (what, value)) in labelled_values(reason).into_iter().enumerate() {
        let comma = if number == 0 { "" } else { ", " };
        line.extend([plain_run(format!("{comma}{what} ")), untrusted_run(value)]);
    }
    line
}

/// The non-empty values of a reason, with labels.
fn labelled_values(reason: &Reason) -> Vec<(&'static str, &str)> {
    let values = [("expected", &reason.expected), ("observed", &reason.observed), ("fix:", &reason.fix)];
    let given = values.into_iter().filter_map(|(what, value)| Some((what, value.as_deref()?)));
    given.filter(|(_, value)| !value.is_empty()).collect()
}

/// The digests of the card's bytes by source, if the sources differ.
pub(super) fn source_digests_point(drift: &CardSourceComparison) -> Option<BulletPoint<'static>> {
    if !drift.content_differs() {
        return None;
    }
    let digests = [("TXT claims", drift.claimed), ("HTTPS served", drift.served), ("IPFS proved", drift.proven)];
    let known = digests.into_iter().filter_map(|(what, digest)| Some((what, digest?)));
    let lines =
        known.map(|(what, digest)| vec![plain_run(format!("{what} ")), untrusted_run(digest.to_string())]).collect();
    Some(BulletPoint { head: vec![plain_run("The card's bytes, by source:")], lines })
}

/// Counts the items that fit within a bound, and those that do not.
pub(super) struct ItemQuota {
    left: usize,
    /// The items beyond the bound.
    pub(super) over: u64,
}

impl ItemQuota {
    pub(super) const fn with_limit(most: usize) -> Self {
        Self { left: most, over: 0 }
    }

    /// Whether the next item is within the bound.
    pub(super) const fn try_take(&mut self) -> bool {
        if self.left > 0 {
            self.left -= 1;
            return true;
        }
        self.over += 1;
        false
    }
}
