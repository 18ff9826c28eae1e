//! Scripts (CL-34): what a browser or a shell would run.

use std::borrow::Cow;

use super::{Marks, begins_with, ends_with};

/// Media types that a browser runs, or renders with the scripts in them, when they stand in a `data:` URL.
const RUNNABLE: [&str; 10] = [
    "text/html",
    "text/javascript",
    "text/ecmascript",
    "text/vbscript",
    "application/javascript",
    "application/x-javascript",
    "application/ecmascript",
    "application/xhtml+xml",
    "image/svg+xml",
    "text/xml",
];

/// The kind of the first script in `text`.
pub(super) fn find(text: &str, marks: Marks) -> Option<String> {
    let element = || marks.any(Marks::ANGLE) && has_element(text);
    let url = || marks.any(Marks::COLON) && (has_script_url(text) || has_data_url(text));
    let kind = match () {
        () if element() => "a script element",
        () if url() => "a script URL",
        () if marks.any(Marks::HASH_BANG) && is_shebang(text) => "a shebang line",
        () => return None,
    };
    Some(kind.to_owned())
}

fn has_element(text: &str) -> bool {
    text.match_indices('<').any(|(at, _)| {
        let rest = &text[at + 1..];
        let after = rest.as_bytes().get("script".len());
        begins_with(rest, "script") && after.is_none_or(|b| b.is_ascii_whitespace() || *b == b'>' || *b == b'/')
    })
}

/// `javascript:` or `vbscript:` where a URL may begin and code follows. A browser drops tabs, line ends and leading
/// control characters from a URL, so they are dropped here; "JavaScript: a language" is prose.
fn has_script_url(text: &str) -> bool {
    let dropped = ['\t', '\n', '\r'];
    let text = if text.contains(dropped) { Cow::Owned(text.replace(dropped, "")) } else { Cow::Borrowed(text) };
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c.is_control());
    text.match_indices(':').any(|(at, _)| {
        let mut schemes = ["javascript", "vbscript"].iter().filter(|scheme| ends_with(&text[..at], scheme));
        schemes.any(|scheme| {
            let before = text[..at - scheme.len()].chars().next_back();
            before.is_none_or(|c| "\"'`(=<>".contains(c)) && is_code(&text[at + 1..])
        })
    })
}

fn is_code(text: &str) -> bool {
    match text.chars().next() {
        None => false,
        Some(first) if first.is_whitespace() => text.contains('('),
        Some(_) => true,
    }
}

fn has_data_url(text: &str) -> bool {
    let runs = |rest: &str, kind: &str| begins_with(rest, kind) && rest[kind.len()..].starts_with([',', ';']);
    text.match_indices(':')
        .any(|(at, _)| ends_with(&text[..at], "data") && RUNNABLE.iter().any(|kind| runs(&text[at + 1..], kind)))
}

fn is_shebang(text: &str) -> bool {
    text.trim_start().strip_prefix("#!").is_some_and(|rest| rest.trim_start().starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Option<String> {
        find(text, Marks::of(text))
    }

    #[test]
    fn scripts_are_found() {
        for script in [
            "<script>alert(1)</script>",
            "x <SCRIPT src=//evil.example>",
            "<script/x>",
            "<script",
            "javascript:alert(1)",
            " JavaScript: alert(1)",
            "java\nscript:alert(1)",
            "<a href=\"javascript:x\">",
            "vbscript:msgbox",
            "data:text/html,<b>",
            "see data:text/html;base64,PHNjcmlwdD4=",
            "DATA:application/javascript;base64,eA==",
            "data:image/svg+xml;utf8,<svg>",
            "#!/bin/sh\nrm -rf /",
            "#! /usr/bin/env python",
        ] {
            assert!(text(script).is_some(), "{script}");
        }
    }

    #[test]
    fn honest_texts_pass() {
        for honest in [
            "summarizes scripts and <descriptions>",
            "Languages: JavaScript: ES2020, TypeScript",
            "JavaScript: the good parts",
            "javascript:",
            "data:image/png;base64,iVBORw0KGgo=",
            "input data: text/html, text/plain",
            "application/javascript",
            "#!important",
            "# heading!",
        ] {
            assert_eq!(text(honest), None, "{honest}");
        }
    }
}
