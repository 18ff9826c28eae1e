//! What rows are known by, and the digest of a list of names.

use clresolve_core::digest::{Digest, Digester};
use clresolve_core::name::EnsName;

/// What a row is known by: its name, or the start of what was typed in place of one. Where a row keeps the start alone, the
/// digest of the whole follows.
pub fn key(input: &str, whole: Option<Digest>) -> String {
    match whole {
        Some(digest) => format!("{input} {digest}"),
        None => input.to_owned(),
    }
}

/// The digest of what an audit is of: every line and every entry that asks for a row, in their order. Spellings of a name make no difference, and neither do comments that move no line.
#[derive(Clone, Default)]
pub struct ListDigester(Digester);

impl ListDigester {
    /// Adds what stands at a line, known by its [`key`].
    pub fn add(&mut self, line: u64, key: &str) {
        self.0.update(&line.to_be_bytes());
        self.0.update(identity(key).as_bytes());
    }

    /// The digest of all.
    pub fn digest(self) -> Digest {
        self.0.digest()
    }
}

/// What two lines of a list share if they list one name: its spelling makes no difference.
pub fn identity(name: &str) -> Digest {
    match EnsName::parse(name) {
        Ok(name) => Digest::of(name.as_str().as_bytes()),
        Err(_) => Digest::of(name.as_bytes()),
    }
}
