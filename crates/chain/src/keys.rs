//! Removes API keys, which are part of endpoint URLs, from text that endpoints send.

use url::Url;

/// Minimum length of a part of a URL that is treated as an API key.
const MIN_KEY_BYTES: usize = 8;

/// Removes parts of an endpoint's URL, which may be API keys, from text sent by the endpoint.
pub(crate) fn redact_url_keys(url: &Url, text: &str) -> String {
    let segments = url.path_segments().into_iter().flatten();
    let query = url.query().unwrap_or_default().split(['&', '=']);
    let user = [url.username(), url.password().unwrap_or_default()];
    let host = url.domain().unwrap_or_default().split('.');
    let keys = segments.chain(query).chain(user).chain(host).filter(|part| part.len() >= MIN_KEY_BYTES);
    keys.fold(text.to_owned(), |text, key| text.replace(key, "[key]"))
}
