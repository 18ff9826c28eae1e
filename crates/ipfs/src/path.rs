//! [`ContentPath`]: the names from a root CID to a file.

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
/// [`fmt::Display`] writes the percent-encoded form, which [`ContentPath::parse`] accepts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ContentPath(Vec<String>);

impl ContentPath {
    /// Parses a URI path without a slash at either end. Escapes are decoded once. The empty text is the empty path,
    /// which refers to the root.
    ///
    /// # Errors
    /// The rule that the text violates.
    pub fn parse(text: &str) -> Result<Self, ContentPathError> {
        Self::parse_segments(text, percent_decode)
    }

    /// Parses a path without percent-decoding: a `%` stays a `%`.
    ///
    /// # Errors
    /// The rule that the text violates.
    pub fn parse_literal(text: &str) -> Result<Self, ContentPathError> {
        Self::parse_segments(text, |segment| Ok(segment.to_owned()))
    }

    fn parse_segments(
        text: &str,
        decode: impl Fn(&str) -> Result<String, ContentPathError>,
    ) -> Result<Self, ContentPathError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        if text.len() > MAX_PATH_BYTES {
            return Err(ContentPathError::TooLong);
        }
        if text.split('/').count() > MAX_SEGMENTS && !mutant!("paths-without-end") {
            return Err(ContentPathError::TooManySegments);
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

impl fmt::Display for ContentPath {
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

/// Why a text is not a [`ContentPath`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentPathError {
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
pub(super) fn check_entry_name(name: &str) -> Result<(), ContentPathError> {
    match name {
        "" => Err(ContentPathError::EmptySegment),
        "." | ".." => Err(ContentPathError::DotSegment),
        name if name.contains('/') => Err(ContentPathError::EscapedSlash),
        name if name.contains('\0') => Err(ContentPathError::Nul),
        _ => Ok(()),
    }
}

fn require_valid_name(name: String) -> Result<String, ContentPathError> {
    check_entry_name(&name)?;
    Ok(name)
}

fn percent_decode(segment: &str) -> Result<String, ContentPathError> {
    let mut decoded = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let high = rest.next().and_then(hex_digit).ok_or(ContentPathError::BadEscape)?;
        let low = rest.next().and_then(hex_digit).ok_or(ContentPathError::BadEscape)?;
        decoded.push(high << 4 | low);
    }
    String::from_utf8(decoded).map_err(|_| ContentPathError::NotUtf8)
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(text: &str) -> Vec<String> {
        ContentPath::parse(text).unwrap().segments().to_vec()
    }

    #[test]
    fn escapes_are_decoded_once() {
        assert_eq!(segments("a/b.json"), ["a", "b.json"]);
        assert_eq!(segments("%61%20b/%E2%82%AC"), ["a b", "€"]);
        assert_eq!(segments("%252e%252e"), ["%2e%2e"]);
        assert!(ContentPath::parse("").unwrap().is_empty());
    }

    #[test]
    fn a_literal_path_decodes_nothing() {
        assert_eq!(ContentPath::parse_literal("%2f/%zz").unwrap().segments(), ["%2f", "%zz"]);
        assert_eq!(ContentPath::parse_literal("a/../b"), Err(ContentPathError::DotSegment));
    }

    #[test]
    fn what_no_directory_lists_is_refused() {
        for (text, error) in [
            ("/", ContentPathError::EmptySegment),
            ("/a", ContentPathError::EmptySegment),
            ("a/", ContentPathError::EmptySegment),
            ("a//b", ContentPathError::EmptySegment),
            (".", ContentPathError::DotSegment),
            ("a/..", ContentPathError::DotSegment),
            ("%2e%2E/a", ContentPathError::DotSegment),
            ("a%2fb", ContentPathError::EscapedSlash),
            ("a%2Fb", ContentPathError::EscapedSlash),
            ("a%00", ContentPathError::Nul),
            ("a\0", ContentPathError::Nul),
            ("%", ContentPathError::BadEscape),
            ("%4", ContentPathError::BadEscape),
            ("%4g", ContentPathError::BadEscape),
            ("%+1", ContentPathError::BadEscape),
            ("%€", ContentPathError::BadEscape),
            ("%ff", ContentPathError::NotUtf8),
            ("%C0%AF", ContentPathError::NotUtf8),
        ] {
            assert_eq!(ContentPath::parse(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn length_and_depth_are_bounded() {
        let deepest = vec!["d"; MAX_SEGMENTS].join("/");
        assert_eq!(segments(&deepest).len(), MAX_SEGMENTS);
        assert_eq!(ContentPath::parse(&format!("{deepest}/d")), Err(ContentPathError::TooManySegments));
        assert!(ContentPath::parse(&"d".repeat(MAX_PATH_BYTES)).is_ok());
        assert_eq!(ContentPath::parse(&"d".repeat(MAX_PATH_BYTES + 1)), Err(ContentPathError::TooLong));
    }

    proptest::proptest! {
        #[test]
        fn the_written_form_reads_back(text in "\\PC{0,40}(/\\PC{1,40}){0,4}") {
            if let Ok(path) = ContentPath::parse_literal(&text) {
                proptest::prop_assert_eq!(ContentPath::parse(&path.to_string()), Ok(path));
            }
        }

        #[test]
        fn no_text_makes_the_parser_panic(text: String) {
            let _ = ContentPath::parse(&text);
        }
    }
}
