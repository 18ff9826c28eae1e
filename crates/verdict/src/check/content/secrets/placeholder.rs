//! Placeholders for secrets: bracketed names, masks, and words such as `your-api-key`.

use super::super::starts_with_ignore_case;
use super::random::is_hex_or_mixed_alphanumeric;

/// Maximum number of a secret's characters that a mask leaves visible, as in `sk-…4735`.
const MAX_SHOWN: usize = 8;

/// Masking characters, if [`MIN_MASK_BYTES`] of them are adjacent.
const MASKS: [u8; 4] = *b"*.xX";

/// Minimum length of a mask. Words and passwords contain runs of three.
const MIN_MASK_BYTES: usize = 4;

/// Brackets of placeholders. Passwords contain others: `Summer(2024)`.
const FRAMES: [(char, char); 3] = [('<', '>'), ('{', '}'), ('[', ']')];

/// Minimum length of a bracketed word that is too random for a name, without its trailing number.
const MIN_RANDOM_BYTES: usize = 12;

/// Maximum number of digits after a word, as in `YOUR_KEY_1`.
const MAX_DIGITS: usize = 4;

/// Words that are placeholders or begin one: `example`, `yourApiKey`.
const STEMS: [&str; 9] =
    ["your", "example", "placeholder", "redacted", "changeme", "dummy", "sample", "insert", "replace"];

/// Words that may follow a stem in the same word.
const NOUNS: [&str; 12] =
    ["api", "key", "secret", "token", "pass", "access", "auth", "client", "private", "user", "value", "me"];

/// `<key>`, `${KEY}`, `****`, `YOUR_KEY_1`, `xxxxxxx1`.
pub(super) fn is_placeholder(text: &str) -> bool {
    is_bracketed_or_variable(text) || is_masked(text) || has_placeholder_word(text)
}

/// A name in brackets (`{{key}}`, `sk_live_<key>`) or a variable (`$API_KEY_1`, `$(API_KEY_1)`, `%KEY%`).
fn is_bracketed_or_variable(text: &str) -> bool {
    let frame = strip_issuer_prefix(text);
    let frame = frame.strip_prefix('$').unwrap_or(frame);
    let name = strip_brackets(frame);
    let between = |open: &str, close: &str| text.strip_prefix(open)?.strip_suffix(close);
    name.len() < frame.len() && is_placeholder_name(name)
        || text.strip_prefix('$').is_some_and(is_variable_name)
        || between("$(", ")").or_else(|| between("%", "%")).is_some_and(is_variable_name)
}

/// Removes brackets around the whole text.
fn strip_brackets(mut text: &str) -> &str {
    let inner = |text| FRAMES.iter().find_map(|(open, close)| str::strip_prefix(text, *open)?.strip_suffix(*close));
    while let Some(name) = inner(text) {
        text = name;
    }
    text
}

/// Removes the prefix that identifies the issuer and is not part of the secret: `sk_live_`.
fn strip_issuer_prefix(text: &str) -> &str {
    let length = text.bytes().take_while(|b| b.is_ascii_alphabetic() || b"-_".contains(b)).count();
    let length = text[..length].rfind(['-', '_']).map_or(0, |at| at + 1);
    &text[length..]
}

fn is_placeholder_name(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || !b.is_ascii() || b" -_.:/#|".contains(&b);
    let is_chosen = |word: &str| {
        let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
        word.len() < MIN_RANDOM_BYTES || !is_hex_or_mixed_alphanumeric(word)
    };
    !text.is_empty() && text.bytes().all(fits) && text.split(|c: char| !c.is_ascii_alphanumeric()).all(is_chosen)
}

/// `API_KEY_1` or `password`.
fn is_variable_name(text: &str) -> bool {
    let all = |fits: fn(u8) -> bool| text.bytes().all(|b| fits(b) || b == b'_');
    let is_capital = || text.starts_with(|c: char| c.is_ascii_uppercase());
    !text.is_empty()
        && (all(|b| b.is_ascii_lowercase()) || is_capital() && all(|b| b.is_ascii_uppercase() || b.is_ascii_digit()))
}

/// A run of masking characters at the start or end, or an ellipsis or bullets, with few visible characters apart from
/// the issuer's prefix.
fn is_masked(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() >= MIN_MASK_BYTES && (bytes.iter().all(|b| *b == b'_') || bytes.iter().all(|b| *b == b'#')) {
        return true;
    }
    let is_row = |row: &[u8; MIN_MASK_BYTES]| MASKS.contains(&row[0]) && row.iter().all(|b| *b == row[0]);
    let is_hidden = |part: &str| {
        let bytes = part.as_bytes();
        part.contains('…')
            || part.contains("••")
            || bytes.first_chunk().is_some_and(is_row)
            || bytes.last_chunk().is_some_and(is_row)
    };
    let shows_little =
        |part: &str| part.bytes().filter(|b| b.is_ascii_alphanumeric() && !MASKS.contains(b)).count() <= MAX_SHOWN;
    let rest = strip_issuer_prefix(text);
    let is_cut = rest.len() < text.len() && rest.starts_with("...");
    is_cut && shows_little(rest) || [text, rest].iter().any(|part| is_hidden(part) && shows_little(part))
}

/// Words, optionally numbered, one of which is a placeholder.
fn has_placeholder_word(text: &str) -> bool {
    let is_stem = |word: &str| {
        STEMS.iter().filter(|stem| starts_with_ignore_case(word, stem)).any(|stem| {
            let rest = &word[stem.len()..];
            rest.bytes().all(|b| b.is_ascii_digit()) || NOUNS.iter().any(|noun| starts_with_ignore_case(rest, noun))
        })
    };
    let is_word = |word: &str| {
        let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
        word.len() - letters.len() <= MAX_DIGITS && letters.bytes().all(|b| b.is_ascii_alphabetic())
    };
    let words = || text.split(['-', '_', '.', ' ']);
    words().any(is_stem) && words().all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_told_from_secrets() {
        for placeholder in [
            "<key>",
            "<your api key 1>",
            "${API_KEY_1}",
            "<YourProjectApiKey1>",
            "{{ .Values.key1 }}",
            "{api_key_1}",
            "$API_KEY_1",
            "$password",
            "%KEY_1%",
            "sk_live_<key1>",
            "sk-proj-${KEY_1}",
            "$(API_KEY_1)",
            "[key 1]",
            "sk-...4735",
            "________",
            "########",
            "hunt****",
            "********",
            "••••••••",
            "xxxxxxx1",
            "sk-…4735",
            "sk_live_****1234",
            "XXXX-XXXX-XXXX-1234",
            "YOUR_KEY_1",
            "your-api-key-123",
            "yourApiKey1",
            "example-key-1",
            "ChangeMe123",
        ] {
            assert!(is_placeholder(placeholder), "{placeholder}");
        }
        for secret in [
            "Tr0ub4dor$3x",
            "Summer(2024)",
            "(hunter22)",
            "hunter[22]",
            "hunter22]",
            "<hunter22}",
            "Winter%2024%",
            "%hunter22%",
            "Summer___24",
            "P@###w0rd12",
            "sexxxy99",
            "xxxx-correct-horse9",
            "sexxxxy99",
            "s3cr$t99",
            "P@ss*w0rd12",
            "$ecret99",
            "Pa$$w0rd",
            "{8c1f0e6d9b2a47358c1f0e6d9b2a4735}",
            "a<b>c9d1e2",
            "hunter2...99",
            "8c1f0e6d9b2a4735xxxx",
            "yourmom99!",
            "yourmom99",
            "example.8c1f0e6d9b2a47358c1f",
            "Vq7tMz2LpWx9your",
            "...8c1f0e6d9b2a4735",
        ] {
            assert!(!is_placeholder(secret), "{secret}");
        }
    }
}
