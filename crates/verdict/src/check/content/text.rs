//! Characters, tokens and words of a text.

/// The marker characters in a text. Most texts contain few, and most detectors need one of them.
#[derive(Clone, Copy)]
pub(super) struct CharacterClasses(u32);

impl CharacterClasses {
    pub(super) const DIGIT: u32 = 1;
    pub(super) const DOT: u32 = 2;
    pub(super) const COLON: u32 = 4;
    pub(super) const AT: u32 = 8;
    pub(super) const ANGLE: u32 = 16;
    pub(super) const HASH_BANG: u32 = 32;
    pub(super) const EQUALS: u32 = 64;
    pub(super) const DASH: u32 = 128;
    /// `%`, `&` or a backslash.
    pub(super) const ESCAPE: u32 = 256;
    pub(super) const PAREN: u32 = 512;
    /// `$` or a backtick.
    pub(super) const SHELL: u32 = 1024;
    pub(super) const UNDERSCORE: u32 = 2048;
    pub(super) const SPACE: u32 = 4096;
    /// ASCII white space other than the space.
    pub(super) const BREAK: u32 = 8192;
    pub(super) const SLASH: u32 = 16384;
    pub(super) const COMMA: u32 = 32768;
    /// An upper-case ASCII letter.
    pub(super) const UPPER: u32 = 65536;

    pub(super) fn from_text(text: &str) -> Self {
        const fn class_bit(byte: u8) -> u32 {
            match byte {
                b'0'..=b'9' => CharacterClasses::DIGIT,
                b'.' => CharacterClasses::DOT,
                b':' => CharacterClasses::COLON,
                b'@' => CharacterClasses::AT,
                b'<' => CharacterClasses::ANGLE,
                b'!' => CharacterClasses::HASH_BANG,
                b'=' => CharacterClasses::EQUALS,
                b'-' => CharacterClasses::DASH,
                b'%' | b'&' | b'\\' => CharacterClasses::ESCAPE,
                b'(' => CharacterClasses::PAREN,
                b'$' | b'`' => CharacterClasses::SHELL,
                b'_' => CharacterClasses::UNDERSCORE,
                b' ' => CharacterClasses::SPACE,
                b'\t'..=b'\r' => CharacterClasses::BREAK,
                b'/' => CharacterClasses::SLASH,
                b',' => CharacterClasses::COMMA,
                b'A'..=b'Z' => CharacterClasses::UPPER,
                _ => 0,
            }
        }
        const TABLE: [u32; 256] = {
            let mut table = [0; 256];
            let mut byte = 0;
            while byte < 256 {
                table[byte] = class_bit(byte as u8);
                byte += 1;
            }
            table
        };
        Self(text.bytes().fold(0, |marks, byte| marks | TABLE[usize::from(byte)]))
    }

    pub(super) const fn has_any(self, marks: u32) -> bool {
        self.0 & marks != 0
    }
}

/// Bytes that separate tokens.
pub(super) struct TokenSeparators([bool; 256]);

impl TokenSeparators {
    /// ASCII white space and control characters, and `marks`.
    pub(super) const fn ascii(marks: &[u8]) -> Self {
        let mut table = [false; 256];
        let mut byte = 0;
        while byte <= b' ' {
            table[byte as usize] = true;
            byte += 1;
        }
        table[0x7f] = true;
        let mut at = 0;
        while at < marks.len() {
            table[marks[at] as usize] = true;
            at += 1;
        }
        Self(table)
    }

    /// Everything except ASCII letters.
    pub(super) const ALL_BUT_LETTERS: Self = {
        let mut table = [false; 256];
        let mut byte = 0;
        while byte < 256 {
            table[byte] = !(byte as u8).is_ascii_alphabetic();
            byte += 1;
        }
        Self(table)
    };

    /// Adds all non-ASCII characters.
    pub(super) const fn with_non_ascii(mut self) -> Self {
        let mut byte = 0x80;
        while byte < 256 {
            self.0[byte] = true;
            byte += 1;
        }
        self
    }

    /// The non-empty tokens of `text`.
    pub(super) fn split<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        let mut rest = text;
        std::iter::from_fn(move || {
            let start = rest.bytes().position(|byte| !self.is_separator(byte))?;
            let token = self.first_token(&rest[start..]);
            rest = &rest[start + token.len()..];
            Some(token)
        })
    }

    /// The text before the first separator. Non-ASCII bytes either all separate or never do, so the cut is on a
    /// character boundary.
    pub(super) fn first_token<'t>(&self, text: &'t str) -> &'t str {
        let end = text.bytes().position(|byte| self.is_separator(byte)).unwrap_or(text.len());
        &text[..end]
    }

    pub(super) fn is_separator(&self, byte: u8) -> bool {
        self.0[usize::from(byte)]
    }
}

/// Maximum length of a word in a name, in bytes; the lists contain nothing near it.
const MAX_WORD_BYTES: usize = 32;

/// The last word of a member's name: `address` of `ipAddress`, `host` of `db_host`.
pub(super) fn last_word(name: &str) -> &str {
    let name = &name[name.ceil_char_boundary(name.len().saturating_sub(MAX_WORD_BYTES))..];
    let word = longest_matching_suffix(name, |byte| byte.is_ascii_alphanumeric());
    // After a non-ASCII letter, it is the end of a longer word.
    let is_end = name[..name.len() - word.len()].bytes().next_back().is_some_and(|byte| !byte.is_ascii());
    let word = if is_end { "" } else { word };
    let humps =
        word.as_bytes().windows(2).rposition(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    humps.map_or(word, |at| &word[at + 1..])
}

/// The longest suffix of `text` whose bytes all fit. Non-ASCII bytes never fit, so the cut is on a character boundary.
pub(super) fn longest_matching_suffix(text: &str, fits: impl Fn(u8) -> bool) -> &str {
    let start = text.bytes().rposition(|byte| !fits(byte)).map_or(0, |at| at + 1);
    &text[start..]
}

/// Splits `text` at the first `mark`, which is ASCII. For short texts, [`str::split_once`] is slower.
pub(super) fn split_at_mark(text: &str, mark: u8) -> Option<(&str, &str)> {
    let at = text.bytes().position(|byte| byte == mark)?;
    Some((&text[..at], &text[at + 1..]))
}

/// The positions of all colons, found in one pass. If half of the text is colons, restarting a search after each one is
/// much slower. The pass ends at the last colon, which is near the start of most texts.
pub(super) fn colon_positions(text: &str) -> impl Iterator<Item = usize> {
    let end = text.rfind(':').map_or(0, |last| last + 1);
    text.bytes().take(end).enumerate().filter_map(|(at, byte)| (byte == b':').then_some(at))
}

/// The text after each `://`, up to the next.
pub(super) fn texts_after_schemes(text: &str) -> impl Iterator<Item = &str> {
    let mut schemes = colon_positions(text).filter(|at| text[at + 1..].starts_with("//")).peekable();
    std::iter::from_fn(move || {
        let start = schemes.next()? + "://".len();
        Some(&text[start..schemes.peek().copied().unwrap_or(text.len())])
    })
}

/// Whether `text` begins with `prefix` (ASCII), ignoring case.
pub(super) fn starts_with_ignore_case(text: &str, prefix: &str) -> bool {
    text.as_bytes().get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
}

/// Whether `text` ends with `suffix` (ASCII), ignoring case.
pub(super) fn ends_with_ignore_case(text: &str, suffix: &str) -> bool {
    let text = text.as_bytes();
    text.len().checked_sub(suffix.len()).is_some_and(|at| text[at..].eq_ignore_ascii_case(suffix.as_bytes()))
}

/// Whether `text` contains `word` (ASCII), ignoring case.
pub(super) fn contains_ignore_case(text: &str, word: &str) -> bool {
    text.as_bytes().windows(word.len()).any(|window| window.eq_ignore_ascii_case(word.as_bytes()))
}
