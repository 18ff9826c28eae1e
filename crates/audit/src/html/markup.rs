//! Markup that several parts of the page have.

use std::collections::BTreeSet;
use std::io::{self, Write};

use crate::drift::Agreement;
use crate::owners::Owner;
use crate::page::Piece;
use crate::row::Row;
use crate::words::{do_together, effect};
use clresolve_core::reason::Fixer;
use clresolve_core::text::{Foreign, Html, capitalized};

/// The word for who has to act, as a title.
pub(super) const fn actor_word(actor: Fixer) -> &'static str {
    match actor {
        Fixer::Publisher => "Publishers",
        Fixer::Operator => "Operator",
        Fixer::Asker => "List keeper",
        Fixer::Nobody => "Nobody",
    }
}

/// Begins a table.
pub(super) fn table(id: &str, class: &str, heads: &[&str]) -> String {
    let heads: String = heads.iter().map(|head| format!("<th scope=\"col\">{head}</th>")).collect();
    format!("<div class=\"scroll\"><table id=\"{id}\" class=\"{class}\"><thead><tr>{heads}</tr></thead><tbody>")
}

/// What an actor does in an audit, as a sentence.
pub(super) fn role_sentence(actor: Fixer) -> String {
    match actor {
        Fixer::Nobody => "What is awaited passes with time.".to_owned(),
        _ => capitalized(do_together(actor)) + ".",
    }
}

/// Says how many items were left out.
pub(super) fn left_out(over: u64, what: &str, out: &mut dyn Write) -> io::Result<()> {
    if over == 0 {
        return Ok(());
    }
    writeln!(out, "<p class=\"soft\">{over} more {what} are left out. The JSON form has all.</p>")
}

/// The name of a row, which leads to its row of the table if that has it.
pub(super) fn name_link(row: &Row, shown: &BTreeSet<u64>) -> String {
    link_to(row.line, row.name(), &row.anchor(), shown)
}

/// The same of a name whose row is not at hand.
pub(super) fn link_to(line: u64, name: &str, anchor: &str, shown: &BTreeSet<u64>) -> String {
    if shown.contains(&line) { format!("<a href=\"#{anchor}\">{}</a>", code(name)) } else { code(name) }
}

/// Our own words in small print. Empty words give an empty string.
pub(super) fn soft(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(" <small class=\"soft\">{words}</small>") }
}

pub(super) fn line(pieces: &[Piece<'_>]) -> String {
    pieces.iter().map(piece).collect()
}

/// The same without markup, for a title.
pub(super) fn text(pieces: &[Piece<'_>]) -> String {
    let piece = |piece: &Piece<'_>| match piece {
        Piece::Plain(text) => markup(text),
        Piece::Foreign(text) => html(text).to_string(),
        Piece::Code(code, _) => code.to_string(),
    };
    pieces.iter().map(piece).collect()
}

/// Who owns a name.
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
