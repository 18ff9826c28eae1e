//! Values that may be the secret that a member's name announces: long and random enough, and none of the public values
//! found in cards.

use super::placeholder::is_placeholder;
use super::random::{has_digit, is_hex_or_mixed_alphanumeric, is_scrambled};
use super::remark::{is_algorithm_name, is_remark_about_secret, is_secret_reference, is_single_case};

/// Minimum length of a word or number that counts as a password, in bytes.
pub(super) const MIN_PASSWORD_BYTES: usize = 4;

/// Minimum length of a token that counts as a key, in bytes.
const MIN_KEY_TOKEN_BYTES: usize = 12;

/// A private key's 32 bytes in hexadecimal.
pub(super) fn is_key_bytes(text: &str) -> bool {
    let text = text.trim();
    let hex = text.strip_prefix("0x").unwrap_or(text);
    hex.len() == 64 && is_hex(hex)
}

/// A single word that is not a remark about passwords.
pub(super) fn is_plausible_password(text: &str) -> bool {
    let text = text.trim();
    text.len() >= MIN_PASSWORD_BYTES && !text.contains(char::is_whitespace) && !is_remark_or_public(text)
}

/// A single word, either with a digit and long enough for a key, or long and scrambled, that is not one of the public
/// values found in cards.
pub(super) fn is_plausible_key(text: &str) -> bool {
    let text = text.trim();
    let has_form = text.len() >= 8 && has_digit(text) || text.len() >= MIN_TOKEN_BYTES && is_scrambled(text);
    has_form && !text.contains(char::is_whitespace) && !is_remark_or_public(text)
}

/// Like [`is_plausible_key`], but at least as long as a token and not the name of a scheme.
pub(super) fn is_plausible_long_key(text: &str) -> bool {
    text.trim().len() >= MIN_KEY_TOKEN_BYTES && is_plausible_key(text) && !is_auth_scheme_name(text.trim())
}

/// Maximum number of digits after a word of a compound, as in `oauth2` and `rs256`.
const MAX_WORD_DIGITS: usize = 4;

/// Words of which a compound contains at least one, without the number after it.
const SCHEMES: [&str; 16] = [
    "api",
    "basic",
    "bearer",
    "client",
    "cookie",
    "credentials",
    "eddsa",
    "es",
    "header",
    "hmac",
    "jwt",
    "mtls",
    "oauth",
    "oidc",
    "rs",
    "siwe",
];

/// Words joined by hyphens or underscores, optionally numbered, that name a scheme: `oauth2-client-credentials`.
fn is_auth_scheme_name(text: &str) -> bool {
    let letters = |word: &str| word.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let names_scheme = |word: &str| SCHEMES.iter().any(|known| word[..letters(word)].eq_ignore_ascii_case(known));
    let is_word = |word: &str| {
        let end = letters(word);
        word.len() - end <= MAX_WORD_DIGITS && end > 1 && (is_single_case(&word[..end]) || names_scheme(word))
    };
    let words = || text.split(['-', '_']);
    words().count() > 1 && words().all(is_word) && words().any(names_scheme)
}

/// A placeholder, a remark, a reference to a secret, or a public value.
fn is_remark_or_public(text: &str) -> bool {
    is_placeholder(text)
        || is_remark_about_secret(text)
        || is_algorithm_name(text)
        || is_secret_reference(text)
        || is_public_value(text)
}

/// Minimum length of a token, in bytes.
pub(super) const MIN_TOKEN_BYTES: usize = 16;

/// Like [`is_plausible_key`], but long and random, and not an account or contract, because "token" has other meanings
/// too.
pub(super) fn is_plausible_token(text: &str) -> bool {
    let text = text.trim();
    let opaque = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.~+/=%".contains(&b));
    let letters = text.bytes().any(|b| b.is_ascii_alphabetic());
    text.len() >= MIN_TOKEN_BYTES
        && opaque
        && letters
        && !text.starts_with("0x")
        && is_plausible_key(text)
        && is_token_like(text)
}

/// Like [`is_hex_or_mixed_alphanumeric`] or [`is_scrambled`], or at least one digit in six characters without hyphens
/// or underscores.
fn is_token_like(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    is_hex_or_mixed_alphanumeric(text) || is_scrambled(text) || digits * 6 >= text.len() && !text.contains(['-', '_'])
}

pub(super) fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// URLs, labelled digests and public keys, accounts and CIDs.
fn is_public_value(text: &str) -> bool {
    const LABELS: [&str; 17] = [
        "sha256:", "sha256-", "sha384-", "sha512:", "sha512-", "eip155:", "did:", "urn:", "z6Mk", "z6LS", "zDn",
        "age1", "npub1", "xpub", "pk_", "pk-", "ssh-",
    ];
    let is_account = text.len() == 42 && text.starts_with("0x") && is_hex(&text[2..]);
    let cid = |text: &str| {
        (text.starts_with("bafy") || text.starts_with("bafk")) && text.len() >= 59
            || text.starts_with("Qm") && text.len() == 46
    };
    // A public key has 32 bytes, in base64 or base58; NEAR's private keys have 64.
    let is_ed25519 = || text.strip_prefix("ed25519:").is_some_and(|key| matches!(key.len(), 43 | 44));
    is_account
        || is_ed25519()
        || text.contains("://")
        || LABELS.iter().any(|label| text.starts_with(label))
        || cid(text)
}
