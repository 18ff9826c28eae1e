//! Texts with resources, and places in them.

use std::fmt;

use clresolve_core::text::Foreign;

/// A text with resources, and what messages call it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'s> {
    /// What messages call it.
    pub file: &'s str,
    /// YAML in UTF-8, any number of documents.
    pub bytes: &'s [u8],
}

/// File and line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// What the source is called.
    pub file: String,
    /// The line, from 1; 0 if it is unknown.
    pub line: u64,
}

impl SourceLine {
    pub(super) fn new(file: &str, line: u64) -> Self {
        Self { file: file.to_owned(), line }
    }
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}", Foreign::new(&self.file), self.line)
    }
}
