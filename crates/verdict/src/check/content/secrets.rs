//! Credentials (CL-31), by a closed list of forms.

use super::{Marks, Separators, contains};

/// A credential in any text: a token with its issuer's prefix, a JWT, a private key block, a password in a URL, or an
/// assignment to a name that promises one. Gives the kind, never the credential.
pub(super) fn in_text(text: &str, marks: Marks) -> Option<&'static str> {
    if marks.any(Marks::DASH) && has_private_key_block(text) {
        return Some("a private key block");
    }
    if !marks.any(Marks::DIGIT) && !marks.any(Marks::COLON) {
        return None;
    }
    issued(text)
        .or_else(|| marks.all(Marks::COLON | Marks::AT).then(|| password_in_url(text)).flatten())
        .or_else(|| marks.any(Marks::DIGIT).then(|| assigned(text)).flatten())
}

/// A credential as the value of a member whose name promises one.
pub(super) fn in_member(name: &str, text: &str) -> Option<&'static str> {
    match promise(name)? {
        Promise::Password if is_password(text) => Some("a password"),
        Promise::Key if is_key(text) => Some("a key or secret"),
        Promise::Token if is_long_token(text) => Some("a token"),
        Promise::Words if text.split_whitespace().count() >= 12 => Some("a seed phrase"),
        _ => None,
    }
}

/// A number as the value of a member that promises a password.
pub(super) fn in_number(name: &str) -> Option<&'static str> {
    matches!(promise(name)?, Promise::Password).then_some("a password")
}

struct Issuer {
    prefix: &'static str,
    /// Fewest characters after the prefix.
    rest: usize,
    kind: &'static str,
}

const fn issuer(prefix: &'static str, rest: usize, kind: &'static str) -> Issuer {
    Issuer { prefix, rest, kind }
}

/// Prefixes that issuers give to their secrets so that scanners find them. After the prefix only letters, digits and
/// `- _ .` may follow, with at least one digit.
const ISSUERS: [Issuer; 31] = [
    issuer("AGE-SECRET-KEY-1", 40, "an age secret key"),
    issuer("AIza", 35, "a Google API key"),
    issuer("AKIA", 16, "an AWS access key"),
    issuer("ASIA", 16, "an AWS access key"),
    issuer("EAAC", 60, "a Facebook access token"),
    issuer("SG.", 40, "a SendGrid key"),
    issuer("dop_v1_", 40, "a DigitalOcean token"),
    issuer("github_pat_", 22, "a GitHub token"),
    issuer("gho_", 30, "a GitHub token"),
    issuer("ghp_", 30, "a GitHub token"),
    issuer("ghr_", 30, "a GitHub token"),
    issuer("ghs_", 30, "a GitHub token"),
    issuer("ghu_", 30, "a GitHub token"),
    issuer("glpat-", 20, "a GitLab token"),
    issuer("gsk_", 40, "a Groq key"),
    issuer("hf_", 30, "a Hugging Face token"),
    issuer("npm_", 30, "an npm token"),
    issuer("pypi-", 50, "a PyPI token"),
    issuer("rk_live_", 16, "a Stripe key"),
    issuer("rk_test_", 16, "a Stripe key"),
    issuer("shpat_", 30, "a Shopify token"),
    issuer("sk-", 20, "a secret API key"),
    issuer("sk_live_", 16, "a Stripe key"),
    issuer("sk_test_", 16, "a Stripe key"),
    issuer("whsec_", 16, "a webhook secret"),
    issuer("xai-", 40, "a secret API key"),
    issuer("xapp-", 20, "a Slack token"),
    issuer("xoxb-", 10, "a Slack token"),
    issuer("xoxp-", 10, "a Slack token"),
    issuer("xprv", 100, "an extended private key"),
    issuer("ya29.", 20, "a Google access token"),
];

/// Shortest credential that any issuer gives out.
const SHORTEST_ISSUED: usize = 15;

fn issued(text: &str) -> Option<&'static str> {
    const TOKENS: Separators = Separators::ascii(b"!\"#$%&'()*+,/:;<=>?@[\\]^`{|}~").and_all_else();
    if text.len() < SHORTEST_ISSUED {
        return None;
    }
    let mut tokens = TOKENS.split(text).filter(|token| token.len() >= SHORTEST_ISSUED);
    tokens.find_map(|token| {
        let first = token.as_bytes()[0];
        let known = ISSUERS.iter().filter(|issuer| issuer.prefix.as_bytes()[0] == first);
        let mut fits = known.filter(|issuer| {
            token.strip_prefix(issuer.prefix).is_some_and(|rest| rest.len() >= issuer.rest && has_digit(rest))
        });
        fits.next().map(|issuer| issuer.kind).or_else(|| is_jwt(token).then_some("a JSON web token"))
    })
}

/// Header and payload, each base64url of a JSON object, then a signature, which may be empty.
fn is_jwt(token: &str) -> bool {
    let mut parts = token.split('.');
    let mut object = || parts.next().is_some_and(|part| part.len() >= 10 && part.starts_with("eyJ"));
    object() && object() && parts.next().is_some() && parts.next().is_none()
}

fn has_private_key_block(text: &str) -> bool {
    text.split("-----BEGIN ")
        .skip(1)
        .filter_map(|block| block.split_once("-----"))
        .any(|(label, _)| label.contains("PRIVATE KEY"))
}

/// `scheme://user:password@host`.
fn password_in_url(text: &str) -> Option<&'static str> {
    const END: Separators = Separators::ascii(b"/?#\\\"'<>");
    text.split("://").skip(1).find_map(|rest| {
        let (user, _) = END.first(rest).rsplit_once('@')?;
        let (_, password) = user.split_once(':')?;
        (!password.is_empty() && !is_placeholder(password)).then_some("a password in a URL")
    })
}

/// `name=value`, `name: value` or `Bearer value`, in prose, in a header or in the query of a URL.
fn assigned(text: &str) -> Option<&'static str> {
    const PIECES: Separators = Separators::ascii(b"?&;,#\"'()[]");
    let colon = || text.match_indices(':').any(|(at, _)| !text[at + 1..].starts_with("//"));
    if !text.contains([' ', '=']) && !colon() {
        return None;
    }
    let mut pieces = PIECES.split(text).peekable();
    while let Some(piece) = pieces.next() {
        let next = pieces.peek().copied().unwrap_or("");
        let Some((name, value)) = piece.split_once(['=', ':']) else {
            if is_scheme(piece) && is_long_token(next) {
                return Some("credentials of an Authorization header");
            }
            continue;
        };
        let value = if value.is_empty() { next } else { value };
        match promise(name) {
            Some(Promise::Password | Promise::Key) if is_key(value) => return Some("an assigned secret"),
            Some(Promise::Token) if is_long_token(value) => return Some("an assigned token"),
            _ => {}
        }
    }
    None
}

/// Whether a word is one of the schemes of an Authorization header that carry a secret.
fn is_scheme(word: &str) -> bool {
    word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic")
}

/// What the name of a member promises about its value.
enum Promise {
    Password,
    Key,
    Token,
    Words,
}

/// Longest name that can promise anything, in bytes; the list below has nothing near it.
const MAX_PROMISING_NAME: usize = 64;

fn promise(name: &str) -> Option<Promise> {
    const PASSWORDS: [&str; 3] = ["password", "passwd", "passphrase"];
    const KEYS: [&str; 7] =
        ["apikey", "secret", "secretkey", "privatekey", "signingkey", "secretaccesskey", "credential"];
    const WORDS: [&str; 3] = ["mnemonic", "seedphrase", "recoveryphrase"];
    if name.len() > MAX_PROMISING_NAME || name.len() < "token".len() {
        return None;
    }
    let mut letters = [0; MAX_PROMISING_NAME];
    let mut length = 0;
    for byte in name.bytes().filter(u8::is_ascii_alphanumeric) {
        letters[length] = byte.to_ascii_lowercase();
        length += 1;
    }
    let plain = &letters[..length];
    let plain = plain.strip_suffix(b"s").unwrap_or(plain);
    let ends = |words: &[&str]| words.iter().any(|word| plain.ends_with(word.as_bytes()));
    match () {
        () if ends(&PASSWORDS) => Some(Promise::Password),
        () if ends(&KEYS) => Some(Promise::Key),
        () if ends(&WORDS) => Some(Promise::Words),
        () if ends(&["token"]) => Some(Promise::Token),
        () => None,
    }
}

/// One word that is not a remark about passwords.
fn is_password(text: &str) -> bool {
    const REMARKS: [&str; 9] =
        ["required", "optional", "none", "string", "text", "false", "true", "null", "unsupported"];
    let text = text.trim();
    text.len() >= 4
        && !text.contains(char::is_whitespace)
        && !is_placeholder(text)
        && !is_public_value(text)
        && !REMARKS.iter().any(|remark| text.eq_ignore_ascii_case(remark))
}

/// One word with a digit in it, long enough for a key, and none of the public things that stand in cards.
fn is_key(text: &str) -> bool {
    let text = text.trim();
    text.len() >= 8
        && has_digit(text)
        && !text.contains(char::is_whitespace)
        && !is_placeholder(text)
        && !is_public_value(text)
}

/// As [`is_key`], but long, of letters and digits, and not an account or contract: "token" has other meanings too.
fn is_long_token(text: &str) -> bool {
    let text = text.trim();
    let hex = text.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
    let opaque = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.~+/=".contains(&b));
    text.len() >= 16 && opaque && !hex && text.contains(|c: char| c.is_ascii_alphabetic()) && is_key(text)
}

/// `<key>`, `${KEY}`, `****`, `YOUR_KEY_1`, `xxxxxxx1`.
fn is_placeholder(text: &str) -> bool {
    text.contains(['<', '>', '{', '}', '$', '*', '…'])
        || text.contains("...")
        || ["your", "example", "placeholder", "xxxx", "redacted"].iter().any(|word| contains(text, word))
}

/// URLs, labelled digests and public keys, and CIDs.
fn is_public_value(text: &str) -> bool {
    const LABELS: [&str; 8] = ["sha256:", "sha256-", "sha384-", "sha512:", "sha512-", "ed25519:", "eip155:", "did:"];
    let cid = |text: &str| {
        (text.starts_with("bafy") || text.starts_with("bafk")) && text.len() >= 59
            || text.starts_with("Qm") && text.len() == 46
    };
    text.contains("://") || LABELS.iter().any(|label| text.starts_with(label)) || cid(text)
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Option<&'static str> {
        in_text(text, Marks::of(text))
    }

    #[test]
    fn issued_tokens_are_known_by_their_prefix() {
        for issuer in &ISSUERS {
            let token = format!("{}{}", issuer.prefix, "a1".repeat(issuer.rest / 2 + 1));
            assert_eq!(text(&token), Some(issuer.kind), "{token}");
            assert_eq!(text(&format!("key={token}&x")), Some(issuer.kind), "{token}");
            assert_eq!(text(&format!("prefix{token}")), None, "{token}");
        }
    }

    #[test]
    fn other_credentials_are_known_by_their_form() {
        for (credential, kind) in [
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "a JSON web token"),
            ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n", "a private key block"),
            ("-----BEGIN PRIVATE KEY-----", "a private key block"),
            ("postgres://app:s3cr3t@db.commandlayer.org/x", "a password in a URL"),
            ("https://api.commandlayer.org/?api_key=abcd1234efgh", "an assigned secret"),
            ("https://api.commandlayer.org/?access_token=abcd1234efgh5678ijkl", "an assigned token"),
            ("Authorization: Bearer abcdef0123456789abcdef", "credentials of an Authorization header"),
            ("password: hunter2hunter", "an assigned secret"),
        ] {
            assert_eq!(text(credential), Some(kind), "{credential}");
        }
    }

    #[test]
    fn members_that_promise_a_secret_are_held_to_it() {
        for (name, value) in [
            ("password", "hunter2"),
            ("db_password", "correct-horse"),
            ("apiKey", "a1b2c3d4"),
            ("OPENAI_API_KEY", "abc123def456"),
            ("client-secret", "9f8e7d6c5b4a"),
            ("privateKey", "0x4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318"),
            ("auth_token", "abcdef0123456789abcdef"),
            ("mnemonic", "test test test test test test test test test test test junk"),
        ] {
            assert!(in_member(name, value).is_some(), "{name}: {value}");
        }
        for (name, value) in [
            ("password", "required"),
            ("password", "see the documentation"),
            ("api_key", "X-API-Key"),
            ("api_key", "${API_KEY_1}"),
            ("api_key", "https://commandlayer.org/v1/keys"),
            ("secret", "sha256:739e0a399de539f0d9ba584e675d82572ccd0df7d5e60e54d834f20190879bac"),
            ("token", "USDC"),
            ("token", "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"),
            ("key", "a1b2c3d4e5f6"),
            ("pgp_fingerprint", "5016D4969F3822B2C5A2FA4099A26950197DAB0A"),
            ("secret_sharing", "shamir-2of3"),
        ] {
            assert!(in_member(name, value).is_none(), "{name}: {value}");
        }
        assert!(in_number("password").is_some() && in_number("max_tokens").is_none());
    }

    #[test]
    fn public_things_are_no_secrets() {
        for public in [
            "-----BEGIN CERTIFICATE-----",
            "-----BEGIN PUBLIC KEY-----",
            "ssh://git@github.com/x/y",
            "https://user:<password>@host.example/",
            "sk-learn and scikit-learn-pipelines",
            "https://commandlayer.org/schemas/v1.0.0/commons/parse/requests/parse.request.schema.json",
            "x402://summarizeagent.eth/summarize/v1.0.0",
            "Bearer authentication is required",
            "pk_live_51H8xyzABCDEFGH12345678",
        ] {
            assert_eq!(text(public), None, "{public}");
        }
    }
}
