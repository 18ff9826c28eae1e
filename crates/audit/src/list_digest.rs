//! The keys of rows, and the digest of a list of names.

use clresolve_core::digest::{Digest, Digester};
use clresolve_core::name::EnsName;

/// The key of a row: its name, or the start of the typed text. If the row contains only the start, the digest of the
/// whole text is appended.
pub fn row_key(input: &str, whole: Option<Digest>) -> String {
    match whole {
        Some(digest) => format!("{input} {digest}"),
        None => input.to_owned(),
    }
}

/// The digest of an audit's input: each line and registry entry that yields a row, in order. The spelling of names
/// does not matter, and neither do comments, unless they move a line.
#[derive(Clone, Default)]
pub struct ListDigester(Digester);

impl ListDigester {
    /// Adds the [`row_key`] of a line.
    pub fn add(&mut self, line: u64, key: &str) {
        self.0.update(&line.to_be_bytes());
        self.0.update(normalized_digest(key).as_bytes());
    }

    /// The digest of all added lines.
    pub fn digest(self) -> Digest {
        self.0.finalize()
    }
}

/// Equal for lines that list the same name in any spelling.
pub fn normalized_digest(name: &str) -> Digest {
    match EnsName::parse(name) {
        Ok(name) => Digest::compute(name.as_str().as_bytes()),
        Err(_) => Digest::compute(name.as_bytes()),
    }
}
