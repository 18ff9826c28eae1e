//! A governance log (`RESOLUTION.md`): the rows of its table. Pure.
//!
//! A table counts by its head. Other text, other tables, blocks of code and comments are passed over.

use std::collections::BTreeMap;

use jiff::civil::Date;
use serde::Serialize;

use crate::name::EnsName;

/// Longest log that is read, in bytes: some twenty thousand rows.
pub const MAX_LOG_BYTES: usize = 4 << 20;

/// Most names of one row: each takes some dozens of bytes of memory for three of the file.
const MAX_NAMES_PER_ROW: usize = 256;

/// Most rows of another form: a text with more is no log.
const MAX_MALFORMED: usize = 1_000;

/// How the decision of a row begins that nobody has decided yet.
pub const DRAFT: &str = "draft:";

/// The columns.
pub const COLUMNS: [&str; 5] = ["date", "subject", "kind", "decision", "reason"];

/// The rows of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GovernanceLog {
    /// In the order of the file.
    pub rows: Vec<LogRow>,
    /// What stands where rows should, in the order of the file. It records nothing.
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
    pub why: &'static str,
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
    /// What was decided, in Markdown.
    pub decision: String,
    /// Why, in Markdown.
    pub reason: String,
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
}

/// Why a log cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// There is no table.
    #[error("has no table with the head | date | subject | kind | decision | reason |")]
    NoTable,
    /// More rows are malformed than are told of.
    #[error("line {line}: more than {MAX_MALFORMED} rows are malformed; name the governance log")]
    TooManyMalformed {
        /// The line of the first that is too many, from 1.
        line: usize,
    },
}

impl GovernanceLog {
    /// Reads a log of at most [`MAX_LOG_BYTES`]. A malformed row keeps no other one from being read.
    ///
    /// # Errors
    /// [`LogError`]
    pub fn parse(text: &str) -> Result<Self, LogError> {
        let (mut log, mut has_table) = (Self { rows: Vec::new(), malformed: Vec::new() }, false);
        let (mut position, mut hidden) = (Position::Outside, None);
        for (line, text) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
            if let Some(until) = &hidden {
                if Hidden::ends(until, text) {
                    hidden = None;
                }
                continue;
            }
            let mut malformed = |why| log.malformed.push(MalformedRow { line, column: 1, why });
            position = match (position, cells(text)) {
                (Position::Head, Some(cells)) if is_delimiter(&cells) => Position::Rows,
                (Position::Head, Some(_)) => {
                    malformed("expected |---|---|---|---|---| below the head");
                    Position::Rows
                }
                (Position::Head, None) => {
                    malformed("expected |---|---|---|---|---| below the head");
                    hidden = Hidden::begins(text);
                    Position::Outside
                }
                (Position::Rows, Some(cells)) => {
                    match LogRow::of(line, &cells) {
                        Ok(row) => log.rows.push(row),
                        Err(row) => log.malformed.push(row),
                    }
                    Position::Rows
                }
                (Position::Rows, None) if text.trim().is_empty() => Position::Outside,
                (Position::Rows, None) => {
                    malformed("expected a row, which begins with |, or an empty line below the table");
                    hidden = Hidden::begins(text);
                    if hidden.is_some() { Position::Outside } else { Position::Rows }
                }
                (Position::Outside, Some(cells)) if is_head(&cells) => Position::Head,
                (Position::Outside, Some(cells)) if is_astray(&cells) => {
                    malformed("expected the head of the table above this row, with no empty line between");
                    Position::Outside
                }
                (Position::Outside, None) if is_bare_head(text) => {
                    malformed("expected | at the start of each line of the table");
                    Position::Outside
                }
                (Position::Outside, _) => {
                    hidden = Hidden::begins(text);
                    Position::Outside
                }
            };
            has_table |= matches!(position, Position::Rows);
            if log.malformed.len() > MAX_MALFORMED {
                return Err(LogError::TooManyMalformed { line });
            }
        }
        if has_table || !log.malformed.is_empty() { Ok(log) } else { Err(LogError::NoTable) }
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

/// Where a line stands.
#[derive(Clone, Copy)]
enum Position {
    Outside,
    Head,
    Rows,
}

/// What no reader of the rendered log sees as a table (CommonMark 0.31, 4.5 and 4.6).
enum Hidden {
    /// A fenced block, until a fence of this character that is at least so long.
    Fence(char, usize),
    /// A comment.
    Comment,
}

impl Hidden {
    fn begins(line: &str) -> Option<Self> {
        if line.rsplit_once("<!--").is_some_and(|(_, comment)| !comment.contains("-->")) {
            return Some(Self::Comment);
        }
        let line = line.trim_start();
        let fence = line.chars().next().filter(|c| ['`', '~'].contains(c))?;
        let length = line.chars().take_while(|c| *c == fence).count();
        (length >= 3 && !(fence == '`' && line[length..].contains('`'))).then_some(Self::Fence(fence, length))
    }

    fn ends(&self, line: &str) -> bool {
        match self {
            Self::Fence(fence, length) => {
                let line = line.trim();
                line.len() >= *length && line.chars().all(|c| c == *fence)
            }
            Self::Comment => line.contains("-->"),
        }
    }
}

/// A cell, and the column of its first character.
struct Cell {
    column: usize,
    text: String,
}

/// Most spaces before a row; what has more is code.
const MAX_INDENT: usize = 3;

/// The cells of a line of a table; none of another line. `\|` is no border.
fn cells(line: &str) -> Option<Vec<Cell>> {
    let start = line.len() - line.trim_start_matches(' ').len();
    if start > MAX_INDENT {
        return None;
    }
    let row = line.trim().strip_prefix('|')?;
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

fn is_head(cells: &[Cell]) -> bool {
    cells.iter().map(|cell| cell.text.to_ascii_lowercase()).eq(COLUMNS)
}

/// Whether a line is the head of a table without its outer borders, which Markdown permits.
fn is_bare_head(line: &str) -> bool {
    line.trim_end_matches('|').split('|').map(|cell| cell.trim().to_ascii_lowercase()).eq(COLUMNS)
}

fn is_delimiter(cells: &[Cell]) -> bool {
    let is_rule = |cell: &Cell| {
        let rule = cell.text.strip_prefix(':').unwrap_or(&cell.text);
        let rule = rule.strip_suffix(':').unwrap_or(rule);
        !rule.is_empty() && rule.chars().all(|c| c == '-')
    };
    cells.len() == COLUMNS.len() && cells.iter().all(is_rule)
}

/// Whether a row that is in no table looks like one of a log.
fn is_astray(cells: &[Cell]) -> bool {
    cells.len() == COLUMNS.len() && cells[0].text.parse::<Date>().is_ok()
}

impl LogRow {
    fn of(line: usize, cells: &[Cell]) -> Result<Self, MalformedRow> {
        let malformed = |column, why| MalformedRow { line, column, why };
        let [date, subject, kind, decision, reason] = cells else {
            let column = cells.get(COLUMNS.len()).or_else(|| cells.last()).map_or(1, |cell| cell.column);
            return Err(malformed(column, "expected five cells: date, subject, kind, decision, reason"));
        };
        if subject.text.is_empty() {
            return Err(malformed(subject.column, "expected what the row is about"));
        }
        let word = LogKind::ALL.into_iter().find(|known| known.as_str() == kind.text);
        let kind = word.ok_or_else(|| malformed(kind.column, "expected decision, incident, correction or change"))?;
        let names = if kind == LogKind::Decision { Ok(Vec::new()) } else { names(&subject.text) };
        Ok(Self {
            line,
            date: date.text.parse().map_err(|_| malformed(date.column, "expected a date such as 2026-11-20"))?,
            subject: code_span(&subject.text).unwrap_or_else(|| subject.text.clone()),
            names: names.map_err(|why| malformed(subject.column, why))?,
            kind,
            decision: decision.text.clone(),
            reason: reason.text.clone(),
        })
    }

    /// Whether no person has decided it yet.
    pub fn is_draft(&self) -> bool {
        self.decision.starts_with(DRAFT)
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

/// The text of a cell that is one code span, without the escapes of [`Foreign`](crate::text::Foreign).
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
    use crate::report::Draft;

    const HEAD: &str = "# Log\n\n| Date | subject | kind | decision | reason |\n|---|:-:|---|---|---|\n";

    /// What is malformed in a log.
    fn malformed(text: &str) -> Vec<String> {
        let log = GovernanceLog::parse(text).expect("a log");
        log.malformed.iter().map(|row| format!("line {}, column {}: {}", row.line, row.column, row.why)).collect()
    }

    #[test]
    fn a_log_is_its_tables_rows() {
        let text = format!(
            "\u{feff}{HEAD}| 2026-11-20 | `A.eth`, b.eth | incident | stop \\| wait | `x` |\n\ntext | with | bars\n\n\
             | other | table |\n|---|---|\n| 1 | 2 |\n"
        );
        let log = GovernanceLog::parse(&text).expect("a log");
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
            format!("text <!-- a --> b <!--\n\n{table}\n-->\n"),
            table.lines().map(|line| format!("    {line}\n")).collect(),
            "```x``` is code\n".to_owned(),
            "<!-- one line -->\n".to_owned(),
        ] {
            let log =
                GovernanceLog::parse(&format!("{hidden}\n{HEAD}{row}")).unwrap_or_else(|e| panic!("{e}: {hidden}"));
            let names: Vec<_> = log.rows.iter().map(|row| row.names.clone()).collect();
            assert_eq!(names, [["a.eth"]], "{hidden}");
        }
    }

    #[test]
    fn a_draft_is_read_back_as_it_was_made() {
        for subject in ["a.eth", "x, b.eth", "=x|`a`\u{202e}\\n\u{7c}.eth", "\\u{41}\\"] {
            let draft = Draft {
                date: "2026-11-20".to_owned(),
                subject: subject.to_owned(),
                kind: LogKind::Incident,
                decision: "draft: set `x`".to_owned(),
                reason: "`a` | / <b>".to_owned(),
            };
            let log = GovernanceLog::parse(&(Draft::head() + &draft.markdown() + "\n")).expect("a log");
            let [row] = &log.rows[..] else { panic!("{log:?}") };
            assert!(row.is_draft() && row.names == [subject], "{row:?}");
            let LogRow { date, subject, kind, decision, reason, .. } = row.clone();
            assert_eq!(Draft { date: date.to_string(), subject, kind, decision, reason }, draft);
        }
    }

    #[test]
    fn the_projects_own_log_can_be_read() {
        let log = GovernanceLog::parse(include_str!("../../RESOLUTION.md")).expect("a log");
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
        assert_eq!(GovernanceLog::parse("# Log\n"), Err(LogError::NoTable));
    }

    #[test]
    fn a_malformed_row_keeps_no_other_from_being_read() {
        let good = "| 2026-11-20 | a.eth | incident | b | c |\n";
        let bad = "| 2026-11-20 | a.eth | incident | b |\n";
        let head = "| date | subject | kind | decision | reason |";
        let text = format!("{HEAD}{good}{bad}text\n{good}\n{good}\n{head}\n{good}{good}");
        let log = GovernanceLog::parse(&text).expect("a log");
        assert_eq!(log.rows.iter().map(|row| row.line).collect::<Vec<_>>(), [5, 8, 14], "{text}");
        assert_eq!(log.malformed.iter().map(|row| row.line).collect::<Vec<_>>(), [6, 7, 10, 13], "{text}");
        for hidden in [format!("```\n{good}```\n"), format!("<!--\n{good}-->\n")] {
            for above in [HEAD, "| date | subject | kind | decision | reason |\n"] {
                let log = GovernanceLog::parse(&format!("{above}{hidden}")).expect("a log");
                assert_eq!((log.rows.len(), log.malformed.len()), (0, 1), "{above}{hidden}");
            }
        }
        let long = |rows: usize| GovernanceLog::parse(&format!("{HEAD}{}", bad.repeat(rows)));
        assert_eq!(long(MAX_MALFORMED).expect("a log").malformed.len(), MAX_MALFORMED);
        assert_eq!(long(MAX_MALFORMED + 1), Err(LogError::TooManyMalformed { line: MAX_MALFORMED + 5 }));
    }
}
