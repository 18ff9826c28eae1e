//! What a row of a governance log must say to count as told: it names the code, what changed, or its value. Pure.

use super::difference::Change;
use super::governance_log::{Action, LogRow};
use clresolve_core::digest::Digest;
use clresolve_core::reason::Code;
use clresolve_core::text::Foreign;

/// Longest value that a draft holds in full, in characters: a digest with its prefix fits.
const MAX_VALUE_CHARACTERS: usize = 72;

/// How much of a longer value a draft holds, in characters, before its digest.
const KEPT_CHARACTERS: usize = 40;

/// Digits of that digest: nobody finds another value with the same ones by accident.
const DIGEST_DIGITS: usize = 12;

/// Shortest value by which a row tells of a change, in characters: a shorter one may stand in any text.
const LEAST_CHARACTERS: usize = 8;

/// Shortest start of a digest or an address that stands for it, with its prefix.
const LEAST_DIGITS: usize = 8;

/// A value as a draft holds it. Of a long one the digest makes up for what is left out, so that two of them differ.
pub(super) fn shortened(value: &str) -> String {
    if value.chars().count() <= MAX_VALUE_CHARACTERS {
        return value.to_owned();
    }
    let start: String = value.chars().take(KEPT_CHARACTERS).collect();
    format!("{start}… (sha256:{})", &Digest::of(value.as_bytes()).hex()[..DIGEST_DIGITS])
}

/// Whether a row tells of a change: by a word for what changed, or by the value before or after it.
pub(super) fn tells_of_change(row: &LogRow, change: &Change) -> bool {
    let text = text_of(row);
    let values = [&change.before, &change.after].into_iter().flatten();
    change.kind.about().log_words.iter().any(|word| has_word(&text, word))
        || values.into_iter().any(|value| has_value(&text, value))
}

/// Whether a row names a code.
pub(super) fn names_code(row: &LogRow, code: Code) -> bool {
    has_word(&text_of(row), code.slug())
}

/// Whether a row says that its name is trusted, or put right.
pub(super) fn tells_of_trust(row: &LogRow) -> bool {
    let text = text_of(row);
    ["trusted", "corrected", "restored"].iter().any(|word| has_word(&text, word))
}

fn text_of(row: &LogRow) -> String {
    let action = row.action.map_or("", Action::as_str);
    format!("{action} {} {}", row.decision, row.reason).to_lowercase()
}

/// Whether a word stands in a text by itself, and not in a longer one or in a code.
fn has_word(text: &str, word: &str) -> bool {
    let continues = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        !before.ends_with(continues) && !after.starts_with(continues)
    })
}

/// Whether a value stands in a text: as it is, as a draft holds it, or, of a digest or an address, by its first digits.
fn has_value(text: &str, value: &str) -> bool {
    // An address stands behind its coin type, and an update that is missing before its message.
    let parts = [value, value.split_once(": ").map_or(value, |(_, part)| part)];
    parts.into_iter().any(|part| {
        let forms =
            [Foreign::new(part).to_string(), shortened(part), start_of_hex(part).unwrap_or_default().to_owned()];
        let mut forms = forms.into_iter().filter(|form| form.chars().count() >= LEAST_CHARACTERS);
        forms.any(|form| text.contains(&form.to_lowercase()))
    })
}

/// The first digits of a digest or an address, with the prefix.
fn start_of_hex(value: &str) -> Option<&str> {
    let prefix = ["sha256:", "0x"].into_iter().find(|prefix| value.starts_with(prefix))?;
    let digits = value[prefix.len()..].bytes().take_while(u8::is_ascii_hexdigit).count();
    (digits >= LEAST_DIGITS).then(|| &value[..prefix.len() + LEAST_DIGITS])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::difference::Kind;
    use crate::governance_log::{Form, GovernanceLog};
    use crate::log_check::draft_of;

    const OLD: &str = "https://runtime.example/agents/of/the/first/publisher/with/a/long/path/before/what/differs/v1/a";
    const NEW: &str = "https://runtime.example/agents/of/the/first/publisher/with/a/long/path/before/what/differs/v1/b";

    fn change(kind: Kind, before: &str, after: &str) -> Change {
        Change { name: "a.eth".to_owned(), kind, before: Some(before.to_owned()), after: Some(after.to_owned()) }
    }

    fn row(decision: &str, reason: &str) -> LogRow {
        let head = "| date | subject | kind | decision | reason |\n|---|---|---|---|---|\n";
        let log = GovernanceLog::parse(format!("{head}| 2026-11-20 | a.eth | change | {decision} | {reason} |\n"));
        log.rows.into_iter().next().expect("a row")
    }

    #[test]
    fn a_row_tells_of_a_change_by_its_word_or_its_value_and_by_nothing_else() {
        let address = "0xd8da6bf26964af9d7eed9e03e53415d37aa96045";
        let payee = change(Kind::Payee, "60: 0x0000000000000000000000000000000000000001", &format!("60: {address}"));
        for text in [
            "new payee announced",
            "The Payee is another",
            "pays 0xd8da6bf2… from now on",
            address,
            &address.to_uppercase().replace('X', "x"),
            "was 0x0000000000000000000000000000000000000001",
        ] {
            assert!(tells_of_change(&row("accepted", text), &payee), "{text}");
            assert!(tells_of_change(&row(text, "announced"), &payee), "{text}");
        }
        for text in ["the logo on the home page is blue now", "payees-unproven", "0xd8da", "accepted", "owner", "60"] {
            assert!(!tells_of_change(&row("accepted", text), &payee), "{text}");
        }
        let version = change(Kind::Version, "1.0.0", "2");
        assert!(!tells_of_change(&row("2 logos", "1.0.0 is out"), &version), "short values stand in any text");
        assert!(tells_of_change(&row("accepted", "version 2"), &version));
        for kind in Kind::ALL {
            let logo = row("accepted", "the logo on the home page is blue now");
            assert!(!tells_of_change(&logo, &change(kind, OLD, NEW)), "{kind}");
        }
        assert!(names_code(&row("a", "`checksum-mismatch` (CL-50)"), Code::ChecksumMismatch));
        assert!(!names_code(&row("a", "not-checksum-mismatch"), Code::ChecksumMismatch));
    }

    /// What a draft is made of.
    fn published() -> Vec<Kind> {
        Kind::ALL.into_iter().filter(|kind| kind.is_logged()).collect()
    }

    #[test]
    fn two_long_values_stay_apart_when_they_are_shortened() {
        let [old, new] = [OLD, NEW].map(shortened);
        assert!(
            old != new && old.starts_with("https://runtime.example/") && old.chars().count() <= MAX_VALUE_CHARACTERS
        );
        let draft = draft_of(&change(Kind::Endpoint, OLD, NEW));
        assert!(draft.reason.contains(&old) && draft.reason.contains(&new), "{draft:?}");
    }

    proptest! {
        /// Whatever changes, its draft is read back as it was made, and tells of the change.
        #[test]
        fn the_draft_of_any_change_is_read_back_and_tells_of_it(
            kind in proptest::sample::select(published()),
            subject in ".{1,80}",
            before in proptest::option::of(".{0,300}"),
            after in proptest::option::of(".{0,300}"),
        ) {
            let change = Change { name: subject, kind, before, after };
            let draft = draft_of(&change);
            for form in [Form::Published, Form::Plain] {
                let log = GovernanceLog::parse(format!("{}{}\n", form.head(), draft.markdown(form)));
                let row = log.rows.into_iter().next().expect("a row");
                prop_assert!(tells_of_change(&row, &change), "{:?}", row);
                let read = crate::Draft {
                    date: row.date.to_string(),
                    subject: row.subject,
                    kind: row.kind,
                    action: row.action.unwrap_or(draft.action),
                    decision: row.decision,
                    reason: row.reason,
                };
                prop_assert_eq!(&read, &draft);
            }
        }
    }
}
