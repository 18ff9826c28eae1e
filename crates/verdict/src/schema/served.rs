//! A schema as one of its locations served it.

use std::sync::Arc;

use bytes::Bytes;
use clresolve_core::digest::Digest;
use clresolve_core::json::{self, JsonError, JsonLimits};
use clresolve_core::text::truncate_bytes;

use super::strict::{self, StrictModeFaults};

/// Maximum length of a stored `$id`, in bytes. No manifest has one this long.
const MAX_ID_BYTES: usize = 2048;

/// Received bytes, hashed and parsed once, however many profiles they are compared with. Each document of a judgement
/// has its own parsing budget. The parsed document, which may take ten times the memory of its bytes, is dropped.
#[derive(Clone, Debug)]
pub struct ServedSchema {
    bytes: Bytes,
    digest: Digest,
    unix_digest: Option<Digest>,
    read: Arc<Result<ParsedSchemaFacts, JsonError>>,
}

/// Properties of a parsed document.
#[derive(Debug)]
pub struct ParsedSchemaFacts {
    /// Its `$id`, if it is not longer than any in a manifest.
    pub id: Option<String>,
    /// The digest of its JSON value, independent of formatting.
    pub value: Digest,
    /// The parts that a strict compiler would reject.
    pub strict_mode: StrictModeFaults,
}

impl ServedSchema {
    /// Hashes and parses what was served.
    pub fn from_bytes(bytes: Bytes) -> Self {
        let read = json::parse_strict_json(&bytes, JsonLimits::SCHEMA).map(|document| ParsedSchemaFacts {
            id: strict::schema_id(&document).map(|id| truncate_bytes(id, MAX_ID_BYTES)),
            // `serde_json` prints the members of an object sorted.
            value: Digest::compute(document.to_string().as_bytes()),
            strict_mode: StrictModeFaults::analyse(&document),
        });
        Self { digest: Digest::compute(&bytes), unix_digest: compute_lf_digest(&bytes), read: Arc::new(read), bytes }
    }

    /// The bytes as received.
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// SHA-256 of the bytes.
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// SHA-256 of the bytes with each CRLF replaced by LF; `None` if there is no CRLF.
    pub const fn lf_digest(&self) -> Option<Digest> {
        self.unix_digest
    }

    /// Properties of the parsed document.
    ///
    /// # Errors
    /// [`JsonError`] if the bytes are not strict JSON.
    pub fn parsed_schema(&self) -> Result<&ParsedSchemaFacts, &JsonError> {
        self.read.as_ref().as_ref()
    }
}

fn compute_lf_digest(bytes: &[u8]) -> Option<Digest> {
    let is_kept = |at: &usize| !bytes[*at..].starts_with(b"\r\n");
    let unix: Vec<u8> = (0..bytes.len()).filter(is_kept).map(|at| bytes[at]).collect();
    (unix.len() < bytes.len()).then(|| Digest::compute(&unix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_carriage_return_of_a_line_end_is_left_out() {
        let unix = |text: &str| compute_lf_digest(text.as_bytes());
        assert_eq!(unix("a\r\nb\r\n"), Some(Digest::compute(b"a\nb\n")));
        assert_eq!(unix("a\rb\r\r\n\r"), Some(Digest::compute(b"a\rb\r\n\r")));
        assert_eq!(unix("a\rb\n\r"), None);
    }

    #[test]
    fn the_value_of_a_document_does_not_depend_on_its_form() {
        let value =
            |text: &str| ServedSchema::from_bytes(text.to_owned().into()).parsed_schema().expect("strict JSON").value;
        assert_eq!(value(r#"{"a":1,"b":"\u0061"}"#), value("{\n\"b\": \"a\", \"a\": 1}"));
        assert_ne!(value(r#"{"a":1}"#), value(r#"{"a":1.5}"#));
    }

    #[test]
    fn a_long_id_equals_no_other() {
        let id = |length: usize| format!("https://schemas.example/{}", "x".repeat(length));
        let read = |id: &str| ServedSchema::from_bytes(format!(r#"{{"$id":"{id}"}}"#).into());
        assert_eq!(read(&id(9)).parsed_schema().expect("strict JSON").id.as_deref(), Some(&*id(9)));
        let long = read(&id(9000)).parsed_schema().expect("strict JSON").id.clone().expect("an id");
        assert!(long.len() <= MAX_ID_BYTES && !id(9000).starts_with(&long));
    }
}
