//! The report for people: its content and order, written to a [`Canvas`] of Markdown or HTML.

use std::borrow::Cow;
use std::io;

use super::{Agreement, Draft, Drift, Report, Row, Rows, effect, fixer, rules, slugs};
use crate::reason::{Code, Effect, Reason};
use crate::verdict::State;

/// The output form of a page. It escapes [`Piece::Foreign`], which may be any text.
pub(super) trait Canvas {
    /// Begins the page.
    fn begin(&mut self, title: &[Piece<'_>]) -> io::Result<()>;
    /// The heading of a section.
    fn heading(&mut self, text: &str) -> io::Result<()>;
    /// A paragraph.
    fn paragraph(&mut self, tone: Tone, pieces: &[Piece<'_>]) -> io::Result<()>;
    /// The names by state.
    fn counts(&mut self, counts: &[(&str, u64)]) -> io::Result<()>;
    /// Facts: labels and values.
    fn facts(&mut self, facts: &[(&str, String)]) -> io::Result<()>;
    /// Begins a table.
    fn table(&mut self, columns: &[Column]) -> io::Result<()>;
    /// A row of the table with these columns.
    fn row(&mut self, columns: &[Column], cells: &[Vec<Piece<'_>>]) -> io::Result<()>;
    /// Ends the table.
    fn end_table(&mut self) -> io::Result<()>;
    /// Begins the findings of a name.
    fn article(&mut self, state: State, title: &[Piece<'_>]) -> io::Result<()>;
    /// A point, and the lines below it.
    fn point(&mut self, head: &[Piece<'_>], lines: &[Vec<Piece<'_>>]) -> io::Result<()>;
    /// Ends the findings of a name.
    fn end_article(&mut self) -> io::Result<()>;
    /// Begins rows of Markdown, for a file in that form.
    fn source(&mut self, head: &str) -> io::Result<()>;
    /// A row of them.
    fn source_line(&mut self, markdown: &str) -> io::Result<()>;
    /// Ends them.
    fn end_source(&mut self) -> io::Result<()>;
    /// Ends the page.
    fn end(&mut self) -> io::Result<()>;
}

/// A run of text.
#[derive(Clone, Debug)]
pub(super) enum Piece<'a> {
    /// The report's own words.
    Plain(Cow<'a, str>),
    /// Text that others chose.
    Foreign(Cow<'a, str>),
    /// A reason's code.
    Code(Code, Effect),
    /// The effect of a reason.
    Effect(Effect),
    /// The state of a name.
    State(State),
    /// Whether two sources agree.
    Mark(Agreement),
}

/// The weight of a paragraph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    /// Ordinary text.
    Normal,
    /// An explanation.
    Soft,
    /// A warning that readers must see.
    Warning,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    /// Its head.
    pub(super) title: &'static str,
    /// What it holds.
    pub(super) kind: Kind,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// What the row is about.
    Subject,
    /// A word.
    Word,
    /// A number.
    Number,
    /// A sign.
    Mark,
    /// A sentence or a list.
    Text,
}

impl Column {
    const fn new(title: &'static str, kind: Kind) -> Self {
        Self { title, kind }
    }
}

const REASONS: [Column; 7] = [
    Column::new("code", Kind::Subject),
    Column::new("names", Kind::Number),
    Column::new("effect", Kind::Word),
    Column::new("rule", Kind::Word),
    Column::new("fixed by", Kind::Word),
    Column::new("meaning", Kind::Text),
    Column::new("examples", Kind::Text),
];

const NAMES: [Column; 9] = [
    Column::new("name", Kind::Subject),
    Column::new("state", Kind::Word),
    Column::new(Drift::PAIRS[0], Kind::Mark),
    Column::new(Drift::PAIRS[1], Kind::Mark),
    Column::new(Drift::PAIRS[2], Kind::Mark),
    Column::new(Drift::PAIRS[3], Kind::Mark),
    Column::new(Drift::PAIRS[4], Kind::Mark),
    Column::new(Drift::PAIRS[5], Kind::Mark),
    Column::new("codes", Kind::Text),
];

const CHANGES: [Column; 4] = [
    Column::new("name", Kind::Subject),
    Column::new("change", Kind::Word),
    Column::new("before", Kind::Text),
    Column::new("after", Kind::Text),
];

const RECORDS: [Column; 3] =
    [Column::new("name", Kind::Subject), Column::new("record", Kind::Text), Column::new("value", Kind::Text)];

/// Writes the whole page.
pub(super) fn write(report: &Report, rows: &dyn Rows, page: &mut dyn Canvas) -> io::Result<()> {
    head(report, page)?;
    since(report, page)?;
    reasons(report, page)?;
    names(rows, page)?;
    findings(report, rows, page)?;
    records(rows, page)?;
    drafts(report, rows, page)?;
    page.end()
}

fn plain<'a>(text: impl Into<Cow<'a, str>>) -> Piece<'a> {
    Piece::Plain(text.into())
}

fn foreign<'a>(text: impl Into<Cow<'a, str>>) -> Piece<'a> {
    Piece::Foreign(text.into())
}

fn none(page: &mut dyn Canvas) -> io::Result<()> {
    page.paragraph(Tone::Normal, &[plain("None.")])
}

fn head(report: &Report, page: &mut dyn Canvas) -> io::Result<()> {
    let tally = &report.tally;
    let are = if tally.trusted == 1 { "is" } else { "are" };
    let trusted = format!("{} of {} names {are} trusted under ", tally.trusted, tally.names);
    let mut headline = vec![plain(trusted), foreign(&report.scope.profile.id), plain(".")];
    page.begin(&headline)?;
    for (profile, names) in &tally.near_misses {
        headline.extend([plain(format!(" {names} more would be under ")), foreign(profile), plain(".")]);
    }
    page.paragraph(Tone::Normal, &headline)?;
    if let Some(warning) = report.ending.warning() {
        page.paragraph(Tone::Warning, &[foreign(warning)])?;
    }
    page.counts(&[
        ("names", tally.names),
        (State::Trusted.as_str(), tally.trusted),
        (State::Untrusted.as_str(), tally.untrusted),
        (State::Indeterminate.as_str(), tally.indeterminate),
        ("with sources that differ", tally.drifting),
    ])?;
    page.facts(&report.facts())
}

/// What changed since the report before.
fn since(report: &Report, page: &mut dyn Canvas) -> io::Result<()> {
    let Some(difference) = &report.since else { return Ok(()) };
    page.heading("Since the report before")?;
    for warning in difference.warnings() {
        page.paragraph(Tone::Soft, &[plain(warning)])?;
    }
    if difference.changes.is_empty() {
        return none(page);
    }
    page.table(&CHANGES)?;
    for change in &difference.changes {
        let value = |value: &Option<String>| value.iter().map(|value| foreign(value.clone())).collect::<Vec<_>>();
        let cells = [vec![foreign(&change.name)], vec![plain(change.kind.as_str())], value(&change.before), value(&change.after)];
        page.row(&CHANGES, &cells)?;
    }
    page.end_table()
}

fn reasons(report: &Report, page: &mut dyn Canvas) -> io::Result<()> {
    page.heading("Reasons")?;
    let groups = report.tally.groups();
    if groups.is_empty() {
        return none(page);
    }
    page.table(&REASONS)?;
    for group in groups {
        let entry = group.code.entry();
        page.row(
            &REASONS,
            &[
                vec![Piece::Code(group.code, group.effect)],
                vec![plain(group.names.to_string())],
                vec![Piece::Effect(group.effect)],
                vec![plain(entry.requirement)],
                vec![plain(fixer(group.code))],
                vec![plain(entry.title)],
                some_names(&group.examples, group.names),
            ],
        )?;
    }
    page.end_table()
}

/// All of `items`.
fn listed(items: &[String]) -> Vec<Piece<'_>> {
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
fn some_names(shown: &[String], all: u64) -> Vec<Piece<'_>> {
    let mut pieces = listed(shown);
    let more = all.saturating_sub(u64::try_from(shown.len()).unwrap_or(u64::MAX));
    if more > 0 {
        pieces.push(plain(format!(" and {more} more")));
    }
    pieces
}

fn names(rows: &dyn Rows, page: &mut dyn Canvas) -> io::Result<()> {
    page.heading("Names")?;
    let legend = "✓ the two agree, ✗ they differ, – one of them was not asked or did not answer.";
    page.paragraph(Tone::Soft, &[plain(legend)])?;
    page.table(&NAMES)?;
    rows.each(&mut |row| {
        let mut cells = vec![vec![foreign(row.name())], vec![Piece::State(row.state)]];
        cells.extend(row.drift.agreements().map(|agreement| vec![Piece::Mark(agreement)]));
        let codes = [Effect::Fail, Effect::Unknown].map(|effect| row.codes(effect)).concat();
        cells.push(vec![plain(slugs(&codes, ", "))]);
        page.row(&NAMES, &cells)
    })?;
    page.end_table()
}

/// An article per name; names whose findings are alike share one.
fn findings(report: &Report, rows: &dyn Rows, page: &mut dyn Canvas) -> io::Result<()> {
    page.heading("Findings")?;
    let mut any = false;
    rows.each(&mut |row| {
        let alike = report.tally.alike(row);
        if !row.has_findings() || alike.is_some_and(|alike| alike.line != row.line) {
            return Ok(());
        }
        any = true;
        let others = alike.map_or(0, |alike| alike.names - 1);
        finding(row, alike.map_or(&[], |alike| &alike.others), others, page)
    })?;
    if any { Ok(()) } else { none(page) }
}

fn finding(row: &Row, shown: &[String], others: u64, page: &mut dyn Canvas) -> io::Result<()> {
    let mut title = vec![foreign(row.name())];
    if others > 0 {
        title.push(plain(format!(" and {others} more")));
    }
    title.extend([plain(": "), Piece::State(row.state)]);
    page.article(row.state, &title)?;
    if others > 0 {
        let mut pieces = vec![plain("Same findings: ")];
        pieces.extend(some_names(shown, others));
        pieces.push(plain(". The values below are those of the first name; the JSON form has all values."));
        page.paragraph(Tone::Soft, &pieces)?;
    }
    if row.normalized.as_deref() != Some(&row.input) {
        let line = format!("Line {}, typed as ", row.line);
        page.paragraph(Tone::Soft, &[plain(line), foreign(&row.input), plain(".")])?;
    }
    for effect in [Effect::Fail, Effect::Unknown] {
        for code in row.codes(effect) {
            let having = |reason: &&Reason| reason.code == code && reason.effect == effect;
            point(code, effect, &row.reasons.iter().filter(having).collect::<Vec<_>>(), page)?;
        }
    }
    if row.more_reasons > 0 {
        page.point(&[plain(format!("and {} more", row.more_reasons))], &[])?;
    }
    if row.drift.content_differs() {
        digests(&row.drift, page)?;
    }
    if !row.near_misses.is_empty() {
        let mut pieces = vec![plain("Trusted under ")];
        pieces.extend(listed(&row.near_misses));
        pieces.push(plain("."));
        page.paragraph(Tone::Normal, &pieces)?;
    }
    page.end_article()
}

/// All `reasons` with one code: its meaning once, then the places.
fn point(code: Code, effect_: Effect, reasons: &[&Reason], page: &mut dyn Canvas) -> io::Result<()> {
    let mut head = vec![Piece::Code(code, effect_), plain(format!(" ({}", effect(effect_)))];
    for rule in rules(reasons.iter().copied()) {
        head.extend([plain(", "), foreign(rule)]);
    }
    head.push(plain(format!("): {}", code.entry().title)));
    let (bare, detailed): (Vec<&Reason>, Vec<&Reason>) = reasons.iter().partition(|reason| values(reason).is_empty());
    let places: Vec<String> = bare.iter().filter_map(|reason| reason.place.clone()).collect();
    let mut lines = Vec::new();
    if !places.is_empty() {
        let mut line = vec![plain("at ")];
        line.extend(listed(&places));
        lines.push(line);
    }
    for reason in detailed {
        let mut line = Vec::new();
        if let Some(place) = &reason.place {
            line.extend([plain("at "), foreign(place), plain(": ")]);
        }
        for (number, (what, value)) in values(reason).into_iter().enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            line.extend([plain(format!("{comma}{what} ")), foreign(value)]);
        }
        lines.push(line);
    }
    page.point(&head, &lines)
}

/// The non-empty values of a reason, with labels.
fn values(reason: &Reason) -> Vec<(&'static str, &str)> {
    let values = [("expected", &reason.expected), ("observed", &reason.observed), ("fix:", &reason.fix)];
    let given = values.into_iter().filter_map(|(what, value)| Some((what, value.as_deref()?)));
    given.filter(|(_, value)| !value.is_empty()).collect()
}

fn digests(drift: &Drift, page: &mut dyn Canvas) -> io::Result<()> {
    let digests = [("TXT claims", drift.claimed), ("HTTPS served", drift.served), ("IPFS proved", drift.proven)];
    let known = digests.into_iter().filter_map(|(what, digest)| Some((what, digest?)));
    let lines: Vec<_> =
        known.map(|(what, digest)| vec![plain(format!("{what} ")), foreign(digest.to_string())]).collect();
    page.point(&[plain("The card's bytes, by source:")], &lines)
}

fn records(rows: &dyn Rows, page: &mut dyn Canvas) -> io::Result<()> {
    page.heading("Text records to set")?;
    let mut any = false;
    rows.each(&mut |row| {
        for line in &row.txt {
            if !std::mem::replace(&mut any, true) {
                let why = "The card under the name's CID proves these values. Nothing that a host served is proposed.";
                page.paragraph(Tone::Soft, &[plain(why)])?;
                page.table(&RECORDS)?;
            }
            page.row(&RECORDS, &[vec![foreign(row.name())], vec![foreign(&line.key)], vec![foreign(&line.value)]])?;
        }
        Ok(())
    })?;
    if any {
        return page.end_table();
    }
    none(page)
}

fn drafts(report: &Report, rows: &dyn Rows, page: &mut dyn Canvas) -> io::Result<()> {
    page.heading("Draft rows for RESOLUTION.md")?;
    let mut any = false;
    rows.each(&mut |row| {
        let Some(draft) = Draft::of(report, row) else { return Ok(()) };
        if !std::mem::replace(&mut any, true) {
            page.source(&Draft::head())?;
        }
        page.source_line(&draft.markdown())
    })?;
    if any { page.end_source() } else { none(page) }
}
