//! [`UnixFsPath`]: the names from a root CID to a file.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Maximum number of names in a path. Each costs a round trip. The paths of published cards are far shorter.
pub const MAX_SEGMENTS: usize = 128;

/// Maximum length of a path in bytes before decoding, equal to Linux's `PATH_MAX`.
pub const MAX_PATH_BYTES: usize = 4096;

/// Characters that are not escaped in a URL path (RFC 3986, unreserved).
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The path below a root, as valid names of directory entries: not empty, not `.` or `..`, without slash and NUL.
///
/// [`fmt::Display`] writes the percent-encoded form, which [`UnixFsPath::parse`] accepts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct UnixFsPath(Vec<String>);

impl UnixFsPath {
    /// Parses a URI path without a slash at either end. Escapes are decoded once. The empty text is the empty path,
    /// which refers to the root.
    ///
    /// # Errors
    /// The rule that the text violates.
    pub fn parse(text: &str) -> Result<Self, UnixFsPathError> {
        Self::parse_segments(text, percent_decode)
    }

    /// Parses a path without percent-decoding: a `%` stays a `%`.
    ///
    /// # Errors
    /// The rule that the text violates.
    pub fn parse_literal(text: &str) -> Result<Self, UnixFsPathError> {
        Self::parse_segments(text, |segment| Ok(segment.to_owned()))
    }

    fn parse_segments(
        text: &str,
        decode: impl Fn(&str) -> Result<String, UnixFsPathError>,
    ) -> Result<Self, UnixFsPathError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        if text.len() > MAX_PATH_BYTES {
            return Err(UnixFsPathError::TooLong);
        }
        if text.split('/').count() > MAX_SEGMENTS && !mutant!("paths-without-end") {
            return Err(UnixFsPathError::TooManySegments);
        }
        text.split('/').map(|segment| require_valid_name(decode(segment)?)).collect::<Result<_, _>>().map(Self)
    }

    /// The names, outermost first.
    pub fn segments(&self) -> &[String] {
        &self.0
    }

    /// Whether the path refers to the root itself.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for UnixFsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, segment) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("/")?;
            }
            utf8_percent_encode(segment, KEPT).fmt(f)?;
        }
        Ok(())
    }
}

/// Why a text is not a [`UnixFsPath`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnixFsPathError {
    /// A `%` is not followed by two hexadecimal digits.
    #[error("the path has a broken percent escape")]
    BadEscape,
    /// A segment is `.` or `..`.
    #[error("the path has a . or .. segment")]
    DotSegment,
    /// Two slashes in a row, or a slash at an end.
    #[error("the path has an empty segment")]
    EmptySegment,
    /// A segment contains an escaped slash (`%2f`).
    #[error("the path has an escaped slash")]
    EscapedSlash,
    /// The decoded path is not UTF-8.
    #[error("the path is not UTF-8 once decoded")]
    NotUtf8,
    /// A segment contains a NUL.
    #[error("the path has a NUL")]
    Nul,
    /// The text is longer than [`MAX_PATH_BYTES`].
    #[error("the path has more than {MAX_PATH_BYTES} bytes")]
    TooLong,
    /// There are more than [`MAX_SEGMENTS`] segments.
    #[error("the path has more than {MAX_SEGMENTS} segments")]
    TooManySegments,
}

/// Checks that `name` is valid for a directory entry. A path may only contain such names.
pub(super) fn check_entry_name(name: &str) -> Result<(), UnixFsPathError> {
    match name {
        "" => Err(UnixFsPathError::EmptySegment),
        "." | ".." => Err(UnixFsPathError::DotSegment),
        name if name.contains('/') => Err(UnixFsPathError::EscapedSlash),
        name if name.contains('\0') => Err(UnixFsPathError::Nul),
        _ => Ok(()),
    }
}

fn require_valid_name(name: String) -> Result<String, UnixFsPathError> {
    check_entry_name(&name)?;
    Ok(name)
}

fn percent_decode(segment: &str) -> Result<String, UnixFsPathError> {
    let mut decoded = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let high = rest.next().and_then(hex_digit).ok_or(UnixFsPathError::BadEscape)?;
        let low = rest.next().and_then(hex_digit).ok_or(UnixFsPathError::BadEscape)?;
        decoded.push(high << 4 | low);
    }
    String::from_utf8(decoded).map_err(|_| UnixFsPathError::NotUtf8)
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(text: &str) -> Vec<String> {
        UnixFsPath::parse(text).unwrap().segments().to_vec()
    }

    #[test]
    fn escapes_are_decoded_once() {
        assert_eq!(segments("a/b.json"), ["a", "b.json"]);
        assert_eq!(segments("%61%20b/%E2%82%AC"), ["a b", "€"]);
        assert_eq!(segments("%252e%252e"), ["%2e%2e"]);
        assert!(UnixFsPath::parse("").unwrap().is_empty());
    }

    #[test]
    fn a_literal_path_decodes_nothing() {
        assert_eq!(UnixFsPath::parse_literal("%2f/%zz").unwrap().segments(), ["%2f", "%zz"]);
        assert_eq!(UnixFsPath::parse_literal("a/../b"), Err(UnixFsPathError::DotSegment));
    }

    #[test]
    fn what_no_directory_lists_is_refused() {
        for (text, error) in [
            ("/", UnixFsPathError::EmptySegment),
            ("/a", UnixFsPathError::EmptySegment),
            ("a/", UnixFsPathError::EmptySegment),
            ("a//b", UnixFsPathError::EmptySegment),
            (".", UnixFsPathError::DotSegment),
            ("a/..", UnixFsPathError::DotSegment),
            ("%2e%2E/a", UnixFsPathError::DotSegment),
            ("a%2fb", UnixFsPathError::EscapedSlash),
            ("a%2Fb", UnixFsPathError::EscapedSlash),
            ("a%00", UnixFsPathError::Nul),
            ("a\0", UnixFsPathError::Nul),
            ("%", UnixFsPathError::BadEscape),
            ("%4", UnixFsPathError::BadEscape),
            ("%4g", UnixFsPathError::BadEscape),
            ("%+1", UnixFsPathError::BadEscape),
            ("%€", UnixFsPathError::BadEscape),
            ("%ff", UnixFsPathError::NotUtf8),
            ("%C0%AF", UnixFsPathError::NotUtf8),
        ] {
            assert_eq!(UnixFsPath::parse(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn length_and_depth_are_bounded() {
        let deepest = vec!["d"; MAX_SEGMENTS].join("/");
        assert_eq!(segments(&deepest).len(), MAX_SEGMENTS);
        assert_eq!(UnixFsPath::parse(&format!("{deepest}/d")), Err(UnixFsPathError::TooManySegments));
        assert!(UnixFsPath::parse(&"d".repeat(MAX_PATH_BYTES)).is_ok());
        assert_eq!(UnixFsPath::parse(&"d".repeat(MAX_PATH_BYTES + 1)), Err(UnixFsPathError::TooLong));
    }

    proptest::proptest! {
        #[test]
        fn the_written_form_reads_back(text in "\\PC{0,40}(/\\PC{1,40}){0,4}") {
            if let Ok(path) = UnixFsPath::parse_literal(&text) {
                proptest::prop_assert_eq!(UnixFsPath::parse(&path.to_string()), Ok(path));
            }
        }

        #[test]
        fn no_text_makes_the_parser_panic(text: String) {
            let _ = UnixFsPath::parse(&text);
        }
    }
}
