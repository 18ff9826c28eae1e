//! Generates a text that matches a pattern: the first branch of each alternation, with the fewest repetitions.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

/// Maximum length of a generated text, in bytes; `a{1000}{1000}` would require a million.
const MAX_BYTES: usize = 1024;

/// A short text that matches `pattern`. `None` if the pattern cannot be parsed or its shortest match is too long.
pub(super) fn shortest_match(pattern: &str) -> Option<String> {
    let hir = ParserBuilder::new().unicode(false).utf8(false).build().parse(pattern).ok()?;
    let mut text = Vec::new();
    write_shortest_match(&hir, &mut text)?;
    String::from_utf8(text).ok()
}

/// The parser bounds the depth of a pattern and therefore the recursion.
fn write_shortest_match(hir: &Hir, text: &mut Vec<u8>) -> Option<()> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.extend_from_slice(&literal.0),
        HirKind::Class(Class::Bytes(class)) => text.push(class.ranges().first()?.start()),
        HirKind::Class(Class::Unicode(class)) => {
            text.extend_from_slice(class.ranges().first()?.start().encode_utf8(&mut [0; 4]).as_bytes());
        }
        HirKind::Repetition(repetition) => {
            for _ in 0..repetition.min {
                let length = text.len();
                write_shortest_match(&repetition.sub, text)?;
                if text.len() == length {
                    break;
                }
            }
        }
        HirKind::Capture(capture) => write_shortest_match(&capture.sub, text)?,
        HirKind::Concat(parts) => parts.iter().try_for_each(|part| write_shortest_match(part, text))?,
        HirKind::Alternation(choices) => write_shortest_match(choices.first()?, text)?,
    }
    (text.len() <= MAX_BYTES).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patterns_of_the_published_schemas_are_met() {
        for (pattern, text) in [
            (r"^(0|[1-9][0-9]*)(\.[0-9]{1,6})?$", "0"),
            ("^[0-9A-HJKMNP-TV-Z]{26}$", "00000000000000000000000000"),
            ("^0x[a-fA-F0-9]{4}$", "0x0000"),
            ("^[A-Z]{2}$", "AA"),
            ("^[A-Z0-9]{2,16}$", "00"),
            (r"^\d+\.\d+\.\d+$", "0.0.0"),
        ] {
            assert_eq!(shortest_match(pattern).as_deref(), Some(text), "{pattern}");
        }
    }

    #[test]
    fn a_pattern_that_asks_for_too_much_gives_nothing() {
        for pattern in ["a{1000}{1000}", "(", "[^\\s\\S]"] {
            assert_eq!(shortest_match(pattern), None, "{pattern}");
        }
        assert_eq!(shortest_match("(a{0}){1000000}").as_deref(), Some(""));
    }
}
