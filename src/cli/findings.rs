//! Formats findings for people: one line each, or in the style of compilers, with a caret.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Element, Level, Origin, Renderer, Snippet};
use clresolve_cards::lint::DocumentFinding;
use clresolve_core::reason::ReasonEffect;
use clresolve_core::text::{UntrustedText, is_unsafe_character};

use super::render::Palette;

/// A finding on one line, in the style of compilers. `name` is that of the text.
pub(super) fn format_finding_line(finding: &DocumentFinding, name: &str, palette: &Palette) -> String {
    let style = palette.effect_style(finding.effect);
    let (place, effect) = (finding_location(finding, name), reason_effect_word(finding.effect));
    format!("{place}: {style}{effect}{style:#} {}: {}\n", finding.code, UntrustedText::new(&finding.message))
}

/// Each finding with its line of the text.
pub(super) fn format_findings(
    findings: &[DocumentFinding],
    name: &str,
    source: &str,
    palette: &Palette,
    width: Option<usize>,
) -> String {
    let renderer = if palette.is_plain() { Renderer::plain() } else { Renderer::styled() };
    let renderer = width.into_iter().fold(renderer, Renderer::term_width);
    findings.iter().map(|finding| format_finding(finding, name, source, &renderer) + "\n\n").collect()
}

/// A finding in the style of compilers: title, location, line with a caret, expected and observed value.
fn format_finding(finding: &DocumentFinding, name: &str, source: &str, renderer: &Renderer) -> String {
    let level = if finding.effect == ReasonEffect::Fail { Level::ERROR } else { Level::WARNING };
    let requirement =
        finding.requirement.as_deref().map_or_else(String::new, |r| format!(" ({})", UntrustedText::new(r)));
    let title =
        level.primary_title(format!("{}{requirement}", UntrustedText::new(&finding.message))).id(finding.code.slug());
    let path = UntrustedText::new(name).to_string();
    let mut elements: Vec<Element<'_>> = vec![match finding_excerpt(finding, source) {
        Some((number, text, marked)) => Snippet::source(text)
            .line_start(number)
            .path(path)
            .annotation(
                AnnotationKind::Primary
                    .span(marked)
                    .label(finding.pointer.as_deref().map(|pointer| UntrustedText::new(pointer).to_string())),
            )
            .into(),
        None => finding_origin(finding, path).into(),
    }];
    for (label, value) in [("expected", &finding.expected), ("observed", &finding.observed)] {
        if let Some(value) = value {
            elements.push(Level::NOTE.message(format!("{label} {}", UntrustedText::new(value))).into());
        }
    }
    renderer.render(&[title.elements(elements)])
}

fn finding_origin(finding: &DocumentFinding, path: String) -> Origin<'static> {
    let origin = Origin::path(path);
    match (finding.line, finding.column) {
        (Some(line), Some(column)) => origin.line(line).char_column(column),
        _ => origin,
    }
}

/// The line that a finding is about: its number, its escaped text, and the marked part of it.
fn finding_excerpt(finding: &DocumentFinding, source: &str) -> Option<(usize, String, Range<usize>)> {
    let (number, span) = (finding.line?, finding.span.as_ref()?);
    let before = source.get(..span.start)?.rsplit('\n').next()?;
    let rest = source.get(span.start..)?.lines().next().unwrap_or_default();
    let meant = rest.get(..span.len().min(rest.len())).unwrap_or(rest);
    let (head, middle, tail) = (
        replace_invisible_characters(before),
        replace_invisible_characters(meant),
        replace_invisible_characters(&rest[meant.len()..]),
    );
    let end = head.len() + middle.len();
    let marked = head.len()..end;
    Some((number, head + &middle + &tail, marked))
}

/// The text with terminal control characters and invisible characters replaced.
fn replace_invisible_characters(text: &str) -> String {
    let replaced = |c| match c {
        '\t' => ' ',
        c if is_unsafe_character(c) => '\u{fffd}',
        c => c,
    };
    text.chars().map(replaced).collect()
}

fn finding_location(finding: &DocumentFinding, name: &str) -> String {
    let name = UntrustedText::new(name);
    match (finding.line, finding.column) {
        (Some(line), Some(column)) => format!("{name}:{line}:{column}"),
        _ => name.to_string(),
    }
}

const fn reason_effect_word(effect: ReasonEffect) -> &'static str {
    match effect {
        ReasonEffect::Fail => "fail",
        ReasonEffect::Unknown => "unknown",
        ReasonEffect::Warn => "warn",
    }
}
