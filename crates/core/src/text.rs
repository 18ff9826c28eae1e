//! Foreign text: the content of names, records, cards, contracts and server responses. It is never printed unescaped.

use std::fmt::{self, Write as _};

use unicode_general_category::{GeneralCategory, get_general_category};

/// Default number of characters of foreign text that are displayed.
///
/// It is long enough for any URL, CID or digest in an honest record. It is short enough that a hostile value cannot
/// scroll the rest of the answer off the screen or fill a log.
pub const SHOWN_CHARACTERS: usize = 200;

/// Foreign text for display on a terminal or in a log: one line, escaped, bounded.
///
/// Control, bidirectional, invisible and other [unsafe characters](first_unsafe_character) are written as `\u{hex}`. A
/// backslash is doubled, so that an escape differs from text that only looks like one. Text beyond the limit is
/// replaced by `…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UntrustedText<'a> {
    text: &'a str,
    limit: usize,
}

impl<'a> UntrustedText<'a> {
    /// Displays at most [`SHOWN_CHARACTERS`] characters of `text`.
    pub const fn new(text: &'a str) -> Self {
        Self { text, limit: SHOWN_CHARACTERS }
    }

    /// Displays at most `limit` characters, counted before escaping.
    #[must_use]
    pub const fn with_limit(self, limit: usize) -> Self {
        Self { text: self.text, limit }
    }

    /// Formats the text as a Markdown code span, inside or outside of a table. No part of the text can act as a link, a
    /// mention, HTML or the end of the span: `|` and the backtick are written `\u{7c}` and `\u{60}`. Empty text yields
    /// nothing.
    pub const fn to_markdown_code_span(self) -> MarkdownCodeSpan<'a> {
        MarkdownCodeSpan(self)
    }

    /// Formats the text as a quoted CSV cell (RFC 4180) that no spreadsheet evaluates: a cell that begins like a
    /// formula gets an apostrophe before it.
    pub const fn to_csv_cell(self) -> CsvCell<'a> {
        CsvCell(self)
    }
}

/// See [`UntrustedText::to_markdown_code_span`].
#[derive(Clone, Copy, Debug)]
pub struct MarkdownCodeSpan<'a>(UntrustedText<'a>);

impl fmt::Display for MarkdownCodeSpan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.text.is_empty() {
            return Ok(());
        }
        let escape = |c| match c {
            '|' => Some("\\u{7c}"),
            '`' => Some("\\u{60}"),
            _ => None,
        };
        write!(f, "`")?;
        write!(EscapingWriter { out: f, escape }, "{}", self.0)?;
        write!(f, "`")
    }
}

/// See [`UntrustedText::to_csv_cell`].
#[derive(Clone, Copy, Debug)]
pub struct CsvCell<'a>(UntrustedText<'a>);

/// First characters of a cell that a spreadsheet evaluates as a formula, including their full-width forms.
const FORMULA_CHARACTERS: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

impl fmt::Display for CsvCell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let guard =
            if self.0.text.trim_start().starts_with(FORMULA_CHARACTERS) && !mutant!("formulas-run") { "'" } else { "" };
        write!(f, "\"{guard}")?;
        write!(EscapingWriter { out: f, escape: |c| (c == '"').then_some("\"\"") }, "{}", self.0)?;
        write!(f, "\"")
    }
}

/// A writer that replaces some characters.
struct EscapingWriter<'f, 'g, E> {
    out: &'f mut fmt::Formatter<'g>,
    escape: E,
}

impl<E: Fn(char) -> Option<&'static str>> fmt::Write for EscapingWriter<'_, '_, E> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match (self.escape)(c) {
                Some(escaped) => self.out.write_str(escaped)?,
                None => self.out.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Escapes the unsafe characters of a JSON text as `\u`. Outside of strings JSON is ASCII, so the result is equivalent
/// JSON.
pub fn escape_unsafe_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\u{7f}' || (!c.is_ascii() && is_unsafe_character(c)) {
            let mut units = [0; 2];
            out.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    out
}

impl fmt::Display for UntrustedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut characters = self.text.chars();
        for c in characters.by_ref().take(self.limit) {
            match c {
                '\\' if !mutant!("escapes-can-be-forged") => f.write_str("\\\\")?,
                c if is_unsafe_character(c) => write!(f, "{}", c.escape_unicode())?,
                c => f.write_char(c)?,
            }
        }
        if characters.next().is_some() {
            f.write_char('…')?;
        }
        Ok(())
    }
}

/// The first character of `text` that a `cl.*` record must not contain (rule X-2).
///
/// Unsafe are control characters (including line ends and tabs), format characters (bidirectional marks, zero-width
/// characters, tags), other invisible characters, line and paragraph separators, the object and the replacement
/// character, private-use characters, and code points that Unicode 16 has not assigned, including non-characters.
/// Spaces are safe: a separate rule judges them.
pub fn first_unsafe_character(text: &str) -> Option<char> {
    // Fast path: most texts are printable ASCII, which is checked many bytes at a time.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return None;
    }
    text.chars().find(|c| is_unsafe_character(*c) && !mutant!("unsafe-characters"))
}

/// Escapes the unsafe characters of a message of one or more lines. The message may contain foreign text.
pub fn escape_unsafe_lines(message: &str) -> String {
    let mut inert = String::with_capacity(message.len());
    for c in message.chars() {
        if c != '\n' && is_unsafe_character(c) {
            inert.extend(c.escape_unicode());
        } else {
            inert.push(c);
        }
    }
    inert
}

/// Whether [`first_unsafe_character`] treats `c` as unsafe.
pub fn is_unsafe_character(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    let by_category = matches!(
        get_general_category(c),
        GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
            | GeneralCategory::PrivateUse
            | GeneralCategory::Surrogate
            | GeneralCategory::Unassigned
    );
    by_category || is_invisible(c)
}

/// Characters that are invisible, or replace lost text, although their category is that of letters, marks or symbols:
/// Unicode's Default_Ignorable_Code_Point without the format characters, the empty Braille cell, U+FFFC and U+FFFD.
const fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{34f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{ffa0}'
            | '\u{fffc}'..='\u{fffd}'
            | '\u{e0100}'..='\u{e01ef}'
    )
}

/// `text` with every URL reduced to scheme and host, because user info, path and query may contain a key.
pub fn strip_url_secrets(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, url) = rest.split_at(at + 3);
        out.push_str(before);
        let end =
            url.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>')).unwrap_or(url.len());
        let (url, after) = url.split_at(end);
        let authority = url.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        out.push_str(host_of_authority(authority));
        if authority.len() < url.len() {
            out.push_str("/…");
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Host and port of an authority. Empty for a malformed authority, which may be a mistyped password.
fn host_of_authority(authority: &str) -> &str {
    let host = authority.rsplit('@').next().unwrap_or_default();
    let port = host.rsplit_once(':').map_or("", |(_, port)| port);
    if port.bytes().all(|b| b.is_ascii_digit()) || host.ends_with(']') { host } else { "…" }
}

/// Maximum length of foreign text in a message, in bytes: enough to recognise it, too short to flood a log.
pub const MAX_EXCERPT_BYTES: usize = 200;

/// The [`word_similarity`] from which a word counts as a misspelling of another. Below it, long hyphenated words
/// resemble almost any other.
const LIKE: f64 = 0.8;

/// Maximum length of a word that is compared with known ones, in bytes. No known word is half as long.
const MAX_COMPARED_BYTES: usize = 128;

/// The known word most similar to `typed`, if any is similar enough.
pub fn nearest_word<'k>(typed: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    if typed.len() > MAX_COMPARED_BYTES {
        return None;
    }
    let alike = known.map(|known| (word_similarity(typed, known), known)).filter(|(likeness, _)| *likeness > LIKE);
    alike.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, known)| known)
}

/// Similarity from 0 to 1. One typing error (a letter inserted, deleted, replaced or swapped with its neighbour) counts
/// as the closest match, because Jaro-Winkler misses it in short words.
fn word_similarity(typed: &str, known: &str) -> f64 {
    if typed.len() > 2 && strsim::osa_distance(typed, known) <= 1 { 1.0 } else { strsim::jaro_winkler(typed, known) }
}

/// Foreign text for a message, truncated at a character boundary to at most [`MAX_EXCERPT_BYTES`], with `…` at the cut.
pub fn excerpt_text(text: &str) -> String {
    truncate_bytes(text, MAX_EXCERPT_BYTES)
}

/// `text`, truncated at a character boundary to at most `most` bytes, with `…` as the last character if truncated.
pub fn truncate_bytes(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most.saturating_sub('…'.len_utf8()));
    format!("{}…", &text[..end])
}

/// A word of a POSIX shell command line, quoted if it may contain characters that are special to a shell. Unsafe
/// characters become octal escapes. A word without them gets no backslash, because [`UntrustedText`] would double it.
pub fn shell_quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/' | '+');
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let in_quotes = |text: &str| format!("'{}'", text.replace('\'', r#"'"'"'"#));
    if !word.chars().any(is_unsafe_character) {
        return in_quotes(word);
    }
    let mut escaped = String::with_capacity(word.len());
    for c in word.chars() {
        match c {
            '\\' => escaped.push_str(r"\\"),
            c if is_unsafe_character(c) => {
                escaped.extend(c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("\\0{byte:03o}")));
            }
            c => escaped.push(c),
        }
    }
    format!("\"$(printf %b {})\"", in_quotes(&escaped))
}

/// `text` with its first letter in upper case, for the start of a sentence.
pub fn capitalize_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        UntrustedText::new(text).to_string()
    }

    #[test]
    fn a_message_keeps_its_lines_and_nothing_else_that_acts() {
        assert_eq!(escape_unsafe_lines("größe\n\u{1b}[31m\r\\n\u{202e}"), "größe\n\\u{1b}[31m\\u{d}\\n\\u{202e}");
    }

    #[test]
    fn a_word_for_a_shell_is_one_word() {
        let plain = ["a-b.eth", "$(x).eth", "it's", "", "größe.eth", "a b", "--x", "`id`;\"&|<>*?~#!", "a\\n%s"];
        let unsafe_ = ["👨\u{200d}👩\u{200d}👦.eth", "\u{200d}a\\n%s'$(x)`id`\"", "-\u{7f}\n%"];
        for word in plain.into_iter().chain(unsafe_) {
            let printed = std::process::Command::new("sh")
                .args(["-c", &format!("printf '[%s]' {}", shell_quote(word))])
                .output()
                .expect("a shell");
            assert_eq!(String::from_utf8_lossy(&printed.stdout), format!("[{word}]"));
            assert_eq!(first_unsafe_character(&shell_quote(word)), None, "{word}");
        }
        assert_eq!(shell_quote("a-b.eth"), "a-b.eth");
        assert_eq!(shell_quote("a\u{200d}b"), r#""$(printf %b 'a\0342\0200\0215b')""#);
    }

    #[test]
    fn typing_error_is_nearer_than_a_similar_long_word() {
        let known = || ["receipts", "rpc", "gate"].into_iter();
        for (typed, meant) in
            [("rcp", Some("rpc")), ("rpcs", Some("rpc")), ("reciepts", Some("receipts")), ("xyz", None)]
        {
            assert_eq!(nearest_word(typed, known()), meant, "{typed}");
        }
    }

    #[test]
    fn plain_text_is_shown_as_it_is() {
        for text in ["", "x402://summarizeagent.eth/summarize/v1", "öbb.at", "名前", "a b"] {
            assert_eq!(shown(text), text);
            assert_eq!(first_unsafe_character(text), None);
        }
    }

    #[test]
    fn unsafe_characters_are_escaped_and_found() {
        let cases = [
            ('\n', "\\u{a}"),
            ('\t', "\\u{9}"),
            ('\u{1b}', "\\u{1b}"),
            ('\u{7f}', "\\u{7f}"),
            ('\u{85}', "\\u{85}"),
            ('\u{ad}', "\\u{ad}"),
            ('\u{34f}', "\\u{34f}"),
            ('\u{61c}', "\\u{61c}"),
            ('\u{200b}', "\\u{200b}"),
            ('\u{200d}', "\\u{200d}"),
            ('\u{202e}', "\\u{202e}"),
            ('\u{2028}', "\\u{2028}"),
            ('\u{2029}', "\\u{2029}"),
            ('\u{2066}', "\\u{2066}"),
            ('\u{2800}', "\\u{2800}"),
            ('\u{3164}', "\\u{3164}"),
            ('\u{e000}', "\\u{e000}"),
            ('\u{fe0f}', "\\u{fe0f}"),
            ('\u{feff}', "\\u{feff}"),
            ('\u{fffd}', "\\u{fffd}"),
            ('\u{ffff}', "\\u{ffff}"),
            ('\u{e0041}', "\\u{e0041}"),
            ('\u{10ffff}', "\\u{10ffff}"),
        ];
        for (c, escaped) in cases {
            let text = format!("a{c}b");
            assert_eq!(first_unsafe_character(&text), Some(c), "{escaped}");
            assert_eq!(shown(&text), format!("a{escaped}b"));
        }
    }

    #[test]
    fn an_escape_cannot_be_forged() {
        assert_ne!(shown("\\u{a}"), shown("\n"));
        assert_eq!(shown("\\u{a}"), "\\\\u{a}");
    }

    #[test]
    fn markdown_keeps_foreign_text_in_its_code_span() {
        let span = |text| UntrustedText::new(text).to_markdown_code_span().to_string();
        assert_eq!(span(""), "");
        assert_eq!(span("a.eth"), "`a.eth`");
        assert_eq!(span("a|b`c\n# d"), "`a\\u{7c}b\\u{60}c\\u{a}# d`");
        assert_eq!(span("<img src=x> [l](http://e) @all"), "`<img src=x> [l](http://e) @all`");
        assert_eq!(span("\\u{60}"), "`\\\\u{60}`");
    }

    #[test]
    fn csv_cells_are_quoted_and_no_formulas() {
        let cell = |text| UntrustedText::new(text).to_csv_cell().to_string();
        assert_eq!(cell("a\"b,c\r\n"), "\"a\"\"b,c\\u{d}\\u{a}\"");
        for text in ["=1+1", "+1", "-1", "@SUM(A1)", "  =1", "＝1", "\u{a0}=1"] {
            assert!(cell(text).starts_with("\"'"), "{text}");
        }
        assert_eq!(cell("\t=1"), "\"'\\u{9}=1\"");
        assert_eq!(cell("a=1"), "\"a=1\"");
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(UntrustedText::new("abcd").with_limit(3).to_string(), "abc…");
        assert_eq!(UntrustedText::new("abc").with_limit(3).to_string(), "abc");
        assert_eq!(shown(&"x".repeat(10_000)).chars().count(), SHOWN_CHARACTERS + 1);
    }

    #[test]
    fn urls_lose_what_may_be_secret() {
        assert_eq!(
            strip_url_secrets("invalid \"https://user:pw@rpc.example/v3/KEY?k=1\", expected x"),
            "invalid \"https://rpc.example/…\", expected x"
        );
        assert_eq!(strip_url_secrets("see http://a.example and b"), "see http://a.example and b");
        assert_eq!(strip_url_secrets("no url"), "no url");
        assert_eq!(strip_url_secrets("http://user:p/w@host"), "http://…/…");
        assert_eq!(strip_url_secrets("http://[::1]:8545/k"), "http://[::1]:8545/…");
    }

    #[test]
    fn excerpts_are_cut_at_character_borders() {
        assert_eq!(excerpt_text("short"), "short");
        let cut = excerpt_text(&"é".repeat(150));
        assert!(cut.len() <= MAX_EXCERPT_BYTES && cut.ends_with("é…"));
    }
}
