//! Decodes percent-encoding, HTML entities and JavaScript escapes.

use super::CharacterClasses;

/// Maximum number of nested encodings: `%253C` has two. A program that decodes once, or once too often, does not run
/// anything encoded more deeply.
const MAX_ROUNDS: usize = 2;

/// Maximum length of an entity or escape, in bytes: `&#x0000003c;` and `\u{00003c}` are shorter.
const MAX_ESCAPE_BYTES: usize = 16;

/// HTML names of the characters used in markup, scripts and URLs.
const ENTITIES: [(&str, char); 22] = [
    ("lt", '<'),
    ("gt", '>'),
    ("amp", '&'),
    ("quot", '"'),
    ("apos", '\''),
    ("colon", ':'),
    ("sol", '/'),
    ("bsol", '\\'),
    ("lpar", '('),
    ("rpar", ')'),
    ("period", '.'),
    ("equals", '='),
    ("num", '#'),
    ("excl", '!'),
    ("dollar", '$'),
    ("commat", '@'),
    ("grave", '`'),
    ("lowbar", '_'),
    ("tab", '\t'),
    ("newline", '\n'),
    ("nbsp", ' '),
    ("semi", ';'),
];

/// The decoded text; `None` if nothing was encoded.
pub(super) fn decode_escaped_text(text: &str, marks: CharacterClasses) -> Option<String> {
    if !marks.has_any(CharacterClasses::ESCAPE) {
        return None;
    }
    let mut plain = decode_escapes_once(text)?;
    for _ in 1..MAX_ROUNDS {
        let Some(next) = decode_escapes_once(&plain).filter(|_| !clresolve_core::mutant!("second-disguise-stays"))
        else {
            break;
        };
        plain = next;
    }
    Some(plain)
}

/// The text after one decoding; `None` if nothing was encoded. It is never longer than `text`, except for invalid
/// bytes.
fn decode_escapes_once(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let (mut at, mut found) = (0, false);
    while at < bytes.len() {
        let rest = &bytes[at..bytes.len().min(at + MAX_ESCAPE_BYTES)];
        let escape = match rest[0] {
            b'%' => decode_percent(rest),
            b'&' => decode_entity(rest),
            b'\\' => decode_escape(rest),
            _ => None,
        };
        match escape {
            Some((DecodedByteOrChar::Byte(byte), length)) => {
                plain.push(byte);
                at += length;
            }
            Some((DecodedByteOrChar::Char(character), length)) => {
                plain.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                at += length;
            }
            None => {
                plain.push(rest[0]);
                at += 1;
            }
        }
        found |= escape.is_some();
    }
    found.then(|| String::from_utf8_lossy(&plain).into_owned())
}

#[derive(Clone, Copy)]
enum DecodedByteOrChar {
    /// A byte, possibly part of a multi-byte character.
    Byte(u8),
    Char(char),
}

/// `%3c`.
fn decode_percent(rest: &[u8]) -> Option<(DecodedByteOrChar, usize)> {
    let byte = u8::try_from(parse_number(rest.get(1..3)?, 16)?).ok()?;
    Some((DecodedByteOrChar::Byte(byte), 3))
}

/// `&lt;`, `&#60;` and `&#x3c;`; browsers accept a numeric entity without the semicolon.
fn decode_entity(rest: &[u8]) -> Option<(DecodedByteOrChar, usize)> {
    if rest.get(1) == Some(&b'#') {
        let (radix, start) = if matches!(rest.get(2), Some(b'x' | b'X')) { (16, 3) } else { (10, 2) };
        let is_digit = |byte: &u8| char::from(*byte).is_digit(radix);
        let length = rest[start.min(rest.len())..].iter().take_while(|byte| is_digit(byte)).count();
        let end = start + length;
        let character = char::from_u32(parse_number(rest.get(start..end)?, radix)?)?;
        return Some((DecodedByteOrChar::Char(character), end + usize::from(rest.get(end) == Some(&b';'))));
    }
    let name = &rest[1..1 + rest[1..].iter().position(|byte| *byte == b';')?];
    let (_, character) = ENTITIES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()))?;
    Some((DecodedByteOrChar::Char(*character), name.len() + 2))
}

/// `\x3c`, `\u003c` and `\u{3c}`.
fn decode_escape(rest: &[u8]) -> Option<(DecodedByteOrChar, usize)> {
    let (digits, end) = match (rest.get(1)?, rest.get(2)?) {
        (b'u', b'{') => {
            let length = rest[3..].iter().position(|byte| *byte == b'}')?;
            (&rest[3..3 + length], 4 + length)
        }
        (b'u', _) => (rest.get(2..6)?, 6),
        (b'x', _) => (rest.get(2..4)?, 4),
        _ => return None,
    };
    Some((DecodedByteOrChar::Char(char::from_u32(parse_number(digits, 16)?)?), end))
}

fn parse_number(digits: &[u8], radix: u32) -> Option<u32> {
    let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|b| b.is_ascii_alphanumeric()))?;
    u32::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Option<String> {
        decode_escaped_text(text, CharacterClasses::from_text(text))
    }

    #[test]
    fn disguises_are_taken_off() {
        for disguised in [
            "%3Cb%3E",
            "%253Cb%253e",
            "&lt;b&gt;",
            "&#60;b&#x3E;",
            "&#60b&#62",
            "\\x3cb\\u003E",
            "\\u{3c}b>",
            "&amp;lt;b>",
        ] {
            assert_eq!(plain(disguised).as_deref(), Some("<b>"), "{disguised}");
        }
        assert_eq!(plain("%C3%BC %FF").as_deref(), Some("ü \u{fffd}"));
    }

    #[test]
    fn other_texts_have_none() {
        for text in
            ["", "100 %", "%zz %", "a & b", "&unknown;", "&#;", "&#x;", "&#x110000;", "C:\\new", "\\u{", "\\x", "%2"]
        {
            assert_eq!(plain(text), None, "{text}");
        }
    }
}
