//! Personal data (CL-33): e-mail addresses and telephone numbers.

use super::{Marks, Separators, contains};

/// Names of members of `meta` that hold the publisher's contact.
pub(super) fn is_contact(name: &str) -> bool {
    const NAMES: [&str; 8] =
        ["publisher", "support", "security", "maintainer", "maintainers", "author", "authors", "abuse"];
    contains(name, "contact") || NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// The kind of the first personal datum in `text`; the datum itself is not repeated.
pub(super) fn find(text: &str, marks: Marks) -> Option<String> {
    if marks.any(Marks::AT) && has_email(text) {
        return Some("an e-mail address".to_owned());
    }
    (marks.any(Marks::DIGIT) && has_telephone(text)).then(|| "a telephone number".to_owned())
}

fn has_email(text: &str) -> bool {
    const TOKENS: Separators = Separators::ascii(b",;\"'`()<>[]|{}=");
    TOKENS.split(text).filter(|token| token.contains('@') && !token.contains("://")).any(is_email)
}

/// `local@domain.tld`, with a top-level domain of letters. Not a remote of git.
fn is_email(token: &str) -> bool {
    let token = token.strip_prefix("mailto:").unwrap_or(token);
    let token = token.split('?').next().unwrap_or(token).trim_end_matches(['.', ':', '!']);
    let Some((local, domain)) = token.split_once('@') else {
        return false;
    };
    let local_fits = !local.is_empty()
        && !local.eq_ignore_ascii_case("git")
        && local.bytes().all(|b| b.is_ascii_alphanumeric() || b"._%+-".contains(&b) || !b.is_ascii());
    let domain_fits = domain.bytes().all(|b| b.is_ascii_alphanumeric() || b".-".contains(&b) || !b.is_ascii());
    let Some((name, top)) = domain.rsplit_once('.') else {
        return false;
    };
    local_fits && domain_fits && !name.is_empty() && is_top_level(top)
}

fn is_top_level(label: &str) -> bool {
    label.len() >= 2 && label.chars().all(char::is_alphabetic)
}

fn has_telephone(text: &str) -> bool {
    let international = text.contains('+') && (contains(text, "tel:+") || has_international(text));
    international || has_north_american(text)
}

/// `+` and 8 to 15 digits in at least two groups, as E.164 numbers are written for people.
fn has_international(text: &str) -> bool {
    text.match_indices('+').any(|(at, _)| {
        let free = text[..at].chars().next_back().is_none_or(|c| c.is_whitespace() || "(:,;".contains(c));
        let number = &text[at + 1..];
        let end = number.find(|c: char| !c.is_ascii_digit() && !" -.()/".contains(c)).unwrap_or(number.len());
        let number = number[..end].trim_end();
        let digits = number.bytes().filter(u8::is_ascii_digit).count();
        free && number.starts_with(|c: char| c.is_ascii_digit()) && (8..=15).contains(&digits) && digits < number.len()
    })
}

/// Three, three and four digits, at the start or after a space: `415-555-2671`, `(415) 555-2671`, `415.555.2671`.
fn has_north_american(text: &str) -> bool {
    const SHAPES: [&[u8]; 4] = [b"000-000-0000", b"000.000.0000", b"(000) 000-0000", b"(000)000-0000"];
    let fits = |text: &[u8], shape: &[u8]| {
        let same = |(b, s): (&u8, &u8)| if *s == b'0' { b.is_ascii_digit() } else { b == s };
        let ends = || text.get(shape.len()).is_none_or(|after| !after.is_ascii_alphanumeric() && *after != b'-');
        text.len() >= shape.len() && text.iter().zip(shape).all(same) && ends()
    };
    let starts = std::iter::once(0).chain(text.match_indices(' ').map(|(at, _)| at + 1));
    starts.map(|at| &text.as_bytes()[at..]).any(|rest| SHAPES.iter().any(|shape| fits(rest, shape)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Option<String> {
        find(text, Marks::of(text))
    }

    #[test]
    fn mail_addresses_and_telephone_numbers_are_found() {
        for personal in [
            "jane.doe@commandlayer.org",
            "user@example.com",
            "mailto:jane@commandlayer.org?subject=x",
            "ask <jane@commandlayer.org>.",
            "jané@commandlayer.org",
            "tel:+14155552671",
            "+1 415 555 2671",
            "call +44 (20) 7946-0958!",
            "415-555-2671",
            "phone (415) 555-2671.",
        ] {
            assert!(text(personal).is_some(), "{personal}");
        }
    }

    #[test]
    fn other_things_pass() {
        for other in [
            "@commandlayer",
            "npm:@commandlayer/agent-cards@1.0.0",
            "git@github.com:commandlayer/x.git",
            "https://user@commandlayer.org/x",
            "2025-11-22T00:00:00+00:00",
            "1.0.0+20251122",
            "+20251122",
            "192.168.100.2001",
            "978-3-16-148410-0",
            "tokens 100-200-3000-4000",
            "a+b 123",
        ] {
            assert_eq!(text(other), None, "{other}");
        }
    }
}
