//! Markup used in several parts of the page.

use std::collections::BTreeSet;
use std::io::{self, Write};

use crate::drift::Agreement;
use crate::owners::Owner;
use crate::page::Piece;
use crate::row::Row;
use crate::words::{do_together, effect};
use clresolve_core::reason::Fixer;
use clresolve_core::text::{Foreign, Html, capitalized};

pub(super) const fn actor_word(actor: Fixer) -> &'static str {
    match actor {
        Fixer::Publisher => "Publishers",
        Fixer::Operator => "Operator",
        Fixer::Asker => "Registry maintainer",
        Fixer::Nobody => "Nobody",
    }
}

pub(super) fn table(id: &str, class: &str, heads: &[&str]) -> String {
    let heads: String = heads.iter().map(|head| format!("<th scope=\"col\">{head}</th>")).collect();
    format!("<div class=\"scroll\"><table id=\"{id}\" class=\"{class}\"><thead><tr>{heads}</tr></thead><tbody>")
}

/// The actor's role in an audit, as a sentence.
pub(super) fn role_sentence(actor: Fixer) -> String {
    match actor {
        Fixer::Nobody => "Only time is needed.".to_owned(),
        _ => capitalized(do_together(actor)) + ".",
    }
}

/// States how many items were omitted.
pub(super) fn write_omitted(over: u64, what: &str, out: &mut dyn Write) -> io::Result<()> {
    if over == 0 {
        return Ok(());
    }
    writeln!(out, "<p class=\"soft\">{over} more {what} are omitted. The JSON form has all.</p>")
}

/// The name of a row, linked to its row of the table if the table contains it.
pub(super) fn name_link(row: &Row, shown: &BTreeSet<u64>) -> String {
    link_to(row.line, row.name(), &row.anchor(), shown)
}

/// Like [`name_link`], for a name whose row is not available.
pub(super) fn link_to(line: u64, name: &str, anchor: &str, shown: &BTreeSet<u64>) -> String {
    if shown.contains(&line) { format!("<a href=\"#{anchor}\">{}</a>", code(name)) } else { code(name) }
}

/// Small print in the report's own words. Empty words yield an empty string.
pub(super) fn soft(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(" <small class=\"soft\">{words}</small>") }
}

pub(super) fn line(pieces: &[Piece<'_>]) -> String {
    pieces.iter().map(piece).collect()
}

/// Plain text without markup, for a title.
pub(super) fn text(pieces: &[Piece<'_>]) -> String {
    let piece = |piece: &Piece<'_>| match piece {
        Piece::Plain(text) => markup(text),
        Piece::Foreign(text) => html(text).to_string(),
        Piece::Code(code, _) => code.to_string(),
    };
    pieces.iter().map(piece).collect()
}

pub(super) fn owner(owner: &Owner) -> String {
    match owner {
        Owner::Account(account) => code(account),
        Owner::Nobody | Owner::Unread => owner.in_words().to_owned(),
    }
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

/// Escapes the report's own text, in which foreign text is already escaped, for HTML.
pub(super) fn markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

pub(super) fn html(text: &str) -> Html<'_> {
    Foreign::new(text).html()
}

/// Foreign text as code.
pub(super) fn code(text: &str) -> String {
    format!("<code>{}</code>", html(text))
}
