//! Parses the table of a governance log (`RESOLUTION.md`). Pure.
//!
//! The head of a table determines its [form](GovernanceTableLayout). Other text, other tables, code blocks and comments
//! are skipped. Malformed rows are reported with their position, and the other rows are still parsed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use jiff::civil::Date;
use pulldown_cmark::{Event, Options, Tag};
use serde::Serialize;

use clresolve_core::name::EnsName;

/// Maximum length of a log, in bytes: some twenty thousand rows.
pub const MAX_LOG_BYTES: usize = 4 << 20;

/// Maximum number of names in a row. Each takes some dozens of bytes of memory for three bytes of the file.
const MAX_NAMES_PER_ROW: usize = 256;

/// Maximum number of malformed rows reported individually. The others are counted.
const MAX_MALFORMED: usize = 1_000;

/// Reported for a log without a table.
const NO_TABLE: &str = "expected a table with the head | Date | Agent Name(s) | Action | Reason | Resolution | \
                        Approver(s) | or | date | subject | kind | decision | reason |";

/// Reported for a line that is not valid text.
const NOT_UTF8: &str = "expected UTF-8";

/// Prefix of a decision that no person has made yet.
pub const DRAFT: &str = "draft:";

/// The content of an empty cell.
pub const NOTHING: &str = "—";

/// The form of a log's table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GovernanceTableLayout {
    /// As in the published governance logs.
    #[default]
    Published,
    /// As in this project's own log, which also records decisions about the rules.
    Plain,
}

struct LogTableColumnSpec {
    names: &'static [&'static str],
    /// Reported for a row with another number of cells.
    expected: &'static str,
    /// Reported if the line below the head is not a delimiter.
    delimiter: &'static str,
}

impl GovernanceTableLayout {
    const ALL: [Self; 2] = [Self::Published, Self::Plain];

    const fn columns(self) -> LogTableColumnSpec {
        match self {
            Self::Published => LogTableColumnSpec {
                names: &["Date", "Agent Name(s)", "Action", "Reason", "Resolution", "Approver(s)"],
                expected: "expected six cells: date, agent names, action, reason, resolution, approvers",
                delimiter: "expected |---|---|---|---|---|---| below the head",
            },
            Self::Plain => LogTableColumnSpec {
                names: &["date", "subject", "kind", "decision", "reason"],
                expected: "expected five cells: date, subject, kind, decision, reason",
                delimiter: "expected |---|---|---|---|---| below the head",
            },
        }
    }

    /// The head of a table and its delimiter.
    pub fn table_head_markdown(self) -> String {
        let names = self.columns().names;
        format!("| {} |\n{}|\n", names.join(" | "), "|---".repeat(names.len()))
    }

    /// The form whose rows have this number of cells.
    fn from_cell_count(cells: usize) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.columns().names.len() == cells)
    }

    /// The form with these column heads. One published log has the singular `Approver`.
    fn from_column_heads<'c>(cells: impl Iterator<Item = &'c str> + Clone) -> Option<Self> {
        let name = |cell: &str| cell.trim().to_ascii_lowercase().trim_end_matches("(s)").to_owned();
        Self::ALL
            .into_iter()
            .find(|form| cells.clone().map(name).eq(form.columns().names.iter().map(|column| name(column))))
    }
}

/// A parsed log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GovernanceLog {
    /// The form of the first table.
    pub form: GovernanceTableLayout,
    /// In the order of the file.
    pub rows: Vec<GovernanceLogRow>,
    /// Malformed rows in the order of the file. They record nothing. If there are more than a thousand, the last entry
    /// counts the others.
    pub malformed: Vec<MalformedLogRow>,
}

/// A line that should be a row and is not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MalformedLogRow {
    /// Its line in the file, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What was expected.
    pub why: Cow<'static, str>,
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GovernanceLogRow {
    /// Its line in the file, from 1.
    pub line: usize,
    /// The day of the audit or of the decision.
    pub date: Date,
    /// The subject's text.
    pub subject: String,
    /// The names in the subject, in normal form; empty for a decision.
    pub names: Vec<String>,
    /// What it records.
    pub kind: GovernanceEventKind,
    /// The action; `None` in the plain form, which does not contain it.
    pub action: Option<GovernanceAction>,
    /// What was decided, in Markdown.
    pub decision: String,
    /// Why, in Markdown.
    pub reason: String,
    /// Whether the row has an approver; always true in the plain form.
    pub is_approved: bool,
}

/// The kind of event that a row records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GovernanceEventKind {
    /// A decision on how to apply the rules. It is not about a change.
    Decision,
    /// A name broke its binding.
    Incident,
    /// The name's binding holds again.
    Correction,
    /// The published data of a name changed.
    Change,
}

impl GovernanceEventKind {
    const ALL: [Self; 4] = [Self::Decision, Self::Incident, Self::Correction, Self::Change];

    /// The word in the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Decision => "decision",
            Self::Incident => "incident",
            Self::Correction => "correction",
            Self::Change => "change",
        }
    }

    /// Prefix of the reason in the published form, which has no column for the kind.
    pub(super) const fn reason_prefix(self) -> &'static str {
        match self {
            Self::Decision | Self::Change => "",
            Self::Incident => "incident: ",
            Self::Correction => "correction: ",
        }
    }

    /// Splits a reason of the published form into the kind and the rest.
    fn split_reason(reason: &str) -> (Self, &str) {
        let marked = [Self::Incident, Self::Correction].into_iter().find_map(|kind| {
            let (word, rest) = reason.split_once(':')?;
            word.eq_ignore_ascii_case(kind.as_str()).then(|| (kind, rest.trim_start()))
        });
        marked.unwrap_or((Self::Change, reason))
    }
}

/// The action on a name, in the words of the published form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum GovernanceAction {
    /// The name was added to the list.
    Added,
    /// The name's published data changed.
    Updated,
    /// The name's card states that it should no longer be used.
    Deprecated,
    /// Another name replaced this one.
    Replaced,
    /// The name was removed from the list.
    Removed,
}

impl GovernanceAction {
    const ALL: [Self; 5] = [Self::Added, Self::Updated, Self::Deprecated, Self::Replaced, Self::Removed];

    /// The word in the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "Added",
            Self::Updated => "Updated",
            Self::Deprecated => "Deprecated",
            Self::Replaced => "Replaced",
            Self::Removed => "Removed",
        }
    }
}

impl GovernanceLog {
    /// Parses a log of at most [`MAX_LOG_BYTES`]. A malformed row does not affect the others.
    pub fn parse(log: impl AsRef<[u8]>) -> Self {
        let log = strip_byte_order_marks(log.as_ref());
        // Replacement characters keep the line structure and mean nothing to Markdown.
        let text = String::from_utf8_lossy(log);
        let (mut parser, mut blocks) = (GovernanceLogParser::new(), MarkdownBlocks::from_text(&text));
        let mut start = 0;
        for (number, (bytes, line)) in (1..).zip(split_lines(log).zip(split_lines(text.as_bytes()))) {
            let end = start + line.len();
            parser.process_line(number, bytes, &text[start..end], blocks.block_kind_at(start..end));
            start = end + if text[end..].starts_with("\r\n") { 2 } else { 1 };
        }
        parser.finish()
    }

    /// The rows that record events, by the names in their subjects.
    pub fn rows_by_name(&self) -> BTreeMap<&str, Vec<&GovernanceLogRow>> {
        let mut rows = BTreeMap::<&str, Vec<&GovernanceLogRow>>::new();
        for row in self.event_rows() {
            row.names.iter().for_each(|name| rows.entry(name).or_default().push(row));
        }
        rows
    }

    /// The rows that record events.
    pub fn event_rows(&self) -> impl Iterator<Item = &GovernanceLogRow> {
        self.rows.iter().filter(|row| row.kind != GovernanceEventKind::Decision)
    }
}

/// Some editors prepend it, even to a text that already has one.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The text without its byte order marks.
fn strip_byte_order_marks(mut text: &[u8]) -> &[u8] {
    // Terminates: each iteration removes a mark.
    while let Some(behind) = text.strip_prefix(BYTE_ORDER_MARK) {
        text = behind;
    }
    text
}

/// The lines of a text without their endings: line feed, carriage return, or both (CommonMark 0.31, 2.1).
fn split_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let (line, end) = rest.split_at(rest.iter().position(is_end).unwrap_or(rest.len()));
        rest = end.strip_prefix(b"\r\n").or_else(|| end.get(1..)).unwrap_or_default();
        Some(line)
    })
}

/// The kind of Markdown block that contains a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MarkdownBlockKind {
    /// Code, a comment or other HTML, whose lines are not a table.
    Hidden,
    /// A part of a table.
    Table,
    /// Anything else.
    Text,
}

/// The tables and hidden blocks of a text, in order.
struct MarkdownBlocks {
    left: std::iter::Peekable<std::vec::IntoIter<(Range<usize>, MarkdownBlockKind)>>,
}

impl MarkdownBlocks {
    fn from_text(text: &str) -> Self {
        let events = pulldown_cmark::Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter();
        let blocks = events.filter_map(|(event, range)| match event {
            Event::Start(Tag::Table(_)) => Some((range, MarkdownBlockKind::Table)),
            Event::Start(Tag::CodeBlock(_) | Tag::HtmlBlock) => Some((range, MarkdownBlockKind::Hidden)),
            _ => None,
        });
        Self { left: blocks.collect::<Vec<_>>().into_iter().peekable() }
    }

    /// The block of a line. Lines must be requested in order, once each.
    fn block_kind_at(&mut self, line: Range<usize>) -> MarkdownBlockKind {
        while self.left.next_if(|(block, _)| block.end <= line.start).is_some() {}
        match self.left.peek() {
            Some((block, kind)) if block.start < line.end => *kind,
            _ => MarkdownBlockKind::Text,
        }
    }
}

struct GovernanceLogParser {
    log: GovernanceLog,
    /// The form of the first table.
    form: Option<GovernanceTableLayout>,
    position: TablePosition,
    /// Whether a line looks like part of a table.
    has_parts: bool,
    /// Line and column of the first malformed row beyond the limit, and the number of such rows.
    more: Option<(usize, usize, u64)>,
}

impl GovernanceLogParser {
    const fn new() -> Self {
        let log = GovernanceLog { form: GovernanceTableLayout::Published, rows: Vec::new(), malformed: Vec::new() };
        Self { log, form: None, position: TablePosition::Outside, has_parts: false, more: None }
    }

    /// Processes a line. A line that is not UTF-8 is never a row, but its text may still start or end a table.
    fn process_line(&mut self, line: usize, bytes: &[u8], text: &str, block: MarkdownBlockKind) {
        let found = self.advance_state(line, text, block);
        self.has_parts |= found.is_err();
        match (std::str::from_utf8(bytes), found) {
            (Ok(_), Ok(row)) => self.log.rows.extend(row),
            (Ok(_), Err(row)) => self.record_malformed(row),
            (Err(error), _) => {
                let column = text[..error.valid_up_to()].chars().count() + 1;
                self.record_malformed(MalformedLogRow { line, column, why: NOT_UTF8.into() });
            }
        }
    }

    /// Advances the state, and returns the row of this line.
    fn advance_state(&mut self, line: usize, text: &str, block: MarkdownBlockKind) -> LogLineResult {
        match (std::mem::take(&mut self.position), block) {
            (TablePosition::Outside, MarkdownBlockKind::Hidden) => Ok(None),
            (TablePosition::Outside, _) => self.parse_outside_table(line, text, block),
            (TablePosition::BelowHead(form), _) => self.parse_below_head(form, line, text, block),
            (TablePosition::Table(form), _) => self.parse_in_table(form, line, text, block),
        }
    }

    /// A line outside of the log's tables.
    fn parse_outside_table(&mut self, line: usize, text: &str, block: MarkdownBlockKind) -> LogLineResult {
        let Some(cells) = split_cells(text) else {
            if is_borderless_table_head(text) {
                return Err(malformed_row(line, "expected | at the start of each line of the table"));
            }
            return Ok(None);
        };
        if let Some(form) = GovernanceTableLayout::from_column_heads(cells.iter().map(|cell| &*cell.text)) {
            self.position = TablePosition::BelowHead(form);
            return Ok(None);
        }
        if is_stray_log_row(&cells) {
            return Err(malformed_row(
                line,
                "expected the head of the table above this row, with no empty line between",
            ));
        }
        if block == MarkdownBlockKind::Table || cells.iter().all(|cell| is_delimiter_cell(&cell.text)) {
            return Ok(None);
        }
        // An empty line ends a table, so a row below it is rendered as text.
        let of_length = GovernanceTableLayout::from_cell_count(cells.len());
        let may_be_row = of_length.is_some() || text.trim_end().ends_with('|');
        let form = self.form.or(of_length).filter(|_| may_be_row);
        form.map_or(Ok(None), |form| GovernanceLogRow::from_cells(line, form, &cells).map(|_| None))
    }

    /// The line below the head of a log's table. Rows may follow even if the delimiter is missing.
    fn parse_below_head(
        &mut self,
        form: GovernanceTableLayout,
        line: usize,
        text: &str,
        block: MarkdownBlockKind,
    ) -> LogLineResult {
        let missing = malformed_row(line, form.columns().delimiter);
        let Some(cells) = split_cells(text).filter(|_| block != MarkdownBlockKind::Hidden) else { return Err(missing) };
        self.position = TablePosition::Table(form);
        self.form.get_or_insert(form);
        if is_delimiter_row(form, &cells) { Ok(None) } else { Err(missing) }
    }

    /// A line below the delimiter of a log's table.
    fn parse_in_table(
        &mut self,
        form: GovernanceTableLayout,
        line: usize,
        text: &str,
        block: MarkdownBlockKind,
    ) -> LogLineResult {
        if text.trim().is_empty() {
            return Ok(None);
        }
        if block != MarkdownBlockKind::Hidden {
            self.position = TablePosition::Table(form);
            if let Some(cells) = split_cells(text) {
                return GovernanceLogRow::from_cells(line, form, &cells);
            }
        }
        Err(malformed_row(line, "expected a row, which begins with |, or an empty line below the table"))
    }

    /// Records a malformed row, or counts it beyond the limit.
    fn record_malformed(&mut self, row: MalformedLogRow) {
        if self.log.malformed.len() < MAX_MALFORMED {
            self.log.malformed.push(row);
        } else {
            let (_, _, count) = self.more.get_or_insert((row.line, row.column, 0));
            *count += 1;
        }
    }

    /// Completes the log after its last line.
    fn finish(self) -> GovernanceLog {
        let Self { mut log, form, has_parts, more, .. } = self;
        if form.is_none() && !has_parts {
            log.malformed.insert(0, MalformedLogRow { line: 1, column: 1, why: NO_TABLE.into() });
        }
        log.malformed.extend(more.map(|(line, column, count)| {
            let why = format!("from here on {count} more malformed rows").into();
            MalformedLogRow { line, column, why }
        }));
        log.form = form.unwrap_or_default();
        log
    }
}

/// The row of a line; `None` for a line without content.
type LogLineResult = Result<Option<GovernanceLogRow>, MalformedLogRow>;

/// The error for a line that is wrong as a whole.
fn malformed_row(line: usize, why: &'static str) -> MalformedLogRow {
    MalformedLogRow { line, column: 1, why: why.into() }
}

/// The parser's position relative to a table.
#[derive(Default)]
enum TablePosition {
    #[default]
    Outside,
    BelowHead(GovernanceTableLayout),
    Table(GovernanceTableLayout),
}

/// A cell's text, and the column of its first character.
struct TableCell {
    column: usize,
    text: String,
}

/// Maximum indentation of a row, in spaces. A line with more is code.
const MAX_INDENT: usize = 3;

/// The line without its indentation; `None` for a line of code.
fn strip_indentation(line: &str) -> Option<&str> {
    let text = line.trim_start_matches(' ');
    (line.len() - text.len() <= MAX_INDENT).then_some(text)
}

/// The cells of a table's line; `None` for any other line. `\|` does not separate cells.
fn split_cells(line: &str) -> Option<Vec<TableCell>> {
    let text = strip_indentation(line)?;
    let start = line.len() - text.len();
    let row = text.trim_end().strip_prefix('|')?;
    let mut column = start + 2;
    let mut cells = vec![TableCell { column, text: String::new() }];
    let mut characters = row.chars().peekable();
    while let Some(c) = characters.next() {
        column += 1;
        let cell = cells.last_mut()?;
        match c {
            '\\' if characters.next_if_eq(&'|').is_some() => {
                column += 1;
                cell.text.push('|');
            }
            '|' => cells.push(TableCell { column, text: String::new() }),
            _ => cell.text.push(c),
        }
    }
    // An empty text after the last border is not a cell.
    if cells.last().is_some_and(|last| last.text.is_empty()) {
        cells.pop();
    }
    for cell in &mut cells {
        cell.column += cell.text.chars().take_while(|c| c.is_whitespace()).count();
        cell.text = cell.text.trim().to_owned();
    }
    Some(cells)
}

/// Whether a line is a table's head without outer borders, which Markdown permits.
fn is_borderless_table_head(line: &str) -> bool {
    GovernanceTableLayout::from_column_heads(line.trim_end_matches('|').split('|')).is_some()
}

fn is_delimiter_row(form: GovernanceTableLayout, cells: &[TableCell]) -> bool {
    cells.len() == form.columns().names.len() && cells.iter().all(|cell| is_delimiter_cell(&cell.text))
}

/// Whether a cell belongs to a delimiter.
fn is_delimiter_cell(cell: &str) -> bool {
    let rule = cell.strip_prefix(':').unwrap_or(cell);
    let rule = rule.strip_suffix(':').unwrap_or(rule);
    !rule.is_empty() && rule.chars().all(|c| c == '-')
}

/// Whether a row outside of the log's tables certainly belongs to a log.
fn is_stray_log_row(cells: &[TableCell]) -> bool {
    GovernanceTableLayout::from_cell_count(cells.len()).is_some() && cells[0].text.parse::<Date>().is_ok()
}

impl TableCell {
    /// Whether the cell is empty or a dash.
    fn is_blank_or_dash(&self) -> bool {
        self.text.chars().all(|c| matches!(c, '-' | '–' | '—'))
    }
}

/// An invalid cell, and what was expected.
type InvalidCell<'c> = (&'c TableCell, &'static str);

impl GovernanceLogRow {
    /// Parses a row from its cells; `None` if all cells are empty.
    fn from_cells(line: usize, form: GovernanceTableLayout, cells: &[TableCell]) -> LogLineResult {
        let row = match (form, cells) {
            (GovernanceTableLayout::Published, [date, names, action, reason, resolution, approvers]) => {
                Self::from_published_cells(line, [date, names, action, reason, resolution, approvers])
            }
            (GovernanceTableLayout::Plain, [date, subject, kind, decision, reason]) => {
                Self::from_plain_cells(line, [date, subject, kind, decision, reason])
            }
            _ => {
                let LogTableColumnSpec { names, expected, .. } = form.columns();
                let column = cells.get(names.len()).or_else(|| cells.last()).map_or(1, |cell| cell.column);
                return Err(MalformedLogRow { line, column, why: expected.into() });
            }
        };
        if cells.iter().all(TableCell::is_blank_or_dash) {
            return Ok(None);
        }
        row.map(Some).map_err(|(cell, why)| MalformedLogRow { line, column: cell.column, why: why.into() })
    }

    fn from_published_cells(line: usize, cells: [&TableCell; 6]) -> Result<Self, InvalidCell<'_>> {
        let [date, subject, action, reason, resolution, approvers] = cells;
        let word = GovernanceAction::ALL.into_iter().find(|known| known.as_str() == action.text);
        let wanted = "expected Added, Updated, Deprecated, Replaced or Removed";
        if reason.is_blank_or_dash() {
            return Err((reason, "expected a reason"));
        }
        if resolution.is_blank_or_dash() {
            return Err((resolution, "expected a decision"));
        }
        let (kind, reason) = GovernanceEventKind::split_reason(&reason.text);
        let kind = if subject.is_blank_or_dash() { GovernanceEventKind::Decision } else { kind };
        Ok(Self {
            action: Some(word.ok_or((action, wanted))?),
            is_approved: !approvers.is_blank_or_dash(),
            ..Self::from_common_cells(line, kind, [date, subject], [&resolution.text, reason])?
        })
    }

    fn from_plain_cells(line: usize, cells: [&TableCell; 5]) -> Result<Self, InvalidCell<'_>> {
        let [date, subject, kind, decision, reason] = cells;
        if subject.is_blank_or_dash() {
            return Err((subject, "expected a subject"));
        }
        let word = GovernanceEventKind::ALL.into_iter().find(|known| known.as_str() == kind.text);
        let kind = word.ok_or((kind, "expected decision, incident, correction or change"))?;
        Self::from_common_cells(line, kind, [date, subject], [&decision.text, &reason.text])
    }

    fn from_common_cells<'c>(
        line: usize,
        kind: GovernanceEventKind,
        [date, subject]: [&'c TableCell; 2],
        [decision, reason]: [&str; 2],
    ) -> Result<Self, InvalidCell<'c>> {
        let names = if kind == GovernanceEventKind::Decision { Ok(Vec::new()) } else { subject_names(&subject.text) };
        Ok(Self {
            line,
            date: date.text.parse().map_err(|_| (date, "expected a date such as 2026-11-20"))?,
            subject: code_span_text(&subject.text).unwrap_or_else(|| subject.text.clone()),
            names: names.map_err(|why| (subject, why))?,
            kind,
            action: None,
            decision: decision.to_owned(),
            reason: reason.to_owned(),
            is_approved: true,
        })
    }

    /// Whether no person has decided yet.
    pub fn is_draft(&self) -> bool {
        !self.is_approved || self.decision.starts_with(DRAFT)
    }
}

/// The names in a subject: one code span with any text, or names separated by commas or spaces.
fn subject_names(subject: &str) -> Result<Vec<String>, &'static str> {
    let normal = |name: &str| EnsName::parse(name).map(|name| name.as_str().to_owned());
    if let Some(name) = code_span_text(subject) {
        return Ok(vec![normal(&name).unwrap_or(name)]);
    }
    let words = subject.split(|c: char| c.is_whitespace() || [',', ';'].contains(&c));
    let words: Vec<_> = words.map(|word| word.trim_matches('`')).filter(|word| !word.is_empty()).collect();
    if words.len() > MAX_NAMES_PER_ROW {
        return Err("expected at most 256 names; use another row for the rest");
    }
    let names: Result<Vec<_>, _> = words.into_iter().map(normal).collect();
    names.map_err(|_| "expected only names such as `a.eth`, separated by commas")
}

/// The text of a cell that is one code span, with the escapes of [`UntrustedText`](clresolve_core::text::UntrustedText)
/// decoded.
fn code_span_text(cell: &str) -> Option<String> {
    let span = cell.strip_prefix('`')?.strip_suffix('`').filter(|span| !span.contains('`'))?;
    let (mut text, mut rest) = (String::new(), span);
    while let Some((before, escape)) = rest.split_once('\\') {
        text.push_str(before);
        let code = escape.strip_prefix("u{").and_then(|code| code.split_once('}'));
        let character =
            code.and_then(|(hex, after)| Some((char::from_u32(u32::from_str_radix(hex, 16).ok()?)?, after)));
        if let Some((character, after)) = character {
            text.push(character);
            rest = after;
        } else {
            text.push('\\');
            rest = escape.strip_prefix('\\').unwrap_or(escape);
        }
    }
    Some(text + rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LogRowDraft;

    const PUBLISHED: &str = "# Log\n\n| Date | Agent Name(s) | Action | Reason | Resolution | Approver(s) |\n\
                             |------|----------------|--------|--------|------------|--------------|\n";
    const HEAD: &str = "# Log\n\n| Date | subject | kind | decision | reason |\n|---|:-:|---|---|---|\n";

    /// The malformed rows of a log, as text.
    fn malformed(text: &str) -> Vec<String> {
        let log = GovernanceLog::parse(text);
        log.malformed.iter().map(|row| format!("line {}, column {}: {}", row.line, row.column, row.why)).collect()
    }

    #[test]
    fn a_log_is_its_tables_rows() {
        let text = format!(
            "\u{feff}{HEAD}| 2026-11-20 | `A.eth`, b.eth | incident | stop \\| wait | `x` |\n\ntext | with | bars\n\n\
             | other | table |\n|---|---|\n| 1 | 2 |\n"
        );
        let log = GovernanceLog::parse(text);
        let [row] = &log.rows[..] else { panic!("{log:?}") };
        assert_eq!(
            (row.line, row.kind, &*row.decision, &*row.reason),
            (5, GovernanceEventKind::Incident, "stop | wait", "`x`")
        );
        assert_eq!(row.names, ["a.eth", "b.eth"], "in normal form");
        assert_eq!(log.rows_by_name().into_keys().collect::<Vec<_>>(), ["a.eth", "b.eth"]);
    }

    /// Text that is not rendered as a table records nothing, and does not hide what follows.
    #[test]
    fn what_is_not_rendered_as_a_table_is_none() {
        let table = "| date | subject | kind | decision | reason |\n|-|-|-|-|-|\n| 2026-11-20 | hidden.eth | incident | b | c |\n";
        let row = "| 2026-11-21 | a.eth | change | b | c |\n";
        for hidden in [
            format!("```\n{table}```\n"),
            format!("````md\n```\n{table}````\n"),
            format!("~~~ `x`\n{table}~~~~\n"),
            format!("<!-- no\n{table}-->\n"),
            format!("   <!-- no\n\n{table}\n-->\n"),
            table.lines().map(|line| format!("    {line}\n")).collect(),
            format!("<div>\n{table}</div>\n"),
            format!("<div>\n<!--\n{table}-->\n</div>\n"),
            "```x``` is code\n".to_owned(),
            "<!-- one line -->\n".to_owned(),
        ] {
            let log = GovernanceLog::parse(format!("{hidden}\n{HEAD}{row}"));
            let names: Vec<_> = log.rows.iter().map(|row| row.names.clone()).collect();
            assert_eq!(names, [["a.eth"]], "{hidden}");
        }
    }

    /// CommonMark 0.31, 4.6 and 6.6: inside a paragraph, an unclosed comment and indented code are text.
    #[test]
    fn what_only_looks_like_a_comment_or_a_fence_hides_nothing() {
        for shown in ["write `<!--` to hide\n", "text <!-- a --> b <!--\n", "    <!-- code\n", "    ```\n", "<!-->\n"] {
            let row = "| 2026-11-21 | a.eth | change | b | c |\n";
            let log = GovernanceLog::parse(format!("{shown}\n{HEAD}{row}"));
            assert_eq!(log.rows.len(), 1, "{shown}");
        }
    }

    #[test]
    fn a_draft_is_read_back_as_it_was_made() {
        let subjects = ["a.eth", "x, b.eth", "=x|`a`\u{202e}\\n\u{7c}.eth", "\\u{41}\\"];
        let kinds = [GovernanceEventKind::Incident, GovernanceEventKind::Correction, GovernanceEventKind::Change];
        for ((subject, kind), form) in subjects
            .into_iter()
            .flat_map(|subject| kinds.map(|kind| (subject, kind)))
            .flat_map(|of| GovernanceTableLayout::ALL.map(|form| (of, form)))
        {
            let draft = LogRowDraft {
                date: "2026-11-20".to_owned(),
                subject: subject.to_owned(),
                kind,
                action: GovernanceAction::Deprecated,
                decision: "draft: set `x`".to_owned(),
                reason: "`a` | / <b>".to_owned(),
            };
            let log = GovernanceLog::parse(form.table_head_markdown() + &draft.markdown(form) + "\n");
            let [row] = &log.rows[..] else { panic!("{log:?}") };
            assert!(row.is_draft() && row.names == [subject] && log.form == form, "{row:?}");
            let GovernanceLogRow { date, subject, kind, action, decision, reason, .. } = row.clone();
            assert_eq!(action, (form == GovernanceTableLayout::Published).then_some(draft.action));
            assert_eq!(
                LogRowDraft { date: date.to_string(), subject, kind, action: draft.action, decision, reason },
                draft
            );
        }
    }

    /// The published logs: one whose table is empty, and one about verbs, with another kind of table.
    #[test]
    fn a_published_log_that_says_nothing_yet_has_no_rows() {
        let verbs = "\n| Date | Verb(s) | Action | Class | Reason | Resolution | Approver(s) |\n|--|--|--|--|--|--|--|\n\
                     | 2025-12-06 | fetch, parse | Added | Commons | first set | v1.0.0 | a steward |\n";
        let log = GovernanceLog::parse(format!("{PUBLISHED}| — | — | — | — | — | — |\n{verbs}"));
        assert_eq!(
            log,
            GovernanceLog { form: GovernanceTableLayout::Published, rows: Vec::new(), malformed: Vec::new() }
        );
        assert_eq!(malformed(verbs), [format!("line 1, column 1: {NO_TABLE}")]);
        let one = GovernanceLog::parse(PUBLISHED.replace("Approver(s)", "Approver"));
        assert_eq!((one.form, one.malformed), (GovernanceTableLayout::Published, vec![]));
    }

    #[test]
    fn a_published_row_says_what_was_done_and_who_approved_it() {
        for action in GovernanceAction::ALL {
            let word = action.as_str();
            let row = |names: &str, reason: &str, decision: &str, approver: &str| {
                let row = format!("| 2026-11-20 | {names} | {word} | {reason} | {decision} | {approver} |\n");
                let log = GovernanceLog::parse(format!("{PUBLISHED}{row}"));
                assert_eq!(log.malformed, [], "{row}");
                log.rows.into_iter().next().expect("a row")
            };
            let change = row("`A.eth`, b.eth", "first identity", "adopted", "commandlayer.eth");
            assert_eq!((change.kind, change.action), (GovernanceEventKind::Change, Some(action)));
            assert_eq!((&*change.names.join(" "), &*change.decision), ("a.eth b.eth", "adopted"));
            assert!(!change.is_draft());
            let incident = row("a.eth", "Incident: checksum-mismatch", "stopped", "—");
            assert_eq!((incident.kind, &*incident.reason), (GovernanceEventKind::Incident, "checksum-mismatch"));
            assert!(incident.is_draft(), "nobody approved it");
            let correction = row("a.eth", "correction: trusted", "draft: may be paid", "x");
            assert!(correction.kind == GovernanceEventKind::Correction && correction.is_draft());
            let decision = row("—", "the text is open", "by the letter", "x");
            assert!(decision.kind == GovernanceEventKind::Decision && decision.names.is_empty());
        }
    }

    #[test]
    fn what_is_malformed_in_a_published_log_has_its_place() {
        for (row, expected) in [
            ("| soon | a.eth | Added | r | d | x |", "line 5, column 3: expected a date"),
            ("| — | a.eth | Added | r | d | x |", "line 5, column 3: expected a date"),
            ("| 2026-11-20 | **a.eth** | Added | r | d | x |", "line 5, column 16: expected only names"),
            ("| 2026-11-20 | a.eth | Revised | r | d | x |", "line 5, column 24: expected Added, Updated"),
            ("| 2026-11-20 | a.eth | Added | — | d | x |", "line 5, column 32: expected a reason"),
            ("| 2026-11-20 | a.eth | Added | r |  | x |", "line 5, column 37: expected a decision"),
            ("| 2026-11-20 | a.eth | Added | r | d |", "line 5, column 36: expected six cells"),
            ("| 2026-11-20 | a.eth | Added | r | d | x | y |", "line 5, column 44: expected six cells"),
        ] {
            let found = malformed(&format!("{PUBLISHED}{row}"));
            assert!(found.len() == 1 && found[0].starts_with(expected), "{row}: {found:?}");
        }
        let head = PUBLISHED.lines().nth(2).expect("the head");
        let row = "| 2026-11-20 | a.eth | Added | r | d | x |\n";
        for (log, expected) in [
            (format!("{head}\n{row}"), "line 2, column 1: expected |---|---|---|---|---|---| below"),
            (format!("{PUBLISHED}\n{row}"), "line 6, column 1: expected the head of the table above"),
            (format!("{PUBLISHED}\n{}\n", head.trim_matches(['|', ' '])), "line 6, column 1: expected | at the start"),
        ] {
            let found = malformed(&log);
            assert!(found.len() == 1 && found[0].starts_with(expected), "{found:?}");
        }
    }

    #[test]
    fn the_projects_own_log_can_be_read() {
        let log = GovernanceLog::parse(include_str!("../../../RESOLUTION.md"));
        assert!(log.rows.len() > 10 && log.event_rows().count() == 0);
    }

    #[test]
    fn what_is_malformed_has_its_place() {
        let good = "| 2026-11-20 | a.eth | incident | b | c |\n";
        for (rows, expected) in [
            ("| 2026-13-01 | a.eth | incident | b | c |", "line 5, column 3: expected a date such as 2026-11-20"),
            ("| 2026-11-20 |  | incident | b | c |", "line 5, column 17: expected a subject"),
            ("| 2026-11-20 | a.eth | Incident | b | c |", "line 5, column 24: expected decision, incident, correction"),
            ("| 2026-11-20 | a.eth | incident | b |", "line 5, column 35: expected five cells"),
            ("| 2026-11-20 | a.eth | incident | b | c | d |", "line 5, column 43: expected five cells"),
            ("| 2026-11-20 | `a.eth`: payee | incident | b | c |", "line 5, column 16: expected only names"),
            ("| 2026-11-20 | **a.eth** | change | b | c |", "line 5, column 16: expected only names"),
            ("2026-11-20 | a.eth | incident | b | c", "line 5, column 1: expected a row, which begins with |"),
            (&format!("{good}\n{good}"), "line 7, column 1: expected the head of the table above this row"),
        ] {
            let found = malformed(&format!("{HEAD}{rows}"));
            assert!(found.len() == 1 && found[0].starts_with(expected), "{rows}: {found:?}");
        }
        let many = format!("{HEAD}| 2026-11-20 | {} | incident | b | c |", "a.b ".repeat(257));
        assert!(malformed(&many)[0].starts_with("line 5, column 16: expected at most 256 names"));
        let head = "| date | subject | kind | decision | reason |\n";
        for (log, expected) in [
            (format!("{head}{good}"), "line 2, column 1: expected |---|"),
            (
                format!("{HEAD}\ndate | subject | kind | decision | reason\n"),
                "line 6, column 1: expected | at the start",
            ),
        ] {
            let found = malformed(&log);
            assert!(found.len() == 1 && found[0].starts_with(expected), "{found:?}");
        }
    }

    #[test]
    fn line_that_is_not_utf_8_is_malformed_and_hides_no_other() {
        let good = "| 2026-11-20 | a.eth | incident | b | c |\n";
        let bad = b"| 2026-11-20 | \xc3\xa9\xff.eth | incident | b | c |\r\n";
        let table = [HEAD.as_bytes(), good.as_bytes(), bad, good.as_bytes()].concat();
        // It ends what it would end as text.
        let hidden = [&b"\xef\xbb\xbf<!--\n"[..], good.as_bytes(), b"\xff -->\n"].concat();
        for (log, lines, place) in [
            (table.clone(), &[5, 7][..], (6, 17)),
            ([hidden, table[..HEAD.len() + good.len()].to_vec()].concat(), &[8], (3, 1)),
        ] {
            let log = GovernanceLog::parse(log);
            assert_eq!(log.rows.iter().map(|row| row.line).collect::<Vec<_>>(), lines);
            let (line, column) = place;
            assert_eq!(log.malformed, [MalformedLogRow { line, column, why: NOT_UTF8.into() }]);
        }
    }

    /// An empty line ends a table. A line with `|` below it is still reported as a row, unless it is in another table.
    #[test]
    fn a_row_in_no_table_is_named_with_what_is_wrong_in_it() {
        let good = "| 2026-11-20 | a.eth | incident | b | c |\n";
        for (row, expected) in [
            ("| 2026-13-01 | a.eth | incident | b | c |", Some("line 7, column 3: expected a date")),
            (" | soon | a.eth | incident | b | c |", Some("line 7, column 4: expected a date")),
            ("| 2026-11-20 | a.eth | incident | b |", Some("line 7, column 35: expected five cells")),
            ("text\n\n| soon | a.eth | incident | b | c |", Some("line 9, column 3: expected a date")),
            ("| soon | a.eth | incident | b | c |\n|---|---|\n", Some("line 7, column 3: expected a date")),
            ("| a | b | c | d | e |\n|---|---|:-:|---|---|\n| soon | a.eth | incident | b | c |", None),
            ("| a | b |\n:-- | --:\n| soon | c |\ntext | d\n| soon | c |", None),
            ("key | value\n--- | ---\n| a | b |", None),
            ("- | key | value |\n  |-----|-------|\n  | a   | b     |", None),
            ("|x| is the absolute value", None),
            ("|x| is |x|", Some("line 7, column 9: expected five cells")),
            ("| soon | a.eth | incident | b | c", Some("line 7, column 3: expected a date")),
            ("| — | — | — | — | — |", None),
            ("    | soon | a.eth | incident | b | c |", None),
        ] {
            let found = malformed(&format!("{HEAD}{good}\n{row}"));
            let is_as_expected = match expected {
                Some(expected) => found.first().is_some_and(|found| found.starts_with(expected)),
                None => found.is_empty(),
            };
            assert!(is_as_expected, "{row}: {found:?}");
        }
        let bad = "| soon | a.eth | incident | b | c |\n";
        for (below, ends) in [
            (
                &[
                    "## More",
                    "#",
                    "> quote",
                    "- item",
                    "12) item",
                    "***",
                    " - - -",
                    "<!-- line -->",
                    "~~~\n~~~",
                    "    # code",
                ][..],
                true,
            ),
            (&["#tag", "text", "-item", "1.5", "**", "**bold**", "####### seven", "1234567890. a"], false),
        ] {
            for below in below {
                let found = malformed(&format!("{HEAD}{good}\n| a | b |\n|---|---|\n| 1 | 2 |\n{below}\n{bad}"));
                assert_eq!(found.len(), usize::from(ends), "{below}: {found:?}");
            }
        }
        let log = GovernanceLog::parse(format!("{HEAD}{good}\n{bad}{good}\n{HEAD}{good}"));
        assert_eq!(log.rows.iter().map(|row| row.line).collect::<Vec<_>>(), [5, 14]);
        let places: Vec<_> = log.malformed.iter().map(|row| (row.line, row.column)).collect();
        assert_eq!(places, [(7, 3), (8, 1)], "in the order of the file");
        // Above the table too, where its length is that of a form.
        let above = malformed(&format!("{bad}\n| soon |\n\n{HEAD}{good}"));
        assert!(above.len() == 1 && above[0].starts_with("line 1, column 3: expected a date"), "{above:?}");
        // A line is reported once, and starts another table whatever its bytes are.
        let other = [HEAD.as_bytes(), b"\n| \xff | b |\n|---|---|\n| soon | c |\n\n| \xff | b |\n"].concat();
        let log = GovernanceLog::parse(other);
        let places: Vec<_> = log.malformed.iter().map(|row| (row.line, row.column, &*row.why)).collect();
        assert_eq!(places, [(6, 3, NOT_UTF8), (10, 3, NOT_UTF8)]);
    }

    /// CommonMark 0.31, 2.1.
    #[test]
    fn any_line_ending_ends_a_line_and_byte_order_marks_are_dropped() {
        let log = format!("{HEAD}| 2026-11-20 | a.eth | incident | b | c |\n| soon | a.eth | incident | b | c |\n");
        for end in ["\n", "\r", "\r\n"] {
            for marks in 0..=3 {
                let log = "\u{feff}".repeat(marks) + &log.replace('\n', end);
                let log = GovernanceLog::parse(log);
                let places: Vec<_> = log.malformed.iter().map(|row| (row.line, row.column)).collect();
                let rows: Vec<_> = log.rows.iter().map(|row| row.line).collect();
                assert_eq!((&rows[..], &places[..]), (&[5][..], &[(6, 3)][..]), "{end:?}, {marks}");
            }
        }
        let all: Vec<_> = split_lines(b"a\r\rb\r\nc\n\rd\n").collect();
        assert_eq!(all, [&b"a"[..], b"", b"b", b"c", b"", b"d"]);
        assert_eq!((split_lines(b"").count(), split_lines(b"\n").count(), split_lines(b"a").count()), (0, 1, 1));
        let only = malformed(&format!("\u{feff}\u{feff}{}", &HEAD["# Log\n\n".len()..]));
        assert_eq!(only, [""; 0], "the head is in the first line");
    }

    #[test]
    fn a_log_without_a_table_is_one_malformed_row() {
        for text in ["", "# Log\n", "| a | b |\n|---|---|\n", "| date | subject | kind | decision | reason |\n"] {
            assert_eq!(malformed(text), [format!("line 1, column 1: {NO_TABLE}")], "{text}");
        }
        let log = GovernanceLog::parse(b"# Log\n\xff\n");
        let places: Vec<_> = log.malformed.iter().map(|row| (row.line, row.column, &*row.why)).collect();
        assert_eq!(places, [(1, 1, NO_TABLE), (2, 1, NOT_UTF8)]);
    }

    #[test]
    fn a_malformed_row_keeps_no_other_from_being_read() {
        let good = "| 2026-11-20 | a.eth | incident | b | c |\n";
        let bad = "| 2026-11-20 | a.eth | incident | b |\n";
        let head = "| date | subject | kind | decision | reason |";
        let text = format!("{HEAD}{good}{bad}text\n{good}\n{good}\n{head}\n{good}{good}");
        let log = GovernanceLog::parse(&text);
        assert_eq!(log.rows.iter().map(|row| row.line).collect::<Vec<_>>(), [5, 8, 14], "{text}");
        assert_eq!(log.malformed.iter().map(|row| row.line).collect::<Vec<_>>(), [6, 7, 10, 13], "{text}");
        for hidden in [format!("```\n{good}```\n"), format!("<!--\n{good}-->\n")] {
            for above in [HEAD, "| date | subject | kind | decision | reason |\n"] {
                let log = GovernanceLog::parse(format!("{above}{hidden}"));
                assert_eq!((log.rows.len(), log.malformed.len()), (0, 1), "{above}{hidden}");
            }
        }
        let long = |rows: usize| GovernanceLog::parse(format!("{HEAD}{}{good}", bad.repeat(rows)));
        assert_eq!(long(MAX_MALFORMED).malformed.len(), MAX_MALFORMED);
        let mut many = long(MAX_MALFORMED + 7);
        assert_eq!((many.rows.len(), many.malformed.len()), (1, MAX_MALFORMED + 1), "the rest is read");
        let why = "from here on 7 more malformed rows".into();
        assert_eq!(many.malformed.pop(), Some(MalformedLogRow { line: MAX_MALFORMED + 5, column: 35, why }));
    }
}
