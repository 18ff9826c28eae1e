//! A governance log (`RESOLUTION.md`): the rows of its table. Pure.
//!
//! A table counts by its head, which is one of two [forms](Form). Other text, other tables, blocks of code and comments
//! are passed over. What cannot be read is named with its place, and keeps nothing else from being read.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use jiff::civil::Date;
use pulldown_cmark::{Event, Options, Tag};
use serde::Serialize;

use clresolve_core::name::EnsName;

/// Longest log that is read, in bytes: some twenty thousand rows.
pub const MAX_LOG_BYTES: usize = 4 << 20;

/// Most names of one row: each takes some dozens of bytes of memory for three of the file.
const MAX_NAMES_PER_ROW: usize = 256;

/// Most malformed rows that are named one by one: nobody reads more. The others are counted.
const MAX_MALFORMED: usize = 1_000;

/// What is told of a log without a table.
const NO_TABLE: &str = "expected a table with the head | Date | Agent Name(s) | Action | Reason | Resolution | \
                        Approver(s) | or | date | subject | kind | decision | reason |";

/// What is told of a line that is no text.
const NOT_UTF8: &str = "expected UTF-8";

/// How the decision of a row begins that nobody has decided yet.
pub const DRAFT: &str = "draft:";

/// What stands in a cell that says nothing.
pub const NOTHING: &str = "—";

/// The form of a log's table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// That of the published governance logs.
    #[default]
    Published,
    /// That of this project's own log, which holds decisions about the rules too.
    Plain,
}

/// What holds for a form.
struct Columns {
    names: &'static [&'static str],
    /// What a row of another length is told.
    expected: &'static str,
    /// What is told where the head has no delimiter below it.
    delimiter: &'static str,
}

impl Form {
    const ALL: [Self; 2] = [Self::Published, Self::Plain];

    const fn columns(self) -> Columns {
        match self {
            Self::Published => Columns {
                names: &["Date", "Agent Name(s)", "Action", "Reason", "Resolution", "Approver(s)"],
                expected: "expected six cells: date, agent names, action, reason, resolution, approvers",
                delimiter: "expected |---|---|---|---|---|---| below the head",
            },
            Self::Plain => Columns {
                names: &["date", "subject", "kind", "decision", "reason"],
                expected: "expected five cells: date, subject, kind, decision, reason",
                delimiter: "expected |---|---|---|---|---| below the head",
            },
        }
    }

    /// The head of a table, with its delimiter.
    pub fn head(self) -> String {
        let names = self.columns().names;
        format!("| {} |\n{}|\n", names.join(" | "), "|---".repeat(names.len()))
    }

    /// The form whose rows have this number of cells.
    fn of_length(cells: usize) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.columns().names.len() == cells)
    }

    /// The form whose head these cells are. One of the published logs has one `Approver`.
    fn of_head<'c>(cells: impl Iterator<Item = &'c str> + Clone) -> Option<Self> {
        let name = |cell: &str| cell.trim().to_ascii_lowercase().trim_end_matches("(s)").to_owned();
        Self::ALL
            .into_iter()
            .find(|form| cells.clone().map(name).eq(form.columns().names.iter().map(|column| name(column))))
    }
}

/// The rows of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GovernanceLog {
    /// That of its first table.
    pub form: Form,
    /// In the order of the file.
    pub rows: Vec<LogRow>,
    /// What stands where rows should, in the order of the file. It records nothing. Behind the first thousand one row
    /// counts the others.
    pub malformed: Vec<MalformedRow>,
}

/// A line that is no row, and should be one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MalformedRow {
    /// Its line in the file, from 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// What was expected.
    pub why: Cow<'static, str>,
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRow {
    /// Its line in the file, from 1.
    pub line: usize,
    /// The day of the audit that saw it, or of the decision.
    pub date: Date,
    /// What it is about.
    pub subject: String,
    /// The names of the subject, in their normal form; of a decision none.
    pub names: Vec<String>,
    /// What it records.
    pub kind: LogKind,
    /// What was done; absent in the plain form, which does not tell.
    pub action: Option<Action>,
    /// What was decided, in Markdown.
    pub decision: String,
    /// Why, in Markdown.
    pub reason: String,
    /// Whether somebody stands for it; in the plain form somebody always does.
    pub is_approved: bool,
}

/// What a row records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogKind {
    /// How the rules are read. It is about no change.
    Decision,
    /// A name broke its binding.
    Incident,
    /// It holds again.
    Correction,
    /// What it publishes changed.
    Change,
}

impl LogKind {
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

    /// How the reason of such a row begins in the published form, which has no column for the kind.
    pub(super) const fn mark(self) -> &'static str {
        match self {
            Self::Decision | Self::Change => "",
            Self::Incident => "incident: ",
            Self::Correction => "correction: ",
        }
    }

    /// The kind of a reason in the published form, and what stands behind its mark.
    fn split(reason: &str) -> (Self, &str) {
        let marked = [Self::Incident, Self::Correction].into_iter().find_map(|kind| {
            let (word, rest) = reason.split_once(':')?;
            word.eq_ignore_ascii_case(kind.as_str()).then(|| (kind, rest.trim_start()))
        });
        marked.unwrap_or((Self::Change, reason))
    }
}

/// What was done to a name, in the words of the published form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Action {
    /// It is listed now.
    Added,
    /// What it publishes is another.
    Updated,
    /// Its card says that it is not to be used any more.
    Deprecated,
    /// Another name has taken its place.
    Replaced,
    /// It is listed no longer.
    Removed,
}

impl Action {
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
    /// Reads a log of at most [`MAX_LOG_BYTES`]. A malformed row keeps no other one from being read.
    pub fn parse(log: impl AsRef<[u8]>) -> Self {
        let log = without_marks(log.as_ref());
        // Bytes that are no text change no line: each stands for a character that means nothing to Markdown.
        let text = String::from_utf8_lossy(log);
        let (mut parser, mut blocks) = (Parser::new(), Blocks::of(&text));
        let mut start = 0;
        for (number, (bytes, line)) in (1..).zip(lines(log).zip(lines(text.as_bytes()))) {
            let end = start + line.len();
            parser.take(number, bytes, &text[start..end], blocks.at(start..end));
            start = end + if text[end..].starts_with("\r\n") { 2 } else { 1 };
        }
        parser.finish()
    }

    /// The rows that record what happened, by the names that they are about.
    pub fn by_name(&self) -> BTreeMap<&str, Vec<&LogRow>> {
        let mut rows = BTreeMap::<&str, Vec<&LogRow>>::new();
        for row in self.events() {
            row.names.iter().for_each(|name| rows.entry(name).or_default().push(row));
        }
        rows
    }

    /// The rows that record what happened.
    pub fn events(&self) -> impl Iterator<Item = &LogRow> {
        self.rows.iter().filter(|row| row.kind != LogKind::Decision)
    }
}

/// What some editors put before a text, and before one that has it already.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The text behind its byte order marks.
fn without_marks(mut text: &[u8]) -> &[u8] {
    // Ends: each mark is a part of the text.
    while let Some(behind) = text.strip_prefix(BYTE_ORDER_MARK) {
        text = behind;
    }
    text
}

/// The lines of a text without their ends: a line feed, a carriage return, or both (CommonMark 0.31, 2.1).
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
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

/// What a line is to a reader of the rendered log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    /// Code, a comment or other HTML, whose lines are no table.
    Hidden,
    /// A part of a table.
    Table,
    /// Anything else.
    Text,
}

/// The tables of a text and what is hidden in it, in their order.
struct Blocks {
    left: std::iter::Peekable<std::vec::IntoIter<(Range<usize>, Block)>>,
}

impl Blocks {
    fn of(text: &str) -> Self {
        let events = pulldown_cmark::Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter();
        let blocks = events.filter_map(|(event, range)| match event {
            Event::Start(Tag::Table(_)) => Some((range, Block::Table)),
            Event::Start(Tag::CodeBlock(_) | Tag::HtmlBlock) => Some((range, Block::Hidden)),
            _ => None,
        });
        Self { left: blocks.collect::<Vec<_>>().into_iter().peekable() }
    }

    /// The block of a line. Each line is asked for once, in their order.
    fn at(&mut self, line: Range<usize>) -> Block {
        while self.left.next_if(|(block, _)| block.end <= line.start).is_some() {}
        match self.left.peek() {
            Some((block, kind)) if block.start < line.end => *kind,
            _ => Block::Text,
        }
    }
}

/// Reads a log line by line.
struct Parser {
    log: GovernanceLog,
    /// The form of the first table.
    form: Option<Form>,
    position: Position,
    /// Whether something looks like a part of a table.
    has_parts: bool,
    /// Line and column of the first malformed row that is not named, and how many there are.
    more: Option<(usize, usize, u64)>,
}

impl Parser {
    const fn new() -> Self {
        let log = GovernanceLog { form: Form::Published, rows: Vec::new(), malformed: Vec::new() };
        Self { log, form: None, position: Position::Outside, has_parts: false, more: None }
    }

    /// Takes a line. What is not UTF-8 is no row, but begins and ends what it would as text.
    fn take(&mut self, line: usize, bytes: &[u8], text: &str, block: Block) {
        let found = self.step(line, text, block);
        self.has_parts |= found.is_err();
        match (std::str::from_utf8(bytes), found) {
            (Ok(_), Ok(row)) => self.log.rows.extend(row),
            (Ok(_), Err(row)) => self.refuse(row),
            (Err(error), _) => {
                let column = text[..error.valid_up_to()].chars().count() + 1;
                self.refuse(MalformedRow { line, column, why: NOT_UTF8.into() });
            }
        }
    }

    /// Where the next line stands, and the row of this one.
    fn step(&mut self, line: usize, text: &str, block: Block) -> LineRead {
        match (std::mem::take(&mut self.position), block) {
            (Position::Outside, Block::Hidden) => Ok(None),
            (Position::Outside, _) => self.outside(line, text, block),
            (Position::BelowHead(form), _) => self.below_head(form, line, text, block),
            (Position::Table(form), _) => self.in_table(form, line, text, block),
        }
    }

    /// A line outside of the log's tables.
    fn outside(&mut self, line: usize, text: &str, block: Block) -> LineRead {
        let Some(cells) = cells(text) else {
            if is_bare_head(text) {
                return Err(malformed(line, "expected | at the start of each line of the table"));
            }
            return Ok(None);
        };
        if let Some(form) = Form::of_head(cells.iter().map(|cell| &*cell.text)) {
            self.position = Position::BelowHead(form);
            return Ok(None);
        }
        if is_astray(&cells) {
            return Err(malformed(line, "expected the head of the table above this row, with no empty line between"));
        }
        if block == Block::Table || cells.iter().all(|cell| is_rule(&cell.text)) {
            return Ok(None);
        }
        // An empty line ends a table, so the rendered log shows a row below it as text.
        let of_length = Form::of_length(cells.len());
        let may_be_row = of_length.is_some() || text.trim_end().ends_with('|');
        let form = self.form.or(of_length).filter(|_| may_be_row);
        form.map_or(Ok(None), |form| LogRow::of(line, form, &cells).map(|_| None))
    }

    /// The line below the head of a log's table. Where the delimiter is missing, rows may follow all the same.
    fn below_head(&mut self, form: Form, line: usize, text: &str, block: Block) -> LineRead {
        let missing = malformed(line, form.columns().delimiter);
        let Some(cells) = cells(text).filter(|_| block != Block::Hidden) else { return Err(missing) };
        self.position = Position::Table(form);
        self.form.get_or_insert(form);
        if is_delimiter(form, &cells) { Ok(None) } else { Err(missing) }
    }

    /// A line below the delimiter of a log's table.
    fn in_table(&mut self, form: Form, line: usize, text: &str, block: Block) -> LineRead {
        if text.trim().is_empty() {
            return Ok(None);
        }
        if block != Block::Hidden {
            self.position = Position::Table(form);
            if let Some(cells) = cells(text) {
                return LogRow::of(line, form, &cells);
            }
        }
        Err(malformed(line, "expected a row, which begins with |, or an empty line below the table"))
    }

    /// Names what is malformed, or counts it where enough is named.
    fn refuse(&mut self, row: MalformedRow) {
        if self.log.malformed.len() < MAX_MALFORMED {
            self.log.malformed.push(row);
        } else {
            let (_, _, count) = self.more.get_or_insert((row.line, row.column, 0));
            *count += 1;
        }
    }

    /// The log, after its last line.
    fn finish(self) -> GovernanceLog {
        let Self { mut log, form, has_parts, more, .. } = self;
        if form.is_none() && !has_parts {
            log.malformed.insert(0, MalformedRow { line: 1, column: 1, why: NO_TABLE.into() });
        }
        log.malformed.extend(more.map(|(line, column, count)| {
            let why = format!("from here on {count} more are malformed, and are not named one by one").into();
            MalformedRow { line, column, why }
        }));
        log.form = form.unwrap_or_default();
        log
    }
}

/// The row of a line; none of a line that says nothing.
type LineRead = Result<Option<LogRow>, MalformedRow>;

/// A line that is wrong as a whole.
fn malformed(line: usize, why: &'static str) -> MalformedRow {
    MalformedRow { line, column: 1, why: why.into() }
}

/// Where a line stands.
#[derive(Default)]
enum Position {
    #[default]
    Outside,
    BelowHead(Form),
    Table(Form),
}

/// A cell, and the column of its first character.
struct Cell {
    column: usize,
    text: String,
}

/// Most spaces before a row; what has more is code.
const MAX_INDENT: usize = 3;

/// The line without the spaces before it; none of a line of code.
fn unindented(line: &str) -> Option<&str> {
    let text = line.trim_start_matches(' ');
    (line.len() - text.len() <= MAX_INDENT).then_some(text)
}

/// The cells of a line of a table; none of another line. `\|` is no border.
fn cells(line: &str) -> Option<Vec<Cell>> {
    let text = unindented(line)?;
    let start = line.len() - text.len();
    let row = text.trim_end().strip_prefix('|')?;
    let mut column = start + 2;
    let mut cells = vec![Cell { column, text: String::new() }];
    let mut characters = row.chars().peekable();
    while let Some(c) = characters.next() {
        column += 1;
        let cell = cells.last_mut()?;
        match c {
            '\\' if characters.next_if_eq(&'|').is_some() => {
                column += 1;
                cell.text.push('|');
            }
            '|' => cells.push(Cell { column, text: String::new() }),
            _ => cell.text.push(c),
        }
    }
    // What stands behind the last border is no cell where it is empty.
    if cells.last().is_some_and(|last| last.text.is_empty()) {
        cells.pop();
    }
    for cell in &mut cells {
        cell.column += cell.text.chars().take_while(|c| c.is_whitespace()).count();
        cell.text = cell.text.trim().to_owned();
    }
    Some(cells)
}

/// Whether a line is the head of a table without its outer borders, which Markdown permits.
fn is_bare_head(line: &str) -> bool {
    Form::of_head(line.trim_end_matches('|').split('|')).is_some()
}

fn is_delimiter(form: Form, cells: &[Cell]) -> bool {
    cells.len() == form.columns().names.len() && cells.iter().all(|cell| is_rule(&cell.text))
}

/// Whether a cell is one of a delimiter.
fn is_rule(cell: &str) -> bool {
    let rule = cell.strip_prefix(':').unwrap_or(cell);
    let rule = rule.strip_suffix(':').unwrap_or(rule);
    !rule.is_empty() && rule.chars().all(|c| c == '-')
}

/// Whether a row that is in no table, or in another one, is one of a log beyond doubt.
fn is_astray(cells: &[Cell]) -> bool {
    Form::of_length(cells.len()).is_some() && cells[0].text.parse::<Date>().is_ok()
}

impl Cell {
    /// Whether it says nothing: it is empty, or a dash.
    fn is_nothing(&self) -> bool {
        self.text.chars().all(|c| matches!(c, '-' | '–' | '—'))
    }
}

/// The cell that is wrong, and what was expected there.
type Wrong<'c> = (&'c Cell, &'static str);

impl LogRow {
    /// The row of these cells; none where no cell says anything.
    fn of(line: usize, form: Form, cells: &[Cell]) -> LineRead {
        let row = match (form, cells) {
            (Form::Published, [date, names, action, reason, resolution, approvers]) => {
                Self::published(line, [date, names, action, reason, resolution, approvers])
            }
            (Form::Plain, [date, subject, kind, decision, reason]) => {
                Self::plain(line, [date, subject, kind, decision, reason])
            }
            _ => {
                let Columns { names, expected, .. } = form.columns();
                let column = cells.get(names.len()).or_else(|| cells.last()).map_or(1, |cell| cell.column);
                return Err(MalformedRow { line, column, why: expected.into() });
            }
        };
        if cells.iter().all(Cell::is_nothing) {
            return Ok(None);
        }
        row.map(Some).map_err(|(cell, why)| MalformedRow { line, column: cell.column, why: why.into() })
    }

    fn published(line: usize, cells: [&Cell; 6]) -> Result<Self, Wrong<'_>> {
        let [date, subject, action, reason, resolution, approvers] = cells;
        let word = Action::ALL.into_iter().find(|known| known.as_str() == action.text);
        let wanted = "expected Added, Updated, Deprecated, Replaced or Removed";
        if reason.is_nothing() {
            return Err((reason, "expected a reason"));
        }
        if resolution.is_nothing() {
            return Err((resolution, "expected what was decided"));
        }
        let (kind, reason) = LogKind::split(&reason.text);
        let kind = if subject.is_nothing() { LogKind::Decision } else { kind };
        Ok(Self {
            action: Some(word.ok_or((action, wanted))?),
            is_approved: !approvers.is_nothing(),
            ..Self::about(line, kind, [date, subject], [&resolution.text, reason])?
        })
    }

    fn plain(line: usize, cells: [&Cell; 5]) -> Result<Self, Wrong<'_>> {
        let [date, subject, kind, decision, reason] = cells;
        if subject.is_nothing() {
            return Err((subject, "expected what the row is about"));
        }
        let word = LogKind::ALL.into_iter().find(|known| known.as_str() == kind.text);
        let kind = word.ok_or((kind, "expected decision, incident, correction or change"))?;
        Self::about(line, kind, [date, subject], [&decision.text, &reason.text])
    }

    fn about<'c>(
        line: usize,
        kind: LogKind,
        [date, subject]: [&'c Cell; 2],
        [decision, reason]: [&str; 2],
    ) -> Result<Self, Wrong<'c>> {
        let names = if kind == LogKind::Decision { Ok(Vec::new()) } else { names(&subject.text) };
        Ok(Self {
            line,
            date: date.text.parse().map_err(|_| (date, "expected a date such as 2026-11-20"))?,
            subject: code_span(&subject.text).unwrap_or_else(|| subject.text.clone()),
            names: names.map_err(|why| (subject, why))?,
            kind,
            action: None,
            decision: decision.to_owned(),
            reason: reason.to_owned(),
            is_approved: true,
        })
    }

    /// Whether no person has decided it yet.
    pub fn is_draft(&self) -> bool {
        !self.is_approved || self.decision.starts_with(DRAFT)
    }
}

/// The names of a subject: one code span, which may hold what is no name, or names apart by commas or spaces.
fn names(subject: &str) -> Result<Vec<String>, &'static str> {
    let normal = |name: &str| EnsName::parse(name).map(|name| name.as_str().to_owned());
    if let Some(name) = code_span(subject) {
        return Ok(vec![normal(&name).unwrap_or(name)]);
    }
    let words = subject.split(|c: char| c.is_whitespace() || [',', ';'].contains(&c));
    let words: Vec<_> = words.map(|word| word.trim_matches('`')).filter(|word| !word.is_empty()).collect();
    if words.len() > MAX_NAMES_PER_ROW {
        return Err("expected at most 256 names; take a row for the others");
    }
    let names: Result<Vec<_>, _> = words.into_iter().map(normal).collect();
    names.map_err(|_| "expected names alone, such as `a.eth`, apart by commas")
}

/// The text of a cell that is one code span, without the escapes of [`Foreign`](clresolve_core::text::Foreign).
fn code_span(cell: &str) -> Option<String> {
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
    use crate::Draft;

    const PUBLISHED: &str = "# Log\n\n| Date | Agent Name(s) | Action | Reason | Resolution | Approver(s) |\n\
                             |------|----------------|--------|--------|------------|--------------|\n";
    const HEAD: &str = "# Log\n\n| Date | subject | kind | decision | reason |\n|---|:-:|---|---|---|\n";

    /// What is malformed in a log.
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
        assert_eq!((row.line, row.kind, &*row.decision, &*row.reason), (5, LogKind::Incident, "stop | wait", "`x`"));
        assert_eq!(row.names, ["a.eth", "b.eth"], "in normal form");
        assert_eq!(log.by_name().into_keys().collect::<Vec<_>>(), ["a.eth", "b.eth"]);
    }

    /// What nobody sees in the rendered log records nothing, and hides nothing that follows.
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

    /// CommonMark 0.31, 4.6 and 6.6: within a paragraph an unclosed comment is text, and so is what is indented as code.
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
        let kinds = [LogKind::Incident, LogKind::Correction, LogKind::Change];
        for ((subject, kind), form) in subjects
            .into_iter()
            .flat_map(|subject| kinds.map(|kind| (subject, kind)))
            .flat_map(|of| Form::ALL.map(|form| (of, form)))
        {
            let draft = Draft {
                date: "2026-11-20".to_owned(),
                subject: subject.to_owned(),
                kind,
                action: Action::Deprecated,
                decision: "draft: set `x`".to_owned(),
                reason: "`a` | / <b>".to_owned(),
            };
            let log = GovernanceLog::parse(form.head() + &draft.markdown(form) + "\n");
            let [row] = &log.rows[..] else { panic!("{log:?}") };
            assert!(row.is_draft() && row.names == [subject] && log.form == form, "{row:?}");
            let LogRow { date, subject, kind, action, decision, reason, .. } = row.clone();
            assert_eq!(action, (form == Form::Published).then_some(draft.action));
            assert_eq!(Draft { date: date.to_string(), subject, kind, action: draft.action, decision, reason }, draft);
        }
    }

    /// The published logs: one whose table says nothing yet, and one about verbs, which is a table of another kind.
    #[test]
    fn a_published_log_that_says_nothing_yet_has_no_rows() {
        let verbs = "\n| Date | Verb(s) | Action | Class | Reason | Resolution | Approver(s) |\n|--|--|--|--|--|--|--|\n\
                     | 2025-12-06 | fetch, parse | Added | Commons | first set | v1.0.0 | a steward |\n";
        let log = GovernanceLog::parse(format!("{PUBLISHED}| — | — | — | — | — | — |\n{verbs}"));
        assert_eq!(log, GovernanceLog { form: Form::Published, rows: Vec::new(), malformed: Vec::new() });
        assert_eq!(malformed(verbs), [format!("line 1, column 1: {NO_TABLE}")]);
        let one = GovernanceLog::parse(PUBLISHED.replace("Approver(s)", "Approver"));
        assert_eq!((one.form, one.malformed), (Form::Published, vec![]));
    }

    #[test]
    fn a_published_row_says_what_was_done_and_who_approved_it() {
        for action in Action::ALL {
            let word = action.as_str();
            let row = |names: &str, reason: &str, decision: &str, approver: &str| {
                let row = format!("| 2026-11-20 | {names} | {word} | {reason} | {decision} | {approver} |\n");
                let log = GovernanceLog::parse(format!("{PUBLISHED}{row}"));
                assert_eq!(log.malformed, [], "{row}");
                log.rows.into_iter().next().expect("a row")
            };
            let change = row("`A.eth`, b.eth", "first identity", "adopted", "commandlayer.eth");
            assert_eq!((change.kind, change.action), (LogKind::Change, Some(action)));
            assert_eq!((&*change.names.join(" "), &*change.decision), ("a.eth b.eth", "adopted"));
            assert!(!change.is_draft());
            let incident = row("a.eth", "Incident: checksum-mismatch", "stopped", "—");
            assert_eq!((incident.kind, &*incident.reason), (LogKind::Incident, "checksum-mismatch"));
            assert!(incident.is_draft(), "nobody approved it");
            let correction = row("a.eth", "correction: trusted", "draft: may be paid", "x");
            assert!(correction.kind == LogKind::Correction && correction.is_draft());
            let decision = row("—", "the text is open", "by the letter", "x");
            assert!(decision.kind == LogKind::Decision && decision.names.is_empty());
        }
    }

    #[test]
    fn what_is_malformed_in_a_published_log_has_its_place() {
        for (row, expected) in [
            ("| soon | a.eth | Added | r | d | x |", "line 5, column 3: expected a date"),
            ("| — | a.eth | Added | r | d | x |", "line 5, column 3: expected a date"),
            ("| 2026-11-20 | **a.eth** | Added | r | d | x |", "line 5, column 16: expected names alone"),
            ("| 2026-11-20 | a.eth | Revised | r | d | x |", "line 5, column 24: expected Added, Updated"),
            ("| 2026-11-20 | a.eth | Added | — | d | x |", "line 5, column 32: expected a reason"),
            ("| 2026-11-20 | a.eth | Added | r |  | x |", "line 5, column 37: expected what was decided"),
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
        assert!(log.rows.len() > 10 && log.events().count() == 0);
    }

    #[test]
    fn what_is_malformed_has_its_place() {
        let good = "| 2026-11-20 | a.eth | incident | b | c |\n";
        for (rows, expected) in [
            ("| 2026-13-01 | a.eth | incident | b | c |", "line 5, column 3: expected a date such as 2026-11-20"),
            ("| 2026-11-20 |  | incident | b | c |", "line 5, column 17: expected what the row is about"),
            ("| 2026-11-20 | a.eth | Incident | b | c |", "line 5, column 24: expected decision, incident, correction"),
            ("| 2026-11-20 | a.eth | incident | b |", "line 5, column 35: expected five cells"),
            ("| 2026-11-20 | a.eth | incident | b | c | d |", "line 5, column 43: expected five cells"),
            ("| 2026-11-20 | `a.eth`: payee | incident | b | c |", "line 5, column 16: expected names alone"),
            ("| 2026-11-20 | **a.eth** | change | b | c |", "line 5, column 16: expected names alone"),
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
    fn a_line_that_is_not_utf_8_is_a_row_with_its_place_and_hides_no_other() {
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
            assert_eq!(log.malformed, [MalformedRow { line, column, why: NOT_UTF8.into() }]);
        }
    }

    /// An empty line ends a table. What begins with | below it is a row all the same, unless it is in another table.
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
        // A line is named once, and is the head of another table whatever its bytes are.
        let other = [HEAD.as_bytes(), b"\n| \xff | b |\n|---|---|\n| soon | c |\n\n| \xff | b |\n"].concat();
        let log = GovernanceLog::parse(other);
        let places: Vec<_> = log.malformed.iter().map(|row| (row.line, row.column, &*row.why)).collect();
        assert_eq!(places, [(6, 3, NOT_UTF8), (10, 3, NOT_UTF8)]);
    }

    /// CommonMark 0.31, 2.1.
    #[test]
    fn a_line_ends_with_any_line_ending_and_marks_before_the_text_are_none_of_it() {
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
        let all: Vec<_> = lines(b"a\r\rb\r\nc\n\rd\n").collect();
        assert_eq!(all, [&b"a"[..], b"", b"b", b"c", b"", b"d"]);
        assert_eq!((lines(b"").count(), lines(b"\n").count(), lines(b"a").count()), (0, 1, 1));
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
        let why = "from here on 7 more are malformed, and are not named one by one".into();
        assert_eq!(many.malformed.pop(), Some(MalformedRow { line: MAX_MALFORMED + 5, column: 35, why }));
    }
}
