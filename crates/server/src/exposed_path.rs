//! Detects paths that other users can write, so that they could replace the file there.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::StatVfsMountFlags;

/// Write permission of group and others.
pub const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Sticky bit: in a folder that has it, other users may add files, but neither remove nor rename ours.
pub(crate) const STICKY: u32 = 0o1000;

/// Maximum number of symbolic links in a path, as in Linux.
const MAX_LINKS: usize = 40;

/// Every folder on a path, including those behind its symbolic links, and the path's target.
pub(crate) fn folders_along_path(path: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let (mut folders, mut links) = (BTreeSet::new(), 0);
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop() {
        for above in path.ancestors().filter(|above| folders.insert(above.to_path_buf())).collect::<Vec<_>>() {
            if !fs::symlink_metadata(above)?.is_symlink() {
                continue;
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(io::Error::other("its folder has too many links"));
            }
            open.push(above.parent().unwrap_or(above).join(fs::read_link(above)?));
        }
    }
    Ok(folders)
}

/// Finds the first part of a file's path that other users can write or replace, so that they could choose its content:
/// the file, a folder or a link that another user owns or that group or others may write. File systems that are mounted
/// read-only are exempt, whatever the modes, and so are pipes, which have no path.
pub fn find_path_part_others_can_write(file: &Path) -> io::Result<Option<PathBuf>> {
    let file = std::path::absolute(file)?;
    if !fs::metadata(&file)?.is_file() {
        return Ok(None);
    }
    let is_ours = |found: &fs::Metadata| [0, rustix::process::geteuid().as_raw()].contains(&found.uid());
    for place in folders_along_path(&file)? {
        let found = fs::metadata(&place)?;
        let is_kept = found.is_dir() && found.mode() & STICKY != 0;
        let is_writable = found.mode() & WRITABLE_BY_OTHERS != 0 && !is_kept;
        let is_foreign = !is_ours(&found) || !is_ours(&fs::symlink_metadata(&place)?);
        if (is_writable || is_foreign) && !is_read_only_mount(&place)? {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

fn is_read_only_mount(place: &Path) -> io::Result<bool> {
    Ok(rustix::fs::statvfs(place)?.f_flag.contains(StatVfsMountFlags::RDONLY))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn folders_behind_links_are_looked_at_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("own/inner")).expect("a folder");
        fs::create_dir(path("between")).expect("a folder");
        symlink("../own/inner", path("between/second")).expect("a link");
        symlink(path("between/second"), path("first")).expect("a link");
        let found = folders_along_path(&path("first")).expect("all can be read");
        for name in ["first", "between", "between/../own"] {
            assert!(found.contains(&path(name)), "{name}: {found:?}");
        }
        symlink("own/../round", path("round")).expect("a link");
        let endless = folders_along_path(&path("round")).expect_err("each step leads to one more link");
        assert!(endless.to_string().contains("too many links"), "{endless}");
    }

    #[test]
    fn a_file_that_others_may_write_or_replace_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let set =
            |name: &str, mode: u32| fs::set_permissions(path(name), Permissions::from_mode(mode)).expect("a mode");
        for (name, modes) in [("own", [0o700, 0o600]), ("sticky", [0o1777, 0o644]), ("open", [0o775, 0o600])] {
            fs::create_dir(path(name)).expect("a folder");
            fs::write(path(&format!("{name}/file")), "").expect("a file");
            set(name, modes[0]);
            set(&format!("{name}/file"), modes[1]);
        }
        symlink("../open/file", path("own/link")).expect("a link");
        symlink(path("own/file"), path("open/link")).expect("a link");
        let found = |name: &str| find_path_part_others_can_write(&path(name)).expect("it can be read");
        for name in ["own/file", "sticky/file"] {
            assert_eq!(found(name), None, "{name}");
        }
        assert_eq!(found("open/file"), Some(path("open")));
        assert!(found("own/link").is_some_and(|place| place.ends_with("open")), "the file behind the link");
        assert_eq!(found("open/link"), Some(path("open")), "the link can be replaced");
        for mode in [0o620, 0o602, 0o666] {
            set("own/file", mode);
            assert_eq!(found("own/file"), Some(path("own/file")), "{mode:o}");
        }
        set("own/file", 0o600);
        // Only root can change a file's owner.
        if std::os::unix::fs::chown(path("own/file"), Some(65534), None).is_ok() {
            assert_eq!(found("own/file"), Some(path("own/file")), "it belongs to another user");
        }
        assert_eq!(find_path_part_others_can_write(Path::new("/dev/null")).expect("it is there"), None, "no file");
    }
}
