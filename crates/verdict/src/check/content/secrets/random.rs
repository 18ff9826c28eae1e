//! Texts that nobody chose letter by letter.

/// Hexadecimal with the hyphens of a UUID, or digits among capitals and small letters.
pub(super) fn is_random(text: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| text.as_bytes().iter().any(kind);
    let is_mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    has(u8::is_ascii_digit) && (is_mixed || text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-'))
}

pub(super) fn has_digit(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_digit())
}
