//! Markup that several parts of the page have.

use std::io::{self, Write};

use crate::reason::Fixer;
use crate::report::drift::Agreement;
use crate::report::page::{Piece, Quota};
use crate::report::row::{MAX_NAME_BYTES, Row};
use crate::report::words::effect;
use crate::text::{Foreign, Html, is_unsafe};


/// The word for who has to act, as a title.
pub(super) const fn actor_word(actor: Fixer) -> &'static str {
    match actor {
        Fixer::Publisher => "Publisher",
        Fixer::Operator => "Operator",
        Fixer::Asker => "Asker",
    }
}

/// Begins a table.
pub(super) fn table(id: &str, class: &str, heads: &[&str]) -> String {
    let heads: String = heads.iter().map(|head| format!("<th scope=\"col\">{head}</th>")).collect();
    format!("<div class=\"scroll\"><table id=\"{id}\" class=\"{class}\"><thead><tr>{heads}</tr></thead><tbody>")
}

/// Says how many items were left out.
pub(super) fn left_out(quota: &Quota, what: &str, out: &mut dyn Write) -> io::Result<()> {
    if quota.over == 0 {
        return Ok(());
    }
    writeln!(out, "<p class=\"soft\">{} more {what} are left out. The JSON form has all.</p>", quota.over)
}

/// The anchor of a row: its name where that can be one, so that it is the same in every report; else its line, since
/// several lines that are no names may begin alike. There is nothing to escape in it.
pub(super) fn name_anchor(row: &Row) -> String {
    let is_letter = |c: char| !c.is_ascii() && !c.is_whitespace() && !is_unsafe(c);
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') || is_letter(c);
    match &row.normalized {
        Some(name) if name.len() <= MAX_NAME_BYTES && name.chars().all(fits) => format!("name-{name}"),
        _ => format!("line-{}", row.line),
    }
}

pub(super) fn line(pieces: &[Piece<'_>]) -> String {
    pieces.iter().map(piece).collect()
}

fn piece(piece: &Piece<'_>) -> String {
    match piece {
        Piece::Plain(text) => markup(text),
        Piece::Foreign(text) => code(text),
        Piece::Code(code, of) => format!("<a class=\"{0}\" href=\"#code-{code}\"><code>{code}</code></a>", effect(*of)),
    }
}

pub(super) fn mark(agreement: Agreement) -> String {
    let (word, mark) = (agreement.as_str(), agreement.mark());
    format!("<span class=\"{word}\" role=\"img\" aria-label=\"{word}\" title=\"{word}\">{mark}</span>")
}

/// Text of ours, in which foreign text is escaped already: what HTML itself reads is left to escape.
pub(super) fn markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

pub(super) fn html(text: &str) -> Html<'_> {
    Foreign::new(text).html()
}

/// Text of others as code.
pub(super) fn code(text: &str) -> String {
    format!("<code>{}</code>", html(text))
}
