//! A governance log (`RESOLUTION.md`): the rows of its table. Pure.
//!
//! A table counts by its head. Text around it, other tables and what stands in a fenced block are passed over.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

/// Longest log that is read, in bytes: some twenty thousand rows.
pub const MAX_LOG_BYTES: usize = 4 << 20;

/// The columns.
pub const COLUMNS: [&str; 5] = ["date", "subject", "kind", "decision", "reason"];

/// The rows of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GovernanceLog {
    /// In the order of the file.
    pub rows: Vec<LogRow>,
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRow {
    /// Its line in the file, from 1.
    pub line: usize,
    /// The day of the entry.
    pub date: Date,
    /// What it is about, such as a name.
    pub subject: String,
    /// What it records.
    pub kind: LogKind,
    /// What was decided, in Markdown.
    pub decision: String,
    /// Why, in Markdown.
    pub reason: String,
}

/// What a row records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
    /// A row is malformed.
    #[error("line {line}, column {column}: {why}")]
    Row {
        /// From 1.
        line: usize,
        /// In characters, from 1.
        column: usize,
        /// What was expected.
        why: &'static str,
    },
}

impl GovernanceLog {
    /// Reads a log of at most [`MAX_LOG_BYTES`].
    ///
    /// # Errors
    /// [`LogError`]
    pub fn parse(text: &str) -> Result<Self, LogError> {
        let (mut rows, mut has_table, mut position, mut is_fenced) = (Vec::new(), false, Position::Outside, false);
        for (number, text) in (1..).zip(text.lines()) {
            if text.trim_start().starts_with("```") {
                (is_fenced, position) = (!is_fenced, Position::Outside);
            }
            let cells = cells(text).filter(|_| !is_fenced);
            position = match (position, cells) {
                (_, None) => Position::Outside,
                (Position::Outside, Some(cells)) if is_head(&cells) => Position::Head,
                (Position::Outside, Some(_)) => Position::Outside,
                (Position::Head, Some(_)) => {
                    has_table = true;
                    Position::Rows
                }
                (Position::Rows, Some(cells)) => {
                    rows.push(LogRow::of(number, &cells)?);
                    Position::Rows
                }
            };
        }
        if has_table { Ok(Self { rows }) } else { Err(LogError::NoTable) }
    }

    /// The rows about a name, without decisions.
    pub fn about<'l>(&'l self, name: &'l str) -> impl DoubleEndedIterator<Item = &'l LogRow> {
        self.events().filter(move |row| row.words().any(|word| word == name))
    }

    /// The rows that record what happened.
    pub fn events(&self) -> impl DoubleEndedIterator<Item = &LogRow> {
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

/// A cell, and the column of its first character.
struct Cell {
    column: usize,
    text: String,
}

/// The cells of a line of a table; none of another line. `\|` is no border.
fn cells(line: &str) -> Option<Vec<Cell>> {
    let start = line.len() - line.trim_start().len();
    let row = line.trim().strip_prefix('|')?;
    let mut column = line[..start].chars().count() + 2;
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

impl LogRow {
    fn of(line: usize, cells: &[Cell]) -> Result<Self, LogError> {
        let malformed = |column, why| LogError::Row { line, column, why };
        let [date, subject, kind, decision, reason] = cells else {
            let column = cells.get(COLUMNS.len()).or_else(|| cells.last()).map_or(1, |cell| cell.column);
            return Err(malformed(column, "expected five cells: date, subject, kind, decision, reason"));
        };
        Ok(Self {
            line,
            date: date.text.parse().map_err(|_| malformed(date.column, "expected a date such as 2026-11-20"))?,
            subject: if subject.text.is_empty() {
                return Err(malformed(subject.column, "expected what the row is about"));
            } else {
                plain(&subject.text)
            },
            kind: LogKind::ALL
                .into_iter()
                .find(|known| known.as_str() == kind.text)
                .ok_or_else(|| malformed(kind.column, "expected decision, incident, correction or change"))?,
            decision: decision.text.clone(),
            reason: reason.text.clone(),
        })
    }

    /// The words of the subject, names among them.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        let words = self.subject.split(|c: char| c.is_whitespace() || [',', ';'].contains(&c));
        words.map(|word| word.trim_matches('`')).filter(|word| !word.is_empty())
    }
}

/// The text of a cell that is one code span, without the escapes of [`Foreign`](crate::text::Foreign); another as it is.
fn plain(cell: &str) -> String {
    let Some(span) = cell.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')).filter(|span| !span.contains('`'))
    else {
        return cell.to_owned();
    };
    let (mut text, mut rest) = (String::new(), span);
    while let Some((before, escape)) = rest.split_once('\\') {
        text.push_str(before);
        let code = escape.strip_prefix("u{").and_then(|code| code.split_once('}'));
        let character = code.and_then(|(hex, _)| char::from_u32(u32::from_str_radix(hex, 16).ok()?));
        match (code, character) {
            (Some((_, after)), Some(character)) => {
                text.push(character);
                rest = after;
            }
            _ => {
                text.push('\\');
                rest = escape.strip_prefix('\\').unwrap_or(escape);
            }
        }
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Draft;

    const HEAD: &str = "# Log\n\n| Date | subject | kind | decision | reason |\n|---|---|---|---|---|\n";

    fn error(rows: &str) -> String {
        GovernanceLog::parse(&format!("{HEAD}{rows}")).expect_err("it is malformed").to_string()
    }

    #[test]
    fn a_log_is_its_tables_rows() {
        let text = format!(
            "{HEAD}| 2026-11-20 | `a.eth`, b.eth | incident | stop \\| wait | `x` |\n\ntext | with | bars\n\n\
             | other | table |\n|---|---|\n| 1 | 2 |\n\n```\n| date | subject | kind | decision | reason |\n|-|-|-|-|-|\n| bad |\n```\n"
        );
        let log = GovernanceLog::parse(&text).expect("a log");
        let [row] = &log.rows[..] else { panic!("{log:?}") };
        assert_eq!((row.line, row.kind, &*row.decision, &*row.reason), (5, LogKind::Incident, "stop | wait", "`x`"));
        assert_eq!(row.words().collect::<Vec<_>>(), ["a.eth", "b.eth"]);
        assert_eq!(log.about("b.eth").count(), 1);
        assert_eq!(log.about("b.et").count(), 0);
    }

    #[test]
    fn a_draft_is_read_back_as_it_was_made() {
        for subject in ["a.eth", "=x|`a`\u{202e}\\n\u{7c}.eth", "\\u{41}\\"] {
            let text = "`a` | \\| <b>";
            let draft = Draft {
                date: "2026-11-20".to_owned(),
                subject: subject.to_owned(),
                kind: LogKind::Incident,
                decision: "draft: set `x`".to_owned(),
                reason: text.replace('\\', "/"),
            };
            let log = GovernanceLog::parse(&(Draft::head() + &draft.markdown() + "\n")).expect("a log");
            let [row] = &log.rows[..] else { panic!("{log:?}") };
            let LogRow { line: _, date, subject, kind, decision, reason } = row.clone();
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
        for (rows, expected) in [
            ("| 2026-13-01 | a.eth | incident | b | c |", "line 5, column 3: expected a date such as 2026-11-20"),
            ("| 2026-11-20 |  | incident | b | c |", "line 5, column 17: expected what the row is about"),
            ("| 2026-11-20 | a.eth | Incident | b | c |", "line 5, column 24: expected decision, incident, correction"),
            ("| 2026-11-20 | a.eth | incident | b |", "line 5, column 35: expected five cells"),
            ("| 2026-11-20 | a.eth | incident | b | c | d |", "line 5, column 43: expected five cells"),
        ] {
            let error = error(rows);
            assert!(error.starts_with(expected), "{rows}: {error}");
        }
        assert_eq!(GovernanceLog::parse("# Log\n"), Err(LogError::NoTable));
    }
}
