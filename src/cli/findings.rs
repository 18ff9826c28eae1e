//! Formats findings for people: one line each, or in the style of compilers, with a caret.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Element, Level, Origin, Renderer, Snippet};
use clresolve_cards::lint::Finding;
use clresolve_core::reason::Effect;
use clresolve_core::text::{Foreign, is_unsafe};

use super::render::Palette;

/// A finding on one line, in the style of compilers. `name` is that of the text.
pub(super) fn line(finding: &Finding, name: &str, palette: &Palette) -> String {
    let style = palette.effect(finding.effect);
    let (place, effect) = (place(finding, name), word(finding.effect));
    format!("{place}: {style}{effect}{style:#} {}: {}\n", finding.code, Foreign::new(&finding.message))
}

/// Each finding with its line of the text.
pub(super) fn drawn(findings: &[Finding], name: &str, source: &str, palette: &Palette, width: Option<usize>) -> String {
    let renderer = if palette.is_plain() { Renderer::plain() } else { Renderer::styled() };
    let renderer = width.into_iter().fold(renderer, Renderer::term_width);
    findings.iter().map(|finding| one(finding, name, source, &renderer) + "\n\n").collect()
}

/// A finding in the style of compilers: title, location, line with a caret, expected and observed value.
fn one(finding: &Finding, name: &str, source: &str, renderer: &Renderer) -> String {
    let level = if finding.effect == Effect::Fail { Level::ERROR } else { Level::WARNING };
    let requirement = finding.requirement.as_deref().map_or_else(String::new, |r| format!(" ({})", Foreign::new(r)));
    let title = level.primary_title(format!("{}{requirement}", Foreign::new(&finding.message))).id(finding.code.slug());
    let path = Foreign::new(name).to_string();
    let mut elements: Vec<Element<'_>> = vec![match excerpt(finding, source) {
        Some(line) => Snippet::source(line.text)
            .line_start(line.number)
            .path(path)
            .annotation(
                AnnotationKind::Primary
                    .span(line.meant)
                    .label(finding.pointer.as_deref().map(|pointer| Foreign::new(pointer).to_string())),
            )
            .into(),
        None => origin(finding, path).into(),
    }];
    for (label, value) in [("expected", &finding.expected), ("observed", &finding.observed)] {
        if let Some(value) = value {
            elements.push(Level::NOTE.message(format!("{label} {}", Foreign::new(value))).into());
        }
    }
    renderer.render(&[title.elements(elements)])
}

fn origin(finding: &Finding, path: String) -> Origin<'static> {
    let origin = Origin::path(path);
    match (finding.line, finding.column) {
        (Some(line), Some(column)) => origin.line(line).char_column(column),
        _ => origin,
    }
}

/// An escaped line of the text, and the marked part of it.
struct Excerpt {
    number: usize,
    text: String,
    meant: Range<usize>,
}

/// The line that a finding is about.
fn excerpt(finding: &Finding, source: &str) -> Option<Excerpt> {
    let (number, span) = (finding.line?, finding.span.as_ref()?);
    let before = source.get(..span.start)?.rsplit('\n').next()?;
    let rest = source.get(span.start..)?.lines().next().unwrap_or_default();
    let meant = rest.get(..span.len().min(rest.len())).unwrap_or(rest);
    let (head, middle, tail) = (harmless(before), harmless(meant), harmless(&rest[meant.len()..]));
    let end = head.len() + middle.len();
    Some(Excerpt { number, meant: head.len()..end, text: head + &middle + &tail })
}

/// The text with terminal control characters and invisible characters replaced.
fn harmless(text: &str) -> String {
    let replaced = |c| match c {
        '\t' => ' ',
        c if is_unsafe(c) => '\u{fffd}',
        c => c,
    };
    text.chars().map(replaced).collect()
}

fn place(finding: &Finding, name: &str) -> String {
    let name = Foreign::new(name);
    match (finding.line, finding.column) {
        (Some(line), Some(column)) => format!("{name}:{line}:{column}"),
        _ => name.to_string(),
    }
}

const fn word(effect: Effect) -> &'static str {
    match effect {
        Effect::Fail => "fail",
        Effect::Unknown => "unknown",
        Effect::Warn => "warn",
    }
}
