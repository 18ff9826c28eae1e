//! A schema as one of its locations served it.

use std::sync::Arc;

use bytes::Bytes;
use clresolve_core::digest::Digest;
use clresolve_core::json::{self, JsonError, Limits};
use serde_json::Value;

use super::strict::Strictness;

/// Bytes as they came, hashed and read once, however many profiles they are held against. The documents of a judgement
/// may be read apart: each has a budget of its own.
#[derive(Clone, Debug)]
pub struct ServedSchema {
    bytes: Bytes,
    digest: Digest,
    unix_digest: Option<Digest>,
    parsed: Arc<Result<(Value, Strictness), JsonError>>,
}

impl ServedSchema {
    /// Hashes and reads what was served.
    pub fn read(bytes: Bytes) -> Self {
        let parsed = json::parse(&bytes, Limits::SCHEMA).map(|document| {
            let strictness = Strictness::of(&document);
            (document, strictness)
        });
        Self { digest: Digest::of(&bytes), unix_digest: unix_digest(&bytes), parsed: Arc::new(parsed), bytes }
    }

    /// The bytes as received.
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Their digest.
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// The digest of the bytes with LF in the place of each CRLF; `None` where there is none.
    pub const fn unix_digest(&self) -> Option<Digest> {
        self.unix_digest
    }

    /// The document, and what a strict compiler would refuse in it.
    ///
    /// # Errors
    /// Where the bytes are not strict JSON.
    pub fn parsed(&self) -> Result<&(Value, Strictness), &JsonError> {
        self.parsed.as_ref().as_ref()
    }

    /// The document, where the bytes are strict JSON.
    pub fn document(&self) -> Option<&Value> {
        self.parsed().ok().map(|(document, _)| document)
    }
}

fn unix_digest(bytes: &[u8]) -> Option<Digest> {
    let is_kept = |at: &usize| !bytes[*at..].starts_with(b"\r\n");
    let unix: Vec<u8> = (0..bytes.len()).filter(is_kept).map(|at| bytes[at]).collect();
    (unix.len() < bytes.len()).then(|| Digest::of(&unix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_carriage_return_of_a_line_end_is_left_out() {
        let unix = |text: &str| unix_digest(text.as_bytes());
        assert_eq!(unix("a\r\nb\r\n"), Some(Digest::of(b"a\nb\n")));
        assert_eq!(unix("a\rb\r\r\n\r"), Some(Digest::of(b"a\rb\r\n\r")));
        assert_eq!(unix("a\rb\n\r"), None);
    }
}
