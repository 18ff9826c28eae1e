//! The path of a request to the gate, judged whole and raw: what the next hop could read as another agent is refused.

use percent_encoding::percent_decode_str;

use super::query;
use crate::name::EnsName;
use crate::reason::Refusal;

/// Segments before the name: the empty one before the first slash, `v1`, and `gate` or `envoy`.
const BEFORE_NAME: usize = 3;

/// Characters that must not stand after the name, neither plain nor as an escape: some server takes them for the end
/// of a segment or of the path, or decodes once more.
const ENDS: &[u8] = br"#%./;?\";

/// Whether the path is one and the same for every server that reads it.
///
/// The name is decoded once and must be in normal form; one that has no normal form is left to the resolver. After it
/// stand whole segments alone, with at most one slash at the end.
pub(super) fn check(path: &str) -> Result<(), Refusal> {
    let mut segments = path.split('/').skip(BEFORE_NAME);
    let Some(name) = segments.next() else { return Ok(()) };
    let mut rest: Vec<&str> = segments.collect();
    if rest.last().is_some_and(|last| last.is_empty()) && !name.is_empty() {
        rest.pop();
    }
    let is_one = !is_step(name) && is_normal_or_no_name(name) && rest.iter().all(|segment| is_plain(segment));
    let is_named = !name.is_empty() || rest.is_empty();
    if (is_one && is_named) || clresolve_core::mutant!("ambiguous-paths-pass") {
        Ok(())
    } else {
        Err(Refusal::RequestAmbiguous)
    }
}

/// `.` or `..`.
fn is_step(segment: &str) -> bool {
    matches!(segment, "." | "..")
}

fn is_normal_or_no_name(segment: &str) -> bool {
    let Ok(name) = percent_decode_str(segment).decode_utf8() else { return true };
    EnsName::parse(&name).map_or(true, |normal| normal.as_str() == name)
}

/// Whether the segment is not empty, no step, and holds neither a separator nor an escape of one.
fn is_plain(segment: &str) -> bool {
    if segment.is_empty() || is_step(segment) || segment.contains(['\\', ';']) {
        return false;
    }
    // Bytes that are no UTF-8 may be an overlong form of a dot or a slash.
    percent_decode_str(segment).decode_utf8().is_ok() && segment.split('%').skip(1).all(is_harmless_escape)
}

/// Whether the two digits at the start are an escape of a byte that separates nothing.
fn is_harmless_escape(after_percent: &str) -> bool {
    let digits = after_percent.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
    let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
    byte.is_some_and(|byte| byte > 0x1f && !ENDS.contains(&byte))
}

/// The parameter of the query of `/v1/gate`.
pub(super) const PARAMETERS: [&str; 1] = ["network"];

/// The network that the query of `/v1/gate` asks for. Another parameter is refused: a misspelt one would leave the
/// decision wider than the client asked for.
pub(super) fn network(query: &str) -> Result<Option<String>, Refusal> {
    match query::read(query, PARAMETERS) {
        Ok([network]) if network.as_deref() != Some("") => Ok(network),
        _ => Err(Refusal::RequestMalformed),
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
            assert_eq!(check(path), Err(Refusal::RequestAmbiguous), "{path}");
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
            "/v1/gate/no%20name/summarize",
            "/v1/gate/%ff.eth",
        ] {
            assert_eq!(check(path), Ok(()), "{path}");
        }
    }

    #[test]
    fn the_query_names_one_network_or_nothing() {
        assert_eq!(network(""), Ok(None));
        assert_eq!(network("network=eip155%3A8453"), Ok(Some("eip155:8453".to_owned())));
        assert_eq!(network("network=eip155:1"), Ok(Some("eip155:1".to_owned())));
        for bad in [
            "network",
            "network=",
            "network=eip155:1&network=eip155:1",
            "netwrok=eip155:1",
            "network=a&x=1",
            "profile=a",
        ] {
            assert_eq!(network(bad), Err(Refusal::RequestMalformed), "{bad}");
        }
    }
}
