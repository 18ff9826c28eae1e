//! A file as a URI reference (RFC 3986), as SARIF names it.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// A path as a URI reference.
pub(super) fn reference(path: &str) -> String {
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
    // A colon in the first segment would end a scheme.
    let has_scheme = path.split('/').next().is_some_and(|first| first.contains(':')) && !path.starts_with("https://");
    if has_scheme { format!("./{path}") } else { path }
}
