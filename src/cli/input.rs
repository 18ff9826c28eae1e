//! Files and standard input, read with a bound.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context as _;

use clresolve_core::text::Foreign;

/// What stands for standard input.
pub(super) const STDIN: &str = "-";

/// The bytes of a file, or of standard input for [`STDIN`]: at most one more than `most`, which shows that they are too
/// many.
///
/// # Errors
/// If it cannot be read.
pub(super) fn read(path: &Path, most: usize) -> anyhow::Result<Vec<u8>> {
    let cannot = || format!("cannot read {}", Foreign::new(&name(path)));
    let source: Box<dyn Read> = if path == Path::new(STDIN) {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path).with_context(cannot)?)
    };
    let mut bytes = Vec::new();
    source.take(most as u64 + 1).read_to_end(&mut bytes).with_context(cannot)?;
    Ok(bytes)
}

/// What the file is called.
pub(super) fn name(path: &Path) -> String {
    if path == Path::new(STDIN) { "standard input".to_owned() } else { path.display().to_string() }
}

/// What a message calls the file: a path can hold what acts on a terminal.
pub(super) fn shown(path: &Path) -> String {
    Foreign::new(&path.display().to_string()).to_string()
}
