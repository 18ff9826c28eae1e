//! Personal data (CL-33): e-mail addresses and telephone numbers.

use super::{Marks, find_ignoring_case};

/// Names of members of `meta` that hold the publisher's contact.
pub(super) fn is_contact(name: &str) -> bool {
    const NAMES: [&str; 8] =
        ["publisher", "support", "security", "maintainer", "maintainers", "author", "authors", "abuse"];
    find_ignoring_case(name, "contact").is_some() || NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// The kind of the first personal datum in `text`; the datum itself is not repeated.
pub(super) fn find(text: &str, marks: Marks) -> Option<String> {
    if marks.any(Marks::AT) && has_email(text) {
        return Some("an e-mail address".to_owned());
    }
    (marks.any(Marks::DIGIT) && has_telephone(text)).then(|| "a telephone number".to_owned())
}

fn has_email(text: &str) -> bool {
    let tokens = text.split(|c: char| c.is_whitespace() || ",;\"'`()<>[]|{}=".contains(c));
    tokens.filter(|token| token.contains('@') && !token.contains("://")).any(is_email)
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
    find_ignoring_case(text, "tel:+").is_some() || has_international(text) || has_north_american(text)
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

/// Three, three and four digits: `415-555-2671`, `(415) 555-2671`, `415.555.2671`.
fn has_north_american(text: &str) -> bool {
    const SHAPES: [&[u8]; 4] = [b"000-000-0000", b"000.000.0000", b"(000) 000-0000", b"(000)000-0000"];
    let text = text.as_bytes();
    let fits = |at: usize, shape: &[u8]| {
        let free = at.checked_sub(1).is_none_or(|before| text[before].is_ascii_whitespace());
        let ends = text.get(at + shape.len()).is_none_or(|after| !after.is_ascii_alphanumeric() && *after != b'-');
        let same = |(b, s): (&u8, &u8)| {
            if *s == b'0' { b.is_ascii_digit() } else { b == s }
        };
        free && ends && text[at..at + shape.len()].iter().zip(shape).all(same)
    };
    SHAPES.iter().any(|shape| (0..text.len().saturating_sub(shape.len() - 1)).any(|at| fits(at, shape)))
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
