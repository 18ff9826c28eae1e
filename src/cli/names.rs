//! Reads lists of names within limits: one name per line, comments and blank lines ignored.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use clresolve_audit::list_digest::{self, ListDigester, normalized_digest};
use clresolve_audit::truncate_input;
use clresolve_core::digest::{Digest, Digester};
use clresolve_core::reason::ReasonCode;

use super::input::STDIN;

/// Maximum line length, in bytes: several times the longest resolvable name, with room for a comment.
pub(super) const MAX_LINE_BYTES: usize = 4096;

/// Maximum number of lines of a list. Only a digest of each stays in memory ([`DuplicateNameDetector`], about 40 MB for
/// all). The limit bounds the time that a wrong file or an endless stream can take.
pub(super) const MAX_LINES: u64 = 1_000_000;

/// Number of characters shown of a line that is too long.
const START_CHARACTERS: usize = 80;

/// Maximum number of names that standard input may add to a command line. Their verdicts are kept until the last is
/// written. `audit` accepts longer lists.
const MAX_GIVEN: usize = 10_000;

/// The names in the arguments, with those on standard input in place of `-`.
///
/// # Errors
/// If standard input cannot be read, contains a line that is not text, or has too many names or none.
pub(super) fn expand_stdin_names(typed: Vec<String>) -> anyhow::Result<Vec<String>> {
    match typed.iter().filter(|name| *name == STDIN).count() {
        0 => Ok(typed),
        1 => {
            let listed = collect_stdin_names(NameListReader::from_stdin())?;
            Ok(typed.into_iter().flat_map(|name| if name == STDIN { listed.clone() } else { vec![name] }).collect())
        }
        _ => bail!("-: standard input can be read once only"),
    }
}

/// The names of a list, within the limit for a command line.
fn collect_stdin_names(lines: NameListReader) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for line in lines {
        match line? {
            NameListLine::Name { name, .. } => names.push(name),
            NameListLine::Unreadable { line, why, .. } => bail!("standard input, line {line}: {why}"),
        }
        if names.len() > MAX_GIVEN {
            bail!(
                "standard input contains more than {MAX_GIVEN} names; `clresolve audit --names -` accepts longer lists"
            );
        }
    }
    if names.is_empty() {
        bail!("standard input contains no name");
    }
    Ok(names)
}

pub(super) struct NameListInput {
    /// Its contents, if they can be read in advance.
    pub(super) counted: Option<NameListInputTotals>,
    pub(super) reader: NameListReader,
}

/// What was counted while the list was read in advance.
#[derive(Default)]
pub(super) struct NameListInputTotals {
    /// Number of distinct names in the counted part.
    pub(super) names: u64,
    pub(super) lines: u64,
    /// Digest of the names with their lines.
    pub(super) digester: ListDigester,
}

/// A line that gets a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NameListLine {
    /// A name, or text in its place.
    Name {
        /// Number of the line, from 1.
        line: u64,
        /// The name.
        name: String,
    },
    Unreadable {
        /// Number of the line, from 1.
        line: u64,
        /// The part that can be shown.
        start: String,
        /// The digest of the whole line, if it is longer.
        whole: Option<Digest>,
        code: ReasonCode,
        why: String,
    },
}

impl NameListLine {
    /// A line that cannot be a name. Only the start of its text is kept.
    pub(super) fn unreadable_line(line: u64, text: &str, why: String) -> Self {
        let start: String = text.chars().take(START_CHARACTERS).collect();
        let whole = (start != text).then(|| Digest::compute(text.as_bytes()));
        Self::Unreadable { line, start, whole, code: ReasonCode::NameInvalid, why }
    }

    /// The line for a registry that could not be read.
    pub(super) fn unreadable_registry(location: String, code: ReasonCode, why: String) -> Self {
        Self::Unreadable { line: 1, start: location, whole: None, code, why }
    }

    /// Like [`unreadable_line`](Self::unreadable_line), for a line with these bytes.
    fn unreadable_bytes(line: u64, text: &str, whole: Digest, why: String) -> Self {
        let start = text.chars().take(START_CHARACTERS).collect();
        Self::Unreadable { line, start, whole: Some(whole), code: ReasonCode::NameInvalid, why }
    }

    pub(super) fn digest_key(&self) -> String {
        match self {
            Self::Name { name, .. } => {
                let (start, whole) = truncate_input(name);
                list_digest::row_key(&start, whole)
            }
            Self::Unreadable { start, whole, .. } => list_digest::row_key(start, *whole),
        }
    }

    /// Number of the line, from 1.
    pub(super) const fn line_number(&self) -> u64 {
        match self {
            Self::Name { line, .. } | Self::Unreadable { line, .. } => *line,
        }
    }

    /// The same line, after this many others.
    pub(super) const fn with_line_offset(mut self, lines: u64) -> Self {
        let (Self::Name { line, .. } | Self::Unreadable { line, .. }) = &mut self;
        *line = line.saturating_add(lines);
        self
    }
}

/// Detects lines that repeat a name.
#[derive(Debug, Default)]
pub(super) struct DuplicateNameDetector {
    seen: HashSet<Digest>,
    /// Number of lines that repeated a name.
    pub(super) again: u64,
}

impl DuplicateNameDetector {
    /// Whether a line contains a new name. True for every unreadable line.
    pub(super) fn insert_line(&mut self, line: &NameListLine) -> bool {
        let NameListLine::Name { name, .. } = line else { return true };
        let is_first = self.seen.insert(normalized_digest(name));
        self.again += u64::from(!is_first);
        is_first
    }
}

/// Why the list cannot be read to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NameListError {
    #[error("the list of names has more than {MAX_LINES} lines")]
    TooMany,
    #[error("the list of names cannot be read: {0}")]
    Io(String),
}

/// Opens a list, and counts its names if it is a regular file.
pub(super) fn open_name_list(path: &Path) -> anyhow::Result<NameListInput> {
    if path == Path::new(STDIN) {
        return Ok(NameListInput { counted: None, reader: NameListReader::from_stdin() });
    }
    let context = || format!("--names {}", path.display());
    let mut file = File::open(path).with_context(context)?;
    let mut counted = None;
    if file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        let copy = file.try_clone().with_context(context)?;
        counted = count_list_names(NameListReader::new(Box::new(BufReader::new(copy)))).ok();
        file.rewind().with_context(context)?;
    }
    Ok(NameListInput { counted, reader: NameListReader::new(Box::new(BufReader::new(file))) })
}

fn count_list_names(mut reader: NameListReader) -> Result<NameListInputTotals, NameListError> {
    let (mut counted, mut distinct) = (NameListInputTotals::default(), DuplicateNameDetector::default());
    for line in reader.by_ref() {
        let line = line?;
        counted.digester.add(line.line_number(), &line.digest_key());
        counted.names += u64::from(distinct.insert_line(&line));
    }
    counted.lines = reader.line_count();
    Ok(counted)
}

/// A line without its end.
struct RawNameListLine {
    /// The line. Of an overlong one, the first [`MAX_LINE_BYTES`] + 1 bytes.
    bytes: Vec<u8>,
    /// The digest of the whole line, if it is longer.
    whole: Option<Digest>,
}

/// Reads a list of names line by line.
pub(super) struct NameListReader {
    input: Box<dyn BufRead + Send>,
    line: u64,
    ended: bool,
}

impl NameListReader {
    fn new(input: Box<dyn BufRead + Send>) -> Self {
        Self { input, line: 0, ended: false }
    }

    pub(super) const fn line_count(&self) -> u64 {
        self.line
    }

    fn from_stdin() -> Self {
        Self::new(Box::new(BufReader::new(io::stdin())))
    }

    fn read_raw_line(&mut self) -> Result<Option<RawNameListLine>, NameListError> {
        let failed = |error: io::Error| NameListError::Io(error.to_string());
        let mut bytes = Vec::new();
        let limit = u64::try_from(MAX_LINE_BYTES + 1).unwrap_or(u64::MAX);
        if self.input.by_ref().take(limit).read_until(b'\n', &mut bytes).map_err(failed)? == 0 {
            return Ok(None);
        }
        self.line += 1;
        if self.line > MAX_LINES {
            return Err(NameListError::TooMany);
        }
        let mut whole = None;
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        } else if bytes.len() > MAX_LINE_BYTES {
            whole = Some(self.skip_line_rest(&bytes).map_err(failed)?);
        }
        if self.line == 1 && bytes.starts_with(BYTE_ORDER_MARK) {
            bytes.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(Some(RawNameListLine { bytes, whole }))
    }

    /// Skips the rest of a line. Returns the digest of the whole line.
    fn skip_line_rest(&mut self, start: &[u8]) -> io::Result<Digest> {
        let mut line = Digester::default();
        line.update(start);
        loop {
            let bytes = self.input.fill_buf()?;
            let end = bytes.iter().position(|byte| *byte == b'\n');
            line.update(&bytes[..end.unwrap_or(bytes.len())]);
            let is_last = end.is_some() || bytes.is_empty();
            let read = end.map_or(bytes.len(), |end| end + 1);
            self.input.consume(read);
            if is_last {
                return Ok(line.finalize());
            }
        }
    }
}

/// Some editors write it at the start of a file.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

impl Iterator for NameListReader {
    type Item = Result<NameListLine, NameListError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            match self.read_raw_line() {
                Ok(None) => self.ended = true,
                Ok(Some(RawNameListLine { bytes, whole })) => {
                    if let Some(line) = parse_name_list_line(self.line, bytes, whole) {
                        return Some(Ok(line));
                    }
                }
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

/// Parses a line. `None` if it is blank or a comment. An overlong line comes with the digest of the whole line.
fn parse_name_list_line(line: u64, bytes: Vec<u8>, whole: Option<Digest>) -> Option<NameListLine> {
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if whole.is_some() => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        Err(error) => {
            let (bytes, why) = (error.as_bytes(), "the line is not UTF-8".to_owned());
            return Some(NameListLine::unreadable_bytes(
                line,
                &String::from_utf8_lossy(bytes),
                Digest::compute(bytes),
                why,
            ));
        }
    };
    let name = strip_comment(&text).trim();
    if name.is_empty() {
        return None;
    }
    if let Some(whole) = whole {
        let why = format!("the line is longer than {MAX_LINE_BYTES} bytes");
        return Some(NameListLine::unreadable_bytes(line, name, whole, why));
    }
    if is_ens_node(name) {
        return Some(NameListLine::unreadable_line(line, name, "it is a hash without a known name".to_owned()));
    }
    Some(NameListLine::Name { line, name: name.to_owned() })
}

/// Whether this is a node (EIP-137), which `audit list` writes if the name is unknown.
fn is_ens_node(text: &str) -> bool {
    text.strip_prefix("0x").is_some_and(|digits| digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// The text before a `#` at the start of the line or after white space. The keycap emoji `#️⃣`, which names may
/// contain, starts no comment.
fn strip_comment(text: &str) -> &str {
    let begins = |at: usize| text[..at].chars().next_back().is_none_or(char::is_whitespace);
    let keycap = |at: usize| text[at + 1..].starts_with(['\u{fe0f}', '\u{20e3}']);
    let comment = text.match_indices('#').find(|(at, _)| begins(*at) && !keycap(*at));
    comment.map_or(text, |(at, _)| &text[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(list: &[u8]) -> Vec<Result<NameListLine, NameListError>> {
        NameListReader::new(Box::new(io::Cursor::new(list.to_vec()))).collect()
    }

    fn name(line: u64, name: &str) -> Result<NameListLine, NameListError> {
        Ok(NameListLine::Name { line, name: name.to_owned() })
    }

    #[test]
    fn names_stand_one_per_line_and_comments_do_not_count() {
        let list = "\u{feff}a.eth\r\n# all\n\n  b.eth  # why\nc#d.eth\n#️⃣.eth\n#";
        assert_eq!(lines(list.as_bytes()), [name(1, "a.eth"), name(4, "b.eth"), name(5, "c#d.eth"), name(6, "#️⃣.eth")]);
    }

    #[test]
    fn a_line_that_is_no_text_is_a_line_all_the_same() {
        let mut list = b"\xff.eth\n".to_vec();
        list.extend(vec![b'a'; 3 * MAX_LINE_BYTES]);
        list.extend(b"\nb.eth\n");
        let lines = lines(&list);
        assert!(
            matches!(&lines[0], Ok(NameListLine::Unreadable { line: 1, why, .. }) if why == "the line is not UTF-8")
        );
        let Ok(NameListLine::Unreadable { line: 2, start, whole, why, .. }) = &lines[1] else {
            panic!("{:?}", lines[1])
        };
        assert_eq!((start.len(), why.as_str()), (START_CHARACTERS, "the line is longer than 4096 bytes"));
        assert_eq!(*whole, Some(Digest::compute(&vec![b'a'; 3 * MAX_LINE_BYTES])));
        assert_eq!(lines[2..], [name(3, "b.eth")]);
    }

    #[test]
    fn a_name_is_listed_again_in_whatever_spelling() {
        let list = b"a.eth\nA.eth\nno name\n\xff\nno name\n\xff\na.eth\nb.eth\n".to_vec();
        let reader = || NameListReader::new(Box::new(io::Cursor::new(list.clone())));
        let mut distinct = DuplicateNameDetector::default();
        let first: Vec<u64> = reader()
            .map(Result::unwrap)
            .filter(|line| distinct.insert_line(line))
            .map(|line| line.line_number())
            .collect();
        assert_eq!((first, distinct.again), (vec![1, 3, 4, 6, 8], 3));
        assert_eq!(count_list_names(reader()).map(|counted| (counted.names, counted.lines)), Ok((5, 8)));
    }

    #[test]
    fn a_long_comment_is_only_a_comment() {
        let mut list = b"# ".to_vec();
        list.extend(vec![b'a'; 3 * MAX_LINE_BYTES]);
        list.extend(b"\nb.eth\n");
        assert_eq!(lines(&list), [name(2, "b.eth")]);
    }

    #[test]
    fn names_of_standard_input_take_the_place_of_the_dash() {
        let read = |text: &[u8]| collect_stdin_names(NameListReader::new(Box::new(io::Cursor::new(text.to_vec()))));
        assert_eq!(read(b"a.eth # one\n\nb.eth\n").unwrap(), ["a.eth", "b.eth"]);
        assert_eq!(read(b"\n").unwrap_err().to_string(), "standard input contains no name");
        assert_eq!(read(b"a.eth\n\xff\n").unwrap_err().to_string(), "standard input, line 2: the line is not UTF-8");
        let many = "a.eth\n".repeat(MAX_GIVEN + 1);
        assert!(read(many.as_bytes()).unwrap_err().to_string().contains("more than 10000 names"));
        assert_eq!(expand_stdin_names(vec!["a.eth".to_owned()]).unwrap(), ["a.eth"]);
        assert!(expand_stdin_names(vec!["-".to_owned(); 2]).unwrap_err().to_string().contains("once only"));
    }

    #[test]
    fn a_list_that_breaks_off_is_not_taken_for_a_short_one() {
        struct Broken;
        impl io::Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("the disk is gone"))
            }
        }
        let mut lines = NameListReader::new(Box::new(BufReader::new(io::Read::chain(&b"a.eth\n"[..], Broken))));
        assert!(matches!(lines.next(), Some(Ok(_))));
        assert_eq!(lines.next(), Some(Err(NameListError::Io("the disk is gone".to_owned()))));
    }

    #[test]
    fn a_list_without_end_is_refused() {
        struct Endless;
        impl io::Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                buffer.fill(b'\n');
                Ok(buffer.len())
            }
        }
        let mut lines = NameListReader::new(Box::new(BufReader::new(Endless)));
        assert_eq!(lines.next(), Some(Err(NameListError::TooMany)));
        assert_eq!(lines.next(), None);
    }
}
