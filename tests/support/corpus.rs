//! The corpus: published data that some tests judge.

use std::path::{Path, PathBuf};

/// The path of a folder or file in the corpus. `None` if `CLRESOLVE_CORPUS` is not set: the test is skipped, and the
/// output says so.
#[track_caller]
pub(crate) fn corpus(part: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("CLRESOLVE_CORPUS") else {
        println!("skipped: CLRESOLVE_CORPUS is not set");
        return None;
    };
    let path = Path::new(&folder).join(part);
    assert!(path.exists(), "CLRESOLVE_CORPUS is set, but {} does not exist", path.display());
    Some(path)
}
