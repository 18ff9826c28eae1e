//! Recognizes random texts.

/// A UUID or other hexadecimal, or mixed-case letters with digits. Both need a digit.
pub(super) fn is_hex_or_mixed_alphanumeric(text: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| text.as_bytes().iter().any(kind);
    let is_mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    has(u8::is_ascii_digit) && (is_mixed || text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-'))
}

pub(super) fn has_digit(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_digit())
}

/// Letters in a random order: fewer than two in five adjacent pairs are both lowercase, and fewer than two in five
/// both uppercase. In random letters it is one in four; in `CamelCase` of four-letter words, half are lowercase pairs.
pub(super) fn is_scrambled(text: &str) -> bool {
    let neighbours = |kind: fn(&u8) -> bool| text.as_bytes().windows(2).filter(|two| two.iter().all(kind)).count();
    let is_rare = |kind| 5 * neighbours(kind) < 2 * text.len().saturating_sub(1);
    text.bytes().all(|b| b.is_ascii_alphabetic()) && is_rare(u8::is_ascii_lowercase) && is_rare(u8::is_ascii_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrambled_letters_are_told_from_words() {
        for token in ["ujzPdeIgxLdGncfBAepfJBdKhoOOLdKLzd", "qWxTzLmKpVbNcRtY", "OwAJiecAHjIxfihVLEjBWSqLkQgnFCXtkP"] {
            assert!(is_scrambled(token), "{token}");
        }
        for words in [
            "BearerTokenInAuthorizationHeader",
            "OAuthBearerTokenInHeader",
            "getUserNameFromTheDatabase",
            "AUTHORIZATION",
            "required",
            "aB1cD2eF3gH4iJ5k",
            "qWxTz-LmKpVbNcRtY",
            "",
        ] {
            assert!(!is_scrambled(words), "{words}");
        }
    }
}
