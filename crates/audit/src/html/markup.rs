//! Markup used in several parts of the page.

use std::collections::BTreeSet;
use std::io::{self, Write};

use maud::{Markup, Render, html};

use crate::drift::SourceAgreement;
use crate::owners::OnChainOwner;
use crate::page::TextRun;
use crate::row::AuditRow;
use crate::words::{effect_word, plural_duty_phrase};
use clresolve_core::reason::FixerRole;
use clresolve_core::text::{UntrustedText, capitalize_first};

/// The placeholder in a frame that [`write_framed_content`] replaces with the content. Foreign text never contains it,
/// because [`UntrustedText`] escapes control characters.
pub(super) const SLOT: char = '\0';

/// Writes `frame`, replacing its [`SLOT`] with the output of `content`. Long content is streamed, never buffered.
pub(super) fn write_framed_content(
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
pub(super) fn write_markup_line(part: Markup, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", part.into_string())
}

pub(super) const fn actor_word(actor: FixerRole) -> &'static str {
    match actor {
        FixerRole::Publisher => "Publishers",
        FixerRole::Operator => "Operator",
        FixerRole::Asker => "Registry maintainer",
        FixerRole::Nobody => "Nobody",
    }
}

pub(super) fn section_markup(id: &str, heading: &str, content: &Markup) -> Markup {
    html! { section id=(id) { h2 { (heading) } (content) } }
}

/// A column of a table: the CSS class of its cells, which may be empty, and its head.
pub(super) type HtmlColumn = (&'static str, &'static str);

/// A table, or nothing if it has no rows.
pub(super) fn table_markup(id: &str, class: &str, columns: &[HtmlColumn], rows: &[Markup]) -> Markup {
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

pub(super) fn row_markup(columns: &[HtmlColumn], contents: &[Markup]) -> Markup {
    html! { tr { (cells_markup(columns, contents)) } }
}

pub(super) fn cells_markup(columns: &[HtmlColumn], contents: &[Markup]) -> Markup {
    html! {
        @for ((class, head), content) in columns.iter().zip(contents) {
            td class=[Some(class).filter(|class| !class.is_empty())] data-label=(head) { (content) }
        }
    }
}

/// The actor's role in an audit, as a sentence.
pub(super) fn role_sentence(actor: FixerRole) -> String {
    match actor {
        FixerRole::Nobody => "Only time is needed.".to_owned(),
        _ => capitalize_first(plural_duty_phrase(actor)) + ".",
    }
}

/// States how many items were omitted.
pub(super) fn omitted_note(over: u64, what: &str) -> Markup {
    html! { @if over > 0 { p.soft { (over) " more " (what) " are omitted. The JSON form has all." } } }
}

/// The name of a row, linked to its row of the table if the table contains it.
pub(super) fn name_link(row: &AuditRow, shown: &BTreeSet<u64>) -> Markup {
    link_to(row.line, row.name(), &row.anchor(), shown)
}

/// Like [`name_link`], for a name whose row is not available.
pub(super) fn link_to(line: u64, name: &str, anchor: &str, shown: &BTreeSet<u64>) -> Markup {
    html! { @if shown.contains(&line) { a href={ "#" (anchor) } { (code_markup(name)) } } @else { (code_markup(name)) } }
}

/// Small print. Empty words yield nothing.
pub(super) fn small_print(words: &str) -> Markup {
    html! { @if !words.is_empty() { " " small.soft { (words) } } }
}

pub(super) fn line_markup(pieces: &[TextRun<'_>]) -> Markup {
    html! {
        @for piece in pieces {
            @match piece {
                TextRun::Plain(text) => (text),
                TextRun::Foreign(text) => (code_markup(text)),
                TextRun::Code(code, of) => a class=(effect_word(*of)) href={ "#code-" (code) } { code { (code) } },
            }
        }
    }
}

/// Text without elements, for a title.
pub(super) fn text_runs_plain_text(pieces: &[TextRun<'_>]) -> String {
    let piece = |piece: &TextRun<'_>| match piece {
        TextRun::Plain(text) => text.to_string(),
        TextRun::Foreign(text) => UntrustedText::new(text).to_string(),
        TextRun::Code(code, _) => code.to_string(),
    };
    pieces.iter().map(piece).collect()
}

pub(super) fn join_markup(items: impl IntoIterator<Item = Markup>, separator: impl Render) -> Markup {
    html! {
        @for (number, item) in items.into_iter().enumerate() {
            @if number > 0 { (separator) }
            (item)
        }
    }
}

/// States that a list of examples has `more` items.
pub(super) fn more_items_note(more: u64) -> Option<Markup> {
    (more > 0).then(|| html! { "and " (more) " more" })
}

pub(super) fn owner_markup(owner: &OnChainOwner) -> Markup {
    match owner {
        OnChainOwner::Account(account) => code_markup(account),
        OnChainOwner::Nobody | OnChainOwner::Unread => owner.in_words().render(),
    }
}

pub(super) fn agreement_symbol(agreement: SourceAgreement) -> Markup {
    let word = agreement.as_str();
    html! { span class=(word) role="img" aria-label=(word) title=(word) { (agreement.symbol()) } }
}

/// Foreign text as code.
pub(super) fn code_markup(text: &str) -> Markup {
    html! { code { (UntrustedText::new(text)) } }
}

/// Foreign text as code, or a dash.
pub(super) fn code_or_dash(text: Option<&str>) -> Markup {
    text.map_or_else(|| "–".render(), code_markup)
}
