//! The report in Markdown (GFM). All foreign text stands in code spans.

use std::io::{self, Write};

use super::page::{self, Canvas, Column, Kind, Piece, Tone};
use super::{Report, Rows, effect};
use crate::text::Foreign;
use crate::verdict::State;

pub(super) fn write(report: &Report, rows: &dyn Rows, out: &mut dyn Write) -> io::Result<()> {
    page::write(report, rows, &mut Markdown { out, in_list: false })
}

struct Markdown<'a> {
    out: &'a mut dyn Write,
    /// Whether the last line is one of a list, which the next point goes on with.
    in_list: bool,
}

impl Canvas for Markdown<'_> {
    fn begin(&mut self, _title: &[Piece<'_>]) -> io::Result<()> {
        writeln!(self.out, "# Audit")
    }

    fn heading(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "\n## {text}")
    }

    fn paragraph(&mut self, tone: Tone, pieces: &[Piece<'_>]) -> io::Result<()> {
        self.in_list = false;
        let start = if tone == Tone::Warning { "**Incomplete.** " } else { "" };
        writeln!(self.out, "\n{start}{}", line(pieces))
    }

    fn counts(&mut self, counts: &[(&str, u64)]) -> io::Result<()> {
        writeln!(self.out, "\n| | count |\n|---|--:|")?;
        counts.iter().try_for_each(|(what, names)| writeln!(self.out, "| {what} | {names} |"))
    }

    fn facts(&mut self, facts: &[(&str, String)]) -> io::Result<()> {
        writeln!(self.out, "\n| | |\n|---|---|")?;
        facts.iter().try_for_each(|(what, value)| writeln!(self.out, "| {what} | {} |", Foreign::new(value).markdown()))
    }

    fn table(&mut self, columns: &[Column]) -> io::Result<()> {
        write!(self.out, "\n|")?;
        columns.iter().try_for_each(|column| write!(self.out, " {} |", column.title))?;
        write!(self.out, "\n|")?;
        for column in columns {
            let rule = match column.kind {
                Kind::Mark => ":-:|",
                Kind::Number => "--:|",
                Kind::Subject | Kind::Word | Kind::Text => "---|",
            };
            write!(self.out, "{rule}")?;
        }
        writeln!(self.out)
    }

    fn row(&mut self, _columns: &[Column], cells: &[Vec<Piece<'_>>]) -> io::Result<()> {
        write!(self.out, "|")?;
        cells.iter().try_for_each(|cell| write!(self.out, " {} |", line(cell)))?;
        writeln!(self.out)
    }

    fn end_table(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn article(&mut self, _state: State, title: &[Piece<'_>]) -> io::Result<()> {
        self.in_list = false;
        writeln!(self.out, "\n### {}", line(title))
    }

    fn point(&mut self, head: &[Piece<'_>], lines: &[Vec<Piece<'_>>]) -> io::Result<()> {
        let before = if std::mem::replace(&mut self.in_list, true) { "" } else { "\n" };
        writeln!(self.out, "{before}- {}", line(head))?;
        lines.iter().try_for_each(|below| writeln!(self.out, "  - {}", line(below)))
    }

    fn end_article(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn source(&mut self, head: &str) -> io::Result<()> {
        write!(self.out, "\n{head}")
    }

    fn source_line(&mut self, markdown: &str) -> io::Result<()> {
        writeln!(self.out, "{markdown}")
    }

    fn end_source(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn line(pieces: &[Piece<'_>]) -> String {
    pieces.iter().map(piece).collect()
}

fn piece(piece: &Piece<'_>) -> String {
    match piece {
        Piece::Plain(text) => text.to_string(),
        Piece::Foreign(text) => Foreign::new(text).markdown().to_string(),
        Piece::Code(code, _) => format!("**{code}**"),
        Piece::Effect(of) => effect(*of).to_owned(),
        Piece::State(state) => state.to_string(),
        Piece::Mark(agreement) => agreement.mark().to_string(),
    }
}
