//! Reads and writes key files.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;

use zeroize::Zeroizing;

use clresolve_jose::{Ed25519KeySet, Ed25519SigningKey, SignatureKeyError};

/// Maximum size of a key file, in bytes. A private key has 119, and key sets are far smaller than the maximum.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// Reads a private key from a file that only its owner can read. Symbolic links are followed; the checks apply to the
/// opened file itself.
///
/// # Errors
/// If the file cannot be read, is not a regular file, is accessible to others, or contains no such key.
pub fn read_signing_key(path: &Path) -> Result<Ed25519SigningKey, KeyFileError> {
    let pem = read_private_key_text(path)?;
    Ed25519SigningKey::from_pem(&pem).map_err(|error| KeyFileError::NoKey { path: path.display().to_string(), error })
}

/// Writes the key to a new file that only its owner can read.
///
/// # Errors
/// If the file exists (it is never overwritten) or cannot be written.
pub fn save_signing_key(key: &Ed25519SigningKey, path: &Path) -> Result<(), KeyFileError> {
    let shown = path.display().to_string();
    let pem = key.to_pem().map_err(|error| KeyFileError::NoKey { path: shown.clone(), error })?;
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => KeyFileError::Exists { path: shown.clone() },
        _ => KeyFileError::Unusable { path: shown.clone(), detail: error.to_string() },
    };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(failed)?;
    file.write_all(pem.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)
}

/// Reads the text of a file with a private key, with the same checks as [`read_signing_key`].
///
/// # Errors
/// If the file cannot be read, is not a regular file, or is accessible to others.
pub fn read_private_key_text(path: &Path) -> Result<Zeroizing<String>, KeyFileError> {
    let (file, shown) = open_regular_file(path)?;
    check_file_permissions(&file, path, &shown)?;
    read_text(file, &shown).map(Zeroizing::new)
}

/// Reads a JSON Web Key Set.
///
/// # Errors
/// If the file cannot be read, is not a regular file, or contains no key set.
pub fn read_trusted_keys(path: &Path) -> Result<Ed25519KeySet, KeyFileError> {
    let (file, shown) = open_regular_file(path)?;
    Ed25519KeySet::from_jwks(read_text(file, &shown)?.as_bytes())
        .map_err(|error| KeyFileError::NoKey { path: shown, error })
}

/// Opens a regular file and returns it with its name. Opening a pipe would block.
fn open_regular_file(path: &Path) -> Result<(File, String), KeyFileError> {
    let shown = path.display().to_string();
    let failed = |error: std::io::Error| KeyFileError::Unusable { path: shown.clone(), detail: error.to_string() };
    let is_regular = std::fs::metadata(path).map_err(failed)?.is_file();
    let file = if is_regular { Some(File::open(path).map_err(failed)?) } else { None };
    match file {
        Some(file) if file.metadata().map_err(failed)?.is_file() => Ok((file, shown)),
        _ => Err(KeyFileError::Unusable { path: shown, detail: "expected a regular file".to_owned() }),
    }
}

fn read_text(file: File, shown: &str) -> Result<String, KeyFileError> {
    let failed = |detail: String| KeyFileError::Unusable { path: shown.to_owned(), detail };
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(|error| failed(error.to_string()))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(failed(format!("a key file has at most {MAX_FILE_BYTES} bytes")));
    }
    Ok(text)
}

/// Rejects a private key that others can read or change. A systemd credential may have group read permission: this is
/// the mask of the access list that lets the service's own user read the file.
#[cfg(unix)]
fn check_file_permissions(file: &File, path: &Path, shown: &str) -> Result<(), KeyFileError> {
    use std::os::unix::fs::PermissionsExt as _;
    let failed = |error: std::io::Error| KeyFileError::Unusable { path: shown.to_owned(), detail: error.to_string() };
    let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o7777;
    let credentials = std::env::var_os("CREDENTIALS_DIRECTORY").filter(|folder| !folder.is_empty());
    let allowed = if credentials.is_some_and(|folder| path.starts_with(folder)) { 0o740 } else { 0o700 };
    if mode & 0o777 & !allowed == 0 || clresolve_core::mutant!("loose-key-files") {
        return Ok(());
    }
    Err(KeyFileError::Loose { path: shown.to_owned(), mode })
}

/// Other systems have no such permissions.
#[cfg(not(unix))]
fn check_file_permissions(_: &File, _: &Path, _: &str) -> Result<(), KeyFileError> {
    Ok(())
}

/// Why a key file is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// A new key would overwrite a file.
    #[error("{path}: the file exists, and a key is never overwritten; name another one")]
    Exists {
        /// The file.
        path: String,
    },
    /// A signing key is configured, but no issuer.
    #[error("sign.issuer: a signing key needs an issuer; set sign.issuer or --sign-issuer")]
    IssuerMissing,
    /// Users other than the owner can read or change the file.
    #[error(
        "{path}: others can read or change this key (mode {mode:04o}); run `chmod 600` on it, and replace it if they may have done so"
    )]
    Loose {
        /// The file.
        path: String,
        /// Its permissions.
        mode: u32,
    },
    /// The file contains no usable key.
    #[error("{path}: {error}")]
    NoKey {
        /// The file.
        path: String,
        /// The defect.
        error: SignatureKeyError,
    },
    /// The file cannot be read or written, is too long, or is not a regular file.
    #[error("{path}: {detail}")]
    Unusable {
        /// The file.
        path: String,
        /// The cause.
        detail: String,
    },
}
