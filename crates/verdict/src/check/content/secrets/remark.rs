//! Values that are not secrets: remarks about a secret, and references to its location.

use super::super::starts_with_ignore_case;
use super::random::{has_digit, is_hex_or_mixed_alphanumeric};

/// Words that begin a remark (`required`, `min-8-characters`, `optional8`, `see-docs-v2`), and password hashing
/// methods.
const REMARKS: [&str; 43] = [
    "required",
    "optional",
    "none",
    "string",
    "text",
    "false",
    "true",
    "null",
    "unsupported",
    "supported",
    "enabled",
    "disabled",
    "allowed",
    "forbidden",
    "unset",
    "empty",
    "unknown",
    "default",
    "prompt",
    "hidden",
    "masked",
    "redacted",
    "omitted",
    "encrypted",
    "hashed",
    "plain",
    "plaintext",
    "bcrypt",
    "scrypt",
    "pbkdf2",
    "argon2",
    "argon2i",
    "argon2id",
    "minimum",
    "min",
    "maximum",
    "max",
    "at-least",
    "see",
    "not",
    "oauth",
    "one-time",
    "passwordless",
];

/// Words of which a compound remark contains one: `user-supplied`, `GENERATED_BY_SERVER`.
const WAYS: [&str; 12] = [
    "chosen",
    "configured",
    "defined",
    "derived",
    "generated",
    "injected",
    "issued",
    "managed",
    "protected",
    "provided",
    "specified",
    "supplied",
];

/// Maximum number of words in such a compound. Passphrases have more.
const MAX_WORDS: usize = 3;

/// Algorithms, modes and curves, with their numbers.
const ALGORITHMS: [&str; 80] = [
    "aead",
    "aes",
    "aes128",
    "aes192",
    "aes256",
    "argon2",
    "argon2d",
    "argon2i",
    "argon2id",
    "bcrypt",
    "blake2b",
    "blake2s",
    "blake3",
    "bls12",
    "bls12381",
    "bn254",
    "cbc",
    "ccm",
    "chacha20",
    "ctr",
    "curve25519",
    "curve448",
    "dsa",
    "ecdh",
    "ecdsa",
    "ecies",
    "ed25519",
    "ed448",
    "eddsa",
    "es256",
    "es256k",
    "es384",
    "es512",
    "gcm",
    "hkdf",
    "hmac",
    "hs256",
    "hs384",
    "hs512",
    "keccak",
    "keccak256",
    "keccak512",
    "kw",
    "oaep",
    "p",
    "p256",
    "p256k1",
    "p384",
    "p521",
    "pbkdf2",
    "poly1305",
    "prime256v1",
    "ps256",
    "ps384",
    "ps512",
    "rs256",
    "rs384",
    "rs512",
    "rsa",
    "rsa2048",
    "rsa3072",
    "rsa4096",
    "scrypt",
    "secp256k1",
    "secp256r1",
    "secp384r1",
    "secp521r1",
    "sha",
    "sha1",
    "sha2",
    "sha224",
    "sha256",
    "sha3",
    "sha384",
    "sha512",
    "siv",
    "sr25519",
    "x25519",
    "x448",
    "xchacha20",
];

/// Separate numbers in the name of an algorithm, as in `RSA-4096` and `BLS12-381`.
const LENGTHS: [&str; 11] = ["128", "192", "256", "381", "384", "512", "521", "1024", "2048", "3072", "4096"];

/// Secret stores, as written before a path or a name: `vault:secret/data/app1`, `env:API_KEY_1`.
const KEEPERS: [&str; 22] = [
    "env",
    "vault",
    "doppler",
    "infisical",
    "op",
    "onepassword",
    "bitwarden",
    "sops",
    "keyring",
    "keychain",
    "k8s",
    "kubernetes",
    "secretref",
    "secretmanager",
    "secretsmanager",
    "ssm",
    "aws-sm",
    "aws-ssm",
    "aws-secretsmanager",
    "gcp-secretmanager",
    "keyvault",
    "azure-keyvault",
];

/// Minimum length of a path segment that is too random for a name.
const MIN_RANDOM_BYTES: usize = 12;

/// Maximum number of digits of a number in a remark.
const MAX_DIGITS: usize = 3;

/// A remark: lowercase words and small numbers after one of [`REMARKS`], or a compound with a word that states the
/// secret's origin.
pub(super) fn is_remark_about_secret(text: &str) -> bool {
    begins_with_secret_remark(text) || is_method_description(text)
}

fn begins_with_secret_remark(text: &str) -> bool {
    let ends = |rest: &str| rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '_');
    let rest = REMARKS.iter().filter(|word| starts_with_ignore_case(text, word)).map(|word| &text[word.len()..]);
    rest.filter(|rest| ends(rest)).any(|rest| rest.split(['-', '_']).all(is_lowercase_word_or_number))
}

fn is_method_description(text: &str) -> bool {
    let words = || text.split(['-', '_']);
    let is_way = |word: &str| WAYS.iter().any(|way| word.eq_ignore_ascii_case(way));
    (2..=MAX_WORDS).contains(&words().count()) && words().any(is_way) && words().all(is_single_case)
}

/// A word in one case, optionally capitalized.
pub(super) fn is_single_case(word: &str) -> bool {
    let [first, rest @ ..] = word.as_bytes() else { return false };
    let all = |fits: fn(&u8) -> bool| rest.iter().all(fits);
    first.is_ascii_alphabetic() && all(u8::is_ascii_lowercase)
        || first.is_ascii_uppercase() && all(u8::is_ascii_uppercase)
}

/// The name of an algorithm or curve, from closed lists of words and numbers: `HMAC-SHA256`, `AES-256-GCM`,
/// `secp256k1`.
pub(super) fn is_algorithm_name(text: &str) -> bool {
    let is_known = |word: &&str| ALGORITHMS.iter().any(|name| word.eq_ignore_ascii_case(name));
    let words = || text.split(['-', '_', '/', '+']);
    let mut others = words().filter(|word| !is_known(word));
    has_digit(text)
        && words().any(|word| is_known(&word))
        && others.next().is_none_or(|number| LENGTHS.contains(&number))
        && others.next().is_none()
}

/// Lowercase letters, or a small number with an optional `v` before it.
fn is_lowercase_word_or_number(part: &str) -> bool {
    let number = part.strip_prefix('v').unwrap_or(part);
    part.bytes().all(|b| b.is_ascii_lowercase())
        || number.len() <= MAX_DIGITS && number.bytes().all(|b| b.is_ascii_digit())
}

/// A secret store and the secret's name in it, or a path: `/account/reset`, `/run/secrets/db`.
pub(super) fn is_secret_reference(text: &str) -> bool {
    let is_path = |path: &str| path.split('/').all(is_human_chosen_segment);
    if let Some(path) = text.strip_prefix('/') {
        return is_path(path);
    }
    let Some((keeper, name)) = text.split_once(':') else { return false };
    KEEPERS.iter().any(|known| keeper.eq_ignore_ascii_case(known)) && (is_variable_name(name) || is_path(name))
}

/// `API_KEY_1`.
fn is_variable_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    name.contains('_') && name.bytes().all(fits)
}

/// A path segment that a person would choose.
fn is_human_chosen_segment(part: &str) -> bool {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b);
    !part.is_empty()
        && part.bytes().all(fits)
        && !(part.len() >= MIN_RANDOM_BYTES && is_hex_or_mixed_alphanumeric(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_are_told_from_passwords() {
        for remark in [
            "required",
            "Optional",
            "min-8-characters",
            "optional8",
            "see-docs-v2",
            "at-least-12",
            "max_64",
            "user-supplied",
            "GENERATED_BY_SERVER",
            "User-Defined",
        ] {
            assert!(is_remark_about_secret(remark), "{remark}");
        }
        for password in [
            "minerva8",
            "min3rva",
            "seesaw-12",
            "see-Docs-2",
            "required-8f3a",
            "min-20251122",
            "8-min",
            "never-given-supplied-horse",
        ] {
            assert!(!is_remark_about_secret(password), "{password}");
        }
    }

    #[test]
    fn algorithms_are_told_from_keys() {
        for name in [
            "HMAC-SHA256",
            "AES-256-GCM",
            "secp256k1",
            "Ed25519",
            "RS256",
            "P-256",
            "BLS12-381",
            "RSA-OAEP-256",
            "XChaCha20-Poly1305",
        ] {
            assert!(is_algorithm_name(name), "{name}");
        }
        for key in [
            "rsa-20251122",
            "rsa-2025",
            "aes-hunter2",
            "12345678",
            "es12345678",
            "hmac-",
            "",
            "P482-9931-0274-5518",
            "P-256-384",
            "X123-4567-8901-2345",
            "ed1987",
        ] {
            assert!(!is_algorithm_name(key), "{key}");
        }
    }

    #[test]
    fn references_are_told_from_what_they_name() {
        for reference in [
            "env:API_KEY_1",
            "vault:secret/data/app1",
            "aws-sm:prod/db-1",
            "K8S:agents/key.v2",
            "/account/reset",
            "/run/secrets/db-1",
        ] {
            assert!(is_secret_reference(reference), "{reference}");
        }
        for secret in [
            "vault:8c1f0e6d9b2a4735",
            "env:Vq7tMz2LpWx9",
            "user:pass1",
            "op:a//b",
            "env:",
            "env:ABCD1234",
            "/Ab3/x",
            "/8c1f0e6d9b2a4735",
        ] {
            assert!(!is_secret_reference(secret), "{secret}");
        }
    }
}
