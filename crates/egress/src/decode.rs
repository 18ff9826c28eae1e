//! Decodes a response body, and limits both its size on the wire and its decoded size. No I/O.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::MultiGzDecoder;

/// Number of wire bytes that are decoded in one step. Deflate expands them at most about 1032-fold (RFC 1951), so one
/// step of a decompression bomb yields at most about 129 KiB. A reader that stops early needs no memory for the rest.
const PORTION: usize = 128;

/// Decodes the content coding of a body piece by piece, and stops at a limit.
///
/// The limit applies both to the bytes on the wire and to the decoded bytes: a decompression bomb is small on the wire,
/// and an endless sequence of empty gzip members decodes to nothing.
pub(super) struct BodyDecoder {
    coding: ContentCoding,
    limit: usize,
    wire: usize,
}

impl BodyDecoder {
    /// A decoder for the values of `Content-Encoding`, one per header line. A body may have only one coding, so a list
    /// of codings and a second header line are both rejected.
    pub(super) fn new<'a>(
        content_encoding: impl IntoIterator<Item = &'a str>,
        limit: usize,
    ) -> Result<Self, BodyDecodeError> {
        let mut lines = content_encoding.into_iter();
        let line = lines.next();
        if lines.next().is_some() {
            return Err(BodyDecodeError::Coding);
        }
        let coding = match line.map(str::trim) {
            None | Some("") => ContentCoding::Identity,
            Some(name) if name.eq_ignore_ascii_case("identity") => ContentCoding::Identity,
            Some(name) if name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip") => {
                ContentCoding::Gzip(Box::new(MultiGzDecoder::new(CappedSink { out: Vec::new(), left: limit })))
            }
            Some(_) => return Err(BodyDecodeError::Coding),
        };
        Ok(Self { coding, limit, wire: 0 })
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Maximum number of wire bytes to pass to one [`BodyDecoder::push`]. This also bounds the output of that call.
    pub(super) fn chunk_size(&self) -> usize {
        match self.coding {
            ContentCoding::Identity => usize::MAX,
            ContentCoding::Gzip(_) if clresolve_core::mutant!("bombs-at-once") => usize::MAX,
            ContentCoding::Gzip(_) => PORTION,
        }
    }

    /// Pushes bytes from the wire, and returns the bytes decoded from them.
    pub(super) fn push(&mut self, chunk: Bytes) -> Result<Bytes, BodyDecodeError> {
        self.wire = self.wire.saturating_add(chunk.len());
        if self.wire > self.limit && !clresolve_core::mutant!("endless-body") {
            return Err(BodyDecodeError::Oversize);
        }
        match &mut self.coding {
            ContentCoding::Identity => Ok(chunk),
            ContentCoding::Gzip(gzip) => {
                let written = gzip.write_all(&chunk).and_then(|()| gzip.flush());
                written.map_err(|e| BodyDecodeError::from_io(&e))?;
                Ok(std::mem::take(&mut gzip.get_mut().out).into())
            }
        }
    }

    /// Ends the body, and returns the remaining decoded bytes.
    pub(super) fn finish(&mut self) -> Result<Bytes, BodyDecodeError> {
        match &mut self.coding {
            ContentCoding::Identity => Ok(Bytes::new()),
            ContentCoding::Gzip(_) if self.wire == 0 => Ok(Bytes::new()),
            ContentCoding::Gzip(gzip) => {
                gzip.try_finish().map_err(|e| match BodyDecodeError::from_io(&e) {
                    BodyDecodeError::Oversize => BodyDecodeError::Oversize,
                    _ => BodyDecodeError::Truncated,
                })?;
                Ok(std::mem::take(&mut gzip.get_mut().out).into())
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyDecodeError {
    /// The body exceeds the limit, on the wire or decoded.
    Oversize,
    /// The encoded data ends too early, or its final checksum is wrong.
    Truncated,
    /// The server used a coding that was not requested, or the data is not valid in its coding.
    Coding,
}

impl BodyDecodeError {
    fn from_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull => Self::Oversize,
            _ => Self::Coding,
        }
    }
}

enum ContentCoding {
    Identity,
    Gzip(Box<MultiGzDecoder<CappedSink>>),
}

struct CappedSink {
    out: Vec<u8>,
    left: usize,
}

impl Write for CappedSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self
            .left
            .checked_sub(if clresolve_core::mutant!("decoded-body-uncapped") { 0 } else { bytes.len() })
            .ok_or(io::ErrorKind::StorageFull)?;
        self.out.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn decode(coding: Option<&str>, wire: &[u8], piece: usize, limit: usize) -> Result<Vec<u8>, BodyDecodeError> {
        let mut decoder = BodyDecoder::new(coding, limit)?;
        let mut out = Vec::new();
        for chunk in wire.chunks(piece) {
            out.extend_from_slice(&decoder.push(Bytes::copy_from_slice(chunk))?);
        }
        out.extend_from_slice(&decoder.finish()?);
        Ok(out)
    }

    #[test]
    fn a_bomb_comes_in_small_pieces() {
        let (bomb, limit) = (gzip(&vec![0; 8 << 20]), 8 << 20);
        let mut decoder = BodyDecoder::new(Some("gzip"), limit).unwrap();
        let pieces = bomb.chunks(decoder.chunk_size());
        let longest = pieces.map(|piece| decoder.push(Bytes::copy_from_slice(piece)).unwrap().len()).max();
        assert!(longest.is_some_and(|longest| longest <= 160 << 10), "{longest:?}");
    }

    #[test]
    fn decodes_whatever_the_pieces() {
        let text: Vec<u8> = (0..5000u32).flat_map(u32::to_le_bytes).collect();
        for piece in [1, 7, 4096, usize::MAX] {
            assert_eq!(decode(None, &text, piece, text.len()), Ok(text.clone()));
            assert_eq!(decode(Some("GZIP"), &gzip(&text), piece, text.len()), Ok(text.clone()));
        }
    }

    #[test]
    fn caps_both_sides() {
        assert_eq!(decode(None, &[0; 11], 4, 10), Err(BodyDecodeError::Oversize));
        assert_eq!(decode(Some("gzip"), &gzip(&[0; 1 << 20]), 512, 10_000), Err(BodyDecodeError::Oversize));
        let empty_members = gzip(b"").repeat(1000);
        assert_eq!(decode(Some("gzip"), &empty_members, 512, 1000), Err(BodyDecodeError::Oversize));
    }

    #[test]
    fn refuses_broken_and_unknown_codings() {
        let whole = gzip(b"some text that is long enough to be cut");
        for end in 1..whole.len() {
            assert_eq!(decode(Some("gzip"), &whole[..end], 5, 1000), Err(BodyDecodeError::Truncated), "{end}");
        }
        assert_eq!(decode(Some("gzip"), b"plain text", 5, 1000), Err(BodyDecodeError::Coding));
        assert_eq!(decode(Some("br"), b"", 5, 1000), Err(BodyDecodeError::Coding));
        assert_eq!(decode(Some("gzip, gzip"), b"", 5, 1000), Err(BodyDecodeError::Coding));
        for lines in [["gzip", "gzip"], ["identity", "gzip"], ["gzip", "identity"]] {
            assert_eq!(BodyDecoder::new(lines, 1000).err(), Some(BodyDecodeError::Coding));
        }
        assert_eq!(decode(Some("gzip"), b"", 5, 1000), Ok(Vec::new()));
    }
}
