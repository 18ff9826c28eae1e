//! The folder with official vectors and mainnet responses, which is not part of the project.

use std::path::PathBuf;

/// The folder that `CLRESOLVE_BEACON` names. Without the variable, the test that asks is skipped.
pub(super) fn folder() -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("CLRESOLVE_BEACON") else {
        println!("skipped: CLRESOLVE_BEACON is not set");
        return None;
    };
    let folder = PathBuf::from(folder);
    assert!(folder.is_dir(), "CLRESOLVE_BEACON: {} is not a folder", folder.display());
    Some(folder)
}
