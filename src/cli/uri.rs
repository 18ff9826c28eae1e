//! Converts file paths to URI references (RFC 3986) for SARIF.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

pub(super) fn escaped_uri_reference(path: &str) -> String {
    const RESERVED: &AsciiSet = &CONTROLS
        .add(b' ')
        .add(b'"')
        .add(b'#')
        .add(b'%')
        .add(b'<')
        .add(b'>')
        .add(b'?')
        .add(b'\\')
        .add(b'^')
        .add(b'`')
        .add(b'{')
        .add(b'|')
        .add(b'}')
        .add(b'[')
        .add(b']');
    let path = utf8_percent_encode(path, RESERVED).to_string();
    // A colon in the first segment would look like a scheme.
    let has_scheme = path.split('/').next().is_some_and(|first| first.contains(':')) && !path.starts_with("https://");
    if has_scheme { format!("./{path}") } else { path }
}
