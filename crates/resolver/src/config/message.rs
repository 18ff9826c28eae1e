//! Messages about invalid values, from those of the deserializer.

use clresolve_core::text::{UntrustedText, nearest_word, strip_url_secrets};

/// Maximum length of an error's detail, in characters: enough for the list of all keys.
const MAX_DETAIL_CHARS: usize = 1000;

/// Removed keys, and what to set instead.
const REMOVED: [(&str, &str); 2] = [
    ("follow", "set `head-poll`, at the top level, and `max-unconfirmed` in [cache] instead"),
    ("ws", "`head-poll`, at the top level, sets how often each endpoint is asked for its newest block"),
];

/// The message of a deserializer, without any value that may be secret.
pub(super) fn redact_secrets(message: &str) -> String {
    let message = strip_url_secrets(&add_key_suggestion(&redact_values(message)));
    UntrustedText::new(&message).with_limit(MAX_DETAIL_CHARS).to_string()
}

/// Completes the message about an unknown key with what to set instead of a removed key, or with the most similar key.
fn add_key_suggestion(message: &str) -> String {
    let Some((head, known)) = message.split_once(", expected ") else { return message.to_owned() };
    let typed = head.strip_prefix("unknown field `").and_then(|rest| rest.strip_suffix('`'));
    let Some(typed) = typed else { return message.to_owned() };
    if let Some((key, instead)) = REMOVED.iter().find(|(key, _)| *key == typed) {
        return format!("`{key}` is no longer a key: {instead}");
    }
    match nearest_word(typed, known.split('`').skip(1).step_by(2)) {
        Some(key) => format!("unknown field `{typed}`, did you mean `{key}`? expected {known}"),
        None => message.to_owned(),
    }
}

/// Removes a value of the wrong type from the message: it may be a URL with an API key.
fn redact_values(message: &str) -> String {
    match message.split_once("invalid type: string \"").map(|(before, rest)| (before, rest.rsplit_once("\", expected")))
    {
        Some((before, Some((_, expected)))) => format!("{before}invalid type: string, expected{expected}"),
        _ => message.to_owned(),
    }
}
