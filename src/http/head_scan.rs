//! What hyper does not show of the head of a request: a fragment in its target, which hyper cuts off, and a length
//! beside chunks, of which hyper drops the length.

/// So much of a line is kept, in bytes: one more than the longest name that is looked for, which shows that a name is
/// longer.
const KEPT: usize = "transfer-encoding".len() + 1;

/// What was found in the head of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HeadFindings {
    /// The target holds a `#`.
    pub(super) fragment: bool,
    /// There are both `Content-Length` and `Transfer-Encoding`, which is how a second request is smuggled past a proxy
    /// (RFC 9112, 6.3).
    pub(super) two_lengths: bool,
    /// A part of the head came before the answer to the request before it, so that it was not scanned.
    pub(super) unseen: bool,
}

/// A scan of one head, in as many pieces as it comes.
#[derive(Debug, Default)]
pub(super) struct HeadScan {
    /// The start of the line, in lower case.
    line: [u8; KEPT],
    /// How much of it there is, in bytes.
    kept: usize,
    stage: Stage,
    fragment: bool,
    length: bool,
    encoding: bool,
    beyond: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    RequestLine,
    Headers,
    End,
}

impl HeadScan {
    /// Takes the next bytes. What stands behind the head is not read.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.stage == Stage::End {
                self.beyond = true;
                return;
            }
            self.fragment |= self.stage == Stage::RequestLine && piece.contains(&b'#');
            let (text, is_line) = piece.strip_suffix(b"\n").map_or((piece, false), |text| (text, true));
            self.keep(text);
            if is_line {
                self.end_line();
            }
        }
    }

    fn keep(&mut self, text: &[u8]) {
        let room = &mut self.line[self.kept..];
        let taken = text.len().min(room.len());
        room[..taken].copy_from_slice(&text[..taken]);
        room[..taken].make_ascii_lowercase();
        self.kept += taken;
    }

    pub(super) fn found(&self) -> HeadFindings {
        HeadFindings {
            fragment: self.fragment,
            two_lengths: self.length && self.encoding,
            unseen: self.stage != Stage::End,
        }
    }

    /// Whether the request may have a body.
    pub(super) fn has_body(&self) -> bool {
        self.length || self.encoding
    }

    /// Whether bytes came behind the head.
    pub(super) fn is_exceeded(&self) -> bool {
        self.beyond
    }

    fn end_line(&mut self) {
        let line = &self.line[..self.kept];
        let is_empty = matches!(line, b"" | b"\r");
        match self.stage {
            // Empty lines before a request are no part of it.
            Stage::RequestLine if is_empty => {}
            Stage::RequestLine => self.stage = Stage::Headers,
            Stage::Headers if is_empty => self.stage = Stage::End,
            Stage::Headers | Stage::End => {
                let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
                self.length |= name == b"content-length";
                self.encoding |= name == b"transfer-encoding";
            }
        }
        self.kept = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(head: &str) -> HeadFindings {
        let (mut whole, mut bytewise) = (HeadScan::default(), HeadScan::default());
        whole.take(head.as_bytes());
        head.bytes().for_each(|byte| bytewise.take(&[byte]));
        assert_eq!(whole.found(), bytewise.found());
        whole.found()
    }

    #[test]
    fn a_fragment_counts_in_the_target_alone() {
        assert!(found("GET /v1/gate/a.eth#b HTTP/1.1\r\n\r\n").fragment);
        assert!(found("\r\nGET /# HTTP/1.1\n\n").fragment);
        assert_eq!(found("GET / HTTP/1.1\r\nx: #\r\n\r\n#"), HeadFindings::default());
        assert!(found("GET / HTTP/1.1\r\nx: y\r\n").unseen, "its end has not come");
    }

    #[test]
    fn two_lengths_count_in_either_order_and_in_the_head_alone() {
        let both = |one: &str, other: &str| found(&format!("PUT / HTTP/1.1\r\n{one}\r\nx: y\r\n{other}\r\n\r\n"));
        let (length, chunks) = ("Content-Length: 5", "TRANSFER-encoding:chunked");
        assert!(both(length, chunks).two_lengths && both(chunks, length).two_lengths);
        for (one, other) in [(length, length), (chunks, "x-content-length: 5"), (chunks, "content-length-x: 5")] {
            assert_eq!(both(one, other), HeadFindings::default(), "{one} {other}");
        }
        let in_the_body = format!("PUT / HTTP/1.1\r\n{length}\r\n\r\n{chunks}\r\n\r\n");
        assert_eq!(found(&in_the_body), HeadFindings::default());
    }
}
