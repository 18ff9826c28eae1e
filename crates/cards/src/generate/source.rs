//! Source texts with resources, and locations in them.

use std::fmt;

use clresolve_core::text::UntrustedText;

/// A source text with resources.
#[derive(Clone, Copy, Debug)]
pub struct OrlojResourceFile<'s> {
    /// Its name in messages.
    pub file: &'s str,
    /// YAML in UTF-8 with any number of documents.
    pub bytes: &'s [u8],
}

/// A position in a source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrlojResourcePosition {
    /// The source's name in messages.
    pub file: String,
    /// The line number, starting at 1. 0 if it is unknown.
    pub line: u64,
}

impl OrlojResourcePosition {
    pub(super) fn new(file: &str, line: u64) -> Self {
        Self { file: file.to_owned(), line }
    }
}

impl fmt::Display for OrlojResourcePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}", UntrustedText::new(&self.file), self.line)
    }
}
