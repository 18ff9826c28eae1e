//! Finds what hyper hides of a request head: a fragment in its target, which hyper cuts off, and a `Content-Length`
//! beside `Transfer-Encoding`, which hyper drops.
//!
//! A client may send its next head together with the preceding body. The scan therefore reads everything that a client
//! sends, and counts body bytes to find the start of the next head.

use std::collections::VecDeque;

/// Number of bytes of a line that are kept: the longest header name of interest, and a length with some whitespace.
const KEPT: usize = 64;

/// Maximum number of heads that are scanned ahead of request processing. Later heads are not scanned.
const MOST_AHEAD: usize = 64;

/// What the scan found in a request head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RequestHeadFindings {
    /// The target contains a `#`.
    pub(super) fragment: bool,
    /// The head has both `Content-Length` and `Transfer-Encoding`, which allows smuggling a second request past a proxy
    /// (RFC 9112, 6.3).
    pub(super) two_lengths: bool,
    pub(super) unseen: bool,
}

/// An incremental scan of the heads on one connection, fed with pieces of any size.
#[derive(Debug, Default)]
pub(super) struct RequestHeadScanner {
    /// The start of the line in lower case, at most [`KEPT`] bytes.
    line: Vec<u8>,
    /// The length of the line so far, in bytes. It may exceed the part that is kept.
    length: usize,
    stage: RequestHeadStage,
    fragment: bool,
    body: Option<DeclaredBodyLength>,
    encoding: bool,
    /// Findings for heads whose requests have not started yet, oldest first.
    found: VecDeque<RequestHeadFindings>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RequestHeadStage {
    #[default]
    RequestLine,
    Headers,
    /// This many bytes of a body are still to come.
    Body(u64),
    /// The scan cannot find the start of the next head, so all further heads are unscanned.
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeclaredBodyLength {
    Bytes(u64),
    Unreadable,
}

impl RequestHeadScanner {
    pub(super) fn scan_bytes(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            bytes = match self.stage {
                RequestHeadStage::Lost => return,
                RequestHeadStage::Body(left) => self.skip_body(bytes, left),
                RequestHeadStage::RequestLine | RequestHeadStage::Headers => self.consume_line_bytes(bytes),
            };
        }
    }

    /// Returns the findings for the request that starts now.
    pub(super) fn take_findings(&mut self) -> RequestHeadFindings {
        self.found.pop_front().unwrap_or_else(|| {
            self.stage = RequestHeadStage::Lost;
            RequestHeadFindings { unseen: true, ..RequestHeadFindings::default() }
        })
    }

    /// Skips body bytes. Returns the bytes after them.
    fn skip_body<'a>(&mut self, bytes: &'a [u8], left: u64) -> &'a [u8] {
        let here = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        let left = left - here as u64;
        self.stage = if left == 0 { RequestHeadStage::RequestLine } else { RequestHeadStage::Body(left) };
        &bytes[here..]
    }

    /// Consumes the rest of a line, or a part of it. Returns the bytes after it.
    fn consume_line_bytes<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let text = &bytes[..end.unwrap_or(bytes.len())];
        self.fragment |= self.stage == RequestHeadStage::RequestLine && text.contains(&b'#');
        self.buffer_line_text(text);
        match end {
            Some(end) => {
                self.finish_line();
                &bytes[end + 1..]
            }
            None => &[],
        }
    }

    fn buffer_line_text(&mut self, text: &[u8]) {
        let room = KEPT - self.line.len();
        self.line.extend(text.iter().take(room).map(u8::to_ascii_lowercase));
        self.length = self.length.saturating_add(text.len());
    }

    fn finish_line(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        let is_whole = std::mem::take(&mut self.length) <= KEPT;
        let is_empty = matches!(&line[..], b"" | b"\r");
        match self.stage {
            // Empty lines before a request are ignored.
            RequestHeadStage::RequestLine if is_empty => {}
            RequestHeadStage::RequestLine => self.stage = RequestHeadStage::Headers,
            RequestHeadStage::Headers if is_empty => self.finish_head(),
            RequestHeadStage::Headers | RequestHeadStage::Body(_) | RequestHeadStage::Lost => {
                let mut parts = line.splitn(2, |byte| *byte == b':');
                let (name, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
                self.encoding |= name == b"transfer-encoding";
                if name == b"content-length" {
                    let stated =
                        if is_whole { DeclaredBodyLength::parse_length(value) } else { DeclaredBodyLength::Unreadable };
                    let agrees = self.body.is_none_or(|before| before == stated);
                    self.body = Some(if agrees { stated } else { DeclaredBodyLength::Unreadable });
                }
            }
        }
        line.clear();
        self.line = line;
    }

    fn finish_head(&mut self) {
        let (body, encoding) = (self.body.take(), std::mem::take(&mut self.encoding));
        let fragment = std::mem::take(&mut self.fragment);
        if self.found.len() == MOST_AHEAD {
            self.stage = RequestHeadStage::Lost;
            return;
        }
        self.found.push_back(RequestHeadFindings { fragment, two_lengths: encoding && body.is_some(), unseen: false });
        self.stage = match body {
            // The connection closes after the response to a chunked request.
            _ if encoding => RequestHeadStage::Lost,
            Some(DeclaredBodyLength::Unreadable) => RequestHeadStage::Lost,
            None | Some(DeclaredBodyLength::Bytes(0)) => RequestHeadStage::RequestLine,
            Some(DeclaredBodyLength::Bytes(bytes)) => RequestHeadStage::Body(bytes),
        };
    }
}

impl DeclaredBodyLength {
    fn parse_length(value: &[u8]) -> Self {
        let digits = value.trim_ascii();
        let is_number = digits.iter().all(u8::is_ascii_digit);
        let number = std::str::from_utf8(digits).ok().filter(|_| is_number).and_then(|digits| digits.parse().ok());
        number.map_or(Self::Unreadable, Self::Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The findings for the heads in `sent`. They are the same whatever the sizes of the pieces.
    fn found<const N: usize>(sent: &str) -> [RequestHeadFindings; N] {
        let in_pieces = |size: usize| {
            let mut scan = RequestHeadScanner::default();
            sent.as_bytes().chunks(size).for_each(|piece| scan.scan_bytes(piece));
            [(); N].map(|()| scan.take_findings())
        };
        let whole = in_pieces(sent.len().max(1));
        for size in 1..sent.len() {
            assert_eq!(in_pieces(size), whole, "{size} of {sent:?}");
        }
        whole
    }

    #[test]
    fn a_fragment_counts_in_the_target_alone() {
        assert!(found::<1>("GET /v1/gate/a.eth#b HTTP/1.1\r\n\r\n")[0].fragment);
        assert!(found::<1>("\r\nGET /# HTTP/1.1\n\n")[0].fragment);
        assert_eq!(found("GET / HTTP/1.1\r\nx: #\r\n\r\n#"), [RequestHeadFindings::default()]);
        assert!(found::<1>("GET / HTTP/1.1\r\nx: y\r\n")[0].unseen, "its end has not come");
    }

    #[test]
    fn two_lengths_count_in_either_order_and_in_the_head_alone() {
        let both = |one: &str, other: &str| found(&format!("PUT / HTTP/1.1\r\n{one}\r\nx: y\r\n{other}\r\n\r\n"));
        let (length, chunks) = ("Content-Length: 5", "TRANSFER-encoding:chunked");
        for (one, other) in [(length, chunks), (chunks, length)] {
            let [both] = both(one, other);
            assert!(both.two_lengths, "{one} {other}");
        }
        for (one, other) in [(length, length), (chunks, "x-content-length: 5"), (chunks, "content-length-x: 5")] {
            assert_eq!(both(one, other), [RequestHeadFindings::default()], "{one} {other}");
        }
        let in_the_body = format!("PUT / HTTP/1.1\r\n{length}\r\n\r\n{chunks}\r\n\r\n");
        assert_eq!(found(&in_the_body), [RequestHeadFindings::default()]);
    }

    /// If the target were not scanned, the next hop might read the part that hyper cuts off.
    #[test]
    fn a_head_is_scanned_whole_wherever_the_body_before_it_ends() {
        let next = "GET /v1/gate/a.eth#b HTTP/1.1\r\n\r\n";
        for (before, body) in [
            ("", ""),
            ("content-length: 2\r\n", "{}"),
            ("CONTENT-LENGTH:\t  002 \r\n", "{}"),
            ("content-length: 2\r\ncontent-length: 2\r\n", "{}"),
            ("content-length: 0\r\n", ""),
            ("content-length: 20\r\n", "GET / HTTP/1.1\r\n\r\n##"),
        ] {
            let first = format!("POST /v1/lint HTTP/1.1\r\n{before}\r\n{body}");
            let [first, then, last] = found(&format!("{first}{next}{first}"));
            assert_eq!(first, RequestHeadFindings::default(), "{before}");
            assert_eq!(then, RequestHeadFindings { fragment: true, ..first }, "{before}");
            assert_eq!(last, first, "{before}");
        }
    }

    #[test]
    fn heads_after_a_body_of_unknown_length_are_unseen() {
        let next = "GET / HTTP/1.1\r\n\r\n";
        let spaces = " ".repeat(KEPT);
        for header in [
            "transfer-encoding: chunked",
            "content-length: +2",
            "content-length:",
            "content-length: 2, 2",
            "content-length: 2\r\ncontent-length: 3",
            "content-length: 99999999999999999999",
            &format!("content-length: {spaces}2"),
        ] {
            let [first, then] = found(&format!("POST / HTTP/1.1\r\n{header}\r\n\r\n{next}{next}"));
            assert!(!first.unseen && then.unseen, "{header}");
        }
        let [.., last, beyond] = found::<{ MOST_AHEAD + 1 }>(&next.repeat(MOST_AHEAD + 2));
        assert!(!last.unseen && beyond.unseen);
        // A request without a scanned head means that the scan has lost its position.
        let mut scan = RequestHeadScanner::default();
        assert!(scan.take_findings().unseen);
        scan.scan_bytes(next.as_bytes());
        assert!(scan.take_findings().unseen);
    }
}
