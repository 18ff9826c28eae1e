//! Credentials (CL-31), by a closed list of patterns.

mod issuers;
mod phrase;
mod placeholder;
mod plausible;
mod random;
mod remark;

use std::sync::LazyLock;

use regex::bytes::Regex;
use serde_json::{Map, Number, Value};

pub(super) use self::phrase::SeedPhraseSearch;
use self::placeholder::is_placeholder;
use self::plausible::{
    MIN_PASSWORD_BYTES, MIN_TOKEN_BYTES, is_hex, is_key_bytes, is_plausible_key, is_plausible_long_key,
    is_plausible_password, is_plausible_token,
};
use self::random::{has_digit, is_hex_or_mixed_alphanumeric};
use super::{
    CharacterClasses, TokenSeparators, colon_positions, ends_with_ignore_case, last_word, split_at_mark,
    starts_with_ignore_case, texts_after_schemes,
};

/// The kind of a credential in any text: a token in an issuer's format, a private key block, credentials in a URL, or
/// an assignment to a name that indicates one.
pub(super) fn find_secret_in_text(text: &str, marks: CharacterClasses) -> Option<&'static str> {
    let is_named = marks.has_any(CharacterClasses::COLON | CharacterClasses::EQUALS);
    if text.len() < issuers::SHORTEST {
        return is_named.then(|| find_assigned_secret(text, marks)).flatten();
    }
    if marks.has_any(CharacterClasses::DASH) && marks.has_any(CharacterClasses::UPPER) && has_private_key_block(text) {
        return Some("a private key block");
    }
    if !marks.has_any(CharacterClasses::DIGIT) && !is_named {
        // Tokens without a digit all contain an underscore, and the value of an Authorization header needs neither `:`
        // nor `=`.
        let in_header = || text.split_once(' ').and_then(|(word, next)| authorization_secret_kind(word, next));
        return marks
            .has_any(CharacterClasses::UNDERSCORE)
            .then(|| issued_token_kind(text))
            .flatten()
            .or_else(in_header);
    }
    let is_prose = text.len() >= phrase::MIN_BYTES
        && marks.has_any(CharacterClasses::SPACE | CharacterClasses::COMMA | CharacterClasses::EQUALS);
    issued_token_kind(text)
        .or_else(|| marks.has_any(CharacterClasses::COLON).then(|| find_secret_in_url(text)).flatten())
        .or_else(|| find_assigned_secret(text, marks))
        .or_else(|| find_separated_token(text, marks))
        .or_else(|| find_password_after_user(text, marks))
        .or_else(|| {
            (is_prose && marks.has_any(CharacterClasses::DIGIT) && NAMED_KEY.is_match(text.as_bytes()))
                .then_some("a private key")
        })
        .or_else(|| (is_prose && is_named).then(|| find_labelled_phrase(text)).flatten())
}

/// A credential as the value of a member whose name indicates one.
pub(super) fn find_secret_in_member(name: &str, text: &str) -> Option<&'static str> {
    let kind = match secret_value_kind(name)? {
        SecretMemberKind::Password if is_plausible_password(text) => "a password",
        SecretMemberKind::Key if is_plausible_key(text) => "a key or secret",
        SecretMemberKind::KeyToken if is_plausible_long_key(text) => "a key or secret",
        SecretMemberKind::Token if is_plausible_token(text) => "a token",
        SecretMemberKind::KeyBytes if is_key_bytes(text) => "a private key",
        SecretMemberKind::Words | SecretMemberKind::Password
            if phrase::may_be_announced_phrase(text.split_whitespace()) =>
        {
            phrase::KIND
        }
        _ => return None,
    };
    (!repeats_name(text, name)).then_some(kind)
}

/// Whether a value repeats its member's name: `"password": "Password"`.
fn repeats_name(text: &str, name: &str) -> bool {
    let letters = |text: &str| text.to_ascii_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "");
    letters(text) == letters(name)
}

/// A seed phrase in a member of any name.
pub(super) fn find_seed_phrase(text: &str, search: &mut SeedPhraseSearch) -> Option<&'static str> {
    search.contains_seed_phrase(text).then_some(phrase::KIND)
}

/// A number in a member whose name indicates a password. `pass` is excluded: it counts what has passed.
pub(super) fn find_password_in_number(name: &str, number: &Number) -> Option<&'static str> {
    let promises =
        matches!(secret_value_kind(name)?, SecretMemberKind::Password) && !last_word(name).eq_ignore_ascii_case("pass");
    (promises && number.to_string().len() >= MIN_PASSWORD_BYTES).then_some("a password")
}

/// A seed phrase as a list of words, or a private key as a list of bytes in a member whose name indicates one.
pub(super) fn find_secret_in_list(name: &str, items: &[Value], search: &mut SeedPhraseSearch) -> Option<&'static str> {
    let is_byte = |item: &Value| item.as_u64().is_some_and(|number| number < 256);
    let words = || items.iter().map(|item| item.as_str().unwrap_or(""));
    match secret_value_kind(name) {
        Some(SecretMemberKind::Words) if phrase::may_be_announced_phrase(words()) => Some(phrase::KIND),
        Some(SecretMemberKind::Key | SecretMemberKind::KeyToken | SecretMemberKind::KeyBytes)
            if matches!(items.len(), 32 | 64) && items.iter().all(is_byte) =>
        {
            Some("a private key")
        }
        _ => search.is_seed_phrase(words()).then_some(phrase::KIND),
    }
}

/// A private JSON Web Key (RFC 7517), a wallet's key store (protected only by a password), or members that together
/// hold a secret. `name` is the member that holds the object.
pub(super) fn find_secret_in_object(name: &str, members: &Map<String, Value>) -> Option<&'static str> {
    let text = |name: &str| members.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let is_text = |name: &str| text(name).is_some();
    if is_text("kty") && (is_text("d") || is_text("k")) {
        return Some("a private JSON web key");
    }
    if is_text("ciphertext") && is_text("mac") && members.contains_key("kdf") {
        return Some("a key store");
    }
    // `{"name": "X-API-Key", "value": "…"}`
    let named = || text("value").and_then(|value| find_secret_in_member(text("name").or_else(|| text("key"))?, value));
    named().or_else(|| find_secret_in_group(name, members))
}

/// A secret in a group, keyed by its owner: `"api_keys": {"primary": "…"}`. Such groups also contain metadata, so only
/// an alphanumeric word or a random text counts.
fn find_secret_in_group(name: &str, members: &Map<String, Value>) -> Option<&'static str> {
    /// First words of metadata about a time or a person.
    const TIMES: [&str; 4] = ["created", "expires", "rotated", "updated"];
    const METADATA: [&str; 22] = [
        "algorithm",
        "created",
        "default",
        "description",
        "expires",
        "format",
        "header",
        "id",
        "in",
        "location",
        "manager",
        "name",
        "pattern",
        "policy",
        "provider",
        "rotation",
        "scheme",
        "store",
        "type",
        "updated",
        "url",
        "version",
    ];
    let may_hold = name.ends_with(['s', 'S']) && members.values().any(Value::is_string);
    if !may_hold
        || !matches!(
            secret_value_kind(name),
            Some(SecretMemberKind::Password | SecretMemberKind::Key | SecretMemberKind::KeyToken)
        )
    {
        return None;
    }
    let is_secret = |text: &str| {
        let is_word =
            || text.bytes().all(|b| b.is_ascii_alphanumeric()) && text.bytes().any(|b| b.is_ascii_alphabetic());
        is_plausible_key(text) && !is_iso_date(text) && (is_word() || is_hex_or_mixed_alphanumeric(text))
    };
    let is_metadata = |owner: &str| {
        METADATA.iter().any(|word| last_word(owner).eq_ignore_ascii_case(word))
            || TIMES.iter().any(|time| starts_with_ignore_case(owner, time))
    };
    let mut owned = members.iter().filter(|(owner, _)| !is_metadata(owner));
    owned.any(|(_, value)| value.as_str().is_some_and(is_secret)).then_some("a key or secret")
}

/// An ISO 8601 date, with or without a time of day: `2025-11-22`, `2025-11-22T00:00:00Z`.
fn is_iso_date(text: &str) -> bool {
    let is_date = |date: &[u8; 10]| {
        date.iter().enumerate().all(|(at, b)| if matches!(at, 4 | 7) { *b == b'-' } else { b.is_ascii_digit() })
    };
    let Some((date, rest)) = text.trim().as_bytes().split_first_chunk() else { return false };
    is_date(date) && rest.iter().all(|b| b.is_ascii_digit() || b"TZtz:.+- ".contains(b))
}

fn issued_token_kind(text: &str) -> Option<&'static str> {
    const TOKENS: TokenSeparators = TokenSeparators::ascii(b"!\"#$%&'()*+,/:;<=>?@[\\]^`{|}~").with_non_ascii();
    if text.len() < issuers::SHORTEST {
        return None;
    }
    let mut tokens = TOKENS.split(text).filter(|token| token.len() >= issuers::SHORTEST);
    tokens.find_map(|token| issuers::issued_kind_by_prefix(token).or_else(|| structured_token_kind(token)))
}

/// A token without a prefix, recognized by its structure.
fn structured_token_kind(token: &str) -> Option<&'static str> {
    match token.as_bytes() {
        [b'e', ..] if is_jwt(token) => Some("a JSON web token"),
        [b'M' | b'N' | b'O', ..] if is_discord_token(token) => Some("a Discord token"),
        [b'5' | b'K' | b'L', ..] if is_wif_key(token) => Some("a Bitcoin private key"),
        [.., b'0'..=b'9'] if is_mailchimp_key(token) => Some("a Mailchimp key"),
        [b'p', ..] if is_airtable_token(token) => Some("an Airtable token"),
        _ => None,
    }
}

/// The bot's id in base64, a timestamp and a signature.
fn is_discord_token(token: &str) -> bool {
    let mut parts = token.split('.').map(str::len);
    let lengths = [parts.next(), parts.next(), parts.next(), parts.next()];
    matches!(lengths, [Some(24..=28), Some(6), Some(27..=38), None]) && is_hex_or_mixed_alphanumeric(token)
}

/// Wallet import format: 32 bytes and a checksum in base58.
fn is_wif_key(token: &str) -> bool {
    let is_base58 = |b: u8| b.is_ascii_alphanumeric() && !b"0OIl".contains(&b);
    token.len() == if token.starts_with('5') { 51 } else { 52 }
        && token.bytes().all(is_base58)
        && is_hex_or_mixed_alphanumeric(token)
}

/// `0123456789abcdef0123456789abcdef-us12`.
fn is_mailchimp_key(token: &str) -> bool {
    token.split_once("-us").is_some_and(|(key, center)| {
        key.len() == 32 && is_hex(key) && (1..=2).contains(&center.len()) && center.bytes().all(|b| b.is_ascii_digit())
    })
}

/// `pat`, an id of 14 letters and digits, a dot and a secret of 64.
fn is_airtable_token(token: &str) -> bool {
    let Some((id, secret)) = token.strip_prefix("pat").and_then(|rest| rest.split_once('.')) else { return false };
    let is_plain = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric());
    id.len() == 14 && secret.len() == 64 && is_plain(id) && is_plain(secret) && has_digit(secret)
}

/// Header and payload, each a JSON object in base64url, then a signature, which may be empty.
fn is_jwt(token: &str) -> bool {
    let mut parts = token.split('.');
    let mut object = || parts.next().is_some_and(|part| part.len() >= 10 && part.starts_with("eyJ"));
    object() && object() && parts.next().is_some() && parts.next().is_none()
}

/// Maximum length of a block's label, in bytes: the longest known is `SSH2 ENCRYPTED PRIVATE KEY`.
const MAX_LABEL_BYTES: usize = 40;

/// The start of PuTTY key files.
const PUTTY: &str = "PuTTY-User-Key-File-";

fn has_private_key_block(text: &str) -> bool {
    if !text.contains("BEGIN ") {
        return text.starts_with(PUTTY);
    }
    let mut blocks = text.split("---- BEGIN ").skip(1).chain(text.split("-----BEGIN ").skip(1));
    let is_private = |block: &str| block[..block.floor_char_boundary(MAX_LABEL_BYTES)].contains("PRIVATE KEY");
    blocks.any(is_private) || text.starts_with(PUTTY)
}

/// Credentials in a URL: `scheme://user:password@host`, a token as the user, or a provider's key in the path.
fn find_secret_in_url(text: &str) -> Option<&'static str> {
    const END: TokenSeparators = TokenSeparators::ascii(b"/?#\\\"'<>");
    const PATH: TokenSeparators = TokenSeparators::ascii(b"\"'<>?#");
    texts_after_schemes(text).find_map(|rest| {
        let authority = END.first_token(rest);
        let path = PATH.first_token(&rest[authority.len()..]);
        let (user, authority) = authority.rsplit_once('@').unwrap_or(("", authority));
        if let Some(kind) = find_secret_in_url_user_info(user) {
            return Some(kind);
        }
        let holds = |least| path.split('/').any(|segment| segment.len() >= least && is_too_random_for_name(segment));
        let name = split_at_mark(authority, b':').map_or(authority, |(name, _)| name);
        let is_key =
            |(host, least): &(&str, usize)| path.len() >= *least && is_host_or_subdomain(name, host) && holds(*least);
        KEYED_HOSTS.iter().any(is_key).then_some("a key in a URL")
    })
}

fn find_secret_in_url_user_info(user: &str) -> Option<&'static str> {
    match user.split_once(':') {
        Some((_, password)) if !password.is_empty() && !is_placeholder(password) => Some("a password in a URL"),
        None if user.len() >= MIN_TOKEN_BYTES && is_too_random_for_name(user) => Some("a token in a URL"),
        _ => None,
    }
}

/// Hosts that accept a key in the path (RPC providers and webhooks), and the key's minimum length.
const KEYED_HOSTS: [(&str, usize); 36] = [
    ("infura.io", 30),
    ("alchemy.com", 20),
    ("alchemyapi.io", 20),
    ("quiknode.pro", 30),
    ("ankr.com", 30),
    ("blastapi.io", 30),
    ("getblock.io", 30),
    ("getblock.us", 30),
    ("chainstack.com", 30),
    ("p2pify.com", 30),
    ("nodereal.io", 30),
    ("chainnodes.org", 30),
    ("drpc.org", 30),
    ("moralis-nodes.com", 30),
    ("tenderly.co", 20),
    ("rivet.cloud", 30),
    ("pokt.network", 20),
    ("grove.city", 8),
    ("lava.build", 30),
    ("allnodes.com", 20),
    ("validationcloud.io", 30),
    ("blockpi.network", 30),
    ("omniatech.io", 30),
    ("zan.top", 30),
    ("thirdweb.com", 30),
    ("developer.coinbase.com", 30),
    ("nownodes.io", 30),
    ("dwellir.com", 30),
    ("1rpc.io", 16),
    ("hooks.slack.com", 20),
    ("discord.com", 40),
    ("discordapp.com", 40),
    ("webhook.office.com", 30),
    ("outlook.office.com", 30),
    ("maker.ifttt.com", 20),
    ("hook.make.com", 30),
];

/// Whether `name` is `host` or a subdomain of it.
fn is_host_or_subdomain(name: &str, host: &str) -> bool {
    let above = name.len().checked_sub(host.len()).and_then(|at| name.get(..at));
    ends_with_ignore_case(name, host) && above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
}

/// Whether the text is too random for a chosen name: hexadecimal, or mixed-case letters with digits.
fn is_too_random_for_name(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_' || b == b'.')
        && is_hex_or_mixed_alphanumeric(text)
}

/// A token recognized by its separators.
fn find_separated_token(text: &str, marks: CharacterClasses) -> Option<&'static str> {
    let is_suspect = marks.has_any(CharacterClasses::EQUALS)
        || marks.has_any(CharacterClasses::COLON) && marks.has_any(CharacterClasses::UPPER) && text.contains(":AA")
        || marks.has_any(CharacterClasses::DOT) && text.contains(".atlasv1.")
        || marks.has_any(CharacterClasses::SHELL) && text.contains("access_token$")
        || marks.has_any(CharacterClasses::UPPER) && text.contains("Q~");
    (is_suspect && STRUCTURED.is_match(text.as_bytes())).then_some("a token")
}

/// The password after the user in curl's arguments or in a line of `.netrc`.
fn find_password_after_user(text: &str, marks: CharacterClasses) -> Option<&'static str> {
    if !marks.has_any(CharacterClasses::SPACE) {
        return None;
    }
    let of_curl = || {
        if !(marks.has_any(CharacterClasses::COLON) && marks.has_any(CharacterClasses::DASH)) {
            return None;
        }
        let mut words = text.split_once("curl ")?.1.split_ascii_whitespace();
        words.find(|word| matches!(*word, "-u" | "--user"))?;
        words.next()?.split_once(':').map(|(_, password)| password)
    };
    let of_netrc = || {
        let line = text.lines().find_map(|line| line.trim_start().strip_prefix("machine "))?;
        let words: Vec<&str> = line.split_ascii_whitespace().take(5).collect();
        if let [_host, "login", _user, "password", password] = words[..] { Some(password) } else { None }
    };
    of_curl()
        .filter(|password| is_plausible_key(password))
        .or_else(|| of_netrc().filter(|password| is_plausible_key(password)))?;
    Some("a password")
}

/// `private key: 0x…`, with a key's 32 bytes.
static NAMED_KEY: LazyLock<Regex> = LazyLock::new(|| {
    compile_multiline(
        r#"(?i-u)(?:(?:private|secret)(?:[\ _-]?sign(?:ing|er))?|wallet|deployer|account)[\ _-]?(?:key|hex)["']?
        [^0-9a-z]{1,4}(?:(?:is|hex|was)[^0-9a-z]{1,3}){0,2}(?:0x)?[0-9a-f]{64}(?:[^0-9a-z]|$)"#,
    )
});

/// Telegram, Azure AD, Azure storage, shared access signatures, Terraform Cloud and Braintree.
static STRUCTURED: LazyLock<Regex> = LazyLock::new(|| {
    compile_multiline(
        r"(?-u)[0-9]{8,10}:AA[A-Za-z0-9_-]{33}|[0-9]Q~[A-Za-z0-9_.~-]{31}
        |(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/]{40,}=
        |[?&]sig=[A-Za-z0-9%+/]{0,9}[G-Zg-wyz%+/][A-Za-z0-9%+/]{33,}|X-Amz-(?:Signature|Security-Token)=[A-Za-z0-9%]{40,}
        |[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{40,}
        |\baccess_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}",
    )
});

/// `seed phrase: w1 w2 …`; the words are looked up in the BIP-39 list.
static NAMED_PHRASE: LazyLock<Regex> = LazyLock::new(|| {
    compile_multiline(
        r#"(?i-u)(?:mnemonic|phrase|seed|words|wallet)["']?\s*(?::|=|\bis\b)[\s"':]{0,3}([a-z]{3,8}(?:[\ ,]{1,2}[a-z]{3,8}){11,23})"#,
    )
});

/// Compiles a pattern that spans several lines.
fn compile_multiline(pattern: &str) -> Regex {
    Regex::new(&format!("(?x){pattern}")).expect("a test compiles every pattern of this module")
}

/// A seed phrase that is labelled as one.
fn find_labelled_phrase(text: &str) -> Option<&'static str> {
    let mut found = NAMED_PHRASE.captures_iter(text.as_bytes()).filter_map(|found| found.get(1));
    let is_phrase = |words: &[u8]| std::str::from_utf8(words).is_ok_and(phrase::begins_announced_phrase);
    found.any(|words| is_phrase(words.as_bytes())).then_some(phrase::KIND)
}

/// `name=value`, `name: value` or `Bearer value` in prose, in a header or in a URL's query.
fn find_assigned_secret(text: &str, marks: CharacterClasses) -> Option<&'static str> {
    const PIECES: TokenSeparators = TokenSeparators::ascii(b"?&;,#\"'()[]{}");
    let colon = || colon_positions(text).any(|at| !text[at + 1..].starts_with("//"));
    if !marks.has_any(CharacterClasses::SPACE | CharacterClasses::EQUALS) && !colon() {
        return None;
    }
    let is_query = marks.has_any(CharacterClasses::COLON) && text.contains("://");
    let (mut pieces, mut before) = (PIECES.split(text).peekable(), "");
    while let Some(piece) = pieces.next() {
        let next = pieces.peek().copied().unwrap_or("");
        if let Some(kind) = authorization_secret_kind(piece, next) {
            return Some(kind);
        }
        let Some((name, value)) = piece.split_once(['=', ':']) else {
            before = piece;
            continue;
        };
        // `//registry.example/:_authToken=…`
        let inner = if name.ends_with('/') { value.split_once('=') } else { None };
        let (name, value) = inner.unwrap_or((name, value));
        let name = if name.is_empty() { before } else { name };
        let value = if value.is_empty() { next } else { value };
        before = piece;
        match secret_value_kind(name) {
            Some(SecretMemberKind::Password) if is_query && is_plausible_password(value) => {
                return Some("an assigned password");
            }
            Some(SecretMemberKind::Password | SecretMemberKind::Key) if is_plausible_key(value) => {
                return Some("an assigned secret");
            }
            Some(SecretMemberKind::KeyToken) if is_plausible_long_key(value) => return Some("an assigned secret"),
            Some(SecretMemberKind::Token) if is_plausible_token(value) => return Some("an assigned token"),
            Some(SecretMemberKind::KeyBytes) if is_key_bytes(value) => return Some("an assigned private key"),
            None if is_query
                && is_secret_query_key(name)
                && is_plausible_token(value)
                && !is_public_hex(name, value) =>
            {
                return Some("a key in a URL");
            }
            _ => {}
        }
    }
    None
}

/// Names that denote a credential in a URL's query but not elsewhere.
fn is_secret_query_key(name: &str) -> bool {
    const NAMES: [&str; 8] = ["key", "dkey", "auth", "sig", "signature", "code", "pass", "appid"];
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Whether an explorer's URL has hexadecimal of this length in this parameter: an account, a digest or a signature.
fn is_public_hex(name: &str, value: &str) -> bool {
    let names = ["sig", "signature", "code"].iter().any(|known| name.eq_ignore_ascii_case(known));
    names && value.len() >= 40 && is_hex(value)
}

/// The value after `Bearer` or `Basic` in an Authorization header.
fn authorization_secret_kind(word: &str, next: &str) -> Option<&'static str> {
    const KIND: Option<&str> = Some("credentials of an Authorization header");
    if word.eq_ignore_ascii_case("bearer") && is_plausible_token(next) {
        return KIND;
    }
    (word.eq_ignore_ascii_case("basic") && (is_plausible_token(next) || is_basic_credentials(next)))
        .then_some(KIND)
        .flatten()
}

/// Minimum length of `user:password` in base64.
const MIN_BASIC_BYTES: usize = 12;

/// Base64 of a text with a colon, like `user:password`. `OpenAIClient` is not base64 of a text.
fn is_basic_credentials(text: &str) -> bool {
    let letters = text.trim_end_matches('=').as_bytes();
    if text.len() < MIN_BASIC_BYTES || !text.len().is_multiple_of(4) || text.len() - letters.len() > 2 {
        return false;
    }
    let mut has_colon = false;
    let is_text = letters.chunks(4).all(|group| {
        let bits = group.iter().try_fold(0, |bits, letter| Some(bits << 6 | base64_sextet(*letter)?));
        let Some(bits) = bits.map(|bits: u32| bits << (6 * (4 - group.len()))) else { return false };
        let [_, bytes @ ..] = bits.to_be_bytes();
        let bytes = &bytes[..group.len() - 1];
        has_colon |= bytes.contains(&b':');
        bytes.iter().all(|byte| !byte.is_ascii_control())
    });
    is_text && has_colon
}

/// The six bits of a base64 character.
fn base64_sextet(letter: u8) -> Option<u32> {
    let bits = match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(bits))
}

/// The kind of value that a member's name indicates.
enum SecretMemberKind {
    Password,
    Key,
    /// A token that can only be a key. Shorter values may name a scheme (`OAuth2.0`).
    KeyToken,
    Token,
    /// The 32 bytes of a private key. The name is also used for public keys.
    KeyBytes,
    Words,
}

/// Maximum length of a name that can match, in bytes; the lists contain nothing near it.
const MAX_PROMISING_NAME: usize = 64;

fn secret_value_kind(name: &str) -> Option<SecretMemberKind> {
    const SHORT: [&str; 3] = ["pwd", "pass", "passwd"];
    const PASSWORDS: [&str; 3] = ["password", "passwd", "passphrase"];
    const KEYS: [&str; 11] = [
        "apikey",
        "secret",
        "secretkey",
        "privatekey",
        "privkey",
        "secretaccesskey",
        "accesskey",
        "encryptionkey",
        "masterkey",
        "authkey",
        "secretvalue",
    ];
    /// Words before `token` that make it a key.
    const OF_TOKENS: [&str; 7] = ["api", "access", "auth", "bearer", "refresh", "session", "secret"];
    const TOKENS: [&str; 6] = ["token", "bearer", "jwt", "sessionid", "authorization", "cookie"];
    const KEY_BYTES: [&str; 8] = [
        "walletkey",
        "deployerkey",
        "keypair",
        "accountkey",
        "privatesigningkey",
        "privatesignerkey",
        "secretsigningkey",
        "secretsignerkey",
    ];
    const WORDS: [&str; 5] = ["mnemonic", "phrase", "seed", "seedword", "recoveryword"];
    /// Suffixes that describe a value's form or environment.
    const FORMS: [&str; 7] = ["hex", "base58", "base64", "pem", "value", "prod", "live"];
    let has_letter = || name.bytes().any(|byte| byte.is_ascii_alphabetic());
    if name.len() > MAX_PROMISING_NAME || name.len() < "pwd".len() || !has_letter() {
        return None;
    }
    if SHORT.iter().any(|short| ends_with_ignore_case(name, short) && last_word(name).len() == short.len()) {
        return Some(SecretMemberKind::Password);
    }
    let mut letters = [0; MAX_PROMISING_NAME];
    let mut length = 0;
    for byte in name.bytes().filter(u8::is_ascii_alphanumeric) {
        letters[length] = byte.to_ascii_lowercase();
        length += 1;
    }
    let plain = &letters[..length];
    // Most words differ in their last letter. Comparing it first avoids a call.
    let is_end = |name: &[u8], word: &str| name.last() == word.as_bytes().last() && name.ends_with(word.as_bytes());
    let form = FORMS.iter().find(|form| is_end(plain, form));
    let plain = &plain[..length - form.map_or(0, |form| form.len())];
    // `api_key_1` is a key, but `token0` and `token1` are the two coins of a pool.
    let number = plain.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let plain = &plain[..plain.len() - number];
    let plain = plain.strip_suffix(b"s").unwrap_or(plain);
    let ends_in = |name: &[u8], words: &[&str]| words.iter().any(|word| is_end(name, word));
    let ends = |words: &[&str]| ends_in(plain, words);
    let is_key_token = || plain.strip_suffix(b"token").is_some_and(|owner| ends_in(owner, &OF_TOKENS));
    match () {
        () if ends(&PASSWORDS) => Some(SecretMemberKind::Password),
        () if ends(&KEYS) => Some(SecretMemberKind::Key),
        () if is_key_token() => Some(SecretMemberKind::KeyToken),
        () if ends(&KEY_BYTES) => Some(SecretMemberKind::KeyBytes),
        () if ends(&WORDS) => Some(SecretMemberKind::Words),
        () if number == 0 && ends(&TOKENS) => Some(SecretMemberKind::Token),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Option<&'static str> {
        find_secret_in_text(text, CharacterClasses::from_text(text))
    }

    #[test]
    fn issued_tokens_are_known_by_their_prefix() {
        for issuer in &issuers::ISSUERS {
            let letters = match issuer.letters {
                issuers::TokenAlphabet::Upper => "A1",
                issuers::TokenAlphabet::Scrambled => "aB",
                _ => "a1",
            };
            let token = format!("{}{}", issuer.prefix, letters.repeat(issuer.least)[..issuer.least].to_owned());
            let token = if issuer.least < 2 { format!("{token}1") } else { token };
            assert_eq!(text(&token), Some(issuer.kind), "{token}");
            assert_eq!(text(&format!("key={token}&x")), Some(issuer.kind), "{token}");
            assert_ne!(text(&format!("prefix{token}")), Some(issuer.kind), "{token}");
        }
    }

    #[test]
    fn patterns_compile() {
        for pattern in [&NAMED_KEY, &STRUCTURED, &NAMED_PHRASE] {
            assert!(!pattern.is_match(b""), "{}", pattern.as_str());
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
            ("https://api.commandlayer.org/?access_token=abcd1234efgh5678ijkl", "an assigned secret"),
            ("https://api.commandlayer.org/?token=abcd1234efgh5678ijkl", "an assigned token"),
            ("https://api.commandlayer.org/?api_key=ujzPdeIgxLdGncfBAepfJBdK", "an assigned secret"),
            ("Bearer ujzPdeIgxLdGncfBAepfJBdK", "credentials of an Authorization header"),
            ("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", "a Hugging Face token"),
            ("access_token$production$abcd1234efgh5678$0123456789abcdef0123456789abcdef", "a token"),
            ("Authorization: Bearer abcdef0123456789abcdef", "credentials of an Authorization header"),
            ("password: hunter2hunter", "an assigned secret"),
            ("Run curl -s -u agent:hunter2hunter https://commandlayer.org/", "a password"),
            ("machine commandlayer.org login agent password hunter2hunter", "a password"),
            ("//npm.commandlayer.org/:_authToken=0123456789abcdef0123456789abcdef", "an assigned secret"),
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
            ("api_token", "Test1234Abcd"),
            ("accessTokens", "Test1234Abcd"),
            ("api_key", "ujzPdeIgxLdGncfBAepfJBdKhoOOLdKLzd"),
            ("secret", "ujzPdeIgxLdGncfBAepfJBdKhoOOLdKLzd"),
            ("access_token", "ujzPdeIgxLdGncfBAepfJBdKhoOOLdKLzd"),
            ("token", "ujzPdeIgxLdGncfBAepfJBdKhoOOLdKLzd"),
            ("mnemonic", "test test test test test test test test test test test junk"),
        ] {
            assert!(find_secret_in_member(name, value).is_some(), "{name}: {value}");
        }
        for (name, value) in [
            ("password", "required"),
            ("password", "see the documentation"),
            ("api_key", "X-API-Key"),
            ("api_key", "${API_KEY_1}"),
            ("api_key", "https://commandlayer.org/v1/keys"),
            ("secret", "sha256:739e0a399de539f0d9ba584e675d82572ccd0df7d5e60e54d834f20190879bac"),
            ("api_key", "OAuthBearerTokenInHeader"),
            ("api_key", "useMyApiKeyInTheHeader"),
            ("api_key", "apiKeyInXApiKeyHeader"),
            ("secret", "setByTheOpsTeamOnly"),
            ("token", "CurveLpUsdcUsdtDai"),
            ("access_token", "OAuth2.0"),
            ("session_token", "base64url"),
            ("auth_token", "jwt-rs256"),
            ("robot_token", "Test1234Abcd"),
            ("access_token", "required"),
            ("access_token", "BearerTokenInAuthorizationHeader"),
            ("token", "USDC"),
            ("token", "WrappedStakedEtherToken"),
            ("token", "Test1234Abcd"),
            ("token", "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"),
            ("key", "a1b2c3d4e5f6"),
            ("pgp_fingerprint", "5016D4969F3822B2C5A2FA4099A26950197DAB0A"),
            ("secret_sharing", "shamir-2of3"),
        ] {
            assert!(find_secret_in_member(name, value).is_none(), "{name}: {value}");
        }
        assert!(
            find_password_in_number("password", &1234.into()).is_some()
                && find_password_in_number("max_tokens", &1234.into()).is_none()
        );
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
            "curl -u user:password https://commandlayer.org/v1",
            "curl -u <user>:<password1> https://commandlayer.org/v1",
            "A virtual machine asks for a login and a password version2 once",
            "https://commandlayer.org/?next=/:page=abcdef0123456789abcdef",
        ] {
            assert_eq!(text(public), None, "{public}");
        }
    }
}
