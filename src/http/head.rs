//! The head of a request, judged before hyper sees it: what hyper would refuse it refuses with a bare status of its own,
//! and on the gate only 200 and 403 may ever be said.
//!
//! The rules are hyper's and a little stricter, so that hyper refuses nothing that came through here.

use std::mem::MaybeUninit;

use axum::http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use axum::http::{HeaderName, HeaderValue, Method, Uri};

use super::gate;
use crate::config::MAX_HEADERS;
use crate::reason::Refusal;

/// What the bytes that have arrived so far are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// The begin of a head.
    Partial,
    /// A head of so many bytes, and what comes after it.
    Whole(usize, Framing),
    /// No head that is answered.
    Bad(Refusal),
}

/// How the body of a request is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// It has so many bytes.
    Sized(u64),
    /// It comes in chunks, whose end only their reader knows.
    Chunked,
}

/// Whom a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Face {
    Gate,
    Report,
}

/// Judges `bytes`, of which a head may take at most `limit`, with at most `headers` headers.
pub(super) fn judge(bytes: &[u8], limit: usize, headers: usize) -> Head {
    let mut room = [const { MaybeUninit::<httparse::Header<'_>>::uninit() }; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut []);
    let room = &mut room[..headers.min(MAX_HEADERS)];
    match httparse::ParserConfig::default().parse_request_with_uninit_headers(&mut request, bytes, room) {
        Ok(httparse::Status::Complete(length)) if length > limit => Head::Bad(Refusal::HeadTooLarge),
        Ok(httparse::Status::Complete(length)) => match framing(&request) {
            Some(framing) => Head::Whole(length, framing),
            None => Head::Bad(Refusal::RequestMalformed),
        },
        Ok(httparse::Status::Partial) if bytes.len() >= limit => Head::Bad(Refusal::HeadTooLarge),
        Ok(httparse::Status::Partial) => Head::Partial,
        Err(httparse::Error::TooManyHeaders) => Head::Bad(Refusal::HeadTooLarge),
        Err(_) => Head::Bad(Refusal::RequestMalformed),
    }
}

/// How the body is delimited, if the request can be answered at all. One that gives both a length and chunks is how
/// requests are smuggled past proxies (RFC 9112, 6.1), and so is a second length.
fn framing(request: &httparse::Request<'_, '_>) -> Option<Framing> {
    Method::from_bytes(request.method?.as_bytes()).ok()?;
    Uri::try_from(request.path?).ok()?;
    let mut length = None;
    let mut chunked = false;
    for header in request.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes()).ok()?;
        HeaderValue::from_bytes(header.value).ok()?;
        if name == CONTENT_LENGTH {
            if length.replace(decimal(header.value)?).is_some() {
                return None;
            }
        } else if name == TRANSFER_ENCODING {
            let is_first = !std::mem::replace(&mut chunked, true);
            if !is_first || request.version == Some(0) || !header.value.eq_ignore_ascii_case(b"chunked") {
                return None;
            }
        }
    }
    match (length, chunked) {
        (Some(_), true) => None,
        (None, true) => Some(Framing::Chunked),
        (length, false) => Some(Framing::Sized(length.unwrap_or(0))),
    }
}

/// A length of body, in digits alone. The largest number that hyper reads is two less than the type's.
fn decimal(value: &[u8]) -> Option<u64> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(value).ok().filter(|_| digits)?.parse::<u64>().ok()?;
    (number < u64::MAX - 1).then_some(number)
}

/// Whom a head that is refused was for, as far as it got. Where that cannot be told it was for the gate: what is said
/// must never open one.
pub(super) fn face(bytes: &[u8]) -> Face {
    let text = String::from_utf8_lossy(bytes.trim_ascii_start());
    let (line, is_line_whole) = match text.split_once(['\r', '\n']) {
        Some((line, _)) => (line, true),
        None => (&*text, false),
    };
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let is_target_whole = is_line_whole || words.next().is_some();
    let path = path(target);
    let is_told = if is_target_whole { is_target(target) } else { path.matches('/').count() > SEGMENTS_OF_A_FACE };
    // Another version of HTTP hides its targets behind this method.
    let is_hidden = method == "PRI";
    if is_hidden || !is_told || gate::is_gate(path) || gate::is_gate_in_disguise(path) {
        Face::Gate
    } else {
        Face::Report
    }
}

/// As many segments of a path tell whom it is for.
const SEGMENTS_OF_A_FACE: usize = 2;

/// A path, an URL, `*`, or host and port: the four forms of a target (RFC 9112, 3.2).
fn is_target(target: &str) -> bool {
    target.starts_with('/') || target == "*" || target.contains(':')
}

fn path(target: &str) -> &str {
    let path = match target.split_once("://") {
        // A path may hold a URL.
        Some((scheme, rest)) if !scheme.contains(['/', '?', '#']) => rest.find('/').map_or("", |start| &rest[start..]),
        _ => target,
    };
    path.split(['?', '#']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1024;

    fn of(text: &str) -> Head {
        judge(text.as_bytes(), LIMIT, 8)
    }

    #[test]
    fn a_head_is_whole_partial_or_bad() {
        let head = "GET /v1/gate/a.eth HTTP/1.1\r\nhost: x\r\n\r\n";
        assert_eq!(of(head), Head::Whole(head.len(), Framing::Sized(0)));
        assert_eq!(of(&format!("{head}GET / HTTP/1.1\r\n\r\n")), Head::Whole(head.len(), Framing::Sized(0)));
        for end in 1..head.len() {
            assert_eq!(of(&head[..end]), Head::Partial, "{end}");
        }
        let sized = "\r\nPOST http://x/ HTTP/1.0\r\nContent-Length: 07\r\n\r\n";
        assert_eq!(of(sized), Head::Whole(sized.len(), Framing::Sized(7)));
        let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n";
        assert_eq!(of(chunked), Head::Whole(chunked.len(), Framing::Chunked));
        for bad in [
            "\u{16}\u{3}\u{1}",
            "G{T / HTTP/1.1\r\n\r\n",
            "GET / HTTP/2.0\r\n\r\n",
            "GET / HTTP/1.1\r\nhost : x\r\n\r\n",
            "GET / HTTP/1.1\r\nhost: x\r\n folded\r\n\r\n",
            "GET /<> HTTP/1.1\r\n\r\n",
            "GET nowhere\u{e9} HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: +5\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: \r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 18446744073709551615\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n",
            "POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n",
        ] {
            assert_eq!(of(bad), Head::Bad(Refusal::RequestMalformed), "{bad:?}");
        }
        let long = format!("GET / HTTP/1.1\r\nx: {}", "y".repeat(LIMIT));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(9));
        for bad in [long.clone(), format!("{long}\r\n\r\n"), many] {
            assert_eq!(of(&bad), Head::Bad(Refusal::HeadTooLarge), "{bad:?}");
        }
    }

    #[test]
    fn what_may_be_for_the_gate_is() {
        for gate in [
            "",
            "G",
            "GET",
            "GET ",
            "GET /",
            "GET /v1",
            "GET /v1/",
            "GET /v1/ga",
            "GET /v1/gate",
            "GET /v1/gate/a b c d",
            "GET /livez",
            "GET *",
            "GET /v1/gate?x HTTP/1.1\r\n",
            "\u{16}\u{3}\u{1}",
            "\r\nGET /v1/envoy/a/b/c HTTP/9.9\r\n",
            "GET nowhere HTTP/1.1",
            "GET http://x/v1/gate/a HTTP/1.1\r\n",
            "GET http://x",
            "GET /v1/gate/a?u=http://x/livez HTTP/1.1\r\n",
            "GET /v1/envoy/a/b/http://x/livez HTTP/1.1\r\n",
            "GET http://x/v1/gate/http://y/livez HTTP/1.1\r\n",
            "GET //v1/gate/a HTTP/1.1",
            "GET /v1/%67ate/a HTTP/1.1",
            "GET /V1/Gate/a HTTP/1.1",
            "GET /a/../v1/./gate;b/a HTTP/1.1",
            "GET \\v1\\gate HTTP/1.1",
            "GET /v1/%6",
            "GET /%",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ] {
            assert_eq!(face(gate.as_bytes()), Face::Gate, "{gate:?}");
        }
        for report in [
            "GET / HTTP/1.1\r\n",
            "GET /v1 HTTP/1.1\r\n",
            "GET /v1/ HTTP/1.1\r\n",
            "GET /v1/verdicts/yyyy",
            "GET /v1/verdicts/a?/v1/gate HTTP/1.1",
            "GET http://x/livez HTTP/1.1",
            "GET /livez?u=http://x/v1/gate/a HTTP/1.1",
            "OPTIONS * HTTP/1.1",
            "CONNECT example.com:443 HTTP/1.1",
            "GET http://x HTTP/1.1\r\n",
            "GET /v1/gates HTTP/1.1",
        ] {
            assert_eq!(face(report.as_bytes()), Face::Report, "{report:?}");
        }
    }
}
