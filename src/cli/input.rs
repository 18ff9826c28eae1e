//! Reads files and standard input up to a limit.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context as _;

use clresolve_core::text::UntrustedText;

/// The argument that stands for standard input.
pub(super) const STDIN: &str = "-";

/// Reads a file, or standard input for [`STDIN`]: at most `most + 1` bytes, so that the caller can detect an excess.
///
/// # Errors
/// If it cannot be read.
pub(super) fn read_file_or_stdin(path: &Path, most: usize) -> anyhow::Result<Vec<u8>> {
    let cannot = || format!("cannot read {}", UntrustedText::new(&input_label(path)));
    let source: Box<dyn Read> = if path == Path::new(STDIN) {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path).with_context(cannot)?)
    };
    let mut bytes = Vec::new();
    source.take(most as u64 + 1).read_to_end(&mut bytes).with_context(cannot)?;
    Ok(bytes)
}

pub(super) fn input_label(path: &Path) -> String {
    if path == Path::new(STDIN) { "standard input".to_owned() } else { path.display().to_string() }
}

/// The name of the file for messages, escaped since a path may contain terminal control characters.
pub(super) fn escaped_path(path: &Path) -> String {
    UntrustedText::new(&path.display().to_string()).to_string()
}
