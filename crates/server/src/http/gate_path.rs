//! Validates the whole raw path of a gate request. Any path that the next hop could read as another agent is rejected.

use axum::http::Uri;
use clresolve_core::name::EnsName;
use clresolve_core::reason::RefusalCode;
use percent_encoding::percent_decode_str;

use super::query;

/// Number of segments before the name: the empty one before the first slash, `v1`, and `gate` or `envoy`.
const BEFORE_NAME: usize = 3;

/// Characters that must not occur after the name, neither plain nor percent-encoded. Some servers treat them as the end
/// of a segment or of the path, or decode twice.
const ENDS: &[u8] = br"#%./;?\";

/// Checks that every server reads the path the same way.
///
/// The name is decoded once and must be in normal form. A name without a normal form is left to the resolver. After the
/// name come only complete segments, with at most one trailing slash. Control characters are rejected everywhere.
pub(super) fn check_gate_path(path: &str) -> Result<(), RefusalCode> {
    let mut segments = path.split('/').skip(BEFORE_NAME);
    let Some(name) = segments.next() else { return Ok(()) };
    let mut rest: Vec<&str> = segments.collect();
    if rest.last().is_some_and(|last| last.is_empty()) && !name.is_empty() {
        rest.pop();
    }
    let is_one = !is_dot_segment(name) && is_name_segment(name) && rest.iter().all(|segment| is_plain_segment(segment));
    let is_named = !name.is_empty() || rest.is_empty();
    if (is_one && is_named) || clresolve_core::mutant!("ambiguous-paths-pass") {
        Ok(())
    } else {
        Err(RefusalCode::RequestAmbiguous)
    }
}

/// The name and the verb in a path of `/v1/gate` that [`check_gate_path`] accepts, if it needs no decoding and there is
/// no query.
pub(super) fn split_plain_path(uri: &Uri) -> Option<(&str, Option<&str>)> {
    let path = uri.path().strip_prefix("/v1/gate/").filter(|path| !path.contains('%') && uri.query().is_none())?;
    let mut segments = path.strip_suffix('/').unwrap_or(path).split('/');
    let (name, verb) = (segments.next()?, segments.next());
    segments.next().is_none().then_some((name, verb))
}

/// Whether the segment is `.` or `..`.
fn is_dot_segment(segment: &str) -> bool {
    matches!(segment, "." | "..")
}

/// Whether the segment is a name in normal form, or one that the resolver will reject, without control characters.
fn is_name_segment(segment: &str) -> bool {
    let Ok(name) = percent_decode_str(segment).decode_utf8() else { return true };
    !name.contains(is_risky_character) && EnsName::parse(&name).map_or(true, |normal| normal.as_str() == name)
}

/// Whether some server truncates, drops or reorders text at this character: ASCII and Latin-1 (C1) control characters,
/// and bidirectional controls (Unicode's `Bidi_Control`).
fn is_risky_character(character: char) -> bool {
    let is_bidi =
        matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || is_bidi
}

/// Whether the segment is neither empty nor a dot segment, and contains no control character or separator, plain or
/// escaped.
fn is_plain_segment(segment: &str) -> bool {
    if segment.is_empty() || is_dot_segment(segment) || segment.contains(['\\', ';']) {
        return false;
    }
    // Bytes that are not UTF-8 may be an overlong encoding of a dot or a slash.
    percent_decode_str(segment).decode_utf8().is_ok_and(|text| !text.contains(is_risky_character))
        && segment.split('%').skip(1).all(is_non_separator_escape)
}

/// Whether the two digits at the start encode a byte that is no separator.
fn is_non_separator_escape(after_percent: &str) -> bool {
    let digits = after_percent.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
    let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
    byte.is_some_and(|byte| !ENDS.contains(&byte))
}

/// The query parameter of `/v1/gate`.
pub(super) const PARAMETERS: [&str; 1] = ["network"];

/// The network in the query of `/v1/gate`. Any other parameter is rejected: a misspelt one would make the decision more
/// permissive than the client intended.
pub(super) fn parse_network(query: &str) -> Result<Option<String>, RefusalCode> {
    match query::parse_query_parameters(query, PARAMETERS) {
        Ok([network]) if network.as_deref() != Some("") => Ok(network),
        _ => Err(RefusalCode::RequestMalformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_two_servers_could_read_differently_is_ambiguous() {
        for path in [
            "/v1/envoy/good.eth/summarize/../../evil.eth/pay",
            "/v1/envoy/good.eth/summarize/..;/..;/evil.eth/pay",
            "/v1/envoy/good.eth/summarize/%2e%2e/%2E%2e/evil.eth/pay",
            "/v1/envoy/good.eth/summarize/%252e%252e/evil.eth/pay",
            "/v1/envoy/good.eth/summarize//evil.eth/pay",
            "/v1/envoy/good.eth/summarize//",
            "/v1/envoy/good.eth/summarize/.",
            "/v1/envoy/good.eth/summarize/..",
            "/v1/envoy/good.eth/summarize/a.%2e/b",
            "/v1/envoy/good.eth/summarize/..\\..\\evil.eth",
            "/v1/envoy/good.eth/summarize/%5c..%5C",
            "/v1/envoy/good.eth/summarize/%2fevil.eth",
            "/v1/envoy/good.eth/summarize/%00",
            "/v1/envoy/good.eth/summarize/a%1F",
            "/v1/envoy/good.eth/summarize%23",
            "/v1/envoy/good.eth/summarize%3fnetwork=1",
            "/v1/envoy/good.eth/summarize%3b",
            "/v1/envoy/good.eth/summarize;v=1/x",
            "/v1/envoy/good.eth/summarize/%c0%ae%c0%ae/evil.eth",
            "/v1/envoy/good.eth/summarize/%",
            "/v1/envoy/good.eth/summarize/%2",
            "/v1/envoy/good.eth/summarize/%u002e",
            "/v1/gate/Good.eth",
            "/v1/gate/%47ood.eth/summarize",
            "/v1/gate/g\u{f6}\u{308}\u{308}od.eth/./summarize",
            "/v1/gate/.",
            "/v1/gate/../../livez",
            "/v1/gate//summarize",
            "/v1/gate//",
            "/v1/gate/good.eth//",
            "/v1/gate/good.eth/summarize//",
        ] {
            assert_eq!(check_gate_path(path), Err(RefusalCode::RequestAmbiguous), "{path}");
        }
    }

    #[test]
    fn controls_anywhere_in_a_path_are_ambiguous() {
        let escaped =
            |character: char| character.to_string().bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
        let controls = [
            '\0', '\t', '\r', '\n', '\u{1f}', '\u{7f}', '\u{80}', '\u{85}', '\u{9f}', '\u{61c}', '\u{200e}', '\u{200f}',
        ];
        for character in controls.into_iter().chain('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}') {
            let (raw, escaped) = (character.to_string(), escaped(character));
            for text in [&raw, &escaped, &escaped.to_uppercase()] {
                for path in [
                    format!("/v1/gate/good{text}.eth"),
                    format!("/v1/gate/{text}/summarize"),
                    format!("/v1/gate/good.eth/{text}"),
                    format!("/v1/envoy/good.eth/summarize/a{text}b/c"),
                ] {
                    assert_eq!(check_gate_path(&path), Err(RefusalCode::RequestAmbiguous), "{path:?}");
                }
            }
        }
    }

    #[test]
    fn whole_segments_after_a_name_in_normal_form_pass() {
        for path in [
            "/v1/gate",
            "/v1/gate/",
            "/v1/gate/good.eth",
            "/v1/gate/good.eth/",
            "/v1/gate/good%2eeth/sum%6darize/",
            "/v1/envoy/good.eth/summarize/x402/a%20b/v1.0/...",
            "/v1/envoy/g%C3%B6od.eth/summarize/%e2%82%ac",
            "/v1/envoy/good.eth/summarize/~/%c2%a0/%e2%80%8d/%e2%81%a5",
            "/v1/gate/no%20name/summarize",
            "/v1/gate/%ff.eth",
        ] {
            assert_eq!(check_gate_path(path), Ok(()), "{path}");
        }
    }

    #[test]
    fn the_query_names_one_network_or_nothing() {
        assert_eq!(parse_network(""), Ok(None));
        assert_eq!(parse_network("network=eip155%3A8453"), Ok(Some("eip155:8453".to_owned())));
        assert_eq!(parse_network("network=eip155:1"), Ok(Some("eip155:1".to_owned())));
        for bad in [
            "network",
            "network=",
            "network=eip155:1&network=eip155:1",
            "netwrok=eip155:1",
            "network=a&x=1",
            "profile=a",
        ] {
            assert_eq!(parse_network(bad), Err(RefusalCode::RequestMalformed), "{bad}");
        }
    }
}
