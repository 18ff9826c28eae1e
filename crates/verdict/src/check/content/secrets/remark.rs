//! Text in the place of a secret that is not one: remarks about it, and names of where it is kept.

use super::super::begins_with;
use super::random::is_random;

/// Words that begin a remark: `required`, `min-8-characters`, `optional8`, `see-docs-v2`; and how passwords are kept.
const REMARKS: [&str; 40] = [
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
];

/// What keeps secrets, as it is written before a path or a name: `vault:secret/data/app1`, `env:API_KEY_1`.
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

/// Fewest characters of a part of a path that is too random for a name.
const MIN_RANDOM_BYTES: usize = 12;

/// Most digits of a number in a remark.
const MAX_DIGITS: usize = 3;

/// A remark: small letters and small numbers behind one of its first words.
pub(super) fn is_remark(text: &str) -> bool {
    let ends = |rest: &str| rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '_');
    let rest = REMARKS.iter().filter(|word| begins_with(text, word)).map(|word| &text[word.len()..]);
    rest.filter(|rest| ends(rest)).any(|rest| rest.split(['-', '_']).all(is_plain))
}

/// Small letters, or a small number that may have a `v` before it.
fn is_plain(part: &str) -> bool {
    let number = part.strip_prefix('v').unwrap_or(part);
    part.bytes().all(|b| b.is_ascii_lowercase())
        || number.len() <= MAX_DIGITS && number.bytes().all(|b| b.is_ascii_digit())
}

/// The name of what keeps a secret, and the secret's name there; or a path: `/account/reset`, `/run/secrets/db`.
pub(super) fn is_reference(text: &str) -> bool {
    let is_path = |path: &str| path.split('/').all(is_name);
    if let Some(path) = text.strip_prefix('/') {
        return is_path(path);
    }
    let Some((keeper, name)) = text.split_once(':') else { return false };
    KEEPERS.iter().any(|known| keeper.eq_ignore_ascii_case(known)) && (is_variable(name) || is_path(name))
}

/// `API_KEY_1`.
fn is_variable(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    name.contains('_') && name.bytes().all(fits)
}

/// A part of a path that a person would choose.
fn is_name(part: &str) -> bool {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b);
    !part.is_empty() && part.bytes().all(fits) && !(part.len() >= MIN_RANDOM_BYTES && is_random(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_are_told_from_passwords() {
        for remark in ["required", "Optional", "min-8-characters", "optional8", "see-docs-v2", "at-least-12", "max_64"]
        {
            assert!(is_remark(remark), "{remark}");
        }
        for password in ["minerva8", "min3rva", "seesaw-12", "see-Docs-2", "required-8f3a", "min-20251122", "8-min"] {
            assert!(!is_remark(password), "{password}");
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
            assert!(is_reference(reference), "{reference}");
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
            assert!(!is_reference(secret), "{secret}");
        }
    }
}
