//! Formats text for a terminal: wraps long lines, and shortens digests.

use std::io::IsTerminal as _;

/// Minimum width for wrapping. Below it, a hanging indent leaves no room for words.
const MIN_WIDTH: usize = 40;

const MAX_HANG: usize = 32;

/// Minimum length of a digest or CID: a CIDv0 has 46 characters.
const MIN_DIGEST: usize = 46;

/// Number of characters kept at the start and at the end of a digest: enough to compare two by eye.
const KEPT: (usize, usize) = (10, 6);

/// The width of standard output, if it is a terminal.
pub(super) fn width_of_stdout() -> Option<usize> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    let (terminal_size::Width(columns), _) = terminal_size::terminal_size_of(std::io::stdout())?;
    Some(usize::from(columns))
}

/// Wraps the long lines of `text` at spaces. Continuation lines are aligned with the line's text, not with its label.
pub(super) fn wrap_long_lines(text: &str, width: usize) -> String {
    let width = width.max(MIN_WIDTH);
    text.split_inclusive('\n').map(|line| wrap_long_line(line, width)).collect()
}

fn wrap_long_line(line: &str, width: usize) -> String {
    let (body, end) = line.strip_suffix('\n').map_or((line, ""), |body| (body, "\n"));
    // A row of a Markdown table is meant to be copied, so it is not wrapped.
    if display_width(body) <= width || body.starts_with("| ") {
        return line.to_owned();
    }
    let hang = hanging_indent(body);
    let (mut wrapped, mut column) = (String::new(), 0);
    for piece in body.split_inclusive(' ') {
        let word = display_width(piece.trim_end_matches(' '));
        if column > hang && column + word > width {
            wrapped.truncate(wrapped.trim_end_matches(' ').len());
            wrapped.push('\n');
            wrapped.push_str(&" ".repeat(hang));
            column = hang;
        }
        wrapped.push_str(piece);
        column += display_width(piece);
    }
    wrapped + end
}

/// The column at which the text of a line begins: after the last gap of two or more spaces near its start.
fn hanging_indent(line: &str) -> usize {
    let (mut hang, mut spaces, mut column) = (0, 0, 0);
    for c in visible_characters(line) {
        if column > MAX_HANG {
            break;
        }
        if c == ' ' {
            spaces += 1;
        } else {
            if spaces >= 2 || column == spaces {
                hang = column;
            }
            spaces = 0;
        }
        column += 1;
    }
    hang
}

fn display_width(text: &str) -> usize {
    visible_characters(text).count()
}

/// The characters without colour codes, which end with `m`.
fn visible_characters(text: &str) -> impl Iterator<Item = char> {
    let mut in_code = false;
    text.chars().filter(move |c| match (*c, in_code) {
        ('\u{1b}', _) => {
            in_code = true;
            false
        }
        ('m', true) => {
            in_code = false;
            false
        }
        (_, in_code) => !in_code,
    })
}

/// Shortens the digests and CIDs in `text`, except in lines labelled `fix`, which are meant to be copied.
pub(super) fn shorten_digests(text: &str) -> String {
    let is_fix = |line: &str| line.trim_start().starts_with("fix ");
    text.split_inclusive('\n')
        .map(|line| if is_fix(line) { line.to_owned() } else { shorten_line_digests(line) })
        .collect()
}

fn shorten_line_digests(line: &str) -> String {
    let mut short = String::new();
    let mut rest = line;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphanumeric()) {
        let length = rest[start..].find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len() - start);
        let (before, word) = (&rest[..start], &rest[start..start + length]);
        short.push_str(before);
        if is_digest_or_cid(word) {
            short.push_str(&word[..KEPT.0]);
            short.push('…');
            short.push_str(&word[word.len() - KEPT.1..]);
        } else {
            short.push_str(word);
        }
        rest = &rest[start + length..];
    }
    short + rest
}

/// Whether this is a SHA-256 or a chain's hash in hex, or a CID. Addresses are shorter and kept whole.
fn is_digest_or_cid(word: &str) -> bool {
    if word.len() < MIN_DIGEST {
        return false;
    }
    let hex = word.strip_prefix("0x").unwrap_or(word);
    let is_hash = hex.len() >= 64 && hex.bytes().all(|b| b.is_ascii_hexdigit());
    is_hash || word.starts_with("baf") || word.starts_with("Qm")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_wrapped_with_a_hanging_indent() {
        let text = "name  trusted\n  ✓ records      mainnet eip155:1, block 21000000, resolver 0x231b; quorum 2/2\n\
            a.eth is bound to this card. It does not cover whom to pay.\n";
        let expected = "name  trusted\n  ✓ records      mainnet eip155:1, block\n                 21000000, resolver\n                 0x231b; quorum 2/2\n\
            a.eth is bound to this card. It does not\ncover whom to pay.\n";
        assert_eq!(wrap_long_lines(text, 42), expected);
        assert_eq!(wrap_long_lines(text, 200), text);
    }

    #[test]
    fn colours_take_no_columns_and_a_long_word_stays_whole() {
        let plain = "      expected aaaa bbbb cccc dddd eeee ffff gggg hhhh";
        let coloured = "      \u{1b}[31mexpected\u{1b}[0m aaaa bbbb cccc dddd eeee ffff gggg hhhh";
        let without = |text: String| visible_characters(&text).collect::<String>();
        assert_eq!(without(wrap_long_lines(coloured, 40)), wrap_long_lines(plain, 40));
        assert_eq!(wrap_long_lines(plain, 40), "      expected aaaa bbbb cccc dddd eeee\n      ffff gggg hhhh");
        let word = "x".repeat(90);
        assert_eq!(wrap_long_lines(&word, 40), word);
    }

    #[test]
    fn digests_are_shortened_and_values_to_copy_are_not() {
        let digest = "ab".repeat(32);
        let cid = "bafkreibm6jg3ux5qumhcn2b3flc3tyu6dmlb4xa7u5bf44yegnrjhc4yeq";
        let text = format!("  integrity  sha256:{digest}, {cid}/agents/card.json\n      fix      sha256:{digest}\n");
        let expected = format!(
            "  integrity  sha256:ababababab…ababab, bafkreibm6…hc4yeq/agents/card.json\n      fix      sha256:{digest}\n"
        );
        assert_eq!(shorten_digests(&text), expected);
        let address = "resolver 0x231b0Ee14048e9dCcD1d247744d114a4EB5E8E63";
        assert_eq!(shorten_digests(address), address);
    }
}
