//! Markup used in several parts of the page.

use std::collections::BTreeSet;
use std::io::{self, Write};

use maud::{Markup, Render, html};

use crate::drift::Agreement;
use crate::owners::Owner;
use crate::page::Piece;
use crate::row::Row;
use crate::words::{do_together, effect};
use clresolve_core::reason::Fixer;
use clresolve_core::text::{Foreign, capitalized};

/// The placeholder in a frame that [`write_around`] replaces with the content. Foreign text never contains it, because
/// [`Foreign`] escapes control characters.
pub(super) const SLOT: char = '\0';

/// Writes `frame`, replacing its [`SLOT`] with the output of `content`. Long content is streamed, never buffered.
pub(super) fn write_around(
    frame: Markup,
    out: &mut dyn Write,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let frame = frame.into_string();
    let (start, end) = frame.split_once(SLOT).unwrap_or((&frame, ""));
    writeln!(out, "{start}")?;
    content(out)?;
    writeln!(out, "{end}")
}

/// Writes `part` and a line break.
pub(super) fn write_part(part: Markup, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", part.into_string())
}

pub(super) const fn actor_word(actor: Fixer) -> &'static str {
    match actor {
        Fixer::Publisher => "Publishers",
        Fixer::Operator => "Operator",
        Fixer::Asker => "Registry maintainer",
        Fixer::Nobody => "Nobody",
    }
}

pub(super) fn section(id: &str, heading: &str, content: &Markup) -> Markup {
    html! { section id=(id) { h2 { (heading) } (content) } }
}

/// A column of a table: the CSS class of its cells, which may be empty, and its head.
pub(super) type Column = (&'static str, &'static str);

/// A table, or nothing if it has no rows.
pub(super) fn table(id: &str, class: &str, columns: &[Column], rows: &[Markup]) -> Markup {
    html! {
        @if !rows.is_empty() {
            div.scroll {
                table id=(id) class=(class) {
                    thead { tr { @for (_, head) in columns { th scope="col" { (head) } } } }
                    tbody { @for row in rows { (row) } }
                }
            }
        }
    }
}

pub(super) fn row(columns: &[Column], contents: &[Markup]) -> Markup {
    html! { tr { (cells(columns, contents)) } }
}

pub(super) fn cells(columns: &[Column], contents: &[Markup]) -> Markup {
    html! {
        @for ((class, head), content) in columns.iter().zip(contents) {
            td class=[Some(class).filter(|class| !class.is_empty())] data-label=(head) { (content) }
        }
    }
}

/// The actor's role in an audit, as a sentence.
pub(super) fn role_sentence(actor: Fixer) -> String {
    match actor {
        Fixer::Nobody => "Only time is needed.".to_owned(),
        _ => capitalized(do_together(actor)) + ".",
    }
}

/// States how many items were omitted.
pub(super) fn omitted(over: u64, what: &str) -> Markup {
    html! { @if over > 0 { p.soft { (over) " more " (what) " are omitted. The JSON form has all." } } }
}

/// The name of a row, linked to its row of the table if the table contains it.
pub(super) fn name_link(row: &Row, shown: &BTreeSet<u64>) -> Markup {
    link_to(row.line, row.name(), &row.anchor(), shown)
}

/// Like [`name_link`], for a name whose row is not available.
pub(super) fn link_to(line: u64, name: &str, anchor: &str, shown: &BTreeSet<u64>) -> Markup {
    html! { @if shown.contains(&line) { a href={ "#" (anchor) } { (code(name)) } } @else { (code(name)) } }
}

/// Small print. Empty words yield nothing.
pub(super) fn soft(words: &str) -> Markup {
    html! { @if !words.is_empty() { " " small.soft { (words) } } }
}

pub(super) fn line(pieces: &[Piece<'_>]) -> Markup {
    html! {
        @for piece in pieces {
            @match piece {
                Piece::Plain(text) => (text),
                Piece::Foreign(text) => (code(text)),
                Piece::Code(code, of) => a class=(effect(*of)) href={ "#code-" (code) } { code { (code) } },
            }
        }
    }
}

/// Text without elements, for a title.
pub(super) fn text(pieces: &[Piece<'_>]) -> String {
    let piece = |piece: &Piece<'_>| match piece {
        Piece::Plain(text) => text.to_string(),
        Piece::Foreign(text) => Foreign::new(text).to_string(),
        Piece::Code(code, _) => code.to_string(),
    };
    pieces.iter().map(piece).collect()
}

pub(super) fn joined(items: impl IntoIterator<Item = Markup>, separator: impl Render) -> Markup {
    html! {
        @for (number, item) in items.into_iter().enumerate() {
            @if number > 0 { (separator) }
            (item)
        }
    }
}

/// States that a list of examples has `more` items.
pub(super) fn and_more(more: u64) -> Option<Markup> {
    (more > 0).then(|| html! { "and " (more) " more" })
}

pub(super) fn owner(owner: &Owner) -> Markup {
    match owner {
        Owner::Account(account) => code(account),
        Owner::Nobody | Owner::Unread => owner.in_words().render(),
    }
}

pub(super) fn mark(agreement: Agreement) -> Markup {
    let word = agreement.as_str();
    html! { span class=(word) role="img" aria-label=(word) title=(word) { (agreement.mark()) } }
}

/// Foreign text as code.
pub(super) fn code(text: &str) -> Markup {
    html! { code { (Foreign::new(text)) } }
}

/// Foreign text as code, or a dash.
pub(super) fn code_or_dash(text: Option<&str>) -> Markup {
    text.map_or_else(|| "–".render(), code)
}
