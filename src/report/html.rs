//! The report as one HTML page: no script, no outside resource, printable, and readable on a phone.

use std::io::{self, Write};

use super::page::{self, Canvas, Column, Kind, Piece, Tone};
use super::{Report, Rows, effect};
use crate::text::{Foreign, Html};
use crate::verdict::State;

const STYLE: &str = include_str!("page.css");

/// Forbids every resource that the page does not hold itself, should a defect of ours ever let markup through.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

pub(super) fn write(report: &Report, rows: &dyn Rows, out: &mut dyn Write) -> io::Result<()> {
    page::write(report, rows, &mut Page(out))
}

struct Page<'a>(&'a mut dyn Write);

impl Canvas for Page<'_> {
    fn begin(&mut self, title: &[Piece<'_>]) -> io::Result<()> {
        let title: String = title.iter().map(bare).collect();
        writeln!(
            self.0,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>Audit: {title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>Audit</h1>"
        )
    }

    fn heading(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.0, "<h2>{text}</h2>")
    }

    fn paragraph(&mut self, tone: Tone, pieces: &[Piece<'_>]) -> io::Result<()> {
        let start = match tone {
            Tone::Normal => "<p>",
            Tone::Soft => "<p class=\"soft\">",
            Tone::Warning => "<p class=\"warning\"><strong>Incomplete.</strong> ",
        };
        writeln!(self.0, "{start}{}</p>", line(pieces))
    }

    fn counts(&mut self, counts: &[(&str, u64)]) -> io::Result<()> {
        writeln!(self.0, "<ul class=\"tiles\">")?;
        counts
            .iter()
            .try_for_each(|(what, names)| writeln!(self.0, "<li class=\"{what}\"><b>{names}</b>{what}</li>"))?;
        writeln!(self.0, "</ul>")
    }

    fn facts(&mut self, facts: &[(&str, String)]) -> io::Result<()> {
        writeln!(self.0, "<dl>")?;
        let fact = |(what, value): &(&str, String)| format!("<dt>{what}</dt><dd class=\"mono\">{}</dd>", html(value));
        facts.iter().try_for_each(|of| writeln!(self.0, "{}", fact(of)))?;
        writeln!(self.0, "</dl>")
    }

    fn table(&mut self, columns: &[Column]) -> io::Result<()> {
        write!(self.0, "<table>\n<thead><tr>")?;
        let head = |column: &Column| format!("<th class=\"{}\">{}</th>", class(column.kind), column.title);
        columns.iter().try_for_each(|column| write!(self.0, "{}", head(column)))?;
        writeln!(self.0, "</tr></thead>\n<tbody>")
    }

    fn row(&mut self, columns: &[Column], cells: &[Vec<Piece<'_>>]) -> io::Result<()> {
        write!(self.0, "<tr>")?;
        for (column, cell) in columns.iter().zip(cells) {
            let class = class(column.kind);
            write!(self.0, "<td class=\"{class}\" data-label=\"{}\">{}</td>", column.title, line(cell))?;
        }
        writeln!(self.0, "</tr>")
    }

    fn end_table(&mut self) -> io::Result<()> {
        writeln!(self.0, "</tbody>\n</table>")
    }

    fn article(&mut self, state: State, title: &[Piece<'_>]) -> io::Result<()> {
        writeln!(self.0, "<article class=\"{state}\">\n<h3>{}</h3>", line(title))
    }

    fn point(&mut self, head: &[Piece<'_>], lines: &[Vec<Piece<'_>>]) -> io::Result<()> {
        write!(self.0, "<div class=\"point\">{}", line(head))?;
        if !lines.is_empty() {
            write!(self.0, "<ul>")?;
            lines.iter().try_for_each(|below| write!(self.0, "<li>{}</li>", line(below)))?;
            write!(self.0, "</ul>")?;
        }
        writeln!(self.0, "</div>")
    }

    fn end_article(&mut self) -> io::Result<()> {
        writeln!(self.0, "</article>")
    }

    fn source(&mut self, head: &str) -> io::Result<()> {
        write!(self.0, "<pre>{head}")
    }

    fn source_line(&mut self, markdown: &str) -> io::Result<()> {
        writeln!(self.0, "{}", markup(markdown))
    }

    fn end_source(&mut self) -> io::Result<()> {
        writeln!(self.0, "</pre>")
    }

    fn end(&mut self) -> io::Result<()> {
        writeln!(self.0, "</main>\n</body>\n</html>")
    }
}

const fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::Subject => "subject",
        Kind::Word => "word",
        Kind::Number => "number",
        Kind::Mark => "mark",
        Kind::Text => "text",
    }
}

fn line(pieces: &[Piece<'_>]) -> String {
    pieces.iter().map(piece).collect()
}

fn piece(piece: &Piece<'_>) -> String {
    match piece {
        Piece::Plain(text) => markup(text),
        Piece::Foreign(text) => format!("<code>{}</code>", html(text)),
        Piece::Code(code, of) => format!("<code class=\"{}\">{code}</code>", effect(*of)),
        Piece::Effect(of) => format!("<span class=\"{0}\">{0}</span>", effect(*of)),
        Piece::State(state) => format!("<span class=\"{state}\">{state}</span>"),
        Piece::Mark(agreement) => {
            let word = agreement.as_str();
            format!("<span class=\"{word}\" title=\"{word}\">{}</span>", agreement.mark())
        }
    }
}

/// A piece where no markup may stand.
fn bare(piece: &Piece<'_>) -> String {
    match piece {
        Piece::Foreign(text) => html(text).to_string(),
        Piece::Plain(text) => markup(text),
        Piece::Code(code, _) => code.to_string(),
        Piece::Effect(of) => effect(*of).to_owned(),
        Piece::State(state) => state.to_string(),
        Piece::Mark(agreement) => agreement.as_str().to_owned(),
    }
}

/// Text of ours, in which foreign text is escaped already: what HTML itself reads is left to escape.
fn markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn html(text: &str) -> Html<'_> {
    Foreign::new(text).html()
}
